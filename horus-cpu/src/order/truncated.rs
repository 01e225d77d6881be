//! Linear filters whose results are truncated to the type of their pixels.
//!
//! The pixels around a part of a tile are converted to `f64` once. Then as many sums as fit the registers accumulate
//! term after term. Each product and each sum is rounded: there are no fused multiply-adds here.

use std::cell::RefCell;

use crate::patch::{BLOCK_COLS, BLOCK_ROWS, Patch, for_each_part};
use crate::plane::{OutputTile, Plane};
use crate::versions::for_least_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::neighbourhood::{Pairing, Reach, Truncated};

/// Sums computed together.
const LANES: usize = 32;
/// Columns converted at a time if pixels of other rows or levels are read: they stay in a cache.
const COLUMNS: usize = 64;
/// Rows converted at a time if none are read above or below.
const ROWS: usize = 8;

thread_local! {
    /// Pixels in `f64`, and copies of pixels around parts of a tile, reused by later tiles.
    static SCRATCH: RefCell<(Vec<f64>, Vec<u64>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// Computes a truncated filter in plane `channel` of the `planes` of an image.
pub(crate) fn truncated<'a, T: Pixel>(
    planes: impl Fn(usize) -> Plane<'a, T>,
    channel: usize,
    filter: &Truncated,
    border: Border,
    tile: &mut OutputTile<'_, T>,
) {
    let (within, levels, samples) = (SumRange::of::<T>(filter), filter.levels(), planes(channel).samples);
    let reach = filter.window.reach().in_samples(samples);
    let Reach { up, down, left, right } = reach;
    let extent = if up + down == 0 && levels.len() == 1 { (ROWS, BLOCK_COLS) } else { (BLOCK_ROWS, COLUMNS) };
    SCRATCH.with_borrow_mut(|(pixels, copy)| {
        for_each_part(tile, extent, |part| {
            let stride = part.cols.len().next_multiple_of(LANES) + left + right;
            let level = (part.rows.len() + up + down) * stride;
            let all = level * levels.len();
            if pixels.len() < all {
                pixels.resize(all, 0.0);
            }
            for (&by, to) in levels.iter().zip(pixels[..all].chunks_exact_mut(level)) {
                match filter.plane(channel, by, border) {
                    Some(plane) => {
                        let patch = Patch::around(&planes(plane), part.rows, &part.cols, reach, border, copy);
                        widen(&patch, part, reach, stride, to);
                    }
                    None => to.fill(border.constant().map_or(T::ZERO, T::from_f64).to_f64()),
                }
            }
            sums(&pixels[..all], stride, &terms(filter, &levels, (level, stride, samples)), (filter, within), part);
        });
    });
}

/// The range of all sums, which decides the instruction that truncates them.
#[derive(Clone, Copy)]
enum SumRange {
    Int,
    Long,
    Any,
}

impl SumRange {
    fn of<T: Pixel>(filter: &Truncated) -> SumRange {
        let most = f64::max(T::HIGHEST.to_f64(), -T::LOWEST.to_f64());
        let sum = filter.window.taps().iter().map(|tap| tap.abs()).sum::<f64>() * most;
        // The bounds allow for roundings, and for pairs that count their first tap twice.
        match sum {
            sum if sum < f64::from(1 << 29) => SumRange::Int,
            sum if sum < (1i64 << 61) as f64 => SumRange::Long,
            _ => SumRange::Any,
        }
    }
}

/// A tap with the places of its pixels.
struct TapTerm {
    tap: f64,
    at: usize,
    /// The place of the second pixel of a pair.
    other: usize,
}

/// The terms over levels of `level` elements, in which rows are `stride` elements and neighbours `samples` elements
/// apart.
fn terms(filter: &Truncated, levels: &[i32], (level, stride, samples): (usize, usize, usize)) -> Vec<TapTerm> {
    let reach = filter.window.reach();
    let (up, left) = (reach.up.cast_signed(), reach.left.cast_signed());
    let place = |(k, (y, x)): (usize, (isize, isize))| {
        let of = levels.partition_point(|by| *by < filter.level(k));
        of * level + (y + up).cast_unsigned() * stride + (x + left).cast_unsigned() * samples
    };
    let places = filter.window.offsets().into_iter().enumerate().map(place);
    let all: Vec<(f64, usize)> = filter.window.taps().iter().copied().zip(places).collect();
    match (filter.pairing, all.split_first()) {
        (Pairing::Sum | Pairing::Difference, Some((&(tap, at), rest))) => {
            let pairs = rest.as_chunks().0.iter().map(|&[(tap, at), (_, other)]| TapTerm { tap, at, other });
            std::iter::once(TapTerm { tap, at, other: at }).chain(pairs).collect()
        }
        _ => all.into_iter().map(|(tap, at)| TapTerm { tap, at, other: at }).collect(),
    }
}

for_least_isa! {
    /// Converts the pixels around a part of a tile to `f64`, in rows `stride` pixels apart.
    fn widen[T: Pixel][T](
        patch: &Patch<'_, T>, part: &OutputTile<'_, T>, reach: Reach, stride: usize, to: &mut [f64]
    ) as widen_rows
}

#[inline(always)]
fn widen_rows<T: Pixel>(
    patch: &Patch<'_, T>,
    part: &OutputTile<'_, T>,
    Reach { up, left, right, .. }: Reach,
    stride: usize,
    to: &mut [f64],
) {
    let (top, first) = (part.rows.start - up.cast_signed(), part.cols.start.cast_signed() - left.cast_signed());
    for (y, to) in (top..).zip(to.chunks_exact_mut(stride)) {
        let from = patch.line(y, first, part.cols.len() + left + right);
        let (to, beyond) = to.split_at_mut(from.len());
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.to_f64();
        }
        beyond.fill(0.0);
    }
}

for_least_isa! {
    /// The sums of a part of a tile, truncated to its type.
    fn sums[T: Pixel][T](
        pixels: &[f64], stride: usize, terms: &[TapTerm], how: (&Truncated, SumRange), part: &mut OutputTile<'_, T>
    ) as sums_of
}

#[inline(always)]
fn sums_of<T: Pixel>(
    pixels: &[f64],
    stride: usize,
    terms: &[TapTerm],
    (filter, within): (&Truncated, SumRange),
    part: &mut OutputTile<'_, T>,
) {
    // The last place that a term reads from the first pixel on.
    let last = terms.iter().map(|term| term.at.max(term.other)).max().unwrap_or(0);
    for (row, at) in (part.rows.start..part.rows.end).zip((0..).step_by(stride)) {
        for (i, out) in part.row_mut(row).chunks_mut(LANES).enumerate() {
            let from = &pixels[at + i * LANES..];
            assert!(from.len() >= last + LANES, "the pixels around are converted");
            // SAFETY: just asserted.
            let sums = unsafe {
                match filter.pairing {
                    Pairing::Single => sum::<0>(from, terms),
                    Pairing::Sum => sum::<1>(from, terms),
                    Pairing::Difference => sum::<-1>(from, terms),
                }
            };
            cut(&sums, within, out);
        }
    }
}

/// The sums of the pixels from the first of `from` on.
///
/// # Safety
/// [`LANES`] pixels can be read from each place of the terms on.
#[inline(always)]
unsafe fn sum<const SIGN: i32>(from: &[f64], terms: &[TapTerm]) -> [f64; LANES] {
    let (mut sums, mut rest) = ([0.0; LANES], terms);
    // SAFETY: promised by the caller.
    unsafe {
        if let (true, Some((TapTerm { tap, at, .. }, pairs))) = (SIGN != 0, terms.split_first()) {
            rest = pairs;
            let a = lanes(from, *at);
            for i in 0..LANES {
                sums[i] += tap * a[i];
            }
        }
        for TapTerm { tap, at, other } in rest {
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
/// [`LANES`] pixels can be read from this place on.
#[inline(always)]
unsafe fn lanes(from: &[f64], at: usize) -> &[f64; LANES] {
    debug_assert!(at + LANES <= from.len());
    // SAFETY: promised by the caller.
    unsafe { &*from.as_ptr().add(at).cast() }
}

/// Stores sums as [`Pixel::cast_f64`] does: the low bits of their integer parts.
#[inline(always)]
fn cut<T: Pixel>(sums: &[f64; LANES], within: SumRange, out: &mut [T]) {
    let mut low = [0i32; LANES];
    match within {
        SumRange::Int if !T::DTYPE.is_float() => {
            for i in 0..LANES {
                // SAFETY: within 32 bits.
                low[i] = unsafe { sums[i].to_int_unchecked() };
            }
        }
        SumRange::Long if !T::DTYPE.is_float() => {
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
            // A copy of known length is a few instructions.
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
