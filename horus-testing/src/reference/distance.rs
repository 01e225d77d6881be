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
