//! Searches for the fastest launch shapes on a GPU, and stores them for every program of this user.
//!
//! Tuning changes no result: each candidate's output is compared bit by bit with the output of the present choice.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use horus::prelude::*;
use horus_core::ir::kernel::Kernel;
use horus_cuda::measure::{KernelBench, SHAPE, TimedKernel, whole};
use horus_cuda::tuning::{TunedFamily, TuningEntry, rows_of, user_table};
use horus_cuda::workloads::{conv2d, convrot, correlate, pixel_chain, rotate, separable};

/// Searches for the fastest launch shapes on a GPU.
#[derive(Parser)]
#[command(version)]
struct TuneOptions {
    /// Only kernels whose name contains this
    #[arg(default_value = "")]
    filter: String,

    /// Seconds of search per kernel
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,

    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    gpu: usize,

    /// Search for 64-bit floats too
    #[arg(long)]
    double: bool,

    /// Table to write; rows of other kernels in it are kept (HORUS_TUNING if not given, else
    /// horus/tuning.json in the user's configuration directory)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn kernels(dtype: DType) -> Vec<(String, Kernel, usize)> {
    let border = Border::Reflect101;
    let zero = Border::Constant(0.0);
    let mut all = Vec::new();
    for n in [3, 5, 7, 9, 11, 13, 17, 21, 25, 31, 43] {
        all.push((format!("correlate {n}x{n}"), correlate(n, n, dtype, border), 1));
    }
    for n in [3, 5, 7, 9, 13, 19, 25, 31, 43, 61] {
        all.push((format!("separable {n}"), separable(n, dtype, border), 1));
    }
    all.push(("rotate".into(), rotate(30.0, SHAPE, Interpolation::Bilinear, dtype, zero), 1));
    if dtype == DType::F32 {
        all.push(("pixel chain".into(), pixel_chain(), 3));
        for n in [19, 31, 43] {
            all.push((format!("convrot {n}"), convrot(3, n, false), 1));
            all.push((format!("conv2d {n}"), conv2d(2, n), 1));
        }
    }
    all
}

/// The tunings found; prints each as it is found.
fn search(options: &TuneOptions, dtype: DType) -> Result<Vec<TuningEntry>> {
    let mut bench = KernelBench::new(options.gpu, dtype)?;
    let device = bench.device().arch();
    let mut found = Vec::new();
    for (name, kernel, inputs) in kernels(dtype).into_iter().filter(|k| k.0.contains(&options.filter)) {
        let Kernel::Map(map) = &kernel else { continue };
        let family = TunedFamily::of(map, dtype);
        let work = TimedKernel { kernel: kernel.clone(), inputs, output: whole(SHAPE, dtype) };
        let (present, measured) = bench
            .search(&work, &bench.candidates(&work), Duration::from_secs_f64(options.seconds), true)
            .map_err(|source| Error::Device {
                op: format!("tuning of {name}"),
                device: format!("GPU {}", options.gpu),
                source,
            })?;
        let best = measured[0];
        println!(
            "{name:16} {dtype} {:8.4} ms -> {:8.4} ms, {} measured, same bits",
            present.ms,
            best.ms,
            measured.len()
        );
        found.push(TuningEntry { arch: device, family, tuning: best.tuning });
    }
    Ok(found)
}

/// Replaces the older rows for the same kernels. Writes one row per line, so that tables can be compared.
fn write(path: &Path, old: Vec<TuningEntry>, new: Vec<TuningEntry>) -> Result<()> {
    let replaced = |e: &TuningEntry| new.iter().any(|n| (n.arch, n.family) == (e.arch, e.family));
    let rows = old.into_iter().filter(|e| !replaced(e)).chain(new.iter().copied());
    let lines: Vec<String> = rows.filter_map(|e| serde_json::to_string(&e).ok()).collect();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| Error::write(path, e))?;
    }
    std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).map_err(|e| Error::write(path, e))
}

fn run(options: &TuneOptions) -> Result<()> {
    let missing = || Error::Config("no path for the table: pass --output, or set HORUS_TUNING or HOME".into());
    let path = options.output.clone().or_else(user_table).ok_or_else(missing)?;
    // A file that is not a table is not replaced.
    let old = rows_of(&path).map_err(|e| Error::read(&path, format!("not a table of launch shapes: {e}")))?;
    let mut found = search(options, DType::F32)?;
    if options.double {
        found.extend(search(options, DType::F64)?);
    }
    write(&path, old, found)?;
    println!("wrote {}", path.display());
    Ok(())
}

fn main() -> ExitCode {
    env_logger::init();
    horus_apps::exit_code(run(&TuneOptions::parse()))
}
