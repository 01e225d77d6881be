//! Copies between host and device, which overlap kernels where that is faster.
//!
//! The device's stream ([`Core::stream`]) defines the order of operations. Two other streams carry copies with no
//! visible effect on that order. A download shares ownership of its source block until it is done; the device's stream
//! waits before it writes to the block ([`Core::order_write`]). An overlapped upload gets a new block. A download
//! without pinned memory, or with a target that is named later ([`DownloadStart::WithTarget`]), is made when a result
//! is read. Design: `docs/design/cuda.md`.
//! pinned memory directly, and to other memory through chunks.

mod bands;
mod on_demand;

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdeviceptr};
use horus_core::device::{DeviceMemory as _, DeviceQueue, DownloadStart, PendingDownload};
use horus_core::error::{DeviceError, MemoryBound};
use horus_core::host::buffer::{HostBuffer, HostMemory, Pool};
use horus_core::host::sequential_output::SequentialOutput;
use horus_core::host::workers::Workers;

use self::on_demand::DownloadTarget;
use crate::driver::{CudaEvent, CudaStream, check};
use crate::memory::{Core, CudaMemory};
use crate::pinned::{KEPT, MOST, Pinned, PinnedBlock, PinnedBlocks, PinnedLimits, PinnedPlace, PinnedPlaces};
use crate::staging::{CHUNK, DownloadBuffers, FEWEST, HostBytes, SMALL, UploadBuffers};

/// Most bytes that the driver's own copy reads into memory that is not page-locked: numbers.
const FEW: usize = 4096;

/// Fewer bytes are uploaded in the device's stream, because synchronising two streams takes longer.
const BESIDE: usize = 1 << 20;

/// The copies of one device.
#[derive(Debug)]
pub(crate) struct GpuTransfers {
    // Dropped in this order: the core last.
    uploads: Mutex<UploadBuffers>,
    downloads: Mutex<DownloadBuffers>,
    /// Carries copies to the device.
    up: OnceLock<CudaStream>,
    /// Carries copies to the host.
    down: OnceLock<CudaStream>,
    /// Idle streams of copies to pinned memory, each for one result at a time.
    idle: Mutex<Vec<CudaStream>>,
    /// Pinned buffers that copies to the device read, each with an event that passes when the copies are done.
    given: Mutex<Vec<(CudaEvent, HostBuffer)>>,
    source: HostBytes,
    /// Places for small results.
    places: Arc<PinnedPlaces>,
    /// Blocks requested by the program.
    program: Arc<PinnedBlocks<Pinned>>,
    pub(crate) workers: Workers,
    core: Arc<Core>,
}

/// The stream, created on first use.
fn stream(cell: &OnceLock<CudaStream>) -> Result<&CudaStream, DeviceError> {
    if let Some(stream) = cell.get() {
        return Ok(stream);
    }
    let made = CudaStream::new()?;
    Ok(cell.get_or_init(|| made))
}

/// The address of a pinned buffer.
pub(crate) fn pinned(buffer: &HostBuffer) -> Option<*mut c_void> {
    let memory = buffer.adopted()?.as_any();
    let block = memory.downcast_ref::<PinnedBlock<Pinned>>().map(PinnedBlock::address);
    let address = block.or_else(|| memory.downcast_ref::<PinnedPlace>().map(PinnedPlace::address));
    address.filter(|_| !buffer.is_empty())
}

impl GpuTransfers {
    pub(crate) fn new(core: &Arc<Core>, workers: Workers) -> Arc<GpuTransfers> {
        let source = HostBytes { core: Arc::clone(core), blocks: PinnedBlocks::new(PinnedLimits::of_copies(MOST)) };
        Arc::new(GpuTransfers {
            uploads: Mutex::new(UploadBuffers::new(source.clone())),
            downloads: Mutex::new(DownloadBuffers::new(source.clone())),
            up: OnceLock::new(),
            down: OnceLock::new(),
            idle: Mutex::default(),
            given: Mutex::default(),
            source,
            places: Arc::default(),
            program: PinnedBlocks::new(PinnedLimits::of_program(KEPT)),
            workers,
            core: Arc::clone(core),
        })
    }

    /// The work of pinning the chunks of both directions, for another thread. A first transfer that pinned them itself
    /// would take many times as long.
    pub(crate) fn pin_ahead(&self) -> impl FnOnce() + Send + 'static {
        let source = self.source.clone();
        move || {
            source.stock(CHUNK, FEWEST);
            source.stock(SMALL, 1);
            source.stock(CHUNK, FEWEST);
        }
    }

    /// Ends the pinning of chunks in advance.
    pub(crate) fn stop_pinning(&self) {
        self.source.blocks.close();
    }

    fn uploads(&self) -> MutexGuard<'_, UploadBuffers> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn downloads(&self) -> MutexGuard<'_, DownloadBuffers> {
        self.downloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies bytes to the device in the order of its stream.
    ///
    /// # Safety
    /// As for [`UploadBuffers::upload`].
    pub(crate) unsafe fn upload(&self, source: &[u8], target: CUdeviceptr) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { self.uploads().upload(&self.workers, &self.core.stream, source, target, vec![(0, 0, source.len())]) }
    }

    /// Pinned memory for pixels that will be uploaded, if there is any; otherwise memory from `pool`.
    pub(crate) fn allocate_upload_source(&self, bytes: usize, pool: &Arc<Pool>) -> Result<HostBuffer, DeviceError> {
        self.release_uploaded()?;
        match self.source.take(bytes) {
            Some(loan) if bytes > 0 => pool.try_adopt(Box::new(loan), bytes),
            _ => pool.try_allocate(bytes),
        }
    }

    /// Pinned memory for a small result, if there is any.
    pub(crate) fn place(&self, bytes: usize) -> Option<PinnedPlace> {
        self.places.take(bytes, &self.source)
    }

    /// Pinned memory for passing pixels, if it is worth its cost.
    pub(crate) fn take_pinned(&self, bytes: usize) -> Option<Box<dyn HostMemory>> {
        self.release_uploaded().inspect_err(|e| log::debug!("{e}: pixels go through other memory")).ok()?;
        let pin = |size| Pinned::touched_by(&self.workers, &self.core, size);
        let loan = self.source.blocks.take_if_frequent(bytes, pin).filter(|_| bytes > 0)?;
        Some(Box::new(loan))
    }

    /// Pinned memory for the program, as much as the machine allows.
    pub(crate) fn page_locked(&self, bytes: usize) -> Result<Box<dyn HostMemory>, DeviceError> {
        self.release_uploaded()?;
        let pin = |size| Pinned::touched_by(&self.workers, &self.core, size);
        match self.program.try_take(bytes, pin)? {
            Some(loan) => Ok(Box::new(loan)),
            None => Err(DeviceError::OutOfMemory { bytes, used: 0, bound: MemoryBound::Machine }),
        }
    }

    /// Releases the buffers that the GPU has read.
    pub(crate) fn release_uploaded(&self) -> Result<(), DeviceError> {
        self.core.context.bind()?;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        // Buffers stay if the driver cannot tell.
        let over: Vec<_> = given.extract_if(.., |(done, _)| done.passed().unwrap_or(false)).collect();
        drop(given);
        drop(over);
        Ok(())
    }

    /// Copies bytes into a block from byte `at`, where they must fit; returns when `source` may
    /// change.
    pub(crate) fn write(&self, source: &[u8], target: &mut CudaMemory, at: usize) -> Result<(), DeviceError> {
        self.write_parts(&[source], target, at)
    }

    /// [`GpuTransfers::write`] for consecutive parts.
    fn write_parts(&self, parts: &[&[u8]], target: &mut CudaMemory, at: usize) -> Result<(), DeviceError> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let staged = |mut to: CUdeviceptr, stream: &CudaStream| {
            let mut uploads = self.uploads();
            let mut copy = |part: &&[u8]| {
                // SAFETY: the block has room, and the device's stream makes or waits for the copy,
                // after which it is freed.
                unsafe { uploads.upload(&self.workers, stream, part, to, vec![(0, 0, part.len())]) }?;
                to += part.len() as u64;
                Ok(())
            };
            self.core.clock.note(DeviceQueue::Upload, stream, || parts.iter().try_for_each(&mut copy))
        };
        if self.is_overlap_worthwhile(bytes, target, at)? && self.upload_overlapped(bytes, target, staged)? {
            return Ok(());
        }
        self.core.order_write(target)?;
        staged(target.address() + at as u64, &self.core.stream)
    }

    /// A new block with a copy of consecutive parts; `None` if there are few bytes, or if more than half of `capacity`
    /// would be in use.
    pub(crate) fn take(&self, parts: &[&[u8]], capacity: usize) -> Result<Option<CudaMemory>, DeviceError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes < BESIDE || self.core.used().saturating_add(bytes) > capacity / 2 {
            return Ok(None);
        }
        let mut block = match self.core.allocate(bytes) {
            Err(DeviceError::OutOfMemory { .. }) => return Ok(None),
            block => block?,
        };
        self.write_parts(parts, &mut block, 0)?;
        Ok(Some(block))
    }

    /// Returns `true` if overlapping the copy with the kernels under way is faster.
    fn is_overlap_worthwhile(&self, bytes: usize, target: &CudaMemory, at: usize) -> Result<bool, DeviceError> {
        let whole = at == 0 && bytes == target.len();
        Ok(whole && bytes >= BESIDE && target.is_fresh() && !self.core.stream.idle()?)
    }

    /// Copies so many bytes while kernels run, into a block that replaces the block of `target`. Returns `false` if
    /// there is too little memory for another block.
    fn upload_overlapped(
        &self,
        bytes: usize,
        target: &mut CudaMemory,
        copy: impl FnOnce(CUdeviceptr, &CudaStream) -> Result<(), DeviceError>,
    ) -> Result<bool, DeviceError> {
        let up = stream(&self.up)?;
        let done = CudaEvent::new(false)?;
        let Some(block) = self.core.try_allocate_block(bytes, up) else { return Ok(false) };
        // The block was allocated in this stream, and is freed in the device's, which waits for the
        // copy.
        let copied = copy(block.address(), up);
        if let Err(e) = done.record(up).and_then(|()| self.core.stream.after(&done)) {
            // It is unknown when the block is free, so it is leaked.
            std::mem::forget(block);
            return Err(e);
        }
        copied?;
        target.move_to(block);
        Ok(true)
    }

    /// Copies bytes to the host and waits for them. The device must have as many there.
    pub(crate) fn read(&self, source: CUdeviceptr, target: &mut [u8]) -> Result<(), DeviceError> {
        let device = &self.core.stream;
        if target.len() <= FEW {
            // SAFETY: the caller holds the memory until this returns; a copy to memory that is not
            // page-locked has been made when the stream is idle.
            let copy =
                || unsafe { sys::cuMemcpyDtoHAsync_v2(target.as_mut_ptr().cast(), source, target.len(), device.0) };
            let code = self.core.clock.note(DeviceQueue::Download, device, copy);
            check(code, || format!("downloading {} bytes", target.len()))?;
            return device.synchronize();
        }
        let stream = if target.len() > SMALL {
            let (down, ready) = (stream(&self.down)?, CudaEvent::new(false)?);
            ready.record(device)?;
            down.after(&ready)?;
            down
        } else {
            device // the synchronisation of two streams takes longer than the copy
        };
        // SAFETY: the caller holds the memory until this returns, and the stream is behind the work
        // that writes it.
        let copy =
            || unsafe { self.downloads().download(&self.workers, stream, source, &mut SequentialOutput::over(target)) };
        self.core.clock.note(DeviceQueue::Download, stream, copy)
    }

    /// See [`horus_core::device::Staging::start_download`]; the block must hold the range.
    pub(crate) fn order(
        self: &Arc<GpuTransfers>,
        source: &CudaMemory,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: DownloadStart,
    ) -> Result<Box<dyn PendingDownload>, DeviceError> {
        let (core, bytes) = (&self.core, range.len());
        if let Some(host) = source.host_buffer().filter(|host| range == (0..host.len()) && bytes <= SMALL) {
            let done = CudaEvent::new(false)?;
            done.record(&core.stream)?;
            let (host, transfers) = (Some(host.clone()), Arc::clone(self));
            return Ok(Box::new(PinnedDownload { host, done: Arc::new(done), transfers }));
        }
        let from = source.address() + range.start as u64;
        if when == DownloadStart::WithTarget {
            let (host, piece) = (DownloadTarget::Pool(Arc::clone(pool)), on_demand::ReadyBytes::now(self, 0..bytes)?);
            return on_demand::download_on_demand(self, source.block(), from, bytes, host, vec![piece]);
        }
        if bytes == 0 {
            return Ok(Box::new(pool.try_allocate(0)?));
        }
        let Some(loan) = self.source.take(bytes) else {
            log::debug!("{bytes} bytes go to the host in chunks: no pinned memory is kept for so many");
            let mut host = pool.try_allocate(bytes)?;
            SequentialOutput::over(host.bytes_mut()).fault(&self.workers); // while kernels run
            let host = DownloadTarget::Buffer(host);
            let piece = on_demand::ReadyBytes::now(self, 0..bytes)?;
            return on_demand::download_on_demand(self, source.block(), from, bytes, host, vec![piece]);
        };
        let to = loan.address();
        let host = pool.try_adopt(Box::new(loan), bytes)?;
        // Synchronising two streams, or waking a thread, takes longer than a small copy.
        let (down, done) = if bytes <= SMALL {
            (&core.stream, CudaEvent::new(false)?)
        } else {
            let (down, ready) = (stream(&self.down)?, CudaEvent::new(false)?);
            ready.record(&core.stream)?;
            down.after(&ready)?;
            (down, CudaEvent::to_sleep_for()?)
        };
        // SAFETY: the pinned block has room; it and the source are held until `done` has passed.
        let copy = || unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, down.0) };
        let code = core.clock.note(DeviceQueue::Download, down, copy);
        // Also behind a copy that the driver rejected.
        if let Err(e) = done.record(down) {
            // It is unknown when they are free, so they are leaked.
            std::mem::forget((host, source.block()));
            return Err(e);
        }
        let done = Arc::new(done);
        core.register_download(source.block(), None, Arc::clone(&done));
        let landing = PinnedDownload { host: Some(host), done, transfers: Arc::clone(self) };
        check(code, || format!("downloading {bytes} bytes"))?;
        Ok(Box::new(landing))
    }
}

/// A copy under way into pinned memory, or a launch that writes there.
#[derive(Debug)]
struct PinnedDownload {
    /// The target; taken when the bytes have arrived.
    host: Option<HostBuffer>,
    done: Arc<CudaEvent>,
    transfers: Arc<GpuTransfers>,
}

impl PinnedDownload {
    fn wait_for_copy(&self) -> Result<(), DeviceError> {
        let bytes = self.host.as_ref().map_or(0, HostBuffer::len);
        self.transfers.core.context.bind()?;
        self.done.wait_for(|| format!("downloading {bytes} bytes"))
    }
}

impl PendingDownload for PinnedDownload {
    fn wait(mut self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        self.wait_for_copy()?;
        self.transfers.core.release_finished();
        self.host.take().ok_or_else(|| DeviceError::Internal("a download was finished twice".into()))
    }
}

impl Drop for PinnedDownload {
    fn drop(&mut self) {
        if self.host.is_some() && self.wait_for_copy().is_err() {
            // The GPU may still write to it, so it is leaked.
            std::mem::forget(self.host.take());
        }
    }
}
