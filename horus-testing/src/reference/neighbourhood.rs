//! Neighbourhood operations: linear filters, generalized convolutions and medians.

use super::kernel::HostImage;
use super::{OperationDefinition, ReferenceImage};
use horus_base::dispatch_float;
use horus_base::dtype::{DType, Float, Pixel};
use horus_base::shape::{Border, Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::Fourier;
use horus_plan::ops::footprint::Rect;
use horus_plan::ops::fourier::Complex;
use horus_plan::ops::neighbourhood::{
    Combine, Filter, Generalized, MedianSize, OrderFilter, Pairing, Reduce, Truncated,
};

impl OperationDefinition for Fourier {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = self;
        fourier(inputs[0], how)
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        let how = self;
        dispatch_float!(out.dtype, T => {
            let part = Rect { rows, columns: Window::whole(out.shape.width) };
            let read = |c, y, x| inputs[0].sample::<T>(c, y, x, how.border);
            fourier_of::<T>(how, out.shape, part, &read, &mut |c, y, x, v| output.put(c, y, x, v));
        });
    }
}

/// The pixel read at offset (`dy`, `dx`) from pixel (`y`, `x`).
fn neighbour<T: Pixel>(
    image: &ReferenceImage,
    c: usize,
    y: usize,
    x: usize,
    (dy, dx): (isize, isize),
    border: Border,
) -> T {
    image.read(c, y.cast_signed() + dy, x.cast_signed() + dx, border)
}

/// A linear filter, not flipped. From +0, tap after tap: `accumulator = fma(tap, pixel, accumulator)`, with taps
/// rounded to the image's type.
///
/// # Panics
/// If the image is not of a float type: a linear filter of integers is recorded as a conversion and a filter.
pub fn correlate(image: &ReferenceImage, filter: &Filter, border: Border) -> ReferenceImage {
    assert!(image.dtype().is_float(), "a linear filter of {} pixels", image.dtype());
    horus_base::dispatch_float!(image.dtype(), T => ReferenceImage::from_fn(image.shape, |c, y, x| {
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
pub fn fourier(image: &ReferenceImage, how: &Fourier) -> ReferenceImage {
    let shape = Shape { channels: image.shape.channels * how.responses(), ..image.shape };
    let all = Rect::whole(shape);
    horus_base::dispatch_float!(image.dtype(), T => {
        let mut out = vec![T::ZERO; shape.len()];
        let read = |c, y, x| image.read::<T>(c, y, x, how.border);
        fourier_of(how, shape, all, &read, &mut |plane, y, x, v| {
            out[(plane * shape.height + y.cast_unsigned()) * shape.width + x] = v;
        });
        ReferenceImage::from_fn(shape, |plane, y, x| out[(plane * shape.height + y) * shape.width + x])
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
    let (responses, channels) = (how.responses(), shape.channels / how.responses());
    let all = how.pairs(part);
    let outside = T::from_f64(how.border.constant().unwrap_or(0.0));
    let corners = (all.rows.start..all.rows.end).step_by(down as usize).flat_map(|top| {
        (all.columns.start..all.columns.end).step_by(2 * across as usize).map(move |left| (top, [left, left + across]))
    });
    for (c, (top, lefts)) in (0..channels).flat_map(|c| corners.clone().map(move |corner| (c, corner))) {
        // The pixels of both tiles of a level, or beyond the border; whether all are taken; their transform.
        let pair = |level: Option<usize>| {
            let tiles = lefts.map(|left| {
                let at = |i: usize| {
                    let (y, x) = ((i / width).cast_signed(), (i % width).cast_signed());
                    let (y, x) = (top - reach.up.cast_signed() + y, left - reach.left.cast_signed() + x);
                    level.map_or(outside, |level| read(level * channels + c, y, x))
                };
                (0..height * width).map(at).collect::<Vec<T>>()
            });
            let taken = [0, 1]
                .map(|k| tiles[k].iter().all(|v| v.abs() <= T::from_f64(Fourier::largest(T::DTYPE, how.stored()))));
            let part_of = |k: usize, i: usize| if taken[k] { tiles[k][i].to_f64() } else { 0.0 };
            let mut transform: Vec<Complex> = (0..height * width).map(|i| [part_of(0, i), part_of(1, i)]).collect();
            how.forth(&mut transform);
            (tiles, taken, transform)
        };
        let levels: Vec<_> = (0..shape.depth).map(|z| pair(Some(z))).collect();
        let beyond = pair(None);
        for (z, response) in (0..shape.depth).flat_map(|z| (0..responses).map(move |r| (z, r))) {
            // Of filters that are added, each reads a level; another one only that of the pixel.
            let filters = if how.across.is_some() { 0..how.filters.len() } else { response..response + 1 };
            let of = |f: usize| {
                let level = how.level(z, f, shape.depth);
                (&how.filters[f], &spectra[f], level.map_or(&beyond, |level| &levels[level]))
            };
            let read: Vec<_> = filters.map(of).collect();
            let pairs: Vec<_> = read.iter().map(|(_, spectrum, pair)| (&pair.2[..], &spectrum[..])).collect();
            let pixels = how.respond(&pairs);
            let plane = (z * responses + response) * channels + c;
            for k in 0..2 {
                let taken = read.iter().all(|(_, _, pair)| pair.1[k]);
                for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
                    let (row, column) = (top + y, lefts[k] + x);
                    if !part.rows.contains(row) || !part.columns.contains(column) {
                        continue;
                    }
                    let at = |dy: isize, dx: isize| {
                        let y = (y + dy + reach.up.cast_signed()).cast_unsigned();
                        y * width + (x + dx + reach.left.cast_signed()).cast_unsigned()
                    };
                    let direct = || {
                        let each =
                            read.iter().map(|(filter, _, pair)| correlate_at(filter, |dy, dx| pair.0[k][at(dy, dx)]));
                        each.reduce(T::add).unwrap_or(T::ZERO)
                    };
                    let v = if taken { T::from_f64(pixels[(y as usize) * width + x as usize][k]) } else { direct() };
                    put(plane, row, column.cast_unsigned(), v);
                }
            }
        }
    }
}

/// Correlation with `row`, then with `column`. The first result is rounded to the image's type, and the border mode of
/// the second applies to *this result*: [`Border::Constant`] yields the constant there, not the filtered constant.
pub fn separable(image: &ReferenceImage, row: &Filter, column: &Filter, border: Border) -> ReferenceImage {
    assert!(row.is_row() && column.is_column(), "a separable filter is a row and a column");
    correlate(&correlate(image, row, border), column, border)
}

/// The generalized convolution of the values of `read`, in the order of the footprint's offsets, from the identity of
/// the reduction.
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

/// The sum of products of the values of `read` and taps, in the order of the footprint's offsets. Each product and each
/// sum is rounded to `f64`; the result is truncated to the type.
fn truncated_at<T: Pixel>(t: &Truncated, plane: usize, border: Border, read: impl Fn(usize, isize, isize) -> T) -> T {
    let (taps, offsets) = (t.window.taps(), t.window.offsets());
    let pixel = |k: usize| match t.plane(plane, t.level(k), border) {
        Some(plane) => read(plane, offsets[k].0, offsets[k].1).to_f64(),
        None => border.constant().map_or(T::ZERO, T::from_f64).to_f64(),
    };
    let (mut sum, mut k) = (0.0, 0);
    while k < taps.len() {
        let (value, pixels) = match t.pairing {
            Pairing::Sum if k > 0 => (pixel(k) + pixel(k + 1), 2),
            Pairing::Difference if k > 0 => (pixel(k) - pixel(k + 1), 2),
            _ => (pixel(k), 1),
        };
        let product = taps[k] * value;
        sum += product;
        k += pixels;
    }
    T::cast_f64(sum)
}

/// A generalized convolution, a truncated filter or a median.
pub fn order(image: &ReferenceImage, filter: &OrderFilter, border: Border) -> ReferenceImage {
    horus_base::dispatch!(image.dtype(), T => ReferenceImage::from_fn(image.shape, |c, y, x| {
        order_at::<T>(filter, c, border, |c, dy, dx| neighbour(image, c, y, x, (dy, dx), border))
    }))
}

/// An order filter in plane `c` of the values of `read` at planes and offsets.
pub(super) fn order_at<T: Pixel>(
    filter: &OrderFilter,
    c: usize,
    border: Border,
    read: impl Fn(usize, isize, isize) -> T,
) -> T {
    match filter {
        OrderFilter::Fold(g) => generalized_at(g, |dy, dx| read(c, dy, dx)),
        OrderFilter::Truncated(t) => truncated_at(t, c, border, read),
        OrderFilter::Median(size) => median_at(*size, |dy, dx| read(c, dy, dx)),
    }
}

/// The median of the values of `read` in the square, by [`MedianSize::network`], in row-major order.
fn median_at<T: Pixel>(size: MedianSize, read: impl Fn(isize, isize) -> T) -> T {
    let r = size.radius().cast_signed();
    let mut v: Vec<T> = (-r..=r).flat_map(|dy| (-r..=r).map(move |dx| (dy, dx))).map(|(dy, dx)| read(dy, dx)).collect();
    for &(i, j) in size.network() {
        (v[i], v[j]) = (v[i].lower(v[j]), v[i].upper(v[j]));
    }
    v[v.len() / 2]
}
