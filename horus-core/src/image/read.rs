//! Reading pixels back.

use std::sync::Arc;

use super::{Image, PixelIndex, Pixels};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, DeviceError, Error, Result};
use crate::host::buffer::HostBuffer;
use crate::host::elements::{elements, of_stored};
use crate::host::sequential_output::{SequentialOutput, Unwritten};
use crate::plan::ResultDelivery;
use crate::session::{Handle, RequestedValue};

/// Reading pixels back. These methods, [`Value::get`](super::Value::get) and saving start an
/// evaluation.
///
/// | | new memory | existing memory |
/// | --- | --- | --- |
/// | on every rank | `to_vec`, `to_array`, `to_volume_array`, `to_pixels` | `read_into`, several at once by `Session::read_into` |
/// | on rank 0 alone | `gather` | `gather_into` |
///
/// Existing memory is faster, [`Pixels`] above all: the system must first map the pages of new
/// memory.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (2, 2), &[1u8, 2, 3, 4]);
/// let colour = Image::stack(&session, [&image, &(&image * 10)], Axis::Channels);
/// assert_eq!(image.to_array::<ndarray::Ix2>()?[[1, 0]], 3);
/// assert_eq!(colour.to_vec()?, [1, 10, 2, 20, 3, 30, 4, 40]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// Returns all pixels in row-major order, the channels of each pixel adjacent; a volume level
    /// by level. If the pixels do not fit in memory twice, they are computed region by region.
    ///
    /// # Errors
    /// The error that the image carries; also if the evaluation fails on the device or between
    /// ranks, or if memory is insufficient.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.vec(Call::of("to_vec"))
    }

    pub(super) fn vec(&self, call: Call) -> Result<Vec<T>> {
        /// A result above this fraction of the memory is not stored twice, if possible.
        const LARGE: usize = 8;
        let (shape, session) = (self.shape(), self.session());
        // An image that carries an error may have any shape.
        let bytes = self.handle().check().map_or(0, |()| shape.len().saturating_mul(size_of::<T>()));
        let _counted = session.reserve_for_program(bytes, call)?;
        let large = bytes > 0 && session.ranks() == 1 && bytes >= session.host_limit() / LARGE;
        if large && session.does_not_fit(&[self.handle()], 1)? {
            let mut values = vec![T::Stored::ZERO; shape.len()];
            session.stream_into(self.handle(), call, bytemuck::cast_slice_mut(&mut values))?;
            return Ok(of_stored(values));
        }
        everyone(session.read_back(self.handle(), false, call, |coming| {
            let mut room = Unwritten::<T::Stored>::new(shape.len())?;
            if !coming.is_here() {
                room.fault(coming.workers()); // while the kernels run
            }
            room.written(|spare| coming.append_to(spare)).map(of_stored)
        }))
    }

    /// Returns all pixels in [`Pixels`], which the device writes directly if it can. On the CPU the
    /// image shares them until they are written to.
    ///
    /// # Errors
    /// As [`Image::to_vec`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_fn(&session, 2, 3, |y, x| (y * 3 + x) as u16);
    /// let mut pixels = (&image + 1).to_pixels()?;
    /// assert_eq!(pixels[..], [1, 2, 3, 4, 5, 6]);
    /// pixels.view_mut()[[1, 0, 0]] = 0;
    /// let next = Image::from_pixels(&session, pixels);
    /// assert_eq!(next.sum().get()?, 17.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn to_pixels(&self) -> Result<Pixels<T>> {
        everyone(self.new_pixels(false, Call::of("to_pixels")))
    }

    /// [`Image::to_pixels`] on rank 0 only. Other ranks get `None` and nothing is copied to them.
    /// All ranks call it.
    ///
    /// # Errors
    /// As [`Image::to_vec`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let blurred = samples::worms(&session, 40, 60).gauss(1.0);
    /// if let Some(pixels) = blurred.gather()? {
    ///     assert_eq!((session.rank(), pixels.len()), (0, 40 * 60));
    /// }
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn gather(&self) -> Result<Option<Pixels<T>>> {
        self.new_pixels(true, Call::of("gather"))
    }

    fn new_pixels(&self, root: bool, call: Call) -> Result<Option<Pixels<T>>> {
        let (shape, session) = (self.shape(), self.session());
        session.read_back(self.handle(), root, call, |coming| {
            let buffer = if coming.is_here() {
                coming.shared()?
            } else {
                let mut room = session.locked_room(shape.len() * size_of::<T>())?;
                coming.put_into(&mut room)?;
                room
            };
            Ok(Pixels::over(shape, buffer))
        })
    }

    /// Copies all pixels to existing memory: [`Pixels`] of the image's shape, or a slice or vector
    /// of as many values. No memory is allocated for the pixels. After an error the contents are
    /// unspecified.
    ///
    /// # Errors
    /// If the image does not fit exactly, or as [`Image::to_vec`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 2), &[1.0f32, 2.0, 3.0, 4.0]);
    /// let (mut kept, mut pixels) = (vec![0.0; 4], session.pixels(2, 2, 1)?);
    /// for i in 1..4 {
    ///     (&image * i as f32).read_into(&mut kept)?;
    ///     (&image * i as f32).read_into(&mut pixels)?;
    ///     assert_eq!((kept[3], pixels[3]), (4.0 * i as f32, 4.0 * i as f32));
    /// }
    /// let wrong = image.read_into(&mut kept[..3]).unwrap_err().to_string();
    /// assert!(wrong.contains("the image has 2x2 pixels, and there is room for 3 values"), "{wrong}");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn read_into(&self, target: &mut (impl ReadTarget<T> + ?Sized)) -> Result<()> {
        let call = Call::of("read_into");
        self.look()?;
        everyone(self.put(false, call, Some(self.fitting(call, target.place())?)))
    }

    /// [`Image::read_into`] on rank 0 only; returns `true` on rank 0. On other ranks the target is
    /// ignored, and may be an empty slice. All ranks call it.
    ///
    /// # Errors
    /// As [`Image::read_into`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let blurred = samples::worms(&session, 40, 60).gauss(1.0);
    /// let mut kept = vec![0.0; if session.rank() == 0 { 40 * 60 } else { 0 }];
    /// assert_eq!(blurred.gather_into(&mut kept)?, session.rank() == 0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn gather_into(&self, target: &mut (impl ReadTarget<T> + ?Sized)) -> Result<bool> {
        let call = Call::of("gather_into");
        self.look()?;
        let mine = self.session().rank() == 0;
        let place = if mine { Some(self.fitting(call, target.place())?) } else { None };
        self.put(true, call, place).map(|put| put.is_some())
    }

    /// Checks that the target is as large as the image, and returns it.
    pub(super) fn fitting<'a>(&self, call: Call, place: PixelTarget<'a, T>) -> Result<PixelTarget<'a, T>> {
        let shape = self.shape();
        let room = match &place {
            PixelTarget::Pixels(pixels) if pixels.shape() != shape => format!("{} pixels", pixels.shape()),
            PixelTarget::Values(values) if values.len() != shape.len() => format!("{} values", values.len()),
            _ => return Ok(place),
        };
        let message = format!("the image has {shape} pixels, and there is room for {room}");
        self.session().refused(Error::parameter(call, message))
    }

    fn put(&self, root: bool, call: Call, place: Option<PixelTarget<'_, T>>) -> Result<Option<()>> {
        let (session, handle) = (self.session(), self.handle());
        match place {
            Some(PixelTarget::Pixels(pixels)) => {
                let mut rooms: Vec<_> = pixels.take_for_device(session).into_iter().collect();
                let read = session.read_back_into(handle, root, call, &mut rooms, |coming, rooms| {
                    pixels.take_back(rooms);
                    put_pixels(coming, pixels)
                });
                pixels.take_back(&mut rooms);
                let repaired = pixels.repair(session).map_err(|source| session.at_host(call, source));
                read.and_then(|read| repaired.map(|()| read))
            }
            Some(PixelTarget::Values(values)) => {
                session.read_back(handle, root, call, |coming| put_values(coming, values))
            }
            None => session.read_back(handle, root, call, |_| {
                Err(DeviceError::Internal("a result came to a rank that has no place for it".into()))
            }),
        }
    }

    /// Reads the pixel at a position: `(y, x)` in an image or `(z, y, x)` in a volume, in the first
    /// channel, or `(z, y, x, channel)`, as returned by [`Image::argmax`].
    ///
    /// Each call copies the whole image to the host: for many pixels call [`Image::to_vec`] once.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 3), &[1u8, 2, 3, 4, 5, 6]);
    /// assert_eq!(image.pixel((1, 0))?, 4);
    /// let volume = Image::from_slice(&session, (2, 1, 3), &[1u8, 2, 3, 4, 5, 6]);
    /// assert_eq!(volume.pixel((1, 0, 2))?, 6);
    /// let largest = volume.argmax().get()?.expect("it has numbers");
    /// assert_eq!((largest, volume.pixel(largest)?), ([1, 0, 2, 0], 6));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the position lies outside, if it is `(y, x)` and the image is a volume, or as
    /// [`Image::to_vec`].
    #[track_caller]
    pub fn pixel(&self, at: impl Into<PixelIndex>) -> Result<T> {
        let (at, call) = (at.into(), Call::of("pixel"));
        self.look()?;
        let shape = self.shape();
        let wrong = |message| Err(Error::parameter(call, message));
        let [z, y, x, channel] = match at {
            PixelIndex::Plane(y, x) if shape.depth == 1 => [0, y, x, 0],
            PixelIndex::Plane(..) => {
                return wrong(format!("the image has {} levels; a position in it is `(z, y, x)`", shape.depth));
            }
            PixelIndex::Volume(z, y, x) => [z, y, x, 0],
            PixelIndex::Channel(at) => at,
        };
        if z >= shape.depth || y >= shape.height || x >= shape.width || channel >= shape.channels {
            return wrong(format!("level {z}, row {y}, column {x}, channel {channel} is outside {shape}"));
        }
        let pixels = fetch(self.handle())?;
        Ok(elements::<T>(pixels.bytes())[((z * shape.height + y) * shape.width + x) * shape.channels + channel])
    }

    /// Fails with the error that the image carries, which precedes any other.
    pub(crate) fn look(&self) -> Result<()> {
        if self.handle().failed() { fetch(self.handle()).map(drop) } else { Ok(()) }
    }
}

/// Evaluates a value and copies it to every rank.
pub(super) fn fetch(handle: &Handle) -> Result<Arc<HostBuffer>> {
    let pixels = handle.session.fetch(handle, ResultDelivery::Everyone)?;
    Ok(pixels.expect("a value fetched for everyone is everywhere"))
}

/// Unwraps a value that every rank reads.
pub(super) fn everyone<R>(read: Result<Option<R>>) -> Result<R> {
    Ok(read?.expect("a value read by everyone is everywhere"))
}

pub(super) fn put_pixels<T: Element>(coming: RequestedValue<'_>, pixels: &mut Pixels<T>) -> Result<(), DeviceError> {
    let buffer = pixels.overwritten();
    // Memory given to the device is lost: only the new pixels remain.
    if coming.is_here() && (buffer.adopted().is_none() || buffer.is_empty()) {
        *buffer = coming.shared()?;
        return Ok(());
    }
    coming.put_into(buffer).inspect_err(|_| {
        // The present contents may not be valid pixels of this type.
        if T::bytes_mut(&mut []).is_none() {
            buffer.bytes_to_overwrite().fill(0);
        }
    })
}

pub(super) fn put_values<T: Element>(coming: RequestedValue<'_>, values: &mut [T]) -> Result<(), DeviceError> {
    if let Some(bytes) = T::bytes_mut(values) {
        return coming.append_to(&mut SequentialOutput::over(bytes));
    }
    let landed = coming.shared()?;
    values.copy_from_slice(elements(landed.bytes()));
    Ok(())
}

/// Targets of [`Image::read_into`]: [`Pixels`], slices and vectors.
pub trait ReadTarget<T: Element> {
    #[doc(hidden)]
    fn place(&mut self) -> PixelTarget<'_, T>;
}

/// Memory that pixels are copied to.
#[doc(hidden)]
#[derive(Debug)]
pub enum PixelTarget<'a, T: Element> {
    /// Memory that the device can write directly.
    Pixels(&'a mut Pixels<T>),
    /// Any other memory.
    Values(&'a mut [T]),
}

impl<T: Element> ReadTarget<T> for Pixels<T> {
    fn place(&mut self) -> PixelTarget<'_, T> {
        PixelTarget::Pixels(self)
    }
}

impl<T: Element> ReadTarget<T> for [T] {
    fn place(&mut self) -> PixelTarget<'_, T> {
        PixelTarget::Values(self)
    }
}

impl<T: Element> ReadTarget<T> for Vec<T> {
    fn place(&mut self) -> PixelTarget<'_, T> {
        PixelTarget::Values(self)
    }
}

impl<T: Element, const N: usize> ReadTarget<T> for [T; N] {
    fn place(&mut self) -> PixelTarget<'_, T> {
        PixelTarget::Values(self)
    }
}
