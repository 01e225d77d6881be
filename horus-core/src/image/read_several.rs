//! Reading several images at once.

use super::read::{PixelTarget, put_pixels, put_values};
use super::{Image, ReadTarget};
use crate::dtype::Element;
use crate::error::{Call, DeviceError, Error, Result};
use crate::host::buffer::HostBuffer;
use crate::session::{Handle, RequestedValue, ResultTarget, Session};

/// Images with their targets, for [`Session::read_into`]: a pair, or a tuple, array or vector of
/// pairs. A pair is `(&image, &mut target)`, with a target as in [`Image::read_into`].
pub trait Reads<'a> {
    #[doc(hidden)]
    fn add_to(self, reads: &mut Vec<ReadRequest<'a>>, call: Call) -> Result<()>;
}

/// An image and its target.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "nobody has one")]
pub struct ReadRequest<'a> {
    value: &'a Handle,
    target: Box<dyn ResultTarget + 'a>,
}

impl<T: Element> ResultTarget for PixelTarget<'_, T> {
    fn lend(&mut self, session: &Session) -> Option<HostBuffer> {
        match self {
            PixelTarget::Pixels(pixels) => pixels.take_for_device(session),
            PixelTarget::Values(_) => None,
        }
    }

    fn take_back(&mut self, rooms: &mut Vec<HostBuffer>) {
        if let PixelTarget::Pixels(pixels) = self {
            pixels.take_back(rooms);
        }
    }

    fn put(&mut self, coming: RequestedValue<'_>) -> Result<(), DeviceError> {
        match self {
            PixelTarget::Pixels(pixels) => put_pixels(coming, pixels),
            PixelTarget::Values(values) => put_values(coming, values),
        }
    }

    fn repair(&mut self, session: &Session, failed: bool) -> Result<(), DeviceError> {
        let PixelTarget::Pixels(pixels) = self else { return Ok(()) };
        pixels.repair(session)?;
        if failed && T::bytes_mut(&mut []).is_none() {
            pixels.overwritten().bytes_to_overwrite().fill(0);
        }
        Ok(())
    }
}

impl<'a, T: Element, R: ReadTarget<T> + ?Sized> Reads<'a> for (&'a Image<T>, &'a mut R) {
    fn add_to(self, reads: &mut Vec<ReadRequest<'a>>, call: Call) -> Result<()> {
        let (image, target) = self;
        image.look()?;
        let target = Box::new(image.fitting(call, target.place())?);
        reads.push(ReadRequest { value: image.handle(), target });
        Ok(())
    }
}

impl<'a, R: Reads<'a>> Reads<'a> for Vec<R> {
    fn add_to(self, reads: &mut Vec<ReadRequest<'a>>, call: Call) -> Result<()> {
        self.into_iter().try_for_each(|read| read.add_to(reads, call))
    }
}

impl<'a, R: Reads<'a>, const N: usize> Reads<'a> for [R; N] {
    fn add_to(self, reads: &mut Vec<ReadRequest<'a>>, call: Call) -> Result<()> {
        self.into_iter().try_for_each(|read| read.add_to(reads, call))
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<'a, $($name: Reads<'a>),+> Reads<'a> for ($($name,)+) {
            fn add_to(self, reads: &mut Vec<ReadRequest<'a>>, call: Call) -> Result<()> {
                #[expect(non_snake_case, reason = "each value has the name of its type")]
                let ($($name,)+) = self;
                $($name.add_to(reads, call)?;)+
                Ok(())
            }
        }
    };
}
tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);

impl Session {
    /// Evaluates several images together and copies their pixels to existing memory, as
    /// [`Image::read_into`] does for one image. Shared operations are computed once, and downloads
    /// from a GPU are concurrent.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 3), &[1.0f32, 2.0, 3.0]);
    /// let (twice, above) = (&image * 2.0, image.gt(1.5));
    /// let (mut kept, mut mask) = (session.pixels(1, 3, 1)?, vec![false; 3]);
    /// session.read_into(((&twice, &mut kept), (&above, &mut mask)))?;
    /// assert_eq!((&kept[..], &mask[..]), (&[2.0, 4.0, 6.0][..], &[false, true, true][..]));
    /// assert_eq!(session.stats().evaluations, 1);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an image belongs to another session, or as [`Image::read_into`]. The contents of all
    /// targets are then unspecified.
    #[track_caller]
    pub fn read_into<'a>(&self, reads: impl Reads<'a>) -> Result<()> {
        let call = Call::of("read_into");
        let mut all = Vec::new();
        reads.add_to(&mut all, call)?;
        if all.iter().any(|read| !self.same(&read.value.session)) {
            return Err(Error::ForeignImage { op: call.op, site: call.site });
        }
        self.read_several(all.into_iter().map(|read| (read.value, read.target)).collect(), call)
    }
}
