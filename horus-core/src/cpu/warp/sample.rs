//! How one sample is made of the pixels around its position.

use super::Held;
use super::bilinear;
use super::line::Line;
use crate::cpu::simd::Isa;
use crate::dtype::{Float, Pixel};
use crate::ops::geometric::cubic_weights;

/// An interpolation over `N x N` pixels.
pub(super) trait Sampler<const N: usize> {
    /// Coordinate of the first pixel, relative to the integer part of the position.
    const FIRST: i64;

    /// The sample at fractions `fy`, `fx` (of 2^32); `row(k)` yields row `k` of the neighbourhood.
    fn sample<T: Pixel>(fy: u32, fx: u32, row: impl Fn(usize) -> [T; N]) -> T;

    /// Computes a run of samples inside the image by other means, if there are any; whether it did.
    #[inline(always)]
    fn accelerated<T: Pixel>(_isa: Isa, _held: &Held<'_, T>, _line: &Line, _out: &mut [T]) -> bool {
        false
    }
}

/// The pixel itself; positions are rounded beforehand.
pub(super) struct Nearest;

impl Sampler<1> for Nearest {
    const FIRST: i64 = 0;

    #[inline(always)]
    fn sample<T: Pixel>(_: u32, _: u32, row: impl Fn(usize) -> [T; 1]) -> T {
        row(0)[0]
    }
}

/// Linear in x, then in y.
pub(super) struct Bilinear;

#[inline(always)]
fn lerp<F: Float>(a: F, b: F, t: F) -> F {
    t.fma(b.sub(a), a)
}

impl Sampler<2> for Bilinear {
    const FIRST: i64 = 0;

    #[inline(always)]
    fn sample<T: Pixel>(fy: u32, fx: u32, row: impl Fn(usize) -> [T; 2]) -> T {
        let t = T::Interp::from_fraction(fx);
        let [top, bottom] = [0, 1].map(|k| {
            let [a, b] = row(k).map(T::to_interp);
            lerp(a, b, t)
        });
        T::from_interp(lerp(top, bottom, T::Interp::from_fraction(fy)))
    }

    #[inline(always)]
    fn accelerated<T: Pixel>(isa: Isa, held: &Held<'_, T>, line: &Line, out: &mut [T]) -> bool {
        bilinear::run(isa, held, line, out)
    }
}

/// Cubic convolution in x, then in y.
pub(super) struct Bicubic;

#[inline(always)]
fn weighted<F: Float>(w: &[F; 4], p: [F; 4]) -> F {
    (0..4).fold(F::ZERO, |acc, k| w[k].fma(p[k], acc))
}

impl Sampler<4> for Bicubic {
    const FIRST: i64 = -1;

    #[inline(always)]
    fn sample<T: Pixel>(fy: u32, fx: u32, row: impl Fn(usize) -> [T; 4]) -> T {
        let wx = cubic_weights(T::Interp::from_fraction(fx));
        let wy = cubic_weights(T::Interp::from_fraction(fy));
        let rows = [0, 1, 2, 3].map(|k| weighted(&wx, row(k).map(T::to_interp)));
        T::from_interp(weighted(&wy, rows))
    }
}
