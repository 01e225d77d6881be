//! Linear filters, generalized convolutions and medians.

use horus_base::dtype::{Float, Pixel};
use horus_base::shape::{Border, Shape};
use horus_plan::ops::geometric::Flip;
use horus_plan::ops::neighbourhood::{
    Combine, Filter, Generalized, MedianSize, OrderFilter, Pairing, Reduce, Truncated,
};
use horus_plan::ops::windowed::{Ranked, Sliding, Windowed};
use horus_testing::cases::covering;
use horus_testing::pixels::{assert_same, borders, with_nan};
use horus_testing::reference::ReferenceImage;
use horus_testing::reference::geometric::flip;
use horus_testing::reference::neighbourhood::{correlate, order, separable};
use horus_testing::reference::windowed::windowed;

fn image<T: Pixel>(height: usize, width: usize, v: &[T]) -> ReferenceImage {
    ReferenceImage::new(Shape::new(height, width, 1), v.to_vec())
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

/// The numbers are those of SciPy 1.14 (`correlate1d`, which pairs, and `correlate`), of which whole ones but for a rounding are cut to one or
/// the other.
#[test]
fn truncated_filters_round_as_scipy_does() {
    let filter = |taps: &[f64], pairing| {
        let n = taps.len() as i32 / 2;
        let pairs = (1..=n).rev().flat_map(|k| [(0, -k), (0, k)]);
        let offsets: Vec<(i32, i32)> = match pairing {
            Pairing::Single => (-n..=n).map(|x| (0, x)).collect(),
            _ => std::iter::once((0, 0)).chain(pairs).collect(),
        };
        let taps: Vec<f64> = offsets.iter().map(|(_, x)| taps[(n + x) as usize]).collect();
        Truncated { window: Filter::sparse(offsets, taps), pairing, levels: None }
    };
    for (taps, pixel, paired, single) in [
        (&[0.1, 0.2, 0.4, 0.2, 0.1][..], 27u8, 27u8, 27u8),
        (&[0.1, 0.2, 0.4, 0.2, 0.1], 43, 43, 42),
        (&[0.1, 0.2, 0.4, 0.2, 0.1], 81, 81, 80),
        (&[0.15, 0.7, 0.15], 3, 2, 3),
        (&[0.15, 0.7, 0.15], 7, 7, 6),
    ] {
        let picture = image(1, 1, &[pixel]);
        let of = |pairing| order(&picture, &filter(taps, pairing).into(), Border::Replicate);
        assert_eq!(of(Pairing::Sum), image(1, 1, &[paired]), "{taps:?} of {pixel}");
        assert_eq!(of(Pairing::Single), image(1, 1, &[single]), "{taps:?} of {pixel}");
    }
    // -0.5 * (1 - 9) is 4 and -0.5 * (9 - 1) is -4: what is negative wraps around.
    let slope = filter(&[-0.5, 0.0, 0.5], Pairing::Difference);
    let line = image(1, 3, &[1u8, 1, 9]);
    assert_eq!(order(&line, &slope.clone().into(), Border::Constant(9.0)), image(1, 3, &[252u8, 4, 4]));
    let line = image(1, 3, &[1i16, 1, 9]);
    assert_eq!(order(&line, &slope.into(), Border::Constant(9.0)), image(1, 3, &[-4i16, 4, 4]));
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

/// The value in a place of the order, NaN being last.
fn in_place<T: Float>(values: Vec<T>, place: usize) -> T {
    let mut numbers: Vec<T> = values.into_iter().filter(|v| !v.is_nan()).collect();
    numbers.sort_by(|a, b| a.partial_cmp(b).unwrap());
    numbers.get(place).copied().unwrap_or(T::from_f64(f64::NAN))
}

fn mirrored(image: &ReferenceImage) -> ReferenceImage {
    flip(image, Flip::Both)
}

/// Checks that each filter is a function of the pixels under its square, wherever they lie.
fn orders_put_nan_last<T: Float>() {
    let (sizes, borders) = ([(1, 1), (2, 3), (1, 9), (11, 14)], borders());
    for [size, every, border] in covering([sizes.len(), 3, borders.len()]) {
        let ((h, w), every, border) = (sizes[size], [1, 2, 5][every], borders[border]);
        let image = image::<T>(h, w, &with_nan(h * w, size as u64, every));
        let turned = mirrored(&image);
        for radius in [1, 2, 4i32] {
            let offsets: Vec<_> = (-radius..=radius).flat_map(|y| (-radius..=radius).map(move |x| (y, x))).collect();
            let read = |y: usize, x: usize| {
                let at = |(dy, dx): &(i32, i32)| {
                    image.read::<T>(0, y.cast_signed() + *dy as isize, x.cast_signed() + *dx as isize, border)
                };
                offsets.iter().map(at).collect::<Vec<T>>()
            };
            let what = |name: &str| format!("{name} of radius {radius}, {h}x{w}, one in {every}, {border}");
            let check = |name: &str, f: &dyn Fn(&ReferenceImage) -> ReferenceImage, want: &dyn Fn(Vec<T>) -> T| {
                let got = f(&image);
                let want = ReferenceImage::from_fn(image.shape, |_, y, x| want(read(y, x)));
                assert_same(got.as_slice::<T>(), want.as_slice::<T>(), &what(name));
                assert_same(mirrored(&f(&turned)).as_slice::<T>(), got.as_slice::<T>(), &what(name));
            };
            let n = offsets.len();
            match radius {
                1 => check("median", &|i| order(i, &MedianSize::Three.into(), border), &|v| in_place(v, n / 2)),
                2 => check("median", &|i| order(i, &MedianSize::Five.into(), border), &|v| in_place(v, n / 2)),
                _ => {}
            }
            for place in [0, n / 3, n / 2, n - 1] {
                let rank = Windowed::Rank(Ranked::new(&offsets, place));
                let rank = Sliding { how: rank, border };
                check("rank", &|i| windowed(i, &rank, T::DTYPE), &|v| in_place(v, place));
            }
            for (reduce, nothing) in [(Reduce::Min, f64::INFINITY), (Reduce::Max, f64::NEG_INFINITY)] {
                let window = Filter::sparse(offsets.clone(), vec![0.0; n]);
                let g = OrderFilter::from(Generalized { window, combine: Combine::Pixel, reduce });
                check("extreme", &|i| order(i, &g, border), &|v| {
                    let numbers = v.into_iter().map(T::to_f64).filter(|v| !v.is_nan());
                    T::from_f64(numbers.fold(nothing, if reduce == Reduce::Min { f64::min } else { f64::max }))
                });
            }
        }
    }
}

#[test]
fn orders_put_nan_last_wherever_it_lies() {
    orders_put_nan_last::<f32>();
    orders_put_nan_last::<f64>();
}

#[test]
fn a_median_of_few_numbers_is_nan() {
    for pixels in [[1.0, 9.0], [9.0, 1.0]] {
        let mut all = [f32::NAN; 9];
        for at in [[0, 1], [0, 8], [3, 5], [7, 2]] {
            let mut all = all;
            (all[at[0]], all[at[1]]) = (pixels[0], pixels[1]);
            let found = order(&image(3, 3, &all), &MedianSize::Three.into(), Border::Constant(f64::NAN));
            assert!(found.at::<f32>(0, 1, 1).is_nan(), "{all:?}");
        }
        all[..5].copy_from_slice(&[4.0, 9.0, 1.0, 2.0, 9.0]);
        all.rotate_right(2);
        let found = order(&image(3, 3, &all), &MedianSize::Three.into(), Border::Replicate);
        assert_eq!(found.at::<f32>(0, 1, 1), 9.0);
    }
}

#[test]
#[should_panic(expected = "linear filter of u8")]
fn integers_are_converted_before_a_linear_filter() {
    correlate(&image(1, 1, &[1u8]), &Filter::row([1.0]), ZERO);
}
