//! Measures the machine: fills a [`MachineProfile`] by timing the methods of a [`Device`].
//!
//! Every number is a median of repeated runs. Quantities that cannot be measured keep their values,
//! with a line in the log. One rank for each kind of hardware measures, one after the other;
//! messages between ranks are last.

mod copies;
mod fit;
mod kernels;
mod launches;
pub(crate) mod links;

use std::time::Instant;

use self::fit::median;
use super::here;
use super::{FileRates, Hardware, MachineProfile, ProfileOrigin, Rates};
use crate::comm::{CommError, Communicator, share};
use crate::device::Device;
use crate::error::{DeviceError, Result};
use crate::host::buffer::Pool;
use crate::host::workers::Workers;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct MeasurementEffort {
    /// Number of runs; the median counts.
    runs: usize,
    /// Seconds per run of short launches.
    run: f64,
    /// Largest copy in bytes.
    bytes: usize,
    /// Side of images.
    side: usize,
}

/// Measures the machines of all ranks and the links between them, and returns this rank's profile.
/// It takes about ten seconds for each kind of hardware; with `quick` about a second, with small
/// images and coarse numbers. Collective.
///
/// ```no_run
/// # use horus_core::{comm::SingleRankComm, cpu::device::CpuDevice, machine::{here, measure::measure}};
/// let profile = measure(&CpuDevice::new(None)?, &SingleRankComm, false)?;
/// println!("{profile}");
/// here::keep(&profile, None)?; // sessions use it from now on
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// [`Error::Communication`](crate::error::Error::Communication) when another rank failed or ended.
/// A failure of the device is not an error: quantities that depend on it are assumed.
pub fn measure(device: &dyn Device, comm: &dyn Communicator, quick: bool) -> Result<MachineProfile> {
    let failed = |e: CommError| e.during(comm.rank(), "measuring the machine");
    let hardware = here::hardware(device);
    let kinds = comm.gather(here::number(&hardware)).map_err(failed)?;
    let mut mine = None;
    for (rank, kind) in kinds.iter().enumerate() {
        if kinds[..rank].contains(kind) {
            continue;
        }
        let measured = share(comm, rank, || alone(device, hardware.clone(), quick)).map_err(failed)?;
        if *kind == kinds[comm.rank()] {
            mine = Some(measured).filter(|profile: &MachineProfile| profile.fault().is_none());
        }
    }
    let unified = device.memory().is_unified();
    let mut profile: MachineProfile = mine.unwrap_or_else(|| here::assumed(hardware, unified));
    links::measure(device, comm, quick, &mut profile.links).map_err(failed)?;
    Ok(profile)
}

/// Measures everything that does not involve other ranks.
fn alone(device: &dyn Device, hardware: Hardware, quick: bool) -> MachineProfile {
    let unified = device.memory().is_unified();
    let effort = match (quick, unified) {
        (true, _) => MeasurementEffort { runs: 3, run: 2e-3, bytes: 4 << 20, side: 512 },
        (false, true) => MeasurementEffort { runs: 5, run: 10e-3, bytes: 256 << 20, side: 2048 },
        (false, false) => MeasurementEffort { runs: 9, run: 10e-3, bytes: 256 << 20, side: 4096 },
    };
    let start = Instant::now();
    let known = MachineProfile::shipped(&hardware.device).filter(|_| !unified);
    let mut profile = match known {
        Some(known) => MachineProfile { hardware, ..known },
        None => here::assumed(hardware, unified),
    };
    profile.origin = ProfileOrigin::Measured;
    told("copies of the host", host_copies(effort, &mut profile));
    told("files", files(effort, &mut profile));
    if !unified {
        told("copies between host and device", copies::measure(device, effort, &mut profile));
    }
    told("launches", launches::empty(device, effort, &mut profile));
    told("the device's memory", launches::memory(device, effort, &mut profile));
    told("kernels", launches::families(device, effort, &mut profile));
    log::debug!("measured {} in {:.1} s", profile.hardware, start.elapsed().as_secs_f64());
    match profile.fault() {
        None => profile,
        Some(what) => {
            crate::warn!("the measurement of {what} is implausible; an assumed profile is used");
            here::assumed(profile.hardware, unified)
        }
    }
}

/// Logs quantities that could not be measured.
fn told(what: &str, done: Result<(), DeviceError>) {
    if let Err(why) = done {
        crate::warn!("{what} could not be measured and are assumed: {why}");
    }
}

/// The median seconds of `work` after a warm-up run.
fn timed(runs: usize, mut work: impl FnMut() -> Result<(), DeviceError>) -> Result<f64, DeviceError> {
    work()?;
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(median(times).unwrap_or_default().max(1e-9))
}

/// Measures copies by 1, 2, 4, 8, 16 and all threads.
fn host_copies(effort: MeasurementEffort, profile: &mut MachineProfile) -> Result<(), DeviceError> {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let mut counts: Vec<usize> = [1, 2, 4, 8, 16, all].into_iter().filter(|n| *n <= all).collect();
    counts.sort_unstable();
    counts.dedup();
    let pool = Pool::new(0);
    let (from, mut to) = (pool.try_allocate(effort.bytes)?, pool.try_allocate(effort.bytes)?);
    let mut rates = Vec::new();
    for threads in counts {
        let workers = Workers::new(Some(threads)).map_err(|e| DeviceError::Driver(e.to_string()))?;
        let seconds = timed(effort.runs, || {
            workers.copy(from.bytes(), to.bytes_mut());
            Ok(())
        })?;
        rates.push((threads as f64, effort.bytes as f64 / seconds));
    }
    profile.host_copy = Rates(rates);
    Ok(())
}

/// Measures writing and reading a temporary file.
fn files(effort: MeasurementEffort, profile: &mut MachineProfile) -> Result<(), DeviceError> {
    use std::io::{Read as _, Seek as _, Write as _};
    let failed = |e: std::io::Error| DeviceError::Driver(e.to_string());
    let bytes = effort.bytes / 4;
    let mut pixels = vec![0x5au8; bytes];
    let mut file = tempfile::tempfile().map_err(failed)?;
    let write = timed(effort.runs, || {
        file.rewind().map_err(failed)?;
        file.write_all(&pixels).map_err(failed)
    })?;
    let read = timed(effort.runs, || {
        file.rewind().map_err(failed)?;
        file.read_exact(&mut pixels).map_err(failed)
    })?;
    profile.files = FileRates { read: bytes as f64 / read, write: bytes as f64 / write };
    Ok(())
}

#[cfg(test)]
mod tests;
