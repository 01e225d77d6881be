//! Times the iterations of loops on a device as the difference between many iterations and a few, which excludes start
//! and copies. Also measures memory, and the number of iterations from which a GPU is worth its start.

mod crossover;
mod memory;
mod relaxed;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use horus::prelude::*;
use horus_models::perona_malik::Diffusion;
use horus_models::poisson::{Poisson, Rhs};
use horus_tools::everyday::noise;
use serde_json::json;

/// Times the steps of loops.
#[derive(Parser)]
struct LoopBenchOptions {
    /// Quantity to measure.
    #[arg(long, value_enum, default_value = "steps")]
    measure: Measure,
    /// Loops, comma separated, or `all` two-dimensional ones.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    op: Vec<String>,
    /// Rows and columns of the image; several, comma separated, are measured in turn.
    #[arg(long, default_value = "1024,4096,16384", value_delimiter = ',')]
    size: Vec<usize>,
    /// Levels of a three-dimensional problem.
    #[arg(long, default_value_t = 64)]
    depth: usize,
    /// A few steps and many, whose difference is measured (default: 100,1100, for memory
    /// 1000,100000).
    #[arg(long, value_delimiter = ',', num_args = 1..=2)]
    steps: Option<Vec<usize>>,
    /// Optimisation: naive, lazy, fused.
    #[arg(long, default_value = "fused")]
    mode: Mode,
    /// Device: auto, cpu, cuda, cuda:N.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Threads (default: all).
    #[arg(long)]
    threads: Option<usize>,
    /// Timed runs of each, after one that is not counted; the median is reported.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds after which no further run of a row begins.
    #[arg(long, default_value_t = 5.0)]
    budget: f64,
    /// Ranks of relaxed loops, and latencies of their links in microseconds.
    #[arg(long, default_value = "2,3,4", value_delimiter = ',')]
    ranks: Vec<usize>,
    #[arg(long, default_value = "0,100,300,1000,3000,10000", value_delimiter = ',')]
    latency: Vec<f64>,
    /// Write the results to this file.
    #[arg(long)]
    json: Option<std::path::PathBuf>,
    /// Make so many steps of the first size, copy the result to an array and end.
    #[arg(long, hide = true)]
    once: Option<usize>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// The time of a step.
    Steps,
    /// Resident memory after a few steps and after many, with 64 x 64 points.
    Memory,
    /// The number of steps from which a program takes less time on the GPU (the device) than on the
    /// CPU, predicted and measured.
    Crossover,
    /// Times of steps in order and of relaxed ones with the same error, on ranks as threads whose
    /// links have a latency; of `--steps` only the first number counts.
    Relaxed,
}

/// Runs so many iterations, and waits for the last.
type IterationLoop = Box<dyn Fn(usize) -> Result<()>>;

/// A row of the table.
struct LoopRow {
    name: &'static str,
    /// Least memory traffic of an iteration, in bytes per pixel.
    bytes: usize,
    make: LoopMaker,
}

/// Creates a loop of so many rows and columns.
enum LoopMaker {
    Plane(fn(&Session, usize) -> Result<IterationLoop>),
    /// Creates a loop of so many rows, columns and levels.
    Space(fn(&Session, usize, usize) -> Result<IterationLoop>),
}
use LoopMaker::{Plane, Space};

const ROWS: [LoopRow; 8] = [
    LoopRow { name: "jacobi", bytes: 8, make: Plane(|s, n| jacobi::<f32>(s, n, Rhs::Broadcast)) },
    LoopRow { name: "jacobi-image", bytes: 12, make: Plane(|s, n| jacobi::<f32>(s, n, Rhs::Image)) },
    LoopRow { name: "jacobi-f64", bytes: 16, make: Plane(|s, n| jacobi::<f64>(s, n, Rhs::Broadcast)) },
    LoopRow { name: "jacobi-image-f64", bytes: 24, make: Plane(|s, n| jacobi::<f64>(s, n, Rhs::Image)) },
    // Seven points: the state is read and written once.
    LoopRow { name: "jacobi-3d", bytes: 8, make: Space(jacobi_in_space::<f32>) },
    LoopRow { name: "jacobi-3d-f64", bytes: 16, make: Space(jacobi_in_space::<f64>) },
    LoopRow { name: "perona-malik", bytes: 8, make: Plane(perona_malik) },
    // The estimate is written and read once in each half of an iteration, and the blurred picture is read.
    LoopRow { name: "richardson-lucy", bytes: 24, make: Plane(richardson_lucy) },
];

impl LoopBenchOptions {
    /// A few iterations and many.
    fn few_and_many(&self) -> Result<(usize, usize)> {
        let usual = if self.measure == Measure::Memory { [1000, 100_000] } else { [100, 1100] };
        match self.steps.as_deref().unwrap_or(&usual) {
            &[few, many] if 0 < few && few < many => Ok((few, many)),
            _ => Err(Error::Config("--steps takes a few steps and many, like 100,1100".into())),
        }
    }
}

fn repeated<T: Pixel>(
    session: &Session,
    begin: Image<T>,
    step: impl Fn(&Image<T>) -> Image<T> + 'static,
) -> Result<IterationLoop> {
    session.evaluate()?;
    let session = session.clone();
    Ok(Box::new(move |steps| {
        let done = session.iterate(begin.clone(), steps, &step)?;
        // Reads a value, so that the result is computed.
        std::hint::black_box(done.state.max_value().get()?);
        Ok(())
    }))
}

fn jacobi<T: Float>(session: &Session, size: usize, rhs: Rhs) -> Result<IterationLoop> {
    let problem = Poisson::<T>::new(session, size, rhs)?;
    repeated(session, problem.begin(), move |u| problem.step(u))
}

fn jacobi_in_space<T: Float>(session: &Session, size: usize, depth: usize) -> Result<IterationLoop> {
    let problem = Poisson::<T>::in_space(session, depth, size, Rhs::Broadcast)?;
    repeated(session, problem.begin(), move |u| problem.step(u))
}

fn perona_malik(session: &Session, size: usize) -> Result<IterationLoop> {
    let diffusion = Diffusion::new(0.05, 0.2);
    repeated(session, noise(session, size, 0), move |u| diffusion.step(u))
}

/// Richardson-Lucy deconvolution with a point-spread function of 9 x 9.
fn richardson_lucy(session: &Session, size: usize) -> Result<IterationLoop> {
    let at = |i: usize| (i as f64) - 4.0;
    let spread = |(y, x): (f64, f64)| (-(x - 0.7 * y).powi(2) / 2.0 - (y + 0.3 * x).powi(2) / 8.0).exp();
    let taps: Vec<f64> = (0..81).map(|i| spread((at(i / 9), at(i % 9)))).collect();
    let sum: f64 = taps.iter().sum();
    let (psf, border) = (Filter::dense(9, 9, taps.iter().map(|t| t / sum).collect::<Vec<_>>()), Border::Constant(0.0));
    let blurred = noise(session, size, 0).with_border(border).convolve(&psf);
    let begin = Image::constant(session, (size, size), 0.5);
    session.evaluate()?;
    repeated(session, begin, move |u| {
        let ratio = &blurred / (u.with_border(border).convolve(&psf) + 1e-12);
        u * ratio.with_border(border).correlate(&psf)
    })
}

/// Seconds of each run, sorted.
fn timed(work: &IterationLoop, steps: usize, options: &LoopBenchOptions) -> Result<Vec<f64>> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || times.len() < options.runs && begin.elapsed().as_secs_f64() < options.budget {
        let start = Instant::now();
        work(steps)?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn run(options: &LoopBenchOptions) -> Result<()> {
    if let Some(op) = options.op.iter().find(|op| *op != "all" && ROWS.iter().all(|row| row.name != **op)) {
        return Err(Error::Config(format!("loop {op:?} is not known")));
    }
    let (few, many) = options.few_and_many()?;
    if options.measure == Measure::Crossover {
        let results = crossover::print(&options.size, few, many, options.runs, &options.device)?;
        return keep(options, &options.device, &results);
    }
    if let (Measure::Relaxed, [size, ..], [ranks, ..], [latency, ..]) =
        (options.measure, &options.size[..], &options.ranks[..], &options.latency[..])
    {
        if let Some(steps) = options.once {
            return relaxed::once(*size, steps, *ranks, *latency);
        }
        let results = relaxed::print(*size, few, &options.ranks, &options.latency, options.runs)?;
        return keep(options, "cpu", &results);
    }
    let mut builder = Session::builder().device(&options.device).eager(true).mode(options.mode);
    if let Some(threads) = options.threads {
        builder = builder.threads(threads);
    }
    let session = builder.build()?;
    if let (Some(steps), Some(size)) = (options.once, options.size.first()) {
        return crossover::once(session, *size, steps);
    }
    if options.measure == Measure::Memory {
        return memory::print(&session, few, many);
    }
    let first = session.rank() == 0;
    if first {
        println!(
            "{}, {} ranks, {:?}: ({many} steps - {few} steps) / {}",
            session.device_name(),
            session.ranks(),
            options.mode,
            many - few
        );
        println!(
            "{:<17} {:>6} {:>11} {:>11} {:>9} {:>12}",
            "loop", "size", "ms a step", "steps/s", "GB/s", "ms of few"
        );
    }
    let mut results = Vec::new();
    let wanted = |row: &&LoopRow| {
        let flat = matches!(row.make, Plane(_));
        options.op.iter().any(|op| op == row.name || flat && op == "all")
    };
    for row in ROWS.iter().filter(wanted) {
        for &size in &options.size {
            let (work, depth) = match row.make {
                Plane(make) => (make(&session, size)?, 1),
                Space(make) => (make(&session, size, options.depth)?, options.depth),
            };
            work(few)?; // plans and compiles
            let (short, long) = (timed(&work, few, options)?, timed(&work, many, options)?);
            let (short, long) = (short[short.len() / 2], long[long.len() / 2]);
            let step = (long - short) / (many - few) as f64;
            if step <= 0.0 {
                eprintln!("{} of {size}: runs differ by more than the steps take; more steps, please", row.name);
                continue;
            }
            let bandwidth = (size * size * depth * row.bytes) as f64 / step / 1e9;
            if first {
                println!(
                    "{:<17} {size:>6} {:>11.4} {:>11.1} {bandwidth:>9.1} {:>12.3}",
                    row.name,
                    step * 1e3,
                    1.0 / step,
                    short * 1e3
                );
            }
            results.push(json!({
                "op": row.name, "size": size, "depth": depth, "peer": "horus", "ms_per_step": step * 1e3, "few_ms": short * 1e3, "many_ms": long * 1e3,
                "steps": [few, many],
            }));
        }
    }
    if first { keep(options, &session.device_name(), &results) } else { Ok(()) }
}

/// Writes the results to the requested file.
fn keep(options: &LoopBenchOptions, device: &str, results: &[serde_json::Value]) -> Result<()> {
    let Some(path) = &options.json else { return Ok(()) };
    let text = json!({ "device": device, "results": results }).to_string();
    std::fs::write(path, text).map_err(|e| Error::write(path, e))
}

fn main() -> ExitCode {
    horus_apps::exit_code(run(&LoopBenchOptions::parse()))
}
