//! Rows around a tile: the columns of the image that a tile reads, and columns beyond its edges.
//!
//! What a window computes along columns only is computed in place, for the columns of the image. Columns beyond the
//! edges are copies of these results: no pixel is copied first.

use std::cell::RefCell;
use std::ops::Range;

use super::vector::StridedRows;
use crate::plane::Plane;
use horus_base::dtype::Pixel;
use horus_base::shape::{Border, Window};

/// A line of consecutive columns, some beyond the edges of the image.
#[derive(Debug)]
pub(super) struct PaddedLine {
    /// Ranges of columns of the image, and the place of the first of each.
    pub(super) columns: Vec<(Range<usize>, usize)>,
    /// Places of columns beyond the edges, and the places whose values they copy.
    copies: Vec<(usize, usize)>,
    /// Places of the border's constant.
    constants: Vec<usize>,
    /// Number of places: first the line, then further columns of which it has copies.
    pub(super) places: usize,
}

impl PaddedLine {
    /// The `n` elements from `first` on, of rows of `width` elements in pixels of several samples.
    pub(super) fn new(first: isize, n: usize, (width, samples): (usize, usize), border: Border) -> PaddedLine {
        let end = first + n.cast_signed();
        let inside = |x: isize| x.clamp(0, width.cast_signed()).cast_unsigned();
        let own = inside(first)..inside(end);
        let place = |x: usize| (x.cast_signed() - first).cast_unsigned();
        let mut line = PaddedLine { columns: Vec::new(), copies: Vec::new(), constants: Vec::new(), places: n };
        if !own.is_empty() {
            line.columns.push((own.clone(), place(own.start)));
        }
        for beyond in [first..end.min(0), first.max(width.cast_signed())..end] {
            let read = |x| border.map_sample(x, width, samples);
            let mut found = beyond.clone().filter_map(read);
            let Some(one) = found.next() else {
                line.constants.extend(beyond.map(|x| (x - first).cast_unsigned()));
                continue;
            };
            let from = found.fold(one..one + 1, |all, x| all.start.min(x)..all.end.max(x + 1));
            let at = if own.start <= from.start && from.end <= own.end {
                place(from.start)
            } else {
                line.columns.push((from.clone(), line.places));
                line.places += from.len();
                line.places - from.len()
            };
            let mapped = beyond.filter_map(|x| Some(((x - first).cast_unsigned(), read(x)? - from.start)));
            line.copies.extend(mapped.map(|(to, of)| (to, at + of)));
        }
        line
    }

    /// Returns `true` if the line lies inside the image.
    pub(super) fn is_inside(&self) -> bool {
        self.copies.is_empty() && self.constants.is_empty()
    }

    /// Fills in the columns beyond the edges of `rows` rows whose other columns are computed.
    ///
    /// # Safety
    /// The rows have all places, of type `T`.
    pub(super) unsafe fn complete<T: Pixel>(&self, lines: StridedRows, rows: usize, border: Border) {
        let constant = border.constant().map_or(T::ZERO, T::from_f64);
        for y in 0..rows {
            let row = lines.from(y, 0).at.cast::<T>();
            // SAFETY: promised by the caller.
            unsafe {
                for &(to, from) in &self.copies {
                    row.add(to).write(row.add(from).read());
                }
                for &to in &self.constants {
                    row.add(to).write(constant);
                }
            }
        }
    }
}

/// The rows read at rows `rows` of an image, each from column 0 on. `constant` is memory for one row.
pub(super) fn rows_at<T: Pixel>(
    plane: &Plane<'_, T>,
    rows: Window,
    border: Border,
    constant: StridedRows,
    to: &mut Vec<*const u8>,
) {
    let mut filled = false;
    to.clear();
    to.extend((rows.start..rows.end).map(|y| match plane.resolve(y, border) {
        Some(y) => plane.row(y).as_ptr().cast(),
        None => {
            if !filled {
                // SAFETY: the caller has memory for a row.
                let row = unsafe { std::slice::from_raw_parts_mut(constant.at.cast::<T>(), plane.width) };
                row.fill(border.constant().map_or(T::ZERO, T::from_f64));
                filled = true;
            }
            constant.at.cast_const()
        }
    }));
}

/// Memory of intermediate results.
#[derive(Default)]
pub(super) struct OrderScratch {
    buffers: Vec<Vec<u64>>,
}

thread_local! {
    /// Memory reused by later tiles.
    static SCRATCH: RefCell<OrderScratch> = RefCell::default();
}

impl OrderScratch {
    /// Calls `f` with the memory of this thread.
    pub(super) fn with<R>(f: impl FnOnce(&mut OrderScratch) -> R) -> R {
        SCRATCH.with_borrow_mut(f)
    }

    /// Rows for results, with unspecified contents. Another index is other memory.
    pub(super) fn rows(&mut self, index: usize, rows: usize, bytes: usize) -> StridedRows {
        if self.buffers.len() <= index {
            self.buffers.resize_with(index + 1, Vec::new);
        }
        // No power of two, with which rows would compete for the same cache sets.
        let stride = bytes.next_multiple_of(64) + 64;
        let buffer = &mut self.buffers[index];
        buffer.reserve((rows * stride).div_ceil(size_of::<u64>()));
        StridedRows { at: buffer.as_mut_ptr().cast(), stride }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_testing::pixels::borders;

    #[test]
    fn lines_hold_what_the_border_says() {
        for border in borders() {
            for (width, samples) in (1..7usize).map(|width| (width, 1)).chain([(2, 2), (6, 3), (9, 3)]) {
                for (first, n) in (-15..12isize).flat_map(|first| (1..20usize).map(move |n| (first, n))) {
                    let line = PaddedLine::new(first, n, (width, samples), border);
                    let mut row = vec![99i32; line.places];
                    for (columns, place) in &line.columns {
                        assert!(columns.end <= width);
                        (*place..).zip(columns.clone()).for_each(|(to, x)| row[to] = x as i32);
                    }
                    let view = StridedRows { at: row.as_mut_ptr().cast(), stride: 0 };
                    // SAFETY: the row has all places.
                    unsafe { line.complete::<i32>(view, 1, border) };
                    let constant = border.constant().map_or(0, i32::from_f64);
                    let want =
                        (first..).take(n).map(|x| border.map_sample(x, width, samples).map_or(constant, |x| x as i32));
                    assert!(row[..n].iter().copied().eq(want), "{border} {first} {n} of {width}: {row:?}");
                    assert_eq!(line.is_inside(), first >= 0 && first.cast_unsigned() + n <= width);
                }
            }
        }
    }
}
