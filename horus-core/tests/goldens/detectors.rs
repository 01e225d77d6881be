//! The line detectors as whole programs.

use horus_core::dtype::{DType, Scalar};
use horus_core::ir::graph::{NodeId, Op};
use horus_core::ops::geometric::{Affine, Interpolation, rotation};
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::shape::{Border, Shape};
use horus_testing::reference::ReferenceImage;

use crate::program::GoldenProgram;
use crate::{column, difference, image, plane, row, to_f64};

const THETAS: [f64; 4] = [0.0, 45.0, 90.0, 135.0];
/// Each sv, and su * sv for su = 3.
const SCALES: [(u8, f32); 2] = [(1, 3.0), (2, 6.0)];

/// `k * |f1 / f2|`, and 0 where `|f2|` is small.
fn contrast(p: &mut GoldenProgram, f1: NodeId, f2: NodeId, k: f32) -> NodeId {
    let ratio = p.pixel(PixelOp::AbsDiv, &[f1, f2], &[Scalar::F32(1e-3)]);
    p.pixel(PixelOp::Mul, &[ratio], &[Scalar::F32(k)])
}

fn zero(p: &mut GoldenProgram, shape: Shape) -> NodeId {
    p.add(Op::Fill(Scalar::F32(0.0)), &[], shape, DType::F32)
}

/// The quotient magnifies the rounding of the filters, about 1e-7 of the picture's brightness,
/// where the divisor is darker. The tolerance is ten times that on average, and a hundred times at
/// a pixel (measured: 6e-8 and 5e-7).
#[track_caller]
fn assert_detector(ours: &ReferenceImage, golden: &str) {
    let golden = plane(&image::<f32>(golden), 0);
    assert!(golden.iter().any(|v| *v > 0.1), "the golden shows no line");
    let (largest, mean) = difference(&to_f64(ours), &golden);
    assert!(largest <= 1e-5, "differs by {largest:e}");
    assert!(mean <= 1e-6, "differs by {mean:e} on average");
}

#[test]
fn the_detector_by_rotation_agrees() {
    let input = image::<f32>("detector_input");
    let rotated = |degrees, border: Border| {
        let map = Affine::new(rotation(degrees, input.shape), input.shape).unwrap();
        Op::Warp(map, Interpolation::Bilinear, border.into())
    };
    let filtered = |order: u8, sv: u8| Op::Separable {
        row: row("taps_detector_row"),
        column: column(&format!("taps_detector_column_{sv}_{order}")),
        border: Border::Reflect101,
    };
    let (mut p, source) = GoldenProgram::over(&input);
    let mut result = zero(&mut p, input.shape);
    for theta in THETAS {
        let turned = p.like(rotated(theta, Border::Reflect101), &[source]);
        let mut best = zero(&mut p, input.shape);
        for (sv, k) in SCALES {
            let f1 = p.like(filtered(2, sv), &[turned]);
            let f2 = p.like(filtered(0, sv), &[turned]);
            let found = contrast(&mut p, f1, f2, k);
            best = p.pixel(PixelOp::Max, &[best, found], &[]);
        }
        let back = p.like(rotated(-theta, Border::Constant(0.0)), &[best]);
        result = p.pixel(PixelOp::Max, &[result, back], &[]);
    }
    assert_detector(&p.value(result), "conv_rot");
}

#[test]
fn the_detector_by_oriented_filters_agrees() {
    let input = image::<f32>("detector_input");
    let filtered = |theta: usize, order: u8, sv: u8| {
        let taps = image::<f32>(&format!("taps_detector_2d_{sv}_{order}")); // one plane per orientation
        let filter = Filter::dense(taps.shape.height, taps.shape.width, plane(&taps, theta));
        Op::Correlate(filter, Border::Reflect101)
    };
    let (mut p, source) = GoldenProgram::over(&input);
    let mut result = zero(&mut p, input.shape);
    for theta in 0..THETAS.len() {
        for (sv, k) in SCALES {
            let f1 = p.like(filtered(theta, 2, sv), &[source]);
            let f2 = p.like(filtered(theta, 0, sv), &[source]);
            let found = contrast(&mut p, f1, f2, k);
            result = p.pixel(PixelOp::Max, &[result, found], &[]);
        }
    }
    assert_detector(&p.value(result), "conv_2d");
}
