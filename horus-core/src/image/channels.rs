//! Splitting and merging channels.

use crate::ops::Merge;
use std::borrow::Borrow;

use super::{Image, check_shape, image_or_failure, record};
use crate::dtype::{Element, Pixel};
use crate::error::{Audience, Call, Error, Result, Site};
use crate::ir::graph::Op;
use crate::ops::planes::PlaneMap;
use crate::session::{Attributes, Session};
use crate::shape::{Axis, Shape};

/// Weights of red, green and blue in the luminance of ITU-R BT.601.
const LUMINANCE: [f32; 3] = [0.299, 0.587, 0.114];

/// Splitting and merging channels.
impl<T: Element> Image<T> {
    /// Channel `i` as an image of one channel; an error if there is no such channel.
    #[doc(alias = "extractChannel")]
    #[track_caller]
    pub fn channel(&self, i: usize) -> Image<T> {
        let call @ Call { site, .. } = Call::of("channel");
        let shape = Shape { channels: 1, ..self.shape() };
        self.attempt(shape, || {
            if i >= self.channels() {
                return Err(Error::parameter(
                    call,
                    format!("channel {i} requested, but there are only {} (indices start at 0)", self.channels()),
                ));
            }
            if self.channels() == 1 {
                return Ok(self.plain());
            }
            Ok(self.node_of_shape(Op::Planes(PlaneMap::channel(self.shape(), i)), shape, site))
        })
    }

    /// Splits the image along an axis: into channels, each an image of one channel, levels, rows or
    /// columns.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let colour = Image::from_slice(&session, Shape::new(1, 2, 3), &[1u8, 2, 3, 11, 12, 13]);
    /// let [red, green, blue] = &colour.unstack(Axis::Channels)[..] else { panic!("three channels") };
    /// let swapped = Image::stack(&session, [blue, green, red], Axis::Channels);
    /// assert_eq!(swapped.to_vec()?, [3, 2, 1, 13, 12, 11]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "split")]
    #[track_caller]
    pub fn unstack(&self, axis: Axis) -> Vec<Image<T>> {
        let mut parts = Vec::with_capacity(self.shape().extent(axis));
        for i in 0..self.shape().extent(axis) {
            parts.push(match axis {
                Axis::Channels => self.channel(i),
                Axis::Depth => self.slice(i),
                Axis::Rows => self.crop(i, 0, 1, self.width()),
                Axis::Columns => self.crop(0, i, self.height(), 1),
            });
        }
        parts
    }

    /// Concatenates the channels or the levels of `images` (OpenCV's `merge`). It is an error if
    /// there is no image, if the other axes or sessions differ, or if the axis is neither
    /// [`Axis::Channels`] nor [`Axis::Depth`]. See [`Image::unstack`] for an example.
    #[doc(alias = "merge")]
    #[track_caller]
    pub fn stack<I>(session: &Session, images: I, axis: Axis) -> Image<T>
    where
        I: IntoIterator,
        I::Item: Borrow<Image<T>>,
    {
        let site = Call::of("stack").site;
        let images: Vec<I::Item> = images.into_iter().collect();
        let images: Vec<&Image<T>> = images.iter().map(Borrow::borrow).collect();
        let extent = images.iter().map(|i| i.shape().extent(axis)).sum();
        let shape = images.first().map_or(Shape::new(0, 0, 0), |i| i.shape().with_extent(axis, extent));
        image_or_failure(session, shape, stacked(axis, session, &images, shape, site))
    }
}

/// Images concatenated along an axis, in an image of shape `shape`.
fn stacked<T: Element>(
    axis: Axis,
    session: &Session,
    images: &[&Image<T>],
    shape: Shape,
    site: Site,
) -> Result<Image<T>> {
    let call @ Call { op, site } = Call { op: "stack", site };
    if images.is_empty() {
        return Err(Error::Empty { op, shape, site });
    }
    if matches!(axis, Axis::Rows | Axis::Columns) {
        return Err(Error::parameter(call, format!("images are stacked along channels or levels, not {axis}")));
    }
    if axis == Axis::Depth {
        check_shape(call, shape, T::TAG)?;
    }
    for image in images {
        image.check()?;
        let extent = image.shape().with_extent(axis, shape.extent(axis));
        if !session.same(image.session()) {
            return Err(Error::ForeignImage { op, site });
        }
        if extent != shape {
            return Err(Error::ShapeMismatch { op, left: images[0].shape().into(), right: image.shape().into(), site });
        }
    }
    if let [image] = images {
        return Ok((*image).clone());
    }
    let inputs: Vec<_> = images.iter().map(|image| image.handle()).collect();
    Ok(record(session, Op::from(Merge), &inputs, shape, site))
}

impl<T: Pixel> Image<T> {
    /// The luminance, `0.299 R + 0.587 G + 0.114 B` (ITU-R BT.601), on the scale of
    /// [`Image::to_unit`]: `0..=MAX` of an integer type becomes `0..=1`. A single channel is its
    /// own luminance. [Alpha](crate::io::AnyImage::alpha) is ignored: transparent pixels count with
    /// their stored colours. Any number of colours except one and three is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let red = Image::from_slice(&session, Shape::new(1, 1, 3), &[255u8, 0, 0]);
    /// assert_eq!(red.luminance().to_vec()?, [0.299]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("cvtColor", "grayscale", "rgb2gray"))]
    #[track_caller]
    pub fn luminance(&self) -> Image<f32> {
        let all = self.channels();
        let has_alpha = all > 1 && Attributes::alpha(self.handle().attributes.as_ref()).is_some();
        let grey = match all - usize::from(has_alpha) {
            1 => self.channel(0).convert(),
            3 => {
                let weighted = |i: usize| self.channel(i).convert::<f32>() * LUMINANCE[i];
                weighted(0) + weighted(1) + weighted(2)
            }
            _ => {
                let call = Call::of("luminance");
                let one = Audience::now().select_wording("`channel(0)`", "`channel 0`", "`channel(0)`");
                let known = if has_alpha { "the last of them alpha" } else { "none of them known to be alpha" };
                let last = Audience::now().select_wording(
                    ", or say that the last is alpha (`with_alpha`)",
                    "",
                    ", or say that the last is alpha (`with_alpha()`)",
                );
                let last = if all == 4 && !has_alpha { last } else { "" };
                let message =
                    format!("an image of {all} channels, {known}, has no luminance: take one of them ({one}){last}");
                let shape = Shape { channels: 1, ..self.shape() };
                self.attempt(shape, || Err(Error::parameter(call, message)))
            }
        };
        if T::DTYPE.is_float() { grey } else { grey / T::HIGHEST.to_f64() as f32 }
    }
}
