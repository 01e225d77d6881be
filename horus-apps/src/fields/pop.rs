//! The command line of `pop`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};
use horus::prelude::*;

use super::ocean::{Field, Mixing, SeaWater, pressure};
use crate::batch::{self, End};
use crate::execution::Execution;

/// Density of sea water and the fields that vertical mixing in an ocean depends on, level by level,
/// in double precision, as computed by the Parallel Ocean Program
#[derive(Parser, Clone, Debug)]
#[command(name = "pop", version, allow_negative_numbers = true)]
struct Args {
    /// Fields to compute
    #[arg(value_enum)]
    task: Task,

    /// Potential temperatures in degrees Celsius: an npy or TIFF file of levels, from the surface
    /// down
    temperature: PathBuf,

    /// Salinities in psu, of the same extent
    salinity: PathBuf,

    /// Depths of the levels in metres: one for each, comma separated
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    depths: Vec<f64>,

    /// The folder for the results, one npy file each
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,

    #[command(flatten)]
    execution: Execution,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// density.npy, by_temperature.npy, by_salinity.npy
    State,
    /// from_surface.npy and from_below.npy (buoyancy), of_heat.npy and of_salt.npy (double
    /// diffusion)
    Mixing,
}

/// The program `pop`; see [`batch::run`] for its exit status.
pub fn run() -> ExitCode {
    let args = Args::command().try_get_matches().and_then(|matches| Args::from_arg_matches(&matches));
    batch::framed(log::LevelFilter::Warn, args, |args, comm| {
        let builder = Session::builder().communicator(Arc::clone(comm));
        let session = args.execution.apply(builder, comm.rank() == 0, |text| println!("{text}")).build()?;
        let written = compute(args, &session);
        drop(session); // close it before ranks part
        written.map(|()| End::Done)
    })
}

fn compute(args: &Args, session: &Session) -> Result<()> {
    let open = |path: &Path| Ok::<Field, Error>(AnyImage::open_volume(session, path)?.convert());
    let (t, s) = (open(&args.temperature)?, open(&args.salinity)?);
    if args.depths.len() != t.depth() {
        let (given, levels) = (args.depths.len(), t.depth());
        return Err(Error::Config(format!("--depths has {given} numbers for {levels} levels")));
    }
    let pressures: Vec<f64> = args.depths.iter().map(|d| pressure(*d)).collect();
    let water = SeaWater::at(&Image::from_slice(session, (pressures.len(), 1, 1), &pressures));
    let results = match args.task {
        Task::State => {
            let d = water.state(&t, &s);
            vec![("density", d.density), ("by_temperature", d.by_temperature), ("by_salinity", d.by_salinity)]
        }
        Task::Mixing => {
            let Mixing { from_surface, from_below, of_heat, of_salt } = water.mixing(&t, &s);
            vec![("from_surface", from_surface), ("from_below", from_below), ("of_heat", of_heat), ("of_salt", of_salt)]
        }
    };
    drop((t, s));
    // All at once, which reads tracers once; if memory is short, each result alone.
    session.evaluate().or_else(|e| if e.is_out_of_memory() { Ok(()) } else { Err(e) })?;
    results.iter().try_for_each(|(name, result)| result.save(args.out_dir.join(format!("{name}.npy"))).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
        let args =
            Args::try_parse_from(["pop", "state", "t.npy", "s.npy", "--depths", "5,15.5", "--out-dir", "o"]).unwrap();
        assert_eq!((args.task, &args.depths[..]), (Task::State, &[5.0, 15.5][..]));
        assert!(Args::try_parse_from(["pop", "state", "t.npy", "s.npy", "--out-dir", "o"]).is_err(), "without depths");
    }
}
