//! Coefficients of splines through pixels.

use std::panic::Location;
use std::sync::OnceLock;

use super::{Axes, Image};
use crate::dtype::{DType, Float, Pixel};
use crate::error::{Call, Error, Site};
use crate::ir::graph::Op;
use crate::ops::neighbourhood::Filter;
use crate::ops::sampling::Sampling;
use crate::shape::{Axis, Border};

/// Bits below the largest tap that a prefilter keeps: of images of `f64`, and of `f32`, which hold 53 and 24.
const BITS: [u16; 2] = [60, 30];

/// The B-splines through the pixels, which [`Image::remap`] samples: of a [`Sampling`] of order 2
/// to 5 the weights of its pieces, its coefficients. Nearest, linear and bicubic interpolation have
/// the pixels as coefficients. Images of `f64` have coefficients of `f64`, all others of `f32`.
///
/// The filter (Unser's recursion, 1999) is one of finite length here, a correlation along each
/// axis: taps below 2^-60 of the largest are left out, of `f32` below 2^-30. Along an axis a
/// coefficient so differs from the exact one by less than 2^-56 of the largest magnitude of what is
/// filtered, of `f32` by less than 2^-26, which is less than a rounding. It reaches 31 pixels
/// (`f32`: 15) for a cubic spline and at most 49 (24), for one of order 5. Ranks exchange as many
/// rows, and bits do not depend on the number of ranks or threads.
///
/// Edges are those of `scipy.ndimage.spline_filter`: with [`Border::Reflect101`],
/// [`Border::Reflect`] and [`Border::Wrap`] samples with the same border give back the pixels at
/// whole positions. Coefficients beyond the edges are no repetition and no constant where the
/// pixels are: [`Border::Replicate`] is taken as `Reflect`, and [`Border::Constant`] as
/// `Reflect101`. As in SciPy, pixels stay as they are along an axis of extent 1.
impl<T: Pixel> Image<T> {
    /// The coefficients of splines along axes: along rows and columns for [`Image::remap`] in the plane, along the depth as well for samples
    /// of volumes (`scipy.ndimage.spline_filter`), along one of them (`spline_filter1d`). Along the channels there are none: an error.
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
        let (axes, how, border, site) = (axes.into(), how.into(), self.border(), Location::caller());
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
            // Either has no effect, or both have one.
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

/// The border mode for filtering pixels whose coefficients have this border.
fn extended(border: Border) -> Border {
    match border {
        Border::Replicate => Border::Reflect,
        Border::Constant(_) => Border::Reflect101,
        Border::Reflect | Border::Reflect101 | Border::Wrap => border,
    }
}

/// A filter along a row, and the same along a column.
type SplineFilters = (Filter, Filter);

/// The row and the column that yield the coefficients of images of a type; `None` where the pixels are the coefficients. Made once.
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
