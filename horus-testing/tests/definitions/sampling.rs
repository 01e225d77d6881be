//! Samples at given positions.

use horus_base::dtype::{DType, Scalar};
use horus_base::shape::{Border, Shape};
use horus_plan::ops::sampling::Sampling;
use horus_testing::reference::sampling::remap;
use horus_testing::reference::{ReferenceImage, convert};

fn row(v: &[f32]) -> ReferenceImage {
    ReferenceImage::new(Shape::new(1, v.len(), 1), v.to_vec())
}

#[test]
fn samples_lie_between_pixels_and_what_is_nowhere_is_no_number() {
    let at = row(&[0.0, 0.5, 1.75, -0.5, 2.5, f32::NAN, f32::INFINITY]);
    let rows = row(&[0.0; 7]);
    let of = |image: &ReferenceImage, how, border| remap(image, &[&rows, &at], how, border, None);
    let image = row(&[10.0, 20.0, 40.0]);
    let found = of(&image, Sampling::Linear, Border::Constant(0.0));
    assert_eq!(found, row(&[10.0, 15.0, 35.0, 5.0, 20.0, f32::NAN, f32::NAN]));
    let found = of(&image, Sampling::Nearest, Border::Replicate);
    assert_eq!(found, row(&[10.0, 20.0, 40.0, 10.0, 40.0, f32::NAN, f32::NAN]));
    let bytes = convert(&image, DType::U8);
    let found = of(&bytes, Sampling::Linear, Border::Replicate);
    assert_eq!(found, ReferenceImage::new(Shape::new(1, 7, 1), vec![10u8, 15, 35, 10, 40, 0, 0]));
    let found = remap(&bytes, &[&rows, &at], Sampling::Linear, Border::Replicate, Some(Scalar::U8(7)));
    assert_eq!(found, ReferenceImage::new(Shape::new(1, 7, 1), vec![10u8, 15, 35, 7, 7, 7, 7]));
}

#[test]
fn volumes_are_sampled_between_levels() {
    let image = ReferenceImage::from_fn(Shape::volume(2, 2, 2, 1), |z, y, x| (4 * z + 2 * y + x) as f64);
    let one = |v: f64| ReferenceImage::new(Shape::new(1, 1, 1), vec![v]);
    let (z, y, x) = (one(0.5), one(0.25), one(1.0));
    let found = remap(&image, &[&z, &y, &x], Sampling::Linear, Border::Replicate, None);
    assert_eq!(found.at::<f64>(0, 0, 0), 2.0 + 0.5 + 1.0);
    let beyond = remap(&image, &[&one(9.0), &y, &x], Sampling::Nearest, Border::Constant(-3.0), None);
    assert_eq!(beyond.at::<f64>(0, 0, 0), -3.0);
}
