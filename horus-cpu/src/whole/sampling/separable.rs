//! Samples at positions that keep the axes separate, for example for a change of scale or a shift: a row of the result
//! is in one row and one level of positions, and all rows have the same columns.
//!
//! Interpolation goes along the columns, then down the rows, then through the levels. A row of the image is
//! interpolated along its columns once for all rows of the result that read it. Sums of whole rows remain.

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{BLOCK, NOWHERE, SampleTaps, SampleWeights, SampledPlane, Weighing, beyond, block, fill, place, split};
use crate::simd::Isa;
use crate::versions::for_each_isa;
use horus_base::dtype::{Float, Pixel};
use horus_base::shape::Shape;

/// State shared by rows of samples.
pub(super) struct SeparableSampler<T: Pixel, const N: usize> {
    /// The value at positions beyond the pixels, if the image is not sampled there.
    outside: Option<T>,
    /// The positions along a row.
    columns: Vec<f64>,
    blocks: Vec<SampleColumns<T::Interp, N>>,
    /// Some columns read a constant.
    constant: bool,
    /// Rows of the image between these columns, in blocks.
    lines: Vec<[T::Interp; BLOCK]>,
    cached_lines: Vec<Option<[i32; 2]>>,
    /// A row of the image in the type of the interpolation, followed by a pixel of the constant.
    row: Vec<T::Interp>,
}

/// The columns of a block of samples. The column after the last is the constant.
struct SampleColumns<F, const N: usize> {
    taps: SampleTaps<F, N>,
    at: [[u32; BLOCK]; N],
    /// The columns of each sample are neighbours, none replaced by the border mode.
    neighbours: bool,
    /// Flags of positions beyond the pixels; `nowhere` flags NaN positions.
    beyond: [bool; BLOCK],
    nowhere: [bool; BLOCK],
}

impl<T: Pixel, const N: usize> SeparableSampler<T, N> {
    pub(super) fn new(outside: Option<T>) -> SeparableSampler<T, N> {
        SeparableSampler {
            outside,
            columns: Vec::new(),
            blocks: Vec::new(),
            constant: false,
            lines: Vec::new(),
            cached_lines: Vec::new(),
            row: Vec::new(),
        }
    }

    /// Computes a row of samples at positions along columns, rows and, in a volume, levels. Returns `false`, and does
    /// nothing, if the positions do not keep the axes separate.
    pub(super) fn row(
        &mut self,
        isa: Isa,
        from: &SampledPlane<'_, T>,
        how: &Weighing<T::Interp, N>,
        positions: &[&[f64]],
        out: &mut [T],
    ) -> bool {
        let (&columns, others) = match positions.split_first() {
            Some((columns, others)) if N > 1 && !from.shape.is_empty() => (columns, others),
            _ => return false,
        };
        // The ends first, which differ in most maps that do not keep the axes separate.
        if others.iter().any(|place| place[0] != place[place.len() - 1]) || !all_alike(isa, others) {
            return false;
        }
        let shape = from.shape;
        let mut single = [SampleWeights { t: T::Interp::ZERO, weights: [T::Interp::ZERO; N] }; 2];
        let mut first = [0; 2];
        for (((line, first), single), extent) in
            others.iter().zip(&mut first).zip(&mut single).zip([shape.height, shape.depth])
        {
            let at = line[0];
            if let Some(value) = self.outside.filter(|_| !(at >= 0.0 && at <= extent as f64 - 1.0)) {
                out.fill(value);
                return true;
            }
            if !at.is_finite() {
                return false;
            }
            (*first, *single) = alone(isa, how, at);
        }
        if !same(isa, &self.columns, columns) {
            // Rows that all have columns of their own are faster sample by sample.
            let first = self.columns.is_empty();
            self.columns.clear();
            self.columns.extend_from_slice(columns);
            if !first {
                self.blocks.clear();
                return false;
            }
        }
        if self.blocks.is_empty() {
            self.prepare_columns(isa, from, how);
        }
        self.sums(isa, from, first, &single, out);
        true
    }

    /// Looks up the columns.
    fn prepare_columns(&mut self, isa: Isa, from: &SampledPlane<'_, T>, how: &Weighing<T::Interp, N>) {
        let width = from.shape.width;
        self.constant = false;
        let count = self.columns.len().div_ceil(BLOCK);
        self.blocks.clear();
        for b in 0..count {
            let mut columns = SampleColumns {
                taps: SampleTaps::NONE,
                at: [[0; BLOCK]; N],
                neighbours: width >= N,
                beyond: [false; BLOCK],
                nowhere: [false; BLOCK],
            };
            let mut rest = [0.0; BLOCK];
            let places = block(&self.columns, b, &mut rest);
            split(isa, how, places, &mut columns.taps);
            if self.outside.is_some() {
                beyond(isa, places, width, &mut columns.beyond);
            }
            columns.nowhere = columns.taps.first.map(|first| first == NOWHERE);
            for i in (0..BLOCK).filter(|i| !columns.nowhere[*i]) {
                columns.neighbours &= columns.taps.inside(i, width);
                for k in 0..N {
                    let found = place(columns.taps.first[i] as isize + k.cast_signed(), from.border, width);
                    self.constant |= found.is_none();
                    // Fewer than 2^31 pixels along an axis.
                    columns.at[k][i] = found.unwrap_or(width) as u32;
                }
            }
            self.blocks.push(columns);
        }
        self.lines.clear();
        self.lines.resize(N * N * count, [T::Interp::ZERO; BLOCK]);
        self.cached_lines.clear();
        self.cached_lines.resize(N * N, None);
    }

    /// Computes a row of samples in a row and a level of positions.
    fn sums(
        &mut self,
        isa: Isa,
        from: &SampledPlane<'_, T>,
        [row, level]: [i32; 2],
        [down, through]: &[SampleWeights<T::Interp, N>; 2],
        out: &mut [T],
    ) {
        let slot = |at: i32| at.rem_euclid(N as i32) as usize;
        let count = self.blocks.len();
        let levels = if from.volume { N } else { 1 };
        let mut lines = [[0; N]; N];
        for (k, lines) in (level..).zip(lines.iter_mut().take(levels)) {
            for (r, line) in (row..).zip(lines) {
                let at = slot(k) * N + slot(r);
                *line = at * count;
                if self.cached_lines[at] != Some([k, r]) {
                    self.cached_lines[at] = Some([k, r]);
                    self.line(isa, from, [k, r], at * count);
                }
            }
        }
        for (b, out) in out.chunks_mut(BLOCK).enumerate() {
            let mut rows = [[&self.lines[0]; N]; N];
            for (rows, lines) in rows.iter_mut().zip(&lines).take(levels) {
                rows.iter_mut().zip(lines).for_each(|(row, line)| *row = &self.lines[line + b]);
            }
            combined(isa, &rows, down, from.volume.then_some(through), out);
            let columns = &self.blocks[b];
            fill(isa, T::from_f64(f64::NAN), &columns.nowhere, out);
            if let Some(value) = self.outside {
                fill(isa, value, &columns.beyond, out);
            }
        }
    }

    /// Interpolates a row of a level along the columns.
    fn line(&mut self, isa: Isa, from: &SampledPlane<'_, T>, [level, row]: [i32; 2], to: usize) {
        let Shape { depth, height, width, .. } = from.shape;
        let level = if from.volume { place(level as isize, from.border, depth) } else { Some(0) };
        let held = level.zip(place(row as isize, from.border, height));
        let pixels = held.map(|(level, row)| &from.data[from.first + level * from.level + row * width..][..width]);
        let row = match pixels {
            Some(pixels) if T::DTYPE == T::Interp::DTYPE && !self.constant => bytemuck::cast_slice(pixels),
            Some(pixels) => {
                widened(isa, pixels, &mut self.row);
                self.row.push(from.constant().to_interp());
                &self.row
            }
            None => {
                self.row.clear();
                self.row.resize(width + 1, from.constant().to_interp());
                &self.row
            }
        };
        for (columns, to) in self.blocks.iter().zip(&mut self.lines[to..]) {
            across(isa, columns, row, to);
        }
    }
}

for_each_isa! {
    /// First pixel and weights of a sample at a finite position.
    fn alone[F: Float, const N: usize][F, N](how: &Weighing<F, N>, position: f64) -> (i32, SampleWeights<F, N>) as alone_of
}

#[inline(always)]
fn alone_of<F: Float, const N: usize>(_: Isa, how: &Weighing<F, N>, position: f64) -> (i32, SampleWeights<F, N>) {
    let (first, t) = how.how.split_finite(position);
    let all = how.how.weights(t);
    let mut weights = [F::ZERO; N];
    weights.copy_from_slice(&all[..N]);
    (first, SampleWeights { t, weights })
}

for_each_isa! {
    /// Returns `true` if each line has one position.
    fn all_alike[][](lines: &[&[f64]]) -> bool as all_alike_of
}

#[inline(always)]
fn all_alike_of(_: Isa, lines: &[&[f64]]) -> bool {
    lines.iter().all(|line| line.chunks(BLOCK).all(|part| part.iter().fold(true, |all, at| all & (*at == line[0]))))
}

for_each_isa! {
    /// Returns `true` if two rows of positions are the same, bit by bit.
    fn same[][](one: &[f64], other: &[f64]) -> bool as same_of
}

#[inline(always)]
fn same_of(_: Isa, one: &[f64], other: &[f64]) -> bool {
    let alike = |(a, b): (&[f64], &[f64])| a.iter().zip(b).fold(true, |all, (a, b)| all & (a.to_bits() == b.to_bits()));
    one.len() == other.len() && one.chunks(BLOCK).zip(other.chunks(BLOCK)).all(alike)
}

for_each_isa! {
    /// Converts pixels to the type of the interpolation.
    fn widened[T: Pixel][T](pixels: &[T], to: &mut Vec<T::Interp>) as widened_of
}

#[inline(always)]
fn widened_of<T: Pixel>(_: Isa, pixels: &[T], to: &mut Vec<T::Interp>) {
    to.resize(pixels.len(), T::Interp::ZERO);
    for (to, pixel) in to.iter_mut().zip(pixels) {
        *to = pixel.to_interp();
    }
}

for_each_isa! {
    /// Interpolates a row of the image at a block of columns.
    fn across[F: Float, const N: usize][F, N](columns: &SampleColumns<F, N>, row: &[F], to: &mut [F; BLOCK]) as across_of
}

#[inline(always)]
fn across_of<F: Float, const N: usize>(_: Isa, columns: &SampleColumns<F, N>, row: &[F], to: &mut [F; BLOCK]) {
    let SampleColumns { taps, at, .. } = columns;
    #[cfg(target_arch = "x86_64")]
    if N.is_multiple_of(2) && columns.neighbours {
        // SAFETY: kernels run with AVX2 and FMA; the row contains the pixels of each sample, and the pixels at column 0
        // for a sample at a NaN position.
        return unsafe { x86::across(row.as_ptr(), &at[0], taps, to) };
    }
    debug_assert!(at.iter().flatten().all(|at| (*at as usize) < row.len()), "columns are in the row");
    for i in 0..BLOCK {
        let mut pixels = [F::ZERO; N];
        for k in 0..N {
            // SAFETY: the row has the pixels of its image and, if some column reads the constant, the constant.
            pixels[k] = unsafe { row.as_ptr().wrapping_add(at[k][i] as usize).read_unaligned() };
        }
        to[i] = taps.of(i).between(&pixels);
    }
}

for_each_isa! {
    /// Interpolates between rows of each level, and between levels.
    fn combined[T: Pixel, const N: usize][T, N](
        rows: &[[&[T::Interp; BLOCK]; N]; N],
        down: &SampleWeights<T::Interp, N>,
        through: Option<&SampleWeights<T::Interp, N>>,
        out: &mut [T],
    ) as combined_of
}

#[inline(always)]
fn combined_of<T: Pixel, const N: usize>(
    _: Isa,
    rows: &[[&[T::Interp; BLOCK]; N]; N],
    down: &SampleWeights<T::Interp, N>,
    through: Option<&SampleWeights<T::Interp, N>>,
    out: &mut [T],
) {
    let mut all = [[T::Interp::ZERO; BLOCK]; N];
    for (sums, rows) in all.iter_mut().zip(rows).take(if through.is_some() { N } else { 1 }) {
        for i in 0..BLOCK {
            let mut values = [T::Interp::ZERO; N];
            for k in 0..N {
                values[k] = rows[k][i];
            }
            sums[i] = down.between(&values);
        }
    }
    let mut results = [T::ZERO; BLOCK];
    for i in 0..BLOCK {
        let mut values = [T::Interp::ZERO; N];
        for k in 0..N {
            values[k] = all[k][i];
        }
        let value = match through {
            Some(through) => through.between(&values),
            None => values[0],
        };
        results[i] = T::from_interp(value);
    }
    out.copy_from_slice(&results[..out.len()]);
}
