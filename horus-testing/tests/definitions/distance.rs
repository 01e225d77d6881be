//! Distances to the background.

use horus_base::dtype::Scalar;
use horus_base::shape::{Axis, Shape};
use horus_plan::ops::distance::{JoinedOffsets, Metric, NONE, NearestPixel, NearestResult, Spacing};
use horus_testing::reference::distance::{nearest, nearest_on_line};

#[test]
fn the_first_of_equals_is_the_nearest() {
    let column = [false, true, true, true, false];
    assert_eq!([0, 1, 2, 3, 4].map(|y| nearest_on_line(&column, y)), [0, -1, -2, 1, 0]);
    assert_eq!(nearest_on_line(&[true; 3], 1), NONE);
    let along_rows = |metric, found| NearestPixel { along: Axis::Columns, offsets: JoinedOffsets::ROWS, metric, found };
    let of = |metric, found| (0..5).map(move |x| nearest(&[NONE, 0, NONE, NONE, 2], x, along_rows(metric, found)));
    let columns: Vec<_> = of(Metric::Euclidean(Spacing::UNIT), NearestResult::Column).collect();
    assert_eq!(columns, [1, 0, -1, -2, 0].map(Scalar::I32));
    let steps: Vec<_> = of(Metric::Taxicab, NearestResult::Distance).collect();
    assert_eq!(steps, [1, 0, 1, 2, 2].map(Scalar::I32));
    let none = nearest(&[NONE; 2], 0, along_rows(Metric::Euclidean(Spacing::UNIT), NearestResult::Distance));
    assert_eq!(none, Scalar::F64(f64::INFINITY));
}

#[test]
fn offsets_of_levels_and_rows_are_one_number() {
    for (depth, height) in [(2, 1), (2, 2), (3, 5), (64, 129), (1 << 14, 1 << 14)] {
        let offsets = JoinedOffsets::of(Shape::volume(depth, height, 1, 1)).unwrap();
        let ends = |n: i32| [1 - n, (1 - n) / 2, 0, n / 3, n - 1];
        for level in ends(depth as i32) {
            for row in ends(height as i32) {
                let one = offsets.join([level, row]);
                assert!(one != NONE && offsets.split(one) == [level, row], "{level} {row} of {depth} {height}: {one}");
            }
        }
    }
    assert_eq!(JoinedOffsets::of(Shape::volume(1 << 15, 1 << 15, 1, 1)), None);
    assert_eq!(JoinedOffsets::of(Shape::new(1 << 30, 1, 1)), Some(JoinedOffsets::ROWS));
    let how =
        |along, found| NearestPixel { along, offsets: JoinedOffsets { row_bits: 4 }, metric: Metric::Taxicab, found };
    // Pixels two levels before at the second row, and at the place itself of the fourth.
    let levels = [NONE, -2, NONE, 0];
    let joined = [0, 1, 2, 3].map(|y| nearest(&levels, y, how(Axis::Rows, NearestResult::Joined)));
    assert_eq!(joined, [-2 * 16 + 1, -2 * 16, 1, 0].map(Scalar::I32));
    let along = |x, found| nearest(&[-2 * 16 + 1, NONE, 1], x, how(Axis::Columns, found));
    assert_eq!(
        [NearestResult::Distance, NearestResult::Level, NearestResult::Row, NearestResult::Column]
            .map(|found| along(0, found)),
        [3, -2, 1, 0].map(Scalar::I32)
    );
    assert_eq!(along(1, NearestResult::Column), Scalar::I32(1));
}
