//! Connected components.

use crate::ops::Components;

use super::{Image, record};
use crate::dtype::Element;
use crate::error::{Call, Error};
use crate::ir::graph::Op;
use crate::ops::components::Connectivity;
use crate::shape::Axis;

impl<T: Element> Image<T> {
    /// Labels the connected components of the pixels that are not 0, or true
    /// (`scipy.ndimage.label`). Each pixel becomes the number of its component: 1, 2, and so on, in
    /// the raster order of the components' first pixels. The background becomes 0. The number of
    /// components is the largest label ([`max_value`](Image::max_value)). A NaN is not 0.
    ///
    /// `neighbours` also applies across the levels of a volume: with [`Connectivity::FACES`] a
    /// pixel has 4 neighbours in an image and 6 in a volume. Every rank labels the whole image, so
    /// several ranks take as long as one. An image that does not fit in memory is labelled row by
    /// row, and regions of the labels are read from a temporary file. An image of several channels
    /// (see [`channel`](Image::channel)) is an error, and more than 2^31 - 1 components are one
    /// when they are counted.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (3, 4), &[0u8, 9, 0, 7, 9, 0, 0, 7, 0, 0, 7, 0]).gt(5);
    /// let apart = image.label(Connectivity::FACES);
    /// assert_eq!(apart.to_vec()?, [0, 1, 0, 2, 3, 0, 0, 2, 0, 0, 4, 0]);
    /// let touching = image.label(Connectivity::CORNERS);
    /// assert_eq!(touching.to_vec()?, [0, 1, 0, 2, 1, 0, 0, 2, 0, 0, 2, 0]);
    /// assert_eq!(touching.max_value().get()?, 2);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "connectedComponents")]
    #[track_caller]
    pub fn label(&self, neighbours: Connectivity) -> Image<i32> {
        self.components(Call::of("label"), Components::labels(neighbours))
    }

    /// The number of pixels of each pixel's connected component, 2^31 - 1 if it has more; 0 for the
    /// background. Components are those of [`label`](Self::label).
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mask = Image::from_slice(&session, (2, 4), &[1u8, 0, 1, 1, 0, 0, 1, 0]).gt(0);
    /// assert_eq!(mask.component_sizes(Connectivity::FACES).to_vec()?, [1, 0, 3, 3, 0, 0, 3, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`label`](Self::label).
    #[track_caller]
    pub fn component_sizes(&self, neighbours: Connectivity) -> Image<i32> {
        self.components(Call::of("component_sizes"), Components::sizes(neighbours))
    }

    fn components(&self, call: Call, how: Components) -> Image<i32> {
        self.attempt(self.shape(), || {
            let shape = self.shape();
            if shape.channels != 1 {
                let message = format!("the image has {} channels; take one (`channel`)", shape.channels);
                return Err(Error::parameter(call, message));
            }
            Ok(record(self.session(), Op::from(how), &[self.handle()], shape, call.site))
        })
    }
}

/// The components of a mask that stay. Components are those of [`label`](Self::label), with its
/// errors.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let mask = Image::from_slice(&session, (3, 5), &[1u8, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1]).gt(0);
/// let faces = Connectivity::FACES;
/// assert_eq!(mask.remove_small(2, faces).count().get()?, 2);
/// assert_eq!(mask.keep_largest(faces).to_vec()?, mask.remove_small(2, faces).to_vec()?);
/// assert_eq!(mask.clear_border(faces).count().get()?, 1);
/// assert_eq!((!&mask).fill_small(2, faces).count().get()?, 13);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl Image<bool> {
    /// The mask without components of fewer than `pixels` pixels
    /// (`skimage.morphology.remove_small_objects`).
    #[doc(alias = "filterSpeckles")]
    #[track_caller]
    pub fn remove_small(&self, pixels: usize, neighbours: Connectivity) -> Image<bool> {
        let sizes = self.components(Call::of("remove_small"), Components::sizes(neighbours));
        sizes.ge(i32::try_from(pixels.max(1)).unwrap_or(i32::MAX))
    }

    /// The mask with holes of fewer than `pixels` pixels filled
    /// (`skimage.morphology.remove_small_holes`). A hole is a component of the background, also one
    /// that touches the edge.
    #[track_caller]
    pub fn fill_small(&self, pixels: usize, neighbours: Connectivity) -> Image<bool> {
        !(!self).remove_small(pixels, neighbours)
    }

    /// The largest component of the mask; several, if they are as large.
    #[track_caller]
    pub fn keep_largest(&self, neighbours: Connectivity) -> Image<bool> {
        let sizes = self.components(Call::of("keep_largest"), Components::sizes(neighbours));
        self & sizes.ge(sizes.max_value())
    }

    /// The mask without components that touch an edge of the image, or the first or the last level
    /// of a volume (`skimage.segmentation.clear_border`).
    #[track_caller]
    pub fn clear_border(&self, neighbours: Connectivity) -> Image<bool> {
        let shape = self.shape();
        let axes = [(Axis::Depth, shape.depth), (Axis::Rows, shape.height), (Axis::Columns, shape.width)];
        let edges = axes.into_iter().filter(|(axis, n)| *axis != Axis::Depth || *n > 1).map(|(axis, n)| {
            let at = Image::<i32>::index(self.session(), shape, axis);
            at.eq(0) | at.eq(n.saturating_sub(1) as i32)
        });
        let edge = edges.reduce(|a, b| a | b).unwrap_or_else(|| self.clone());
        self & !(edge & self).reconstruct(self, neighbours)
    }
}
