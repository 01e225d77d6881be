//! The command line of `hirlam`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{CommandFactory, FromArgMatches, Parser};
use horus::prelude::*;

use crate::forecast::Leapfrog;
use crate::loops::CheckpointOptions;
use crate::weather::{Dynamics, Tendencies, Weather, half_levels, latitudes};
use horus_apps::batch::{self, RunEnd};
use horus_apps::execution::Execution;

/// Tendencies of surface pressure, temperature, wind and humidity in a limited area under the
/// primitive equations, as computed by the dynamics of a weather model, or the weather after leapfrog
/// steps with them: on levels of hybrid coordinates and the staggered grid C, for synthetic weather
/// (waves as long as the area over hills)
#[derive(Parser, Clone, Debug)]
#[command(name = "hirlam", version, mut_arg("checkpoint", |arg| arg.requires("steps")))]
struct HirlamArgs {
    /// Levels, from the top of the atmosphere to the ground
    #[arg(long, value_name = "N", default_value = "64")]
    levels: NonZeroUsize,

    /// Rows, a tenth of a degree apart from south to north (less with more than 800)
    #[arg(long, value_name = "N", default_value = "192")]
    rows: NonZeroUsize,

    /// Columns, spaced like rows in degrees
    #[arg(long, value_name = "N", default_value = "512")]
    columns: NonZeroUsize,

    /// Compute in double precision
    #[arg(long = "f64")]
    double: bool,

    /// The folder for the results, one npy file each: surface_pressure (Pa/s), temperature (K/s),
    /// u, v (m/s^2), humidity (1/s); with --steps the weather itself (Pa, K, m/s)
    #[arg(long, value_name = "DIR", required_unless_present = "runs")]
    out_dir: Option<PathBuf>,

    /// Make so many steps; in a frame of eight rows and columns the weather is drawn to the first one
    #[arg(long, value_name = "N", requires = "out_dir")]
    steps: Option<usize>,

    /// The length of a step, in seconds, in which gravity waves, at some 340 m/s, may not go half a cell
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = positive, requires = "steps")]
    seconds: f64,

    /// The coefficient of horizontal diffusion of fourth order, in m^4/s
    #[arg(long, value_name = "K", default_value_t = 1e11, value_parser = diffusion, requires = "steps")]
    diffusion: f64,

    #[command(flatten)]
    checkpoints: CheckpointOptions,

    /// Print the median times of N runs, from weather on the device, and from page-locked arrays to
    /// page-locked arrays
    #[arg(long, value_name = "N")]
    runs: Option<NonZeroUsize>,

    #[command(flatten)]
    execution: Execution,
}

fn positive(text: &str) -> Result<f64, String> {
    crate::loops::positive(text, "a time")
}

fn diffusion(text: &str) -> Result<f64, String> {
    if text == "0" { Ok(0.0) } else { crate::loops::positive(text, "a coefficient") }
}

/// The program `hirlam`; see [`batch::run`] for its exit status.
pub fn run() -> ExitCode {
    let args = HirlamArgs::command().try_get_matches().and_then(|matches| HirlamArgs::from_arg_matches(&matches));
    let device = args.as_ref().ok().and_then(|args| args.execution.session.device.clone());
    batch::run_on_ranks(log::LevelFilter::Warn, device.as_deref(), args, |args, comm| {
        // Arrays are page-locked from the beginning if the device is known.
        let builder = Session::builder().communicator(Arc::clone(comm)).eager(args.runs.is_some());
        let session = args.execution.apply(builder, comm.rank() == 0, |text| println!("{text}")).build()?;
        let done = if args.double { compute::<f64>(args, &session) } else { compute::<f32>(args, &session) };
        drop(session); // close it before ranks part
        done.map(|()| RunEnd::Done)
    })
}

fn compute<T: Float>(args: &HirlamArgs, session: &Session) -> Result<()> {
    let shape = Shape::volume(args.levels.get(), args.rows.get(), args.columns.get(), 1);
    // Fails on too large an extent before the coordinates are computed.
    Image::<T>::constant(session, (shape.depth, shape.height, shape.width), T::ZERO).check()?;
    let (rows, step) = latitudes(shape.height);
    let dynamics = Dynamics::<T>::new(session, &half_levels(shape.depth), shape.width, &rows, step);
    let weather = dynamics.waves(session);
    if let Some(runs) = args.runs {
        session.evaluate()?;
        times(session, &dynamics, &weather, runs.get())?;
    }
    let Some(folder) = &args.out_dir else { return Ok(()) };
    if let Some(steps) = args.steps {
        let forecast = Leapfrog::new(&dynamics, &weather, args.seconds, args.diffusion);
        let program = format!("hirlam --seconds {} --diffusion {}", args.seconds, args.diffusion);
        let checkpoints = args.checkpoints.of(program);
        let after = forecast.after(&weather, steps, checkpoints.as_ref())?;
        let Weather { surface_pressure, temperature, u, v, humidity, .. } = after;
        return save(folder, &Tendencies { surface_pressure, temperature, u, v, humidity });
    }
    let tendencies = dynamics.tendencies(&weather);
    drop(weather);
    // Evaluates all results together: common parts are computed once.
    session.evaluate()?;
    save(folder, &tendencies)
}

fn save<T: Float>(folder: &Path, fields: &Tendencies<T>) -> Result<()> {
    all(fields).into_iter().try_for_each(|(name, image)| image.save(folder.join(format!("{name}.npy"))).map(drop))
}

/// Each image with its name.
fn all<T: Float>(tendencies: &Tendencies<T>) -> [(&'static str, &Image<T>); 5] {
    let Tendencies { surface_pressure, temperature, u, v, humidity } = tendencies;
    [("surface_pressure", surface_pressure), ("temperature", temperature), ("u", u), ("v", v), ("humidity", humidity)]
}

/// Prints median times.
fn times<T: Float>(session: &Session, dynamics: &Dynamics<T>, weather: &Weather<T>, runs: usize) -> Result<()> {
    let shape = dynamics.shape();
    let before = session.stats().made.launches;
    let there = median(session, runs, || {
        let _kept = dynamics.tendencies(weather);
        session.evaluate()
    })?;
    let launches = (session.stats().made.launches - before) / (runs + 1);
    let mut inputs = Vec::new();
    for image in fields(weather) {
        inputs.push(image.to_pixels()?);
    }
    let mut outputs = Vec::new();
    for (_, image) in all(&dynamics.tendencies(weather)) {
        outputs.push(session.pixels_of::<T>(image.shape())?);
    }
    let arrays = median(session, runs, || {
        let [surface_pressure, surface_geopotential, temperature, u, v, humidity] =
            std::array::from_fn(|i| Image::from_pixels(session, inputs[i].clone()));
        let weather = Weather { surface_pressure, surface_geopotential, temperature, u, v, humidity };
        let tendencies = dynamics.tendencies(&weather);
        drop(weather);
        let images = all(&tendencies).map(|(_, image)| image);
        session.read_into(images.into_iter().zip(&mut outputs).collect::<Vec<_>>())
    })?;
    if session.rank() == 0 {
        let bytes = |numbers: usize| (numbers * size_of::<T>()) as f64 / 1e6;
        let (levels, area) = (4 * shape.len(), shape.area());
        println!(
            "{} x {} x {} {}, {}, {} ranks: {:.3} ms, {launches} launches; {:.3} ms from arrays to arrays ({:.1} MB in, {:.1} MB out)",
            shape.width,
            shape.height,
            shape.depth,
            T::DTYPE,
            session.device_name(),
            session.ranks(),
            there * 1e3,
            arrays * 1e3,
            bytes(levels + 2 * area),
            bytes(levels + area)
        );
    }
    Ok(())
}

fn fields<T: Float>(weather: &Weather<T>) -> [&Image<T>; 6] {
    let Weather { surface_pressure, surface_geopotential, temperature, u, v, humidity } = weather;
    [surface_pressure, surface_geopotential, temperature, u, v, humidity]
}

/// Median seconds of runs until the last rank is done, after an uncounted one.
fn median(session: &Session, runs: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut timed = || {
        let start = Instant::now();
        work()?;
        session.comm().gather(0).map_err(|e| e.during(session.rank(), "measuring"))?;
        Ok(start.elapsed().as_secs_f64())
    };
    timed()?;
    let mut times = (0..runs).map(|_| timed()).collect::<Result<Vec<f64>>>()?;
    times.sort_by(f64::total_cmp);
    Ok(times[runs / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        HirlamArgs::command().debug_assert();
        let parse = |words: &[&str]| HirlamArgs::try_parse_from([&["hirlam"], words].concat());
        let args = parse(&["--out-dir", "o"]).unwrap();
        assert_eq!((args.columns.get(), args.rows.get(), args.levels.get(), args.double), (512, 192, 64, false));
        assert_eq!(parse(&["--runs", "3", "--levels", "5"]).unwrap().levels.get(), 5);
        assert!(parse(&["--rows", "9"]).is_err(), "neither results nor times");
        assert!(parse(&["--runs", "3", "--rows", "0"]).is_err());
        assert_eq!(parse(&["--out-dir", "o", "--steps", "4", "--diffusion", "0"]).unwrap().steps, Some(4));
        assert!(parse(&["--out-dir", "o", "--steps", "4", "--seconds", "-1"]).is_err());
        assert!(parse(&["--out-dir", "o", "--checkpoint", "c"]).unwrap_err().to_string().contains("--steps"));
    }
}
