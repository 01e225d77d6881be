//! Times strategies of copying between host and device (chapter 5 of the thesis), or shares of the
//! rows between two devices, and compares them with predictions.
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
    /// Rows and columns of the image; several, comma separated, are measured in turn.
    #[arg(long, default_value = "1024,2048,4096,8192,16384", value_delimiter = ',')]
    size: Vec<usize>,
    /// Device: auto, cpu, cuda, cuda:N; for shares two, as cuda:0+cpu.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Shares of the second device in per cent, comma separated, in place of strategies.
    #[arg(long, value_delimiter = ',')]
    shares: Vec<f64>,
    /// Timed runs of each strategy, after two that are not counted.
    #[arg(long, default_value_t = 31)]
    runs: usize,
    /// Seconds per strategy of a row, after which no further run begins.
    #[arg(long, default_value_t = 1.0)]
    budget: f64,
    /// Write a table to this file.
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Write the numbers, separated by tabs, to this file: `benches/plot.py strategies` draws them.
    #[arg(long)]
    tsv: Option<PathBuf>,
}

/// A program over an image of real numbers.
type Program = fn(&Image<f32>) -> Image<f32>;

fn correlate(image: &Image<f32>, n: usize) -> Image<f32> {
    let taps: Vec<f64> = (0..n * n).map(|i| ((i * 7919 % 101) as f64 - 50.0) / (25.0 * (n * n) as f64)).collect();
    image.correlate(&Filter::dense(n, n, taps))
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

/// A setting of a session that is measured.
#[derive(Clone, Copy)]
enum Strategy {
    Copies(Transfer),
    /// Per cent of the rows of the second device.
    Share(f64),
}

impl Strategy {
    fn open(self, device: &str) -> Result<Session> {
        let builder = Session::builder().device(device).eager(true);
        match self {
            Strategy::Copies(transfer) => builder.transfer(transfer),
            Strategy::Share(percent) => builder.all_lanes(true).weights(vec![100.0 - percent, percent]),
        }
        .build()
    }
}

/// The forced strategies, and the automatic choice, which comes last.
fn strategies(shares: &[f64]) -> Vec<(String, Strategy)> {
    let auto = ("auto".to_owned(), Strategy::Copies(Transfer::Auto));
    if !shares.is_empty() {
        let forced = shares.iter().map(|percent| (format!("{percent} %"), Strategy::Share(*percent)));
        return forced.chain([auto]).collect();
    }
    let streams = |n| (format!("{n} streams"), Transfer::Streams(NonZeroU8::new(n)));
    let forced = [("explicit".to_owned(), Transfer::Explicit)].into_iter().chain([2, 4, 8, 16].map(streams));
    let mapped = [("implicit", Transfer::Implicit), ("hybrid", Transfer::Hybrid(None))];
    let forced = forced.chain(mapped.map(|(name, transfer)| (name.to_owned(), transfer)));
    forced.map(|(name, transfer)| (name, Strategy::Copies(transfer))).chain([auto]).collect()
}

/// Milliseconds of one strategy.
#[derive(Clone)]
struct Timed {
    /// Sorted times of all runs.
    runs: Vec<f64>,
    predicted: f64,
}

impl Timed {
    /// The time that this share of runs does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        self.runs[((self.runs.len() - 1) as f64 * share).round() as usize]
    }

    fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

/// The type of the given pixels.
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

    /// Times a program from pixels of this type to real numbers, by each strategy.
    fn timed(self, options: &Options, size: usize, program: Program, how: &[Strategy]) -> Result<Vec<Timed>> {
        match self {
            Given::Bytes => timed::<u8>(options, size, how, |i| program(&i.to_unit())),
            Given::Reals => timed::<f32>(options, size, how, program),
        }
    }
}

/// Strategies take turns, so that a change in the machine's speed affects all of them.
fn timed<T: Pixel>(
    options: &Options,
    size: usize,
    how: &[Strategy],
    program: impl Fn(&Image<T>) -> Image<f32>,
) -> Result<Vec<Timed>> {
    let sessions = how.iter().map(|strategy| strategy.open(&options.device)).collect::<Result<Vec<Session>>>()?;
    let Some(first) = sessions.first() else { return Ok(Vec::new()) };
    let mut from = first.pixels::<T>(size, size, 1)?;
    Image::<f32>::from_fn(first, size, size, |y, x| ((y * 7 + x * 13) % 251) as f32)
        .convert::<T>()
        .read_into(&mut from)?;
    let mut to = first.pixels::<f32>(size, size, 1)?;
    let mut run = |session: &Session| program(&Image::from_pixels(session, from.clone())).read_into(&mut to);
    for session in &sessions {
        run(session)?;
        run(session)?;
    }
    let predicted = |session: &Session| session.stats().predicted + session.stats().recording;
    let before: Vec<Duration> = sessions.iter().map(predicted).collect();
    let until = Instant::now() + Duration::from_secs_f64(options.budget * how.len() as f64);
    let mut runs: Vec<Vec<f64>> = vec![Vec::new(); how.len()];
    while runs[0].is_empty() || (runs[0].len() < options.runs && Instant::now() < until) {
        for (session, runs) in sessions.iter().zip(&mut runs) {
            let start = Instant::now();
            run(session)?;
            runs.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let told = |((mut runs, session), before): ((Vec<f64>, &Session), Duration)| {
        runs.sort_by(f64::total_cmp);
        let predicted = (predicted(session) - before).as_secs_f64() * 1e3 / runs.len() as f64;
        Timed { runs, predicted }
    };
    Ok(runs.into_iter().zip(&sessions).zip(before).map(told).collect())
}

/// The forced strategy with the same prediction as the automatic choice, which makes the same plan,
/// and the median of the runs of both.
fn chosen(times: &[Timed]) -> (Option<usize>, f64) {
    let Some((auto, forced)) = times.split_last() else { return (None, 0.0) };
    let same = forced.iter().position(|t| (t.predicted / auto.predicted - 1.0).abs() < 1e-6);
    let mut runs = auto.runs.clone();
    runs.extend(same.iter().flat_map(|i| &forced[*i].runs));
    runs.sort_by(f64::total_cmp);
    (same, Timed { runs, ..auto.clone() }.median())
}

/// Median relative error of predictions.
fn median(mut errors: Vec<f64>) -> f64 {
    errors.sort_by(f64::total_cmp);
    errors.get(errors.len() / 2).copied().unwrap_or(0.0)
}

fn run(options: &Options) -> Result<()> {
    let names = strategies(&options.shares);
    let wanted: Vec<&str> = options.op.split(',').collect();
    if let Some(unknown) = wanted.iter().find(|w| **w != "all" && !PROGRAMS.iter().any(|(name, _)| name == *w)) {
        return Err(Error::Config(format!("program {unknown:?} is not known")));
    }
    let mut table = String::from(
        "Measured / predicted ms, from page-locked memory to page-locked memory.\n\n| program | pixels | size |",
    );
    names.iter().for_each(|(name, _)| table.push_str(&format!(" {name} |")));
    table.push_str(" chosen | chosen / best |\n| --- | --- | --- |");
    table.push_str(&" --- |".repeat(names.len() + 2));
    table.push('\n');
    let mut values =
        String::from("program\tpixels\tsize\tstrategy\tmeasured_ms\tlow_ms\thigh_ms\tpredicted_ms\truns\n");
    let (mut errors, mut beside) = (Vec::new(), Vec::new());
    let how: Vec<Strategy> = names.iter().map(|(_, strategy)| *strategy).collect();
    let programs = PROGRAMS.iter().filter(|(name, _)| wanted.contains(&"all") || wanted.contains(name));
    for (name, program) in programs {
        for &size in &options.size {
            for given in [Given::Reals, Given::Bytes] {
                let times = given.timed(options, size, *program, &how)?;
                let mut row = format!("| {name} | {} | {size} |", given.name());
                for (time, (strategy, _)) in times.iter().zip(&names) {
                    let (measured, predicted) = (time.median(), time.predicted);
                    let _ = write!(row, " {measured:.3} / {predicted:.3} |");
                    errors.push((predicted / measured - 1.0).abs());
                    let (low, high, n) = (time.quantile(0.25), time.quantile(0.75), time.runs.len());
                    let _ = writeln!(
                        values,
                        "{name}\t{}\t{size}\t{strategy}\t{measured:.6}\t{low:.6}\t{high:.6}\t{predicted:.6}\t{n}",
                        given.name()
                    );
                }
                let (same, measured) = chosen(&times);
                let best = times.iter().map(Timed::median).fold(measured, f64::min);
                beside.push(measured / best);
                let what = same.map_or("other", |i| &names[i].0);
                let _ = write!(row, " {what} | {:.3} |", measured / best);
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
    for (path, text) in [(&options.markdown, table), (&options.tsv, values)] {
        if let Some(path) = path {
            std::fs::write(path, text).map_err(|e| Error::write(path, e))?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    horus_apps::exit_code(run(&Options::parse()))
}
