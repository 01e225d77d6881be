//! Traits of the element types.

use std::fmt;

use super::{Arithmetic, DType, Scalar};

pub(super) mod sealed {
    use super::super::math::{NEAR, double, outlined, single};

    /// The element types, and arithmetic for the engine alone: sines and cosines without a branch, which
    /// vectorise.
    pub trait Sealed: Sized {
        /// Returns `true` if sine and cosine need the long argument reduction: the branchless functions are
        /// wrong for such values.
        fn far(self) -> bool;
        /// The sine, unless [`Sealed::far`].
        fn sin_near(self) -> Self;
        /// The cosine, unless [`Sealed::far`].
        fn cos_near(self) -> Self;
    }
    macro_rules! integer {
        ($($t:ident)*) => {$(
            impl Sealed for $t {
                #[inline(always)]
                fn far(self) -> bool {
                    f64::from(self).abs() >= NEAR
                }
                #[inline(always)]
                fn sin_near(self) -> Self {
                    outlined::sin_near(f64::from(self)).round_ties_even() as $t
                }
                #[inline(always)]
                fn cos_near(self) -> Self {
                    outlined::cos_near(f64::from(self)).round_ties_even() as $t
                }
            }
        )*};
    }
    integer!(u8 u16 u32 i8 i16 i32);
    macro_rules! float {
        ($t:ident, $functions:ident) => {
            impl Sealed for $t {
                #[inline(always)]
                fn far(self) -> bool {
                    self.abs() >= NEAR as $t
                }
                #[inline(always)]
                fn sin_near(self) -> Self {
                    $functions::sin_near(self)
                }
                #[inline(always)]
                fn cos_near(self) -> Self {
                    $functions::cos_near(self)
                }
            }
        };
    }
    float!(f32, single);
    float!(f64, double);
}

/// An element type of images: `u8`, `u16`, `u32`, `i8`, `i16`, `i32`, `f32` or `f64`. Sealed.
///
/// Its arithmetic is [`Arithmetic`], a supertrait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of numbers that an image holds",
    label = "not `u8`, `u16`, `u32`, `i8`, `i16`, `i32`, `f32` or `f64`",
    note = "masks, images of `bool`, combine by `& | ^ !` and choose by `select`; `convert::<f32>()` makes numbers of them, 0 and 1"
)]
pub trait Pixel: Arithmetic + bytemuck::Pod + fmt::Debug + fmt::Display + Send + Sync + 'static {
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

    /// The value as a typed constant.
    fn scalar(self) -> Scalar;
    /// The value of `s`; a constant of another type is converted.
    fn from_scalar(s: Scalar) -> Self;
    /// Converts from `f64`: floats round to nearest, integers round to nearest even and saturate, and a NaN
    /// becomes 0.
    fn from_f64(v: f64) -> Self;
    /// Converts from `f64` as C and NumPy cast: integers are truncated modulo their range, values that are
    /// not finite become 0, and floats round to nearest.
    fn cast_f64(v: f64) -> Self;
    /// Converts to `f64`, exactly.
    fn to_f64(self) -> f64;
    /// Converts from `f32` by the rules of [`Pixel::from_f64`].
    fn from_f32(v: f32) -> Self;
    /// Converts to the linear type (nearest).
    fn to_linear(self) -> Self::Linear;
    /// Converts to the interpolation type, exactly.
    fn to_interp(self) -> Self::Interp;
    /// Converts from the interpolation type; integers round to nearest even and saturate.
    fn from_interp(v: Self::Interp) -> Self;
}

/// The two floating-point element types. Sealed.
pub trait Float: Pixel<Linear = Self, Interp = Self> {
    /// `self * a + b` with one rounding.
    fn fma(self, a: Self, b: Self) -> Self;
    /// Converts an interpolation weight from a 32-bit binary fraction: `bits / 2^32`.
    ///
    /// `f32` keeps the upper 24 bits, so that the conversion is exact; `f64` keeps all.
    fn from_fraction(bits: u32) -> Self;
    /// Bit pattern, zero-extended.
    fn bits(self) -> u64;
}
