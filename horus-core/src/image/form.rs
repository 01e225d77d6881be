//! Arguments whose form says whether a filter extends across the levels of a volume.

use std::ops::Range;

use super::Image;
use crate::dtype::Element;
use crate::filters::Footprint;
use crate::ops::neighbourhood::Filter;

/// A number for each axis: one number for all axes (two for an image, three for a volume), a pair
/// `(y, x)` for the axes of the plane, or a triple `(z, y, x)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerAxis<N> {
    /// Along all axes.
    All(N),
    /// Along rows and columns (y and x), not along the depth.
    Plane(N, N),
    /// Along the depth, rows and columns (z, y and x).
    Volume(N, N, N),
}

impl<N> From<N> for PerAxis<N> {
    fn from(all: N) -> PerAxis<N> {
        PerAxis::All(all)
    }
}

impl<N> From<(N, N)> for PerAxis<N> {
    fn from((y, x): (N, N)) -> PerAxis<N> {
        PerAxis::Plane(y, x)
    }
}

impl<N> From<(N, N, N)> for PerAxis<N> {
    fn from((z, y, x): (N, N, N)) -> PerAxis<N> {
        PerAxis::Volume(z, y, x)
    }
}

/// Accepts integers for real numbers: `gauss(2)` is `gauss(2.0)`.
impl From<i32> for PerAxis<f64> {
    fn from(all: i32) -> PerAxis<f64> {
        PerAxis::All(all.into())
    }
}

/// Accepts integers for real numbers.
impl From<(i32, i32)> for PerAxis<f64> {
    fn from((y, x): (i32, i32)) -> PerAxis<f64> {
        PerAxis::Plane(y.into(), x.into())
    }
}

/// Accepts integers for real numbers.
impl From<(i32, i32, i32)> for PerAxis<f64> {
    fn from((z, y, x): (i32, i32, i32)) -> PerAxis<f64> {
        PerAxis::Volume(z.into(), y.into(), x.into())
    }
}

impl<N: Copy> PerAxis<N> {
    /// The numbers for depth, rows and columns of an image of this depth; `still` for axes without
    /// effect.
    pub(super) fn zyx(self, depth: usize, still: N) -> [N; 3] {
        match self {
            PerAxis::All(n) if depth > 1 => [n; 3],
            PerAxis::All(n) => [still, n, n],
            PerAxis::Plane(y, x) => [still, y, x],
            PerAxis::Volume(z, y, x) => [z, y, x],
        }
    }
}

/// The taps of a linear filter: in the plane (`&Filter`), a filter for each of several levels (a
/// slice, array or vector of filters), or along the depth only.
#[derive(Clone, Copy, Debug)]
pub enum Taps<'a> {
    /// A filter in the plane, applied to each level.
    Plane(&'a Filter),
    /// A filter for each of `n` levels: the `k`-th applies `k - n / 2` levels further on.
    Levels(&'a [Filter]),
    /// Along the depth.
    Depth(&'a [f64]),
}

impl<'a> From<&'a Filter> for Taps<'a> {
    fn from(filter: &'a Filter) -> Taps<'a> {
        Taps::Plane(filter)
    }
}

/// The pixels that an order filter or morphology reads: a footprint in the plane (`&Footprint`); a
/// footprint for each of an odd number of levels (a slice, array or vector; the `k`-th of `n`
/// applies `k - n / 2` levels further on); or all pixels of an odd size: `3` (a cube in a volume),
/// `(height, width)` or `(depth, height, width)`.
#[derive(Clone, Copy, Debug)]
pub enum Footprints<'a> {
    /// All pixels of a size.
    Size(PerAxis<usize>),
    /// A footprint in the plane.
    Plane(&'a Footprint),
    /// A footprint for each level.
    Levels(&'a [Footprint]),
}

impl From<usize> for Footprints<'_> {
    fn from(size: usize) -> Self {
        Footprints::Size(size.into())
    }
}

impl From<(usize, usize)> for Footprints<'_> {
    fn from(size: (usize, usize)) -> Self {
        Footprints::Size(size.into())
    }
}

impl From<(usize, usize, usize)> for Footprints<'_> {
    fn from(size: (usize, usize, usize)) -> Self {
        Footprints::Size(size.into())
    }
}

impl<'a> From<&'a Footprint> for Footprints<'a> {
    fn from(footprint: &'a Footprint) -> Self {
        Footprints::Plane(footprint)
    }
}

macro_rules! levels {
    ($($to:ident $of:ident;)*) => {$(
        impl<'a> From<&'a [$of]> for $to<'a> {
            fn from(levels: &'a [$of]) -> Self {
                $to::Levels(levels)
            }
        }

        impl<'a, const N: usize> From<&'a [$of; N]> for $to<'a> {
            fn from(levels: &'a [$of; N]) -> Self {
                $to::Levels(levels)
            }
        }

        impl<'a> From<&'a Vec<$of>> for $to<'a> {
            fn from(levels: &'a Vec<$of>) -> Self {
                $to::Levels(levels)
            }
        }
    )*};
}
levels! {
    Taps Filter;
    Footprints Footprint;
}

impl Footprints<'_> {
    /// A footprint for each level that is read, for an image of this depth; one footprint in the
    /// plane.
    #[track_caller]
    pub(super) fn of(self, depth: usize) -> Vec<Footprint> {
        match self {
            Footprints::Size(size) => {
                let [levels, height, width] = size.zyx(depth, 1);
                // More levels than an image can have only cost time; the footprint rejects an even
                // number.
                vec![Footprint::rectangle(height, width); levels.min(MOST_LEVELS)]
            }
            Footprints::Plane(footprint) => vec![footprint.clone()],
            Footprints::Levels(levels) => levels.to_vec(),
        }
    }
}

/// More levels than any footprint has.
const MOST_LEVELS: usize = (1 << 16) + 1;

/// Levels of a volume: one, or a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelRange {
    /// One level.
    One(usize),
    /// The levels of a range.
    Range(Range<usize>),
}

impl From<usize> for LevelRange {
    fn from(level: usize) -> LevelRange {
        LevelRange::One(level)
    }
}

impl From<Range<usize>> for LevelRange {
    fn from(levels: Range<usize>) -> LevelRange {
        LevelRange::Range(levels)
    }
}

/// The position of a pixel: `(y, x)`, `(z, y, x)`, or `(z, y, x, channel)`, which may also be an
/// array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelIndex {
    /// A row and a column of an image, in its first channel.
    Plane(usize, usize),
    /// A level, a row and a column, in the first channel.
    Volume(usize, usize, usize),
    /// A level, a row, a column and a channel.
    Channel([usize; 4]),
}

impl From<(usize, usize)> for PixelIndex {
    fn from((y, x): (usize, usize)) -> PixelIndex {
        PixelIndex::Plane(y, x)
    }
}

impl From<(usize, usize, usize)> for PixelIndex {
    fn from((z, y, x): (usize, usize, usize)) -> PixelIndex {
        PixelIndex::Volume(z, y, x)
    }
}

impl From<(usize, usize, usize, usize)> for PixelIndex {
    fn from((z, y, x, channel): (usize, usize, usize, usize)) -> PixelIndex {
        PixelIndex::Channel([z, y, x, channel])
    }
}

impl From<[usize; 4]> for PixelIndex {
    fn from(at: [usize; 4]) -> PixelIndex {
        PixelIndex::Channel(at)
    }
}

/// Positions of samples: images of rows and columns, `[&y, &x]`, which apply to each level, or of
/// levels, rows and columns, `[&z, &y, &x]`.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a, C: Element> {
    /// Levels (if given), rows and columns.
    axes: [&'a Image<C>; 3],
    plane: bool,
    outside: Option<f64>,
}

impl<'a, C: Element> Positions<'a, C> {
    /// Samples only between pixels: before the first and after the last pixel along an axis, and
    /// where a position is NaN, samples are `outside`, converted to the image's type (SciPy's
    /// `constant`).
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, image::Positions, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let row = |pixels: &[f32]| Image::from_slice(&session, (1, 3), pixels);
    /// let at = [&row(&[0.0; 3]), &row(&[-0.25, 1.5, 2.25])];
    /// let between = row(&[1.0, 2.0, 4.0]).remap(Positions::from(at).within(-1.0), Interpolation::Bilinear);
    /// assert_eq!(between.to_vec()?, [-1.0, 3.0, -1.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[must_use]
    pub fn within(self, outside: f64) -> Self {
        Positions { outside: Some(outside), ..self }
    }

    pub(super) fn axes(&self) -> &[&'a Image<C>] {
        &self.axes[usize::from(self.plane)..]
    }

    pub(super) fn outside(&self) -> Option<f64> {
        self.outside
    }
}

impl<'a, C: Element> From<[&'a Image<C>; 2]> for Positions<'a, C> {
    fn from([rows, columns]: [&'a Image<C>; 2]) -> Self {
        Positions { axes: [rows, rows, columns], plane: true, outside: None }
    }
}

impl<'a, C: Element> From<[&'a Image<C>; 3]> for Positions<'a, C> {
    fn from(axes: [&'a Image<C>; 3]) -> Self {
        Positions { axes, plane: false, outside: None }
    }
}

/// The rectangle of a mean: one size for all axes, `(height, width)` or `(depth, height, width)`,
/// centred on the pixel or anchored elsewhere ([`MovingWindow::at`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovingWindow {
    size: PerAxis<usize>,
    anchor: Option<[usize; 2]>,
}

impl MovingWindow {
    /// A rectangle of `(height, width)` pixels with its anchor at `(row, column)`: the anchor lies
    /// on the computed pixel (SciPy's `origin`, OpenCV's `anchor`). An anchor outside the rectangle
    /// is an error.
    pub fn at((height, width): (usize, usize), (row, column): (usize, usize)) -> MovingWindow {
        MovingWindow { size: PerAxis::Plane(height, width), anchor: Some([row, column]) }
    }

    /// Levels, rows and columns, and the anchor's row and column.
    pub(super) fn of(self, depth: usize) -> ([usize; 3], [usize; 2]) {
        let [levels, height, width] = self.size.zyx(depth, 1);
        ([levels, height, width], self.anchor.unwrap_or([height / 2, width / 2]))
    }
}

impl<N: Into<PerAxis<usize>>> From<N> for MovingWindow {
    fn from(size: N) -> MovingWindow {
        MovingWindow { size: size.into(), anchor: None }
    }
}

/// The rank of a pixel: its position among the sorted pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rank {
    /// A position; the smallest pixel is at 0.
    Place(usize),
    /// The position `n * percent / 100` of `n` pixels, rounded down; at 100 the last one (as
    /// `scipy.ndimage.percentile_filter`).
    Percent(f64),
}
