//! Footprints of kernels against the pixels that their definitions read.

use std::panic::Location;

use horus_base::dtype::DType;
use horus_base::shape::{Border, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use horus_plan::ir::kernel::Distribution;
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_plan::ops::neighbourhood::{Filter, MedianSize, Pairing, Truncated};
use horus_plan::ops::operation::ImageExtent;
use horus_plan::ops::planes::PlaneMap;
use horus_plan::ops::{Instance, SampleImages, Whole, samples};
use horus_plan::optimize::lower::lower;
use horus_plan::region::{Rect, required_regions};
use horus_testing::reference::kernel::HostImage;
use horus_testing::reference::reads::{PixelRead, record_accesses};

const BORDERS: [Border; 5] = Border::all(1.0);
const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 7), (6, 1), (5, 4), (9, 7)];

/// An operation on images of these extents.
struct FootprintCase {
    op: Op,
    inputs: Vec<ImageExtent>,
    output: ImageExtent,
    /// Set if the footprint is minimal; otherwise it may be larger.
    exact: bool,
}

impl FootprintCase {
    fn of(op: impl Into<Op>, inputs: &[ImageExtent], output: ImageExtent) -> FootprintCase {
        FootprintCase { op: op.into(), inputs: inputs.to_vec(), output, exact: true }
    }

    fn at_most(self) -> FootprintCase {
        FootprintCase { exact: false, ..self }
    }
}

/// Operations with reads around their pixels or elsewhere: the samples of whole-image operations, and others.
fn cases(height: usize, width: usize, border: Border) -> Vec<FootprintCase> {
    let shape = Shape::volume(2, height, width, 2);
    let image = (shape, DType::F32);
    let samples = samples(SampleImages::of(shape, DType::F32, border)).into_iter();
    let mut all: Vec<FootprintCase> = samples
        .map(|Instance { operation, inputs, output, exact }| FootprintCase {
            op: operation.into(),
            inputs,
            output,
            exact,
        })
        .collect();
    let filter = Filter::sparse([(-3, 0), (0, -2), (0, 0), (1, 1)], [1.0; 4]);
    let around = |op: Op| FootprintCase::of(op, &[image], image);
    // If a filter reads only distant rows, those in between are read as well.
    all.push(around(Op::Correlate(filter, border)).at_most());
    let (row, column) = (Filter::row([1.0; 5]), Filter::column([1.0; 3]));
    all.push(around(Op::Separable { row, column, border }));
    all.push(around(Op::OrderFilter(MedianSize::Five.into(), border)));
    let window = Filter::sparse([(0, 0), (-2, 0), (2, 1), (-1, 0), (1, 0)], [0.5, 0.1, 0.1, 0.2, 0.2]);
    all.push(
        around(Op::OrderFilter(Truncated { window, pairing: Pairing::Sum, levels: None }.into(), border)).at_most(),
    );
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

fn check(case: &FootprintCase, name: &str) {
    let mut graph = Graph::<Op>::default();
    let node = |op: Op, inputs: Vec<NodeId>, (shape, dtype): ImageExtent| Node {
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
    let geometry = |(shape, dtype): ImageExtent| Geometry { shape, dtype, window: Window::whole(shape.height) };
    let images: Vec<HostImage> =
        case.inputs.iter().enumerate().map(|(k, e)| HostImage::random(geometry(*e), k as u64 + 7)).collect();
    let (out, over_input) = (case.output.0, kernel.goes_over_input());
    let launched = if over_input { case.inputs[0].0.height } else { out.height };
    let mut whole = HostImage::zeroed(geometry(case.output));
    let written = record_accesses(&kernel, &images, &mut whole, Window::whole(launched));
    assert!(!written.is_empty(), "{name}");
    let parts = |n: usize| {
        let n = n.cast_signed();
        (0..n).flat_map(move |a| (a + 1..=n).map(move |b| Window::new(a, b)))
    };
    for rows in parts(launched).filter(|w| kernel.distribution() != Distribution::Whole || w.len() == launched) {
        let mut part = HostImage::zeroed(geometry(case.output));
        for (k, (shape, _)) in case.inputs.iter().enumerate() {
            let footprint = kernel.footprint(k, rows, out, *shape);
            let launch = record_accesses(&kernel, &images, &mut part, rows);
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
            let needed = required_regions(&graph, &[need]);
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
