//! Statistics, sums along rows and columns, histograms.

use horus_core::dtype::{DType, Scalar};
use horus_core::ir::graph::Op;
use horus_core::ops::pixel::PixelOp;
use horus_core::ops::reduce::RowReduce;
use horus_core::ops::{Histogram, Transpose};
use horus_core::shape::Shape;
use horus_testing::reference::ReferenceImage;

use crate::program::GoldenProgram;
use crate::{assert_close, image, load, plane, to_f64};

/// Relative to the sum of magnitudes: numpy and we add at most 96 * 96 values in f64, in different
/// but both nearly balanced orders, which lose half a unit per level.
const SUMMATION: f64 = 16.0 * f64::EPSILON;

#[test]
fn statistics_agree() {
    // The second image is wider than the lanes of the fixed order.
    for name in ["image", "detector_input"] {
        let input = image::<f32>(name);
        let n = Scalar::F64(input.shape.len() as f64);
        let (mut p, source) = GoldenProgram::over(&input);
        let sum = p.reduce(RowReduce::Sum, &[source]);
        let mean = p.pixel(PixelOp::Div, &[sum], &[n]);
        let squares = p.reduce(RowReduce::SquaredDeviation, &[source, mean]);
        let variance = p.pixel(PixelOp::Div, &[squares], &[n]);
        let min = p.reduce(RowReduce::Min, &[source]);
        let max = p.reduce(RowReduce::Max, &[source]);
        let moments = p.reduce(RowReduce::Moments, &[source]);
        let extremes = p.reduce(RowReduce::Extremes, &[source]);
        let mut ours = p.values(&[sum, mean, variance, min, max, moments, extremes]);
        let (extremes, moments) = (ours.pop().unwrap(), ours.pop().unwrap());
        let [sum, squares, count] = [0, 1, 2].map(|x| moments.at::<f64>(0, 0, x));
        let extremes = [0, 1].map(|x| f64::from(extremes.at::<f32>(0, 0, x)));
        let in_one_pass = [sum, sum / count, squares / count, extremes[0], extremes[1]];

        let magnitude: f64 = to_f64(&input).iter().map(|v| v.abs()).sum();
        let tolerances = [magnitude * SUMMATION, SUMMATION, SUMMATION, 0.0, 0.0];
        let goldens = load::<f64>(&format!("{name}_statistics"));
        for ((ours, golden), tolerance) in ours.iter().zip(&goldens).zip(tolerances) {
            assert_close(ours, &[*golden], tolerance, name);
        }
        for ((ours, golden), tolerance) in in_one_pass.into_iter().zip(goldens).zip(tolerances) {
            assert!((ours - golden).abs() <= tolerance, "{name}: {ours} instead of {golden}");
        }
    }
}

#[test]
fn sums_of_rows_and_columns_agree() {
    let input = image::<f32>("image");
    let Shape { height, width, .. } = input.shape;
    let (mut p, source) = GoldenProgram::over(&input);
    let rows = p.add(Op::from(RowReduce::Sum), &[source], Shape::new(height, 1, 1), DType::F64);
    let turned = p.add(Op::from(Transpose), &[source], Shape::new(width, height, 1), DType::F32);
    let columns = p.add(Op::from(RowReduce::Sum), &[turned], Shape::new(width, 1, 1), DType::F64);
    let ours = p.values(&[rows, columns]);
    // At most 15 values below 2.
    for (ours, name) in ours.iter().zip(["row_sums", "column_sums"]) {
        assert_close(ours, &plane(&image::<f64>(name), 0), 30.0 * SUMMATION, name);
    }
}

#[test]
fn histograms_agree_exactly() {
    let levels = ReferenceImage::new(Shape::new(16, 16, 1), (0..=255u8).collect());
    for (name, input, lo, hi) in [
        ("histogram", image::<f32>("image"), -0.5, 1.0),
        ("histogram_u8", image::<u8>("image_u8"), 0.0, 256.0),
        // Every level on the lower edge of its bin, and the last bin closed.
        ("histogram_u8_levels", levels, 0.0, 255.0),
    ] {
        let golden = image::<f64>(name);
        let (mut p, source) = GoldenProgram::over(&input);
        let op = Op::from(Histogram::new(golden.shape.width, lo, hi));
        let counts = p.add(op, &[source], golden.shape, DType::F64);
        assert_eq!(p.value(counts), golden, "{name}");
    }
}
