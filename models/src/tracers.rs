//! One time step of the tracers of an ocean, temperature and salinity, as in the Parallel Ocean Program (POP 2.1):
//! centred advection, horizontal diffusion, and implicit vertical diffusion with the sources of the boundary layer and
//! of sunlight.
//!
//! Velocities are at the north-eastern corners of cells (grid B of Arakawa) and 0 where a corner touches land; land is
//! beyond the edges. Diffusivities come from [`super::kpp`]. Choices: `docs/design/models.md`.

use horus::prelude::*;
use horus_core::session::Session as CoreSession;

use crate::kpp::{Coefficients, Kpp, Surface};
use crate::ocean::{Basin, Layers, OceanField};

/// Radius of the earth, in m.
const EARTH: f64 = 6.37122e6;

/// Sizes of cells in m and m^2: images, or one number for each row.
#[derive(Clone, Debug)]
pub struct Cells {
    /// Lengths of the eastern and of the northern sides of cells (POP's HTE, HTN).
    pub sides: [OceanField; 2],
    /// Distances to the middles of the eastern and of the northern neighbours (HUS, HUW).
    pub apart: [OceanField; 2],
    /// Lengths to the north and to the east of the cells around north-eastern corners (DYU, DXU).
    pub around: [OceanField; 2],
    /// Areas of cells (TAREA).
    pub area: OceanField,
}

impl Cells {
    /// Rows and columns `step` degrees apart on the sphere; the middle of the first row lies at the
    /// latitude `south`, in degrees.
    ///
    /// # Errors
    /// If a row lies beyond a pole.
    pub fn on_sphere(session: &CoreSession, south: f64, step: f64, rows: usize) -> Result<Cells> {
        let (first, last) = (south - step / 2.0, south + (rows as f64 - 0.5) * step);
        if !(step > 0.0 && first > -90.0 && last < 90.0) {
            let said = format!("{rows} rows {step} degrees apart reach from {first} to {last} degrees");
            return Err(Error::Config(format!("{said}; they must lie between the poles")));
        }
        let step = step.to_radians();
        let length = EARTH * step;
        let row = |of: &dyn Fn(f64) -> f64| {
            let each: Vec<f64> = (0..rows).map(|j| of(south.to_radians() + j as f64 * step)).collect();
            Image::from_slice(session, (rows, 1), &each)
        };
        let same = row(&|_| length);
        let north = row(&|at| length * (at + step / 2.0).cos());
        Ok(Cells {
            sides: [same.clone(), north.clone()],
            apart: [row(&|at| length * at.cos()), same.clone()],
            around: [same, north],
            area: row(&|at| length * length * ((at + step / 2.0).cos() + (at - step / 2.0).cos()) / 2.0),
        })
    }
}

/// Water that passes the faces of cells.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Flow through the eastern and the northern face, per height, in m^2/s.
    through: [OceanField; 2],
    /// Velocity upwards through the upper face, in m/s.
    up: OceanField,
}

/// Vertical transport of a tracer, without advection.
#[derive(Clone, Debug)]
pub struct Column {
    /// Diffusivity between each level and the level below, in m^2/s.
    pub diffusivity: OceanField,
    /// The nonlocal term of KPP, in s/m^2.
    pub nonlocal: OceanField,
    /// Flux through the surface, in the unit of the tracer times m/s: an image.
    pub flux: OceanField,
    /// Flux without mixing, such as sunlight, through the lower face of each cell, and through the surface; in the unit
    /// of the flux.
    pub passing: Option<[OceanField; 2]>,
}

/// Advection and diffusion of tracers in a basin.
#[derive(Clone, Debug)]
pub struct Transport {
    basin: Basin,
    grid: Cells,
    diffusivity: f64,
    /// Thickness of layers; distance to the next level.
    thickness: OceanField,
    gap: OceanField,
}

/// The eastern, northern, western and southern neighbour of each pixel; 0 beyond the edges.
fn east(f: &OceanField) -> OceanField {
    f.shift(0, 0, -1)
}
fn north(f: &OceanField) -> OceanField {
    f.shift(0, -1, 0)
}
fn west(f: &OceanField) -> OceanField {
    f.shift(0, 0, 1)
}
fn south(f: &OceanField) -> OceanField {
    f.shift(0, 1, 0)
}

impl Transport {
    /// The transport for a basin whose levels are the middles of layers, with a horizontal diffusivity in m^2/s.
    ///
    /// # Errors
    /// If the depths are not middles of layers.
    pub fn new(basin: &Basin, grid: &Cells, diffusivity: f64) -> Result<Transport> {
        let Layers { thickness, gap, .. } = basin.layers()?;
        Ok(Transport { basin: basin.clone(), grid: grid.clone(), diffusivity, thickness, gap })
    }

    /// `here` in the uppermost level of each water column, `others` elsewhere.
    fn surface(&self, here: &OceanField, others: &OceanField) -> OceanField {
        self.basin.level.eq(0.0).select(here, others)
    }

    /// Loss of cells through their sides, per area.
    fn divergence(&self, [to_east, to_north]: &[OceanField; 2]) -> OceanField {
        (to_east - west(to_east) + to_north - south(to_north)) / &self.grid.area
    }

    /// Flow of water with a velocity in m/s to the east and to the north (`comp_flux_vel`): water that does not leave
    /// the cells below a face through their sides goes up through it.
    pub fn flow(&self, [u, v]: [&OceanField; 2]) -> Flow {
        let floor = &self.basin.floor;
        let corner = floor.min(east(floor)).min(north(floor)).min(north(&east(floor)));
        let moves = self.basin.level.lt(corner);
        let [wide, high] = [moves.select(u, 0.0) * &self.grid.around[0], moves.select(v, 0.0) * &self.grid.around[1]];
        let through = [(&wide + south(&wide)) * 0.5, (&high + west(&high)) * 0.5];
        let lost = (self.divergence(&through) * &self.thickness).over(Axis::Depth).cumsum();
        let all = lost.slice(self.basin.depths.len() - 1);
        let from_below = self.basin.above_water().select(lost - &all, 0.0);
        Flow { through, up: self.surface(&-all, &from_below.shift(1, 0, 0)) }
    }

    /// Loss of each cell by advection, per second (`advt_centered`).
    pub fn advection(&self, flow: &Flow, t: &OceanField) -> OceanField {
        let t = &self.basin.water().select(t, 0.0);
        let [to_east, to_north] = &flow.through;
        let sides = [to_east * (t + east(t)) * 0.5, to_north * (t + north(t)) * 0.5];
        let up = &flow.up * self.surface(t, &((t + t.shift(1, 0, 0)) * 0.5));
        self.divergence(&sides) + (&up - up.shift(-1, 0, 0)) / &self.thickness
    }

    /// Gain of each cell by horizontal diffusion, per second (`hdifft_del2`): nothing passes to land.
    pub fn diffusion(&self, t: &OceanField) -> OceanField {
        let floor = &self.basin.floor;
        let side = |beside: fn(&OceanField) -> OceanField, i: usize| {
            let water = self.basin.level.lt(floor.min(beside(floor)));
            let slope = water.select(t - beside(t), 0.0);
            slope * (&self.grid.sides[i] / &self.grid.apart[i] * self.diffusivity)
        };
        -self.divergence(&[side(east, 0), side(north, 1)])
    }

    /// Gain of each cell by vertical diffusion and other fluxes along the vertical, per second
    /// (`vdifft`, and the sources of KPP and of sunlight).
    pub fn vertical(&self, t: &OceanField, column: &Column) -> OceanField {
        let Column { diffusivity, nonlocal, flux, passing } = column;
        let (mut enters, mut down) =
            (flux.clone(), ((t - t.shift(-1, 0, 0)) / &self.gap + nonlocal * flux) * diffusivity);
        if let Some([lower, surface]) = passing {
            (enters, down) = (enters + surface, down + lower);
        }
        let down = self.basin.above_water().select(down, 0.0);
        (self.surface(&enters, &down.shift(1, 0, 0)) - down) / &self.thickness
    }

    /// The change after vertical diffusion has reacted to `change` (`impvmixt`): the solution x of `x - interval (D x)'
    /// = change`, where `(D x)'` is the vertical diffusion.
    pub fn implicit(&self, change: &OceanField, diffusivity: &OceanField, interval: f64) -> OceanField {
        let passes = self.basin.above_water().select(diffusivity / &self.gap * interval, 0.0);
        let (up, down) = (passes.shift(1, 0, 0) / &self.thickness, passes / &self.thickness);
        let own = &up + &down + 1.0;
        // x = r + a (x of a level above) + b (x of a level below). Both are replaced by their own equations; the levels
        // in these are twice as far away.
        let (mut r, mut a, mut b) = (change / &own, up / &own, down / own);
        let (mut far, levels) = (1, self.basin.depths.len());
        while far < levels {
            let above = |f: &OceanField| f.shift(far as isize, 0, 0);
            let below = |f: &OceanField| f.shift(-(far as isize), 0, 0);
            let rest = 1.0 - &a * above(&b) - &b * below(&a);
            r = (&r + &a * above(&r) + &b * below(&r)) / &rest;
            (a, b) = (&a * above(&a) / &rest, &b * below(&b) / rest);
            far *= 2;
        }
        r
    }

    /// A tracer after a step of `interval` seconds from `before` (`tracer_update`). In a leapfrog step, `now` is half
    /// of the interval later; in an Euler step it is `before`. 0 where there is no water.
    pub fn step(&self, [before, now]: [&OceanField; 2], interval: f64, flow: &Flow, column: &Column) -> OceanField {
        let rate = self.diffusion(before) + self.vertical(before, column) - self.advection(flow, now);
        let water = self.basin.water();
        let change = water.select(rate * interval, 0.0);
        water.select(before + self.implicit(&change, &column.diffusivity, interval), 0.0)
    }
}

impl Kpp {
    /// The vertical transport of heat and of salt.
    pub fn columns(&self, mixing: &Coefficients, surface: &Surface) -> [Column; 2] {
        let column = |diffusivity: &OceanField, flux: &OceanField, passing| Column {
            diffusivity: diffusivity.clone(),
            nonlocal: mixing.nonlocal.clone(),
            flux: flux.clone(),
            passing,
        };
        // Light cools no water (`add_sw_absorb`).
        let sunlight = surface.sunlight.max(0.0);
        let sunlight = [&self.light_below * &sunlight, sunlight];
        [column(&mixing.of_heat, &surface.heat, Some(sunlight)), column(&mixing.of_salt, &surface.salt, None)]
    }
}
