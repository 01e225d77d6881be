//! Kernels that are one call of a template: histogram, transposition, tables.

use std::fmt::Display;

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ops::{Deinterleave, Histogram, Interleave, Lookup, RunningDepth, Transpose};

use super::cpp::{CppCall, Expr, Stmt, args, name, template, text};
use super::params::KernelParams;
use super::{
    CudaOperation, Generated, KernelLimits, LAYOUT, PRELUDE, Pointer, REDUCE, Shapes, assemble, blocks, entry,
};

/// Most bins counted in shared memory; more are counted in global memory.
const SHARED_BINS: usize = 8192;
/// Threads per block of kernels that take pixels in any order.
const THREADS: usize = 256;

/// A kernel without a table: its source, and blocks of `threads` threads and `shared` bytes.
pub(super) fn program(
    headers: &[&str],
    body: &[Stmt],
    params: KernelParams,
    grid: [u32; 2],
    threads: usize,
    shared: usize,
) -> Generated {
    with_bounds(headers, body, params, grid, (threads, threads), shared)
}

/// [`program`] with blocks of the first of `threads`, and bounds on launches.
pub(super) fn with_bounds(
    headers: &[&str],
    body: &[Stmt],
    params: KernelParams,
    grid: [u32; 2],
    (threads, bounds): (usize, impl Display),
    shared: usize,
) -> Generated {
    let (declaration, bytes, pointers) = params.finish();
    Generated {
        source: assemble(headers, &declaration, &entry(bounds, &text(body))),
        params: bytes,
        pointers,
        table: Vec::new(),
        grid,
        block: threads as u32,
        shared: shared as u32,
        clear: false,
        early: false,
        cost: 0,
        sequence: None,
    }
}

/// The plane of this block: the parameter `planes` advanced by multiples of the parameter `pitch`.
pub(super) fn plane(planes: &str, pitch: &str) -> Expr {
    name(planes) + name("blockIdx.y") * pitch
}

impl CudaOperation for Histogram {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let (bins, lo, hi) = (self.bins, self.lo(), self.hi());

        const EACH: usize = 32;
        let input = shapes.inputs[0];
        let count = shapes.rows.len() * input.shape.line();
        let mut p = KernelParams::default();
        p.pointer("f64", "out", Pointer::Output { offset: 0 });
        let first = input.row(0, shapes.rows.start) * input.dtype.size();
        p.pointer(&format!("const {}", input.dtype.name()), "in", Pointer::Input { index: 0, offset: first });
        p.long("plane", input.plane() as i64);
        p.long("count", count as i64);
        let [lo, hi] = [lo, hi].map(|v| p.constant(Scalar::F64(v), DType::F64));
        p.int("bins", bins.cast_signed());
        let shared = bins <= SHARED_BINS;
        let args = args![plane("p.in", "p.plane"), "p.count", lo, hi, "p.bins", "p.out"];
        let body = [CppCall::new("hs_histogram", template![THREADS, EACH, shared], args).into()];
        let grid = [blocks(count.div_ceil(THREADS * EACH), "a histogram")?, blocks(input.shape.planes(), "planes")?];
        let bytes = if shared { bins * 4 } else { 0 };
        Ok(Generated { clear: true, ..program(&[PRELUDE, REDUCE], &body, p, grid, THREADS, bytes) })
    }
}

impl CudaOperation for Lookup {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        const EACH: usize = 8;
        let (input, table, out) = (shapes.inputs[0], shapes.inputs[1], shapes.output);
        let count = shapes.rows.len() * out.shape.width;
        let (s, t) = (input.dtype.name(), out.dtype.name());
        let mut p = KernelParams::default();
        p.pointer(t, "out", Pointer::Output { offset: out.row(0, shapes.rows.start) * out.dtype.size() });
        let first = input.row(0, shapes.rows.start) * input.dtype.size();
        p.pointer(&format!("const {s}"), "in", Pointer::Input { index: 0, offset: first });
        let entries = table.row(0, 0) * table.dtype.size();
        p.pointer(&format!("const {t}"), "table", Pointer::Input { index: 1, offset: entries });
        p.long("in_plane", input.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.long("count", count as i64);
        let args = args![plane("p.in", "p.in_plane"), "p.table", "p.count", plane("p.out", "p.out_plane")];
        let body = [CppCall::new("hs_lookup", template![THREADS, EACH], args).into()];
        let grid = [blocks(count.div_ceil(THREADS * EACH), "a table")?, blocks(out.shape.planes(), "planes")?];
        Ok(program(&[PRELUDE, LAYOUT], &body, p, grid, THREADS, 0))
    }
}

impl CudaOperation for RunningDepth {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let (input, out) = (shapes.inputs[0], shapes.output);
        let count = shapes.rows.len() * out.shape.width;
        let mut p = KernelParams::default();
        let offset = |g: &Geometry| g.row(0, shapes.rows.start) * g.dtype.size();
        p.pointer(out.dtype.name(), "out", Pointer::Output { offset: offset(&out) });
        let from = Pointer::Input { index: 0, offset: offset(&input) };
        p.pointer(&format!("const {}", input.dtype.name()), "in", from);
        p.long("in_plane", input.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.long("count", count as i64);
        p.int("levels", out.shape.depth.cast_signed());
        p.int("channels", out.shape.channels.cast_signed());
        let args = args!["p.in", "p.in_plane", "p.out", "p.out_plane", "p.count", "p.levels", "p.channels"];
        let body = [CppCall::new("hs_running_depth", template![THREADS], args).into()];
        let grid = [blocks(count.div_ceil(THREADS), "running sums")?, blocks(out.shape.channels, "planes")?];
        Ok(program(&[PRELUDE, LAYOUT], &body, p, grid, THREADS, 0))
    }
}

impl CudaOperation for Deinterleave {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        reordered("hs_deinterleave", shapes.output.shape.channels, shapes)
    }
}

impl CudaOperation for Interleave {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        reordered("hs_interleave", shapes.output.shape.samples, shapes)
    }
}

/// Reorders samples of so many channels: each thread takes one pixel.
fn reordered(template: &str, channels: usize, shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
    let (input, out) = (shapes.inputs[0], shapes.output);
    let count = shapes.rows.len() * out.shape.width;
    let t = out.dtype.name();
    let mut p = KernelParams::default();
    let offset = |g: &Geometry| g.row(0, shapes.rows.start) * g.dtype.size();
    p.pointer(t, "out", Pointer::Output { offset: offset(&out) });
    p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: offset(&input) });
    p.long("in_plane", input.plane() as i64);
    p.long("out_plane", out.plane() as i64);
    p.long("count", count as i64);
    let args = args!["p.in", "p.in_plane", "p.out", "p.out_plane", "p.count"];
    let body = [CppCall::new(template, template![THREADS, channels], args).into()];
    let grid = [blocks(count.div_ceil(THREADS), "pixels")?, blocks(out.shape.depth, "levels")?];
    Ok(program(&[PRELUDE, LAYOUT], &body, p, grid, THREADS, 0))
}

impl CudaOperation for Transpose {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        /// Rows and columns of the square that a block transposes, and the rows of it that its threads take at once.
        const SIDE: usize = 32;
        const DOWN: usize = 8;
        let (input, out) = (shapes.inputs[0], shapes.output);
        let t = out.dtype.name();
        let across = out.shape.width.div_ceil(SIDE);
        let mut p = KernelParams::default();
        p.pointer(t, "out", Pointer::Output { offset: 0 });
        p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: 0 });
        p.long("in_plane", input.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.int("in_start", input.window.start);
        p.int("in_width", input.shape.width.cast_signed());
        p.int("out_start", out.window.start);
        p.int("width", out.shape.width.cast_signed());
        p.int("row0", shapes.rows.start);
        p.int("row1", shapes.rows.end);
        p.int("across", across.cast_signed());
        let args = args![
            plane("p.in", "p.in_plane"),
            "p.in_start",
            "p.in_width",
            Expr::Shared(out.dtype, 0),
            plane("p.out", "p.out_plane"),
            "p.out_start",
            "p.width",
            "p.row0",
            "p.row1",
            "p.across",
        ];
        let body = [CppCall::new("hs_transpose", template![SIDE, DOWN], args).into()];
        let squares = across * shapes.rows.len().div_ceil(SIDE);
        let grid = [blocks(squares, "a transposition")?, blocks(out.shape.planes(), "planes")?];
        Ok(program(&[PRELUDE, LAYOUT], &body, p, grid, SIDE * DOWN, SIDE * (SIDE + 1) * out.dtype.size()))
    }
}
