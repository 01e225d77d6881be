//! Rotations, affine maps and resizing.

use horus_core::dtype::DType;
use horus_core::ir::graph::Op;
use horus_core::ops::geometric::{Affine, Interpolation, rotation};
use horus_core::shape::{Border, Shape};
use horus_testing::reference::{ReferenceImage, convert};

use crate::program::GoldenProgram;
use crate::{CONSTANT, assert_close, borders, image, load, plane, to_f64};

/// Interpolation in `f32` of pixels below 2: positions are truncated to 24 fractional bits (a unit
/// of 2^-24 on either axis, times a slope below 4), and some ten roundings of half a unit.
const SINGLE: f64 = 2.0 * 4.0 / 16_777_216.0 + 10.0 * 2.0 / 16_777_216.0;

/// In `f64` the position dominates: three coefficients are rounded to 2^-33, two of them times
/// coordinates below 16, on either axis, times a slope below 4.
const DOUBLE: f64 = 2.0 * 33.0 * 4.0 / 8_589_934_592.0;

fn warp(
    input: &ReferenceImage,
    out: Shape,
    matrix: [[f64; 3]; 2],
    how: Interpolation,
    border: Border,
) -> (ReferenceImage, Affine) {
    let map = Affine::new(matrix, out).unwrap();
    let (mut p, source) = GoldenProgram::over(input);
    let node = p.add(Op::Warp(map, how, border.into()), &[source], out, input.dtype());
    (p.value(node), map)
}

/// Exact agreement, except where a position is a half to the precision of the map: there SciPy's
/// f64 positions may fall on either side.
#[track_caller]
fn assert_nearest(ours: &ReferenceImage, map: &Affine, golden: &[f64], what: &str) {
    let halfway = |position: i64| (position as u32).abs_diff(1 << 31) < 64;
    let width = ours.shape.width;
    let mut ties = 0;
    for (i, (a, b)) in to_f64(ours).into_iter().zip(golden).enumerate() {
        let (y, x) = map.at((i / width) as i64, (i % width) as i64);
        if halfway(y) || halfway(x) {
            ties += 1;
        } else {
            assert_eq!(a, *b, "{what}: pixel {i}");
        }
    }
    assert!(ties <= golden.len() / 10, "{what}: {ties} ties leave too little to compare");
}

#[test]
fn rotations_to_the_nearest_pixel_agree() {
    let input = image::<f32>("image");
    for degrees in [30, 45] {
        let matrix = rotation(f64::from(degrees), input.shape);
        let zero = Border::Constant(0.0);
        let (ours, map) = warp(&input, input.shape, matrix, Interpolation::Nearest, zero);
        let name = format!("rotate_{degrees}_nearest");
        assert_nearest(&ours, &map, &plane(&image::<f32>(&name), 0), &name);
    }
}

#[test]
fn interpolated_rotations_agree_in_both_precisions() {
    let input = image::<f32>("image");
    for (how, name, constant) in
        [(Interpolation::Bilinear, "bilinear", 0.0), (Interpolation::Bicubic, "bicubic", CONSTANT)]
    {
        for degrees in [30, 45] {
            let matrix = rotation(f64::from(degrees), input.shape);
            let golden = plane(&image::<f64>(&format!("rotate_{degrees}_{name}")), 0);
            for (dtype, tolerance) in [(DType::F32, SINGLE), (DType::F64, DOUBLE)] {
                let border = Border::Constant(constant);
                let (ours, _) = warp(&convert(&input, dtype), input.shape, matrix, how, border);
                assert_close(&ours, &golden, tolerance, &format!("{name} by {degrees} in {dtype}"));
            }
        }
    }
}

#[test]
fn affine_maps_agree_for_every_border() {
    let input = image::<f32>("image");
    // The golden's matrix maps (row, column), ours (x, y).
    let m = load::<f64>("affine_matrix");
    let matrix = [[m[[1, 1]], m[[1, 0]], m[[1, 2]]], [m[[0, 1]], m[[0, 0]], m[[0, 2]]]];
    let (bilinear, nearest) = (image::<f32>("affine_bilinear"), image::<f32>("affine_nearest"));
    let out = Shape { channels: 1, ..bilinear.shape };
    for (c, border) in borders(CONSTANT).into_iter().enumerate() {
        let (ours, map) = warp(&input, out, matrix, Interpolation::Nearest, border);
        assert_nearest(&ours, &map, &plane(&nearest, c), &format!("nearest, {border}"));
        let (ours, _) = warp(&input, out, matrix, Interpolation::Bilinear, border);
        assert_close(&ours, &plane(&bilinear, c), SINGLE, &format!("bilinear, {border}"));
    }
}

#[test]
fn resizing_between_pixel_centres_agrees() {
    let (input, golden) = (image::<f32>("image"), image::<f64>("resize_bilinear"));
    let ry = input.shape.height as f64 / golden.shape.height as f64;
    let rx = input.shape.width as f64 / golden.shape.width as f64;
    let matrix = [[rx, 0.0, 0.5 * rx - 0.5], [0.0, ry, 0.5 * ry - 0.5]];
    let (ours, _) = warp(&input, golden.shape, matrix, Interpolation::Bilinear, Border::Replicate);
    assert_close(&ours, &to_f64(&golden), SINGLE, "resize");
}
