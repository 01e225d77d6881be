//! The taps of named linear filters: Gaussian derivatives (along the axes or oriented), box, Sobel, Laplace.
//!
//! Functions from parameters to [`Filter`]s never fail: with an invalid parameter, the image that the filter is applied
//! to carries the error. (Only [`gauss_1d`] returns an error.) The methods of `Image` of the same names apply the filters
//! with [`Border::Reflect101`](horus_base::shape::Border); for another border mode, pass the filter to `correlate` or
//! `separable`.
//!
//! Gaussian taps are computed in `f64`, normalised so that the smoothing kernel sums to 1 over its support. Images of
//! `f64` use these taps, all others the taps rounded to `f32`. Taps below 2^-64 of the largest are set to 0, because they
//! would only cost time; filters along one axis end where only such taps follow, ten sigma from the centre.

mod filter_cache;
mod footprint;
mod low_rank;
mod oriented;
pub mod tolerance;

use crate::ops::gaussian::{bell, factor, gauss_taps, positions, weight};
use crate::ops::neighbourhood::Filter;
use horus_base::error::{Call, Error, Result};
use horus_base::shape::Shape;

pub use footprint::Footprint;
pub use oriented::axis_aligned;
pub use oriented::{gauss_2d, gauss_uv};

/// The largest radius, in pixels, of any filter.
pub const MAX_RADIUS: usize = 1 << 15;

/// The largest number of taps of a dense oriented kernel.
pub const MAX_DENSE_TAPS: usize = 1 << 24;

/// Taps of a Gaussian derivative for `x` in `-radius..=radius`: with `g = exp(-x^2 / 2 sigma^2)`
/// normalised to sum 1, order 0 is `g`, order 1 is `x / sigma^2 g`, whose correlation is the
/// derivative, order 2 is `(x^2 / sigma^4 - 1 / sigma^2) g`.
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// use horus::filters::gauss_1d;
/// let taps = gauss_1d(1.0, 0, 3)?;
/// assert_eq!((taps.len(), taps[0]), (7, taps[6]));
/// assert!((taps.iter().sum::<f64>() - 1.0).abs() < 1e-12);
/// assert!(gauss_1d(-1.0, 0, 3).is_err());
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// If `sigma` is not positive and finite or too small for its taps to be finite, `order > 2`, or
/// `radius > `[`MAX_RADIUS`].
#[doc(alias = "getGaussianKernel")]
#[track_caller]
pub fn gauss_1d(sigma: f64, order: u32, radius: usize) -> Result<Vec<f64>> {
    let call = Call::of("gauss_1d");
    AxisDerivative { name: "sigma", sigma, order }.check(call)?;
    check_radius(call, radius as f64)?;
    finite(call, gauss_taps(sigma, order, radius))
}

/// The row filter (along x, `sigma_u`, `order_u`) and the column filter (along y, `sigma_v`,
/// `order_v`) of an axis-aligned anisotropic Gaussian. Both have radius `ceil(3 max(sigma_u,
/// sigma_v))`, or the largest radius below ten times their own sigma if all taps further out are 0.
///
/// The filters cannot be applied if a sigma is not positive and finite, an order exceeds 2, or the radius
/// exceeds [`MAX_RADIUS`].
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::constant(&session, (9, 9), 1.0f32);
/// let (row, column) = filters::gauss_xy(1.0, 1.0, 0, 0);
/// let darker = image.with_border(Border::Constant(0.0)).separable(&row, &column); // dark around the image
/// assert!(darker.pixel((0, 0))? < 0.5 && (darker.pixel((4, 4))? - 1.0).abs() < 1e-6);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[track_caller]
pub fn gauss_xy(sigma_u: f64, sigma_v: f64, order_u: u32, order_v: u32) -> (Filter, Filter) {
    let call = Call::of("gauss_xy");
    let key = filter_cache::key(call.op, 0.0, sigma_u, sigma_v, [order_u, order_v]);
    pair(|| {
        filter_cache::cached_filters(key, || {
            let pair = GaussianPair::of_line(call, sigma_u, sigma_v, order_u, order_v)?;
            let (row, column) = pair.near_taps()?;
            Ok((Filter::row(row), Filter::column(column)))
        })
    })
}

/// The row and the column filter of the derivative of order `order_y` along y and `order_x` along x
/// of an isotropic Gaussian, of radius `ceil(3 sigma)`.
///
/// Correlation with both filters is the derivative that `scipy.ndimage.gaussian_filter(order=(order_y,
/// order_x))` computes. They cannot be applied if the filters of [`gauss_xy`] cannot.
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// let (row, column) = filters::gauss(2.0, 0, 1); // the derivative along x
/// assert_eq!((row.taps().len(), column.taps().len()), (13, 13));
/// assert!(row.taps()[12] > 0.0, "brighter on the right: rising");
/// ```
#[track_caller]
pub fn gauss(sigma: f64, order_y: u32, order_x: u32) -> (Filter, Filter) {
    let call = Call::of("gauss");
    pair(|| {
        let along = |order| AxisDerivative { name: "sigma", sigma, order };
        let (row, column) = GaussianPair::new(call, along(order_x), along(order_y))?.near_taps()?;
        Ok((Filter::row(row), Filter::column(column)))
    })
}

/// Both filters; on failure, two filters that carry the error.
fn pair(make: impl FnOnce() -> Result<(Filter, Filter)>) -> (Filter, Filter) {
    make().unwrap_or_else(|error| (Filter::faulty(error.clone()), Filter::faulty(error)))
}

/// The row and the column filter of the mean over `size x size` pixels. A filter of even size is
/// anchored at `size / 2`: it reads one pixel more above and to the left. The filters cannot be
/// applied if `size` is zero or the radius exceeds [`MAX_RADIUS`].
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// let (row, column) = filters::box_filter(4);
/// assert_eq!(row.taps(), [0.25; 4]);
/// assert_eq!((row.reach().left, row.reach().right), (2, 1));
/// ```
#[track_caller]
pub fn box_filter(size: usize) -> (Filter, Filter) {
    let call = Call::of("box_filter");
    pair(|| {
        check_size(call, size, size)?;
        let taps = vec![1.0 / size as f64; size];
        Ok((Filter::row(taps.clone()), Filter::column(taps)))
    })
}

/// The row and the column filter of OpenCV's 3x3 `Sobel(dx = 1, dy = 0)`: the derivative along x, 8
/// times the slope.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let edge = Image::from_fn(&session, 3, 4, |_, x| if x < 2 { 0u8 } else { 1 });
/// let (row, column) = filters::sobel_x();
/// let across = edge.with_border(Border::Replicate).separable(&row, &column);
/// assert_eq!(across.crop(0, 0, 1, 4).to_vec()?, [0.0, 4.0, 4.0, 0.0]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
pub fn sobel_x() -> (Filter, Filter) {
    (Filter::row([-1.0, 0.0, 1.0]), Filter::column([1.0, 2.0, 1.0]))
}

/// The row and the column filter of OpenCV's 3x3 `Sobel(dx = 0, dy = 1)`: the derivative along y, 8
/// times the slope.
pub fn sobel_y() -> (Filter, Filter) {
    (Filter::row([1.0, 2.0, 1.0]), Filter::column([-1.0, 0.0, 1.0]))
}

/// OpenCV's 3x3 `Laplacian` (`ksize = 1`): the sum of the four neighbours minus four times the
/// pixel.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let dot = Image::from_slice(&session, (3, 3), &[0u8, 0, 0, 0, 1, 0, 0, 0, 0]);
/// let curved = dot.with_border(Border::Replicate).correlate(&filters::laplace());
/// assert_eq!(curved.to_vec()?, [0.0, 1.0, 0.0, 1.0, -4.0, 1.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
pub fn laplace() -> Filter {
    Filter::dense(3, 3, [0.0, 1.0, 0.0, 1.0, -4.0, 1.0, 0.0, 1.0, 0.0])
}

/// Returns an error for `call` if a filter of this size in pixels is too large.
pub fn check_size(call: Call, height: usize, width: usize) -> Result<()> {
    if height == 0 || width == 0 {
        return Err(Error::Empty { op: call.op, shape: Shape::new(height, width, 1), site: call.site });
    }
    check_radius(call, (height.max(width) / 2) as f64)
}

/// Returns an error for `call` if a filter has too many taps.
pub fn check_taps(call: Call, height: usize, width: usize) -> Result<()> {
    if height * width <= MAX_DENSE_TAPS {
        return Ok(());
    }
    Err(Error::parameter(call, format!("a kernel of {height}x{width} taps exceeds the limit of {MAX_DENSE_TAPS}")))
}

fn check_radius(call: Call, radius: f64) -> Result<()> {
    if radius <= MAX_RADIUS as f64 {
        return Ok(());
    }
    Err(Error::parameter(call, format!("a radius of {radius} pixels exceeds the limit of {MAX_RADIUS}")))
}

/// Scale and order of the derivative along one axis.
#[derive(Clone, Copy)]
struct AxisDerivative {
    name: &'static str,
    sigma: f64,
    order: u32,
}

impl AxisDerivative {
    fn check(&self, call: Call) -> Result<()> {
        let AxisDerivative { name, sigma, order } = *self;
        if !(sigma > 0.0 && sigma.is_finite()) {
            return Err(Error::parameter(call, format!("{name} is {sigma}; it must be positive and finite")));
        }
        if order > 2 {
            return Err(Error::parameter(call, format!("derivative order {order} is not 0, 1 or 2")));
        }
        Ok(())
    }
}

/// The checked parameters of a Gaussian with two axes.
struct GaussianPair {
    call: Call,
    u: AxisDerivative,
    v: AxisDerivative,
    radius: usize,
}

impl GaussianPair {
    /// Checks the parameters along and across a line.
    fn of_line(call: Call, su: f64, sv: f64, ou: u32, ov: u32) -> Result<GaussianPair> {
        let u = AxisDerivative { name: "sigma_u", sigma: su, order: ou };
        let v = AxisDerivative { name: "sigma_v", sigma: sv, order: ov };
        GaussianPair::new(call, u, v)
    }

    fn new(call: Call, u: AxisDerivative, v: AxisDerivative) -> Result<GaussianPair> {
        u.check(call)?;
        v.check(call)?;
        let radius = (3.0 * u.sigma.max(v.sigma)).ceil();
        check_radius(call, radius)?;
        Ok(GaussianPair { call, u, v, radius: radius as usize })
    }

    /// The taps along u and along v.
    fn taps(&self) -> (Vec<f64>, Vec<f64>) {
        let taps = |a: AxisDerivative| gauss_taps(a.sigma, a.order, self.radius);
        (taps(self.u), taps(self.v))
    }

    /// The taps along u and along v, without outer zeros.
    fn near_taps(&self) -> Result<(Vec<f64>, Vec<f64>)> {
        let (u, v) = self.taps();
        let near = |taps, axis: AxisDerivative| Ok(near(finite(self.call, taps)?, axis.sigma));
        Ok((near(u, self.u)?, near(v, self.v)?))
    }
}

/// The taps less than ten sigma from the centre, if all others are 0. There a smoothing kernel has fallen to
/// `exp(-50)` of its peak, and its second derivative to 99 times that, which is less than 2^-64. All orders
/// end at the same place, so that filters of one scale are computed together. Kernels narrower than a pixel
/// may have nonzero taps beyond; they stay unchanged.
fn near(mut taps: Vec<f64>, sigma: f64) -> Vec<f64> {
    let radius = taps.len() / 2;
    // A radius is at most 2^15, and no sigma makes it negative.
    let kept = radius.min(((10.0 * sigma).ceil() - 1.0).max(0.0) as usize);
    let far = radius - kept;
    if taps[..far].iter().chain(&taps[taps.len() - far..]).any(|t| *t != 0.0) {
        return taps;
    }
    taps.drain(..far);
    taps.truncate(2 * kept + 1);
    taps
}

/// A tap smaller than the largest by this factor is set to 0. For pixels of similar magnitude it could not
/// change a sum even in `f64`, but it causes subnormal products, each of which stalls a processor for a
/// hundred cycles or more.
const NEGLIGIBLE: f64 = 1.0 / (1u128 << 64) as f64;

/// The taps with negligible ones set to 0. Fails if they are too large for `f32`.
fn finite(call: Call, mut taps: Vec<f64>) -> Result<Vec<f64>> {
    let least = NEGLIGIBLE * taps.iter().fold(0.0, |m: f64, t| m.max(t.abs()));
    taps.iter_mut().filter(|t| t.abs() < least).for_each(|t| *t = 0.0);
    if taps.iter().all(|t| (*t as f32).is_finite()) {
        return Ok(taps);
    }
    Err(Error::parameter(call, "sigma is too small for a derivative: its taps are not finite"))
}
