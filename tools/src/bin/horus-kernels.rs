//! Writes the package of machine code that ships with a release, so that a first run of the detectors compiles nothing.
//!
//! Needs NVRTC and no GPU. Equal compilers and sources give equal bytes. The user's tuning table (`HORUS_TUNING`)
//! affects the kernels; `scripts/kernels.sh` makes the package of a release without it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser;
use horus_cuda::nvrtc::{Nvrtc, OPTIONS};
use horus_cuda::shipped::{Packing, limits};
use horus_tools::kernels::{BoxedError, recorded, shipped, sources};

/// Compiles the kernels of the detectors and of the operations of `horus` into one file.
#[derive(Parser)]
#[command(version)]
struct KernelsOptions {
    /// File to write
    output: PathBuf,

    /// Architectures, 90 being compute capability 9.0
    #[arg(long, value_delimiter = ',', default_value = "80,90,100,120")]
    arch: Vec<u32>,
}

fn main() -> ExitCode {
    env_logger::init();
    horus_apps::exit_code(run(&KernelsOptions::parse()))
}

fn run(options: &KernelsOptions) -> Result<(), BoxedError> {
    let start = Instant::now();
    let nvrtc = Nvrtc::load()?;
    let mut gpus = Vec::new();
    for &arch in &options.arch {
        let limits = limits(arch).ok_or_else(|| format!("sm_{arch} is not known"))?;
        if !nvrtc.architectures().contains(&arch) {
            return Err(format!("NVRTC {:?} does not compile for sm_{arch}", nvrtc.version()).into());
        }
        gpus.push((arch, limits));
    }
    let recorded = recorded(&shipped())?;
    println!("{} runs recorded in {:.1} s", recorded.len(), start.elapsed().as_secs_f64());
    let mut jobs = Vec::new();
    for (arch, limits) in gpus {
        let kernels = sources(&recorded, arch, limits)?;
        println!("sm_{arch}: {} kernels", kernels.len());
        jobs.extend(kernels.into_iter().map(|(source, name)| (arch, source, name)));
    }
    let (next, packed) = (AtomicUsize::new(0), Mutex::new(Ok(Packing::new(nvrtc.version()))));
    let work = || {
        while let Some((arch, source, name)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let compiled = nvrtc.compile(source, *arch);
            let mut packed = packed.lock().unwrap_or_else(PoisonError::into_inner);
            match (compiled, &mut *packed) {
                (Ok(code), Ok(packing)) => packing.add(source, OPTIONS, *arch, code),
                (Err(e), packed) => *packed = Err(format!("{name} for sm_{arch}: {e}")),
                (Ok(_), Err(_)) => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let bytes = packed.into_inner().unwrap_or_else(PoisonError::into_inner)?.bytes();
    let path = options.output.display();
    std::fs::write(&options.output, &bytes).map_err(|e| format!("{path}: {e}"))?;
    let took = start.elapsed().as_secs_f64();
    println!(
        "{path}: {} kernels, {} KiB, made by NVRTC {:?} in {took:.0} s",
        jobs.len(),
        bytes.len() >> 10,
        nvrtc.version()
    );
    Ok(())
}
