//! Rows for filters, with borders applied.
//!
//! A feed serves a chunk of columns and moves down a block of rows. Where filters stay inside the image, it returns the
//! image's own rows. Where they read beyond its left or right edge, or read a row filter, it has a ring of rows, each
//! padded or filtered once. For filters that reach beyond a whole image, the ring contains all its rows, which also
//! serve as their copies beyond the image: such taps cost time, but neither memory nor row filters. Design:
//! `docs/design/cpu-scratch.md`.

use std::ops::Range;

use super::bytes;
use super::plane::{self, Plane, RowSource};
use super::rows::{self, RowFilter};
use super::simd::{Isa, Simd};
use super::tile_code::FeedSpec;
use horus_base::dispatch_narrow;
use horus_base::dtype::Pixel;
use horus_base::shape::{Border, Window};
use horus_host::buffer::HostBuffer;
use horus_plan::ops::neighbourhood::Reach;

/// Stride of a ring for rows of `width` elements: an odd multiple of a cache line, so that the rows of a column use
/// different cache sets.
fn ring_stride(width: usize) -> usize {
    let lines = width.div_ceil(16) + 1;
    (lines | 1) * 16
}

/// Minimum number of columns at each end of a row that are filtered from a padded copy: as many as the widest kernel
/// computes.
pub(super) const END: usize = 128;

/// A row filter: its reach in elements, and its taps.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowStage<'a> {
    left: usize,
    right: usize,
    taps: &'a [u8],
}

impl<'a> RowStage<'a> {
    /// A row filter of `taps`, whose leftmost column is given by `reach`.
    pub(super) fn new(reach: Reach, taps: &'a HostBuffer) -> RowStage<'a> {
        RowStage { left: reach.left, right: reach.right, taps: taps.bytes() }
    }
}

/// The rows that filters read in a chunk of columns.
#[derive(Debug)]
pub(super) struct Feed<'a> {
    spec: &'a FeedSpec,
    stages: Vec<RowStage<'a>>,
    /// First column of the returned rows.
    first: isize,
    /// Length of the returned rows.
    length: usize,
    /// Rows of each ring; 0 if the image's own rows are used.
    capacity: usize,
    /// Rows of the image.
    height: usize,
    /// Columns of the image that are read.
    cols: Range<usize>,
    /// The rows already in the rings, if these contain the whole image.
    loaded_rows: Option<Vec<bool>>,
    /// The first row not yet in the rings.
    next: isize,
    /// A row of the border's constant, a ring for each row filter (one ring without row filters), and a padded source
    /// row.
    scratch: *mut u8,
}

impl<'a> Feed<'a> {
    /// Elements of scratch of a feed for chunks of at most `width` columns, tiles of `rows` rows and images of `height`
    /// rows.
    pub(super) fn scratch(spec: &FeedSpec, passes: &[RowStage<'_>], width: usize, rows: usize, height: usize) -> usize {
        let Reach { left, right, .. } = spec.reach;
        let (before, after) = if spec.is_bytes() { (left, right) } else { Feed::widest(passes) };
        let ring = Feed::ring_rows(spec, rows).min(height) * ring_stride(width + left + right);
        ring_stride(width + left + right) + ring * passes.len().max(1) + ring_stride(width + before + after)
    }

    /// Bytes of rings for each column of a chunk.
    pub(super) fn bytes_per_column(spec: &FeedSpec, rows: usize, height: usize) -> usize {
        Feed::ring_rows(spec, rows).min(height) * spec.stages.len().max(1) * spec.element()
    }

    /// Rows that a tile of `rows` rows reads.
    fn ring_rows(spec: &FeedSpec, rows: usize) -> usize {
        spec.reach.up + spec.reach.down + rows
    }

    /// Largest reach of the row filters to the left and to the right.
    fn widest(passes: &[RowStage<'_>]) -> (usize, usize) {
        passes.iter().fold((0, 0), |(l, r), p| (l.max(p.left), r.max(p.right)))
    }

    /// A feed for columns `cols` of images of `height` rows and `width` columns, from row `y` on. `passes` are the row
    /// filters that it reads; `scratch` has the size given by [`Feed::scratch`].
    pub(super) fn new(
        spec: &'a FeedSpec,
        passes: Vec<RowStage<'a>>,
        cols: Range<usize>,
        (height, width): (usize, usize),
        y: isize,
        rows: usize,
        scratch: *mut u8,
    ) -> Feed<'a> {
        let first = cols.start.cast_signed() - spec.reach.left.cast_signed();
        let length = cols.len() + spec.reach.left + spec.reach.right;
        let inside = first >= 0 && first.cast_unsigned() + length <= width;
        let direct = inside && passes.is_empty() && !spec.copied;
        let rows = Feed::ring_rows(spec, rows);
        let capacity = if direct { 0 } else { rows.min(height) };
        let held = (capacity > 0 && rows > height).then(|| vec![false; height]);
        let next = y - spec.reach.up.cast_signed();
        let (before, after) = Feed::widest(&passes);
        let read = first - before.cast_signed()..first + (length + after).cast_signed();
        let border = if passes.is_empty() { spec.border } else { spec.stage_border };
        let cols = columns(read, width, (border, spec.samples));
        let feed =
            Feed { spec, stages: passes, first, length, capacity, height, cols, loaded_rows: held, next, scratch };
        if let Border::Constant(v) = spec.border {
            feed.fill_constant(v);
        }
        feed
    }

    fn fill_constant(&self, v: f64) {
        if self.spec.is_bytes() {
            let byte = dispatch_narrow!(self.spec.dtype, T => T::from_f64(v).to_f64()) as i32 as u8;
            let quad = i32::from_le_bytes([byte ^ bytes::flip(self.spec.dtype); bytes::QUAD]);
            // SAFETY: `Feed::scratch` counts this row.
            unsafe { std::slice::from_raw_parts_mut(self.scratch.cast::<i32>(), self.length) }.fill(quad);
            return;
        }
        horus_base::dispatch_float!(self.spec.dtype, T => {
            // SAFETY: `Feed::scratch` counts this row.
            unsafe { std::slice::from_raw_parts_mut(self.scratch.cast::<T>(), self.length) }.fill(T::from_f64(v));
        });
    }

    /// Slot in the rings of row `y` of the continued image: row `source` of the image, or a copy beyond it.
    fn slot(&self, y: isize, source: isize) -> usize {
        let (row, of) = if self.loaded_rows.is_some() { (source, self.height) } else { (y, self.capacity) };
        row.rem_euclid(of.cast_signed()).cast_unsigned()
    }

    /// Row `slot` of ring `part`. A `part` beyond the last addresses the memory after the rings.
    fn ring<T>(&self, part: usize, slot: usize) -> *mut T {
        let row = 1 + part * self.capacity + slot;
        self.scratch.cast::<T>().wrapping_add(row * ring_stride(self.length))
    }

    /// The next row that output rows below `end` require in the rings, as a row of the image, and its slot. `resolve`
    /// maps rows of the continued image to rows of the image.
    fn missing(&mut self, end: isize, resolve: impl Fn(isize) -> Option<isize>) -> Option<(isize, usize)> {
        let end = end + self.spec.reach.down.cast_signed();
        while self.capacity > 0 && self.next < end {
            let row = self.next;
            self.next += 1;
            let Some(y) = resolve(row) else { continue };
            let slot = self.slot(row, y);
            if !self.loaded_rows.as_mut().is_some_and(|held| std::mem::replace(&mut held[slot], true)) {
                return Some((y, slot));
            }
        }
        None
    }

    /// Advances the rings so that they serve output rows below `end`.
    ///
    /// # Safety
    /// `rows` are of the feed's type, and the machine has the instruction set.
    pub(super) unsafe fn advance<T: Simd>(&mut self, rows: &mut impl RowSource<T>, end: isize, isa: Isa) {
        let border = self.spec.border;
        while let Some((y, slot)) = self.missing(end, |row| rows.resolve(row, border)) {
            let row = rows.row(y, self.cols.clone());
            if self.stages.is_empty() {
                // SAFETY: the scratch holds a ring of `capacity` rows of `length` elements.
                let out = unsafe { std::slice::from_raw_parts_mut(self.ring(0, slot), self.length) };
                pad(row, self.first, (border, self.spec.samples), out);
            } else {
                // SAFETY: promised by the caller.
                unsafe { self.filter(row, slot, isa) }
            }
        }
    }

    /// [`Feed::advance`] for a feed of bytes, whose rings contain quads.
    pub(super) fn advance_bytes<T: Pixel>(&mut self, rows: &Plane<'_, T>, end: isize) {
        let border = self.spec.border;
        while let Some((y, slot)) = self.missing(end, |row| rows.resolve(row, border)) {
            let at = self.scratch.cast::<i32>().wrapping_add((1 + self.capacity) * ring_stride(self.length));
            // SAFETY: `Feed::scratch` counts a row of this stride after the ring, with four bytes for each element:
            // more than a row of bytes and the bytes beyond. Its memory is initialised.
            let line = unsafe { std::slice::from_raw_parts_mut(at.cast::<T>(), self.length + bytes::BEYOND) };
            pad(rows.row(y), self.first, (border, self.spec.samples), &mut line[..self.length]);
            // SAFETY: the scratch holds a ring of `capacity` rows of `length` elements.
            let out = unsafe { std::slice::from_raw_parts_mut(self.ring(0, slot), self.length) };
            bytes::widen(bytemuck::cast_slice(line), self.spec.samples, bytes::flip(self.spec.dtype), out);
        }
    }

    /// Filters one row into row `slot` of the rings: the middle directly from the image, the ends from padded copies.
    unsafe fn filter<T: Simd>(&self, row: &[T], slot: usize, isa: Isa) {
        let (before, after) = Feed::widest(&self.stages);
        // Columns of the feed whose filters stay inside the row.
        let from = (before.cast_signed() - self.first).max(0).cast_unsigned();
        let last = row.len().cast_signed() - after.cast_signed() - self.first;
        let to = last.clamp(0, self.length.cast_signed()).cast_unsigned();
        // SAFETY: promised by the caller; the pieces lie within the feed, and those not padded
        // inside the row.
        unsafe {
            if from >= to {
                self.piece(row, slot, 0..self.length, true, isa);
                return;
            }
            if from > 0 {
                self.piece(row, slot, 0..from.max(END).min(self.length), true, isa);
            }
            self.piece(row, slot, from..to, false, isa);
            if to < self.length {
                self.piece(row, slot, to.min(self.length.saturating_sub(END))..self.length, true, isa);
            }
        }
    }

    /// Filters columns `cols` of the feed, from a padded copy or from the row itself.
    unsafe fn piece<T: Simd>(&self, row: &[T], slot: usize, cols: Range<usize>, padded: bool, isa: Isa) {
        let (before, after) = Feed::widest(&self.stages);
        let first = self.first + cols.start.cast_signed() - before.cast_signed();
        let source = if padded {
            let parts = self.stages.len();
            let at = self.scratch.cast::<T>().wrapping_add((1 + parts * self.capacity) * ring_stride(self.length));
            // SAFETY: `Feed::scratch` counts this row after the rings.
            let out = unsafe { std::slice::from_raw_parts_mut(at, cols.len() + before + after) };
            pad(row, first, (self.spec.stage_border, self.spec.samples), out);
            at.cast_const()
        } else {
            row[first.cast_unsigned()..].as_ptr()
        };
        let filter = |part: usize| {
            let pass = self.stages[part.min(self.stages.len() - 1)];
            RowFilter {
                start: (before - pass.left) / self.spec.samples,
                taps: bytemuck::cast_slice(pass.taps),
                out: self.ring::<T>(part, slot).wrapping_add(cols.start),
            }
        };
        let filters: [RowFilter<'_, T>; rows::MOST] = std::array::from_fn(filter);
        // SAFETY: the source has the columns and the reach of all row filters and does not overlap the rings.
        unsafe { rows::run(source, &filters[..self.stages.len()], self.spec.samples, cols.len(), isa) }
    }

    /// The pixel that filters over row filter `part` read at row `y` and column `x` of the image continued by the
    /// border. `y` is within reach of the rows in the rings, `x` within reach of the chunk. `plane` is the image, if it
    /// is in memory; `window` the rows of it in memory.
    pub(super) fn at<T: Pixel>(
        &self,
        plane: Option<&Plane<'_, T>>,
        window: Window,
        part: usize,
        y: isize,
        x: isize,
    ) -> *const T {
        let along = (x - self.first).cast_unsigned();
        debug_assert!(along < self.length);
        match (plane::resolve(y, self.spec.border, self.height, window), plane) {
            (Some(y), Some(plane)) if self.capacity == 0 => plane.row(y)[x.cast_unsigned()..].as_ptr(),
            (Some(source), _) => self.ring::<T>(part, self.slot(y, source)).cast_const().wrapping_add(along),
            (None, _) => self.scratch.cast::<T>().cast_const().wrapping_add(along),
        }
    }

    /// The columns of the image that the feed reads.
    pub(super) fn columns(&self) -> Range<usize> {
        self.cols.clone()
    }

    /// The geometry and row filters of the feed.
    pub(super) fn spec(&self) -> &FeedSpec {
        self.spec
    }
}

/// The elements of a row of `width` elements that are read for elements `read` of the row continued by a border: the
/// smallest range of whole pixels that covers them.
fn columns(read: Range<isize>, width: usize, (border, samples): (Border, usize)) -> Range<usize> {
    let pixel = samples.cast_signed();
    let read = read.start.div_euclid(pixel)..(read.end + pixel - 1).div_euclid(pixel);
    let pixels = pixels(read, width / samples, border);
    pixels.start * samples..pixels.end * samples
}

fn pixels(read: Range<isize>, width: usize, border: Border) -> Range<usize> {
    let inside = |x: isize| x.clamp(0, width.cast_signed()).cast_unsigned();
    let (from, to) = (inside(read.start), inside(read.end));
    let left = (-read.start).max(0).cast_unsigned();
    let right = (read.end - width.cast_signed()).max(0).cast_unsigned();
    match border {
        _ if left == 0 && right == 0 => from..to,
        Border::Constant(_) => from..to,
        Border::Wrap => 0..width,
        // A mirrored border turns back as far as the range extends beyond the edge, at most to the other edge.
        _ => {
            let from = if right > 0 { from.min(width.saturating_sub(right + 1)) } else { from };
            let to = if left > 0 { to.max(width.min(left + 1)) } else { to };
            from..to
        }
    }
}

/// Copies the elements of `row` from `first` on, continued by a border in pixels of several samples.
pub(super) fn pad<T: Pixel>(row: &[T], first: isize, (border, samples): (Border, usize), out: &mut [T]) {
    let edge = |x: isize| match border.map_sample(x, row.len(), samples) {
        Some(x) => row[x],
        None => border.constant().map_or(T::ZERO, T::from_f64),
    };
    let end = first + out.len().cast_signed();
    let inside = first.clamp(0, row.len().cast_signed())..end.clamp(0, row.len().cast_signed());
    let (left, rest) = out.split_at_mut((inside.start - first).cast_unsigned().min(out.len()));
    let (middle, right) = rest.split_at_mut((inside.end - inside.start).cast_unsigned());
    left.iter_mut().zip(first..).for_each(|(o, x)| *o = edge(x));
    middle.copy_from_slice(&row[inside.start.cast_unsigned()..inside.end.cast_unsigned()]);
    right.iter_mut().zip(inside.end..).for_each(|(o, x)| *o = edge(x));
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_plan::ir::kernel::FilterSource;

    #[test]
    fn scratch_grows_with_the_reach_in_one_direction_only() {
        let spec = |reach: usize| FeedSpec {
            source: FilterSource::Input(0),
            stages: vec![0],
            stage_border: Border::Wrap,
            border: Border::Wrap,
            dtype: horus_base::dtype::DType::F32,
            samples: 1,
            reach: Reach { up: reach, down: reach, left: reach, right: reach },
            copied: false,
        };
        let scratch = |reach: usize| Feed::scratch(&spec(reach), &[], 128, 4, 40);
        assert!(scratch(20_000) < 11 * scratch(2_000), "{} and {}", scratch(20_000), scratch(2_000));
    }

    #[test]
    fn columns_hold_every_column_that_is_read() {
        for border in Border::all(7.0) {
            for (n, samples) in (1..7usize).map(|n| (n, 1)).chain([(2, 2), (3, 3), (12, 4)]) {
                for first in -15..n.cast_signed() {
                    for end in (first + 1..20).filter(|&e| e > 0) {
                        let cols = columns(first..end, n, (border, samples));
                        let mut read = (first..end).filter_map(|x| border.map_sample(x, n, samples));
                        assert!(cols.end <= n && read.all(|x| cols.contains(&x)), "{border} {n} {first} {end}");
                    }
                }
            }
        }
    }

    #[test]
    fn padding_follows_the_border_for_any_extent() {
        for border in [Border::Reflect101, Border::Wrap, Border::Constant(7.0)] {
            for n in 1..5usize {
                let row: Vec<f32> = (0..n).map(|v| v as f32).collect();
                for first in -9..9isize {
                    for len in 0..12 {
                        let mut out = vec![-1.0f32; len];
                        pad(&row, first, (border, 1), &mut out);
                        for (i, v) in out.iter().enumerate() {
                            let want = border.map(first + i.cast_signed(), n).map_or(7.0, |x| row[x]);
                            assert_eq!(*v, want, "{border} {n} {first} {len}");
                        }
                    }
                }
            }
        }
    }
}
