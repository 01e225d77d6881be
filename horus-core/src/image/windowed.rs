//! Means of rectangles, and ranks under footprints, of any size.

use super::argument::{ArgumentTerm, pixel};
use super::axis::{merged, sorted};
use super::{Footprints, Image, MovingWindow, Rank};
use crate::dtype::{DType, Element, Pixel};
use crate::error::{Call, Error, Result, Site};
use crate::filters::{self, check_size, check_taps};
use crate::ir::graph::Op;
use crate::ops::Sliding;
use crate::ops::neighbourhood::{MedianSize, Reach};
use crate::ops::pixel::PixelOp;
use crate::ops::windowed::{BoxMean, Ranked, Windowed};
use crate::shape::Border;
use horus_base::position_map::Relation;

/// Means of rectangles.
impl<T: Pixel> Image<T> {
    /// The mean over a [`MovingWindow`]: `size x size` pixels (a cube in a volume),
    /// `(height, width)` or `(depth, height, width)`. An even size reads one pixel more above and
    /// to the left. Images of `f64` yield `f64`, all others `f32`. The cost hardly grows with the
    /// size. To fuse a small mean with other filters, use [`Image::separable`] with
    /// [`filters::box_filter`].
    ///
    /// Sums of 8- and 16-bit integers are exact, and the mean is rounded to `f32`. Floats are added
    /// pairwise (`f32` in `f32`), so the error of a sum grows with the logarithm of the number of
    /// pixels; 32-bit integers are added pairwise in `f64`. Along the depth, means of levels are
    /// added in order. A size of zero, above 65537, or of more than 2^24 pixels in all is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let line = Image::from_slice(&session, (1, 5), &[0u8, 0, 9, 0, 6]);
    /// assert_eq!(line.with_border(Border::Constant(0.0)).box_mean((1, 3)).to_vec()?, [0.0, 3.0, 3.0, 5.0, 2.0]);
    /// let rows = Image::from_fn(&session, 500, 2, |y, _| y as f32);
    /// assert_eq!(rows.box_mean((101, 1)).pixel((250, 0))?, 250.0);
    /// // The pixel and the one before it.
    /// let before = line.with_border(Border::Replicate).box_mean(MovingWindow::at((1, 2), (0, 1)));
    /// assert_eq!(before.to_vec()?, [0.0, 0.0, 4.5, 4.5, 3.0]);
    /// let dot = Image::from_volume_fn(&session, 3, 3, 3, |z, y, x| if (z, y, x) == (1, 1, 1) { 27u8 } else { 0 });
    /// assert_eq!((dot.box_mean(3).pixel((1, 1, 1))?, dot.box_mean((3, 3)).pixel((1, 1, 1))?), (1.0, 3.0));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("blur", "boxFilter", "uniform_filter"))]
    #[track_caller]
    pub fn box_mean(&self, window: impl Into<MovingWindow>) -> Image<T::Linear> {
        let (call, window) = (Call::of("box_mean"), window.into());
        let ([levels, height, width], anchor) = window.of(self.depth());
        let plane = self.over_rectangle(call, [levels, height, width], anchor, Windowed::Mean);
        match levels {
            1 => plane,
            _ => plane.along_depth(call, &filters::box_filter(levels).1, self.border(), false),
        }
    }

    /// The variance over a window of rows and columns, by its own mean; for the Python package.
    #[track_caller]
    pub(crate) fn box_variance(&self, window: impl Into<MovingWindow>) -> Image<f64> {
        let (size, anchor) = window.into().of(1);
        self.over_rectangle(Call::of("box_variance"), size, anchor, Windowed::Variance)
    }

    fn over_rectangle<R: Pixel>(
        &self,
        call: Call,
        [levels, height, width]: [usize; 3],
        [y, x]: [usize; 2],
        of: fn(BoxMean) -> Windowed,
    ) -> Image<R> {
        self.attempt(self.shape(), || {
            check_size(call, levels, levels)?;
            check_size(call, height, width)?;
            check_taps(call, height, width)?;
            if y >= height || x >= width {
                let message = format!("the anchor, row {y} and column {x}, is outside {height}x{width} pixels");
                return Err(Error::parameter(call, message));
            }
            let reach = Reach { up: y, down: height - 1 - y, left: x, right: width - 1 - x };
            Ok(self.node(Op::from(Sliding { how: of(BoxMean::over(reach)), border: self.border() }), call.site))
        })
    }
}

/// Ranks under a footprint of any size and form, of images and masks: the pixel at a position among
/// the sorted pixels under the footprint. Pixels are sorted by value, -0 before +0, and NaN after
/// all numbers. The footprint is not rotated. A footprint that cannot be applied is an error.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let line = Image::from_slice(&session, (1, 5), &[9u8, 1, 8, 2, 7]);
/// let three = Footprint::rectangle(1, 3);
/// assert_eq!(line.with_border(Border::Replicate).median(&three).to_vec()?, [9, 8, 2, 7, 7]);
/// let eroded = line.with_border(Border::Replicate).erode(&three);
/// assert_eq!(line.with_border(Border::Replicate).rank(&three, Rank::Place(0)).to_vec()?, eroded.to_vec()?);
/// assert_eq!(line.with_border(Border::Replicate).rank(&three, Rank::Percent(100.0)).to_vec()?, [9, 9, 8, 8, 7]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// The pixel of a [`Rank`]: a position, from 0 (the smallest) to the number of pixels less 1,
    /// or a percentile. In a volume the footprint may have several levels.
    #[doc(alias("rank_filter", "percentile_filter"))]
    #[track_caller]
    pub fn rank<'a>(&self, footprint: impl Into<Footprints<'a>>, rank: Rank) -> Image<T> {
        let call = Call::of("rank");
        self.ranked(call, footprint.into(), |count| match rank {
            Rank::Place(place) if place < count => Ok(place),
            Rank::Place(place) => {
                let message = format!("requested place {place} of {count} pixels; the range is 0 to {}", count - 1);
                Err(Error::parameter(call, message))
            }
            Rank::Percent(percent) if (0.0..=100.0).contains(&percent) => {
                Ok(((count as f64 * percent / 100.0) as usize).min(count - 1))
            }
            Rank::Percent(percent) => {
                let message = format!("requested the percentile {percent}; the range is 0 to 100");
                Err(Error::parameter(call, message))
            }
        })
    }

    /// The median: the pixel at position `n / 2` of `n` sorted pixels. Medians of 3x3 (`3`) and 5x5
    /// (`5`) pixels, and of 3x3x3 pixels of a volume (`3` or `(3, 3, 3)`), fuse with neighbouring
    /// operations.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let grain = Image::from_slice(&session, (3, 3), &[5u8, 5, 5, 5, 255, 5, 5, 5, 5]);
    /// assert_eq!(grain.with_border(Border::Replicate).median(3).to_vec()?, [5; 9]);
    /// let grain = Image::from_volume_fn(&session, 3, 3, 3, |z, y, x| if (z, y, x) == (1, 1, 1) { 255u8 } else { 5 });
    /// assert_eq!(grain.with_border(Border::Replicate).median(3).max_value().get()?, 5);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("medianBlur", "median_filter"))]
    #[track_caller]
    pub fn median<'a>(&self, footprint: impl Into<Footprints<'a>>) -> Image<T> {
        let (site, footprint, border) = (Call::of("median").site, footprint.into(), self.border());
        let size = match footprint {
            Footprints::Size(size) if T::TAG != DType::Bool => size.zyx(self.depth(), 1),
            _ => [0; 3],
        };
        match size {
            [1, 3, 3] => self.node(Op::OrderFilter(MedianSize::Three.into(), border), site),
            [1, 5, 5] => self.node(Op::OrderFilter(MedianSize::Five.into(), border), site),
            [3, 3, 3] => self.attempt(self.shape(), || self.median_of_cube(border, site)),
            _ => self.ranked(Call { op: "median", site }, footprint, |count| Ok(count / 2)),
        }
    }

    /// The median of 3x3x3 pixels. Each column of three levels is sorted. Of the nine smallest
    /// pixels of columns, five have 14 pixels of the cube above them, and so have two of the nine
    /// middle pixels; as many have 14 below. The median of the other 13 is the median of all. It is
    /// the seventh of sorted lists: the least, over all ways to take seven, of the largest pixel
    /// taken.
    fn median_of_cube(&self, border: Border, site: Site) -> Result<Image<T>> {
        let op =
            |op, a: &Image<T>, b: &Image<T>| pixel::<T, _>(op, [ArgumentTerm::image(a), ArgumentTerm::image(b)], site);
        let levels = (-1..=1).map(|z| self.shifted([z, 0, 0], border, site)).collect::<Result<Vec<_>>>()?;
        let (mut low, mut middle, mut high) = (Vec::new(), Vec::new(), Vec::new());
        for by in (0..9).map(|i: isize| [0, i / 3 - 1, i % 3 - 1]) {
            let column = levels.iter().map(|level| level.shifted(by, border, site)).collect::<Result<Vec<_>>>()?;
            for (all, one) in [&mut low, &mut middle, &mut high].into_iter().zip(sorted(&column, site)) {
                all.push(one);
            }
        }
        let [low, middle, high] = [low, middle, high].map(|nine| sorted(&nine, site));
        let ends = merged(&[&low[5..], &high[..4]].concat(), site);
        let largest = (0..5).map(|i| op(PixelOp::Upper, &middle[2 + i], &ends[5 - i]));
        let median = largest.fold(ends[6].clone(), |least, one| op(PixelOp::Lower, &least, &one));
        Ok(median.related("median", &[(self.handle(), Relation::identity())]))
    }

    #[track_caller]
    fn ranked(&self, call: Call, footprint: Footprints<'_>, place: impl FnOnce(usize) -> Result<usize>) -> Image<T> {
        let footprints = footprint.of(self.depth());
        self.attempt(self.shape(), || {
            if footprints.len().is_multiple_of(2) {
                let message = format!("the footprint has {} levels; their number must be odd", footprints.len());
                return Err(Error::parameter(call, message));
            }
            let mut offsets = Vec::new();
            for (footprint, z) in footprints.iter().zip(-((footprints.len() / 2) as i32)..) {
                offsets.extend(footprint.applied()?.iter().map(|&(y, x)| (z, y, x)));
            }
            let place = place(offsets.len())?;
            self.rank_of(call, offsets, place)
        })
    }

    /// The pixel of a place in the order of those at some offsets, by level, row and column; for the Python package.
    #[track_caller]
    pub(crate) fn rank_at(&self, mut offsets: Vec<(i32, i32, i32)>, place: usize) -> Image<T> {
        let call = Call::of("rank");
        offsets.sort_unstable();
        self.attempt(self.shape(), || self.rank_of(call, offsets, place))
    }

    fn rank_of(&self, call: Call, offsets: Vec<(i32, i32, i32)>, place: usize) -> Result<Image<T>> {
        let rank = Ranked::across(offsets, place);
        if let Some(fault) = rank.fault() {
            return Err(Error::parameter(call, fault));
        }
        Ok(self.node(Op::from(Sliding { how: Windowed::Rank(rank), border: self.border() }), call.site))
    }
}
