//! Functions of `f64`.

use super::{
    LN_2_LOW, PI_2_LOW, PI_2_LOWEST, ROUND, SIGN, TWO_OVER_PI, fast_two_sum, fma, octants, polynomial, scale,
    signed_power, split, two_sum,
};

/// The logarithm of 2 in two parts. Products of the first part and an exponent are exact.
const LN_2_SHORT: f64 = 0.6931471803691238;
const LN_2_REST: f64 = 1.9082149292705877e-10;

/// The natural exponential. Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    exponential(x, 0.0)
}

/// The exponential of `x + low`.
#[inline(always)]
fn exponential(x: f64, low: f64) -> f64 {
    // Beyond these limits the result is constant. A NaN stays.
    let within = x.abs() < 750.0;
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let low = if within { low } else { 0.0 };
    let rounded = fma(x, std::f64::consts::LOG2_E, ROUND);
    let n = rounded - ROUND;
    let (r, lost) = two_sum(fma(-n, std::f64::consts::LN_2, x), fma(-n, LN_2_LOW, low));
    let q = polynomial(
        r,
        [
            2.0914968086968086e-9,
            2.5105217004720745e-8,
            2.75572736431103e-7,
            2.7557255400206422e-6,
            2.4801587325547743e-5,
            0.00019841269874820627,
            0.0013888888888883748,
            0.008333333333326136,
            0.04166666666666667,
            0.1666666666666667,
            0.5,
        ],
    );
    let (high, rest) = fast_two_sum(1.0, r);
    scale(high + (rest + fma(r * r, q, fma(lost, r, lost))), rounded)
}

/// `x` (not negative), scaled into the range of [`split`], and the correction of the result's exponent.
#[inline(always)]
fn normal(x: f64) -> (f64, f64) {
    if x < f64::MIN_POSITIVE { (x * 18_014_398_509_481_984.0, 54.0) } else { (x, 0.0) }
}

/// The natural logarithm. Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn log(x: f64) -> f64 {
    let (scaled, less) = normal(x);
    let (e, m) = split(scaled);
    let (e, f) = (e - less, m - 1.0);
    let s = f / (2.0 + f);
    let z = s * s;
    let t = polynomial(
        z,
        [
            0.0594107135631366,
            0.05844053793297961,
            0.06667819693179736,
            0.0769228755788331,
            0.090909092969338,
            0.11111111109928644,
            0.14285714285717682,
            0.19999999999999996,
            0.3333333333333333,
        ],
    );
    // 2 s = f - s f, and s f = f^2 / 2 - s f^2 / 2.
    let square = 0.5 * f * f;
    let rest = fma(s, fma(2.0 * z, t, square), e * LN_2_REST) - square;
    let (high, lost) = fast_two_sum(e * LN_2_SHORT, f);
    let log = high + (lost + rest);
    let log = if x < f64::INFINITY { log } else { x };
    if x > 0.0 {
        log
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else {
        f64::NAN
    }
}

/// The logarithm of a finite `x > 0` as a sum of two numbers, with about 68 correct bits.
#[inline(always)]
fn long_log(x: f64) -> (f64, f64) {
    let (scaled, less) = normal(x);
    let (e, m) = split(scaled);
    let (e, f) = (e - less, m - 1.0);
    // s = (m - 1) / (m + 1), z its square, t = (atanh(s) / s - 1) / z, all in two parts.
    let (d, d_low) = two_sum(m, 1.0);
    let s = f / d;
    let s_low = fma(-s, d_low, fma(-s, d, f)) / d;
    let z = s * s;
    let z_low = fma(2.0 * s, s_low, fma(s, s, -z));
    let u = polynomial(
        z,
        [
            0.04985669630810336,
            0.04720958456369712,
            0.052645941225085126,
            0.058823226586351446,
            0.066666670607789,
            0.07692307689190146,
            0.09090909090923241,
            0.11111111111111079,
            0.14285714285714285,
            0.2,
        ],
    );
    let p = z * u;
    let p_low = fma(z_low, u, fma(z, u, -p));
    let (t, lost) = fast_two_sum(1.0 / 3.0, p);
    let t_low = lost + (p_low + THIRD_LOW);
    let w = z * t;
    let w_low = fma(z, t_low, fma(z_low, t, fma(z, t, -w)));
    let (s, s_low) = (2.0 * s, 2.0 * s_low);
    let g = s * w;
    let g_low = fma(s, w_low, fma(s_low, w, fma(s, w, -g)));
    let (l, lost) = fast_two_sum(s, g);
    let l_low = lost + (g_low + s_low);
    let (high, lost) = fast_two_sum(e * LN_2_SHORT, l);
    fast_two_sum(high, lost + fma(e, LN_2_REST, l_low))
}

/// The exact third minus its nearest number.
const THIRD_LOW: f64 = 1.850371707708594e-17;

/// `x` to the power `y`. Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    let size = x.abs();
    let (log, low) = long_log(size);
    let log = if size == 0.0 { f64::NEG_INFINITY } else { log };
    let log = if size < f64::INFINITY { log } else { size };
    let product = y * log;
    signed_power(x, y, exponential(product, fma(y, low, fma(y, log, -product))))
}

/// The quadrant of `x`, `|x|` below [`NEAR`](super::NEAR), in the low bits, and the angle to its
/// middle in two parts.
#[inline(always)]
fn reduce(x: f64) -> (u64, f64, f64) {
    let rounded = fma(x, TWO_OVER_PI, ROUND);
    let n = rounded - ROUND;
    let p = n * PI_2_LOW;
    let p_low = fma(n, PI_2_LOWEST, fma(n, PI_2_LOW, -p));
    let (r, lost) = two_sum(fma(-n, std::f64::consts::FRAC_PI_2, x), -p);
    (rounded.to_bits(), r, lost - p_low)
}

/// The sine of `r + low` after `quadrant` quarter turns.
#[inline(always)]
fn sine(quadrant: u64, r: f64, low: f64) -> f64 {
    let z = r * r;
    let s = polynomial(
        z,
        [
            -7.586696997236634e-13,
            1.6058531616942478e-10,
            -2.5052106232434684e-8,
            2.755731921933913e-6,
            -0.00019841269841265065,
            0.008333333333333331,
            -0.16666666666666666,
        ],
    );
    let c = polynomial(
        z,
        [
            4.745871835064003e-14,
            -1.1470460886473721e-11,
            2.0876755791073254e-9,
            -2.7557319221402803e-7,
            2.4801587301584645e-5,
            -0.0013888888888888887,
            0.041666666666666664,
        ],
    );
    let half = 0.5 * z;
    let s = r + fma(r * z, s, fma(-half, low, low));
    let (high, lost) = fast_two_sum(1.0, -half);
    let c = high + (lost + fma(z * z, c, -(r * low)));
    let v = if quadrant & 1 != 0 { c } else { s };
    f64::from_bits(v.to_bits() ^ (quadrant << 62 & SIGN))
}

/// The sine of `x`, `|x|` below [`NEAR`](super::NEAR). Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn sin_near(x: f64) -> f64 {
    let (quadrant, r, low) = reduce(x);
    // Zeros keep their sign.
    if x == 0.0 { x } else { sine(quadrant, r, low) }
}

/// The cosine of `x`, `|x|` below [`NEAR`](super::NEAR). Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn cos_near(x: f64) -> f64 {
    let (quadrant, r, low) = reduce(x);
    sine(quadrant.wrapping_add(1), r, low)
}

/// The sine of any `x`.
pub(crate) fn sin_far(x: f64) -> f64 {
    let (quadrant, r, low) = super::argument_reduction::reduce(x);
    sine(quadrant, r, low)
}

/// The cosine of any `x`.
pub(crate) fn cos_far(x: f64) -> f64 {
    let (quadrant, r, low) = super::argument_reduction::reduce(x);
    sine(quadrant.wrapping_add(1), r, low)
}

/// The angle of the point `(x, y)`, in `-pi..=pi`. Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn atan2(y: f64, x: f64) -> f64 {
    let (small, large) = if y.abs() > x.abs() { (x.abs(), y.abs()) } else { (y.abs(), x.abs()) };
    // An infinite coordinate becomes 1; a finite one next to an infinite one becomes 0.
    let infinite = large == f64::INFINITY;
    let small = if infinite { if small == large { 1.0 } else { 0.0 } } else { small };
    let large = if infinite || large == 0.0 { 1.0 } else { large };
    // Scales both, so that sums do not overflow and products keep their low parts.
    let by = if large > LARGE { 1.0 / SMALL_FACTOR } else { 1.0 };
    let by = if large < 1.0 / LARGE { FACTOR } else { by };
    let (a, b) = (small * by, large * by);
    // The tangent of the angle, or of its distance from an eighth of a turn.
    let diagonal = a > 0.41421356237309503 * b;
    let (n, n_low) = if diagonal { two_sum(a, -b) } else { (a, 0.0) };
    let (d, d_low) = if diagonal { two_sum(b, a) } else { (b, 0.0) };
    let u = n / d;
    let u_low = (fma(-u, d_low, fma(-u, d, n)) + n_low) / d;
    let z = u * u;
    let p = polynomial(
        z,
        [
            0.016284375050043393,
            -0.03456931506332609,
            0.045515447340221615,
            -0.05230443640686948,
            0.05878927554473807,
            -0.0666642476020052,
            0.07692296368042296,
            -0.09090908753259112,
            0.11111111105150588,
            -0.14285714285659779,
            0.19999999999999804,
            -0.3333333333333333,
        ],
    );
    let rest = fma(u * z, p, fma(-z, u_low, u_low));
    let (high, lost) = if diagonal { fast_two_sum(std::f64::consts::FRAC_PI_4, u) } else { (u, 0.0) };
    let rest = if diagonal { lost + (rest + 0.5 * PI_2_LOW) } else { rest };
    octants(y, x, high, rest)
}

/// `sqrt(x^2 + y^2)` without intermediate over- or underflow. Error: at most 1 ulp.
#[inline(always)]
pub(crate) fn hypot(x: f64, y: f64) -> f64 {
    let (small, large) = if y.abs() > x.abs() { (x.abs(), y.abs()) } else { (y.abs(), x.abs()) };
    // Powers of 2 that keep squares from overflowing or losing significant bits.
    let (by, back) = if large > LARGE { (1.0 / FACTOR, FACTOR) } else { (1.0, 1.0) };
    let (by, back) = if large < 1.0 / LARGE { (FACTOR, 1.0 / FACTOR) } else { (by, back) };
    let (a, b) = (small * by, large * by);
    let h = fma(b, b, a * a).sqrt() * back;
    if x.abs() == f64::INFINITY || y.abs() == f64::INFINITY { f64::INFINITY } else { h }
}

/// 2^500, 2^100 and 2^700. If scaling by the second flushes a small coordinate to 0 next to a large one, the
/// quotient is 0.
const LARGE: f64 = f64::from_bits((1023 + 500) << 52);
const SMALL_FACTOR: f64 = f64::from_bits((1023 + 100) << 52);
const FACTOR: f64 = f64::from_bits((1023 + 700) << 52);
