//! Operations over windows of any size: means of rectangles, and ranks under footprints.

use crate::ops::Sliding;
use std::panic::Location;

use super::Image;
use crate::dtype::{Element, Pixel};
use crate::error::{Error, Site};
use crate::filters::{Footprint, check_size, check_taps};
use crate::ir::graph::Op;
use crate::ops::neighbourhood::Reach;
use crate::ops::windowed::{BoxMean, Ranked, Windowed};
use crate::shape::Border;

/// Means of rectangles. What one costs hardly grows with its size.
impl<T: Pixel> Image<T> {
    /// The mean over `height x width` pixels; an even size reads one pixel more above, or to the left. Images of `f64` yield `f64`,
    /// all others `f32`.
    ///
    /// Sums of integers of 8 and 16 bits are exact, and the mean is rounded once more to `f32`. Floats are added pairwise, of `f32`
    /// in `f32`, so that the error of a sum grows with the logarithm of the number of pixels; integers of 32 bits so in `f64`. A size of
    /// zero, beyond 65537, or of more than 2^24 pixels in all is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let line = Image::from_slice(&session, 1, 5, &[0u8, 0, 9, 0, 6]);
    /// assert_eq!(line.box_mean(1, 3, Border::Constant(0.0)).to_vec()?, [0.0, 3.0, 3.0, 5.0, 2.0]);
    /// let rows = Image::from_fn(&session, 500, 2, |y, _| y as f32);
    /// assert_eq!(rows.box_mean(101, 1, Border::Reflect101).pixel(250, 0)?, 250.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("blur", "uniform_filter"))]
    #[track_caller]
    pub fn box_mean(&self, height: usize, width: usize, border: Border) -> Image<T::Linear> {
        self.mean_under("box_mean", [height, width], [height / 2, width / 2], border, Location::caller())
    }

    /// [`Image::box_mean`] of a rectangle `[height, width]` whose pixel `[row, column]` falls on the pixel that is computed. An
    /// anchor outside of the rectangle is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let line = Image::from_slice(&session, 1, 4, &[2.0f32, 4.0, 6.0, 8.0]);
    /// // The pixel and those before it.
    /// assert_eq!(line.box_mean_at([1, 2], [0, 1], Border::Replicate).to_vec()?, [2.0, 3.0, 5.0, 7.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn box_mean_at(&self, size: [usize; 2], anchor: [usize; 2], border: Border) -> Image<T::Linear> {
        self.mean_under("box_mean_at", size, anchor, border, Location::caller())
    }

    fn mean_under(
        &self,
        op: &'static str,
        [height, width]: [usize; 2],
        [y, x]: [usize; 2],
        border: Border,
        site: Site,
    ) -> Image<T::Linear> {
        self.attempt(self.shape(), || {
            check_size(op, height, width, site)?;
            check_taps(op, height, width, site)?;
            if y >= height || x >= width {
                let message = format!("an anchor at row {y}, column {x} of {height}x{width} pixels");
                return Err(Error::parameter(op, message, site));
            }
            let reach = Reach { up: y, down: height - 1 - y, left: x, right: width - 1 - x };
            Ok(self.node(Op::from(Sliding { how: Windowed::Mean(BoxMean::over(reach)), border }), site))
        })
    }
}

/// Ranks under a footprint of any size and form, of images and masks: the pixel in some place of the order of those under it. Pixels are
/// ordered by value, -0 before +0, and NaNs after all numbers. The footprint is not rotated. One that cannot be applied is an error.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let line = Image::from_slice(&session, 1, 5, &[9u8, 1, 8, 2, 7]);
/// let three = Footprint::rectangle(1, 3);
/// assert_eq!(line.median_under(&three, Border::Replicate).to_vec()?, [9, 8, 2, 7, 7]);
/// let eroded = line.erode_with(&three, Border::Replicate);
/// assert_eq!(line.rank_under(&three, 0, Border::Replicate).to_vec()?, eroded.to_vec()?);
/// assert_eq!(line.percentile_under(&three, 100.0, Border::Replicate).to_vec()?, [9, 9, 8, 8, 7]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// The pixel in place `place` of the order of those under the footprint, the smallest being 0. A place beyond their number is an
    /// error.
    #[doc(alias = "rank_filter")]
    #[track_caller]
    pub fn rank_under(&self, footprint: &Footprint, place: usize, border: Border) -> Image<T> {
        let (op, site) = ("rank_under", Location::caller());
        self.ranked(footprint, border, site, |count| match place < count {
            true => Ok(place),
            false => Err(Error::parameter(op, format!("place {place} of {count} pixels"), site)),
        })
    }

    /// The median: the pixel in place `n / 2` of the order of `n`. See [`Image::median`] for squares of 3x3 and 5x5 pixels, which are
    /// computed together with what they are read by.
    #[doc(alias("medianBlur", "median_filter"))]
    #[track_caller]
    pub fn median_under(&self, footprint: &Footprint, border: Border) -> Image<T> {
        self.ranked(footprint, border, Location::caller(), |count| Ok(count / 2))
    }

    /// The percentile: the pixel in place `n * percent / 100`, rounded down, of the order of `n`, and at 100 the last one (as
    /// `scipy.ndimage.percentile_filter`). A percentage outside of 0 to 100 is an error.
    #[doc(alias = "percentile_filter")]
    #[track_caller]
    pub fn percentile_under(&self, footprint: &Footprint, percent: f64, border: Border) -> Image<T> {
        let (op, site) = ("percentile_under", Location::caller());
        self.ranked(footprint, border, site, |count| match (0.0..=100.0).contains(&percent) {
            true => Ok(((count as f64 * percent / 100.0) as usize).min(count - 1)),
            false => Err(Error::parameter(op, format!("{percent} per cent"), site)),
        })
    }

    fn ranked(
        &self,
        footprint: &Footprint,
        border: Border,
        site: Site,
        place: impl FnOnce(usize) -> crate::error::Result<usize>,
    ) -> Image<T> {
        self.attempt(self.shape(), || {
            let offsets = footprint.applied()?;
            let rank = Ranked::new(&offsets, place(offsets.len())?);
            Ok(self.node(Op::from(Sliding { how: Windowed::Rank(rank), border }), site))
        })
    }
}
