//! Reads of other planes, in every kind of program.

use horus_core::dtype::{DType, Scalar};
use horus_core::ir::kernel::{FilterSource, Kernel, Leaf, LeafOp, MapKernel, Val};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::planes::PlaneMap;
use horus_core::ops::reduce::RowReduce;
use horus_core::ops::{Histogram, RunningDepth};
use horus_core::shape::{Border, Shape, Window};

use horus_cuda::workloads::{instr, taps};

use super::cases::{ConformanceLaunch, borders, case, whole};

/// Widths that are and that are not multiples of vectors; one channel and several.
const VOLUMES: [Shape; 2] = [Shape::volume(5, 9, 64, 1), Shape::volume(3, 11, 37, 2)];

/// The sum of the pixel, levels around it with a border, and one fixed level.
fn around(shape: Shape, dtype: DType, border: Border) -> MapKernel {
    let level = |step, offset| PlaneMap::levels(shape, shape.channels, step, offset, border);
    let maps = [level(1, 1), level(1, -2), level(-1, 4), level(0, 2), PlaneMap::one(1)];
    let mut leaves = vec![Leaf { op: LeafOp::Load(0), dtype }];
    leaves.extend(maps.map(|map| Leaf { op: LeafOp::LoadPlane(0, map), dtype }));
    let mut code = vec![instr(PixelOp::Sub, dtype, vec![Val::Leaf(0), Val::Leaf(1)])];
    for l in 2..leaves.len() {
        code.push(instr(PixelOp::Add, dtype, vec![Val::Instr(code.len() - 1), Val::Leaf(l)]));
    }
    let result = Some(Val::Instr(code.len() - 1));
    MapKernel { inputs: 1, leaves, code, result, ..MapKernel::default() }
}

/// All cases.
pub(crate) fn cases() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for shape in VOLUMES {
        for border in borders() {
            let name = |what: &str, dtype: DType| format!("{what} of levels {border} {dtype} {shape}");
            for dtype in [DType::U8, DType::F32, DType::F64] {
                let kernel = Kernel::Map(around(shape, dtype, border));
                all.push(case(name("pixels", dtype), kernel, vec![whole(shape, dtype)], whole(shape, dtype)));
            }
            let f = DType::F32;
            let (sum, input, output) = (around(shape, f, border), vec![whole(shape, f)], whole(shape, f));
            // Beside a filter, and as its input.
            let filter = Filter::dense(3, 5, taps(15));
            let mut beside = sum.clone();
            let last = Val::Instr(beside.code.len() - 1);
            beside
                .leaves
                .push(Leaf { op: LeafOp::Correlate(FilterSource::Input(0), filter.clone(), border), dtype: f });
            beside.code.push(instr(PixelOp::Add, f, vec![last, Val::Leaf(beside.leaves.len() - 1)]));
            beside.result = Some(Val::Instr(beside.code.len() - 1));
            all.push(case(name("filter beside", f), Kernel::Map(beside), input.clone(), output));
            let leaf = Leaf { op: LeafOp::Correlate(FilterSource::Chain(0), filter, border), dtype: f };
            let over = MapKernel {
                inputs: 1,
                chains: vec![sum.clone()],
                leaves: vec![leaf],
                result: Some(Val::Leaf(0)),
                ..MapKernel::default()
            };
            all.push(case(name("filter", f), Kernel::Map(over), input.clone(), output));
            let column = whole(Shape { width: 1, ..shape }, DType::F64);
            all.push(case(name("sum", f), Kernel::MapReduce(sum, RowReduce::Sum), input, column));
        }
    }
    for dtype in DType::ALL {
        for shape in VOLUMES {
            let mut c = case(
                format!("running sums of levels {dtype} {shape}"),
                Kernel::from(RunningDepth),
                vec![whole(shape, dtype)],
                whole(shape, DType::F64),
            );
            c.output.window = Window::new(1, 8);
            c.rows = Window::new(2, 8);
            all.push(c);
        }
    }
    let (shape, f) = (VOLUMES[1], DType::F32);
    let mut strip = case(
        "strip of levels",
        Kernel::Map(around(shape, f, Border::Constant(2.0))),
        vec![whole(shape, f)],
        whole(shape, f),
    );
    strip.inputs[0].window = Window::new(2, 10);
    strip.output.window = Window::new(3, 11);
    strip.rows = Window::new(4, 9);
    all.push(strip);
    all.extend(samples());
    // A channel of each level, and only a level beyond the input.
    for (name, map) in [
        ("channel of each level", PlaneMap::channel(shape, 1)),
        ("levels of one channel", PlaneMap { channel: Some(0), ..PlaneMap::levels(shape, 1, 2, -1, Border::Reflect) }),
        ("levels beyond", PlaneMap { channel: Some(0), ..PlaneMap::levels(shape, 1, 1, 9, Border::Constant(7.0)) }),
    ] {
        let leaf = Leaf { op: LeafOp::LoadPlane(0, map), dtype: f };
        let kernel = MapKernel { inputs: 1, leaves: vec![leaf], result: Some(Val::Leaf(0)), ..MapKernel::default() };
        all.push(case(name, Kernel::Map(kernel), vec![whole(shape, f)], whole(Shape { channels: 1, ..shape }, f)));
    }
    all
}

/// Single samples of interleaved pixels, as one image, as several, and as interleaved pixels again.
fn samples() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for plane in [Shape::new(41, 67, 1), Shape::new(64, 256, 1), Shape::volume(5, 9, 64, 1)] {
        for (samples, dtype) in [(3, DType::U8), (2, DType::U16), (3, DType::F32), (4, DType::F32), (3, DType::F64)] {
            let pixels = Shape { samples, ..plane };
            let sample = |c: usize| LeafOp::LoadPlane(0, PlaneMap::channel(pixels.deinterleaved(), c));
            let ops = [sample(0), sample(samples - 1), LeafOp::Load(1)];
            let code = vec![
                instr(PixelOp::AbsDiff, dtype, vec![Val::Leaf(0), Val::Leaf(1)]),
                instr(PixelOp::Max, dtype, vec![Val::Instr(0), Val::Leaf(2)]),
            ];
            let leaves = ops.map(|op| Leaf { op, dtype }).to_vec();
            let one = MapKernel { inputs: 2, leaves, code, result: Some(Val::Instr(1)), ..MapKernel::default() };
            let values = [Val::Instr(0), Val::Leaf(1), Val::Const(Scalar::from_f64(dtype, 7.0))];
            let several = MapKernel { additional_results: values.to_vec(), ..one.clone() };
            let more = values.into_iter().cycle().take(samples - 1).collect();
            let woven = MapKernel { additional_results: more, woven: true, ..one.clone() };
            let inputs = || vec![whole(pixels, dtype), whole(plane, dtype)];
            for (name, kernel, shape) in [("one", one, plane), ("several", several, plane), ("woven", woven, pixels)] {
                let name = format!("samples, {name} of {pixels} {dtype}");
                all.push(case(name, Kernel::Map(kernel), inputs(), whole(shape, dtype)));
            }
        }
    }
    for (samples, dtype) in [(3, DType::U8), (4, DType::F32), (2, DType::F64)] {
        let pixels = Shape { samples, ..Shape::volume(2, 9, 1100, 1) };
        let planes = pixels.deinterleaved();
        for how in RowReduce::ALL {
            let one = whole(Shape::new(1, 1, 1), DType::F64);
            let inputs = [whole(pixels, dtype), one][..1 + usize::from(how.has_operand())].to_vec();
            let output = whole(Shape { width: how.columns(), ..planes }, how.result(dtype));
            all.push(case(format!("samples, {} of {pixels} {dtype}", how.name()), Kernel::from(how), inputs, output));
        }
        let counts = Kernel::from(Histogram::new(17, -1.0, 200.0));
        let output = whole(Shape::new(1, 17, 1), DType::F64);
        let name = format!("samples, histogram of {pixels} {dtype}");
        all.push(ConformanceLaunch {
            rows: Window::whole(9),
            ..case(name, counts, vec![whole(pixels, dtype)], output)
        });
    }
    // A strip of an image.
    let mut strip = all[2].clone();
    strip.name = "samples, woven, of a strip".into();
    (strip.inputs[0].window, strip.output.window) = (Window::new(3, 39), Window::new(7, 31));
    strip.rows = Window::new(9, 30);
    all.push(strip);
    all
}
