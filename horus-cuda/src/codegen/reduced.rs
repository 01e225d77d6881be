//! Reductions along rows of an image or of an expression that is never stored; folds of row results; reductions of
//! rectangles. Each thread evaluates the pixels of its two lanes of accumulation.

use horus_core::device::Geometry;
use horus_core::dtype::DType;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, LeafOp, MapKernel};
use horus_core::ops::reduce::{CHUNK, Fold, LANES, RowReduce, SEGMENT};
use horus_core::ops::tiles::TileReduce;
use horus_core::ops::{Running, Tiled};

use super::cpp::{CppCall, Expr, Operator, Stmt, args, name, pixel, template};
use super::fixed::{plane, program};
use super::instructions::{Instructions, declare_extent};
use super::params::KernelParams;
use super::planes::PlaneRead;
use super::{CudaOperation, Generated, KernelLimits, PRELUDE, Pointer, REDUCE, Shapes, blocks, defect};

/// Rows reduced by one block, one per warp.
const LINES: usize = 4;
/// Threads that reduce a segment, with two lanes each.
const WARP: usize = LANES / 2;
// `reduce.cuh` relies on them.
const _: () = assert!(WARP == 32 && SEGMENT == 1024 && CHUNK == 32);
/// Segments of a column that a fold reduces at once, one per warp.
const COLUMN: usize = 8;
/// Reads of all leaves that a thread has in flight.
const IN_FLIGHT: usize = 16;

/// A kernel that reduces rows: the part that does not depend on their source.
struct RowKernel<'a> {
    how: RowReduce,
    shapes: &'a Shapes<'a>,
    params: KernelParams,
    body: Vec<Stmt>,
}

impl<'a> RowKernel<'a> {
    /// The kernel's parameters if it reads the first `images` inputs, and its variables: the thread's `lane`, its
    /// `plane` and row `y`, the `count` of its pixels, and the `mean` (or the value searched for).
    fn new(how: RowReduce, images: usize, shapes: &'a Shapes<'a>) -> RowKernel<'a> {
        let out = shapes.output;
        let mut p = KernelParams::default();
        p.pointer(out.dtype.name(), "out", Pointer::Output { offset: 0 });
        for (i, g) in shapes.inputs.iter().enumerate().take(images) {
            p.pointer(&format!("const {}", g.dtype.name()), &format!("in{i}"), Pointer::Input { index: i, offset: 0 });
            p.long(&format!("plane{i}"), g.plane() as i64);
            p.int(&format!("start{i}"), g.window.start);
        }
        let mean = if how.has_operand() {
            let g = shapes.inputs[images];
            p.pointer("const f64", "mean", Pointer::Input { index: images, offset: g.row(0, 0) * g.dtype.size() });
            name("p.mean").element(0)
        } else {
            0.into()
        };
        p.long("out_plane", out.plane() as i64);
        p.int("width", shapes.inputs[0].shape.width.cast_signed());
        p.int("out_start", out.window.start);
        p.int("row0", shapes.rows.start);
        p.int("row1", shapes.rows.end);
        let here = || name("threadIdx.x");
        let body = vec![
            Stmt::constant("int", "lane", here().with(Operator::Remainder, WARP)),
            Stmt::constant("int", "line", here().with(Operator::Divide, WARP)),
            Stmt::constant("int", "block", "blockIdx.x"),
            Stmt::constant("int", "plane", "blockIdx.y"),
            Stmt::constant("int", "y", name("p.row0") + name("block") * LINES + "line"),
            // A warp without a row takes part, with no pixels.
            Stmt::constant("int", "count", name("y").with(Operator::Less, "p.row1").choose("p.width", 0)),
            CppCall::new("hs_let_next_begin", template![], args![]).into(),
            Stmt::constant(out.dtype.name(), "mean", mean),
        ];
        RowKernel { how, shapes, params: p, body }
    }

    /// Declares a variable: the start of the thread's row in a plane of an input.
    fn row(&mut self, variable: &str, input: usize, plane: Expr) {
        let t = self.shapes.inputs[input].dtype.name();
        let down = CppCall::new("i64", template![], args![name("y") - format!("p.start{input}")]);
        let samples = self.shapes.inputs[input].shape.samples;
        let (first, row) = (name(format_args!("p.in{input}")), Expr::from(down) * "p.width");
        let (plane, row) = match samples {
            1 => (plane * format!("p.plane{input}"), row),
            _ => (
                CppCall::new("hs_plane_at", template![], args![plane, format!("p.plane{input}")]).into(),
                row * samples,
            ),
        };
        self.body.push(Stmt::constant(&format!("{t}*"), variable, first + plane + row));
    }

    /// A call of a function of `reduce.cuh`, a template over the reduction and its result type.
    fn call(&self, code: &str, function: &str, args: Vec<Expr>) -> CppCall {
        CppCall::new(function, template![code, self.shapes.output.dtype.name()], args)
    }

    /// The combination of a segment's lanes, for rows with one result.
    fn code(&self) -> &'static str {
        match self.how {
            RowReduce::Sum | RowReduce::Moments => "HS_SUM",
            RowReduce::SquaredDeviation => "HS_SQUARED",
            RowReduce::Min | RowReduce::Extremes | RowReduce::First => "HS_MIN",
            RowReduce::Max => "HS_MAX",
        }
    }

    /// The array of a row's results, if there are several.
    fn found(&self) -> Stmt {
        Stmt::Array { dtype: self.shapes.output.dtype, name: "found".into(), extents: vec![self.how.columns()] }
    }

    /// The kernel that stores `results` of the first thread of a warp.
    fn finish(mut self, results: Vec<Expr>) -> Result<Generated, DeviceError> {
        let out = self.shapes.output;
        let columns = results.len();
        let mut then = Vec::new();
        for (k, result) in results.into_iter().enumerate() {
            // All threads of the warp compute the result together.
            let variable = format!("result{k}");
            self.body.push(Stmt::constant(out.dtype.name(), &variable, result));
            let row = name("plane") * "p.out_plane";
            let at = match columns {
                1 => row + "y" - "p.out_start",
                _ => row + (name("y") - "p.out_start") * columns + k,
            };
            then.push(Stmt::Assign { to: name("p.out").element(at), value: name(variable) });
        }
        self.body.push(Stmt::If {
            condition: name("lane")
                .with(Operator::Equal, 0)
                .with(Operator::And, name("y").with(Operator::Less, "p.row1")),
            then,
            otherwise: Vec::new(),
        });
        let rows = self.shapes.rows.len().div_ceil(LINES);
        let grid = [blocks(rows, "a reduction")?, blocks(out.shape.planes(), "planes")?];
        self.params.pointer(out.dtype.name(), "total", Pointer::Total);
        self.params.pointer("u32", "done", Pointer::Done);
        self.params.int("blocks", grid[0] as isize * grid[1] as isize);
        let last = CppCall::new("hs_is_last", template![], args!["p.done", "p.blocks"]);
        let how = self.how.fold();
        self.body.push(Stmt::If {
            condition: name("p.total").with(Operator::And, last),
            then: all_rows(how, out, LINES, &mut self.params, ["p.out", "p.total"]),
            otherwise: Vec::new(),
        });
        Ok(program(&[PRELUDE, REDUCE], &self.body, self.params, grid, WARP * LINES, LINES * out.dtype.size()))
    }
}

/// Statements of a block of so many warps that fold the results of rows.
fn all_rows(how: Fold, rows: Geometry, warps: usize, p: &mut KernelParams, [from, to]: [&'static str; 2]) -> Vec<Stmt> {
    let (a, several) = (rows.dtype.name(), how.columns() > 1);
    let code = match how {
        Fold::Sum => "HS_SUM",
        Fold::Min => "HS_MIN",
        Fold::Max => "HS_MAX",
        Fold::Extremes => "hs_fold_extremes",
        Fold::Moments => "hs_fold_moments",
    };
    p.long("count", if several { rows.shape.height } else { rows.shape.area() } as i64);
    p.int("planes", rows.shape.planes().cast_signed());
    let mut args = args![from, "p.count", "p.planes", Expr::Shared(rows.dtype, 0)];
    if several {
        args.push(to.into());
        return vec![CppCall::new(code, template![a, warps], args).into()];
    }
    let total = Stmt::constant(a, "all", CppCall::new("hs_columns", template![code, a, warps], args));
    let store = Stmt::If {
        condition: name("threadIdx.x").with(Operator::Equal, 0),
        then: vec![Stmt::Assign { to: name(to).element(0), value: name("all") }],
        otherwise: Vec::new(),
    };
    vec![total, store]
}

/// The results of a row of `columns` columns, in an array.
fn columns(columns: usize) -> Vec<Expr> {
    (0..columns).map(|k| name("found").element(k)).collect()
}

impl CudaOperation for RowReduce {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let how = *self;
        let mut k = RowKernel::new(how, 1, shapes);
        k.row("row", 0, name("plane"));
        let several = match how {
            RowReduce::Extremes => "hs_row_extremes",
            RowReduce::Moments => "hs_row_moments",
            RowReduce::First => {
                let first = CppCall::new("hs_row_first", template![], args!["row", "count", "lane", "mean"]);
                return k.finish(vec![first.into()]);
            }
            RowReduce::Sum | RowReduce::SquaredDeviation | RowReduce::Min | RowReduce::Max => {
                let total = k.call(k.code(), "hs_row", args!["row", "count", "lane", "mean"]);
                return k.finish(vec![total.into()]);
            }
        };
        k.body.extend([k.found(), CppCall::new(several, template![], args!["row", "count", "lane", "found"]).into()]);
        k.finish(columns(how.columns()))
    }
}

impl CudaOperation for Fold {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let how = *self;
        let (input, out) = (shapes.inputs[0], shapes.output);
        let mut p = KernelParams::default();
        p.pointer(out.dtype.name(), "out", Pointer::Output { offset: 0 });
        p.pointer(&format!("const {}", input.dtype.name()), "in", Pointer::Input { index: 0, offset: 0 });
        let mut body: Vec<Stmt> = vec![CppCall::new("hs_wait_for_previous", template![], args![]).into()];
        body.extend(all_rows(how, input, COLUMN, &mut p, ["p.in", "p.out"]));
        // The fold reads the result of the preceding reduction along rows, and takes less time than a launch.
        let (threads, shared) = (WARP * COLUMN, COLUMN * out.dtype.size());
        Ok(Generated { early: true, ..program(&[PRELUDE, REDUCE], &body, p, [1, 1], threads, shared) })
    }
}

impl CudaOperation for Tiled {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        let Tiled { grid, reduce: how } = *self;
        let (input, out) = (shapes.inputs[0], shapes.output);
        let (t, a) = (input.dtype.name(), out.dtype.name());
        let code = match how {
            TileReduce::Sum => "HS_SUM",
            TileReduce::SquaredDeviation => "HS_SQUARED",
            TileReduce::Min => "HS_MIN",
            TileReduce::Max => "HS_MAX",
        };
        let mut p = KernelParams::default();
        p.pointer(a, "out", Pointer::Output { offset: 0 });
        p.pointer(&format!("const {t}"), "in", Pointer::Input { index: 0, offset: 0 });
        p.long("in_plane", input.plane() as i64);
        p.long("out_plane", out.plane() as i64);
        p.int("in_start", input.window.start);
        p.int("in_height", input.shape.height.cast_signed());
        p.int("in_width", input.shape.width.cast_signed());
        p.int("out_start", out.window.start);
        p.int("width", out.shape.width.cast_signed());
        p.int("row0", shapes.rows.start);
        p.int("row1", shapes.rows.end);
        // Rectangles larger than the image are clipped to it.
        let within = |n: usize, most: usize| n.min(most).cast_signed();
        p.int("tall", within(grid.height, input.shape.height));
        p.int("wide", within(grid.width, input.shape.width));
        p.int("down", within(grid.down, input.shape.height));
        p.int("across", within(grid.across, input.shape.width));
        let (from, to) = (plane("p.in", "p.in_plane"), plane("p.out", "p.out_plane"));
        let call = CppCall::new("hs_tiles", template![code, a, COLUMN], args!["p", from, to]);
        let count = shapes.rows.len() * out.shape.width;
        let blocks = [blocks(count.div_ceil(COLUMN), "rectangles")?, blocks(out.shape.planes(), "planes")?];
        Ok(program(&[PRELUDE, REDUCE], &[call.into()], p, blocks, WARP * COLUMN, 0))
    }
}

impl CudaOperation for Running {
    fn generate(&self, shapes: &Shapes<'_>, _limits: KernelLimits) -> Result<Generated, DeviceError> {
        /// Elements of a segment, plus one for each chunk.
        const ROOM: usize = SEGMENT + SEGMENT / CHUNK;
        let mut k = RowKernel::new(RowReduce::Sum, 1, shapes);
        k.row("row", 0, name("plane"));
        let down = CppCall::new("i64", template![], args![name("y") - "p.out_start"]);
        let to = name("p.out") + name("plane") * "p.out_plane" + Expr::from(down) * "p.width";
        let shared = Expr::Shared(DType::F64, 0) + name("line") * ROOM;
        let sums = CppCall::new("hs_running", template![], args!["row", "count", "lane", shared, to]);
        k.body.push(sums.into());
        let rows = shapes.rows.len().div_ceil(LINES);
        let grid = [blocks(rows, "running sums")?, blocks(shapes.output.shape.planes(), "planes")?];
        let shared = LINES * ROOM * DType::F64.size();
        Ok(program(&[PRELUDE, REDUCE], &k.body, k.params, grid, WARP * LINES, shared))
    }
}

/// Rows of an expression.
pub(super) fn expression(kernel: &MapKernel, how: RowReduce, shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
    let out = shapes.output;
    let mut k = RowKernel::new(how, kernel.inputs, shapes);
    // Pixels that a thread evaluates at once: equally many of both lanes, and whole iterations per segment.
    let ahead = 1 << (IN_FLIGHT / kernel.leaves.len().max(1)).clamp(2, IN_FLIGHT).ilog2();
    let here = || name("i") + name(WARP) * "c";
    let inside = || here().with(Operator::Less, "end");
    let mut step = Vec::new();
    declare_extent(kernel, &mut k.params, out.shape);
    let mut code = Instructions::new(kernel, 1, ahead).at(name("y"), here());
    for l in code.order() {
        let leaf = &kernel.leaves[l];
        let FilterSource::Input(i) = leaf.source() else {
            return Err(defect("a reduction reads pixels of no image"));
        };
        let read = match &leaf.op {
            LeafOp::LoadPlane(_, map) => PlaneRead::new(map, leaf.dtype, &l.to_string(), &mut k.params, &mut k.body),
            _ => PlaneRead { plane: name("plane"), outside: None },
        };
        let (row, array) = (format!("q{l}"), format!("l{l}"));
        k.row(&row, i, read.plane.clone());
        let zero = CppCall::new(leaf.dtype.name(), template![], args![0]);
        step.push(Stmt::Array { dtype: leaf.dtype, name: array.clone(), extents: vec![1, ahead] });
        let load = Stmt::fill((1, ahead), &array, inside().choose(name(row).element(here()), zero));
        step.push(read.guarded((1, ahead), &array, load));
        code.define(l, &array);
    }
    code.advance(&mut step, &mut k.params, &vec![false; kernel.leaves.len()])?;
    let value = pixel(code.result(&mut step, &mut k.params, kernel.result_type())?);
    let (mut before, mut segment) = (
        Vec::new(),
        vec![Stmt::constant("int", "end", CppCall::new("min", template![], args![name("at") + SEGMENT, "count"]))],
    );
    let results = match how {
        RowReduce::Extremes => {
            let both = [LaneAccumulation::of("HS_MIN", "low", &value), LaneAccumulation::of("HS_MAX", "high", &value)];
            before.push(k.found());
            for (at, part) in both.iter().enumerate() {
                let to = || name("found").element(at);
                before.push(Stmt::Assign { to: to(), value: k.call(part.code, "hs_identity", args![]).into() });
            }
            segment.extend(k.sweep(&both, &step, ahead, inside()));
            for (at, part) in both.iter().enumerate() {
                let to = || name("found").element(at);
                let value = k.call(part.code, "hs_combine", args![to(), part.halves(&k)]);
                segment.push(Stmt::Assign { to: to(), value: value.into() });
            }
            columns(2)
        }
        RowReduce::Moments => {
            // Goes over a segment twice; the second time it is cached. Its mean comes first.
            let sums = LaneAccumulation::of("HS_SUM", "lanes", &value);
            let squares = LaneAccumulation {
                mean: "own",
                value_code: "HS_SQUARED",
                ..LaneAccumulation::of("HS_SUM", "squares", &value)
            };
            before.extend([k.found(), CppCall::new("hs_no_moments", template![], args!["found"]).into()]);
            segment.extend(k.sweep(std::slice::from_ref(&sums), &step, ahead, inside()));
            let count = || name("end") - "at";
            let sum = CppCall::new("hs_from_first", template![], args![sums.halves(&k)]);
            segment.push(Stmt::constant("f64", "sum", sum));
            let own = name("sum").with(Operator::Divide, CppCall::new("f64", template![], args![count()]));
            segment.push(Stmt::constant("f64", "own", own));
            segment.extend(k.sweep(std::slice::from_ref(&squares), &step, ahead, inside()));
            let add = args!["found", count(), "sum", squares.halves(&k)];
            segment.push(CppCall::new("hs_add_moments", template![], add).into());
            columns(3)
        }
        RowReduce::Sum | RowReduce::SquaredDeviation | RowReduce::Min | RowReduce::Max | RowReduce::First => {
            let part =
                LaneAccumulation { first: how == RowReduce::First, ..LaneAccumulation::of(k.code(), "lanes", &value) };
            let identity = k.call(part.code, "hs_identity", args![]).into();
            before.push(Stmt::Let { ctype: out.dtype.name().into(), name: "total".into(), value: identity });
            segment.extend(k.sweep(std::slice::from_ref(&part), &step, ahead, inside()));
            let value = k.call(part.code, "hs_combine", args!["total", part.halves(&k)]);
            segment.push(Stmt::Assign { to: name("total"), value: value.into() });
            vec![name("total")]
        }
    };
    k.body.extend(before);
    k.body.push(Stmt::For { variable: "at", first: 0.into(), end: name("count"), step: SEGMENT, body: segment });
    k.finish(results)
}

/// An accumulation in the two lanes of a thread.
struct LaneAccumulation<'a> {
    /// The reduction.
    code: &'static str,
    /// The function of a pixel that is accumulated.
    value_code: &'static str,
    /// The array of the lanes.
    lanes: &'static str,
    /// The pixel.
    value: &'a Expr,
    /// The variable from which deviations are computed.
    mean: &'static str,
    /// `true` if the column of a pixel is accumulated.
    first: bool,
}

impl<'a> LaneAccumulation<'a> {
    fn of(code: &'static str, lanes: &'static str, value: &'a Expr) -> LaneAccumulation<'a> {
        LaneAccumulation { code, value_code: code, lanes, value, mean: "mean", first: false }
    }

    fn lane(&self, n: impl Into<Expr>) -> Expr {
        name(self.lanes).element(n)
    }

    /// The lanes of the warp, combined.
    fn halves(&self, k: &RowKernel<'_>) -> CppCall {
        k.call(self.code, "hs_halves", args![self.lane(0), self.lane(1)])
    }

    /// Accumulates pixel `c` of the pixels that a thread evaluates at once.
    fn accumulate(&self, k: &RowKernel<'_>) -> Stmt {
        let turn = || self.lane(name("c").with(Operator::Remainder, 2));
        let value = match self.first {
            true => {
                let column = name("i") + name(WARP) * "c";
                CppCall::new("hs_column_of", template![], args![self.value.clone(), self.mean, column])
            }
            false => k.call(self.value_code, "hs_value", args![self.value.clone(), self.mean]),
        };
        let added = k.call(self.code, "hs_combine", args![turn(), value]);
        Stmt::Assign { to: turn(), value: added.into() }
    }
}

impl RowKernel<'_> {
    /// Goes once over the pixels of a segment, in order; nothing beyond the segment is accumulated.
    fn sweep(&self, parts: &[LaneAccumulation<'_>], step: &[Stmt], ahead: usize, inside: Expr) -> Vec<Stmt> {
        let mut all = Vec::new();
        for part in parts {
            all.push(Stmt::Array { dtype: self.shapes.output.dtype, name: part.lanes.into(), extents: vec![2] });
            for lane in 0..2 {
                let identity = self.call(part.code, "hs_identity", args![]);
                all.push(Stmt::Assign { to: part.lane(lane), value: identity.into() });
            }
        }
        let accumulate = parts.iter().map(|part| part.accumulate(self)).collect();
        let accumulate = Stmt::If { condition: inside, then: accumulate, otherwise: Vec::new() };
        let mut body = step.to_vec();
        body.push(Stmt::each_pixel((1, ahead), accumulate));
        all.push(Stmt::For { variable: "i", first: name("at") + "lane", end: name("end"), step: WARP * ahead, body });
        all
    }
}
