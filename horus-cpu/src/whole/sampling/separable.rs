//! Samples at positions that keep the axes separate, for example for a change of scale or a shift: a row of the result
//! is in one row and one level of positions, and all rows have the same columns.
//!
//! Interpolation goes along the columns, then down the rows, then through the levels. A row of the image is
//! interpolated along its columns once for all rows of the result that read it. Sums of whole rows remain.

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{BLOCK, NOWHERE, SampleTaps, SampleWeights, SampledPlane, Weighing, beyond, block, fill, place, split};
use crate::simd::Isa;
use crate::versions::{for_each_isa, for_least_isa};
use horus_base::dtype::{Float, Pixel};
use horus_base::shape::{Border, Shape};

/// Computes rows of samples for pixels of type `T`. What is between reading pixels and storing results is compiled for the
/// two types of the interpolation.
pub(super) struct SeparableSampler<T: Pixel, const N: usize> {
    /// The value at positions beyond the pixels, if the image is not sampled there.
    outside: Option<T>,
    rows: SampledRows<T::Interp, N>,
    results: Vec<T::Interp>,
}

impl<T: Pixel, const N: usize> SeparableSampler<T, N> {
    pub(super) fn new(outside: Option<T>) -> SeparableSampler<T, N> {
        SeparableSampler { outside, rows: SampledRows::new(outside.is_some()), results: Vec::new() }
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
        let image = SampledLines {
            shape: from.shape,
            border: from.border,
            volume: from.volume,
            constant: from.constant().to_interp(),
            whole: bytemuck::try_cast_slice(from.data).ok().filter(|_| T::DTYPE == T::Interp::DTYPE),
            place: &|level, row| from.first + level * from.level + row * from.shape.width,
            widen: &|at, to| widened(&from.data[at..at + from.shape.width], to),
        };
        self.results.resize(out.len().next_multiple_of(BLOCK), T::Interp::ZERO);
        match self.rows.compute(isa, &image, how, positions, &mut self.results) {
            None => return false,
            Some(Sampled::Beyond) => out.fill(self.outside.unwrap_or(T::ZERO)),
            Some(Sampled::Row) => {
                let results = self.results.as_chunks::<BLOCK>().0;
                for ((results, columns), out) in results.iter().zip(&self.rows.blocks).zip(out.chunks_mut(BLOCK)) {
                    narrowed(results, out);
                    fill(T::from_f64(f64::NAN), &columns.nowhere, out);
                    if let Some(value) = self.outside {
                        fill(value, &columns.beyond, out);
                    }
                }
            }
        }
        true
    }
}

/// The rows of an image, in the type of the interpolation.
struct SampledLines<'a, F> {
    shape: Shape,
    border: Border,
    /// Levels are sampled, too.
    volume: bool,
    constant: F,
    /// All pixels, if they have that type.
    whole: Option<&'a [F]>,
    /// The first pixel of a row of a level.
    place: &'a dyn Fn(usize, usize) -> usize,
    /// Converts the row that begins with a pixel.
    widen: &'a dyn Fn(usize, &mut Vec<F>),
}

enum Sampled {
    /// The row is beyond the pixels.
    Beyond,
    /// The samples of the row.
    Row,
}

/// State shared by rows of samples.
struct SampledRows<F, const N: usize> {
    /// Samples beyond the pixels are marked.
    marked: bool,
    /// The positions along a row.
    columns: Vec<f64>,
    blocks: Vec<SampleColumns<F, N>>,
    /// Some columns read a constant.
    constant: bool,
    /// Rows of the image between these columns, in blocks.
    lines: Vec<[F; BLOCK]>,
    cached_lines: Vec<Option<[i32; 2]>>,
    /// A row of the image in the type of the interpolation, followed by a pixel of the constant.
    row: Vec<F>,
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

impl<F: Float, const N: usize> SampledRows<F, N> {
    fn new(marked: bool) -> SampledRows<F, N> {
        SampledRows {
            marked,
            columns: Vec::new(),
            blocks: Vec::new(),
            constant: false,
            lines: Vec::new(),
            cached_lines: Vec::new(),
            row: Vec::new(),
        }
    }

    /// Computes a row of samples, in whole blocks; `None` if the positions do not keep the axes separate.
    fn compute(
        &mut self,
        isa: Isa,
        image: &SampledLines<'_, F>,
        how: &Weighing<F, N>,
        positions: &[&[f64]],
        out: &mut [F],
    ) -> Option<Sampled> {
        let shape = image.shape;
        let (&columns, others) = positions.split_first().filter(|_| N > 1 && !shape.is_empty())?;
        // The ends first, which differ in most maps that do not keep the axes separate.
        if others.iter().any(|place| place[0] != place[place.len() - 1]) || !all_alike(others) {
            return None;
        }
        let mut single = [SampleWeights { t: F::ZERO, weights: [F::ZERO; N] }; 2];
        let mut first = [0; 2];
        for (((line, first), single), extent) in
            others.iter().zip(&mut first).zip(&mut single).zip([shape.height, shape.depth])
        {
            let at = line[0];
            if self.marked && !(at >= 0.0 && at <= extent as f64 - 1.0) {
                return Some(Sampled::Beyond);
            }
            if !at.is_finite() {
                return None;
            }
            (*first, *single) = alone(how, at);
        }
        if !same(&self.columns, columns) {
            // Rows that all have columns of their own are faster sample by sample.
            let first = self.columns.is_empty();
            self.columns.clear();
            self.columns.extend_from_slice(columns);
            if !first {
                self.blocks.clear();
                return None;
            }
        }
        if self.blocks.is_empty() {
            let width = (shape.width, image.border);
            (self.blocks, self.constant) = looked_up(isa, how, &self.columns, width, self.marked);
            self.lines.clear();
            self.lines.resize(N * N * self.blocks.len(), [F::ZERO; BLOCK]);
            self.cached_lines.clear();
            self.cached_lines.resize(N * N, None);
        }
        self.sums(isa, image, first, &single, out);
        Some(Sampled::Row)
    }

    /// Computes a row of samples in a row and a level of positions.
    fn sums(
        &mut self,
        isa: Isa,
        image: &SampledLines<'_, F>,
        [row, level]: [i32; 2],
        [down, through]: &[SampleWeights<F, N>; 2],
        out: &mut [F],
    ) {
        let slot = |at: i32| at.rem_euclid(N as i32) as usize;
        let count = self.blocks.len();
        let levels = if image.volume { N } else { 1 };
        let mut lines = [[0; N]; N];
        for (k, lines) in (level..).zip(lines.iter_mut().take(levels)) {
            for (r, line) in (row..).zip(lines) {
                let at = slot(k) * N + slot(r);
                *line = at * count;
                if self.cached_lines[at] != Some([k, r]) {
                    self.cached_lines[at] = Some([k, r]);
                    self.line(isa, image, [k, r], at * count);
                }
            }
        }
        for (b, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
            let mut rows = [[&self.lines[0]; N]; N];
            for (rows, lines) in rows.iter_mut().zip(&lines).take(levels) {
                rows.iter_mut().zip(lines).for_each(|(row, line)| *row = &self.lines[line + b]);
            }
            combined(isa, &rows, down, image.volume.then_some(through), out);
        }
    }

    /// Interpolates a row of a level along the columns.
    fn line(&mut self, isa: Isa, image: &SampledLines<'_, F>, [level, row]: [i32; 2], to: usize) {
        let Shape { depth, height, width, .. } = image.shape;
        let level = if image.volume { place(level as isize, image.border, depth) } else { Some(0) };
        let held = level.zip(place(row as isize, image.border, height));
        let at = held.map(|(level, row)| (image.place)(level, row));
        let row = match (at, image.whole) {
            (Some(at), Some(pixels)) if !self.constant => &pixels[at..at + width],
            (Some(at), _) => {
                (image.widen)(at, &mut self.row);
                self.row.push(image.constant);
                &self.row
            }
            (None, _) => {
                self.row.clear();
                self.row.resize(width + 1, image.constant);
                &self.row
            }
        };
        for (columns, to) in self.blocks.iter().zip(&mut self.lines[to..]) {
            across(isa, columns, row, to);
        }
    }
}

/// Looks up columns of an image of some width and border; `marked` if the image is not sampled beyond its pixels.
/// Returns also whether some columns read a constant.
fn looked_up<F: Float, const N: usize>(
    isa: Isa,
    how: &Weighing<F, N>,
    all: &[f64],
    (width, border): (usize, Border),
    marked: bool,
) -> (Vec<SampleColumns<F, N>>, bool) {
    let mut constant = false;
    let mut blocks = Vec::with_capacity(all.len().div_ceil(BLOCK));
    for b in 0..all.len().div_ceil(BLOCK) {
        let mut columns = SampleColumns {
            taps: SampleTaps::NONE,
            at: [[0; BLOCK]; N],
            neighbours: width >= N,
            beyond: [false; BLOCK],
            nowhere: [false; BLOCK],
        };
        let mut rest = [0.0; BLOCK];
        let places = block(all, b, &mut rest);
        split(isa, how, places, &mut columns.taps);
        if marked {
            beyond(places, width, &mut columns.beyond);
        }
        columns.nowhere = columns.taps.first.map(|first| first == NOWHERE);
        for i in (0..BLOCK).filter(|i| !columns.nowhere[*i]) {
            columns.neighbours &= columns.taps.inside(i, width);
            for k in 0..N {
                let found = place(columns.taps.first[i] as isize + k.cast_signed(), border, width);
                constant |= found.is_none();
                // Fewer than 2^31 pixels along an axis.
                columns.at[k][i] = found.unwrap_or(width) as u32;
            }
        }
        blocks.push(columns);
    }
    (blocks, constant)
}

for_least_isa! {
    /// First pixel and weights of a sample at a finite position.
    fn alone[F: Float, const N: usize][F, N](how: &Weighing<F, N>, position: f64) -> (i32, SampleWeights<F, N>) as alone_of
}

#[inline(always)]
fn alone_of<F: Float, const N: usize>(how: &Weighing<F, N>, position: f64) -> (i32, SampleWeights<F, N>) {
    let (first, t) = how.how.split_finite(position);
    let all = how.how.weights(t);
    let mut weights = [F::ZERO; N];
    weights.copy_from_slice(&all[..N]);
    (first, SampleWeights { t, weights })
}

for_least_isa! {
    /// Returns `true` if each line has one position.
    fn all_alike[][](lines: &[&[f64]]) -> bool as all_alike_of
}

#[inline(always)]
fn all_alike_of(lines: &[&[f64]]) -> bool {
    lines.iter().all(|line| line.chunks(BLOCK).all(|part| part.iter().fold(true, |all, at| all & (*at == line[0]))))
}

for_least_isa! {
    /// Returns `true` if two rows of positions are the same, bit by bit.
    fn same[][](one: &[f64], other: &[f64]) -> bool as same_of
}

#[inline(always)]
fn same_of(one: &[f64], other: &[f64]) -> bool {
    let alike = |(a, b): (&[f64], &[f64])| a.iter().zip(b).fold(true, |all, (a, b)| all & (a.to_bits() == b.to_bits()));
    one.len() == other.len() && one.chunks(BLOCK).zip(other.chunks(BLOCK)).all(alike)
}

for_least_isa! {
    /// Converts pixels to the type of the interpolation.
    fn widened[T: Pixel][T](pixels: &[T], to: &mut Vec<T::Interp>) as widened_of
}

#[inline(always)]
fn widened_of<T: Pixel>(pixels: &[T], to: &mut Vec<T::Interp>) {
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
    fn combined[F: Float, const N: usize][F, N](
        rows: &[[&[F; BLOCK]; N]; N],
        down: &SampleWeights<F, N>,
        through: Option<&SampleWeights<F, N>>,
        out: &mut [F; BLOCK],
    ) as combined_of
}

#[inline(always)]
fn combined_of<F: Float, const N: usize>(
    _: Isa,
    rows: &[[&[F; BLOCK]; N]; N],
    down: &SampleWeights<F, N>,
    through: Option<&SampleWeights<F, N>>,
    out: &mut [F; BLOCK],
) {
    let mut all = [[F::ZERO; BLOCK]; N];
    for (sums, rows) in all.iter_mut().zip(rows).take(if through.is_some() { N } else { 1 }) {
        for i in 0..BLOCK {
            let mut values = [F::ZERO; N];
            for k in 0..N {
                values[k] = rows[k][i];
            }
            sums[i] = down.between(&values);
        }
    }
    let Some(through) = through else {
        *out = all[0];
        return;
    };
    for i in 0..BLOCK {
        let mut values = [F::ZERO; N];
        for k in 0..N {
            values[k] = all[k][i];
        }
        out[i] = through.between(&values);
    }
}

for_least_isa! {
    /// Converts results to pixels.
    fn narrowed[T: Pixel][T](results: &[T::Interp; BLOCK], out: &mut [T]) as narrowed_of
}

#[inline(always)]
fn narrowed_of<T: Pixel>(results: &[T::Interp; BLOCK], out: &mut [T]) {
    let mut pixels = [T::ZERO; BLOCK];
    for i in 0..BLOCK {
        pixels[i] = T::from_interp(results[i]);
    }
    out.copy_from_slice(&pixels[..out.len()]);
}
