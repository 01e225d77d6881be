//! Morphological reconstruction.

use super::{Image, record};
use crate::dtype::Element;
use crate::error::{Call, Error};
use crate::ir::graph::Op;
use crate::ops::reconstruction::Reconstruction;

/// Reconstruction: a marker grows within a mask, from neighbour to neighbour, until nothing changes
/// (scikit-image's `morphology.reconstruction`). For masks the result is the part of `mask`
/// connected to the marker (SciPy's `binary_propagation`). A NaN counts as the lowest number, for
/// erosion as the highest, and zeros have no sign. Every rank computes the whole image. Several
/// channels, or more than 2^31 - 1 pixels, are an error.
impl<T: Element> Image<T> {
    /// Dilates this image, the marker, below `mask` until nothing changes. Peaks of the mask that
    /// the marker does not reach are cut off. A marker above the mask is clipped to it.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mask = Image::from_slice(&session, (1, 7), &[1.0f32, 5.0, 3.0, 0.0, 4.0, 6.0, 4.0]);
    /// let domes = &mask - (&mask - 2.0).reconstruct(&mask, Connectivity::FACES); // what rises by at most 2
    /// assert_eq!(domes.to_vec()?, [0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// [`Reconstruction::by_erosion`] erodes the marker above `mask` instead. Hollows of the mask
    /// that the marker does not reach are filled. A marker below the mask is raised to it.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mask = Image::from_slice(&session, (1, 6), &[2u8, 7, 1, 3, 9, 0]);
    /// let edges = Image::from_slice(&session, (1, 6), &[2u8, 9, 9, 9, 9, 0]);
    /// let filled = edges.reconstruct(&mask, Reconstruction::by_erosion(Connectivity::FACES));
    /// assert_eq!(filled.to_vec()?, [2, 7, 7, 7, 9, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("binary_propagation", "reconstruction"))]
    #[track_caller]
    pub fn reconstruct(&self, mask: &Image<T>, how: impl Into<Reconstruction>) -> Image<T> {
        let (how, site) = (how.into(), Call::of("reconstruct").site);
        self.attempt(self.shape(), || {
            mask.check()?;
            let wrong = |message| Err(Error::parameter(Call { op: "reconstruct", site }, message));
            let shape = self.shape();
            if !self.session().same(mask.session()) {
                return Err(Error::ForeignImage { op: "reconstruct", site });
            }
            if shape != mask.shape() {
                return wrong(format!(
                    "a marker of {shape} for a mask of {}; their shapes must be equal",
                    mask.shape()
                ));
            }
            if shape.channels != 1 {
                return wrong(format!("the image has {} channels; take one (`channel`)", shape.channels));
            }
            Ok(record(self.session(), Op::from(how), &[self.handle(), mask.handle()], shape, site))
        })
    }
}
