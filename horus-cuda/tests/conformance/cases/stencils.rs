//! Filters and shifts of nested shifts in one kernel.

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::ir::kernel::{Access, FilterSource, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use horus_core::ops::geometric::{Affine, Interpolation};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::shape::{Axis, Border, Shape, Window};
use horus_cuda::workloads::{dense, instr, taps};

use super::{ConformanceLaunch, borders, case, whole};

/// Widths that are not and that are multiples of vectors; small, as the definitions evaluate each
/// filter for each tap of the next.
const ODD: Shape = Shape::new(19, 45, 2);
const EVEN: Shape = Shape::new(21, 144, 1);

/// The sum of all leaves and the pixel's position.
fn summed(mut m: MapKernel, dtype: DType) -> MapKernel {
    let mut last = Val::Index(Axis::Rows, dtype);
    for l in 0..m.leaves.len() {
        m.code.push(instr(PixelOp::Add, dtype, vec![Val::Leaf(l), last]));
        last = Val::Instr(m.code.len() - 1);
    }
    let scale = Val::Const(Scalar::from_f64(dtype, 0.375));
    m.code.push(instr(PixelOp::Mul, dtype, vec![last, scale]));
    MapKernel { inputs: 3, result: Some(Val::Instr(m.code.len() - 1)), ..m }
}

fn cross() -> Filter {
    Filter::sparse([(-1, 0), (0, -1), (0, 0), (0, 2), (1, 0)], taps(5))
}

/// The product of both inputs.
fn product(dtype: DType) -> MapKernel {
    let leaves = (0..2).map(|i| Leaf { op: LeafOp::Load(i), dtype }).collect();
    let code = vec![instr(PixelOp::Mul, dtype, vec![Val::Leaf(0), Val::Leaf(1)])];
    MapKernel { inputs: 3, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() }
}

/// A chain of its own over the first input and over a chain: shifts, each with one of two borders; the second input
/// itself; and the third, a repeated row.
fn shifted(chain: MapKernel, dtype: DType, one: Border, other: Border) -> MapKernel {
    let (input, within) = (FilterSource::Input(0), FilterSource::Chain(0));
    let ops = [
        LeafOp::Shift(input, [-1, 2], other),
        LeafOp::Shift(input, [0, -1], one),
        LeafOp::Load(1),
        repeated_row(),
        LeafOp::Shift(within, [1, 0], other),
        LeafOp::Shift(within, [2, -1], one),
    ];
    let leaves = ops.map(|op| Leaf { op, dtype }).to_vec();
    summed(MapKernel { chains: vec![chain], leaves, ..MapKernel::default() }, dtype)
}

fn repeated_row() -> LeafOp {
    LeafOp::Warp(2, Affine { yy: 0, ..Affine::IDENTITY }, Interpolation::Nearest, Border::Replicate.into())
}

/// Filters, a shift and a row pass over the first input and over a chain, each with one of two
/// borders; the second input itself; and the third, a repeated row.
fn of(chain: MapKernel, dtype: DType, one: Border, other: Border) -> MapKernel {
    let (input, within) = (FilterSource::Input(0), FilterSource::Chain(0));
    let ops = [
        LeafOp::Correlate(input, cross(), one),
        LeafOp::Shift(input, [-1, 2], other),
        LeafOp::Correlate(FilterSource::Stage(0), Filter::column(taps(2)), other),
        LeafOp::Load(1),
        repeated_row(),
        LeafOp::Correlate(within, dense(1, 3), other),
        LeafOp::Shift(within, [2, -1], one),
    ];
    let stages = vec![RowFilterStage { source: within, filter: Filter::row(taps(3)), border: one }];
    let leaves = ops.map(|op| Leaf { op, dtype }).to_vec();
    summed(MapKernel { chains: vec![chain], stages, leaves, ..MapKernel::default() }, dtype)
}

/// The kernel on inputs that hold only the rows it reads for rows `rows`.
fn strip(name: String, m: MapKernel, shape: Shape, rows: Window, dtype: DType) -> ConformanceLaunch {
    let kernel = Kernel::Map(m);
    let held = |i: usize| {
        let Access::Rows { reach, wrap } = kernel.access(i) else { panic!("rows around") };
        let around = rows.grown(reach.up, reach.down);
        let window = if wrap { around } else { around.clipped(shape.height) };
        Geometry { shape, dtype, window }
    };
    let inputs = vec![held(0), held(1), row(shape, dtype)];
    let output = Geometry { window: rows, ..whole(shape, dtype) };
    ConformanceLaunch { rows, ..case(name, kernel, inputs, output) }
}

/// A row as wide as an image.
fn row(shape: Shape, dtype: DType) -> Geometry {
    whole(Shape { height: 1, ..shape }, dtype)
}

/// All cases.
pub(super) fn stencils() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        for (b, one) in borders().into_iter().enumerate() {
            let other = borders()[(b + 2) % 5];
            let inner = shifted(product(dtype), dtype, one, other);
            let outer = of(inner.clone(), dtype, other, one);
            let sizes = [ODD, EVEN, Shape::new(1, 1, 1), Shape::new(2, 3, 1), Shape::volume(2, 5, 37, 1)];
            let sizes = &sizes[..if dtype == DType::F64 && b > 1 { 1 } else { 5 }];
            for &shape in sizes {
                let name = format!("stencil of shifts {one} {other} {dtype} {shape}");
                let inputs = vec![whole(shape, dtype), whole(shape, dtype), row(shape, dtype)];
                all.push(case(name, Kernel::Map(outer.clone()), inputs, whole(shape, dtype)));
            }
            for (start, end) in [(0, 5), (5, 9), (15, 19)] {
                let name = format!("stencil of shifts {one} {other} {dtype}, rows from {start}");
                all.push(strip(name, outer.clone(), Shape { channels: 1, ..ODD }, Window::new(start, end), dtype));
            }
            // One filter over shifts: tiles only.
            let lone = MapKernel {
                chains: vec![inner],
                leaves: vec![Leaf { op: LeafOp::Correlate(FilterSource::Chain(0), cross(), one), dtype }],
                inputs: 3,
                result: Some(Val::Leaf(0)),
                ..MapKernel::default()
            };
            let inputs = vec![whole(EVEN, dtype), whole(EVEN, dtype), row(EVEN, dtype)];
            all.push(case(format!("filter of shifts {one} {dtype}"), Kernel::Map(lone), inputs, whole(EVEN, dtype)));
        }
    }
    all
}
