//! An ocean between continents, set in motion by wind, sun and rotation: `cargo run --release -p
//! horus-models --example ocean`. Density follows from temperature and salinity, currents from density
//! and wind, mixing from all of them; temperature and salinity are carried along and mixed.

use clap::Parser;
use horus::prelude::*;
use horus_core::image::Checkpoints;
use horus_core::session::Session as CoreSession;
use horus_models::kpp::{Kpp, Ocean, Parameters, Surface};
use horus_models::ocean::{Basin, Equation, OceanField, SeaWater};
use horus_models::tracers::{Cells, Transport};
use horus_models::{CheckpointOptions, iterate};

/// Middles of layers, and their thickness, in m.
const DEPTHS: [f64; 7] = [5.0, 20.0, 50.0, 110.0, 230.0, 470.0, 950.0];
const LAYERS: [f64; 7] = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0];
/// Seconds of a step; degrees between rows and columns; friction and rotation, in 1/s.
const STEP: f64 = 7200.0;
const DEGREES: f64 = 2.0;
const FRICTION: f64 = 2e-5;
const ROTATION: f64 = 7.292e-5;

/// Computes the motion of an ocean between continents, and writes the temperature at its surface to
/// ocean.png
#[derive(Parser)]
#[command(name = "ocean")]
pub(crate) struct OceanArgs {
    /// Steps of two hours
    #[arg(long, value_name = "T", default_value_t = 720)]
    pub(crate) steps: usize,

    #[command(flatten)]
    pub(crate) checkpoints: CheckpointOptions,
}

fn main() -> Result<()> {
    let args = OceanArgs::parse();
    let session = Session::new()?;
    let planet = ExampleOcean::new(&session, 64, 128)?;
    let [temperature, _] = planet.after(args.steps, args.checkpoints.of("ocean").as_ref())?;
    planet.picture(&temperature.slice(0)).save("ocean.png").map(drop)
}

/// Seas, and what drives them.
pub(crate) struct ExampleOcean {
    kpp: Kpp,
    water: SeaWater,
    grid: Cells,
    transport: Transport,
    /// The number of each level, its thickness, and how many of them are water in each column.
    level: OceanField,
    thickness: OceanField,
    floor: OceanField,
    /// Of rows: the cosine of the latitude; the Coriolis parameter, and the wind, at corners.
    cosine: OceanField,
    turn: OceanField,
    wind: OceanField,
}

impl ExampleOcean {
    /// So many rows around the equator, and columns, with land around them.
    pub(crate) fn new(session: &CoreSession, rows: usize, columns: usize) -> Result<ExampleOcean> {
        let floor = Image::from_fn(session, rows, columns, |y, x| {
            let (lat, lon) = (y as f64 * 6.0 / rows as f64, x as f64 * 10.0 / columns as f64);
            let wave = |a: f64, b: f64, c: f64| (a * lon + b * lat + c).sin();
            let hills =
                wave(0.7, 0.9, 0.5) + wave(1.3, -1.1, 0.8) + 0.5 * wave(2.9, 2.3, 0.0) + 0.3 * wave(-3.7, 5.1, 1.0);
            let land = hills > 0.5 || y == 0 || x == 0 || y == rows - 1 || x == columns - 1;
            if land { 0.0 } else { ((0.5 - hills) * 8.0).ceil().clamp(2.0, 7.0) }
        });
        let south = -DEGREES * (rows as f64 - 1.0) / 2.0;
        let latitude =
            (Image::index(session, Shape::new(rows, 1, 1), Axis::Rows) * DEGREES + south) * 1f64.to_radians();
        let corner = &latitude + (DEGREES / 2.0).to_radians();
        let basin = Basin::new(session, &DEPTHS, &floor)?;
        let (water, grid) = (SeaWater::new(&basin, Equation::Mwjf)?, Cells::on_sphere(session, south, DEGREES, rows)?);
        Ok(ExampleOcean {
            kpp: Kpp::new(&water, Parameters::default())?,
            water,
            transport: Transport::new(&basin, &grid, 2e4)?,
            grid,
            level: Image::index(session, Shape::volume(7, 1, 1, 1), Axis::Depth),
            thickness: Image::from_slice(session, (7, 1, 1), &LAYERS),
            floor,
            cosine: latitude.cos(),
            turn: corner.sin() * (2.0 * ROTATION),
            // To the west at low latitudes, to the east at higher ones.
            wind: (corner * 3.0).cos() * -1e-4,
        })
    }

    /// Temperature and salinity after so many steps from rest.
    pub(crate) fn after(&self, steps: usize, checkpoints: Option<&Checkpoints>) -> Result<[OceanField; 2]> {
        let session = self.floor.session();
        let depth = Image::from_slice(session, (7, 1, 1), &DEPTHS);
        let warm = (depth / -300.0).exp() * self.cosine.square() * 26.0 + 2.0;
        let water = self.level.lt(&self.floor);
        let begin = [water.select(warm, 0.0), water.select(35.0, &self.floor * 0.0)];
        let done =
            iterate(session, (begin.clone(), begin), steps, |(before, now)| self.step(before, now), checkpoints)?;
        Ok(done.state.1)
    }

    /// A leapfrog step: temperature and salinity now, kept near those before and after, and after it.
    fn step(&self, before: &[OceanField; 2], now: &[OceanField; 2]) -> ([OceanField; 2], [OceanField; 2]) {
        let [temperature, salinity] = before.clone();
        let velocity = self.currents(now);
        let surface = Surface {
            stress: [self.wind.clone(), &self.wind * 0.0],
            heat: (self.cosine.square() * 28.0 - 6.0 - temperature.slice(0)) * 1e-5,
            salt: (self.cosine.square() - 0.75) * 2e-6,
            sunlight: &self.cosine * 5e-5,
            coriolis: Some(self.turn.clone()),
        };
        let mixing = self.kpp.coefficients(&Ocean { temperature, salinity, velocity: velocity.clone() }, &surface);
        let flow = self.transport.flow(velocity.each_ref());
        let columns = self.kpp.columns(&mixing, &surface);
        let after = [0, 1].map(|i| self.transport.step([&before[i], &now[i]], 2.0 * STEP, &flow, &columns[i]));
        let kept = [0, 1].map(|i| &now[i] + (&before[i] + &after[i] - &now[i] * 2.0) * 0.05);
        (kept, after)
    }

    /// Currents at corners in m/s, in which pressure, wind, rotation and friction are in balance; as much
    /// water flows one way near the surface as the other way below.
    fn currents(&self, [t, s]: &[OceanField; 2]) -> [OceanField; 2] {
        let weight = self.water.density(t, s) * &self.thickness;
        let pressure = (weight.over(Axis::Depth).cumsum() - weight * 0.5) * (9.806 / 1026.0);
        let slope = |taps| pressure.correlate(&Filter::sparse([(0, 0), (0, 1), (1, 0), (1, 1)], taps));
        let [height, width] = &self.grid.around;
        let wind = self.level.eq(0.0).select(&self.wind / LAYERS[0], 0.0);
        let east = wind - slope([-0.5, 0.5, -0.5, 0.5]) / width;
        let north = -slope([-0.5, -0.5, 0.5, 0.5]) / height;
        let all = self.turn.square() + FRICTION * FRICTION;
        let velocity = [&east * FRICTION + &north * &self.turn, north * FRICTION - east * &self.turn];
        let beside = |dy, dx| self.floor.shift(0, dy, dx);
        let water = self.level.lt(self.floor.min(beside(0, -1)).min(beside(-1, 0)).min(beside(-1, -1)));
        let depth = water.select(&self.thickness, 0.0).over(Axis::Depth).sum().max(1.0);
        velocity.map(|force| {
            let all = water.select(force / &all, 0.0);
            let mean = (&all * &self.thickness).over(Axis::Depth).sum() / &depth;
            water.select(all - mean, 0.0)
        })
    }

    /// A temperature in colours from blue to red, north up, land in grey.
    pub(crate) fn picture(&self, temperature: &OceanField) -> Image<u8> {
        let (part, land) = (temperature / 28.0, self.floor.eq(0.0));
        let colours = [0.9, 0.55, 0.2].map(|peak| {
            let colour = land.select(0.35, (1.5 - (&part - peak).abs() * 3.0).clamp(0.0, 1.0)) * 255.0;
            colour
                .flip(Axis::Rows)
                .resize(4 * colour.height(), 4 * colour.width(), Interpolation::Nearest)
                .convert::<u8>()
        });
        Image::stack(self.floor.session(), &colours, Axis::Channels)
    }
}
