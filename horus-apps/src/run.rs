//! What surrounds a detector: the session, the picture, progress, saving, the summary.

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{CommandFactory, FromArgMatches};
use horus::prelude::*;

use crate::cli::Args;
use crate::detectors::Detector;
use crate::progress::Bar;
use crate::report::{Breakdown, Summary};

/// The program `name` around `detector`: parses the command line, runs, and prints a summary, or on failure one line
/// starting with `error:`. Exits with 0, 1 after a failure, or 2 after wrong usage.
pub fn run(name: &'static str, about: &'static str, detector: Detector) -> ExitCode {
    let matches = Args::command().name(name).about(about).get_matches();
    let args = match Args::from_arg_matches(&matches) {
        Ok(args) => args,
        Err(e) => e.exit(),
    };
    env_logger::Builder::new().filter_level(args.log_level()).parse_default_env().init();
    match execute(name, detector, &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {}", one_line(&e.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn execute(name: &'static str, detector: Detector, args: &Args) -> Result<()> {
    let started = Instant::now();
    let bar = Arc::new(Bar::new(!args.quiet));
    let session = session(args, &bar)?;
    let start = started.elapsed();
    let image = AnyImage::open(&session, &args.input)?.to_luminance_unit()?;
    let read = started.elapsed() - start;
    let params = args.params();
    let saved = detector(&image, &params).and_then(|lines| lines.save_with(&args.output, &args.save_options()));
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
    if session.rank() != 0 {
        return Ok(());
    }
    if let Some(path) = &args.trace {
        write_trace(path, &session.trace_json())?;
    }
    if args.quiet {
        return Ok(());
    }
    let summary = Summary {
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
    };
    // A closed pipe behind stdout is no failure of the run: the picture is written.
    let _ = writeln!(stdout(), "{summary}");
    Ok(())
}

fn session(args: &Args, bar: &Arc<Bar>) -> Result<Session> {
    let bar = Arc::clone(bar);
    let mut builder = Session::builder()
        .observer(move |progress| bar.update(&progress))
        .compare_naive(!args.quiet)
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
    if args.explain {
        builder = builder.explain(|text| println!("{text}"));
    }
    builder.build()
}

fn write_trace(path: &Path, trace: &str) -> Result<()> {
    std::fs::write(path, trace).map_err(|e| Error::write(path, e))
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
