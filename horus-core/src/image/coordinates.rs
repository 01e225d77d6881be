//! Images of pixel coordinates.
//!
//! Coordinates are values of an expression (`Val::Index`), like constants: nothing is read or
//! stored. A strip counts from the image's first row, and a copy of a row beyond the image counts
//! as that row.

use super::{Image, check_shape, image_or_failure, record};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, Error, Result};
use crate::ir::graph::Op;
use crate::session::Session;
use crate::shape::{Axis, Shape};

/// Coordinates. They cost no memory and no launch, because the operations that read them compute
/// them for each pixel. On several ranks they are coordinates in the whole image.
impl<T: Pixel> Image<T> {
    /// An image in which each pixel is its own row, column, channel or level, from 0 on. A length
    /// whose numbers `T` cannot all hold (above 256 in `u8`, above 2^24 + 1 in `f32`) is an error.
    /// Unlike [`Image::from_fn`], which calls a function for each pixel on the host, the image
    /// takes no time and no memory of its own.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let shape = Shape::new(2, 3, 1);
    /// assert_eq!(Image::<u8>::index(&session, shape, Axis::Rows).to_vec()?, [0, 0, 0, 1, 1, 1]);
    /// assert_eq!(Image::<f32>::index(&session, shape, Axis::Columns).to_vec()?, [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]);
    /// let ramp = Image::from_slice(&session, (2, 3), &[1.0f32; 6]) * Image::index(&session, shape, Axis::Columns);
    /// assert_eq!(ramp.sum().get()?, 6.0);
    /// let [y, x] = [Axis::Rows, Axis::Columns].map(|axis| Image::<f32>::index(&session, (64, 48), axis));
    /// let disk = (y - 31.5).hypot(x - 23.5).le(20.0);
    /// assert!((disk.count().get()? as f64 - std::f64::consts::PI * 400.0).abs() < 10.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("indices", "fromfunction"))]
    #[track_caller]
    pub fn index(session: &Session, shape: impl Into<Shape>, axis: Axis) -> Image<T> {
        let (call, shape) = (Call::of("index"), shape.into());
        image_or_failure(session, shape, index(call, session, shape, axis))
    }
}

fn index<T: Pixel>(call: Call, session: &Session, shape: Shape, axis: Axis) -> Result<Image<T>> {
    check_shape(call, shape, T::TAG)?;
    let last = (shape.extent(axis) - 1) as f64;
    // A type that cannot hold some integer of the range cannot hold the largest or the second
    // largest.
    if [last, last - 1.0].into_iter().any(|v| v > 0.0 && T::from_f64(v).to_f64() != v) {
        let message = format!("{} cannot hold the {axis} of an image of {shape}", T::TAG);
        return Err(Error::parameter(call, message));
    }
    Ok(record(session, Op::Index(axis), &[], shape, call.site))
}
