//! Generalized convolutions: any combination of pixel and weight under any reduction.

use super::extremes::Extremes;
use crate::patch::{BLOCK_COLS, Patch, for_each_block};
use crate::plane::{OutputTile, Plane};
use crate::simd::Isa;
use crate::versions::for_least_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::neighbourhood::{Combine, Generalized, Reduce};

/// Computes a generalized convolution. For each pixel, the values of the window are combined with the weights and
/// reduced in the order of the offsets, in the arithmetic of `T`.
pub(crate) fn generalized<T: Pixel>(
    plane: &Plane<'_, T>,
    g: &Generalized,
    border: Border,
    tile: &mut OutputTile<'_, T>,
    isa: Isa,
) {
    if let Some(extremes) = Extremes::of(g, T::DTYPE) {
        return extremes.compute(isa, plane, border, tile);
    }
    let taps: Vec<Tap<T>> = (g.window.offsets().into_iter().zip(g.window.taps()))
        .map(|((dy, dx), &weight)| Tap { dy, dx: dx * plane.samples.cast_signed(), weight: T::from_f64(weight) })
        .collect();
    for_each_block(plane, g.window.reach(), border, tile, |patch, block| direct(patch, &taps, g, block));
}

struct Tap<T> {
    dy: isize,
    /// Offset in elements.
    dx: isize,
    weight: T,
}

for_least_isa! {
    fn direct[T: Pixel][T](patch: &Patch<'_, T>, taps: &[Tap<T>], g: &Generalized, tile: &mut OutputTile<'_, T>)
    as direct_block
}

#[inline(always)]
fn direct_block<T: Pixel>(patch: &Patch<'_, T>, taps: &[Tap<T>], g: &Generalized, tile: &mut OutputTile<'_, T>) {
    let (x, n) = (tile.cols.start.cast_signed(), tile.cols.len());
    let mut values = [T::ZERO; BLOCK_COLS];
    for y in tile.rows.start..tile.rows.end {
        let out = tile.row_mut(y);
        out.fill(identity(g.reduce));
        for tap in taps {
            let pixels = patch.line(y + tap.dy, x + tap.dx, n);
            if g.combine == Combine::Pixel {
                accumulate(g.reduce, out, pixels);
            } else {
                combine(g.combine, &mut values[..n], pixels, tap.weight);
                accumulate(g.reduce, out, &values[..n]);
            }
        }
    }
}

#[inline(always)]
fn identity<T: Pixel>(reduce: Reduce) -> T {
    match reduce {
        Reduce::Sum => T::ZERO,
        Reduce::Product => T::ONE,
        Reduce::Min => T::HIGHEST,
        Reduce::Max => T::LOWEST,
    }
}

/// `values[i] = pixels[i] (combined with) weight`.
#[inline(always)]
fn combine<T: Pixel>(how: Combine, values: &mut [T], pixels: &[T], weight: T) {
    #[inline(always)]
    fn each<T: Pixel>(values: &mut [T], pixels: &[T], f: impl Fn(T) -> T) {
        values.iter_mut().zip(pixels).for_each(|(v, &p)| *v = f(p));
    }
    match how {
        Combine::Pixel => each(values, pixels, |p| p),
        Combine::Add => each(values, pixels, |p| p.add(weight)),
        Combine::Sub => each(values, pixels, |p| p.sub(weight)),
        Combine::Mul => each(values, pixels, |p| p.mul(weight)),
        Combine::Min => each(values, pixels, |p| p.min(weight)),
        Combine::Max => each(values, pixels, |p| p.max(weight)),
    }
}

/// `acc[i] = acc[i] (reduced with) values[i]`.
#[inline(always)]
fn accumulate<T: Pixel>(how: Reduce, acc: &mut [T], values: &[T]) {
    #[inline(always)]
    fn each<T: Pixel>(acc: &mut [T], values: &[T], f: impl Fn(T, T) -> T) {
        acc.iter_mut().zip(values).for_each(|(a, &v)| *a = f(*a, v));
    }
    match how {
        Reduce::Sum => each(acc, values, |a, v| a.add(v)),
        Reduce::Product => each(acc, values, |a, v| a.mul(v)),
        // `Arithmetic::min` without the NaN test of `a`: an accumulator that starts at a number is never a NaN. One
        // vector instruction remains.
        Reduce::Min => each(acc, values, |a, v| if v < a { v } else { a }),
        Reduce::Max => each(acc, values, |a, v| if v > a { v } else { a }),
    }
}
