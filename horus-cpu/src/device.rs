//! The CPU as a device.

use std::sync::Arc;

use super::simd::Isa;
use super::{iterations, map, whole};
use horus_base::error::{DeviceError, Error};
use horus_host::StridedCopy;
use horus_host::buffer::Pool;
use horus_host::device::check::{check, part};
use horus_host::device::recording::HostSpans;
use horus_host::device::{
    Device, DeviceNames, DeviceQueue, DeviceSpan, Geometry, Launch, Memory, MemoryKind, Staging, WorkLabel,
};
use horus_host::workers::Workers;
use horus_plan::ir::kernel::Kernel;

/// Bytes of freed memory cached for reuse.
const POOL_BYTES: usize = 2 << 30;
/// A launch of fewer multiply-adds takes one thread about 20 microseconds, in which another thread hardly wakes: work of
/// 20, 50 and 100 us on one thread takes two threads 22, 37 and 68 us.
const SMALL: f64 = 524_288.0;
/// The same limit for bytes: a comparison of 640x480 bytes, which moves .6 MB, takes one thread 29 us.
const SMALL_IN_BYTES: f64 = 524_288.0;
/// The same limit for 32-bit multiply-adds in vectors: 3x3 extremes of 512x512 bytes, 18 a pixel, take one thread 15 us
/// and two threads 22.
const SMALL_IN_VECTORS: f64 = 1_310_720.0;

/// The processor of this machine: kernels over host memory on a pool of threads.
#[derive(Debug)]
pub struct CpuDevice {
    workers: Arc<Workers>,
    isa: Isa,
    pool: Arc<Pool>,
    spans: HostSpans,
}

impl CpuDevice {
    /// A device of `threads` threads; by default one per logical processor. A single thread is the
    /// calling one.
    ///
    /// # Errors
    /// [`Error::Config`] for no threads, more than 4096, or if they cannot be started, and for an
    /// unknown instruction set in the environment variable `HORUS_ISA`.
    pub fn new(threads: Option<usize>) -> Result<CpuDevice, Error> {
        CpuDevice::sharing(Arc::new(Workers::new(threads)?), Pool::new(POOL_BYTES))
    }

    /// A device that shares its threads and memory with others.
    ///
    /// # Errors
    /// [`Error::Config`] for an unknown instruction set in the environment variable `HORUS_ISA`.
    pub fn sharing(workers: Arc<Workers>, pool: Arc<Pool>) -> Result<CpuDevice, Error> {
        Ok(CpuDevice { workers, isa: Isa::detect()?, pool, spans: HostSpans::default() })
    }

    /// The same device with at most `bytes` bytes for images.
    #[must_use]
    pub fn bounded(mut self, bytes: usize) -> CpuDevice {
        self.pool = Pool::bounded(POOL_BYTES, bytes);
        self
    }

    /// The same device restricted to an instruction set: for tests and measurements.
    ///
    /// # Panics
    /// If this machine does not support it.
    #[must_use]
    pub fn with_isa(mut self, isa: Isa) -> CpuDevice {
        assert!(Isa::available().contains(&isa), "this machine has no {}", isa.name());
        self.isa = isa;
        self
    }

    /// The pool from which buffers are allocated.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.workers.threads()
    }

    /// Runs a launch on `threads` threads: on the calling thread, or on the threads of its pool.
    fn here(&self, launch: Launch<'_>, threads: usize) -> Result<(), DeviceError> {
        check(&launch)?;
        match launch.kernel {
            Kernel::Map(_) => map::launch(launch, self.isa, threads),
            Kernel::Repeat(repeat) => iterations::launch(launch, repeat, self.isa, threads),
            Kernel::MapReduce(map, how) => whole::fused::launch(launch, (map, *how), self.isa, threads, &self.pool),
            Kernel::Source(_) => Ok(()),
            Kernel::Whole(operation) => whole::launch(launch, operation, self.isa, threads),
        }
    }
}

/// Returns `true` if a launch is too short to wake the pool.
fn is_small(launch: &Launch<'_>) -> bool {
    let extent = |g: Geometry| (g.shape, g.dtype);
    let inputs: Vec<_> = launch.inputs.iter().map(|input| extent(input.geometry)).collect();
    let work = launch.kernel.work(&inputs, extent(launch.geometry), launch.rows);
    let few = match launch.kernel {
        Kernel::Map(map) => {
            // Vectors hold more of the narrow types.
            let sizes = map.leaves.iter().map(|leaf| leaf.dtype.size());
            let widest = sizes.fold(launch.geometry.dtype.size(), usize::max);
            work.multiply_adds * widest as f64 / 4.0 <= SMALL_IN_VECTORS
        }
        _ => work.multiply_adds <= SMALL,
    };
    few && work.bytes() as f64 <= SMALL_IN_BYTES
}

fn host(memory: &Memory) -> Result<&[u8], DeviceError> {
    memory.host().map(|b| b.bytes()).ok_or_else(|| DeviceError::Argument("the memory is not the host's".into()))
}

fn host_mut(memory: &mut Memory) -> Result<&mut [u8], DeviceError> {
    memory.host_mut().map(|b| b.bytes_mut()).ok_or_else(|| DeviceError::Argument("the memory is not the host's".into()))
}

impl Staging for CpuDevice {}

impl Device for CpuDevice {
    fn names(&self) -> DeviceNames {
        let threads = self.threads();
        DeviceNames::named(format!(
            "CPU ({threads} thread{}, {})",
            if threads == 1 { "" } else { "s" },
            self.isa.name()
        ))
    }

    fn memory(&self) -> MemoryKind<'_> {
        MemoryKind::Unified(&self.pool)
    }

    fn workers(&self) -> &Workers {
        &self.workers
    }

    fn staging(&self) -> &dyn Staging {
        self
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.pool.try_allocate(bytes).map(Memory::Host)
    }

    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        let target = host_mut(target)?;
        let range = part(at, source.len(), target.len())?;
        self.workers.copy(source, &mut target[range]);
        Ok(())
    }

    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        let source = host(source)?;
        let range = part(at, target.len(), source.len())?;
        self.workers.copy(&source[range], target);
        Ok(())
    }

    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        let (source, target) = (host(source)?, host_mut(target)?);
        if let Some(piece) = pieces.iter().find(|p| !p.fits(source.len(), target.len())) {
            let (source, target) = (source.len(), target.len());
            return Err(DeviceError::Argument(format!(
                "{piece:?} reaches beyond blocks of {source} and {target} bytes"
            )));
        }
        self.workers.copy_pieces(source, target, pieces);
        Ok(())
    }

    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        self.spans.note(DeviceQueue::Compute, || match self.threads() {
            threads if threads > 1 && !is_small(&launch) => self.workers.help(|| self.here(launch, threads)),
            _ => self.here(launch, 1),
        })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn recorded(&self, own: &dyn Fn(WorkLabel) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        Ok(self.spans.take(own))
    }
}
