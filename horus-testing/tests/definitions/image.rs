//! Images of the oracle.

use horus_base::shape::{Border, Shape};
use horus_testing::reference::ReferenceImage;

#[test]
fn pixels_lie_plane_by_plane_and_row_by_row() {
    let image = ReferenceImage::from_fn(Shape::new(2, 3, 2), |c, y, x| (100 * c + 10 * y + x) as u8);
    assert_eq!(image.as_slice::<u8>(), &[0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112]);
    assert_eq!(image.at::<u8>(1, 0, 2), 102);
}

#[test]
fn equality_is_of_bits_and_all_nans_are_equal() {
    let one = |v: f32| ReferenceImage::new(Shape::new(1, 1, 1), vec![v]);
    assert_eq!(one(f32::NAN), one(-f32::NAN));
    assert_ne!(one(f32::NAN), one(1.0));
    assert_ne!(one(0.0), one(-0.0));
    assert_ne!(one(1.0), ReferenceImage::new(Shape::new(1, 1, 1), vec![1.0f64]));
}

#[test]
fn a_constant_border_is_read_where_either_axis_leaves_the_image() {
    let image = ReferenceImage::new(Shape::new(1, 2, 1), vec![1u8, 2]);
    let border = Border::Constant(300.0);
    let row: Vec<u8> = (-1..3).map(|x| image.read(0, 0, x, border)).collect();
    assert_eq!(row, [255, 1, 2, 255]);
    assert_eq!(image.read::<u8>(0, -1, 0, border), 255);
    assert_eq!(image.read::<u8>(0, -1, 2, Border::Reflect101), 1);
}
