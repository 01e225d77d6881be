//! Finding and opening a GPU without waiting for anything that is not used yet.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cudarc::driver::sys;
use horus_core::device::DeviceNames;
use horus_core::error::{DeviceError, Error};
use horus_core::host::workers::Workers;
use horus_core::settings::{FABRIC, GPU_MEMORY};

use super::CudaDevice;
use crate::cache::DiskCache;
use crate::codegen::KernelLimits;
use crate::compiler::KernelCompiler;
use crate::driver::{self, CudaContext};
use crate::launch_cache::TuningOverrides;
use crate::memory::Core;
use crate::nvml::Nvml;
use crate::shipped::Package;
use crate::transfers::GpuTransfers;
use crate::tuning;

/// Threads that copy pixels. Sixteen reach 45 GB/s on a host of 32 cores, one thread 6.
const COPYING: usize = 16;

/// Memory reserved for kernels, their tables and the driver, in addition to images.
fn margin(free: usize) -> usize {
    (free / 32).min(1 << 30)
}

/// The oldest driver that provides every call used here.
const OLDEST_DRIVER: (i32, i32) = (11, 4);
/// CUDA version of the oldest driver with the calls of graphs that batches use.
const GRAPHS_FROM: (i32, i32) = (12, 0);

/// Properties of a GPU that is not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its number, as [`CudaDevice::open`] takes it.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Bytes of its memory.
    pub total: usize,
    /// Bytes of unused memory; `None` if NVIDIA's management library (NVML) does not report it.
    pub free: Option<usize>,
}

impl CudaDevice {
    /// Checks for a driver without starting it, at almost no cost.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no driver, or it is too old.
    pub fn check_driver() -> Result<(), Error> {
        CudaDevice::driver().map(drop)
    }

    /// The number of GPUs that this process may use.
    ///
    /// # Errors
    /// [`Error::Config`] if there are none: no driver, one that is too old, no GPU, or none that is
    /// visible.
    pub fn count() -> Result<usize, Error> {
        CudaDevice::driver()?;
        let count = driver::initialise().map_err(unusable)?;
        if count == 0 {
            let hidden = std::env::var("CUDA_VISIBLE_DEVICES").map(|v| format!(" (CUDA_VISIBLE_DEVICES is {v:?})"));
            return Err(unusable(format!("the driver shows no GPU{}", hidden.unwrap_or_default())));
        }
        Ok(count)
    }

    /// The CUDA version of the driver, if it is new enough.
    fn driver() -> Result<(i32, i32), Error> {
        if !driver::present() {
            return Err(unusable("the CUDA driver (libcuda) was not found"));
        }
        let version = driver::version().map_err(unusable)?;
        if version < OLDEST_DRIVER {
            let ((a, b), (c, d)) = (version, OLDEST_DRIVER);
            return Err(unusable(format!("the driver is too old: it supports CUDA {a}.{b}, and {c}.{d} is needed")));
        }
        Ok(version)
    }

    /// Starts the driver and the context of this GPU, which the process keeps: opening it takes less time later.
    ///
    /// # Errors
    /// As [`CudaDevice::open`], without its compiler and settings.
    pub fn warm_up(ordinal: usize) -> Result<(), Error> {
        CudaDevice::count()?;
        std::mem::forget(CudaContext::new(ordinal).map_err(unusable)?);
        Ok(())
    }

    /// Opens the GPU of this number. At most `threads` host threads copy pixels for it (by default one per logical
    /// processor), and never more than 16.
    ///
    /// # Errors
    /// [`Error::Config`] if `threads` is 0, if there is no driver, NVRTC or such a GPU, or if the GPU or the file that
    /// `HORUS_TUNING` names cannot be used.
    pub fn open(ordinal: usize, threads: Option<usize>) -> Result<CudaDevice, Error> {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = Workers::new(Some(threads.unwrap_or_else(available).min(COPYING)))?;
        tuning::check()?;
        let start = Instant::now();
        let version = CudaDevice::driver()?;
        let (newest, _) = version;
        // Kernels that are not cached must be compiled, so a missing compiler is reported at the start.
        let cache = DiskCache::from_environment();
        let shipped = Package::from_environment(newest);
        let compiler = KernelCompiler::begin(newest, &cache, shipped.is_none());
        let count = CudaDevice::count()?;
        let counted = start.elapsed();
        if ordinal >= count {
            let available = if count == 1 { "1 is".into() } else { format!("{count} are") };
            let why = format!("GPU {ordinal} requested, but only {available} available (indices start at 0)");
            return Err(unusable(why));
        }
        let context = CudaContext::new(ordinal);
        let opened = start.elapsed();
        let (compiler, context) = (compiler.map_err(unusable)?, context.map_err(unusable)?);
        let limit = GPU_MEMORY.get()?;
        let choice = FABRIC.get()?.unwrap_or_default();
        let open = || -> Result<CudaDevice, DeviceError> {
            use sys::CUdevice_attribute_enum as A;
            let major = context.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
            let minor = context.attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
            let shared = context.attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
            let multiprocessors = context.attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            let arch = (major * 10 + minor).cast_unsigned();
            compiler.check(&context.name(), arch).map_err(|e| DeviceError::Driver(e.to_string()))?;
            let (free, total) = context.memory()?;
            log::debug!(
                "driver started in {:.0} ms, context made in {:.0} ms; {} of {} MiB free",
                counted.as_secs_f64() * 1e3,
                (opened - counted).as_secs_f64() * 1e3,
                free >> 20,
                total >> 20
            );
            let most = limit.unwrap_or(free);
            let address = context.address()?;
            let name = format!("{} (GPU {ordinal}, sm_{arch})", context.name());
            let hardware = format!("{} (sm_{arch})", context.name());
            let core = Arc::new(Core::new(context, limit)?);
            let transfers = GpuTransfers::new(&core, workers);
            // Without a thread they are pinned on first use.
            let pinning = std::thread::Builder::new().name("horus-pinning".into()).spawn(transfers.pin_ahead()).ok();
            Ok(CudaDevice {
                about: DeviceNames { name, hardware, driver: driver::installed(version) },
                arch,
                limits: KernelLimits { shared: usize::try_from(shared).unwrap_or(48 << 10) },
                graphs: version >= GRAPHS_FROM,
                multiprocessors: usize::try_from(multiprocessors).unwrap_or(1),
                core,
                cache,
                shipped,
                state: Mutex::default(),
                transfers,
                pinning,
                compiler,
                forced: TuningOverrides::default(),
                capacity: AtomicUsize::new(most - margin(most)),
                choice,
                address,
                peers: Mutex::default(),
                exchanges: AtomicU64::new(1),
            })
        };
        open().map_err(|e| unusable(format!("GPU {ordinal} cannot be used: {e}")))
    }

    /// Lists the GPUs that this process may use, without opening any.
    ///
    /// # Errors
    /// Errors of [`CudaDevice::count`] and of the driver.
    pub fn devices() -> Result<Vec<Gpu>, Error> {
        let count = CudaDevice::count()?;
        let nvml = Nvml::load().inspect_err(|e| log::debug!("cannot query free memory of GPUs: {e}")).ok();
        let gpu = |ordinal| {
            let device = driver::device(ordinal)?;
            let free = || {
                let nvml = nvml.as_ref()?;
                let free = driver::bus(device).map_err(|e| e.to_string()).and_then(|bus| nvml.free(&bus));
                free.inspect_err(|e| log::debug!("cannot query free memory of GPU {ordinal}: {e}")).ok()
            };
            let free = free();
            Ok(Gpu { ordinal, name: driver::name(device), total: driver::total(device)?, free })
        };
        (0..count).map(gpu).collect::<Result<_, DeviceError>>().map_err(unusable)
    }

    /// The number of the GPU with the most free memory, the first of several; 0 if free memory is
    /// unknown.
    ///
    /// # Errors
    /// Errors of [`CudaDevice::count`] and of the driver.
    pub fn gpu_with_most_free_memory() -> Result<usize, Error> {
        if CudaDevice::count()? == 1 {
            return Ok(0);
        }
        Ok(ordinal_with_most_free(&CudaDevice::devices()?))
    }
}

fn ordinal_with_most_free(gpus: &[Gpu]) -> usize {
    let known = gpus.iter().filter_map(|g| Some((g.free?, g.ordinal)));
    known.max_by_key(|(free, ordinal)| (*free, std::cmp::Reverse(*ordinal))).map_or(0, |(_, ordinal)| ordinal)
}

/// The error for a missing or unusable device.
fn unusable(why: impl std::fmt::Display) -> Error {
    Error::Config(format!("no CUDA device: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gpu_with_most_free_memory_is_taken() {
        let gpus = |free: &[Option<usize>]| -> Vec<Gpu> {
            let gpu =
                |(ordinal, free): (usize, &Option<usize>)| Gpu { ordinal, name: "GPU".into(), total: 9, free: *free };
            free.iter().enumerate().map(gpu).collect()
        };
        let cases: [(&[Option<usize>], usize); 6] = [
            (&[Some(1), Some(5), Some(3)], 1),
            (&[Some(5), Some(5), Some(3)], 0),
            (&[None, Some(0), Some(3)], 2),
            (&[None, None], 0),
            (&[Some(0), None], 0),
            (&[], 0),
        ];
        for (free, expected) in cases {
            assert_eq!(ordinal_with_most_free(&gpus(free)), expected, "{free:?}");
        }
    }
}
