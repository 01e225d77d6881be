//! Several results of one launch.

use horus_core::dtype::{Conversion, DType, Scalar};
use horus_core::ir::kernel::{FilterSource, Instr, InstrOp, JoinPart, Kernel, Leaf, LeafOp, MapKernel, Val};
use horus_core::ops::Transpose;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::{Filter, MedianSize};
use horus_core::ops::pixel::PixelOp;
use horus_core::shape::{Axis, Border, Shape, Window};
use horus_cuda::workloads::{convrot, correlate, instr, rotate, separable, single};

use super::{ALIGNED, ConformanceLaunch, SMALL, borders, case, over_chain, pixel_op, whole};

/// Joins kernels: input `i` of each is input `i` of the whole.
fn join(kernels: &[Kernel]) -> Kernel {
    let all: Vec<usize> = (0..8).collect();
    join_of(kernels, &vec![&all[..]; kernels.len()])
}

/// Joins kernels: input `i` of kernel `k` is input `read[k][i]` of the whole, which has as many
/// inputs as are named.
fn join_of(kernels: &[Kernel], read: &[&[usize]]) -> Kernel {
    let maps: Vec<&MapKernel> =
        kernels.iter().filter_map(|k| if let Kernel::Map(m) = k { Some(m) } else { None }).collect();
    assert_eq!(maps.len(), kernels.len(), "all are expressions");
    let inputs: Vec<&[usize]> = maps.iter().zip(read).map(|(m, read)| &read[..m.inputs]).collect();
    // Results have names that no input has.
    let parts: Vec<JoinPart<'_, usize>> = maps
        .iter()
        .zip(&inputs)
        .enumerate()
        .map(|(k, (kernel, inputs))| JoinPart { id: 1000 + k, kernel, inputs })
        .collect();
    let (whole, named) = MapKernel::join(&parts, |_| true).expect("nobody reads a result");
    assert!(named.is_sorted(), "inputs are named in their order");
    Kernel::Map(whole)
}

fn mapped(leaves: Vec<Leaf>, code: Vec<Instr>, result: Val) -> Kernel {
    let inputs = leaves.iter().map(|l| if let LeafOp::Load(i) = l.op { i + 1 } else { 1 }).max().unwrap_or(0);
    Kernel::Map(MapKernel { inputs, leaves, code, result: Some(result), ..MapKernel::default() })
}

fn converted(from: DType, to: DType) -> Kernel {
    let leaf = Leaf { op: LeafOp::Load(0), dtype: from };
    let code =
        vec![Instr { op: InstrOp::Convert(Conversion::Nearest), operand: from, result: to, args: vec![Val::Leaf(0)] }];
    mapped(vec![leaf], code, Val::Instr(0))
}

/// A root that is a result, a quotient by it, and one that reads both.
fn quotients(dtype: DType) -> Kernel {
    let leaf = |i| Leaf { op: LeafOp::Load(i), dtype };
    let code = vec![
        instr(PixelOp::Sqrt, dtype, vec![Val::Leaf(0)]),
        instr(PixelOp::Div, dtype, vec![Val::Leaf(1), Val::Instr(0)]),
        instr(PixelOp::Mul, dtype, vec![Val::Instr(0), Val::Instr(1)]),
    ];
    let Kernel::Map(mut m) = mapped(vec![leaf(0), leaf(1)], code, Val::Instr(1)) else {
        return Kernel::from(Transpose);
    };
    m.additional_results = vec![Val::Instr(0), Val::Instr(2), Val::Leaf(1), Val::Const(Scalar::from_f64(dtype, 2.5))];
    Kernel::Map(m)
}

pub(super) fn cases() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for shape in [SMALL, ALIGNED, Shape::new(1, 1, 1), Shape::new(3, 2, 3)] {
        let mut push = |name: &str, kernel: Kernel, inputs: &[DType]| {
            let Kernel::Map(m) = &kernel else { return };
            let output = whole(shape, m.result_type());
            let inputs = inputs.iter().map(|t| whole(shape, *t)).collect();
            all.push(case(format!("several {name} {shape}"), kernel, inputs, output));
        };
        for dtype in [DType::F32, DType::F64, DType::U8] {
            let both = join(&[pixel_op(PixelOp::Add, dtype).0, pixel_op(PixelOp::Sub, dtype).0]);
            push(&format!("sum and difference {dtype}"), both, &[dtype; 2]);
        }
        push("root and quotients f32", quotients(DType::F32), &[DType::F32; 2]);
        push("root and quotients f64", quotients(DType::F64), &[DType::F64; 2]);
        let types = [DType::U8, DType::F64, DType::U16].map(|to| converted(DType::F32, to));
        push("types", join(&types), &[DType::F32]);
        let place = mapped(vec![Leaf { op: LeafOp::Load(0), dtype: DType::F32 }], Vec::new(), Val::Leaf(0));
        let rows = mapped(Vec::new(), Vec::new(), Val::Index(Axis::Rows, DType::F64));
        push("a copy and where it is", join(&[place.clone(), rows]), &[DType::F32]);
        for border in borders() {
            let dense = |h: usize, w: usize| correlate(h, w, DType::F32, border);
            push(&format!("gradients {border}"), join(&[dense(3, 3), dense(3, 1), dense(1, 3)]), &[DType::F32]);
            let smooth = [separable(9, DType::F32, border), separable(15, DType::F32, border)];
            push(&format!("row passes {border}"), join(&smooth), &[DType::F32]);
        }
        let sparse = Filter::sparse([(-3, 2), (0, 0), (2, -1)], [0.5, 0.25, -1.0]);
        let sparse = single(LeafOp::Correlate(FilterSource::Input(0), sparse, Border::Reflect), DType::F32);
        push(
            "a filter, its image and scattered taps",
            join(&[correlate(5, 5, DType::F32, Border::Wrap), place, sparse]),
            &[DType::F32],
        );
        let median = |size: MedianSize| single(LeafOp::OrderFilter(0, size.into(), Border::Reflect), DType::U8);
        push("medians", join(&[median(MedianSize::Three), median(MedianSize::Five)]), &[DType::U8]);
        let turned = |degrees| rotate(degrees, shape, Interpolation::Bilinear, DType::F32, Border::Constant(0.0));
        push("turned", join(&[turned(20.0), turned(-35.0)]), &[DType::F32]);
        let chained = [correlate(3, 3, DType::F32, Border::Reflect), correlate(5, 5, DType::F32, Border::Reflect)];
        push("of a chain", join(&chained.map(over_chain)), &[DType::U8, DType::F32]);
        let shift = |by| single(LeafOp::Shift(FilterSource::Input(0), by, Border::Wrap), DType::F32);
        let shifts = [over_chain(shift([0, 1])), over_chain(shift([-2, 0])), shift([0, 1])];
        let read: [&[usize]; 3] = [&[0, 1], &[0, 1], &[1]];
        push("shifts, of chains and of an image", join_of(&shifts, &read), &[DType::U8, DType::F32]);
    }
    // Loops over pairs of filters, one result of which is also stored.
    let Kernel::Map(mut detector) = convrot(3, 19, false) else { return all };
    detector.additional_results = vec![Val::Instr(detector.code.len() / 2), Val::Leaf(1)];
    let image = whole(ALIGNED, DType::F32);
    all.push(case("several of a detector", Kernel::Map(detector), vec![image], image));
    // A strip of an image.
    let both = join(&[correlate(3, 3, DType::F32, Border::Reflect), halved()]);
    let mut strip = case("several of a strip", both, vec![whole(SMALL, DType::F32)], whole(SMALL, DType::F32));
    strip.output.window = Window::new(7, 31);
    strip.rows = Window::new(9, 30);
    all.push(strip);
    all
}

fn halved() -> Kernel {
    let leaf = Leaf { op: LeafOp::Load(0), dtype: DType::F32 };
    let half = Val::Const(Scalar::F32(0.5));
    mapped(vec![leaf], vec![instr(PixelOp::Mul, DType::F32, vec![Val::Leaf(0), half])], Val::Instr(0))
}
