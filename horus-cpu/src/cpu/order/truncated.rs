//! Linear filters that are cut to the type of their pixels.
//!
//! The pixels around a part of a tile become `f64` once, then as many sums as registers hold take
//! term after term. Each product and each sum is rounded: nothing here is a fused multiply-add.

use std::cell::RefCell;

use crate::cpu::patch::{BLOCK_COLS, Patch, for_each_block};
use crate::cpu::plane::{Plane, Tile};
use crate::cpu::simd::Isa;
use crate::cpu::versions::for_each_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::neighbourhood::{Pairing, Reach, Truncated};

/// Sums computed together.
const LANES: usize = 32;
/// Columns converted at a time if rows above or below are read: these stay in a cache.
const COLUMNS: usize = 64;

thread_local! {
    /// Pixels in `f64`, reused by later tiles.
    static PIXELS: RefCell<Vec<f64>> = const { RefCell::new(Vec::new()) };
}

/// Computes a truncated filter.
pub(crate) fn truncated<T: Pixel>(
    plane: &Plane<'_, T>,
    filter: &Truncated,
    border: Border,
    tile: &mut Tile<'_, T>,
    isa: Isa,
) {
    let (reach, within) = (filter.window.reach(), Within::of::<T>(filter));
    PIXELS.with_borrow_mut(|pixels| {
        for_each_block(plane, reach, border, tile, |patch, block| {
            sums(isa, patch, (filter, reach, within), pixels, block);
        });
    });
}

/// The range of all sums, which decides the instruction that cuts them.
#[derive(Clone, Copy)]
enum Within {
    Int,
    Long,
    Any,
}

impl Within {
    fn of<T: Pixel>(filter: &Truncated) -> Within {
        let most = f64::max(T::HIGHEST.to_f64(), -T::LOWEST.to_f64());
        let sum = filter.window.taps().iter().map(|tap| tap.abs()).sum::<f64>() * most;
        // The bounds leave room for roundings, and for pairs that count their first tap twice.
        match sum {
            sum if sum < f64::from(1 << 29) => Within::Int,
            sum if sum < (1i64 << 61) as f64 => Within::Long,
            _ => Within::Any,
        }
    }
}

/// A tap with the places of its pixels.
struct Term {
    tap: f64,
    at: usize,
    /// That of the second pixel of a pair.
    other: usize,
}

/// The terms over rows of `stride` pixels.
fn terms(filter: &Truncated, reach: Reach, stride: usize) -> Vec<Term> {
    let (up, left) = (reach.up.cast_signed(), reach.left.cast_signed());
    let place = |(y, x): (isize, isize)| (y + up).cast_unsigned() * stride + (x + left).cast_unsigned();
    let all: Vec<(f64, usize)> =
        filter.window.taps().iter().copied().zip(filter.window.offsets().into_iter().map(place)).collect();
    match (filter.pairing, all.split_first()) {
        (Pairing::Sum | Pairing::Difference, Some((&(tap, at), rest))) => {
            let pairs = rest.as_chunks().0.iter().map(|&[(tap, at), (_, other)]| Term { tap, at, other });
            std::iter::once(Term { tap, at, other: at }).chain(pairs).collect()
        }
        _ => all.into_iter().map(|(tap, at)| Term { tap, at, other: at }).collect(),
    }
}

for_each_isa! {
    fn sums[T: Pixel][T](
        patch: &Patch<'_, T>, how: (&Truncated, Reach, Within), pixels: &mut Vec<f64>, block: &mut Tile<'_, T>
    ) as sums_of
}

#[inline(always)]
fn sums_of<T: Pixel>(
    _: Isa,
    patch: &Patch<'_, T>,
    (filter, reach, within): (&Truncated, Reach, Within),
    pixels: &mut Vec<f64>,
    block: &mut Tile<'_, T>,
) {
    let Reach { up, down, left, right } = reach;
    let (rows, columns) = if up + down == 0 { (1, BLOCK_COLS) } else { (block.rows.len(), COLUMNS) };
    let columns = columns.min(block.cols.len());
    let stride = columns.next_multiple_of(LANES) + left + right;
    let terms = terms(filter, reach, stride);
    if pixels.len() < (rows + up + down) * stride {
        pixels.resize((rows + up + down) * stride, 0.0);
    }
    for y in (block.rows.start..block.rows.end).step_by(rows) {
        let end = block.rows.end.min(y + rows.cast_signed());
        for x in block.cols.clone().step_by(columns) {
            let n = columns.min(block.cols.end - x);
            let read = (end - y).cast_unsigned() + up + down;
            for (i, to) in pixels.chunks_exact_mut(stride).take(read).enumerate() {
                let (from_y, from_x) = (y + i.cast_signed() - up.cast_signed(), x.cast_signed() - left.cast_signed());
                let from = patch.line(from_y, from_x, n + left + right);
                let (to, beyond) = to.split_at_mut(from.len());
                for (to, from) in to.iter_mut().zip(from) {
                    *to = from.to_f64();
                }
                beyond.fill(0.0);
            }
            for row in y..end {
                let at = (row - y).cast_unsigned() * stride;
                let first = x - block.cols.start;
                let out = &mut block.row_mut(row)[first..first + n];
                for (i, out) in out.chunks_mut(LANES).enumerate() {
                    let from = &pixels[at + i * LANES..];
                    // The last place that a term reads from here.
                    assert!(from.len() >= (up + down) * stride + left + right + LANES, "rows around are converted");
                    // SAFETY: just asserted: places are within the reach.
                    let sums = unsafe {
                        match filter.pairing {
                            Pairing::Single => sum::<0>(from, &terms),
                            Pairing::Sum => sum::<1>(from, &terms),
                            Pairing::Difference => sum::<-1>(from, &terms),
                        }
                    };
                    cut(&sums, within, out);
                }
            }
        }
    }
}

/// The sums of the pixels from the first of `from` on.
///
/// # Safety
/// There are [`LANES`] pixels from each place of the terms on.
#[inline(always)]
unsafe fn sum<const SIGN: i32>(from: &[f64], terms: &[Term]) -> [f64; LANES] {
    let (mut sums, mut rest) = ([0.0; LANES], terms);
    // SAFETY: the caller's.
    unsafe {
        if let (true, Some((Term { tap, at, .. }, pairs))) = (SIGN != 0, terms.split_first()) {
            rest = pairs;
            let a = lanes(from, *at);
            for i in 0..LANES {
                sums[i] += tap * a[i];
            }
        }
        for Term { tap, at, other } in rest {
            let (a, b) = (lanes(from, *at), lanes(from, *other));
            for i in 0..LANES {
                let value = match SIGN {
                    0 => a[i],
                    1 => a[i] + b[i],
                    _ => a[i] - b[i],
                };
                sums[i] += tap * value;
            }
        }
    }
    sums
}

/// # Safety
/// There are [`LANES`] pixels from this place on.
#[inline(always)]
unsafe fn lanes(from: &[f64], at: usize) -> &[f64; LANES] {
    debug_assert!(at + LANES <= from.len());
    // SAFETY: the caller's.
    unsafe { &*from.as_ptr().add(at).cast() }
}

/// Stores sums as [`Pixel::cast_f64`] does: the low bits of their whole parts.
#[inline(always)]
fn cut<T: Pixel>(sums: &[f64; LANES], within: Within, out: &mut [T]) {
    let mut low = [0i32; LANES];
    match within {
        Within::Int if !T::DTYPE.is_float() => {
            for i in 0..LANES {
                // SAFETY: within 32 bits.
                low[i] = unsafe { sums[i].to_int_unchecked() };
            }
        }
        Within::Long if !T::DTYPE.is_float() => {
            for i in 0..LANES {
                // SAFETY: within 64 bits.
                low[i] = unsafe { sums[i].to_int_unchecked::<i64>() } as i32;
            }
        }
        _ => {
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = T::cast_f64(*sum);
            }
            return;
        }
    }
    macro_rules! store {
        ($t:ty) => {{
            let mut bits: [$t; LANES] = [0; LANES];
            for i in 0..LANES {
                bits[i] = low[i] as $t;
            }
            let out: &mut [$t] = bytemuck::cast_slice_mut(out);
            // Of a known length, a copy is a few instructions.
            match out.len() {
                LANES => out.copy_from_slice(&bits),
                n => out.copy_from_slice(&bits[..n]),
            }
        }};
    }
    match size_of::<T>() {
        1 => store!(u8),
        2 => store!(u16),
        _ => store!(u32),
    }
}
