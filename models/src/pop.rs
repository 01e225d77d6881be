//! The command line of `pop`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args as Arguments, CommandFactory, FromArgMatches, Parser, Subcommand};
use horus::prelude::*;

use crate::kpp::{Coefficients, Kpp, Ocean, Parameters, Surface, WaterType};
use crate::ocean::{Basin, Equation, OceanField, SeaWater};
use crate::tracers::{Cells, Transport};
use horus_apps::batch::{self, RunEnd};
use horus_apps::execution::Execution;

/// Density of sea water, vertical mixing, and steps of temperature and salinity in an ocean, level by
/// level, in double precision, as computed by the Parallel Ocean Program
#[derive(Parser, Clone, Debug)]
#[command(name = "pop", version, allow_negative_numbers = true, subcommand_required = true)]
struct PopArgs {
    #[command(subcommand)]
    task: PopTask,
}

#[derive(Subcommand, Clone, Debug)]
#[command(allow_negative_numbers = true)]
enum PopTask {
    /// Density: density.npy in kg/m^3, by_temperature.npy, by_salinity.npy (its derivatives)
    State(Inputs),
    /// Fields that mixing depends on: from_surface.npy and from_below.npy (differences of buoyancy in m/s^2),
    /// of_heat.npy and of_salt.npy (diffusivities of double diffusion in m^2/s)
    Mixing {
        #[command(flatten)]
        inputs: Inputs,

        /// Diffusivities of heat and salt in m^2/s to which those of double diffusion are added
        #[arg(long, num_args = 2, value_names = ["HEAT", "SALT"])]
        diffusivities: Vec<PathBuf>,
    },
    /// Coefficients of vertical mixing by the K profile parameterization: viscosity.npy, of_heat.npy
    /// and of_salt.npy in m^2/s, nonlocal.npy in s/m^2, boundary_layer.npy (its depth in m, an image)
    Kpp {
        #[command(flatten)]
        inputs: Inputs,
        #[command(flatten)]
        forcing: Box<ForcingArgs>,
    },
    /// Temperature and salinity after a step: temperature.npy and salinity.npy. By centred advection,
    /// horizontal diffusion, and implicit vertical mixing with the coefficients of `kpp`
    Step {
        #[command(flatten)]
        inputs: Inputs,
        #[command(flatten)]
        forcing: Box<ForcingArgs>,

        /// Temperatures and salinities a step earlier, for a leapfrog step (default: an Euler step)
        #[arg(long, num_args = 2, value_names = ["TEMPERATURE", "SALINITY"])]
        before: Vec<PathBuf>,

        /// The length of a step, in seconds
        #[arg(long, value_name = "S", value_parser = positive)]
        seconds: f64,

        /// The latitude of the first row, in degrees
        #[arg(long, value_name = "DEG")]
        south: f64,

        /// How far rows and columns lie apart, in degrees
        #[arg(long, value_name = "DEG", value_parser = positive)]
        degrees: f64,

        /// Horizontal diffusivity, in m^2/s
        #[arg(long, value_name = "D", default_value_t = 1000.0)]
        horizontal: f64,
    },
}

fn positive(text: &str) -> Result<f64, String> {
    crate::loops::positive(text, "it")
}

#[derive(Arguments, Clone, Debug)]
struct Inputs {
    /// Potential temperatures in degrees Celsius: an npy or TIFF file of levels, from the surface
    /// down
    temperature: PathBuf,

    /// Salinities in psu, of the same extent
    salinity: PathBuf,

    /// Depths of the levels in metres: one for each, comma separated
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    depths: Vec<f64>,

    /// The number of levels above the sea floor for each column, 0 on land: an image (default: all);
    /// below, results are 0
    #[arg(long, value_name = "FILE")]
    floor: Option<PathBuf>,

    /// Equation of state
    #[arg(long, value_enum, default_value_t)]
    equation: Equation,

    /// The folder for the results, one npy file each
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,

    #[command(flatten)]
    execution: Execution,
}

#[derive(Arguments, Clone, Debug)]
struct ForcingArgs {
    /// Velocities to the east and to the north in m/s, at the north-eastern corners of cells; rows go
    /// from the south to the north
    #[arg(long, num_args = 2, value_names = ["EAST", "NORTH"], required = true)]
    velocity: Vec<PathBuf>,

    /// Stress of the wind over density, to the east and to the north, in m^2/s^2: images
    #[arg(long, num_args = 2, value_names = ["EAST", "NORTH"], required = true)]
    stress: Vec<PathBuf>,

    /// Flux of heat into the ocean but sunlight, over density and heat capacity, in degrees m/s: an
    /// image (default: none)
    #[arg(long, value_name = "FILE")]
    heat: Option<PathBuf>,

    /// Flux of salt into the ocean, in psu m/s: an image (default: none)
    #[arg(long, value_name = "FILE")]
    salt: Option<PathBuf>,

    /// Flux of heat by sunlight, in degrees m/s: an image (default: none); below 0 it heats no water
    #[arg(long, value_name = "FILE")]
    sunlight: Option<PathBuf>,

    /// Jerlov's type of water
    #[arg(long, value_enum, default_value_t)]
    water: WaterType,

    /// The Coriolis parameter in 1/s, an image: limits boundary layers under stable forcing by the
    /// depths of Ekman and of Monin and Obukhov (default: no limit)
    #[arg(long, value_name = "FILE")]
    coriolis: Option<PathBuf>,

    /// Diffusivity by internal waves, in m^2/s; their viscosity is ten times that
    #[arg(long, value_name = "D", default_value_t = Parameters::default().waves)]
    waves: f64,

    /// Viscosity and diffusivity of convection below the boundary layer, in m^2/s
    #[arg(long, value_name = "D", default_value_t = Parameters::default().convection)]
    convection: f64,
}

impl PopTask {
    fn inputs(&self) -> &Inputs {
        let (PopTask::State(inputs)
        | PopTask::Mixing { inputs, .. }
        | PopTask::Kpp { inputs, .. }
        | PopTask::Step { inputs, .. }) = self;
        inputs
    }
}

/// The program `pop`; see [`batch::run`] for its exit status.
pub fn run() -> ExitCode {
    let args = PopArgs::command().try_get_matches().and_then(|matches| PopArgs::from_arg_matches(&matches));
    let device = args.as_ref().ok().and_then(|args| args.task.inputs().execution.session.device.clone());
    batch::run_on_ranks(log::LevelFilter::Warn, device.as_deref(), args, |args, comm| {
        let inputs = args.task.inputs();
        let builder = Session::builder().communicator(Arc::clone(comm));
        let session = inputs.execution.apply(builder, comm.rank() == 0, |text| println!("{text}")).build()?;
        let written = compute(&args.task, inputs, &session);
        drop(session); // close it before ranks part
        written.map(|()| RunEnd::Done)
    })
}

/// A field from a file, which must have the size of temperatures, or of one level of them.
fn open(session: &Session, path: &Path, shape: Shape) -> Result<OceanField> {
    let field: OceanField = AnyImage::open_volume(session, path)?.convert();
    if field.shape() == shape {
        return Ok(field);
    }
    let (is, path) = (field.shape(), path.display());
    Err(Error::Config(format!("{path}: {is} pixels; temperatures require {shape}")))
}

fn two(session: &Session, paths: &[PathBuf], shape: Shape) -> Result<[OceanField; 2]> {
    Ok([open(session, &paths[0], shape)?, open(session, &paths[1], shape)?])
}

/// Forcing of an ocean, opened.
struct OpenForcing {
    kpp: Kpp,
    velocity: [OceanField; 2],
    surface: Surface,
}

impl ForcingArgs {
    fn open(&self, session: &Session, water: &SeaWater, volume: Shape) -> Result<OpenForcing> {
        let parameters =
            Parameters { waves: self.waves, convection: self.convection, water: self.water, ..Parameters::default() };
        let image = Shape { depth: 1, ..volume };
        let given = |path: &Option<PathBuf>| path.as_ref().map(|path| open(session, path, image)).transpose();
        let flux = |path| Ok::<OceanField, Error>(given(path)?.unwrap_or_else(|| Image::constant(session, image, 0.0)));
        let surface = Surface {
            stress: two(session, &self.stress, image)?,
            heat: flux(&self.heat)?,
            salt: flux(&self.salt)?,
            sunlight: flux(&self.sunlight)?,
            coriolis: given(&self.coriolis)?,
        };
        let velocity = two(session, &self.velocity, volume)?;
        Ok(OpenForcing { kpp: Kpp::new(water, parameters)?, velocity, surface })
    }
}

impl OpenForcing {
    fn mixing(&self, t: &OceanField, s: &OceanField) -> Coefficients {
        let ocean = Ocean { temperature: t.clone(), salinity: s.clone(), velocity: self.velocity.clone() };
        self.kpp.coefficients(&ocean, &self.surface)
    }
}

fn compute(task: &PopTask, inputs: &Inputs, session: &Session) -> Result<()> {
    let t: OceanField = AnyImage::open_volume(session, &inputs.temperature)?.convert();
    let volume = t.shape();
    let image = Shape { depth: 1, ..volume };
    if inputs.depths.len() != volume.depth {
        let (given, levels) = (inputs.depths.len(), volume.depth);
        return Err(Error::Config(format!("--depths has {given} numbers for {levels} levels")));
    }
    let s = open(session, &inputs.salinity, volume)?;
    let floor = match &inputs.floor {
        Some(path) => open(session, path, image)?,
        None => Image::constant(session, (1, 1), volume.depth as f64),
    };
    let basin = Basin::new(session, &inputs.depths, &floor)?;
    let water = SeaWater::new(&basin, inputs.equation)?;
    let results = match task {
        PopTask::State(_) => {
            let d = water.state(&t, &s);
            vec![("density", d.density), ("by_temperature", d.by_temperature), ("by_salinity", d.by_salinity)]
        }
        PopTask::Mixing { diffusivities, .. } => {
            let added = match &diffusivities[..] {
                [] => [0, 1].map(|_| Image::constant(session, (1, 1), 0.0)),
                paths => two(session, paths, volume)?,
            };
            let buoyancy = water.buoyancy(&t, &s);
            let [of_heat, of_salt] = water.double_diffusion(&t, &s, added.each_ref());
            let [surface, below] = [buoyancy.from_surface, buoyancy.from_below];
            vec![("from_surface", surface), ("from_below", below), ("of_heat", of_heat), ("of_salt", of_salt)]
        }
        PopTask::Kpp { forcing, .. } => {
            let forced = forcing.open(session, &water, volume)?;
            let mixing = forced.mixing(&t, &s);
            vec![
                ("viscosity", mixing.viscosity),
                ("of_heat", mixing.of_heat),
                ("of_salt", mixing.of_salt),
                ("nonlocal", mixing.nonlocal),
                ("boundary_layer", mixing.depth),
            ]
        }
        PopTask::Step { forcing, before, seconds, south, degrees, horizontal, .. } => {
            let forced = forcing.open(session, &water, volume)?;
            let grid = Cells::on_sphere(session, *south, *degrees, volume.height)?;
            let transport = Transport::new(&basin, &grid, *horizontal)?;
            let ([t0, s0], interval) = match &before[..] {
                [] => ([t.clone(), s.clone()], *seconds),
                paths => (two(session, paths, volume)?, 2.0 * seconds),
            };
            let flow = transport.flow(forced.velocity.each_ref());
            let [of_heat, of_salt] = forced.kpp.columns(&forced.mixing(&t0, &s0), &forced.surface);
            vec![
                ("temperature", transport.step([&t0, &t], interval, &flow, &of_heat)),
                ("salinity", transport.step([&s0, &s], interval, &flow, &of_salt)),
            ]
        }
    };
    drop((t, s));
    // Evaluates all together, which reads tracers once; if memory is short, each result alone.
    session.evaluate().or_else(|e| if e.is_out_of_memory() { Ok(()) } else { Err(e) })?;
    results.iter().try_for_each(|(name, result)| result.save(inputs.out_dir.join(format!("{name}.npy"))).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        PopArgs::command().debug_assert();
        let args = PopArgs::try_parse_from(["pop", "state", "t.npy", "s.npy", "--depths", "5,15.5", "--out-dir", "o"])
            .unwrap();
        assert!(matches!(args.task, PopTask::State(inputs) if inputs.depths == [5.0, 15.5]));
        assert!(
            PopArgs::try_parse_from(["pop", "state", "t.npy", "s.npy", "--out-dir", "o"]).is_err(),
            "without depths"
        );
        let kpp = ["pop", "kpp", "t.npy", "s.npy", "--depths", "5", "--out-dir", "o"];
        assert!(PopArgs::try_parse_from(kpp).is_err(), "without velocities");
        let step = "pop step t s --depths 5 --out-dir o --velocity u v --stress x y --south 10 --degrees 1 --seconds";
        let parse = |seconds| PopArgs::try_parse_from(step.split(' ').chain([seconds]));
        assert!(matches!(parse("60").unwrap().task, PopTask::Step { seconds: 60.0, horizontal: 1000.0, .. }));
        assert!(parse("0").is_err() && parse("NaN").is_err());
    }
}
