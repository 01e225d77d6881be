//! The equation of state of sea water, and the fields that the Parallel Ocean Program derives from
//! it for vertical mixing by its functions `state`, `buoydiff` and `ddmix` (chapter 4 of van
//! Werkhoven's thesis) over all levels at once.
//!
//! Density is that of McDougall, Wright, Jackett and Feistel (2003), "Accurate and computationally
//! efficient algorithms for potential temperature and density of seawater", J. Atmos. Oceanic
//! Technol. 20, 730-741: a quotient of polynomials with 25 terms. Temperatures and salinities are
//! not limited here; POP keeps them within bounds, temperatures above -2 degrees.
//!
//! Double diffusion is that of Large, McWilliams and Doney (1994), Rev. Geophys. 32, 363-403,
//! except for salt fingers, which follow POP (Danabasoglu and others, 2006, J. Climate 19,
//! 2347-2365): with x = (R - 1) / (R0 - 1) of a quotient of densities R, `(1 - x)^3` and R0 = 2.55,
//! where Large and others have `(1 - x^2)^3` and R0 = 1.9.

use horus::prelude::*;

/// Acceleration of gravity, in m/s^2.
const GRAVITY: f64 = 9.806;
/// The largest diffusivity of salt fingers, in m^2/s.
const FINGERS: f64 = 1e-4;
/// The quotient of densities from which there are no salt fingers.
const MOST_FINGERS: f64 = 2.55;
/// Molecular viscosity, in m^2/s.
const VISCOSITY: f64 = 1.5e-6;

/// A volume of levels from the surface down, or one number for each level.
pub type Field = Image<f64>;

/// The polynomials at the pressures of the levels: the coefficients that depend on pressure alone,
/// one number per level.
#[derive(Clone, Debug)]
pub struct SeaWater {
    numerator: [Field; 3],
    denominator: [Field; 3],
}

/// Density in kg/m^3 with its derivatives.
#[derive(Clone, Debug)]
pub struct Densities {
    /// In kg/m^3.
    pub density: Field,
    /// Derivative with respect to potential temperature, in kg/m^3 per degree.
    pub by_temperature: Field,
    /// Derivative with respect to salinity, in kg/m^3 per psu.
    pub by_salinity: Field,
}

/// Fields that vertical mixing depends on.
#[derive(Clone, Debug)]
pub struct Mixing {
    /// Difference of buoyancy from the surface, in m/s^2.
    pub from_surface: Field,
    /// Difference of buoyancy from the level below; 0 at the lowest.
    pub from_below: Field,
    /// Diffusivity of heat by double diffusion, between each level and the one below, in m^2/s.
    pub of_heat: Field,
    /// Diffusivity of salt.
    pub of_salt: Field,
}

impl SeaWater {
    /// For these pressures, in decibar: an image of one number per level.
    pub fn at(p: &Field) -> SeaWater {
        SeaWater {
            numerator: [
                p * (p * -3.24041825e-8 + 1.04004591e-2) + 9.99843699e2,
                p * (p * -1.23869360e-11 + 1.03970529e-7) - 5.45928211e-2,
                p * 5.18761880e-6 + 2.96938239,
            ],
            denominator: [
                p * 5.30848875e-6 + 1.0,
                p * p * p * -1.27934137e-17 + 7.28606739e-3,
                p * p * -3.03175128e-16 + 3.68390573e-7,
            ],
        }
    }

    /// Numerator and denominator for potential temperatures in degrees Celsius and salinities in
    /// psu.
    fn quotient(&self, t: &Field, s: &Field) -> [Field; 2] {
        let ([n0, n2, ns], [d0, d1, d3]) = (&self.numerator, &self.denominator);
        let numerator =
            n0 + t * ((t * 3.98476704e-4 + n2) * t + 7.35212840) + s * (t * -7.23268813e-3 + s * 2.12382341e-3 + ns);
        let fresh = d0 + t * (t * (t * (t * 1.80809186e-10 + d3) - 4.60835542e-5) + d1);
        let root = s.sqrt() * (t * t * 1.63410736e-9 + 4.76534122e-6);
        [numerator, fresh + s * (t * (t * t * -1.78343643e-10 - 9.27062484e-6) + root + 2.14691708e-3)]
    }

    /// Density alone.
    pub fn density(&self, t: &Field, s: &Field) -> Field {
        let [numerator, denominator] = self.quotient(t, s);
        numerator / denominator
    }

    /// Density and its derivatives (`state`).
    pub fn state(&self, t: &Field, s: &Field) -> Densities {
        let ([_, n2, ns], [_, d1, d3]) = (&self.numerator, &self.denominator);
        let [numerator, denominator] = self.quotient(t, s);
        let density = numerator / &denominator;
        let root = s.sqrt();
        let over = t * (t * (3.0 * 3.98476704e-4) + n2 * 2.0) + s * -7.23268813e-3 + 7.35212840;
        let under = t * (t * (t * (4.0 * 1.80809186e-10) + d3 * 3.0) - 2.0 * 4.60835542e-5)
            + d1
            + s * (t * (t * (-3.0 * 1.78343643e-10) + &root * (2.0 * 1.63410736e-9)) - 9.27062484e-6);
        let by_temperature = (over - &density * under) / &denominator;
        let over = t * -7.23268813e-3 + s * (2.0 * 2.12382341e-3) + ns;
        let under =
            t * (t * t * -1.78343643e-10 - 9.27062484e-6) + root * (t * t * 1.63410736e-9 + 4.76534122e-6) * 1.5;
        let by_salinity = (over - &density * (under + 2.14691708e-3)) / denominator;
        Densities { density, by_temperature, by_salinity }
    }

    /// Differences of buoyancy (`buoydiff`) and diffusivities (`ddmix`) in one program, which reads
    /// temperatures and salinities once. Each level is compared with others moved to its pressure.
    pub fn mixing(&self, t: &Field, s: &Field) -> Mixing {
        let state = self.state(t, s);
        let buoyancy = |other: Field| (other / &state.density * -1.0 + 1.0) * GRAVITY;
        let above = |f: &Field| f.with_border(Border::Replicate).shift(1, 0, 0);
        let below = |f: &Field| f.with_border(Border::Replicate).shift(-1, 0, 0);
        let from_surface = buoyancy(self.density(&t.slice(0), &s.slice(0)));
        // The difference of a level from the one above, stored at the one above.
        let from_below = buoyancy(self.density(&above(t), &above(s))).shift(-1, 0, 0);

        let mean = |f: &Field| (f + below(f)) * 0.5;
        let by_heat = mean(&state.by_temperature) * (t - below(t)) * -1.0;
        let by_salt = mean(&state.by_salinity) * (s - below(s));
        let ratio = &by_heat / &by_salt;
        let fingers = by_heat.gt(&by_salt) & by_salt.gt(0.0);
        let x = (ratio.min(MOST_FINGERS) - 1.0) / (MOST_FINGERS - 1.0);
        let less = x * -1.0 + 1.0;
        let finger = &less * &less * &less * FINGERS;
        let convective = by_heat.lt(0.0) & by_salt.lt(0.0) & by_heat.gt(&by_salt);
        let heat = (((1.0 / &ratio - 1.0) * -0.54).exp() * 4.6).exp() * (VISCOSITY * 0.909);
        let salt = &heat * ratio.gt(0.5).select(&ratio * 1.85 - 0.85, &ratio * 0.15);
        Mixing {
            from_surface,
            from_below,
            of_heat: fingers.select(&finger * 0.7, convective.select(heat, 0.0)),
            of_salt: fingers.select(finger, convective.select(salt, 0.0)),
        }
    }
}

/// The pressure in decibar at a depth in metres: POP's formula for the mean density at each depth
/// (Dukowicz, 2001, J. Phys. Oceanogr. 31, 1915-1921).
pub fn pressure(depth: f64) -> f64 {
    10.0 * (0.059808 * ((-0.025 * depth).exp() - 1.0) + 0.100766 * depth + 2.28405e-7 * depth * depth)
}
