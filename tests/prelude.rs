//! `use horus::prelude::*` does not change the methods of numbers.

// The calls test resolution; their values do not matter.
#![allow(clippy::unnecessary_min_or_max)]

use horus::prelude::*;

#[test]
fn numbers_keep_the_methods_of_the_standard_library() {
    assert_eq!(5i32.max(3), 5);
    assert_eq!(3u8.min(4), 3);
    assert_eq!(7u16.clamp(1, 5), 5);
    assert_eq!((-7i32).abs(), 7);
    assert_eq!(2i32.pow(3), 8);
    assert_eq!(2.0f32.sqrt(), std::f32::consts::SQRT_2);
    assert_eq!(1.0f64.exp(), std::f64::consts::E);
    assert_eq!(1.0f32.ln(), 0.0);
    assert_eq!(1.5f64.max(f64::NAN), 1.5);
    assert_eq!((2.5f32.floor(), 2.5f32.ceil(), 2.5f32.round()), (2.0, 3.0, 3.0));
    assert_eq!((0.0f64.sin(), 0.0f64.cos()), (0.0, 1.0));
    assert_eq!((0.0f32.atan2(1.0), 3.0f64.hypot(4.0)), (0.0, 5.0));
}

#[test]
fn operator_methods_mean_the_operators() {
    use std::ops::{Add, Div, Mul, Neg, Sub};
    assert_eq!((2u8.add(3), 5i32.sub(7), 2.0f32.mul(4.0), 1.0f64.div(4.0), 3i32.neg()), (5, -2, 8.0, 0.25, -3));
}

/// Saturating arithmetic of pixels is available to generic code without naming its trait.
fn brighten<T: Pixel>(v: T, by: T) -> T {
    v.add(by).max(T::ONE)
}

#[test]
fn generic_code_has_the_arithmetic_of_pixels() {
    assert_eq!(brighten(250u8, 10), 255);
    assert_eq!(brighten(i32::MIN, -1), 1);
    assert_eq!(brighten(f32::NAN, 0.0), 1.0);
}
