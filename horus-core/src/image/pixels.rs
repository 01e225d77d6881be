//! Pixel memory owned by the program, which the device accesses directly if possible.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use ndarray::{Array3, ArrayView3, ArrayView4, ArrayViewMut3, ArrayViewMut4, Axis};

use super::check_shape;
use crate::dtype::Element;
use crate::error::{Call, DeviceError, Result};
use crate::host::buffer::HostBuffer;
use crate::host::elements::{elements, elements_mut};
use crate::session::{DeferredSession, Session};
use crate::shape::Shape;

/// Memory for the pixels of an image, owned by the program: in row-major order, the channels of
/// each pixel adjacent. Dereferences to a slice of all values.
///
/// If the session computes on a GPU, [`Session::pixels`] returns page-locked memory.
/// [`Image::from_pixels`](super::Image::from_pixels), [`Image::read_into`](super::Image::read_into)
/// and [`Image::to_pixels`](super::Image::to_pixels) transfer it at the full speed of the bus,
/// without another copy on the host. On the CPU, images and `Pixels` share memory.
///
/// A clone, or an image made from a clone, shares the memory. A write to shared pixels copies them
/// first; a loop that drops its image before it writes the next pixels copies nothing. Pixels
/// outlive their session, and other sessions accept them.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let mut frame = session.pixels::<f32>(2, 3, 1)?;
/// let mut result = session.pixels::<f32>(2, 3, 1)?;
/// for i in 0..3 {
///     frame.fill(i as f32); // as a camera would
///     frame[0] = 10.0;
///     let image = Image::from_pixels(&session, frame.clone());
///     (image * 2.0).read_into(&mut result)?;
///     assert_eq!(result[..2], [20.0, 2.0 * i as f32]);
///     assert_eq!(result.view()[[1, 2, 0]], 2.0 * i as f32); // row, column, channel
/// }
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[derive(Clone)]
pub struct Pixels<T: Element> {
    shape: Shape,
    buffer: HostBuffer,
    /// The session that provided the memory before its device was known.
    undecided: Option<DeferredSession>,
    pixel: PhantomData<T>,
}

impl<T: Element> Pixels<T> {
    /// Wraps a buffer that holds the pixels of an image of this shape.
    pub(crate) fn over(shape: Shape, buffer: HostBuffer) -> Pixels<T> {
        debug_assert_eq!(buffer.len(), shape.len() * size_of::<T>());
        Pixels { shape, buffer, undecided: None, pixel: PhantomData }
    }

    pub(crate) fn into_buffer(self) -> HostBuffer {
        self.buffer
    }

    /// The memory, to be overwritten with the pixels of another image of this shape.
    pub(super) fn overwritten(&mut self) -> &mut HostBuffer {
        self.decide(false);
        &mut self.buffer
    }

    /// Moves the memory out, for a device that can compute there; [`Pixels::take_back`] returns it.
    pub(super) fn take_for_device(&mut self, session: &Session) -> Option<HostBuffer> {
        if self.undecided.is_some() || !self.is_page_locked() || !session.may_map() {
            return None;
        }
        self.buffer.bytes_to_overwrite();
        Some(std::mem::replace(&mut self.buffer, HostBuffer::zeroed(0)))
    }

    /// Puts back memory that fits, if [`Pixels::take_for_device`] moved it out.
    pub(super) fn take_back(&mut self, rooms: &mut Vec<HostBuffer>) {
        let bytes = self.shape.len() * size_of::<T>();
        if self.buffer.len() != bytes
            && let Some(at) = rooms.iter().position(|room| room.len() == bytes)
        {
            self.buffer = rooms.remove(at);
        }
    }

    /// Replaces memory that was lost in a failed evaluation.
    pub(super) fn repair(&mut self, session: &Session) -> Result<(), DeviceError> {
        let bytes = self.shape.len() * size_of::<T>();
        if self.buffer.len() != bytes {
            self.buffer = session.locked_room(bytes)?;
            self.buffer.bytes_mut().fill(0);
        }
        Ok(())
    }

    /// Replaces the memory once the session has chosen a device with better memory.
    fn decide(&mut self, kept: bool) {
        if let Some(undecided) = self.undecided.take_if(|undecided| undecided.is_over())
            && let Some(better) = undecided.replaced(&self.buffer, kept)
        {
            self.buffer = better;
        }
    }

    /// Levels, rows, columns and channels.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns `true` if a GPU accesses the memory directly; see [`Session::pixels`].
    pub fn is_page_locked(&self) -> bool {
        self.buffer.adopted().is_some()
    }

    /// The pixels as an array of shape `(height, width, channels)`.
    ///
    /// # Panics
    /// For a volume; use [`Pixels::view4`].
    pub fn view(&self) -> ArrayView3<'_, T> {
        self.one_level();
        self.view4().index_axis_move(Axis(0), 0)
    }

    /// The pixels as a mutable array of shape `(height, width, channels)`.
    ///
    /// # Panics
    /// For a volume; use [`Pixels::view4_mut`].
    pub fn view_mut(&mut self) -> ArrayViewMut3<'_, T> {
        self.one_level();
        self.view4_mut().index_axis_move(Axis(0), 0)
    }

    fn one_level(&self) {
        assert!(self.shape.depth == 1, "pixels of {} levels have four axes", self.shape.depth);
    }

    /// The pixels as an array of shape `(depth, height, width, channels)`.
    pub fn view4(&self) -> ArrayView4<'_, T> {
        let Shape { depth, height, width, channels, .. } = self.shape;
        ArrayView4::from_shape((depth, height, width, channels), &self[..]).expect("pixels fill their shape")
    }

    /// The pixels as a mutable array of shape `(depth, height, width, channels)`.
    pub fn view4_mut(&mut self) -> ArrayViewMut4<'_, T> {
        let Shape { depth, height, width, channels, .. } = self.shape;
        ArrayViewMut4::from_shape((depth, height, width, channels), self).expect("pixels fill their shape")
    }

    /// Copies the pixels to an array of shape `(height, width, channels)`.
    ///
    /// # Panics
    /// For a volume.
    pub fn to_array(&self) -> Array3<T> {
        self.view().to_owned()
    }
}

impl<T: Element> Deref for Pixels<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        elements(self.buffer.bytes())
    }
}

impl<T: Element> DerefMut for Pixels<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.decide(true);
        elements_mut(self.buffer.bytes_mut())
    }
}

impl<T: Element> fmt::Debug for Pixels<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_page_locked() { ", page-locked" } else { "" };
        write!(f, "Pixels({} {}{kind})", self.shape, T::TAG)
    }
}

impl Session {
    /// Allocates memory for the pixels of an image of this size, all zero (for a mask, all false).
    ///
    /// The memory is page-locked if the session computes on a GPU. If the machine cannot lock more
    /// pages, it is pageable, which is logged once. A session that has not chosen its device yet
    /// also returns pageable memory, which the first write after the first evaluation replaces by
    /// page-locked memory; `Builder::eager` chooses the device immediately.
    ///
    /// Locking pages takes longer than copying them: reuse `Pixels` for many images. Up to 2 GiB of
    /// dropped memory is reused for `Pixels` of the same size.
    ///
    /// # Errors
    /// If there are no pixels, or not enough memory.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mut pixels = session.pixels::<u8>(480, 640, 3)?;
    /// pixels.view_mut().slice_mut(ndarray::s![.., .., 1]).fill(200);
    /// let green = Image::from_pixels(&session, pixels);
    /// assert_eq!(green.pixel((0, 7, 9, 1))?, 200);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn pixels<T: Element>(&self, height: usize, width: usize, channels: usize) -> Result<Pixels<T>> {
        self.pixels_of(Shape::new(height, width, channels))
    }

    /// [`Session::pixels`] for an image or a volume of this shape.
    ///
    /// # Errors
    /// As [`Session::pixels`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mut pixels = session.pixels_of::<f32>(Shape::volume(42, 30, 40, 1))?;
    /// pixels.view4_mut()[[41, 29, 39, 0]] = 7.0;
    /// assert_eq!(Image::from_pixels(&session, pixels).max_value().get()?, 7.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn pixels_of<T: Element>(&self, shape: Shape) -> Result<Pixels<T>> {
        let call = Call::of("pixels");
        check_shape(call, shape, T::TAG)?;
        let room = self.locked_room(shape.len() * size_of::<T>());
        let mut buffer = room.map_err(|source| self.at_host(call, source))?;
        self.workers().clear(buffer.bytes_mut());
        Ok(Pixels { undecided: self.undecided(), ..Pixels::over(shape, buffer) })
    }
}
