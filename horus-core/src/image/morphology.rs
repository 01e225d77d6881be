//! Morphology: minimum and maximum under a footprint, and operations composed of them.

use super::argument::{ArgumentTerm, pixel};
use super::{Footprints, Image};
use crate::dtype::{Element, Scalar};
use crate::error::{Call, Site};
use crate::filters::Footprint;
use crate::ir::graph::Op;
use crate::ops::neighbourhood::{Combine, Generalized, Reduce};
use crate::ops::pixel::PixelOp;
use crate::shape::Border;

/// Morphology, of images and masks. The border mode is [`Border::Reflect101`] (not OpenCV's
/// default), or set by [`Image::with_border`]. A footprint that cannot be applied is an error.
/// [`Footprints`] lists the forms of a footprint, in the plane and across the levels of a volume.
/// NaN are ignored; if there is nothing else, the smallest pixel is infinity and the largest minus
/// infinity.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let dots = Image::from_slice(&session, (1, 7), &[0u8, 9, 0, 0, 5, 5, 5]);
/// assert_eq!(dots.opening(&Footprint::rectangle(1, 3)).to_vec()?, [0, 0, 0, 0, 5, 5, 5]);
/// assert_eq!(dots.top_hat(&Footprint::rectangle(1, 3)).to_vec()?, [0, 9, 0, 0, 0, 0, 0]);
/// assert_eq!(dots.gt(4).dilate(&Footprint::cross(1)).count().get()?, 7);
/// let dot = Image::from_volume_fn(&session, 5, 5, 5, |z, y, x| (z, y, x) == (2, 2, 2));
/// let one = Footprint::rectangle(1, 1);
/// assert_eq!(dot.dilate(&[one.clone(), Footprint::cross(1), one]).count().get()?, 7); // the six neighbours and the centre
/// assert_eq!(dot.dilate(3).count().get()?, 27); // a cube
/// assert_eq!(dot.dilate((3, 3)).count().get()?, 9);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// Erosion: the smallest pixel under the footprint. For a mask: true if all pixels under it are
    /// true.
    #[doc(alias("binary_erosion", "grey_erosion", "minimum_filter"))]
    #[track_caller]
    pub fn erode<'a>(&self, footprint: impl Into<Footprints<'a>>) -> Image<T> {
        self.extreme("erode", footprint.into(), Reduce::Min)
    }

    /// Dilation: the largest pixel under the footprint rotated by 180 degrees (as
    /// `scipy.ndimage.grey_dilation`); for a mask, true if any pixel under it is true.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let dot = Image::from_slice(&session, (1, 5), &[0u8, 0, 1, 0, 0]);
    /// let right = Footprint::from_mask(1, 3, &[false, true, true]);
    /// assert_eq!(dot.dilate(&right).to_vec()?, [0, 0, 1, 1, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("binary_dilation", "grey_dilation", "maximum_filter"))]
    #[track_caller]
    pub fn dilate<'a>(&self, footprint: impl Into<Footprints<'a>>) -> Image<T> {
        self.extreme("dilate", footprint.into(), Reduce::Max)
    }

    /// Opening: erosion, then dilation. Removes bright details smaller than the footprint.
    #[doc(alias("MORPH_OPEN", "binary_opening", "grey_opening"))]
    #[track_caller]
    pub fn opening<'a>(&self, footprint: impl Into<Footprints<'a>>) -> Image<T> {
        let footprint = footprint.into();
        self.erode(footprint).with_border(self.border()).dilate(footprint)
    }

    /// Closing: dilation, then erosion. Removes dark details smaller than the footprint.
    #[doc(alias("MORPH_CLOSE", "binary_closing", "grey_closing"))]
    #[track_caller]
    pub fn closing<'a>(&self, footprint: impl Into<Footprints<'a>>) -> Image<T> {
        let footprint = footprint.into();
        self.dilate(footprint).with_border(self.border()).erode(footprint)
    }

    /// The white top-hat: the details removed by an opening.
    #[doc(alias("MORPH_TOPHAT", "white_tophat"))]
    #[track_caller]
    pub fn top_hat<'a>(&self, footprint: impl Into<Footprints<'a>>) -> Image<T> {
        let site = Call::of("top_hat").site;
        self.minus(&self.opening(footprint), site)
    }

    /// The black top-hat: the details added by a closing.
    #[doc(alias("MORPH_BLACKHAT", "black_tophat"))]
    #[track_caller]
    pub fn black_hat<'a>(&self, footprint: impl Into<Footprints<'a>>) -> Image<T> {
        let site = Call::of("black_hat").site;
        self.closing(footprint).minus(self, site)
    }

    /// The morphological gradient: dilation minus erosion.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let step = Image::from_slice(&session, (1, 6), &[1u8, 1, 1, 5, 5, 5]);
    /// assert_eq!(step.morphological_gradient(&Footprint::rectangle(1, 3)).to_vec()?, [0, 0, 4, 4, 0, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "MORPH_GRADIENT")]
    #[track_caller]
    pub fn morphological_gradient<'a>(&self, footprint: impl Into<Footprints<'a>>) -> Image<T> {
        let site = Call::of("morphological_gradient").site;
        let footprint = footprint.into();
        self.dilate(footprint).minus(&self.erode(footprint), site)
    }

    /// The difference; for masks, true where this one is true and the other is not.
    fn minus(&self, other: &Image<T>, site: Site) -> Image<T> {
        pixel(PixelOp::Sub, [ArgumentTerm::image(self), ArgumentTerm::image(other)], site)
    }

    #[track_caller]
    fn extreme(&self, op: &'static str, footprint: Footprints<'_>, reduce: Reduce) -> Image<T> {
        let (call, border) = (Call::of(op), self.border());
        let footprints = footprint.of(self.depth());
        let found = match footprint {
            Footprints::Plane(footprint) => self.extreme_under(footprint, border, reduce, call.site),
            _ => self.extreme_across(call, &footprints, border, reduce),
        };
        if !T::TAG.is_float() || footprints.iter().all(|footprint| footprint.len() != 1) {
            return found;
        }
        // A footprint of one pixel only copies; the identity is applied here, from which other
        // footprints start.
        let (op, identity) = match reduce {
            Reduce::Max => (PixelOp::Max, f64::NEG_INFINITY),
            _ => (PixelOp::Min, f64::INFINITY),
        };
        pixel(op, [ArgumentTerm::image(&found), ArgumentTerm::scalar(Scalar::from_f64(T::TAG, identity))], call.site)
    }

    /// The minimum or maximum under a footprint. A rectangle is reduced by rows and then by
    /// columns. The bits are the same as without the separation, ties and NaN included, because
    /// both orders keep the first extreme in row-major order.
    pub(super) fn extreme_under(&self, footprint: &Footprint, border: Border, reduce: Reduce, site: Site) -> Image<T> {
        self.attempt(self.shape(), || {
            let windows = footprint.windows(reduce == Reduce::Max)?.into_iter();
            Ok(windows.fold(self.clone(), |image, window| {
                let operation = Generalized { window, combine: Combine::Pixel, reduce };
                image.node(Op::OrderFilter(operation.into(), border), site)
            }))
        })
    }
}
