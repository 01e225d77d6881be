//! An ocean's levels and sea floor, the equation of state of sea water, and the results of the Parallel Ocean Program's
//! (POP) functions `state`, `buoydiff` and `ddmix` (chapter 4 of van Werkhoven's thesis). Vertical mixing with them is
//! in [`super::kpp`].
//!
//! Temperature and salinity are limited to the range of the equation at the level whose pressure applies. Below the sea
//! floor and on land all results are 0. Equations, references and differences from POP: `docs/design/models.md`.

use clap::ValueEnum;
use horus::prelude::*;
use horus_core::session::Session as CoreSession;

use crate::unesco;

/// Acceleration of gravity, in m/s^2.
pub(super) const GRAVITY: f64 = 9.806;
/// The largest diffusivity of salt fingers, in m^2/s.
const FINGERS: f64 = 1e-4;
/// The quotient of densities from which there are no salt fingers.
const MOST_FINGERS: f64 = 2.55;
/// Molecular viscosity, in m^2/s.
const VISCOSITY: f64 = 1.5e-6;

/// A volume of levels from the surface down, one number for each level, or one for each column.
pub type OceanField = Image<f64>;

/// Levels, and the number of them above the sea floor.
#[derive(Clone, Debug)]
pub struct Basin {
    pub(super) depths: Vec<f64>,
    /// The number of each level, from 0.
    pub(super) level: OceanField,
    /// The number of levels of water in each column, an image (POP's KMT).
    pub(super) floor: OceanField,
}

/// The layers of a [`Basin`].
pub(super) struct Layers {
    pub(super) thickness: OceanField,
    /// Distance from each level to the next.
    pub(super) gap: OceanField,
    /// Lower ends in m.
    pub(super) ends: Vec<f64>,
}

/// An equation of state; see the [module](self).
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Equation {
    /// McDougall, Wright, Jackett and Feistel (2003)
    #[default]
    Mwjf,
    /// Jackett and McDougall (1995)
    Jmcd,
    /// Cubic, fitted to UNESCO's at each level, to a depth of 8250 m
    Polynomial,
    /// Linear in temperature and salinity
    Linear,
}

/// An equation of state at the pressures of the levels of a basin.
#[derive(Clone, Debug)]
pub struct SeaWater {
    pub(super) basin: Basin,
    form: Form,
    /// The lowest and the highest temperature and salinity.
    limits: [[LevelTerm; 2]; 2],
}

/// Computation of density from polynomials.
#[derive(Clone, Debug)]
enum Form {
    Quotient(Polynomial, Polynomial),
    /// Density at the surface, the bulk modulus, and pressure, in bar.
    Compressed(Polynomial, Polynomial, OceanField),
    /// A polynomial of differences from a temperature and a salinity.
    Sum(Polynomial, [LevelTerm; 2]),
}

/// Density and its derivatives.
#[derive(Clone, Debug)]
pub struct Densities {
    /// Density, in kg/m^3.
    pub density: OceanField,
    /// Derivative with respect to potential temperature, in kg/m^3 per degree.
    pub by_temperature: OceanField,
    /// Derivative with respect to salinity, in kg/m^3 per psu.
    pub by_salinity: OceanField,
}

/// Differences of buoyancy, in m/s^2.
#[derive(Clone, Debug)]
pub struct Buoyancy {
    /// Difference of each level from the surface (POP's DBSFC).
    pub from_surface: OceanField,
    /// Difference of the level below from each level (POP's DBLOC); 0 at the lowest level of water.
    pub from_below: OceanField,
}

impl Basin {
    /// Levels at `depths`, in metres, and the number of levels of water in each column, 0 on land. Reads `floor`.
    ///
    /// # Errors
    /// If depths are not positive or not ascending, or the floor is not one image or has other numbers than 0 to the
    /// number of levels.
    pub fn new(session: &CoreSession, depths: &[f64], floor: &OceanField) -> Result<Basin> {
        let mut before = 0.0;
        for (i, depth) in depths.iter().enumerate() {
            if !(depth.is_finite() && *depth > before) {
                let said = format!("depths must ascend from 0: level {} lies at {depth} m, below {before} m", i + 1);
                return Err(Error::Config(said));
            }
            before = *depth;
        }
        let levels = depths.len();
        if floor.depth() != 1 || floor.channels() != 1 {
            return Err(Error::Config(format!("the sea floor is one image, not {}", floor.shape())));
        }
        let wrong = (floor.ne(floor.floor()) | floor.lt(0.0) | floor.gt(levels as f64)).count().get()?;
        if wrong > 0 {
            let said = format!("the sea floor must have whole numbers from 0 to {levels}, the number of levels");
            return Err(Error::Config(format!("{said}: {wrong} columns have others")));
        }
        let level = Image::index(session, Shape::volume(levels, 1, 1, 1), Axis::Depth);
        Ok(Basin { depths: depths.to_vec(), level, floor: floor.clone() })
    }

    /// Layers whose middles are the levels.
    ///
    /// # Errors
    /// If the depths are not middles of layers.
    pub(super) fn layers(&self) -> Result<Layers> {
        let (mut ends, mut thickness, mut top) = (Vec::new(), Vec::new(), 0.0);
        for (i, depth) in self.depths.iter().enumerate() {
            if *depth <= top {
                let said = format!("level {} at {depth} m is not the middle of a layer", i + 1);
                return Err(Error::Config(format!("{said}: the layer above reaches to {top} m")));
            }
            thickness.push(2.0 * (depth - top));
            top = 2.0 * depth - top;
            ends.push(top);
        }
        let gap = self.levels(|z| self.depths.get(z + 1).map_or(top, |d| *d) - self.depths[z]);
        Ok(Layers { thickness: self.levels(|z| thickness[z]), gap, ends })
    }

    /// One number for each level.
    pub(super) fn levels(&self, of: impl FnMut(usize) -> f64) -> OceanField {
        let each: Vec<f64> = (0..self.depths.len()).map(of).collect();
        Image::from_slice(self.level.session(), (each.len(), 1, 1), &each)
    }

    /// Levels of water.
    pub(super) fn water(&self) -> Image<bool> {
        self.level.lt(&self.floor)
    }

    /// Levels of water with water below them.
    pub(super) fn above_water(&self) -> Image<bool> {
        (&self.level + 1.0).lt(&self.floor)
    }
}

/// A number, one for each level, or a volume.
#[derive(Clone, Debug)]
enum LevelTerm {
    Number(f64),
    Each(OceanField),
}

use LevelTerm::{Each, Number};

impl LevelTerm {
    fn plus(&self, other: &LevelTerm) -> LevelTerm {
        match (self, other) {
            (Number(a), Number(b)) => Number(a + b),
            (Each(a), Number(0.0)) | (Number(0.0), Each(a)) => Each(a.clone()),
            (Each(a), Number(b)) | (Number(b), Each(a)) => Each(a + *b),
            (Each(a), Each(b)) => Each(a + b),
        }
    }

    fn times(&self, x: &OceanField) -> LevelTerm {
        match self {
            Number(0.0) => Number(0.0),
            Number(n) => Each(x * *n),
            Each(n) => Each(n * x),
        }
    }

    fn scaled(&self, by: f64) -> LevelTerm {
        match self {
            Number(n) => Number(n * by),
            Each(n) => Each(n * by),
        }
    }

    /// The term broadcast to the pixels of `like`.
    fn field(self, like: &OceanField) -> OceanField {
        match self {
            Number(n) => Image::constant(like.session(), like.shape(), n),
            Each(field) => field,
        }
    }
}

/// The sum of coefficients times powers of `x`, lowest power first.
fn horner(coefficients: &[LevelTerm], x: &OceanField) -> LevelTerm {
    coefficients.iter().rev().fold(Number(0.0), |sum, c| sum.times(x).plus(c))
}

/// The coefficients of the derivative.
fn derivative(coefficients: &[LevelTerm]) -> Vec<LevelTerm> {
    coefficients.iter().enumerate().skip(1).map(|(i, c)| c.scaled(i as f64)).collect()
}

/// `x` within limits. A NaN stays a NaN, unlike in [`Image::clamp`].
fn within(x: &OceanField, [low, high]: &[LevelTerm; 2]) -> OceanField {
    let x = match low {
        Number(n) => x.lt(*n).select(*n, x),
        Each(n) => x.lt(n).select(n, x),
    };
    match high {
        Number(n) => x.gt(*n).select(*n, &x),
        Each(n) => x.gt(n).select(n, &x),
    }
}

/// `sum over i of s^i rows[i], plus s^1.5 root`, each a sum of powers of temperature, lowest first.
#[derive(Clone, Debug)]
struct Polynomial {
    rows: Vec<Vec<LevelTerm>>,
    root: Vec<LevelTerm>,
}

impl Polynomial {
    fn value(&self, t: &OceanField, s: &OceanField) -> OceanField {
        let mut rows: Vec<LevelTerm> = self.rows.iter().map(|row| horner(row, t)).collect();
        if !self.root.is_empty() {
            rows[1] = rows[1].plus(&horner(&self.root, t).times(&s.sqrt()));
        }
        horner(&rows, s).field(t)
    }

    fn by_temperature(&self, t: &OceanField, s: &OceanField) -> OceanField {
        let rows = self.rows.iter().map(|row| derivative(row)).collect();
        Polynomial { rows, root: derivative(&self.root) }.value(t, s)
    }

    fn by_salinity(&self, t: &OceanField, s: &OceanField) -> OceanField {
        let rows: Vec<LevelTerm> = self.rows.iter().map(|row| horner(row, t)).collect();
        let root = horner(&self.root, t).scaled(1.5).times(&s.sqrt());
        horner(&derivative(&rows), s).plus(&root).field(t)
    }
}

impl SeaWater {
    /// The equation at the pressures of the levels, which follow from depths alone ([`pressure`]).
    ///
    /// # Errors
    /// If a level is deeper than the range of the equation.
    pub fn new(basin: &Basin, equation: Equation) -> Result<SeaWater> {
        let bar: Vec<f64> = basin.depths.iter().map(|depth| pressure(*depth) / 10.0).collect();
        let decibar: Vec<f64> = basin.depths.iter().map(|depth| pressure(*depth)).collect();
        // Coefficients are polynomials in pressure, lowest power first.
        let term = |p: &[f64], c: &[f64]| match c {
            [c] => Number(*c),
            c => Each(basin.levels(|z| c.iter().rev().fold(0.0, |sum, c| sum * p[z] + c))),
        };
        let polynomial = |p: &[f64], rows: &[&[&[f64]]], root: &[&[f64]]| Polynomial {
            rows: rows.iter().map(|row| row.iter().map(|c| term(p, c)).collect()).collect(),
            root: root.iter().map(|c| term(p, c)).collect(),
        };
        let numbers = |[low, high]: [f64; 2]| [Number(low), Number(high)];
        let usual = [[-2.0, 40.0], [0.0, 42.0]].map(numbers);
        let (form, limits) = match equation {
            Equation::Mwjf => {
                let over = polynomial(
                    &decibar,
                    &[
                        &[
                            &[9.99843699e2, 1.04004591e-2, -3.24041825e-8],
                            &[7.35212840],
                            &[-5.45928211e-2, 1.03970529e-7, -1.23869360e-11],
                            &[3.98476704e-4],
                        ],
                        &[&[2.96938239, 5.18761880e-6], &[-7.23268813e-3]],
                        &[&[2.12382341e-3]],
                    ],
                    &[],
                );
                let under = polynomial(
                    &decibar,
                    &[
                        &[
                            &[1.0, 5.30848875e-6],
                            &[7.28606739e-3, 0.0, 0.0, -1.27934137e-17],
                            &[-4.60835542e-5],
                            &[3.68390573e-7, 0.0, -3.03175128e-16],
                            &[1.80809186e-10],
                        ],
                        &[&[2.14691708e-3], &[-9.27062484e-6], &[0.0], &[-1.78343643e-10]],
                    ],
                    &[&[4.76534122e-6], &[0.0], &[1.63410736e-9]],
                );
                (Form::Quotient(over, under), [[-2.0, 999.0], [0.0, 999.0]].map(numbers))
            }
            Equation::Jmcd => {
                let surface = polynomial(&bar, unesco::SURFACE, unesco::SURFACE_ROOT);
                let modulus = polynomial(
                    &bar,
                    &[
                        &[
                            &[1.965933e4, 3.186519, 2.102898e-4],
                            &[1.444304e2, 2.212276e-2, -1.202016e-5],
                            &[-1.706103, -2.984642e-4, 1.394680e-7],
                            &[9.648704e-3, 1.956415e-6],
                            &[-4.190253e-5],
                        ],
                        &[
                            &[5.284855e1, 6.704388e-3, -2.040237e-6],
                            &[-3.101089e-1, -1.847318e-4, 6.128773e-8],
                            &[6.283263e-3, 2.059331e-7, 6.207323e-10],
                            &[-5.084188e-5],
                        ],
                    ],
                    &[&[3.886640e-1, 1.480266e-4], &[9.085835e-3], &[-4.619924e-4]],
                );
                (Form::Compressed(surface, modulus, basin.levels(|z| bar[z])), usual)
            }
            Equation::Polynomial => {
                let fits = basin.depths.iter().map(|depth| unesco::fit(*depth)).collect::<Result<Vec<_>>>()?;
                let each = |of: &dyn Fn(&unesco::Fit) -> f64| Each(basin.levels(|z| of(&fits[z])));
                let rows = [&[0, 1, 3, 6][..], &[2, 4, 8], &[5, 7], &[9]];
                let rows = rows.iter().map(|row| row.iter().map(|i| each(&|fit| fit.coefficients[*i])).collect());
                let about = [each(&|fit| fit.temperature), each(&|fit| fit.salinity)];
                let limits = [0, 1].map(|of| [0, 1].map(|end| each(&|fit| fit.limits[of][end])));
                (Form::Sum(Polynomial { rows: rows.collect(), root: Vec::new() }, about), limits)
            }
            Equation::Linear => {
                let sum = polynomial(&bar, &[&[&[1025.022], &[-0.255]], &[&[0.764]]], &[]);
                (Form::Sum(sum, [Number(19.0), Number(35.0)]), usual)
            }
        };
        Ok(SeaWater { basin: basin.clone(), form, limits })
    }

    /// Temperature and salinity, limited to the range of the equation.
    fn limited(&self, t: &OceanField, s: &OceanField) -> [OceanField; 2] {
        let limited = [within(t, &self.limits[0]), within(s, &self.limits[1])];
        let Form::Sum(_, about) = &self.form else { return limited };
        [0, 1].map(|i| about[i].scaled(-1.0).plus(&Each(limited[i].clone())).field(t))
    }

    /// Density alone: of each level, or of one level moved to the pressure of each.
    pub fn density(&self, t: &OceanField, s: &OceanField) -> OceanField {
        self.basin.water().select(self.unmasked(t, s), 0.0)
    }

    fn unmasked(&self, t: &OceanField, s: &OceanField) -> OceanField {
        let [t, s] = self.limited(t, s);
        match &self.form {
            Form::Quotient(over, under) => over.value(&t, &s) / under.value(&t, &s),
            Form::Compressed(surface, modulus, p) => {
                let modulus = modulus.value(&t, &s);
                surface.value(&t, &s) * &modulus / (modulus - p)
            }
            Form::Sum(sum, _) => sum.value(&t, &s),
        }
    }

    /// Density and its derivatives (`state`), at limited temperatures and salinities.
    pub fn state(&self, t: &OceanField, s: &OceanField) -> Densities {
        let density = self.unmasked(t, s);
        let [t, s] = self.limited(t, s);
        type By = fn(&Polynomial, &OceanField, &OceanField) -> OceanField;
        let by = |by: By| match &self.form {
            Form::Quotient(over, under) => (by(over, &t, &s) - &density * by(under, &t, &s)) / under.value(&t, &s),
            Form::Compressed(surface, modulus, p) => {
                let (value, less) = (modulus.value(&t, &s), modulus.value(&t, &s) - p);
                (by(surface, &t, &s) * value - surface.value(&t, &s) * by(modulus, &t, &s) / &less * p) / less
            }
            Form::Sum(sum, _) => by(sum, &t, &s),
        };
        let derivatives = [by(Polynomial::by_temperature), by(Polynomial::by_salinity)];
        let water = self.basin.water();
        let [by_temperature, by_salinity] = derivatives.map(|d| water.select(d, 0.0));
        Densities { density: water.select(density, 0.0), by_temperature, by_salinity }
    }

    /// Differences of buoyancy (`buoydiff`). Each level is compared with others moved to its pressure.
    pub fn buoyancy(&self, t: &OceanField, s: &OceanField) -> Buoyancy {
        let density = self.unmasked(t, s);
        let difference = |other: OceanField| (other / &density * -1.0 + 1.0) * GRAVITY;
        let above = |f: &OceanField| f.with_border(Border::Replicate).shift(1, 0, 0);
        let from_surface = difference(self.unmasked(&t.slice(0), &s.slice(0)));
        // The difference of a level from the level above, stored at the level above.
        let from_below = difference(self.unmasked(&above(t), &above(s))).shift(-1, 0, 0);
        Buoyancy {
            from_surface: self.basin.water().select(from_surface, 0.0),
            from_below: self.basin.above_water().select(from_below, 0.0),
        }
    }

    /// Diffusivities of heat and salt in m^2/s between each level and the level below, plus those of double diffusion
    /// (`ddmix`).
    pub fn double_diffusion(
        &self,
        t: &OceanField,
        s: &OceanField,
        [of_heat, of_salt]: [&OceanField; 2],
    ) -> [OceanField; 2] {
        let state = self.state(t, s);
        let below = |f: &OceanField| f.with_border(Border::Replicate).shift(-1, 0, 0);
        let mean = |f: &OceanField| (f + below(f)) * 0.5;
        let by_heat = mean(&state.by_temperature) * (t - below(t)) * -1.0;
        let by_salt = mean(&state.by_salinity) * (s - below(s));
        let ratio = &by_heat / &by_salt;
        let water = self.basin.above_water();
        let fingers = &water & by_heat.gt(&by_salt) & by_salt.gt(0.0);
        let x = (ratio.min(MOST_FINGERS) - 1.0) / (MOST_FINGERS - 1.0);
        let less = x * -1.0 + 1.0;
        let finger = &less * &less * &less * FINGERS;
        let convective = water & by_heat.lt(0.0) & by_salt.lt(0.0) & by_heat.gt(&by_salt);
        let heat = (((1.0 / &ratio - 1.0) * -0.54).exp() * 4.6).exp() * (VISCOSITY * 0.909);
        let salt = &heat * ratio.gt(0.5).select(&ratio * 1.85 - 0.85, &ratio * 0.15);
        [
            of_heat + fingers.select(&finger * 0.7, convective.select(heat, 0.0)),
            of_salt + fingers.select(finger, convective.select(salt, 0.0)),
        ]
    }
}

/// The pressure in decibar at a depth in metres: POP's formula for the mean density at each depth
/// (Dukowicz, 2001, J. Phys. Oceanogr. 31, 1915-1921).
pub fn pressure(depth: f64) -> f64 {
    10.0 * (0.059808 * ((-0.025 * depth).exp() - 1.0) + 0.100766 * depth + 2.28405e-7 * depth * depth)
}
