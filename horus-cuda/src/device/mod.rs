//! The device: memory, transfers and launches of one GPU, in the order of one stream.

mod batch;
mod exchange;
mod kernels;
mod launch;
mod open;
mod staging;
mod tables;
mod timing;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use horus_core::device::check::part;
use horus_core::device::{
    Batching, Compilation, Device, DeviceNames, DeviceSpan, DeviceUsage, Fabric, Foreign, Launch, Memory, MemoryKind,
    PreparedLaunch, Staging, WorkLabel,
};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::workers::Workers;
use horus_core::settings::FabricChoice;

use crate::cache::DiskCache;
use crate::codegen::{KernelLimits, KernelPart};
use crate::compiler::KernelCompiler;
use crate::driver::{CudaEvent, KernelFunction};
use crate::launch_cache::{LaunchCache, TuningOverrides};
use crate::memory::{Core, CudaMemory};
use crate::nvrtc::{CompileError, Nvrtc};
use crate::shipped::Package;
use crate::transfers::GpuTransfers;
use crate::tuning::Tuning;

use self::exchange::PeerGpus;
pub(crate) use self::tables::TableKey;
use self::tables::Tables;

pub use self::open::Gpu;
pub use self::timing::{Limiter, Resources, Statistics};

#[derive(Debug, Default)]
struct CudaDeviceState {
    kernels: HashMap<u128, Arc<KernelFunction>>,
    launch_cache: LaunchCache,
    tables: Tables,
    /// The memory that batches share for the images inside.
    inside: Option<Arc<CudaMemory>>,
    /// Time spent generating, compiling and loading.
    making: Duration,
    statistics: Statistics,
    /// Start and end of each launch, while a benchmark records them.
    timings: Option<Vec<(CudaEvent, CudaEvent)>>,
}

impl CudaDeviceState {
    /// Releases the memory that is cached for later launches; `false` if there is none.
    fn release_caches(&mut self) -> bool {
        let some = !self.tables.is_empty() || self.inside.is_some();
        self.tables.clear();
        self.inside = None;
        some
    }
}

/// One GPU.
#[derive(Debug)]
pub struct CudaDevice {
    state: Mutex<CudaDeviceState>,
    transfers: Arc<GpuTransfers>,
    /// The thread that pins the first chunks.
    pinning: Option<JoinHandle<()>>,
    compiler: KernelCompiler,
    core: Arc<Core>,
    cache: DiskCache,
    shipped: Option<Package>,
    about: DeviceNames,
    arch: u32,
    limits: KernelLimits,
    /// `true` if the driver supports the graphs of batches.
    graphs: bool,
    multiprocessors: usize,
    forced: TuningOverrides,
    capacity: AtomicUsize,
    choice: FabricChoice,
    /// Unique address of this GPU.
    address: u64,
    /// The other ranks' GPUs, once they are connected.
    peers: Mutex<Option<Arc<PeerGpus>>>,
    /// Exchanges so far.
    exchanges: AtomicU64,
}

impl CudaDevice {
    /// Uses a share of the memory, because `processes` use this GPU at once. A limit set by the user stays.
    #[must_use]
    pub fn shared_by(mut self, processes: usize) -> CudaDevice {
        if self.core.limit().is_none() {
            *self.capacity.get_mut() /= processes.max(1);
        }
        self
    }

    /// Compute capability, 90 for 9.0.
    pub fn arch(&self) -> u32 {
        self.arch
    }

    /// Resource limits of a block.
    pub fn limits(&self) -> KernelLimits {
        self.limits
    }

    /// Uses one tuning for every kernel, for searches; `None` returns to the tables.
    pub fn set_tuning(&mut self, tuning: Option<Tuning>) {
        self.forced.tuning = tuning;
    }

    /// Runs this part of every kernel that has it, with at least so many bytes of shared memory; `None` returns to the
    /// whole kernel.
    pub(crate) fn set_part(&mut self, part: Option<(KernelPart, u32)>) {
        self.forced.part = part;
    }

    /// Counts of kernels and launches so far.
    pub fn statistics(&self) -> Statistics {
        self.lock().statistics
    }

    /// Free and total bytes of the GPU's memory.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(crate) fn free_memory(&self) -> Result<(usize, usize), DeviceError> {
        self.core.context.memory()
    }

    fn lock(&self) -> MutexGuard<'_, CudaDeviceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run-time compiler, loaded now if necessary.
    fn nvrtc(&self) -> Result<&Nvrtc, CompileError> {
        self.compiler.for_gpu(&self.about.name, self.arch)
    }

    fn own<'a>(&self, memory: &'a Memory) -> Result<&'a CudaMemory, DeviceError> {
        match memory {
            Memory::Device(m) => m.as_any().downcast_ref::<CudaMemory>().filter(|m| m.belongs_to(&self.core)),
            Memory::Host(_) => None,
        }
        .ok_or_else(|| DeviceError::Argument(format!("memory of another device was given to {}", self.about.name)))
    }

    fn own_mut<'a>(&self, memory: &'a mut Memory) -> Result<&'a mut CudaMemory, DeviceError> {
        self.own(memory)?;
        match memory {
            Memory::Device(m) => m.as_any_mut().downcast_mut::<CudaMemory>(),
            Memory::Host(_) => None,
        }
        .ok_or_else(|| DeviceError::Argument(format!("memory of another device was given to {}", self.about.name)))
    }
}

impl Device for CudaDevice {
    fn names(&self) -> DeviceNames {
        self.about.clone()
    }

    fn memory(&self) -> MemoryKind<'_> {
        MemoryKind::Separate(Some(self.capacity.load(Ordering::Relaxed)))
    }

    fn workers(&self) -> &Workers {
        &self.transfers.workers
    }

    fn staging(&self) -> &dyn Staging {
        self
    }

    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }

    fn fabric(&self) -> Option<&dyn Fabric> {
        if self.choice == FabricChoice::Host { None } else { Some(self) }
    }

    fn foreign(&self) -> Option<&dyn Foreign> {
        Some(self)
    }

    fn usage(&self) -> DeviceUsage {
        let state = self.lock();
        let Statistics { compiled, from_disk, shipped, .. } = state.statistics;
        let compilation = Compilation { time: state.making, compiled, from_disk, shipped };
        DeviceUsage { compilation, memory: Some((self.core.used(), self.core.most_used())) }
    }

    fn trim(&self) -> Result<(), DeviceError> {
        self.synchronize()?;
        self.lock().inside = None;
        self.core.trim();
        Ok(())
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        let memory = match self.core.allocate(bytes) {
            // Tables of taps, and memory of batches, are cached as long as there is memory.
            Err(DeviceError::OutOfMemory { .. }) if self.lock().release_caches() => self.core.allocate(bytes),
            other => other,
        };
        Ok(Memory::Device(Box::new(memory?)))
    }

    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        self.core.context.bind()?;
        part(at, source.len(), target.len())?;
        self.transfers.write(source, self.own_mut(target)?, at)
    }

    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        self.core.context.bind()?;
        part(at, target.len(), source.len())?;
        let source = self.own(source)?;
        if let Some(host) = source.host_buffer() {
            self.core.stream.synchronize()?;
            target.copy_from_slice(&host.bytes()[at..at + target.len()]);
            return Ok(());
        }
        self.transfers.read(source.address() + at as u64, target)
    }

    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        self.copy_pieces(source, target, pieces)
    }

    fn prepare(&self, launches: &[PreparedLaunch<'_>]) -> Result<(), DeviceError> {
        self.make_ahead(launches)
    }

    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        self.start(&launch)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.core.context.bind()?;
        match self.peers() {
            Some(others) => others.group.wait(&[&self.core.stream, &others.stream], None),
            None => self.core.stream.synchronize(),
        }?;
        self.core.release_finished();
        self.transfers.release_uploaded()
    }

    fn recorded(&self, own: &dyn Fn(WorkLabel) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        self.core.context.bind()?;
        self.core.clock.take(own)
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(others) = self.peers()
        {
            others.group.abandon();
        }
        // Pinned buffers and modules must outlive their use by the GPU. An error here has been reported, or no longer
        // matters.
        let bound = self.core.context.bind();
        self.transfers.stop_pinning();
        if let Some(pinning) = self.pinning.take() {
            // The thread returns nothing, and a panic has been reported.
            let _ = pinning.join();
        }
        // Afterwards the stream is also behind the copies to the host.
        if bound.and_then(|()| self.core.finish_reading()).and_then(|()| self.synchronize()).is_ok() {
            // Unended exchanges are done by now. They own blocks, which own the device's core: a cycle.
            let over = std::mem::take(&mut *self.core.lock_exchanges());
            drop(over);
            // The same cycle: pinned memory owns the core.
            self.core.release_foreign_owners();
        }
    }
}
