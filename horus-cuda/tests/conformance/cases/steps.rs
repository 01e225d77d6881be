//! Several steps of a loop in one launch.

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::ir::kernel::{FilterSource, Kernel, Leaf, LeafOp, MapKernel, Repeat, Val};
use horus_core::ops::geometric::{Affine, Interpolation};
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, Reduce};
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::planes::PlaneMap;
use horus_core::shape::{Axis, Border, Shape, Window};
use horus_cuda::workloads::{instr, taps};

use super::{ConformanceLaunch, Fill};

const BORDERS: [Border; 4] = [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Constant(0.5)];

/// The minimum of a constant image and filters of the state, plus a column times a row.
fn kernel(dtype: DType, readings: &[LeafOp], steps: usize) -> Kernel {
    let leaf = |op| Leaf { op, dtype };
    let repeated = |i, map| leaf(LeafOp::Warp(i, map, Interpolation::Nearest, Border::Replicate.into()));
    let mut leaves = vec![
        leaf(LeafOp::Load(0)),
        leaf(LeafOp::Load(1)),
        leaf(LeafOp::LoadPlane(1, PlaneMap::one(0))),
        repeated(2, Affine { yy: 0, ..Affine::IDENTITY }),
        repeated(3, Affine { xx: 0, ..Affine::IDENTITY }),
    ];
    let mut code = vec![
        instr(PixelOp::Mul, dtype, vec![Val::Leaf(3), Val::Leaf(4)]),
        instr(PixelOp::Mul, dtype, vec![Val::Instr(0), Val::Const(Scalar::from_f64(dtype, 0.125))]),
        instr(PixelOp::Add, dtype, vec![Val::Leaf(0), Val::Instr(1)]),
    ];
    for reading in readings {
        leaves.push(leaf(reading.clone()));
        let last = Val::Instr(code.len() - 1);
        code.push(instr(PixelOp::Sub, dtype, vec![Val::Leaf(leaves.len() - 1), last]));
        code.push(instr(PixelOp::Max, dtype, vec![last, Val::Instr(code.len() - 1)]));
    }
    for axis in [Axis::Rows, Axis::Columns] {
        let place = Val::Index(axis, dtype);
        code.push(instr(PixelOp::Max, dtype, vec![Val::Instr(code.len() - 1), place]));
    }
    let last = Val::Instr(code.len() - 1);
    code.push(instr(PixelOp::AbsDiff, dtype, vec![last, Val::Leaf(1)]));
    code.push(instr(PixelOp::Min, dtype, vec![Val::Instr(code.len() - 1), Val::Leaf(2)]));
    let result = Some(Val::Instr(code.len() - 1));
    Kernel::Repeat(Repeat {
        body: MapKernel { inputs: 4, leaves, code, result, ..MapKernel::default() },
        state: 0,
        iterations: steps,
    })
}

/// A launch whose images hold only the rows that it reads.
fn case(name: String, kernel: Kernel, shape: Shape, rows: Window, dtype: DType) -> ConformanceLaunch {
    let shapes = [shape, shape, Shape { height: 1, ..shape }, Shape { width: 1, ..shape }];
    let held = |(i, of): (usize, Shape)| {
        let window = kernel.footprint(i, rows, shape, of);
        Geometry { shape: of, dtype, window }
    };
    let inputs = shapes.into_iter().enumerate().map(held).collect();
    let output = Geometry { shape, dtype, window: rows };
    ConformanceLaunch { name: format!("{name} {dtype}"), kernel, inputs, output, rows, fill: Fill::Random }
}

pub(super) fn steps() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    let cross = || Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], taps(4));
    let correlate = |filter: Filter, border| LeafOp::Correlate(FilterSource::Input(0), filter, border);
    for dtype in [DType::F32, DType::F64] {
        for border in BORDERS {
            let shape = Shape::new(150, 290, 1);
            let step = [correlate(cross(), border)];
            let name = |n: usize| format!("{n} steps {border}");
            all.push(case(name(4), kernel(dtype, &step, 4), shape, Window::whole(150), dtype));
            all.push(case(name(16), kernel(dtype, &step, 16), Shape::new(70, 45, 1), Window::whole(70), dtype));
            let far = [correlate(Filter::sparse([(2, 0), (0, -3)], taps(2)), border)];
            all.push(case(name(5), kernel(dtype, &far, 5), Shape::new(101, 99, 2), Window::new(30, 71), dtype));
            let two = [correlate(Filter::dense(3, 3, taps(9)), border), correlate(cross(), border)];
            all.push(case(name(2), kernel(dtype, &two, 2), Shape::new(2, 130, 1), Window::whole(2), dtype));
            all.push(case(name(3), kernel(dtype, &two, 3), Shape::new(80, 1, 3), Window::new(79, 80), dtype));
            all.push(case(name(7), kernel(dtype, &step, 7), Shape::new(1, 1, 1), Window::whole(1), dtype));
        }
        let name = "steps without neighbours".into();
        all.push(case(name, kernel(dtype, &[], 6), Shape::new(70, 140, 2), Window::new(3, 69), dtype));
    }
    let types = [DType::U8, DType::U16, DType::I32].map(|dtype| (dtype, 4)).into_iter();
    for (dtype, most) in types.chain([DType::U32, DType::I8, DType::I16].map(|dtype| (dtype, 1))) {
        for (border, reduce) in BORDERS.into_iter().zip([Reduce::Max, Reduce::Min, Reduce::Sum, Reduce::Max]).take(most)
        {
            let g = Generalized { window: cross(), combine: Combine::Pixel, reduce };
            let steps = kernel(dtype, &[LeafOp::OrderFilter(0, g.into(), border)], 5);
            // Coordinates must fit the type.
            let width = if dtype == DType::I8 { 128 } else { 150 };
            all.push(case(format!("5 steps {border}"), steps, Shape::new(90, width, 1), Window::new(20, 90), dtype));
        }
    }
    all
}
