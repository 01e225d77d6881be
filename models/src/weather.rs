//! The dynamics of a limited-area weather model, as in the routine DYN of HIRLAM (Vu and others, "GPU optimizations for
//! the HIRLAM dynamics"): the tendencies of surface pressure, temperature, wind and humidity under the hydrostatic
//! primitive equations.
//!
//! Levels have hybrid coordinates, from the top down. The grid is the staggered grid C of Arakawa, with one geographic
//! latitude per row; edge values are repeated beyond it. Energy is conserved except through the frame. Choices and
//! references: `docs/design/models.md`.

use std::f64::consts::PI;

use horus::prelude::*;
use horus_core::session::Session as CoreSession;

/// Gas constant of dry air, in J/(kg K).
const GAS: f64 = 287.04;
/// Heat capacity of dry air at constant pressure, in J/(kg K).
const HEAT: f64 = 1004.64;
/// Virtual temperature is `T (1 + 0.608 q)`, because vapour is lighter than dry air.
const LIGHTER: f64 = 0.608;
/// Radius of the earth in m, and its rate of rotation in 1/s.
const EARTH: (f64, f64) = (6.371e6, 7.292e-5);
/// A pressure near the surface, in Pa.
const SURFACE: f64 = 101_325.0;

/// The neighbour of a mean or a difference: rows go north, columns east.
type GridOffset = (i32, i32);
const EAST: GridOffset = (0, 1);
const WEST: GridOffset = (0, -1);
const NORTH: GridOffset = (1, 0);
const SOUTH: GridOffset = (-1, 0);

/// The weather at one time. Volumes have levels from the top down, rows from the south to the
/// north, columns from the west to the east.
#[derive(Clone, Debug)]
pub struct Weather<T: Float> {
    /// Surface pressure in Pa, an image.
    pub surface_pressure: Image<T>,
    /// Geopotential of the ground, in m^2/s^2: an image that does not change.
    pub surface_geopotential: Image<T>,
    /// Temperature, in K.
    pub temperature: Image<T>,
    /// Wind to the east in m/s, half a column east.
    pub u: Image<T>,
    /// Wind to the north in m/s, half a row north.
    pub v: Image<T>,
    /// Specific humidity, in kg/kg.
    pub humidity: Image<T>,
}

/// Changes per second of each field, in its units and at its grid points.
#[derive(Clone, Debug)]
pub struct Tendencies<T: Float> {
    /// Tendency of the surface pressure, an image.
    pub surface_pressure: Image<T>,
    /// Tendency of the temperature, without heating.
    pub temperature: Image<T>,
    /// Tendency of the wind to the east, without friction.
    pub u: Image<T>,
    /// Tendency of the wind to the north, without friction.
    pub v: Image<T>,
    /// Tendency of the humidity, without condensation.
    pub humidity: Image<T>,
}

/// Coordinates: numbers that depend on levels or rows only, one for each.
#[derive(Clone, Debug)]
pub struct Dynamics<T: Float> {
    shape: Shape,
    /// A and B of levels, and of their masses; B of the half level below.
    level: (Image<T>, Image<T>),
    mass: (Image<T>, Image<T>),
    below: Image<f64>,
    /// Metres between columns at temperature points and at v points; between rows.
    dx: Image<T>,
    dx_north: Image<T>,
    dy: T,
    /// Planetary vorticity between rows, in 1/s.
    planetary: Image<T>,
}

/// A and B of `levels + 1` half levels: the surface pressure times `s^2 (3 - 2 s)`, so that pressure equals the surface
/// pressure at the ground and 0 at the top of the atmosphere.
pub fn half_levels(levels: usize) -> Vec<(f64, f64)> {
    let part = |k: usize| {
        let s = k as f64 / levels as f64;
        s * s * (3.0 - 2.0 * s)
    };
    (0..=levels).map(|k| ((part(k) - part(k).powi(2)) * SURFACE, part(k).powi(2))).collect()
}

/// Latitudes of rows in radians, centred at 45 degrees north, and their spacing.
pub fn latitudes(rows: usize) -> (Vec<f64>, f64) {
    let step = f64::min(0.1, 80.0 / rows as f64) * PI / 180.0;
    ((0..rows).map(|j| PI / 4.0 + (j as f64 - 0.5 * (rows - 1) as f64) * step).collect(), step)
}

impl<T: Float> Dynamics<T> {
    /// Coordinates for half levels `A, B` from the top of the atmosphere to the ground, and rows at
    /// `latitudes`, with columns and rows `step` apart; both are in radians.
    pub fn new(
        session: &CoreSession,
        halves: &[(f64, f64)],
        columns: usize,
        latitudes: &[f64],
        step: f64,
    ) -> Dynamics<T> {
        let levels = halves.len().saturating_sub(1);
        let level = |of: fn([(f64, f64); 2]) -> f64| {
            let each: Vec<f64> = halves.windows(2).map(|w| of([w[0], w[1]])).collect();
            Image::from_slice(session, (levels, 1, 1), &each)
        };
        let (radius, rotation) = EARTH;
        let row = |of: &dyn Fn(f64) -> f64| {
            let each: Vec<f64> = latitudes.iter().map(|at| of(*at)).collect();
            Image::from_slice(session, (each.len(), 1), &each).convert::<T>()
        };
        Dynamics {
            shape: Shape::volume(levels, latitudes.len(), columns, 1),
            level: (level(|[a, b]| (a.0 + b.0) / 2.0).convert(), level(|[a, b]| (a.1 + b.1) / 2.0).convert()),
            mass: (level(|[a, b]| b.0 - a.0).convert(), level(|[a, b]| b.1 - a.1).convert()),
            below: level(|[_, b]| b.1),
            dx: row(&|at| radius * step * at.cos()),
            dx_north: row(&|at| radius * step * (at + step / 2.0).cos()),
            dy: T::from_f64(radius * step),
            planetary: row(&|at| 2.0 * rotation * (at + step / 2.0).sin()),
        }
    }

    /// The numbers of levels, rows and columns.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The tendencies of this weather (DYN). Sums over levels run in double precision.
    pub fn tendencies(&self, weather: &Weather<T>) -> Tendencies<T> {
        let Weather { surface_pressure: ps, surface_geopotential: ground, temperature: t, u, v, humidity: q } = weather;
        let Dynamics { level: (a, b), mass: (da, db), below, dx, dx_north, dy, planetary, .. } = self;
        let (n, dy, last) = (T::from_f64, *dy, self.shape.depth - 1);
        let (p, dp, virtual_t) = (ps * b + a, ps * db + da, (q * n(LIGHTER) + n(1.0)) * t);
        // Flow through the eastern and northern faces of each cell; loss summed over all cells from the top down.
        let (east, north) = (mean(&dp, EAST) * u * dy, mean(&dp, NORTH) * v * dx_north);
        let lost = ((slope(&east, WEST) + slope(&north, SOUTH)) / (dx * dy)).over(Axis::Depth).cumsum();
        let all = lost.slice(last);
        // Flow down through the half level below; pressure change of air at fixed height, relative to its pressure.
        let sinks = (&all * below - &lost).convert::<T>();
        let change = ((&lost + from_above(&lost)) * -0.5).convert::<T>() / &p;
        // Geopotential of the levels from the layers below, plus kinetic energy; forces of pressure gradients.
        let thickness = &virtual_t * &dp / &p * n(GAS);
        let summed = thickness.over(Axis::Depth).cumsum();
        let energy = (mean(&u.square(), WEST) + mean(&(v.square() * dx_north), SOUTH) / dx) * n(0.5);
        let head = summed.slice(last) - summed + (thickness * n(0.5) + ground + energy).convert::<f64>();
        let force = |to| slope(ps, to) * b * mean(&virtual_t, to) / mean(&p, to) * n(GAS);
        let (to_east, to_north) = (force(EAST), force(NORTH));
        // Absolute vorticity at the corners, per mass.
        let turns = (slope(v, EAST) * dy - slope(&(u * dx), NORTH)) / (dx_north * dy) + planetary;
        let turns = turns / mean(&mean(&dp, EAST), NORTH);
        // Horizontal and vertical advection.
        let carried =
            |x: Image<T>, y: Image<T>| (mean(&(x * &east), WEST) + mean(&(y * &north), SOUTH)) / (&dp * (dx * dy));
        let sunk = |of: &Image<T>, by: &Image<T>, dp: &Image<T>| {
            let through = (of.with_border(Border::Replicate).shift(-1, 0, 0) - of) * by;
            (from_above(&through) + through) / dp * n(0.5)
        };
        let turned_u = mean(&(&turns * mean(&north, EAST)), SOUTH) - slope(&head, EAST).convert::<T>();
        let turned_v = mean(&(&turns * mean(&east, NORTH)), WEST) + slope(&head, NORTH).convert::<T>();
        let warmed = carried(&to_east / n(HEAT) - slope(t, EAST), &to_north / n(HEAT) - slope(t, NORTH));
        Tendencies {
            surface_pressure: (-all).convert(),
            temperature: warmed + virtual_t * change * n(GAS / HEAT) - sunk(t, &sinks, &dp),
            u: (turned_u - to_east) / dx - sunk(u, &mean(&sinks, EAST), &mean(&dp, EAST)),
            v: -(turned_v + to_north) / dy - sunk(v, &mean(&sinks, NORTH), &mean(&dp, NORTH)),
            humidity: -carried(slope(q, EAST), slope(q, NORTH)) - sunk(q, &sinks, &dp),
        }
    }

    /// The horizontal Laplacian, in the unit of the field over m^2, with the distances at temperature
    /// points.
    pub(super) fn laplacian(&self, f: &Image<T>) -> Image<T> {
        let along = |to: GridOffset, back: GridOffset| slope(f, to) - slope(f, back);
        along(EAST, WEST) / (&self.dx * &self.dx) + along(NORTH, SOUTH) * T::from_f64(self.dy.to_f64().powi(-2))
    }

    /// Synthetic weather with hills, a jet, and waves as long as the area in all fields. Recorded, not evaluated.
    pub fn waves(&self, session: &CoreSession) -> Weather<T> {
        let Shape { depth, height, width, .. } = self.shape;
        let angle = |axis, extent: usize| {
            let shape = if axis == Axis::Rows { Shape::new(height, 1, 1) } else { Shape::new(1, width, 1) };
            Image::<f64>::index(session, shape, axis) * (2.0 * PI / extent as f64)
        };
        let (x, y) = (angle(Axis::Columns, width), angle(Axis::Rows, height));
        // 0 at the top, 1 at the ground.
        let s = (Image::<f64>::index(session, Shape::volume(depth, 1, 1, 1), Axis::Depth) + 0.5) / depth as f64;
        let ground = (x.sin() * y.cos() + 1.0) * 3000.0;
        let surface_pressure = ((&ground / (-GAS * 285.0)).exp() * SURFACE + (&x + &y).sin() * 600.0).convert();
        Weather {
            surface_pressure,
            surface_geopotential: ground.convert(),
            temperature: (&s * 75.0 + 212.0 + x.cos() * y.sin() * 3.0).convert(),
            u: ((1.0 - &s) * 30.0 + 5.0 + x.cos() * y.sin() * 6.0).convert(),
            v: (x.sin() * (&s + 0.5) * 5.0 + y.cos() * 2.0).convert(),
            humidity: (&s * &s * &s * ((x - y).sin() * 0.003 + 0.009)).convert(),
        }
    }
}

/// A weighted sum of two neighbours.
fn pair<T: Float>(f: &Image<T>, to: GridOffset, taps: [f64; 2]) -> Image<T> {
    f.with_border(Border::Replicate).correlate(&Filter::sparse([(0, 0), to], taps))
}

/// Mean of a point and a neighbour.
fn mean<T: Float>(f: &Image<T>, to: GridOffset) -> Image<T> {
    pair(f, to, [0.5, 0.5])
}

/// Difference of neighbours: eastern minus western, northern minus southern.
fn slope<T: Float>(f: &Image<T>, to: GridOffset) -> Image<T> {
    let sign = f64::from(to.0 + to.1);
    pair(f, to, [-sign, sign])
}

/// Values at the half level above each level: 0 at the top.
fn from_above<T: Float>(f: &Image<T>) -> Image<T> {
    f.shift(1, 0, 0)
}
