//! Results on their way from a device to the host.

use std::ops::Range;

use super::{Device, Memory, check};
use crate::host::buffer::HostBuffer;
use crate::host::spare::Spare;
use crate::host::workers::Workers;
use horus_base::error::DeviceError;

/// Makes host memory of so many bytes, with unspecified contents.
pub type Room<'a> = dyn FnMut(usize) -> Result<HostBuffer, DeviceError> + 'a;

/// A download in flight; see [`Device::order_read`].
pub trait Landing: Send {
    /// Waits for the bytes, on any thread.
    ///
    /// # Errors
    /// What the driver reports, including errors of earlier launches.
    fn land(self: Box<Self>) -> Result<HostBuffer, DeviceError>;

    /// Waits until the first of the bytes can be copied; others may have to be computed still.
    ///
    /// # Errors
    /// As [`Landing::land`].
    fn begun(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Has memory for the bytes made by `room`, unless they have some: while they are still computed. What
    /// [`Landing::land`] returns then lies there.
    ///
    /// # Errors
    /// Those of `room`.
    fn make_room(&self, _room: &mut Room<'_>) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Waits for the bytes, on any thread, and appends them to `target`, which has room for them.
    ///
    /// # Errors
    /// As [`Landing::land`].
    fn land_on(self: Box<Self>, target: &mut Spare<'_>, workers: &Workers) -> Result<(), DeviceError> {
        target.append(workers, self.land()?.bytes());
        Ok(())
    }

    /// Waits for the bytes, on any thread, and puts them into `target`, a buffer of as many; its contents are unspecified
    /// after an error.
    ///
    /// # Errors
    /// As [`Landing::land`].
    fn land_in(self: Box<Self>, target: &mut HostBuffer, workers: &Workers) -> Result<(), DeviceError> {
        self.land_on(&mut Spare::over(target.overwritten()), workers)
    }
}

/// When the copy of a result begins that is sent to somebody who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Behind the launches before it, into memory of the session's pool.
    AtOnce,
    /// When somebody says where it goes: by [`Landing::land_on`] or [`Landing::land_in`].
    WhenLanded,
}

/// A download that is begun piece by piece; see [`Device::begin_download`].
pub trait Download: Send {
    /// Starts to copy these bytes of the block, all in the range that the download is of, to the host, where the range begins
    /// at byte 0; ordered after all launches so far. Until the
    /// download has landed, nobody writes to these bytes; launches may write to others of the block.
    ///
    /// # Errors
    /// What the driver reports; [`DeviceError::Argument`] if the bytes are not inside both blocks.
    fn add(&mut self, source: &Memory, bytes: &[Range<usize>]) -> Result<(), DeviceError>;

    /// Nothing more is added: dropping the block does not change what arrives.
    ///
    /// # Errors
    /// What the driver reports.
    fn finish(self: Box<Self>) -> Result<Box<dyn Landing>, DeviceError>;
}

/// A download that was complete immediately.
impl Landing for HostBuffer {
    fn land(self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        Ok(*self)
    }
}

/// Bytes that lie before those that a download is of.
fn before() -> DeviceError {
    DeviceError::Argument("bytes outside of what a download is of".into())
}

/// A download whose pieces are complete as soon as they are added.
pub(super) struct Blocking<'a, D: ?Sized> {
    pub(super) device: &'a D,
    /// The first byte of the block that it is of.
    pub(super) at: usize,
    pub(super) host: HostBuffer,
}

impl<D: Device + ?Sized> Download for Blocking<'_, D> {
    fn add(&mut self, source: &Memory, bytes: &[Range<usize>]) -> Result<(), DeviceError> {
        bytes.iter().try_for_each(|bytes| {
            let to = bytes.start.checked_sub(self.at).ok_or_else(before)?;
            let target = check::part(to, bytes.len(), self.host.len())?;
            self.device.read(source, bytes.start, &mut self.host.bytes_mut()[target])
        })
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Landing>, DeviceError> {
        Ok(Box::new(self.host))
    }
}
