//! The part of a plane that a tile reads, with its border.

use std::cell::RefCell;
use std::ops::Range;

use super::feed::pad;
use super::plane::{OutputTile, Plane};
use horus_base::dtype::Pixel;
use horus_base::shape::{Border, Window};
use horus_plan::ops::neighbourhood::Reach;

/// Rows of a block. A kernel computes [`BLOCK_ROWS`] x [`BLOCK_COLS`] pixels at a time, so that few blocks touch a
/// border.
pub(super) const BLOCK_ROWS: usize = 64;
/// Columns of a block.
pub(super) const BLOCK_COLS: usize = 512;

/// The pixels around a tile, as a rectangle without borders: a view of the plane if it is inside the image, otherwise a
/// copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch<'a, T> {
    data: &'a [T],
    stride: usize,
    top: isize,
    left: isize,
}

impl<'a, T: Pixel> Patch<'a, T> {
    /// The patch that an operation of the given reach, in elements, reads for `rows` and `cols`. `scratch` receives the
    /// copy, if one is made.
    pub(super) fn around(
        plane: &Plane<'a, T>,
        rows: Window,
        cols: &Range<usize>,
        reach: Reach,
        border: Border,
        scratch: &'a mut Vec<u64>,
    ) -> Patch<'a, T> {
        let rows = rows.grown(reach.up, reach.down);
        let left = cols.start.cast_signed() - reach.left.cast_signed();
        let stride = cols.len() + reach.left + reach.right;
        // Rows in memory beyond the image are wrapped rows; only that border mode reads them.
        let held = if border == Border::Wrap { plane.window } else { plane.window.clipped(plane.height) };
        if held.covers(rows) && left >= 0 && cols.end + reach.right <= plane.width {
            return Patch { data: plane.data(), stride: plane.width, top: plane.window.start, left: 0 };
        }
        let words = (rows.len() * stride * size_of::<T>()).div_ceil(size_of::<u64>());
        if scratch.len() < words {
            scratch.resize(words, 0);
        }
        let copy = &mut bytemuck::cast_slice_mut::<u64, T>(scratch)[..rows.len() * stride];
        for (y, out) in (rows.start..rows.end).zip(copy.chunks_exact_mut(stride)) {
            match plane.resolve(y, border) {
                Some(y) => pad(plane.row(y), left, (border, plane.samples), out),
                None => out.fill(border.constant().map_or(T::ZERO, T::from_f64)),
            }
        }
        Patch { data: copy, stride, top: rows.start, left }
    }

    /// The `n` pixels from column `x` of row `y`.
    #[inline(always)]
    pub(super) fn line(&self, y: isize, x: isize, n: usize) -> &'a [T] {
        let at = (y - self.top).cast_unsigned() * self.stride + (x - self.left).cast_unsigned();
        &self.data[at..at + n]
    }

    /// The first of `n` pixels from column `x` on in each of `rows` rows from `y` on, and the distance of rows in
    /// pixels.
    pub(super) fn rectangle(&self, y: isize, x: isize, rows: usize, n: usize) -> (*const T, usize) {
        let at = (y - self.top).cast_unsigned() * self.stride + (x - self.left).cast_unsigned();
        assert!(rows > 0 && (rows - 1) * self.stride + n <= self.data[at..].len(), "the patch holds the rectangle");
        (self.data[at..].as_ptr(), self.stride)
    }
}

thread_local! {
    /// Copies of pixels around blocks, reused by later tiles.
    static COPY: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Cuts a tile into blocks and calls `f` with each block and the patch around it, of this reach in pixels.
pub(super) fn for_each_block<T: Pixel>(
    plane: &Plane<'_, T>,
    reach: Reach,
    border: Border,
    tile: &mut OutputTile<'_, T>,
    mut compute: impl FnMut(&Patch<'_, T>, &mut OutputTile<'_, T>),
) {
    let reach = reach.in_samples(plane.samples);
    COPY.with_borrow_mut(|scratch| {
        for_each_part(tile, (BLOCK_ROWS, BLOCK_COLS), |block| {
            let patch = Patch::around(plane, block.rows, &block.cols, reach, border, scratch);
            compute(&patch, block);
        });
    });
}

/// Calls `f` with each part of a tile of at most this many rows and columns.
pub(super) fn for_each_part<T: Pixel>(
    tile: &mut OutputTile<'_, T>,
    (rows, columns): (usize, usize),
    mut f: impl FnMut(&mut OutputTile<'_, T>),
) {
    for y in (tile.rows.start..tile.rows.end).step_by(rows) {
        let rows = Window::new(y, tile.rows.end.min(y + rows.cast_signed()));
        for x in tile.cols.clone().step_by(columns) {
            let cols = x..tile.cols.end.min(x + columns);
            let at = (y - tile.rows.start).cast_unsigned() * tile.stride + (x - tile.cols.start);
            f(&mut OutputTile { out: &mut tile.out[at..], stride: tile.stride, rows, cols });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::whole;
    use horus_testing::pixels::{borders, noise};

    fn patches_hold_what_the_border_says<T: Pixel>() {
        let reach = Reach { up: 3, down: 9, left: 11, right: 2 };
        for (h, w) in [(1, 1), (3, 4), (20, 30)] {
            let image = noise::<T>(h * w, 1, false);
            let plane = whole(&image, h, w);
            for border in borders() {
                for (rows, cols) in [(Window::whole(h), 0..w), (Window::new(h as isize - 1, h as isize), w / 2..w)] {
                    let mut scratch = Vec::new();
                    let patch = Patch::around(&plane, rows, &cols, reach, border, &mut scratch);
                    for y in rows.start - 3..rows.end + 9 {
                        for x in cols.start as isize - 11..cols.end as isize + 2 {
                            assert_eq!(patch.line(y, x, 1)[0].scalar(), plane.pixel(y, x, border).scalar());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn patches_hold_what_the_border_says_for_integers_and_floats() {
        patches_hold_what_the_border_says::<u8>();
        patches_hold_what_the_border_says::<f64>();
    }
}
