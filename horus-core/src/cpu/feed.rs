//! The rows that filters read, ready to be read without a thought of borders.
//!
//! A feed serves a chunk of columns, moving down a block of rows. Where the filters stay inside the image it hands out
//! the image's own rows; where they reach beyond its left or right edge, or read a row pass, it keeps a ring of rows
//! that it pads or filters once each, as they come into reach.

use super::correlate::{Bank, Taps};
use super::plane::Plane;
use super::schedule::FeedSpec;
use super::simd::{Isa, Simd};
use crate::dtype::{Pixel, Scalar};
use crate::kernel::{Source, Stage};
use crate::shape::Border;

/// Elements between the rows of a ring beyond their length: odd multiples of a cache line, so that the rows of a column
/// do not compete for the same lines of the cache.
fn ring_stride(width: usize) -> usize {
    let lines = width.div_ceil(16) + 1;
    (lines | 1) * 16
}

/// What one feed does for a chunk of columns.
#[derive(Debug)]
pub(super) struct Feed<'a> {
    spec: &'a FeedSpec,
    stage: Option<(&'a Stage, &'a [u8])>,
    /// First column that the rows handed out hold.
    first: isize,
    /// Their length.
    length: usize,
    /// Rows of the ring; 0 if the image's own rows do.
    capacity: usize,
    /// The first row not yet in the ring.
    next: isize,
    scratch: *mut u8,
}

impl<'a> Feed<'a> {
    /// Elements of scratch that a feed needs for chunks of at most `width` columns, tiles of `rows` rows.
    pub(super) fn scratch(spec: &FeedSpec, stage: Option<&Stage>, width: usize, rows: usize) -> usize {
        let stride = ring_stride(width + spec.reach.left + spec.reach.right);
        let source = stage.map_or(0, |s| ring_stride(width + s.filter.taps().len()));
        (spec.reach.up + spec.reach.down + rows + 1) * stride + source
    }

    /// Bytes of ring that each column of a chunk needs.
    pub(super) fn bytes_per_column(spec: &FeedSpec, rows: usize) -> usize {
        (spec.reach.up + spec.reach.down + rows) * spec.dtype.size()
    }

    /// A feed for columns `cols` of images of `image` columns, from row `y` on. `stage` is the row pass that it reads,
    /// with its taps; `scratch` has room as told by [`Feed::scratch`].
    pub(super) fn new(
        spec: &'a FeedSpec,
        stage: Option<(&'a Stage, &'a [u8])>,
        cols: std::ops::Range<usize>,
        image: usize,
        y: isize,
        rows: usize,
        scratch: *mut u8,
    ) -> Feed<'a> {
        let first = cols.start.cast_signed() - spec.reach.left.cast_signed();
        let length = cols.len() + spec.reach.left + spec.reach.right;
        let inside = first >= 0 && first.cast_unsigned() + length <= image;
        let direct = inside && matches!(spec.source, Source::Input(_));
        let capacity = if direct { 0 } else { spec.reach.up + spec.reach.down + rows };
        let feed = Feed { spec, stage, first, length, capacity, next: y - spec.reach.up.cast_signed(), scratch };
        if let Border::Constant(v) = spec.border {
            feed.fill_constant(v);
        }
        feed
    }

    /// The row of the border's constant lies before the ring.
    fn fill_constant(&self, v: Scalar) {
        crate::dispatch_float!(self.spec.dtype, T => {
            // SAFETY: `Feed::scratch` counts this row.
            unsafe { std::slice::from_raw_parts_mut(self.scratch.cast::<T>(), self.length) }.fill(T::from_scalar(v));
        });
    }

    fn ring<T>(&self, y: isize) -> *mut T {
        let stride = ring_stride(self.length);
        let at = y.rem_euclid(self.capacity.cast_signed()).cast_unsigned();
        self.scratch.cast::<T>().wrapping_add((at + 1) * stride)
    }

    /// Brings the ring forward so that it serves output rows below `end`.
    ///
    /// # Safety
    /// `plane` is of the feed's type, and the machine has the instruction set.
    pub(super) unsafe fn advance<T: Simd>(&mut self, plane: &Plane<'_, T>, end: isize, isa: Isa) {
        if self.capacity == 0 {
            return;
        }
        let end = end + self.spec.reach.down.cast_signed();
        while self.next < end {
            if let Some(y) = plane.resolve(self.next, self.spec.border) {
                let target = self.ring::<T>(self.next);
                match self.stage {
                    // SAFETY: vouched for by the caller.
                    Some((stage, taps)) => unsafe {
                        self.pass(stage, bytemuck::cast_slice(taps), plane.row(y), target, isa)
                    },
                    None => {
                        // SAFETY: the scratch holds a ring of `capacity` rows of `length` elements.
                        let out = unsafe { std::slice::from_raw_parts_mut(target, self.length) };
                        pad(plane.row(y), self.first, self.spec.border, out);
                    }
                }
            }
            self.next += 1;
        }
    }

    /// Filters one row.
    unsafe fn pass<T: Simd>(&self, stage: &Stage, taps: &[T], row: &[T], target: *mut T, isa: Isa) {
        let left = stage.filter.reach().left;
        let first = self.first - left.cast_signed();
        let length = self.length + taps.len().max(1) - 1;
        let source = if first >= 0 && first.cast_unsigned() + length <= row.len() {
            row[first.cast_unsigned()..].as_ptr()
        } else {
            let padded = self.scratch.cast::<T>().wrapping_add((self.capacity + 1) * ring_stride(self.length));
            // SAFETY: `Feed::scratch` counts this row behind the ring.
            let out = unsafe { std::slice::from_raw_parts_mut(padded, length) };
            pad(row, first, stage.border, out);
            padded.cast_const()
        };
        let bank = Bank {
            layout: Taps::Dense { height: 1, width: taps.len() },
            weights: taps,
            rows: &[source],
            along: 0,
            out: &[(target, 0)],
            height: 1,
            width: self.length,
        };
        // SAFETY: the source has `length` elements, the ring's row as many as the feed, apart from each other.
        unsafe { bank.run(isa) }
    }

    /// The pixel that filters read at row `y` and column `x` of the image continued by the border; `y` within reach of
    /// the rows that the ring was brought to, `x` within reach of the chunk.
    pub(super) fn at<T: Pixel>(&self, plane: &Plane<'_, T>, y: isize, x: isize) -> *const T {
        let along = (x - self.first).cast_unsigned();
        debug_assert!(along < self.length);
        match plane.resolve(y, self.spec.border) {
            None => self.scratch.cast::<T>().cast_const().wrapping_add(along),
            Some(_) if self.capacity > 0 => self.ring::<T>(y).cast_const().wrapping_add(along),
            Some(y) => plane.row(y)[x.cast_unsigned()..].as_ptr(),
        }
    }

    /// What the feed reads and how.
    pub(super) fn spec(&self) -> &FeedSpec {
        self.spec
    }
}

/// Copies the columns of `row` from `first` on, continued by `border`.
fn pad<T: Pixel>(row: &[T], first: isize, border: Border, out: &mut [T]) {
    let edge = |x: isize| match border.map(x, row.len()) {
        Some(x) => row[x],
        None => border.constant().map_or(T::ZERO, T::from_scalar),
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

    #[test]
    fn padding_follows_the_border_for_any_extent() {
        for border in [Border::Reflect101, Border::Wrap, Border::Constant(Scalar::F32(7.0))] {
            for n in 1..5usize {
                let row: Vec<f32> = (0..n).map(|v| v as f32).collect();
                for first in -9..9isize {
                    for len in 0..12 {
                        let mut out = vec![-1.0f32; len];
                        pad(&row, first, border, &mut out);
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
