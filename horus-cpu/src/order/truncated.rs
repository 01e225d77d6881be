//! Linear filters whose results are truncated to the type of their pixels.
//!
//! The pixels around a part of a tile are converted to floats once. Then as many sums as fit the registers accumulate
//! term after term. By definition each product and each sum is rounded in `f64`. Sums of small integers are estimated
//! with fused multiply-adds, of bytes in `f32`. The integer part of an estimate is that of the sum, unless an integer is
//! as close as the estimate's error: then the sums are computed as defined.

use std::cell::RefCell;

use crate::patch::{BLOCK_COLS, BLOCK_ROWS, Patch, for_each_part};
use crate::plane::{OutputTile, Plane};
use crate::versions::for_least_isa;
use horus_base::dtype::{Float, Pixel};
use horus_base::shape::Border;
use horus_plan::ops::neighbourhood::{Pairing, Reach, Truncated};

/// Sums computed together.
const LANES: usize = 32;
/// Columns converted at a time if pixels of other rows or levels are read: they stay in a cache.
const COLUMNS: usize = 64;
/// Rows converted at a time if none are read above or below.
const ROWS: usize = 8;

thread_local! {
    /// Pixels in floats, and copies of pixels around parts of a tile, reused by later tiles.
    static SCRATCH: RefCell<(Vec<f64>, Vec<u64>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// A type of estimates.
trait Estimate: Float {
    /// The distance from 1 to the next number.
    const STEP: f64;
    fn nearest_integer(self) -> Self;
    /// The integer part.
    ///
    /// # Safety
    /// It is within 32 bits.
    unsafe fn integer_part(self) -> i32;
}

macro_rules! estimate {
    ($($t:ident)*) => { $(
        impl Estimate for $t {
            const STEP: f64 = $t::EPSILON as f64;

            #[inline(always)]
            fn nearest_integer(self) -> $t {
                self.round_ties_even()
            }

            #[inline(always)]
            unsafe fn integer_part(self) -> i32 {
                // SAFETY: promised by the caller.
                unsafe { self.to_int_unchecked() }
            }
        }
    )* };
}
estimate! { f32 f64 }

/// Computes a truncated filter in plane `channel` of the `planes` of an image.
pub(crate) fn truncated<'a, T: Pixel>(
    planes: impl Fn(usize) -> Plane<'a, T>,
    channel: usize,
    filter: &Truncated,
    border: Border,
    tile: &mut OutputTile<'_, T>,
) {
    if size_of::<T>() == 1 {
        truncated_in::<T, f32>(planes, channel, filter, border, tile);
    } else {
        truncated_in::<T, f64>(planes, channel, filter, border, tile);
    }
}

/// Computes a truncated filter from pixels in `F`, which holds all of `T`.
fn truncated_in<'a, T: Pixel, F: Estimate>(
    planes: impl Fn(usize) -> Plane<'a, T>,
    channel: usize,
    filter: &Truncated,
    border: Border,
    tile: &mut OutputTile<'_, T>,
) {
    let (levels, samples) = (filter.levels(), planes(channel).samples);
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
            let pixels: &mut [F] = &mut bytemuck::cast_slice_mut(pixels)[..all];
            for (&by, to) in levels.iter().zip(pixels.chunks_exact_mut(level)) {
                match filter.plane(channel, by, border) {
                    Some(plane) => {
                        let patch = Patch::around(&planes(plane), part.rows, &part.cols, reach, border, copy);
                        widen(&patch, part, reach, stride, to);
                    }
                    None => to.fill(F::from_f64(border.constant().map_or(T::ZERO, T::from_f64).to_f64())),
                }
            }
            let terms = terms(filter, &levels, (level, stride, samples));
            sums(pixels, stride, &terms, &Summing::of::<T>(filter, terms.len()), part);
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

/// How sums are computed.
struct Summing<F> {
    pairing: Pairing,
    within: SumRange,
    /// The largest difference between an estimate and its sum, if there are estimates.
    error: Option<F>,
}

impl<F: Estimate> Summing<F> {
    fn of<T: Pixel>(filter: &Truncated, terms: usize) -> Summing<F> {
        /// At this error an integer is as close to one of 32 estimates in two of five groups, which are computed twice.
        const LARGE: f64 = 1.0 / 128.0;
        let most = f64::max(T::HIGHEST.to_f64(), -T::LOWEST.to_f64());
        let taps = filter.window.taps();
        let sum = taps.iter().map(|tap| tap.abs()).sum::<f64>() * most;
        // The bounds allow for roundings, and for pairs that count their first tap twice.
        let within = match sum {
            sum if sum < f64::from(1 << 29) => SumRange::Int,
            sum if sum < (1i64 << 61) as f64 => SumRange::Long,
            _ => SumRange::Any,
        };
        // Roundings, each of half a step of the sum of magnitudes at most: of a term here (one), of a term as defined
        // (two), of the taps.
        let error = 0.5 * (3 * terms + 2) as f64 * sum * F::STEP;
        let narrow = !T::DTYPE.is_float() && size_of::<T>() <= 2;
        let error = (narrow && matches!(within, SumRange::Int) && error < LARGE).then(|| F::from_f64(error));
        Summing { pairing: filter.pairing, within, error }
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
    /// Converts the pixels around a part of a tile to floats, in rows `stride` pixels apart.
    fn widen[T: Pixel, F: Estimate][T, F](
        patch: &Patch<'_, T>, part: &OutputTile<'_, T>, reach: Reach, stride: usize, to: &mut [F]
    ) as widen_rows
}

#[inline(always)]
fn widen_rows<T: Pixel, F: Estimate>(
    patch: &Patch<'_, T>,
    part: &OutputTile<'_, T>,
    Reach { up, left, right, .. }: Reach,
    stride: usize,
    to: &mut [F],
) {
    let (top, first) = (part.rows.start - up.cast_signed(), part.cols.start.cast_signed() - left.cast_signed());
    for (y, to) in (top..).zip(to.chunks_exact_mut(stride)) {
        let from = patch.line(y, first, part.cols.len() + left + right);
        let (to, beyond) = to.split_at_mut(from.len());
        for (to, from) in to.iter_mut().zip(from) {
            *to = F::from_f64(from.to_f64());
        }
        beyond.fill(F::ZERO);
    }
}

for_least_isa! {
    /// The sums of a part of a tile, truncated to its type.
    fn sums[T: Pixel, F: Estimate][T, F](
        pixels: &[F], stride: usize, terms: &[TapTerm], how: &Summing<F>, part: &mut OutputTile<'_, T>
    ) as sums_of
}

#[inline(always)]
fn sums_of<T: Pixel, F: Estimate>(
    pixels: &[F],
    stride: usize,
    terms: &[TapTerm],
    how: &Summing<F>,
    part: &mut OutputTile<'_, T>,
) {
    match how.pairing {
        Pairing::Single => sums_by::<T, F, 0>(pixels, stride, terms, how, part),
        Pairing::Sum => sums_by::<T, F, 1>(pixels, stride, terms, how, part),
        Pairing::Difference => sums_by::<T, F, -1>(pixels, stride, terms, how, part),
    }
}

#[inline(always)]
fn sums_by<T: Pixel, F: Estimate, const SIGN: i32>(
    pixels: &[F],
    stride: usize,
    terms: &[TapTerm],
    how: &Summing<F>,
    part: &mut OutputTile<'_, T>,
) {
    // The last place that a term reads from the first pixel on.
    let last = terms.iter().map(|term| term.at.max(term.other)).max().unwrap_or(0);
    for (row, at) in (part.rows.start..part.rows.end).zip((0..).step_by(stride)) {
        for (i, out) in part.row_mut(row).chunks_mut(LANES).enumerate() {
            let from = &pixels[at + i * LANES..];
            assert!(from.len() >= last + LANES, "the pixels around are converted");
            // SAFETY: just asserted; estimates are within 32 bits.
            unsafe {
                let estimates = how.error.and_then(|error| estimated::<F, SIGN>(from, terms, error));
                match estimates {
                    Some(parts) => store(&parts, out),
                    None => cut(&sum::<F, SIGN>(from, terms), how.within, out),
                }
            }
        }
    }
}

/// The sums of the pixels from the first of `from` on.
///
/// # Safety
/// [`LANES`] pixels can be read from each place of the terms on.
#[inline(always)]
unsafe fn sum<F: Estimate, const SIGN: i32>(from: &[F], terms: &[TapTerm]) -> [f64; LANES] {
    let (mut sums, mut rest) = ([0.0; LANES], terms);
    // SAFETY: promised by the caller.
    unsafe {
        if let (true, Some((TapTerm { tap, at, .. }, pairs))) = (SIGN != 0, terms.split_first()) {
            rest = pairs;
            let a = lanes(from, *at);
            for i in 0..LANES {
                sums[i] += tap * a[i].to_f64();
            }
        }
        for TapTerm { tap, at, other } in rest {
            let (a, b) = (lanes(from, *at), lanes(from, *other));
            for i in 0..LANES {
                let (a, b) = (a[i].to_f64(), b[i].to_f64());
                let value = match SIGN {
                    0 => a,
                    1 => a + b,
                    _ => a - b,
                };
                sums[i] += tap * value;
            }
        }
    }
    sums
}

/// The integer parts of these sums, by estimates; `None` if one is too close to an integer.
///
/// # Safety
/// As for [`sum`], and all estimates are within 32 bits.
#[inline(always)]
unsafe fn estimated<F: Estimate, const SIGN: i32>(from: &[F], terms: &[TapTerm], error: F) -> Option<[i32; LANES]> {
    let (mut sums, mut rest) = ([F::ZERO; LANES], terms);
    // SAFETY: promised by the caller.
    unsafe {
        if let (true, Some((TapTerm { tap, at, .. }, pairs))) = (SIGN != 0, terms.split_first()) {
            rest = pairs;
            let (tap, a) = (F::from_f64(*tap), lanes(from, *at));
            for i in 0..LANES {
                sums[i] = tap.mul(a[i]);
            }
        }
        for TapTerm { tap, at, other } in rest {
            let (tap, a, b) = (F::from_f64(*tap), lanes(from, *at), lanes(from, *other));
            for i in 0..LANES {
                let value = match SIGN {
                    0 => a[i],
                    1 => a[i].add(b[i]),
                    _ => a[i].sub(b[i]),
                };
                sums[i] = tap.fma(value, sums[i]);
            }
        }
    }
    let (mut close, mut parts) = (false, [0; LANES]);
    for (part, sum) in parts.iter_mut().zip(&sums) {
        close |= sum.sub(sum.nearest_integer()).abs() <= error;
        // SAFETY: promised by the caller.
        *part = unsafe { sum.integer_part() };
    }
    (!close).then_some(parts)
}

/// # Safety
/// [`LANES`] pixels can be read from this place on.
#[inline(always)]
unsafe fn lanes<F>(from: &[F], at: usize) -> &[F; LANES] {
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
    store(&low, out);
}

/// Stores the low bits of integers.
#[inline(always)]
fn store<T: Pixel>(low: &[i32; LANES], out: &mut [T]) {
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
