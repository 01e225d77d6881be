//! Interpolation of samples from the pixels around their positions.

use super::PlaneRows;
use super::bilinear;
use super::line::WarpLine;
use crate::simd::Isa;
use horus_base::dtype::{Float, Pixel};
use horus_plan::ops::geometric::cubic_weights;

/// A step of one pixel.
const ONE: i64 = 1 << 32;

/// An interpolation over `N x N` pixels.
pub(super) trait Sampler<const N: usize> {
    /// Coordinate of the first pixel, relative to the integer part of the position.
    const FIRST: i64;

    /// Computes `L` samples at fractions `fy`, `fx` (of 2^32). `pixel(k, j)` returns pixel `j` of row `k` of each
    /// neighbourhood.
    ///
    /// Written in lanes, so that one definition serves single samples and vectors.
    fn sample<T: Pixel, const L: usize>(fy: &[u32; L], fx: &[u32; L], pixel: impl Fn(usize, usize) -> [T; L])
    -> [T; L];

    /// Computes a run of samples inside the image by a faster method; returns `false` if there is none.
    #[inline(always)]
    fn accelerated<P: Pixel, T: Pixel>(_isa: Isa, _held: &PlaneRows<'_, P>, _line: &WarpLine, _out: &mut [T]) -> bool {
        false
    }
}

/// The pixel itself; positions are rounded beforehand.
pub(super) struct Nearest;

impl Sampler<1> for Nearest {
    const FIRST: i64 = 0;

    #[inline(always)]
    fn sample<T: Pixel, const L: usize>(_: &[u32; L], _: &[u32; L], pixel: impl Fn(usize, usize) -> [T; L]) -> [T; L] {
        pixel(0, 0)
    }

    /// Shifts and broadcasts: a run of one row, or one pixel repeated.
    #[inline(always)]
    fn accelerated<P: Pixel, T: Pixel>(_: Isa, held: &PlaneRows<'_, P>, line: &WarpLine, out: &mut [T]) -> bool {
        if P::DTYPE != T::DTYPE || line.y.step != 0 || !matches!(line.x.step, 0 | ONE) {
            return false;
        }
        let (y, x) = line.at(0);
        let at = ((y >> 32) - held.window.start as i64) * held.width as i64 + (x >> 32);
        // The caller's run is inside the rows in memory, so this cannot fail.
        let Ok(at) = usize::try_from(at) else { return false };
        let data = bytemuck::cast_slice::<P, T>(held.data);
        match line.x.step {
            0 => data.get(at).map(|pixel| out.fill(*pixel)).is_some(),
            _ => data.get(at..at + out.len()).map(|pixels| out.copy_from_slice(pixels)).is_some(),
        }
    }
}

/// Linear in x, then in y.
pub(super) struct Bilinear;

#[inline(always)]
pub(super) fn lerp<F: Float, const L: usize>(a: [F; L], b: [F; L], t: &[F; L]) -> [F; L] {
    let mut out = a;
    for l in 0..L {
        out[l] = t[l].fma(b[l].sub(a[l]), a[l]);
    }
    out
}

#[inline(always)]
fn fractions<F: Float, const L: usize>(bits: &[u32; L]) -> [F; L] {
    let mut out = [F::ZERO; L];
    for l in 0..L {
        out[l] = F::from_fraction(bits[l]);
    }
    out
}

#[inline(always)]
pub(super) fn widen<T: Pixel, const L: usize>(pixels: [T; L]) -> [T::Interp; L] {
    let mut out = [T::Interp::ZERO; L];
    for l in 0..L {
        out[l] = pixels[l].to_interp();
    }
    out
}

#[inline(always)]
fn narrow<T: Pixel, const L: usize>(samples: [T::Interp; L]) -> [T; L] {
    let mut out = [T::ZERO; L];
    for l in 0..L {
        out[l] = T::from_interp(samples[l]);
    }
    out
}

impl Sampler<2> for Bilinear {
    const FIRST: i64 = 0;

    #[inline(always)]
    fn sample<T: Pixel, const L: usize>(
        fy: &[u32; L],
        fx: &[u32; L],
        pixel: impl Fn(usize, usize) -> [T; L],
    ) -> [T; L] {
        let (ty, tx) = (fractions(fy), fractions(fx));
        // Without a closure: it may stay a function, which has no instruction for a fused multiply-add.
        let top = lerp(widen(pixel(0, 0)), widen(pixel(0, 1)), &tx);
        let bottom = lerp(widen(pixel(1, 0)), widen(pixel(1, 1)), &tx);
        narrow(lerp(top, bottom, &ty))
    }

    #[inline(always)]
    fn accelerated<P: Pixel, T: Pixel>(isa: Isa, held: &PlaneRows<'_, P>, line: &WarpLine, out: &mut [T]) -> bool {
        bilinear::run(isa, held, line, out)
    }
}

/// Cubic convolution in x, then in y.
pub(super) struct Bicubic;

/// The four weights of each lane, weight by weight.
#[inline(always)]
fn weights<F: Float, const L: usize>(bits: &[u32; L]) -> [[F; L]; 4] {
    let mut out = [[F::ZERO; L]; 4];
    for l in 0..L {
        let [a, b, c, d] = cubic_weights(F::from_fraction(bits[l]));
        (out[0][l], out[1][l], out[2][l], out[3][l]) = (a, b, c, d);
    }
    out
}

/// The sum of four weighted values, from the first on.
#[inline(always)]
fn weighted<F: Float, const L: usize>(weights: &[[F; L]; 4], values: &[[F; L]; 4]) -> [F; L] {
    let mut acc = [F::ZERO; L];
    for (w, v) in weights.iter().zip(values) {
        for l in 0..L {
            acc[l] = w[l].fma(v[l], acc[l]);
        }
    }
    acc
}

impl Sampler<4> for Bicubic {
    const FIRST: i64 = -1;

    #[inline(always)]
    fn sample<T: Pixel, const L: usize>(
        fy: &[u32; L],
        fx: &[u32; L],
        pixel: impl Fn(usize, usize) -> [T; L],
    ) -> [T; L] {
        let (wy, wx) = (weights(fy), weights(fx));
        let mut rows = [[T::Interp::ZERO; L]; 4];
        for (k, row) in rows.iter_mut().enumerate() {
            let pixels = [widen(pixel(k, 0)), widen(pixel(k, 1)), widen(pixel(k, 2)), widen(pixel(k, 3))];
            *row = weighted(&wx, &pixels);
        }
        narrow(weighted(&wy, &rows))
    }
}
