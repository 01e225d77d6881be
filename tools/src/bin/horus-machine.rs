//! Measures copies, launches, kernels, messages between ranks and files on this machine, so that sessions can predict
//! costs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use horus::prelude::*;
use horus_core::machine::here::{self, keep};
use horus_core::machine::measure::measure;

/// Measures this machine in about ten seconds and keeps the profile for all sessions on such
/// hardware. Under mpirun it also measures messages between ranks.
#[derive(Parser)]
#[command(version)]
struct MachineOptions {
    /// Device to measure: auto, cpu, cuda or cuda:N (default: HORUS_DEVICE, else auto)
    #[arg(long)]
    device: Option<String>,

    /// Threads of the host
    #[arg(long)]
    threads: Option<usize>,

    /// Write the profile to this file only (HORUS_PROFILE names it)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print the profile that sessions use now; measure nothing
    #[arg(long)]
    show: bool,

    /// Small images and few runs: about a second, and coarse numbers
    #[arg(long)]
    quick: bool,
}

fn run(options: &MachineOptions) -> Result<()> {
    let mut builder = Session::builder().eager(true);
    if let Some(device) = &options.device {
        builder = builder.device(device);
    }
    if let Some(threads) = options.threads {
        builder = builder.threads(threads);
    }
    let session = builder.build()?;
    let Some(device) = session.device() else { return Err(Error::Config("the session has no device".into())) };
    let profile = if options.show { here::profile(device)? } else { measure(device, session.comm(), options.quick)? };
    // One rank per kind of hardware stores its profile and prints it.
    let kinds =
        session.comm().gather(here::number(&profile.hardware)).map_err(|e| e.during(session.rank(), "keeping it"))?;
    if kinds[..session.rank()].contains(&kinds[session.rank()]) {
        return Ok(());
    }
    print!("{profile}");
    if !options.show {
        let path = keep(&profile, options.out.as_deref())?;
        println!("kept in {}", path.display());
    }
    Ok(())
}

fn main() -> ExitCode {
    horus_apps::batch::log_from(log::LevelFilter::Warn);
    match run(&MachineOptions::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}
