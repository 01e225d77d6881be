//! Footprints of kernels against the pixels that their definitions read.

use std::panic::Location;

use horus_base::dtype::DType;
use horus_base::shape::{Axis, Border, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use horus_plan::ir::kernel::Distribution;
use horus_plan::ops::components::Connectivity;
use horus_plan::ops::distance::{JoinedOffsets, Metric, Sought};
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_plan::ops::labels::LabelReduce;
use horus_plan::ops::neighbourhood::{Filter, MedianSize, Pairing, Reach, Truncated};
use horus_plan::ops::operation::Extent;
use horus_plan::ops::planes::PlaneMap;
use horus_plan::ops::resize::{Lines, Resampling};
use horus_plan::ops::sampling::Sampling;
use horus_plan::ops::tiles::{Grid, TileReduce};
use horus_plan::ops::windowed::{BoxMean, Ranked, Windowed};
use horus_plan::ops::{
    Components, Deinterleave, Fold, Fourier, Histogram, Interleave, Lookup, MatrixProduct, Merge, NearestOnLine,
    NearestPixel, Reconstruction, Remap, Resize, RowReduce, Running, RunningDepth, Sliding, Tiled, Transpose, Whole,
};
use horus_plan::optimize::lower::lower;
use horus_plan::region::{Rect, needs};
use horus_testing::reference::kernel::HostImage;
use horus_testing::reference::reads::{PixelRead, recorded};

const BORDERS: [Border; 5] = Border::all(1.0);
const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 7), (6, 1), (5, 4), (9, 7)];

/// An operation on images of these extents.
struct Case {
    op: Op,
    inputs: Vec<Extent>,
    output: Extent,
    /// Set if the footprint is minimal; otherwise it may be larger.
    exact: bool,
}

impl Case {
    fn of(op: impl Into<Op>, inputs: &[Extent], output: Extent) -> Case {
        Case { op: op.into(), inputs: inputs.to_vec(), output, exact: true }
    }

    fn at_most(self) -> Case {
        Case { exact: false, ..self }
    }
}

fn resized(how: Resampling, [rows, columns]: [(usize, usize); 2]) -> Whole {
    let lines = |(from, to)| Lines::new(from, to);
    Resize { how, rows: lines(rows), columns: lines(columns) }.into()
}

/// Operations with reads around their pixels or elsewhere; a `match` makes the compiler require
/// every whole-image operation.
fn cases(height: usize, width: usize, border: Border) -> Vec<Case> {
    let shape = Shape::volume(2, height, width, 2);
    let (image, plane) = ((shape, DType::F32), (Shape::new(height, width, 1), DType::F32));
    let labels = (plane.0, DType::I32);
    let one = Shape::new(1, 1, 1);
    let with = |width: usize| Shape { width, ..shape };
    let distance = |along, found| {
        Whole::from(NearestPixel { along, offsets: JoinedOffsets { row_bits: 5 }, metric: Metric::Taxicab, found })
    };
    let mut all = Vec::new();
    let whole = [
        Whole::from(Merge),
        Transpose.into(),
        Deinterleave.into(),
        Interleave.into(),
        MatrixProduct.into(),
        Lookup.into(),
        Remap { sampling: Sampling::Cubic, border, outside: None }.into(),
        Fourier {
            filters: [Filter::sparse([(-2, 0), (1, 3)], [1.0; 2])].into(),
            border,
            tile: [16; 2],
            origin: [5, 9],
        }
        .into(),
        Sliding { how: Windowed::Mean(BoxMean::over(Reach { up: 1, down: 3, left: 0, right: 2 })), border }.into(),
        Sliding { how: Windowed::Rank(Ranked::new(&[(-4, 0), (0, -1), (0, 0), (0, 1), (2, 0)], 2)), border }.into(),
        Sliding { how: Windowed::Rank(Ranked::across([(-1, 0, -1), (0, -2, 0), (0, 0, 0), (1, 3, 2)], 2)), border }
            .into(),
        resized(Resampling::Lanczos, [(height, 3), (width, 2 * width)]),
        resized(Resampling::Area, [(height, height + 2), (width, 2)]),
        resized(Resampling::Gaussian, [(height, 2), (width, 3)]),
        RowReduce::First.into(),
        Running.into(),
        RunningDepth.into(),
        Fold::Max.into(),
        Tiled { grid: Grid { height: 3, width: 2, down: 2, across: 3 }, reduce: TileReduce::Sum }.into(),
        LabelReduce::Min { count: 3, block: 2 }.into(),
        LabelReduce::Sum { count: 3, squares: false, of: DType::F32 }.into(),
        Components { neighbours: Connectivity::FACES }.into(),
        Reconstruction { erosion: false, neighbours: Connectivity::FACES }.into(),
        NearestOnLine { along: Axis::Rows }.into(),
        NearestOnLine { along: Axis::Depth }.into(),
        distance(Axis::Columns, Sought::Column),
        distance(Axis::Rows, Sought::Joined),
        Histogram::new(3, 0.0, 1.0).into(),
    ];
    for operation in whole {
        let of = |inputs: &[Extent], output: Extent| Case::of(operation.clone(), inputs, output);
        all.push(match &operation {
            Whole::Merge(_) => of(&[image, image], (Shape { channels: 4, ..shape }, DType::F32)),
            Whole::Transpose(_) => of(&[image], (Shape { height: width, width: height, ..shape }, DType::F32)),
            Whole::Deinterleave(_) => of(&[(shape.interleaved(), DType::F32)], image),
            Whole::Interleave(_) => of(&[image], (shape.interleaved(), DType::F32)),
            Whole::MatrixProduct(_) => {
                let other = (Shape { height: width, width: 3, ..shape }, DType::F32);
                of(&[image, other], (with(3), DType::F32))
            }
            // Entries and positions depend on pixels.
            Whole::Lookup(_) => {
                let table = (Shape::new(1, 256, 1), DType::F32);
                of(&[(shape, DType::U8), table], image).at_most()
            }
            Whole::Remap(_) => of(&[image, plane, plane], image).at_most(),
            Whole::Resize(how) => {
                let to = Shape { height: how.rows.to, width: how.columns.to, ..shape };
                of(&[image], (to, DType::F32))
            }
            Whole::Fourier(_) => of(&[image], image),
            // No row between the rows of a footprint is read.
            Whole::Windowed(Sliding { how: Windowed::Rank(_), .. }) => of(&[image], image).at_most(),
            Whole::Windowed(_) => of(&[image], image),
            Whole::RowReduce(how) => {
                let operand = (one, DType::F64);
                let inputs = if how.has_operand() { vec![image, operand] } else { vec![image] };
                of(&inputs, (with(how.columns()), how.result(DType::F32)))
            }
            Whole::Running(_) | Whole::RunningDepth(_) => of(&[image], (shape, DType::F64)),
            Whole::Fold(how) => of(&[image], (Shape::new(1, how.columns(), 1), DType::F32)),
            Whole::Tiles(Tiled { grid, reduce }) => {
                let to = Shape { height: height.div_ceil(grid.down), width: width.div_ceil(grid.across), ..shape };
                of(&[image], (to, reduce.result(DType::F32)))
            }
            Whole::Labels(how) => {
                let (rows, columns) = how.extent(height);
                of(&[labels, plane], (Shape::new(rows, columns, 1), DType::F64)).at_most()
            }
            Whole::Components(_) => of(&[plane], labels),
            Whole::Reconstruct(_) => of(&[plane, plane], plane),
            Whole::NearestOnLine(_) => of(&[image], (shape, DType::I32)),
            Whole::NearestPixel(_) => of(&[(shape, DType::I32)], (shape, DType::I32)),
            Whole::Histogram(how) => of(&[image], (Shape::new(1, how.bins, 1), DType::F64)),
        });
    }
    let filter = Filter::sparse([(-3, 0), (0, -2), (0, 0), (1, 1)], [1.0; 4]);
    let around = |op: Op| Case::of(op, &[image], image);
    // If a filter reads only distant rows, those in between are read as well.
    all.push(around(Op::Correlate(filter, border)).at_most());
    let (row, column) = (Filter::row([1.0; 5]), Filter::column([1.0; 3]));
    all.push(around(Op::Separable { row, column, border }));
    all.push(around(Op::Order(MedianSize::Five.into(), border)));
    let window = Filter::sparse([(0, 0), (-2, 0), (2, 1), (-1, 0), (1, 0)], [0.5, 0.1, 0.1, 0.2, 0.2]);
    all.push(around(Op::Order(Truncated { window, pairing: Pairing::Sum, levels: None }.into(), border)).at_most());
    all.push(around(Op::Flip(Flip::Vertical)));
    all.push(around(Op::Planes(PlaneMap::one(1))));
    for how in Interpolation::ALL {
        let map = Affine::new(rotation(33.0, shape), shape).unwrap();
        all.push(around(Op::Warp(map, how, border.into())).at_most());
    }
    all
}

fn hull(pixels: impl Iterator<Item = [isize; 2]>) -> Rect {
    let none = Rect { rows: Window::new(0, 0), columns: Window::new(0, 0) };
    let one = |[y, x]: [isize; 2]| Rect { rows: Window::new(y, y + 1), columns: Window::new(x, x + 1) };
    pixels.fold(none, |all, pixel| all.hull(one(pixel)))
}

fn check(case: &Case, name: &str) {
    let mut graph = Graph::<Op>::default();
    let node = |op: Op, inputs: Vec<NodeId>, (shape, dtype): Extent| Node {
        op,
        inputs,
        shape,
        dtype,
        site: Location::caller().into(),
    };
    let given = case.inputs.iter().enumerate();
    let sources: Vec<NodeId> =
        given.map(|(k, e)| graph.push(node(Op::Source(ValueId(k as u64)), Vec::new(), *e))).collect();
    let root = graph.push(node(case.op.clone(), sources.clone(), case.output));
    graph.roots = vec![root];
    let kernel = lower(graph.clone()).nodes.pop().unwrap().op;
    let geometry = |(shape, dtype): Extent| Geometry { shape, dtype, window: Window::whole(shape.height) };
    let images: Vec<HostImage> =
        case.inputs.iter().enumerate().map(|(k, e)| HostImage::random(geometry(*e), k as u64 + 7)).collect();
    let (out, over_input) = (case.output.0, kernel.goes_over_input());
    let launched = if over_input { case.inputs[0].0.height } else { out.height };
    let mut whole = HostImage::zeroed(geometry(case.output));
    let written = recorded(&kernel, &images, &mut whole, Window::whole(launched));
    assert!(!written.is_empty(), "{name}");
    let parts = |n: usize| {
        let n = n.cast_signed();
        (0..n).flat_map(move |a| (a + 1..=n).map(move |b| Window::new(a, b)))
    };
    for rows in parts(launched).filter(|w| kernel.distribution() != Distribution::Whole || w.len() == launched) {
        let mut part = HostImage::zeroed(geometry(case.output));
        for (k, (shape, _)) in case.inputs.iter().enumerate() {
            let footprint = kernel.footprint(k, rows, out, *shape);
            let launch = recorded(&kernel, &images, &mut part, rows);
            let read = hull(launch.iter().flat_map(|(_, r)| r.iter()).filter(|p| p.0 == k).map(|p| p.1)).rows;
            let fits = if case.exact { footprint == read } else { footprint.covers(read) };
            assert!(fits, "{name}: rows {rows} read rows {read} of input {k}, told are {footprint}");
        }
        if !over_input {
            let size = case.output.1.size() * out.line();
            let at = |y: usize, p: usize| (p * out.height + y) * size..(p * out.height + y + 1) * size;
            let lines = (rows.start.cast_unsigned()..rows.end.cast_unsigned())
                .flat_map(|y| (0..out.planes()).map(move |p| (y, p)));
            for (y, p) in lines {
                assert_eq!(part.bytes[at(y, p)], whole.bytes[at(y, p)], "{name}: row {y} of {rows}");
            }
        }
    }
    // These definitions read rows, and all labels, before they write the first pixel.
    if over_input || matches!(case.op, Op::Whole(Whole::Running(_) | Whole::Labels(_))) {
        return;
    }
    let of_pixel = |k: usize| -> Vec<([isize; 2], Rect)> {
        let read = |r: &[PixelRead]| hull(r.iter().filter(|p| p.0 == k).map(|p| p.1));
        written.iter().map(|(at, r)| (*at, read(r))).collect()
    };
    let hulls: Vec<_> = (0..sources.len()).map(of_pixel).collect();
    for rows in parts(out.height) {
        for columns in parts(out.width) {
            let need = Rect { rows, columns };
            let needed = needs(&graph, &[need]);
            for (k, source) in sources.iter().enumerate() {
                let inside = hulls[k].iter().filter(|(at, _)| rows.contains(at[0]) && columns.contains(at[1]));
                let read = inside.fold(hull(std::iter::empty()), |all, (_, one)| all.hull(*one));
                let told = needed[source.0].unwrap();
                assert!(told.covers(read), "{name}: {need} reads {read} of input {k}, told is {told}");
            }
        }
    }
}

#[test]
fn footprints_are_what_definitions_read() {
    for border in BORDERS {
        for (height, width) in SHAPES {
            for case in cases(height, width, border) {
                check(&case, &format!("{} of {height}x{width} {border}", case.op.name()));
            }
        }
    }
}
