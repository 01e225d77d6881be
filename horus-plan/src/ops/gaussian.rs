//! Taps of Gaussians and their derivatives, by our own exponential: versions of a C library may differ in bits.

use horus_base::dtype::Arithmetic;

/// The positions of the taps of a filter of this radius.
pub(crate) fn positions(radius: usize) -> impl DoubleEndedIterator<Item = f64> + Clone {
    (-radius.cast_signed()..=radius.cast_signed()).map(|x| x as f64)
}

/// The unnormalised smoothing kernel at `x`.
pub(crate) fn bell(x: f64, sigma: f64) -> f64 {
    Arithmetic::exp(-x * x / (2.0 * sigma * sigma))
}

/// The sum of the unnormalised smoothing kernel over its support.
pub(crate) fn weight(sigma: f64, radius: usize) -> f64 {
    positions(radius).map(|x| bell(x, sigma)).sum()
}

/// The factor at `x` that turns a smoothing kernel into one whose correlation is the derivative.
pub(crate) fn factor(x: f64, sigma: f64, order: u32) -> f64 {
    let s2 = sigma * sigma;
    match order {
        0 => 1.0,
        1 => x / s2,
        _ => x * x / (s2 * s2) - 1.0 / s2,
    }
}

/// The taps of a Gaussian, or of its derivative of this order.
pub(crate) fn gauss_taps(sigma: f64, order: u32, radius: usize) -> Vec<f64> {
    let sum = weight(sigma, radius);
    positions(radius).map(|x| bell(x, sigma) / sum * factor(x, sigma, order)).collect()
}
