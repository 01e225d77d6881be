//! The launches.

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::error::Error;
use horus_core::filters;
use horus_core::ir::kernel::{Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Source, Stage, Val};
use horus_core::ops::geometric::{Flip, Interpolation};
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Reduce};
use horus_core::ops::pixel::{PixelKind, PixelOp, TABLE};
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::shape::{Border, Shape, Window};

use super::host::{HostImage, turned};

/// One launch.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is about.
    pub name: String,
    /// The kernel.
    pub kernel: Kernel,
    /// Its inputs.
    pub inputs: Vec<Geometry>,
    /// Its output.
    pub output: Geometry,
    /// The rows it computes.
    pub rows: Window,
    /// Whether its inputs are any floats at all, else [`HostImage::random`].
    pub wild: bool,
}

impl Case {
    /// What its inputs hold.
    pub fn images(&self) -> Vec<HostImage> {
        let fill = if self.wild { HostImage::wild } else { HostImage::random };
        self.inputs.iter().enumerate().map(|(k, &g)| fill(g, k as u64 + 1)).collect()
    }
}

fn whole(shape: Shape, dtype: DType) -> Geometry {
    Geometry { shape, dtype, window: Window::whole(shape.height) }
}

fn case(name: impl Into<String>, kernel: Kernel, inputs: Vec<Geometry>, output: Geometry) -> Case {
    Case { name: name.into(), kernel, inputs, rows: Window::whole(output.shape.height), output, wild: false }
}

/// A kernel of one leaf.
fn single(op: LeafOp, dtype: DType) -> Kernel {
    let leaves = vec![Leaf { op, dtype }];
    Kernel::Map(MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
}

fn taps(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 101.0 - 0.4).collect()
}

fn dense(h: usize, w: usize) -> Filter {
    Filter::dense(h, w, taps(h * w))
}

fn borders() -> [Border; 5] {
    [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Wrap, Border::Constant(3.0)]
}

fn instr(op: PixelOp, dtype: DType, args: Vec<Val>) -> Instr {
    Instr { op: InstrOp::Pixel(op), operand: dtype, result: op.result(dtype), args }
}

/// A detector's orientation: pairs of filters, `|a / b|` scaled, the largest kept.
fn detector(leaves: Vec<Leaf>, stages: Vec<Stage>) -> Kernel {
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

/// The largest of sums of two filters: of two images, or of one with two borders; steps of two tiles each.
fn sums(pairs: usize, inputs: usize, border: Border) -> Kernel {
    let f = DType::F32;
    let (mut leaves, mut code, mut best) = (Vec::new(), Vec::new(), Val::Const(Scalar::F32(0.0)));
    for k in 0..pairs {
        for (input, border) in [(0, Border::Reflect101), (inputs - 1, border)] {
            let mut t = taps(121);
            t.rotate_left(leaves.len());
            let filter = Filter::dense(11, 11, t);
            leaves.push(Leaf { op: LeafOp::Correlate(Source::Input(input), filter, border), dtype: f });
        }
        code.push(instr(PixelOp::Add, f, vec![Val::Leaf(2 * k), Val::Leaf(2 * k + 1)]));
        code.push(instr(PixelOp::Max, f, vec![best, Val::Instr(code.len() - 1)]));
        best = Val::Instr(code.len() - 1);
    }
    Kernel::Map(MapKernel { inputs, leaves, code, result: Some(best), ..MapKernel::default() })
}

/// The same of two filters with both passes in one launch.
fn columns_of_two_stages(pairs: usize) -> Kernel {
    let Kernel::Map(mut m) = sums(pairs, 1, Border::Reflect) else { return Kernel::Transpose };
    let stage = |n| Stage { source: Source::Input(0), filter: Filter::row(taps(n)), border: Border::Reflect101 };
    m.stages = vec![stage(9), stage(15)];
    for (k, leaf) in m.leaves.iter_mut().enumerate() {
        let mut t = taps(13);
        t.rotate_left(k);
        leaf.op = LeafOp::Correlate(Source::Stage(k % 2), Filter::column(t), Border::Reflect101);
    }
    Kernel::Map(m)
}

/// The same of a filter with both passes in one launch and a full one, of two images.
fn column_and_dense(pairs: usize) -> Kernel {
    let Kernel::Map(mut m) = sums(pairs, 2, Border::Reflect) else { return Kernel::Transpose };
    m.stages = vec![Stage { source: Source::Input(0), filter: Filter::row(taps(9)), border: Border::Reflect101 }];
    for (k, leaf) in m.leaves.iter_mut().enumerate().step_by(2) {
        let mut t = taps(9);
        t.rotate_left(k);
        leaf.op = LeafOp::Correlate(Source::Stage(0), Filter::column(t), Border::Reflect101);
    }
    Kernel::Map(m)
}

/// A detector that begins with the result of another, its second input, and scales every response by a third leaf.
fn continued(kernel: Kernel) -> Kernel {
    let Kernel::Map(mut m) = kernel else { return kernel };
    let load = Val::Leaf(m.leaves.len());
    m.leaves.push(Leaf { op: LeafOp::Load(1), dtype: DType::F32 });
    m.inputs = 2;
    m.code[2].args[0] = load;
    for step in m.code.chunks_mut(3) {
        step[1].args[1] = load;
    }
    Kernel::Map(m)
}

/// The product of two images, a kernel of pixel operations.
pub fn product() -> Kernel {
    let f = DType::F32;
    let leaves = (0..2).map(|i| Leaf { op: LeafOp::Load(i), dtype: f }).collect();
    let code = vec![instr(PixelOp::Mul, f, vec![Val::Leaf(0), Val::Leaf(1)])];
    Kernel::Map(MapKernel { inputs: 2, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() })
}

/// `kernel`, whose filters read the result of `chain` in the place of their image.
pub fn over(chain: Kernel, kernel: Kernel) -> Kernel {
    let (Kernel::Map(chain), Kernel::Map(mut m)) = (chain, kernel) else { return Kernel::Transpose };
    m.inputs = chain.inputs;
    m.chains = vec![chain];
    m.stages.iter_mut().for_each(|s| s.source = Source::Chain(0));
    for leaf in &mut m.leaves {
        if let LeafOp::Correlate(source @ Source::Input(_), ..) = &mut leaf.op {
            *source = Source::Chain(0);
        }
    }
    Kernel::Map(m)
}

/// `kernel`, whose filters read `(a as dtype) * b - 0.25` in the place of their image; `a` is of bytes, `b` of the type
/// that the filters read.
fn over_chain(kernel: Kernel) -> Kernel {
    let dtype = if let Kernel::Map(m) = &kernel { m.leaves[0].dtype } else { DType::F32 };
    let leaf = |i, dtype| Leaf { op: LeafOp::Load(i), dtype };
    let convert = Instr { op: InstrOp::Convert, operand: DType::U8, result: dtype, args: vec![Val::Leaf(0)] };
    let product = instr(PixelOp::Mul, dtype, vec![Val::Instr(0), Val::Leaf(1)]);
    let quarter = Val::Const(Scalar::from_f64(dtype, 0.25));
    let chain = MapKernel {
        inputs: 2,
        leaves: vec![leaf(0, DType::U8), leaf(1, dtype)],
        code: vec![convert, product, instr(PixelOp::Sub, dtype, vec![Val::Instr(1), quarter])],
        result: Some(Val::Instr(2)),
        ..MapKernel::default()
    };
    over(Kernel::Map(chain), kernel)
}

/// One orientation of a detector over rotated images: `scales` row passes, each read by `scales` pairs of columns of
/// up to `size` taps. With `nested`, the row passes alternate from pair to pair.
pub fn convrot(scales: usize, size: usize, nested: bool) -> Kernel {
    let length = |i: usize| size - 2 * ((scales - 1 - i) * (size / 8));
    let stages = (0..scales)
        .map(|s| Stage { source: Source::Input(0), filter: Filter::row(taps(length(s))), border: Border::Reflect101 })
        .collect();
    let mut leaves = Vec::new();
    for k in 0..scales * scales {
        let (s, c) = if nested { (k % scales, k / scales) } else { (k / scales, k % scales) };
        for order in 0..2 {
            let mut t = taps(length(c));
            t.rotate_left(order);
            let op = LeafOp::Correlate(Source::Stage(s), Filter::column(t), Border::Reflect101);
            leaves.push(Leaf { op, dtype: DType::F32 });
        }
    }
    detector(leaves, stages)
}

/// The orientation of ConvRot at its default scales: three row passes, each read by three pairs of columns.
pub fn convrot_default() -> Result<Kernel, Error> {
    let (mut stages, mut leaves) = (Vec::new(), Vec::new());
    for sigma_u in [3.0, 5.0, 7.0] {
        for (sigma_v, order) in [(1.0, 2), (1.0, 0), (2.0, 2), (2.0, 0), (3.0, 2), (3.0, 0)] {
            let (row, column) = filters::gauss_xy(sigma_u, sigma_v, 0, order);
            if leaves.len() % 6 == 0 {
                stages.push(Stage { source: Source::Input(0), filter: row, border: Border::Reflect101 });
            }
            let op = LeafOp::Correlate(Source::Stage(stages.len() - 1), column, Border::Reflect101);
            leaves.push(Leaf { op, dtype: DType::F32 });
        }
    }
    Ok(detector(leaves, stages))
}

/// What ConvRot does with two orientations' responses: turns both back and keeps the largest so far, `max(max(acc,
/// turned), turned)`.
pub fn turned_back(degrees: [f64; 2], shape: Shape) -> Kernel {
    let f = DType::F32;
    let zero = Border::Constant(0.0);
    let mut leaves = vec![Leaf { op: LeafOp::Load(0), dtype: f }];
    for (i, degrees) in degrees.into_iter().enumerate() {
        leaves.push(Leaf { op: LeafOp::Warp(i + 1, turned(degrees, shape), Interpolation::Bilinear, zero), dtype: f });
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
            let op = LeafOp::Correlate(Source::Input(0), Filter::dense(side, side, t), Border::Reflect101);
            leaves.push(Leaf { op, dtype: DType::F32 });
        }
    }
    detector(leaves, Vec::new())
}

/// Correlation with one `h` x `w` filter.
pub fn correlate(h: usize, w: usize, dtype: DType, border: Border) -> Kernel {
    single(LeafOp::Correlate(Source::Input(0), dense(h, w), border), dtype)
}

/// Separable correlation with a row and a column of `n` taps.
pub fn separable(n: usize, dtype: DType, border: Border) -> Kernel {
    let stages = vec![Stage { source: Source::Input(0), filter: Filter::row(taps(n)), border }];
    let op = LeafOp::Correlate(Source::Stage(0), Filter::column(taps(n)), border);
    let leaves = vec![Leaf { op, dtype }];
    Kernel::Map(MapKernel { inputs: 1, stages, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() })
}

/// Rotation of an image of `shape`.
pub fn rotate(degrees: f64, shape: Shape, how: Interpolation, dtype: DType, border: Border) -> Kernel {
    single(LeafOp::Warp(0, turned(degrees, shape), how, border), dtype)
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

fn pixel_op(op: PixelOp, dtype: DType) -> (Kernel, Vec<DType>, DType) {
    let n = op.arity();
    let types: Vec<DType> = (0..n).map(|i| op.operand(i, dtype)).collect();
    let leaves = types.iter().enumerate().map(|(i, &dtype)| Leaf { op: LeafOp::Load(i), dtype }).collect();
    let code = vec![instr(op, dtype, (0..n).map(Val::Leaf).collect())];
    let kernel = MapKernel { inputs: n, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
    (Kernel::Map(kernel), types, op.result(dtype))
}

/// Odd sizes, so that no row is aligned; and aligned ones, so that vectors are used.
const SMALL: Shape = Shape::new(37, 61, 2);
const ALIGNED: Shape = Shape::new(70, 272, 1);

/// Reductions of more than one segment of the fixed order, and of whole ones.
fn segments() -> Vec<Case> {
    let mut all = Vec::new();
    let Kernel::Map(chain) = pixel_chain() else { return all };
    for length in [1023, 1024, 1025, 2049] {
        for dtype in [DType::F32, DType::F64, DType::U8] {
            let (image, column) = (whole(Shape::new(3, length, 2), dtype), Shape::new(3, 1, 2));
            for how in [RowReduce::Sum, RowReduce::Max] {
                let (kernel, name) = (Kernel::RowReduce(how), format!("{} {dtype} {length}", how.name()));
                all.push(case(name, kernel, vec![image], whole(column, how.result(dtype))));
            }
        }
        let column = whole(Shape::new(3, 1, 2), DType::F64);
        let images = vec![whole(Shape::new(3, length, 2), DType::F32); 3];
        let kernel = Kernel::MapReduce(chain.clone(), RowReduce::Sum);
        all.push(case(format!("row_sum of a chain {length}"), kernel, images, column));
        // The last one is longer than a block has warps.
        for height in [length, 9 * length] {
            for how in [Fold::Sum, Fold::Min] {
                let (rows, one) = (whole(Shape::new(height, 1, 2), DType::F64), whole(Shape::new(1, 1, 1), DType::F64));
                all.push(case(format!("{} {height}", how.name()), Kernel::Fold(how), vec![rows], one));
            }
        }
    }
    all
}

/// All launches. They are small: an evaluation of all on the host takes seconds.
pub fn cases() -> Vec<Case> {
    let mut all = pixels();
    all.extend(filters());
    all.extend(prologues());
    all.extend(others());
    all
}

fn pixels() -> Vec<Case> {
    let mut all = Vec::new();
    for row in TABLE {
        for dtype in DType::ALL {
            let (kernel, types, result) = pixel_op(row.op, dtype);
            let shape = if dtype == DType::F32 { Shape::new(33, 64, 3) } else { SMALL };
            let inputs = types.iter().map(|&t| whole(shape, t)).collect();
            let c = case(format!("{} {dtype}", row.name), kernel, inputs, whole(shape, result));
            debug_assert!(row.kind != PixelKind::Select || types[0] == DType::U8);
            let wild = Case { name: format!("{} {dtype} of any bits", row.name), wild: true, ..c.clone() };
            all.push(c);
            // The transcendental functions have a path for every size of their operands.
            use PixelOp::{Atan2, Cos, Exp, Hypot, Log, Pow, Sin};
            if dtype.is_float() && matches!(row.op, Exp | Log | Pow | Sin | Cos | Atan2 | Hypot) {
                all.push(wild);
            }
        }
    }
    for from in DType::ALL {
        for to in DType::ALL {
            let leaves = vec![Leaf { op: LeafOp::Load(0), dtype: from }];
            let code = vec![Instr { op: InstrOp::Convert, operand: from, result: to, args: vec![Val::Leaf(0)] }];
            let m = MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
            all.push(case(format!("{from} to {to}"), Kernel::Map(m), vec![whole(SMALL, from)], whole(SMALL, to)));
        }
    }
    let f = |s| vec![whole(s, DType::F32); 3];
    all.push(case("pixel chain", pixel_chain(), f(ALIGNED), whole(ALIGNED, DType::F32)));
    let mut strip = case("pixel chain of a strip", pixel_chain(), f(ALIGNED), whole(ALIGNED, DType::F32));
    strip.inputs[1].window = Window::new(9, 64);
    strip.output.window = Window::new(10, 60);
    strip.rows = Window::new(11, 57);
    all.push(strip);
    for op in [PixelOp::Div, PixelOp::AbsDiv] {
        let (kernel, types, result) = pixel_op(op, DType::F32);
        let shape = Shape::new(256, 256, 1);
        let inputs = types.iter().map(|&t| whole(shape, t)).collect();
        let mut c = case(format!("{op:?} of any floats"), kernel, inputs, whole(shape, result));
        c.wild = true;
        all.push(c);
    }
    let fill = MapKernel { result: Some(Val::Const(Scalar::U16(777))), ..MapKernel::default() };
    all.push(case("fill", Kernel::Map(fill), vec![], whole(SMALL, DType::U16)));
    let channel = single(LeafOp::LoadChannel(0, 1), DType::U8);
    let one = Shape { channels: 1, ..SMALL };
    all.push(case("channel", channel, vec![whole(SMALL, DType::U8)], whole(one, DType::U8)));
    all
}

fn filters() -> Vec<Case> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        let mut add = |name: String, kernel: Kernel, shape: Shape| {
            all.push(case(format!("{name} {dtype}"), kernel, vec![whole(shape, dtype)], whole(shape, dtype)));
        };
        for border in borders() {
            add(format!("correlate 5x5 {border}"), correlate(5, 5, dtype, border), SMALL);
            add(format!("separable 19 {border}"), separable(19, dtype, border), SMALL);
        }
        let b = Border::Reflect101;
        for (h, w) in [(1, 1), (3, 3), (7, 7), (4, 6), (1, 9), (9, 1), (17, 17), (43, 43), (3, 61), (71, 3)] {
            add(format!("correlate {h}x{w}"), correlate(h, w, dtype, b), ALIGNED);
        }
        add("correlate 260x5".into(), correlate(260, 5, dtype, b), Shape::new(40, 50, 1));
        for n in [1, 4, 43, 75] {
            add(format!("separable {n}"), separable(n, dtype, b), ALIGNED);
        }
        add("separable on one pixel".into(), separable(5, dtype, b), Shape::new(1, 1, 1));
        for border in [Border::Wrap, Border::Constant(2.0)] {
            let offsets: Vec<(i32, i32)> = (0..50).map(|i| ((i * 7) % 23 - 11, (i * 5) % 19 - 9)).collect();
            let f = Filter::sparse(offsets, taps(50));
            add(format!("sparse {border}"), single(LeafOp::Correlate(Source::Input(0), f, border), dtype), SMALL);
        }
        let far = Filter::sparse(vec![(-900, 5), (0, 0), (800, -700)], taps(3));
        add("sparse far".into(), single(LeafOp::Correlate(Source::Input(0), far, Border::Reflect), dtype), SMALL);
    }
    // Strips: the rows that borders need are held, and little else.
    let strip = |name: &str, kernel: Kernel, window: Window, rows: Window| {
        let mut c = case(name, kernel, vec![whole(ALIGNED, DType::F32)], whole(ALIGNED, DType::F32));
        c.inputs[0].window = window;
        c.output.window = rows;
        c.rows = rows;
        c
    };
    let f = DType::F32;
    let b = Border::Reflect101;
    all.push(strip("correlate of a strip", correlate(7, 7, f, b), Window::new(17, 53), Window::new(20, 50)));
    all.push(strip("correlate of the last rows", correlate(7, 7, f, b), Window::new(57, 70), Window::new(60, 70)));
    all.push(strip("wrapped rows", correlate(5, 5, f, Border::Wrap), Window::new(-2, 12), Window::new(0, 10)));
    all.push(strip("separable of a strip", separable(9, f, b), Window::new(16, 54), Window::new(20, 50)));
    all.push(strip("wrapped separable", separable(9, f, Border::Wrap), Window::new(60, 74), Window::new(64, 70)));
    // Parts of a strip: the output has rows around them that must stay as they are.
    for (name, kernel) in
        [("correlate", correlate(7, 7, f, b)), ("separable", separable(9, f, b)), ("convrot", convrot(3, 19, false))]
    {
        for (part, rows) in [("interior", (29, 41)), ("upper edge", (20, 29)), ("lower edge", (41, 50))] {
            let all_rows = Window::new(11, 59);
            let mut c = strip(&format!("{part} of {name}"), kernel.clone(), all_rows, Window::new(rows.0, rows.1));
            c.output.window = all_rows;
            all.push(c);
        }
    }
    let detectors = [
        ("convrot", convrot(3, 19, false)),
        ("convrot nested", convrot(2, 11, true)),
        ("convrot by turns", convrot(3, 19, true)),
        ("convrot long", convrot(3, 43, false)),
        ("conv2d", conv2d(3, 19)),
        ("conv2d large", conv2d(2, 43)),
    ];
    for (name, kernel) in detectors {
        all.push(case(name, kernel, vec![whole(ALIGNED, f)], whole(ALIGNED, f)));
    }
    let two = [
        ("sums of filters of two images", sums(4, 2, Border::Reflect101)),
        ("sums of filters with two borders", sums(4, 1, Border::Wrap)),
        ("sums of a column and a full filter", column_and_dense(4)),
        ("sums of columns of two stages", columns_of_two_stages(4)),
    ];
    for (name, kernel) in two {
        let inputs = if let Kernel::Map(m) = &kernel { m.inputs } else { 1 };
        all.push(case(name, kernel, vec![whole(ALIGNED, f); inputs], whole(ALIGNED, f)));
    }
    for (name, kernel) in [("convrot", convrot(2, 11, false)), ("conv2d", conv2d(4, 11))] {
        let inputs = vec![whole(ALIGNED, f); 2];
        all.push(case(format!("{name} after another"), continued(kernel), inputs, whole(ALIGNED, f)));
    }
    if let Ok(kernel) = convrot_default() {
        all.push(case("convrot default", kernel, vec![whole(ALIGNED, f)], whole(ALIGNED, f)));
    }
    all
}

/// Filters over pixel operations.
fn prologues() -> Vec<Case> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        let mut add = |name: String, kernel: Kernel, shape: Shape| {
            let inputs = vec![whole(shape, DType::U8), whole(shape, dtype)];
            all.push(case(format!("{name} of a chain {dtype}"), over_chain(kernel), inputs, whole(shape, dtype)));
        };
        for border in borders() {
            add(format!("correlate 5x5 {border}"), correlate(5, 5, dtype, border), SMALL);
            add(format!("separable 19 {border}"), separable(19, dtype, border), SMALL);
        }
        let b = Border::Reflect101;
        for n in [3, 17] {
            add(format!("correlate {n}x{n}"), correlate(n, n, dtype, b), ALIGNED);
        }
        add("correlate 260x5".into(), correlate(260, 5, dtype, b), Shape::new(40, 50, 1));
        for n in [4, 43] {
            add(format!("separable {n}"), separable(n, dtype, b), ALIGNED);
        }
        let offsets: Vec<(i32, i32)> = (0..50).map(|i| ((i * 7) % 23 - 11, (i * 5) % 19 - 9)).collect();
        for (name, f) in [
            ("sparse", Filter::sparse(offsets, taps(50))),
            ("sparse far", Filter::sparse(vec![(-900, 5), (0, 0), (800, -700)], taps(3))),
        ] {
            add(name.into(), single(LeafOp::Correlate(Source::Input(0), f, Border::Wrap), dtype), SMALL);
        }
    }
    let f = DType::F32;
    let inputs = || vec![whole(ALIGNED, DType::U8), whole(ALIGNED, f)];
    for (name, kernel) in [("convrot", convrot(2, 11, false)), ("conv2d", conv2d(4, 11))] {
        all.push(case(format!("{name} of a chain"), over_chain(kernel), inputs(), whole(ALIGNED, f)));
    }
    // One input holds wrapped rows beyond the image, the other the rows that they are copies of.
    for (name, kernel) in
        [("correlate", correlate(5, 5, f, Border::Wrap)), ("separable", separable(9, f, Border::Wrap))]
    {
        let mut c = case(format!("wrapped {name} of a chain"), over_chain(kernel), inputs(), whole(ALIGNED, f));
        c.inputs[1].window = Window::new(-4, 14);
        c.output.window = Window::new(0, 10);
        c.rows = Window::new(0, 10);
        all.push(c);
    }
    // A plane of a picture, filtered and added to itself.
    let shape = Shape { channels: 3, ..SMALL };
    let Kernel::Map(mut m) = correlate(3, 5, f, Border::Replicate) else { return all };
    let plane = Leaf { op: LeafOp::LoadChannel(0, 2), dtype: f };
    m.leaves.push(plane.clone());
    m.code = vec![instr(PixelOp::Add, f, vec![Val::Leaf(0), Val::Leaf(1)])];
    m.result = Some(Val::Instr(0));
    m.leaves[0].op = LeafOp::Correlate(Source::Chain(0), dense(3, 5), Border::Replicate);
    m.chains = vec![MapKernel { inputs: 1, leaves: vec![plane], result: Some(Val::Leaf(0)), ..MapKernel::default() }];
    all.push(case(
        "plane and its filter",
        Kernel::Map(m),
        vec![whole(shape, f)],
        whole(Shape { channels: 1, ..SMALL }, f),
    ));
    all
}

fn others() -> Vec<Case> {
    let mut all = Vec::new();
    let mut tables = Vec::new();
    for dtype in DType::ALL {
        let mut add = |name: String, kernel: Kernel, input: Shape, output: Shape, result: DType| {
            all.push(case(format!("{name} {dtype}"), kernel, vec![whole(input, dtype)], whole(output, result)));
        };
        for combine in Combine::ALL {
            for reduce in Reduce::ALL {
                let g = Generalized { window: dense(3, 5), combine, reduce };
                let kernel = single(LeafOp::Generalized(0, g, Border::Replicate), dtype);
                add(format!("{combine:?} {reduce:?}"), kernel, SMALL, SMALL, dtype);
            }
        }
        let window = Filter::sparse(vec![(0, 0), (-1, 2), (3, 0)], taps(3));
        let g = Generalized { window, combine: Combine::Pixel, reduce: Reduce::Max };
        add("dilate sparse".into(), single(LeafOp::Generalized(0, g, Border::Wrap), dtype), SMALL, SMALL, dtype);
        for size in [MedianSize::Three, MedianSize::Five] {
            add(
                format!("median {size:?}"),
                single(LeafOp::Median(0, size, Border::Reflect), dtype),
                SMALL,
                SMALL,
                dtype,
            );
        }
        for how in Interpolation::ALL {
            for border in [Border::Constant(1.0), Border::Reflect101, Border::Wrap] {
                add(format!("rotate {how:?} {border}"), rotate(30.0, SMALL, how, dtype, border), SMALL, SMALL, dtype);
            }
        }
        for flip in [Flip::Horizontal, Flip::Vertical, Flip::Both] {
            add(format!("flip {flip:?}"), single(LeafOp::Flip(0, flip), dtype), SMALL, SMALL, dtype);
        }
        add("transpose".into(), Kernel::Transpose, SMALL, Shape::new(61, 37, 2), dtype);
        for (of, entries) in [(DType::U8, 1 << 8), (DType::U16, 1 << 16)] {
            let inputs = vec![whole(SMALL, of), whole(Shape::new(1, entries, 1), dtype)];
            tables.push(case(format!("lookup {of} {dtype}"), Kernel::Lookup, inputs, whole(SMALL, dtype)));
        }
        let column = Shape { width: 1, ..ALIGNED };
        for how in [RowReduce::Sum, RowReduce::Min, RowReduce::Max] {
            add(how.name().into(), Kernel::RowReduce(how), ALIGNED, column, how.result(dtype));
        }
        for how in [Fold::Min, Fold::Max] {
            add(how.name().into(), Kernel::Fold(how), SMALL, Shape::new(1, 1, 1), dtype);
        }
        let histogram = Kernel::Histogram { bins: 17, lo: -0.5, hi: 200.0 };
        add("histogram".into(), histogram, SMALL, Shape::new(1, 17, 1), DType::F64);
        all.iter_mut()
            .filter(|c| matches!(c.kernel, Kernel::Histogram { .. }))
            .for_each(|c| c.rows = Window::new(2, 30));
    }
    all.append(&mut tables);
    let one = Shape::new(1, 1, 1);
    let f64s = |s| whole(s, DType::F64);
    all.push(case("fold_sum", Kernel::Fold(Fold::Sum), vec![f64s(SMALL)], f64s(one)));
    let column = Shape { width: 1, ..ALIGNED };
    let deviation = Kernel::RowReduce(RowReduce::SquaredDeviation);
    all.push(case("row_squared_deviation", deviation, vec![whole(ALIGNED, DType::F32), f64s(one)], f64s(column)));
    all.extend(segments());
    let Kernel::Map(chain) = pixel_chain() else { return all };
    for how in [RowReduce::Sum, RowReduce::Min, RowReduce::Max] {
        for shape in [ALIGNED, SMALL] {
            let inputs = vec![whole(shape, DType::F32); 3];
            let output = whole(Shape { width: 1, ..shape }, how.result(DType::F32));
            let kernel = Kernel::MapReduce(chain.clone(), how);
            all.push(case(format!("{} of a chain {}", how.name(), shape.width), kernel, inputs, output));
        }
    }
    let inputs = vec![whole(ALIGNED, DType::F32), whole(ALIGNED, DType::F32), whole(ALIGNED, DType::F32), f64s(one)];
    let deviation = Kernel::MapReduce(chain, RowReduce::SquaredDeviation);
    let mut strip = case("row_squared_deviation of a chain", deviation, inputs, f64s(column));
    strip.inputs[1].window = Window::new(5, 60);
    strip.output.window = Window::new(8, 60);
    strip.rows = Window::new(9, 58);
    all.push(strip);
    for degrees in [[-15.0, -90.0], [-105.0, -165.0]] {
        let kernel = turned_back(degrees, ALIGNED);
        let f = whole(ALIGNED, DType::F32);
        all.push(case(format!("turned back {degrees:?}"), kernel, vec![f; 3], f));
    }
    // Leaves of every kind in one kernel.
    let f = DType::F32;
    let ops = [
        LeafOp::Load(0),
        LeafOp::Correlate(Source::Stage(0), Filter::column(taps(7)), Border::Reflect),
        LeafOp::Warp(1, turned(-20.0, ALIGNED), Interpolation::Bilinear, Border::Constant(0.0)),
        LeafOp::Correlate(Source::Input(1), dense(5, 3), Border::Reflect101),
        LeafOp::Median(0, MedianSize::Three, Border::Replicate),
        LeafOp::Flip(1, Flip::Both),
    ];
    let leaves: Vec<Leaf> = ops.into_iter().map(|op| Leaf { op, dtype: f }).collect();
    let mut code: Vec<Instr> = vec![instr(PixelOp::Add, f, vec![Val::Leaf(0), Val::Leaf(1)])];
    for l in 2..leaves.len() {
        code.push(instr(PixelOp::Sub, f, vec![Val::Instr(code.len() - 1), Val::Leaf(l)]));
    }
    let stages = vec![Stage { source: Source::Input(1), filter: Filter::row(taps(9)), border: Border::Constant(1.0) }];
    let result = Some(Val::Instr(code.len() - 1));
    let mixed = Kernel::Map(MapKernel { inputs: 2, stages, leaves, code, result, ..MapKernel::default() });
    all.push(case("mixed", mixed, vec![whole(ALIGNED, f); 2], whole(ALIGNED, f)));
    all
}
