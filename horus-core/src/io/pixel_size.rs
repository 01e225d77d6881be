//! The size of an image's pixels, the names of its channels, and its alpha.

use horus_base::lengths::PixelSize;

use super::{Alpha, on_root};
use crate::dtype::Element;
use crate::error::Result;
use crate::image::Image;
use crate::session::{Attributes, Handle, Session};

/// Sets the size of the pixels of a value.
pub(super) fn sized(handle: &Handle, size: Option<PixelSize>) -> Handle {
    let mut handle = handle.clone();
    handle.attributes = Attributes::with_pixel(handle.attributes.as_ref(), size);
    handle
}

/// The size of an image's pixels. It comes from the OME-Zarr store, the OME-TIFF file or the TIFF
/// file (with a resolution in centimetres) that the image was read from, or from
/// [`with_pixel_size`]. Results of operations inherit it, also if the image is cropped, mirrored,
/// turned or resized. It is unknown for operations on images with different sizes of pixels, for
/// reductions, and for pixels with oblique sides.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// use horus::io::{PixelSize, pixel_size, with_pixel_size};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::constant(&session, (40, 60), 1.0f32);
/// assert_eq!(pixel_size(&image), None);
/// let image = with_pixel_size(&image, PixelSize::of([None, Some(0.5), Some(0.25)]));
/// let small = image.gauss(1.0).resize(20, 15, Resampling::Area);
/// let size = pixel_size(&small).expect("it has one");
/// assert_eq!((size.rows, size.columns), (1.0, 1.0));
/// # Ok::<(), horus_core::error::Error>(())
/// ```
pub fn pixel_size<T: Element>(image: &Image<T>) -> Option<PixelSize> {
    image.handle().attributes.as_ref()?.pixel()
}

/// Sets or removes the size of the pixels; the pixels are unchanged. Every rank passes the same
/// size.
pub fn with_pixel_size<T: Element>(image: &Image<T>, size: Option<PixelSize>) -> Image<T> {
    Image::from_handle(sized(image.handle(), size))
}

/// The names of an image's channels, known on rank 0. See
/// [`AnyImage::channel_names`](super::AnyImage::channel_names).
pub fn channel_names<T: Element>(image: &Image<T>) -> &[String] {
    Attributes::names(image.handle().attributes.as_ref())
}

/// The kind of alpha in the last channel of an image, if any. See
/// [`AnyImage::alpha`](super::AnyImage::alpha).
pub fn alpha<T: Element>(image: &Image<T>) -> Option<Alpha> {
    Attributes::alpha(image.handle().attributes.as_ref()).filter(|_| image.channels() > 1)
}

/// Declares the last channel as alpha, or removes this declaration. See
/// [`AnyImage::with_alpha`](super::AnyImage::with_alpha). Every rank passes the same.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// use horus::io::{Alpha, alpha, with_alpha};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let red = Image::from_slice(&session, Shape::new(1, 1, 4), &[255u8, 0, 0, 128]);
/// let red = with_alpha(&red, Some(Alpha::Unassociated));
/// assert_eq!(alpha(&red), Some(Alpha::Unassociated));
/// assert_eq!(red.luminance().to_vec()?, [0.299]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
pub fn with_alpha<T: Element>(image: &Image<T>, alpha: Option<Alpha>) -> Image<T> {
    Image::from_handle(with_last(image.handle(), alpha))
}

/// Sets the kind of alpha of a value's last channel.
pub(super) fn with_last(handle: &Handle, alpha: Option<Alpha>) -> Handle {
    let mut handle = handle.clone();
    handle.attributes = Attributes::with_alpha(handle.attributes.as_ref(), alpha);
    handle
}

/// Calls `find` on rank 0 and returns its size of pixels on every rank; `None` also if `find`
/// fails.
///
/// # Errors
/// If the ranks cannot communicate.
pub fn pixel_size_of(
    session: &Session,
    find: impl FnOnce() -> Result<Option<PixelSize>, String>,
) -> Result<Option<PixelSize>> {
    Ok(on_root(session, "reading the size of pixels", find)?.unwrap_or_default())
}
