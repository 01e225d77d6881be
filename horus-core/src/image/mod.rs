//! Images: the public algebra.
//!
//! An [`Image`] is a cheap handle on a recorded value. Its methods check their arguments and append to the program of
//! its session; nothing is computed until a value is looked at ([`Image::to_vec`], [`Image::to_array`],
//! [`Image::pixel`], [`Image::save`], [`Value::get`]).
//!
//! Whatever a method can know to be wrong (sizes that differ, a parameter outside its domain, an image without pixels)
//! is an error of that call, and names the line of the program that made it. Methods that cannot fail return the image
//! itself, those that can a [`Result`]: an operation *between images* is checked, hence `(&a + &b)?`; one with a scalar
//! is not, hence `&a * 3.0`.
//!
//! Every rank runs the same program, so all methods that read values back are collective: each rank calls them alike and
//! gets the same answer.

mod argument;
mod channels;
mod create;
mod geometric;
mod neighbourhood;
mod operators;
mod pixel;
mod read;
mod reduce;
mod worms;

use std::fmt;
use std::marker::PhantomData;

pub use argument::Argument;
pub use reduce::Value;

use crate::dtype::{DType, Pixel, Scalar};
use crate::error::{Error, Result, Site};
use crate::graph::Op;
use crate::session::{Handle, Session};
use crate::shape::{Border, Shape};

/// An image of `height x width` pixels with one or more channels of type `T`: a handle on a recorded value.
///
/// Cloning copies the handle, not the pixels. Images are values: no operation changes its operands.
#[derive(Clone)]
pub struct Image<T: Pixel> {
    handle: Handle,
    pixel: PhantomData<T>,
}

impl<T: Pixel> Image<T> {
    /// The image behind a handle of type `T`.
    pub(crate) fn from_handle(handle: Handle) -> Image<T> {
        debug_assert_eq!(handle.dtype, T::DTYPE);
        Image { handle, pixel: PhantomData }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.shape().height
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.shape().width
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.shape().channels
    }

    /// Rows, columns and channels.
    pub fn shape(&self) -> Shape {
        self.handle.shape
    }

    /// The element type, as a tag.
    pub fn dtype(&self) -> DType {
        T::DTYPE
    }

    /// The session the image belongs to.
    pub fn session(&self) -> &Session {
        &self.handle.session
    }

    /// Records an operation on this image alone that keeps its extent.
    fn node<R: Pixel>(&self, op: Op, site: Site) -> Image<R> {
        self.node_of_shape(op, self.shape(), site)
    }

    /// Records an operation on this image alone.
    fn node_of_shape<R: Pixel>(&self, op: Op, shape: Shape, site: Site) -> Image<R> {
        record(&self.handle.session, op, &[&self.handle], shape, site)
    }

    /// Checks that `other` may meet this image in a pixel operation.
    fn check_match<U: Pixel>(&self, op: &'static str, other: &Image<U>, site: Site) -> Result<()> {
        if !self.session().same(other.session()) {
            return Err(Error::ForeignImage { op, site });
        }
        if self.shape() != other.shape() {
            return Err(Error::ShapeMismatch { op, left: self.shape(), right: other.shape(), site });
        }
        Ok(())
    }
}

impl<T: Pixel> fmt::Debug for Image<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} {})", self.shape(), T::DTYPE)
    }
}

/// Records an operation; the one place where a recorded value gets its static type.
fn record<R: Pixel>(session: &Session, op: Op, inputs: &[&Handle], shape: Shape, site: Site) -> Image<R> {
    Image::from_handle(session.record(op, inputs, shape, R::DTYPE, site))
}

/// Checks the extent of an image to be made: not empty, and addressable.
fn check_shape<T: Pixel>(op: &'static str, shape: Shape, site: Site) -> Result<()> {
    if shape.is_empty() {
        return Err(Error::Empty { op, shape, site });
    }
    // The limit keeps every position within the integer range of kernels; see `Affine`.
    const LONGEST: usize = 1 << 30;
    let bytes = shape
        .height
        .checked_mul(shape.width)
        .and_then(|n| n.checked_mul(shape.channels))
        .and_then(|n| n.checked_mul(size_of::<T>()))
        .filter(|n| *n <= isize::MAX.cast_unsigned());
    if shape.height > LONGEST || shape.width > LONGEST || bytes.is_none() {
        return Err(Error::parameter(op, format!("an image of {shape} pixels is too large"), site));
    }
    Ok(())
}

/// The border with its constant converted to the type the operation works in.
fn typed_border(border: Border, dtype: DType) -> Border {
    match border {
        Border::Constant(v) if v.dtype() != dtype => Border::Constant(Scalar::from_f64(dtype, v.to_f64())),
        other => other,
    }
}
