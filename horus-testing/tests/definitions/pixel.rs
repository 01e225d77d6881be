//! Pixel operations.

use horus_base::dtype::{DType, Pixel, Scalar};
use horus_base::shape::Shape;
use horus_plan::ops::pixel::{PixelOp, TABLE};
use horus_testing::reference::pixel::{ImageOrScalar, apply};
use horus_testing::reference::{ReferenceImage, fill};

fn row<T: Pixel>(v: &[T]) -> ReferenceImage {
    ReferenceImage::new(Shape::new(1, v.len(), 1), v.to_vec())
}

fn binary<T: Pixel>(op: PixelOp, a: &[T], b: &[T]) -> ReferenceImage {
    apply(op, &[ImageOrScalar::Image(&row(a)), ImageOrScalar::Image(&row(b))])
}

#[test]
fn every_row_of_the_table_has_a_body_for_every_type() {
    for info in TABLE {
        for dtype in DType::ALL {
            let input = fill(Shape::new(1, 2, 2), dtype, Scalar::U8(1));
            let mask = fill(Shape::new(1, 2, 2), DType::U8, Scalar::U8(1));
            let operands: Vec<ImageOrScalar<'_>> = (0..info.op.arity())
                .map(|i| ImageOrScalar::Image(if info.op.operand(i, dtype) == dtype { &input } else { &mask }))
                .collect();
            let out = apply(info.op, &operands);
            assert_eq!((out.shape, out.dtype()), (input.shape, info.op.result(dtype)), "{} {dtype}", info.name);
        }
    }
}

#[test]
fn integers_saturate_and_divide_by_zero_to_zero() {
    assert_eq!(binary(PixelOp::Add, &[250u8, 1], &[10, 2]), row(&[255u8, 3]));
    assert_eq!(binary(PixelOp::Sub, &[3u16, 9], &[10, 2]), row(&[0u16, 7]));
    assert_eq!(binary(PixelOp::Mul, &[i32::MAX, i32::MIN], &[-2, -1]), row(&[i32::MIN, i32::MAX]));
    assert_eq!(binary(PixelOp::Div, &[7i32, -7, i32::MIN], &[0, 2, -1]), row(&[0, -3, i32::MAX]));
    assert_eq!(binary(PixelOp::AbsDiff, &[3u8, 200], &[10, 2]), row(&[7u8, 198]));
}

#[test]
fn extremes_ignore_nan_and_keep_the_first_zero() {
    let nan = f32::NAN;
    assert_eq!(binary(PixelOp::Max, &[nan, 1.0, 0.0, -0.0], &[2.0, nan, -0.0, 0.0]), row(&[2.0, 1.0, 0.0, -0.0f32]));
    assert_eq!(binary(PixelOp::Min, &[nan, 1.0, 0.0, -0.0], &[2.0, nan, -0.0, 0.0]), row(&[2.0, 1.0, 0.0, -0.0f32]));
}

#[test]
fn the_extremes_of_two_that_keep_nan_do_so_on_both_sides() {
    let nan = f32::NAN;
    let (a, b) = ([nan, 1.0, nan, 0.0, -0.0, 3.0], [2.0, nan, nan, -0.0, 0.0, -1.0]);
    assert_eq!(binary(PixelOp::Maximum, &a, &b), row(&[nan, nan, nan, 0.0, -0.0, 3.0]));
    assert_eq!(binary(PixelOp::Minimum, &a, &b), row(&[nan, nan, nan, 0.0, -0.0, -1.0]));
    assert_eq!(binary(PixelOp::Maximum, &[3u8, 9], &[4, 2]), row(&[4u8, 9]));
}

#[test]
fn comparisons_with_nan_are_false_but_for_unequal() {
    let (a, b) = ([f64::NAN, 1.0], [1.0, 1.0]);
    assert_eq!(binary(PixelOp::Le, &a, &b), row(&[0u8, 1]));
    assert_eq!(binary(PixelOp::Eq, &a, &b), row(&[0u8, 1]));
    assert_eq!(binary(PixelOp::Ne, &a, &b), row(&[1u8, 0]));
    assert_eq!(binary(PixelOp::Threshold, &a, &b), row(&[0.0, 0.0]));
}

#[test]
fn signs_roots_and_negative_zero() {
    let unary = |op, v: &[f32]| apply(op, &[ImageOrScalar::Image(&row(v))]);
    assert_eq!(unary(PixelOp::Neg, &[0.0, -2.0]), row(&[-0.0f32, 2.0]));
    assert_eq!(unary(PixelOp::Abs, &[-0.0, -2.0]), row(&[0.0f32, 2.0]));
    assert_eq!(unary(PixelOp::Sign, &[-0.0, -2.0, 0.5]), row(&[-0.0f32, -1.0, 1.0]));
    assert_eq!(unary(PixelOp::Sqrt, &[-0.0, 4.0]), row(&[-0.0f32, 2.0]));
    assert_eq!(apply(PixelOp::Sqrt, &[ImageOrScalar::Image(&row(&[-9, 7, 6]))]), row(&[0, 3, 2]));
}

#[test]
fn absdiv_and_clamp_take_constants() {
    let image = row(&[6.0f32, -6.0, 1.0]);
    let by = row(&[2.0f32, -0.5, 1e-4]);
    let out = apply(
        PixelOp::AbsDiv,
        &[ImageOrScalar::Image(&image), ImageOrScalar::Image(&by), ImageOrScalar::Const(Scalar::F32(1e-3))],
    );
    assert_eq!(out, row(&[3.0f32, 12.0, 0.0]));
    let limits = [ImageOrScalar::Const(Scalar::F32(0.0)), ImageOrScalar::Const(Scalar::F32(5.0))];
    let noisy = row(&[6.0f32, -6.0, f32::NAN, 2.0]);
    assert_eq!(
        apply(PixelOp::Clamp, &[ImageOrScalar::Image(&noisy), limits[0], limits[1]]),
        row(&[5.0f32, 0.0, 0.0, 2.0])
    );
}

#[test]
fn select_takes_the_first_where_the_mask_is_not_zero() {
    let mask = row(&[0u8, 1, 255]);
    let image = row(&[1i32, 2, 3]);
    let out = apply(
        PixelOp::Select,
        &[ImageOrScalar::Image(&mask), ImageOrScalar::Image(&image), ImageOrScalar::Const(Scalar::I32(-1))],
    );
    assert_eq!(out, row(&[-1, 2, 3]));
    let constants = [ImageOrScalar::Const(Scalar::F64(1.0)), ImageOrScalar::Const(Scalar::F64(0.0))];
    assert_eq!(
        apply(PixelOp::Select, &[ImageOrScalar::Image(&mask), constants[0], constants[1]]),
        row(&[0.0, 1.0, 1.0])
    );
}
