//! Splitting and merging channels.

use crate::ops::Merge;
use std::borrow::Borrow;
use std::panic::Location;

use super::{Image, carry, record};
use crate::dtype::{Element, Pixel};
use crate::error::{Error, Result, Site};
use crate::ir::graph::Op;
use crate::ops::planes::PlaneMap;
use crate::session::Session;
use crate::shape::{Axis, Shape};

/// Red, green and blue in the luminance of ITU-R BT.601.
const LUMINANCE: [f32; 3] = [0.299, 0.587, 0.114];

/// Splitting and merging channels.
impl<T: Element> Image<T> {
    /// Channel `i` as an image of one channel; an error if there is no such channel.
    #[doc(alias = "extractChannel")]
    #[track_caller]
    pub fn channel(&self, i: usize) -> Image<T> {
        let site = Location::caller();
        let shape = Shape { channels: 1, ..self.shape() };
        self.attempt(shape, || {
            if i >= self.channels() {
                return Err(Error::parameter(
                    "channel",
                    format!("channel {i} requested, but there are only {} (indices start at 0)", self.channels()),
                    site,
                ));
            }
            if self.channels() == 1 {
                return Ok(self.clone());
            }
            Ok(self.node_of_shape(Op::Planes(PlaneMap::channel(self.shape(), i)), shape, site))
        })
    }

    /// All channels, each as an image of one channel.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let colour = Image::from_planes(&session, 1, 2, &[&[1u8, 2], &[3, 4], &[5, 6]]);
    /// let [red, green, blue] = &colour.unstack()[..] else { panic!("three channels") };
    /// let swapped = Image::stack(&session, [blue, green, red]);
    /// assert_eq!(swapped.to_vec()?, [5, 6, 3, 4, 1, 2]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "split")]
    #[track_caller]
    pub fn unstack(&self) -> Vec<Image<T>> {
        let mut channels = Vec::with_capacity(self.channels());
        for i in 0..self.channels() {
            channels.push(self.channel(i));
        }
        channels
    }

    /// The channels of `images`, one after the other, as the channels of one image (OpenCV's `merge`); an error if there is
    /// none, or depths, heights, widths or sessions differ. Volumes stay volumes: [`Image::stack_depth`] makes one of slices. See [`Image::unstack`] for an example.
    #[doc(alias = "merge")]
    #[track_caller]
    pub fn stack<I>(session: &Session, images: I) -> Image<T>
    where
        I: IntoIterator,
        I::Item: Borrow<Image<T>>,
    {
        let site = Location::caller();
        let images: Vec<I::Item> = images.into_iter().collect();
        let images: Vec<&Image<T>> = images.iter().map(Borrow::borrow).collect();
        let channels = images.iter().map(|i| i.channels()).sum();
        let shape = images.first().map_or(Shape::new(0, 0, 0), |i| Shape { channels, ..i.shape() });
        carry(session, shape, stacked(("stack", Axis::Channels), session, &images, shape, site))
    }
}

/// Images one after the other along an axis, in an image of shape `shape`.
pub(super) fn stacked<T: Element>(
    (op, axis): (&'static str, Axis),
    session: &Session,
    images: &[&Image<T>],
    shape: Shape,
    site: Site,
) -> Result<Image<T>> {
    if images.is_empty() {
        return Err(Error::Empty { op, shape, site });
    }
    for image in images {
        image.check()?;
        let extent = image.shape().with_extent(axis, shape.extent(axis));
        if !session.same(image.session()) {
            return Err(Error::ForeignImage { op, site });
        }
        if extent != shape {
            return Err(Error::ShapeMismatch { op, left: images[0].shape(), right: image.shape(), site });
        }
    }
    if let [image] = images {
        return Ok((*image).clone());
    }
    let inputs: Vec<_> = images.iter().map(|image| image.handle()).collect();
    Ok(record(session, Op::from(Merge), &inputs, shape, site))
}

impl<T: Pixel> Image<T> {
    /// The luminance, `0.299 R + 0.587 G + 0.114 B` (ITU-R BT.601), on the scale of [`Image::to_unit`]: of integers `0..=MAX` spans
    /// `0..=1`. One channel is grey already; the last of two or four channels is taken as alpha and ignored: transparent pixels count
    /// with their stored colours. More than four channels are an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let red = Image::from_planes(&session, 1, 1, &[&[255u8], &[0], &[0]]);
    /// assert_eq!(red.luminance().to_vec()?, [0.299]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("cvtColor", "grayscale", "rgb2gray"))]
    #[track_caller]
    pub fn luminance(&self) -> Image<f32> {
        let grey = match self.channels() {
            1 | 2 => self.channel(0).convert(),
            3 | 4 => {
                let weighted = |i: usize| self.channel(i).convert::<f32>() * LUMINANCE[i];
                weighted(0) + weighted(1) + weighted(2)
            }
            n => {
                let site = Location::caller();
                let message = format!("an image of {n} channels has no luminance");
                let shape = Shape { channels: 1, ..self.shape() };
                self.attempt(shape, || Err(Error::parameter("luminance", message, site)))
            }
        };
        if T::DTYPE.is_float() { grey } else { grey / T::HIGHEST.to_f64() as f32 }
    }
}
