//! Canny's edges.

use super::{Image, one_plane};
use crate::dtype::{DType, Float, Pixel};
use crate::error::{Call, Error, Result};
use crate::filters::{self, MAX_RADIUS};
use crate::ops::components::{Connectivity, MOST_PIXELS};
use crate::ops::neighbourhood::{Filter, Pairing};
use crate::position_map::Relation;
use crate::shape::{Axis, Border, Shape};

/// Edges one pixel wide: Canny, "A computational approach to edge detection" (1986), as
/// scikit-image's `feature.canny`. A pixel is an edge if the gradient of the smoothed image is
/// largest there along its own direction, and at least `low`. Edges that do not touch, over sides
/// or corners of pixels, an edge where the gradient is at least `high` are dropped. Pixels at the
/// border of the image are no edges.
///
/// The Gaussian of `sigma` pixels reaches `4 sigma + 0.5` pixels, rounded down; at 0 nothing is
/// smoothed. Beyond the border pixels are 0, or follow [`Image::with_border`]. With a constant, the
/// smoothed pixels are divided by the share of the Gaussian inside. The gradient is the length of
/// Sobel's derivatives, 8 times the slope, under [`Border::Reflect`]. Its neighbours along its
/// direction are interpolated between two pixels. `low` and `high` are in units of the pixels: at
/// a step from 0 to 255 the gradient of `u8` is up to 1020.
///
/// Images of `f32` are computed in `f32`, others in `f64`; sums are rounded as SciPy rounds them.
/// Every rank follows the edges of the whole image. It is an error if the image has several channels
/// or levels or more than 2^31 - 1 pixels, if `sigma` is negative, not finite or reaches too far, or
/// unless `low <= high`.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let step = Image::from_fn(&session, 8, 12, |_, x| if x < 6 { 0.0f32 } else { 1.0 });
/// let edges = canny(&step, 1.0, 0.1, 0.2).crop(3, 0, 1, 12).convert::<u8>();
/// assert_eq!(edges.to_vec()?, [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]); // both sides are equally steep
/// assert_eq!(canny(&step, 1.0, 5.0, 5.0).count().get()?, 0);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[doc(alias("Canny"))]
#[track_caller]
pub fn canny<T: Pixel>(image: &Image<T>, sigma: f64, low: f64, high: f64) -> Image<bool> {
    let (call, shape) = (Call::of("canny"), image.shape());
    let settings = match image.check().and_then(|()| check(call, shape, sigma, (low, high))) {
        Ok(gaussian) => {
            let white = if T::DTYPE.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
            // scikit-image takes the lower threshold as `f32`, and a tiny one for 0.
            let low = if (low / white) as f32 == 0.0 { 1e-14 } else { (low / white) as f32 };
            CannySettings { gaussian, border: image.outside(), low: low.into(), high: high / white }
        }
        Err(error) => return image.attempt(shape, || Err(error)),
    };
    let edges = match T::DTYPE {
        DType::F32 => edges::<f32>(&to_unit(image), &settings),
        _ => edges::<f64>(&to_unit(image), &settings),
    };
    edges.related(call.op, &[(image.handle(), Relation::identity())])
}

struct CannySettings {
    /// Taps from the first to that in the middle.
    gaussian: Vec<f64>,
    border: Border,
    low: f64,
    high: f64,
}

/// Checks the parameters and returns the taps of the Gaussian.
#[track_caller]
fn check(call: Call, shape: Shape, sigma: f64, (low, high): (f64, f64)) -> Result<Vec<f64>> {
    /// SciPy smooths nothing by a smaller sigma.
    const SMALLEST: f64 = 1e-15;
    let wrong = |message| Err(Error::parameter(call, message));
    one_plane(call, shape)?;
    if shape.len() > MOST_PIXELS {
        return wrong(format!("an image of {shape} has {} pixels; the limit is {MOST_PIXELS}", shape.len()));
    }
    if !(sigma >= 0.0 && sigma.is_finite()) {
        return wrong(format!("sigma is {sigma}; it must be finite and not negative"));
    }
    if low.is_nan() || high.is_nan() || low > high {
        return wrong(format!("the thresholds {low} and {high} are not ordered"));
    }
    let reach = (4.0 * sigma + 0.5).floor();
    if reach > MAX_RADIUS as f64 {
        return wrong(format!("a Gaussian of sigma {sigma} reaches {reach} pixels; the limit is {MAX_RADIUS}"));
    }
    if sigma <= SMALLEST {
        return Ok(vec![1.0]);
    }
    let mut taps = filters::gauss_1d(sigma, 0, reach as usize)?;
    taps.truncate(reach as usize + 1);
    Ok(taps)
}

/// The pixels in type `F`, integers divided by their largest.
#[track_caller]
fn to_unit<T: Pixel, F: Float>(image: &Image<T>) -> Image<F> {
    let floats = image.convert::<F>();
    if T::DTYPE.is_float() {
        return floats;
    }
    let scaled = floats * F::from_f64(1.0 / T::HIGHEST.to_f64());
    if T::DTYPE.is_signed() { scaled.max(F::from_f64(-1.0)) } else { scaled }
}

#[track_caller]
fn edges<F: Float>(image: &Image<F>, settings: &CannySettings) -> Image<bool> {
    let CannySettings { gaussian, border, low, high } = settings;
    let mut smooth = smoothed(image, gaussian, *border);
    if matches!(border, Border::Constant(_)) {
        let ones = Image::constant(image.session(), image.shape(), F::ONE);
        let least = if F::DTYPE == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        smooth /= smoothed(&ones, gaussian, *border) + F::from_f64(least);
    }
    let down = derivative(&smooth, Axis::Rows, Axis::Columns);
    let right = derivative(&smooth, Axis::Columns, Axis::Rows);
    let magnitude = (&down * &down + &right * &right).sqrt();
    let weak = inside(image) & magnitude.ge(F::from_f64(*low)) & is_largest(&down, &right, &magnitude);
    let strong = &weak & magnitude.ge(F::from_f64(*high));
    strong.reconstruct(&weak, Connectivity::CORNERS)
}

#[track_caller]
fn smoothed<F: Float>(image: &Image<F>, taps: &[f64], border: Border) -> Image<F> {
    if let [_] = taps {
        return image.clone();
    }
    let columns = correlated(image, taps, Axis::Rows, Pairing::Sum, border);
    correlated(&columns, taps, Axis::Columns, Pairing::Sum, border)
}

/// Sobel's derivative along an axis, smoothed across.
#[track_caller]
fn derivative<F: Float>(image: &Image<F>, along: Axis, across: Axis) -> Image<F> {
    let differences = correlated(image, &[-1.0, 0.0], along, Pairing::Difference, Border::Reflect);
    correlated(&differences, &[1.0, 2.0], across, Pairing::Sum, Border::Reflect)
}

/// SciPy's `correlate1d` with symmetric or antisymmetric taps, of which the first up to that in the
/// middle are given.
#[track_caller]
fn correlated<F: Float>(image: &Image<F>, taps: &[f64], axis: Axis, pairing: Pairing, border: Border) -> Image<F> {
    let place = |by: i32| if axis == Axis::Rows { (by, 0) } else { (0, by) };
    let Some((middle, outer)) = taps.split_last() else { return image.clone() };
    // The middle, then pairs from the outermost on.
    let (mut offsets, mut weights) = (vec![place(0)], vec![*middle]);
    for (by, tap) in (1..=outer.len() as i32).rev().zip(outer) {
        offsets.extend([place(-by), place(by)]);
        weights.extend([*tap; 2]);
    }
    image.with_border(border).truncated(&Filter::sparse(offsets, weights), &[], pairing)
}

/// All pixels except the first and the last row and column.
#[track_caller]
fn inside<F: Float>(image: &Image<F>) -> Image<bool> {
    let Shape { height, width, .. } = image.shape();
    let rows = Image::<f64>::index(image.session(), image.shape(), Axis::Rows);
    let columns = Image::<f64>::index(image.session(), image.shape(), Axis::Columns);
    let down = rows.gt(0.0) & rows.lt(height as f64 - 1.0);
    down & columns.gt(0.0) & columns.lt(width as f64 - 1.0)
}

/// True where the magnitude is not below its interpolation one step up and one step down the
/// gradient.
#[track_caller]
fn is_largest<F: Float>(down: &Image<F>, right: &Image<F>, magnitude: &Image<F>) -> Image<bool> {
    let (ay, ax) = (down.abs(), right.abs());
    let steep = ay.gt(&ax);
    let same = !(down.gt(F::ZERO) ^ right.gt(F::ZERO));
    let weight = ay.min(&ax) / ay.max(&ax);
    let ahead = beside(1, (&steep, &same), &weight, magnitude);
    let behind = beside(-1, (&steep, &same), &weight, magnitude);
    let here = magnitude.convert::<f64>();
    here.ge(ahead) & here.ge(behind)
}

/// The magnitude so many steps up the gradient, interpolated between a straight and a diagonal
/// neighbour. As in scikit-image, the sum is of `f64`.
#[track_caller]
fn beside<F: Float>(
    step: isize,
    (steep, same): (&Image<bool>, &Image<bool>),
    weight: &Image<F>,
    magnitude: &Image<F>,
) -> Image<f64> {
    let down = same.select(magnitude.shift(0, -step, 0), magnitude.shift(0, step, 0));
    let straight = steep.select(down, magnitude.shift(0, 0, -step));
    let diagonal = same.select(magnitude.shift(0, -step, -step), magnitude.shift(0, step, -step));
    let rest = 1.0 - weight.convert::<f64>();
    (diagonal * weight).convert::<f64>() + straight.convert::<f64>() * rest
}
