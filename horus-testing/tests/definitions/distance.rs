//! Distances to the background.

use horus_base::dtype::Scalar;
use horus_plan::ops::distance::{Metric, NONE, NearestPixel, Sought, Spacing};
use horus_testing::reference::distance::{nearest, nearest_row};

#[test]
fn the_first_of_equals_is_the_nearest() {
    let column = [false, true, true, true, false];
    assert_eq!([0, 1, 2, 3, 4].map(|y| nearest_row(&column, y)), [0, -1, -2, 1, 0]);
    assert_eq!(nearest_row(&[true; 3], 1), NONE);
    let of = |metric, found| (0..5).map(move |x| nearest(&[NONE, 0, NONE, NONE, 2], x, NearestPixel { metric, found }));
    let columns: Vec<_> = of(Metric::Euclidean(Spacing::UNIT), Sought::Column).collect();
    assert_eq!(columns, [1, 0, -1, -2, 0].map(Scalar::I32));
    let steps: Vec<_> = of(Metric::Taxicab, Sought::Distance).collect();
    assert_eq!(steps, [1, 0, 1, 2, 2].map(Scalar::I32));
    let none =
        nearest(&[NONE; 2], 0, NearestPixel { metric: Metric::Euclidean(Spacing::UNIT), found: Sought::Distance });
    assert_eq!(none, Scalar::F64(f64::INFINITY));
}
