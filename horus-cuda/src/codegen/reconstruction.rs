//! Reconstruction: calls of `kernels/reconstruction.cuh`.

use horus_core::error::DeviceError;
use horus_core::ops::reconstruction::Reconstruction;

use super::cpp::{CppCall, args, template};
use super::fixed::program;
use super::params::KernelParams;
use super::{CudaOperation, Generated, KernelLimits, LaunchSequence, PRELUDE, Pointer, RECONSTRUCTION, Shapes, blocks};

/// Threads per block: few, because there are as many threads as lines, and many multiprocessors.
const THREADS: usize = 32;
/// Pixels of a thread in the first launch.
const EACH: usize = 64;

impl CudaOperation for Reconstruction {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let how = *self;
        let shape = shapes.output.shape;
        let t = shapes.output.dtype.name();
        let extents = [shape.depth, shape.height, shape.width];
        let lines = extents.into_iter().filter(|n| *n > 1).map(|n| shape.len() / n).max().unwrap_or(0);
        let number = blocks(shape.len().div_ceil(THREADS * EACH).max(lines.div_ceil(THREADS)), "reconstruction")?;
        // Without levels there are no sweeps along them.
        let first = usize::from(shape.depth == 1);
        let mut p = KernelParams::default();
        // The first launch: see `LaunchSequence`.
        p.int("pass", 0);
        p.pointer(t, "out", Pointer::Output { offset: 0 });
        p.pointer(&format!("const {t}"), "marker", Pointer::Input { index: 0, offset: 0 });
        p.pointer(&format!("const {t}"), "mask", Pointer::Input { index: 1, offset: 0 });
        p.pointer("int", "changed", Pointer::Scratch);
        p.int("count", shape.len().cast_signed());
        p.int("first", first.cast_signed());
        for (member, extent) in ["depth", "height", "width"].into_iter().zip(extents) {
            p.int(member, extent.cast_signed());
        }
        p.int("neighbours", how.neighbours.bits() as isize);
        let args = args![
            "p.pass",
            "p.marker",
            "p.mask",
            "p.out",
            "p.changed",
            "p.count",
            "p.first",
            "p.depth",
            "p.height",
            "p.width",
            "p.neighbours",
        ];
        let body = [CppCall::new("hs_reconstruct", template![how.erosion, THREADS, EACH], args).into()];
        let passes = LaunchSequence { count: 1, repeated: 2 * (3 - first as u32), scratch: LaunchSequence::FLAG };
        let made = program(&[PRELUDE, RECONSTRUCTION], &body, p, [number, 1], THREADS, 0);
        Ok(Generated { sequence: Some(passes), ..made })
    }
}
