//! Reductions per label, independent of order.
//!
//! The labels decide which pixels are summed, so no fixed order suits all strips, threads and devices. Sums are
//! therefore *exact*: a number is split into 24-bit digits by its position in the range of `f64`; digits are summed as
//! integers below 2^53 in any order, and the sum is rounded once (Kulisch; Collange, Defour, Graillat and Iakymchuk
//! 2015). A square is added as two numbers, because it has up to 106 bits. Minima and maxima are found per block of
//! rows.

use super::describe::{OperationGroup, Pattern, describe, description};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    AllReduce, Distribution, Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages,
    SampleOperations, ensure,
};
use horus_base::dtype::DType;
use horus_base::position_map::PositionMap;
use horus_base::shape::{Shape, Window};

describe! {
    BY_LABEL = description("by_label", OperationGroup::Statistics, Pattern::Reduction, "Statistics of the pixels of each label")
        .elsewhere(&["ndi.mean", "ndi.sum_labels", "ndi.variance", "ndi.minimum", "ndi.maximum", "ndi.median", "np.bincount", "ski.measure.regionprops", "cv.connectedComponentsWithStats"])
        .differs("`sum` `mean` `variance` `min` `max` `histogram` `counts` `shapes` (number, centre, covariance), and on the host `median` `percentile`, which ignore NaN; exact sums; labels start at 0");
}

/// Bits per digit.
pub const DIGIT_BITS: usize = 24;
/// Digits needed for every finite `f64`.
pub const DIGITS: usize = 2098usize.div_ceil(DIGIT_BITS);
/// Bit position of 1 relative to the lowest bit of the smallest `f64`.
const ONE: usize = 1074;
/// Maximum number of pixels per sum: each adds two numbers with digits below 2^24, so that sums stay below 2^53. Also
/// the maximum number of labels.
pub const MOST_PIXELS: usize = 1 << 28;
/// Rows of the smallest block for minima and maxima.
pub const BLOCK: usize = 32;

/// The layout of an exact sum: the digits from `first` that pixels of a type can have, and for floats three more
/// columns, which count NaN, infinity and minus infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digits {
    /// The lowest digit.
    pub first: usize,
    /// Number of digits.
    pub count: usize,
    /// Set if pixels may be non-finite.
    pub special: bool,
}

impl Digits {
    /// The layout for sums of pixels of a type.
    pub const fn of(dtype: DType) -> Digits {
        match dtype {
            DType::F64 => Digits { first: 0, count: DIGITS, special: true },
            DType::F32 => Digits::between(ONE - 149, ONE + 128, true),
            other => Digits::between(ONE, ONE + 8 * other.size(), false),
        }
    }

    /// The layout for sums of squares.
    pub const fn of_squares(dtype: DType) -> Digits {
        match dtype {
            DType::F64 => Digits::of(dtype),
            DType::F32 => Digits::between(ONE - 298, ONE + 256, true),
            other => Digits::between(ONE, ONE + 16 * other.size(), false),
        }
    }

    /// The layout for bits `from..to`.
    const fn between(from: usize, to: usize, special: bool) -> Digits {
        let first = from / DIGIT_BITS;
        Digits { first, count: to.div_ceil(DIGIT_BITS) - first, special }
    }

    /// Columns per sum.
    pub const fn columns(self) -> usize {
        self.count + if self.special { 3 } else { 0 }
    }

    /// Adds a number, whose digits must all be in the layout, to a sum.
    #[inline(always)]
    pub fn add(self, sum: &mut [f64], v: f64) {
        let (first, parts) = digits(v);
        if first >= DIGITS {
            sum[self.count + (first - DIGITS)] += 1.0;
            return;
        }
        // The lowest part may be below the lowest digit; it is then 0.
        for (k, part) in parts.into_iter().enumerate() {
            if part != 0 {
                sum[first + k - self.first] += part as f64;
            }
        }
    }

    /// Rounds a sum: the nearest number, and the number nearest to the remainder.
    pub fn rounded(self, sum: &[f64]) -> (f64, f64) {
        let (digits, special) = sum.split_at(self.count);
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
        rounded(self.first, digits)
    }
}

/// A reduction of the pixels of each of `count` labels, `0..count`; other labels are ignored. It reads the labels (of
/// any integer type) and an image of the same shape, all planes of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LabelReduce {
    /// One row per label: the number of pixels, their exact sum ([`Digits::of`]) and, if requested, the sum of their
    /// squares ([`Digits::of_squares`]). Yields `f64`.
    Sum {
        /// Number of labels.
        count: usize,
        /// Set if squares are summed too.
        squares: bool,
        /// Pixel type.
        of: DType,
    },
    /// One row per label of a single plane: the number of pixels, the digits of the sums of their rows and columns
    /// ([`PLACE`]), and of the products row x row, row x column and column x column ([`PRODUCT`]). Reads only the
    /// labels. Yields `f64`.
    Shape {
        /// Number of labels.
        count: usize,
        /// Row and column of the first pixel within the enclosing image.
        origin: [usize; 2],
    },
    /// One row per `block` of rows (of all planes), with the minimum of each label: NaN is ignored, a label without
    /// pixels yields infinity, and zeros have no sign. Yields `f64`.
    Min {
        /// Number of labels.
        count: usize,
        /// Rows per block: see [`block`].
        block: usize,
    },
    /// The same for the maximum. A label without pixels yields minus infinity.
    Max {
        /// Number of labels.
        count: usize,
        /// Rows per block: see [`block`].
        block: usize,
    },
}

/// Digits of a sum of rows or columns, from the lowest.
pub const PLACE: usize = 2;
/// Digits of a sum of products of rows and columns.
pub const PRODUCT: usize = 3;

/// Rows per block for minima and maxima, such that the results of all blocks together are smaller than the image.
pub const fn block(count: usize, width: usize) -> usize {
    let rows = count.div_ceil(if width == 0 { 1 } else { width });
    if rows > BLOCK { rows.next_power_of_two() } else { BLOCK }
}

impl LabelReduce {
    /// Number of labels.
    pub const fn count(self) -> usize {
        match self {
            LabelReduce::Sum { count, .. }
            | LabelReduce::Shape { count, .. }
            | LabelReduce::Min { count, .. }
            | LabelReduce::Max { count, .. } => count,
        }
    }

    /// Rows and columns of the result for an image of `height` rows.
    pub const fn extent(self, height: usize) -> (usize, usize) {
        match self {
            LabelReduce::Sum { count, squares, of } => {
                (count, 1 + Digits::of(of).columns() + if squares { Digits::of_squares(of).columns() } else { 0 })
            }
            LabelReduce::Shape { count, .. } => (count, 1 + 2 * PLACE + 3 * PRODUCT),
            LabelReduce::Min { count, block } | LabelReduce::Max { count, block } => (height.div_ceil(block), count),
        }
    }

    /// Rows per block for minima and maxima.
    pub const fn block(self) -> Option<usize> {
        match self {
            LabelReduce::Sum { .. } | LabelReduce::Shape { .. } => None,
            LabelReduce::Min { block, .. } | LabelReduce::Max { block, .. } => Some(block),
        }
    }

    /// The image rows that contribute to result rows `of`.
    pub fn rows(self, of: Window) -> Window {
        let row = |y: isize| y.saturating_mul(self.block().unwrap_or(1).cast_signed());
        Window::new(row(of.start), row(of.end))
    }

    /// Number of inputs: the labels, and the image if it is read.
    pub const fn inputs(self) -> usize {
        if matches!(self, LabelReduce::Shape { .. }) { 1 } else { 2 }
    }

    /// The same reduction of a part of the image that starts `rows` and `columns` further on.
    pub const fn moved(self, rows: usize, columns: usize) -> LabelReduce {
        match self {
            LabelReduce::Shape { count, origin: [y, x] } => {
                LabelReduce::Shape { count, origin: [y + rows, x + columns] }
            }
            other => other,
        }
    }

    /// Returns `true` if each rank computes a full-size result of its rows, and these results are summed.
    pub const fn adds_up(self) -> bool {
        self.block().is_none()
    }

    /// Returns `true` if labels of this shape and pixels of this type can be reduced.
    pub fn suits(self, labels: Shape, pixels: DType) -> bool {
        match self {
            LabelReduce::Sum { of, .. } => of == pixels,
            LabelReduce::Shape { origin: [y, x], .. } => {
                let most = y.saturating_add(labels.height).saturating_mul(x.saturating_add(labels.width));
                labels.planes() == 1 && most <= MOST_PIXELS
            }
            LabelReduce::Min { block, .. } | LabelReduce::Max { block, .. } => block > 0,
        }
    }

    /// Returns `true` if pixels of a type can be labels.
    pub const fn labels(dtype: DType) -> bool {
        !dtype.is_float() && !matches!(dtype, DType::Bool)
    }
}

/// The initial value of the result.
pub const fn identity(how: LabelReduce) -> f64 {
    match how {
        LabelReduce::Sum { .. } | LabelReduce::Shape { .. } => 0.0,
        LabelReduce::Min { .. } => f64::INFINITY,
        LabelReduce::Max { .. } => f64::NEG_INFINITY,
    }
}

/// Adds pixel `v` at row `y` and column `x`, with label `label`, to a row-major result that begins with block `first`
/// of rows: the definition.
pub fn enter(how: LabelReduce, result: &mut [f64], first: usize, label: usize, (y, x): (usize, usize), v: f64) {
    let (_, columns) = how.extent(0);
    match how {
        LabelReduce::Sum { squares, of, .. } => {
            let row = &mut result[label * columns..(label + 1) * columns];
            let (plain, squared) = row[1..].split_at_mut(Digits::of(of).columns());
            Digits::of(of).add(plain, v);
            if squares {
                let (high, low) = square(v);
                [high, low].into_iter().for_each(|v| Digits::of_squares(of).add(squared, v));
            }
            row[0] += 1.0;
        }
        LabelReduce::Shape { origin, .. } => {
            let row = &mut result[label * columns..(label + 1) * columns];
            let [y, x] = [(origin[0] + y) as u64, (origin[1] + x) as u64];
            row[0] += 1.0;
            let numbers = [(y, PLACE), (x, PLACE), (y * y, PRODUCT), (y * x, PRODUCT), (x * x, PRODUCT)];
            let mut sums = row[1..].iter_mut();
            for (v, digits) in numbers {
                let digit = |k| (v >> (k * DIGIT_BITS) & MASK) as f64;
                (0..digits).zip(&mut sums).for_each(|(k, sum)| *sum += digit(k));
            }
        }
        LabelReduce::Min { count, block } | LabelReduce::Max { count, block } => {
            // Normalises the sign of zeros, which `f64::min` and `f64::max` leave to the compiler.
            let (at, v) = (&mut result[(y / block - first) * count + label], v + 0.0);
            if if matches!(how, LabelReduce::Min { .. }) { v < *at } else { v > *at } {
                *at = v;
            }
        }
    }
}

/// Mask of one digit.
pub const MASK: u64 = (1 << DIGIT_BITS) - 1;

/// The contribution of a number to an exact sum: the first column, and the integers added from there on.
#[inline(always)]
pub fn digits(v: f64) -> (usize, [i64; 4]) {
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

/// A square as the nearest number, and the remainder.
#[inline(always)]
pub fn square(v: f64) -> (f64, f64) {
    let high = v * v;
    (high, if high.is_finite() { v.mul_add(v, -high) } else { 0.0 })
}

/// The sum of digits from digit `first` of `f64` on: the nearest number, and the number nearest to the remainder.
fn rounded(first: usize, digits: &[f64]) -> (f64, f64) {
    let Some(low) = digits.iter().position(|v| *v != 0.0) else { return (0.0, 0.0) };
    let top = digits.iter().rposition(|v| *v != 0.0).unwrap_or(low);
    let place = (DIGIT_BITS * (first + low)) as i32 - ONE as i32;
    // Below 2^126 and without subnormal parts, the sum is an integer that is rounded once.
    if top - low <= 3 && (-900..=800).contains(&place) {
        let of = digits[low..=top].iter().rev().fold(0i128, |v, digit| (v << DIGIT_BITS) + i128::from(*digit as i64));
        let high = of as f64;
        let scale = 2f64.powi(place);
        return (high * scale, (of - high as i128) as f64 * scale);
    }
    let mut all = [0i64; DIGITS];
    all[first..first + digits.len()].iter_mut().zip(digits).for_each(|(to, v)| *to = *v as i64);
    let high = nearest(&mut all);
    if !high.is_finite() {
        return (high, 0.0);
    }
    let (first, parts) = self::digits(high);
    parts.iter().enumerate().filter(|(_, part)| **part != 0).for_each(|(k, part)| all[first + k] -= part);
    (high, nearest(&mut all))
}

/// The number nearest to digits whose carries have not been propagated.
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
        // A negative carry out of the last digit: negates all digits and the sign.
        digits.iter_mut().for_each(|digit| *digit = -*digit);
        carry = carried(digits) - carry;
    }
    let magnitude = if carry > 0 { f64::INFINITY } else { assembled(digits) };
    if negative {
        digits.iter_mut().for_each(|digit| *digit = -*digit);
    }
    if negative { -magnitude } else { magnitude }
}

/// The number nearest to non-negative digits.
fn assembled(digits: &[i64]) -> f64 {
    let Some(top) = digits.iter().rposition(|digit| *digit != 0) else { return 0.0 };
    let first = top.saturating_sub(3);
    let whole =
        digits[first..=top].iter().rev().fold(0u128, |v, digit| v << DIGIT_BITS | u128::from(digit.unsigned_abs()));
    // Lower digits only break ties.
    let rest = digits[..first].iter().any(|digit| *digit != 0);
    let v = (whole | u128::from(rest)) as f64;
    // Scales by powers of two in steps: only the last step can leave the range.
    let mut place = (DIGIT_BITS * first) as i32 - 1074;
    let mut v = v;
    while place != 0 {
        let step = place.clamp(-1000, 1000);
        v *= 2f64.powi(step);
        place -= step;
    }
    v
}

impl ImageOperation for LabelReduce {
    fn kind(&self) -> &'static str {
        match self {
            LabelReduce::Sum { .. } => "label_sum",
            LabelReduce::Shape { .. } => "label_shape",
            LabelReduce::Min { .. } => "label_min",
            LabelReduce::Max { .. } => "label_max",
        }
    }

    fn name(&self) -> String {
        format!("{} {}", self.kind(), self.count())
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        ensure(inputs.len() == self.inputs(), || format!("it reads {} images, got {}", self.inputs(), inputs.len()))?;
        let (labels, image) = (inputs[0], inputs[self.inputs() - 1]);
        ensure(LabelReduce::labels(labels.1) && labels.0 == image.0, || {
            format!("{} {} are no labels of {}", labels.0, labels.1, image.0)
        })?;
        ensure(self.suits(labels.0, image.1), || format!("{self:?} of {} {}", labels.0, image.1))?;
        let (height, width) = self.extent(labels.0.height);
        let few = !self.adds_up() || labels.0.len() <= MOST_PIXELS;
        let fits = self.count() > 0 && (Shape::new(height, width, 1), DType::F64) == output && few;
        ensure(fits, || format!("{self:?} of {} in {} {}", image.0, output.0, output.1))
    }

    fn reads(&self, _: usize, need: Rect, of: Shape) -> InputRead {
        if self.adds_up() {
            return InputRead::whole(of);
        }
        InputRead::inside(Rect { rows: self.rows(need.rows).clipped(of.height), ..Rect::whole(of) })
    }

    fn access(&self, _: usize) -> Access {
        if self.adds_up() { Access::IN_PLACE } else { Access::Footprint }
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        None
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn computed(&self, need: Rect, of: Shape) -> Rect {
        if self.adds_up() { Rect::whole(of) } else { Rect { rows: need.rows, ..Rect::whole(of) } }
    }

    fn distribution(&self) -> Distribution {
        if self.adds_up() { Distribution::Partial(AllReduce::Sum) } else { Distribution::Rows }
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let of = inputs.first().unwrap_or(&output).0;
        LaunchEffort::of_rows(Family::Histogram, of, rows * self.block().unwrap_or(1), 1.0)
    }
}

impl SampleOperations for LabelReduce {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let (plane, dtype) = of.plane;
        let labels = (plane, DType::I32);
        let sample = |how: LabelReduce, inputs: &[ImageExtent]| {
            let (rows, columns) = how.extent(plane.height);
            Instance::of(how, inputs, (Shape::new(rows, columns, 1), DType::F64)).loose()
        };
        vec![
            sample(LabelReduce::Min { count: 3, block: 2 }, &[labels, of.plane]),
            sample(LabelReduce::Sum { count: 3, squares: false, of: dtype }, &[labels, of.plane]),
            sample(LabelReduce::Shape { count: 3, origin: [0, 3] }, &[labels]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_base::dtype::Pixel;

    fn sum(values: &[f64]) -> (f64, f64) {
        let of = Digits::of(DType::F64);
        let mut columns = vec![0.0; of.columns()];
        values.iter().for_each(|v| of.add(&mut columns, *v));
        of.rounded(&columns)
    }

    #[test]
    fn every_type_has_the_digits_of_its_pixels() {
        for dtype in DType::ALL {
            let ends = horus_base::dispatch!(dtype, T => [T::LOWEST.to_f64(), T::HIGHEST.to_f64(), 1.0, 0.0]);
            let more: &[f64] = match dtype {
                DType::F32 => &[f32::from_bits(1) as f64, f32::MAX as f64, f64::INFINITY, f64::NEG_INFINITY, f64::NAN],
                DType::F64 => &[f64::from_bits(1), f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN],
                _ => &[],
            };
            for v in ends.iter().chain(more) {
                for (of, v) in [(Digits::of(dtype), *v), (Digits::of_squares(dtype), square(*v).0)] {
                    let mut columns = vec![0.0; of.columns()];
                    of.add(&mut columns, v);
                    let (high, low) = of.rounded(&columns);
                    assert!(
                        high.to_bits() == (v + 0.0).to_bits() || v.is_nan() && high.is_nan(),
                        "{v} of {dtype}: {high}"
                    );
                    assert_eq!(low, 0.0);
                }
            }
        }
        assert_eq!([DType::U8, DType::U16, DType::I32, DType::F32].map(|t| Digits::of(t).columns()), [2, 2, 3, 16]);
    }

    #[test]
    fn what_is_rounded_at_once_is_what_digits_round_to() {
        // Sums of few digits, near powers of two and halfway between numbers.
        let sign = |k: usize| if k.is_multiple_of(2) { 1.0 } else { -1.0 };
        for k in 0..400 {
            let digits = [0, 1, 2, 3].map(|d| {
                sign(k / (1 << d)) * ((k * 7919 + d * 104_729) % (1 << 24)) as f64 * 2f64.powi((k % 29) as i32)
            });
            let digits = digits.map(f64::trunc);
            let (high, low) = rounded(44, &digits);
            let mut all = [0i64; DIGITS];
            all[44..48].iter_mut().zip(digits).for_each(|(to, v)| *to = v as i64);
            assert_eq!(high.to_bits(), nearest(&mut all).to_bits(), "{digits:?}");
            let (first, parts) = self::digits(high);
            parts.iter().enumerate().filter(|(_, p)| **p != 0).for_each(|(k, p)| all[first + k] -= p);
            assert_eq!(low, nearest(&mut all), "{digits:?}");
        }
    }

    #[test]
    fn a_number_is_the_sum_of_its_digits() {
        let small = f64::from_bits(1);
        for v in
            [0.0, 1.0, -1.0, 0.1, 1e300, -1e300, f64::MAX, f64::MIN, f64::MIN_POSITIVE, small, -7.0 * small, 1.0 / 3.0]
        {
            assert_eq!(sum(&[v]), (v, 0.0), "{v:e}");
        }
        // Every position of the lowest bit within a digit.
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
        // Halfway between two numbers, and slightly more.
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
