//! Shapes, regions, border modes and row windows.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::dtype::DType;

/// The shape of an image or a volume: levels, rows, columns and channels.
///
/// Pixels are [stored](Shape::stored) level by level and row by row, with the channels of a pixel adjacent.
/// Operations that read single channels compute [planes](Shape::planes) of rows: the channels of level 0,
/// then those of level 1, and so on.
///
/// It is written `height x width`, with the depth in front unless it is 1, and the channels at the end unless
/// they are 1: `42x480x640` is 42 levels of one channel, `480x640x3` is one level of three channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Number of levels; 1 for an image.
    pub depth: usize,
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// Number of channels of each level, each in a plane of its own.
    pub channels: usize,
    /// Number of adjacent samples of each pixel of a plane: 1, or the number of channels of an image with
    /// interleaved channels, which has one plane per level.
    pub samples: usize,
}

/// A rectangle of an image's pixels, the same in all levels and channels.
///
/// ```
/// # use horus_core::prelude::*;
/// let region = Region::new(100, 200, 512, 640);
/// assert_eq!((region.bottom(), region.right()), (612, 840));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// The first row.
    pub top: usize,
    /// The first column.
    pub left: usize,
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
}

impl Region {
    /// The rectangle of `height` rows and `width` columns with its first pixel at (`top`, `left`).
    pub const fn new(top: usize, left: usize, height: usize, width: usize) -> Region {
        Region { top, left, height, width }
    }

    /// All pixels of an image.
    pub const fn whole(shape: Shape) -> Region {
        Region::new(0, 0, shape.height, shape.width)
    }

    /// One past the last row.
    pub const fn bottom(self) -> usize {
        self.top.saturating_add(self.height)
    }

    /// One past the last column.
    pub const fn right(self) -> usize {
        self.left.saturating_add(self.width)
    }

    /// Returns `true` if it has pixels and lies inside an image of this shape.
    pub const fn is_inside(self, shape: Shape) -> bool {
        self.height > 0 && self.width > 0 && self.bottom() <= shape.height && self.right() <= shape.width
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{} at row {}, column {}", self.height, self.width, self.top, self.left)
    }
}

/// An axis of an image. A reduction over an axis leaves a length of 1 along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Reduction over rows: `height x width x channels` becomes `1 x width x channels` (NumPy's axis 0).
    Rows,
    /// Reduction over columns: `height x width x channels` becomes `height x 1 x channels` (NumPy's axis 1).
    Columns,
    /// Reduction over channels: `height x width x channels` becomes `height x width x 1` (NumPy's last axis).
    Channels,
    /// Reduction over levels: `depth x height x width x channels` becomes `1 x height x width x channels`
    /// (NumPy's axis 0 of four).
    Depth,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Axis::Rows => "rows",
            Axis::Columns => "columns",
            Axis::Channels => "channels",
            Axis::Depth => "levels",
        })
    }
}

/// The shape of one channel, from height and width.
impl From<(usize, usize)> for Shape {
    fn from((height, width): (usize, usize)) -> Shape {
        Shape::new(height, width, 1)
    }
}

/// The shape of one channel, from depth, height and width.
impl From<(usize, usize, usize)> for Shape {
    fn from((depth, height, width): (usize, usize, usize)) -> Shape {
        Shape::volume(depth, height, width, 1)
    }
}

impl Shape {
    /// The length of an axis.
    pub const fn extent(self, axis: Axis) -> usize {
        match axis {
            Axis::Rows => self.height,
            Axis::Columns => self.width,
            Axis::Channels => self.channels,
            Axis::Depth => self.depth,
        }
    }

    /// The shape with another length along an axis.
    #[must_use]
    pub const fn with_extent(mut self, axis: Axis, n: usize) -> Shape {
        match axis {
            Axis::Rows => self.height = n,
            Axis::Columns => self.width = n,
            Axis::Channels => self.channels = n,
            Axis::Depth => self.depth = n,
        }
        self
    }

    /// The shape of an image, with one level.
    pub const fn new(height: usize, width: usize, channels: usize) -> Shape {
        Shape { depth: 1, height, width, channels, samples: 1 }
    }

    /// The shape of a volume.
    pub const fn volume(depth: usize, height: usize, width: usize, channels: usize) -> Shape {
        Shape { depth, height, width, channels, samples: 1 }
    }

    /// The shape of the same image with interleaved channels (unchanged if they are interleaved already).
    ///
    /// ```
    /// # use horus_core::shape::Shape;
    /// let samples = Shape::new(480, 640, 3).interleaved();
    /// assert_eq!((samples.planes(), samples.line(), samples.len()), (1, 1920, 480 * 640 * 3));
    /// assert_eq!(samples.deinterleaved(), Shape::new(480, 640, 3));
    /// ```
    #[must_use]
    pub const fn interleaved(self) -> Shape {
        if self.samples == 1 { Shape { channels: 1, samples: self.channels, ..self } } else { self }
    }

    /// The shape of the same image with a plane for each channel.
    #[must_use]
    pub const fn deinterleaved(self) -> Shape {
        Shape { channels: self.samples, samples: 1, ..self }
    }

    /// The shape in which an image is stored: with interleaved channels, unless there is one pixel, whose
    /// order is the same either way.
    #[must_use]
    pub const fn stored(self) -> Shape {
        if self.height * self.width == 1 { self } else { self.interleaved() }
    }

    /// The shape of the same image with a plane for each channel, whatever the storage.
    #[must_use]
    pub const fn planar(self) -> Shape {
        if self.samples == 1 { self } else { self.deinterleaved() }
    }

    /// The shape of the same elements as pixels of one sample each.
    #[must_use]
    pub const fn flat(self) -> Shape {
        Shape { width: self.line(), samples: 1, ..self }
    }

    /// Number of elements of a row of a plane.
    pub const fn line(self) -> usize {
        self.width * self.samples
    }

    /// Bytes of a pixel of a plane.
    pub const fn pixel_bytes(self, dtype: DType) -> usize {
        self.samples * dtype.size()
    }

    /// Number of planes. A plane holds the rows of one channel of one level: plane `z * channels + c` is
    /// channel `c` of level `z`.
    pub const fn planes(self) -> usize {
        self.depth * self.channels
    }

    /// The shape to which both broadcast (an axis of length 1 is repeated), if any.
    ///
    /// ```
    /// # use horus_core::{self as horus, prelude::*};
    /// assert_eq!(Shape::new(4, 5, 1).broadcast(Shape::new(1, 5, 3)), Some(Shape::new(4, 5, 3)));
    /// assert_eq!(Shape::new(4, 5, 1).broadcast(Shape::new(2, 5, 1)), None);
    /// assert_eq!(Shape::new(4, 5, 1).broadcast(Shape::volume(7, 1, 1, 1)), Some(Shape::volume(7, 4, 5, 1)));
    /// ```
    pub fn broadcast(self, other: Shape) -> Option<Shape> {
        let meet = |a: usize, b: usize| if a == b || b == 1 { Some(a) } else { (a == 1).then_some(b) };
        let (height, width) = (meet(self.height, other.height)?, meet(self.width, other.width)?);
        let (depth, channels) = (meet(self.depth, other.depth)?, meet(self.channels, other.channels)?);
        let samples = meet(self.samples, other.samples)?;
        Some(Shape { depth, height, width, channels, samples })
    }

    /// Number of pixels of one plane.
    pub const fn area(self) -> usize {
        self.height * self.width
    }

    /// Number of elements of all planes.
    pub const fn len(self) -> usize {
        self.area() * self.planes() * self.samples
    }

    /// Returns `true` if the length of any axis is zero.
    pub const fn is_empty(self) -> bool {
        self.height == 0 || self.width == 0 || self.depth == 0 || self.channels == 0 || self.samples == 0
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.depth != 1 {
            write!(f, "{}x", self.depth)?;
        }
        write!(f, "{}x{}", self.height, self.width)?;
        if self.channels != 1 {
            write!(f, "x{}", self.channels)?;
        }
        if self.samples != 1 {
            write!(f, " of {} samples", self.samples)?;
        }
        Ok(())
    }
}

/// The border mode: the pixels that an operation reads beyond the edge of an image. Letters show a row `abcd`
/// and the pixels read around it. Constants are compared by bits, so that NaN equals itself.
#[derive(Clone, Copy, Debug, Default)]
pub enum Border {
    /// `dcb|abcd|cba`: mirrored about the centre of the edge pixel (scipy `mirror`, OpenCV
    /// `REFLECT_101`). The default.
    #[default]
    Reflect101,
    /// `cba|abcd|dcb`: mirrored about the edge itself (scipy and OpenCV `reflect`).
    Reflect,
    /// `aaa|abcd|ddd`: the edge pixel repeated (scipy `nearest`).
    Replicate,
    /// `bcd|abcd|abc`: periodic (scipy `grid-wrap`).
    Wrap,
    /// `vvv|abcd|vvv`: a constant, converted to the image's type (scipy `grid-constant`). Exact for every
    /// element type.
    Constant(f64),
}

impl PartialEq for Border {
    fn eq(&self, other: &Border) -> bool {
        discriminant(self) == discriminant(other)
            && self.constant().map(f64::to_bits) == other.constant().map(f64::to_bits)
    }
}
impl Eq for Border {}
impl Hash for Border {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        self.constant().map(f64::to_bits).hash(state);
    }
}

impl Border {
    /// All modes, with the constant `value`: for tests of every mode.
    pub const fn all(value: f64) -> [Border; 5] {
        [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Wrap, Border::Constant(value)]
    }

    /// The name in lower case, without the value of a constant.
    pub const fn name(self) -> &'static str {
        match self {
            Border::Reflect101 => "reflect101",
            Border::Reflect => "reflect",
            Border::Replicate => "replicate",
            Border::Wrap => "wrap",
            Border::Constant(_) => "constant",
        }
    }

    /// Maps coordinate `i` of a line of `n > 0` pixels to the pixel that is read there, or to `None` for the
    /// constant.
    #[inline]
    pub fn map(self, i: isize, n: usize) -> Option<usize> {
        let len = n.cast_signed();
        if (0..len).contains(&i) {
            return Some(i.cast_unsigned());
        }
        let inside = match self {
            Border::Constant(_) => return None,
            Border::Replicate => i.clamp(0, len - 1),
            Border::Wrap => i.rem_euclid(len),
            Border::Reflect101 if n == 1 => 0,
            Border::Reflect | Border::Reflect101 => {
                // One reflection usually suffices and avoids the division.
                let edge = isize::from(self == Border::Reflect);
                let once = if i < 0 { -edge - i } else { 2 * len - 2 + edge - i };
                if (0..len).contains(&once) {
                    once
                } else {
                    let m = i.rem_euclid(2 * len - 2 + 2 * edge);
                    if m < len { m } else { 2 * len - 2 + edge - m }
                }
            }
        };
        Some(inside.cast_unsigned())
    }

    /// Maps element `i` of a line of `n` elements, in pixels of `samples` samples, to the same sample of the
    /// pixel that [`map`](Border::map) gives.
    #[inline]
    pub fn map_sample(self, i: isize, n: usize, samples: usize) -> Option<usize> {
        // Divisions take as long as the rest of a row of 64 pixels.
        if samples == 1 {
            return self.map(i, n);
        }
        if (0..n.cast_signed()).contains(&i) {
            return Some(i.cast_unsigned());
        }
        let pixel = samples.cast_signed();
        let at = i.rem_euclid(pixel).cast_unsigned();
        self.map(i.div_euclid(pixel), n / samples).map(|x| x * samples + at)
    }

    /// For a mode that mirrors the image: 1 if the edge pixel is repeated, else 0.
    pub const fn mirror(self) -> Option<isize> {
        match self {
            Border::Reflect101 => Some(0),
            Border::Reflect => Some(1),
            Border::Replicate | Border::Wrap | Border::Constant(_) => None,
        }
    }

    /// The constant of [`Border::Constant`].
    pub fn constant(self) -> Option<f64> {
        match self {
            Border::Constant(v) => Some(v),
            _ => None,
        }
    }
}

impl fmt::Display for Border {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.constant().map_or(Ok(()), |v| write!(f, " {v}"))
    }
}

/// The rows `start..end` of an image that a local buffer holds.
///
/// Rows `0..height` are the image's own. A window reaches beyond them only for *wrapped* rows: virtual row
/// `y` then holds a copy of row `y mod height`. Only operations with [`Border::Wrap`] read such rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// First row.
    pub start: isize,
    /// One past the last row.
    pub end: isize,
}

impl Window {
    /// The window of rows `start..end`.
    pub const fn new(start: isize, end: isize) -> Window {
        Window { start, end }
    }

    /// All rows of an image of `height` rows.
    pub const fn whole(height: usize) -> Window {
        Window { start: 0, end: height.cast_signed() }
    }

    /// The window of a range of image rows.
    pub fn rows(r: &Range<usize>) -> Window {
        Window::new(r.start.cast_signed(), r.end.cast_signed())
    }

    /// Number of rows.
    pub const fn len(self) -> usize {
        if self.end > self.start { self.end.wrapping_sub(self.start).cast_unsigned() } else { 0 }
    }

    /// Returns `true` if there are no rows.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Returns `true` if row `y` is in the window.
    pub const fn contains(self, y: isize) -> bool {
        self.start <= y && y < self.end
    }

    /// Returns `true` if every row of `other` is in the window.
    pub const fn covers(self, other: Window) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// The window grown by `top` and `bottom` rows (an empty window stays empty).
    pub const fn grown(self, top: usize, bottom: usize) -> Window {
        if self.is_empty() {
            return self;
        }
        Window { start: self.start.saturating_sub_unsigned(top), end: self.end.saturating_add_unsigned(bottom) }
    }

    /// The rows that lie inside an image of `height` rows.
    pub fn clipped(self, height: usize) -> Window {
        let h = height.cast_signed();
        Window::new(self.start.clamp(0, h), self.end.clamp(0, h))
    }

    /// The rows in both windows.
    pub fn intersect(self, other: Window) -> Window {
        let start = self.start.max(other.start);
        Window::new(start, self.end.min(other.end).max(start))
    }

    /// The smallest window that contains both (an empty one adds nothing).
    pub fn union(self, other: Window) -> Window {
        if self.is_empty() {
            other
        } else if other.is_empty() {
            self
        } else {
            Window::new(self.start.min(other.start), self.end.max(other.end))
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(border: Border, n: usize, from: isize, to: isize) -> String {
        (from..to)
            .map(|i| match border.map(i, n) {
                Some(p) => char::from(b'a' + u8::try_from(p).unwrap()),
                None => '-',
            })
            .collect()
    }

    #[test]
    fn borders_read_as_their_picture_says() {
        assert_eq!(line(Border::Reflect101, 4, -3, 7), "dcbabcdcba");
        assert_eq!(line(Border::Reflect, 4, -3, 7), "cbaabcddcb");
        assert_eq!(line(Border::Replicate, 4, -3, 7), "aaaabcdddd");
        assert_eq!(line(Border::Wrap, 4, -3, 7), "bcdabcdabc");
        assert_eq!(line(Border::Constant(0.0), 4, -2, 6), "--abcd--");
    }

    #[test]
    fn borders_bounce_as_often_as_needed() {
        assert_eq!(line(Border::Reflect101, 2, -4, 6), "ababababab");
        assert_eq!(line(Border::Reflect101, 1, -3, 4), "aaaaaaa");
        assert_eq!(line(Border::Reflect, 2, -5, 7), "aabbaabbaabb");
    }

    #[test]
    fn borders_continue_lines_by_whole_pixels() {
        for border in Border::all(0.0) {
            for (n, samples) in [(1, 3), (2, 2), (5, 4), (4, 1)] {
                for i in -20..40isize {
                    let (x, sample) = (i.div_euclid(samples), i.rem_euclid(samples));
                    let want = border.map(x, n).map(|x| x * samples as usize + sample as usize);
                    assert_eq!(border.map_sample(i, n * samples as usize, samples as usize), want, "{border} {n} {i}");
                }
            }
        }
    }

    #[test]
    fn shapes_are_written_with_what_is_not_one() {
        let text = |d, c| Shape::volume(d, 4, 5, c).to_string();
        assert_eq!([text(1, 1), text(1, 3), text(7, 1), text(7, 3)], ["4x5", "4x5x3", "7x4x5", "7x4x5x3"]);
    }

    #[test]
    fn windows_grow_clip_and_meet() {
        let w = Window::new(2, 5);
        assert_eq!(w.grown(3, 4), Window::new(-1, 9));
        assert_eq!(w.grown(3, 4).clipped(6), Window::new(0, 6));
        assert_eq!(Window::new(3, 3).grown(2, 2).len(), 0);
        assert!(w.intersect(Window::new(5, 9)).is_empty());
        assert_eq!(w.union(Window::new(7, 8)), Window::new(2, 8));
    }
}
