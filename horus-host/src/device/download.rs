//! Downloads: results in transfer from a device to the host.

use std::ops::Range;

use super::{Device, Memory, check};
use crate::buffer::HostBuffer;
use crate::sequential_output::SequentialOutput;
use crate::workers::Workers;
use horus_base::error::DeviceError;

/// A function that allocates a number of bytes of host memory with unspecified contents.
pub type HostAllocator<'a> = dyn FnMut(usize) -> Result<HostBuffer, DeviceError> + 'a;

/// A download in flight; see [`Staging::start_download`](super::Staging::start_download).
pub trait PendingDownload: Send {
    /// Waits for the bytes, on any thread.
    ///
    /// # Errors
    /// Driver errors, including those of earlier launches.
    fn wait(self: Box<Self>) -> Result<HostBuffer, DeviceError>;

    /// Waits until the first bytes can be copied; others may still be computed.
    ///
    /// # Errors
    /// As [`PendingDownload::wait`].
    fn wait_until_started(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Allocates memory for the bytes by `room` while they are still being computed, unless they have memory.
    /// [`PendingDownload::wait`] then returns that memory.
    ///
    /// # Errors
    /// Errors of `room`.
    fn allocate_target(&self, _room: &mut HostAllocator<'_>) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Waits for the bytes on any thread, and appends them to `target`, whose capacity suffices.
    ///
    /// # Errors
    /// As [`PendingDownload::wait`].
    fn append_to(self: Box<Self>, target: &mut SequentialOutput<'_>, workers: &Workers) -> Result<(), DeviceError> {
        target.append(workers, self.wait()?.bytes());
        Ok(())
    }

    /// Waits for the bytes on any thread, and stores them in `target`, a buffer of their size. After an error the
    /// contents of `target` are unspecified.
    ///
    /// # Errors
    /// As [`PendingDownload::wait`].
    fn copy_into(self: Box<Self>, target: &mut HostBuffer, workers: &Workers) -> Result<(), DeviceError> {
        self.append_to(&mut SequentialOutput::over(target.bytes_to_overwrite()), workers)
    }
}

/// Time at which the copy of a requested result starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownloadStart {
    /// Immediately after the preceding launches, into memory of the session's pool.
    AtOnce,
    /// When its target is known: in [`PendingDownload::append_to`] or [`PendingDownload::copy_into`].
    WithTarget,
}

/// A download in pieces; see [`Staging::begin_download`](super::Staging::begin_download).
pub trait Download: Send {
    /// Starts to copy these bytes of the block, all within the download's range, to the host, where the range begins at
    /// byte 0. The copy is ordered after all launches so far. Until the download has completed, these bytes must not be
    /// written; launches may write other bytes of the block.
    ///
    /// # Errors
    /// Driver errors; [`DeviceError::Argument`] if the bytes are not inside both blocks.
    fn add(&mut self, source: &Memory, bytes: &[Range<usize>]) -> Result<(), DeviceError>;

    /// Ends the download: the block may be dropped without changing the result.
    ///
    /// # Errors
    /// Driver errors.
    fn finish(self: Box<Self>) -> Result<Box<dyn PendingDownload>, DeviceError>;
}

/// A download that completed immediately.
impl PendingDownload for HostBuffer {
    fn wait(self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        Ok(*self)
    }
}

/// The error for bytes outside the download's range.
fn out_of_range_error() -> DeviceError {
    DeviceError::Argument("bytes outside of what a download is of".into())
}

/// A download whose pieces are complete as soon as they are added.
pub(super) struct Blocking<'a, D: ?Sized> {
    pub(super) device: &'a D,
    /// First byte of the downloaded range of the block.
    pub(super) at: usize,
    pub(super) host: HostBuffer,
}

impl<D: Device + ?Sized> Download for Blocking<'_, D> {
    fn add(&mut self, source: &Memory, bytes: &[Range<usize>]) -> Result<(), DeviceError> {
        bytes.iter().try_for_each(|bytes| {
            let to = bytes.start.checked_sub(self.at).ok_or_else(out_of_range_error)?;
            let target = check::part(to, bytes.len(), self.host.len())?;
            self.device.read(source, bytes.start, &mut self.host.bytes_mut()[target])
        })
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn PendingDownload>, DeviceError> {
        Ok(Box::new(self.host))
    }
}
