//! Pixel types: the five element types an image may have, and their arithmetic.
//!
//! The arithmetic here *is* the semantics. The reference, the CPU kernels and the CUDA kernels all follow these
//! definitions to the bit: integers saturate, `x / 0` is `0` for integers, float to integer rounds to nearest even and
//! saturates, float `min`/`max` ignore a NaN and return the first operand on a tie.

use std::fmt;

/// The element type of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Signed 32-bit integer.
    I32,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl DType {
    /// All element types, for sweeps.
    pub const ALL: [DType; 5] = [DType::U8, DType::U16, DType::I32, DType::F32, DType::F64];

    /// Size of one element in bytes.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 => 1,
            DType::U16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::F64 => 8,
        }
    }

    /// Whether the type is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// The type in which linear filters of this type are computed, and the type they yield: `F64` stays, the rest
    /// becomes `F32`.
    pub const fn linear(self) -> DType {
        match self {
            DType::F64 => DType::F64,
            _ => DType::F32,
        }
    }

    /// The type in which geometric operations interpolate before rounding back: wide enough to hold every value.
    pub const fn interpolation(self) -> DType {
        match self {
            DType::F64 | DType::I32 => DType::F64,
            _ => DType::F32,
        }
    }

    /// The Rust name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::I32 => "i32",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A constant of one of the five element types. Equality and hashing are by bits, so that NaN equals itself.
#[derive(Clone, Copy)]
pub enum Scalar {
    /// A `u8`.
    U8(u8),
    /// A `u16`.
    U16(u16),
    /// An `i32`.
    I32(i32),
    /// An `f32`.
    F32(f32),
    /// An `f64`.
    F64(f64),
}

impl Scalar {
    /// The element type of the constant.
    pub const fn dtype(self) -> DType {
        match self {
            Scalar::U8(_) => DType::U8,
            Scalar::U16(_) => DType::U16,
            Scalar::I32(_) => DType::I32,
            Scalar::F32(_) => DType::F32,
            Scalar::F64(_) => DType::F64,
        }
    }

    /// The value as `f64` (exact for every type).
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::U8(v) => f64::from(v),
            Scalar::U16(v) => f64::from(v),
            Scalar::I32(v) => f64::from(v),
            Scalar::F32(v) => f64::from(v),
            Scalar::F64(v) => v,
        }
    }

    /// `v` converted to `dtype` by the rules of [`Pixel::from_f64`].
    pub fn from_f64(dtype: DType, v: f64) -> Scalar {
        match dtype {
            DType::U8 => Scalar::U8(u8::from_f64(v)),
            DType::U16 => Scalar::U16(u16::from_f64(v)),
            DType::I32 => Scalar::I32(i32::from_f64(v)),
            DType::F32 => Scalar::F32(f32::from_f64(v)),
            DType::F64 => Scalar::F64(v),
        }
    }

    /// The bit pattern, zero-extended to 64 bits.
    pub fn bits(self) -> u64 {
        match self {
            Scalar::U8(v) => u64::from(v),
            Scalar::U16(v) => u64::from(v),
            Scalar::I32(v) => u64::from(v.cast_unsigned()),
            Scalar::F32(v) => u64::from(v.to_bits()),
            Scalar::F64(v) => v.to_bits(),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.dtype() == other.dtype() && self.bits() == other.bits()
    }
}
impl Eq for Scalar {}
impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.dtype().hash(state);
        self.bits().hash(state);
    }
}
impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::U8(v) => write!(f, "{v}u8"),
            Scalar::U16(v) => write!(f, "{v}u16"),
            Scalar::I32(v) => write!(f, "{v}i32"),
            Scalar::F32(v) => write!(f, "{v}"),
            Scalar::F64(v) => write!(f, "{v}f64"),
        }
    }
}

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

macro_rules! integer {
    ($t:ident, $tag:ident, $linear:ty, $interp:ty, $neg:expr, $abs:expr, $sign:expr) => {
        impl Pixel for $t {
            const DTYPE: DType = DType::$tag;
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = $t::MIN;
            const HIGHEST: Self = $t::MAX;
            type Linear = $linear;
            type Interp = $interp;

            #[inline(always)]
            fn scalar(self) -> Scalar {
                Scalar::$tag(self)
            }
            fn from_scalar(s: Scalar) -> Self {
                match s {
                    Scalar::$tag(v) => v,
                    other => Self::from_f64(other.to_f64()),
                }
            }
            #[inline(always)]
            fn from_f64(v: f64) -> Self {
                v.round_ties_even() as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f32(v: f32) -> Self {
                v.round_ties_even() as $t
            }
            #[inline(always)]
            fn to_linear(self) -> $linear {
                self as $linear
            }
            #[inline(always)]
            fn to_interp(self) -> $interp {
                self as $interp
            }
            #[inline(always)]
            fn from_interp(v: $interp) -> Self {
                v.round_ties_even() as $t
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.saturating_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.saturating_sub(b)
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self.saturating_mul(b)
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.saturating_div(b) }
            }
            #[inline(always)]
            fn neg(self) -> Self {
                let f: fn($t) -> $t = $neg;
                f(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                let f: fn($t) -> $t = $abs;
                f(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Self::from_f64((self as f64).sqrt())
            }
            #[inline(always)]
            fn exp(self) -> Self {
                Self::from_f64((self as f64).exp())
            }
            #[inline(always)]
            fn ln(self) -> Self {
                Self::from_f64((self as f64).ln())
            }
            #[inline(always)]
            fn pow(self, b: Self) -> Self {
                Self::from_f64((self as f64).powf(b as f64))
            }
            #[inline(always)]
            fn floor(self) -> Self {
                self
            }
            #[inline(always)]
            fn sign(self) -> Self {
                let f: fn($t) -> $t = $sign;
                f(self)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                false
            }
        }
    };
}

integer!(u8, U8, f32, f32, |_| 0, |a| a, |a| Ord::min(a, 1));
integer!(u16, U16, f32, f32, |_| 0, |a| a, |a| Ord::min(a, 1));
integer!(i32, I32, f32, f64, |a| a.saturating_neg(), |a| a.saturating_abs(), |a| a.signum());

macro_rules! float {
    ($t:ident, $tag:ident, $bits:ty, $fraction:expr) => {
        impl Pixel for $t {
            const DTYPE: DType = DType::$tag;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = $t::NEG_INFINITY;
            const HIGHEST: Self = $t::INFINITY;
            type Linear = $t;
            type Interp = $t;

            #[inline(always)]
            fn scalar(self) -> Scalar {
                Scalar::$tag(self)
            }
            fn from_scalar(s: Scalar) -> Self {
                match s {
                    Scalar::$tag(v) => v,
                    other => other.to_f64() as $t,
                }
            }
            #[inline(always)]
            fn from_f64(v: f64) -> Self {
                v as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f32(v: f32) -> Self {
                v as $t
            }
            #[inline(always)]
            fn to_linear(self) -> $t {
                self
            }
            #[inline(always)]
            fn to_interp(self) -> $t {
                self
            }
            #[inline(always)]
            fn from_interp(v: $t) -> Self {
                v
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self + b
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self - b
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self * b
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                self / b
            }
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$t>::abs(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                <$t>::sqrt(self)
            }
            #[inline(always)]
            fn exp(self) -> Self {
                <$t>::exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                <$t>::ln(self)
            }
            #[inline(always)]
            fn pow(self, b: Self) -> Self {
                self.powf(b)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                <$t>::floor(self)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                if self > 0.0 {
                    1.0
                } else if self < 0.0 {
                    -1.0
                } else {
                    self
                }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self != self
            }
        }
        impl Float for $t {
            #[inline(always)]
            fn fma(self, a: Self, b: Self) -> Self {
                self.mul_add(a, b)
            }
            #[inline(always)]
            fn from_fraction(bits: u32) -> Self {
                let f: fn(u32) -> $t = $fraction;
                f(bits)
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self.to_bits() as u64
            }
        }
    };
}

float!(f32, F32, u32, |b| (b >> 8) as f32 * (1.0 / 16_777_216.0));
float!(f64, F64, u64, |b| b as f64 * (1.0 / 4_294_967_296.0));

/// Converts one pixel to another type: exact where it can be, else nearest (floats) or nearest even and saturating
/// (integers); a NaN becomes 0 in an integer type.
#[inline(always)]
pub fn convert_pixel<S: Pixel, D: Pixel>(v: S) -> D {
    // Every element type is exactly representable in f64, so one rounding takes place, in `from_f64`.
    D::from_f64(v.to_f64())
}

/// Runs `$body` with the type alias `$t` bound to the Rust type of a [`DType`] value.
#[macro_export]
macro_rules! dispatch {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::U8 => {
                type $t = u8;
                $body
            }
            $crate::dtype::DType::U16 => {
                type $t = u16;
                $body
            }
            $crate::dtype::DType::I32 => {
                type $t = i32;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $t = f64;
                $body
            }
        }
    };
}

/// Like [`dispatch!`], for the two float types only; `F64` selects `f64`, everything else `f32`.
#[macro_export]
macro_rules! dispatch_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::dtype::DType::F64 => {
                type $t = f64;
                $body
            }
            _ => {
                type $t = f32;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_saturate_and_divide_by_zero_to_zero() {
        assert_eq!(Pixel::add(250u8, 10), 255);
        assert_eq!(Pixel::sub(3u16, 10), 0);
        assert_eq!(Pixel::mul(i32::MAX, -2), i32::MIN);
        assert_eq!(Pixel::div(i32::MIN, -1), i32::MAX);
        assert_eq!(Pixel::div(7i32, 0), 0);
        assert_eq!(Pixel::neg(9u8), 0);
        assert_eq!(Pixel::absdiff(i32::MIN, i32::MAX), i32::MAX);
    }

    #[test]
    fn conversion_rounds_to_nearest_even_and_saturates() {
        assert_eq!(u8::from_f64(2.5), 2);
        assert_eq!(u8::from_f64(3.5), 4);
        assert_eq!(u8::from_f64(-1.0), 0);
        assert_eq!(u16::from_f64(1e9), 65535);
        assert_eq!(i32::from_f64(f64::NAN), 0);
    }

    #[test]
    fn float_extremes_ignore_nan_and_keep_the_first_on_a_tie() {
        assert_eq!(Pixel::max(f32::NAN, 1.0), 1.0);
        assert_eq!(Pixel::max(1.0, f32::NAN), 1.0);
        assert_eq!(Pixel::min(0.0f32, -0.0).to_bits(), 0.0f32.to_bits());
        assert_eq!(Pixel::min(-0.0f32, 0.0).to_bits(), (-0.0f32).to_bits());
    }

    #[test]
    fn fraction_weights_are_exact() {
        assert_eq!(f32::from_fraction(1 << 31), 0.5);
        assert_eq!(f64::from_fraction(1), 2f64.powi(-32));
    }
}
