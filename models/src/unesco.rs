//! The density of sea water by UNESCO (1981), Tech. Papers in Marine Sci. 36, as in Gill (1982), "Atmosphere-Ocean
//! Dynamics", appendix 3.
//!
//! Also cubic polynomials fitted to it at one depth, as in POP (Bryan and Cox, 1972): by least squares over 50
//! temperatures and salinities of the range at that depth. Potential temperatures follow Bryden (1973), Deep-Sea Res.
//! 20, 401-408.

use horus::prelude::*;

use crate::ocean::pressure;

/// The density at the surface, as rows of [`super::ocean`]: powers of salinity, of temperature, of pressure; then the
/// same times salinity to the power of 1.5.
pub(super) const SURFACE: &[&[&[f64]]] = &[
    &[&[999.842594], &[6.793952e-2], &[-9.095290e-3], &[1.001685e-4], &[-1.120083e-6], &[6.536332e-9]],
    &[&[0.824493], &[-4.0899e-3], &[7.6438e-5], &[-8.2467e-7], &[5.3875e-9]],
    &[&[4.8314e-4]],
];
pub(super) const SURFACE_ROOT: &[&[f64]] = &[&[-5.72466e-3], &[1.0227e-4], &[-1.6546e-6]];

/// The bulk modulus in bar, for temperatures in place, not potential ones.
const MODULUS: &[&[&[f64]]] = &[
    &[
        &[1.965221e4, 3.239908, 8.50935e-5],
        &[148.4206, 1.43713e-3, -6.12293e-6],
        &[-2.327105, 1.16092e-4, 5.2787e-8],
        &[1.360477e-2, -5.77905e-7],
        &[-5.155288e-5],
    ],
    &[
        &[54.6746, 2.2838e-3, -9.9348e-7],
        &[-0.603459, -1.0981e-5, 2.0816e-8],
        &[1.09987e-2, -1.6078e-6, 9.1697e-10],
        &[-6.1670e-5],
    ],
];
const MODULUS_ROOT: &[&[f64]] = &[&[7.944e-2, 1.91075e-4], &[1.6483e-2], &[-5.3009e-4]];

/// Ranges of temperature and salinity at each 250 m.
const COLDEST: [f64; 33] = ranges(&[(4, -2.0), (20, -1.0), (33, 0.0)]);
const WARMEST: [f64; 33] = ranges(&[(1, 29.0), (2, 19.0), (3, 14.0), (4, 11.0), (5, 9.0), (33, 7.0)]);
const FRESHEST: [f64; 33] =
    ranges(&[(1, 28.5), (2, 33.7), (3, 34.0), (4, 34.1), (5, 34.2), (6, 34.4), (8, 34.5), (23, 34.6), (33, 34.7)]);
const SALTIEST: [f64; 33] = ranges(&[(1, 37.0), (2, 36.6), (3, 35.8), (4, 35.7), (5, 35.3), (7, 35.1), (33, 35.0)]);

/// Each number up to an index.
const fn ranges(parts: &[(usize, f64)]) -> [f64; 33] {
    let (mut all, mut part, mut i) = ([0.0; 33], 0, 0);
    while i < 33 {
        if i == parts[part].0 {
            part += 1;
        }
        all[i] = parts[part].1;
        i += 1;
    }
    all
}

/// A cubic polynomial in the differences t and s from a potential temperature and a salinity.
pub(super) struct Fit {
    /// Temperature, in degrees Celsius.
    pub temperature: f64,
    /// Salinity, in psu.
    pub salinity: f64,
    /// Coefficients of 1, t, s, tt, ts, ss, ttt, tss, tts, sss, in kg/m^3.
    pub coefficients: [f64; 10],
    /// The lowest and the highest temperature and salinity.
    pub limits: [[f64; 2]; 2],
}

fn horner(coefficients: impl DoubleEndedIterator<Item = f64>, x: f64) -> f64 {
    coefficients.rev().fold(0.0, |sum, c| sum * x + c)
}

fn polynomial(rows: &[&[&[f64]]], root: &[&[f64]], t: f64, s: f64, p: f64) -> f64 {
    let row = |row: &[&[f64]]| horner(row.iter().map(|c| horner(c.iter().copied(), p)), t);
    horner(rows.iter().map(|r| row(r)), s) + s * s.sqrt() * row(root)
}

/// Density in kg/m^3, for a temperature in place in degrees Celsius, salinity in psu, pressure in bar.
fn density(t: f64, s: f64, p: f64) -> f64 {
    polynomial(SURFACE, SURFACE_ROOT, t, s, p) / (1.0 - p / polynomial(MODULUS, MODULUS_ROOT, t, s, p))
}

fn potential(t: f64, s: f64, p: f64) -> f64 {
    let s = s - 35.0;
    let first = 3.6504e-4 + t * (8.3198e-5 + t * (-5.4065e-7 + t * 4.0274e-9)) + s * (1.7439e-5 - t * 2.9778e-7);
    let second = 8.9309e-7 + t * (-3.1628e-8 + t * 2.1987e-10) - 4.1057e-9 * s;
    t - p * (first + p * (second + p * (-1.6056e-10 + t * 5.0484e-12)))
}

/// The polynomial at a depth in metres.
///
/// # Errors
/// If the depth is 8250 m or more.
pub(super) fn fit(depth: f64) -> Result<Fit> {
    let Some(at) = (0..33).nth((depth / 250.0) as usize) else {
        let said = format!("the polynomial equation of state is known to 8250 m, but a level lies at {depth} m");
        return Err(Error::Config(said));
    };
    let limits = [[COLDEST[at], WARMEST[at]], [FRESHEST[at], SALTIEST[at]]];
    let p = pressure(depth) / 10.0;
    let sample = |[low, high]: [f64; 2], i: usize, of: usize| low + i as f64 * ((high - low) / (of - 1) as f64);
    let samples: Vec<[f64; 2]> = (0..50).map(|n| [sample(limits[0], n / 5, 10), sample(limits[1], n % 5, 5)]).collect();
    let mean = |of: &dyn Fn(&[f64; 2]) -> f64| samples.iter().map(of).sum::<f64>() / 50.0;
    let salinity = mean(&|[_, s]| *s);
    let reference = density(mean(&|[t, _]| *t), salinity, p);
    let temperature = mean(&|[t, s]| potential(*t, *s, p));
    let terms = |[t, s]: &[f64; 2]| {
        let (t, s) = (potential(*t, *s, p) - temperature, s - salinity);
        [t, s, t * t, t * s, s * s, t * t * t, t * s * s, t * t * s, s * s * s]
    };
    let columns: [_; 9] = std::array::from_fn(|i| samples.iter().map(|sample| terms(sample)[i]).collect());
    let fitted = least_squares(columns, samples.iter().map(|[t, s]| density(*t, *s, p) - reference).collect());
    let mut coefficients = [reference; 10];
    coefficients[1..].copy_from_slice(&fitted);
    Ok(Fit { temperature, salinity, coefficients, limits })
}

/// The multiples of the columns whose sum is nearest to `target`. Columns are orthogonalised one after the other,
/// twice, which preserves all digits except those that the columns' condition costs.
fn least_squares<const N: usize>(columns: [Vec<f64>; N], mut target: Vec<f64>) -> [f64; N] {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let take = |from: &mut [f64], by: f64, of: &[f64]| from.iter_mut().zip(of).for_each(|(a, b)| *a -= by * b);
    let (mut orthogonal, mut upper) = (columns, [[0.0; N]; N]);
    let mut parts = [0.0; N];
    for i in 0..N {
        let (before, rest) = orthogonal.split_at_mut(i);
        for _ in 0..2 {
            for (j, column) in before.iter().enumerate() {
                let part = dot(column, &rest[0]);
                upper[j][i] += part;
                take(&mut rest[0], part, column);
            }
        }
        upper[i][i] = dot(&rest[0], &rest[0]).sqrt();
        rest[0].iter_mut().for_each(|v| *v /= upper[i][i]);
        parts[i] = dot(&rest[0], &target);
        take(&mut target, parts[i], &rest[0]);
    }
    for i in (0..N).rev() {
        let known: f64 = (i + 1..N).map(|j| upper[i][j] * parts[j]).sum();
        parts[i] = (parts[i] - known) / upper[i][i];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_are_met() {
        // Gill (1982), table A3.1; Bryden (1973) as in UNESCO's technical paper 44.
        for (s, t, p, rho) in [
            (0.0, 5.0, 0.0, 999.96675),
            (0.0, 5.0, 1000.0, 1044.12802),
            (35.0, 5.0, 0.0, 1027.67547),
            (35.0, 25.0, 1000.0, 1062.53817),
        ] {
            assert!((density(t, s, p) - rho).abs() < 1e-5, "{}", density(t, s, p));
        }
    }

    #[test]
    fn fits_are_near_and_end() {
        for depth in [5.0, 3000.0, 8249.0] {
            let fit = fit(depth).unwrap();
            let p = pressure(depth) / 10.0;
            let [[t, _], [_, s]] = fit.limits;
            let (x, y) = (potential(t, s, p) - fit.temperature, s - fit.salinity);
            let terms = [1.0, x, y, x * x, x * y, y * y, x * x * x, x * y * y, x * x * y, y * y * y];
            let ours: f64 = terms.iter().zip(fit.coefficients).map(|(a, b)| a * b).sum();
            assert!((ours - density(t, s, p)).abs() < 0.05, "{ours} at {depth}");
        }
        assert!(fit(8250.0).is_err_and(|e| e.to_string().contains("8250 m")));
    }
}
