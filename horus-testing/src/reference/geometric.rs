//! Geometric operations: affine maps, mirror images and transposition.

use super::kernel::{HostImage, places};
use super::{OperationDefinition, ReferenceImage};
use horus_base::dispatch;
use horus_base::dtype::{Arithmetic, DType, Float, Pixel};
use horus_base::shape::{Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::Transpose;
use horus_plan::ops::edge::WarpEdge;
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, cubic_weights};

impl OperationDefinition for Transpose {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        transpose(inputs[0])
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, rows: Window) {
        dispatch!(out.dtype, T => {
            for (c, y, x) in places(out, rows) {
                output.put::<T>(c, y, x, inputs[0].get(c, x.cast_signed(), y.cast_unsigned()));
            }
        });
    }
}

/// The image sampled at the positions of `map`, for an output of `shape`, which has the image's channels.
pub fn warp(
    image: &ReferenceImage,
    shape: Shape,
    map: &Affine,
    interpolation: Interpolation,
    edge: WarpEdge,
) -> ReferenceImage {
    let shape = Shape { height: shape.height, width: shape.width, ..image.shape };
    horus_base::dispatch!(image.dtype(), T => ReferenceImage::from_fn(shape, |c, y, x| {
        let value = beyond(&edge, y.cast_signed(), x.cast_signed());
        let (y, x) = map.at(y as i64, x as i64);
        value.unwrap_or_else(|| sample::<T>(interpolation, y, x, |y, x| image.read(c, y, x, edge.border())))
    }))
}

/// The constant at an output pixel beyond an edge, without interpolation.
pub(super) fn beyond<T: Pixel>(edge: &WarpEdge, y: isize, x: isize) -> Option<T> {
    match edge {
        WarpEdge::Inside(inside) if !inside.holds(y, x) => Some(T::from_f64(inside.value)),
        _ => None,
    }
}

/// Interpolation of the pixels given by `read` at a fixed-point position.
pub(super) fn sample<T: Pixel>(how: Interpolation, y: i64, x: i64, read: impl Fn(isize, isize) -> T) -> T {
    match how {
        Interpolation::Nearest => nearest(y, x, read),
        Interpolation::Bilinear => bilinear(y, x, read),
        Interpolation::Bicubic => bicubic(y, x, read),
    }
}

/// A fixed-point position split into the pixel at or before it, and the fraction.
fn split<F: Float>(position: i64) -> (isize, F) {
    ((position >> 32) as isize, F::from_fraction(position as u32))
}

/// The nearest pixel; halves round to the next.
fn nearest<T: Pixel>(y: i64, x: i64, read: impl Fn(isize, isize) -> T) -> T {
    let round = |position: i64| ((position + (1 << 31)) >> 32) as isize;
    read(round(y), round(x))
}

/// Linear in x, then in y.
fn bilinear<T: Pixel>(y: i64, x: i64, read: impl Fn(isize, isize) -> T) -> T {
    let (y, down) = split::<T::Interp>(y);
    let (x, right) = split::<T::Interp>(x);
    let lerp = |a: T::Interp, b: T::Interp, t: T::Interp| t.fma(b.sub(a), a);
    let pixel = |y: isize, x: isize| read(y, x).to_interp();
    let above = lerp(pixel(y, x), pixel(y, x + 1), right);
    let below = lerp(pixel(y + 1, x), pixel(y + 1, x + 1), right);
    T::from_interp(lerp(above, below, down))
}

/// Cubic in x along four rows, then in y.
fn bicubic<T: Pixel>(y: i64, x: i64, read: impl Fn(isize, isize) -> T) -> T {
    let (y, down) = split::<T::Interp>(y);
    let (x, right) = split::<T::Interp>(x);
    let blend = |v: [T::Interp; 4], w: [T::Interp; 4]| {
        let mut accumulator = T::Interp::ZERO;
        for (value, weight) in v.into_iter().zip(w) {
            accumulator = weight.fma(value, accumulator);
        }
        accumulator
    };
    let rows = [-1, 0, 1, 2].map(|dy| {
        let pixels = [-1, 0, 1, 2].map(|dx| read(y + dy, x + dx).to_interp());
        blend(pixels, cubic_weights(right))
    });
    T::from_interp(blend(rows, cubic_weights(down)))
}

/// The mirror image.
pub fn flip(image: &ReferenceImage, flip: Flip) -> ReferenceImage {
    let Shape { height, width, .. } = image.shape;
    horus_base::dispatch!(image.dtype(), T => ReferenceImage::from_fn(image.shape, |c, y, x| {
        let y = if flip.rows() { height - 1 - y } else { y };
        let x = if flip.columns() { width - 1 - x } else { x };
        image.at::<T>(c, y, x)
    }))
}

/// Rows and columns exchanged, plane by plane.
pub fn transpose(image: &ReferenceImage) -> ReferenceImage {
    let shape = Shape { height: image.shape.width, width: image.shape.height, ..image.shape };
    horus_base::dispatch!(image.dtype(), T => ReferenceImage::from_fn(shape, |c, y, x| image.at::<T>(c, x, y)))
}
