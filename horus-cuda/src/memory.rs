//! Device memory from the driver's stream-ordered pool.

mod foreign;
mod owners;
mod usage;

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdeviceptr, CUresult};
use horus_core::device::DeviceMemory;
use horus_core::error::{DeviceError, MemoryBound};
use horus_core::host::buffer::HostBuffer;
use horus_core::host::external::Owner;
use horus_core::settings::GPU_MEMORY;

use crate::clock::GpuClock;
use crate::driver::{CallersContext, CudaContext, CudaEvent, CudaStream, check, during};

use self::usage::AllocatedBytes;

/// Context and stream shared by everything of a device; dropped with the last buffer.
#[derive(Debug)]
pub(crate) struct Core {
    // Dropped in this order.
    pub(crate) clock: GpuClock,
    foreign_owners: Mutex<ForeignOwners>,
    /// The event by which streams are ordered: recorded and waited for while it is locked.
    now: Mutex<CudaEvent>,
    pub(crate) stream: CudaStream,
    pub(crate) context: CudaContext,
    /// `true` if the driver has stream-ordered pools on this device.
    pooled: bool,
    /// Most bytes that may be allocated; `None` for all of the GPU's memory.
    limit: Option<usize>,
    /// Bytes allocated.
    used: AllocatedBytes,
    /// Exchanges under way in another stream.
    exchanges: Mutex<Vec<GpuExchange>>,
    /// Copies to the host under way in another stream.
    downloads: Mutex<Vec<GpuDownload>>,
    /// Copies to the host that have not begun.
    deferred: Mutex<Vec<Weak<dyn DeferredDownload>>>,
    /// `true` if launches read memory in place that work of another library's own stream may write next.
    watched: AtomicBool,
}

/// An owner that is only kept alive.
type MemoryOwner = Box<dyn Any + Send>;

/// Owners of foreign memory (the host's or another library's) that launches used.
#[derive(Debug, Default)]
struct ForeignOwners {
    /// Each with an event that passes when its launches are done, in the order of the stream.
    in_use: VecDeque<(CudaEvent, MemoryOwner)>,
    /// Arrays of other libraries whose streams do not wait for the launches yet.
    arrays: Vec<MemoryOwner>,
    /// Events for reuse.
    spare: Vec<CudaEvent>,
}

/// A copy to the host under way. It shares ownership of its source until the copy is known to be done, or the device's
/// stream waits for it.
#[derive(Debug)]
struct GpuDownload {
    /// Kept alive, and compared for identity.
    block: Arc<GpuBlock>,
    /// The bytes that are read; `None` for all.
    bytes: Option<Vec<Range<usize>>>,
    done: Arc<CudaEvent>,
}

impl GpuDownload {
    /// Returns `true` if the copy reads any of these bytes of this block; `None` stands for all
    /// bytes.
    fn overlaps(&self, block: &Arc<GpuBlock>, bytes: Option<&[Range<usize>]>) -> bool {
        let overlap = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        Arc::ptr_eq(&self.block, block)
            && match (&self.bytes, bytes) {
                (Some(read), Some(written)) => read.iter().any(|r| written.iter().any(|w| overlap(r, w))),
                _ => true,
            }
    }
}

/// A copy to the host that is made on demand. It shares ownership of its source.
pub(crate) trait DeferredDownload: Send + Sync + fmt::Debug {
    /// Returns `true` if the copy has not been made and reads this block.
    fn reads(&self, block: &Arc<GpuBlock>) -> bool;
    /// Makes the copy now and releases the source. Waiting for the copy returns its error.
    fn complete(&self);
}

/// An exchange under way. It owns the blocks that it reads and writes. A block returns to the driver with its last
/// owner; the exchange releases its share only after the device's stream waits for `done`.
#[derive(Debug)]
pub(crate) struct GpuExchange {
    pub(crate) ticket: u64,
    /// The blocks that are read and written, except those freed meanwhile.
    pub(crate) blocks: Vec<Arc<GpuBlock>>,
    /// Addresses of the written blocks, in the given order.
    pub(crate) writes: Vec<CUdeviceptr>,
    /// Tables that its copies read.
    pub(crate) tables: Vec<Arc<CudaMemory>>,
    /// Passes when the exchange is done.
    pub(crate) done: CudaEvent,
}

impl Core {
    pub(crate) fn new(context: CudaContext, limit: Option<usize>) -> Result<Core, DeviceError> {
        let stream = CudaStream::new()?;
        let attribute = sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        let pooled = context.attribute(attribute)? != 0;
        if pooled {
            // SAFETY: a device that the driver named.
            let pool = unsafe { result::device::get_default_mem_pool(context.device) };
            let pool = during(pool, || "finding the memory pool".into())?;
            let set = |attribute, mut value: u64| {
                // SAFETY: both attributes are integers of at most 64 bits; the pool is the device's
                // own.
                check(unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut value).cast()) }, || {
                    "setting up the memory pool".into()
                })
            };
            use sys::CUmemPool_attribute_enum as A;
            // Freed blocks stay in the pool: returning them to the system costs more than a kernel.
            set(A::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)?;
            // A copy to the device that overlaps kernels must not get memory that makes it wait for those kernels.
            set(A::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0)?;
        }
        Ok(Core {
            clock: GpuClock::default(),
            stream,
            context,
            pooled,
            limit,
            used: AllocatedBytes::default(),
            exchanges: Mutex::default(),
            downloads: Mutex::default(),
            foreign_owners: Mutex::default(),
            now: Mutex::new(CudaEvent::new(false)?),
            deferred: Mutex::default(),
            watched: AtomicBool::new(false),
        })
    }

    /// The limit that the user set.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    fn try_allocate(&self, bytes: usize, stream: &CudaStream) -> Result<CUdeviceptr, DriverError> {
        // SAFETY: the context is current.
        unsafe { if self.pooled { result::malloc_async(stream.0, bytes) } else { result::malloc_sync(bytes) } }
    }

    /// New memory, ordered after everything in the stream.
    pub(crate) fn allocate(self: &Arc<Core>, bytes: usize) -> Result<CudaMemory, DeviceError> {
        self.context.bind()?;
        self.release_finished();
        if bytes == 0 {
            return Ok(CudaMemory { block: Arc::new(GpuBlock::new(self, 0)), bytes });
        }
        let used = match self.used.add(bytes) {
            Ok(used) => used,
            Err(used) => return Err(self.out_of_memory(bytes, used)?),
        };
        let result = self.allocate_within_limit(bytes, used);
        if result.is_err() {
            self.used.subtract(bytes);
        }
        Ok(CudaMemory { block: Arc::new(GpuBlock::new(self, result?)), bytes })
    }

    /// Allocates `bytes` when `used` are in use.
    fn allocate_within_limit(&self, bytes: usize, used: usize) -> Result<CUdeviceptr, DeviceError> {
        if let Some(limit) = self.limit
            && used.saturating_add(bytes) > limit
        {
            let bound = MemoryBound::Setting { name: GPU_MEMORY.name, bytes: limit };
            return Err(DeviceError::OutOfMemory { bytes, used, bound });
        }
        const FULL: DriverError = DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let mut at = self.try_allocate(bytes, &self.stream);
        if at == Err(FULL) {
            // Finished copies to the host release their blocks, and merged fragments of the pool may suffice.
            self.deferred().iter().for_each(|d| d.complete());
            self.finish_reading()?;
            self.stream.synchronize()?;
            self.trim();
            at = self.try_allocate(bytes, &self.stream);
        }
        if at == Err(FULL) {
            return Err(self.out_of_memory(bytes, used)?);
        }
        during(at, || format!("allocating {bytes} bytes"))
    }

    /// The error that the GPU cannot allocate `bytes` when this program uses `used`.
    fn out_of_memory(&self, bytes: usize, used: usize) -> Result<DeviceError, DeviceError> {
        let (free, total) = self.context.memory()?;
        Ok(DeviceError::OutOfMemory { bytes, used, bound: MemoryBound::Gpu { free, total } })
    }

    /// Exchanges under way.
    pub(crate) fn lock_exchanges(&self) -> MutexGuard<'_, Vec<GpuExchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> MutexGuard<'_, CudaEvent> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_downloads(&self) -> MutexGuard<'_, Vec<GpuDownload>> {
        self.downloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The copies that have not begun and whose results are still wanted.
    fn deferred(&self) -> Vec<Arc<dyn DeferredDownload>> {
        let mut deferred = self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
        deferred.retain(|d| d.strong_count() > 0);
        deferred.iter().filter_map(Weak::upgrade).collect()
    }

    /// Holds a block for a copy of these bytes (`None` for all) to the host in another stream until
    /// `done` has passed.
    pub(crate) fn register_download(
        &self,
        block: Arc<GpuBlock>,
        bytes: Option<Vec<Range<usize>>>,
        done: Arc<CudaEvent>,
    ) {
        self.lock_downloads().push(GpuDownload { block, bytes, done });
    }

    /// Registers a copy that is made on demand.
    pub(crate) fn defer(&self, copy: Weak<dyn DeferredDownload>) {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner).push(copy);
    }

    /// Orders a write to a block behind the pending copies of it to the host. Called before anything in the stream
    /// writes to a block.
    pub(crate) fn order_write(&self, memory: &CudaMemory) -> Result<(), DeviceError> {
        self.order_write_of(memory, None)
    }

    /// [`Core::order_write`] for a write to these bytes only, if any are given.
    pub(crate) fn order_write_of(
        &self,
        memory: &CudaMemory,
        bytes: Option<&[Range<usize>]>,
    ) -> Result<(), DeviceError> {
        memory.touch();
        self.lock_downloads()
            .iter()
            .filter(|r| r.overlaps(&memory.block, bytes))
            .try_for_each(|r| self.stream.after(&r.done))?;
        self.deferred().iter().filter(|d| d.reads(&memory.block)).for_each(|d| d.complete());
        Ok(())
    }

    /// Makes the stream wait for all copies to the host under way, so that they own no more memory.
    pub(crate) fn finish_reading(&self) -> Result<(), DeviceError> {
        let readings = std::mem::take(&mut *self.lock_downloads());
        let mut readings = readings.into_iter();
        while let Some(reading) = readings.next() {
            if let Err(e) = self.stream.after(&reading.done) {
                self.lock_downloads().extend(std::iter::once(reading).chain(readings));
                return Err(e);
            }
        }
        Ok(())
    }

    /// Memory that belongs to `stream` until the device's stream waits for it; `None` if there is too little.
    pub(crate) fn allocate_in(self: &Arc<Core>, bytes: usize, stream: &CudaStream) -> Option<CudaMemory> {
        let block = self.try_allocate_block(bytes, stream)?;
        // Cannot overflow: the memory was allocated.
        let _ = self.used.add(bytes);
        Some(CudaMemory { block, bytes })
    }

    /// A block that belongs to `stream` until the device's stream waits for it; `None` if there is too little memory.
    pub(crate) fn try_allocate_block(self: &Arc<Core>, bytes: usize, stream: &CudaStream) -> Option<Arc<GpuBlock>> {
        let within = |limit: usize| self.used.now().saturating_add(bytes) <= limit;
        if !self.pooled || !self.limit.is_none_or(within) {
            return None;
        }
        self.try_allocate(bytes, stream).ok().map(|at| Arc::new(GpuBlock::new(self, at)))
    }
}

/// A block of the driver's memory, freed with its last owner in the order of the device's stream; or memory of the host
/// or another library, owned until the stream has passed its last use.
#[derive(Debug)]
pub(crate) struct GpuBlock {
    core: Arc<Core>,
    at: CUdeviceptr,
    /// The host buffer, if the block is mapped host memory.
    mapped: Option<HostBuffer>,
    /// The owner, if the memory is another library's.
    owner: Option<Owner>,
    /// `true` once any write to it was enqueued.
    touched: AtomicBool,
}

impl GpuBlock {
    fn new(core: &Arc<Core>, at: CUdeviceptr) -> GpuBlock {
        GpuBlock { core: Arc::clone(core), at, mapped: None, owner: None, touched: AtomicBool::new(false) }
    }

    /// The device address.
    pub(crate) fn address(&self) -> CUdeviceptr {
        self.at
    }
}

impl Drop for GpuBlock {
    fn drop(&mut self) {
        if let Some(buffer) = self.mapped.take() {
            return self.core.retain_owner(Box::new(buffer));
        }
        if let Some(owner) = self.owner.take() {
            return self.core.retain_array(Box::new(owner));
        }
        let _context = CallersContext::keep();
        if self.at == 0 || self.core.context.bind().is_err() {
            return;
        }
        // SAFETY: allocated in the same way and owned by nobody else: exchanges and copies in other
        // streams do not use it, or the stream waits for them. Freeing is ordered after the
        // stream's work (without pools, the driver waits for it). A failure here is an earlier
        // asynchronous error, which the next call reports.
        unsafe {
            if self.core.pooled {
                sys::cuMemFreeAsync(self.at, self.core.stream.0);
            } else {
                sys::cuMemFree_v2(self.at);
            }
        }
    }
}

/// Device memory of an image, a table or a message.
#[derive(Debug)]
pub(crate) struct CudaMemory {
    block: Arc<GpuBlock>,
    bytes: usize,
}

impl CudaMemory {
    /// The device address.
    pub(crate) fn address(&self) -> CUdeviceptr {
        self.block.at
    }

    /// Returns `true` if nothing has written to the block and nobody else owns it.
    pub(crate) fn is_fresh(&self) -> bool {
        Arc::strong_count(&self.block) == 1 && !self.block.touched.load(Ordering::Relaxed)
    }

    /// Notes that a write to the block is enqueued.
    pub(crate) fn touch(&self) {
        self.block.touched.store(true, Ordering::Relaxed);
    }

    /// Replaces the block by another of the same size; the device's stream has passed the writes to it.
    pub(crate) fn move_to(&mut self, block: Arc<GpuBlock>) {
        block.touched.store(true, Ordering::Relaxed);
        self.block = block;
    }

    /// The block, for an exchange or a copy to share.
    pub(crate) fn block(&self) -> Arc<GpuBlock> {
        Arc::clone(&self.block)
    }

    /// Returns `true` if it belongs to this device.
    pub(crate) fn belongs_to(&self, core: &Arc<Core>) -> bool {
        Arc::ptr_eq(&self.block.core, core)
    }
}

impl DeviceMemory for CudaMemory {
    fn len(&self) -> usize {
        self.bytes
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        let GpuBlock { core, at, mapped, owner, .. } = &*self.block;
        if *at == 0 || mapped.is_some() || owner.is_some() {
            return;
        }
        core.used.subtract(self.bytes);
        let _context = CallersContext::keep();
        let is_bound = core.context.bind().is_ok();
        // An exchange in another stream may still read or write the block. Later work of this stream waits for the
        // exchange, after which the block can be freed. If that order cannot be established, the exchange keeps the
        // block.
        for flight in core.lock_exchanges().iter_mut() {
            let held = flight.blocks.iter().position(|b| Arc::ptr_eq(b, &self.block));
            if let Some(i) = held.filter(|_| is_bound && core.stream.after(&flight.done).is_ok()) {
                flight.blocks.swap_remove(i);
            }
        }
    }
}
