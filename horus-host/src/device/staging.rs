//! Transfers between a device and the host that run concurrently with launches.

use std::ops::Range;
use std::sync::Arc;

use super::download::Blocking;
use super::{Device, Download, DownloadStart, Memory, PendingDownload, Ticket};
use crate::StridedCopy;
use crate::buffer::{HostBuffer, HostMemory, Pool};
use horus_base::error::DeviceError;

/// Transfers between a device and the host that run concurrently with launches, and host memory that the device
/// accesses fast. The default implementations are for a device with neither: transfers block, and host memory is
/// ordinary.
pub trait Staging: Device {
    /// Allocates host memory with unspecified contents, for pixels that other threads read ahead: the memory from which
    /// the device uploads fastest if available, otherwise memory from `pool`. May be called on any thread.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if host memory is exhausted.
    fn allocate_read_ahead(&self, bytes: usize, pool: &Arc<Pool>) -> Result<HostBuffer, DeviceError> {
        pool.try_allocate(bytes)
    }

    /// Allocates page-locked host memory, which the device accesses directly, with unspecified contents, as much as the
    /// machine allows; `None` if the device has no use for it. May be called on any thread.
    ///
    /// # Errors
    /// Driver errors if pages cannot be locked.
    fn page_locked(&self, _bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        Ok(None)
    }

    /// Page-locked host memory, which the device accesses directly, with unspecified contents, for pixels that are
    /// transferred once. Returned if such memory is unused, or if this size has been requested so often that locking
    /// pages pays off; otherwise pageable memory is faster in spite of slower copies. May be called on any thread.
    fn page_locked_for_transfer(&self, _bytes: usize) -> Option<Box<dyn HostMemory>> {
        None
    }

    /// Returns `true` if launches can use this host memory instead of the device's: [`Staging::map`] accepts it.
    fn maps(&self, _buffer: &HostBuffer) -> bool {
        false
    }

    /// Maps the buffer: launches read and write it in host memory, over the bus. Nothing else may write to the buffer
    /// meanwhile. If launches write to it, it must not be shared. The device keeps it alive for pending launches, even
    /// if the memory is dropped.
    ///
    /// # Errors
    /// The buffer itself if it cannot be mapped.
    fn map(&self, buffer: HostBuffer) -> Result<Memory, HostBuffer> {
        Err(buffer)
    }

    /// Waits for all launches so far, and returns the buffer of memory made by [`Staging::map`].
    ///
    /// # Errors
    /// Driver errors of earlier calls; [`DeviceError::Argument`] for any other memory.
    fn unmap(&self, _memory: Memory) -> Result<HostBuffer, DeviceError> {
        Err(DeviceError::Argument("memory that is not the host's cannot be given back to it".into()))
    }

    /// Allocates memory with unspecified contents for a small result that the host reads next: launches write it in host
    /// memory, each value once, and its download copies nothing. `None` if the device has no such memory.
    fn allocate_for_host(&self, _bytes: usize, _pool: &Arc<Pool>) -> Option<Memory> {
        None
    }

    /// Copies the program's pixels, the concatenated parts, to new device memory. Returns when the parts may be
    /// changed; `None` if the pixels should stay in host memory until a plan uses them. May be called on any thread.
    ///
    /// # Errors
    /// Driver errors.
    fn upload_parts(&self, _parts: &[&[u8]]) -> Result<Option<Memory>, DeviceError> {
        Ok(None)
    }

    /// [`Device::allocate`] for a block that [`Staging::begin_upload`] fills completely before anything else uses it:
    /// the copies are not ordered after the device's current work.
    ///
    /// # Errors
    /// As [`Device::allocate`].
    fn allocate_for_upload(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.allocate(bytes)
    }

    /// Starts to copy pieces of a buffer to a block, concurrently with launches. Only calls after
    /// [`Staging::wait_for_upload`] with the ticket and the block see them. Uploads execute in the order in which they
    /// are started. The device shares the buffer and the block's memory until the copy ends. Until the upload has
    /// arrived, these bytes of the block must not be read or written; launches may read others. The default
    /// implementation blocks.
    ///
    /// # Errors
    /// As [`Device::write`].
    fn begin_upload(
        &self,
        source: &HostBuffer,
        target: &mut Memory,
        pieces: &[StridedCopy],
    ) -> Result<Ticket, DeviceError> {
        if let Some(p) = pieces.iter().find(|p| !p.fits(source.len(), target.len())) {
            return Err(DeviceError::Argument(format!("a copy reaches beyond its buffers: {p:?}")));
        }
        for (from, to, bytes) in pieces.iter().flat_map(|p| p.runs()) {
            self.write(&source.bytes()[from..from + bytes], target, to)?;
        }
        Ok(Ticket::OVER)
    }

    /// Completes an upload: later calls see its bytes in `target`, the block with which it was started. The host need
    /// not block: an order between queues suffices.
    ///
    /// # Errors
    /// Driver errors; [`DeviceError::Argument`] if `target` is another block.
    fn wait_for_upload(&self, _ticket: Ticket, _target: &mut Memory) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Starts a download of `range`, bytes of a block, in pieces. The target is memory from `pool`, unless the download
    /// gets another when it completes. Never called on a device with unified memory. The default implementation blocks.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] if the pool is exhausted.
    fn begin_download<'a>(
        &'a self,
        range: Range<usize>,
        pool: &Arc<Pool>,
        _when: DownloadStart,
    ) -> Result<Box<dyn Download + 'a>, DeviceError> {
        Ok(Box::new(Blocking { device: self, at: range.start, host: pool.try_allocate(range.len())? }))
    }

    /// Starts to copy a range of bytes of device memory to host memory from `pool`, ordered after all launches so far.
    /// [With a target](DownloadStart::WithTarget), the copy may wait until the target is known. Later calls do not
    /// change the result, nor does dropping the memory. Never called on a device with unified memory. The default
    /// implementation blocks.
    ///
    /// # Errors
    /// Driver errors; [`DeviceError::OutOfMemory`] if the pool is exhausted.
    fn start_download(
        &self,
        source: &Memory,
        range: Range<usize>,
        pool: &Arc<Pool>,
        _when: DownloadStart,
    ) -> Result<Box<dyn PendingDownload>, DeviceError> {
        let mut host = pool.try_allocate(range.len())?;
        self.read(source, range.start, host.bytes_mut())?;
        Ok(Box::new(host))
    }
}
