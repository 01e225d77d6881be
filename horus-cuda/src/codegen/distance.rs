//! Distances to the background: calls of `kernels/distance.cuh`.

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ops::distance::{Metric, NearestPixel, Sought};

use super::cpp::{Call, args, template};
use super::fixed::{plane, program};
use super::params::KernelParams;
use super::{DISTANCE, Generated, PRELUDE, Pointer, Shapes, blocks};

/// Threads per block: columns of a row.
const THREADS: usize = 128;
/// Rows of a thread that sweeps along a column.
const EACH: usize = 64;

pub(super) fn nearest_row(shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
    let (input, out) = (shapes.inputs[0], shapes.output);
    let across = out.shape.width.div_ceil(THREADS);
    let mut p = KernelParams::default();
    p.pointer("int", "out", Pointer::Output { offset: 0 });
    p.pointer(&format!("const {}", input.dtype.name()), "in", Pointer::Input { index: 0, offset: 0 });
    p.long("in_plane", input.plane() as i64);
    p.long("out_plane", out.plane() as i64);
    p.int("in_start", input.window.start);
    p.int("height", input.shape.height.cast_signed());
    p.int("out_start", out.window.start);
    p.int("width", out.shape.width.cast_signed());
    p.int("row0", shapes.rows.start);
    p.int("row1", shapes.rows.end);
    p.int("across", across.cast_signed());
    let args = args![
        plane("p.in", "p.in_plane"),
        "p.in_start",
        "p.height",
        plane("p.out", "p.out_plane"),
        "p.out_start",
        "p.width",
        "p.row0",
        "p.row1",
        "p.across",
    ];
    let body = [Call::new("hs_nearest_row", template![THREADS, EACH], args).into()];
    let grid = [blocks(across * shapes.rows.len().div_ceil(EACH), "columns")?, blocks(out.shape.planes(), "planes")?];
    Ok(program(&[PRELUDE, DISTANCE], &body, p, grid, THREADS, 0))
}

pub(super) fn nearest(how: NearestPixel, shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
    let (input, out) = (shapes.inputs[0], shapes.output);
    let across = out.shape.width.div_ceil(THREADS);
    let (metric, spacing) = match how.metric {
        Metric::Euclidean(spacing) => ("HS_EUCLIDEAN", spacing.get()),
        Metric::Taxicab => ("HS_TAXICAB", [1.0; 2]),
        Metric::Chessboard => ("HS_CHESSBOARD", [1.0; 2]),
    };
    let found: usize = match how.found {
        Sought::Distance => 0,
        Sought::Row => 1,
        Sought::Column => 2,
    };
    let mut p = KernelParams::default();
    p.pointer(out.dtype.name(), "out", Pointer::Output { offset: out.row(0, shapes.rows.start) * out.dtype.size() });
    let first = input.row(0, shapes.rows.start) * input.dtype.size();
    p.pointer("const int", "in", Pointer::Input { index: 0, offset: first });
    p.long("in_plane", input.plane() as i64);
    p.long("out_plane", out.plane() as i64);
    p.int("width", out.shape.width.cast_signed());
    let [rows, columns] = spacing.map(|v| p.constant(Scalar::F64(v), DType::F64));
    p.int("across", across.cast_signed());
    let (from, to) = (plane("p.in", "p.in_plane"), plane("p.out", "p.out_plane"));
    let args = args![from, to, "p.width", rows, columns, "p.across"];
    let body = [Call::new("hs_nearest", template![metric, found, THREADS], args).into()];
    let grid = [blocks(across * shapes.rows.len(), "rows")?, blocks(out.shape.planes(), "planes")?];
    Ok(program(&[PRELUDE, DISTANCE], &body, p, grid, THREADS, 0))
}
