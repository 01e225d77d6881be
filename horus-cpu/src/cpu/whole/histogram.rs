//! Histograms: exact counts, independent of the order.

use rayon::prelude::*;

use super::{View, grain};
use crate::cpu::simd::Isa;
use crate::cpu::versions::for_each_isa;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::Window;
use horus_plan::ops::reduce::bin_of;

/// Equal bins over `lo..=hi`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    pub(super) lo: f64,
    pub(super) hi: f64,
    pub(super) bins: usize,
}

/// Counts the pixels of rows `rows` of all planes of `input` into `out`, which has one element per
/// bin, on `threads` threads.
pub(super) fn count<T: Pixel>(
    (isa, threads): (Isa, usize),
    input: View<'_, T>,
    bins: Bins,
    out: &mut [f64],
    rows: Window,
) {
    let width = input.geometry.shape.width;
    let n = grain(width);
    let tasks: Vec<(usize, isize)> = (0..input.geometry.shape.planes())
        .flat_map(|c| (rows.start..rows.end).step_by(n).map(move |y| (c, y)))
        .collect();
    // One counter too many, for what lies in no bin.
    let part = |mut counts: Vec<u64>, (c, y): (usize, isize)| {
        let plane = input.plane(c);
        let end = rows.end.min(y + n.cast_signed());
        let at = |y: isize| (y - plane.window.start).cast_unsigned() * width;
        count_pixels(&plane.data()[at(y)..at(end)], bins, &mut counts, isa);
        counts
    };
    let counted = sums(threads, bins.bins + 1, tasks, &part);
    out[..bins.bins].iter_mut().zip(counted).for_each(|(o, n)| *o = n as f64);
}

/// Counts all tasks with `part`, and adds the counters up.
fn sums(
    threads: usize,
    counters: usize,
    tasks: Vec<(usize, isize)>,
    part: &(dyn Fn(Vec<u64>, (usize, isize)) -> Vec<u64> + Sync),
) -> Vec<u64> {
    let none = || vec![0u64; counters];
    let add = |mut a: Vec<u64>, b: Vec<u64>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    match threads {
        0 | 1 => tasks.into_iter().fold(none(), part),
        _ => tasks.into_par_iter().fold(none, part).reduce(none, add),
    }
}

fn count_pixels<T: Pixel>(pixels: &[T], bins: Bins, counts: &mut [u64], isa: Isa) {
    if T::DTYPE == DType::U8 {
        count_bytes(bytemuck::cast_slice(pixels), bins, counts);
    } else {
        indexed(isa, pixels, bins, counts);
    }
}

/// Counts values first, then finds the bin of each of the 256.
fn count_bytes(pixels: &[u8], bins: Bins, counts: &mut [u64]) {
    // Equal neighbours are common; with four tables an increment rarely waits for the previous one.
    let mut tables = [[0u32; 256]; 4];
    for part in pixels.chunks(1 << 30) {
        let (eights, rest) = part.as_chunks::<8>();
        for &eight in eights {
            let eight = u64::from_le_bytes(eight);
            for k in 0..8 {
                tables[k % 4][(eight >> (8 * k)) as usize & 255] += 1;
            }
        }
        for &v in rest {
            tables[0][usize::from(v)] += 1;
        }
        for v in 0..=255u8 {
            let n: u64 = tables.iter().map(|t| u64::from(t[usize::from(v)])).sum();
            if let Some(bin) = bin_of(f64::from(v), bins.lo, bins.hi, bins.bins) {
                counts[bin] += n;
            }
        }
        tables = [[0; 256]; 4];
    }
}

for_each_isa! { fn indexed[T: Pixel][T](pixels: &[T], bins: Bins, counts: &mut [u64]) as indexed_body }

/// Finds the bins of many pixels at a time, which vectorises, and counts them one by one.
#[inline(always)]
fn indexed_body<T: Pixel>(_: Isa, pixels: &[T], bins: Bins, counts: &mut [u64]) {
    let Bins { lo, hi, bins } = bins;
    let Ok(last) = i32::try_from(bins) else {
        let found = pixels.iter().filter_map(|v| bin_of(v.to_f64(), lo, hi, bins));
        return found.for_each(|bin| counts[bin] += 1);
    };
    let mut index = [0i32; 256];
    for part in pixels.chunks(256) {
        for (index, v) in index.iter_mut().zip(part) {
            let v = v.to_f64();
            // `bin_of`, with the extra counter for values outside.
            let bin = ((v - lo) / (hi - lo) * bins as f64) as i32;
            *index = if v >= lo && v <= hi { Ord::min(bin, last - 1) } else { last };
        }
        for &bin in &index[..part.len()] {
            counts[bin as usize] += 1;
        }
    }
}
