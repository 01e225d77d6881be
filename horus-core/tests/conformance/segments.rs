//! Reductions of images that are wider or taller than a segment of the fixed order, or just as wide.

use horus_core::dispatch;
use horus_core::dtype::{DType, Pixel};
use horus_core::ir::graph::Op;
use horus_core::ops::reduce::RowReduce;
use horus_core::reference::{self, Image};
use horus_core::shape::Shape;

use crate::harness::{Place, Program, conforms, image};

const SHAPES: [Shape; 9] = [
    Shape::new(0, 1025, 1),
    Shape::new(3, 0, 2),
    Shape::new(3, 1023, 1),
    Shape::new(2, 1024, 2),
    Shape::new(7, 1025, 1),
    Shape::new(1, 2049, 3),
    Shape::new(1023, 2, 1),
    Shape::new(1025, 1, 2),
    Shape::new(2049, 3, 1),
];

/// The order as its documentation says it, written without any of its code.
fn by_hand(values: &[f64]) -> f64 {
    let mut sum = 0.0;
    for first in (0..values.len()).step_by(1024) {
        sum += one_tree(&values[first..values.len().min(first + 1024)]);
    }
    sum
}

/// The order within a segment.
fn one_tree(values: &[f64]) -> f64 {
    let mut lanes: Vec<f64> = (0..64).map(|l| values.iter().skip(l).step_by(64).fold(0.0, |sum, v| sum + v)).collect();
    while lanes.len() > 1 {
        let upper = lanes.split_off(lanes.len() / 2);
        lanes.iter_mut().zip(upper).for_each(|(a, b)| *a += b);
    }
    lanes[0]
}

/// The sums of rows, each by `row_sum`, and the sum of all.
fn sums(image: &Image, row_sum: fn(&[f64]) -> f64) -> (Vec<f64>, f64) {
    let Shape { height, width, channels } = image.shape;
    let pixel = |c, y, x| dispatch!(image.dtype(), T => image.at::<T>(c, y, x).to_f64());
    let row = |c, y| row_sum(&(0..width).map(|x| pixel(c, y, x)).collect::<Vec<_>>());
    let planes: Vec<Vec<f64>> = (0..channels).map(|c| (0..height).map(|y| row(c, y)).collect()).collect();
    let total = planes.iter().fold(0.0, |sum, plane| sum + by_hand(plane));
    (planes.concat(), total)
}

/// Integers as everywhere; floats of magnitudes so different that every order of adding them gives another sum.
fn picture(shape: Shape, dtype: DType, seed: u64) -> Image {
    if !dtype.is_float() {
        return image(shape, dtype, seed);
    }
    let mut state = seed;
    dispatch!(dtype, T => Image::from_fn::<T>(shape, |_, _, _| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let scale = 2.0f64.powi((state >> 58) as i32 - 32);
        T::from_f64((((state >> 30) % (1 << 21)) as f64 - 1_048_576.0) / 3.0 * scale)
    }))
}

fn totals(shape: Shape, dtype: DType) -> (Program, Image) {
    let picture = picture(shape, dtype, 41);
    let mut p = Program::default();
    let a = p.source(picture.clone());
    let (column, one) = (Shape { width: 1, ..shape }, Shape::new(1, 1, 1));
    let mut roots = Vec::new();
    for how in [RowReduce::Sum, RowReduce::Min, RowReduce::Max] {
        let rows = p.op(Op::RowReduce(how), &[a], column, how.result(dtype));
        roots.extend([rows, p.op(Op::Fold(how.fold()), &[rows], one, how.result(dtype))]);
    }
    let rows = p.op(Op::RowReduce(RowReduce::SquaredDeviation), &[a, roots[1]], column, DType::F64);
    roots.push(p.op(Op::Fold(RowReduce::SquaredDeviation.fold()), &[rows], one, DType::F64));
    (p.wanted(&roots), picture)
}

#[test]
fn the_reference_sums_segments_then_rows_then_planes() {
    for dtype in DType::ALL {
        let mut noticed = false;
        for shape in SHAPES {
            let (program, picture) = totals(shape, dtype);
            let values = reference::evaluate(&program.graph, &|_| picture.clone());
            let (rows, total) = sums(&picture, by_hand);
            let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let at = |i: usize| bits(values[i].as_slice::<f64>());
            assert_eq!(at(0), bits(&rows), "rows of {dtype} {shape}");
            assert_eq!(at(1), bits(&[total]), "{dtype} {shape}");
            noticed |= sums(&picture, one_tree).0 != rows;
        }
        assert_eq!(noticed, dtype.is_float(), "a row of one tree is told from segments");
    }
}

#[test]
fn segments_on_every_number_of_ranks() {
    for dtype in DType::ALL {
        for shape in SHAPES {
            conforms(&totals(shape, dtype).0, &Place::all(), &format!("segments {dtype} {shape}"));
        }
    }
}

#[test]
fn segments_of_expressions_on_every_number_of_ranks() {
    for shape in SHAPES {
        let mut p = Program::default();
        let (a, b) = (p.source(picture(shape, DType::F32, 42)), p.source(picture(shape, DType::F32, 43)));
        let product = p.pixel(horus_core::ops::pixel::PixelOp::Mul, &[a, b]);
        let rows = p.op(Op::RowReduce(RowReduce::Sum), &[product], Shape { width: 1, ..shape }, DType::F64);
        let all = p.op(Op::Fold(RowReduce::Sum.fold()), &[rows], Shape::new(1, 1, 1), DType::F64);
        conforms(&p.wanted(&[all]), &Place::all(), &format!("segments of a product {shape}"));
    }
}
