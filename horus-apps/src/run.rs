//! What surrounds a detector: the session, the picture, progress, saving, the summary.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{CommandFactory, FromArgMatches};
use horus::core::agree::agree_on;
use horus::core::comm::Communicator;
use horus::core::io::{Target, on_first, on_root, same_file};
use horus::prelude::*;

use crate::cli::Args;
use crate::detectors::Detector;
use crate::progress::Bar;
use crate::report::{Breakdown, Printer, Summary};

/// The program `name` around `detector`: parses the command line, runs, and prints a summary, or on failure one line
/// starting with `error:`. Exits with 0, 1 after a failure, or 2 after wrong usage. On several ranks, rank 0 alone reads,
/// writes and prints.
pub fn run(name: &'static str, about: &'static str, detector: Detector) -> ExitCode {
    let matches = Args::command().name(name).about(about).try_get_matches();
    let args = matches.and_then(|m| Args::from_arg_matches(&m));
    let level = args.as_ref().map_or(log::LevelFilter::Warn, Args::log_level);
    env_logger::Builder::new().filter_level(level).parse_default_env().init();
    let comm = match horus::ranks() {
        Ok(comm) => comm,
        Err(e) => {
            eprintln!("error: {}", one_line(&e.to_string()));
            return ExitCode::FAILURE;
        }
    };
    let first = comm.rank() == 0;
    let args = match args {
        Ok(args) => args,
        Err(e) if first => e.exit(),
        Err(e) => std::process::exit(e.exit_code()),
    };
    if !first && level < log::LevelFilter::Debug {
        log::set_max_level(log::LevelFilter::Error); // rank 0 speaks for all
    }
    match execute(name, detector, &args, &comm) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let message = one_line(&e.to_string());
            // If the others do not fail alike, this ends them all.
            let alike = agree_on(&*comm, &format!("an end with `error: {message}`")).is_ok();
            if first || !alike {
                eprintln!("error: {message}");
            }
            ExitCode::FAILURE
        }
    }
}

fn execute(name: &'static str, detector: Detector, args: &Args, comm: &Arc<dyn Communicator>) -> Result<()> {
    let started = Instant::now();
    let first = comm.rank() == 0;
    if let Some(trace) = &args.trace {
        on_first(&**comm, "comparing the files of a run", || distinct(args, trace))?.map_err(Error::Config)?;
    }
    let bar = Arc::new(Bar::new(first && !args.quiet));
    let printer = Arc::new(Printer::default());
    let session = session(args, comm, &bar, &printer)?;
    let start = started.elapsed();
    let mut trace = None;
    if let Some(path) = &args.trace {
        let made = on_root(&session, "making a file for the trace", || {
            trace = Some(Target::new(path)?);
            Ok(Vec::new())
        });
        made?.map_err(|e| Error::write(path, e))?;
    }
    let image = AnyImage::open_with(&session, &args.input, &args.open_options())?.luminance();
    let read = started.elapsed() - start;
    let params = args.params();
    let lines = detector(&image, &params);
    lines.check().inspect_err(|_| bar.finish())?;
    if let Some(ranks) = args.dry_run_ranks {
        let forecast = lines.forecast(ranks.get(), args.link())?;
        if first {
            printer.print(&forecast);
        }
        return printed(&session, &printer);
    }
    let saved = lines.save_with(&args.output, &args.save_options());
    bar.finish();
    let scale = saved?;
    let time = started.elapsed();
    let times = session.times();
    let breakdown = (args.verbose > 0).then(|| Breakdown {
        start,
        read,
        times,
        compilation: session.device().compilation(),
        write: time.saturating_sub(start + read + times.total()),
    });
    if let Some(path) = &args.trace {
        let text = session.trace_json()?.unwrap_or_default();
        let written = on_root(&session, "writing the trace", || {
            let file = trace.ok_or("there is no file for it")?;
            file.fill(|to| to.write_all(text.as_bytes()).map_err(|e| e.to_string()))?;
            Ok(Vec::new())
        });
        written?.map_err(|e| Error::write(path, e))?;
    }
    if !args.quiet && first {
        printer.print(&Summary {
            name,
            shape: image.shape(),
            params: &params,
            device: session.device_name(),
            ranks: session.ranks(),
            time,
            stats: session.stats(),
            output: args.output.display().to_string(),
            scale,
            breakdown,
        });
    }
    printed(&session, &printer)
}

/// Checks that what a run writes overwrites neither its input nor its result. That the result may replace the input is
/// because it is written when all is computed.
fn distinct(args: &Args, trace: &Path) -> Result<Vec<u8>, String> {
    for (what, path) in [("result", &args.output), ("input", &args.input)] {
        if same_file(trace, path) {
            return Err(format!("the trace and the {what} cannot be one file ({})", path.display()));
        }
    }
    Ok(Vec::new())
}

/// Ends a run on all ranks alike if what rank 0 printed was lost.
fn printed(session: &Session, printer: &Printer) -> Result<()> {
    on_root(session, "printing", || printer.result().map(|()| Vec::new()))?.map(drop).map_err(Error::Config)
}

fn session(args: &Args, comm: &Arc<dyn Communicator>, bar: &Arc<Bar>, printer: &Arc<Printer>) -> Result<Session> {
    let (bar, printer) = (Arc::clone(bar), Arc::clone(printer));
    let first = comm.rank() == 0;
    let mut builder = Session::builder()
        .communicator(Arc::clone(comm))
        .observer(move |progress| bar.update(&progress))
        .compare_naive(first && !args.quiet)
        .trace(args.trace.is_some());
    if let Some(threads) = args.threads {
        builder = builder.threads(threads.get());
    }
    if let Some(mode) = args.mode {
        builder = builder.mode(mode);
    }
    if let Some(device) = &args.device {
        builder = builder.device(device);
    }
    if args.explain && first {
        builder = builder.explain(move |text| printer.print(&text)).explain_passes(args.verbose > 1);
    }
    builder.build()
}

/// A message without its line breaks: a driver's or a compiler's may have many.
fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_take_one_line() {
        assert_eq!(one_line("cannot compile:\n  line 3\n  line 4\n"), "cannot compile: line 3 line 4");
    }
}
