//! Functions of `f32`. `exp` and `log` are computed in `f32`, the others in `f64` and then rounded.

use super::{PI_2_LOW, ROUND, SIGN, TWO_OVER_PI, fma, octants, polynomial, split};

/// Rounds a number below 2^22 in magnitude to the nearest integer when added to it; the low bits then hold
/// the integer.
const ROUND_32: f32 = 12_582_912.0;
/// Bits of two thirds, the start of the range of mantissas, which contains 1.
const TWO_THIRDS: u32 = 0x3f2a_aaab;
const LN_2_LOW_32: f32 = -1.9046542e-9;

/// The natural exponential. Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Beyond these limits the result is constant. A NaN stays.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let rounded = x.mul_add(std::f32::consts::LOG2_E, ROUND_32);
    let n = rounded - ROUND_32;
    let r = (-n).mul_add(LN_2_LOW_32, (-n).mul_add(std::f32::consts::LN_2, x));
    let q = 0.0013926184f32.mul_add(r, 0.008363179);
    let q = q.mul_add(r, 0.041666556).mul_add(r, 0.16666576).mul_add(r, 0.5);
    // The sum of 1 and r, and its rounding error.
    let high = 1.0 + r;
    let lost = (1.0 - high) + r;
    let p = high + (r * r).mul_add(q, lost);
    let n = rounded.to_bits().wrapping_sub(ROUND_32.to_bits()).wrapping_add(256);
    let half = n >> 1;
    // Two powers, because one would overflow where the result does not.
    p * f32::from_bits((half.wrapping_sub(1)) << 23) * f32::from_bits((n.wrapping_sub(half).wrapping_sub(1)) << 23)
}

/// The natural logarithm. Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn log(x: f32) -> f32 {
    // The exponent is read as a number above 2^23; this offset is subtracted.
    let (normal, offset) =
        if x < f32::MIN_POSITIVE { (x * 16_777_216.0, 8_388_608.0 + 128.0 + 24.0) } else { (x, 8_388_608.0 + 128.0) };
    let t = normal.to_bits().wrapping_sub(TWO_THIRDS).wrapping_add(128 << 23);
    let e = f32::from_bits(0x4b00_0000 | (t >> 23)) - offset;
    let f = f32::from_bits((t & 0x007f_ffff).wrapping_add(TWO_THIRDS)) - 1.0;
    let z = f * f;
    let q = (-0.13347776f32).mul_add(f, 0.14155632).mul_add(f, -0.1207369).mul_add(f, 0.13967459);
    let q = q.mul_add(f, -0.16689016).mul_add(f, 0.20013064).mul_add(f, -0.24999592).mul_add(f, 0.3333316);
    // e times the logarithm of 2, and f - f^2 / 2 + f^3 q. The rounding error of the first sum is computed
    // exactly.
    let high = e.mul_add(std::f32::consts::LN_2, f);
    let lost = e.mul_add(std::f32::consts::LN_2, -high) + f;
    let log = high + z.mul_add(f.mul_add(q, -0.5), lost);
    let log = if x < f32::INFINITY { log } else { x };
    if x > 0.0 {
        log
    } else if x == 0.0 {
        f32::NEG_INFINITY
    } else {
        f32::NAN
    }
}

/// `x` to the power `y`. Error: at most 0.63 ulp.
#[inline(always)]
pub(crate) fn pow(x: f32, y: f32) -> f32 {
    let size = x.abs();
    let (e, m) = split(f64::from(size));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let t = polynomial(
        z,
        [0.09681388418373767, 0.11095697246587528, 0.1428587731786638, 0.19999999398424337, 0.33333333333687726],
    );
    let log = fma(e, std::f64::consts::LN_2, fma(2.0 * s * z, t, 2.0 * s));
    // Finite numbers replace infinities, so that their products with 0 are 0.
    let log = if size == 0.0 { -1e300 } else { log };
    let log = if size == f32::INFINITY { 1e300 } else { log };
    let exponent = if y > f32::MAX { f32::MAX } else { y };
    let exponent = if exponent < f32::MIN { f32::MIN } else { exponent };
    let p = exponential(f64::from(exponent) * log) as f32;
    let half = 0.5 * y;
    let (whole, odd) = (y.floor() == y, half.floor() != half);
    let p = if whole && odd && x.to_bits() >> 31 != 0 { -p } else { p };
    let p = if x < 0.0 && x > f32::NEG_INFINITY && !whole { f32::NAN } else { p };
    let p = if x.is_nan() || y.is_nan() { f32::NAN } else { p };
    if x == 1.0 || y == 0.0 { 1.0 } else { p }
}

/// The exponential, accurate enough for results of `f32`; arbitrary for a NaN.
#[inline(always)]
fn exponential(x: f64) -> f64 {
    let x = if x > 90.0 { 90.0 } else { x };
    let x = if x < -105.0 { -105.0 } else { x };
    let rounded = fma(x, std::f64::consts::LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = fma(-n, std::f64::consts::LN_2, x);
    let q =
        polynomial(r, [0.0013926183587713494, 0.008363179052722578, 0.041666554617204574, 0.16666576989698775, 0.5]);
    let p = fma(r * r, q, r) + 1.0;
    f64::from_bits(p.to_bits().wrapping_add(rounded.to_bits() << 52))
}

/// The quadrant of `x`, `|x|` below [`NEAR`](super::NEAR), in the low bits, and the angle to its middle.
#[inline(always)]
fn reduce(x: f64) -> (u64, f64) {
    let rounded = fma(x, TWO_OVER_PI, ROUND);
    let n = rounded - ROUND;
    (rounded.to_bits(), fma(-n, PI_2_LOW, fma(-n, std::f64::consts::FRAC_PI_2, x)))
}

/// The sine of `r` after `quadrant` quarter turns, accurate enough for results of `f32`.
#[inline(always)]
fn sine(quadrant: u64, r: f64) -> f64 {
    let z = r * r;
    let s = polynomial(z, [2.72499251916102e-6, -0.00019840086730669247, 0.008333331874701479, -0.16666666663855267]);
    let c = polynomial(z, [-2.730095869356721e-7, 2.4800600373221058e-5, -0.0013888887672009506, 0.041666666664321186]);
    let s = r * fma(z, s, 1.0);
    let c = fma(z, fma(z, c, -0.5), 1.0);
    let v = if quadrant & 1 != 0 { c } else { s };
    f64::from_bits(v.to_bits() ^ (quadrant << 62 & SIGN))
}

/// The sine of `x`, `|x|` below [`NEAR`](super::NEAR). Error: at most 0.51 ulp.
#[inline(always)]
pub(crate) fn sin_near(x: f32) -> f32 {
    let (quadrant, r) = reduce(f64::from(x));
    sine(quadrant, r) as f32
}

/// The cosine of `x`, `|x|` below [`NEAR`](super::NEAR). Error: at most 0.51 ulp.
#[inline(always)]
pub(crate) fn cos_near(x: f32) -> f32 {
    let (quadrant, r) = reduce(f64::from(x));
    sine(quadrant.wrapping_add(1), r) as f32
}

/// The angle of the point `(x, y)`, in `-pi..=pi`. Error: at most 0.51 ulp.
#[inline(always)]
pub(crate) fn atan2(y: f32, x: f32) -> f32 {
    let (y, x) = (f64::from(y), f64::from(x));
    let (small, large) = if y.abs() > x.abs() { (x.abs(), y.abs()) } else { (y.abs(), x.abs()) };
    let small = if small < f64::INFINITY { small } else { f64::MAX };
    let large = if large < f64::INFINITY { large } else { f64::MAX };
    let u = small / if large == 0.0 { 1.0 } else { large };
    let z = u * u;
    let p = polynomial(
        z,
        [
            0.0005930437556365282,
            -0.0042216579909296476,
            0.014072923344697239,
            -0.02991311194551696,
            0.047294798621813336,
            -0.06246315194128317,
            0.0758665283364667,
            -0.09073553118976409,
            0.11109392308322223,
            -0.14285624891483525,
            0.19999998154086215,
            -0.3333333332694414,
        ],
    );
    octants(y, x, u, u * z * p) as f32
}

/// `sqrt(x^2 + y^2)` without intermediate over- or underflow. Error: at most 0.51 ulp.
#[inline(always)]
pub(crate) fn hypot(x: f32, y: f32) -> f32 {
    let (x, y) = (f64::from(x), f64::from(y));
    let h = fma(x, x, y * y).sqrt() as f32;
    if x.abs() == f64::INFINITY || y.abs() == f64::INFINITY { f32::INFINITY } else { h }
}

/// The sine of any `x`, by `argument_reduction::reduce`.
pub(crate) fn sin_far(x: f32) -> f32 {
    super::double::sin_far(f64::from(x)) as f32
}

/// The cosine of any `x`, by `argument_reduction::reduce`.
pub(crate) fn cos_far(x: f32) -> f32 {
    super::double::cos_far(f64::from(x)) as f32
}
