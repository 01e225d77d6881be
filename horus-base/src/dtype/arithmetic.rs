//! The arithmetic of the eight numeric types.

use super::math::{double, functions, outlined, single};
use super::pixel::sealed::Sealed;
use super::{DType, Float, Pixel, Scalar};

/// Declares the transcendental [functions] as methods of a trait.
macro_rules! declared {
    ([] $($(#[$doc:meta])* $method:ident $function:ident($($further:ident)?);)*) => {
        $($(#[$doc])* fn $method(self $(, $further: Self)?) -> Self;)*
    };
}

/// Implements the [functions] of an integer type, in `f64`.
macro_rules! of_integers {
    ([] $($(#[$doc:meta])* $method:ident $function:ident($($further:ident)?);)*) => {$(
        #[inline(always)]
        fn $method(self $(, $further: Self)?) -> Self {
            Self::from_f64(outlined::$function(self as f64 $(, $further as f64)?))
        }
    )*};
}

/// Implements the [functions] of a float type, which are in a module.
macro_rules! of_floats {
    ([$module:ident] $($(#[$doc:meta])* $method:ident $function:ident($($further:ident)?);)*) => {$(
        #[inline(always)]
        fn $method(self $(, $further: Self)?) -> Self {
            $module::$function(self $(, $further)?)
        }
    )*};
}

/// The arithmetic of pixels, from which the table in `ops::pixel` is built. Every backend must agree with it.
/// Sealed.
///
/// Errors of the transcendental functions are in units in the last place (ulp), over the whole range of the
/// type. Special values follow Annex F of C99. Integers compute these functions in `f64` and convert back:
/// the result is rounded to nearest even and saturated, and a NaN becomes 0.
///
/// Generic code over [`Pixel`] has these methods without naming the trait. The prelude leaves the trait out
/// because methods of the standard library have the same names: `5i32.max(3)` is `Ord::max`.
pub trait Arithmetic: Sealed + Copy + PartialOrd + Default {
    /// `a + b`; integers saturate.
    fn add(self, b: Self) -> Self;
    /// `a - b`; integers saturate.
    fn sub(self, b: Self) -> Self;
    /// `a * b`; integers saturate.
    fn mul(self, b: Self) -> Self;
    /// `a / b`; integers truncate towards zero, saturate, and give 0 for `b == 0`.
    fn div(self, b: Self) -> Self;
    /// The remainder of `a / b` truncated towards zero, with the sign of `a` (C's `fmod`): exact. Integers
    /// give 0 for `b == 0`, floats a NaN.
    fn rem(self, b: Self) -> Self;
    /// Bits set in both. For operations on bits, a float is truncated to a 64-bit integer first: values out
    /// of range saturate, and a NaN is 0.
    fn bitwise_and(self, b: Self) -> Self;
    /// Bits set in one or both.
    fn bitwise_or(self, b: Self) -> Self;
    /// Bits set in exactly one.
    fn bitwise_xor(self, b: Self) -> Self;
    /// Bits shifted left by `b`; bits beyond the type are lost. The result is 0 if `b` is negative or at
    /// least the number of bits.
    fn left_shift(self, b: Self) -> Self;
    /// Bits shifted right by `b`, which rounds down. If `b` is negative or at least the number of bits, the
    /// result is 0, or -1 for a negative number.
    fn right_shift(self, b: Self) -> Self;
    /// `-a`; integers saturate (0 for unsigned types).
    fn neg(self) -> Self;
    /// `|a|`; integers saturate at the smallest of a signed type.
    fn abs(self) -> Self;
    /// Square root; integers round to nearest even, negative integers give 0.
    fn sqrt(self) -> Self;
    functions!(declared);
    /// Sine of an angle in radians. Error: at most 0.51 ulp (`f32`), 1 ulp (`f64`).
    fn sin(self) -> Self;
    /// Cosine of an angle in radians. Error: at most 0.51 ulp (`f32`), 1 ulp (`f64`).
    fn cos(self) -> Self;
    /// The largest integer not above `a`.
    fn floor(self) -> Self;
    /// The smallest integer not below `a`.
    fn ceil(self) -> Self;
    /// The nearest integer, ties to even.
    fn round(self) -> Self;
    /// -1, 0 or 1 (NaN stays NaN, a signed zero stays).
    fn sign(self) -> Self;
    /// Returns `true` if the value is a NaN.
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
    /// The smaller, a NaN if either is one; the first on a tie.
    #[inline(always)]
    fn minimum(self, b: Self) -> Self {
        if b < self || b.is_nan() { b } else { self }
    }
    /// The larger, a NaN if either is one; the first on a tie.
    #[inline(always)]
    fn maximum(self, b: Self) -> Self {
        if b > self || b.is_nan() { b } else { self }
    }
    /// The value that comes first in the order of numbers: by value, -0 before +0, NaN last.
    fn lower(self, b: Self) -> Self;
    /// The value that comes last in the order of [`Arithmetic::lower`].
    fn upper(self, b: Self) -> Self;
    /// `|a - b|`; integers saturate.
    #[inline(always)]
    fn absdiff(self, b: Self) -> Self {
        if self > b { self.sub(b) } else { b.sub(self).abs() }
    }
    /// A digit of the rank of `a` among all numbers of its type: 16 bits; level 0 is the most significant
    /// digit. `u32`, `i32` and `f32` have 32 bits, `f64` has 64. An 8- or 16-bit integer is its own only
    /// digit. The digit is 0 for a level that does not exist, and a NaN for a NaN. Zeros of both signs rank
    /// equally.
    fn order_digit(self, level: Self) -> Self;
    /// `|a / b|`, and 0 where `|b| < eps`.
    #[inline(always)]
    fn absdiv(self, b: Self, eps: Self) -> Self {
        if b.abs() < eps { Self::default() } else { self.div(b).abs() }
    }
    /// `a * b + c`: floats round once, integers saturate twice.
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self.mul(b).add(c)
    }
}

/// Implements the operations on bits for a pixel type, in an integer type.
macro_rules! bits {
    ($whole:ident) => {
        #[inline(always)]
        fn bitwise_and(self, b: Self) -> Self {
            (self as $whole & b as $whole) as Self
        }
        #[inline(always)]
        fn bitwise_or(self, b: Self) -> Self {
            (self as $whole | b as $whole) as Self
        }
        #[inline(always)]
        fn bitwise_xor(self, b: Self) -> Self {
            (self as $whole ^ b as $whole) as Self
        }
        #[inline(always)]
        fn left_shift(self, b: Self) -> Self {
            let places = b as i64;
            let inside = (0..$whole::BITS as i64).contains(&places);
            (if inside { (self as $whole).wrapping_shl(places as u32) } else { 0 }) as Self
        }
        #[inline(always)]
        fn right_shift(self, b: Self) -> Self {
            let places = b as i64;
            let inside = (0..$whole::BITS as i64).contains(&places);
            let by = if inside { places as u32 } else { $whole::BITS - 1 };
            let moved = self as $whole >> by;
            (if inside { moved } else { moved >> 1 }) as Self
        }
    };
}

macro_rules! integer {
    ($t:ident, $wide:ident, $tag:ident, $linear:ty, $interp:ty, $neg:expr, $abs:expr, $sign:expr) => {
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
            fn cast_f64(v: f64) -> Self {
                // The remainder is exact and in range; it is a NaN for values that are not finite.
                (v % (1u64 << $t::BITS) as f64) as i64 as $t
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
        }
        impl Arithmetic for $t {
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
                // Same result as `saturating_mul`, which compilers do not vectorise.
                let product = $wide::from(self) * $wide::from(b);
                product.clamp($wide::from($t::MIN), $wide::from($t::MAX)) as $t
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.saturating_div(b) }
            }
            #[inline(always)]
            fn rem(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_rem(b) }
            }
            bits!($t);
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
            functions!(of_integers);
            #[inline(always)]
            fn sin(self) -> Self {
                if self.far() { Self::from_f64(outlined::sin_far(self as f64)) } else { self.sin_near() }
            }
            #[inline(always)]
            fn cos(self) -> Self {
                if self.far() { Self::from_f64(outlined::cos_far(self as f64)) } else { self.cos_near() }
            }
            #[inline(always)]
            fn lower(self, b: Self) -> Self {
                if b < self { b } else { self }
            }
            #[inline(always)]
            fn upper(self, b: Self) -> Self {
                if b > self { b } else { self }
            }
            #[inline(always)]
            fn order_digit(self, level: Self) -> Self {
                if size_of::<$t>() <= 2 {
                    return if level == 0 { self } else { 0 };
                }
                let place = self as i64 - <$t>::MIN as i64;
                match level as i64 {
                    0 => (place >> 16) as $t,
                    1 => (place & 0xffff) as $t,
                    _ => 0,
                }
            }
            #[inline(always)]
            fn floor(self) -> Self {
                self
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                self
            }
            #[inline(always)]
            fn round(self) -> Self {
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

integer!(u8, u16, U8, f32, f32, |_| 0, |a| a, |a| Ord::min(a, 1));
integer!(u16, u32, U16, f32, f32, |_| 0, |a| a, |a| Ord::min(a, 1));
integer!(u32, u64, U32, f32, f64, |_| 0, |a| a, |a| Ord::min(a, 1));
integer!(i8, i16, I8, f32, f32, |a| a.saturating_neg(), |a| a.saturating_abs(), |a| a.signum());
integer!(i16, i32, I16, f32, f32, |a| a.saturating_neg(), |a| a.saturating_abs(), |a| a.signum());
integer!(i32, i64, I32, f32, f64, |a| a.saturating_neg(), |a| a.saturating_abs(), |a| a.signum());

macro_rules! float {
    ($t:ident, $tag:ident, $functions:ident, $fraction:expr) => {
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
            fn cast_f64(v: f64) -> Self {
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
        }
        impl Arithmetic for $t {
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
            fn rem(self, b: Self) -> Self {
                self % b
            }
            bits!(i64);
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
            functions!(of_floats $functions);
            #[inline(always)]
            fn sin(self) -> Self {
                if self.far() { $functions::sin_far(self) } else { self.sin_near() }
            }
            #[inline(always)]
            fn cos(self) -> Self {
                if self.far() { $functions::cos_far(self) } else { self.cos_near() }
            }
            #[inline(always)]
            fn lower(self, b: Self) -> Self {
                if b < self || self.is_nan() || (b == self && b.is_sign_negative()) { b } else { self }
            }
            #[inline(always)]
            fn upper(self, b: Self) -> Self {
                if b > self || b.is_nan() || (b == self && self.is_sign_negative()) { b } else { self }
            }
            #[inline(always)]
            fn order_digit(self, level: Self) -> Self {
                const BITS: u32 = <$t>::MAX.to_bits().count_ones().next_power_of_two();
                // Zeros of both signs are equal.
                let bits = (self + 0.0).to_bits();
                let place = if bits >> (BITS - 1) != 0 { !bits } else { bits | 1 << (BITS - 1) };
                let digit = (0..BITS / 16)
                    .fold(0, |digit, k| if level == k as $t { place >> (BITS - 16 * (k + 1)) & 0xffff } else { digit });
                if self.is_nan() { self } else { digit as $t }
            }
            #[inline(always)]
            fn floor(self) -> Self {
                <$t>::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                <$t>::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                self.round_ties_even()
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
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
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

float!(f32, F32, single, |b| (b >> 8) as f32 * (1.0 / 16_777_216.0));
float!(f64, F64, double, |b| b as f64 * (1.0 / 4_294_967_296.0));
