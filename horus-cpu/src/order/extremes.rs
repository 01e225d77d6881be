//! Smallest and largest pixels under windows of any shape.
//!
//! Windows are rectangles, or runs of pixels in rows. Extremes of four neighbours, of sixteen and so on are computed
//! along rows; overlapping ones cover each run. Factors of four go over the cache fewer times than factors of two.
//! Rectangles are computed along columns first, from the rows of the image, a few rows at a time.
//!
//! An extreme is the first in the order of the offsets. The first extreme of overlapping windows, compared in order, is
//! the extreme of their union: the bits equal those of a scan. NaNs count as the identity, with which every extreme
//! starts.

use super::padded_line::{OrderScratch, PaddedLine, rows_at};
use super::vector::*;
use crate::patch::{Patch, for_each_block};
use crate::plane::{OutputTile, Plane};
use crate::simd::Isa;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Border, Window as Rows};
use horus_plan::ops::neighbourhood::{Combine, Generalized, Reach, Reduce};

/// Pixels under a window, from its upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WindowRun {
    y: usize,
    x: usize,
    len: usize,
}

#[derive(Debug)]
enum ExtremeWindow {
    /// Rows and columns from a corner `(y, x)` on. Of equal pixels, the first column's is taken.
    Rectangle {
        corner: (usize, usize),
        size: (usize, usize),
    },
    Runs(Vec<WindowRun>),
}

/// A generalized convolution that is a minimum or a maximum, prepared for tiles.
pub(super) struct Extremes {
    window: ExtremeWindow,
    reach: Reach,
    dtype: DType,
    greatest: bool,
    last: ExtremeIdentity,
}

/// Runs of consecutive offsets.
fn runs(offsets: &[(usize, usize)]) -> Vec<WindowRun> {
    let mut runs: Vec<WindowRun> = Vec::new();
    for &(y, x) in offsets {
        match runs.last_mut() {
            Some(run) if (run.y, run.x + run.len) == (y, x) => run.len += 1,
            _ => runs.push(WindowRun { y, x, len: 1 }),
        }
    }
    runs
}

/// The corner and the size, if runs are a rectangle.
fn rectangle(runs: &[WindowRun]) -> Option<((usize, usize), (usize, usize))> {
    let first = runs.first()?;
    let regular = runs.iter().zip(first.y..).all(|(run, y)| *run == WindowRun { y, ..*first });
    regular.then_some(((first.y, first.x), (runs.len(), first.len)))
}

fn turned((y, x): (usize, usize)) -> (usize, usize) {
    (x, y)
}

impl ExtremeWindow {
    fn of(g: &Generalized, dtype: DType) -> ExtremeWindow {
        let reach = g.window.reach();
        let inside = |at: isize, before: usize| (at + before.cast_signed()).cast_unsigned();
        let inside = |(y, x): (isize, isize)| (inside(y, reach.up), inside(x, reach.left));
        let mut offsets: Vec<(usize, usize)> = g.window.offsets().into_iter().map(inside).collect();
        if !dtype.is_float() {
            // Equal integers have equal bits: their order does not matter.
            offsets.sort_unstable();
            offsets.dedup();
        }
        let rows = runs(&offsets);
        if let Some((corner, size)) = rectangle(&rows)
            && (!dtype.is_float() || size.0 == 1 || size.1 == 1)
        {
            return ExtremeWindow::Rectangle { corner, size };
        }
        offsets.iter_mut().for_each(|offset| *offset = turned(*offset));
        match rectangle(&runs(&offsets)) {
            Some((corner, size)) => ExtremeWindow::Rectangle { corner: turned(corner), size: turned(size) },
            None => ExtremeWindow::Runs(rows),
        }
    }
}

/// Bytes of a row of a block for rectangles.
const BLOCK_BYTES: usize = 2048;
/// Rows that are computed along columns before any is computed along rows: no vector is read while it is still being
/// stored.
const TOGETHER_ROWS: usize = 8;
/// Minimum height of columns that are divided into the pixels above a row and the pixels from it on.
const TALL: usize = 5;

impl Extremes {
    /// Prepares `g` for pixels of type `dtype`; `None` if it is no minimum or maximum.
    pub(super) fn of(g: &Generalized, dtype: DType) -> Option<Extremes> {
        let greatest = match (g.combine, g.reduce) {
            (Combine::Pixel, Reduce::Min) => false,
            (Combine::Pixel, Reduce::Max) => true,
            _ => return None,
        };
        let last = ExtremeIdentity::of(dtype, greatest);
        Some(Extremes { window: ExtremeWindow::of(g, dtype), reach: g.window.reach(), dtype, greatest, last })
    }

    /// Computes the extremes of a tile.
    pub(super) fn compute<T: Pixel>(
        &self,
        isa: Isa,
        plane: &Plane<'_, T>,
        border: Border,
        tile: &mut OutputTile<'_, T>,
    ) {
        match &self.window {
            ExtremeWindow::Rectangle { corner, size } => OrderScratch::with(|scratch| {
                let work =
                    ExtremeTile { of: self, isa, size: size_of::<T>(), samples: plane.samples, scratch, next: 0 };
                work.rectangle(plane, border, tile, (*corner, *size));
            }),
            ExtremeWindow::Runs(runs) => for_each_block(plane, self.reach, border, tile, |patch, block| {
                self.block(isa, runs, plane.samples, patch, block);
            }),
        }
    }

    /// Computes the extremes under runs of a block.
    fn block<T: Pixel>(
        &self,
        isa: Isa,
        runs: &[WindowRun],
        samples: usize,
        patch: &Patch<'_, T>,
        tile: &mut OutputTile<'_, T>,
    ) {
        let (rows, n, size) = (tile.rows.len(), tile.cols.len(), size_of::<T>());
        let reach = self.reach.in_samples(samples);
        let Reach { up, down, left, right } = reach;
        let (image, out) = (StridedRows::around(patch, tile, reach), StridedRows::of(tile));
        OrderScratch::with(|scratch| {
            let work = ExtremeTile { of: self, isa, size, samples, scratch, next: 0 };
            work.footprint(image, runs, (rows + up + down, n + left + right), out, (rows, n));
        });
    }
}

/// A tile being computed.
struct ExtremeTile<'a> {
    of: &'a Extremes,
    isa: Isa,
    /// Bytes of an element.
    size: usize,
    /// Elements of a pixel.
    samples: usize,
    scratch: &'a mut OrderScratch,
    /// The memory that does not contain the latest result.
    next: usize,
}

impl ExtremeTile<'_> {
    /// Extremes under a rectangle: along columns, in place, then along rows.
    fn rectangle<T: Pixel>(
        mut self,
        plane: &Plane<'_, T>,
        border: Border,
        tile: &mut OutputTile<'_, T>,
        (corner, (tall, wide)): ((usize, usize), (usize, usize)),
    ) {
        const LINES: usize = 2;
        const CONSTANT: usize = 3;
        const SUFFIXES: usize = 4;
        let size = self.size;
        let down = corner.0.cast_signed() - self.of.reach.up.cast_signed();
        let along = (corner.1.cast_signed() - self.of.reach.left.cast_signed()) * self.samples.cast_signed();
        let together = if tall < TALL { TOGETHER_ROWS } else { tall };
        let constant = self.scratch.rows(CONSTANT, 1, plane.width * size);
        let suffixes = self.scratch.rows(SUFFIXES, 1, 4 * tall * size_of::<ExtremeIdentity>());
        let all = StridedRows::of(tile);
        let span = (8 * BLOCK_BYTES / together).clamp(BLOCK_BYTES / 4, BLOCK_BYTES) / size;
        let mut sources = Vec::new();
        for x in tile.cols.clone().step_by(span) {
            let n = span.min(tile.cols.end - x);
            let around = PaddedLine::new(
                x.cast_signed() + along,
                n + (wide - 1) * self.samples,
                (plane.width, self.samples),
                border,
            );
            let in_place = wide == 1 && around.is_inside();
            let lines = self.scratch.rows(LINES, together, around.places * size);
            for y in (tile.rows.start..tile.rows.end).step_by(together) {
                let rows = together.min((tile.rows.end - y).cast_unsigned());
                let read = Rows::new(y + down, y + down + (rows + tall - 1).cast_signed());
                rows_at(plane, read, border, constant, &mut sources);
                let out = all.from((y - tile.rows.start).cast_unsigned(), (x - tile.cols.start) * size);
                for (columns, place) in &around.columns {
                    let to = if in_place { out } else { lines.from(0, place * size) };
                    let (at, bytes) = (columns.start * size, columns.len() * size);
                    let job =
                        ColumnExtremes { sources: &sources, at, bytes, out: to, rows, suffixes, last: &self.of.last };
                    // SAFETY: the image has these columns in the rows that are read, and lines and tile are large
                    // enough for them.
                    unsafe { columns_of(self.isa, self.of.dtype, self.of.greatest, job) }
                }
                if !in_place {
                    // SAFETY: lines are large enough for all places.
                    unsafe { around.complete::<T>(lines, rows, border) }
                    self.windows(lines, wide, out, (rows, n));
                }
            }
        }
    }

    /// Extremes of `k` pixels along rows, from the pixels of `from` on, for `rows` rows of `n` elements.
    fn windows(&mut self, from: StridedRows, k: usize, out: StridedRows, (rows, n): (usize, usize)) {
        let (samples, pixel) = (self.samples, self.samples * self.size);
        let at = |from: StridedRows, i: usize| from.from(0, i * pixel);
        let (mut of, mut held) = (1, from);
        while k > 4 * of {
            let more = (k - 4 * of) * samples;
            let mut sources: [StridedRows; 4] = std::array::from_fn(|i| at(held, i * of));
            let to = self.scratch.rows(self.next, rows, (n + more) * self.size);
            self.next = 1 - self.next;
            self.join(&mut sources, to, (rows, n + more));
            (of, held) = (4 * of, to);
        }
        let mut sources: [StridedRows; 4] = std::array::from_fn(|i| at(held, (i * of).min(k - of)));
        self.join(&mut sources[..k.div_ceil(of)], out, (rows, n));
    }

    /// Extremes under runs of an image of `all` elements in each of `all_rows` rows.
    fn footprint(
        mut self,
        image: StridedRows,
        runs: &[WindowRun],
        (all_rows, all): (usize, usize),
        out: StridedRows,
        extent: (usize, usize),
    ) {
        let pixel = self.samples * self.size;
        let longest = runs.iter().map(|run| run.len).max().unwrap_or(0);
        let mut levels = vec![(1, image)];
        let mut of = 1;
        while longest > 4 * of {
            let held = levels[levels.len() - 1].1;
            let mut sources: [StridedRows; 4] = std::array::from_fn(|i| held.from(0, i * of * pixel));
            of *= 4;
            let n = all - (of - 1) * self.samples;
            let to = self.scratch.rows(levels.len(), all_rows, n * self.size);
            self.join(&mut sources, to, (all_rows, n));
            levels.push((of, to));
        }
        let mut sources = Vec::new();
        for run in runs {
            let (of, held) = levels.iter().rev().find(|(of, _)| *of <= run.len).copied().unwrap_or((1, image));
            let windows = (0..run.len.div_ceil(of)).map(|i| run.x + (i * of).min(run.len - of));
            sources.extend(windows.map(|x| held.from(run.y, x * pixel)));
        }
        self.join(&mut sources, out, extent);
    }

    fn join(&mut self, sources: &mut [StridedRows], out: StridedRows, (rows, n): (usize, usize)) {
        let job = Join { sources, out, rows, bytes: n * self.size, last: &self.of.last };
        // SAFETY: windows stay within the rows of the patch or of the lines, and scratch and tile are large enough for
        // these rows; sources are not written to.
        unsafe { join(self.isa, self.of.dtype, self.of.greatest, job) }
    }
}

/// Selects an extreme of two numbers: the first on a tie, and if the second is a NaN.
trait Extremum {
    /// # Safety
    /// As for [`PixelRegister`].
    unsafe fn of<V: PixelRegister>(a: V, b: V) -> V;
}

struct Least;
struct Greatest;

impl Extremum for Least {
    #[inline(always)]
    unsafe fn of<V: PixelRegister>(a: V, b: V) -> V {
        // SAFETY: promised by the caller.
        unsafe { V::min(a, b) }
    }
}

impl Extremum for Greatest {
    #[inline(always)]
    unsafe fn of<V: PixelRegister>(a: V, b: V) -> V {
        // SAFETY: promised by the caller.
        unsafe { V::max(a, b) }
    }
}

/// Extremes of pixels at equal positions of several images, for rows of `bytes` bytes.
struct Join<'a> {
    /// The first rows; advanced to the following ones.
    sources: &'a mut [StridedRows],
    out: StridedRows,
    rows: usize,
    bytes: usize,
    last: &'a ExtremeIdentity,
}

/// Extremes of pixels of successive rows, for `rows` rows of `bytes` bytes. Each result has `sources.len() - rows + 1`
/// pixels.
struct ColumnExtremes<'a> {
    sources: &'a [*const u8],
    /// Bytes of the sources before the first pixel.
    at: usize,
    bytes: usize,
    out: StridedRows,
    rows: usize,
    /// Memory for four vectors for each row.
    suffixes: StridedRows,
    last: &'a ExtremeIdentity,
}

macro_rules! dispatched {
    ($name:ident, $job:ident, $body:ident, $avx512:ident $avx2:ident $portable:ident) => {
        /// # Safety
        /// Sources and output have these rows, of pixels of type `dtype`; the output does not overlap the sources. The
        /// machine has the instruction set.
        unsafe fn $name(isa: Isa, dtype: DType, greatest: bool, job: $job<'_>) {
            macro_rules! run {
                (avx512, $v:ty, $t:ident) => {
                    run!($avx512 $v, $t)
                };
                (avx2, $v:ty, $t:ident) => {
                    run!($avx2 $v, $t)
                };
                (portable, $v:ty, $t:ident) => {
                    run!($portable $v, $t)
                };
                ($compiled:ident $v:ty, $t:ident) => {
                    // SAFETY: promised by the caller.
                    unsafe {
                        match greatest {
                            false => $compiled::<$v, Single<$t>, Least>(job),
                            true => $compiled::<$v, Single<$t>, Greatest>(job),
                        }
                    }
                };
            }
            with_vectors!(isa, dtype, run);
        }

        dispatched!(compiled $avx512, $job, $body, #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]);
        dispatched!(compiled $avx2, $job, $body, #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]);
        dispatched!(compiled $portable, $job, $body, #[cfg(not(target_arch = "x86_64"))]);
    };
    (compiled $name:ident, $job:ident, $body:ident, $(#[$how:meta])*) => {
        /// # Safety
        /// As above; the vectors are of this instruction set.
        $(#[$how])*
        unsafe fn $name<V: PixelRegister, P: PixelRegister, C: Extremum>(job: $job<'_>) {
            // SAFETY: promised by the caller.
            unsafe { if job.bytes < V::BYTES { $body::<P, C>(job) } else { $body::<V, C>(job) } }
        }
    };
}
dispatched!(join, Join, joined, join_avx512 join_avx2 join_portable);
dispatched!(columns_of, ColumnExtremes, columns_body, columns_avx512 columns_avx2 columns_portable);

/// Calls `f` with a number of vectors that are computed together, and their position, until all `bytes` bytes are
/// covered. The last one overlaps the one before.
macro_rules! for_each_vector {
    ($v:ident, $bytes:expr, |$x:ident, $together:ident| $body:expr) => {
        let mut $x = 0;
        {
            const $together: usize = 4;
            while $x + $together * $v::BYTES <= $bytes {
                $body
                $x += $together * $v::BYTES;
            }
        }
        const $together: usize = 1;
        let mut next = $x;
        while next < $bytes {
            let $x = next.min($bytes - $v::BYTES);
            $body
            next += $v::BYTES;
        }
    };
}

/// # Safety
/// As for [`join`]; rows are no shorter than a vector.
#[inline(always)]
unsafe fn joined<V: PixelRegister, C: Extremum>(job: Join<'_>) {
    // SAFETY: promised by the caller.
    unsafe {
        match job.sources.len() {
            2 => joined_rows::<V, C, 2>(job),
            3 => joined_rows::<V, C, 3>(job),
            4 => joined_rows::<V, C, 4>(job),
            _ => joined_rows::<V, C, 0>(job),
        }
    }
}

/// Rows of `N` sources, or of any number if it is 0.
///
/// # Safety
/// As for [`joined`].
#[inline(always)]
unsafe fn joined_rows<V: PixelRegister, C: Extremum, const N: usize>(
    Join { sources, mut out, rows, bytes, last }: Join<'_>,
) {
    // SAFETY: vectors start within rows, at least their length before the end.
    unsafe {
        let last = V::load(last.pixels());
        for _ in 0..rows {
            let few: [*const u8; N] = std::array::from_fn(|i| sources[i].at.cast_const());
            for_each_vector!(V, bytes, |x, TOGETHER| {
                let mut found = [last; TOGETHER];
                if N > 0 {
                    for source in few {
                        for (k, found) in found.iter_mut().enumerate() {
                            *found = C::of(*found, V::load(source.add(x + k * V::BYTES)));
                        }
                    }
                } else {
                    for source in &*sources {
                        for (k, found) in found.iter_mut().enumerate() {
                            *found = C::of(*found, V::load(source.at.add(x + k * V::BYTES)));
                        }
                    }
                }
                for (k, found) in found.into_iter().enumerate() {
                    found.store(out.at.add(x + k * V::BYTES));
                }
            });
            sources.iter_mut().for_each(|source| *source = source.from(1, 0));
            out = out.from(1, 0);
        }
    }
}

/// # Safety
/// As for [`columns_of`]; rows are no shorter than a vector.
#[inline(always)]
unsafe fn columns_body<V: PixelRegister, C: Extremum>(job: ColumnExtremes<'_>) {
    let tall = job.sources.len() + 1 - job.rows;
    // SAFETY: promised by the caller.
    unsafe { if tall < TALL { pairs::<V, C>(job, tall) } else { halves::<V, C>(job, tall) } }
}

/// Two rows at a time, which share all but their first and last pixels.
///
/// # Safety
/// As for [`columns_body`].
#[inline(always)]
unsafe fn pairs<V: PixelRegister, C: Extremum>(job: ColumnExtremes<'_>, tall: usize) {
    let ColumnExtremes { sources, at, bytes, out, rows, last, .. } = job;
    // SAFETY: vectors start within rows, at least their length before the end; NaNs come second.
    unsafe {
        let last = V::load(last.pixels());
        let load = |row: *const u8, x: usize| V::load(row.add(at + x));
        for y in (0..rows).step_by(2) {
            let (upper, lower) = (out.from(y, 0).at, out.from(y + 1, 0).at);
            let (first, shared) = (sources[y], &sources[y + 1..y + tall]);
            let further = (y + 1 < rows).then(|| sources[y + tall]);
            for_each_vector!(V, bytes, |x, TOGETHER| {
                let mut found = [last; TOGETHER];
                for row in shared {
                    for (k, found) in found.iter_mut().enumerate() {
                        *found = C::of(*found, load(*row, x + k * V::BYTES));
                    }
                }
                for (k, found) in found.into_iter().enumerate() {
                    let x = x + k * V::BYTES;
                    C::of(C::of(last, load(first, x)), found).store(upper.add(x));
                    if let Some(row) = further {
                        C::of(found, load(row, x)).store(lower.add(x));
                    }
                }
            });
        }
    }
}

/// At most as many rows as a column is tall (M. van Herk, 1992; J. Gil and M. Werman, 1993): each result is the extreme
/// of the pixels above a row and of the pixels below.
///
/// # Safety
/// As for [`columns_body`].
#[inline(always)]
unsafe fn halves<V: PixelRegister, C: Extremum>(job: ColumnExtremes<'_>, tall: usize) {
    let ColumnExtremes { sources, at, bytes, out, rows, suffixes, last } = job;
    let (upper, lower) = sources.split_at(tall);
    // SAFETY: vectors start within rows, at least their length before the end; NaNs come second.
    unsafe {
        let last = V::load(last.pixels());
        for_each_vector!(V, bytes, |x, TOGETHER| {
            let mut found = [last; TOGETHER];
            for (y, row) in upper.iter().enumerate().rev() {
                for (k, found) in found.iter_mut().enumerate() {
                    let pixels = V::load(row.add(at + x + k * V::BYTES));
                    *found = C::of(if V::FLOAT { C::of(last, pixels) } else { pixels }, *found);
                    if y < rows {
                        found.store(suffixes.at.add((y * TOGETHER + k) * V::BYTES));
                    }
                }
            }
            let mut to = out;
            for (k, found) in found.iter_mut().enumerate() {
                found.store(to.at.add(x + k * V::BYTES));
                *found = last;
            }
            for (y, row) in (1..).zip(lower) {
                to = to.from(1, 0);
                for (k, found) in found.iter_mut().enumerate() {
                    *found = C::of(*found, V::load(row.add(at + x + k * V::BYTES)));
                    let suffix = V::load(suffixes.at.add((y * TOGETHER + k) * V::BYTES));
                    C::of(suffix, *found).store(to.at.add(x + k * V::BYTES));
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_plan::ops::neighbourhood::Filter;

    type Offsets = Vec<(i32, i32)>;

    #[test]
    fn rectangles_are_recognised() {
        let rectangle = |offsets: Offsets, dtype| {
            let window = Filter::sparse(offsets.clone(), vec![0.0; offsets.len()]);
            match ExtremeWindow::of(&Generalized { window, combine: Combine::Pixel, reduce: Reduce::Max }, dtype) {
                ExtremeWindow::Rectangle { size, .. } => Some(size),
                ExtremeWindow::Runs(_) => None,
            }
        };
        let by_rows: Offsets = vec![(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)];
        let by_columns: Offsets = vec![(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)];
        assert_eq!(rectangle(by_rows.clone(), DType::F32), None, "zeros of either sign");
        assert_eq!(rectangle(by_rows, DType::U8), Some((3, 2)));
        assert_eq!(rectangle(by_columns.clone(), DType::F32), Some((3, 2)));
        assert_eq!(rectangle(by_columns.clone(), DType::I8), Some((3, 2)));
        let backwards: Offsets = by_columns.into_iter().rev().collect();
        assert_eq!(rectangle(backwards.clone(), DType::F64), None, "zeros of either sign");
        assert_eq!(rectangle(backwards, DType::U16), Some((3, 2)));
    }
}
