//! Runs an operation on one picture or a series: files in and out, progress, errors, the summary.
//!
//! A program parses its command line into a [`BatchJob`] and passes it to [`run`]:
//!
//! ```no_run
//! use clap::{CommandFactory, FromArgMatches, Parser};
//! use horus_apps::batch::{self, BatchJob, BatchOptions, RunFiles};
//!
//! /// Smooths pictures.
//! #[derive(Parser)]
//! struct Args {
//!     /// INPUT OUTPUT, or with --out-dir any number of pictures and folders
//!     paths: Vec<std::path::PathBuf>,
//!     #[command(flatten)]
//!     options: BatchOptions,
//! }
//!
//! fn job() -> Result<BatchJob, clap::Error> {
//!     let mut command = Args::command();
//!     let args = Args::from_arg_matches(&command.try_get_matches_from_mut(std::env::args_os())?)?;
//!     let work = RunFiles::of(args.paths, &args.options).map_err(|e| batch::usage(&mut command, e))?;
//!     let operation = |picture: &horus::prelude::AnyImage| Ok(picture.luminance().gauss(2.0).into());
//!     Ok(BatchJob::new("smooth", args.options, work, operation))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     batch::run(job())
//! }
//! ```

mod inputs;
mod log;
mod numbers;
mod options;
mod response;
mod series;
mod single;
mod stores;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use horus::prelude::*;
use horus_core::comm::Communicator;
use horus_core::comm::agree::agree_on;
use horus_core::error::Audience;
use horus_core::image::Values;
use horus_core::io::{on_root, same_file};
use horus_core::report;

use crate::caller::{Caller, OutputFile};
use crate::execution::ExplainForm;
use crate::interrupts;
use crate::progress::Bar;
use crate::report::Printer;

pub use crate::caller::STANDARD;
pub use inputs::{PicturePair, outputs, pictures};
pub use log::begin as log_from;
pub(crate) use log::begin_for as log_for;
pub(crate) use options::AUTO;
pub use options::{BatchOptions, Comparison, level};
pub use response::{Product, Response};
pub(crate) use response::{each_number, each_variant};
pub(crate) use single::distinct;
pub(crate) use stores::{described, is_store, is_url, open};

/// The operation on each picture: records, computes nothing.
pub type BatchOperation = Box<dyn Fn(&AnyImage) -> Result<Product>>;

/// The numbers printed for each picture, in lines after its name: values that are not computed yet.
pub type Numbers = Box<dyn Fn(&AnyImage) -> Result<Box<dyn Values<Output = Vec<String>>>>>;

/// The files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFiles {
    /// One picture to one file; `-` is stdin and stdout.
    Single {
        /// The picture.
        input: PathBuf,
        /// The file to write.
        output: PathBuf,
    },
    /// Pictures, and directories of pictures, to files in a directory.
    Series {
        /// Pictures and directories; [`BatchOptions::files_from`] adds more.
        inputs: Vec<PathBuf>,
        /// The folder to write to.
        out_dir: PathBuf,
    },
    /// Pictures, and directories of pictures, for which [`BatchJob::numbers`] are printed.
    Numbers {
        /// Pictures and directories; [`BatchOptions::files_from`] adds more.
        inputs: Vec<PathBuf>,
    },
}

impl RunFiles {
    /// The files named by a command line: INPUT OUTPUT, or any number with `--out-dir`. Does not
    /// access them.
    ///
    /// # Errors
    /// A message about a missing or superfluous path; see [`usage`].
    pub fn of(paths: Vec<PathBuf>, options: &BatchOptions) -> Result<RunFiles, String> {
        let store = options.out_dir.is_none() && paths.last().is_some_and(|path| stores::is_named(path));
        if options.pixel_size.is_some() && !store {
            return Err("--pixel-size applies to a Zarr store (OUTPUT.zarr)".into());
        }
        if let Some(out_dir) = &options.out_dir {
            if paths.is_empty() && options.files_from.is_none() {
                return Err("pictures are required: name some, a folder, or a list (--files-from LIST)".into());
            }
            return Ok(RunFiles::Series { inputs: paths, out_dir: out_dir.clone() });
        }
        let count = paths.len();
        let Ok([input, output]) = <[PathBuf; 2]>::try_from(paths) else {
            return Err(match count {
                0 => "INPUT and OUTPUT are required (or pictures and --out-dir DIR)".into(),
                1 => "OUTPUT is required (or --out-dir DIR)".into(),
                n => format!("got {n} paths: one picture takes two, a series requires --out-dir DIR"),
            });
        };
        if output.as_os_str() == STANDARD && options.format.is_none() {
            return Err("--format is required to write to stdout".into());
        }
        if input.as_os_str() == STANDARD && options.compare.is_some() {
            return Err("--compare reads the picture twice, which stdin does not allow".into());
        }
        Ok(RunFiles::Single { input, output })
    }
}

/// A run: an operation and the pictures that it is applied to.
pub struct BatchJob {
    /// The name of the program.
    pub name: &'static str,
    /// The options of the command line.
    pub options: BatchOptions,
    /// The files.
    pub work: RunFiles,
    /// Conversion of values to integers.
    pub scaling: Scaling,
    /// A short description of the operation, for the summary.
    pub about: Box<dyn Fn() -> String>,
    /// Approximate multiply-adds per pixel; see [`Builder::steps_per_pixel`].
    pub steps_per_pixel: f64,
    /// The operation.
    pub operation: BatchOperation,
    /// The numbers, for [`RunFiles::Numbers`]: lines of numbers with tabs between them.
    pub numbers: Numbers,
    /// Numbers are printed as JSON.
    pub json: bool,
}

impl BatchJob {
    /// A run that saves with [`Scaling::Auto`] and has no description.
    pub fn new(
        name: &'static str,
        options: BatchOptions,
        work: RunFiles,
        operation: impl Fn(&AnyImage) -> Result<Response> + 'static,
    ) -> BatchJob {
        let operation = Box::new(move |picture: &AnyImage| operation(picture).map(Product::from));
        let numbers = Box::new(|_: &AnyImage| Ok(nothing()));
        let about = Box::new(String::new);
        let (scaling, steps_per_pixel, json) = (Scaling::Auto, 0.0, false);
        BatchJob { name, options, work, scaling, about, steps_per_pixel, operation, numbers, json }
    }

    /// Options for saving results.
    pub fn save_options(&self) -> SaveOptions {
        self.options.save_options(self.scaling)
    }
}

/// No numbers.
fn nothing() -> Box<dyn Values<Output = Vec<String>>> {
    Box::new(Vec::<Value<String>>::new())
}

/// A usage error in a command line that `clap` accepts.
pub fn usage(command: &mut clap::Command, message: String) -> clap::Error {
    let mut error = command.error(ErrorKind::WrongNumberOfValues, message);
    error.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
    error
}

/// The outcome of a run.
pub enum RunEnd {
    /// Success.
    Done,
    /// Some pictures of a series failed, and were reported: their number.
    Failed(String),
    /// The series ended early: the reason.
    Cut(String),
    /// Invalid usage.
    Usage(String),
}

/// Runs a job for this process and prints a summary, or on failure a line starting with `error:` (in a series, one for
/// each picture that failed). Exits with 0; 1 after a failure, 2 after wrong usage, 130 after an interrupt. Only rank 0
/// prints.
pub fn run(job: Result<BatchJob, clap::Error>) -> ExitCode {
    ExitCode::from(run_for(&Caller::process(), job))
}

/// [`run`] for any caller; returns the exit status.
pub(crate) fn run_for(caller: &Arc<Caller>, job: Result<BatchJob, clap::Error>) -> u8 {
    let level = job.as_ref().map_or(::log::LevelFilter::Warn, |job| job.options.log_level());
    let device = job.as_ref().ok().and_then(|job| job.options.execution.session.device.clone());
    run_on_ranks_for(caller, level, device.as_deref(), job, |job, comm| match &job.work {
        RunFiles::Single { input, output } => single::run(caller, job, input, output, comm).map(|()| RunEnd::Done),
        RunFiles::Series { inputs, out_dir } => series::run(caller, job, inputs, out_dir, comm),
        RunFiles::Numbers { inputs } => numbers::run(caller, job, inputs, comm),
    })
}

/// Runs any work within the frame of [`run`]: log level, ranks, signals, exit status.
pub fn run_on_ranks<J>(
    level: ::log::LevelFilter,
    device: Option<&str>,
    job: Result<J, clap::Error>,
    work: impl FnOnce(&J, &Arc<dyn Communicator>) -> Result<RunEnd>,
) -> ExitCode {
    ExitCode::from(run_on_ranks_for(&Caller::process(), level, device, job, work))
}

fn run_on_ranks_for<J>(
    caller: &Arc<Caller>,
    level: ::log::LevelFilter,
    device: Option<&str>,
    job: Result<J, clap::Error>,
    work: impl FnOnce(&J, &Arc<dyn Communicator>) -> Result<RunEnd>,
) -> u8 {
    /// Exit status of a failure.
    const FAILED: u8 = 1;
    log::begin_for(caller, level);
    Audience::Command.set();
    let comm = match caller.ranks(device) {
        Ok(comm) => comm,
        Err(e) => {
            caller.print_error(one_line(&e.to_string()));
            return FAILED;
        }
    };
    let first = comm.rank() == 0;
    let job = match job {
        Ok(job) => job,
        Err(e) if first => return caller.print_usage(&e),
        Err(e) => return u8::try_from(e.exit_code()).unwrap_or(2),
    };
    if !first && level < ::log::LevelFilter::Debug {
        log::silence();
    }
    // Signals of a server are not for its requests.
    let listening = if caller.is_client() { Ok(()) } else { interrupts::listen(first, comm.size() == 1) };
    let failed = || if caller.interruption.is_asked() { interrupts::INTERRUPTED } else { FAILED };
    match listening.and_then(|()| work(&job, &comm)) {
        Ok(RunEnd::Done) => 0,
        Ok(RunEnd::Failed(message) | RunEnd::Cut(message)) => {
            if first {
                caller.print_error(one_line(&message));
            }
            failed()
        }
        Ok(RunEnd::Usage(message)) => {
            if first {
                caller.print_error(one_line(&message));
            }
            2
        }
        Err(e) => {
            let message = one_line(&e.to_string());
            // Ends the other ranks if they do not fail in the same way.
            let alike = agree_on(&*comm, &format!("an end with `error: {message}`")).is_ok();
            if first || !alike {
                caller.print_error(message);
            }
            failed()
        }
    }
}

/// Opens the session of a run.
fn session(
    caller: &Caller,
    options: &BatchOptions,
    steps_per_pixel: f64,
    comm: &Arc<dyn Communicator>,
    bar: Option<&Arc<Bar>>,
    printer: &Arc<Printer>,
) -> Result<Session> {
    let (first, printer) = (comm.rank() == 0, Arc::clone(printer));
    let keeps = options.report.is_some();
    let (draws, prints) = (options.draws(), options.execution.explain == Some(ExplainForm::Text));
    let drawn = Arc::clone(&printer);
    let told = move |text: &str| {
        if keeps {
            printer.store_plan(text);
        }
        if prints {
            printer.print(&text);
        }
    };
    caller.session(&options.execution.session, options.observes(), |builder| {
        let mut builder = builder
            .steps_per_pixel(steps_per_pixel)
            .communicator(Arc::clone(comm))
            .compare_naive(first && options.verbose > 0 && bar.is_some())
            .trace(options.trace.is_some() || keeps)
            .measure(options.verbose > 0 && bar.is_some())
            .explain_passes(options.verbose > 1);
        if let Some(bar) = bar.map(Arc::clone) {
            builder = builder.observer(move |progress| bar.update(&progress));
        }
        if first && draws {
            builder = builder.explain_drawings(move |drawing| drawn.store_drawing(drawing));
        }
        if first && (prints || keeps) { builder.explain(told) } else { builder }
    })
}

/// Ends a run on all ranks in the same way if output of rank 0 was lost.
///
/// # Errors
/// If output was lost.
pub fn printed(session: &Session, printer: &Printer) -> Result<()> {
    on_root(session, "printing", || printer.result())?.map_err(Error::Config)
}

/// The requested files about a run, on the rank that writes them.
#[derive(Default)]
struct Records {
    trace: Option<OutputFile>,
    report: Option<OutputFile>,
    /// The page of an earlier run.
    earlier: Option<String>,
}

impl Records {
    /// Creates the files.
    fn of(caller: &Caller, session: &Session, options: &BatchOptions, work: &RunFiles) -> Result<Records> {
        if options.report_images && !matches!(work, RunFiles::Single { .. }) {
            return Err(Error::Config("--report-images shows one picture and its result".into()));
        }
        let create = |path: &Option<PathBuf>| -> Result<Option<OutputFile>> {
            let mut target = None;
            if let Some(path) = path {
                let made = on_root(session, "creating a file about the run", || {
                    target = Some(caller.file(path)?);
                    Ok(())
                });
                made?.map_err(|e| Error::write(path, e))?;
            }
            Ok(target)
        };
        if let (Some(trace), Some(report)) = (&options.trace, &options.report) {
            let distinct = on_root(session, "comparing the files of a run", || match same_file(trace, report) {
                true => Err(format!("the trace and the report must be different files ({})", report.display())),
                false => Ok(()),
            });
            distinct?.map_err(Error::Config)?;
        }
        let read = |path: &PathBuf| {
            on_root(session, "reading the page of an earlier run", || {
                let page = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
                // A file that is no page is an error now, not after the run.
                report::beside(&page, &page).map(|_| page).map_err(|e| e.to_string())
            })?
            .map_err(|e| Error::read(path, e))
        };
        let earlier = options.report_beside.as_ref().map(read).transpose()?;
        Ok(Records { trace: create(&options.trace)?, report: create(&options.report)?, earlier })
    }

    /// Writes them. `images` are the pictures of the page, made after it.
    fn write(
        self,
        caller: &Caller,
        session: &Session,
        options: &BatchOptions,
        printer: &Printer,
        images: impl FnOnce() -> Result<Vec<(String, Vec<u8>)>>,
    ) -> Result<()> {
        if let Some(path) = &options.trace {
            written(session, path, self.trace, &session.trace_json()?.unwrap_or_default())?;
        }
        if let Some(path) = &options.report {
            let words: Vec<_> = caller.words().iter().map(|word| word.to_string_lossy()).collect();
            let name = caller.command_line().first().map(PathBuf::from).unwrap_or_default();
            let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (title, plans) = (format!("{name} {}", words.join(" ")), printer.plan_texts());
            let page = session.report(&title, &plans)?;
            let images = images()?;
            let page = page.map(|page| {
                let page = report::with_images(&page, &images)?;
                self.earlier.as_ref().map_or(Ok(page.clone()), |earlier| report::beside(earlier, &page))
            });
            written(session, path, self.report, &page.transpose()?.unwrap_or_default())?;
        }
        printer.print_drawings();
        Ok(())
    }
}

/// Writes a text to the file that one rank opened for it.
fn written(session: &Session, path: &Path, target: Option<OutputFile>, text: &str) -> Result<()> {
    let written = on_root(session, "writing a file about the run", || {
        let file = target.ok_or("there is no file for it")?;
        file.fill(text.as_bytes())
    });
    written?.map_err(|e| Error::write(path, e))
}

/// A message without line breaks; messages of drivers and compilers may have many.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct PathsProgram {
        paths: Vec<PathBuf>,
        #[command(flatten)]
        options: BatchOptions,
    }

    fn work(words: &[&str]) -> Result<RunFiles, String> {
        let program = PathsProgram::try_parse_from(std::iter::once(&"program").chain(words)).unwrap();
        RunFiles::of(program.paths, &program.options)
    }

    #[test]
    fn errors_take_one_line() {
        assert_eq!(one_line("cannot compile:\n  line 3\n  line 4\n"), "cannot compile: line 3 line 4");
    }

    #[test]
    fn two_paths_are_one_picture_and_a_folder_makes_a_series() {
        assert_eq!(work(&["a", "b"]).unwrap(), RunFiles::Single { input: "a".into(), output: "b".into() });
        let series = |inputs: &[&str]| RunFiles::Series {
            inputs: inputs.iter().map(PathBuf::from).collect(),
            out_dir: "d".into(),
        };
        assert_eq!(work(&["a", "b", "--out-dir", "d"]).unwrap(), series(&["a", "b"]));
        assert_eq!(work(&["--out-dir", "d", "--files-from", "-"]).unwrap(), series(&[]));
        assert!(work(&["-", "-", "--format", "png"]).is_ok());
    }

    #[test]
    fn what_is_missing_is_told() {
        for (words, missing) in [
            (&[][..], "INPUT and OUTPUT"),
            (&["a"], "OUTPUT is required"),
            (&["a", "b", "c"], "requires --out-dir"),
            (&["--out-dir", "d"], "pictures are required"),
            (&["a", "-"], "--format is required"),
        ] {
            assert!(work(words).unwrap_err().contains(missing), "{words:?}");
        }
    }
}
