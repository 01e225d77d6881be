//! Filters that go across the levels of a volume.

use std::panic::Location;

use super::Image;
use super::argument::{Term, pixel};
use super::neighbourhood::check_filter;
use crate::dtype::{Element, Pixel};
use crate::error::{Error, Result, Site};
use crate::filters::{self, Footprint};
use crate::ir::graph::Op;
use crate::ops::neighbourhood::{Filter, Reduce};
use crate::ops::pixel::PixelOp;
use crate::shape::{Border, Shape};

/// Linear filters of volumes. As in the plane, filters are not flipped by a correlation and anchor at half their size, and those
/// of integer volumes yield `f32`. The order of summation is fixed: in the plane that of [`Image::correlate`]; along the depth, from
/// the first tap to the last. Of an image, all levels beyond its only one follow from the edge mode.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let dot = Image::from_volume_fn(&session, 9, 9, 9, |z, y, x| if (z, y, x) == (4, 4, 4) { 1.0f32 } else { 0.0 });
/// let ball = dot.gauss_3d(1.0);
/// assert!((ball.sum().get()? - 1.0).abs() < 1e-6, "as bright as before");
/// assert!((ball.voxel(2, 4, 4, 0)? - ball.voxel(4, 4, 6, 0)?).abs() < 1e-7, "and alike in all directions");
/// assert_eq!(dot.laplace_3d().voxel(4, 4, 4, 0)?, -6.0);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Pixel> Image<T> {
    /// Correlation along the depth: `out(z) = sum over k of taps[k] * in(z + k - n / 2)` of `n` taps, each term added by a fused
    /// multiply-add.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let column = Image::from_volume(&session, 4, 1, 1, &[1.0f32, 2.0, 4.0, 8.0]);
    /// assert_eq!(column.correlate_depth(&[-1.0, 1.0], Border::Replicate).to_vec()?, [0.0, 1.0, 2.0, 4.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn correlate_depth(&self, taps: &[f64], border: Border) -> Image<T::Linear> {
        self.along_depth("correlate_depth", &Filter::column(taps), border, Location::caller())
    }

    /// Correlation with a filter of several levels: `filters[k]` is its part in the plane `k - n / 2` levels on, of `n` parts.
    /// Responses of the parts are added from the first to the last.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let slope = Image::from_volume_fn(&session, 4, 5, 6, |z, y, x| (z * z + 2 * y + 3 * x) as f32);
    /// let (dot, middle) = (Filter::row([1.0]), Filter::dense(3, 3, [0.0, 1.0, 0.0, 1.0, -6.0, 1.0, 0.0, 1.0, 0.0]));
    /// let curved = slope.correlate_3d(&[dot.clone(), middle, dot], Border::Reflect101);
    /// assert_eq!(curved.voxel(1, 2, 2, 0)?, 2.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn correlate_3d(&self, filters: &[Filter], border: Border) -> Image<T::Linear> {
        self.parts("correlate_3d", filters, border, false, Location::caller())
    }

    /// Convolution: [`Image::correlate_3d`] with the filter turned about its anchor along all three axes.
    #[track_caller]
    pub fn convolve_3d(&self, filters: &[Filter], border: Border) -> Image<T::Linear> {
        self.parts("convolve_3d", filters, border, true, Location::caller())
    }

    /// Isotropic Gaussian smoothing of radius `ceil(3 sigma)` along all three axes, edges mirrored ([`Border::Reflect101`]).
    ///
    /// With another edge mode: [`Image::separable`], then [`Image::correlate_depth`], with the taps of [`filters::gauss`].
    #[doc(alias = "gaussian_filter")]
    #[track_caller]
    pub fn gauss_3d(&self, sigma: f64) -> Image<T::Linear> {
        self.gauss_zyx("gauss_3d", [sigma; 3], [0; 3], Location::caller())
    }

    /// The derivative of orders `[z, y, x]` of the volume smoothed by a Gaussian of sigmas `[z, y, x]`, in pixels of each axis, of
    /// radii `ceil(3 sigma)` (`scipy.ndimage.gaussian_filter`, sign included).
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let slope = Image::from_volume_fn(&session, 9, 9, 9, |z, y, x| (7 * z + 5 * y + x) as f32);
    /// let rises = slope.gauss_derivative_3d([1.0, 1.0, 1.0], [1, 0, 0]).voxel(4, 4, 4, 0)?;
    /// assert!((rises - 7.0).abs() < 0.07);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn gauss_derivative_3d(&self, sigma: [f64; 3], order: [u32; 3]) -> Image<T::Linear> {
        self.gauss_zyx("gauss_derivative_3d", sigma, order, Location::caller())
    }

    /// The six neighbours minus six times the pixel, edges mirrored.
    #[track_caller]
    pub fn laplace_3d(&self) -> Image<T::Linear> {
        let middle = Filter::sparse([(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)], [1.0, 1.0, -6.0, 1.0, 1.0]);
        let dot = Filter::row([1.0]);
        self.parts("laplace_3d", &[dot.clone(), middle, dot], Border::Reflect101, false, Location::caller())
    }

    /// The median of 3 x 3 x 3 pixels, in the volume's own type.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let grain = Image::from_volume_fn(&session, 3, 3, 3, |z, y, x| if (z, y, x) == (1, 1, 1) { 255u8 } else { 5 });
    /// assert_eq!(grain.median_3d(Border::Replicate).max_value().get()?, 5);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn median_3d(&self, border: Border) -> Image<T> {
        let site = Location::caller();
        self.attempt(self.shape(), || {
            let offsets = (0..27).map(|i: isize| [i / 9 - 1, i / 3 % 3 - 1, i % 3 - 1]);
            let around = offsets.map(|by| self.shifted(by, border, site)).collect::<Result<Vec<_>>>()?;
            Ok(Image::of_all(self.session(), around).median())
        })
    }

    fn gauss_zyx(&self, op: &'static str, sigma: [f64; 3], order: [u32; 3], site: Site) -> Image<T::Linear> {
        let [z, y, x] = sigma;
        let depth = filters::gauss(z, order[0], 0).1;
        let (row, column) = (filters::gauss(x, 0, order[2]).0, filters::gauss(y, order[1], 0).1);
        self.separable(&row, &column, Border::Reflect101).along_depth(op, &depth, Border::Reflect101, site)
    }

    /// Correlates along the depth with the taps of a filter of one column.
    pub(super) fn along_depth(
        &self,
        op: &'static str,
        column: &Filter,
        border: Border,
        site: Site,
    ) -> Image<T::Linear> {
        self.attempt(self.shape(), || {
            check_filter(op, column, site)?;
            let (linear, anchor) = (self.linear(site), (column.taps().len() / 2).cast_signed());
            let mut sum: Option<Image<T::Linear>> = None;
            for (tap, on) in column.taps().iter().zip(-anchor..) {
                let level = linear.levels(self.depth(), 1, on, border, site);
                let tap = Term::scalar(T::Linear::from_f64(*tap).scalar());
                let before = sum.as_ref().map_or(Term::scalar(T::Linear::ZERO.scalar()), Term::image);
                sum = Some(pixel(PixelOp::MulAdd, vec![Term::image(&level), tap, before], site));
            }
            sum.ok_or(Error::Empty { op, shape: Shape::volume(0, 1, 1, 1), site })
        })
    }

    fn parts(
        &self,
        op: &'static str,
        filters: &[Filter],
        border: Border,
        turned: bool,
        site: Site,
    ) -> Image<T::Linear> {
        self.attempt(self.shape(), || {
            filters.iter().try_for_each(|filter| check_filter(op, filter, site))?;
            let (linear, anchor) = (self.linear(site), (filters.len() / 2).cast_signed());
            let responses = filters.iter().zip(-anchor..).map(|(filter, on)| {
                let (filter, on) = if turned { (filter.flipped(), -on) } else { (filter.clone(), on) };
                linear.levels(self.depth(), 1, on, border, site).node(Op::Correlate(filter, border), site)
            });
            let sum = responses.reduce(|sum: Image<T::Linear>, response| together(PixelOp::Add, &sum, &response, site));
            sum.ok_or(Error::Empty { op, shape: Shape::volume(0, 1, 1, 1), site })
        })
    }
}

/// Morphology of volumes. A footprint of several levels is given by its part in each: `footprints[k]` of `n`, which must be odd,
/// is `k - n / 2` levels on. Where all parts are alike, the plane and the depth are looked at one after the other.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let dot = Image::from_volume_fn(&session, 5, 5, 5, |z, y, x| (z, y, x) == (2, 2, 2));
/// let one = Footprint::rectangle(1, 1);
/// let six = [one.clone(), Footprint::cross(1), one]; // the six neighbours and the centre
/// assert_eq!(dot.dilate_3d(&six, Border::Reflect101).count().get()?, 7);
/// let cube = [(); 3].map(|()| Footprint::rectangle(3, 3));
/// assert_eq!(dot.dilate_3d(&cube, Border::Reflect101).count().get()?, 27);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// Erosion: the smallest pixel under the footprint; of a mask, whether it is true under all of it.
    #[doc(alias = "grey_erosion")]
    #[track_caller]
    pub fn erode_3d(&self, footprints: &[Footprint], border: Border) -> Image<T> {
        self.extreme_3d("erode_3d", footprints, border, Reduce::Min, Location::caller())
    }

    /// Dilation: the largest pixel under the footprint turned along all three axes (as `scipy.ndimage.grey_dilation`); of a
    /// mask, whether it is true somewhere under it.
    #[doc(alias = "grey_dilation")]
    #[track_caller]
    pub fn dilate_3d(&self, footprints: &[Footprint], border: Border) -> Image<T> {
        self.extreme_3d("dilate_3d", footprints, border, Reduce::Max, Location::caller())
    }

    fn extreme_3d(
        &self,
        name: &'static str,
        footprints: &[Footprint],
        border: Border,
        reduce: Reduce,
        site: Site,
    ) -> Image<T> {
        self.attempt(self.shape(), || {
            if footprints.len().is_multiple_of(2) {
                let message = format!("the footprint has {} levels; their number must be odd", footprints.len());
                return Err(Error::parameter(name, message, site));
            }
            let dilates = reduce == Reduce::Max;
            let op = if dilates { PixelOp::Max } else { PixelOp::Min };
            let anchor = (footprints.len() / 2).cast_signed();
            let level = |image: &Image<T>, on: isize| {
                image.levels(self.depth(), 1, if dilates { -on } else { on }, border, site)
            };
            let alike = footprints.windows(2).all(|pair| pair[0] == pair[1]);
            let flat = if alike { Some(self.extreme_under(&footprints[0], border, reduce, site)) } else { None };
            let extremes = footprints.iter().zip(-anchor..).map(|(footprint, on)| match &flat {
                Some(flat) => level(flat, on),
                None => level(self, on).extreme_under(footprint, border, reduce, site),
            });
            let extreme = extremes.reduce(|all, next| together(op, &all, &next, site));
            extreme.ok_or(Error::Empty { op: name, shape: Shape::volume(0, 1, 1, 1), site })
        })
    }
}

fn together<T: Element>(op: PixelOp, a: &Image<T>, b: &Image<T>, site: Site) -> Image<T> {
    pixel(op, vec![Term::image(a), Term::image(b)], site)
}
