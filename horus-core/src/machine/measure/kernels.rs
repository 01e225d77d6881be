//! Kernels of each family for measuring a machine.

use crate::dtype::{Conversion, DType, Scalar};
use crate::filters;
use crate::ir::kernel::{FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use crate::ops::fourier::Fourier;
use crate::ops::geometric::{Affine, Interpolation, rotation};
use crate::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Reduce};
use crate::ops::pixel::PixelOp;
use crate::ops::reduce::RowReduce;
use crate::ops::{Histogram, Transpose};
use crate::shape::{Border, Shape};

fn taps(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 101.0 - 0.4).collect()
}

fn one(op: LeafOp, dtype: DType) -> Kernel {
    let leaves = vec![Leaf { op, dtype }];
    Kernel::Map(MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
}

/// A sequence of pixel operations over `inputs` images.
fn pixels(inputs: usize, ops: &[PixelOp], dtype: DType) -> Kernel {
    let leaves = (0..inputs).map(|i| Leaf { op: LeafOp::Load(i), dtype }).collect();
    let mut code: Vec<Instr> = Vec::new();
    for (i, op) in ops.iter().enumerate() {
        let last = if i == 0 { Val::Leaf(0) } else { Val::Instr(i - 1) };
        let args = [last, Val::Leaf((i + 1) % inputs)][..op.arity().min(2)].to_vec();
        code.push(Instr { op: InstrOp::Pixel(*op), operand: dtype, result: dtype, args });
    }
    let result = if ops.is_empty() { Val::Leaf(0) } else { Val::Instr(ops.len() - 1) };
    Kernel::Map(MapKernel { inputs, leaves, code, result: Some(result), ..MapKernel::default() })
}

fn correlate(n: usize, dtype: DType) -> Kernel {
    one(LeafOp::Correlate(FilterSource::Input(0), Filter::dense(n, n, taps(n * n)), Border::default()), dtype)
}

/// A filter of bytes with integer taps.
fn bytes(n: usize) -> Kernel {
    let whole: Vec<f64> = taps(n * n).iter().map(|tap| (tap * 50.0).round()).collect();
    let convert = Instr {
        op: InstrOp::Convert(Conversion::Nearest),
        operand: DType::U8,
        result: DType::F32,
        args: vec![Val::Leaf(0)],
    };
    let read = vec![Leaf { op: LeafOp::Load(0), dtype: DType::U8 }];
    let chain =
        MapKernel { inputs: 1, leaves: read, code: vec![convert], result: Some(Val::Instr(0)), ..MapKernel::default() };
    let op = LeafOp::Correlate(FilterSource::Chain(0), Filter::dense(n, n, whole), Border::default());
    let leaves = vec![Leaf { op, dtype: DType::F32 }];
    Kernel::Map(MapKernel {
        inputs: 1,
        chains: vec![chain],
        leaves,
        result: Some(Val::Leaf(0)),
        ..MapKernel::default()
    })
}

/// A filter computed by transforms of tiles.
fn transforms(n: usize, tile: [usize; 2]) -> Kernel {
    Kernel::from(Fourier::of([Filter::dense(n, n, taps(n * n))], Border::default(), tile))
}

fn separable(n: usize, dtype: DType) -> Kernel {
    let stages = vec![RowFilterStage {
        source: FilterSource::Input(0),
        filter: Filter::row(taps(n)),
        border: Border::default(),
    }];
    let leaves =
        vec![Leaf { op: LeafOp::Correlate(FilterSource::Stage(0), Filter::column(taps(n)), Border::default()), dtype }];
    Kernel::Map(MapKernel { inputs: 1, stages, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
}

/// Row filters whose results are read by several column filters, as in a detector.
fn bank(dtype: DType) -> Kernel {
    let sizes = [19, 31, 43];
    let row = |n: &usize| RowFilterStage {
        source: FilterSource::Input(0),
        filter: Filter::row(taps(*n)),
        border: Border::default(),
    };
    let stages = sizes.iter().map(row).collect();
    let column = |(s, n): (usize, usize)| Leaf {
        op: LeafOp::Correlate(FilterSource::Stage(s), Filter::column(taps(n)), Border::default()),
        dtype,
    };
    let leaves: Vec<Leaf> = (0..3).flat_map(|s| sizes.map(|n| (s, n))).map(column).collect();
    let mut code: Vec<Instr> = Vec::new();
    for i in 1..leaves.len() {
        let last = if i == 1 { Val::Leaf(0) } else { Val::Instr(i - 2) };
        let args = vec![last, Val::Leaf(i)];
        code.push(Instr { op: InstrOp::Pixel(PixelOp::Max), operand: dtype, result: dtype, args });
    }
    let result = Some(Val::Instr(code.len() - 1));
    Kernel::Map(MapKernel { inputs: 1, stages, leaves, code, result, ..MapKernel::default() })
}

/// Filters along and across a line at 30 degrees, from one image.
fn oblique(sigma: f64, dtype: DType) -> [Kernel; 2] {
    let (along, across) = filters::gauss_uv(30.0, sigma, 1.0, 0, 2);
    [along, across].map(|filter| one(LeafOp::Correlate(FilterSource::Input(0), filter, Border::default()), dtype))
}

/// Filters across a line, reduced to the largest response, as in a detector.
fn oblique_bank(dtype: DType) -> Kernel {
    let across = [1.0, 2.0, 3.0]
        .into_iter()
        .flat_map(|sigma| [0, 2].map(|order| filters::gauss_uv(30.0, 5.0, sigma, 0, order).1));
    let leaves: Vec<Leaf> = across
        .map(|filter| Leaf { op: LeafOp::Correlate(FilterSource::Input(0), filter, Border::default()), dtype })
        .collect();
    let mut code: Vec<Instr> = Vec::new();
    for i in 1..leaves.len() {
        let last = if i == 1 { Val::Leaf(0) } else { Val::Instr(i - 2) };
        code.push(Instr {
            op: InstrOp::Pixel(PixelOp::Max),
            operand: dtype,
            result: dtype,
            args: vec![last, Val::Leaf(i)],
        });
    }
    let result = Some(Val::Instr(code.len() - 1));
    Kernel::Map(MapKernel { inputs: 1, leaves, code, result, ..MapKernel::default() })
}

fn rotate(degrees: f64, how: Interpolation, shape: Shape, dtype: DType) -> Option<Kernel> {
    let map = Affine::new(rotation(degrees, shape), shape)?;
    Some(one(LeafOp::Warp(0, map, how, Border::Constant(0.0).into()), dtype))
}

fn erode(n: usize, dtype: DType) -> Kernel {
    let window = Filter::dense(n, n, vec![0.0; n * n]);
    let op = Generalized { window, combine: Combine::Pixel, reduce: Reduce::Min };
    one(LeafOp::OrderFilter(0, op.into(), Border::default()), dtype)
}

/// The smallest launch: it adds a constant.
pub(super) fn smallest(dtype: DType) -> Kernel {
    let code = vec![Instr {
        op: InstrOp::Pixel(PixelOp::Add),
        operand: dtype,
        result: dtype,
        args: vec![Val::Leaf(0), Val::Const(Scalar::from_f64(dtype, 1.0))],
    }];
    let leaves = vec![Leaf { op: LeafOp::Load(0), dtype }];
    Kernel::Map(MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() })
}

/// A filter whose tiles share many rows and columns.
pub(super) fn wide_filter(dtype: DType) -> Kernel {
    correlate(7, dtype)
}

/// The filter that measures the rate of multiply-adds.
pub(super) fn arithmetic(dtype: DType) -> Kernel {
    correlate(31, dtype)
}

/// Kernels of all families over up to three images of `shape` and `dtype`.
pub(super) fn all(shape: Shape, dtype: DType) -> Vec<Kernel> {
    use PixelOp::{Abs, Add, Div, Exp, Max, Mul};
    let mut kernels = vec![
        pixels(1, &[], dtype),
        pixels(2, &[Mul], dtype),
        pixels(3, &[Div, Abs, Mul, Max], dtype),
        pixels(1, &[Exp, Add, Exp, Add, Exp, Add, Exp, Add], dtype),
        correlate(3, dtype),
        correlate(5, dtype),
        correlate(7, dtype),
        correlate(17, dtype),
        correlate(43, dtype),
        bytes(3),
        bytes(7),
        bytes(17),
        bytes(31),
        transforms(9, [64, 64]),
        transforms(43, [128, 128]),
        separable(5, dtype),
        separable(19, dtype),
        separable(43, dtype),
        bank(dtype),
        oblique_bank(dtype),
        one(LeafOp::OrderFilter(0, MedianSize::Three.into(), Border::default()), dtype),
        one(LeafOp::OrderFilter(0, MedianSize::Five.into(), Border::default()), dtype),
        erode(5, dtype),
        Kernel::from(Histogram::new(256, 0.0, 1.0)),
        Kernel::from(Transpose),
    ];
    kernels.extend([3.0, 7.0].into_iter().flat_map(|sigma| oblique(sigma, dtype)));
    kernels.extend(RowReduce::ALL.into_iter().filter(|r| !r.has_operand()).map(Kernel::from));
    kernels.extend(rotate(30.0, Interpolation::Bilinear, shape, dtype));
    kernels.extend(rotate(75.0, Interpolation::Bilinear, shape, dtype));
    kernels.extend(rotate(30.0, Interpolation::Bicubic, shape, dtype));
    kernels
}
