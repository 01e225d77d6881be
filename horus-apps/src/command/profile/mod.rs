//! `horus profile INPUT OUTPUT OPERATION...`: what bounds each kernel of a run, and what would help.
//!
//! Runs `horus` without the word `profile` several times and times each launch ([`observed`]). On a GPU, each kernel's
//! arithmetic and memory traffic are then also measured separately (`horus_cuda::profile`), and events are counted on
//! request (`ncu`). On a processor, events are always counted ([`counters`]). [`verdict`] states the conclusions in
//! words.

mod counters;
#[cfg(feature = "cuda")]
mod ncu;
mod observed;
mod verdict;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Arg, ArgAction};
use horus::prelude::*;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::io::{FileTarget, Format};
use horus_core::machine::here;
use horus_core::session::{Session as CoreSession, SessionBuilder};
use horus_core::settings::{DEVICE, DeviceChoice};
use serde_json::json;

use self::counters::ThreadCounters;
use self::observed::{ObservedDevice, ObservedLaunch};
use self::verdict::KernelRow;
use super::{CommandError, line};
use crate::batch::{self, BatchJob, RunFiles, distinct, open};
use crate::caller::Caller;
use crate::report::count;

/// Measured runs of the program, after one that compiles its kernels.
const RUNS: usize = 5;

/// The command, for its help.
pub(super) fn command() -> clap::Command {
    let tune = Arg::new("tune").long("tune").action(ArgAction::SetTrue).help(
        "On a GPU, also measure other launch shapes of each kernel that takes a tenth of the time: some seconds each",
    );
    let counters = Arg::new("counters").long("counters").action(ArgAction::SetTrue).help(
        "On a GPU, also count bank conflicts, bytes and instructions by NVIDIA's ncu (Nsight Compute), which runs the \
         chain again",
    );
    let command = line::command().name("horus profile").mut_arg("json", |arg| arg.help("Print one object of JSON"));
    command.args([tune, counters]).about(
        "Runs a chain, and prints of each kernel its time, that of its arithmetic alone and of its memory traffic alone \
         (on a GPU), the share of the machine's speed that it reaches, what bounds it, and advice",
    )
}

/// The answer to `profile ...`, if the words are this command.
pub(super) fn asked(caller: &Caller) -> Option<Result<String, CommandError>> {
    let (first, rest) = caller.words().split_first()?;
    (first == "profile").then(|| {
        if caller.is_client() {
            return Err(CommandError::Message("profile opens a device of its own: run it without a server".into()));
        }
        #[cfg(feature = "cuda")]
        let (list, rest) = ncu::listed(rest);
        let has = |flag: &str| rest.iter().any(|word| word == flag);
        let (job, _) = super::job(command(), std::iter::once(first).chain(rest).cloned().collect())?;
        #[cfg(feature = "cuda")]
        if let Some(list) = list {
            ncu::launch(caller, &job, &list)?;
            return Ok(String::new());
        }
        let counted = has("--counters").then_some(rest);
        Ok(profiled(caller, &job, has("--json"), has("--tune"), counted)?)
    })
}

/// A device that is profiled.
struct ProfiledDevice {
    watched: Arc<ObservedDevice>,
    /// The number of a GPU, and the device.
    #[cfg(feature = "cuda")]
    gpu: Option<(usize, Arc<horus_cuda::CudaDevice>)>,
    /// The reason why there are no counters.
    uncounted: Option<String>,
}

impl ProfiledDevice {
    fn open(job: &BatchJob) -> Result<ProfiledDevice> {
        let execution = &job.options.execution.session;
        let (named, threads) = (execution.device.as_deref(), execution.threads.map(usize::from));
        let choice = match named {
            Some(text) => text.parse().map_err(|why: String| DEVICE.invalid_value_error(text, &why))?,
            None => DEVICE.get()?.unwrap_or_default(),
        };
        #[cfg(feature = "cuda")]
        let ordinal = match choice {
            DeviceChoice::Cuda(Some(ordinal)) => Some(ordinal),
            DeviceChoice::Cuda(None) => Some(horus_cuda::CudaDevice::gpu_with_most_free_memory()?),
            DeviceChoice::Auto => horus_cuda::CudaDevice::gpu_with_most_free_memory().ok(),
            _ => None,
        };
        if matches!(choice, DeviceChoice::Several(_)) {
            return Err(Error::Config("profile: one device at a time".into()));
        }
        #[cfg(feature = "cuda")]
        if let Some(ordinal) = ordinal {
            let device = Arc::new(horus_cuda::CudaDevice::open(ordinal, threads)?);
            let of = Arc::clone(&device);
            let watched = Arc::new(ObservedDevice::gpu(device.clone(), move || of.statistics().launches));
            return Ok(ProfiledDevice { watched, gpu: Some((ordinal, device)), uncounted: None });
        }
        // Counters include threads that start after them.
        let (counters, uncounted) = match ThreadCounters::open() {
            Ok(counters) => (Some(counters), None),
            Err(e) => (None, Some(e)),
        };
        let watched = Arc::new(ObservedDevice::host(Arc::new(CpuDevice::new(threads)?), counters));
        Ok(ProfiledDevice {
            watched,
            #[cfg(feature = "cuda")]
            gpu: None,
            uncounted,
        })
    }

    fn session(&self, job: &BatchJob) -> SessionBuilder {
        let builder = CoreSession::sharing(self.watched.clone());
        match job.options.execution.session.mode {
            Some(mode) => builder.mode(mode),
            None => builder,
        }
    }

    /// Writes a page about one more run, with the `table` of the profile.
    fn page(&self, caller: &Caller, job: &BatchJob, path: &Path, table: &str) -> Result<()> {
        let texts = Arc::new(Mutex::new(vec![format!("profile:\n{table}")]));
        let told = Arc::clone(&texts);
        let keep = move |text: &str| told.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        let session = self.session(job).trace(true).explain(keep).build()?;
        again(caller, job, &session)?;
        let title = format!("horus profile {}", path.display());
        let page = session.report(&title, &texts.lock().unwrap_or_else(PoisonError::into_inner))?;
        let page = page.unwrap_or_default();
        let file = FileTarget::new(path).map_err(|e| Error::write(path, e))?;
        file.fill(|to| to.write_all(page.as_bytes()).map_err(|e| e.to_string())).map_err(|e| Error::write(path, e))
    }

    /// The launches of a run.
    fn launches(&self, run: impl FnOnce() -> Result<()>) -> Result<Vec<ObservedLaunch>> {
        self.watched.take_launches(&[]);
        #[cfg(feature = "cuda")]
        if let Some((_, gpu)) = &self.gpu {
            gpu.start_timing();
            run()?;
            let (times, _) = gpu.stop_timing().map_err(|e| failed(&self.watched.names().name, e))?;
            return Ok(self.watched.take_launches(&times));
        }
        run()?;
        Ok(self.watched.take_launches(&[]))
    }
}

#[cfg(feature = "cuda")]
fn failed(device: &str, source: horus_core::error::DeviceError) -> Error {
    Error::Device { op: "a profile".into(), device: device.to_owned(), source }
}

/// One run of the program, from file to file.
fn run(caller: &Caller, job: &BatchJob, session: &CoreSession) -> Result<()> {
    let options = job.options.open_options();
    match &job.work {
        RunFiles::Single { input, output } => {
            let picture = open(session, input, &options)?;
            let response = (job.operation)(&picture)?;
            let format = job.options.format.as_deref().map(Format::named).transpose().map_err(Error::Config)?;
            response.save(caller, output, format, &job.save_options()).map(drop)
        }
        RunFiles::Numbers { inputs } => inputs.iter().try_for_each(|input| {
            let picture = open(session, input, &options)?;
            session.get_all((job.numbers)(&picture)?).map(drop)
        }),
        RunFiles::Series { .. } => Err(Error::Config("profile: one picture, not a series".into())),
    }
}

/// A run after the first, which gave all warnings.
fn again(caller: &Caller, job: &BatchJob, session: &CoreSession) -> Result<()> {
    let level = log::max_level();
    log::set_max_level(level.min(log::LevelFilter::Error));
    let done = run(caller, job, session);
    log::set_max_level(level);
    done
}

/// Rejects options of runs that are not profiled.
fn check(job: &BatchJob) -> Result<()> {
    let options = &job.options;
    let refused = [
        ("--trace", options.trace.is_some()),
        ("--compare", options.compare.is_some()),
        ("--dry-run", options.dry_run),
        ("--dry-run-ranks", options.dry_run_ranks.is_some()),
        ("--deadline", options.deadline.is_some()),
        ("--explain", options.execution.explain.is_some()),
    ];
    if let Some((flag, _)) = refused.iter().find(|(_, given)| *given) {
        return Err(Error::Config(format!("profile: {flag} cannot be combined with it")));
    }
    if let (Some(report), RunFiles::Single { input, output }) = (&options.report, &job.work) {
        distinct(("report", report), input, output).map_err(Error::Config)?;
    }
    if horus::ranks()?.size() > 1 {
        return Err(Error::Config("profile: one rank at a time".into()));
    }
    Ok(())
}

/// The device, and the kernels of the program.
fn measured(caller: &Caller, job: &BatchJob) -> Result<(ProfiledDevice, Vec<KernelRow>)> {
    check(job)?;
    batch::log_from(job.options.log_level());
    let profiled = ProfiledDevice::open(job)?;
    let session = profiled.session(job).build()?;
    profiled.launches(|| run(caller, job, &session))?;
    let mut rows: Vec<KernelRow> = Vec::new();
    for _ in 0..RUNS {
        for seen in profiled.launches(|| again(caller, job, &session))? {
            match rows.iter_mut().find(|row| row.is_of(&seen)) {
                Some(row) => row.add(seen),
                None => rows.push(KernelRow::of(seen)),
            }
        }
    }
    Ok((profiled, rows))
}

/// The report; `counted` are the words of the program whose events on a GPU are counted.
fn profiled(caller: &Caller, job: &BatchJob, json: bool, tune: bool, counted: Option<&[OsString]>) -> Result<String> {
    let (profiled, mut rows) = measured(caller, job)?;
    let machine = here::profile(&*profiled.watched)?;
    rows.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
    #[cfg(feature = "cuda")]
    let profiled = match profiled.gpu {
        Some((ordinal, _)) => {
            parts(ordinal, &mut rows, tune)?;
            let uncounted = counted.and_then(|words| ncu::count(words, &mut rows).err());
            ProfiledDevice { uncounted, ..profiled }
        }
        None => profiled,
    };
    let _ = (tune, counted);
    let (name, all) = (profiled.watched.names().name, rows.iter().map(KernelRow::seconds).sum::<f64>() / RUNS as f64);
    let rows: Vec<_> = rows.iter().map(|row| row.verdict(&machine, RUNS, all)).collect();
    let launches = rows.iter().map(|row| row.launches).sum::<f64>().round() as usize;
    let mut text = format!(
        "{name}: {}, {:.3} ms; {} profile of the machine\n",
        count(launches, "kernel"),
        all * 1e3,
        machine.origin
    );
    text += &verdict::table(&rows);
    if let Some(why) = &profiled.uncounted {
        let _ = writeln!(text, "no hardware counters: {why}");
    }
    if let Some(path) = &job.options.report {
        profiled.page(caller, job, path, &text)?;
    }
    if json {
        let kernels: Vec<_> = rows.iter().map(verdict::Verdict::json).collect();
        let machine = machine.origin.to_string();
        let counters = profiled.uncounted;
        let told =
            json!({ "device": name, "profile": machine, "ms": all * 1e3, "kernels": kernels, "no_counters": counters });
        return Ok(format!("{told}\n"));
    }
    Ok(text)
}

#[cfg(feature = "cuda")]
fn launched(row: &KernelRow) -> horus_cuda::recorder::RecordedLaunch {
    let ObservedLaunch { kernel, inputs, output, rows, .. } = row.first.clone();
    horus_cuda::recorder::RecordedLaunch { kernel, inputs, output, rows }
}

/// Measures each kernel and its parts on a GPU, and other launch shapes.
#[cfg(feature = "cuda")]
fn parts(ordinal: usize, rows: &mut [KernelRow], tune: bool) -> Result<()> {
    use horus_cuda::profile::{KernelMeasurement, KernelProfile};
    use horus_cuda::tuning::Tuning;
    use horus_cuda::{Limiter, Resources};

    use self::verdict::IsolatedKernel;

    /// Launches of each kernel.
    const REPEATS: usize = 21;
    /// Fraction of the time from which other launch shapes are tried.
    const MUCH: f64 = 0.1;
    let mut gpu = horus_cuda::CudaDevice::open(ordinal, None)?;
    let device = gpu.names().name;
    let all = rows.iter().map(KernelRow::seconds).sum::<f64>();
    for row in rows {
        let launched = launched(row);
        let measured = gpu.profile(&launched, REPEATS).map_err(|e| failed(&device, e))?;
        let Some(KernelProfile { whole, math, memory }) = measured else { continue };
        let seconds = |timed: KernelMeasurement| f64::from(timed.ms) / 1e3;
        let Resources { registers, spills, shared, threads, resident, limiter } = whole.resources;
        let faster = match tune && row.seconds() >= MUCH * all {
            true => gpu.faster(&launched, whole, REPEATS).map_err(|e| failed(&device, e))?,
            false => None,
        };
        let named = |(t, timed): (Tuning, KernelMeasurement)| {
            let shape = format!("{}x{} threads of {}x{} pixels", t.by, t.bx, t.rows, t.cols);
            (shape, seconds(timed))
        };
        row.isolated = Some(IsolatedKernel {
            whole: seconds(whole),
            parts: math.zip(memory).map(|(math, memory)| [seconds(math), seconds(memory)]),
            registers,
            spills,
            shared,
            threads,
            resident,
            occupancy: whole.occupancy,
            limiter: match limiter {
                Limiter::Registers => "registers",
                Limiter::SharedMemory => "shared memory",
                Limiter::Threads => "threads",
                Limiter::Blocks => "blocks",
            },
            faster: faster.map(named),
            counted: None,
        });
    }
    Ok(())
}
