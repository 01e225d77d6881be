//! Time steps of a limited-area weather model, as in HIRLAM's Eulerian scheme, without its semi-implicit part and
//! physics.
//!
//! Leapfrog steps of the tendencies of [`super::weather`], a filter in time, horizontal diffusion of fourth order, and
//! a frame in which the weather is relaxed towards a larger model's. References: `docs/design/models.md`.

use horus::prelude::*;
use horus_core::image::Checkpoints;

use crate::loops::iterate;
use crate::weather::{Dynamics, Weather};

/// The weight of the filter in time.
const FILTER: f64 = 0.05;
/// Rows and columns of the frame.
const FRAME: usize = 8;

/// A forecast in steps.
#[derive(Clone, Debug)]
pub struct Leapfrog<T: Float> {
    dynamics: Dynamics<T>,
    /// The length of a step in seconds.
    seconds: f64,
    /// The coefficient of diffusion, in m^4/s.
    diffusion: f64,
    /// Weather of the larger model, and its weight, an image.
    larger: Weather<T>,
    weight: Image<T>,
}

/// One weather from the same field of several weathers.
fn fields<T: Float, const N: usize>(
    from: [&Weather<T>; N],
    make: impl Fn([&Image<T>; N], bool) -> Image<T>,
) -> Weather<T> {
    type Of<T> = fn(&Weather<T>) -> &Image<T>;
    let field = |of: Of<T>, diffuses| make(from.map(of), diffuses);
    Weather {
        surface_pressure: field(|w| &w.surface_pressure, false),
        surface_geopotential: from[0].surface_geopotential.clone(),
        temperature: field(|w| &w.temperature, true),
        u: field(|w| &w.u, true),
        v: field(|w| &w.v, true),
        humidity: field(|w| &w.humidity, true),
    }
}

impl<T: Float> Leapfrog<T> {
    /// Steps of so many seconds with a `diffusion` in m^4/s, in a frame of weather that does not change.
    pub fn new(dynamics: &Dynamics<T>, larger: &Weather<T>, seconds: f64, diffusion: f64) -> Leapfrog<T> {
        let Shape { height, width, .. } = dynamics.shape();
        let weight = |y: usize, x: usize| {
            let inside = y.min(x).min(height - 1 - y).min(width - 1 - x);
            T::from_f64(if inside < FRAME { 1.0 - (inside as f64 / 2.0).tanh() } else { 0.0 })
        };
        let weight = Image::from_fn(larger.temperature.session(), height, width, weight);
        Leapfrog { dynamics: dynamics.clone(), seconds, diffusion, larger: larger.clone(), weight }
    }

    /// The weather `interval` seconds after `before`, with the tendencies of `now`.
    fn leap(&self, before: &Weather<T>, now: &Weather<T>, interval: f64) -> Weather<T> {
        let n = T::from_f64;
        let made = self.dynamics.tendencies(now);
        let tendencies = Weather {
            surface_pressure: made.surface_pressure,
            surface_geopotential: before.surface_geopotential.clone(),
            temperature: made.temperature,
            u: made.u,
            v: made.v,
            humidity: made.humidity,
        };
        fields([before, &tendencies, &self.larger], |[f, change, larger], diffuses| {
            let twice = || self.dynamics.laplacian(&self.dynamics.laplacian(f));
            let change =
                if diffuses && self.diffusion > 0.0 { change - twice() * n(self.diffusion) } else { change.clone() };
            let next = f + change * n(interval);
            &next + (larger - &next) * &self.weight
        })
    }

    /// The weather after so many steps, the first of which is an Euler step. Checkpoints count the others.
    ///
    /// # Errors
    /// See `Session::iterate_checkpointed`.
    pub fn after(&self, begin: &Weather<T>, steps: usize, checkpoints: Option<&Checkpoints>) -> Result<Weather<T>> {
        if steps == 0 {
            return Ok(begin.clone());
        }
        let list = |w: Weather<T>| [w.surface_pressure, w.temperature, w.u, w.v, w.humidity];
        let weather = |[surface_pressure, temperature, u, v, humidity]: [Image<T>; 5]| Weather {
            surface_pressure,
            surface_geopotential: begin.surface_geopotential.clone(),
            temperature,
            u,
            v,
            humidity,
        };
        let first = self.leap(begin, begin, self.seconds);
        let state = (list(begin.clone()), list(first));
        let step = |(before, now): &([Image<T>; 5], [Image<T>; 5])| {
            let (before, now) = (weather(before.clone()), weather(now.clone()));
            let after = self.leap(&before, &now, 2.0 * self.seconds);
            let filtered = fields([&before, &now, &after], |[before, now, after], _| {
                now + (before + after - now * T::from_f64(2.0)) * T::from_f64(FILTER)
            });
            (list(filtered), list(after))
        };
        let done = iterate(begin.temperature.session(), state, steps - 1, step, checkpoints)?;
        Ok(weather(done.state.1))
    }
}
