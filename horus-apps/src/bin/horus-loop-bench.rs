//! Times the steps of loops on a device: what many steps take more than a few, so that neither start nor copies count.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use horus::prelude::*;
use horus_apps::loops::perona_malik::Diffusion;
use horus_apps::loops::poisson::{Poisson, Rhs};
use serde_json::json;

/// Times the steps of loops.
#[derive(Parser)]
struct Options {
    /// Loops, comma separated, or `all`.
    #[arg(long, default_value = "all", value_delimiter = ',')]
    op: Vec<String>,
    /// Rows and columns of the image; several, comma separated, are measured one after the other.
    #[arg(long, default_value = "1024,4096,16384", value_delimiter = ',')]
    size: Vec<usize>,
    /// A few steps and many, of which the difference counts.
    #[arg(long, default_value = "100,1100", value_delimiter = ',', num_args = 1..=2)]
    steps: Vec<usize>,
    /// How much is optimised: naive, lazy, fused.
    #[arg(long, default_value = "fused")]
    mode: Mode,
    /// Device: auto, cpu, cuda, cuda:N.
    #[arg(long, default_value = "cuda")]
    device: String,
    /// Threads (default: all).
    #[arg(long)]
    threads: Option<usize>,
    /// Timed runs of each, of which the median counts, after one that is not counted.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds after which no further run of a row begins.
    #[arg(long, default_value_t = 5.0)]
    budget: f64,
    /// Write the results to this file.
    #[arg(long)]
    json: Option<std::path::PathBuf>,
}

/// Makes so many steps, and waits for the last.
type Loop = Box<dyn Fn(usize) -> Result<()>>;

/// A row of the table.
struct Row {
    name: &'static str,
    /// Bytes of memory that a step cannot do without, for each pixel.
    bytes: usize,
    prepare: fn(&Session, usize) -> Result<Loop>,
}

const ROWS: [Row; 6] = [
    Row { name: "jacobi", bytes: 8, prepare: |s, n| jacobi::<f32>(s, n, Rhs::Broadcast) },
    Row { name: "jacobi-image", bytes: 12, prepare: |s, n| jacobi::<f32>(s, n, Rhs::Image) },
    Row { name: "jacobi-f64", bytes: 16, prepare: |s, n| jacobi::<f64>(s, n, Rhs::Broadcast) },
    Row { name: "jacobi-image-f64", bytes: 24, prepare: |s, n| jacobi::<f64>(s, n, Rhs::Image) },
    Row { name: "perona-malik", bytes: 8, prepare: perona_malik },
    // Written and read once in each half of a step, and what was blurred.
    Row { name: "richardson-lucy", bytes: 24, prepare: richardson_lucy },
];

fn repeated<T: Pixel>(
    session: &Session,
    begin: Image<T>,
    step: impl Fn(&Image<T>) -> Image<T> + 'static,
) -> Result<Loop> {
    session.evaluate()?;
    let session = session.clone();
    Ok(Box::new(move |steps| {
        let done = session.iterate(begin.clone(), steps, &step)?;
        // Looked at, so that it is there.
        std::hint::black_box(done.state.max_value().get()?);
        Ok(())
    }))
}

fn jacobi<T: Float>(session: &Session, size: usize, rhs: Rhs) -> Result<Loop> {
    let problem = Poisson::<T>::new(session, size, rhs)?;
    repeated(session, problem.begin(), move |u| problem.step(u))
}

/// Reproducible noise in `0..1`.
fn noise(session: &Session, n: usize) -> Image<f32> {
    Image::from_fn(session, n, n, |y, x| {
        let h = ((y as u64) << 32 | x as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 / 16_777_216.0
    })
}

fn perona_malik(session: &Session, size: usize) -> Result<Loop> {
    let diffusion = Diffusion::new(0.05, 0.2);
    repeated(session, noise(session, size), move |u| diffusion.step(u))
}

/// With a point-spread function of 9 x 9.
fn richardson_lucy(session: &Session, size: usize) -> Result<Loop> {
    let at = |i: usize| (i as f64) - 4.0;
    let spread = |(y, x): (f64, f64)| (-(x - 0.7 * y).powi(2) / 2.0 - (y + 0.3 * x).powi(2) / 8.0).exp();
    let taps: Vec<f64> = (0..81).map(|i| spread((at(i / 9), at(i % 9)))).collect();
    let sum: f64 = taps.iter().sum();
    let (psf, border) = (Filter::dense(9, 9, taps.iter().map(|t| t / sum).collect::<Vec<_>>()), Border::Constant(0.0));
    let blurred = noise(session, size).convolve(&psf, border);
    let begin = Image::constant(session, size, size, 0.5);
    session.evaluate()?;
    repeated(session, begin, move |u| {
        let ratio = &blurred / (u.convolve(&psf, border) + 1e-12);
        u * ratio.correlate(&psf, border)
    })
}

/// Seconds of each run, sorted.
fn timed(work: &Loop, steps: usize, options: &Options) -> Result<Vec<f64>> {
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

fn run(options: &Options) -> Result<()> {
    if let Some(op) = options.op.iter().find(|op| *op != "all" && ROWS.iter().all(|row| row.name != **op)) {
        return Err(Error::Config(format!("loop {op:?} is not known")));
    }
    let (few, many) = match options.steps[..] {
        [few, many] if few < many => (few, many),
        _ => return Err(Error::Config("--steps takes a few steps and many, like 100,1100".into())),
    };
    let mut builder = Session::builder().device(&options.device).eager(true).mode(options.mode);
    if let Some(threads) = options.threads {
        builder = builder.threads(threads);
    }
    let session = builder.build()?;
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
    for row in ROWS.iter().filter(|row| options.op.iter().any(|op| op == "all" || op == row.name)) {
        for &size in &options.size {
            let work = (row.prepare)(&session, size)?;
            work(few)?; // plans, and compiles
            let (short, long) = (timed(&work, few, options)?, timed(&work, many, options)?);
            let (short, long) = (short[short.len() / 2], long[long.len() / 2]);
            let step = (long - short) / (many - few) as f64;
            if step <= 0.0 {
                eprintln!("{} of {size}: runs differ by more than the steps take; more steps, please", row.name);
                continue;
            }
            let bandwidth = (size * size * row.bytes) as f64 / step / 1e9;
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
                "op": row.name, "size": size, "peer": "horus", "ms_per_step": step * 1e3, "few_ms": short * 1e3, "many_ms": long * 1e3,
                "steps": [few, many],
            }));
        }
    }
    if let Some(path) = options.json.as_ref().filter(|_| first) {
        let text = json!({ "device": session.device_name(), "results": results }).to_string();
        std::fs::write(path, text).map_err(|e| Error::write(path, e))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    horus_apps::exit_code(run(&Options::parse()))
}
