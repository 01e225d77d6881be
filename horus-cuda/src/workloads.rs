//! Kernels of known programs, for tuning and benchmarks.

use horus_core::dtype::{DType, Scalar};
use horus_core::error::Error;
use horus_core::filters;
use horus_core::ir::kernel::{
    FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Repeat, RowFilterStage, Val,
};
use horus_core::ops::Transpose;
use horus_core::ops::edge::WarpEdge;
use horus_core::ops::geometric::{Affine, Interpolation, rotation};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::shape::{Border, Shape};

/// A kernel of one leaf.
pub fn single(op: LeafOp, dtype: DType) -> Kernel {
    let leaves = vec![Leaf { op, dtype }];
    Kernel::Map(MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
}

/// `n` taps, all different for up to 101.
pub fn taps(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 101.0 - 0.4).collect()
}

/// A filter of these [`taps`].
pub fn dense(h: usize, w: usize) -> Filter {
    Filter::dense(h, w, taps(h * w))
}

/// A pixel operation on operands of `dtype`.
pub fn instr(op: PixelOp, dtype: DType, args: Vec<Val>) -> Instr {
    Instr { op: InstrOp::Pixel(op), operand: dtype, result: op.result(dtype), args }
}

/// A detector's orientation: pairs of filters, `|a / b|` scaled, the largest kept.
fn detector(leaves: Vec<Leaf>, stages: Vec<RowFilterStage>) -> Kernel {
    let mut code: Vec<Instr> = Vec::new();
    let f = |v: f32| Val::Const(Scalar::F32(v));
    let mut best = f(0.0);
    for k in 0..leaves.len() / 2 {
        code.push(instr(PixelOp::AbsDiv, DType::F32, vec![Val::Leaf(2 * k), Val::Leaf(2 * k + 1), f(1e-3)]));
        code.push(instr(PixelOp::Mul, DType::F32, vec![Val::Instr(code.len() - 1), f(1.5 + k as f32)]));
        code.push(instr(PixelOp::Max, DType::F32, vec![best, Val::Instr(code.len() - 1)]));
        best = Val::Instr(code.len() - 1);
    }
    Kernel::Map(MapKernel { inputs: 1, stages, leaves, code, result: Some(best), ..MapKernel::default() })
}

/// The product of two images, a kernel of pixel operations.
pub fn product() -> Kernel {
    let f = DType::F32;
    let leaves = (0..2).map(|i| Leaf { op: LeafOp::Load(i), dtype: f }).collect();
    let code = vec![instr(PixelOp::Mul, f, vec![Val::Leaf(0), Val::Leaf(1)])];
    Kernel::Map(MapKernel { inputs: 2, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() })
}

/// `kernel` with its filters reading the result of `chain` instead of their image.
pub fn over(chain: Kernel, kernel: Kernel) -> Kernel {
    let (Kernel::Map(chain), Kernel::Map(mut m)) = (chain, kernel) else { return Kernel::from(Transpose) };
    m.inputs = chain.inputs;
    m.chains = vec![chain];
    m.stages.iter_mut().for_each(|s| s.source = FilterSource::Chain(0));
    for leaf in &mut m.leaves {
        if let LeafOp::Correlate(source @ FilterSource::Input(_), ..)
        | LeafOp::Shift(source @ FilterSource::Input(_), ..) = &mut leaf.op
        {
            *source = FilterSource::Chain(0);
        }
    }
    Kernel::Map(m)
}

/// One orientation of a detector over rotated images: `scales` row filters, each read by `scales` pairs of columns of
/// up to `size` taps. With `nested`, the row filters alternate from pair to pair.
pub fn convrot(scales: usize, size: usize, nested: bool) -> Kernel {
    let length = |i: usize| size - 2 * ((scales - 1 - i) * (size / 8));
    let stages = (0..scales)
        .map(|s| RowFilterStage {
            source: FilterSource::Input(0),
            filter: Filter::row(taps(length(s))),
            border: Border::default(),
        })
        .collect();
    let mut leaves = Vec::new();
    for k in 0..scales * scales {
        let (s, c) = if nested { (k % scales, k / scales) } else { (k / scales, k % scales) };
        for order in 0..2 {
            let mut t = taps(length(c));
            t.rotate_left(order);
            let op = LeafOp::Correlate(FilterSource::Stage(s), Filter::column(t), Border::default());
            leaves.push(Leaf { op, dtype: DType::F32 });
        }
    }
    detector(leaves, stages)
}

/// The orientation of ConvRot at its default scales: three row filters, each read by three pairs of columns.
pub fn convrot_default() -> Result<Kernel, Error> {
    let (mut stages, mut leaves) = (Vec::new(), Vec::new());
    for sigma_u in [3.0, 5.0, 7.0] {
        for (sigma_v, order) in [(1.0, 2), (1.0, 0), (2.0, 2), (2.0, 0), (3.0, 2), (3.0, 0)] {
            let (row, column) = filters::gauss_xy(sigma_u, sigma_v, 0, order);
            if leaves.len() % 6 == 0 {
                stages.push(RowFilterStage { source: FilterSource::Input(0), filter: row, border: Border::default() });
            }
            let op = LeafOp::Correlate(FilterSource::Stage(stages.len() - 1), column, Border::default());
            leaves.push(Leaf { op, dtype: DType::F32 });
        }
    }
    Ok(detector(leaves, stages))
}

/// The reduction of ConvRot over two orientations' responses: rotates both back and keeps the
/// maximum so far, `max(max(acc, turned), turned)`.
pub fn turned_back(degrees: [f64; 2], shape: Shape) -> Kernel {
    let f = DType::F32;
    let zero = Border::Constant(0.0);
    let mut leaves = vec![Leaf { op: LeafOp::Load(0), dtype: f }];
    for (i, degrees) in degrees.into_iter().enumerate() {
        leaves.push(Leaf {
            op: LeafOp::Warp(i + 1, turned(degrees, shape), Interpolation::Bilinear, zero.into()),
            dtype: f,
        });
    }
    let code = vec![
        instr(PixelOp::Max, f, vec![Val::Leaf(0), Val::Leaf(1)]),
        instr(PixelOp::Max, f, vec![Val::Instr(0), Val::Leaf(2)]),
    ];
    Kernel::Map(MapKernel { inputs: 3, leaves, code, result: Some(Val::Instr(1)), ..MapKernel::default() })
}

/// One orientation of a detector with full filters: `pairs` pairs of up to `size` x `size` taps.
pub fn conv2d(pairs: usize, size: usize) -> Kernel {
    let mut leaves = Vec::new();
    for k in 0..pairs {
        let side = size - 2 * ((pairs - 1 - k) % 3) * (size / 8);
        for order in 0..2 {
            let mut t = taps(side * side);
            t.rotate_left(order);
            let op = LeafOp::Correlate(FilterSource::Input(0), Filter::dense(side, side, t), Border::default());
            leaves.push(Leaf { op, dtype: DType::F32 });
        }
    }
    detector(leaves, Vec::new())
}

/// Correlation with one `h` x `w` filter.
pub fn correlate(h: usize, w: usize, dtype: DType, border: Border) -> Kernel {
    single(LeafOp::Correlate(FilterSource::Input(0), dense(h, w), border), dtype)
}

/// Separable correlation with a row and a column of `n` taps.
pub fn separable(n: usize, dtype: DType, border: Border) -> Kernel {
    let stages = vec![RowFilterStage { source: FilterSource::Input(0), filter: Filter::row(taps(n)), border }];
    let op = LeafOp::Correlate(FilterSource::Stage(0), Filter::column(taps(n)), border);
    let leaves = vec![Leaf { op, dtype }];
    Kernel::Map(MapKernel { inputs: 1, stages, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
}

/// Rotation of an image of `shape`.
pub fn rotate(degrees: f64, shape: Shape, how: Interpolation, dtype: DType, edge: impl Into<WarpEdge>) -> Kernel {
    single(LeafOp::Warp(0, turned(degrees, shape), how, edge.into()), dtype)
}

/// `max(acc, abs(a / b) * k)`.
pub fn pixel_chain() -> Kernel {
    let leaves = (0..3).map(|i| Leaf { op: LeafOp::Load(i), dtype: DType::F32 }).collect();
    let code = vec![
        instr(PixelOp::Div, DType::F32, vec![Val::Leaf(1), Val::Leaf(2)]),
        instr(PixelOp::Abs, DType::F32, vec![Val::Instr(0)]),
        instr(PixelOp::Mul, DType::F32, vec![Val::Instr(1), Val::Const(Scalar::F32(1.25))]),
        instr(PixelOp::Max, DType::F32, vec![Val::Leaf(0), Val::Instr(2)]),
    ];
    Kernel::Map(MapKernel { inputs: 3, leaves, code, result: Some(Val::Instr(3)), ..MapKernel::default() })
}

/// The affine map of a rotation of an image of `shape`.
pub fn turned(degrees: f64, shape: Shape) -> Affine {
    Affine::new(rotation(degrees, shape), shape).unwrap_or(Affine::IDENTITY)
}

/// `steps` iterations of Jacobi's relaxation in one launch: the mean of the four neighbours plus a column (the second
/// input) times a row.
pub fn relaxation(dtype: DType, steps: usize) -> Kernel {
    let leaf = |op| Leaf { op, dtype };
    let repeated = |i, map| leaf(LeafOp::Warp(i, map, Interpolation::Nearest, Border::Replicate.into()));
    let neighbours = Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [0.25; 4]);
    let leaves = vec![
        leaf(LeafOp::Correlate(FilterSource::Input(0), neighbours, Border::Constant(0.0))),
        repeated(1, Affine { xx: 0, ..Affine::IDENTITY }),
        repeated(2, Affine { yy: 0, ..Affine::IDENTITY }),
    ];
    let code = vec![
        instr(PixelOp::Mul, dtype, vec![Val::Leaf(1), Val::Leaf(2)]),
        instr(PixelOp::Add, dtype, vec![Val::Leaf(0), Val::Instr(0)]),
    ];
    let body = MapKernel { inputs: 3, leaves, code, result: Some(Val::Instr(1)), ..MapKernel::default() };
    Kernel::Repeat(Repeat { body, state: 0, iterations: steps })
}
