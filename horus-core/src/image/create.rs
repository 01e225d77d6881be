//! Creating images.

use std::time::Instant;

use bytemuck::{bytes_of, cast_slice};
use ndarray::{ArrayView2, ArrayView3, ArrayView4, ArrayViewD, Axis};

use super::{Image, Pixels, check_shape, image_or_failure, record};
use crate::device::WorkLabel;
use crate::dtype::Element;
use crate::error::{Call, CallSuffix, Error, Result};
use crate::ir::graph::Op;
use crate::session::Session;
use crate::shape::Shape;

/// Creation of images. Every rank passes the same pixels; ranks compare them when an operation
/// reads them (`compare_given` of builders turns this off). To read a picture on one rank, see
/// [`Session::open`]. An image without pixels, or with a number of pixels that differs from its
/// shape, carries an error. An image larger than memory is an error when it is created or when it
/// is evaluated.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (2, 2), &[0u8, 1, 10, 11]);
/// assert_eq!(image.to_vec()?, Image::from_fn(&session, 2, 2, |y, x| (10 * y + x) as u8).to_vec()?);
/// let wrong = Image::from_slice(&session, (2, 3), &[0u8; 5]);
/// assert!(wrong.check().unwrap_err().to_string().contains("5 values for 2x3 pixels"));
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// An image of `(height, width)` pixels, or a volume of `(depth, height, width)`, of one
    /// channel from its pixels in row-major order, level by level. With a [`Shape`] of several
    /// channels, the channels of each pixel are adjacent. [`Image::to_vec`] and
    /// [`Image::to_array`] return this layout.
    ///
    /// The values are copied once. [`Image::from_external`] takes a vector over instead.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// // Red, green and blue of two rows of three pixels.
    /// let rgb: Vec<u8> = vec![255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9, 40, 50, 60, 1, 2, 3];
    /// let (height, width, channels) = (2, 3, 3);
    /// let image = Image::from_slice(&session, Shape::new(height, width, channels), &rgb);
    /// assert_eq!(image.to_vec()?, rgb);
    /// let array = image.to_array::<ndarray::Ix3>()?;
    /// let (y, x, channel) = (1, 1, 2);
    /// assert_eq!((array[[y, x, channel]], rgb[(y * width + x) * channels + channel]), (60, 60));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn from_slice(session: &Session, extent: impl Into<Shape>, pixels: &[T]) -> Image<T> {
        let (call, shape) = (Call::of("from_slice"), extent.into());
        let made = check_shape(call, shape, T::TAG).and_then(|()| {
            if pixels.len() != shape.len() {
                let message = format!("{} values for {shape} pixels; {} are needed", pixels.len(), shape.len());
                return Err(Error::parameter(call, message));
            }
            copied(call, session, shape, &[pixels])
        });
        image_or_failure(session, shape, made)
    }

    /// An image from [`Pixels`] without a copy: the device reads them in place. If the program
    /// writes to a clone before they have been read, they are copied first.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mut pixels = session.pixels::<i32>(2, 2, 1)?;
    /// pixels.copy_from_slice(&[1, 2, 3, 4]);
    /// let image = Image::from_pixels(&session, pixels.clone());
    /// pixels[0] = 100; // of the image's next pixels
    /// assert_eq!(image.to_vec()?, [1, 2, 3, 4]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "asarray")]
    #[track_caller]
    pub fn from_pixels(session: &Session, pixels: Pixels<T>) -> Image<T> {
        let shape = pixels.shape();
        Image::from_handle(session.source(shape, T::TAG, pixels.into_buffer(), Call::of("from_pixels").site))
    }

    /// An image from an array of any strides, of shape `(height, width)` or `(height, width, channels)`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let grey = ndarray::array![[1u8, 2], [3, 4]];
    /// assert_eq!(Image::from_array(&session, grey.t()).to_vec()?, [1, 3, 2, 4]);
    /// let colour = ndarray::Array3::from_shape_fn((2, 2, 3), |(y, x, c)| (y + x + c) as u8);
    /// assert_eq!(Image::from_array(&session, colour.view()).to_array()?, colour);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "asarray")]
    #[track_caller]
    pub fn from_array<'a>(session: &Session, pixels: impl PlaneArray<'a, T>) -> Image<T> {
        array4(Call::of("from_array"), session, pixels.channels_last())
    }

    /// An image of one channel whose pixel in row `y` and column `x` is `f(y, x)`.
    #[doc(alias = "fromfunction")]
    #[track_caller]
    pub fn from_fn(session: &Session, height: usize, width: usize, mut f: impl FnMut(usize, usize) -> T) -> Image<T> {
        let call = Call::of("from_fn");
        let shape = Shape::new(height, width, 1);
        let fill = |buffer: &mut [u8]| {
            for (y, row) in buffer.chunks_exact_mut(width * size_of::<T>()).enumerate() {
                write(row, (0..width).map(|x| f(y, x)));
            }
        };
        image_or_failure(session, shape, source(call, session, shape, fill))
    }

    /// An image of `(height, width)` pixels, or a volume of `(depth, height, width)`, all zero (for
    /// a mask, all false). Pass the [`shape`](Image::shape) of another image for the same shape.
    #[track_caller]
    pub fn zeros(session: &Session, extent: impl Into<Shape>) -> Image<T> {
        filled(Call::of("zeros"), session, extent.into(), T::default())
    }

    /// An image of `(height, width)` pixels, or a volume of `(depth, height, width)`, all `value`.
    #[doc(alias = "full")]
    #[track_caller]
    pub fn constant(session: &Session, extent: impl Into<Shape>, value: T) -> Image<T> {
        filled(Call::of("constant"), session, extent.into(), value)
    }
}

fn filled<T: Element>(call: Call, session: &Session, shape: Shape, value: T) -> Image<T> {
    let made =
        check_shape(call, shape, T::TAG).map(|()| record(session, Op::Fill(value.stored()), &[], shape, call.site));
    image_or_failure(session, shape, made)
}

/// An image of parts of complete levels; on the device, if the device can take them now.
fn copied<T: Element>(call: Call, session: &Session, shape: Shape, parts: &[&[T]]) -> Result<Image<T>> {
    check_shape(call, shape, T::TAG)?;
    let (start, parts) = (Instant::now(), parts.iter().map(|part| cast_slice(part)).collect::<Vec<&[u8]>>());
    let label = WorkLabel::new();
    let level = shape.area() * shape.channels * size_of::<T>();
    let taken = session.taken(&parts, (level, shape.height), label).map_err(|source| session.at_host(call, source))?;
    if !taken.is_empty() {
        return Ok(Image::from_handle(session.source_on_device(shape, T::TAG, taken, (start, label, call.site))));
    }
    let fill = |mut buffer: &mut [u8]| {
        for from in &parts {
            session.workers().copy(from, buffer.split_off_mut(..from.len()).expect("room for all parts"));
        }
    };
    source(call, session, shape, fill)
}

/// Arrays that can become images: `(height, width)` or `(height, width, channels)`.
pub trait PlaneArray<'a, T> {
    #[doc(hidden)]
    fn channels_last(self) -> ArrayView4<'a, T>;
}

impl<'a, T> PlaneArray<'a, T> for ArrayView2<'a, T> {
    fn channels_last(self) -> ArrayView4<'a, T> {
        self.insert_axis(Axis(0)).insert_axis(Axis(3))
    }
}

impl<'a, T> PlaneArray<'a, T> for ArrayView3<'a, T> {
    fn channels_last(self) -> ArrayView4<'a, T> {
        self.insert_axis(Axis(0))
    }
}

/// Arrays that can become volumes: `(depth, height, width)` or `(depth, height, width, channels)`;
/// with a dynamic number of axes also `(height, width)`.
pub trait VolumeArray<'a, T> {
    /// The array as levels, rows, columns and channels; the number of axes if it does not match.
    #[doc(hidden)]
    fn channels_last(self) -> std::result::Result<ArrayView4<'a, T>, usize>;
}

impl<'a, T> VolumeArray<'a, T> for ArrayView3<'a, T> {
    fn channels_last(self) -> std::result::Result<ArrayView4<'a, T>, usize> {
        Ok(self.insert_axis(Axis(3)))
    }
}

impl<'a, T> VolumeArray<'a, T> for ArrayView4<'a, T> {
    fn channels_last(self) -> std::result::Result<ArrayView4<'a, T>, usize> {
        Ok(self)
    }
}

impl<'a, T> VolumeArray<'a, T> for ArrayViewD<'a, T> {
    fn channels_last(self) -> std::result::Result<ArrayView4<'a, T>, usize> {
        let axes = self.ndim();
        let array = match axes {
            2 => self.insert_axis(Axis(0)).insert_axis(Axis(3)),
            3 => self.insert_axis(Axis(3)),
            _ => self,
        };
        array.into_dimensionality().map_err(|_| axes)
    }
}

/// An image from an array of shape `(depth, height, width, channels)`.
pub(super) fn array4<'a, T: Element>(call: Call, session: &Session, a: ArrayView4<'a, T>) -> Image<T> {
    let (depth, height, width, channels) = a.dim();
    let shape = Shape::volume(depth, height, width, channels);
    // One part, or one for each level if these are apart.
    let levels = || (0..depth).map(|z| a.index_axis_move(Axis(0), z).to_slice()).collect();
    let parts: Option<Vec<&[T]>> = a.to_slice().map(|all| vec![all]).or_else(levels);
    let made = match parts {
        Some(parts) => copied(call, session, shape, &parts),
        None => source(call, session, shape, |buffer| write(buffer, a.iter().copied())),
    };
    image_or_failure(session, shape, made)
}

/// Writes values as bytes.
pub(super) fn write<T: Element>(to: &mut [u8], from: impl Iterator<Item = T>) {
    to.chunks_exact_mut(size_of::<T>()).zip(from).for_each(|(to, from)| to.copy_from_slice(bytes_of(&from)));
}

/// An image whose pixels `fill` writes to host memory as bytes, in row-major order.
pub(super) fn source<T: Element>(
    call: Call,
    session: &Session,
    shape: Shape,
    fill: impl FnOnce(&mut [u8]),
) -> Result<Image<T>> {
    check_shape(call, shape, T::TAG)?;
    let mut pixels = session.room(shape.len() * size_of::<T>()).map_err(|source| {
        let error = Error::Device {
            op: format!("{}{}", call.op, CallSuffix(call.site)),
            device: session.device_name(),
            source,
        };
        // Other ranks may have enough memory and would wait for this one.
        if session.ranks() > 1 {
            session.comm().abort(&error.to_string());
        }
        error
    })?;
    fill(pixels.bytes_mut());
    Ok(Image::from_handle(session.source(shape, T::TAG, pixels, call.site)))
}
