//! Histograms: exact counts, independent of the order.

use super::{CpuOperation, OperationOutput, TypedInput, grain, out, type_of, view};
use crate::parallel;
use crate::versions::for_least_isa;
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::Histogram;
use horus_plan::ops::reduce::bin_of;

impl CpuOperation for Histogram {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        let bins = Bins { lo: self.lo(), hi: self.hi(), bins: self.bins };
        dispatch!(type_of(inputs), T => count(view::<T>(inputs, 0)?, bins, out(output)?, to));
        Ok(())
    }
}

/// Equal bins over `lo..=hi`.
#[derive(Clone, Copy, Debug)]
struct Bins {
    pub(super) lo: f64,
    pub(super) hi: f64,
    pub(super) bins: usize,
}

impl Bins {
    /// The bin of a value, or the counter after the last bin.
    fn counter(self, v: f64) -> usize {
        bin_of(v, self.lo, self.hi, self.bins).unwrap_or(self.bins)
    }
}

/// Counts the pixels of rows `rows` of all planes of `input` into `out`, which has one element per
/// bin, on `threads` threads.
fn count<T: Pixel>(
    input: TypedInput<'_, T>,
    bins: Bins,
    out: &mut [f64],
    &OperationOutput { rows, threads, .. }: &OperationOutput,
) {
    let width = input.geometry.shape.line();
    let n = grain(width);
    let tasks: Vec<CountedRows> = (0..input.geometry.shape.planes())
        .flat_map(|c| (rows.start..rows.end).step_by(n).map(move |y| (c, y)))
        .collect();
    let finder = BinFinder::of::<T>(bins, rows.len() * width * input.geometry.shape.planes());
    // One more counter, for values outside all bins.
    let part = |counts: &mut Vec<u64>, (c, y): CountedRows| {
        let plane = input.plane(c);
        let end = rows.end.min(y + n.cast_signed());
        let at = |y: isize| (y - plane.window.start).cast_unsigned() * width;
        count_pixels(&plane.data()[at(y)..at(end)], (&finder, bins), counts);
    };
    let counted = sums(threads, bins.bins + 1, tasks, &part);
    out[..bins.bins].iter_mut().zip(counted).for_each(|(o, n)| *o = n as f64);
}

/// A plane, and the first of some rows.
type CountedRows = (usize, isize);

/// Counts all tasks with `part`, and adds the counters up.
fn sums(
    threads: usize,
    counters: usize,
    tasks: Vec<CountedRows>,
    part: &(dyn Fn(&mut Vec<u64>, CountedRows) + Sync),
) -> Vec<u64> {
    let mut all = parallel::fold(threads, tasks, || vec![0u64; counters], part).into_iter();
    let mut total = all.next().unwrap_or_else(|| vec![0; counters]);
    all.for_each(|more| total.iter_mut().zip(more).for_each(|(a, b)| *a += b));
    total
}

/// How pixels of a launch find their bins.
enum BinFinder {
    /// By value, after the pixels have been counted.
    Bytes,
    /// In a table of bins, indexed by the bits of a 16-bit pixel.
    Table(Box<[u32; 1 << 16]>),
    /// By their quotients.
    Quotients,
}

impl BinFinder {
    fn of<T: Pixel>(bins: Bins, pixels: usize) -> BinFinder {
        match T::DTYPE {
            DType::U8 => BinFinder::Bytes,
            dtype if dtype.size() == 2 && pixels > TABLE_PIXELS && i32::try_from(bins.bins).is_ok() => {
                BinFinder::Table(table::<T>(bins))
            }
            _ => BinFinder::Quotients,
        }
    }
}

/// Minimum number of pixels for which a table pays off: it takes as many quotients as it has entries.
const TABLE_PIXELS: usize = 1 << 16;

/// The bin of each 16-bit number, indexed by its bits; numbers outside all bins have the counter after the last.
fn table<T: Pixel>(bins: Bins) -> Box<[u32; 1 << 16]> {
    let mut table = Box::new([0; 1 << 16]);
    for (part, at) in table.chunks_mut(TOGETHER).zip((0u16..).step_by(TOGETHER)) {
        let bits: [u16; TOGETHER] = std::array::from_fn(|i| at + i as u16);
        quotients::<T>(bytemuck::cast_slice(&bits), bins, part);
    }
    table
}

fn count_pixels<T: Pixel>(pixels: &[T], (finder, bins): (&BinFinder, Bins), counts: &mut [u64]) {
    match finder {
        BinFinder::Bytes => count_bytes(bytemuck::cast_slice(pixels), bins, counts),
        BinFinder::Table(table) if counts.len() > MANY => {
            let pixels = bytemuck::cast_slice::<T, u16>(pixels);
            pixels.iter().for_each(|v| counts[table[usize::from(*v)] as usize] += 1);
        }
        BinFinder::Table(table) => {
            let mut counters = BinCounters::new(counts);
            let (fours, rest) = bytemuck::cast_slice::<T, u16>(pixels).as_chunks::<4>();
            fours.iter().for_each(|four| counters.count(four.map(|v| table[usize::from(v)])));
            rest.iter().for_each(|v| counters.count([table[usize::from(*v)]]));
        }
        BinFinder::Quotients => count_quotients(pixels, bins, counts),
    }
}

/// Pixels whose bins are found together.
const TOGETHER: usize = 256;

/// Number of bins from which four counters for each bin take longer to clear and to add than they save, because
/// neighbours rarely share a bin: measured with 65,536 bins; not with 256.
const MANY: usize = 1 << 12;

/// Four counters for each bin: equal neighbours are common, and an increment waits for the previous one of the same
/// counter.
struct BinCounters<'a> {
    counts: &'a mut [u64],
    fours: Vec<[u64; 4]>,
}

impl BinCounters<'_> {
    fn new(counts: &mut [u64]) -> BinCounters<'_> {
        BinCounters { fours: vec![[0; 4]; counts.len()], counts }
    }

    /// Counts one in each of at most four bins.
    #[inline(always)]
    fn count<const N: usize>(&mut self, bins: [u32; N]) {
        for (k, bin) in bins.into_iter().enumerate() {
            self.fours[bin as usize][k] += 1;
        }
    }
}

impl Drop for BinCounters<'_> {
    fn drop(&mut self) {
        self.counts.iter_mut().zip(&self.fours).for_each(|(count, four)| *count += four.iter().sum::<u64>());
    }
}

/// Counts values first, then finds the bin of each of the 256 values.
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

/// Bins found in single precision, where the result is certain.
struct SinglePrecisionBins {
    /// The least and the greatest `f32` within the bins.
    range: [f32; 2],
    lo: f32,
    scale: f32,
    bins: i32,
    /// Upper bound of the error of a position, compared with [`bin_of`].
    error: f32,
}

impl SinglePrecisionBins {
    /// `None` if too few positions would be certain.
    fn of(Bins { lo, hi, bins }: Bins) -> Option<SinglePrecisionBins> {
        let scale = bins as f64 / (hi - lo);
        // Roundings of `lo`, of the difference, the scale and the product: 2^-24 each, and a margin.
        let error = scale * lo.abs() * 2f64.powi(-23) + bins as f64 * 2f64.powi(-22);
        if !(error < 1.0 / 256.0 && scale > 1e-30 && scale < 1e30) {
            return None;
        }
        let (least, most) = (lo as f32, hi as f32);
        let least = if f64::from(least) < lo { least.next_up() } else { least };
        let most = if f64::from(most) > hi { most.next_down() } else { most };
        let range = [least, most];
        Some(SinglePrecisionBins { range, lo: lo as f32, scale: scale as f32, bins: bins as i32, error: error as f32 })
    }
}

for_least_isa! { fn near_bins[T: Pixel][T](pixels: &[T], near: &SinglePrecisionBins, index: &mut [u32]) -> bool as near_bins_body }

/// The bins of some `f32` pixels; `false` if one is too close to the edge of two bins.
#[inline(always)]
fn near_bins_body<T: Pixel>(pixels: &[T], near: &SinglePrecisionBins, index: &mut [u32]) -> bool {
    let SinglePrecisionBins { range: [least, most], lo, scale, bins, error } = *near;
    let mut unsure = false;
    for (index, v) in index.iter_mut().zip(bytemuck::cast_slice::<T, f32>(pixels)) {
        let position = (*v - lo) * scale;
        let bin = position as i32;
        let within = position - bin as f32;
        let inside = (*v >= least) & (*v <= most);
        // Positions before the second bin, or in the last, stay in place even with a small error.
        let between = (position > 0.5) & (position < bins as f32 - 0.5);
        unsure |= inside & between & ((within < error) | (within > 1.0 - error));
        *index = if inside { Ord::min(bin, bins - 1) } else { bins }.cast_unsigned();
    }
    !unsure
}

for_least_isa! { fn quotients[T: Pixel][T](pixels: &[T], bins: Bins, index: &mut [u32]) as quotients_body }

/// Finds the bins of many pixels at a time, which vectorises.
#[inline(always)]
fn quotients_body<T: Pixel>(pixels: &[T], Bins { lo, hi, bins }: Bins, index: &mut [u32]) {
    let last = bins as i32;
    for (index, v) in index.iter_mut().zip(pixels) {
        let v = v.to_f64();
        // `bin_of`, with the extra counter for values outside.
        let bin = ((v - lo) / (hi - lo) * bins as f64) as i32;
        *index = if v >= lo && v <= hi { Ord::min(bin, last - 1) } else { last }.cast_unsigned();
    }
}

fn count_quotients<T: Pixel>(pixels: &[T], bins: Bins, counts: &mut [u64]) {
    if i32::try_from(bins.bins).is_err() {
        return pixels.iter().for_each(|v| counts[bins.counter(v.to_f64())] += 1);
    }
    let near = SinglePrecisionBins::of(bins).filter(|_| T::DTYPE == DType::F32);
    let mut counters = BinCounters::new(counts);
    for part in pixels.chunks(TOGETHER) {
        let mut index = [0; TOGETHER];
        let found = near.as_ref().is_some_and(|near| near_bins(part, near, &mut index));
        if !found {
            quotients(part, bins, &mut index);
        }
        let (fours, rest) = index[..part.len()].as_chunks::<4>();
        fours.iter().for_each(|four| counters.count(*four));
        rest.iter().for_each(|bin| counters.count([*bin]));
    }
}
