//! Connected components, samples at positions and resizing: calls of `kernels/components.cuh`,
//! `kernels/sampling.cuh` and `kernels/resize.cuh`.

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ops::components::ComponentValue;
use horus_core::ops::resize::{WeightedRun, WeightedRuns};
use horus_core::ops::{Components, Remap, Resize};
use horus_core::shape::Window;

use super::cpp::{CppCall, Expr, args, name, template};
use super::fixed::{plane, program};
use super::params::{KernelParams, push_scalar};
use super::{
    COMPONENTS, CudaOperation, GATHER, Generated, KernelLimits, LaunchSequence, PRELUDE, Pointer, RESIZE, SAMPLING,
    Shapes, blocks, border_name,
};

/// Threads per block, and pixels per thread. Sixteen pixels per thread take 3.7 times as long at 512x512 and 1.6 times
/// at 4096x4096; one takes 1.1 to 1.2 times as long from 1024x1024 on.
const THREADS: usize = 256;
const EACH: usize = 2;
/// Passes that join and number components; the kernel has as many. To count pixels takes one fewer.
const PASSES: u32 = 6;

impl CudaOperation for Components {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let how = self.neighbours;
        let (input, out) = (shapes.inputs[0], shapes.output);
        let shape = out.shape;
        let number = blocks(shape.len().div_ceil(THREADS * EACH), "connected components")?;
        let mut p = KernelParams::default();
        // The first pass: see `LaunchSequence`.
        p.int("pass", 0);
        p.pointer("int", "out", Pointer::Output { offset: 0 });
        p.pointer(&format!("const {}", input.dtype.name()), "in", Pointer::Input { index: 0, offset: 0 });
        p.pointer("int", "counts", Pointer::Scratch);
        p.int("blocks", number as isize);
        p.int("count", shape.len().cast_signed());
        for (member, extent) in [("depth", shape.depth), ("height", shape.height), ("width", shape.width)] {
            p.int(member, extent.cast_signed());
        }
        let counts = self.value == ComponentValue::Size;
        let args = args![
            "p.pass",
            "p.in",
            "p.out",
            "p.counts",
            "p.blocks",
            "p.count",
            "p.depth",
            "p.height",
            "p.width",
            Expr::Shared(DType::I32, 0),
        ];
        let body =
            [CppCall::new("hs_components", template![usize::from(how.bits()), counts, THREADS, EACH], args).into()];
        let passes = LaunchSequence {
            count: PASSES - u32::from(counts),
            repeated: 0,
            scratch: number as usize * DType::I32.size(),
        };
        let made = program(&[PRELUDE, COMPONENTS], &body, p, [number, 1], THREADS, THREADS * DType::I32.size());
        Ok(Generated { sequence: Some(passes), ..made })
    }
}

impl CudaOperation for Remap {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let Remap { sampling: how, border, outside } = *self;
        let (image, out) = (shapes.inputs[0], shapes.output);
        let (t, volume) = (out.dtype.name(), shapes.inputs.len() == 4);
        let count = shapes.rows.len() * out.shape.width;
        let mut p = KernelParams::default();
        let offset = |g: &Geometry| g.row(0, shapes.rows.start) * g.dtype.size();
        p.pointer(t, "out", Pointer::Output { offset: offset(&out) });
        // From the first row of the image, whichever rows the buffer has.
        let first = image.row(0, 0) * image.dtype.size();
        p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: first });
        let members = ["levels", "rows", "columns"];
        // Without levels the row's members take their place and are not read.
        let axes = if volume { [1, 2, 3] } else { [1, 1, 2] };
        for (member, index) in members.into_iter().zip(axes) {
            let g = &shapes.inputs[index];
            p.pointer(&format!("const {}", g.dtype.name()), member, Pointer::Input { index, offset: offset(g) });
            p.long(&format!("{member}_plane"), g.plane() as i64);
        }
        p.long("in_plane", image.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.long("count", count as i64);
        let shape = image.shape;
        let extents =
            [("depth", shape.depth), ("height", shape.height), ("width", shape.width), ("channels", shape.channels)];
        extents.into_iter().for_each(|(member, extent)| p.int(member, extent.cast_signed()));
        let v = p.constant(Scalar::from_f64(out.dtype, border.constant().unwrap_or(0.0)), out.dtype);
        let beyond = p.constant(outside.unwrap_or(Scalar::from_f64(out.dtype, 0.0)), out.dtype);
        let args = args![
            "p.in",
            "p.in_plane",
            "p.depth",
            "p.height",
            "p.width",
            "p.channels",
            "p.levels",
            "p.levels_plane",
            "p.rows",
            "p.rows_plane",
            "p.columns",
            "p.columns_plane",
            "p.count",
            "p.out",
            "p.out_plane",
            v,
            beyond,
        ];
        let how = format!("HS_{}", how.name().to_ascii_uppercase());
        let body =
            [CppCall::new("hs_remap", template![how, border_name(border), volume, outside.is_some(), THREADS], args)
                .into()];
        let grid = [blocks(count.div_ceil(THREADS), "samples")?, blocks(out.shape.planes(), "planes")?];
        Ok(program(&[PRELUDE, GATHER, SAMPLING], &body, p, grid, THREADS, 0))
    }
}

impl CudaOperation for Resize {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let how = self;
        let (input, out) = (shapes.inputs[0], shapes.output);
        let (t, float, width) = (out.dtype.name(), out.dtype.interpolation(), out.shape.width);
        let down = how.rows.runs(how.how, shapes.rows);
        let across = how.columns.runs(how.how, Window::whole(width));
        let most = |of: &WeightedRuns| of.runs.iter().map(|run| run.weights.len()).max().unwrap_or(0);
        let (lines, columns) = (most(&down), most(&across));
        let mut table = Vec::new();
        let starts = |of: &WeightedRuns, from: isize| -> Vec<u8> {
            // Extents are below 2^30.
            let of_run = |run: &WeightedRun| {
                let WeightedRun { start, weights } = run;
                [start.cast_signed() - from, weights.len().cast_signed()].map(|n| n as i32)
            };
            of.runs.iter().flat_map(of_run).flat_map(i32::to_le_bytes).collect()
        };
        table.extend(starts(&down, input.window.start));
        table.extend(starts(&across, 0));
        let mut weights = |of: &WeightedRuns, at: &dyn Fn(usize, usize) -> usize, count: usize| {
            table.resize(table.len().next_multiple_of(16), 0);
            let (offset, size) = (table.len(), float.size());
            table.resize(offset + count * size, 0);
            for (i, run) in of.runs.iter().enumerate() {
                for (k, weight) in of.weights[run.weights.clone()].iter().enumerate() {
                    let mut bytes = Vec::with_capacity(size);
                    push_scalar(&mut bytes, Scalar::from_f64(float, *weight));
                    table[offset + at(i, k) * size..][..size].copy_from_slice(&bytes);
                }
            }
            offset
        };
        let at_down = weights(&down, &|i, k| i * lines + k, down.runs.len() * lines);
        let at_across = weights(&across, &|i, k| k * width + i, width * columns);
        let mut p = KernelParams::default();
        p.pointer(t, "out", Pointer::Output { offset: out.row(0, shapes.rows.start) * out.dtype.size() });
        p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: 0 });
        p.pointer("const unsigned char", "table", Pointer::Table);
        p.long("in_plane", input.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.long("down", at_down as i64);
        p.long("across", at_across as i64);
        for (member, n) in
            [("in_width", input.shape.width), ("taps", lines), ("rows", shapes.rows.len()), ("width", width)]
        {
            p.int(member, n.cast_signed());
        }
        let of = |member: &str| name(format_args!("(const {}*)(p.table + p.{member})", float.name()));
        let args = args![
            plane("p.in", "p.in_plane"),
            "p.in_width",
            "(const int*)p.table",
            of("down"),
            "p.taps",
            of("across"),
            "p.rows",
            "p.width",
            plane("p.out", "p.out_plane"),
        ];
        let body = [CppCall::new("hs_resize", template![THREADS], args).into()];
        let count = shapes.rows.len() * out.shape.line();
        let grid = [blocks(count.div_ceil(THREADS), "resizing")?, blocks(out.shape.planes(), "planes")?];
        Ok(Generated { table, ..program(&[PRELUDE, RESIZE], &body, p, grid, THREADS, 0) })
    }
}
