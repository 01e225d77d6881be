//! Reductions of the pixels of each label, in no order at all.
//!
//! Where the pixels of a label lie follows from the labels, so that no order of adding them up suits strips, threads and
//! devices alike. Sums are therefore *exact*: a number is cut into digits of 24 bits by its place in the range of `f64`, digits are added
//! up as whole numbers below 2^53, in whatever order, and the sum is rounded once (Kulisch; Collange, Defour, Graillat and
//! Iakymchuk 2015). Squares enter as two numbers each, as they have up to 106 bits. Extremes are found for each block of rows.

use crate::dtype::DType;

/// Bits of a digit.
pub const DIGIT_BITS: usize = 24;
/// Digits that hold every finite `f64`, and then the numbers of NaN, of infinity and of minus infinity.
pub const DIGITS: usize = 2098usize.div_ceil(DIGIT_BITS);
/// Columns of an exact sum.
pub const SUM_COLUMNS: usize = DIGITS + 3;
/// The most pixels that can be added up: two numbers each, of digits below 2^24, stay below 2^53.
pub const MOST_PIXELS: usize = 1 << 28;
/// Rows of a block of which extremes are found.
pub const BLOCK: usize = 32;

/// What becomes of the pixels of each of `count` labels, `0..count`; those of other labels do not count. A kernel reads the labels, of
/// any integer type, and then the image, of the same extent, all planes of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelReduce {
    /// A row for each label: the number of pixels, their exact sum ([`SUM_COLUMNS`]), and that of their squares if they are asked for.
    /// Yields `f64`.
    Sum {
        /// Labels.
        count: usize,
        /// Whether squares are added up, too.
        squares: bool,
    },
    /// For each [`BLOCK`] of rows, of all planes, a row of the smallest pixel of each label, ignoring NaN, infinity without one. Zeros have no sign.
    /// Yields `f64`.
    Min {
        /// Labels.
        count: usize,
    },
    /// The same for the largest, minus infinity without one.
    Max {
        /// Labels.
        count: usize,
    },
}

impl LabelReduce {
    /// How many labels there are.
    pub const fn count(self) -> usize {
        match self {
            LabelReduce::Sum { count, .. } | LabelReduce::Min { count } | LabelReduce::Max { count } => count,
        }
    }

    /// Rows and columns of the result for an image of so many rows.
    pub const fn extent(self, height: usize) -> (usize, usize) {
        match self {
            LabelReduce::Sum { count, squares } => (count, 1 + SUM_COLUMNS * if squares { 2 } else { 1 }),
            LabelReduce::Min { count } | LabelReduce::Max { count } => (height.div_ceil(BLOCK), count),
        }
    }

    /// Whether each rank makes a whole result of its rows, all of which are added up.
    pub const fn adds_up(self) -> bool {
        matches!(self, LabelReduce::Sum { .. })
    }

    /// Name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            LabelReduce::Sum { .. } => "label_sum",
            LabelReduce::Min { .. } => "label_min",
            LabelReduce::Max { .. } => "label_max",
        }
    }

    /// Whether pixels of a type can be labels.
    pub const fn labels(dtype: DType) -> bool {
        !dtype.is_float() && !matches!(dtype, DType::Bool)
    }
}

/// What a result begins with.
pub const fn identity(how: LabelReduce) -> f64 {
    match how {
        LabelReduce::Sum { .. } => 0.0,
        LabelReduce::Min { .. } => f64::INFINITY,
        LabelReduce::Max { .. } => f64::NEG_INFINITY,
    }
}

/// Enters a pixel of a label that counts, in block `block` of rows, into a result in row-major order: the definition.
pub fn enter(how: LabelReduce, result: &mut [f64], block: usize, label: usize, v: f64) {
    let at = block * how.count() + label;
    match how {
        LabelReduce::Sum { squares, .. } => {
            let (_, columns) = how.extent(0);
            let row = &mut result[label * columns..(label + 1) * columns];
            row[0] += 1.0;
            let mut add = |v: f64, first: usize| {
                let (place, parts) = digits(v);
                let parts = parts.into_iter().enumerate().filter(|(_, part)| *part != 0);
                parts.for_each(|(k, part)| row[first + place + k] += part as f64);
            };
            add(v, 1);
            if squares {
                let (high, low) = square(v);
                add(high, 1 + SUM_COLUMNS);
                add(low, 1 + SUM_COLUMNS);
            }
        }
        LabelReduce::Min { .. } => result[at] = result[at].min(v + 0.0),
        LabelReduce::Max { .. } => result[at] = result[at].max(v + 0.0),
    }
}

/// What a number adds to an exact sum: whole numbers, to columns from the first on.
#[inline(always)]
pub fn digits(v: f64) -> (usize, [i64; 4]) {
    const MASK: u64 = (1 << DIGIT_BITS) - 1;
    let bits = v.to_bits();
    let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    if exponent == 0x7ff {
        let which = if fraction != 0 { 0 } else { 1 + usize::from(v < 0.0) };
        return (DIGITS + which, [1, 0, 0, 0]);
    }
    let (mantissa, place) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent as usize - 1) };
    let (first, shift) = (place / DIGIT_BITS, place % DIGIT_BITS);
    let last = if shift > 19 { mantissa >> (3 * DIGIT_BITS - shift) } else { 0 };
    let parts = [
        mantissa << shift & MASK,
        mantissa >> (DIGIT_BITS - shift) & MASK,
        mantissa >> (2 * DIGIT_BITS - shift) & MASK,
        last,
    ];
    let sign = if v.is_sign_negative() { -1 } else { 1 };
    (first, parts.map(|part| sign * part.cast_signed()))
}

/// A square as the number nearest to it, and what is left.
#[inline(always)]
pub fn square(v: f64) -> (f64, f64) {
    let high = v * v;
    (high, if high.is_finite() { v.mul_add(v, -high) } else { 0.0 })
}

/// An exact sum, rounded: the nearest number, and the one nearest to what is left. `columns` are [`SUM_COLUMNS`].
pub fn rounded(columns: &[f64]) -> (f64, f64) {
    let (digits, special) = columns.split_at(DIGITS);
    if let &[nan, high, low] = special
        && (nan, high, low) != (0.0, 0.0, 0.0)
    {
        let (up, down) = (high > 0.0, low > 0.0);
        let v = if nan > 0.0 || (up && down) {
            f64::NAN
        } else if up {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
        return (v, 0.0);
    }
    let mut all: Vec<i64> = digits.iter().map(|v| *v as i64).collect();
    let high = nearest(&mut all);
    if !high.is_finite() {
        return (high, 0.0);
    }
    let (first, parts) = self::digits(high);
    parts.iter().enumerate().filter(|(_, part)| **part != 0).for_each(|(k, part)| all[first + k] -= part);
    (high, nearest(&mut all))
}

/// The number nearest to digits, which are carried over.
fn nearest(digits: &mut [i64]) -> f64 {
    const BASE: i64 = 1 << DIGIT_BITS;
    let carried = |digits: &mut [i64]| {
        digits.iter_mut().fold(0, |carry, digit| {
            let v = *digit + carry;
            *digit = v.rem_euclid(BASE);
            v.div_euclid(BASE)
        })
    };
    let mut carry = carried(digits);
    let negative = carry < 0;
    if negative {
        // What was carried out of the last digit is less than nothing: the same number with the other sign.
        digits.iter_mut().for_each(|digit| *digit = -*digit);
        carry = carried(digits) - carry;
    }
    let magnitude = if carry > 0 { f64::INFINITY } else { assembled(digits) };
    if negative {
        digits.iter_mut().for_each(|digit| *digit = -*digit);
    }
    if negative { -magnitude } else { magnitude }
}

/// The number nearest to digits of which none is negative.
fn assembled(digits: &[i64]) -> f64 {
    let Some(top) = digits.iter().rposition(|digit| *digit != 0) else { return 0.0 };
    let first = top.saturating_sub(3);
    let whole =
        digits[first..=top].iter().rev().fold(0u128, |v, digit| v << DIGIT_BITS | u128::from(digit.unsigned_abs()));
    // What lies below cannot decide but between two numbers that are equally near.
    let rest = digits[..first].iter().any(|digit| *digit != 0);
    let v = (whole | u128::from(rest)) as f64;
    // In steps that are powers of two: none but the last can leave the range.
    let mut place = (DIGIT_BITS * first) as i32 - 1074;
    let mut v = v;
    while place != 0 {
        let step = place.clamp(-1000, 1000);
        v *= 2f64.powi(step);
        place -= step;
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[f64]) -> (f64, f64) {
        let mut columns = vec![0.0; SUM_COLUMNS];
        for v in values {
            let (first, parts) = digits(*v);
            parts.iter().enumerate().filter(|(_, p)| **p != 0).for_each(|(k, p)| columns[first + k] += *p as f64);
        }
        rounded(&columns)
    }

    #[test]
    fn a_number_is_the_sum_of_its_digits() {
        let small = f64::from_bits(1);
        for v in
            [0.0, 1.0, -1.0, 0.1, 1e300, -1e300, f64::MAX, f64::MIN, f64::MIN_POSITIVE, small, -7.0 * small, 1.0 / 3.0]
        {
            assert_eq!(sum(&[v]), (v, 0.0), "{v:e}");
        }
        // Every place of the lowest bit within a digit.
        for place in -1022..1023 {
            let v = (1.0 + f64::EPSILON) * 2f64.powi(place);
            assert_eq!(sum(&[v, -v, v]), (v, 0.0), "{v:e}");
        }
    }

    #[test]
    fn sums_are_rounded_once() {
        assert_eq!(sum(&[1e100, 1.0, -1e100]).0, 1.0);
        assert_eq!(sum(&[1.0, 1e-20]), (1.0, 1e-20));
        assert_eq!(sum(&[-1.0, -1e-20]), (-1.0, -1e-20));
        // Half way between two numbers, and a little more.
        let half = f64::EPSILON / 2.0;
        assert_eq!(sum(&[1.0, half]).0, 1.0);
        assert_eq!(sum(&[1.0, half, 1e-300]).0, 1.0 + f64::EPSILON);
        assert_eq!(sum(&[1.0, 3.0 * half]).0, 1.0 + 2.0 * f64::EPSILON, "to even");
        assert_eq!(sum(&[f64::MAX, f64::MAX]).0, f64::INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).0, f64::MAX);
    }

    #[test]
    fn what_is_no_number_stays_so() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert_eq!((sum(&[1.0, inf]).0, sum(&[-inf, 5.0]).0), (inf, -inf));
        assert!(sum(&[inf, -inf]).0.is_nan() && sum(&[nan, 1.0]).0.is_nan());
    }

    #[test]
    fn squares_are_exact_in_two_numbers() {
        let v = 1.0 + f64::EPSILON;
        assert_eq!(square(v), (1.0 + 2.0 * f64::EPSILON, f64::EPSILON * f64::EPSILON));
        assert_eq!(square(1e200), (f64::INFINITY, 0.0));
    }
}
