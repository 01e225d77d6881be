//! Linear filters, generalized convolutions and medians.

use horus_base::dtype::Pixel;
use horus_base::shape::{Border, Shape};
use horus_plan::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, Reduce};
use horus_testing::reference::Image;
use horus_testing::reference::neighbourhood::{correlate, order, separable};

fn image<T: Pixel>(height: usize, width: usize, v: &[T]) -> Image {
    Image::new(Shape::new(height, width, 1), v.to_vec())
}
const ZERO: Border = Border::Constant(0.0);

#[test]
fn a_correlation_does_not_flip_and_a_flipped_filter_convolves() {
    let impulse = image(1, 5, &[0.0f32, 0.0, 1.0, 0.0, 0.0]);
    let even = Filter::row([1.0, 2.0, 3.0, 4.0]);
    assert_eq!(correlate(&impulse, &even, ZERO), image(1, 5, &[0.0f32, 4.0, 3.0, 2.0, 1.0]));
    assert_eq!(correlate(&impulse, &even.flipped(), ZERO), image(1, 5, &[1.0f32, 2.0, 3.0, 4.0, 0.0]));
}

#[test]
fn borders_continue_a_row_of_three() {
    let line = image(1, 3, &[1.0f64, 2.0, 4.0]);
    let outer = Filter::row([1.0, 0.0, 10.0]);
    for (border, expected) in [
        (Border::Reflect101, [22.0, 41.0, 22.0]),
        (Border::Reflect, [21.0, 41.0, 42.0]),
        (Border::Replicate, [21.0, 41.0, 42.0]),
        (Border::Wrap, [24.0, 41.0, 12.0]),
        (Border::Constant(7.0), [27.0, 41.0, 72.0]),
    ] {
        assert_eq!(correlate(&line, &outer, border), image(1, 3, &expected), "{border}");
    }
}

#[test]
fn a_single_pixel_is_its_own_neighbourhood() {
    let pixel = image(1, 1, &[3.0f32]);
    let filter = Filter::dense(3, 5, vec![1.0; 15]);
    for border in [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Wrap] {
        assert_eq!(correlate(&pixel, &filter, border), image(1, 1, &[45.0f32]), "{border}");
        assert_eq!(order(&pixel, &MedianSize::Five.into(), border), pixel, "{border}");
    }
    assert_eq!(correlate(&pixel, &filter, Border::Constant(1.0)), image(1, 1, &[17.0f32]));
}

#[test]
fn accumulation_is_fused_and_in_the_order_of_the_taps() {
    // 1 + 2^-24 * (1 + 2^-23) is just over half a unit: only a fused multiply-add rounds it up.
    let line = image(1, 2, &[1.0f32, 1.0 + f32::EPSILON]);
    let filter = Filter::sparse([(0, -1), (0, 0)], [1.0, 2f64.powi(-24)]);
    assert_eq!(correlate(&line, &filter, ZERO).at::<f32>(0, 0, 1), 1.0 + f32::EPSILON);
    // In another order the large values would not absorb the small one.
    let line = image(1, 3, &[1e8f32, 1.0, -1e8]);
    assert_eq!(correlate(&line, &Filter::row([1.0, 1.0, 1.0]), ZERO).at::<f32>(0, 0, 1), 0.0);
    let reordered = Filter::sparse([(0, -1), (0, 1), (0, 0)], [1.0; 3]);
    assert_eq!(correlate(&line, &reordered, ZERO).at::<f32>(0, 0, 1), 1.0);
}

#[test]
fn a_sum_of_negative_zeros_is_positive_and_nan_spreads() {
    let line = image(1, 4, &[-0.0f32, -0.0, 1.0, f32::NAN]);
    let out = correlate(&line, &Filter::row([1.0, 1.0, 0.0]), ZERO);
    assert_eq!(out, image(1, 4, &[0.0f32, 0.0, f32::NAN, f32::NAN]), "0 * NaN is NaN: no tap may be skipped");
}

#[test]
fn taps_are_rounded_to_the_image_type() {
    let filter = Filter::row([0.1]);
    assert_eq!(correlate(&image(1, 1, &[1.0f32]), &filter, ZERO), image(1, 1, &[0.1f32]));
    assert_eq!(correlate(&image(1, 1, &[1.0f64]), &filter, ZERO), image(1, 1, &[0.1f64]));
}

#[test]
fn the_column_pass_of_a_separable_filter_reads_the_constant() {
    let pixel = image(1, 1, &[1.0f32]);
    let (row, column) = (Filter::row([1.0, 1.0, 1.0]), Filter::column([1.0, 1.0, 1.0]));
    // Row pass: 10 + 1 + 10 = 21. Column pass: 10 + 21 + 10, where the dense 3x3 filter gives
    // 81.
    assert_eq!(separable(&pixel, &row, &column, Border::Constant(10.0)), image(1, 1, &[41.0f32]));
}

#[test]
fn erosion_and_dilation_of_bytes() {
    let picture = image(3, 3, &[9u8, 8, 7, 6, 5, 4, 3, 2, 1]);
    let flat = |reduce| Generalized { window: Filter::dense(3, 3, vec![0.0; 9]), combine: Combine::Pixel, reduce };
    assert_eq!(
        order(&picture, &flat(Reduce::Min).into(), Border::Replicate),
        image(3, 3, &[5u8, 4, 4, 2, 1, 1, 2, 1, 1])
    );
    assert_eq!(
        order(&picture, &flat(Reduce::Max).into(), Border::Replicate),
        image(3, 3, &[9u8, 9, 8, 9, 9, 8, 6, 6, 5])
    );
}

#[test]
fn generalized_convolutions_saturate_at_each_step_and_convert_weights() {
    let line = image(1, 3, &[200u8, 100, 3]);
    let g = |combine, reduce| Generalized { window: Filter::row([1.4, 2.5, 300.0]), combine, reduce };
    // Weights are 1, 2 and 255.
    let border = Border::Constant(1.0);
    assert_eq!(order(&line, &g(Combine::Mul, Reduce::Sum).into(), border), image(1, 3, &[255u8, 255, 255]));
    assert_eq!(order(&line, &g(Combine::Sub, Reduce::Max).into(), border), image(1, 3, &[198u8, 199, 99]));
    assert_eq!(order(&line, &g(Combine::Min, Reduce::Product).into(), border), image(1, 3, &[200u8, 6, 2]));
}

#[test]
fn extremes_of_a_window_ignore_nan_and_an_all_nan_window_gives_the_identity() {
    let line = image(1, 3, &[f32::NAN, 2.0, f32::NAN]);
    let max =
        |n: usize| Generalized { window: Filter::row(vec![0.0; n]), combine: Combine::Pixel, reduce: Reduce::Max };
    assert_eq!(order(&line, &max(3).into(), Border::Replicate), image(1, 3, &[2.0f32, 2.0, 2.0]));
    let single = order(&line, &max(1).into(), Border::Replicate);
    assert_eq!(single, image(1, 3, &[f32::NEG_INFINITY, 2.0, f32::NEG_INFINITY]));
}

#[test]
fn a_median_removes_a_spike() {
    let picture = image(3, 3, &[1i32, 2, 3, 4, 500, 6, 7, 8, 9]);
    assert_eq!(order(&picture, &MedianSize::Three.into(), Border::Replicate).at::<i32>(0, 1, 1), 6);
    assert_eq!(order(&picture, &MedianSize::Three.into(), Border::Replicate).at::<i32>(0, 0, 0), 2);
}

#[test]
#[should_panic(expected = "linear filter of u8")]
fn integers_are_converted_before_a_linear_filter() {
    correlate(&image(1, 1, &[1u8]), &Filter::row([1.0]), ZERO);
}
