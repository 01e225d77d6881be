//! Vertical mixing of an ocean by the K profile parameterization of Large, McWilliams and Doney (1994), "Oceanic
//! vertical mixing: a review and a model with a nonlocal boundary layer parameterization", Rev. Geophys. 32, 363-403.
//!
//! Follows the Parallel Ocean Program's `ri_iwmix`, `bldepth`, `wscale` and `blmix` (`vmix_kpp`, POP 2.1). Numbers in
//! brackets are equations of the paper; units are SI. Levels are the middles of layers; coefficients of a level apply
//! between it and the level below. Velocities are at the north-eastern corners of cells. Choices and omissions:
//! `docs/design/models.md`.

use clap::ValueEnum;
use horus::prelude::*;

use crate::ocean::{Basin, Buoyancy, GRAVITY, Layers, OceanField, SeaWater};

/// Von Karman's constant.
const KARMAN: f64 = 0.4;
/// The part of the boundary layer that is its surface layer.
const SURFACE_LAYER: f64 = 0.1;
/// The bulk Richardson number at the depth of the boundary layer.
const CRITICAL: f64 = 0.3;
/// The Richardson number from which shear is stable (28).
const STABLE_SHEAR: f64 = 0.8;
/// Coefficients of the velocity scales of momentum and tracers in convection (B1).
const CONVECTIVE: [(f64, f64); 2] = [(1.26, 8.38), (-28.86, 98.96)];
/// Coefficients of the Ekman depth and of the Monin-Obukhov depth.
const DEPTH_LIMITS: (f64, f64) = (0.7, 1.0);

/// Jerlov's types of water, by the depth that sunlight reaches (Paulson and Simpson, 1977, J. Phys. Oceanogr. 7,
/// 952-956). The default is POP's, `jerlov_water_type = 3`.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaterType {
    /// Clear
    I,
    /// Between I and IB
    Ia,
    /// Between IA and II, as POP by default
    #[default]
    Ib,
    /// Coastal
    Ii,
    /// Turbid
    Iii,
}

impl WaterType {
    /// The fraction of red light, and the depths in metres at which 1 / e of red and blue light is left.
    fn light(self) -> (f64, f64, f64) {
        match self {
            WaterType::I => (0.58, 0.35, 23.0),
            WaterType::Ia => (0.62, 0.60, 20.0),
            WaterType::Ib => (0.67, 1.00, 17.0),
            WaterType::Ii => (0.77, 1.50, 14.0),
            WaterType::Iii => (0.78, 1.40, 7.90),
        }
    }

    /// The fraction of sunlight that is left at a depth in metres.
    fn left(self, depth: f64) -> f64 {
        let (red, shallow, deep) = self.light();
        if depth > 200.0 { 0.0 } else { red * (-depth / shallow).exp() + (1.0 - red) * (-depth / deep).exp() }
    }
}

/// Parameters of the mixing of the interior, in m^2/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Diffusivity by internal waves.
    pub waves: f64,
    /// Viscosity by internal waves divided by their diffusivity.
    pub prandtl: f64,
    /// The largest viscosity and diffusivity by shear.
    pub shear: f64,
    /// Viscosity and diffusivity where a level is lighter than the one above.
    pub convection: f64,
    /// The water that absorbs sunlight.
    pub water: WaterType,
}

/// POP's parameters.
impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { waves: 1e-5, prandtl: 10.0, shear: 5e-3, convection: 0.1, water: WaterType::default() }
    }
}

/// The ocean at one time: volumes of levels from the surface down.
#[derive(Clone, Debug)]
pub struct Ocean {
    /// Potential temperature, in degrees Celsius.
    pub temperature: OceanField,
    /// Salinity, in psu.
    pub salinity: OceanField,
    /// Velocity to the east and to the north, in m/s, at north-eastern corners.
    pub velocity: [OceanField; 2],
}

/// Fluxes through the surface into the ocean: one image each.
#[derive(Clone, Debug)]
pub struct Surface {
    /// Stress of the wind over density, to the east and to the north, in m^2/s^2.
    pub stress: [OceanField; 2],
    /// Heat without sunlight, over density and heat capacity, in degrees m/s.
    pub heat: OceanField,
    /// Salt, in psu m/s.
    pub salt: OceanField,
    /// Heat by sunlight, in degrees m/s. A negative flux counts in the buoyancy but heats no water, as in POP.
    pub sunlight: OceanField,
    /// The Coriolis parameter, in 1/s. It limits boundary layers under stable forcing by the depths of Ekman and of
    /// Monin and Obukhov.
    pub coriolis: Option<OceanField>,
}

/// Coefficients of vertical mixing between each level and the level below; 0 at the lowest level of water, below it and
/// on land.
#[derive(Clone, Debug)]
pub struct Coefficients {
    /// Viscosity at cells, in m^2/s.
    pub viscosity: OceanField,
    /// Diffusivity of heat, in m^2/s.
    pub of_heat: OceanField,
    /// Diffusivity of salt, in m^2/s.
    pub of_salt: OceanField,
    /// Nonlocal transport, in s/m^2 (POP's GHAT): times a diffusivity and the flux through the surface, it is the flux
    /// that does not follow the gradient.
    pub nonlocal: OceanField,
    /// The depth of the boundary layer in m, an image.
    pub depth: OceanField,
}

/// The parameterization for a basin.
#[derive(Clone, Debug)]
pub struct Kpp {
    water: SeaWater,
    parameters: Parameters,
    /// Depths of levels; distances to the next level; the thickness of layers.
    depth: OceanField,
    gap: OceanField,
    thickness: OceanField,
    /// The fraction of sunlight that passes each level, and each layer's lower end.
    light: OceanField,
    pub(super) light_below: OceanField,
}

/// A level's upper neighbour (0 above the surface), and lower neighbour (0 below the last level).
fn above(f: &OceanField) -> OceanField {
    f.shift(1, 0, 0)
}

fn below(f: &OceanField) -> OceanField {
    f.shift(-1, 0, 0)
}

/// `f` and its neighbours at these offsets in rows and columns.
fn four(f: &OceanField, by: [(isize, isize); 4]) -> [OceanField; 4] {
    by.map(|(dy, dx)| f.with_border(Border::Replicate).shift(0, dy, dx))
}

/// The four corners of each cell.
fn corners(f: &OceanField) -> [OceanField; 4] {
    four(f, [(0, 0), (0, 1), (1, 0), (1, 1)])
}

/// Wind and buoyancy at the surface.
struct SurfaceForcing {
    /// The friction velocity, in m/s.
    friction: OceanField,
    /// Buoyancy through the surface without sunlight, and by sunlight, in m^2/s^3; positive into the ocean.
    buoyancy: OceanField,
    sunlight: OceanField,
}

impl SurfaceForcing {
    /// Buoyancy into the water above the level where a fraction `light` of sunlight is left, never 0, and whether it is
    /// stable.
    fn above(&self, light: &OceanField) -> (OceanField, Image<bool>) {
        let buoyancy = &self.buoyancy + &self.sunlight * (1.0 - light);
        let stable = buoyancy.ge(0.0);
        (stable.select(&buoyancy + 1e-14, &buoyancy), stable)
    }

    /// Velocity scales of momentum and of tracers (13, B1) at a depth `d` within the surface layer, for the buoyancy
    /// `b` (`wscale`).
    fn scales(&self, d: &OceanField, b: &OceanField) -> [OceanField; 2] {
        let u = &self.friction;
        let (cube, product) = (u * u * u, d * b * KARMAN);
        let zeta = &product / (&cube + 1e-16);
        let stable = u * KARMAN / (&zeta * 5.0 + 1.0);
        let root = (1.0 - &zeta * 16.0).sqrt();
        let convective = |(a, c): (f64, f64)| (&cube * a - &product * c).pow(1.0 / 3.0) * KARMAN;
        let scale = |weak: OceanField, from: f64, strong: OceanField| {
            zeta.ge(0.0).select(&stable, zeta.ge(from).select(u * weak * KARMAN, strong))
        };
        [scale(root.sqrt(), -0.2, convective(CONVECTIVE[0])), scale(root, -1.0, convective(CONVECTIVE[1]))]
    }
}

impl Kpp {
    /// The parameterization for the basin of an equation of state.
    ///
    /// # Errors
    /// If the depths are not middles of layers.
    pub fn new(water: &SeaWater, parameters: Parameters) -> Result<Kpp> {
        let (basin, depths) = (&water.basin, &water.basin.depths);
        let Layers { thickness, gap, ends } = basin.layers()?;
        Ok(Kpp {
            water: water.clone(),
            parameters,
            depth: basin.levels(|z| depths[z]),
            gap,
            thickness,
            light: basin.levels(|z| parameters.water.left(depths[z])),
            light_below: basin.levels(|z| parameters.water.left(ends[z])),
        })
    }

    fn basin(&self) -> &Basin {
        &self.water.basin
    }

    /// The first level of each column at which a mask is `true`; the number of levels if there is none.
    fn first(&self, mask: &Image<bool>) -> OceanField {
        mask.select(&self.basin().level, self.basin().depths.len() as f64).over(Axis::Depth).min()
    }

    /// Pixels of a volume at one level of each column; 0 if the level does not exist.
    fn at(&self, level: &OceanField, of: &OceanField) -> OceanField {
        self.basin().level.eq(level).select(of, 0.0).over(Axis::Depth).sum()
    }

    /// Coefficients of mixing for the ocean and its surface (`vmix_coeffs_kpp`).
    pub fn coefficients(&self, ocean: &Ocean, surface: &Surface) -> Coefficients {
        let Ocean { temperature: t, salinity: s, velocity } = ocean;
        let [north, east] = [(-1, 0), (0, -1)];
        let [a, b, c, d] = four(&self.basin().floor, [(0, 0), north, east, (-1, -1)]);
        let moves = self.basin().level.lt(a.min(b).min(c).min(d));
        let velocity = velocity.each_ref().map(|v| moves.select(v, 0.0));
        let buoyancy = self.water.buoyancy(t, s);
        let (shear, waves) = (self.shear(&buoyancy.from_below, &velocity), self.parameters.waves);
        let between = self.basin().above_water();
        let viscosity = between.select(&shear + waves * self.parameters.prandtl, 0.0);
        let diffusivity = between.select(shear + waves, 0.0);
        let [of_heat, of_salt] = self.water.double_diffusion(t, s, [&diffusivity, &diffusivity]);

        let forcing = self.forcing(t, s, surface);
        let depth = self.boundary(&buoyancy, &velocity, &forcing, surface.coriolis.as_ref());
        // The first level at or below the depth.
        let reached = self.depth.lt(&depth).convert::<u8>().over(Axis::Depth).sum().max(1.0);
        let ([viscosity, of_heat, of_salt], nonlocal) =
            self.boundary_layer([viscosity, of_heat, of_salt], &depth, &reached, &forcing);
        let heavy = self.basin().level.ge(&reached) & buoyancy.from_below.le(0.0);
        let convection = heavy.select(self.parameters.convection, 0.0);
        let masked = |f: OceanField| between.select(f, 0.0);
        Coefficients {
            viscosity: masked(viscosity + &convection),
            of_heat: masked(of_heat + &convection),
            of_salt: masked(of_salt + convection),
            nonlocal: masked(nonlocal),
            depth: self.basin().floor.gt(0.0).select(depth, 0.0),
        }
    }

    /// Viscosity and diffusivity by shear between levels (27, 28), for local Richardson numbers
    /// smoothed once along the depth (`ri_iwmix`).
    fn shear(&self, from_below: &OceanField, velocity: &[OceanField; 2]) -> OceanField {
        let step = |f: &OceanField| (f - f.with_border(Border::Replicate).shift(-1, 0, 0)).square();
        let [a, b, c, d] = corners(&(step(&velocity[0]) + step(&velocity[1])));
        let local = from_below * &self.gap / ((a + b + c + d) * 0.25 + 1e-14);
        let beside = |dz| local.with_border(Border::Replicate).shift(dz, 0, 0);
        let smooth = (beside(1) + beside(-1)) * 0.25 + &local * 0.5;
        let number = self.basin().floor.ge(3.0).select(smooth, &local);
        let part = number.lt(0.0).select(0.0, number.gt(STABLE_SHEAR).select(STABLE_SHEAR, &number)) / STABLE_SHEAR;
        let less = 1.0 - part.square();
        &less * &less * &less * self.parameters.shear
    }

    fn forcing(&self, t: &OceanField, s: &OceanField, surface: &Surface) -> SurfaceForcing {
        let state = self.water.state(&t.slice(0), &s.slice(0));
        let [density, by_temperature, by_salinity] =
            [state.density, state.by_temperature, state.by_salinity].map(|f| f.slice(0));
        let land = self.basin().floor.eq(0.0);
        let buoyancy = |lighter: OceanField| land.select(0.0, lighter / &density * -GRAVITY);
        let [x, y] = &surface.stress;
        SurfaceForcing {
            friction: (x.square() + y.square()).sqrt().sqrt(),
            buoyancy: buoyancy(&by_temperature * &surface.heat + by_salinity * &surface.salt),
            sunlight: buoyancy(by_temperature * &surface.sunlight),
        }
    }

    /// The depth of the boundary layer (`bldepth`): where the bulk Richardson number (21) becomes
    /// critical, limited where the forcing is stable, and smoothed over neighbours.
    fn boundary(
        &self,
        buoyancy: &Buoyancy,
        velocity: &[OceanField; 2],
        forcing: &SurfaceForcing,
        coriolis: Option<&OceanField>,
    ) -> OceanField {
        let (basin, z) = (self.basin(), &self.depth);
        let levels = basin.depths.len();
        let (first, last) = (basin.depths[0], basin.depths[levels - 1]);
        let apart = |v: &OceanField| (v.slice(0) - v).square();
        let [a, b, c, d] = corners(&(apart(&velocity[0]) + apart(&velocity[1])));
        let shear = a.max(b).max(c).max(d);
        let (force, stable) = forcing.above(&self.light);
        let [_, scale] = forcing.scales(&(z * SURFACE_LAYER), &force);
        let n = ((&buoyancy.from_below + buoyancy.from_below.abs() + 1e-22) * 0.5 / &self.gap).sqrt();
        // The shear of turbulence (23); its constant follows from the constant of entrainment.
        let entrained = (0.2 / CONVECTIVE[1].1 / SURFACE_LAYER).sqrt() / KARMAN.powi(2) / CRITICAL;
        let turbulent = z * scale * &n * (n * -200.0 + 2.1).max(1.7) * entrained;
        let number = (z - first) * &buoyancy.from_surface / (shear + turbulent + 1e-14);

        // A parabola through the numbers of a level and the level above, with the slope further above; a line if there
        // is none.
        let (upper, over) = (above(&number), above(z));
        let slope = (&upper - above(&upper)) / (&over - above(&over));
        let deeper = z - &over;
        let square = (&number - &upper - &slope * &deeper) / deeper.square();
        let linear = &slope - &square * &over * 2.0;
        let constant = &upper + &over * (&square * &over - &slope) - CRITICAL;
        let root = linear.square() - &square * constant * 4.0;
        let straight = (linear.abs().gt(1e-8) & (square.abs() / linear.abs()).le(1e-8)) | root.le(0.0);
        let on_line = &over + &deeper * (CRITICAL - &upper) / (&number - &upper);
        let on_parabola = (root.sqrt() - linear) / (square * 2.0);
        let critical = self.first(&number.gt(CRITICAL));
        let bottom = self.at(&(&basin.floor - 1.0).max(0.0), z);
        let found = self.at(&critical, &straight.select(on_line, on_parabola));
        let mut depth = critical.lt(levels as f64).select(found, &bottom);

        if let Some(coriolis) = coriolis {
            let u = &forcing.friction;
            let cube = u * u * u;
            let length = stable.select(cube / &force * (DEPTH_LIMITS.1 / KARMAN), last);
            // Just below the uppermost level, if the depth lies above it.
            let length = (basin.level.eq(0.0) & length.le(z)).select(z + 1e-12, length);
            let (before, lower) = (above(&length), basin.level.gt(0.0));
            let change = (&length - &before) / &deeper;
            let meets = (&length - &change * z) / (1.0 - change);
            let here = &lower & length.le(z) & before.gt(over);
            let deepest = here.select(&basin.level, -1.0).over(Axis::Depth).max();
            let obukhov = deepest.ge(0.0).select(self.at(&deepest, &meets), last);
            let begins = self.first(&(lower & stable));
            let ekman = u * DEPTH_LIMITS.0 / (coriolis.abs() + 1e-10);
            let ekman = begins.lt(levels as f64).select(ekman.max(self.at(&begins, z)), last);
            depth = depth.min(obukhov).min(ekman);
        }

        let around = [(0, 1), (0, -1), (1, 0), (-1, 0)];
        let near = four(&depth, around).into_iter().zip(four(&basin.floor, around));
        let near = near.map(|(beside, floor)| floor.gt(0.0).select(beside, &depth) * 0.125);
        let smooth = near.fold(&depth * 0.5, |sum, part| sum + part);
        smooth.min(bottom).max(first)
    }

    /// Coefficients of viscosity and diffusivities of heat and salt between levels, with the boundary layer's (10, 11)
    /// in place of the interior's, and the nonlocal term (20) (`blmix`). `reached` is the first level at or below the
    /// `depth` of the boundary layer.
    fn boundary_layer(
        &self,
        interior: [OceanField; 3],
        depth: &OceanField,
        reached: &OceanField,
        forcing: &SurfaceForcing,
    ) -> ([OceanField; 3], OceanField) {
        let basin = self.basin();
        let (red, near, far) = self.parameters.water.light();
        let light = (depth / -near).exp() * red + (depth / -far).exp() * (1.0 - red);
        let light = depth.gt(200.0).select(0.0, light);
        let (force, stable) = forcing.above(&light);
        let scales = |d: &OceanField| {
            let [momentum, tracers] = forcing.scales(&(d.min(SURFACE_LAYER) * depth), &force);
            [momentum, tracers.clone(), tracers]
        };
        let u = &forcing.friction;

        // The layer that contains the depth.
        let bottom = &self.depth + &self.thickness * 0.5;
        let higher = self.at(reached, &(&self.depth - &self.thickness * 0.5)).ge(depth);
        let layer = reached - higher.select(1.0, 0.0);
        let rest = &bottom - depth;
        let part = 1.0 - &rest / &self.thickness;
        let next = self.thickness.with_border(Border::Replicate).shift(-1, 0, 0);
        let at_depth = scales(&Image::constant(depth.session(), depth.shape(), SURFACE_LAYER));
        let grows = stable.select(&force * 5.0 / (u.square().square() + 1e-18), 0.0);
        // Values and slopes at the depth, of the interior relative to the scales (18).
        let matched = |v: &OceanField, scale: &OceanField| {
            let falls = |f: OceanField| f.max(0.0);
            let slope = (1.0 - &part) * falls((above(v) - v) / &self.thickness) + &part * falls((v - below(v)) / &next);
            let value = self.at(&layer, &(v + &slope * &rest));
            let slope = self.at(&layer, &slope);
            let scale = scale + 1e-12;
            (&value / depth / &scale, (&value * &grows - slope / scale).min(0.0))
        };
        let matched: Vec<_> = interior.iter().zip(&at_depth).map(|(v, scale)| matched(v, scale)).collect();
        let shape = |sigma: &OceanField, scale: &OceanField, (value, slope): &(OceanField, OceanField)| {
            let cubic = (sigma - 2.0) + (3.0 - sigma * 2.0) * value + (sigma - 1.0) * slope;
            depth * scale * sigma * (sigma * cubic + 1.0)
        };
        let sigma = bottom / depth;
        let scaled = scales(&sigma);
        let [_, tracers, _] = &scaled;
        let gradient = 10.0 * KARMAN * (CONVECTIVE[1].1 * KARMAN * SURFACE_LAYER).cbrt();
        let nonlocal = stable.select(0.0, gradient / (tracers * depth + 1e-14));

        // Mixing is enhanced between the levels above and below the depth (Appendix D).
        let last = reached - 1.0;
        let lifted = self.at(&last, &self.depth);
        let fraction = (depth - &lifted) / self.at(&last, &self.gap);
        let rest = 1.0 - &fraction;
        let sigma_above = lifted / depth;
        let scales_above = scales(&sigma_above);
        let enhanced = basin.level.eq(last);
        let inside = basin.level.lt(reached);
        let mixed = [0, 1, 2].map(|i| {
            let (v, layer) = (&interior[i], shape(&sigma, &scaled[i], &matched[i]));
            let level = shape(&sigma_above, &scales_above[i], &matched[i]);
            let here = higher.select(v, &layer);
            let between = &rest * v + &fraction * (rest.square() * level + fraction.square() * here);
            inside.select(enhanced.select(between, layer), v)
        });
        let nonlocal = (enhanced & &higher).select(0.0, nonlocal);
        (mixed, inside.select(nonlocal, 0.0))
    }
}
