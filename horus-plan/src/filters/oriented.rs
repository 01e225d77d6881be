//! Anisotropic Gaussians at any angle: as dense kernels, and decomposed along and across the line.
//!
//! Coordinates are those of a picture, with y pointing down: `u = x cos t - y sin t` runs along the line, `v
//! = x sin t + y cos t` across it.

use std::collections::BTreeMap;

use super::{GaussianPair, bell, check_taps, factor, filter_cache, finite, pair, positions, weight};
use crate::ops::geometric::exact_sin_cos;
use crate::ops::neighbourhood::Filter;
use horus_base::error::{Call, Error, Result};

/// The dense kernel of an anisotropic Gaussian at `theta` degrees, with derivatives of order
/// `order_u` along the line and `order_v` across it. It is a square of radius `ceil(3 max(sigma_u,
/// sigma_v))`, normalised by the product of the sums of the two one-dimensional kernels, so that at
/// 0 degrees it is their outer product.
///
/// It cannot be applied if `theta` is not finite, a sigma is not positive and finite, an order
/// exceeds 2, or it has more than [`MAX_DENSE_TAPS`](super::MAX_DENSE_TAPS) taps.
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// let kernel = filters::gauss_2d(45.0, 3.0, 1.0, 0, 0);
/// assert_eq!(kernel.to_string(), "19x19");
/// // y points down: the line rises to the right.
/// let at = |y: usize, x: usize| kernel.taps()[19 * y + x];
/// assert!(at(6, 12) > 10.0 * at(12, 12));
/// ```
#[track_caller]
pub fn gauss_2d(theta: f64, sigma_u: f64, sigma_v: f64, order_u: u32, order_v: u32) -> Filter {
    let call = Call::of("gauss_2d");
    let key = filter_cache::key(call.op, theta, sigma_u, sigma_v, [order_u, order_v]);
    let made = || dense(call, theta, sigma_u, sigma_v, order_u, order_v).map(|filter| (filter.clone(), filter));
    filter_cache::cached_filters(key, made).map_or_else(Filter::faulty, |(filter, _)| filter)
}

fn dense(call: Call, theta: f64, sigma_u: f64, sigma_v: f64, order_u: u32, order_v: u32) -> Result<Filter> {
    check_angle(call, theta)?;
    let GaussianPair { u, v, radius, .. } = GaussianPair::of_line(call, sigma_u, sigma_v, order_u, order_v)?;
    let size = 2 * radius + 1;
    check_taps(call, size, size)?;
    let (sin, cos) = exact_sin_cos(theta);
    let norm = weight(u.sigma, radius) * weight(v.sigma, radius);
    let mut taps = Vec::with_capacity(size * size);
    for y in positions(radius) {
        for x in positions(radius) {
            let (pu, pv) = (x * cos - y * sin, x * sin + y * cos);
            let smooth = bell(pu, u.sigma) * bell(pv, v.sigma) / norm;
            taps.push(smooth * factor(pu, u.sigma, u.order) * factor(pv, v.sigma, v.order));
        }
    }
    Ok(Filter::dense(size, size, finite(call, taps)?))
}

/// An anisotropic Gaussian at `theta` degrees as two filters applied one after the other: along the
/// line, sampling the image at `p + i (cos t, -sin t)` (in x, y), then across it, at `p + j (sin t,
/// cos t)`.
///
/// Samples between pixels are bilinear. Their offsets are the same for every pixel, so each filter is
/// sparse, with at most `4 (2 r + 1)` taps in row-major order, `r = ceil(3 max(sigma_u, sigma_v))`:
/// taps on the same pixel are added, and taps that are 0 are omitted. Positions are rounded to 2^-32
/// pixel, as in the geometric operations. At multiples of 90 degrees the filters are a dense row and
/// a dense column: at 0 exactly the filters of [`gauss_xy`](super::gauss_xy).
///
/// The filters cannot be applied if `theta` is not finite, a sigma is not positive and finite, an order
/// exceeds 2, or the radius exceeds [`MAX_RADIUS`](super::MAX_RADIUS).
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// let (along, across) = filters::gauss_uv(30.0, 3.0, 1.0, 0, 0);
/// let taps = along.taps().len() + across.taps().len();
/// assert!(taps < filters::gauss_2d(30.0, 3.0, 1.0, 0, 0).taps().len() / 2);
/// ```
#[track_caller]
pub fn gauss_uv(theta: f64, sigma_u: f64, sigma_v: f64, order_u: u32, order_v: u32) -> (Filter, Filter) {
    let call = Call::of("gauss_uv");
    let made = || {
        if let Some(Aligned { row, column, turned }) = aligned(call, theta, sigma_u, sigma_v, order_u, order_v)? {
            return Ok(if turned { (column, row) } else { (row, column) });
        }
        let (u, v) = GaussianPair::of_line(call, sigma_u, sigma_v, order_u, order_v)?.taps();
        let (sin, cos) = exact_sin_cos(theta);
        Ok((sampled(call, &u, (-sin, cos))?, sampled(call, &v, (cos, sin))?))
    };
    let key = filter_cache::key(call.op, theta, sigma_u, sigma_v, [order_u, order_v]);
    pair(|| filter_cache::cached_filters(key, made))
}

/// The row and the column filter whose product is the kernel of [`gauss_2d`] at multiples of 90
/// degrees; `None` at other angles.
#[track_caller]
pub fn axis_aligned(
    theta: f64,
    sigma_u: f64,
    sigma_v: f64,
    order_u: u32,
    order_v: u32,
) -> Result<Option<(Filter, Filter)>> {
    let found = aligned(Call::of("gauss_2d"), theta, sigma_u, sigma_v, order_u, order_v)?;
    Ok(found.map(|a| (a.row, a.column)))
}

struct Aligned {
    row: Filter,
    column: Filter,
    /// Set if the line runs along the columns.
    turned: bool,
}

fn aligned(call: Call, theta: f64, su: f64, sv: f64, ou: u32, ov: u32) -> Result<Option<Aligned>> {
    check_angle(call, theta)?;
    let pair = GaussianPair::of_line(call, su, sv, ou, ov)?;
    let (sin, cos) = exact_sin_cos(theta);
    if sin != 0.0 && cos != 0.0 {
        return Ok(None);
    }
    let (u, v) = pair.near_taps()?;
    // u = x cos t - y sin t and v = x sin t + y cos t have one term each; a negative term mirrors the taps.
    let turned = cos == 0.0;
    let (row, row_sign, column, column_sign) = if turned { (v, sin, u, -sin) } else { (u, cos, v, cos) };
    let mirrored = |mut taps: Vec<f64>, sign: f64| {
        if sign < 0.0 {
            taps.reverse();
        }
        taps
    };
    let (row, column) = (Filter::row(mirrored(row, row_sign)), Filter::column(mirrored(column, column_sign)));
    Ok(Some(Aligned { row, column, turned }))
}

fn check_angle(call: Call, theta: f64) -> Result<()> {
    if theta.is_finite() {
        return Ok(());
    }
    Err(Error::parameter(call, format!("the angle is {theta}; it must be finite")))
}

/// The sparse filter that samples bilinearly at multiples of `(dy, dx)`, weighted by `taps`.
fn sampled(call: Call, taps: &[f64], (dy, dx): (f64, f64)) -> Result<Filter> {
    let mut weights = BTreeMap::<(i32, i32), f64>::new();
    for (i, tap) in positions(taps.len() / 2).zip(taps) {
        let ((y, fy), (x, fx)) = (split(i * dy), split(i * dx));
        for (oy, wy) in [(0, 1.0 - fy), (1, fy)] {
            for (ox, wx) in [(0, 1.0 - fx), (1, fx)] {
                *weights.entry((y + oy, x + ox)).or_default() += tap * wy * wx;
            }
        }
    }
    let (offsets, taps): (Vec<_>, Vec<_>) = weights.into_iter().unzip();
    let kept = offsets.into_iter().zip(finite(call, taps)?).filter(|&(_, t)| t != 0.0);
    let (mut offsets, mut taps): (Vec<_>, Vec<_>) = kept.unzip();
    if taps.is_empty() {
        // The odd derivative of a kernel narrower than a pixel is zero everywhere, but a filter has at least
        // one tap.
        (offsets, taps) = (vec![(0, 0)], vec![0.0]);
    }
    Ok(Filter::sparse(offsets, taps))
}

/// The pixel at or before a position, and the fraction beyond it, in 32 fractional bits.
fn split(position: f64) -> (i32, f64) {
    let unit = (1u64 << 32) as f64;
    let fixed = (position * unit).round_ties_even() as i64;
    // A radius of at most 2^15 keeps the integer part far inside an i32.
    ((fixed >> 32) as i32, (fixed & 0xffff_ffff) as f64 / unit)
}
