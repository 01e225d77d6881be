//! Times operations and detectors of Horus, and the limits of the machine, in one process. Results have the format of
//! the script of the peer libraries, so that `benches/run.sh` can compare them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use horus::prelude::*;
use horus_apps::detectors::{Detector, Params, conv2d, convrot, convuv};
use horus_core::dtype::DType;
use horus_core::filters::MAX_RADIUS;
use horus_tools::bench_lines::{Arrays, BenchLine, clock, markdown};
use horus_tools::everyday::noise;
use horus_tools::sweep::Sweep;
use serde_json::json;

/// Times operations of Horus.
#[derive(Parser)]
struct BenchOptions {
    /// Operations, comma separated, or `all`; or `everyday`: common operations on images of each
    /// type, beside their predicted times; or `sweep`: linear filters of all sizes by each algorithm,
    /// beside their predicted times.
    #[arg(long, default_value = "all")]
    op: String,
    /// Rows and columns of the image; several, comma separated, are measured in turn.
    #[arg(long, default_value = "1024", value_delimiter = ',')]
    size: Vec<usize>,
    /// Optimisation: naive, lazy, fused; several are measured in turn.
    #[arg(long, default_value = "fused", value_delimiter = ',')]
    mode: Vec<Mode>,
    /// Run detectors from pixels on the host to pixels on the host; several kinds are measured in
    /// turn.
    #[arg(long, value_delimiter = ',', num_args = 0..=1, default_missing_value = "fresh")]
    from_host: Vec<Arrays>,
    /// On several ranks, gather pixels on the host of rank 0 only.
    #[arg(long)]
    once: bool,
    /// Threads; by default one with `--device cpu`, otherwise as many as a session takes (on a GPU
    /// they copy pixels).
    #[arg(long)]
    threads: Option<usize>,
    /// Device: auto, cpu, cuda, cuda:N, or several: cuda:all, cuda:0,1, cuda:0+cpu.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Timed runs, after one that is not counted; with 0, everyday operations are only predicted.
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Seconds after which no further run of an operation begins.
    #[arg(long, default_value_t = 20.0)]
    budget: f64,
    /// Type of the pixels of a sweep.
    #[arg(long = "type", default_value = "f32")]
    dtype: String,
    /// Tolerance of a sweep: algorithms within it may be chosen.
    #[arg(long, default_value_t = 1e-5)]
    within: f64,
    /// Rows and columns of the filters of a sweep, in all pairs; 1 for filters along one axis. By
    /// default the 441 filters of the thesis, of odd sizes from 3 to 43.
    #[arg(long, value_delimiter = ',', default_values_t = (1..22).map(|k| 2 * k + 1))]
    sides: Vec<usize>,
    /// Write the results to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write a table of the modes to this file.
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// Write the measured and predicted times of each step, for the last size and mode, to this
    /// file (`benches/plot.py timeline` draws it).
    #[arg(long)]
    trace: Option<PathBuf>,
}

type TimedWork = Box<dyn FnMut() -> Result<()>>;

/// Prepares the work that a row of the table times.
type Prepare = fn(&OperationBench) -> Result<TimedWork>;

/// Operations that can be timed: name and preparation.
const OPERATIONS: &[(&str, Prepare)] = &[
    ("copy", |b| b.copy()),
    ("sep19", |b| b.separable(3.0)),
    ("sep43", |b| b.separable(7.0)),
    ("conv7", |b| b.dense(7)),
    ("conv17", |b| b.dense(17)),
    ("conv43", |b| b.dense(43)),
    ("gauss10", |b| b.in_turn(1.5, 10)),
    ("rot30", |b| b.rotate()),
    ("pixel", |b| b.pixel()),
    ("sum", |b| b.sum()),
    ("minmax", |b| b.min_max()),
    ("record", |b| b.record()),
    ("convrot", |b| b.detector(convrot)),
    ("convuv", |b| b.detector(convuv)),
    ("conv2d", |b| b.detector(conv2d)),
];

struct OperationBench {
    session: Session,
    image: Image<f32>,
    size: usize,
    arrays: Option<Arrays>,
    once: bool,
}

impl OperationBench {
    /// Evaluates the image that `f` records, and drops it.
    fn evaluated<T: Pixel>(&self, f: impl Fn() -> Image<T> + 'static) -> Result<TimedWork> {
        let session = self.session.clone();
        Ok(Box::new(move || {
            let _kept = f();
            session.evaluate()
        }))
    }

    fn copy(&self) -> Result<TimedWork> {
        let source = vec![1.0f32; self.size * self.size];
        let mut target = vec![0.0f32; self.size * self.size];
        Ok(Box::new(move || {
            target.copy_from_slice(std::hint::black_box(&source));
            std::hint::black_box(&mut target);
            Ok(())
        }))
    }

    fn separable(&self, sigma: f64) -> Result<TimedWork> {
        let image = self.image.clone();
        self.evaluated(move || image.gauss(sigma))
    }

    /// A sequence of filters. On several ranks, halos are exchanged before each filter except the first.
    fn in_turn(&self, sigma: f64, rounds: usize) -> Result<TimedWork> {
        let image = self.image.clone();
        self.evaluated(move || (0..rounds).fold(image.clone(), |i, _| i.gauss(sigma)))
    }

    fn dense(&self, n: usize) -> Result<TimedWork> {
        let taps: Vec<f64> = (0..n * n).map(|i| ((i * 7919 % 101) as f64 - 50.0) / (25.0 * (n * n) as f64)).collect();
        let (image, filter) = (self.image.clone(), Filter::dense(n, n, taps));
        self.evaluated(move || image.correlate(&filter))
    }

    fn rotate(&self) -> Result<TimedWork> {
        let image = self.image.clone();
        self.evaluated(move || image.rotate(30.0, Interpolation::Bilinear))
    }

    fn pixel(&self) -> Result<TimedWork> {
        let a = self.image.clone();
        let (b, acc) = (noise(&self.session, self.size, 1) + 0.5, noise(&self.session, self.size, 2));
        self.session.evaluate()?;
        self.evaluated(move || acc.max((&a / &b).abs() * 2.5))
    }

    fn sum(&self) -> Result<TimedWork> {
        let image = self.image.clone();
        Ok(Box::new(move || {
            image.sum().get().map(|s| {
                std::hint::black_box(s);
            })
        }))
    }

    fn min_max(&self) -> Result<TimedWork> {
        let image = self.image.clone();
        Ok(Box::new(move || {
            let range = image.session().get_all((image.min_value(), image.max_value()))?;
            std::hint::black_box(range);
            Ok(())
        }))
    }

    /// Records a thousand operations without evaluating them.
    fn record(&self) -> Result<TimedWork> {
        let image = self.image.clone();
        Ok(Box::new(move || {
            let mut sum = image.clone();
            for _ in 0..1000 {
                sum += &image;
            }
            Ok(())
        }))
    }

    fn detector(&self, f: Detector) -> Result<TimedWork> {
        let image = self.image.clone();
        let Some(arrays) = self.arrays else { return self.evaluated(move || f(&image, &Params::default())) };
        let (session, size, once) = (self.session.clone(), self.size, self.once);
        let result = move |image: Image<f32>| f(&image, &Params::default());
        if arrays == Arrays::Pixels {
            let (mut from, mut to) = (session.pixels(size, size, 1)?, session.pixels(size, size, 1)?);
            image.read_into(&mut from)?;
            return Ok(Box::new(move || {
                let result = result(Image::from_pixels(&session, from.clone()));
                if once { result.gather_into(&mut to).map(drop) } else { result.read_into(&mut to) }
            }));
        }
        let from = image.to_vec()?;
        let mut to = vec![0.0; if arrays == Arrays::Kept { from.len() } else { 0 }];
        Ok(Box::new(move || {
            let result = result(Image::from_slice(&session, (size, size), &from));
            match (arrays, once) {
                (Arrays::Kept, true) => result.gather_into(&mut to).map(drop),
                (Arrays::Kept, false) => result.read_into(&mut to),
                (_, true) => result.gather().map(|pixels| drop(std::hint::black_box(pixels))),
                (_, false) => result.to_vec().map(|pixels| drop(std::hint::black_box(pixels))),
            }
        }))
    }
}

/// The value of rank 0. Collective.
fn as_rank_0(session: &Session, value: bool) -> Result<bool> {
    let all = session.comm().gather(u64::from(value)).map_err(|e| e.during(session.rank(), "benchmark"))?;
    Ok(all[0] == 1)
}

/// Seconds of each counted run, until the last rank was done, and of the first run.
fn measure(
    session: &Session,
    mut work: impl FnMut() -> Result<()>,
    runs: usize,
    budget: f64,
) -> Result<(Vec<f64>, f64)> {
    let mut timed = || {
        let start = Instant::now();
        work()?;
        as_rank_0(session, true)?;
        Ok(start.elapsed().as_secs_f64())
    };
    let cold = timed()?;
    let until = Instant::now() + Duration::from_secs_f64(budget);
    let mut times = Vec::new();
    while times.is_empty() || as_rank_0(session, times.len() < runs && Instant::now() < until)? {
        times.push(timed()?);
    }
    times.sort_by(f64::total_cmp);
    Ok((times, cold))
}

/// Host threads that work for the session's device.
fn threads_of(session: &Session) -> usize {
    session.device().map_or(1, |device| device.workers().threads())
}

/// Measures the requested operations on images of one size in one mode.
fn measure_all(options: &BenchOptions, size: usize, mode: Mode) -> Result<(String, Vec<BenchLine>)> {
    let mut builder = Session::builder().device(&options.device).eager(true).mode(mode).trace(options.trace.is_some());
    if let Some(threads) = options.threads.or((options.device == "cpu").then_some(1)) {
        builder = builder.threads(threads);
    }
    let session = builder.build()?;
    let mut image = noise(&session, size, 7);
    if session.ranks() > 1 {
        // Computed, so that each rank has its strip.
        image += 0.0;
        session.evaluate()?;
    }
    let first = session.rank() == 0;
    let mut bench = OperationBench { session: session.clone(), image, size, arrays: None, once: options.once };
    let wanted: Vec<&str> = options.op.split(',').collect();
    if first {
        let (device, ranks, threads) = (session.device_name(), session.ranks(), threads_of(&session));
        let lanes = if session.lanes() > 1 { format!(", {} lanes", session.lanes()) } else { String::new() };
        println!("{device}, {ranks} ranks{lanes}, size {size}, threads {threads}, {mode:?}");
    }
    let mut lines = Vec::new();
    let detectors = ["convrot", "convuv", "conv2d"];
    let each = OPERATIONS.iter().filter(|(name, _)| wanted.contains(&"all") || wanted.contains(name));
    let each = each.flat_map(|(name, make)| {
        let arrays = options.from_host.iter().copied().map(Some).filter(|_| detectors.contains(name));
        let arrays: Vec<_> = arrays.collect();
        let arrays = if arrays.is_empty() { vec![None] } else { arrays };
        arrays.into_iter().map(move |arrays| (name, make, arrays))
    });
    for (name, make, arrays) in each {
        bench.arrays = arrays;
        let work = make(&bench)?;
        let (before, spent) = (session.stats(), session.times().communication);
        let (times, cold) = measure(&session, work, options.runs, options.budget)?;
        let (after, runs) = (session.stats(), times.len() + 1);
        let line = BenchLine {
            op: name,
            size,
            mode,
            arrays,
            first: cold,
            copies: (after.made.copies() - before.made.copies()) / runs,
            launches: (after.made.launches - before.made.launches) / runs,
            exchanges: (after.made.exchanges_between_ranks() - before.made.exchanges_between_ranks()) / runs,
            messages: (after.sent.messages - before.sent.messages) / runs,
            bytes: (after.sent.bytes - before.sent.bytes) / runs,
            communication: (session.times().communication - spent).as_secs_f64() / runs as f64,
            ranks: session.ranks(),
            threads: threads_of(&session),
            times,
        };
        if first {
            println!("{line}");
        }
        lines.push(line);
    }
    if let (Some(path), Some(trace)) = (&options.trace, session.trace_json()?) {
        std::fs::write(path, trace).map_err(|e| Error::write(path, e))?;
    }
    Ok((session.device_name(), lines))
}

/// Times of kernels.
struct KernelTimes {
    measured: f64,
    predicted: f64,
    launches: usize,
}

/// The seconds of the kernels of `work` by the device's clock.
fn kernels(session: &Session, work: impl FnOnce() -> Result<()>) -> Result<KernelTimes> {
    let (measured, before) = (session.measured()?.kernels, session.stats());
    work()?;
    let (now, after) = (session.measured()?.kernels, session.stats());
    Ok(KernelTimes {
        measured: (now - measured).as_secs_f64(),
        predicted: (after.parts.kernels - before.parts.kernels).as_secs_f64(),
        launches: after.made.launches - before.made.launches,
    })
}

/// Times everyday operations on images of each size: the whole evaluation on a CPU, the kernels by its clock on a GPU.
fn measure_everyday(options: &BenchOptions) -> Result<()> {
    let mut results = Vec::new();
    for &size in &options.size {
        let mut builder = Session::builder().device(&options.device).eager(true).measure(options.device != "cpu");
        if let Some(threads) = options.threads {
            builder = builder.threads(threads);
        }
        let session = builder.build()?;
        let rows = horus_tools::everyday::rows(&session, size)?;
        let on_gpu = session.device().is_some_and(|device| !device.memory().is_unified());
        let clock = if on_gpu { clock(&session)? } else { 0.0 };
        println!(
            "{}, size {size}, threads {}: measured and predicted ms{}, their ratio",
            session.device_name(),
            threads_of(&session),
            if on_gpu { format!(" of kernels, without the {:.1} us of the clock", 1e6 * clock) } else { String::new() }
        );
        for mut row in rows {
            let mut predicted = row.predicted;
            if options.runs == 0 {
                results.push(json!({ "op": row.name, "size": size, "predicted": predicted }));
                continue;
            }
            let mut least = f64::INFINITY;
            let of_kernels = || {
                let spent = kernels(&session, || (row.run)())?;
                least = least.min(spent.measured - clock * spent.launches as f64);
                predicted = spent.predicted;
                Ok(())
            };
            if on_gpu {
                measure(&session, of_kernels, options.runs, options.budget)?;
            } else {
                least = measure(&session, row.run, options.runs, options.budget)?.0[0];
            }
            println!("{:32} {:9.4} {:9.4} {:6.2}", row.name, 1e3 * least, 1e3 * predicted, least / predicted);
            results.push(json!({ "op": row.name, "size": size, "measured": least, "predicted": predicted }));
        }
    }
    match &options.json {
        Some(path) => std::fs::write(path, json!(results).to_string()).map_err(|e| Error::write(path, e)),
        None => Ok(()),
    }
}

/// Times filters of all sizes by each algorithm on images of each size.
fn measure_sweep(options: &BenchOptions) -> Result<()> {
    let dtype = DType::ALL.into_iter().find(|t| t.to_string() == options.dtype && *t != DType::Bool);
    let dtype = dtype.ok_or_else(|| Error::Config(format!("no pixels of type {:?} are filtered", options.dtype)))?;
    if let Some(side) = options.sides.iter().find(|n| !(1..=2 * MAX_RADIUS).contains(*n)) {
        return Err(Error::Config(format!("filters of {side} taps; they have 1 to {}", 2 * MAX_RADIUS)));
    }
    let mut results = Vec::new();
    for &size in &options.size {
        let mut builder = Session::builder().device(&options.device).eager(true).measure(options.device != "cpu");
        if let Some(threads) = options.threads {
            builder = builder.threads(threads);
        }
        let (sides, runs, within) = (options.sides.clone(), options.runs, options.within);
        let swept = Sweep { size, dtype, within, sides, runs }.run(&builder.build()?)?;
        print!("{swept}");
        results.push(swept.json());
    }
    match &options.json {
        Some(path) => std::fs::write(path, json!(results).to_string()).map_err(|e| Error::write(path, e)),
        None => Ok(()),
    }
}

fn run(options: &BenchOptions) -> Result<()> {
    if options.op == "sweep" {
        return measure_sweep(options);
    }
    if options.op == "everyday" {
        return measure_everyday(options);
    }
    let mut unknown = options.op.split(',').filter(|w| *w != "all" && !OPERATIONS.iter().any(|(n, _)| n == w));
    if let Some(unknown) = unknown.next() {
        return Err(Error::Config(format!("operation {unknown:?} is not known")));
    }
    let (mut device, mut lines) = (String::new(), Vec::new());
    for &size in &options.size {
        for &mode in &options.mode {
            let (name, measured) = measure_all(options, size, mode)?;
            device = name;
            lines.extend(measured);
        }
    }
    if horus::ranks()?.rank() > 0 {
        return Ok(());
    }
    if let Some(path) = &options.json {
        let results: Vec<_> = lines.iter().map(|l| l.json()).collect();
        let text = json!({ "device": device, "results": results }).to_string();
        std::fs::write(path, text).map_err(|e| Error::write(path, e))?;
    }
    if let Some(path) = &options.markdown {
        std::fs::write(path, markdown(&device, &options.mode, &lines)).map_err(|e| Error::write(path, e))?;
    }
    Ok(())
}

fn main() -> ExitCode {
    horus_apps::exit_code(run(&BenchOptions::parse()))
}
