//! Operands of host kernels: planes of rows, and tiles of them.

use std::ops::Range;

use horus_base::dtype::Pixel;
use horus_base::shape::{Border, Window};
use horus_host::buffer::HostBuffer;
use horus_host::device::{Geometry, LaunchInput, Memory};
use horus_plan::ir::kernel::MapKernel;

/// An input of a per-pixel expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpressionInput<'a> {
    /// Its memory.
    pub(super) memory: &'a Memory,
    /// Its geometry, with samples as pixels.
    pub(super) geometry: Geometry,
    /// Samples of a pixel.
    pub(super) samples: usize,
    /// The rows that may be read: all in memory, or the rows of the image.
    pub(super) rows: Window,
}

impl<'a> ExpressionInput<'a> {
    /// The inputs of a launch of `kernel`.
    pub(super) fn all(kernel: &MapKernel, inputs: &[LaunchInput<'a>]) -> Vec<ExpressionInput<'a>> {
        let of = |(i, input): (usize, &LaunchInput<'a>)| {
            let LaunchInput { memory, geometry } = *input;
            let (samples, rows) = (geometry.shape.samples, kernel.readable(i, geometry.window, geometry.shape.height));
            ExpressionInput { memory, geometry: geometry.flat(), samples, rows }
        };
        inputs.iter().enumerate().map(of).collect()
    }

    /// Plane `channel`.
    pub(super) fn plane<T: Pixel>(&self, channel: usize) -> Plane<'a, T> {
        let Geometry { shape, .. } = self.geometry;
        let all = self.memory.host().map_or(&[][..], HostBuffer::as_slice::<T>);
        let first = if self.rows.is_empty() { 0 } else { self.geometry.row(channel, self.rows.start) };
        let data = &all[first..first + self.rows.len() * shape.width];
        Plane::new(data, shape.height, shape.width, self.rows).interleaved(self.samples)
    }
}

/// One plane of an input: the rows of `window` out of an image of `height x width`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane<'a, T> {
    data: &'a [T],
    /// Rows of the whole image.
    pub(crate) height: usize,
    /// Elements of a row.
    pub(crate) width: usize,
    /// Samples of a pixel: neighbours in a row are this many elements apart.
    pub(crate) samples: usize,
    /// The rows in memory.
    pub(crate) window: Window,
}

impl<'a, T: Pixel> Plane<'a, T> {
    /// A plane over `data`, the rows of `window`; its pixels have one sample.
    pub(crate) fn new(data: &'a [T], height: usize, width: usize, window: Window) -> Plane<'a, T> {
        assert_eq!(data.len(), window.len() * width, "a plane holds the rows of its window");
        Plane { data, height, width, samples: 1, window }
    }

    /// The same plane, with pixels of this many samples.
    pub(crate) fn interleaved(self, samples: usize) -> Plane<'a, T> {
        Plane { samples, ..self }
    }

    /// The plane with as many other elements.
    pub(crate) fn of<'b, S: Pixel>(&self, data: &'b [S]) -> Plane<'b, S> {
        Plane::new(data, self.height, self.width, self.window).interleaved(self.samples)
    }

    /// The element read at element `x` of the row continued by a border; `None` for the border's constant.
    #[inline]
    pub(crate) fn column(&self, x: isize, border: Border) -> Option<usize> {
        border.map_sample(x, self.width, self.samples)
    }

    /// All rows in memory, contiguous.
    #[inline]
    pub(crate) fn data(&self) -> &'a [T] {
        self.data
    }

    /// Row `y`, which must be in memory.
    #[inline]
    pub(crate) fn row(&self, y: isize) -> &'a [T] {
        debug_assert!(self.window.contains(y), "row {y} is not in {}", self.window);
        let at = (y - self.window.start).cast_unsigned() * self.width;
        &self.data[at..at + self.width]
    }

    /// The row in memory that is read at image row `y`; `None` where the border's constant is read. A wrapped row
    /// beyond the image is returned unchanged if it is in memory.
    #[inline]
    pub(crate) fn resolve(&self, y: isize, border: Border) -> Option<isize> {
        resolve(y, border, self.height, self.window)
    }

    /// The pixel read at (`y`, `x`), without shortcuts.
    #[cfg(test)]
    pub(crate) fn pixel(&self, y: isize, x: isize, border: Border) -> T {
        match (self.resolve(y, border), self.column(x, border)) {
            (Some(y), Some(x)) => self.row(y)[x],
            _ => border.constant().map_or(T::ZERO, T::from_f64),
        }
    }
}

/// See [`Plane::resolve`].
#[inline]
pub(super) fn resolve(y: isize, border: Border, height: usize, window: Window) -> Option<isize> {
    let inside = 0 <= y && y < height.cast_signed();
    if inside || (border == Border::Wrap && window.contains(y)) {
        return Some(y);
    }
    border.map(y, height).map(usize::cast_signed)
}

/// Rows read by filters, one at a time: from a plane, or computed on demand.
pub(super) trait RowSource<T> {
    /// As [`Plane::resolve`].
    fn resolve(&self, y: isize, border: Border) -> Option<isize>;

    /// Row `y`, which must be in memory; at least the pixels of columns `cols` are valid.
    fn row(&mut self, y: isize, cols: Range<usize>) -> &[T];
}

impl<T: Pixel> RowSource<T> for Plane<'_, T> {
    fn resolve(&self, y: isize, border: Border) -> Option<isize> {
        Plane::resolve(self, y, border)
    }

    fn row(&mut self, y: isize, _: Range<usize>) -> &[T] {
        Plane::row(self, y)
    }
}

/// A plane whose rows stand for all their copies: the input of a chain, whose rows are the rows of the image.
pub(super) struct Unrolled<'a, T>(pub(super) Plane<'a, T>);

impl<T: Pixel> RowSource<T> for Unrolled<'_, T> {
    fn resolve(&self, y: isize, border: Border) -> Option<isize> {
        border.map(y, self.0.height).map(usize::cast_signed)
    }

    fn row(&mut self, y: isize, _: Range<usize>) -> &[T] {
        self.0.row(wrapped_row(y, self.0.height, self.0.window))
    }
}

/// Row `y` of an image or, if `window` does not contain it, a copy that `window` contains.
pub(super) fn wrapped_row(y: isize, height: usize, window: Window) -> isize {
    if window.contains(y) || height == 0 {
        return y;
    }
    window.start + (y - window.start).rem_euclid(height.cast_signed())
}

/// A rectangle of an output: rows `rows` and columns `cols`, stored in `out` with `stride` elements
/// from row to row. Element (`y`, `x`) is `out[(y - rows.start) * stride + (x - cols.start)]`.
#[derive(Debug)]
pub(crate) struct OutputTile<'a, T> {
    /// Output elements.
    pub(crate) out: &'a mut [T],
    /// Elements from row to row.
    pub(crate) stride: usize,
    /// Image rows of the tile.
    pub(crate) rows: Window,
    /// Image columns of the tile.
    pub(crate) cols: Range<usize>,
}

impl<T: Pixel> OutputTile<'_, T> {
    /// The part of row `y` inside the tile.
    #[inline]
    pub(crate) fn row_mut(&mut self, y: isize) -> &mut [T] {
        let at = (y - self.rows.start).cast_unsigned() * self.stride;
        &mut self.out[at..at + self.cols.len()]
    }
}

/// A plane of a whole image.
#[cfg(test)]
pub(crate) fn whole<T: Pixel>(image: &[T], height: usize, width: usize) -> Plane<'_, T> {
    Plane::new(image, height, width, Window::whole(height))
}
