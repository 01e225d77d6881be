//! Programs that once failed, as their tests printed them, and the test that prints them.
//!
//! A program that a test of random programs finds is a function here, in [`KEPT`]: a seed would be
//! another program as soon as the generator changes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use horus_core::dtype::{Conversion, DType, Scalar};
use horus_core::ir::graph::{Node, NodeId, Op, PixelOpOperand};
use horus_core::ops::components::Connectivity;
use horus_core::ops::distance::{JoinedOffsets, Metric, NearestOnLine, NearestPixel, NearestResult, Spacing};
use horus_core::ops::edge::{InsidePixels, WarpEdge, WarpPositions};
use horus_core::ops::geometric::{Affine, Flip, Interpolation};
use horus_core::ops::labels::LabelReduce;
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Pairing, Reach, Reduce, Truncated};
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::planes::PlaneMap;
use horus_core::ops::reconstruction::Reconstruction;
use horus_core::ops::reduce::{Fold, RowReduce};
use horus_core::ops::resize::{Resampling, ResizedLines};
use horus_core::ops::sampling::Sampling;
use horus_core::ops::tiles::{Grid, TileReduce};
use horus_core::ops::windowed::{BoxMean, FootprintSpan, Ranked, Windowed};
use horus_core::ops::{
    Components, Fourier, Histogram, Lookup, MatrixProduct, Merge, Remap, Resize, Running, RunningDepth, Sliding, Thin,
    Tiled, Transpose,
};
use horus_core::plan::partition::Partition;
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::reference::{self, ReferenceImage};

use crate::harness::printed::printed;
use crate::harness::{ConformanceProgram, RunConfiguration, compare, conforms, image, run_divided};
use crate::random::{self, RandomStep};

type FoundProgram = (&'static str, fn() -> ConformanceProgram);

/// The programs, by name.
const KEPT: &[FoundProgram] = &[
    ("each_operation", each_operation),
    ("a_wrong_border", a_wrong_border),
    ("a_maximum_of_a_median", a_maximum_of_a_median),
    ("a_minimum_of_a_known_zero", a_minimum_of_a_known_zero),
    ("a_negated_threshold", a_negated_threshold),
    ("two_results_that_are_one", two_results_that_are_one),
    ("a_map_beside_a_wrapped_filter", a_map_beside_a_wrapped_filter),
    ("a_map_of_all_rows_beside_a_wrapped_filter", a_map_of_all_rows_beside_a_wrapped_filter),
    ("a_pixel_repeated_beside_a_wrapped_filter", a_pixel_repeated_beside_a_wrapped_filter),
    ("a_transpose_before_a_wrapped_rank", a_transpose_before_a_wrapped_rank),
];

/// Each kind of operation once: not found, but printed like those that are.
#[rustfmt::skip]
fn each_operation() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(4, 5, 1), DType::F32, 0));
    let v1 = p.source(ReferenceImage::new::<u8>(Shape::new(1, 2, 1), vec![7, 200]));
    let v2 = p.op(Op::Fill(Scalar::F32(0.5)), &[], Shape::new(4, 5, 1), DType::F32);
    let v3 = p.op(Op::Index(Axis::Columns), &[], Shape::new(4, 5, 1), DType::F32);
    let v4 = p.op(Op::Pixel(PixelOp::Add, vec![PixelOpOperand::Input(0), PixelOpOperand::Const(Scalar::F32(-0.0))]), &[v0], Shape::new(4, 5, 1), DType::F32);
    let v5 = p.op(Op::Pixel(PixelOp::Lt, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]), &[v3, v2], Shape::new(4, 5, 1), DType::Bool);
    let v6 = p.op(Op::Pixel(PixelOp::Select, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1), PixelOpOperand::Input(2)]), &[v5, v4, v3], Shape::new(4, 5, 1), DType::F32);
    let v7 = p.op(Op::Convert(Conversion::Nearest), &[v6], Shape::new(4, 5, 1), DType::U8);
    let v8 = p.op(Op::Planes(PlaneMap { channels: 1, depth: 1, stride: 1, channel: None, step: 0, offset: 0, border: Border::Replicate }), &[v0], Shape::new(4, 5, 1), DType::F32);
    let v9 = p.op(Op::Correlate(Filter::sparse(vec![(0, 1), (-2, 0)], vec![0.5, -1.0]), Border::Constant(1.25)), &[v8], Shape::new(4, 5, 1), DType::F32);
    let v10 = p.op(Op::Separable { row: Filter::dense(1, 3, vec![0.25, 0.5, 0.25]), column: Filter::dense(2, 1, vec![1.0, -1.0]), border: Border::Wrap }, &[v0], Shape::new(4, 5, 1), DType::F32);
    let v11 = p.op(Op::OrderFilter(MedianSize::Three.into(), Border::Reflect), &[v9], Shape::new(4, 5, 1), DType::F32);
    let v12 = p.op(Op::OrderFilter(Generalized { window: Filter::dense(1, 2, vec![1.0, 2.0]), combine: Combine::Add, reduce: Reduce::Max }.into(), Border::Reflect101), &[v10], Shape::new(4, 5, 1), DType::F32);
    let v13 = p.op(Op::Warp(Affine { xx: 4294967296, xy: 0, x0: 1073741824, yx: 0, yy: 4294967296, y0: 0 }, Interpolation::Bilinear, WarpEdge::Inside(InsidePixels { origin: [0, 0], along: [WarpPositions { before: [0.0, 0.0], per: [1.0, 0.0], offset: 0.0, last: 3.0 }, WarpPositions { before: [0.0, 0.0], per: [0.0, 1.0], offset: 0.25, last: 4.0 }], value: 2.5 })), &[v11], Shape::new(4, 5, 1), DType::F32);
    let v14 = p.op(Op::Warp(Affine { xx: 4294967296, xy: 0, x0: 1073741824, yx: 0, yy: 4294967296, y0: 0 }, Interpolation::Bicubic, Border::Wrap.into()), &[v12], Shape::new(4, 5, 1), DType::F32);
    let v15 = p.op(Op::Flip(Flip::Both), &[v14], Shape::new(4, 5, 1), DType::F32);
    let v16 = p.op(Op::from(Merge), &[v13, v15], Shape::new(4, 5, 2), DType::F32);
    let v17 = p.op(Op::from(Transpose), &[v0], Shape::new(5, 4, 1), DType::F32);
    let v18 = p.source(image(Shape::new(1, 256, 1), DType::F32, 1));
    let v19 = p.op(Op::from(Lookup), &[v7, v18], Shape::new(4, 5, 1), DType::F32);
    let v20 = p.op(Op::from(Remap { sampling: Sampling::Linear, border: Border::Reflect, outside: None }), &[v0, v3, v19], Shape::new(4, 5, 1), DType::F32);
    let v21 = p.op(Op::from(Resize { how: Resampling::Triangle, rows: ResizedLines { from: 4, of: 4, to: 3, first: 0 }, columns: ResizedLines { from: 5, of: 5, to: 7, first: 0 } }), &[v20], Shape::new(3, 7, 1), DType::F32);
    let v22 = p.op(Op::from(Fourier { across: None, origin: [0, 0], ..Fourier::of([Filter::dense(3, 3, vec![0.125, 0.25, 0.125, 0.25, 0.5, 0.25, 0.125, 0.25, 0.125])], Border::Replicate, [16, 16]) }), &[v0], Shape::new(4, 5, 1), DType::F32);
    let v23 = p.op(Op::from(Sliding { how: Windowed::Mean(BoxMean { reach: Reach { up: 1, down: 0, left: 2, right: 1 }, count: 8 }), border: Border::Wrap }), &[v19], Shape::new(4, 5, 1), DType::F32);
    let v24 = p.op(Op::from(Sliding { how: Windowed::Rank(Ranked { spans: [FootprintSpan { z: 0, y: 0, from: -1, to: 2 }].into(), place: 1 }), border: Border::Reflect }), &[v22], Shape::new(4, 5, 1), DType::F32);
    let v25 = p.op(Op::from(RowReduce::Sum), &[v23], Shape::new(4, 1, 1), DType::F64);
    let v26 = p.op(Op::from(Fold::Sum), &[v25], Shape::new(1, 1, 1), DType::F64);
    let v27 = p.op(Op::from(Running), &[v24], Shape::new(4, 5, 1), DType::F64);
    let v28 = p.op(Op::from(RunningDepth), &[v27], Shape::new(4, 5, 1), DType::F64);
    let v29 = p.op(Op::from(Tiled { grid: Grid { height: 2, width: 3, down: 2, across: 3 }, reduce: TileReduce::Max }), &[v0], Shape::new(2, 2, 1), DType::F32);
    let v30 = p.op(Op::from(LabelReduce::Sum { count: 3, squares: false, of: DType::F32 }), &[v7, v0], Shape::new(3, 17, 1), DType::F64);
    let v31 = p.op(Op::from(LabelReduce::Max { count: 3, block: 32 }), &[v7, v0], Shape::new(1, 3, 1), DType::F64);
    let v32 = p.op(Op::from(Components::labels(Connectivity::EDGES)), &[v7], Shape::new(4, 5, 1), DType::I32);
    let v33 = p.op(Op::from(NearestOnLine { along: Axis::Rows }), &[v7], Shape::new(4, 5, 1), DType::I32);
    let v34 = p.op(Op::from(NearestPixel { along: Axis::Columns, offsets: JoinedOffsets { row_bits: 32 }, metric: Metric::Euclidean(Spacing::new([1.0, 2.5, 0.7])), found: NearestResult::Distance }), &[v33], Shape::new(4, 5, 1), DType::F32);
    let v35 = p.op(Op::from(NearestPixel { along: Axis::Columns, offsets: JoinedOffsets { row_bits: 32 }, metric: Metric::Taxicab, found: NearestResult::Row }), &[v33], Shape::new(4, 5, 1), DType::I32);
    let v36 = p.op(Op::from(Reconstruction { erosion: false, neighbours: Connectivity::FACES }), &[v34, v0], Shape::new(4, 5, 1), DType::F32);
    let v37 = p.op(Op::from(Histogram::new(4, -10.0, 200.0)), &[v1], Shape::new(1, 4, 1), DType::F64);
    let v38 = p.op(Op::from(MatrixProduct), &[v0, v17], Shape::new(4, 4, 1), DType::F32);
    let v39 = p.op(Op::OrderFilter(Truncated { window: Filter::sparse(vec![(0, 0), (0, -1), (0, 1)], vec![0.5, 0.25, 0.25]), pairing: Pairing::Sum, levels: None }.into(), Border::Replicate), &[v1], Shape::new(1, 2, 1), DType::U8);
    let v40 = p.op(Op::from(Thin), &[v7], Shape::new(4, 5, 1), DType::U8);
    p.wanted(&[v16, v17, v21, v26, v28, v29, v30, v31, v32, v35, v36, v37, v38, v39, v40])
}

/// The smallest program of the test below: what it prints compiles, as it is this.
#[rustfmt::skip]
fn a_wrong_border() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(1, 2, 1), DType::F32, 0));
    let v1 = p.op(Op::OrderFilter(MedianSize::Three.into(), Border::Reflect101), &[v0], Shape::new(1, 2, 1), DType::F32);
    p.wanted(&[v1])
}

/// The smallest program of the other test below.
#[rustfmt::skip]
fn a_maximum_of_a_median() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(1, 1, 1), DType::F32, 0));
    let v1 = p.op(Op::OrderFilter(MedianSize::Five.into(), Border::Wrap), &[v0], Shape::new(1, 1, 1), DType::F32);
    let v2 = p.op(Op::Pixel(PixelOp::Max, vec![PixelOpOperand::Input(0), PixelOpOperand::Const(Scalar::F32(1.5))]), &[v1], Shape::new(1, 1, 1), DType::F32);
    p.wanted(&[v2])
}

/// NVIDIA's compiler found that no pixel is above itself, and took the wrong zero.
#[rustfmt::skip]
fn a_minimum_of_a_known_zero() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(3, 1, 1), DType::F32, 0));
    let v1 = p.source(image(Shape::new(3, 1, 1), DType::F32, 0));
    let v2 = p.op(Op::Pixel(PixelOp::Threshold, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]), &[v0, v0], Shape::new(3, 1, 1), DType::F32);
    let v3 = p.op(Op::Pixel(PixelOp::Min, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]), &[v2, v1], Shape::new(3, 1, 1), DType::F32);
    p.wanted(&[v3])
}

/// NVIDIA's compiler negated a 0 to 0.
#[rustfmt::skip]
fn a_negated_threshold() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(1, 1, 1), DType::F32, 0));
    let v1 = p.source(image(Shape::new(1, 1, 1), DType::F32, 0));
    let v2 = p.op(Op::Pixel(PixelOp::Threshold, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]), &[v0, v1], Shape::new(1, 1, 1), DType::F32);
    let v3 = p.op(Op::Pixel(PixelOp::Neg, vec![PixelOpOperand::Input(0)]), &[v2], Shape::new(1, 1, 1), DType::F32);
    p.wanted(&[v3])
}

/// It was delivered twice, so that a plan without one delivery was right, too.
#[rustfmt::skip]
fn two_results_that_are_one() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(8, 3, 1), DType::U16, 0));
    let v1 = p.op(Op::Pixel(PixelOp::Sign, vec![PixelOpOperand::Input(0)]), &[v0], Shape::new(8, 3, 1), DType::U16);
    let v2 = p.op(Op::Pixel(PixelOp::Sign, vec![PixelOpOperand::Input(0)]), &[v0], Shape::new(8, 3, 1), DType::U16);
    p.wanted(&[v1, v2])
}

/// The map read the row of another rank that only the filter's exchange brings.
#[rustfmt::skip]
fn a_map_beside_a_wrapped_filter() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(1, 2, 1), DType::F64, 0));
    let v1 = p.op(Op::Warp(Affine { xx: 2147483648, xy: 0, x0: 1073741824, yx: 536870912, yy: 4294967296, y0: 0 }, Interpolation::Bicubic, Border::Wrap.into()), &[v0], Shape::new(1, 2, 1), DType::F64);
    let v2 = p.op(Op::from(Histogram::new(17, -10.0, 200.0)), &[v1], Shape::new(1, 17, 1), DType::F64);
    let v3 = p.source(image(Shape::new(1, 17, 1), DType::U16, 1));
    let v4 = p.op(Op::Correlate(Filter::dense(4, 2, vec![0.5, -0.25, 1.0, 0.75, -0.5, 0.125, 2.0, -1.0]), Border::Wrap), &[v0], Shape::new(1, 2, 1), DType::F64);
    p.wanted(&[v4, v2, v3])
}

/// The same with all rows on one rank.
#[rustfmt::skip]
fn a_map_of_all_rows_beside_a_wrapped_filter() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(ReferenceImage::new::<i32>(Shape::new(4, 1, 1), vec![1, -1, 0, 1]));
    let v1 = p.op(Op::Warp(Affine { xx: -4146673375, xy: -1118858345, x0: 38496609108, yx: 1118858345, yy: -4146673375, y0: 63617121159 }, Interpolation::Bilinear, Border::Wrap.into()), &[v0], Shape::new(4, 1, 1), DType::I32);
    let v2 = p.op(Op::OrderFilter(Generalized { window: Filter::sparse(vec![(9, 5), (0, 2)], vec![1.0, 2.0]), combine: Combine::Add, reduce: Reduce::Max }.into(), Border::Wrap), &[v0], Shape::new(4, 1, 1), DType::I32);
    p.wanted(&[v1, v2])
}

/// A broadcast pixel was looked for in the first row of memory.
#[rustfmt::skip]
fn a_pixel_repeated_beside_a_wrapped_filter() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(1, 1, 1), DType::F32, 3));
    let v1 = p.source(image(Shape::new(1, 4, 1), DType::F32, 1));
    let v2 = p.op(Op::Warp(Affine { xx: 0, xy: 0, x0: 0, yx: 0, yy: 0, y0: 0 }, Interpolation::Nearest, Border::Replicate.into()), &[v0], Shape::new(1, 4, 1), DType::F32);
    let v3 = p.op(Op::Pixel(PixelOp::Add, vec![PixelOpOperand::Input(0), PixelOpOperand::Input(1)]), &[v2, v1], Shape::new(1, 4, 1), DType::F32);
    let v4 = p.op(Op::Correlate(Filter::dense(3, 1, vec![0.25, 0.5, 0.25]), Border::Wrap), &[v0], Shape::new(1, 1, 1), DType::F32);
    p.wanted(&[v3, v4])
}

/// Rows were sent to a launch that was over.
#[rustfmt::skip]
fn a_transpose_before_a_wrapped_rank() -> ConformanceProgram {
    let mut p = ConformanceProgram::default();
    let v0 = p.source(image(Shape::new(1, 25, 1), DType::U8, 0));
    let v1 = p.op(Op::from(Tiled { grid: Grid { height: 4, width: 4, down: 4, across: 4 }, reduce: TileReduce::Min }), &[v0], Shape::new(1, 7, 1), DType::U8);
    let v2 = p.op(Op::from(Transpose), &[v1], Shape::new(7, 1, 1), DType::U8);
    let v3 = p.op(Op::Convert(Conversion::Nearest), &[v2], Shape::new(7, 1, 1), DType::F32);
    let v4 = p.op(Op::from(Sliding { how: Windowed::Rank(Ranked { spans: [FootprintSpan { z: 0, y: -1, from: -2, to: 1 }, FootprintSpan { z: 0, y: 1, from: 0, to: 3 }].into(), place: 4 }), border: Border::Wrap }), &[v1], Shape::new(1, 7, 1), DType::U8);
    let v5 = p.op(Op::Convert(Conversion::Nearest), &[v1], Shape::new(1, 7, 1), DType::F64);
    let v6 = p.op(Op::Correlate(Filter::sparse(vec![(0, 1), (1, 1), (0, 0)], vec![0.25, 0.75, -0.1875]), Border::Reflect), &[v5], Shape::new(1, 7, 1), DType::F64);
    p.wanted(&[v3, v4, v6])
}

#[test]
fn kept_programs_give_the_same_bits_by_unequal_shares() {
    for (name, program) in KEPT {
        let program = program();
        let want = evaluated(&program);
        for place in RunConfiguration::all().into_iter().filter(|place| place.ranks > 1) {
            let alone = |rank| (0..place.ranks).map(|r| f64::from(u8::from(r == rank))).collect();
            let falling: Vec<f64> = (0..place.ranks).map(|r| [2.0, 2.0, 1.0][r % 3]).collect();
            for weights in [alone(0), alone(place.ranks - 1), falling] {
                let partition = Partition::weighted(&weights).unwrap();
                let what = format!("{name}, shares {partition}, at {place:?}");
                compare(&what, &program, &want, &mut |p| run_divided(p, place, &partition));
            }
        }
    }
}

#[test]
fn kept_programs_give_the_same_bits_everywhere() {
    for (name, program) in KEPT {
        conforms(&program(), &RunConfiguration::all(), name);
    }
}

/// The lines of a function of this file.
fn source(name: &str) -> String {
    let (_, rest) =
        include_str!("found.rs").split_once(&format!("fn {name}() -> ConformanceProgram {{\n")).expect("it is here");
    let (body, _) = rest.split_once("\n}\n").expect("it ends");
    body.lines().map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn programs_are_printed_as_they_are_written() {
    for (name, program) in KEPT {
        assert_eq!(printed(&program()), source(name), "{name}");
    }
}

/// The text printed by a test that finds `wrong` results for a program of 42 operations.
fn told(wrong: &mut dyn FnMut(&ConformanceProgram) -> Vec<ReferenceImage>) -> String {
    let of = |kind, param, reads| RandomStep { kind, param, reads };
    let any = (0..40u8).map(|i| of(i.wrapping_mul(7), i.wrapping_mul(11), [i, i / 2, 3]));
    // A maximum of a median.
    let last = [of(14, 3, [41; 3]), of(6, 12, [42; 3])];
    let p = random::program(Shape::new(23, 31, 1), &any.chain(last).collect::<Vec<_>>(), 5);
    let want = evaluated(&p);
    let panic = catch_unwind(AssertUnwindSafe(|| compare("a wrong pass", &p, &want, wrong))).expect_err("it is found");
    *panic.downcast::<String>().expect("a text")
}

fn evaluated(p: &ConformanceProgram) -> Vec<ReferenceImage> {
    reference::evaluate(&p.graph, &|v| p.sources[v.0 as usize].clone())
}

#[test]
fn a_pass_with_a_fault_is_found_by_the_smallest_program_that_shows_it() {
    // Filters that forget what lies beyond an edge.
    let told = told(&mut |p| {
        let mut wrong = p.clone();
        for node in &mut wrong.graph.nodes {
            if let Op::OrderFilter(_, border) = &mut node.op {
                *border = Border::Replicate;
            }
        }
        evaluated(&wrong)
    });
    assert!(told.ends_with(&source("a_wrong_border")), "{told}");
}

#[test]
fn a_panic_for_two_operations_together_is_found_as_well() {
    let told = told(&mut |p| {
        let graph = &p.graph;
        let median = |n: &NodeId| matches!(graph.node(*n).op, Op::OrderFilter(..));
        let together = |n: &Node<Op>| matches!(n.op, Op::Pixel(PixelOp::Max, _)) && n.inputs.iter().any(median);
        assert!(!graph.nodes.iter().any(together), "a maximum of a median");
        evaluated(p)
    });
    assert!(told.contains("a maximum of a median") && told.ends_with(&source("a_maximum_of_a_median")), "{told}");
}
