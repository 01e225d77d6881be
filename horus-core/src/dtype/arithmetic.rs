//! The arithmetic of the five element types.

use super::{DType, Float, Pixel, Scalar};

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
