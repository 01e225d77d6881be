//! Coefficients of splines through pixels.

use std::sync::OnceLock;

use super::{Axes, Image};
use crate::dtype::{DType, Float, Pixel};
use crate::error::{Call, Error, Site};
use crate::ir::graph::Op;
use crate::ops::neighbourhood::Filter;
use crate::ops::sampling::Sampling;
use crate::shape::{Axis, Border};

/// Precision of a prefilter's taps, in bits below the largest tap, for images of `f64` and `f32`
/// (whose pixels have 53 and 24 bits).
const BITS: [u16; 2] = [60, 30];

/// Coefficients of B-splines through the pixels, for [`Image::remap`] with a [`Sampling`] of order
/// 2 to 5. For nearest, linear and bicubic interpolation the coefficients are the pixels.
/// Coefficients are `f64` for images of `f64`, else `f32`.
///
/// Unser's recursive filter (1999) is replaced by a correlation of finite length along each axis:
/// taps below 2^-60 of the largest are omitted (`f32`: 2^-30). Along an axis, a coefficient differs
/// from the exact one by less than 2^-56 (`f32`: 2^-26) of the largest input magnitude, which is
/// less than a rounding error. The filter reads up to 31 pixels to each side (`f32`: 15) for a
/// cubic spline, and up to 49 (24) for order 5. Ranks exchange as many rows. Bits do not depend on
/// ranks or threads.
///
/// Border modes are as in `scipy.ndimage.spline_filter`. With [`Border::Reflect101`],
/// [`Border::Reflect`] and [`Border::Wrap`], samples at whole positions with the same border mode
/// equal the pixels. The other modes do not extend coefficients as they extend pixels:
/// [`Border::Replicate`] is treated as `Reflect`, and [`Border::Constant`] as `Reflect101`. As in
/// SciPy, pixels are unchanged along an axis of length 1.
impl<T: Pixel> Image<T> {
    /// The coefficients of splines along axes: rows and columns for [`Image::remap`] in the plane,
    /// also the depth for samples of volumes (`scipy.ndimage.spline_filter`), or a single axis
    /// (`spline_filter1d`). [`Axis::Channels`] is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_fn(&session, 16, 16, |y, x| ((7 * y + 3 * x) % 11) as f64);
    /// let (cubic, border) = (Sampling::Spline3, Border::Reflect101);
    /// let coefficients = image.with_border(border).spline_coefficients([Axis::Rows, Axis::Columns], cubic);
    /// let shape = Shape::new(16, 16, 1);
    /// let (y, x) = (Image::<f64>::index(&session, shape, Axis::Rows), Image::index(&session, shape, Axis::Columns));
    /// // At whole positions the spline goes through the pixels; without coefficients they are smoothed.
    /// let back = coefficients.with_border(border).remap([&y, &x], cubic);
    /// assert!((back - &image).abs().max_value().get()? < 1e-13);
    /// assert!((image.with_border(border).remap([&y, &x], cubic) - &image).abs().max_value().get()? > 1.0);
    /// // And between them it is smooth.
    /// let half = coefficients.with_border(border).remap([&(&y + 0.5), &(&x * 0.25)], cubic);
    /// # assert!(half.pixel((8, 8))?.is_finite());
    /// let line = Image::from_slice(&session, (1, 5), &[0.0f64, 0.0, 1.0, 0.0, 0.0]);
    /// let found = line.spline_coefficients(Axis::Columns, Sampling::Spline3).to_vec()?;
    /// assert!(found.iter().zip([0.25, -0.5, 1.75, -0.5, 0.25]).all(|(a, b)| (a - b).abs() < 1e-15));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("spline_filter", "spline_filter1d"))]
    #[track_caller]
    pub fn spline_coefficients(&self, axes: impl Into<Axes>, how: impl Into<Sampling>) -> Image<T::Linear> {
        let (axes, how, border, site) = (axes.into(), how.into(), self.border(), Call::of("spline_coefficients").site);
        self.attempt(self.shape(), || {
            if axes.has(Axis::Channels) {
                let message = "splines along channels requested; they run along levels, rows or columns";
                return Err(Error::parameter(Call { op: "spline_coefficients", site }, message));
            }
            let linear = self.linear(site);
            let plane = match (axes.has(Axis::Rows), axes.has(Axis::Columns)) {
                (true, true) => linear.splined(how, border, site),
                (true, false) => linear.splined_along(Axis::Rows, how, border, site),
                (false, true) => linear.splined_along(Axis::Columns, how, border, site),
                (false, false) => linear,
            };
            Ok(if axes.has(Axis::Depth) { plane.splined_along(Axis::Depth, how, border, site) } else { plane })
        })
    }
}

impl<F: Float> Image<F> {
    fn splined(&self, how: Sampling, border: Border, site: Site) -> Image<F> {
        let Some((row, column)) = prefilter(how, F::DTYPE).filter(|_| self.height() > 1 && self.width() > 1) else {
            // Either both have an effect, or neither.
            return self.splined_along(Axis::Columns, how, border, site).splined_along(Axis::Rows, how, border, site);
        };
        self.node(Op::Separable { row, column, border: extended(border) }, site)
    }

    fn splined_along(&self, axis: Axis, how: Sampling, border: Border, site: Site) -> Image<F> {
        match prefilter(how, F::DTYPE).filter(|_| self.shape().extent(axis) > 1) {
            None => self.plain(),
            Some((_, column)) if axis == Axis::Depth => {
                self.along_depth(Call { op: "spline_coefficients", site }, &column, extended(border), false)
            }
            Some((row, column)) => {
                let filter = if axis == Axis::Rows { column } else { row };
                self.node(Op::Correlate(filter, extended(border)), site)
            }
        }
    }
}

/// The border mode for filtering pixels when samples use this border mode.
fn extended(border: Border) -> Border {
    match border {
        Border::Replicate => Border::Reflect,
        Border::Constant(_) => Border::Reflect101,
        Border::Reflect | Border::Reflect101 | Border::Wrap => border,
    }
}

/// A filter along rows, and the same filter along columns.
type SplineFilters = (Filter, Filter);

/// The filters that yield the coefficients for images of a type, computed once; `None` where the
/// pixels are the coefficients.
fn prefilter(how: Sampling, dtype: DType) -> Option<SplineFilters> {
    static MADE: [[OnceLock<Option<SplineFilters>>; Sampling::ALL.len()]; 2] =
        [const { [const { OnceLock::new() }; Sampling::ALL.len()] }; 2];
    let single = usize::from(dtype == DType::F32);
    let make = || {
        let taps = how.prefilter(BITS[single]);
        (taps.len() > 1).then(|| (Filter::row(taps.clone()), Filter::column(taps)))
    };
    MADE[single][how as usize].get_or_init(make).clone()
}
