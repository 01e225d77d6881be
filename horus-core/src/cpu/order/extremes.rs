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

/// What is kept from block to block: rows, and a line, twice.
#[derive(Default)]
pub(super) struct Scratch<T> {
    rows: [Vec<T>; 2],
    line: [Vec<T>; 2],
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
    let Scratch { rows: held, line } = scratch;
    held.iter_mut().for_each(|h| h.resize(rows.len() * n, identity));
    line.iter_mut().for_each(|l| l.resize(n + wide - 1, identity));
    let ([held, spare], [line, other]) = (held, line);
    for (y, held) in (rows.start..rows.end).zip(held.chunks_exact_mut(n)) {
        let pixels = patch.line(y, x, n + wide - 1);
        if wide == 1 {
            held.iter_mut().zip(pixels).for_each(|(h, v)| *h = first(identity, *v));
        } else {
            line.iter_mut().zip(pixels).for_each(|(l, v)| *l = first(identity, *v));
            let (found, by) = double(line, other, 1, wide, n, first);
            let pairs = found[..n].iter().zip(&found[by..by + n]);
            held.iter_mut().zip(pairs).for_each(|(h, (a, b))| *h = first(*a, *b));
        }
    }
    let (found, by) = double(held, spare, n, tall, tile.rows.len() * n, first);
    let pairs = found.chunks_exact(n).zip(found[by..].chunks_exact(n));
    for (y, (upper, lower)) in (tile.rows.start..tile.rows.end).zip(pairs) {
        tile.row_mut(y).iter_mut().zip(upper.iter().zip(lower)).for_each(|(o, (a, b))| *o = first(*a, *b));
    }
}

/// Finds for each value of a line the extreme of as many, `apart` from each other, as the largest power of two in `k`, as far as `n` extremes
/// of `k` need it: they, in one of both lines, and how far apart two of them make one of `k`.
#[inline(always)]
fn double<'a, T: Pixel>(
    mut line: &'a mut [T],
    mut other: &'a mut [T],
    apart: usize,
    k: usize,
    n: usize,
    first: impl Fn(T, T) -> T,
) -> (&'a [T], usize) {
    let mut power = 1;
    while 2 * power <= k {
        let by = power * apart;
        power *= 2;
        let end = n + (k - power) * apart;
        let pairs = line[..end].iter().zip(&line[by..by + end]);
        other[..end].iter_mut().zip(pairs).for_each(|(o, (a, b))| *o = first(*a, *b));
        std::mem::swap(&mut line, &mut other);
    }
    (line, (k - power) * apart)
}
