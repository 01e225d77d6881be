//! Thinning: calls of `kernels/thin.cuh`.

use horus_core::error::DeviceError;
use horus_core::ops::Thin;
use horus_cuda_kernels::THIN;

use super::cpp::{CppCall, args, template};
use super::fixed::program;
use super::params::KernelParams;
use super::{CudaOperation, Generated, KernelLimits, LaunchSequence, PRELUDE, Pointer, Shapes, blocks};

/// Threads per block, one pixel each.
const THREADS: usize = 256;

impl CudaOperation for Thin {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let (out, shape) = (shapes.output, shapes.output.shape.planar());
        let t = out.dtype.name();
        let mut p = KernelParams::default();
        // The first launch: see `LaunchSequence`.
        p.int("pass", 0);
        p.pointer(t, "out", Pointer::Output { offset: 0 });
        p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: 0 });
        p.pointer("int", "changed", Pointer::Scratch);
        p.int("count", shape.len().cast_signed());
        p.int("height", shape.height.cast_signed());
        p.int("width", shape.width.cast_signed());
        let tables: Vec<String> = Thin::REMOVED.iter().flatten().map(|bits| format!("{bits:#x}u")).collect();
        let tables = format!("__device__ const unsigned hs_removed[16] = {{ {} }};\n", tables.join(", "));
        let args = args!["p.pass", "p.out", "p.in", "p.changed", "p.count", "p.height", "p.width"];
        let body = [CppCall::new("hs_thin", template![THREADS], args).into()];
        let number = blocks(shape.len().div_ceil(THREADS), "thinning")?;
        let passes = LaunchSequence { count: 1, repeated: 2, scratch: LaunchSequence::FLAG + 2 * shape.len() };
        let made = program(&[PRELUDE, &tables, THIN], &body, p, [number, 1], THREADS, 0);
        Ok(Generated { sequence: Some(passes), ..made })
    }
}
