//! Reads of other planes, and concatenated images.

use horus_core::dtype::DType;
use horus_core::ir::graph::{NodeId, Op};
use horus_core::ops::geometric::Flip;
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, Reduce};
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::planes::PlaneMap;
use horus_core::ops::reduce::RowReduce;
use horus_core::ops::{Deinterleave, Histogram, Interleave, Merge, RunningDepth};
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::cases::covering;

use crate::harness::{ConformanceProgram, RunConfiguration, conforms, image};

const VOLUMES: [Shape; 6] = [
    Shape::volume(1, 7, 5, 1),
    Shape::volume(2, 1, 1, 1),
    Shape::volume(5, 9, 13, 1),
    Shape::volume(3, 7, 40, 2),
    Shape::volume(17, 3, 33, 1),
    Shape::volume(4, 23, 130, 3),
];

fn borders() -> [Border; 5] {
    Border::all(3.25)
}

/// Levels `step * z + offset` of `a`, in `depth` levels.
fn levels(p: &mut ConformanceProgram, a: NodeId, depth: usize, step: i32, offset: i32, border: Border) -> NodeId {
    let (shape, dtype) = (p.graph.node(a).shape, p.graph.node(a).dtype);
    let map = PlaneMap::levels(shape, shape.channels, step, offset, border);
    p.op(Op::Planes(map), &[a], Shape { depth, ..shape }, dtype)
}

#[test]
fn levels_of_every_type_through_every_border() {
    for [dtype, shape, border] in covering([DType::ALL.len(), VOLUMES.len(), borders().len()]) {
        let (dtype, shape, border) = (DType::ALL[dtype], VOLUMES[shape], borders()[border]);
        let mut p = ConformanceProgram::default();
        let a = p.source(image(shape, dtype, 12));
        let mut roots = Vec::new();
        for (depth, step, offset) in [(shape.depth, 1, -1), (shape.depth, 1, 4), (3, -2, 5), (2, 0, -1)] {
            roots.push(levels(&mut p, a, depth, step, offset, border));
        }
        // Read by pixel operations, whose results are not copies.
        let (up, down) = (levels(&mut p, a, shape.depth, 1, 1, border), roots[0]);
        let sum = p.pixel(PixelOp::Add, &[up, down]);
        roots.push(p.pixel(PixelOp::AbsDiff, &[sum, a]));
        conforms(&p.wanted(&roots), &RunConfiguration::some(), &format!("levels {border} {dtype} {shape}"));
    }
}

#[test]
fn channels_slices_and_stacks() {
    for dtype in DType::ALL {
        for shape in VOLUMES {
            let mut p = ConformanceProgram::default();
            let a = p.source(image(shape, dtype, 5));
            let b = p.source(image(shape, dtype, 6));
            let last = shape.channels - 1;
            let plane = Shape { channels: 1, ..shape };
            let channel = p.op(Op::Planes(PlaneMap::channel(shape, last)), &[a], plane, dtype);
            let slice = levels(&mut p, a, 1, 0, shape.depth as i32 - 1, Border::Replicate);
            let repeated = levels(&mut p, slice, 3, 0, 0, Border::Replicate);
            let mut roots = vec![channel, slice, repeated];
            let channels = shape.with_extent(Axis::Channels, 2 * shape.channels + 1);
            roots.push(p.op(Op::from(Merge), &[a, channel, b], channels, dtype));
            let deep = shape.with_extent(Axis::Depth, 2 * shape.depth + 1);
            roots.push(p.op(Op::from(Merge), &[a, slice, b], deep, dtype));
            roots.push(p.op(Op::from(RunningDepth), &[a], shape, DType::F64));
            conforms(&p.wanted(&roots), &RunConfiguration::some(), &format!("stacks {dtype} {shape}"));
        }
    }
}

#[test]
fn samples_in_both_orders() {
    for [dtype, shape, channels] in covering([DType::ALL.len(), VOLUMES.len(), 5]) {
        let (dtype, channels) = (DType::ALL[dtype], channels + 1);
        let shape = Shape { channels, ..VOLUMES[shape] };
        let mut p = ConformanceProgram::default();
        let (samples, planes) = (p.source(image(shape.interleaved(), dtype, 7)), p.source(image(shape, dtype, 8)));
        let split = p.op(Op::from(Deinterleave), &[samples], shape, dtype);
        let join = p.op(Op::from(Interleave), &[planes], shape.interleaved(), dtype);
        // Read by other operations, and computed before.
        let sum = p.pixel(PixelOp::Add, &[split, planes]);
        let turned = p.like(Op::Flip(Flip::Both), sum);
        let back = p.op(Op::from(Interleave), &[turned], shape.interleaved(), dtype);
        let rows = p.like(Op::Flip(Flip::Vertical), join);
        let both = p.pixel(PixelOp::Max, &[back, rows]);
        // Computed on interleaved pixels from end to end.
        let other = p.source(image(shape.interleaved(), dtype, 9));
        let other = p.op(Op::from(Deinterleave), &[other], shape, dtype);
        let scaled = p.pixel_const(PixelOp::Mul, other, &[3.0]);
        let split_again = p.op(Op::from(Deinterleave), &[samples], shape, dtype);
        let larger = p.pixel(PixelOp::Max, &[scaled, split_again]);
        let wide = p.convert(larger, DType::F64);
        let end = p.op(Op::from(Interleave), &[wide], shape.interleaved(), DType::F64);
        conforms(&p.wanted(&[split, join, both, end]), &RunConfiguration::some(), &format!("orders {dtype} {shape}"));
    }
}

/// Channels of interleaved pixels that are weighed, compared, moved and stacked again, without planes where nothing else needs them.
#[test]
fn samples_are_read_and_made_one_by_one() {
    for [dtype, shape, channels, more] in covering([DType::ALL.len(), VOLUMES.len(), 4, 3]) {
        let (dtype, channels) = (DType::ALL[dtype], channels + 2);
        let shape = Shape { channels, ..VOLUMES[shape] };
        let plane = Shape { channels: 1, ..shape };
        let mut p = ConformanceProgram::default();
        let samples = p.source(image(shape.interleaved(), dtype, 7));
        let split = p.op(Op::from(Deinterleave), &[samples], shape, dtype);
        let of = |p: &mut ConformanceProgram, c: usize| {
            p.op(Op::Planes(PlaneMap::channel(shape, c)), &[split], plane, dtype)
        };
        let all: Vec<NodeId> = (0..channels).map(|c| of(&mut p, c)).collect();
        let (first, last) = (all[0], all[channels - 1]);
        let wide = [first, last].map(|c| p.convert(c, DType::F32));
        let grey = p.pixel(PixelOp::Add, &wide);
        let most = p.pixel(PixelOp::Max, &[first, last]);
        let least = p.pixel(PixelOp::Min, &[first, last]);
        let range = p.pixel(PixelOp::AbsDiff, &[most, least]);
        let mut parts = vec![range, most];
        parts.extend(all.iter().skip(2).rev().copied());
        let stacked = p.op(Op::from(Merge), &parts, shape, dtype);
        let mixed = p.op(Op::from(Interleave), &[stacked], shape.interleaved(), dtype);
        let mut roots = vec![grey, mixed];
        match more {
            // Of each channel, and of all of them.
            0 => {
                for how in [RowReduce::Sum, RowReduce::Extremes] {
                    let rows = Shape { width: how.columns(), ..shape };
                    roots.push(p.op(Op::from(how), &[split], rows, how.result(dtype)));
                }
                let bins = Histogram::new(9, -10.0, 100.0);
                roots.push(p.op(Op::from(bins), &[split], Shape::new(1, 9, 1), DType::F64));
            }
            // Planes are needed as well.
            1 => roots.push(p.like(Op::Flip(Flip::Both), split)),
            // One of the channels is, and a filter reads another.
            2 => {
                let filter = Generalized {
                    window: Filter::dense(3, 3, vec![0.0; 9]),
                    combine: Combine::Pixel,
                    reduce: Reduce::Max,
                };
                let largest = p.like(Op::OrderFilter(filter.into(), Border::Wrap), most);
                let of_image =
                    p.op(Op::from(Merge), &[split, largest], Shape { channels: channels + 1, ..shape }, dtype);
                let shape = p.graph.node(of_image).shape.interleaved();
                roots.extend([last, p.op(Op::from(Interleave), &[of_image], shape, dtype)]);
            }
            _ => {}
        }
        conforms(&p.wanted(&roots), &RunConfiguration::some(), &format!("samples {dtype} {shape} {more}"));
    }
}

#[test]
fn planes_are_read_beside_and_below_filters() {
    let dtype = DType::F32;
    for shape in VOLUMES {
        for border in borders() {
            let mut p = ConformanceProgram::default();
            let a = p.source(image(shape, dtype, 3));
            let up = levels(&mut p, a, shape.depth, 1, 1, border);
            let down = levels(&mut p, a, shape.depth, 1, -1, border);
            let star = Filter::sparse([(-1, 0), (0, -1), (0, 1), (1, 0)], [1.0; 4]);
            let around = p.like(Op::Correlate(star, border), a);
            let ends = p.pixel(PixelOp::Add, &[up, down]);
            // Six neighbours; and filters of a sum of levels.
            let six = p.pixel(PixelOp::Add, &[around, ends]);
            let smooth =
                p.like(Op::Correlate(Filter::dense(3, 3, (1..10).map(f64::from).collect::<Vec<_>>()), border), ends);
            let turned = p.like(Op::Flip(Flip::Both), up);
            let apart = p.pixel(PixelOp::Sub, &[up, a]);
            let rows = Shape { width: RowReduce::Sum.columns(), ..shape };
            let sums = p.op(Op::from(RowReduce::Sum), &[apart], rows, DType::F64);
            let roots = p.wanted(&[six, smooth, turned, sums]);
            conforms(&roots, &RunConfiguration::some(), &format!("stencils {border} {shape}"));
        }
    }
}
