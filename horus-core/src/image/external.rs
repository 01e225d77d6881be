//! Images in memory of other libraries, and export of images to them.

use std::time::Instant;

use super::{Image, check_shape, image_or_failure};
use crate::device::WorkLabel;
use crate::dtype::{DType, Element, are_truths};
use crate::error::{Call, Error, Result};
use crate::host::external::{DeviceArray, External};
use crate::session::Session;
use crate::shape::Shape;

/// Sharing memory with other libraries.
impl<T: Element> Image<T> {
    /// An image of external pixels, without a copy on the host: the CPU reads them in place, and a
    /// GPU uploads them from there. They are contiguous, level by level and row by row, with the
    /// channels of a pixel adjacent; for a mask, bytes 0 and 1. They are released when nothing
    /// reads them any more.
    ///
    /// ```
    /// # use horus_core::{cpu::device::CpuDevice, prelude::*};
    /// # mod horus { pub use horus_core::host::external as types; }
    /// use horus::types::External;
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let pixels = vec![1.0f32, 2.0, 3.0, 4.0]; // or a file that is mapped
    /// let image = Image::<f32>::from_external(&session, Shape::new(2, 2, 1), External::of(pixels));
    /// assert_eq!((image * 2.0).to_vec()?, [2.0, 4.0, 6.0, 8.0]);
    /// let short = Image::<f32>::from_external(&session, Shape::new(2, 3, 1), External::of(vec![0u8; 23]));
    /// assert!(short.check().unwrap_err().to_string().contains("23 bytes for 2x3 pixels"));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// It is an error if the bytes have another length, are misaligned for `T`, or are not 0 and 1
    /// for a mask.
    #[doc(alias = "from_dlpack")]
    #[track_caller]
    pub fn from_external(session: &Session, shape: Shape, pixels: External) -> Image<T> {
        let call = Call::of("from_external");
        image_or_failure(session, shape, external(session, shape, pixels, call))
    }

    /// An image of pixels that another library owns in the memory of the session's GPU. They are
    /// copied, which starts now, or read in place. The layout is as in [`Image::from_external`].
    /// The session's device is chosen now, unless it is chosen already.
    ///
    /// # Errors
    /// If the session does not compute on one GPU, or the memory is on another GPU, too short or
    /// too long.
    #[track_caller]
    pub fn from_device_array(session: &Session, shape: Shape, pixels: &DeviceArray, copied: bool) -> Result<Image<T>> {
        let call = Call::of("from_device_array");
        check_shape(call, shape, T::TAG)?;
        fits::<T>(shape, pixels.bytes(), pixels.address(), call)?;
        if session.device().is_none() {
            session.settle_device()?;
        }
        Ok(Image::from_handle(session.source_of_device(shape, T::TAG, pixels, copied, call)?))
    }

    /// Evaluates the image and exports its pixels on the session's GPU to another library. Work
    /// that is queued later on `stream` (a CUDA stream, or 1 or 2 for a default stream) sees
    /// complete pixels, and may write to arrays that the image was computed from. Without a stream
    /// the pixels are complete on return. They exist as long as the array's owner, and must not be
    /// written to, because the image shares them. The layout is as in [`Image::from_external`].
    ///
    /// # Errors
    /// If the session does not compute on one GPU, else as [`Image::to_vec`].
    #[track_caller]
    pub fn to_device_array(&self, stream: Option<u64>) -> Result<DeviceArray> {
        self.session().device_array(self.handle(), stream, Call::of("to_device_array"))
    }
}

fn fits<T: Element>(shape: Shape, bytes: usize, address: u64, call: Call) -> Result<()> {
    if bytes != shape.len() * size_of::<T>() {
        let needed = shape.len() * size_of::<T>();
        let message = format!("{bytes} bytes for {shape} pixels of {}; {needed} are needed", T::TAG);
        return Err(Error::parameter(call, message));
    }
    if !address.is_multiple_of(align_of::<T>() as u64) {
        return Err(Error::parameter(call, format!("memory at {address:#x} is not aligned for {}", T::TAG)));
    }
    Ok(())
}

fn external<T: Element>(session: &Session, shape: Shape, pixels: External, call: Call) -> Result<Image<T>> {
    check_shape(call, shape, T::TAG)?;
    let bytes = pixels.bytes();
    fits::<T>(shape, bytes.len(), bytes.as_ptr() as usize as u64, call)?;
    if T::TAG == DType::Bool && !are_truths(bytes) {
        return Err(Error::parameter(call, "a mask has bytes other than 0 and 1"));
    }
    let (start, label) = (Instant::now(), WorkLabel::new());
    let level = shape.area() * shape.channels * size_of::<T>();
    let taken =
        session.taken(&[bytes], (level, shape.height), label).map_err(|source| session.at_host(call, source))?;
    Ok(Image::from_handle(match taken.is_empty() {
        false => session.source_on_device(shape, T::TAG, taken, (start, label, call.site)),
        true => session.source(shape, T::TAG, session.external(pixels), call.site),
    }))
}
