//! Times operations and detectors of Horus, and the machine's own limits, in one process.
//!
//! Results are written in the format of the peers' script, so that `benches/run.sh` can set them side by side.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use horus::prelude::*;
use horus_apps::detectors::{Detector, Params, conv2d, convrot, convuv};
use serde_json::json;

/// Times operations of Horus.
#[derive(Parser)]
struct Options {
    /// Operations, comma separated, or `all`.
    #[arg(long, default_value = "all")]
    op: String,
    /// Rows and columns of the image; several, comma separated, are measured one after the other.
    #[arg(long, default_value = "1024", value_delimiter = ',')]
    size: Vec<usize>,
    /// How much is optimised: naive, lazy, fused; several are measured one after the other.
    #[arg(long, default_value = "fused", value_delimiter = ',')]
    mode: Vec<Mode>,
    /// Detectors start from pixels on the host and end with pixels on the host.
    #[arg(long)]
    from_host: bool,
    /// Threads; by default one with `--device cpu`, otherwise as many as a session takes (on a GPU they copy pixels).
    #[arg(long)]
    threads: Option<usize>,
    /// Device: auto, cpu, cuda, cuda:N.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Timed runs after one that is not counted.
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Seconds after which no further run of an operation begins.
    #[arg(long, default_value_t = 20.0)]
    budget: f64,
    /// Write the results to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Write a table of the modes to this file.
    #[arg(long)]
    markdown: Option<PathBuf>,
}

type Work = Box<dyn FnMut() -> Result<()>>;

/// Prepares what one row of the table times.
type Prepare = fn(&Bench) -> Result<Work>;

/// What can be timed: a name, and how to make its work.
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

struct Bench {
    session: Session,
    image: Image<f32>,
    size: usize,
    from_host: bool,
}

/// Reproducible noise in `0..1`.
fn noise(session: &Session, n: usize, seed: u64) -> Image<f32> {
    Image::from_fn(session, n, n, |y, x| {
        let mut h = seed ^ ((y as u64) << 32 | x as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((h >> 40) as f32) / 16_777_216.0
    })
}

impl Bench {
    /// Evaluates what `f` records, and lets go of it.
    fn evaluated<T: Pixel>(&self, f: impl Fn() -> Image<T> + 'static) -> Result<Work> {
        let session = self.session.clone();
        Ok(Box::new(move || {
            let _kept = f();
            session.evaluate()
        }))
    }

    fn copy(&self) -> Result<Work> {
        let source = vec![1.0f32; self.size * self.size];
        let mut target = vec![0.0f32; self.size * self.size];
        Ok(Box::new(move || {
            target.copy_from_slice(std::hint::black_box(&source));
            std::hint::black_box(&mut target);
            Ok(())
        }))
    }

    fn separable(&self, sigma: f64) -> Result<Work> {
        let image = self.image.clone();
        self.evaluated(move || image.gauss(sigma))
    }

    /// Filters in turn: on several ranks, halos are exchanged before each but the first.
    fn in_turn(&self, sigma: f64, rounds: usize) -> Result<Work> {
        let image = self.image.clone();
        self.evaluated(move || (0..rounds).fold(image.clone(), |i, _| i.gauss(sigma)))
    }

    fn dense(&self, n: usize) -> Result<Work> {
        let taps: Vec<f64> = (0..n * n).map(|i| ((i * 7919 % 101) as f64 - 50.0) / (25.0 * (n * n) as f64)).collect();
        let (image, filter) = (self.image.clone(), Filter::dense(n, n, taps));
        self.evaluated(move || image.correlate(&filter, Border::Reflect101))
    }

    fn rotate(&self) -> Result<Work> {
        let image = self.image.clone();
        self.evaluated(move || image.rotate(30.0))
    }

    fn pixel(&self) -> Result<Work> {
        let a = self.image.clone();
        let (b, acc) = (noise(&self.session, self.size, 1) + 0.5, noise(&self.session, self.size, 2));
        self.session.evaluate()?;
        self.evaluated(move || acc.max((&a / &b).abs() * 2.5))
    }

    fn sum(&self) -> Result<Work> {
        let image = self.image.clone();
        Ok(Box::new(move || {
            image.sum().get().map(|s| {
                std::hint::black_box(s);
            })
        }))
    }

    fn min_max(&self) -> Result<Work> {
        let image = self.image.clone();
        Ok(Box::new(move || {
            let range = image.session().get_all((image.min_value(), image.max_value()))?;
            std::hint::black_box(range);
            Ok(())
        }))
    }

    /// Recording a thousand operations, which nobody looks at.
    fn record(&self) -> Result<Work> {
        let image = self.image.clone();
        Ok(Box::new(move || {
            let mut sum = image.clone();
            for _ in 0..1000 {
                sum += &image;
            }
            Ok(())
        }))
    }

    fn detector(&self, f: Detector) -> Result<Work> {
        let image = self.image.clone();
        if self.from_host {
            let (session, size, pixels) = (self.session.clone(), self.size, image.to_vec()?);
            return Ok(Box::new(move || {
                let image = Image::from_slice(&session, size, size, &pixels);
                std::hint::black_box(f(&image, &Params::default()).to_vec()?);
                Ok(())
            }));
        }
        self.evaluated(move || f(&image, &Params::default()))
    }
}

/// What rank 0 says; all ranks must ask.
fn as_rank_0(session: &Session, value: bool) -> Result<bool> {
    let all = session.comm().gather(u64::from(value)).map_err(|e| e.during(session.rank(), "benchmark"))?;
    Ok(all[0] == 1)
}

/// Seconds of each counted run, until the last rank was done, and of the first.
fn measure(session: &Session, mut work: Work, runs: usize, budget: f64) -> Result<(Vec<f64>, f64)> {
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

/// One line of the results.
struct Line {
    op: &'static str,
    size: usize,
    mode: Mode,
    /// Seconds, sorted.
    times: Vec<f64>,
    first: f64,
    /// Whether pixels came from the host and went back to it.
    from_host: bool,
    /// Of one run.
    copies: usize,
    launches: usize,
    /// Transfers between ranks, all kinds of them.
    exchanges: usize,
    /// What this rank sent to others in one run.
    messages: usize,
    bytes: usize,
    /// Seconds of one run that went into transfers between ranks, and into waiting for them.
    communication: f64,
    ranks: usize,
    /// Of each rank.
    threads: usize,
}

impl Line {
    fn median(&self) -> f64 {
        self.times[self.times.len() / 2] * 1e3
    }

    fn json(&self) -> serde_json::Value {
        let (min, max) = (self.times[0] * 1e3, self.times[self.times.len() - 1] * 1e3);
        json!({
            "op": self.op, "peer": "horus", "size": self.size, "threads": self.threads, "runs": self.times.len(),
            "mode": format!("{:?}", self.mode).to_lowercase(), "copies": self.copies, "launches": self.launches,
            "from_host": self.from_host, "ranks": self.ranks, "exchanges": self.exchanges, "messages": self.messages, "bytes": self.bytes,
            "communication_ms": self.communication * 1e3,
            "median_ms": self.median(), "min_ms": min, "max_ms": max, "first_ms": self.first * 1e3,
        })
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (min, max) = (self.times[0] * 1e3, self.times[self.times.len() - 1] * 1e3);
        let (median, first) = (self.median(), self.first * 1e3);
        write!(f, "{:8} median {median:9.3} ms  min {min:9.3}  max {max:9.3}  first {first:9.3}", self.op)?;
        write!(f, "  {} copies, {} kernels", self.copies, self.launches)?;
        if self.ranks > 1 {
            let (mib, ms) = (self.bytes as f64 / f64::from(1 << 20), self.communication * 1e3);
            write!(f, ", {} exchanges, {} messages, {mib:.2} MiB sent", self.exchanges, self.messages)?;
            write!(f, ", {ms:.3} ms between ranks")?;
        }
        Ok(())
    }
}

/// Threads of the host that work for the session's device.
fn threads_of(session: &Session) -> usize {
    session.device().map_or(1, |device| device.workers().threads())
}

/// Measures the wanted operations on images of one size in one mode.
fn measure_all(options: &Options, size: usize, mode: Mode) -> Result<(String, Vec<Line>)> {
    let mut builder = Session::builder().device(&options.device).eager(true).mode(mode);
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
    let bench = Bench { session: session.clone(), image, size, from_host: options.from_host };
    let wanted: Vec<&str> = options.op.split(',').collect();
    if first {
        let (device, ranks, threads) = (session.device_name(), session.ranks(), threads_of(&session));
        println!("{device}, {ranks} ranks, size {size}, threads {threads}, {mode:?}");
    }
    let mut lines = Vec::new();
    for (name, make) in OPERATIONS {
        if !wanted.contains(&"all") && !wanted.contains(name) {
            continue;
        }
        let work = make(&bench)?;
        let (before, spent) = (session.stats(), session.times().communication);
        let (times, cold) = measure(&session, work, options.runs, options.budget)?;
        let (after, runs) = (session.stats(), times.len() + 1);
        let line = Line {
            op: name,
            size,
            mode,
            from_host: options.from_host,
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
    Ok((session.device_name(), lines))
}

/// Operations and sizes as rows, modes as columns.
fn markdown(device: &str, modes: &[Mode], lines: &[Line]) -> String {
    use std::fmt::Write as _;
    let mut s =
        format!("Medians on {device}, and copies between host and device and kernels of one run.\n\n| | size |");
    modes.iter().for_each(|m| s.push_str(&format!(" {m:?} ms | copies | kernels |").to_lowercase()));
    s.push_str(&format!("\n| --- | --- |{}\n", " --- | --- | --- |".repeat(modes.len())));
    let mut rows: Vec<(&str, usize)> = Vec::new();
    for l in lines {
        if !rows.contains(&(l.op, l.size)) {
            rows.push((l.op, l.size));
        }
    }
    for (op, size) in rows {
        let _ = write!(s, "| {op} | {size} |");
        for mode in modes {
            match lines.iter().find(|l| (l.op, l.size, l.mode) == (op, size, *mode)) {
                Some(l) => {
                    let _ = write!(s, " {:.3} | {} | {} |", l.median(), l.copies, l.launches);
                }
                None => s.push_str(" | | |"),
            }
        }
        s.push('\n');
    }
    s
}

fn run(options: &Options) -> Result<()> {
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
    horus_apps::exit_code(run(&Options::parse()))
}
