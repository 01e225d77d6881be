//! The transcendental functions of pixels, one implementation for all machines.
//!
//! Every operation is an operation of IEEE 754, an explicit fused multiply-add, or a bit operation, so
//! results have the same bits on every instruction set. `kernels/math.cuh` computes the same operations in
//! the same order on a GPU. Polynomials have fixed degrees, and selections replace branches and tables, so
//! that loops over pixels vectorise. Only sines and cosines of arguments of 2^30 and more branch: see
//! `argument_reduction`.
//!
//! Special values follow Annex F of C99. Error bounds are in units in the last place (ulp) of the result; the
//! tests measure them. `tests/goldens/mathematics.py` computes the coefficients.

/// The functions that pixels call by name. [`Arithmetic`](super::Arithmetic) declares them; `f32` and `f64`
/// call [`single`] and [`double`], integers call [`outlined`]. Calls `$callback!` with the arguments that
/// follow its name, in brackets, and the list: method, function, further arguments.
macro_rules! functions {
    ($callback:ident $($given:tt)*) => {
        $callback! {
            [$($given)*]
            /// Natural exponential. Error: at most 1 ulp.
            exp exp();
            /// Natural logarithm. Error: at most 1 ulp.
            ln log();
            /// `a` to the power `b`. Error: at most 0.63 ulp (`f32`), 1 ulp (`f64`).
            pow pow(b);
            /// Angle of the point with ordinate `a` and abscissa `b`, in `-pi..=pi`. Error: at most 0.51
            /// ulp (`f32`), 1 ulp (`f64`).
            atan2 atan2(b);
            /// `sqrt(a * a + b * b)` without intermediate over- or underflow. Error: at most 0.51 ulp
            /// (`f32`), 1 ulp (`f64`).
            hypot hypot(b);
        }
    };
}
pub(crate) use functions;

mod argument_reduction;
pub(crate) mod double;
pub(crate) mod outlined;
pub(crate) mod single;
#[cfg(test)]
mod tests;

/// The smallest `|x|` whose sine and cosine need `argument_reduction::reduce`.
pub(crate) const NEAR: f64 = 1_073_741_824.0;

/// `a * b + c` with one rounding.
#[inline(always)]
fn fma(a: f64, b: f64, c: f64) -> f64 {
    a.mul_add(b, c)
}

/// `a + b`, and its rounding error.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let t = s - a;
    (s, (a - (s - t)) + (b - t))
}

/// `a + b` for `|a| >= |b|`, and its rounding error.
#[inline(always)]
fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, (a - s) + b)
}

/// The polynomial with these coefficients, highest power first.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut p = coefficients[0];
    let mut i = 1;
    while i < N {
        p = fma(p, x, coefficients[i]);
        i += 1;
    }
    p
}

/// Rounds a number below 2^51 in magnitude to the nearest integer when added to it; the low bits then hold
/// the integer.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// Bits of the square root of one half, the start of the range of mantissas, which contains 1.
const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;

/// Splits a positive, normal and finite `x` into `2^e * m`, with `m` in `sqrt(1/2)..sqrt(2)`.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    // The exponent plus 1024, above the mantissa.
    let t = x.to_bits().wrapping_sub(SQRT_HALF).wrapping_add(1024 << 52);
    let e = f64::from_bits(0x4330_0000_0000_0000 | (t >> 52)) - (4_503_599_627_370_496.0 + 1024.0);
    (e, f64::from_bits((t & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF)))
}

/// `p * 2^n` with one rounding, for `p` in `1/2..2` and `n + ROUND` of -1100..=1100.
#[inline(always)]
fn scale(p: f64, rounded: f64) -> f64 {
    let n = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(2048);
    let half = n >> 1;
    // Two powers, because one would overflow where the result does not.
    p * f64::from_bits((half.wrapping_sub(1)) << 52) * f64::from_bits((n.wrapping_sub(half).wrapping_sub(1)) << 52)
}

/// Returns `true` if `y` is an integer, and `true` if it is odd: they determine the sign and the special
/// cases of a power.
#[inline(always)]
fn integer(y: f64) -> (bool, bool) {
    let half = 0.5 * y;
    (y.floor() == y, y.floor() == y && half.floor() != half)
}

/// `x` to the power `y`, from the power `p` of `|x|`.
#[inline(always)]
fn signed_power(x: f64, y: f64, p: f64) -> f64 {
    let (whole, odd) = integer(y);
    let p = if odd && x.to_bits() >> 63 != 0 { -p } else { p };
    let p = if x < 0.0 && x > f64::NEG_INFINITY && !whole { f64::NAN } else { p };
    let p = if x == -1.0 && y.abs() == f64::INFINITY { 1.0 } else { p };
    if x == 1.0 || y == 0.0 { 1.0 } else { p }
}

/// The angle in any octant from the angle in the first: `high + rest` is the arc tangent of the smaller over
/// the larger coordinate.
#[inline(always)]
fn octants(y: f64, x: f64, high: f64, rest: f64) -> f64 {
    // Right angles from the nearer axis: 0, half a turn, or a quarter.
    let steep = y.abs() > x.abs();
    let left = x.to_bits() >> 63 != 0;
    let base = if steep {
        std::f64::consts::FRAC_PI_2
    } else if left {
        std::f64::consts::PI
    } else {
        0.0
    };
    let low = if steep {
        PI_2_LOW
    } else if left {
        2.0 * PI_2_LOW
    } else {
        0.0
    };
    let backwards = steep != left;
    let (high, rest) = if backwards { (-high, -rest) } else { (high, rest) };
    let (sum, lost) = fast_two_sum(base, high);
    let angle = sum + (lost + (rest + low));
    let angle = f64::from_bits(angle.to_bits() & !SIGN | y.to_bits() & SIGN);
    if x.is_nan() || y.is_nan() { f64::NAN } else { angle }
}

const SIGN: u64 = 1 << 63;
/// The exact quarter turn minus its nearest number.
const PI_2_LOW: f64 = 6.123233995736766e-17;
const PI_2_LOWEST: f64 = -1.4973849048591698e-33;
const TWO_OVER_PI: f64 = std::f64::consts::FRAC_2_PI;
const LN_2_LOW: f64 = 2.3190468138462996e-17;
