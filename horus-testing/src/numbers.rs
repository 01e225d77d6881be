//! The functions of `f32` that Horus computes itself: their arguments, their largest errors, and one hash of all
//! results, which is the same on every instruction set and on GPUs. `tests/goldens/numbers.txt` stores errors and
//! hashes.
//!
//! Errors are relative to the standard library in `f64`, whose own errors are below 1 ulp of `f64`, 2e-9 ulp of `f32`.

use std::fmt;
use std::ops::Range;

use horus_base::dtype::Arithmetic;
use rayon::prelude::*;

/// A function in `f32`, and the same in `f64`.
#[derive(Clone, Copy, Debug)]
pub enum FunctionPair {
    /// A function of one argument.
    One(fn(f32) -> f32, fn(f64) -> f64),
    /// A function of two arguments.
    Two(fn(f32, f32) -> f32, fn(f64, f64) -> f64),
}

/// A function with its stated bound.
#[derive(Clone, Copy, Debug)]
pub struct BoundedFunction {
    /// Its name in tables.
    pub name: &'static str,
    /// Its computation.
    pub definition: FunctionPair,
    /// The largest promised error, in ulp.
    pub bound: f64,
}

const fn one(name: &'static str, ours: fn(f32) -> f32, exact: fn(f64) -> f64, bound: f64) -> BoundedFunction {
    BoundedFunction { name, definition: FunctionPair::One(ours, exact), bound }
}

const fn two(name: &'static str, ours: fn(f32, f32) -> f32, exact: fn(f64, f64) -> f64, bound: f64) -> BoundedFunction {
    BoundedFunction { name, definition: FunctionPair::Two(ours, exact), bound }
}

/// The constant exponent of a power of one argument: powers with one exponent have a separate code path.
pub const EXPONENT: f32 = 2.2;

/// Every function. Root and quotient are correctly rounded; the oracle rounds the quotient twice.
pub const FUNCTIONS: [BoundedFunction; 11] = [
    one("exp(x)", Arithmetic::exp, f64::exp, 1.0),
    one("log(x)", Arithmetic::ln, f64::ln, 1.0),
    one("sin(x)", Arithmetic::sin, f64::sin, 0.51),
    one("cos(x)", Arithmetic::cos, f64::cos, 0.51),
    one("pow(x, 2.2)", |x| Arithmetic::pow(x, EXPONENT), |x| x.powf(f64::from(EXPONENT)), 0.63),
    one("sqrt(x)", Arithmetic::sqrt, f64::sqrt, 0.500_001),
    one("1 / x", |x| Arithmetic::div(1.0, x), |x| 1.0 / x, 0.500_001),
    two("x / y", Arithmetic::div, |x, y| x / y, 0.500_001),
    two("pow(x, y)", Arithmetic::pow, f64::powf, 0.63),
    two("atan2(x, y)", Arithmetic::atan2, f64::atan2, 0.51),
    two("hypot(x, y)", Arithmetic::hypot, f64::hypot, 0.51),
];

/// A set of arguments, in an order. Counts are powers of two, so that they fill rectangles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Every `f32`; 2^26 pairs.
    Every,
    /// 2^24 of the arguments.
    Part,
    /// 2^20 of the arguments.
    Quick,
}

impl Sample {
    /// All samples, in the order of the table's columns.
    pub const ALL: [Sample; 3] = [Sample::Every, Sample::Part, Sample::Quick];

    /// Number of arguments of a function.
    pub fn count(self, function: &BoundedFunction) -> u64 {
        match (self, function.definition) {
            (Sample::Every, FunctionPair::One(..)) => 1 << 32,
            (Sample::Every, FunctionPair::Two(..)) => 1 << 26,
            (Sample::Part, _) => 1 << 24,
            (Sample::Quick, _) => 1 << 20,
        }
    }

    /// The arguments `range`: the first ones and the second ones, which are equal for functions of one argument.
    pub fn arguments(self, function: &BoundedFunction, range: Range<u64>) -> Vec<(f32, f32)> {
        // Odd factors visit no number twice.
        let number: fn(Sample, u64) -> (f32, f32) = match function.definition {
            FunctionPair::One(..) => |sample, i| {
                let bits = [i as u32, (i as u32).wrapping_mul(257), (i as u32).wrapping_mul(4099)][sample as usize];
                (f32::from_bits(bits), f32::from_bits(bits))
            },
            FunctionPair::Two(..) => |sample, i| pair(i * [1, 5, 67][sample as usize] % (1 << 26)),
        };
        range.into_par_iter().map(|i| number(self, i)).collect()
    }
}

/// Pair `i`. Every second pair takes its signs and exponents from a stratum of all, in turn; the others have common
/// magnitudes, 2^-8 to 2^8. Mantissas are pseudo-random; one in eight is zero, so that powers of two, infinities and
/// zeros occur together.
fn pair(i: u64) -> (f32, f32) {
    let (random, stratum) = (mix(i), (i >> 1) as u32);
    let bits = |random: u64, stratum: u32| {
        let exponent = if i & 1 == 0 { stratum >> 2 & 255 } else { 119 + (stratum >> 2 & 15) };
        let mantissa = if random & 7 == 0 { 0 } else { (random >> 3) as u32 & 0x007f_ffff };
        f32::from_bits(exponent << 23 | mantissa)
    };
    let width = if i & 1 == 0 { 8 } else { 4 };
    let (x, y) = (bits(random, stratum), bits(random >> 32, stratum >> width));
    (if stratum & 1 == 0 { x } else { -x }, if stratum & 2 == 0 { y } else { -y })
}

/// The finaliser of SplitMix64.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The hash of results from number `first` on: a sum, so that hashes of parts add up to the hash of all. A NaN is any
/// NaN.
pub fn hash(first: u64, results: &[f32]) -> u64 {
    let one = |(i, v): (usize, &f32)| {
        let bits = if v.is_nan() { 0x7fc0_0000 } else { v.to_bits() };
        mix((first + i as u64) << 32 | u64::from(bits))
    };
    results.par_iter().with_min_len(1 << 12).enumerate().map(one).reduce(|| 0, u64::wrapping_add)
}

/// A largest error, and its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Worst {
    /// The error in ulp of the result; infinite if exactly one of both is a NaN or an infinity, or a zero has the wrong
    /// sign.
    pub ulp: f64,
    /// The arguments.
    pub at: (f32, f32),
}

impl Worst {
    /// No error.
    pub const NONE: Worst = Worst { ulp: 0.0, at: (0.0, 0.0) };

    /// The larger of both.
    #[must_use]
    pub fn or(self, other: Worst) -> Worst {
        if other.ulp > self.ulp { other } else { self }
    }
}

impl BoundedFunction {
    /// The results in scalar Rust, the definition.
    pub fn of(&self, arguments: &[(f32, f32)]) -> Vec<f32> {
        let all = arguments.par_iter().with_min_len(1 << 12);
        match self.definition {
            FunctionPair::One(ours, _) => all.map(|a| ours(a.0)).collect(),
            FunctionPair::Two(ours, _) => all.map(|a| ours(a.0, a.1)).collect(),
        }
    }

    /// The largest error of these results.
    pub fn worst(&self, arguments: &[(f32, f32)], results: &[f32]) -> Worst {
        let all = arguments.par_iter().zip(results).with_min_len(1 << 12);
        let found = |&at: &(f32, f32), got: &f32, exact| Worst { ulp: error(*got, exact), at };
        match self.definition {
            FunctionPair::One(_, exact) => {
                all.map(|(a, r)| found(a, r, exact(f64::from(a.0)))).reduce(|| Worst::NONE, Worst::or)
            }
            FunctionPair::Two(_, exact) => {
                all.map(|(a, r)| found(a, r, exact(f64::from(a.0), f64::from(a.1)))).reduce(|| Worst::NONE, Worst::or)
            }
        }
    }
}

/// The error in ulp of `got`.
fn error(got: f32, exact: f64) -> f64 {
    let want = exact as f32;
    if got.is_nan() || exact.is_nan() {
        return if got.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got.is_infinite() || want.is_infinite() || (got == 0.0 && want == 0.0) {
        return if got.to_bits() == want.to_bits() { 0.0 } else { f64::INFINITY };
    }
    // 2^-23 of the power of two below the exact result.
    let power = exact.abs().max(f64::from(f32::MIN_POSITIVE)).to_bits() & 0x7ff0_0000_0000_0000;
    (f64::from(got) - exact).abs() / (f64::from_bits(power) * f64::from(f32::EPSILON))
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoldenRow {
    /// Name of the function.
    pub name: String,
    /// The largest error over the sample [`Sample::Every`], as text: in ulp, and its arguments.
    pub worst: String,
    /// The hashes of the results for each [`Sample`].
    pub hashes: [u64; 3],
}

/// The stored table.
pub const GOLDEN_ROWS: &str = include_str!("../../tests/goldens/numbers.txt");

impl GoldenRow {
    /// The stored row of a function.
    ///
    /// # Panics
    /// If there is none.
    pub fn find(function: &BoundedFunction) -> GoldenRow {
        let row = GOLDEN_ROWS.lines().filter_map(GoldenRow::parse).find(|row| row.name == function.name);
        row.unwrap_or_else(|| panic!("tests/goldens/numbers.txt has no row of {}", function.name))
    }

    fn parse(line: &str) -> Option<GoldenRow> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [name, worst, hashes @ ..] = &cells[..] else { return None };
        let hashes: Vec<u64> = hashes.iter().filter_map(|h| u64::from_str_radix(h, 16).ok()).collect();
        Some(GoldenRow { name: (*name).to_owned(), worst: (*worst).to_owned(), hashes: hashes.try_into().ok()? })
    }

    /// The text of an error.
    pub fn text(function: &BoundedFunction, worst: Worst) -> String {
        match function.definition {
            FunctionPair::One(..) => format!("{:.4} at {:e}", worst.ulp, worst.at.0),
            FunctionPair::Two(..) => format!("{:.4} at {:e}, {:e}", worst.ulp, worst.at.0, worst.at.1),
        }
    }
}

/// The text of the stored table.
impl fmt::Display for GoldenRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [every, part, quick] = self.hashes;
        write!(f, "| `{}` | {} | `{every:016x}` | `{part:016x}` | `{quick:016x}` |", self.name, self.worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_in_ulp_of_the_exact_result() {
        assert_eq!(error(1.0, 1.0), 0.0);
        assert_eq!(error(1.0 + f32::EPSILON, 1.0), 1.0);
        assert_eq!(error(0.0, f64::from(f32::from_bits(1))), 1.0);
        assert_eq!(error(1.0 - f32::EPSILON / 2.0, 1.0), 0.5);
        for (got, exact) in [(0.0, -0.0), (f32::NAN, 1.0), (1.0, f64::NAN), (f32::INFINITY, 1.0), (1e38, 1e40)] {
            assert_eq!(error(got, exact), f64::INFINITY, "{got} for {exact}");
        }
        assert_eq!(error(f32::NAN, f64::NAN), 0.0);
    }

    #[test]
    fn a_hash_is_the_sum_of_those_of_parts_and_every_result_changes_it() {
        let results = FUNCTIONS[0].of(&Sample::Quick.arguments(&FUNCTIONS[0], 0..1000));
        let all = hash(5, &results);
        assert_eq!(all, hash(5, &results[..300]).wrapping_add(hash(305, &results[300..])));
        for i in 0..results.len() {
            let mut other = results.clone();
            other[i] = f32::from_bits(other[i].to_bits() ^ 1);
            assert!(hash(5, &other) != all || results[i].is_nan(), "result {i}");
        }
        assert_eq!(hash(0, &[f32::NAN]), hash(0, &[-f32::NAN]));
    }

    #[test]
    fn samples_visit_no_number_twice_and_every_exponent_with_every_sign() {
        let numbers = Sample::Quick.arguments(&FUNCTIONS[0], 0..1 << 20);
        let mut bits: Vec<u32> = numbers.iter().map(|n| n.0.to_bits()).collect();
        bits.sort_unstable();
        bits.dedup();
        assert_eq!(bits.len(), 1 << 20);
        let pairs = Sample::Quick.arguments(&FUNCTIONS[8], 0..1 << 20);
        for take in [|p: &(f32, f32)| p.0, |p: &(f32, f32)| p.1] {
            let mut seen: Vec<u32> = pairs.iter().map(|p| take(p).to_bits() >> 23).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 512);
        }
    }
}
