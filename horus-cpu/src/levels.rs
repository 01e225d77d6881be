//! Linear filters along the levels of a volume, which are recorded as sums of weighted levels.
//!
//! Such a sum is a filter of a column whose rows are levels. The pixels of a few columns are copied from all levels,
//! and each loaded pixel serves several levels of the result (`correlate`). The tile executor would read every level
//! from memory once for each tap. The terms are added in the same order: the same bits.

use super::correlate::{TapPositions, TileFilterBank};
use super::parallel;
use super::simd::{Isa, Simd};
use horus_base::dispatch_float;
use horus_base::dtype::{DType, Float, Pixel, Scalar};
use horus_base::shape::{Border, Window};
use horus_host::device::{Geometry, LaunchInput};
use horus_plan::ir::kernel::{Instr, InstrOp, LeafOp, MapKernel, Val};
use horus_plan::ops::pixel::PixelOp;
use horus_plan::ops::planes::PlaneMap;

/// Minimum number of terms for which the copy pays off.
const FEWEST: usize = 4;
/// Bytes of the copied pixels of all levels, and the minimum number of copied columns: whole cache lines.
const COPIED: usize = 128 << 10;
const NARROWEST: usize = 64;
/// Bytes of a cache line.
const LINE: usize = 64;

/// A sum of weighted levels of an image.
#[derive(Debug)]
pub(super) struct LevelFilter {
    input: usize,
    dtype: DType,
    taps: Vec<Scalar>,
    /// The level of each term; `None` for the level of the result.
    levels: Vec<Option<PlaneMap>>,
}

impl LevelFilter {
    /// The filter that a kernel is, if it is only a filter along levels.
    pub(super) fn of(kernel: &MapKernel) -> Option<LevelFilter> {
        let mut value =
            kernel.result.filter(|_| kernel.additional_results.is_empty() && kernel.code.len() >= FEWEST)?;
        let dtype = kernel.type_of(value);
        let mut filter = LevelFilter { input: 0, dtype, taps: Vec::new(), levels: Vec::new() };
        let mut images = Vec::new();
        // From the last term to the first.
        while let Val::Instr(i) = value {
            let Instr { op: InstrOp::Pixel(PixelOp::MulAdd), args, .. } = &kernel.code[i] else { return None };
            let &[Val::Leaf(level), Val::Const(tap), before] = &args[..] else { return None };
            let (image, level) = match &kernel.leaves[level].op {
                LeafOp::Load(image) => (*image, None),
                LeafOp::LoadPlane(image, map) => (*image, Some(*map)),
                _ => return None,
            };
            images.push(image);
            filter.taps.push(tap);
            filter.levels.push(level);
            value = before;
        }
        let zero = matches!(value, Val::Const(v) if v.to_f64().to_bits() == 0);
        filter.input = *images.first()?;
        filter.taps.reverse();
        filter.levels.reverse();
        let alike = images.iter().all(|image| *image == filter.input) && filter.taps.len() == kernel.code.len();
        (dtype.is_float() && zero && alike).then_some(filter)
    }

    /// The planes of a channel as one column: term `k` of level `z` is at index `z + k`; `None` where the constant is
    /// read. Without planes if they do not form such a column.
    fn column(&self, channel: usize, geometry: &Geometry) -> Option<Vec<Option<usize>>> {
        let (depth, channels) = (geometry.shape.depth, geometry.shape.channels);
        let mut column = vec![None; depth + self.taps.len() - 1];
        for z in 0..depth {
            let plane = z * channels + channel;
            for (k, map) in self.levels.iter().enumerate() {
                let read = map.map_or(Some(plane), |map| map.at(plane));
                let held: &mut Option<Option<usize>> = &mut column[z + k];
                if *held.get_or_insert(read) != read {
                    return None;
                }
            }
        }
        column.into_iter().collect()
    }

    /// The border mode of all terms; `None` if they have several.
    fn border(&self) -> Option<Border> {
        let mut borders = self.levels.iter().flatten().map(|map| map.border);
        let first = borders.next().unwrap_or(Border::Replicate);
        borders.all(|border| border == first).then_some(first)
    }

    /// Computes rows of the result, on the current thread pool (`threads` of it) or on the calling thread. Returns
    /// `false` if nothing was done.
    pub(super) fn launch(
        &self,
        inputs: &[LaunchInput<'_>],
        output: &mut [u8],
        (geometry, rows): (Geometry, Window),
        isa: Isa,
        threads: usize,
    ) -> bool {
        let LaunchInput { memory, geometry: of } = inputs[self.input];
        let Some(memory) = memory.host() else { return false };
        let Some(border) = self.border() else { return false };
        let columns: Option<Vec<_>> = (0..geometry.shape.channels).map(|c| self.column(c, &geometry)).collect();
        let Some(columns) = columns.filter(|_| of.dtype == self.dtype && of.window.covers(rows)) else { return false };
        let outside = border.constant().unwrap_or_default();
        dispatch_float!(self.dtype, T => {
            assert!(geometry.bytes() <= output.len(), "the output holds the rows");
            let taps: Vec<T> = self.taps.iter().map(|tap| T::from_scalar(*tap)).collect();
            let work = LevelSumLaunch {
                taps: &taps,
                outside: T::from_f64(outside),
                from: memory.as_slice::<T>(),
                of,
                out: output.as_mut_ptr().cast::<T>(),
                geometry,
                rows,
                isa,
            };
            work.all(&columns, threads);
        });
        true
    }
}

/// The rows of a result, and their sources.
struct LevelSumLaunch<'a, T> {
    taps: &'a [T],
    outside: T,
    from: &'a [T],
    of: Geometry,
    /// Parts write different pixels.
    out: *mut T,
    geometry: Geometry,
    rows: Window,
    isa: Isa,
}

// SAFETY: the pointer is to the exclusively borrowed output; every part writes other pixels.
unsafe impl<T: Sync> Sync for LevelSumLaunch<'_, T> {}

impl<T: Simd + Pixel + Float> LevelSumLaunch<'_, T> {
    fn all(&self, columns: &[Vec<Option<usize>>], threads: usize) {
        let pixels = self.rows.len() * self.geometry.shape.width;
        let depth = self.geometry.shape.depth;
        let part = (COPIED / (depth * size_of::<T>())).max(NARROWEST) / NARROWEST * NARROWEST;
        let parts = pixels.div_ceil(part);
        let run = |scratch: &mut Vec<T>, i: usize| {
            let (channel, first) = (i / parts, i % parts * part);
            self.part(channel, &columns[channel], first, part.min(pixels - first), scratch);
        };
        let all = parts * columns.len();
        parallel::fold(threads, (0..all).collect(), Vec::new, run);
    }

    /// Computes `n` pixels of all levels of a channel, from pixel `first` of the rows on.
    fn part(&self, channel: usize, column: &[Option<usize>], first: usize, n: usize, scratch: &mut Vec<T>) {
        // Each plane once, and the constant.
        let mut planes: Vec<usize> = column.iter().flatten().copied().collect();
        planes.sort_unstable();
        planes.dedup();
        let apart = n.next_multiple_of(LINE / size_of::<T>());
        scratch.resize((planes.len() + 1) * apart + LINE, T::ZERO);
        let aligned = scratch.as_ptr().align_offset(LINE).min(LINE);
        let copies = &mut scratch[aligned..];
        for (plane, copy) in planes.iter().zip(copies.chunks_exact_mut(apart)) {
            let at = self.of.row(*plane, self.rows.start) + first;
            copy[..n].copy_from_slice(&self.from[at..at + n]);
        }
        copies[planes.len() * apart..][..apart].fill(self.outside);
        let base = copies.as_ptr();
        let place = |plane: &Option<usize>| {
            let at = plane.map_or(planes.len(), |plane| planes.partition_point(|p| *p < plane));
            base.wrapping_add(at * apart)
        };
        let table: Vec<*const T> = column.iter().map(place).collect();
        let shape = self.geometry.shape;
        let out = self.out.wrapping_add(self.geometry.row(channel, self.rows.start) + first);
        let bank = TileFilterBank {
            layout: TapPositions::Dense { height: self.taps.len(), width: 1 },
            samples: 1,
            weights: self.taps,
            start: &[],
            rows: &table,
            along: 0,
            out: &[(out, self.geometry.plane() * shape.channels)],
            height: shape.depth,
            width: n,
        };
        // SAFETY: there is one filter. The table has the levels from the first term of the first level to the last term
        // of the last, each with the pixels of the part. These pixels of the channel's planes are in the output, and no
        // other part writes them. The device checked the instruction set.
        unsafe { bank.run(self.isa) }
    }
}
