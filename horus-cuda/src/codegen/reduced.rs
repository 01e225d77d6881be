//! Reductions along rows: of an image, and of an expression that is never stored, of which each thread evaluates the pixels
//! of its two lanes.

use horus_core::error::DeviceError;
use horus_core::ir::kernel::{LeafOp, MapKernel, Source};
use horus_core::ops::reduce::{LANES, RowReduce, SEGMENT};

use super::cpp::{Call, Expr, Operator, Stmt, args, name, pixel, template};
use super::fixed::program;
use super::instructions::Instructions;
use super::params::KernelParams;
use super::{Generated, PRELUDE, Pointer, REDUCE, Shapes, blocks, defect};

/// Rows that one block reduces: one for each warp.
const LINES: usize = 4;
/// Threads that reduce a segment, of two lanes each.
pub(super) const WARP: usize = LANES / 2;
// `reduce.cuh` counts on them.
const _: () = assert!(WARP == 32 && SEGMENT == 1024);
/// Reads of all leaves together that a thread has in flight.
const IN_FLIGHT: usize = 16;

/// A kernel that reduces rows: what is the same whatever these are rows of.
struct RowKernel<'a> {
    how: RowReduce,
    shapes: &'a Shapes<'a>,
    params: KernelParams,
    body: Vec<Stmt>,
}

impl<'a> RowKernel<'a> {
    /// The parameters of a kernel that reads the first `images` inputs, and its variables: the thread's `lane`, its `plane`
    /// and row `y`, the `count` of pixels of it, and the `mean`.
    fn new(how: RowReduce, images: usize, shapes: &'a Shapes<'a>) -> RowKernel<'a> {
        let out = shapes.output;
        let mut p = KernelParams::default();
        p.pointer(out.dtype.name(), "out", Pointer::Output { offset: 0 });
        for (i, g) in shapes.inputs.iter().enumerate().take(images) {
            p.pointer(&format!("const {}", g.dtype.name()), &format!("in{i}"), Pointer::Input { index: i, offset: 0 });
            p.long(&format!("plane{i}"), g.plane() as i64);
            p.int(&format!("start{i}"), g.window.start);
        }
        let mean = if how == RowReduce::SquaredDeviation {
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
            // A warp without a row goes along: it has no pixels.
            Stmt::constant("int", "count", name("y").with(Operator::Less, "p.row1").choose("p.width", 0)),
            Call::new("hs_let_next_begin", template![], args![]).into(),
            Stmt::constant(out.dtype.name(), "mean", mean),
        ];
        RowKernel { how, shapes, params: p, body }
    }

    /// A variable: where the thread's row of a plane of an input begins.
    fn row(&mut self, variable: &str, input: usize, plane: Expr) {
        let t = self.shapes.inputs[input].dtype.name();
        let down = Call::new("i64", template![], args![name("y") - format!("p.start{input}")]);
        let first = name(format_args!("p.in{input}")) + plane * format!("p.plane{input}");
        self.body.push(Stmt::constant(&format!("{t}*"), variable, first + Expr::from(down) * "p.width"));
    }

    /// A call of a function of `reduce.cuh`: they are templates over what is reduced, and to which type.
    fn call(&self, function: &str, args: Vec<Expr>) -> Call {
        let code = match self.how {
            RowReduce::Sum => "HS_SUM",
            RowReduce::SquaredDeviation => "HS_SQUARED",
            RowReduce::Min => "HS_MIN",
            RowReduce::Max => "HS_MAX",
        };
        Call::new(function, template![code, self.shapes.output.dtype.name()], args)
    }

    /// The kernel that stores `total`, which the first thread of a warp has.
    fn finish(mut self, total: impl Into<Expr>) -> Result<Generated, DeviceError> {
        let out = self.shapes.output;
        // All threads of the warp compute it together.
        self.body.push(Stmt::constant(out.dtype.name(), "result", total));
        let at = name("plane") * "p.out_plane" + "y" - "p.out_start";
        self.body.push(Stmt::If {
            condition: name("lane")
                .with(Operator::Equal, 0)
                .with(Operator::And, name("y").with(Operator::Less, "p.row1")),
            then: vec![Stmt::Assign { to: name("p.out").element(at), value: name("result") }],
            otherwise: Vec::new(),
        });
        let rows = self.shapes.rows.len().div_ceil(LINES);
        let grid = [blocks(rows, "a reduction")?, blocks(out.shape.channels, "planes")?];
        Ok(program(&[PRELUDE, REDUCE], &self.body, self.params, grid, WARP * LINES, 0))
    }
}

/// Rows of an image.
pub(super) fn image(how: RowReduce, shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
    let mut k = RowKernel::new(how, 1, shapes);
    k.row("row", 0, name("plane"));
    let total = k.call("hs_row", args!["row", "count", "lane", "mean"]);
    k.finish(total)
}

/// Rows of an expression.
pub(super) fn expression(kernel: &MapKernel, how: RowReduce, shapes: &Shapes<'_>) -> Result<Generated, DeviceError> {
    let out = shapes.output;
    let mut k = RowKernel::new(how, kernel.inputs, shapes);
    // Pixels that a thread evaluates at once: as many of its one lane as of the other, and a segment in whole steps.
    let ahead = 1 << (IN_FLIGHT / kernel.leaves.len().max(1)).clamp(2, IN_FLIGHT).ilog2();
    let here = || name("i") + name(WARP) * "c";
    let inside = || here().with(Operator::Less, "end");
    let mut step = Vec::new();
    let mut code = Instructions::new(kernel, 1, ahead);
    for l in code.order() {
        let leaf = &kernel.leaves[l];
        let Source::Input(i) = leaf.source() else {
            return Err(defect("a reduction reads pixels of no image"));
        };
        let plane = match leaf.op {
            LeafOp::LoadChannel(_, c) => {
                k.params.int(&format!("channel{l}"), c.cast_signed());
                name(format_args!("p.channel{l}"))
            }
            _ => name("plane"),
        };
        let (row, array) = (format!("q{l}"), format!("l{l}"));
        k.row(&row, i, plane);
        let zero = Call::new(leaf.dtype.name(), template![], args![0]);
        step.push(Stmt::Array { dtype: leaf.dtype, name: array.clone(), extents: vec![1, ahead] });
        step.push(Stmt::fill((1, ahead), &array, inside().choose(name(row).element(here()), zero)));
        code.define(l, &array);
    }
    code.advance(&mut step, &mut k.params, &vec![false; kernel.leaves.len()])?;
    let value = pixel(code.result(&mut step, &mut k.params, kernel.result_type())?);
    // Beyond the segment nothing is accumulated; within it, in order.
    let lane = |n: Expr| name("lanes").element(n);
    let turn = || lane(name("c").with(Operator::Remainder, 2));
    let added = k.call("hs_combine", args![turn(), k.call("hs_value", args![value, "mean"])]);
    let accumulate = Stmt::If {
        condition: inside(),
        then: vec![Stmt::Assign { to: turn(), value: added.into() }],
        otherwise: Vec::new(),
    };
    step.push(Stmt::each_pixel((1, ahead), accumulate));

    let identity = || Expr::from(k.call("hs_identity", args![]));
    let both = k.call("hs_halves", args![lane(0.into()), lane(1.into())]);
    let segment = vec![
        Stmt::constant("int", "end", Call::new("min", template![], args![name("at") + SEGMENT, "count"])),
        Stmt::Array { dtype: out.dtype, name: "lanes".into(), extents: vec![2] },
        Stmt::Assign { to: lane(0.into()), value: identity() },
        Stmt::Assign { to: lane(1.into()), value: identity() },
        Stmt::For { variable: "i", first: name("at") + "lane", end: name("end"), step: WARP * ahead, body: step },
        Stmt::Assign { to: name("total"), value: k.call("hs_combine", args!["total", both]).into() },
    ];
    let total = Stmt::Let { ctype: out.dtype.name().into(), name: "total".into(), value: identity() };
    let segments = Stmt::For { variable: "at", first: 0.into(), end: name("count"), step: SEGMENT, body: segment };
    k.body.extend([total, segments]);
    k.finish("total")
}
