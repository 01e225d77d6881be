//! Choice of a session's devices, and when they are opened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use horus_core::comm::{Communicator, share};
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::{Error, Result};
use horus_core::host::buffer::Pool;
use horus_core::host::workers::Workers;
use horus_core::machine::here;
use horus_core::plan::work::ProgramWork;
use horus_core::session::{Chooser, DeviceForecast};
use horus_core::settings::{DeviceChoice, ListedDevice};

/// Maximum bytes of freed host memory for reuse.
const KEPT: usize = 2 << 30;

/// The index of this rank on its node.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "ranks share GPUs alone"))]
pub(crate) struct RankOnNode {
    /// Local rank.
    pub(crate) rank: usize,
    /// Number of ranks on the node.
    pub(crate) ranks: usize,
}

/// Keeps the GPU that is current on this thread for other libraries of the process. Evaluations make theirs current;
/// when the result is dropped, the GPU from before is current again. A result that exists on this thread already is the
/// one that counts; it is dropped last.
///
/// ```
/// use horus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let session = Session::new()?;
/// let kept = horus::keep_current_gpu();
/// let sum = Image::<f32>::constant(&session, (3, 4), 2.0).sum().get()?;
/// drop(kept);
/// assert_eq!(sum, 24.0);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn keep_current_gpu() -> impl Sized {
    #[cfg(feature = "cuda")]
    return horus_cuda::CallersContext::keep();
    #[cfg(not(feature = "cuda"))]
    return std::marker::PhantomData::<*const ()>;
}

/// Opens the chosen device and logs it; `Auto` is a usable GPU if there is one, else the CPU.
pub(crate) fn open(choice: &DeviceChoice, threads: Option<usize>, local: RankOnNode) -> Result<Box<dyn Device>> {
    let cpu = || -> Result<Box<dyn Device>> { Ok(Box::new(CpuDevice::new(threads)?)) };
    let (device, why) = match choice {
        DeviceChoice::Cpu => (cpu()?, "as requested".to_owned()),
        DeviceChoice::Cuda(ordinal) => (gpu::open(*ordinal, threads, local)?, "as requested".to_owned()),
        DeviceChoice::Several(_) => return Err(Error::Config("several devices where one is opened".into())),
        DeviceChoice::Auto => match gpu::open(None, threads, local) {
            Ok(device) => (device, "found a GPU".to_owned()),
            Err(e) => (cpu()?, e.to_string()),
        },
    };
    log::info!("computing on {}: {why}", device.names().name);
    Ok(device)
}

/// Opens several devices of this process concurrently, and logs them. The host's threads are
/// divided among the GPUs for copies, while the CPU device computes with its own.
pub(crate) fn open_devices(lanes: &[ListedDevice], threads: Option<usize>) -> Result<Vec<Arc<dyn Device>>> {
    let mut named = Vec::new();
    for lane in lanes {
        match lane {
            ListedDevice::Cpu => named.push(None),
            ListedDevice::Cuda(ordinal) => named.push(Some(*ordinal)),
            ListedDevice::EveryGpu => named.extend((0..gpu::count()?).map(Some)),
        }
    }
    let all = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let share = |among: usize| Some((all / among.max(1)).max(1));
    let cpus = named.iter().filter(|ordinal| ordinal.is_none()).count();
    let devices = named.len();
    let open = |ordinal: Option<usize>| -> Result<Arc<dyn Device>> {
        match ordinal {
            None => Ok(Arc::new(CpuDevice::new(share(cpus))?)),
            Some(ordinal) => Ok(gpu::open(Some(ordinal), share(devices), RankOnNode { rank: 0, ranks: 1 })?.into()),
        }
    };
    let open = &open;
    let opened: Result<Vec<Arc<dyn Device>>> = std::thread::scope(|scope| {
        let opening: Vec<_> = named.into_iter().map(|ordinal| scope.spawn(move || open(ordinal))).collect();
        let died = |_| Err(Error::Config("opening a device panicked".into()));
        let opened: Vec<_> = opening.into_iter().map(|thread| thread.join().unwrap_or_else(died)).collect();
        opened.into_iter().collect()
    });
    let opened = opened?;
    let names: Vec<String> = opened.iter().map(|device| device.names().name).collect();
    log::info!("computing on {}: as requested", names.join(" + "));
    Ok(opened)
}

/// Starts the GPU that a rank will open. Opening it reports what is wrong.
pub(crate) fn warm_up(ordinal: Option<usize>, local: RankOnNode) {
    if let Err(e) = gpu::warm_up(ordinal, local) {
        log::debug!("the GPU is not started in advance: {e}");
    }
}

#[cfg(feature = "cuda")]
mod gpu {
    use horus_cuda::CudaDevice;

    use super::{Device, OPENED, Ordering, RankOnNode, Result};

    /// Fails immediately if there can be no GPU.
    pub(super) fn check_gpu() -> Result<()> {
        CudaDevice::check_driver()
    }

    /// Number of GPUs.
    pub(super) fn count() -> Result<usize> {
        CudaDevice::count()
    }

    /// The GPU of a rank, and the number of ranks that share it: all ranks of this node share a named one. The default
    /// is one GPU per rank; for a single rank, the GPU with the most free memory.
    fn of_rank(ordinal: Option<usize>, RankOnNode { rank, ranks }: RankOnNode) -> Result<(usize, usize)> {
        Ok(match ordinal {
            Some(n) => (n, ranks),
            None if ranks == 1 => (CudaDevice::gpu_with_most_free_memory()?, 1),
            None => {
                let gpus = CudaDevice::count()?;
                (rank % gpus, ranks.div_ceil(gpus))
            }
        })
    }

    /// Starts the GPU of a rank, unless which one it is depends on their free memory.
    pub(super) fn warm_up(ordinal: Option<usize>, local: RankOnNode) -> Result<()> {
        if ordinal.is_none() && local.ranks == 1 && CudaDevice::count()? > 1 {
            return Ok(());
        }
        CudaDevice::warm_up(of_rank(ordinal, local)?.0)
    }

    /// Opens the GPU of a rank.
    pub(super) fn open(ordinal: Option<usize>, threads: Option<usize>, local: RankOnNode) -> Result<Box<dyn Device>> {
        let (ordinal, sharers) = of_rank(ordinal, local)?;
        let device = CudaDevice::open(ordinal, threads)?.shared_by(sharers);
        OPENED.store(true, Ordering::Relaxed);
        Ok(Box::new(device))
    }
}

#[cfg(not(feature = "cuda"))]
mod gpu {
    use super::{Device, Error, RankOnNode, Result};

    fn missing() -> Error {
        Error::Config("no CUDA device: Horus was built without its feature `cuda`".into())
    }

    pub(super) fn check_gpu() -> Result<()> {
        Err(missing())
    }

    pub(super) fn count() -> Result<usize> {
        Err(missing())
    }

    pub(super) fn warm_up(_: Option<usize>, _: RankOnNode) -> Result<()> {
        Err(missing())
    }

    pub(super) fn open(_: Option<usize>, _: Option<usize>, _: RankOnNode) -> Result<Box<dyn Device>> {
        Err(missing())
    }
}

/// `true` once this process has opened a GPU: the next session reuses its context.
static OPENED: AtomicBool = AtomicBool::new(false);

/// The source of a session's device.
pub(crate) enum DeviceSource {
    Open(Box<dyn Device>),
    Deferred(DeviceSelection),
}

/// The device choice of a session that has not opened a device yet.
pub(crate) struct DeviceSelection {
    choice: DeviceChoice,
    threads: Option<usize>,
    local: RankOnNode,
    steps_per_pixel: f64,
    workers: Arc<Workers>,
    pool: Arc<Pool>,
    opening: Mutex<Option<GpuOpening>>,
}

/// A GPU that is being opened. Its thread is joined, because the process must not end inside a
/// driver call.
struct GpuOpening(Option<JoinHandle<Result<Box<dyn Device>>>>);

impl GpuOpening {
    fn begin(choice: &DeviceChoice, threads: Option<usize>, local: RankOnNode) -> Result<GpuOpening> {
        let ordinal = match choice {
            DeviceChoice::Cuda(ordinal) => *ordinal,
            _ => None,
        };
        let thread = std::thread::Builder::new().name("horus-open".into());
        let thread = thread.spawn(move || gpu::open(ordinal, threads, local));
        thread
            .map(|t| GpuOpening(Some(t)))
            .map_err(|e| Error::Config(format!("cannot start a thread to open a GPU: {e}")))
    }

    fn wait(mut self) -> Result<Box<dyn Device>> {
        let done = self.0.take().map(JoinHandle::join);
        done.and_then(std::result::Result::ok).unwrap_or_else(|| Err(Error::Config("opening a GPU panicked".into())))
    }
}

impl Drop for GpuOpening {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            drop(thread.join());
        }
    }
}

impl DeviceSelection {
    /// Chooses the device. It is opened now if that takes no time, if `eager`, or if there is no
    /// choice.
    pub(crate) fn begin(
        choice: DeviceChoice,
        threads: Option<usize>,
        local: RankOnNode,
        eager: bool,
        steps_per_pixel: f64,
    ) -> Result<DeviceSource> {
        if eager || choice == DeviceChoice::Cpu {
            return open(&choice, threads, local).map(DeviceSource::Open);
        }
        match (&choice, gpu::check_gpu()) {
            (DeviceChoice::Auto, Err(e)) => {
                let device = Box::new(CpuDevice::new(threads)?);
                log::info!("computing on {}: {e}", device.names().name);
                return Ok(DeviceSource::Open(device));
            }
            (_, looked) => looked?,
        }
        let opening = match choice {
            DeviceChoice::Cuda(_) => Some(GpuOpening::begin(&choice, threads, local)?),
            _ => None,
        };
        let (workers, pool) = (Arc::new(Workers::new(threads)?), Pool::new(KEPT));
        Ok(DeviceSource::Deferred(DeviceSelection {
            choice,
            threads,
            local,
            steps_per_pixel,
            workers,
            pool,
            opening: opening.into(),
        }))
    }

    pub(crate) fn workers(&self) -> &Arc<Workers> {
        &self.workers
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    fn opening(&self) -> std::sync::MutexGuard<'_, Option<GpuOpening>> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gpu(&self) -> Result<Box<dyn Device>> {
        let begun = self.opening().take();
        begun.map_or_else(|| GpuOpening::begin(&self.choice, self.threads, self.local), Ok)?.wait()
    }

    fn cpu(&self) -> Result<Box<dyn Device>> {
        Ok(Box::new(CpuDevice::sharing(Arc::clone(&self.workers), Arc::clone(&self.pool))?))
    }

    /// The requested device, or the one predicted to finish first, with the reason. A GPU that
    /// `auto` finds but cannot use is ignored.
    fn open_selected(&self, gpu: bool, why: String) -> Result<(Box<dyn Device>, String)> {
        match self.choice {
            DeviceChoice::Cuda(_) => Ok((self.gpu()?, "as requested".into())),
            _ if !gpu => Ok((self.cpu()?, why)),
            _ => match self.gpu() {
                Ok(device) => Ok((device, why)),
                Err(e) => Ok((self.cpu()?, e.to_string())),
            },
        }
    }
}

impl Chooser for DeviceSelection {
    fn choose(&self, work: &ProgramWork, comm: &dyn Communicator) -> Result<Arc<dyn Device>> {
        let failed = |e: horus_core::comm::CommError| e.during(comm.rank(), "choosing a device");
        let begun = OPENED.load(Ordering::Relaxed) || self.opening().is_some();
        let forecast = DeviceForecast::of(work, &here::candidates(self.workers.threads()), comm.size(), begun);
        // The state of opening a GPU may differ between ranks.
        let gpu = share(comm, 0, || forecast.gpu < forecast.cpu).map_err(failed)?;
        let taken = self.open_selected(gpu, forecast.to_string());
        let there = comm.gather(u64::from(taken.is_ok())).map_err(failed)?;
        let (device, why) = taken?;
        if let Some(rank) = there.iter().position(|ok| *ok == 0) {
            return Err(Error::Config(format!("rank {rank} has no device of the requested kind")));
        }
        log::info!("computing on {}: {why}", device.names().name);
        Ok(device.into())
    }

    fn expect(&self, bytes: u64) {
        if self.choice != DeviceChoice::Auto || OPENED.load(Ordering::Relaxed) {
            return;
        }
        // Roughly one pixel per byte of the file, at most.
        let work = ProgramWork { filtering: bytes as f64 * self.steps_per_pixel, ..ProgramWork::default() };
        let forecast = DeviceForecast::of(&work, &here::candidates(self.workers.threads()), 1, false);
        let mut opening = self.opening();
        if forecast.gpu < forecast.cpu && opening.is_none() {
            // If no thread can start, the GPU is opened when the device is chosen.
            *opening = GpuOpening::begin(&self.choice, self.threads, self.local).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use horus_core::machine::MachineProfile;

    use super::*;

    fn gpu_first(pixels: f64, steps: f64, threads: usize, begun: bool) -> bool {
        let work =
            ProgramWork { operations: 500, filtering: pixels * steps, pointwise: 500.0 * pixels, bytes: 5.0 * pixels };
        let assumed = (MachineProfile::of_cores(threads), MachineProfile::of_default(false));
        let forecast = DeviceForecast::of(&work, &assumed, 1, begun);
        forecast.gpu < forecast.cpu
    }

    #[test]
    fn the_device_that_finishes_first_is_taken() {
        // ConvRot: 216 separable filters of 31 taps each way.
        let convrot = 216.0 * 62.0;
        let sample = 512.0 * 384.0;
        assert!(!gpu_first(sample, convrot, 16, false), "a GPU is not worth its start");
        assert!(gpu_first(4096.0 * 4096.0, convrot, 16, false));
        assert!(gpu_first(1024.0 * 1024.0, convrot, 16, true), "what is there need not start");
    }
}
