//! Neighbourhood operations.

use super::alpha::{Mixing, border_beyond};
use super::volume_filters::together;
use super::{Image, PerAxis, Taps};
use crate::dtype::{Conversion, DType, Element, Pixel};
use crate::error::{Call, Error, Result, Site};
use crate::filters::tolerance::{self, Algorithm};
use crate::filters::{self, MAX_RADIUS};
use crate::ir::graph::Op;
use crate::ops::neighbourhood::{Filter, FilterLayout, Generalized, Pairing, TapLevels, Truncated};
use crate::ops::pixel::PixelOp;
use crate::shape::{Axis, Border, Shape};

/// A Gaussian with a border mode.
struct Smoothed {
    sigma: PerAxis<f64>,
    border: Border,
}

impl Mixing for Smoothed {
    type Of<P: Pixel> = P::Linear;

    #[track_caller]
    fn of<P: Pixel>(&self, image: &Image<P>, beyond: fn(f64) -> f64) -> Image<P::Linear> {
        image.with_border(border_beyond(self.border, beyond)).gauss_zyx("gauss", self.sigma, PerAxis::All(0))
    }
}

/// Filters with any taps. Linear filters of integer images yield `f32`.
impl<T: Pixel> Image<T> {
    /// Allows a faster, inexact algorithm for the linear filter that is called on the result. No
    /// pixel differs from the exact sum by more than `t * max|pixel| * sum|taps|`. This is the
    /// worst case over all images; a constant beyond the border counts as a pixel. Filters with a
    /// part for each level are covered, filters along the depth alone are exact.
    ///
    /// The algorithm follows from taps, type, size and `t`, so results have the same bits on all
    /// devices, threads and ranks. Plans name it with its bound. If no faster algorithm is within
    /// `t`, plans say so, and the filter is computed as without `within`; its rounding may exceed a
    /// small `t`. Without `within`, filters add taps in one fixed order, to the last bit. Other
    /// operations ignore the tolerance; results have none.
    ///
    /// The same pixels are not finite as without `within`, but an infinity may become a NaN. Finite
    /// pixels must be at most a thousandth of the largest number. Below the smallest normal number,
    /// each product is rounded to a multiple of the smallest number.
    ///
    /// A tolerance that is not positive and finite, or smaller than half the distance from 1 to the
    /// next number of the filter's type, is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = samples::worms(&session, 300, 300);
    /// let exact = image.gauss_2d(30.0, 5.0, 4.0, 0, 0); // 961 taps
    /// let near = image.within(1e-4).gauss_2d(30.0, 5.0, 4.0, 0, 0);
    /// let bound = 1e-4 * image.abs().max_value().get()?; // the taps add up to 1
    /// assert!(near.absdiff(exact).max_value().get()? <= bound);
    /// let message = image.within(1e-9).gauss(1.0).check().unwrap_err().to_string();
    /// assert!(message.contains("the smallest of f32 is 5.97e-8"));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("tolerance", "approximate", "fftconvolve"))]
    #[track_caller]
    pub fn within(&self, t: f64) -> Image<T> {
        let (call, dtype) = (Call::of("within"), T::Linear::TAG);
        let least = tolerance::smallest(dtype);
        let valid = || match t {
            t if !(t > 0.0 && t.is_finite()) => {
                Err(Error::parameter(call, format!("the tolerance is {t}; it must be positive and finite")))
            }
            t if t < least => {
                let what = format!("a tolerance of {t:e}; the smallest of {dtype} is {:.2e}", least * (1.0 + 1e-3));
                Err(Error::parameter(call, what))
            }
            _ => Ok(self.plain()),
        };
        Image { tolerance: Some(t), border: self.border, ..self.attempt(self.shape(), valid) }
    }

    /// Correlation: `out(p) = sum over offsets o of tap(o) * in(p + o)`; the filter is not flipped.
    /// A filter of even size is anchored at half its size. It may be larger than the image. Each
    /// level of a volume is filtered separately, unless there is a filter for each of several
    /// levels, or [`Taps::Depth`]. Then the responses of the levels are added from the first to the
    /// last; along the depth by fused multiply-adds. The border mode supplies levels beyond the
    /// image.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let line = Image::from_slice(&session, (1, 4), &[1.0f32, 2.0, 4.0, 8.0]);
    /// let right = Filter::row([0.0, 0.0, 1.0]); // the pixel to the right
    /// assert_eq!(line.with_border(Border::Constant(0.0)).correlate(&right).to_vec()?, [2.0, 4.0, 8.0, 0.0]);
    /// let slope = Image::from_volume_fn(&session, 4, 5, 6, |z, y, x| (z * z + 2 * y + 3 * x) as f32);
    /// let rise = slope.with_border(Border::Replicate).correlate(Taps::Depth(&[-1.0, 1.0])); // from the level above
    /// assert_eq!(rise.slice(3).pixel((2, 2))?, 5.0);
    /// let (dot, middle) = (Filter::row([1.0]), Filter::dense(3, 3, [0.0, 1.0, 0.0, 1.0, -6.0, 1.0, 0.0, 1.0, 0.0]));
    /// let curved = slope.correlate(&[dot.clone(), middle, dot]);
    /// assert_eq!(curved.pixel((1, 2, 2))?, 2.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "filter2D")]
    #[track_caller]
    pub fn correlate<'a>(&self, taps: impl Into<Taps<'a>>) -> Image<T::Linear> {
        self.filtered(Call::of("correlate"), taps.into(), false)
    }

    /// Convolution: correlation with the filter rotated by 180 degrees about its anchor; across
    /// levels, mirrored along all three axes.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let dot = Image::from_slice(&session, (1, 5), &[0u8, 0, 1, 0, 0]);
    /// let taps = Filter::row([1.0, 2.0, 3.0]);
    /// assert_eq!(dot.convolve(&taps).to_vec()?, [0.0, 1.0, 2.0, 3.0, 0.0]);
    /// assert_eq!(dot.correlate(&taps).to_vec()?, [0.0, 3.0, 2.0, 1.0, 0.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "filter2D")]
    #[track_caller]
    pub fn convolve<'a>(&self, taps: impl Into<Taps<'a>>) -> Image<T::Linear> {
        self.filtered(Call::of("convolve"), taps.into(), true)
    }

    /// Correlation with a filter of one row, then with a filter of one column.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let ones = Image::constant(&session, (3, 3), 1.0f32);
    /// let (row, column) = (Filter::row([1.0, 1.0, 1.0]), Filter::column([1.0, 1.0, 1.0]));
    /// let neighbours = ones.with_border(Border::Constant(0.0)).separable(&row, &column);
    /// assert_eq!(neighbours.to_vec()?, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("correlate1d", "sepFilter2D"))]
    #[track_caller]
    pub fn separable(&self, row: &Filter, column: &Filter) -> Image<T::Linear> {
        let call = Call::of("separable");
        self.attempt(self.shape(), || {
            check_filter(call, row)?;
            check_filter(call, column)?;
            if !row.is_row() || !column.is_column() {
                return Err(Error::parameter(call, format!("expected a row and a column, got {row} and {column}")));
            }
            // In one dimension no algorithm is faster than direct summation.
            let of = |filter: &Filter| self.tolerance.map_or_else(|| filter.clone(), |t| tolerance::exact(filter, t));
            let (row, column, border) = (of(row), of(column), self.border());
            Ok(self.linear(call.site).node(Op::Separable { row, column, border }, call.site))
        })
    }

    /// Generalized convolution: each pixel under the window is combined with its weight, and the
    /// results are reduced, in the arithmetic of the image's type.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let far = Image::from_slice(&session, (1, 5), &[9, 9, 0, 9, 9]);
    /// // The least of the pixel and of its neighbours plus 1: a step of a distance transform.
    /// let nearer = Generalized { window: Filter::row([1.0, 0.0, 1.0]), combine: Combine::Add, reduce: Reduce::Min };
    /// assert_eq!(far.generalized(&nearer).to_vec()?, [9, 1, 0, 1, 9]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "generic_filter")]
    #[track_caller]
    pub fn generalized(&self, operation: &Generalized) -> Image<T> {
        let call @ Call { site, .. } = Call::of("generalized");
        self.attempt(self.shape(), || {
            check_filter(call, &operation.window)?;
            Ok(self.node(Op::OrderFilter(operation.clone().into(), self.border()), site))
        })
    }

    /// A linear filter in the image's own type, rounded as SciPy rounds it, whose taps read so many levels from that of
    /// the pixel; for the Python package.
    #[track_caller]
    pub(crate) fn truncated(&self, window: &Filter, levels: &[i32], pairing: Pairing) -> Image<T> {
        let call @ Call { site, .. } = Call::of("truncated");
        self.attempt(self.shape(), || {
            check_filter(call, window)?;
            let (depth, channels) = (self.depth(), self.channels());
            let across = levels.iter().any(|by| *by != 0);
            let levels = across.then(|| TapLevels { by: levels.into(), depth, channels });
            let filter = Truncated { window: window.clone(), pairing, levels };
            if !filter.is_paired() {
                return Err(Error::parameter(call, "a pixel lacks the other one of its pair"));
            }
            if !filter.fits(depth * channels) {
                let message = format!("levels of {} taps", window.taps().len());
                return Err(Error::parameter(call, message));
            }
            let reach = filter.levels().iter().map(|by| by.unsigned_abs()).max().unwrap_or(0) as usize;
            if reach > MAX_RADIUS {
                let message = format!("the filter reaches {reach} levels; the limit is {MAX_RADIUS}");
                return Err(Error::parameter(call, message));
            }
            Ok(self.node(Op::OrderFilter(filter.into(), self.border()), site))
        })
    }

    /// Converts to the type of linear filters.
    pub(super) fn linear(&self, site: Site) -> Image<T::Linear> {
        match T::TAG == T::Linear::TAG {
            true => Image::from_handle(self.handle().clone()),
            false => self.node(Op::Convert(Conversion::Nearest), site),
        }
    }

    /// The response of a checked filter. The image was converted from type `pixels` to the type of
    /// linear filters.
    pub(super) fn response(
        &self,
        filter: &Filter,
        border: Border,
        (pixels, tolerance): (DType, Option<f64>),
        site: Site,
    ) -> Image<T> {
        let Some(t) = tolerance else { return self.node(Op::Correlate(filter.clone(), border), site) };
        match tolerance::algorithm(filter, border, pixels, self.shape(), t).0 {
            Algorithm::Direct(filter) => self.node(Op::Correlate(filter, border), site),
            Algorithm::Tiles(tiles) => self.node(Op::from(tiles), site),
            Algorithm::Sum(terms) => {
                let passes = terms.into_iter().map(|passes| {
                    passes
                        .into_iter()
                        .fold(self.plain(), |image, (filter, border)| image.node(Op::Correlate(filter, border), site))
                });
                passes.reduce(|sum, term| together(PixelOp::Add, &sum, &term, site)).unwrap_or_else(|| self.plain())
            }
        }
    }

    /// Correlates, with taps rotated about their anchor or unchanged.
    fn filtered(&self, call: Call, taps: Taps<'_>, turned: bool) -> Image<T::Linear> {
        let border = self.border();
        let filters = match taps {
            Taps::Plane(filter) => std::slice::from_ref(filter),
            Taps::Levels(filters) => filters,
            Taps::Depth(taps) => return self.along_depth(call, &Filter::column(taps), border, turned),
        };
        let anchor = (filters.len() / 2).cast_signed();
        let part = |(filter, on): (&Filter, isize)| if turned { (filter.flipped(), -on) } else { (filter.clone(), on) };
        self.parts(call, &filters.iter().zip(-anchor..).map(part).collect::<Vec<_>>(), border)
    }
}

/// Named filters; [`filters`] returns their taps.
///
/// Gaussians of two scales have `sigma_u` and `order_u` along the line and `sigma_v` and `order_v`
/// across it; sigmas are in pixels, derivative orders 0, 1 or 2. An odd order has the sign of the
/// derivative, as in SciPy.
impl<T: Pixel> Image<T> {
    /// Axis-aligned anisotropic Gaussian; u is along x and v along y. Both supports are
    /// `ceil(3 max(sigma_u, sigma_v))`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let line = Image::from_fn(&session, 15, 15, |y, _| if y == 7 { 1.0f32 } else { 0.0 });
    /// let ridge = line.gauss_xy(3.0, 1.0, 0, 2); // smooth along x, second derivative along y
    /// assert!(ridge.pixel((7, 7))? < -0.1, "a bright line curves down across it");
    /// let along = line.gauss_xy(1.0, 3.0, 2, 0);
    /// assert!(along.abs().max_value().get()? < 1e-6, "and not at all along it");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "correlate1d")]
    #[track_caller]
    pub fn gauss_xy(&self, sigma_u: f64, sigma_v: f64, order_u: u32, order_v: u32) -> Image<T::Linear> {
        Call::of("gauss_xy");
        let (row, column) = filters::gauss_xy(sigma_u, sigma_v, order_u, order_v);
        self.separable(&row, &column)
    }

    /// Anisotropic Gaussian rotated by `theta` degrees, as one dense filter; at multiples of 90
    /// degrees it is computed as a separable one. `u = x cos t - y sin t` and
    /// `v = x sin t + y cos t`, y pointing down.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// // A line that rises to the right.
    /// let line = Image::from_fn(&session, 15, 15, |y, x| if y + x == 14 { 1.0f32 } else { 0.0 });
    /// let ridge = |theta| line.gauss_2d(theta, 2.0, 1.0, 0, 2).pixel((7, 7));
    /// assert!(ridge(45.0)? < -0.1 && ridge(135.0)? > -0.1);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "getGaborKernel")]
    #[track_caller]
    pub fn gauss_2d(&self, theta: f64, sigma_u: f64, sigma_v: f64, order_u: u32, order_v: u32) -> Image<T::Linear> {
        Call::of("gauss_2d");
        let aligned = filters::axis_aligned(theta, sigma_u, sigma_v, order_u, order_v);
        match aligned.unwrap_or_default() {
            Some((row, column)) => self.separable(&row, &column),
            // The filter reports invalid parameters.
            None => {
                let kernel = filters::gauss_2d(theta, sigma_u, sigma_v, order_u, order_v);
                self.correlate(&kernel)
            }
        }
    }

    /// Anisotropic Gaussian rotated by `theta` degrees, decomposed: first along u, then along v,
    /// with bilinear samples. At 0 degrees it is [`Image::gauss_xy`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = samples::worms(&session, 32, 32);
    /// let dense = image.gauss_2d(30.0, 4.0, 2.0, 0, 0);
    /// let decomposed = image.gauss_uv(30.0, 4.0, 2.0, 0, 0);
    /// assert!(dense.absdiff(decomposed).max_value().get()? < 0.02, "nearly the same");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn gauss_uv(&self, theta: f64, sigma_u: f64, sigma_v: f64, order_u: u32, order_v: u32) -> Image<T::Linear> {
        Call::of("gauss_uv");
        let (u, v) = filters::gauss_uv(theta, sigma_u, sigma_v, order_u, order_v);
        if u.is_row() && v.is_column() {
            return self.separable(&u, &v);
        }
        self.correlate(&u).with_border(self.border()).correlate(&v)
    }

    /// Gaussian smoothing with radius `ceil(3 sigma)` along each axis; in a volume along all three
    /// axes, unless sigma is a pair `(y, x)`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let dot = Image::from_fn(&session, 9, 9, |y, x| if (y, x) == (4, 4) { 1.0f32 } else { 0.0 });
    /// let smooth = dot.gauss(1.0);
    /// assert!((smooth.sum().get()? - 1.0).abs() < 1e-6, "as bright as before");
    /// assert_eq!(smooth.pixel((4, 2))?, smooth.pixel((6, 4))?); // and alike in all directions
    /// let dot = Image::from_volume_fn(&session, 9, 9, 9, |z, y, x| if (z, y, x) == (4, 4, 4) { 1.0f32 } else { 0.0 });
    /// let ball = dot.gauss(1.0);
    /// assert!((ball.pixel((2, 4, 4))? - ball.pixel((4, 4, 6))?).abs() < 1e-7, "those of a volume");
    /// assert_eq!(dot.gauss((1.0, 1.0)).pixel((2, 4, 4))?, 0.0, "in the plane alone");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("GaussianBlur", "gaussian", "gaussian_filter"))]
    #[track_caller]
    pub fn gauss(&self, sigma: impl Into<PerAxis<f64>>) -> Image<T::Linear> {
        Call::of("gauss");
        self.by_alpha(&Smoothed { sigma: sigma.into(), border: self.border() })
    }

    /// The derivative of the image smoothed by [`Image::gauss`] (`scipy.ndimage.gaussian_filter`,
    /// sign included). The order is a pair `(y, x)`, a triple `(z, y, x)`, or one number for all
    /// axes. If one of the arguments is a pair, the filter works in the plane.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let slope = Image::from_fn(&session, 9, 9, |y, x| (5 * y + x) as f32);
    /// let along_x = slope.gauss_derivative(1.0, (0, 1)).pixel((4, 4))?;
    /// let along_y = slope.gauss_derivative(1.0, (1, 0)).pixel((4, 4))?;
    /// assert!((along_x - 1.0).abs() < 0.01 && (along_y - 5.0).abs() < 0.05);
    /// let slope = Image::from_volume_fn(&session, 9, 9, 9, |z, y, x| (7 * z + 5 * y + x) as f32);
    /// let rises = slope.gauss_derivative(1.0, (1, 0, 0)).pixel((4, 4, 4))?;
    /// assert!((rises - 7.0).abs() < 0.07);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "gaussian_filter1d")]
    #[track_caller]
    pub fn gauss_derivative(&self, sigma: impl Into<PerAxis<f64>>, order: impl Into<PerAxis<u32>>) -> Image<T::Linear> {
        self.gauss_zyx("gauss_derivative", sigma.into(), order.into())
    }

    /// The 3x3 Sobel derivative along an axis, 8 times the slope (SciPy's `sobel`).
    /// [`Axis::Columns`] is OpenCV's `Sobel(dx = 1, dy = 0)`, [`Axis::Rows`] is
    /// `Sobel(dx = 0, dy = 1)`; other axes are an error. Each level of a volume is filtered
    /// separately.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let slope = Image::from_fn(&session, 3, 3, |y, x| (5 * y + x) as u8);
    /// let (along_x, along_y) = (slope.sobel(Axis::Columns), slope.sobel(Axis::Rows));
    /// assert_eq!((along_x.pixel((1, 1))?, along_y.pixel((1, 1))?), (8.0, 40.0));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "Sobel")]
    #[track_caller]
    pub fn sobel(&self, axis: Axis) -> Image<T::Linear> {
        let call @ Call { site, .. } = Call::of("sobel");
        self.attempt(self.shape(), || {
            let (row, column) = match axis {
                Axis::Columns => filters::sobel_x(),
                Axis::Rows => filters::sobel_y(),
                _ => return Err(Error::parameter(call, "slopes are along rows or columns")),
            };
            Ok(self.linear(site).node(Op::Separable { row, column, border: self.border() }, site))
        })
    }

    /// OpenCV's 3x3 `Laplacian` (`ksize = 1`): the four neighbours minus four times the pixel; in a
    /// volume, the six neighbours minus six times the pixel.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let bowl = Image::from_fn(&session, 5, 5, |y, x| (y * y + x * x) as f32);
    /// assert_eq!(bowl.laplace().crop(1, 1, 3, 3).to_vec()?, [4.0; 9]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "Laplacian")]
    #[track_caller]
    pub fn laplace(&self) -> Image<T::Linear> {
        if self.depth() == 1 {
            return self.correlate(&filters::laplace());
        }
        let middle = Filter::sparse([(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)], [1.0, 1.0, -6.0, 1.0, 1.0]);
        let dot = Filter::row([1.0]);
        self.parts(Call::of("laplace"), &[(dot.clone(), -1), (middle, 0), (dot, 1)], self.border())
    }
}

pub(super) fn check_filter(call: Call, filter: &Filter) -> Result<()> {
    if let Some(fault) = filter.fault() {
        return Err(fault.clone());
    }
    let reach = match filter.layout() {
        &FilterLayout::Dense { height, width, .. } => {
            if filter.taps().is_empty() {
                return Err(Error::Empty { op: call.op, shape: Shape::new(height, width, 1), site: call.site });
            }
            let reach = filter.reach();
            reach.up.max(reach.down).max(reach.left).max(reach.right)
        }
        FilterLayout::Sparse(offsets) => {
            let Some(reach) = offsets.iter().map(|&(y, x)| y.unsigned_abs().max(x.unsigned_abs())).max() else {
                return Err(Error::Empty { op: call.op, shape: Shape::new(0, 0, 1), site: call.site });
            };
            reach as usize
        }
    };
    if reach > MAX_RADIUS {
        return Err(Error::parameter(call, format!("the filter reaches {reach} pixels; the limit is {MAX_RADIUS}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_without_taps_or_of_enormous_reach_are_refused() {
        let call = Call::of("correlate");
        let check = |f: Filter| check_filter(call, &f);
        assert!(matches!(check(Filter::row(Vec::new())), Err(Error::Empty { .. })));
        assert!(matches!(check(Filter::sparse(Vec::new(), Vec::new())), Err(Error::Empty { .. })));
        assert!(matches!(check(Filter::sparse([(i32::MIN, 0)], [1.0])), Err(Error::Parameter { .. })));
        assert!(matches!(check(Filter::row(vec![1.0; 2 * MAX_RADIUS + 2])), Err(Error::Parameter { .. })));
        assert!(check(Filter::row(vec![1.0; 2 * MAX_RADIUS + 1])).is_ok());
    }
}
