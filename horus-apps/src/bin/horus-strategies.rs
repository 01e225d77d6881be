//! Times strategies of copying between host and device (chapter 5 of the thesis), and compares them with what is predicted.
//!
//! Pixels come from page-locked memory and go to page-locked memory.

use std::fmt::Write as _;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use horus::prelude::*;
use horus_apps::detectors::{Params, conv2d, convrot, convuv};

/// Times strategies of copying pixels to a GPU and back.
#[derive(Parser)]
struct Options {
    /// Programs, comma separated, or `all`.
    #[arg(long, default_value = "all")]
    op: String,
    /// Rows and columns of the image; several, comma separated, are measured one after the other.
    #[arg(long, default_value = "1024,4096,16384", value_delimiter = ',')]
    size: Vec<usize>,
    /// Device: auto, cpu, cuda, cuda:N.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Timed runs after two that are not counted.
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Seconds after which no further run of a row begins.
    #[arg(long, default_value_t = 3.0)]
    budget: f64,
    /// Write a table to this file.
    #[arg(long)]
    markdown: Option<PathBuf>,
}

/// A program over an image of real numbers.
type Program = fn(&Image<f32>) -> Image<f32>;

fn correlate(image: &Image<f32>, n: usize) -> Image<f32> {
    let taps: Vec<f64> = (0..n * n).map(|i| ((i * 7919 % 101) as f64 - 50.0) / (25.0 * (n * n) as f64)).collect();
    image.correlate(&Filter::dense(n, n, taps), Border::Reflect101)
}

/// The programs, by name.
const PROGRAMS: &[(&str, Program)] = &[
    ("correlate 3", |i| correlate(i, 3)),
    ("correlate 7", |i| correlate(i, 7)),
    ("correlate 17", |i| correlate(i, 17)),
    ("correlate 43", |i| correlate(i, 43)),
    ("pixel chain", |i| ((i * 2.5 + 0.25).abs() / (i + 1.5)).max(i * 0.5)),
    ("separable 19", |i| i.gauss(3.0)),
    ("ConvRot", |i| convrot(i, &Params::default())),
    ("ConvUV", |i| convuv(i, &Params::default())),
    ("Conv2D", |i| conv2d(i, &Params::default())),
];

/// The strategies that are forced, and the choice between them.
fn strategies() -> Vec<(String, Transfer)> {
    let streams = |n| (format!("{n} streams"), Transfer::Streams(NonZeroU8::new(n)));
    let forced = [("explicit".to_owned(), Transfer::Explicit)].into_iter().chain([2, 4, 8, 16].map(streams));
    forced.chain([("auto".to_owned(), Transfer::Auto)]).collect()
}

/// Milliseconds of one strategy.
struct Timed {
    measured: f64,
    predicted: f64,
}

/// The type of the pixels that are given.
#[derive(Clone, Copy)]
enum Given {
    Bytes,
    Reals,
}

impl Given {
    const fn name(self) -> &'static str {
        match self {
            Given::Bytes => "u8",
            Given::Reals => "f32",
        }
    }

    /// Times a program from pixels of this type to real numbers.
    fn timed(self, options: &Options, size: usize, program: Program, transfer: Transfer) -> Result<Timed> {
        match self {
            Given::Bytes => timed::<u8>(options, size, transfer, |i| program(&i.to_unit())),
            Given::Reals => timed::<f32>(options, size, transfer, program),
        }
    }
}

fn timed<T: Pixel>(
    options: &Options,
    size: usize,
    transfer: Transfer,
    program: impl Fn(&Image<T>) -> Image<f32>,
) -> Result<Timed> {
    let session = Session::builder().device(&options.device).eager(true).transfer(transfer).build()?;
    let mut from = session.pixels::<T>(size, size, 1)?;
    Image::<f32>::from_fn(&session, size, size, |y, x| ((y * 7 + x * 13) % 251) as f32)
        .convert::<T>()
        .read_into(&mut from)?;
    let mut to = session.pixels::<f32>(size, size, 1)?;
    let mut run = || program(&Image::from_pixels(&session, from.clone())).read_into(&mut to);
    run()?;
    run()?;
    let (before, until) = (session.stats().predicted, Instant::now() + Duration::from_secs_f64(options.budget));
    let mut times = Vec::new();
    while times.is_empty() || (times.len() < options.runs && Instant::now() < until) {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let predicted = (session.stats().predicted - before).as_secs_f64() * 1e3 / times.len() as f64;
    Ok(Timed { measured: times[times.len() / 2], predicted })
}

/// How far predictions are away, of what was measured.
fn median(mut errors: Vec<f64>) -> f64 {
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied().unwrap_or(0.0)
}

fn run(options: &Options) -> Result<()> {
    let names = strategies();
    let wanted: Vec<&str> = options.op.split(',').collect();
    if let Some(unknown) = wanted.iter().find(|w| **w != "all" && !PROGRAMS.iter().any(|(name, _)| name == *w)) {
        return Err(Error::Config(format!("program {unknown:?} is not known")));
    }
    let mut table = String::from(
        "Measured / predicted ms, from page-locked memory to page-locked memory.\n\n| program | pixels | size |",
    );
    names.iter().for_each(|(name, _)| table.push_str(&format!(" {name} |")));
    table.push_str(" auto / best |\n| --- | --- | --- |");
    table.push_str(&" --- |".repeat(names.len() + 1));
    table.push('\n');
    let (mut errors, mut beside) = (Vec::new(), Vec::new());
    let programs = PROGRAMS.iter().filter(|(name, _)| wanted.contains(&"all") || wanted.contains(name));
    for (name, program) in programs {
        for &size in &options.size {
            for given in [Given::Reals, Given::Bytes] {
                let times = names.iter().map(|(_, transfer)| given.timed(options, size, *program, *transfer));
                let times = times.collect::<Result<Vec<Timed>>>()?;
                let mut row = format!("| {name} | {} | {size} |", given.name());
                for time in &times {
                    let _ = write!(row, " {:.3} / {:.3} |", time.measured, time.predicted);
                    errors.push((time.predicted / time.measured - 1.0).abs());
                }
                let best = times.iter().map(|t| t.measured).fold(f64::INFINITY, f64::min);
                let auto = times.last().map_or(1.0, |t| t.measured / best);
                beside.push(auto);
                let _ = write!(row, " {auto:.3} |");
                println!("{row}");
                table.push_str(&row);
                table.push('\n');
            }
        }
    }
    let within = beside.iter().filter(|ratio| **ratio <= 1.03).count();
    let summary = format!(
        "\nMedian error of predictions {:.1} %; the automatic choice is within 3 % of the fastest in {within} of {} rows.\n",
        100.0 * median(errors),
        beside.len()
    );
    println!("{summary}");
    table.push_str(&summary);
    match &options.markdown {
        Some(path) => std::fs::write(path, table).map_err(|e| Error::write(path, e)),
        None => Ok(()),
    }
}

fn main() -> ExitCode {
    horus_apps::exit_code(run(&Options::parse()))
}
