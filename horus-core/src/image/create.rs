//! Making images.

use std::panic::Location;

use bytemuck::{cast_slice, cast_slice_mut};
use ndarray::{ArrayView2, ArrayView3, Axis};

use super::{Image, check_shape, record};
use crate::dtype::Pixel;
use crate::error::{Error, Result, Site};
use crate::graph::Op;
use crate::session::Session;
use crate::shape::Shape;

/// Making images. Every rank gives the same pixels; to read a picture once, see [`Image::open`]. Images larger than the
/// memory are errors when their pixels are given, or when they are evaluated.
impl<T: Pixel> Image<T> {
    /// An image of one channel from its pixels in row-major order.
    ///
    /// # Errors
    /// If a size is zero, or `pixels` does not hold `height * width` values.
    #[track_caller]
    pub fn from_slice(session: &Session, height: usize, width: usize, pixels: &[T]) -> Result<Image<T>> {
        planes("from_slice", session, height, width, &[pixels], Location::caller())
    }

    /// An image from its channels, each in row-major order.
    ///
    /// # Errors
    /// If a size or the number of channels is zero, or a channel does not hold `height * width` values.
    #[track_caller]
    pub fn from_planes(session: &Session, height: usize, width: usize, channels: &[&[T]]) -> Result<Image<T>> {
        planes("from_planes", session, height, width, channels, Location::caller())
    }

    /// An image of one channel from an array of shape `(height, width)`.
    ///
    /// # Errors
    /// If a size is zero.
    #[track_caller]
    pub fn from_array(session: &Session, pixels: ArrayView2<'_, T>) -> Result<Image<T>> {
        array("from_array", session, pixels.insert_axis(Axis(2)), Location::caller())
    }

    /// An image from an array of shape `(height, width, channels)`.
    ///
    /// # Errors
    /// If a size is zero.
    #[track_caller]
    pub fn from_array3(session: &Session, pixels: ArrayView3<'_, T>) -> Result<Image<T>> {
        array("from_array3", session, pixels, Location::caller())
    }

    /// An image of one channel whose pixel in row `y` and column `x` is `f(y, x)`.
    ///
    /// # Errors
    /// If a size is zero.
    #[track_caller]
    pub fn from_fn(
        session: &Session,
        height: usize,
        width: usize,
        mut f: impl FnMut(usize, usize) -> T,
    ) -> Result<Image<T>> {
        let site = Location::caller();
        let shape = Shape::new(height, width, 1);
        let fill = |buffer: &mut [T]| {
            for (y, row) in buffer.chunks_exact_mut(width).enumerate() {
                row.iter_mut().enumerate().for_each(|(x, p)| *p = f(y, x));
            }
        };
        source("from_fn", session, shape, fill, site)
    }

    /// An image of one channel, all zero.
    ///
    /// # Errors
    /// If a size is zero.
    #[track_caller]
    pub fn zeros(session: &Session, height: usize, width: usize) -> Result<Image<T>> {
        filled("zeros", session, Shape::new(height, width, 1), T::ZERO, Location::caller())
    }

    /// An image of one channel, all `value`.
    ///
    /// # Errors
    /// If a size is zero.
    #[track_caller]
    pub fn constant(session: &Session, height: usize, width: usize, value: T) -> Result<Image<T>> {
        filled("constant", session, Shape::new(height, width, 1), value, Location::caller())
    }

    /// An image of this one's size and channels, all zero.
    #[track_caller]
    pub fn zeros_like(&self) -> Image<T> {
        record(self.session(), Op::Fill(T::ZERO.scalar()), &[], self.shape(), Location::caller())
    }
}

fn filled<T: Pixel>(op: &'static str, session: &Session, shape: Shape, value: T, site: Site) -> Result<Image<T>> {
    check_shape::<T>(op, shape, site)?;
    Ok(record(session, Op::Fill(value.scalar()), &[], shape, site))
}

fn planes<T: Pixel>(
    op: &'static str,
    session: &Session,
    height: usize,
    width: usize,
    channels: &[&[T]],
    site: Site,
) -> Result<Image<T>> {
    let shape = Shape::new(height, width, channels.len());
    check_shape::<T>(op, shape, site)?;
    if let Some(plane) = channels.iter().find(|p| p.len() != shape.area()) {
        let message = format!("{} values for {height}x{width} pixels", plane.len());
        return Err(Error::parameter(op, message, site));
    }
    let fill = |buffer: &mut [T]| {
        let planes = buffer.chunks_exact_mut(shape.area()).zip(channels);
        planes.for_each(|(to, from)| session.workers().copy(cast_slice(from), cast_slice_mut(to)));
    };
    source(op, session, shape, fill, site)
}

fn array<T: Pixel>(op: &'static str, session: &Session, a: ArrayView3<'_, T>, site: Site) -> Result<Image<T>> {
    let (height, width, channels) = a.dim();
    let fill = |buffer: &mut [T]| {
        let planes = a.axis_iter(Axis(2));
        for (to, from) in buffer.chunks_exact_mut(height * width).zip(planes) {
            match from.to_slice() {
                Some(from) => session.workers().copy(cast_slice(from), cast_slice_mut(to)),
                None => to.iter_mut().zip(from.iter()).for_each(|(t, f)| *t = *f),
            }
        }
    };
    source(op, session, Shape::new(height, width, channels), fill, site)
}

/// An image whose host pixels `fill` writes, all of them, planes one after the other.
pub(super) fn source<T: Pixel>(
    op: &'static str,
    session: &Session,
    shape: Shape,
    fill: impl FnOnce(&mut [T]),
    site: Site,
) -> Result<Image<T>> {
    check_shape::<T>(op, shape, site)?;
    let mut pixels = session.room(shape.len() * size_of::<T>()).map_err(|source| {
        let error = Error::Device { op: format!("{op} (at {site})"), device: session.device_name(), source };
        // Other ranks may have had the memory, and would wait for this one.
        if session.ranks() > 1 {
            session.comm().abort(&error.to_string());
        }
        error
    })?;
    fill(pixels.as_mut_slice());
    Ok(Image::from_handle(session.source(shape, T::DTYPE, pixels, site)))
}
