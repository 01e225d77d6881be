//! Regions of random programs: every pixel has the same bits as in the whole, on every number of
//! ranks.

use horus_core::dispatch;
use horus_core::dtype::DType;
use horus_core::ir::graph::{Op, PixelOpOperand, ValueId};
use horus_core::ops::geometric::{Affine, Interpolation, rotation};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::plan::partition::Partition;
use horus_core::region::{CropRule, InPlace, Rect, RegionSupply, RestrictedGraph, narrow, restrict};
use horus_core::shape::{Border, Shape};
use horus_testing::reference::{self, ReferenceImage};
use proptest::prelude::*;

use crate::draw::Draw;
use crate::harness::{ConformanceProgram, RunConfiguration, image, run_divided};
use crate::programs::config;
use crate::wide::{program, steps};

/// Region `region` of an image.
fn cut(image: &ReferenceImage, region: Rect) -> ReferenceImage {
    let [top, left] = region.corner().map(isize::cast_unsigned);
    dispatch!(image.dtype(), T => ReferenceImage::from_fn::<T>(region.shape(image.shape), |p, y, x| {
        image.at::<T>(p, y + top, x + left * image.shape.samples)
    }))
}

/// Regions of sources as separate images.
struct SourceRegions<'a> {
    whole: &'a [ReferenceImage],
    parts: Vec<ReferenceImage>,
}

impl SourceRegions<'_> {
    fn add(&mut self, image: ReferenceImage) -> Option<ValueId> {
        self.parts.push(image);
        Some(ValueId(self.parts.len() as u64 - 1))
    }
}

impl RegionSupply for SourceRegions<'_> {
    fn source(&mut self, value: ValueId, region: Rect) -> Option<ValueId> {
        let part = cut(&self.whole[value.0 as usize], region);
        self.add(part)
    }

    fn number(&mut self, n: i32) -> Option<ValueId> {
        self.add(ReferenceImage::new(Shape::new(1, 1, 1), vec![n]))
    }
}

fn some_region(shape: Shape, d: &mut Draw<'_>) -> Rect {
    let mut part = |n: usize| match d.below(4) {
        0 => (0, 1 + d.below(n)),
        1 => {
            let size = 1 + d.below(n);
            (n - size, size)
        }
        _ => {
            let from = d.below(n);
            (from, 1 + d.below(n - from))
        }
    };
    let ((top, height), (left, width)) = (part(shape.height), part(shape.width));
    Rect::at(top, left, height, width)
}

/// Checks regions of a program's roots, evaluated by `run` from the program made for them.
fn holds(p: &ConformanceProgram, regions: &[Rect], run: &mut dyn FnMut(&ConformanceProgram) -> Vec<ReferenceImage>) {
    let whole = reference::evaluate(&p.graph, &|v| p.sources[v.0 as usize].clone());
    for (cutting, supplied) in [(CropRule::Always, false), (CropRule::Much, true), (CropRule::Never, true)] {
        let mut supply = SourceRegions { whole: &p.sources, parts: Vec::new() };
        let supplier: &mut dyn RegionSupply = if supplied { &mut supply } else { &mut InPlace };
        let RestrictedGraph { graph, roots } = restrict(&p.graph, regions, cutting, supplier);
        let sources = if supplied { supply.parts } else { p.sources.clone() };
        let part = ConformanceProgram { graph, sources, interleaved: false };
        for (i, (got, (whole, (has, asked)))) in
            run(&part).iter().zip(whole.iter().zip(roots.iter().zip(regions))).enumerate()
        {
            assert!(has.covers(*asked), "root {i} has {has} instead of {asked}");
            let [y, x] = [0, 1].map(|k| (asked.corner()[k] - has.corner()[k]).cast_unsigned());
            let inside = Rect::at(y, x, asked.rows.len(), asked.columns.len());
            assert!(
                cut(got, inside) == cut(whole, *asked),
                "root {i}, {asked}, {cutting:?}\n{}\nrestricted\n{}",
                p.graph,
                part.graph
            );
        }
    }
}

fn by_reference(p: &ConformanceProgram) -> Vec<ReferenceImage> {
    reference::evaluate(&p.graph, &|v| p.sources[v.0 as usize].clone())
}

fn drawn(p: &ConformanceProgram, numbers: &[u8]) -> Vec<Rect> {
    let mut d = Draw::new(numbers);
    p.graph.roots.iter().map(|r| some_region(p.graph.node(*r).shape, &mut d)).collect()
}

proptest! {
    #![proptest_config(config(3 * crate::RANDOM_PROGRAMS))]

    #[test]
    fn regions_of_random_programs_are_those_of_the_whole(
        height in 1usize..24,
        width in 1usize..30,
        channels in prop_oneof![3 => Just(1usize), 1 => 2usize..4],
        dtypes in any::<[u8; 2]>(),
        steps in prop_oneof![3 => steps(1..16), 1 => steps(16..40)],
        seed in any::<u64>(),
        regions in any::<[u8; 24]>(),
    ) {
        let p = program(Shape::new(height, width, channels), dtypes.map(usize::from), &steps, seed);
        let regions = drawn(&p, &regions);
        holds(&p, &regions, &mut by_reference);
        let narrowed = ConformanceProgram { graph: narrow(p.graph.clone()), ..p.clone() };
        prop_assert!(by_reference(&narrowed) == by_reference(&p), "{}", narrowed.graph);
    }
}

proptest! {
    #![proptest_config(config(crate::RANDOM_PROGRAMS / 2))]

    #[test]
    fn regions_of_random_programs_on_any_number_of_ranks(
        height in 1usize..24,
        width in 1usize..30,
        dtypes in any::<[u8; 2]>(),
        steps in steps(1..16),
        seed in any::<u64>(),
        regions in any::<[u8; 24]>(),
        place in any::<u8>(),
    ) {
        let p = program(Shape::new(height, width, 1), dtypes.map(usize::from), &steps, seed);
        let regions = drawn(&p, &regions);
        let all = RunConfiguration::all();
        let place = all[usize::from(place) % all.len()];
        holds(&p, &regions, &mut |part| run_divided(part, place, &Partition::equal(place.ranks)));
    }
}

/// Pixels of the largest node of a program.
fn pixels(p: &RestrictedGraph) -> usize {
    p.graph.nodes.iter().map(|n| n.shape.len()).max().unwrap_or(0)
}

#[test]
fn little_is_read_of_what_a_region_does_not_need() {
    let shape = Shape::new(400, 500, 1);
    let mut p = ConformanceProgram::default();
    let a = p.source(image(shape, DType::F32, 1));
    let row = Filter::row(vec![0.1; 9]);
    let column = Filter::column(vec![0.1; 9]);
    let smooth = p.like(Op::Separable { row, column, border: Border::Reflect101 }, a);
    let map = Affine::new(rotation(30.0, shape), shape).unwrap();
    let turned = p.like(Op::Warp(map, Interpolation::Bilinear, Border::Constant(0.0).into()), smooth);
    let index = p.op(Op::Index(horus_core::shape::Axis::Columns), &[], shape, DType::F32);
    let sum = Op::Pixel(PixelOp::Add, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]);
    let sum = p.op(sum, &[turned, index], shape, DType::F32);
    let p = p.wanted(&[sum]);
    let region = Rect::at(200, 250, 16, 20);
    let mut supply = SourceRegions { whole: &p.sources, parts: Vec::new() };
    let part = restrict(&p.graph, &[region], CropRule::Always, &mut supply);
    assert!(pixels(&part) < 45 * 45, "{}", part.graph);
    holds(&p, &[region], &mut by_reference);
    // A region of the same extent elsewhere is the same program, except for the origin of a
    // rotation.
    let other = |top, left| {
        let mut supply = SourceRegions { whole: &p.sources, parts: Vec::new() };
        restrict(&p.graph, &[Rect::at(top, left, 16, 20)], CropRule::Always, &mut supply).graph
    };
    let kinds = |g: &horus_core::ir::graph::Graph<Op>| g.nodes.iter().map(|n| n.op.kind()).collect::<Vec<_>>();
    assert_eq!(kinds(&other(200, 250)), kinds(&other(150, 100)));
}

#[test]
fn what_a_sum_reads_is_not_computed_again_for_a_region() {
    let shape = Shape::new(64, 80, 1);
    let mut p = ConformanceProgram::default();
    let a = p.source(image(shape, DType::F64, 1));
    let smooth = p.like(Op::Correlate(Filter::dense(3, 3, vec![0.2; 9]), Border::Wrap), a);
    let rows = p.op(Op::from(RowReduce::Max), &[smooth], Shape::new(64, 1, 1), DType::F64);
    let most = p.op(Op::from(Fold::Max), &[rows], Shape::new(1, 1, 1), DType::F64);
    let still = Affine { xx: 0, xy: 0, x0: 0, yx: 0, yy: 0, y0: 0 };
    let most = p.op(Op::Warp(still, Interpolation::Nearest, Border::Replicate.into()), &[most], shape, DType::F64);
    let unit = p.pixel(PixelOp::Div, &[smooth, most]);
    let unit = p.pixel_const(PixelOp::Mul, unit, &[255.0]);
    let p = p.wanted(&[unit]);
    let region = Rect::at(10, 10, 8, 8);
    let part = restrict(&p.graph, &[region], CropRule::Always, &mut InPlace);
    let whole = part.graph.nodes.iter().filter(|n| n.shape == shape && !matches!(n.op, Op::Source(_))).count();
    assert_eq!(whole, 1, "the filter alone:\n{}", part.graph);
    holds(&p, &[region], &mut by_reference);
}
