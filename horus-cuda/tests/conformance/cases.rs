//! The launches.

mod distance;
mod near;
mod sampling;
mod several;
mod stencils;
mod steps;

use horus_core::device::{Geometry, more_geometries};
use horus_core::dtype::{Conversion, DType, Scalar};
use horus_core::ir::kernel::{FilterSource, Instr, InstrOp, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use horus_core::ops::edge::{InsidePixels, WarpEdge};
use horus_core::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_core::ops::labels::LabelReduce;
use horus_core::ops::neighbourhood::{
    Combine, Filter, Generalized, MedianSize, Pairing, Reach, Reduce, TapLevels, Truncated,
};
use horus_core::ops::pixel::{PixelKind, PixelOp, TABLE};
use horus_core::ops::planes::PlaneMap;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::ops::tiles::{Grid, TileReduce};
use horus_core::ops::windowed::{BoxMean, Ranked, Windowed, summed};
use horus_core::ops::{
    Deinterleave, Histogram, ImageOperation as _, Instance, Interleave, Lookup, Running, SampleImages, Sliding, Tiled,
    Transpose, Whole, samples,
};
use horus_core::shape::{Axis, Border, Shape, Window};

use horus_cuda::workloads::{
    conv2d, convrot, convrot_default, correlate, dense, instr, over, pixel_chain, rotate, separable, single, taps,
    turned, turned_back,
};
use horus_testing::pixels::with_nan;
use horus_testing::reference::kernel::{HostImage, evaluate};

/// One launch.
#[derive(Clone, Debug)]
pub(crate) struct ConformanceLaunch {
    /// A description.
    pub(crate) name: String,
    /// The kernel.
    pub(crate) kernel: Kernel,
    /// Its inputs.
    pub(crate) inputs: Vec<Geometry>,
    /// Its output.
    pub(crate) output: Geometry,
    /// The rows it computes.
    pub(crate) rows: Window,
    /// Content of its inputs.
    pub(crate) fill: Fill,
}

/// Content of the inputs of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// [`HostImage::random`].
    Random,
    /// Arbitrary floats.
    Wild,
    /// Floats of which one in five is a NaN, and some are infinite.
    Nan,
    /// The first pixel of the first input is 1, those of the others form a path through all pixels,
    /// and the rest is 0.
    Maze,
}

impl ConformanceLaunch {
    /// The images of its inputs.
    pub(crate) fn images(&self) -> Vec<HostImage> {
        let fill = match self.fill {
            Fill::Random => HostImage::random,
            Fill::Wild => wild,
            Fill::Nan => some_nan,
            Fill::Maze => maze,
        };
        self.inputs.iter().enumerate().map(|(k, &g)| fill(g, k as u64 + 1)).collect()
    }

    /// Its outputs: zeros.
    pub(crate) fn outputs(&self) -> Vec<HostImage> {
        let more = more_geometries(&self.kernel, self.output);
        std::iter::once(self.output).chain(more).map(HostImage::zeroed).collect()
    }

    /// Its expected outputs by the definitions, each result separately.
    pub(crate) fn expected(&self, inputs: &[HostImage]) -> Vec<HostImage> {
        let mut outputs = self.outputs();
        for (k, output) in outputs.iter_mut().enumerate() {
            let kernel = match &self.kernel {
                Kernel::Map(m) if !m.woven => {
                    Kernel::Map(MapKernel { result: m.results().nth(k), additional_results: Vec::new(), ..m.clone() })
                }
                other => other.clone(),
            };
            evaluate(&kernel, inputs, output, self.rows);
        }
        outputs
    }

    /// The first difference between outputs, with the result's number if there are several.
    pub(crate) fn difference(&self, ours: &[HostImage], theirs: &[HostImage]) -> Option<String> {
        let each = ours.iter().zip(theirs).enumerate();
        let mut differences = each.filter_map(|(k, (ours, theirs))| ours.difference(theirs).map(|found| (k, found)));
        let (k, (at, a, b)) = differences.next()?;
        let which = if ours.len() > 1 { format!(" of result {k}") } else { String::new() };
        Some(format!("element {at}{which} is {a}, should be {b}"))
    }
}

/// Repeatable floats of any size and sign, subnormal ones, infinities and NaNs, in runs of similar
/// values and in whole rows of moderate size.
fn wild(geometry: Geometry, seed: u64) -> HostImage {
    let mut image = HostImage::random(geometry, seed);
    for (i, v) in image.bytes.chunks_exact_mut(4).enumerate() {
        let noise = (i as u64).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = ((noise ^ (noise >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32;
        let moderate = (bits & 0x807f_ffff) | (96 + (bits >> 23) % 63) << 23;
        v.copy_from_slice(&if (i / geometry.shape.width).is_multiple_of(2) { bits } else { moderate }.to_ne_bytes());
    }
    image
}

fn some_nan(geometry: Geometry, seed: u64) -> HostImage {
    let n = geometry.plane() * geometry.shape.planes();
    let bytes = match geometry.dtype {
        DType::F32 => with_nan::<f32>(n, seed, 5).into_iter().flat_map(f32::to_ne_bytes).collect(),
        DType::F64 => with_nan::<f64>(n, seed, 5).into_iter().flat_map(f64::to_ne_bytes).collect(),
        other => panic!("no NaN of {other}"),
    };
    HostImage { geometry, bytes }
}

/// Rows joined alternately at both ends, levels joined at the first and the last row, or the pixel
/// where such a path begins.
fn maze(geometry: Geometry, seed: u64) -> HostImage {
    let mut image = HostImage::zeroed(geometry);
    let Shape { depth, height, width, .. } = geometry.shape;
    for i in 0..depth * height * width {
        let (z, y, x) = (i / width / height, i / width % height, i % width);
        let gate = |k: usize, end: usize, at: usize| at == if k % 4 == 1 { end - 1 } else { 0 };
        let level = z.is_multiple_of(2) && (y.is_multiple_of(2) || gate(y, width, x));
        let there = if seed == 1 { i == 0 } else { level || !z.is_multiple_of(2) && gate(z, height, y) && x == 0 };
        match geometry.dtype {
            _ if !there => {}
            DType::F32 => image.bytes[4 * i..4 * i + 4].copy_from_slice(&1.0f32.to_ne_bytes()),
            DType::U8 => image.bytes[i] = 1,
            other => panic!("no maze of {other}"),
        }
    }
    image
}

const AXES: [Axis; 3] = [Axis::Rows, Axis::Columns, Axis::Channels];

/// Pixels divided by their position, and subtracted from it.
fn placed(axis: Axis) -> MapKernel {
    let (f, index) = (DType::F32, Val::Index(axis, DType::F32));
    let code =
        vec![instr(PixelOp::Div, f, vec![Val::Leaf(0), index]), instr(PixelOp::Sub, f, vec![index, Val::Instr(0)])];
    let leaves = vec![Leaf { op: LeafOp::Load(0), dtype: f }];
    MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(1)), ..MapKernel::default() }
}

pub(super) fn whole(shape: Shape, dtype: DType) -> Geometry {
    Geometry { shape, dtype, window: Window::whole(shape.height) }
}

pub(super) fn case(
    name: impl Into<String>,
    kernel: Kernel,
    inputs: Vec<Geometry>,
    output: Geometry,
) -> ConformanceLaunch {
    ConformanceLaunch {
        name: name.into(),
        kernel,
        inputs,
        rows: Window::whole(output.shape.height),
        output,
        fill: Fill::Random,
    }
}

pub(super) fn borders() -> [Border; 5] {
    Border::all(3.0)
}

/// The maximum of sums of two filters: of two images, or of one with two borders; in steps of two
/// tiles each.
fn sums(pairs: usize, inputs: usize, border: Border) -> Kernel {
    let f = DType::F32;
    let (mut leaves, mut code, mut best) = (Vec::new(), Vec::new(), Val::Const(Scalar::F32(0.0)));
    for k in 0..pairs {
        for (input, border) in [(0, Border::Reflect101), (inputs - 1, border)] {
            let mut t = taps(121);
            t.rotate_left(leaves.len());
            let filter = Filter::dense(11, 11, t);
            leaves.push(Leaf { op: LeafOp::Correlate(FilterSource::Input(input), filter, border), dtype: f });
        }
        code.push(instr(PixelOp::Add, f, vec![Val::Leaf(2 * k), Val::Leaf(2 * k + 1)]));
        code.push(instr(PixelOp::Max, f, vec![best, Val::Instr(code.len() - 1)]));
        best = Val::Instr(code.len() - 1);
    }
    Kernel::Map(MapKernel { inputs, leaves, code, result: Some(best), ..MapKernel::default() })
}

/// The same with two filters whose two passes are in one launch.
fn columns_of_two_stages(pairs: usize) -> Kernel {
    let Kernel::Map(mut m) = sums(pairs, 1, Border::Reflect) else { return Kernel::from(Transpose) };
    let stage =
        |n| RowFilterStage { source: FilterSource::Input(0), filter: Filter::row(taps(n)), border: Border::Reflect101 };
    m.stages = vec![stage(9), stage(15)];
    for (k, leaf) in m.leaves.iter_mut().enumerate() {
        let mut t = taps(13);
        t.rotate_left(k);
        leaf.op = LeafOp::Correlate(FilterSource::Stage(k % 2), Filter::column(t), Border::Reflect101);
    }
    Kernel::Map(m)
}

/// The same with a filter whose two passes are in one launch, and a full one, of two images.
fn column_and_dense(pairs: usize) -> Kernel {
    let Kernel::Map(mut m) = sums(pairs, 2, Border::Reflect) else { return Kernel::from(Transpose) };
    m.stages = vec![RowFilterStage {
        source: FilterSource::Input(0),
        filter: Filter::row(taps(9)),
        border: Border::Reflect101,
    }];
    for (k, leaf) in m.leaves.iter_mut().enumerate().step_by(2) {
        let mut t = taps(9);
        t.rotate_left(k);
        leaf.op = LeafOp::Correlate(FilterSource::Stage(0), Filter::column(t), Border::Reflect101);
    }
    Kernel::Map(m)
}

/// A detector that continues from the result of another, its second input, and scales every
/// response by a third leaf.
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

/// `kernel` with its filters reading `(a as dtype) * b - 0.25` instead of their image; `a` is of
/// bytes, `b` of the type that the filters read.
fn over_chain(kernel: Kernel) -> Kernel {
    let dtype = if let Kernel::Map(m) = &kernel { m.leaves[0].dtype } else { DType::F32 };
    let leaf = |i, dtype| Leaf { op: LeafOp::Load(i), dtype };
    let convert = Instr {
        op: InstrOp::Convert(Conversion::Nearest),
        operand: DType::U8,
        result: dtype,
        args: vec![Val::Leaf(0)],
    };
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

/// Reductions of a strip of an image with such rows, on a rank that holds another strip of each
/// operand.
fn strips(width: usize, chain: &MapKernel) -> Vec<ConformanceLaunch> {
    let strip =
        |width, dtype, start, end| Geometry { shape: Shape::new(40, width, 2), dtype, window: Window::new(start, end) };
    let image = |start, end| strip(width, DType::F32, start, end);
    let column = strip(1, DType::F64, 12, 35);
    let mean = whole(Shape::new(1, 1, 1), DType::F64);
    let expression = |how| Kernel::MapReduce(chain.clone(), how);
    let mut all = vec![
        case("row_sum", Kernel::from(RowReduce::Sum), vec![image(10, 36)], column),
        case(
            "row_sum of a chain",
            expression(RowReduce::Sum),
            vec![image(10, 36), image(0, 40), image(12, 35)],
            column,
        ),
        case(
            "row_squared_deviation of a chain",
            expression(RowReduce::SquaredDeviation),
            vec![image(13, 35), image(10, 36), image(0, 40), mean],
            column,
        ),
    ];
    for case in &mut all {
        case.name = format!("{} of a strip {width}", case.name);
        case.rows = Window::new(13, 34);
    }
    all
}

/// Reductions of more than one segment of the fixed order, and of whole segments.
fn segments() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    let Kernel::Map(chain) = pixel_chain() else { return all };
    for length in [1023, 1024, 1025, 2049] {
        for dtype in [DType::F32, DType::F64, DType::U8] {
            let (image, column) = (whole(Shape::new(3, length, 2), dtype), Shape::new(3, 1, 2));
            for how in [RowReduce::Sum, RowReduce::Max, RowReduce::Extremes, RowReduce::Moments] {
                let (kernel, name) = (Kernel::from(how), format!("{} {dtype} {length}", how.name()));
                let columns = Shape { width: how.columns(), ..column };
                all.push(case(name, kernel, vec![image], whole(columns, how.result(dtype))));
            }
            let inputs = vec![image, whole(Shape::new(1, 1, 1), DType::F64)];
            let (kernel, name) = (Kernel::from(RowReduce::First), format!("row_first {dtype} {length}"));
            all.push(case(name, kernel, inputs, whole(column, DType::F64)));
        }
        let column = whole(Shape::new(3, 1, 2), DType::F64);
        let images = vec![whole(Shape::new(3, length, 2), DType::F32); 3];
        let kernel = Kernel::MapReduce(chain.clone(), RowReduce::Sum);
        all.push(case(format!("row_sum of a chain {length}"), kernel, images, column));
        all.extend(strips(length, &chain));
        // The last column is longer than a block has warps.
        for height in [length, 9 * length] {
            for how in [Fold::Sum, Fold::Min] {
                let (rows, one) = (whole(Shape::new(height, 1, 2), DType::F64), whole(Shape::new(1, 1, 1), DType::F64));
                all.push(case(format!("{} {height}", how.name()), Kernel::from(how), vec![rows], one));
            }
            let (rows, one) = (whole(Shape::new(height, 3, 2), DType::F64), whole(Shape::new(1, 3, 1), DType::F64));
            all.push(case(format!("fold_moments {height}"), Kernel::from(Fold::Moments), vec![rows], one));
        }
    }
    all
}

/// Launches with repeated rows and columns, or a pixel of each plane, whole and as a strip. They are small: an evaluation of all on the
/// host takes seconds.
fn repeated() -> Vec<ConformanceLaunch> {
    let one = 1i64 << 32;
    let map = |xx, yy| Affine { xx, yy, ..Affine { xx: 0, xy: 0, x0: 0, yx: 0, yy: 0, y0: 0 } };
    let mut all = Vec::new();
    for (dtype, width) in [DType::F32, DType::F64, DType::U8].into_iter().flat_map(|t| [1, 33, 64].map(|w| (t, w))) {
        let warp = |i, map| LeafOp::Warp(i, map, Interpolation::Nearest, Border::Replicate.into());
        let (image, row, column) = (Shape::new(37, width, 2), Shape::new(1, width, 2), Shape::new(37, 1, 2));
        let pixel = whole(Shape::new(1, 1, 2), dtype);
        let strip = |shape, start, end| Geometry { shape, dtype, window: Window::new(start, end) };
        let small = [
            ("row and column", [warp(1, map(one, 0)), warp(2, map(0, one))], whole(row, dtype), strip(column, 11, 30)),
            ("two pixels", [warp(1, map(0, 0)), warp(2, map(0, 0))], pixel, pixel),
        ];
        for (name, [first, second], a, b) in small {
            let leaves = [LeafOp::Load(0), first, second].map(|op| Leaf { op, dtype }).to_vec();
            let instr =
                |a, b| Instr { op: InstrOp::Pixel(PixelOp::Add), operand: dtype, result: dtype, args: vec![a, b] };
            let code = vec![instr(Val::Leaf(1), Val::Leaf(2)), instr(Val::Instr(0), Val::Leaf(0))];
            let kernel = MapKernel { inputs: 3, leaves, code, result: Some(Val::Instr(1)), ..MapKernel::default() };
            let inputs = vec![whole(image, dtype), a, whole(b.shape, dtype)];
            let (kernel, name) = (Kernel::Map(kernel), format!("{name} of {width} {dtype}"));
            all.push(case(name.clone(), kernel.clone(), inputs, whole(image, dtype)));
            let rows = Window::new(11, 29);
            let strips = vec![strip(image, 10, 30), a, b];
            all.push(ConformanceLaunch {
                rows,
                ..case(format!("strip with {name}"), kernel, strips, strip(image, 11, 29))
            });
        }
    }
    all
}

pub(crate) fn cases() -> Vec<ConformanceLaunch> {
    let mut all = pixels();
    all.extend(repeated());
    all.extend(filters());
    all.extend(bytes());
    all.extend(prologues());
    all.extend(others());
    all.extend(super::planes::cases());
    all.extend(orders());
    all.extend(steps::steps());
    all.extend(sampling::cases());
    all.extend(distance::cases());
    all.extend(near::cases());
    all.extend(several::cases());
    all.extend(stencils::stencils());
    let interleaved: Vec<ConformanceLaunch> = all.iter().filter_map(interleaved).collect();
    all.extend(interleaved);
    all
}

/// The same launch of images whose channels are interleaved, if they have several and the kernel knows such images.
fn interleaved(of: &ConformanceLaunch) -> Option<ConformanceLaunch> {
    let channels = of.output.shape.channels;
    let same = of.inputs.iter().all(|input| input.shape.channels == channels);
    (channels > 1 && same && of.kernel.knows_samples() && of.fill != Fill::Wild).then(|| {
        let samples = |g: Geometry| Geometry { shape: g.shape.interleaved(), ..g };
        let inputs = of.inputs.iter().copied().map(samples).collect();
        ConformanceLaunch {
            name: format!("{}, interleaved", of.name),
            inputs,
            output: samples(of.output),
            ..of.clone()
        }
    })
}

/// Orders and extremes of pixels of which many are NaN.
fn orders() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        let mut add = |name: String, kernel: Kernel, inputs: usize| {
            let c =
                case(format!("{name} of NaN {dtype}"), kernel, vec![whole(SMALL, dtype); inputs], whole(SMALL, dtype));
            all.push(ConformanceLaunch { fill: Fill::Nan, ..c });
        };
        for border in [Border::Reflect, Border::Wrap, Border::Constant(f64::NAN)] {
            for size in [MedianSize::Three, MedianSize::Five] {
                add(format!("median {size:?} {border}"), single(LeafOp::OrderFilter(0, size.into(), border), dtype), 1);
            }
            for reduce in [Reduce::Min, Reduce::Max] {
                let g = Generalized { window: dense(3, 5), combine: Combine::Pixel, reduce };
                add(format!("Pixel {reduce:?} {border}"), single(LeafOp::OrderFilter(0, g.into(), border), dtype), 1);
            }
            let square: Vec<_> = (-3..=3).flat_map(|y| (-2..=2).map(move |x| (y, x))).collect();
            let large: Vec<_> = (-4..=4).flat_map(|y| (-4..=4).map(move |x| (y, x))).collect();
            let five: Vec<_> = (-2..=2).flat_map(|y| (-2..=2).map(move |x| (y, x))).collect();
            let ranks = [(&square, 0), (&square, 17), (&square, 29), (&square, 34), (&five, 22), (&large, 40)];
            for (footprint, place) in ranks {
                let how = Windowed::Rank(Ranked::new(footprint, place));
                add(format!("{} {border}", how.name()), Kernel::from(Sliding { how, border }), 1);
            }
        }
        for op in [PixelOp::Min, PixelOp::Max, PixelOp::Minimum, PixelOp::Maximum] {
            add(op.to_string(), pixel_op(op, dtype).0, 2);
        }
    }
    all
}

fn pixels() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for row in TABLE {
        for dtype in DType::ALL {
            let (kernel, types, result) = pixel_op(row.op, dtype);
            let shape = if dtype == DType::F32 { Shape::new(33, 64, 3) } else { SMALL };
            let inputs = types.iter().map(|&t| whole(shape, t)).collect();
            let c = case(format!("{} {dtype}", row.name), kernel, inputs, whole(shape, result));
            debug_assert!(row.kind != PixelKind::Select || types[0] == DType::U8);
            let wild =
                ConformanceLaunch { name: format!("{} {dtype} of any bits", row.name), fill: Fill::Wild, ..c.clone() };
            // The whole range of a type, for types with fewer cases.
            if few(dtype) {
                all.push(wild);
                continue;
            }
            all.push(c);
            // The transcendental functions have a path for every size of their operands.
            if dtype.is_float() && row.op.is_transcendental() {
                all.push(wild);
            }
        }
    }
    for from in DType::ALL {
        for to in DType::ALL {
            let leaves = vec![Leaf { op: LeafOp::Load(0), dtype: from }];
            for rule in [Conversion::Nearest, Conversion::Cast] {
                let op = InstrOp::Convert(rule);
                let code = vec![Instr { op, operand: from, result: to, args: vec![Val::Leaf(0)] }];
                let leaves = leaves.clone();
                let m = MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
                let name = format!("{rule:?} {from} to {to}");
                let mut c = case(name, Kernel::Map(m), vec![whole(SMALL, from)], whole(SMALL, to));
                let wild = few(from) || from == DType::F32 && few(to);
                c.fill = if wild { Fill::Wild } else { Fill::Random };
                all.push(c);
            }
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
        c.fill = Fill::Wild;
        all.push(c);
    }
    // Divisors that all pixels have in common, also such that steps over- or underflow.
    for by in [3.0, -0.05, 0.0, -0.0, 1e-40, 1e30, f32::INFINITY, f32::NAN] {
        let (op, dtype, args) = (InstrOp::Pixel(PixelOp::Div), DType::F32, [Val::Leaf(0), Val::Const(Scalar::F32(by))]);
        let code = vec![Instr { op, operand: dtype, result: dtype, args: args.to_vec() }];
        let leaves = vec![Leaf { op: LeafOp::Load(0), dtype }];
        let m = MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
        let image = whole(Shape::new(33, 64, 1), dtype);
        for fill in [Fill::Random, Fill::Wild] {
            let name = format!("div by {by}, {fill:?}");
            all.push(ConformanceLaunch { fill, ..case(name, Kernel::Map(m.clone()), vec![image], image) });
        }
    }
    // Zeros that a compiler finds out, as no pixel is above itself, and that it negates.
    for (op, dtype) in [PixelOp::Min, PixelOp::Max, PixelOp::Neg].into_iter().zip([DType::F32, DType::F64, DType::F32])
    {
        let leaves = vec![Leaf { op: LeafOp::Load(0), dtype }];
        let instr =
            |op, args: &[Val]| Instr { op: InstrOp::Pixel(op), operand: dtype, result: dtype, args: args.to_vec() };
        let [first, zero, bound] = [Val::Leaf(0), Val::Instr(0), Val::Const(Scalar::from_f64(dtype, 0.5))];
        let code = match op {
            PixelOp::Neg => vec![instr(PixelOp::Threshold, &[first, bound]), instr(op, &[zero])],
            _ => vec![instr(PixelOp::Threshold, &[first, first]), instr(op, &[zero, first])],
        };
        let m = MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(1)), ..MapKernel::default() };
        let name = format!("{op:?} of a known zero {dtype}");
        all.push(case(name, Kernel::Map(m), vec![whole(SMALL, dtype)], whole(SMALL, dtype)));
    }
    let fill = MapKernel { result: Some(Val::Const(Scalar::U16(777))), ..MapKernel::default() };
    all.push(case("fill", Kernel::Map(fill), vec![], whole(SMALL, DType::U16)));
    for axis in AXES {
        for dtype in [DType::U8, DType::I32, DType::F64] {
            let index = MapKernel { result: Some(Val::Index(axis, dtype)), ..MapKernel::default() };
            let mut c = case(format!("index {axis} {dtype}"), Kernel::Map(index), vec![], whole(SMALL, dtype));
            c.output.window = Window::new(4, 37);
            c.rows = Window::new(5, 33);
            all.push(c);
        }
        for shape in [SMALL, ALIGNED] {
            let f = whole(shape, DType::F32);
            all.push(case(format!("{axis} and pixels {}", shape.width), Kernel::Map(placed(axis)), vec![f], f));
        }
    }
    let channel = single(LeafOp::LoadPlane(0, PlaneMap::one(1)), DType::U8);
    let one = Shape { channels: 1, ..SMALL };
    all.push(case("channel", channel, vec![whole(SMALL, DType::U8)], whole(one, DType::U8)));
    all
}

fn filters() -> Vec<ConformanceLaunch> {
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
            add(format!("sparse {border}"), single(LeafOp::Correlate(FilterSource::Input(0), f, border), dtype), SMALL);
        }
        let far = Filter::sparse(vec![(-900, 5), (0, 0), (800, -700)], taps(3));
        add("sparse far".into(), single(LeafOp::Correlate(FilterSource::Input(0), far, Border::Reflect), dtype), SMALL);
    }
    // Strips: little more than the rows that borders need is held.
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
    let all_rows = Window::new(0, 70);
    for how in Interpolation::ALL {
        for (name, map) in [("turned", turned(33.0, ALIGNED)), ("a column of", Affine { xx: 0, ..Affine::IDENTITY })] {
            let warp = LeafOp::Warp(0, map, how, Border::Wrap.into());
            let beyond = Window::new(-3, 75);
            let name = format!("{name} {how:?} beside wrapped rows");
            all.push(strip(&name, single(warp.clone(), f), beyond, all_rows));
            let filtered = LeafOp::Correlate(FilterSource::Input(0), dense(5, 5), Border::Wrap);
            let leaves = [warp, filtered].map(|op| Leaf { op, dtype: f }).into();
            let code = vec![instr(PixelOp::Add, f, vec![Val::Leaf(0), Val::Leaf(1)])];
            let both = MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
            all.push(strip(&format!("{name} and filtered"), Kernel::Map(both), beyond, all_rows));
        }
    }
    let repeated = Affine { xx: 0, yy: 0, ..Affine::IDENTITY };
    let op = LeafOp::Warp(1, repeated, Interpolation::Nearest, Border::Replicate.into());
    let leaves = [LeafOp::Load(0), op].map(|op| Leaf { op, dtype: f }).into();
    let code = vec![instr(PixelOp::Add, f, vec![Val::Leaf(0), Val::Leaf(1)])];
    let sum = MapKernel { inputs: 2, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
    let mut pixel = strip("a pixel beside wrapped rows", Kernel::Map(sum), all_rows, all_rows);
    pixel.inputs.push(Geometry { shape: Shape::new(1, 1, 1), dtype: f, window: Window::new(-2, 3) });
    all.push(pixel);
    all.push(strip("wrapped separable", separable(9, f, Border::Wrap), Window::new(60, 74), Window::new(64, 70)));
    // Parts of a strip: the surrounding rows of the output must not change.
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

/// Filters of bytes by whole taps: sums are exact.
fn bytes() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    for dtype in [DType::U8, DType::I8] {
        let op = InstrOp::Convert(Conversion::Nearest);
        let convert = Instr { op, operand: dtype, result: DType::F32, args: vec![Val::Leaf(0)] };
        let leaves = vec![Leaf { op: LeafOp::Load(0), dtype }];
        let code = vec![convert];
        let chain = MapKernel { inputs: 1, leaves, code, result: Some(Val::Instr(0)), ..MapKernel::default() };
        let filters = |count: usize, h: usize, w: usize, border| {
            let leaf = |f: usize| {
                let tap = |k: usize| ((k * 37 + f * 11 + k * k) % 251) as f64 - 125.0;
                let filter = Filter::dense(h, w, (0..h * w).map(tap).collect::<Vec<_>>());
                Leaf { op: LeafOp::Correlate(FilterSource::Chain(0), filter, border), dtype: DType::F32 }
            };
            let leaves: Vec<Leaf> = (0..count).map(leaf).collect();
            let mut code: Vec<Instr> = Vec::new();
            for f in 1..count {
                let last = if f == 1 { Val::Leaf(0) } else { Val::Instr(f - 2) };
                code.push(instr(PixelOp::Max, DType::F32, vec![last, Val::Leaf(f)]));
            }
            let result = Some(if count == 1 { Val::Leaf(0) } else { Val::Instr(count - 2) });
            Kernel::Map(MapKernel {
                inputs: 1,
                chains: vec![chain.clone()],
                leaves,
                code,
                result,
                ..MapKernel::default()
            })
        };
        let mut add = |name: String, kernel: Kernel, shape: Shape| {
            all.push(case(
                format!("correlate bytes {name} {dtype}"),
                kernel,
                vec![whole(shape, dtype)],
                whole(shape, DType::F32),
            ));
        };
        for border in borders() {
            add(format!("9x8 {border}"), filters(1, 9, 8, border), SMALL);
        }
        let b = Border::Reflect101;
        for (h, w) in [(3, 3), (7, 7), (15, 15), (4, 33), (31, 3), (2, 61), (22, 22)] {
            add(format!("{h}x{w}"), filters(1, h, w, b), ALIGNED);
        }
        add("bank of 3 of 8x9".into(), filters(3, 8, 9, b), SMALL);
        add("on one pixel".into(), filters(1, 9, 9, b), Shape::new(1, 1, 1));
        let mut strip = case(
            format!("correlate bytes of a strip {dtype}"),
            filters(1, 15, 15, Border::Wrap),
            vec![whole(ALIGNED, dtype)],
            whole(ALIGNED, DType::F32),
        );
        strip.inputs[0].window = Window::new(-7, 19);
        strip.output.window = Window::new(0, 12);
        strip.rows = strip.output.window;
        all.push(strip);
    }
    all
}

/// Filters over pixel operations.
fn prologues() -> Vec<ConformanceLaunch> {
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
            add(name.into(), single(LeafOp::Correlate(FilterSource::Input(0), f, Border::Wrap), dtype), SMALL);
        }
    }
    let f = DType::F32;
    let inputs = || vec![whole(ALIGNED, DType::U8), whole(ALIGNED, f)];
    for (name, kernel) in [("convrot", convrot(2, 11, false)), ("conv2d", conv2d(4, 11))] {
        all.push(case(format!("{name} of a chain"), over_chain(kernel), inputs(), whole(ALIGNED, f)));
    }
    // One input holds wrapped rows beyond the image, the other the original rows.
    for (name, kernel) in
        [("correlate", correlate(5, 5, f, Border::Wrap)), ("separable", separable(9, f, Border::Wrap))]
    {
        let mut c = case(format!("wrapped {name} of a chain"), over_chain(kernel), inputs(), whole(ALIGNED, f));
        c.inputs[1].window = Window::new(-4, 14);
        c.output.window = Window::new(0, 10);
        c.rows = Window::new(0, 10);
        all.push(c);
    }
    for axis in AXES {
        for (name, border) in [("filter", Border::Reflect101), ("wrapped filter", Border::Wrap)] {
            for kernel in [correlate(5, 5, f, border), separable(9, f, border)] {
                let Kernel::Map(mut m) = kernel else { continue };
                let source = |s: &mut FilterSource| {
                    *s = if let FilterSource::Input(_) = s { FilterSource::Chain(0) } else { *s }
                };
                m.stages.iter_mut().for_each(|s| source(&mut s.source));
                for leaf in &mut m.leaves {
                    if let LeafOp::Correlate(s, ..) = &mut leaf.op {
                        source(s);
                    }
                }
                m.chains = vec![placed(axis)];
                let name = format!("{name} of {axis} and pixels, {}", m.stages.len());
                let mut c = case(name, Kernel::Map(m), vec![whole(ALIGNED, f)], whole(ALIGNED, f));
                if border == Border::Wrap {
                    c.inputs[0].window = Window::new(-4, 14);
                    c.output.window = Window::new(0, 10);
                    c.rows = Window::new(0, 10);
                }
                all.push(c);
            }
        }
    }
    // A plane of a picture, filtered and added to itself.
    let shape = Shape { channels: 3, ..SMALL };
    let Kernel::Map(mut m) = correlate(3, 5, f, Border::Replicate) else { return all };
    let plane = Leaf { op: LeafOp::LoadPlane(0, PlaneMap::one(2)), dtype: f };
    m.leaves.push(plane.clone());
    m.code = vec![instr(PixelOp::Add, f, vec![Val::Leaf(0), Val::Leaf(1)])];
    m.result = Some(Val::Instr(0));
    m.leaves[0].op = LeafOp::Correlate(FilterSource::Chain(0), dense(3, 5), Border::Replicate);
    m.chains = vec![MapKernel { inputs: 1, leaves: vec![plane], result: Some(Val::Leaf(0)), ..MapKernel::default() }];
    all.push(case(
        "plane and its filter",
        Kernel::Map(m),
        vec![whole(shape, f)],
        whole(Shape { channels: 1, ..SMALL }, f),
    ));
    all
}

/// Means and ranks with one row, one column and both, beyond the image, and under arbitrary
/// footprints.
fn windows() -> Vec<(Windowed, Border)> {
    let mean = |up, down, left, right| Windowed::Mean(BoxMean::over(Reach { up, down, left, right }));
    let square: Vec<_> = (-3..=3).flat_map(|y| (-2..=2).map(move |x| (y, x))).collect();
    let large: Vec<_> = (-4..=4).flat_map(|y| (-4..=4).map(move |x| (y, x))).collect();
    let apart = [(-3, 1), (-1, -2), (-1, -1), (-1, 2), (0, 4), (2, 0)];
    vec![
        (mean(2, 1, 3, 5), Border::Reflect101),
        (mean(0, 0, 40, 9), Border::Wrap),
        (mean(50, 20, 0, 0), Border::Constant(2.0)),
        (Windowed::Variance(BoxMean::over(Reach { up: 2, down: 1, left: 3, right: 5 })), Border::Reflect),
        (Windowed::Rank(Ranked::new(&square, 17)), Border::Reflect),
        (Windowed::Mean(BoxMean { reach: Reach { left: 4, ..Reach::NONE }, count: 0 }), Border::Replicate),
        (Windowed::Rank(Ranked::new(&apart, 3)), Border::Constant(1.0)),
        (Windowed::Rank(Ranked::new(&large, 40)), Border::Reflect),
        (Windowed::Rank(Ranked::new(&[(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 0), (0, 1)], 1)), Border::Wrap),
        (Windowed::Rank(Ranked::new(&large, 70)), Border::Reflect101),
    ]
}

/// Types whose kernels differ from others only in arithmetic and conversions, for which all types
/// have cases. They have fewer other cases, as every case is compiled.
fn few(dtype: DType) -> bool {
    matches!(dtype, DType::U32 | DType::I8 | DType::I16)
}

fn others() -> Vec<ConformanceLaunch> {
    let mut all = Vec::new();
    let mut tables = Vec::new();
    for dtype in DType::ALL {
        let mut add = |name: String, kernel: Kernel, input: Shape, output: Shape, result: DType| {
            let fill = if name.ends_with("any bits") { Fill::Wild } else { Fill::Random };
            let c = case(format!("{name} {dtype}"), kernel, vec![whole(input, dtype)], whole(output, result));
            all.push(ConformanceLaunch { fill, ..c });
        };
        for (i, combine) in Combine::ALL.into_iter().enumerate() {
            for (j, reduce) in Reduce::ALL.into_iter().enumerate() {
                if few(dtype) && (i + j) % 4 != 0 {
                    continue;
                }
                let g = Generalized { window: dense(3, 5), combine, reduce };
                let kernel = single(LeafOp::OrderFilter(0, g.into(), Border::Replicate), dtype);
                add(format!("{combine:?} {reduce:?}"), kernel, SMALL, SMALL, dtype);
            }
        }
        let window = Filter::sparse(vec![(0, 0), (-1, 2), (3, 0)], taps(3));
        let g = Generalized { window, combine: Combine::Pixel, reduce: Reduce::Max };
        add("dilate sparse".into(), single(LeafOp::OrderFilter(0, g.into(), Border::Wrap), dtype), SMALL, SMALL, dtype);
        for (pairing, border) in Pairing::ALL.into_iter().zip([Border::Reflect, Border::Constant(3.0), Border::Wrap]) {
            let at = [(0, 0), (-2, 0), (2, 0), (-1, -40), (1, 40)];
            let window = Filter::sparse(at.to_vec(), vec![0.4, 0.1, 0.1, 0.2, 0.2]);
            let kernel =
                single(LeafOp::OrderFilter(0, Truncated { window, pairing, levels: None }.into(), border), dtype);
            add(format!("truncated {pairing:?}"), kernel, SMALL, SMALL, dtype);
            let volume = Shape { depth: 4, channels: 2, ..SMALL };
            let window = Filter::sparse(at.to_vec(), vec![0.4, 0.1, 0.1, 0.2, 0.2]);
            let levels = Some(TapLevels { by: [0, -1, 1, 0, 2].into(), depth: 4, channels: 2 });
            let kernel = single(LeafOp::OrderFilter(0, Truncated { window, pairing, levels }.into(), border), dtype);
            add(format!("truncated {pairing:?} across levels"), kernel, volume, volume, dtype);
        }
        for size in [MedianSize::Three, MedianSize::Five] {
            add(
                format!("median {size:?}"),
                single(LeafOp::OrderFilter(0, size.into(), Border::Reflect), dtype),
                SMALL,
                SMALL,
                dtype,
            );
        }
        for how in Interpolation::ALL {
            let inside = WarpEdge::Inside(InsidePixels::of(rotation(30.0, SMALL), SMALL, 2.0));
            let edges = [inside, Border::Constant(1.0).into(), Border::Reflect101.into(), Border::Wrap.into()];
            for edge in edges.into_iter().take(if few(dtype) { 2 } else { 4 }) {
                add(format!("rotate {how:?} {edge:?}"), rotate(30.0, SMALL, how, dtype, edge), SMALL, SMALL, dtype);
            }
            if how == Interpolation::Bilinear && matches!(dtype, DType::U8 | DType::I16) {
                // Integers read as floats.
                for (to, edge) in [(DType::F32, edges[0]), (DType::F64, edges[1])] {
                    add(format!("rotate as {to} {edge:?}"), rotate(30.0, SMALL, how, to, edge), SMALL, SMALL, to);
                }
            }
        }
        for flip in [Flip::Horizontal, Flip::Vertical, Flip::Both] {
            add(format!("flip {flip:?}"), single(LeafOp::Flip(0, flip), dtype), SMALL, SMALL, dtype);
        }
        for (k, (how, border)) in windows().into_iter().enumerate() {
            if few(dtype) && k % 3 > 0 {
                continue;
            }
            let out = match how {
                Windowed::Mean(BoxMean { count: 0, .. }) => summed(dtype),
                Windowed::Mean(_) => dtype.linear(),
                Windowed::Variance(_) => DType::F64,
                Windowed::Rank(_) => dtype,
            };
            let any = matches!(how, Windowed::Rank(_)) && dtype == DType::F32;
            let (name, kernel) = (format!("{} {border}", how.name()), Kernel::from(Sliding { how, border }));
            if any {
                add(format!("{name} of any bits"), kernel.clone(), SMALL, SMALL, out);
            }
            add(name, kernel, SMALL, SMALL, out);
        }
        let volume = Shape { depth: 4, channels: 2, ..SMALL };
        let block = (-2..3).flat_map(|z| (-1..2).flat_map(move |y| (-2..3).map(move |x| (z, y, x))));
        let cube = (-1..2).flat_map(|z| (-1..2).flat_map(move |y| (-1..2).map(move |x| (z, y, x))));
        let apart = [(-5, 1, 0), (0, -2, 40), (1, 0, -1), (1, 0, 0), (2, 3, 1)];
        for (rank, border) in [
            (Ranked::across(block.clone(), 37), Border::Reflect),
            (Ranked::across(apart, 1), Border::Constant(2.0)),
            (Ranked::across(block, 74), Border::Wrap),
            (Ranked::across(cube, 13), Border::Replicate),
        ] {
            let how = Windowed::Rank(rank);
            let name = format!("{} across levels {border}", how.name());
            add(name, Kernel::from(Sliding { how, border }), volume, volume, dtype);
        }
        add("transpose".into(), Kernel::from(Transpose), SMALL, Shape::new(61, 37, 2), dtype);
        for channels in [1, 2, 3, 4, 7] {
            let planes = Shape { channels, depth: 2, ..SMALL };
            let samples = planes.interleaved();
            add(format!("deinterleave {channels}"), Kernel::from(Deinterleave), samples, planes, dtype);
            add(format!("interleave {channels}"), Kernel::from(Interleave), planes, samples, dtype);
        }
        let indices = [(DType::U8, 1 << 8), (DType::U16, 1 << 16), (DType::I8, 1 << 8), (DType::I16, 1 << 16)];
        for (of, entries) in indices.into_iter().filter(|(of, _)| !few(*of) || matches!(dtype, DType::U8 | DType::I16))
        {
            let inputs = vec![whole(SMALL, of), whole(Shape::new(1, entries, 1), dtype)];
            tables.push(case(format!("lookup {of} {dtype}"), Kernel::from(Lookup), inputs, whole(SMALL, dtype)));
        }
        for how in RowReduce::ALL.into_iter().filter(|how| !how.has_operand()) {
            let column = Shape { width: how.columns(), ..ALIGNED };
            add(how.name().into(), Kernel::from(how), ALIGNED, column, how.result(dtype));
        }
        for shape in [SMALL, Shape::new(5, 2100, 2)] {
            add(format!("running_sum {}", shape.width), Kernel::from(Running), shape, shape, DType::F64);
        }
        for how in TileReduce::ALL {
            let grids =
                [(SMALL, 5, 7, 5, 7), (SMALL, 1000, 1000, 1000, 1000), (ALIGNED, 9, 70, 4, 33), (SMALL, 3, 3, 1, 1)];
            for (shape, height, width, down, across) in grids.into_iter().take(if few(dtype) { 1 } else { 4 }) {
                let grid = Grid { height, width, down, across };
                let out = Shape { height: shape.height.div_ceil(down), width: shape.width.div_ceil(across), ..shape };
                add(
                    format!("{} {height}x{width}", how.name()),
                    Kernel::from(Tiled { grid, reduce: how }),
                    shape,
                    out,
                    how.result(dtype),
                );
            }
        }
        add("fold_extremes".into(), Kernel::from(Fold::Extremes), Shape::new(2500, 2, 3), Shape::new(1, 2, 1), dtype);
        for how in [Fold::Min, Fold::Max] {
            add(how.name().into(), Kernel::from(how), SMALL, Shape::new(1, 1, 1), dtype);
        }
        let histogram = Kernel::from(Histogram::new(17, -0.5, 200.0));
        add("histogram".into(), histogram, SMALL, Shape::new(1, 17, 1), DType::F64);
        all.iter_mut()
            .filter(|c| matches!(c.kernel, Kernel::Whole(Whole::Histogram(_))))
            .for_each(|c| c.rows = Window::new(2, 30));
    }
    all.append(&mut tables);
    let plane = Shape { channels: 1, ..SMALL };
    for of in DType::ALL.into_iter().filter(|of| LabelReduce::labels(*of)) {
        for dtype in DType::ALL.into_iter().filter(|dtype| match (few(of), few(*dtype)) {
            (false, few) => !few || of == DType::U8,
            (true, _) => *dtype == DType::F32,
        }) {
            for count in [3, 150].into_iter().take(if few(of) || few(dtype) { 1 } else { 2 }) {
                let sum = |squares| LabelReduce::Sum { count, squares, of: dtype };
                let block = 32;
                let plane = Shape { depth: if count == 3 { 3 } else { 1 }, ..plane };
                for how in [sum(false), sum(true), LabelReduce::Min { count, block }, LabelReduce::Max { count, block }]
                {
                    let (height, width) = how.extent(plane.height);
                    let output = whole(Shape::new(height, width, 1), DType::F64);
                    let name = format!("{} {count} {of} {dtype}", how.kind());
                    let mut c = case(name, Kernel::from(how), vec![whole(plane, of), whole(plane, dtype)], output);
                    if how.adds_up() {
                        c.inputs[1].window = Window::new(1, 37);
                        c.rows = Window::new(2, 36);
                    } else {
                        c.inputs[0].window = Window::new(30, 37);
                        c.output.window = Window::new(1, 2);
                        c.rows = Window::new(1, 2);
                    }
                    all.push(c);
                }
            }
        }
    }
    for of in [DType::F32, DType::F64] {
        let how = LabelReduce::Sum { count: 3, squares: true, of };
        let (height, width) = how.extent(plane.height);
        let output = whole(Shape::new(height, width, 1), DType::F64);
        let inputs = vec![whole(plane, DType::U8), whole(plane, of)];
        let mut wild = case(format!("sums of any floats {of}"), Kernel::from(how), inputs, output);
        (wild.rows, wild.fill) = (Window::whole(plane.height), Fill::Wild);
        all.push(wild);
    }
    // In shared memory and in global memory; in an image that is a part of another.
    for (count, of, origin) in [(3, DType::U8, [0, 0]), (700, DType::I32, [5000, 9000])] {
        let how = LabelReduce::Shape { count, origin };
        let (height, width) = how.extent(plane.height);
        let output = whole(Shape::new(height, width, 1), DType::F64);
        let mut c = case(format!("{} {count}", how.kind()), Kernel::from(how), vec![whole(plane, of)], output);
        c.inputs[0].window = Window::new(1, 37);
        c.rows = Window::new(2, 36);
        all.push(c);
    }
    let one = Shape::new(1, 1, 1);
    let f64s = |s| whole(s, DType::F64);
    for (border, shape) in [(Border::Wrap, SMALL), (Border::Constant(1.5), Shape::volume(2, 19, 33, 2))] {
        // Merging is a copy.
        let samples = samples(SampleImages::of(shape, DType::F32, border)).into_iter();
        for Instance { operation, inputs, output, .. } in samples.filter(|s| !matches!(s.operation, Whole::Merge(_))) {
            let name = format!("sample {} {border} {shape}", operation.name());
            let inputs: Vec<Geometry> = inputs.iter().map(|(shape, dtype)| whole(*shape, *dtype)).collect();
            let mut sample = case(name, Kernel::Whole(operation), inputs, whole(output.0, output.1));
            if sample.kernel.goes_over_input() {
                sample.rows = sample.inputs[0].window;
            }
            all.push(sample);
        }
    }
    all.push(case("fold_sum", Kernel::from(Fold::Sum), vec![f64s(SMALL)], f64s(one)));
    let grid = Grid { height: 6, width: 70, down: 3, across: 64 };
    let tiles = Kernel::from(Tiled { grid, reduce: TileReduce::SquaredDeviation });
    let out = Shape { height: ALIGNED.height.div_ceil(3), width: ALIGNED.width.div_ceil(64), ..ALIGNED };
    let mut strip = case("tiles of a strip", tiles, vec![whole(ALIGNED, DType::F32)], f64s(out));
    strip.inputs[0].window = Window::new(9, 60);
    strip.output.window = Window::new(2, 15);
    strip.rows = Window::new(3, 14);
    all.push(strip);
    let column = Shape { width: 1, ..ALIGNED };
    let deviation = Kernel::from(RowReduce::SquaredDeviation);
    all.push(case("row_squared_deviation", deviation, vec![whole(ALIGNED, DType::F32), f64s(one)], f64s(column)));
    all.extend(segments());
    let Kernel::Map(chain) = pixel_chain() else { return all };
    for how in RowReduce::ALL.into_iter().filter(|how| *how != RowReduce::SquaredDeviation) {
        for shape in [ALIGNED, SMALL, Shape::new(3, 2050, 2)] {
            let mut inputs = vec![whole(shape, DType::F32); 3];
            inputs.extend(how.has_operand().then_some(f64s(one)));
            let output = whole(Shape { width: how.columns(), ..shape }, how.result(DType::F32));
            let kernel = Kernel::MapReduce(chain.clone(), how);
            all.push(case(format!("{} of a chain {}", how.name(), shape.width), kernel, inputs, output));
        }
    }
    for axis in AXES {
        for how in [RowReduce::Sum, RowReduce::Extremes] {
            let mut c = case(
                format!("{} of {axis} and pixels", how.name()),
                Kernel::MapReduce(placed(axis), how),
                vec![whole(SMALL, DType::F32)],
                whole(Shape { width: how.columns(), ..SMALL }, how.result(DType::F32)),
            );
            c.rows = Window::new(3, 30);
            all.push(c);
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
        LeafOp::Correlate(FilterSource::Stage(0), Filter::column(taps(7)), Border::Reflect),
        LeafOp::Warp(1, turned(-20.0, ALIGNED), Interpolation::Bilinear, Border::Constant(0.0).into()),
        LeafOp::Correlate(FilterSource::Input(1), dense(5, 3), Border::Reflect101),
        LeafOp::OrderFilter(0, MedianSize::Three.into(), Border::Replicate),
        LeafOp::Flip(1, Flip::Both),
    ];
    let leaves: Vec<Leaf> = ops.into_iter().map(|op| Leaf { op, dtype: f }).collect();
    let mut code: Vec<Instr> = vec![instr(PixelOp::Add, f, vec![Val::Leaf(0), Val::Leaf(1)])];
    for l in 2..leaves.len() {
        code.push(instr(PixelOp::Sub, f, vec![Val::Instr(code.len() - 1), Val::Leaf(l)]));
    }
    let stages = vec![RowFilterStage {
        source: FilterSource::Input(1),
        filter: Filter::row(taps(9)),
        border: Border::Constant(1.0),
    }];
    let result = Some(Val::Instr(code.len() - 1));
    let mixed = Kernel::Map(MapKernel { inputs: 2, stages, leaves, code, result, ..MapKernel::default() });
    all.push(case("mixed", mixed, vec![whole(ALIGNED, f); 2], whole(ALIGNED, f)));
    all
}
