//! Ranks of 8-bit pixels under a rectangle, at a cost independent of its size: column histograms, added and subtracted
//! with each step to the right (S. Perreault and P. Hebert, *Median filtering in constant time*, 2007).
//!
//! Histograms have two levels: sixteen segments, and the sixteen values of each. They contain running counts: the
//! result's bin is the number of counts that do not exceed the rank. The counts of a segment are updated when they are
//! read.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::plane::Plane;
use crate::versions::for_least_isa;
use horus_base::shape::{Border, Window};
use horus_plan::ops::neighbourhood::Reach;
use horus_plan::ops::windowed::Ranked;

/// Running counts of sixteen bins.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct RunningCounts([u16; 16]);

/// Pixels of the largest supported rectangle.
pub(super) const MOST: usize = u16::MAX as usize;
/// Columns of a block, without those around it: their histograms stay in a core's cache.
const COLUMNS: usize = 1024;

/// Contribution of a pixel to running counts: one from its bin on.
const FROM: [RunningCounts; 16] = {
    let mut all = [RunningCounts::NONE; 16];
    let mut i = 0;
    while i < 256 {
        all[i / 16].0[i % 16] = (i % 16 >= i / 16) as u16;
        i += 1;
    }
    all
};

impl RunningCounts {
    const NONE: RunningCounts = RunningCounts([0; 16]);
}

/// In vectors by hand: the compiler (Rust 1.95) splits these counts into pieces of two and four.
#[cfg(target_arch = "x86_64")]
impl RunningCounts {
    #[inline(always)]
    fn vector(&self) -> __m256i {
        // SAFETY: there are 32 aligned bytes, and kernels run with AVX2.
        unsafe { _mm256_load_si256((&raw const self.0).cast()) }
    }

    #[inline(always)]
    fn of(vector: __m256i) -> RunningCounts {
        let mut counts = RunningCounts::NONE;
        // SAFETY: as above.
        unsafe { _mm256_store_si256((&raw mut counts.0).cast(), vector) };
        counts
    }

    #[inline(always)]
    fn plus(&self, other: &RunningCounts) -> RunningCounts {
        // SAFETY: kernels run with AVX2.
        RunningCounts::of(unsafe { _mm256_add_epi16(self.vector(), other.vector()) })
    }

    #[inline(always)]
    fn minus(&self, other: &RunningCounts) -> RunningCounts {
        // SAFETY: as above.
        RunningCounts::of(unsafe { _mm256_sub_epi16(self.vector(), other.vector()) })
    }

    /// The bin of the pixel of rank `place`.
    #[inline(always)]
    fn bin(&self, place: u16) -> usize {
        // SAFETY: as above.
        let exceed = unsafe {
            let (counts, place) = (self.vector(), _mm256_set1_epi16(place.cast_signed()));
            !_mm256_movemask_epi8(_mm256_cmpeq_epi16(_mm256_min_epu16(counts, place), counts))
        };
        // Counts grow from bin to bin, and each has two bits.
        exceed.trailing_zeros() as usize / 2
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl RunningCounts {
    #[inline(always)]
    fn plus(&self, other: &RunningCounts) -> RunningCounts {
        RunningCounts(std::array::from_fn(|i| self.0[i].wrapping_add(other.0[i])))
    }

    #[inline(always)]
    fn minus(&self, other: &RunningCounts) -> RunningCounts {
        RunningCounts(std::array::from_fn(|i| self.0[i].wrapping_sub(other.0[i])))
    }

    #[inline(always)]
    fn bin(&self, place: u16) -> usize {
        self.0.iter().map(|c| u16::from(*c <= place)).sum::<u16>() as usize
    }
}

for_least_isa! {
    /// Computes all columns of `rows` under a rectangle of at most [`MOST`] pixels; `out` is the memory of these rows.
    ///
    /// The border is given with its constant as an unsigned number and with the unsigned number of 0: the bit in which
    /// signed pixels differ from their unsigned numbers.
    pub(super) fn ranks[][](
        plane: &Plane<'_, u8>, rank: &Ranked, border: (Border, u8, u8), rows: Window, out: &mut [u8]
    ) as ranks_of
}

#[inline(always)]
fn ranks_of(plane: &Plane<'_, u8>, rank: &Ranked, border: (Border, u8, u8), rows: Window, out: &mut [u8]) {
    let Reach { up, down, left, right } = rank.reach();
    let (width, wide, place) = (plane.width, left + right + 1, rank.place as u16);
    let chunk = COLUMNS.max(2 * wide).min(width);
    let lines = chunk + wide - 1;
    // For each column: counts of segments, and counts of values, grouped by segment.
    let mut segments = vec![RunningCounts::NONE; lines];
    let mut values = vec![RunningCounts::NONE; 16 * lines];
    let mut line = Vec::with_capacity(lines);
    for x in (0..width).step_by(chunk) {
        let n = chunk.min(width - x);
        let around = n + wide - 1;
        let read = |y: isize, line: &mut Vec<u8>| {
            extend(plane, (y, x.cast_signed() - left.cast_signed(), around), border, line);
        };
        segments.fill(RunningCounts::NONE);
        values.fill(RunningCounts::NONE);
        let (first, last) = (rows.start - up.cast_signed(), rows.start + down.cast_signed());
        for y in first..last {
            read(y, &mut line);
            enter(&line, &mut segments, &mut values, lines);
        }
        for (k, out) in out.chunks_exact_mut(width).enumerate() {
            let k = k.cast_signed();
            read(last + k, &mut line);
            enter(&line, &mut segments, &mut values, lines);
            rank_row(&segments, &values, lines, (wide, place, border.2), &mut out[x..x + n]);
            read(first + k, &mut line);
            leave(&line, &mut segments, &mut values, lines);
        }
    }
}

#[inline(always)]
fn sum(of: &[RunningCounts]) -> RunningCounts {
    let mut sum = RunningCounts::NONE;
    for counts in of {
        sum = sum.plus(counts);
    }
    sum
}

/// One row of results.
#[inline(always)]
fn rank_row(
    segments: &[RunningCounts],
    values: &[RunningCounts],
    lines: usize,
    (wide, place, sign): (usize, u16, u8),
    out: &mut [u8],
) {
    let mut coarse = sum(&segments[..wide - 1]);
    let mut fine = [RunningCounts::NONE; 16];
    // First column included in the counts of each segment; none for empty counts.
    let mut at = [usize::MAX; 16];
    for (x, out) in out.iter_mut().enumerate() {
        coarse = coarse.plus(&segments[x + wide - 1]);
        let segment = coarse.bin(place) & 15;
        let of = &values[segment * lines..][..lines];
        let had = at[segment];
        let mut counts = fine[segment];
        if had == usize::MAX || x - had > wide / 2 {
            counts = sum(&of[x..x + wide]);
        } else {
            for (gone, come) in of[had..x].iter().zip(&of[had + wide..x + wide]) {
                counts = counts.minus(gone).plus(come);
            }
        }
        (fine[segment], at[segment]) = (counts, x);
        let before = if segment == 0 { 0 } else { coarse.0[segment - 1] };
        *out = (16 * segment + counts.bin(place - before)) as u8 ^ sign;
        coarse = coarse.minus(&segments[x]);
    }
}

#[inline(always)]
fn enter(line: &[u8], segments: &mut [RunningCounts], values: &mut [RunningCounts], lines: usize) {
    for (x, &v) in line.iter().enumerate() {
        let (segment, value) = (usize::from(v >> 4), usize::from(v & 15));
        let (of, counts) = (&mut segments[x], &mut values[segment * lines + x]);
        (*of, *counts) = (of.plus(&FROM[segment]), counts.plus(&FROM[value]));
    }
}

#[inline(always)]
fn leave(line: &[u8], segments: &mut [RunningCounts], values: &mut [RunningCounts], lines: usize) {
    for (x, &v) in line.iter().enumerate() {
        let (segment, value) = (usize::from(v >> 4), usize::from(v & 15));
        let (of, counts) = (&mut segments[x], &mut values[segment * lines + x]);
        (*of, *counts) = (of.minus(&FROM[segment]), counts.minus(&FROM[value]));
    }
}

/// The unsigned numbers of `n` pixels of row `y` from column `x` on, continued by the border.
#[inline(always)]
fn extend(
    plane: &Plane<'_, u8>,
    (y, x, n): (isize, isize, usize),
    (border, constant, sign): (Border, u8, u8),
    line: &mut Vec<u8>,
) {
    let number = |v: u8| v ^ sign;
    line.clear();
    let Some(row) = plane.resolve(y, border).map(|y| plane.row(y)) else {
        line.resize(n, constant);
        return;
    };
    let (width, end) = (plane.width.cast_signed(), x + n.cast_signed());
    let edge = |x: isize| border.map(x, plane.width).map_or(constant, |x| number(row[x]));
    let inside = x.clamp(0, width)..end.clamp(0, width);
    line.extend((x..inside.start.min(end)).map(edge));
    line.extend(row[inside.start.cast_unsigned()..inside.end.cast_unsigned()].iter().map(|v| number(*v)));
    line.extend((inside.end.max(x)..end).map(edge));
}
