//! Means and ranks under windows.

use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Border, Shape};
use horus_plan::ops::Sliding;
use horus_plan::ops::neighbourhood::Reach;
use horus_plan::ops::windowed::{BoxMean, Ranked, Windowed};
use horus_testing::reference::ReferenceImage;
use horus_testing::reference::windowed::windowed;

fn image<T: Pixel>(height: usize, width: usize, v: &[T]) -> ReferenceImage {
    ReferenceImage::new(Shape::new(height, width, 1), v.to_vec())
}

/// By `scipy.ndimage.rank_filter` with a footprint of 3x3x3 pixels.
#[test]
fn ranks_across_levels_are_those_of_scipy() {
    let volume = ReferenceImage::new(Shape::volume(3, 2, 2, 1), vec![5u8, 1, 7, 3, 9, 2, 8, 4, 6, 0, 11, 10]);
    let offsets = [(-1, 0, 0), (0, -1, 0), (0, 0, 0), (0, 0, 1), (1, 1, -1)];
    let at = |place, border| applied(&volume, Windowed::Rank(Ranked::across(offsets, place)), border, DType::U8);
    let found = |border| at(3, border).numbers();
    assert_eq!(found(Border::Reflect), [5.0, 1.0, 7.0, 3.0, 9.0, 2.0, 9.0, 4.0, 9.0, 2.0, 11.0, 10.0]);
    assert_eq!(found(Border::Constant(4.0)), [4.0, 4.0, 5.0, 4.0, 5.0, 4.0, 8.0, 4.0, 6.0, 4.0, 10.0, 4.0]);
}

fn mean(up: usize, down: usize, left: usize, right: usize) -> Windowed {
    Windowed::Mean(BoxMean::over(Reach { up, down, left, right }))
}

fn applied(image: &ReferenceImage, how: Windowed, border: Border, dtype: DType) -> ReferenceImage {
    windowed(image, &Sliding { how, border }, dtype)
}

#[test]
fn means_add_the_smallest_powers_first() {
    // 1e8 absorbs 1: the sum of five pixels is a + ((b + c) + (d + e)).
    let line = image(1, 5, &[1.0f32, 1e8, -1e8, 3.0, 4.0]);
    let out = applied(&line, mean(0, 0, 2, 2), Border::Wrap, DType::F32);
    assert_eq!(out.at::<f32>(0, 0, 2), 8.0 / 5.0);
    let three = applied(&image(1, 3, &[1e8f32, 1.0, -1e8]), mean(0, 0, 1, 1), Border::Wrap, DType::F32);
    assert_eq!(three.at::<f32>(0, 0, 1), 0.0, "1e8 + (1 - 1e8)");
}

#[test]
fn means_of_integers_are_of_exact_sums() {
    let picture = image(2, 3, &[200u8, 255, 255, 255, 255, 0]);
    let out = applied(&picture, mean(0, 1, 1, 1), Border::Constant(300.0), DType::F32);
    let want = [965.0f32 + 255.0, 1220.0, 255.0 * 4.0];
    let want = want.map(|sum| (f64::from(sum + 0.0) / 6.0) as f32);
    assert_eq!(out.at::<f32>(0, 0, 1), want[1]);
    assert_eq!(out.at::<f32>(0, 0, 2), ((255.0 * 5.0) / 6.0) as f32);
    let sums = Windowed::Mean(BoxMean { reach: Reach { left: 1, ..Reach::NONE }, count: 0 });
    let out = applied(&picture, sums, Border::Replicate, DType::F64);
    assert_eq!([out.at::<f64>(0, 0, 0), out.at::<f64>(0, 0, 1)], [400.0, 455.0]);
}

/// The expected numbers are exact: `numpy.var` of the same windows without their pedestal.
#[test]
fn variances_are_those_about_the_mean_of_the_window() {
    let line = [1.0, 4.0, 2.0, 8.0, 5.0, 7.0, 0.0f64];
    let want = [2.0 / 9.0 * 7.0, 56.0 / 9.0, 6.0, 14.0 / 9.0];
    for pedestal in [0.0, 1e8, -3e12] {
        let picture = image(1, 7, &line.map(|v| v + pedestal));
        let how = Windowed::Variance(BoxMean::over(Reach { left: 1, right: 1, ..Reach::NONE }));
        let out = applied(&picture, how, Border::Reflect101, DType::F64);
        for (x, want) in (1..5).zip(want) {
            let found = out.at::<f64>(0, 0, x);
            assert!((found - want).abs() < 1e-14, "{found} is not {want} on {pedestal}");
        }
    }
}

#[test]
fn ranks_order_zeros_by_sign_and_put_nan_last() {
    let line = image(1, 5, &[0.0f32, f32::NAN, -0.0, 2.0, f32::NEG_INFINITY]);
    let all: Vec<_> = (-2..=2).map(|x| (0, x)).collect();
    let place = |place| applied(&line, Windowed::Rank(Ranked::new(&all, place)), Border::Wrap, DType::F32);
    let got: Vec<u32> = (0..4).map(|p| place(p).at::<f32>(0, 0, 2).to_bits()).collect();
    assert_eq!(got, [f32::NEG_INFINITY, -0.0, 0.0, 2.0].map(f32::to_bits));
    assert!(place(4).at::<f32>(0, 0, 2).is_nan());
}
