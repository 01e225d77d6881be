//! Neighbourhood operations: linear filters, generalized convolutions and medians.

use super::{Image, Pixel};
use horus_base::dtype::Float;
use horus_base::shape::{Border, Shape};
use horus_plan::ops::Fourier;
use horus_plan::ops::footprint::Rect;
use horus_plan::ops::fourier::Complex;
use horus_plan::ops::neighbourhood::{Combine, Filter, Generalized, MedianSize, OrderFilter, Reduce};

/// The pixel read at offset (`dy`, `dx`) from pixel (`y`, `x`).
fn neighbour<T: Pixel>(image: &Image, c: usize, y: usize, x: usize, (dy, dx): (isize, isize), border: Border) -> T {
    image.read(c, y.cast_signed() + dy, x.cast_signed() + dx, border)
}

/// Linear filter, not flipped. From +0, tap after tap: `accumulator = fma(tap, pixel,
/// accumulator)`, the taps rounded to the image's type.
///
/// # Panics
/// If the image is not of a float type: a linear filter of integers is recorded as a conversion and
/// a filter.
pub fn correlate(image: &Image, filter: &Filter, border: Border) -> Image {
    assert!(image.dtype().is_float(), "a linear filter of {} pixels", image.dtype());
    horus_base::dispatch_float!(image.dtype(), T => Image::from_fn(image.shape, |c, y, x| {
        correlate_at::<T>(filter, |dy, dx| neighbour(image, c, y, x, (dy, dx), border))
    }))
}

/// The response of a linear filter to the values of `read` at its offsets.
pub(super) fn correlate_at<T: Float>(filter: &Filter, read: impl Fn(isize, isize) -> T) -> T {
    let mut accumulator = T::ZERO;
    for (&tap, (dy, dx)) in filter.taps().iter().zip(filter.offsets()) {
        accumulator = T::from_f64(tap).fma(read(dy, dx), accumulator);
    }
    accumulator
}

/// The responses of linear filters, by transforms of tiles, in the planes that [`Fourier`] names.
pub fn fourier(image: &Image, how: &Fourier) -> Image {
    let shape = Shape { channels: image.shape.channels * how.filters.len(), ..image.shape };
    let all = Rect::whole(shape);
    horus_base::dispatch_float!(image.dtype(), T => {
        let mut out = vec![T::ZERO; shape.len()];
        let read = |c, y, x| image.read::<T>(c, y, x, how.border);
        fourier_of(how, shape, all, &read, &mut |plane, y, x, v| {
            out[(plane * shape.height + y.cast_unsigned()) * shape.width + x] = v;
        });
        Image::from_fn(shape, |plane, y, x| out[(plane * shape.height + y) * shape.width + x])
    })
}

/// Passes the responses in `part` of a result of shape `shape` to `put`.
pub(super) fn fourier_of<T: Float>(
    how: &Fourier,
    shape: Shape,
    part: Rect,
    read: &dyn Fn(usize, isize, isize) -> T,
    put: &mut dyn FnMut(usize, isize, usize, T),
) {
    let ([height, width], [down, across], reach) = (how.tile, how.step().map(usize::cast_signed), how.reach());
    let spectra: Vec<Vec<Complex>> = how.filters.iter().map(|f| how.spectrum(f)).collect();
    let (filters, channels) = (how.filters.len(), shape.channels / how.filters.len());
    let all = how.pairs(part);
    let planes = (0..shape.planes() / filters)
        .flat_map(|c| (all.rows.start..all.rows.end).step_by(down as usize).map(move |y| (c, y)));
    for (c, top) in planes {
        for left in (all.columns.start..all.columns.end).step_by(2 * across as usize) {
            let corners = [left, left + across];
            let tiles = corners.map(|left| {
                let at = |i: usize| {
                    let (y, x) = ((i / width).cast_signed(), (i % width).cast_signed());
                    read(c, top - reach.up.cast_signed() + y, left - reach.left.cast_signed() + x)
                };
                (0..height * width).map(at).collect::<Vec<T>>()
            });
            let taken = [0, 1].map(|k| tiles[k].iter().all(|v| v.abs() <= T::from_f64(Fourier::largest(T::DTYPE))));
            for (f, filter) in how.filters.iter().enumerate() {
                let part_of = |k: usize, i: usize| if taken[k] { tiles[k][i].to_f64() } else { 0.0 };
                let mut pixels: Vec<Complex> = (0..height * width).map(|i| [part_of(0, i), part_of(1, i)]).collect();
                how.respond(&mut pixels, &spectra[f]);
                let plane = (c / channels * filters + f) * channels + c % channels;
                for k in 0..2 {
                    for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
                        let (row, column) = (top + y, corners[k] + x);
                        if !part.rows.contains(row) || !part.columns.contains(column) {
                            continue;
                        }
                        let at = |dy: isize, dx: isize| {
                            let y = (y + dy + reach.up.cast_signed()).cast_unsigned();
                            y * width + (x + dx + reach.left.cast_signed()).cast_unsigned()
                        };
                        let v = match taken[k] {
                            true => T::from_f64(pixels[(y as usize) * width + x as usize][k]),
                            false => correlate_at(filter, |dy, dx| tiles[k][at(dy, dx)]),
                        };
                        put(plane, row, column.cast_unsigned(), v);
                    }
                }
            }
        }
    }
}

/// Correlation with `row`, then with `column`. The first result is rounded to the image's type, and
/// the border mode of the second applies to *that*: [`Border::Constant`] yields the constant there,
/// not the filtered constant.
pub fn separable(image: &Image, row: &Filter, column: &Filter, border: Border) -> Image {
    assert!(row.is_row() && column.is_column(), "a separable filter is a row and a column");
    correlate(&correlate(image, row, border), column, border)
}

/// The generalized convolution of the values of `read`, in the order of the window's offsets, from the
/// identity of the reduction.
fn generalized_at<T: Pixel>(g: &Generalized, read: impl Fn(isize, isize) -> T) -> T {
    fn combine<T: Pixel>(how: Combine, pixel: T, weight: T) -> T {
        match how {
            Combine::Pixel => pixel,
            Combine::Add => pixel.add(weight),
            Combine::Sub => pixel.sub(weight),
            Combine::Mul => pixel.mul(weight),
            Combine::Min => pixel.min(weight),
            Combine::Max => pixel.max(weight),
        }
    }
    fn identity<T: Pixel>(how: Reduce) -> T {
        match how {
            Reduce::Sum => T::ZERO,
            Reduce::Product => T::ONE,
            Reduce::Min => T::HIGHEST,
            Reduce::Max => T::LOWEST,
        }
    }
    fn reduce<T: Pixel>(how: Reduce, accumulator: T, value: T) -> T {
        match how {
            Reduce::Sum => accumulator.add(value),
            Reduce::Product => accumulator.mul(value),
            Reduce::Min => accumulator.min(value),
            Reduce::Max => accumulator.max(value),
        }
    }
    let mut accumulator = identity::<T>(g.reduce);
    for (&weight, (dy, dx)) in g.window.taps().iter().zip(g.window.offsets()) {
        accumulator = reduce(g.reduce, accumulator, combine(g.combine, read(dy, dx), T::from_f64(weight)));
    }
    accumulator
}

/// A generalized convolution or a median.
pub fn order(image: &Image, filter: &OrderFilter, border: Border) -> Image {
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(image.shape, |c, y, x| {
        order_at::<T>(filter, |dy, dx| neighbour(image, c, y, x, (dy, dx), border))
    }))
}

/// An order filter of the values of `read` at its offsets.
pub(super) fn order_at<T: Pixel>(filter: &OrderFilter, read: impl Fn(isize, isize) -> T) -> T {
    match filter {
        OrderFilter::Fold(g) => generalized_at(g, read),
        OrderFilter::Median(size) => median_at(*size, read),
    }
}

/// The median of the values of `read` in the square, by [`MedianSize::network`] on them in row-major
/// order.
fn median_at<T: Pixel>(size: MedianSize, read: impl Fn(isize, isize) -> T) -> T {
    let r = size.radius().cast_signed();
    let mut v: Vec<T> = (-r..=r).flat_map(|dy| (-r..=r).map(move |dx| (dy, dx))).map(|(dy, dx)| read(dy, dx)).collect();
    for &(i, j) in size.network() {
        (v[i], v[j]) = (v[i].min(v[j]), v[j].max(v[i]));
    }
    v[v.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_base::shape::Shape;

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
}
