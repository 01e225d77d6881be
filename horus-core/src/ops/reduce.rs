//! Reductions, in one fixed order that no strip, rank or thread count changes.
//!
//! A reduction over an image runs in two steps: along each row ([`RowReduce`], local to whoever holds the row), then
//! over the columns of row results, plane by plane ([`fold_planes`]). The order is anchored in the image:
//!
//! 1. The pixels of a row, and the row results of a plane, are cut into *segments* of 1024 ([`SEGMENT`]), which begin at
//!    columns (rows) 0, 1024, 2048 and so on; the last one may be shorter.
//! 2. Element `i` of a segment goes to lane `i mod 64`, lanes accumulate in order from the identity, then lanes are combined
//!    in halves (0 with 32, 1 with 33, ..., then 0 with 16, ...).
//! 3. Segments are combined from the first to the last, beginning with the identity; then planes in the same way.
//!
//! So whoever holds a segment (a tile, a block of rows) can reduce it by itself, and up to 1024 elements are one tree.

use crate::dtype::{DType, Pixel};

/// Number of lanes of the fixed order.
pub const LANES: usize = 64;

/// Elements of a segment of the fixed order.
pub const SEGMENT: usize = 1024;

/// What is reduced along each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowReduce {
    /// Sum in `f64`; yields `f64`.
    Sum,
    /// Sum of `(pixel - mean)^2` in `f64`, the mean being a second, 1x1 `f64` operand; yields `f64`.
    SquaredDeviation,
    /// The smallest pixel, ignoring NaN; keeps the type.
    Min,
    /// The largest pixel, ignoring NaN; keeps the type.
    Max,
}

impl RowReduce {
    /// The type of the result for an image of type `dtype`.
    pub const fn result(self, dtype: DType) -> DType {
        match self {
            RowReduce::Sum | RowReduce::SquaredDeviation => DType::F64,
            RowReduce::Min | RowReduce::Max => dtype,
        }
    }

    /// How the row results are combined.
    pub const fn fold(self) -> Fold {
        match self {
            RowReduce::Sum | RowReduce::SquaredDeviation => Fold::Sum,
            RowReduce::Min => Fold::Min,
            RowReduce::Max => Fold::Max,
        }
    }

    /// Name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            RowReduce::Sum => "row_sum",
            RowReduce::SquaredDeviation => "row_squared_deviation",
            RowReduce::Min => "row_min",
            RowReduce::Max => "row_max",
        }
    }
}

/// How a sequence is reduced to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The sum (of `f64`).
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Fold {
    /// The value that changes nothing.
    pub fn identity<T: Pixel>(self) -> T {
        match self {
            Fold::Sum => T::ZERO,
            Fold::Min => T::HIGHEST,
            Fold::Max => T::LOWEST,
        }
    }

    /// Combines two values.
    #[inline(always)]
    pub fn combine<T: Pixel>(self, a: T, b: T) -> T {
        match self {
            Fold::Sum => a.add(b),
            Fold::Min => a.min(b),
            Fold::Max => a.max(b),
        }
    }

    /// Name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Fold::Sum => "fold_sum",
            Fold::Min => "fold_min",
            Fold::Max => "fold_max",
        }
    }
}

/// Reduces `values`, a row or a column from its beginning, in the fixed order; the definition of every reduction. An empty
/// sequence gives the identity.
pub fn fold<T: Pixel>(how: Fold, values: impl IntoIterator<Item = T>) -> T {
    let mut values = values.into_iter().peekable();
    let mut total = how.identity::<T>();
    while values.peek().is_some() {
        let mut lanes = [how.identity::<T>(); LANES];
        for (i, v) in values.by_ref().take(SEGMENT).enumerate() {
            let lane = &mut lanes[i % LANES];
            *lane = how.combine(*lane, v);
        }
        total = how.combine(total, combine_lanes(how, lanes));
    }
    total
}

/// Reduces planes, each by [`fold`], to one value.
pub fn fold_planes<T: Pixel, P: IntoIterator<Item = T>>(how: Fold, planes: impl IntoIterator<Item = P>) -> T {
    planes.into_iter().fold(how.identity(), |total, plane| how.combine(total, fold(how, plane)))
}

/// The lanes of a segment combined in halves.
pub fn combine_lanes<T: Pixel>(how: Fold, mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = how.combine(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// The bin of `v` in a histogram of `bins` equal bins over `lo..=hi`, or `None` outside and for NaN. The last bin is
/// closed. Computed in `f64` as `floor((v - lo) / (hi - lo) * bins)`: `numpy.histogram` can differ for a value that
/// lies on a bin edge which binary cannot represent, because it corrects against its rounded edges.
#[inline(always)]
pub fn bin_of(v: f64, lo: f64, hi: f64, bins: usize) -> Option<usize> {
    if !(v >= lo && v <= hi) {
        return None;
    }
    let i = ((v - lo) / (hi - lo) * bins as f64) as usize;
    Some(i.min(bins - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_order_sums_exactly_what_is_exact() {
        let v: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(fold(Fold::Sum, v.iter().copied()), 499_500.0);
        assert_eq!(fold(Fold::Min, v.iter().copied()), 0.0);
        assert_eq!(fold(Fold::Max, v.iter().copied()), 999.0);
        assert_eq!(fold(Fold::Sum, std::iter::empty::<f64>()), 0.0);
    }

    #[test]
    fn the_order_is_anchored_at_segments_and_planes() {
        // 1e17 + 1 is 1e17. In one segment the lanes of 0 and 64 cancel before lane 1 comes; in the next it is too late.
        let sum = |len: usize, at: &[(usize, f64)]| {
            let mut v = vec![0.0; len];
            at.iter().for_each(|(i, x)| v[*i] = *x);
            fold(Fold::Sum, v)
        };
        assert_eq!(sum(1024, &[(0, 1e17), (960, -1e17), (1023, 1.0)]), 1.0);
        assert_eq!(sum(1026, &[(0, 1e17), (1024, -1e17), (1025, 1.0)]), 0.0);
        assert_eq!(sum(3000, &[(0, 1e17), (1024, -1e17), (2048, 1.0)]), 1.0);
        assert_eq!(fold_planes(Fold::Sum, [vec![1e17], vec![-1e17], vec![1.0]]), 1.0);
        assert_eq!(fold_planes(Fold::Sum, [vec![1e17], vec![-1e17, 1.0]]), 0.0);
        assert_eq!(fold_planes(Fold::Max, std::iter::empty::<Vec<u8>>()), 0);
    }

    #[test]
    fn extremes_ignore_nan() {
        assert_eq!(fold(Fold::Max, [f32::NAN, 2.0, f32::NAN]), 2.0);
    }

    #[test]
    fn the_last_bin_is_closed() {
        assert_eq!(bin_of(1.0, 0.0, 1.0, 4), Some(3));
        assert_eq!(bin_of(0.25, 0.0, 1.0, 4), Some(1));
        assert_eq!(bin_of(-0.1, 0.0, 1.0, 4), None);
        assert_eq!(bin_of(f64::NAN, 0.0, 1.0, 4), None);
    }
}
