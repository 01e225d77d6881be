//! One picture, one output file.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use horus::prelude::*;
use horus_core::comm::Communicator;
use horus_core::device::{Compilation, Device};
use horus_core::io::{Format, on_first, same_file};

use super::{BatchJob, BatchOptions, Comparison, Product, Records, Response, STANDARD, printed, session, stores};
use crate::caller::Caller;
use crate::progress::Bar;
use crate::report::{Breakdown, ForecastComparison, Printer, RunComparison, Summary, describe_picture};

/// A run from file to file.
struct SingleRun {
    session: Session,
    picture: AnyImage,
    response: Product,
    scale: Option<Scale>,
    time: Duration,
    breakdown: Breakdown,
}

/// Reads `input`, applies the operation, writes `output`, prints the summary.
pub(super) fn run(
    caller: &Arc<Caller>,
    job: &BatchJob,
    input: &Path,
    output: &Path,
    comm: &Arc<dyn Communicator>,
) -> Result<()> {
    let started = Instant::now();
    let options = &job.options;
    let first = comm.rank() == 0;
    for (what, path) in [("trace", &options.trace), ("report", &options.report)] {
        let Some(path) = path else { continue };
        let looked = on_first(&**comm, "comparing the files of a run", || distinct((what, path), input, output))?;
        looked.map_err(Error::Config)?;
    }
    if options.compare.is_some() && caller.is_client() {
        return Err(Error::Config("--compare opens another session: run it without a server".into()));
    }
    // If the picture goes to stdout, by any name, messages go to stderr.
    let piped = output.as_os_str() == STANDARD || caller.file(output).is_ok_and(|file| file.is_stdout());
    let printer = Arc::new(if piped { Printer::on_stderr(caller) } else { Printer::of(caller) });
    let bar = Arc::new(Bar::new(first && !options.is_quiet() && caller.has_terminal()));
    let session = session(caller, options, job.steps_per_pixel, comm, Some(&bar), &printer)?;
    let records = Records::of(caller, &session, options, &job.work)?;
    if options.dry_run {
        let picture = read(caller, &session, input, options)?;
        let response = (job.operation)(&picture)?;
        let memory = response.image.forecast_memory()?;
        let ranks = NonZeroUsize::new(session.ranks()).unwrap_or(NonZeroUsize::MIN);
        let forecast = response.image.forecast(options.cluster(ranks))?;
        if first {
            let kinds = [(input, (picture.shape(), picture.dtype())), (output, response.image.kind())];
            for (path, (shape, dtype)) in kinds {
                printer.print(&format_args!("{}: {}", path.display(), describe_picture(shape, dtype)));
            }
            if ranks == NonZeroUsize::MIN {
                let ms = forecast.seconds() * 1e3;
                let launches = forecast.computing.launches;
                let device = session.device_name();
                printer.print(&format_args!(
                    "{memory}\npredicted {ms:.3} ms in {launches} kernels on {device}, by the {}",
                    forecast.machine
                ));
            } else {
                printer.print(&format_args!("{memory}\n{forecast}"));
            }
        }
        return printed(&session, &printer);
    }
    if let Some(ranks) = options.dry_run_ranks {
        let picture = read(caller, &session, input, options)?;
        let response = (job.operation)(&picture)?;
        let forecast = response.image.forecast(options.cluster(ranks))?;
        if first {
            printer.print(&forecast);
        }
        return printed(&session, &printer);
    }
    let run = whole(caller, job, session, (input, output), options.format.as_deref(), started, &bar)?;
    let session = &run.session;
    let images = || {
        let both = [(input, Response::Picture(run.picture.clone())), (output, run.response.image.clone())];
        let shown = both.iter().filter(|_| options.report_images);
        shown.map(|(path, image)| Ok((path.display().to_string(), image.thumbnail()?))).collect()
    };
    records.write(caller, session, options, &printer, images)?;
    if !options.is_quiet() && first {
        let forecasted = if options.verbose > 0 { Some(forecasted(session, &run.breakdown)?) } else { None };
        printer.print(&Summary {
            name: job.name,
            shape: run.picture.shape(),
            about: &(job.about)(),
            device: session.device_name(),
            ranks: session.ranks(),
            time: run.time,
            stats: session.stats(),
            output: output.display().to_string(),
            scale: run.scale,
            breakdown: (options.verbose > 0).then_some(&run.breakdown),
            forecasted,
        });
    }
    if let Some(comparison) = options.compare {
        compare(caller, job, comparison, &run, (input, output), comm, &printer)?;
    }
    printed(session, &printer)?;
    let SingleRun { session, picture, response, .. } = run;
    if session.ranks() > 1 {
        drop((picture, response)); // close the session before ranks part
    }
    printer.end_process(session, 0);
    Ok(())
}

/// Measured and predicted times.
fn forecasted(session: &Session, breakdown: &Breakdown) -> Result<ForecastComparison> {
    let (stats, made) = (session.stats(), breakdown.compilation.time);
    let measured = session.measured()?;
    Ok(ForecastComparison { measured, times: breakdown.times, made, predicted: stats.parts, in_all: stats.predicted })
}

/// Reads a picture, or stdin.
pub(super) fn read(caller: &Caller, session: &Session, input: &Path, options: &BatchOptions) -> Result<AnyImage> {
    if input.as_os_str() == STANDARD {
        let picture = AnyImage::read_from_with(session, caller.input(), &options.open_options());
        return picture.map_err(|e| match e {
            Error::File { action, cause, .. } => Error::File { action, path: "stdin".into(), cause },
            other => other,
        });
    }
    stores::open(session, input, &options.open_options())
}

/// From file to file; `started` is the beginning of the run.
fn whole(
    caller: &Caller,
    job: &BatchJob,
    session: Session,
    (input, output): (&Path, &Path),
    format: Option<&str>,
    started: Instant,
    bar: &Bar,
) -> Result<SingleRun> {
    let options = &job.options;
    let start = started.elapsed();
    let compiled = compilation(&session);
    let picture = read(caller, &session, input, options)?;
    let read = started.elapsed() - start;
    // Until everything is read, an interrupt ends the process: there is nothing to clean up, and the input may never
    // end.
    caller.watch(&session, options.deadline, started);
    let response = (job.operation)(&picture)?;
    let format = format.map(Format::named).transpose().map_err(Error::Config)?;
    let path = if output.as_os_str() == STANDARD { Path::new("/dev/stdout") } else { output };
    let saved = response.image.check().and_then(|()| match format {
        None if stores::is_named(path) => stores::save(&response.image, path, options).map(|()| None),
        format => response.save(caller, path, format, &job.save_options()),
    });
    bar.finish();
    let scale = saved?;
    let time = started.elapsed();
    let times = session.times();
    let breakdown = Breakdown {
        start,
        read,
        times,
        compilation: compilation(&session).since(&compiled),
        write: time.saturating_sub(start + read + times.total()),
    };
    Ok(SingleRun { session, picture, response, scale, time, breakdown })
}

/// What the session's device has compiled so far.
fn compilation(session: &Session) -> Compilation {
    session.device().map(Device::usage).unwrap_or_default().compilation
}

/// Repeats the run from file to file in another way, and prints the user-perceived speedup of `run`.
fn compare(
    caller: &Caller,
    job: &BatchJob,
    comparison: Comparison,
    run: &SingleRun,
    (input, output): (&Path, &Path),
    comm: &Arc<dyn Communicator>,
    printer: &Arc<Printer>,
) -> Result<()> {
    let unified = run.session.device().is_some_and(|device| device.memory().is_unified());
    let mut options = BatchOptions { trace: None, ..job.options.clone() };
    options.execution.explain = None;
    let cpu = Some("cpu".to_owned());
    match comparison {
        Comparison::Cpu => options.execution.session.device = cpu,
        Comparison::One => {
            (options.execution.session.device, options.execution.session.threads) = (cpu, Some(NonZeroUsize::MIN))
        }
        Comparison::Naive => {
            options.execution.session.mode = Some(Mode::Naive);
            // The device chosen for this program, if none was requested.
            options.execution.session.device =
                options.execution.session.device.or(Some(if unified { "cpu" } else { "cuda" }.to_owned()));
        }
    }
    let other_output = SecondOutput::of(output);
    let bar = Bar::new(false);
    let started = Instant::now();
    let session = session(caller, &options, job.steps_per_pixel, comm, None, printer)?;
    // The null device has no extension.
    let extension = || output.extension().and_then(|e| e.to_str()).filter(|_| !other_output.is_temporary);
    let format = job.options.format.as_deref().or_else(extension);
    let other = whole(caller, job, session, (input, &other_output.path), format, started, &bar)?;
    drop(other_output); // an interrupt would leave the file behind
    let same = run.response.image.same_bits(&other.response.image)?;
    if comm.rank() == 0 {
        let threads_or_mode = match comparison {
            Comparison::Naive => ", naive",
            Comparison::Cpu | Comparison::One => "",
        };
        printer.print(&RunComparison {
            names: [format!("{}{threads_or_mode}", other.session.device_name()), run.session.device_name()],
            times: [other.time, run.time],
            breakdowns: [&other.breakdown, &run.breakdown],
            same,
        });
    }
    std::mem::forget(other.session.clone());
    if same { Ok(()) } else { Err(Error::Config("the results of the two runs differ; please report this".into())) }
}

/// The file of a second result: a temporary one in the directory of the first, or the null device if the first is in no
/// directory.
struct SecondOutput {
    path: PathBuf,
    is_temporary: bool,
}

impl SecondOutput {
    fn of(output: &Path) -> SecondOutput {
        let is_stream = output.as_os_str() == STANDARD || (output.exists() && !output.is_file() && !output.is_dir());
        let nowhere = Path::new("/dev/null");
        if is_stream && nowhere.exists() {
            return SecondOutput { path: nowhere.to_owned(), is_temporary: false };
        }
        let mut name = std::ffi::OsString::from(format!(".horus-compared-{}", std::process::id()));
        if let Some(extension) = output.extension() {
            name.push(".");
            name.push(extension);
        }
        SecondOutput { path: output.with_file_name(name), is_temporary: true }
    }
}

impl Drop for SecondOutput {
    fn drop(&mut self) {
        if self.is_temporary {
            // The file is missing on other ranks, and if it could not be written.
            let _ = std::fs::remove_file(&self.path).or_else(|_| std::fs::remove_dir_all(&self.path));
        }
    }
}

/// Checks that the trace and the report overwrite neither input nor result. The result may replace the input, because
/// it is written after everything is computed.
pub(crate) fn distinct((this, written): (&str, &Path), input: &Path, output: &Path) -> Result<(), String> {
    for (what, path) in [("result", output), ("input", input)] {
        if same_file(written, path) {
            return Err(format!("the {this} and the {what} must be different files ({})", path.display()));
        }
    }
    Ok(())
}
