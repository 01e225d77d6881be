//! Smallest and largest pixels under rectangles of any size: extremes of four pixels, of sixteen
//! and so on, of which up to four that overlap cover any window. Steps of four take fewer passes
//! through the cache than steps of two.
//!
//! An extreme is the first in row-major order. The first extreme of windows that overlap, compared
//! in order, is that of their union: the bits equal those of a pixel-by-pixel scan. NaNs count as
//! the identity, with which every extreme starts.

use crate::cpu::patch::Patch;
use crate::cpu::plane::Tile;
use crate::cpu::simd::Isa;
use crate::cpu::versions::for_each_isa;
use horus_base::dtype::Pixel;
use horus_plan::ops::neighbourhood::{Combine, Generalized, Layout, Reach, Reduce};

/// Length of a single row or column from which this is faster than visiting each pixel.
const LONG: usize = 5;

/// Returns `true` if the window is a rectangle that [`extremes`] handles.
pub(super) fn is_rectangle(g: &Generalized) -> bool {
    let rectangle = matches!(
        g.window.layout(),
        &Layout::Dense { height, width, .. } if height.max(width) >= LONG || height.min(width) > 1
    );
    rectangle && g.combine == Combine::Pixel && matches!(g.reduce, Reduce::Min | Reduce::Max)
}

/// Buffers reused from block to block: two of rows, two of a line.
#[derive(Default)]
pub(super) struct Scratch<T> {
    rows: [Vec<T>; 2],
    line: [Vec<T>; 2],
}

/// Extremes under a rectangle of reach `reach`.
pub(super) fn extremes<T: Pixel>(
    isa: Isa,
    patch: &Patch<'_, T>,
    reach: Reach,
    reduce: Reduce,
    scratch: &mut Scratch<T>,
    tile: &mut Tile<'_, T>,
) {
    match reduce {
        Reduce::Min => smallest(isa, patch, reach, scratch, tile),
        _ => largest(isa, patch, reach, scratch, tile),
    }
}

for_each_isa! {
    fn smallest[T: Pixel][T](patch: &Patch<'_, T>, reach: Reach, scratch: &mut Scratch<T>, tile: &mut Tile<'_, T>)
    as smallest_of
}

for_each_isa! {
    fn largest[T: Pixel][T](patch: &Patch<'_, T>, reach: Reach, scratch: &mut Scratch<T>, tile: &mut Tile<'_, T>)
    as largest_of
}

#[inline(always)]
fn smallest_of<T: Pixel>(_: Isa, patch: &Patch<'_, T>, reach: Reach, scratch: &mut Scratch<T>, tile: &mut Tile<'_, T>) {
    under(patch, reach, scratch, tile, T::HIGHEST, |a, b| if b < a { b } else { a });
}

#[inline(always)]
fn largest_of<T: Pixel>(_: Isa, patch: &Patch<'_, T>, reach: Reach, scratch: &mut Scratch<T>, tile: &mut Tile<'_, T>) {
    under(patch, reach, scratch, tile, T::LOWEST, |a, b| if b > a { b } else { a });
}

#[inline(always)]
fn under<T: Pixel>(
    patch: &Patch<'_, T>,
    reach: Reach,
    scratch: &mut Scratch<T>,
    tile: &mut Tile<'_, T>,
    identity: T,
    first: impl Fn(T, T) -> T + Copy,
) {
    let (tall, wide) = (reach.up + reach.down + 1, reach.left + reach.right + 1);
    let (n, x) = (tile.cols.len(), tile.cols.start.cast_signed() - reach.left.cast_signed());
    let rows = tile.rows.grown(reach.up, reach.down);
    let Scratch { rows: [held, spare], line: [line, other] } = scratch;
    for buffer in [&mut *held, &mut *spare] {
        buffer.resize(rows.len() * n, identity);
    }
    for buffer in [&mut *line, &mut *other] {
        buffer.resize(n + wide - 1, identity);
    }
    let begin = |a, b| first(first(identity, a), b);
    for (y, held) in (rows.start..rows.end).zip(held.chunks_exact_mut(n)) {
        let pixels = patch.line(y, x, n + wide - 1);
        if wide == 1 {
            held.iter_mut().zip(pixels).for_each(|(h, v)| *h = first(identity, *v));
        } else if wide <= 4 {
            Windows { line: pixels, of: 1, apart: 1, k: wide }.join(0, held, begin, first);
        } else {
            let fours = n + wide - 4;
            Windows { line: pixels, of: 1, apart: 1, k: 4 }.join(0, &mut line[..fours], begin, first);
            grown(line, other, (1, wide), n, 4, first).join(0, held, first, first);
        }
    }
    let columns = grown(held, spare, (n, tall), tile.rows.len() * n, 1, first);
    for (k, y) in (tile.rows.start..tile.rows.end).enumerate() {
        columns.join(k * n, tile.row_mut(y), first, first);
    }
}

/// Windows of `of` values each, `apart` from each other in a line; several of them cover `k`
/// values.
struct Windows<'a, T> {
    line: &'a [T],
    of: usize,
    apart: usize,
    k: usize,
}

impl<T: Pixel> Windows<'_, T> {
    /// Extremes of `k` values from place `at` on: the first two windows are combined by `begin`,
    /// the others by `first`.
    #[inline(always)]
    fn join(&self, at: usize, out: &mut [T], begin: impl Fn(T, T) -> T, first: impl Fn(T, T) -> T) {
        let n = out.len();
        // The last window ends with the `k` values.
        let window = |i: usize| &self.line[at + (i * self.of).min(self.k - self.of) * self.apart..][..n];
        let pairs = window(0).iter().zip(window(1));
        match self.k.div_ceil(self.of) {
            1 => out.copy_from_slice(window(0)),
            2 => out.iter_mut().zip(pairs).for_each(|(o, (a, b))| *o = begin(*a, *b)),
            3 => out.iter_mut().zip(pairs.zip(window(2))).for_each(|(o, ((a, b), c))| *o = first(begin(*a, *b), *c)),
            _ => out
                .iter_mut()
                .zip(pairs.zip(window(2).iter().zip(window(3))))
                .for_each(|(o, ((a, b), (c, d)))| *o = first(first(begin(*a, *b), *c), *d)),
        }
    }
}

/// Grows the windows of a line for `n` outputs until at most four cover `k` values that are
/// `apart`; the result is in either of the two lines.
#[inline(always)]
fn grown<'a, T: Pixel>(
    mut line: &'a mut [T],
    mut other: &'a mut [T],
    (apart, k): (usize, usize),
    n: usize,
    mut of: usize,
    first: impl Fn(T, T) -> T + Copy,
) -> Windows<'a, T> {
    while k > 4 * of {
        let end = n + (k - 4 * of) * apart;
        Windows { line, of, apart, k: 4 * of }.join(0, &mut other[..end], first, first);
        std::mem::swap(&mut line, &mut other);
        of *= 4;
    }
    Windows { line, of, apart, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::plane::whole;
    use horus_base::shape::Window;
    use horus_testing::for_each_type;
    use horus_testing::pixels::{assert_same, borders, noise};

    /// Lengths around the boundaries of steps of four.
    const LENGTHS: [usize; 14] = [1, 2, 3, 4, 5, 8, 9, 13, 16, 17, 48, 63, 65, 80];

    fn extremes_follow_the_definition<T: Pixel>() {
        let (h, w) = (23, 70);
        let image = noise::<T>(h * w, 5, true);
        let plane = whole(&image, h, w);
        for (i, tall) in LENGTHS.into_iter().enumerate() {
            let wide = LENGTHS[(5 * i + 3) % LENGTHS.len()];
            let (up, left) = (tall / 3, wide - 1 - wide / 3);
            let reach = Reach { up, down: tall - 1 - up, left, right: wide - 1 - left };
            let border = borders()[i % borders().len()];
            let mut copy = Vec::new();
            let patch = Patch::around(&plane, Window::whole(h), &(0..w), reach, border, &mut copy);
            for reduce in [Reduce::Min, Reduce::Max] {
                let further = |a: T, b: T| if reduce == Reduce::Min { b < a } else { b > a };
                let under = |i: usize| {
                    let (y, x) = ((i / w).cast_signed() - up.cast_signed(), (i % w).cast_signed() - left.cast_signed());
                    let pixels = (0..tall * wide)
                        .map(|j| plane.pixel(y + (j / wide).cast_signed(), x + (j % wide).cast_signed(), border));
                    let identity = if reduce == Reduce::Min { T::HIGHEST } else { T::LOWEST };
                    pixels.fold(identity, |a, b| if further(a, b) { b } else { a })
                };
                let want: Vec<T> = (0..h * w).map(under).collect();
                for isa in Isa::available() {
                    let mut out = vec![T::ONE; h * w];
                    let mut tile = Tile { out: &mut out, stride: w, rows: Window::whole(h), cols: 0..w };
                    extremes(isa, &patch, reach, reduce, &mut Scratch::default(), &mut tile);
                    assert_same(&out, &want, &format!("{reduce:?} {tall}x{wide} {} {border} {isa:?}", T::DTYPE));
                }
            }
        }
    }

    #[test]
    fn extremes_follow_the_definition_for_every_type() {
        for_each_type!(extremes_follow_the_definition);
    }
}
