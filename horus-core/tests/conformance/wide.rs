//! Random programs of up to 60 operations of every type, shape and border: planes that split and
//! join, transposes and other sizes, sparse filters that read one side only, masks, tables,
//! reductions and values computed from them, broadcast over an image again; on 1 to 5 ranks with
//! unequal shares.

use horus_core::dtype::{DType, Scalar};
use horus_core::ir::graph::{NodeId, Op, PixelOpOperand};
use horus_core::ops::components::Connectivity;
use horus_core::ops::distance::{JoinedOffsets, Metric, NearestOnLine, NearestPixel, NearestResult, Spacing};
use horus_core::ops::edge::{InsidePixels, WarpEdge};
use horus_core::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_core::ops::labels::LabelReduce;
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Pairing, Reach, Reduce, Truncated};
use horus_core::ops::pixel::{PixelKind, PixelOp, TABLE};
use horus_core::ops::planes::PlaneMap;
use horus_core::ops::reconstruction::Reconstruction;
use horus_core::ops::reduce::RowReduce;
use horus_core::ops::resize::{Resampling, ResizedLines};
use horus_core::ops::tiles::{Grid, TileReduce};
use horus_core::ops::windowed::{BoxMean, Ranked, Windowed};
use horus_core::ops::{
    Components, Deinterleave, Histogram, Interleave, Lookup, MatrixProduct, Merge, Resize, Running, Sliding, Tiled,
    Transpose,
};
use horus_core::plan::partition::Partition;
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::cases::covering;
use horus_testing::reference;
use proptest::prelude::*;

use crate::draw::Draw;
use crate::harness::{ConformanceProgram, RunConfiguration, compare, image, run_divided};
use crate::programs::config;

const TYPES: [DType; 5] = [DType::U8, DType::U16, DType::I32, DType::F32, DType::F64];
/// Most pixels of the images of a program.
const PIXELS: usize = 4000;

struct WideProgramBuilder {
    p: ConformanceProgram,
    values: Vec<NodeId>,
}

impl WideProgramBuilder {
    fn of(&self, n: NodeId) -> (Shape, DType) {
        let node = self.p.graph.node(n);
        (node.shape, node.dtype)
    }

    fn value(&self, d: &mut Draw<'_>) -> NodeId {
        // Recent values more often than others.
        let n = self.values.len();
        let back = if d.below(2) == 0 { n.min(3) } else { n };
        self.values[n - 1 - d.below(back)]
    }

    /// A value of this shape, converted to this type.
    fn peer(&mut self, shape: Shape, dtype: DType, d: &mut Draw<'_>) -> NodeId {
        let alike: Vec<NodeId> = self.values.iter().copied().filter(|v| self.of(*v).0 == shape).collect();
        let found = d.one(&alike);
        self.typed(found, dtype)
    }

    fn typed(&mut self, a: NodeId, dtype: DType) -> NodeId {
        if self.of(a).1 == dtype { a } else { self.p.convert(a, dtype) }
    }

    /// `a` as a float image, as linear filters require.
    fn float(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        if self.of(a).1.is_float() {
            return a;
        }
        let to = d.one(&[DType::F32, DType::F32, DType::F64]);
        self.typed(a, to)
    }

    fn pixel(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let (shape, dtype) = self.of(a);
        let rows: Vec<_> = TABLE.iter().collect();
        let row = d.one(&rows);
        match row.kind {
            PixelKind::Unary => self.p.pixel(row.op, &[a]),
            PixelKind::Binary | PixelKind::Ternary | PixelKind::Select if d.below(3) == 0 => {
                self.with_constants(row.op, a, d)
            }
            PixelKind::Binary => {
                let b = self.peer(shape, dtype, d);
                self.p.pixel(row.op, &[a, b])
            }
            PixelKind::Ternary => {
                let (b, c) = (self.peer(shape, dtype, d), self.peer(shape, dtype, d));
                self.p.pixel(row.op, &[a, b, c])
            }
            PixelKind::Compare => {
                let mask = self.mask(a, d);
                self.typed(mask, dtype)
            }
            PixelKind::Select => {
                let (b, c) = (self.peer(shape, dtype, d), self.peer(shape, dtype, d));
                let mask = self.mask(a, d);
                self.p.pixel(row.op, &[mask, b, c])
            }
        }
    }

    /// An operation with some constant operands, except at least one and the mask of a `select`.
    fn with_constants(&mut self, op: PixelOp, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let (shape, dtype) = self.of(a);
        let masked = op.info().kind == PixelKind::Select;
        let image = usize::from(masked) + d.below(op.arity() - usize::from(masked));
        let mut inputs = Vec::new();
        let mut operands = Vec::new();
        for i in 0..op.arity() {
            let input = match i {
                0 if masked => Some(self.mask(a, d)),
                _ if i == image => Some(a),
                _ if d.below(3) == 0 => Some(self.peer(shape, dtype, d)),
                _ => None,
            };
            operands.push(match input {
                Some(n) => {
                    inputs.push(n);
                    PixelOpOperand::Input(inputs.len() - 1)
                }
                None => PixelOpOperand::Const(Scalar::from_f64(dtype, d.below(40) as f64 * 0.75 - 8.0)),
            });
        }
        self.p.op(Op::Pixel(op, operands), &inputs, shape, dtype)
    }

    /// A comparison of `a`, or two combined.
    fn mask(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let (shape, dtype) = self.of(a);
        let comparisons: Vec<PixelOp> = TABLE.iter().filter(|r| r.kind == PixelKind::Compare).map(|r| r.op).collect();
        let compared = |b: &mut WideProgramBuilder, d: &mut Draw<'_>| {
            let other = b.peer(shape, dtype, d);
            let operands = vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)];
            b.p.op(Op::Pixel(d.one(&comparisons), operands), &[a, other], shape, DType::Bool)
        };
        let first = compared(self, d);
        if d.below(2) == 0 {
            return first;
        }
        let second = compared(self, d);
        // Conjunction, disjunction and difference.
        let op = d.one(&[PixelOp::Min, PixelOp::Max, PixelOp::AbsDiff]);
        let operands = vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)];
        self.p.op(Op::Pixel(op, operands), &[first, second], shape, DType::Bool)
    }

    fn filter(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let a = self.float(a, d);
        let border = d.border();
        match d.below(4) {
            0 => {
                let (h, w) = (1 + d.below(6), 1 + d.below(6));
                let taps = d.taps(h * w);
                self.p.like(Op::Correlate(Filter::dense(h, w, taps), border), a)
            }
            1 => {
                let (n, m) = (1 + d.below(9), 1 + d.below(9));
                let (row, column) = (Filter::row(d.taps(n)), Filter::column(d.taps(m)));
                self.p.like(Op::Separable { row, column, border }, a)
            }
            _ => {
                let filter = d.sparse();
                self.p.like(Op::Correlate(filter, border), a)
            }
        }
    }

    fn order(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let border = d.border();
        if d.below(3) == 0 {
            let size = d.one(&[MedianSize::Three, MedianSize::Five]);
            return self.p.like(Op::OrderFilter(size.into(), border), a);
        }
        if d.below(3) == 0 {
            return self.windowed(a, d, border);
        }
        let window = if d.below(2) == 0 {
            let (h, w) = (1 + d.below(4), 1 + d.below(4));
            Filter::dense(h, w, d.taps(h * w))
        } else {
            d.sparse()
        };
        if d.below(4) == 0 {
            let odd = !window.taps().len().is_multiple_of(2);
            let pairing = if odd { d.one(&Pairing::ALL) } else { Pairing::Single };
            return self.p.like(Op::OrderFilter(Truncated { window, pairing, levels: None }.into(), border), a);
        }
        let combine = d.one(&Combine::ALL);
        let reduce = d.one(&Reduce::ALL);
        self.p.like(Op::OrderFilter(Generalized { window, combine, reduce }.into(), border), a)
    }

    fn windowed(&mut self, a: NodeId, d: &mut Draw<'_>, border: Border) -> NodeId {
        let (shape, dtype) = self.of(a);
        let most = d.one(&[2, 7, 70]);
        let mut side = || d.below(most);
        let reach = Reach { up: side(), down: side(), left: side(), right: side() };
        let mean = BoxMean::over(reach);
        let of_rectangle = match d.below(4) {
            0 => Some((Windowed::Mean(mean), dtype.linear())),
            1 => Some((Windowed::Variance(mean), DType::F64)),
            _ => None,
        };
        if let Some((how, result)) = of_rectangle {
            return self.p.op(Op::from(Sliding { how, border }), &[a], shape, result);
        }
        let (h, w) = ((reach.up % 5) as i32, (reach.left % 5) as i32);
        let all: Vec<_> = (-h..=h).flat_map(|y| (-w..=w).map(move |x| (y, x))).collect();
        let some: Vec<_> = if d.below(2) == 0 { all } else { all.into_iter().step_by(2).collect() };
        let place = d.below(some.len());
        let rank = match d.below(3) {
            0 => Ranked::across(some.iter().enumerate().map(|(k, &(y, x))| (k as i32 / 3 - 1, y, x)), place),
            _ => Ranked::new(&some, place),
        };
        self.p.like(Op::from(Sliding { how: Windowed::Rank(rank), border }), a)
    }

    fn geometry(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let (shape, dtype) = self.of(a);
        match d.below(6) {
            0 => {
                self.p.op(Op::from(Transpose), &[a], Shape { height: shape.width, width: shape.height, ..shape }, dtype)
            }
            1 => {
                let flip = d.one(&[Flip::Horizontal, Flip::Vertical, Flip::Both]);
                self.p.like(Op::Flip(flip), a)
            }
            2 => self.repeated(a, d),
            3 => {
                // By its own transpose, of numbers small enough not to overflow in a row of products.
                let a = self.float(a, d);
                let (shape, dtype) = self.of(a);
                let turned = Shape { height: shape.width, width: shape.height, ..shape };
                let square = Shape { width: shape.height, ..shape };
                let other = self.p.op(Op::from(Transpose), &[a], turned, dtype);
                self.p.op(Op::from(MatrixProduct), &[a, other], square, dtype)
            }
            kind => {
                let how = d.one(&Interpolation::ALL);
                let border = d.border();
                let (matrix, out) = if kind == 4 {
                    (rotation(d.below(256) as f64 * 1.7, shape), shape)
                } else {
                    // Larger or smaller, and shifted.
                    let (sy, sx) = (d.one(&[0.5, 1.0, 2.25]), d.one(&[0.5, 1.0, 1.5]));
                    let shift = d.below(9) as f64 * 1.5 - 6.0;
                    let size = |n: usize, s: f64| ((n as f64 / s).ceil() as usize).max(1);
                    let out = Shape { height: size(shape.height, sy), width: size(shape.width, sx), ..shape };
                    let out = if out.len() > PIXELS { shape } else { out };
                    ([[sx, 0.0, 0.25], [0.125, sy, shift]], out)
                };
                let inside = WarpEdge::Inside(InsidePixels::of(matrix, shape, 2.5));
                let edge = if d.below(4) == 0 { inside } else { border.into() };
                match Affine::new(matrix, out) {
                    Some(map) => self.p.op(Op::Warp(map, how, edge), &[a], out, dtype),
                    None => a,
                }
            }
        }
    }

    /// A row, a column or a pixel broadcast to the size of another value; other images unchanged.
    fn repeated(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let (shape, dtype) = self.of(a);
        let other = self.value(d);
        let (like, _) = self.of(other);
        let extent = |own: usize, other: usize| if own == 1 { other } else { own };
        let out = Shape { height: extent(shape.height, like.height), width: extent(shape.width, like.width), ..shape };
        if out == shape || out.len() > PIXELS {
            return a;
        }
        let step = |own: usize| if own == 1 { 0.0 } else { 1.0 };
        let matrix = [[step(shape.width), 0.0, 0.0], [0.0, step(shape.height), 0.0]];
        match Affine::new(matrix, out) {
            Some(map) => self.p.op(Op::Warp(map, Interpolation::Nearest, Border::Replicate.into()), &[a], out, dtype),
            None => a,
        }
    }

    /// An image filled with a constant or with pixel positions, or the entries of a table at bytes.
    fn made(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let (shape, dtype) = self.of(a);
        if d.below(4) == 0 {
            let axis = d.one(&[Axis::Rows, Axis::Columns, Axis::Channels]);
            return self.p.op(Op::Index(axis), &[], shape, dtype);
        }
        if d.below(2) == 0 {
            let to = d.one(&TYPES);
            return self.p.op(Op::Fill(Scalar::from_f64(to, d.below(30) as f64 - 6.5)), &[], shape, to);
        }
        let bytes = if dtype == DType::U8 { a } else { self.p.convert(a, DType::U8) };
        let to = d.one(&TYPES);
        let table = self.p.source(image(Shape::new(1, 256, 1), to, d.below(256) as u64));
        self.p.op(Op::from(Lookup), &[bytes, table], shape, to)
    }

    fn planes(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let (shape, dtype) = self.of(a);
        let plane = Shape { channels: 1, ..shape };
        let first = Op::Planes(PlaneMap::one(d.below(shape.channels)));
        let one = if shape.channels == 1 { a } else { self.p.op(first.clone(), &[a], plane, dtype) };
        let kind = d.below(6);
        if kind == 5 {
            let samples = self.p.op(Op::from(Interleave), &[a], shape.interleaved(), dtype);
            let other = self.p.pixel_const(PixelOp::Mul, samples, &[3.0]);
            let filtered = self.p.op(Op::from(Deinterleave), &[other], shape, dtype);
            return self.p.pixel(PixelOp::Max, &[filtered, a]);
        }
        if kind == 4 {
            let levels = Shape { depth: shape.channels, channels: 1, ..shape }; // its planes as levels
            let map = PlaneMap::levels(levels, 1, d.below(4) as i32 - 1, d.below(7) as i32 - 3, d.border());
            return self.p.op(Op::Planes(map), &[a], shape, dtype);
        }
        if kind <= 1 || plane.len() * 4 > PIXELS {
            return one;
        }
        if kind == 2 {
            let planes = Shape { channels: 2 + d.below(3), ..shape };
            return self.p.op(first, &[a], planes, dtype);
        }
        let alike: Vec<NodeId> = self.values.iter().copied().filter(|v| self.of(*v).0 == plane).collect();
        let mut parts = vec![one];
        for _ in 0..1 + d.below(3) {
            let next = if alike.is_empty() { one } else { d.one(&alike) };
            parts.push(self.typed(next, dtype));
        }
        let channels = parts.len();
        self.p.op(Op::from(Merge), &parts, Shape { channels, ..shape }, dtype)
    }

    fn reduction(&mut self, a: NodeId, d: &mut Draw<'_>) -> NodeId {
        let (shape, dtype) = self.of(a);
        if d.below(5) == 0 {
            let bins = 1 + d.below(20);
            let (lo, hi) = (-10.0, 200.0);
            return self.p.op(Op::from(Histogram::new(bins, lo, hi)), &[a], Shape::new(1, bins, 1), DType::F64);
        }
        if d.below(5) == 0 {
            let to = Shape { height: 1 + d.below(40), width: 1 + d.below(60), ..shape };
            let rows = ResizedLines::new(shape.height, to.height);
            let columns = ResizedLines::new(shape.width, to.width);
            let resize = Resize { how: d.one(&Resampling::ALL), rows, columns };
            return self.p.op(Op::from(resize), &[a], to, dtype);
        }
        if d.below(5) == 0 {
            let grid =
                Grid { height: 1 + d.below(9), width: 1 + d.below(9), down: 1 + d.below(7), across: 1 + d.below(7) };
            let how = d.one(&TileReduce::ALL);
            let count = |extent: usize, step: usize| extent.div_ceil(step);
            let out = Shape { height: count(shape.height, grid.down), width: count(shape.width, grid.across), ..shape };
            return self.p.op(Op::from(Tiled { grid, reduce: how }), &[a], out, how.result(dtype));
        }
        if d.below(6) == 0 {
            let types = [DType::U8, DType::U16, DType::I32];
            let labels = if types.contains(&dtype) { a } else { self.p.convert(a, d.one(&types)) };
            let to = d.one(&TYPES);
            let pixels = self.peer(shape, to, d);
            let count = 1 + d.below(20);
            let sum = LabelReduce::Sum { count, squares: d.below(2) == 0, of: to };
            let block = 32 << d.below(2);
            let (least, most) = (LabelReduce::Min { count, block }, LabelReduce::Max { count, block });
            let where_they_are = LabelReduce::Shape { count, origin: [0, 0] };
            let how = d.one(&[sum, least, most, if shape.planes() == 1 { where_they_are } else { sum }]);
            let (height, width) = how.extent(shape.height);
            let inputs = [labels, pixels];
            return self.p.op(Op::from(how), &inputs[..how.inputs()], Shape::new(height, width, 1), DType::F64);
        }
        if d.below(6) == 0 {
            let plane = Shape { channels: 1, ..shape };
            let one = self.p.op(Op::Planes(PlaneMap::one(d.below(shape.channels))), &[a], plane, dtype);
            let how = d.one(&[Connectivity::FACES, Connectivity::EDGES]);
            if d.below(2) == 0 {
                let other = self.peer(shape, dtype, d);
                let map = PlaneMap::one(d.below(shape.channels));
                let marker = self.p.op(Op::Planes(map), &[other], plane, dtype);
                let how = Reconstruction { erosion: d.below(2) == 0, neighbours: how };
                return self.p.op(Op::from(how), &[marker, one], plane, dtype);
            }
            let how = if d.below(2) == 0 { Components::sizes(how) } else { Components::labels(how) };
            return self.p.op(Op::from(how), &[one], plane, DType::I32);
        }
        if d.below(6) == 0 {
            let along = if shape.depth > 1 { Axis::Depth } else { Axis::Rows };
            let mut nearest = self.p.op(Op::from(NearestOnLine { along }), &[a], shape, DType::I32);
            let spacing = d.one(&[Spacing::UNIT, Spacing::new([0.3, 2.5, 0.7])]);
            let metric = d.one(&[Metric::Euclidean(spacing), Metric::Taxicab, Metric::Chessboard]);
            let (along, offsets) = (Axis::Columns, JoinedOffsets::of(shape).unwrap());
            if shape.depth > 1 {
                let how = NearestPixel { along: Axis::Rows, offsets, metric, found: NearestResult::Joined };
                nearest = self.p.op(Op::from(how), &[nearest], shape, DType::I32);
            }
            let found =
                d.one(&[NearestResult::Distance, NearestResult::Level, NearestResult::Row, NearestResult::Column]);
            let how = NearestPixel { along, offsets, metric, found };
            let to = if how.is_float() { d.one(&[DType::F32, DType::F64]) } else { DType::I32 };
            return self.p.op(Op::from(how), &[nearest], shape, to);
        }
        if d.below(6) == 0 {
            return self.p.op(Op::from(Running), &[a], shape, DType::F64);
        }
        let how = d.one(&RowReduce::ALL);
        let column = Shape { width: how.columns(), ..shape };
        let one = Shape::new(1, how.columns(), 1);
        let mut inputs = vec![a];
        if how.has_operand() {
            let rows = self.p.op(Op::from(RowReduce::Sum), &[a], column, DType::F64);
            let sum = self.p.op(Op::from(RowReduce::Sum.fold()), &[rows], one, DType::F64);
            inputs.push(self.p.pixel_const(PixelOp::Div, sum, &[shape.len() as f64]));
        }
        let dtype = how.result(dtype);
        let rows = self.p.op(Op::from(how), &inputs, column, dtype);
        if d.below(3) == 0 { rows } else { self.p.op(Op::from(how.fold()), &[rows], one, dtype) }
    }

    fn step(&mut self, numbers: &[u8]) {
        let mut d = Draw::new(numbers);
        let kind = d.below(17);
        let a = self.value(&mut d);
        let v = match kind {
            0..=4 => self.pixel(a, &mut d),
            5 => {
                let to = d.one(&TYPES);
                self.typed(a, to)
            }
            6..=8 => self.filter(a, &mut d),
            9 | 10 => self.order(a, &mut d),
            11 | 12 => self.geometry(a, &mut d),
            13 | 14 => self.planes(a, &mut d),
            15 => self.made(a, &mut d),
            _ => self.reduction(a, &mut d),
        };
        self.values.push(v);
    }
}

/// A program of one step per list of numbers; its roots are the last value and two others.
pub(crate) fn program(shape: Shape, dtypes: [usize; 2], steps: &[Vec<u8>], seed: u64) -> ConformanceProgram {
    let p = ConformanceProgram { interleaved: seed % 2 == 1, ..ConformanceProgram::default() };
    let mut b = WideProgramBuilder { p, values: Vec::new() };
    for (i, dtype) in dtypes.into_iter().enumerate() {
        let given = b.p.source(image(shape, TYPES[dtype % 5], seed ^ i as u64));
        b.values.push(given);
    }
    steps.iter().for_each(|s| b.step(s));
    let n = b.values.len();
    let mut roots = vec![b.values[n - 1], b.values[n / 2], b.values[n * 3 / 4]];
    let mut seen = Vec::new();
    roots.retain(|r| {
        !seen.contains(r) && {
            seen.push(*r);
            true
        }
    });
    b.p.wanted(&roots)
}

/// Compares a program with the reference at a few places, whose ranks get rows by `weights`.
fn holds(program: &ConformanceProgram, places: &[usize], weights: &[u8]) {
    let want = reference::evaluate(&program.graph, &|v| program.sources[v.0 as usize].clone());
    let all = RunConfiguration::all();
    for (i, number) in places.iter().enumerate() {
        let place = all[number % all.len()];
        let shares: Vec<f64> = (0..place.ranks).map(|r| f64::from(weights[(r + i) % weights.len()] % 5)).collect();
        // All-zero weights are refused, and replaced by equal shares.
        let partition = Partition::weighted(&shares).unwrap_or_else(|_| Partition::equal(place.ranks));
        compare(&format!("shares {partition} at {place:?}"), program, &want, &mut |p| {
            run_divided(p, place, &partition)
        });
    }
}

/// Some steps, each with the numbers that it draws from.
pub(crate) fn steps(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 28), count)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..config(crate::RANDOM_PROGRAMS) })]

    #[test]
    fn wide_random_programs_give_the_same_bits_everywhere(
        height in 1usize..20,
        width in 1usize..30,
        channels in prop_oneof![3 => Just(1usize), 1 => 2usize..4],
        dtypes in any::<[u8; 2]>(),
        steps in prop_oneof![3 => steps(1..16), 1 => steps(16..61)],
        seed in any::<u64>(),
        places in any::<[u8; 3]>(),
        weights in any::<[u8; 5]>(),
    ) {
        let dtypes = dtypes.map(usize::from);
        let p = program(Shape::new(height, width, channels), dtypes, &steps, seed);
        holds(&p, &places.map(usize::from), &weights);
    }
}

#[test]
fn one_sided_filters_with_every_border_on_every_number_of_ranks() {
    let sides: [&[(i32, i32)]; 6] = [
        &[(0, 0), (6, 0)],
        &[(0, 0), (-6, 0)],
        &[(3, 1), (5, -2)],
        &[(-1, 0), (-9, 2)],
        &[(7, 0)],
        &[(-2, 0), (11, 1)],
    ];
    let (borders, heights, places) = (Border::all(2.5), [1, 2, 4, 7], RunConfiguration::all().len());
    for [border, side, height, place] in covering([borders.len(), sides.len(), heights.len(), places]) {
        let (border, offsets, height) = (borders[border], sides[side], heights[height]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(Shape::new(height, 3, 1), DType::F32, height as u64));
        let b = p.pixel(PixelOp::Abs, &[a]);
        let taps: Vec<f64> = (1..=offsets.len()).map(|t| t as f64).collect();
        let c = p.like(Op::Correlate(Filter::sparse(offsets, taps), border), b);
        let p = p.wanted(&[b, c]);
        holds(&p, &[place], &[1]);
        holds(&p, &[place], &[1, 0, 3, 2]);
    }
}
