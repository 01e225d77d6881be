//! The command line of `jacobi`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use horus::prelude::*;
use horus_core::comm::Communicator;
use horus_core::device::Device;
use horus_core::io::{FileTarget, Format, on_root};

use crate::loops::{CheckpointOptions, describe_ending, in_parts, parse_tolerance};
use crate::poisson::{Poisson, Rhs};
use horus_apps::batch::{self, RunEnd};
use horus_apps::execution::Execution;
use horus_apps::report::{Breakdown, Printer, Summary};

/// Points times iterations from which waiting for a GPU is worth it, if no device is requested.
const MANY: f64 = 1e9;

/// Solves Poisson's equation on the unit square by Jacobi's relaxation: from 0, each of N x N
/// interior points becomes (the sum of its four neighbours + h^2 f) / 4, with 0 around them, h = 1
/// / (N + 1) and f = 2 pi^2 sin(pi x) sin(pi y); in space (the sum of its six neighbours + h^2 f) /
/// 6 with f = 3 pi^2 sin(pi x) sin(pi y) sin(pi z)
#[derive(Parser, Clone, Debug)]
#[command(name = "jacobi", version, allow_negative_numbers = true)]
struct JacobiArgs {
    /// Rows, and columns, of interior points
    #[arg(long, value_name = "N")]
    size: NonZeroUsize,

    /// Levels of interior points, for a problem in space
    #[arg(long, value_name = "D")]
    depth: Option<NonZeroUsize>,

    /// Steps to make, at most
    #[arg(long, value_name = "T")]
    steps: usize,

    /// End when a step (every tenth is measured) changes no point by as much as E
    #[arg(long, value_name = "E", value_parser = parse_tolerance)]
    tolerance: Option<f64>,

    /// Compute in double precision
    #[arg(long = "f64")]
    double: bool,

    /// The right-hand side: a column times a row, multiplied in each step, or an image that is
    /// stored
    #[arg(long, value_name = "HOW", default_value = "broadcast")]
    rhs: Rhs,

    /// Go on without waiting for neighbouring ranks, with rows that they sent K messages before (chaotic
    /// relaxation; 0 waits): other bits for each number of ranks, but the same in each run. With a
    /// tolerance all ranks meet at each step that is measured
    #[arg(long, value_name = "K", conflicts_with_all = ["depth", "checkpoint"])]
    relaxed: Option<usize>,

    /// Steps between messages of relaxed ranks
    #[arg(long, value_name = "A", default_value = "1", requires = "relaxed")]
    inner: NonZeroUsize,

    /// Parts of the rows of a relaxed rank, at most, which are updated in place one after the other
    #[arg(long, value_name = "P", default_value = "1", requires = "relaxed")]
    parts: NonZeroUsize,

    #[command(flatten)]
    checkpoints: CheckpointOptions,

    /// The file to write: npy for the exact values, or a picture, scaled to their range
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    #[command(flatten)]
    execution: Execution,

    /// Print nothing but errors
    #[arg(long, conflicts_with = "verbose")]
    quiet: bool,

    /// Print the chosen device and where the time went; twice for debugging
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
}

/// The program `jacobi`; see [`batch::run`] for its exit status.
pub fn run() -> ExitCode {
    let args = JacobiArgs::command().try_get_matches().and_then(|matches| JacobiArgs::from_arg_matches(&matches));
    let level = args.as_ref().map_or(log::LevelFilter::Warn, |a| batch::level(a.quiet, a.verbose));
    let device = args.as_ref().ok().and_then(|args| args.execution.session.device.clone());
    batch::run_on_ranks(level, device.as_deref(), args, |args, comm| {
        let started = Instant::now();
        let printer = Arc::new(Printer::default());
        let session = session(args, comm, &printer)?;
        if args.double {
            solve::<f64>(args, session, &printer, started)
        } else {
            solve::<f32>(args, session, &printer, started)
        }
    })
}

fn session(args: &JacobiArgs, comm: &Arc<dyn Communicator>, printer: &Arc<Printer>) -> Result<Session> {
    let (n, first) = (args.size.get() as f64, comm.rank() == 0);
    let depth = args.depth.map_or(1.0, |depth| depth.get() as f64);
    let builder = Session::builder()
        .communicator(Arc::clone(comm))
        .eager(n * n * depth * args.steps as f64 > MANY)
        .compare_naive(first && !args.quiet)
        .measure(args.verbose > 0);
    let printer = Arc::clone(printer);
    args.execution.apply(builder, first, move |text| printer.print(&text)).build()
}

/// Solves the equation, writes the result, prints the summary.
fn solve<T: Float>(args: &JacobiArgs, session: Session, printer: &Printer, started: Instant) -> Result<RunEnd> {
    let (out, failed) = (&args.out, |cause| Error::write(&args.out, cause));
    // A file that cannot be written is an error before the work begins.
    Format::of(out, 1).map_err(failed)?;
    on_root(&session, "trying a file", || FileTarget::new(out).map(drop))?.map_err(failed)?;
    let start = started.elapsed();
    let problem = match args.depth {
        None => Poisson::<T>::new(&session, args.size.get(), args.rhs)?,
        Some(depth) => Poisson::<T>::in_space(&session, depth.get(), args.size.get(), args.rhs)?,
    };
    if let Some(age) = args.relaxed {
        let map = in_parts(args.size.get(), session.ranks(), args.parts.get())?;
        session.place(map.exchanging_every(args.inner.get())?.relaxed(age))?;
    }
    let levels = args.depth.map_or(String::new(), |depth| format!(" --depth {depth}"));
    let checkpoints =
        args.checkpoints.of(format!("jacobi --size {}{levels} --rhs {:?} {}", args.size, args.rhs, T::DTYPE));
    let done = problem.relaxed(args.steps, args.tolerance, checkpoints.as_ref())?;
    let relaxed = started.elapsed();
    let scale = done.state.save_with(out, &SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() })?;
    let (time, times) = (started.elapsed(), session.times());
    let breakdown = Breakdown {
        start,
        read: std::time::Duration::ZERO,
        times,
        compilation: session.device().map(Device::usage).unwrap_or_default().compilation,
        write: time.saturating_sub(start + times.total()),
    };
    if !args.quiet && session.rank() == 0 {
        let ms = (relaxed - start).as_secs_f64() * 1e3;
        let speed = if args.verbose > 0 && done.steps > 0 && !args.checkpoints.resume {
            format!(", {ms:.1} ms, {:.4} ms for each", ms / done.steps as f64)
        } else {
            String::new()
        };
        printer.print(&Summary {
            name: "jacobi",
            shape: done.state.shape(),
            about: &format!("{}, {}{speed}", T::DTYPE, describe_ending(&done, args.tolerance)),
            device: session.device_name(),
            ranks: session.ranks(),
            time,
            stats: session.stats(),
            output: out.display().to_string(),
            scale,
            breakdown: (args.verbose > 0).then_some(&breakdown),
            forecasted: None,
        });
    }
    batch::printed(&session, printer)?;
    if session.ranks() > 1 {
        drop((problem, done)); // close the session before ranks part
    }
    printer.end_process(session, 0);
    Ok(RunEnd::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<JacobiArgs, String> {
        let words = ["jacobi", "--out", "u.npy"].iter().chain(words);
        JacobiArgs::try_parse_from(words).map_err(|e| e.to_string())
    }

    #[test]
    fn the_command_is_well_formed() {
        JacobiArgs::command().debug_assert();
        let args = parse(&["--size", "8", "--steps", "0", "--rhs", "image", "--f64", "--tolerance", "1e-9"]).unwrap();
        assert_eq!((args.size.get(), args.steps, args.rhs, args.double), (8, 0, Rhs::Image, true));
        assert_eq!(args.tolerance, Some(1e-9));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        let bad = [["--size", "0"], ["--size", "-3"], ["--steps", "-1"], ["--tolerance", "0"], ["--tolerance", "NaN"]];
        for [name, value] in bad {
            let mut words = vec!["--size", "8", "--steps", "3"];
            words.retain(|w| name == "--tolerance" || *w != name);
            words.retain(|w| !(name == "--size" && *w == "8" || name == "--steps" && *w == "3"));
            words.extend([name, value]);
            assert!(parse(&words).unwrap_err().contains(name), "{words:?}");
        }
        assert!(parse(&["--steps", "3"]).unwrap_err().contains("--size"));
    }
}
