//! Kernels of one form: reductions, histogram, transposition, tables.

use std::fmt::Write as _;

use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::ops::reduce::{Fold, LANES, RowReduce, SEGMENT};

use super::params::KernelParams as Params;
use super::{Generated as Program, PRELUDE, Pointer, REDUCE, Shapes, assemble, blocks};

/// Rows that one block reduces: one for each warp.
pub(super) const LINES: usize = 4;
/// Threads that reduce a row, of two lanes each.
pub(super) const WARP: usize = LANES / 2;
/// Segments of a column that a fold reduces at once: one for each warp.
const COLUMN: usize = 8;
// `reduce.cuh` counts on them.
const _: () = assert!(WARP == 32 && SEGMENT == 1024);
/// Bins counted in shared memory; more go straight to global memory.
const SHARED_BINS: usize = 8192;

pub(super) fn program(
    headers: &[&str],
    code: &str,
    params: Params,
    grid: [u32; 2],
    block: usize,
    shared: usize,
) -> Program {
    let (declaration, bytes, pointers) = params.finish();
    Program {
        source: assemble(headers, &declaration, code),
        params: bytes,
        pointers,
        table: Vec::new(),
        grid,
        block: block as u32,
        shared: shared as u32,
        clear: false,
        early: false,
        cost: 0,
    }
}

pub(super) fn head(threads: usize) -> String {
    format!(
        "extern \"C\" __global__ void __launch_bounds__({threads}) hs_kernel(const __grid_constant__ hs_params p) {{\n"
    )
}

/// What a row reduction is called in `reduce.cuh`.
pub(super) fn row_code(how: RowReduce) -> &'static str {
    match how {
        RowReduce::Sum => "HS_SUM",
        RowReduce::SquaredDeviation => "HS_SQUARED",
        RowReduce::Min => "HS_MIN",
        RowReduce::Max => "HS_MAX",
    }
}

pub(super) fn row_reduce(how: RowReduce, shapes: &Shapes<'_>) -> Result<Program, DeviceError> {
    let (input, out) = (shapes.inputs[0], shapes.output);
    let (t, a) = (input.dtype.name(), out.dtype.name());
    let code = row_code(how);
    let mut p = Params::default();
    p.pointer(a, "out", Pointer::Output { offset: 0 });
    p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: 0 });
    let mean = how == RowReduce::SquaredDeviation;
    if mean {
        let g = shapes.inputs[1];
        p.pointer("const f64", "mean", Pointer::Input { index: 1, offset: g.row(0, 0) * g.dtype.size() });
    }
    p.long("in_plane", input.plane() as i64);
    p.long("out_plane", out.plane() as i64);
    p.int("width", input.shape.width.cast_signed());
    p.int("start", input.window.start);
    p.int("out_start", out.window.start);
    p.int("row0", shapes.rows.start);
    p.int("row1", shapes.rows.end);
    let threads = WARP * LINES;
    let mut s = head(threads);
    let _ = writeln!(
        s,
        "    const int lane = threadIdx.x % {WARP}, line = threadIdx.x / {WARP}, plane = blockIdx.y;\n    \
         const int y = p.row0 + (int)blockIdx.x * {LINES} + line;\n    \
         const {t}* row = p.in + plane * p.in_plane + (i64)(y - p.start) * p.width;\n    \
         const {a} mean = {mean};\n    \
         hs_let_next_begin();\n    \
         const {a} result = hs_row<{code}, {a}>(row, y < p.row1 ? p.width : 0, lane, mean);\n    \
         if (lane == 0 && y < p.row1) p.out[plane * p.out_plane + y - p.out_start] = result;\n}}",
        mean = if mean { "*p.mean" } else { "0" },
    );
    let grid = [blocks(shapes.rows.len().div_ceil(LINES), "a reduction")?, blocks(out.shape.channels, "planes")?];
    Ok(program(&[PRELUDE, REDUCE], &s, p, grid, threads, 0))
}

pub(super) fn fold(how: Fold, shapes: &Shapes<'_>) -> Result<Program, DeviceError> {
    let (input, out) = (shapes.inputs[0], shapes.output);
    let a = out.dtype.name();
    let code = match how {
        Fold::Sum => "HS_SUM",
        Fold::Min => "HS_MIN",
        Fold::Max => "HS_MAX",
    };
    let mut p = Params::default();
    p.pointer(a, "out", Pointer::Output { offset: 0 });
    p.pointer(&format!("const {}", input.dtype.name()), "in", Pointer::Input { index: 0, offset: 0 });
    p.long("count", input.shape.area() as i64);
    p.int("planes", input.shape.channels.cast_signed());
    let threads = WARP * COLUMN;
    let mut s = head(threads);
    let _ = writeln!(
        s,
        "    hs_wait_for_previous();\n    \
         const {a} result = hs_columns<{code}, {a}, {COLUMN}>(p.in, p.count, p.planes, reinterpret_cast<{a}*>(hs_smem));\n    \
         if (threadIdx.x == 0) *p.out = result;\n}}"
    );
    // It reads what the reduction along rows has just written, and is over sooner than it could be launched.
    Ok(Program { early: true, ..program(&[PRELUDE, REDUCE], &s, p, [1, 1], threads, COLUMN * out.dtype.size()) })
}

pub(super) fn histogram(bins: usize, lo: f64, hi: f64, shapes: &Shapes<'_>) -> Result<Program, DeviceError> {
    let input = shapes.inputs[0];
    let (threads, per_thread) = (256, 32);
    let count = shapes.rows.len() * input.shape.width;
    let mut p = Params::default();
    p.pointer("f64", "out", Pointer::Output { offset: 0 });
    p.pointer(
        &format!("const {}", input.dtype.name()),
        "in",
        Pointer::Input { index: 0, offset: input.row(0, shapes.rows.start) * input.dtype.size() },
    );
    p.long("plane", input.plane() as i64);
    p.long("count", count as i64);
    let [lo, hi] = [lo, hi].map(|v| p.constant(horus_core::dtype::Scalar::F64(v), DType::F64));
    p.int("bins", bins.cast_signed());
    let shared = bins <= SHARED_BINS;
    let mut s = head(threads);
    let t = input.dtype.name();
    let _ = writeln!(
        s,
        "    const {t}* in = p.in + blockIdx.y * p.plane;\n    \
         const i64 first = (i64)blockIdx.x * {n}, last = min(first + {n}, p.count);",
        n = threads * per_thread
    );
    if shared {
        s.push_str(
            "    u32* counts = reinterpret_cast<u32*>(hs_smem);\n    \
             for (int b = threadIdx.x; b < p.bins; b += 256) counts[b] = 0;\n    __syncthreads();\n",
        );
    }
    let _ = writeln!(
        s,
        "    for (i64 i = first + threadIdx.x; i < last; i += {threads}) {{\n        \
         const int b = hs_bin(hs_to<f64>(in[i]), {lo}, {hi}, p.bins);\n        \
         if (b >= 0) atomicAdd({});\n    }}",
        if shared { "counts + b, 1u" } else { "p.out + b, 1.0" }
    );
    if shared {
        // Counts are whole numbers below 2^53: the order of these additions does not matter.
        s.push_str(
            "    __syncthreads();\n    for (int b = threadIdx.x; b < p.bins; b += 256)\n        \
             if (counts[b]) atomicAdd(p.out + b, (f64)counts[b]);\n",
        );
    }
    s.push_str("}\n");
    let grid = [blocks(count.div_ceil(threads * per_thread), "a histogram")?, blocks(input.shape.channels, "planes")?];
    let bytes = if shared { bins * 4 } else { 0 };
    Ok(Program { clear: true, ..program(&[PRELUDE, REDUCE], &s, p, grid, threads, bytes) })
}

/// The table stays in the caches: at most 64 Ki entries.
pub(super) fn lookup(shapes: &Shapes<'_>) -> Result<Program, DeviceError> {
    let (threads, per_thread) = (256, 8);
    let (input, table, out) = (shapes.inputs[0], shapes.inputs[1], shapes.output);
    let count = shapes.rows.len() * out.shape.width;
    let (s, t) = (input.dtype.name(), out.dtype.name());
    let mut p = Params::default();
    p.pointer(t, "out", Pointer::Output { offset: out.row(0, shapes.rows.start) * out.dtype.size() });
    let first = input.row(0, shapes.rows.start) * input.dtype.size();
    p.pointer(&format!("const {s}"), "in", Pointer::Input { index: 0, offset: first });
    let entries = table.row(0, 0) * table.dtype.size();
    p.pointer(&format!("const {t}"), "table", Pointer::Input { index: 1, offset: entries });
    p.long("in_plane", input.plane() as i64);
    p.long("out_plane", out.plane() as i64);
    p.long("count", count as i64);
    let mut code = head(threads);
    let _ = writeln!(
        code,
        "    const {s}* in = p.in + blockIdx.y * p.in_plane;\n    {t}* out = p.out + blockIdx.y * p.out_plane;\n    \
         const i64 first = (i64)blockIdx.x * {n}, last = min(first + {n}, p.count);\n    \
         for (i64 i = first + threadIdx.x; i < last; i += {threads}) out[i] = p.table[in[i]];\n}}",
        n = threads * per_thread
    );
    let grid = [blocks(count.div_ceil(threads * per_thread), "a table")?, blocks(out.shape.channels, "planes")?];
    Ok(program(&[PRELUDE], &code, p, grid, threads, 0))
}

pub(super) fn transpose(shapes: &Shapes<'_>) -> Result<Program, DeviceError> {
    const SIDE: usize = 32;
    let (input, out) = (shapes.inputs[0], shapes.output);
    let t = out.dtype.name();
    let tiles_x = out.shape.width.div_ceil(SIDE);
    let mut p = Params::default();
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
    p.int("tiles_x", tiles_x.cast_signed());
    let mut s = head(SIDE * 8);
    // Output pixel (y, x) is input pixel (x, y). The tile is padded by a column against bank conflicts.
    let _ = writeln!(
        s,
        "    const int x0 = (int)(blockIdx.x % p.tiles_x) * {SIDE}, y0 = p.row0 + (int)(blockIdx.x / p.tiles_x) * {SIDE};\n    \
         const int a = threadIdx.x % {SIDE}, b = threadIdx.x / {SIDE};\n    \
         {t}* tile = reinterpret_cast<{t}*>(hs_smem);\n    \
         const {t}* in = p.in + blockIdx.y * p.in_plane;\n    {t}* out = p.out + blockIdx.y * p.out_plane;\n    \
         for (int i = b; i < {SIDE}; i += 8)\n        \
         if (x0 + i < p.width && y0 + a < p.row1)\n            \
         tile[i * {pitch} + a] = in[(i64)(x0 + i - p.in_start) * p.in_width + y0 + a];\n    \
         __syncthreads();\n    \
         for (int i = b; i < {SIDE}; i += 8)\n        \
         if (x0 + a < p.width && y0 + i < p.row1)\n            \
         out[(i64)(y0 + i - p.out_start) * p.width + x0 + a] = tile[a * {pitch} + i];\n}}",
        pitch = SIDE + 1
    );
    let grid =
        [blocks(tiles_x * shapes.rows.len().div_ceil(SIDE), "a transposition")?, blocks(out.shape.channels, "planes")?];
    Ok(program(&[PRELUDE], &s, p, grid, SIDE * 8, SIDE * (SIDE + 1) * out.dtype.size()))
}
