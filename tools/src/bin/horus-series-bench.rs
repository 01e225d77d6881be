//! Compares a series of pictures with its parts, each measured alone.
//!
//! The bound per picture is the busiest resource: on a GPU its kernels, a direction of its bus, or the host's cores; on
//! the CPU, whose cores also run the kernels, the cores. Decoding and encoding are measured with one core, and with all
//! at once, because cores share caches, memory, and often, in pairs, their arithmetic units. The bound uses the time of
//! one core divided by the number of cores; the second ratio uses the time of all cores.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use horus::prelude::*;
use horus_apps::detectors::{Params, convrot};
use horus_core::io::{Format, Picture};

/// Measures ConvRot over a series of pictures, PGM to PNG, against its parts.
#[derive(Parser)]
struct SeriesBenchArgs {
    /// Rows and columns of the pictures
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Number of pictures
    #[arg(long, default_value_t = 64)]
    count: usize,
    /// One orientation and one scale instead of 12 and 9
    #[arg(long)]
    one: bool,
    /// Device to run on
    #[arg(long, default_value = "auto")]
    device: String,
    /// Worker threads (all cores if not given)
    #[arg(long)]
    threads: Option<usize>,
    /// Folder for the pictures and results
    #[arg(long)]
    work: PathBuf,
    /// Number of runs of the series, of which the median is reported
    #[arg(long, default_value_t = 3)]
    repeat: usize,
}

/// Pictures for measuring each part alone.
const SAMPLE: usize = 4;

fn main() -> ExitCode {
    env_logger::init();
    horus_apps::exit_code(run(&SeriesBenchArgs::parse()))
}

fn run(args: &SeriesBenchArgs) -> Result<()> {
    let failed = |e: std::io::Error| Error::Config(format!("{}: {e}", args.work.display()));
    let (input, output) = (args.work.join("in"), args.work.join("out"));
    std::fs::create_dir_all(&input).map_err(failed)?;
    std::fs::create_dir_all(&output).map_err(failed)?;
    let paths = pictures(args, &input)?;
    let params = match args.one {
        true => Params { theta_step: 180.0, sigma_u: vec![3.0], sigma_v: vec![1.0] },
        false => Params::default(),
    };
    let options = SaveOptions { depth: Depth::Eight, scaling: Scaling::Range, ..SaveOptions::default() };
    let operation = |picture: &AnyImage| convrot(&picture.luminance(), &params);
    let sample = &paths[..SAMPLE.min(paths.len())];

    // One thread decodes and encodes a picture of a series.
    let open = |path: &PathBuf| Picture::open(path, &OpenOptions::default());
    open(&paths[0])?;
    let start = Instant::now();
    let decoded = sample.iter().map(open).collect::<Result<Vec<_>>>()?;
    let decode = start.elapsed() / sample.len() as u32;

    let session = session(args)?;
    let one = session_of_one()?;
    let mut encode = Duration::ZERO;
    let mut before = session.times();
    let (mut lines, mut files) = (Vec::new(), Vec::new());
    for (i, picture) in std::iter::once(&decoded[0]).chain(&decoded).enumerate() {
        let response = operation(&AnyImage::from_picture(&session, picture.clone()));
        // Downloaded pixels are bytes, which encoding PGM only copies.
        let bytes = response.encode(Format::Pgm, &options)?;
        if i == 0 {
            before = session.times(); // one-time costs are over
            continue;
        }
        lines.push(AnyImage::read(&one, &bytes)?.convert::<u8>());
        files.push(bytes);
    }
    let n = decoded.len() as u32;
    let times = session.times();
    let part = |of: fn(&Times) -> Duration| (of(&times) - of(&before)) / n;
    let (plan, kernels) = (part(|t| t.planning), part(|t| t.kernels));
    let (upload, download) = (part(|t| t.upload), part(|t| t.download));
    for (i, image) in std::iter::once(&lines[0]).chain(&lines).enumerate() {
        let start = Instant::now();
        image.encode(Format::Png, &SaveOptions::default())?;
        if i > 0 {
            encode += start.elapsed() / n;
        }
    }

    let cores = args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let together = all_cores(cores, &paths, &files)?;

    let name = |path: &Path| output.join(path.file_name().unwrap_or_default()).with_extension("png");
    let mut series = Vec::new();
    for _ in 0..args.repeat.max(1) {
        let start = Instant::now();
        session.series(&paths, operation).recorded_once().save(name, &options).all()?;
        series.push(start.elapsed() / paths.len() as u32);
    }
    series.sort();
    let series = series[series.len() / 2];

    let unified = session.device().is_some_and(|d| d.memory().is_unified());
    let host = (decode + encode + plan) / cores as u32;
    let with = |host: Duration| if unified { host + kernels } else { host.max(kernels).max(upload).max(download) };
    let bound = with(host);
    let ms = |t: Duration| t.as_secs_f64() * 1e3;
    println!(
        "| {} | {}x{} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
        session.device_name(),
        args.size,
        args.size,
        paths.len(),
        ms(decode),
        ms(encode),
        ms(together),
        ms(plan),
        ms(upload),
        ms(kernels),
        ms(download),
        ms(bound),
        ms(series),
        bound.as_secs_f64() / series.as_secs_f64(),
        with(together + plan).as_secs_f64() / series.as_secs_f64()
    );
    Ok(())
}

/// Time for decoding a picture and encoding its result while all cores do only this.
fn all_cores(cores: usize, paths: &[PathBuf], results: &[Vec<u8>]) -> Result<Duration> {
    /// Pictures per core.
    const EACH: usize = 4;
    let sessions = (0..cores).map(|_| session_of_one()).collect::<Result<Vec<_>>>()?;
    let work = |number: usize, session: &Session| -> Result<()> {
        for i in (0..EACH).map(|i| number * EACH + i) {
            Picture::open(&paths[i % paths.len()], &OpenOptions::default())?;
            let result = AnyImage::read(session, &results[i % results.len()])?;
            result.convert::<u8>().encode(Format::Png, &SaveOptions::default())?;
        }
        Ok(())
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            sessions.iter().enumerate().map(|(i, session)| scope.spawn(move || work(i, session))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(start.elapsed() / (cores * EACH) as u32)
}

fn session(args: &SeriesBenchArgs) -> Result<Session> {
    let builder = Session::builder().device(&args.device);
    match args.threads {
        Some(threads) => builder.threads(threads),
        None => builder,
    }
    .build()
}

/// A session whose encoders have one thread, as in a series.
fn session_of_one() -> Result<Session> {
    Session::builder().device("cpu").threads(1).build()
}

/// Pictures of vessels, each rotated further: they compress like photographs, and all are different.
fn pictures(args: &SeriesBenchArgs, folder: &Path) -> Result<Vec<PathBuf>> {
    let session = Session::builder().device("cpu").build()?;
    let worms = samples::worms(&session, args.size, args.size);
    let make = |i: usize| {
        let path = folder.join(format!("{i:04}.pgm"));
        if !path.exists() {
            worms.with_border(Border::Reflect101).rotate(i as f64 * 7.0, Interpolation::Bilinear).save(&path)?;
        }
        Ok(path)
    };
    (0..args.count.max(1)).map(make).collect()
}
