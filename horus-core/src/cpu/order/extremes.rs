//! Smallest and largest pixels under rectangles of any size, by doubling: the extreme of two pixels, of four and so on, of which two
//! that overlap cover any number.
//!
//! An extreme is the first in row-major order, and of two windows that overlap the first of both is that of all: the same bits as by
//! one pixel after the other. NaNs become the identity first, as which they count.

use crate::cpu::patch::Patch;
use crate::cpu::plane::Tile;
use crate::cpu::simd::Isa;
use crate::cpu::versions::for_each_isa;
use crate::dtype::Pixel;
use crate::ops::neighbourhood::{Combine, Generalized, Layout, Reach, Reduce};

/// Pixels that are compared at once.
const LANES: usize = 64;
/// Pixels of a single row or column from which on doubling is faster than looking at each of them.
const LONG: usize = 5;

/// Whether the window is a rectangle whose extreme is looked for by doubling.
pub(super) fn is_rectangle(g: &Generalized) -> bool {
    let rectangle = matches!(
        g.window.layout(),
        &Layout::Dense { height, width, .. } if height.max(width) >= LONG || height.min(width) > 1
    );
    rectangle && g.combine == Combine::Pixel && matches!(g.reduce, Reduce::Min | Reduce::Max)
}

/// What is kept from block to block.
#[derive(Default)]
pub(super) struct Scratch<T> {
    rows: Vec<T>,
    line: Vec<T>,
}

/// The extremes under a rectangle of reach `reach`.
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
    // Rows have room for whole vectors.
    let stride = n.next_multiple_of(LANES);
    let Scratch { rows: held, line } = scratch;
    held.resize(rows.len() * stride + LANES, identity);
    line.resize(n + wide + 2 * LANES, identity);
    for (y, held) in (rows.start..rows.end).zip(held.chunks_exact_mut(stride)) {
        let pixels = patch.line(y, x, n + wide - 1);
        let to = if wide == 1 { &mut *held } else { &mut line[..] };
        to.iter_mut().zip(pixels).for_each(|(l, v)| *l = first(identity, *v));
        if wide > 1 {
            let by = double(line, 1, wide, n, first);
            each(held, line, by, n, first);
        }
    }
    if tall == 1 {
        for (y, held) in (tile.rows.start..tile.rows.end).zip(held.chunks_exact(stride)) {
            tile.row_mut(y).copy_from_slice(&held[..n]);
        }
        return;
    }
    let by = double(held, stride, tall, tile.rows.len() * stride, first);
    for (k, y) in (tile.rows.start..tile.rows.end).enumerate() {
        let (upper, lower) = (&held[k * stride..], &held[k * stride + by..]);
        let out = tile.row_mut(y);
        out.iter_mut().zip(upper).zip(lower).for_each(|((o, a), b)| *o = first(*a, *b));
    }
}

/// Makes of each value of a line the extreme of as many, `apart` from each other, as the largest power of two in `k`, as far as `n` extremes
/// of `k` need it; returns how far apart two of them make one of `k`.
#[inline(always)]
fn double<T: Pixel>(line: &mut [T], apart: usize, k: usize, n: usize, first: impl Fn(T, T) -> T) -> usize {
    let mut power = 1;
    while 2 * power <= k {
        let by = power * apart;
        power *= 2;
        let end = n + (k - power) * apart;
        let mut i = 0;
        while i < end {
            let (Some(a), Some(b)) = (line[i..].first_chunk::<LANES>(), line[i + by..].first_chunk::<LANES>()) else {
                debug_assert!(false, "a line has room for whole vectors");
                break;
            };
            let (a, b) = (*a, *b);
            let both: [T; LANES] = std::array::from_fn(|j| first(a[j], b[j]));
            line[i..i + LANES].copy_from_slice(&both);
            i += LANES;
        }
    }
    (k - power) * apart
}

/// The extremes of pairs that are `by` apart.
#[inline(always)]
fn each<T: Pixel>(to: &mut [T], line: &[T], by: usize, n: usize, first: impl Fn(T, T) -> T) {
    let pairs = line[..n].iter().zip(&line[by..by + n]);
    to[..n].iter_mut().zip(pairs).for_each(|(t, (a, b))| *t = first(*a, *b));
}
