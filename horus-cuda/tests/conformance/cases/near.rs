//! Filters of few taps, which a thread computes from registers.

use horus_core::dtype::{Conversion, DType};
use horus_core::ir::kernel::{FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, Reduce};
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::planes::PlaneMap;
use horus_core::shape::{Border, Shape, Window};
use horus_cuda::workloads::{dense, instr, taps};

use super::{ConformanceLaunch, borders, case, whole};

/// Blocks over levels, inside the image and at its edges, rows that are and that are not whole vectors; strips
/// thinner than the reach, and a pixel.
const SHAPES: [Shape; 4] =
    [Shape::volume(10, 45, 288, 1), Shape::volume(2, 37, 275, 2), Shape::volume(2, 1, 9, 1), Shape::new(1, 1, 1)];

/// The sum of filters of unequal reach over an image, over its next level, and over bytes, some of
/// them through row passes.
fn linear(shape: Shape, dtype: DType, border: Border, along: Border) -> MapKernel {
    let level = LeafOp::LoadPlane(0, PlaneMap::levels(shape, shape.channels, 1, 1, along));
    let next = MapKernel {
        inputs: 2,
        leaves: vec![Leaf { op: level, dtype }],
        result: Some(Val::Leaf(0)),
        ..MapKernel::default()
    };
    let convert = Instr {
        op: InstrOp::Convert(Conversion::Nearest),
        operand: DType::U8,
        result: dtype,
        args: vec![Val::Leaf(0)],
    };
    let bytes = MapKernel {
        inputs: 2,
        leaves: vec![Leaf { op: LeafOp::Load(1), dtype: DType::U8 }],
        code: vec![convert],
        result: Some(Val::Instr(0)),
        ..MapKernel::default()
    };
    let sources = [FilterSource::Input(0), FilterSource::Chain(0), FilterSource::Chain(1)];
    let stages = sources.map(|source| RowFilterStage { source, filter: Filter::row(taps(3)), border }).to_vec();
    let cross = Filter::sparse([(-2, 0), (0, -1), (0, 0), (0, 2), (1, 0)], taps(5));
    let ops = [
        LeafOp::Correlate(sources[0], cross.clone(), border),
        LeafOp::Correlate(FilterSource::Stage(0), Filter::column(taps(5)), border),
        LeafOp::Correlate(sources[1], dense(3, 3), border),
        LeafOp::Correlate(sources[1], dense(1, 2), border),
        LeafOp::Correlate(FilterSource::Stage(1), Filter::column(taps(2)), border),
        LeafOp::Correlate(sources[2], cross, border),
        LeafOp::Correlate(FilterSource::Stage(2), Filter::column(taps(3)), border),
        LeafOp::Load(0),
    ];
    let mut m = MapKernel {
        inputs: 2,
        chains: vec![next, bytes],
        stages,
        leaves: ops.map(|op| Leaf { op, dtype }).to_vec(),
        ..MapKernel::default()
    };
    let mut last = Val::Leaf(0);
    for l in 1..m.leaves.len() {
        m.code.push(instr(PixelOp::Add, dtype, vec![last, Val::Leaf(l)]));
        last = Val::Instr(m.code.len() - 1);
    }
    MapKernel { result: Some(last), ..m }
}

/// The smallest of 3x3 pixels.
fn smallest(dtype: DType, border: Border) -> MapKernel {
    let window = Filter::dense(3, 3, vec![0.0; 9]);
    let fold = Generalized { window, combine: Combine::Pixel, reduce: Reduce::Min };
    let op = LeafOp::OrderFilter(0, fold.into(), border);
    MapKernel { inputs: 1, leaves: vec![Leaf { op, dtype }], result: Some(Val::Leaf(0)), ..MapKernel::default() }
}

pub(super) fn cases() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for border in borders() {
        for shape in SHAPES {
            for dtype in [DType::F32, DType::F64] {
                for along in [Border::Reflect, Border::Constant(0.5)] {
                    let name = format!("near filters {border} {along} {dtype} {shape}");
                    let inputs = vec![whole(shape, dtype), whole(shape, DType::U8)];
                    let kernel = Kernel::Map(linear(shape, dtype, border, along));
                    all.push(case(name, kernel, inputs, whole(shape, dtype)));
                }
            }
            for dtype in [DType::U8, DType::I16, DType::F32] {
                let name = format!("near smallest {border} {dtype} {shape}");
                let image = whole(shape, dtype);
                all.push(case(name, Kernel::Map(smallest(dtype, border)), vec![image], image));
            }
        }
        // A strip whose inputs hold only the rows that it reads.
        let (shape, dtype) = (SHAPES[0], DType::F32);
        let name = format!("near filters of a strip {border}");
        let inputs = vec![whole(shape, dtype), whole(shape, DType::U8)];
        let kernel = Kernel::Map(linear(shape, dtype, border, Border::Replicate));
        let mut strip = case(name, kernel, inputs, whole(shape, dtype));
        strip.inputs.iter_mut().for_each(|g| g.window = Window::new(7, 40));
        strip.output.window = Window::new(9, 38);
        strip.rows = Window::new(10, 37);
        all.push(strip);
    }
    all
}
