//! Affine maps, mirror images and transposition.

use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Border, Shape};
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, rotation};
use horus_testing::reference::geometric::{flip, transpose, warp};
use horus_testing::reference::{ReferenceImage, convert};

fn image<T: Pixel>(height: usize, width: usize, v: &[T]) -> ReferenceImage {
    ReferenceImage::new(Shape::new(height, width, 1), v.to_vec())
}

/// A row of `n` pixels read at `from`, `from + step`, ...
fn resample(
    row: &ReferenceImage,
    n: usize,
    from: f64,
    step: f64,
    how: Interpolation,
    border: Border,
) -> ReferenceImage {
    let shape = Shape::new(1, n, 1);
    let map = Affine::new([[step, 0.0, from], [0.0, 1.0, 0.0]], shape).unwrap();
    warp(row, shape, &map, how, border.into())
}
const ZERO: Border = Border::Constant(0.0);

#[test]
fn the_identity_and_quarter_turns_are_exact_for_every_type_and_interpolation() {
    for how in Interpolation::ALL {
        for dtype in DType::ALL {
            let square = convert(&image(3, 3, &[1u8, 2, 3, 4, 5, 6, 7, 8, 9]), dtype);
            let same = warp(&square, square.shape, &Affine::IDENTITY, how, ZERO.into());
            assert_eq!(same, square, "{how:?} {dtype}");
            let map = Affine::new(rotation(90.0, square.shape), square.shape).unwrap();
            // Anti-clockwise, as seen on the screen.
            let turned = convert(&image(3, 3, &[3u8, 6, 9, 2, 5, 8, 1, 4, 7]), dtype);
            assert_eq!(warp(&square, square.shape, &map, how, ZERO.into()), turned, "{how:?} {dtype}");
        }
    }
}

#[test]
fn nearest_halves_go_up_on_both_sides_of_zero() {
    let row = image(1, 3, &[10u8, 20, 30]);
    let out = resample(&row, 5, -1.0, 0.5, Interpolation::Nearest, Border::Constant(7.0));
    // Positions -1, -0.5, 0, 0.5 and 1.
    assert_eq!(out, image(1, 5, &[7u8, 10, 10, 20, 20]));
}

#[test]
fn bilinear_interpolates_with_the_border_and_rounds_to_even() {
    let row = image(1, 3, &[10u8, 21, 30]);
    // Positions -1, -0.5, 0, ..., 3: 0, 5, 10, 15.5 -> 16, 21, 25.5 -> 26, 30, 15, 0.
    let out = resample(&row, 9, -1.0, 0.5, Interpolation::Bilinear, ZERO);
    assert_eq!(out, image(1, 9, &[0u8, 5, 10, 16, 21, 26, 30, 15, 0]));
    let out = resample(&row, 9, -1.0, 0.5, Interpolation::Bilinear, Border::Reflect101);
    assert_eq!(out, image(1, 9, &[21u8, 16, 10, 16, 21, 26, 30, 26, 21]));
}

#[test]
fn bicubic_overshoots_and_saturates() {
    let row = image(1, 4, &[0u8, 0, 255, 255]);
    // Halfway the weights are -1/16, 9/16, 9/16, -1/16: at 0.5 the value is -1/16 * 255, at 2.5
    // it is 17/16 * 255.
    let out = resample(&row, 3, 0.5, 1.0, Interpolation::Bicubic, Border::Replicate);
    assert_eq!(out, image(1, 3, &[0u8, 128, 255]));
    let float = convert(&row, DType::F32);
    let out = resample(&float, 3, 0.5, 1.0, Interpolation::Bicubic, Border::Replicate);
    assert_eq!(out, image(1, 3, &[-255.0 / 16.0, 127.5, 255.0 * 17.0 / 16.0f32]));
}

#[test]
fn large_integers_survive_interpolation() {
    let row = image(1, 2, &[2_147_483_647i32, 2_147_483_645]);
    let out = resample(&row, 2, 0.0, 0.5, Interpolation::Bilinear, Border::Replicate);
    assert_eq!(out, image(1, 2, &[2_147_483_647i32, 2_147_483_646]));
}

#[test]
fn single_precision_weights_are_cut_to_24_bits() {
    // A quarter of the last of 24 bits beyond one half: cut off for f32, kept for f64.
    let position = 0.5 + 2f64.powi(-26);
    let row = |dtype| convert(&image(1, 2, &[0.0f64, 1.0]), dtype);
    let at = |dtype| resample(&row(dtype), 1, position, 1.0, Interpolation::Bilinear, Border::Replicate);
    assert_eq!(at(DType::F32), image(1, 1, &[0.5f32]));
    assert_eq!(at(DType::F64), image(1, 1, &[position]));
}

#[test]
fn an_infinite_neighbour_of_weight_zero_makes_a_nan() {
    // A consequence of a fixed footprint: fma(0, inf - a, a) is NaN. Backends must not skip the
    // read.
    let row = image(1, 2, &[1.0f32, f32::INFINITY]);
    assert!(warp(&row, row.shape, &Affine::IDENTITY, Interpolation::Bilinear, ZERO.into()).at::<f32>(0, 0, 0).is_nan());
}

#[test]
fn mirror_images_and_transposition_work_plane_by_plane() {
    let two = ReferenceImage::new(Shape::new(2, 2, 2), vec![1u16, 2, 3, 4, 5, 6, 7, 8]);
    let new = |v: [u16; 8]| ReferenceImage::new(Shape::new(2, 2, 2), v.to_vec());
    assert_eq!(flip(&two, Flip::Horizontal), new([2, 1, 4, 3, 6, 5, 8, 7]));
    assert_eq!(flip(&two, Flip::Vertical), new([3, 4, 1, 2, 7, 8, 5, 6]));
    assert_eq!(flip(&two, Flip::Both), new([4, 3, 2, 1, 8, 7, 6, 5]));
    assert_eq!(transpose(&image(1, 3, &[1u8, 2, 3])), image(3, 1, &[1u8, 2, 3]));
    assert_eq!(transpose(&two), new([1, 3, 2, 4, 5, 7, 6, 8]));
}
