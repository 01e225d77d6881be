//! Nearest background pixels by trying all.

use horus_base::dtype::Scalar;
use horus_plan::ops::distance::{Metric, NONE, NearestPixel, Sought};

/// The offset from row `y` of the nearest row of a column with background: of two the one above.
pub fn nearest_row(column: &[bool], y: usize) -> i32 {
    let rows = (0..column.len()).filter(|row| !column[*row]);
    rows.min_by_key(|row| row.abs_diff(y)).map_or(NONE, |row| row as i32 - y as i32)
}

/// The result for the pixel of column `x` in a row of offsets.
pub fn nearest(rows: &[i32], x: usize, how: NearestPixel) -> Scalar {
    let mut best: Option<(f64, usize)> = None;
    for (column, down) in rows.iter().enumerate().filter(|(_, down)| **down != NONE) {
        let measure = how.metric.measure(f64::from(*down), column as f64 - x as f64);
        if best.is_none_or(|(least, _)| measure < least) {
            best = Some((measure, column));
        }
    }
    match (how.found, how.metric) {
        (Sought::Distance, Metric::Euclidean(_)) => Scalar::F64(best.map_or(f64::INFINITY, |(v, _)| v.sqrt())),
        (Sought::Distance, _) => Scalar::I32(best.map_or(-1, |(v, _)| v as i32)),
        (Sought::Row, _) => Scalar::I32(best.map_or(NONE, |(_, column)| rows[column])),
        (Sought::Column, _) => Scalar::I32(best.map_or(NONE, |(_, column)| column as i32 - x as i32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_plan::ops::distance::Spacing;

    #[test]
    fn the_first_of_equals_is_the_nearest() {
        let column = [false, true, true, true, false];
        assert_eq!([0, 1, 2, 3, 4].map(|y| nearest_row(&column, y)), [0, -1, -2, 1, 0]);
        assert_eq!(nearest_row(&[true; 3], 1), NONE);
        let of =
            |metric, found| (0..5).map(move |x| nearest(&[NONE, 0, NONE, NONE, 2], x, NearestPixel { metric, found }));
        let columns: Vec<_> = of(Metric::Euclidean(Spacing::UNIT), Sought::Column).collect();
        assert_eq!(columns, [1, 0, -1, -2, 0].map(Scalar::I32));
        let steps: Vec<_> = of(Metric::Taxicab, Sought::Distance).collect();
        assert_eq!(steps, [1, 0, 1, 2, 2].map(Scalar::I32));
        let none =
            nearest(&[NONE; 2], 0, NearestPixel { metric: Metric::Euclidean(Spacing::UNIT), found: Sought::Distance });
        assert_eq!(none, Scalar::F64(f64::INFINITY));
    }
}
