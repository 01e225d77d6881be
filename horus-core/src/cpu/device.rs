//! The CPU as a device.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, mpsc};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::check::check;
use super::simd::Isa;
use super::{map, whole};
use crate::buffer::Pool;
use crate::device::{Device, Launch, Memory, MemoryKind, Piece};
use crate::error::{DeviceError, Error};
use crate::kernel::Kernel;

/// Freed memory kept for reuse.
const POOL_BYTES: usize = 2 << 30;
/// More threads than any machine has processors: what is asked for beyond is a mistake, and would exhaust the system.
const MOST_THREADS: usize = 4096;

/// The processor of this machine: kernels over host memory on a pool of threads.
#[derive(Debug)]
pub struct CpuDevice {
    /// None for one thread, which is the caller's.
    workers: Option<ThreadPool>,
    threads: usize,
    isa: Isa,
    pool: Arc<Pool>,
}

impl CpuDevice {
    /// A device of `threads` threads; by default one per logical processor. A single thread is the calling one.
    ///
    /// # Errors
    /// [`Error::Config`] for no threads, more than 4096, or if they cannot be started, and for an unknown instruction set
    /// in the environment variable `HORUS_ISA`.
    pub fn new(threads: Option<usize>) -> Result<CpuDevice, Error> {
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let isa = Isa::detect()?;
        let workers = match threads {
            0 => return Err(Error::Config("a CPU device needs at least one thread, not 0".into())),
            n if n > MOST_THREADS => {
                return Err(Error::Config(format!("{n} threads asked for; a CPU device has at most {MOST_THREADS}")));
            }
            1 => None,
            n => {
                let builder = ThreadPoolBuilder::new().num_threads(n).thread_name(|i| format!("horus-{i}"));
                Some(builder.build().map_err(|e| Error::Config(format!("cannot start {n} threads: {e}")))?)
            }
        };
        Ok(CpuDevice { workers, threads, isa, pool: Pool::new(POOL_BYTES) })
    }

    /// The same device restricted to an instruction set: for tests and measurements.
    ///
    /// # Panics
    /// If this machine does not have it.
    #[cfg(test)]
    pub(crate) fn with_isa(mut self, isa: Isa) -> CpuDevice {
        assert!(isa.is_supported(), "this machine has no {}", isa.name());
        self.isa = isa;
        self
    }

    /// Where buffers come from.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    fn here(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        check(&launch)?;
        match launch.kernel {
            Kernel::Map(_) => map::launch(launch, self.isa, self.threads),
            Kernel::MapReduce(map, how) => {
                whole::fused::launch(launch, (map, *how), self.isa, self.threads, &self.pool)
            }
            Kernel::Source(_) => Ok(()),
            _ => whole::launch(launch, self.isa, self.threads),
        }
    }
}

/// Runs `work` on a worker of `pool` and waits for it.
///
/// [`ThreadPool::install`] would do, but for a caller that is a worker of another pool: while it waits it takes up
/// other jobs of its own pool, and those may want the session that this one keeps locked.
fn run_on<R: Send>(pool: &ThreadPool, work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_none() || pool.current_thread_index().is_some() {
        return pool.install(work);
    }
    let mut result = None;
    let (done, finished) = mpsc::sync_channel::<()>(1);
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(|| result = Some(catch_unwind(AssertUnwindSafe(work))));
    // SAFETY: the job is over, and its box with what it borrows gone, before the message arrives or the channel closes;
    // this function neither returns nor unwinds before that.
    let job: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(job) };
    pool.spawn(move || {
        job();
        drop(done);
    });
    // Nothing is ever sent: the channel closes.
    let _ = finished.recv();
    match result {
        Some(Ok(result)) => result,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("the pool runs what it is given"),
    }
}

fn host(memory: &Memory) -> Result<&[u8], DeviceError> {
    memory.host().map(|b| b.bytes()).ok_or_else(|| DeviceError::Driver("the memory is not the host's".into()))
}

fn host_mut(memory: &mut Memory) -> Result<&mut [u8], DeviceError> {
    memory.host_mut().map(|b| b.bytes_mut()).ok_or_else(|| DeviceError::Driver("the memory is not the host's".into()))
}

/// The part of `bytes` from `at` on, or an error that says how far it is out of range.
fn part(at: usize, length: usize, size: usize) -> Result<std::ops::Range<usize>, DeviceError> {
    match at.checked_add(length) {
        Some(end) if end <= size => Ok(at..end),
        _ => Err(DeviceError::Driver(format!("{length} bytes at {at} are outside a buffer of {size}"))),
    }
}

impl Device for CpuDevice {
    fn name(&self) -> String {
        let threads = if self.threads == 1 { "thread" } else { "threads" };
        format!("CPU ({} {threads}, {})", self.threads, self.isa.name())
    }

    fn memory(&self) -> MemoryKind {
        MemoryKind::Unified
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.pool.try_allocate(bytes).map(Memory::Host)
    }

    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        let target = host_mut(target)?;
        let range = part(at, source.len(), target.len())?;
        target[range].copy_from_slice(source);
        Ok(())
    }

    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        let source = host(source)?;
        let range = part(at, target.len(), source.len())?;
        target.copy_from_slice(&source[range]);
        Ok(())
    }

    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[Piece]) -> Result<(), DeviceError> {
        let (source, target) = (host(source)?, host_mut(target)?);
        for (from, to, length) in pieces.iter().flat_map(|p| p.runs()) {
            let (from, to) = (part(from, length, source.len())?, part(to, length, target.len())?);
            target[to].copy_from_slice(&source[from]);
        }
        Ok(())
    }

    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        match &self.workers {
            Some(pool) => run_on(pool, || self.here(launch)),
            None => self.here(launch),
        }
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_move_the_bytes_asked_for_and_refuse_others() {
        let d = CpuDevice::new(Some(1)).unwrap();
        let (mut a, mut b) = (d.allocate(8).unwrap(), d.allocate(8).unwrap());
        d.write(&[1, 2, 3, 4, 5, 6, 7, 8], &mut a, 0).unwrap();
        d.write(&[0; 8], &mut b, 0).unwrap();
        d.copy(&a, &mut b, &[Piece::run(0, 6, 2), Piece::run(7, 0, 1)]).unwrap();
        let mut out = [0; 8];
        d.read(&b, 0, &mut out).unwrap();
        assert_eq!(out, [8, 0, 0, 0, 0, 0, 1, 2]);
        assert!(d.write(&[0; 4], &mut a, 5).is_err());
        assert!(d.copy(&a, &mut b, &[Piece::run(usize::MAX, 0, 2)]).is_err());
    }

    #[test]
    fn a_device_tells_its_threads_and_needs_one() {
        let refused = |threads: usize| CpuDevice::new(Some(threads)).unwrap_err().to_string();
        assert_eq!(refused(0), "a CPU device needs at least one thread, not 0");
        assert_eq!(refused(4097), "4097 threads asked for; a CPU device has at most 4096");
        assert!(refused(usize::MAX).contains("at most 4096"));
        let d = CpuDevice::new(Some(2)).unwrap().with_isa(Isa::Portable);
        assert_eq!(d.name(), "CPU (2 threads, portable)");
    }
}
