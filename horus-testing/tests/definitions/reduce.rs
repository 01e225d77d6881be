//! Reductions.

use horus_base::shape::Shape;
use horus_plan::ops::reduce::{Fold, RowReduce};
use horus_testing::reference::ReferenceImage;
use horus_testing::reference::reduce::{fold, histogram, rows};

#[test]
fn rows_reduce_to_a_column_per_plane() {
    let image = ReferenceImage::new(Shape::new(2, 3, 2), vec![1u8, 2, 3, 4, 5, 6, 7, 8, 9, 255, 255, 255]);
    let column = Shape::new(2, 1, 2);
    assert_eq!(rows(&image, RowReduce::Sum, None), ReferenceImage::new(column, vec![6.0, 15.0, 24.0, 765.0]));
    assert_eq!(rows(&image, RowReduce::Min, None), ReferenceImage::new(column, vec![1u8, 4, 7, 255]));
    assert_eq!(rows(&image, RowReduce::Max, None), ReferenceImage::new(column, vec![3u8, 6, 9, 255]));
    let mean = ReferenceImage::new(Shape::new(1, 1, 1), vec![2.0f64]);
    let squares = rows(&image, RowReduce::SquaredDeviation, Some(&mean));
    assert_eq!(
        squares,
        ReferenceImage::new(column, vec![2.0, 4.0 + 9.0 + 16.0, 25.0 + 36.0 + 49.0, 3.0 * 253.0 * 253.0])
    );
}

#[test]
fn everything_folds_into_one_value_across_planes() {
    let image = ReferenceImage::new(Shape::new(2, 1, 2), vec![1.5f64, -2.0, 4.0, 0.25]);
    let one = |v: f64| ReferenceImage::new(Shape::new(1, 1, 1), vec![v]);
    assert_eq!(fold(&image, Fold::Sum), one(3.75));
    assert_eq!(fold(&image, Fold::Min), one(-2.0));
    assert_eq!(fold(&image, Fold::Max), one(4.0));
}

#[test]
fn the_order_is_that_of_the_lanes() {
    // Elements 0 and 64 share a lane, so the large ones cancel before the small one of another
    // lane is added.
    let mut v = vec![0.0f64; 65];
    (v[0], v[1], v[64]) = (1e17, 1.0, -1e17);
    let image = ReferenceImage::new(Shape::new(1, 65, 1), v.clone());
    assert_eq!(rows(&image, RowReduce::Sum, None).at::<f64>(0, 0, 0), 1.0);
    assert_eq!(v.iter().sum::<f64>(), 0.0, "the plain order loses it");
}

#[test]
fn extremes_ignore_nan_and_sums_of_negative_zeros_are_positive() {
    let row = |v: &[f32]| ReferenceImage::new(Shape::new(1, v.len(), 1), v.to_vec());
    let max = |v: &[f32]| rows(&row(v), RowReduce::Max, None).at::<f32>(0, 0, 0);
    assert_eq!(max(&[f32::NAN, -3.0]), -3.0);
    assert_eq!(max(&[f32::NAN]), f32::NEG_INFINITY, "nothing but NaN leaves the identity");
    assert_eq!(rows(&row(&[-0.0, -0.0]), RowReduce::Sum, None).at::<f64>(0, 0, 0).to_bits(), 0);
}

#[test]
fn histograms_count_all_planes_and_nothing_outside() {
    let image = ReferenceImage::new(Shape::new(1, 3, 2), vec![-1.0f32, 0.0, 0.5, 1.0, f32::NAN, 0.49]);
    assert_eq!(histogram(&image, 2, 0.0, 1.0), ReferenceImage::new(Shape::new(1, 2, 1), vec![2.0, 2.0]));
}
