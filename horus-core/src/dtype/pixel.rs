//! What every element type can do.

use std::fmt;

use super::{DType, Scalar};

mod sealed {
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
    impl Sealed for i32 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// An element type of images: `u8`, `u16`, `i32`, `f32` or `f64`. Sealed.
///
/// The methods define the arithmetic of the table in [`crate::ops::pixel`]; every backend must agree with them.
pub trait Pixel:
    sealed::Sealed + bytemuck::Pod + PartialOrd + Default + fmt::Debug + fmt::Display + Send + Sync + 'static
{
    /// The tag of this type.
    const DTYPE: DType;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// The smallest value (minus infinity for floats): the identity of `max`.
    const LOWEST: Self;
    /// The largest value (infinity for floats): the identity of `min`.
    const HIGHEST: Self;
    /// The type of linear filters over this type; see [`DType::linear`].
    type Linear: Float;
    /// The type geometric operations interpolate in; see [`DType::interpolation`].
    type Interp: Float;

    /// As a typed constant.
    fn scalar(self) -> Scalar;
    /// The value inside `s`, which must be of this type (it is converted otherwise).
    fn from_scalar(s: Scalar) -> Self;
    /// Conversion from `f64`: floats round to nearest, integers round to nearest even and saturate, NaN becomes 0.
    fn from_f64(v: f64) -> Self;
    /// Exact conversion to `f64`.
    fn to_f64(self) -> f64;
    /// Conversion from `f32` with the rules of [`Pixel::from_f64`].
    fn from_f32(v: f32) -> Self;
    /// Conversion to the linear type (nearest).
    fn to_linear(self) -> Self::Linear;
    /// Conversion to the interpolation type (exact).
    fn to_interp(self) -> Self::Interp;
    /// Conversion back from the interpolation type: rounds to nearest even and saturates for integers.
    fn from_interp(v: Self::Interp) -> Self;

    /// `a + b`; integers saturate.
    fn add(self, b: Self) -> Self;
    /// `a - b`; integers saturate.
    fn sub(self, b: Self) -> Self;
    /// `a * b`; integers saturate.
    fn mul(self, b: Self) -> Self;
    /// `a / b`; integers truncate towards zero, saturate, and give 0 for `b == 0`.
    fn div(self, b: Self) -> Self;
    /// `-a`; integers saturate (0 for unsigned types).
    fn neg(self) -> Self;
    /// `|a|`; `i32::MIN` saturates.
    fn abs(self) -> Self;
    /// Square root; integers round to nearest even, negative integers give 0.
    fn sqrt(self) -> Self;
    /// Natural exponential (libm; not part of the promise of equal bits).
    fn exp(self) -> Self;
    /// Natural logarithm (libm; not part of the promise of equal bits).
    fn ln(self) -> Self;
    /// `a` to the power `b` (libm; not part of the promise of equal bits).
    fn pow(self, b: Self) -> Self;
    /// Largest integer not above `a`.
    fn floor(self) -> Self;
    /// -1, 0 or 1 (NaN stays NaN, a signed zero stays).
    fn sign(self) -> Self;
    /// Whether the value is a NaN.
    fn is_nan(self) -> bool;

    /// The smaller; ignores a NaN; the first on a tie.
    #[inline(always)]
    fn min(self, b: Self) -> Self {
        if b < self || self.is_nan() { b } else { self }
    }
    /// The larger; ignores a NaN; the first on a tie.
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        if b > self || self.is_nan() { b } else { self }
    }
    /// `|a - b|`; integers saturate.
    #[inline(always)]
    fn absdiff(self, b: Self) -> Self {
        if self > b { self.sub(b) } else { b.sub(self).abs() }
    }
    /// `|a / b|`, and 0 where `|b| < eps`.
    #[inline(always)]
    fn absdiv(self, b: Self, eps: Self) -> Self {
        if b.abs() < eps { Self::ZERO } else { self.div(b).abs() }
    }
}

/// The two floating-point element types. Sealed.
pub trait Float: Pixel<Linear = Self, Interp = Self> {
    /// `self * a + b` with one rounding.
    fn fma(self, a: Self, b: Self) -> Self;
    /// Conversion of an interpolation weight given as a 32-bit binary fraction: `bits / 2^32`.
    ///
    /// `f32` keeps the upper 24 bits, so that the conversion is exact; `f64` keeps all.
    fn from_fraction(bits: u32) -> Self;
    /// Bit pattern, zero-extended.
    fn bits(self) -> u64;
}
