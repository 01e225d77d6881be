//! Distances to the background: calls of `kernels/distance.cuh`.

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ops::NearestOnLine;
use horus_core::ops::distance::{Metric, NearestPixel, NearestResult};
use horus_core::shape::{Axis, Window};

use super::cpp::{CppCall, args, template};
use super::fixed::{plane, program};
use super::params::KernelParams;
use super::{CudaOperation, DISTANCE, Generated, KernelLimits, PRELUDE, Pointer, Shapes, blocks};

/// Threads per block, for adjacent pixels.
const THREADS: usize = 128;
/// Pixels of a thread along a line.
const EACH: usize = 64;

impl CudaOperation for NearestOnLine {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let along = self.along;
        let (input, out) = (shapes.inputs[0], shapes.output);
        let levels = along == Axis::Depth;
        let channels = out.shape.channels;
        let (n, count, parts) = if levels {
            (out.shape.depth, shapes.rows.len() * out.shape.width, Window::whole(out.shape.depth))
        } else {
            (out.shape.height, out.shape.width, shapes.rows)
        };
        let across = count.div_ceil(THREADS);
        let from = |g: &Geometry| if levels { g.row(0, shapes.rows.start) * g.dtype.size() } else { 0 };
        let start = |g: &Geometry| if levels { 0 } else { g.window.start };
        let step = |g: &Geometry| if levels { g.plane() * channels } else { g.shape.width };
        let mut p = KernelParams::default();
        p.pointer("int", "out", Pointer::Output { offset: from(&out) });
        p.pointer(&format!("const {}", input.dtype.name()), "in", Pointer::Input { index: 0, offset: from(&input) });
        p.long("in_plane", input.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.long("in_step", step(&input) as i64);
        p.long("out_step", step(&out) as i64);
        p.int("in_start", start(&input));
        p.int("n", n.cast_signed());
        p.int("out_start", start(&out));
        p.int("count", count.cast_signed());
        p.int("first", parts.start);
        p.int("end", parts.end);
        p.int("across", across.cast_signed());
        let args = args![
            plane("p.in", "p.in_plane"),
            "p.in_step",
            "p.in_start",
            "p.n",
            plane("p.out", "p.out_plane"),
            "p.out_step",
            "p.out_start",
            "p.count",
            "p.first",
            "p.end",
            "p.across",
        ];
        let body = [CppCall::new("hs_nearest_on_line", template![THREADS, EACH], args).into()];
        let planes = if levels { channels } else { out.shape.planes() };
        let grid = [blocks(across * parts.len().div_ceil(EACH), "lines")?, blocks(planes, "planes")?];
        Ok(program(&[PRELUDE, DISTANCE], &body, p, grid, THREADS, 0))
    }
}

impl CudaOperation for NearestPixel {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let how = *self;
        let (input, out) = (shapes.inputs[0], shapes.output);
        let across = out.shape.width.div_ceil(THREADS);
        let (metric, spacing) = match how.metric {
            Metric::Euclidean(spacing) => ("HS_EUCLIDEAN", spacing.get()),
            Metric::Taxicab => ("HS_TAXICAB", [1.0; 3]),
            Metric::Chessboard => ("HS_CHESSBOARD", [1.0; 3]),
        };
        let found = match how.found {
            NearestResult::Distance => "HS_DISTANCE",
            NearestResult::Level => "HS_LEVEL",
            NearestResult::Row => "HS_ROW",
            NearestResult::Column => "HS_COLUMN",
            NearestResult::Joined => "HS_JOINED",
        };
        let down = how.along == Axis::Rows;
        let mut p = KernelParams::default();
        p.pointer(out.dtype.name(), "out", Pointer::Output { offset: 0 });
        p.pointer("const int", "in", Pointer::Input { index: 0, offset: 0 });
        p.long("in_plane", input.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.int("in_start", input.window.start);
        p.int("height", out.shape.height.cast_signed());
        p.int("out_start", out.window.start);
        p.int("width", out.shape.width.cast_signed());
        p.int("row0", shapes.rows.start);
        p.int("bits", how.offsets.row_bits as isize);
        let [levels, rows, columns] = spacing.map(|v| p.constant(Scalar::F64(v), DType::F64));
        p.int("across", across.cast_signed());
        let args = args![
            plane("p.in", "p.in_plane"),
            "p.in_start",
            "p.height",
            plane("p.out", "p.out_plane"),
            "p.out_start",
            "p.width",
            "p.row0",
            "p.bits",
            levels,
            rows,
            columns,
            "p.across",
        ];
        let body = [CppCall::new("hs_nearest", template![metric, found, down, THREADS], args).into()];
        let grid = [blocks(across * shapes.rows.len(), "rows")?, blocks(out.shape.planes(), "planes")?];
        Ok(program(&[PRELUDE, DISTANCE], &body, p, grid, THREADS, 0))
    }
}
