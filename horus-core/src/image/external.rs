//! Images in external memory, and memory of images for other libraries.

use std::time::Instant;

use super::{Image, check_shape, image_or_failure};
use crate::device::WorkLabel;
use crate::dtype::{DType, Element, are_truths};
use crate::error::{Call, Error, Result};
use crate::host::external::{DeviceArray, External};
use crate::session::Session;
use crate::shape::Shape;

/// Memory of other libraries, or for them.
impl<T: Element> Image<T> {
    /// An image of external pixels, without a copy on the host: the CPU reads them in place, and a
    /// GPU uploads them from there. Contiguous, level by level and row by row, the channels of a pixel beside each other; for a
    /// mask, bytes 0 and 1. They are released when nothing reads them any more.
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
    /// Bytes of another length, misaligned for `T`, or not truth values are an error.
    #[doc(alias = "from_dlpack")]
    #[track_caller]
    pub fn from_external(session: &Session, shape: Shape, pixels: External) -> Image<T> {
        let call = Call::of("from_external");
        image_or_failure(session, shape, external(session, shape, pixels, call))
    }

    /// An image of pixels in the memory of the session's GPU owned by another library: from a copy,
    /// which is started now, or in place. Otherwise as [`Image::from_external`]; for a mask, all bytes are 0 or 1. The device is
    /// chosen now, unless chosen already.
    ///
    /// # Errors
    /// If the session does not compute on one GPU, or the memory is not that GPU's, too short or
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

    /// Evaluates the image and exports its pixels on the session's GPU to another library: work that
    /// is given later to `stream`, a CUDA stream or a default stream (1 and 2), finds them complete,
    /// and may write to arrays that the image was computed from; without a stream they are complete
    /// on return. They stay as long as the array's
    /// owner is held, and must not be written: the image shares them. Contiguous, as [`Image::from_external`] takes them;
    /// for a mask, bytes 0 and 1.
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
    let levels: Vec<&[u8]> = bytes.chunks(shape.area() * shape.channels * size_of::<T>()).collect();
    let taken = session.taken(&levels, shape.height, label).map_err(|source| session.at_host(call, source))?;
    Ok(Image::from_handle(match taken.is_empty() {
        false => session.source_on_device(shape, T::TAG, taken, (start, label, call.site)),
        true => session.source(shape, T::TAG, session.external(pixels), call.site),
    }))
}
