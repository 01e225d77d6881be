//! Copies between host and device, beside kernels where that pays.
//!
//! The order of the device is that of its stream ([`Core::stream`]). Two other streams carry copies, and these are the
//! reasons why nobody can tell:
//!
//! - **To the host** ([`Transfers::order`]). The copy waits for an event behind all that was launched before, so it reads
//!   what those left. What is launched later does not wait for it, but for two things: whatever writes to the block that is
//!   read lets the device's stream wait for the copy first ([`Core::settle`]); and the block is not freed before the copy is
//!   done, because the copy owns a share of it ([`Core::reading`]), which is given up when the copy has been seen to be
//!   done ([`Core::reap`]), or where the device's stream waits for it. The pinned block belongs to the landing, and goes
//!   back to its pool when the copy is done and nobody needs the pixels any more.
//! - **To the device** ([`Transfers::write`]). Memory comes in the order of the device's stream: behind kernels that may
//!   still use it. A copy beside them needs memory of its own, so it allocates in its own stream, copies, and lets the
//!   device's stream wait for that; whatever is launched later comes after it. The block that was there had never been
//!   touched, and goes back where it came from.
//!
//! Pixels that a program gives may lie in pinned memory from the beginning ([`Transfers::room`]): the GPU reads them there,
//! and the device has a share of the buffer until it has ([`Transfers::give`]). Whoever writes to the buffer meanwhile
//! writes to a copy, as with any buffer that is shared.
//!
//! Where there is no pinned block for what is read ([`Blocks::take`]), or somebody will say where it goes
//! ([`Transfers::hold`]), the copy is made when it lands: until then it owns its share of the block, and whatever writes to
//! the block, or needs memory, makes it land first. To pinned memory the GPU copies by itself, to any other in chunks.

mod bands;
mod later;

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdeviceptr};
use horus_core::device::{DeviceMemory as _, Landing, Lane};
use horus_core::error::{DeviceError, MemoryBound};
use horus_core::host::buffer::{HostBuffer, HostMemory, Pool};
use horus_core::host::spare::Spare;
use horus_core::host::workers::Workers;

use self::later::Room;
use crate::driver::{Event, Stream, check};
use crate::memory::{Core, CudaMemory};
use crate::pinned::{Blocks, KEPT, Loan, MOST, Pinned, Rules};
use crate::staging::{CHUNK, Downloads, FEWEST, HostBytes, SMALL, Uploads};

/// Fewer bytes go up in the device's stream: they take less time than the order of two streams.
const BESIDE: usize = 1 << 20;

/// The copies of one device.
#[derive(Debug)]
pub(crate) struct Transfers {
    // Dropped in this order: the core last.
    uploads: Mutex<Uploads>,
    downloads: Mutex<Downloads>,
    /// Carries copies to the device.
    up: OnceLock<Stream>,
    /// Carries copies to the host.
    down: OnceLock<Stream>,
    /// Carry copies to pinned memory, each for one result at a time.
    idle: Mutex<Vec<Stream>>,
    /// Pinned buffers that copies to the device read, and when those are done.
    given: Mutex<Vec<(Event, HostBuffer)>>,
    source: HostBytes,
    /// What the program has asked for.
    program: Arc<Blocks<Pinned>>,
    pub(crate) workers: Workers,
    core: Arc<Core>,
}

/// A stream that is made when it is first needed.
fn stream(cell: &OnceLock<Stream>) -> Result<&Stream, DeviceError> {
    if let Some(stream) = cell.get() {
        return Ok(stream);
    }
    let made = Stream::new()?;
    Ok(cell.get_or_init(|| made))
}

/// Where a buffer begins that the GPU reads and writes by itself.
pub(crate) fn pinned(buffer: &HostBuffer) -> Option<*mut c_void> {
    let loan = buffer.adopted()?.as_any().downcast_ref::<Loan<Pinned>>()?;
    Some(loan.address()).filter(|_| !buffer.is_empty())
}

impl Transfers {
    pub(crate) fn new(core: &Arc<Core>, workers: Workers) -> Arc<Transfers> {
        let source = HostBytes { core: Arc::clone(core), blocks: Blocks::new(Rules::of_copies(MOST)) };
        Arc::new(Transfers {
            uploads: Mutex::new(Uploads::new(source.clone())),
            downloads: Mutex::new(Downloads::new(source.clone())),
            up: OnceLock::new(),
            down: OnceLock::new(),
            idle: Mutex::default(),
            given: Mutex::default(),
            source,
            program: Blocks::new(Rules::of_program(KEPT)),
            workers,
            core: Arc::clone(core),
        })
    }

    /// What pins the chunks of both directions, on another thread while the program does other things: the first transfer
    /// would take many times as long if it pinned them itself.
    pub(crate) fn pin_ahead(&self) -> impl FnOnce() + Send + 'static {
        let source = self.source.clone();
        move || {
            source.stock(CHUNK, FEWEST);
            source.stock(SMALL, 1);
            source.stock(CHUNK, FEWEST);
        }
    }

    /// Ends what pins chunks ahead.
    pub(crate) fn stop_pinning(&self) {
        self.source.blocks.close();
    }

    fn uploads(&self) -> MutexGuard<'_, Uploads> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn downloads(&self) -> MutexGuard<'_, Downloads> {
        self.downloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies bytes to the device in the order of its stream.
    ///
    /// # Safety
    /// As [`Uploads::upload`].
    pub(crate) unsafe fn upload(&self, source: &[u8], target: CUdeviceptr) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { self.uploads().upload(&self.workers, &self.core.stream, source, target) }
    }

    /// Pinned memory for pixels that will go to the device, if there is any; else memory from `pool`.
    pub(crate) fn room(&self, bytes: usize, pool: &Arc<Pool>) -> Result<HostBuffer, DeviceError> {
        self.let_go()?;
        match self.source.take(bytes) {
            Some(loan) if bytes > 0 => pool.try_adopt(Box::new(loan), bytes),
            _ => pool.try_allocate(bytes),
        }
    }

    /// Pinned memory for pixels that pass once, if that pays.
    pub(crate) fn lent(&self, bytes: usize) -> Option<Box<dyn HostMemory>> {
        self.let_go().inspect_err(|e| log::debug!("{e}: pixels go through other memory")).ok()?;
        let pin = |size| Pinned::touched_by(&self.workers, &self.core, size);
        let loan = self.source.blocks.lend(bytes, pin).filter(|_| bytes > 0)?;
        Some(Box::new(loan))
    }

    /// Pinned memory for the program, as much as the machine allows.
    pub(crate) fn page_locked(&self, bytes: usize) -> Result<Box<dyn HostMemory>, DeviceError> {
        self.let_go()?;
        let pin = |size| Pinned::touched_by(&self.workers, &self.core, size);
        match self.program.try_take(bytes, pin)? {
            Some(loan) => Ok(Box::new(loan)),
            None => Err(DeviceError::OutOfMemory { bytes, used: 0, bound: MemoryBound::Machine }),
        }
    }

    /// Lets go of the buffers that the GPU has read.
    pub(crate) fn let_go(&self) -> Result<(), DeviceError> {
        self.core.context.bind()?;
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the driver cannot tell, they stay.
        let over: Vec<_> = given.extract_if(.., |(done, _)| done.passed().unwrap_or(false)).collect();
        drop(given);
        drop(over);
        Ok(())
    }

    /// Copies a range of a buffer into a block from byte `at`, where it fits. If the buffer is pinned the GPU reads it as it
    /// is, and this does not wait for that: the device has a share of the buffer until then.
    pub(crate) fn give(
        &self,
        source: &HostBuffer,
        range: Range<usize>,
        target: &mut CudaMemory,
        at: usize,
    ) -> Result<(), DeviceError> {
        let part = &source.bytes()[range];
        if pinned(source).is_none() || part.is_empty() {
            return self.write(part, target, at);
        }
        self.let_go()?;
        if self.pays_beside(part.len(), target, at)? {
            let direct = |to, stream: &Stream| self.read_by_gpu(source, part, to, stream);
            if self.beside(part.len(), target, direct)? {
                return Ok(());
            }
        }
        self.core.settle(target)?;
        self.read_by_gpu(source, part, target.address() + at as u64, &self.core.stream)
    }

    /// Lets the GPU copy a part of a pinned buffer, which is held until it has.
    fn read_by_gpu(
        &self,
        source: &HostBuffer,
        part: &[u8],
        to: CUdeviceptr,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let (bytes, done) = (part.len(), Event::new(false)?);
        let share = source.clone();
        // SAFETY: the part lies in the buffer, which is pinned, and held until `done` has passed: nobody writes to it or gives
        // it away meanwhile. The target has room until the stream is past the copy: it is freed in the order of the stream.
        let copy = || unsafe { sys::cuMemcpyHtoDAsync_v2(to, part.as_ptr().cast(), bytes, stream.0) };
        let code = self.core.clock.note(Lane::Upload, stream, copy);
        // Also behind a copy that the driver refused.
        if let Err(e) = done.record(stream) {
            // Nobody can tell when the GPU has read it: it stays for good.
            std::mem::forget(share);
            return Err(e);
        }
        self.given.lock().unwrap_or_else(PoisonError::into_inner).push((done, share));
        check(code, || format!("uploading {bytes} bytes"))
    }

    /// Copies bytes into a block from byte `at`, where they fit; returns when `source` may change.
    pub(crate) fn write(&self, source: &[u8], target: &mut CudaMemory, at: usize) -> Result<(), DeviceError> {
        self.write_parts(&[source], target, at)
    }

    /// [`Transfers::write`] of parts that follow each other in the block.
    fn write_parts(&self, parts: &[&[u8]], target: &mut CudaMemory, at: usize) -> Result<(), DeviceError> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let staged = |mut to: CUdeviceptr, stream: &Stream| {
            let mut uploads = self.uploads();
            let mut copy = |part: &&[u8]| {
                // SAFETY: the block has room, and the device's stream does or waits for the copy, after which it is freed.
                unsafe { uploads.upload(&self.workers, stream, part, to) }?;
                to += part.len() as u64;
                Ok(())
            };
            self.core.clock.note(Lane::Upload, stream, || parts.iter().try_for_each(&mut copy))
        };
        if self.pays_beside(bytes, target, at)? && self.beside(bytes, target, staged)? {
            return Ok(());
        }
        self.core.settle(target)?;
        staged(target.address() + at as u64, &self.core.stream)
    }

    /// A new block with a copy of parts that follow each other, unless there are few bytes or images need the room: more
    /// than half of the `capacity` for images would be in use.
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

    /// Whether a copy is made beside the kernels under way.
    fn pays_beside(&self, bytes: usize, target: &CudaMemory, at: usize) -> Result<bool, DeviceError> {
        let whole = at == 0 && bytes == target.len();
        Ok(whole && bytes >= BESIDE && target.is_fresh() && !self.core.stream.idle()?)
    }

    /// Makes a copy of so many bytes beside the kernels under way, into a block that takes the place of `target`'s. Whether
    /// it did: not if there is no room for another.
    fn beside(
        &self,
        bytes: usize,
        target: &mut CudaMemory,
        copy: impl FnOnce(CUdeviceptr, &Stream) -> Result<(), DeviceError>,
    ) -> Result<bool, DeviceError> {
        let up = stream(&self.up)?;
        let done = Event::new(false)?;
        let Some(block) = self.core.another(bytes, up) else { return Ok(false) };
        // The block was allocated in this stream, and is freed in the device's, which waits for the copy.
        let copied = copy(block.address(), up);
        if let Err(e) = done.record(up).and_then(|()| self.core.stream.after(&done)) {
            // Nobody can tell when it is free: it stays for good.
            std::mem::forget(block);
            return Err(e);
        }
        copied?;
        target.move_to(block);
        Ok(true)
    }

    /// Copies bytes to the host, and waits for them. The device holds as many there.
    pub(crate) fn read(&self, source: CUdeviceptr, target: &mut [u8]) -> Result<(), DeviceError> {
        let device = &self.core.stream;
        let stream = if target.len() > SMALL {
            let (down, ready) = (stream(&self.down)?, Event::new(false)?);
            ready.record(device)?;
            down.after(&ready)?;
            down
        } else {
            device // where the order of two streams takes longer than the copy
        };
        // SAFETY: the caller holds the memory until this returns, and the stream is behind what writes it.
        let copy = || unsafe { self.downloads().download(&self.workers, stream, source, &mut Spare::over(target)) };
        self.core.clock.note(Lane::Download, stream, copy)
    }

    /// See [`horus_core::device::Device::order_read`]; the block holds as many bytes there.
    pub(crate) fn order(
        self: &Arc<Transfers>,
        source: &CudaMemory,
        at: usize,
        bytes: usize,
        pool: &Arc<Pool>,
    ) -> Result<Box<dyn Landing>, DeviceError> {
        if bytes == 0 {
            return Ok(Box::new(pool.try_allocate(0)?));
        }
        let core = &self.core;
        let from = source.address() + at as u64;
        let Some(loan) = self.source.take(bytes) else {
            log::debug!("{bytes} bytes go to the host in chunks: no pinned memory is kept for so many");
            let mut host = pool.try_allocate(bytes)?;
            Spare::over(host.bytes_mut()).fault(&self.workers); // while kernels run
            let host = Room::There(host);
            let piece = later::Piece::now(self, 0..bytes)?;
            return later::landing(self, source.block(), from, bytes, host, vec![piece]);
        };
        let to = loan.address();
        let host = pool.try_adopt(Box::new(loan), bytes)?;
        let down = stream(&self.down)?;
        let (ready, done) = (Event::new(false)?, Event::to_sleep_for()?);
        ready.record(&core.stream)?;
        down.after(&ready)?;
        // SAFETY: the pinned block has room; it and the source are held until `done` has passed.
        let copy = || unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, down.0) };
        let code = core.clock.note(Lane::Download, down, copy);
        // Also behind a copy that the driver refused.
        if let Err(e) = done.record(down) {
            // Nobody can tell when they are free: they stay for good.
            std::mem::forget((host, source.block()));
            return Err(e);
        }
        let done = Arc::new(done);
        core.reading(source.block(), None, Arc::clone(&done));
        let landing = Flying { host: Some(host), done, transfers: Arc::clone(self) };
        check(code, || format!("downloading {bytes} bytes"))?;
        Ok(Box::new(landing))
    }

    /// See [`horus_core::device::Device::hold`]; the block holds as many bytes there.
    pub(crate) fn hold(
        self: &Arc<Transfers>,
        source: &CudaMemory,
        at: usize,
        bytes: usize,
        pool: &Arc<Pool>,
    ) -> Result<Box<dyn Landing>, DeviceError> {
        let (from, piece) = (source.address() + at as u64, later::Piece::now(self, 0..bytes)?);
        later::landing(self, source.block(), from, bytes, Room::Of(Arc::clone(pool)), vec![piece])
    }
}

/// A copy under way into pinned memory.
#[derive(Debug)]
struct Flying {
    /// Where it goes; taken when it is there.
    host: Option<HostBuffer>,
    done: Arc<Event>,
    transfers: Arc<Transfers>,
}

impl Flying {
    fn wait(&self) -> Result<(), DeviceError> {
        let bytes = self.host.as_ref().map_or(0, HostBuffer::len);
        self.transfers.core.context.bind()?;
        self.done.wait_for(|| format!("downloading {bytes} bytes"))
    }
}

impl Landing for Flying {
    fn land(mut self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        self.wait()?;
        self.transfers.core.reap();
        self.host.take().ok_or_else(|| DeviceError::Internal("a download was finished twice".into()))
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        if self.host.is_some() && self.wait().is_err() {
            // The GPU may write to it for ever.
            std::mem::forget(self.host.take());
        }
    }
}
