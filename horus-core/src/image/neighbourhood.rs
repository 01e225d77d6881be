//! Neighbourhood operations.

use std::panic::Location;

use super::{Image, typed_border};
use crate::dtype::Pixel;
use crate::error::{Error, Result, Site};
use crate::filters::{self, MAX_RADIUS};
use crate::graph::Op;
use crate::ops::neighbourhood::{Combine, Filter, Generalized, Layout, MedianSize, Reduce};
use crate::shape::{Border, Shape};

/// Filters of any taps, with any border. Linear filters of integer images yield `f32`.
impl<T: Pixel> Image<T> {
    /// Correlation: `out(p) = sum over offsets o of tap(o) * in(p + o)`, the filter not flipped. A filter of even size
    /// anchors at half its size; it may be larger than the image.
    ///
    /// # Errors
    /// If the filter has no taps or reaches further than [`MAX_RADIUS`].
    #[track_caller]
    pub fn correlate(&self, filter: &Filter, border: Border) -> Result<Image<T::Linear>> {
        let site = Location::caller();
        check_filter("correlate", filter, site)?;
        Ok(self.linear().correlated(filter.clone(), border, site))
    }

    /// Convolution: correlation with the filter turned by 180 degrees about its anchor.
    ///
    /// # Errors
    /// As [`Image::correlate`].
    #[track_caller]
    pub fn convolve(&self, filter: &Filter, border: Border) -> Result<Image<T::Linear>> {
        let site = Location::caller();
        check_filter("convolve", filter, site)?;
        Ok(self.linear().correlated(filter.flipped(), border, site))
    }

    /// Correlation with a filter of one row, then with a filter of one column.
    ///
    /// # Errors
    /// If `row` is not a row or `column` not a column, or as [`Image::correlate`].
    #[track_caller]
    pub fn separable(&self, row: &Filter, column: &Filter, border: Border) -> Result<Image<T::Linear>> {
        let site = Location::caller();
        let op = "separable";
        check_filter(op, row, site)?;
        check_filter(op, column, site)?;
        if !row.is_row() || !column.is_column() {
            return Err(Error::parameter(op, format!("{row} and {column} are not a row and a column"), site));
        }
        let border = typed_border(border, T::DTYPE.linear());
        let (row, column) = (row.clone(), column.clone());
        Ok(self.linear().node(Op::Separable { row, column, border }, site))
    }

    /// Generalized convolution: each pixel under the window is combined with its weight, and the results are reduced,
    /// in the arithmetic of the image's own type.
    ///
    /// # Errors
    /// If the window has no taps or reaches further than [`MAX_RADIUS`].
    #[track_caller]
    pub fn generalized(&self, operation: &Generalized, border: Border) -> Result<Image<T>> {
        let site = Location::caller();
        check_filter("generalized", &operation.window, site)?;
        Ok(self.node(Op::Generalized(operation.clone(), typed_border(border, T::DTYPE)), site))
    }

    /// The median of 3x3 or 5x5 pixels.
    #[track_caller]
    pub fn median(&self, size: MedianSize, border: Border) -> Image<T> {
        self.node(Op::Median(size, typed_border(border, T::DTYPE)), Location::caller())
    }

    /// The image in the type of linear filters.
    #[track_caller]
    fn linear(&self) -> Image<T::Linear> {
        self.convert()
    }

    /// Records a correlation with a checked filter of an image in its linear type.
    fn correlated(&self, filter: Filter, border: Border, site: Site) -> Image<T> {
        self.node(Op::Correlate(filter, typed_border(border, T::DTYPE)), site)
    }
}

/// Named filters, with the border [`Border::Reflect101`]. For another border take the filter from [`filters`], as each
/// method tells.
///
/// Gaussians of two scales have `sigma_u` and `order_u` along the line and `sigma_v` and `order_v` across it; sigmas are
/// in pixels, derivative orders 0, 1 or 2. They *correlate* with the taps of [`filters::gauss_1d`], so that an odd order
/// has the opposite sign of the derivative.
impl<T: Pixel> Image<T> {
    /// Axis-aligned anisotropic Gaussian: u along x, v along y. Both supports are `ceil(3 max(sigma_u, sigma_v))`.
    ///
    /// With another border: [`filters::gauss_xy`] and [`Image::separable`].
    ///
    /// # Errors
    /// If a sigma is not positive and finite or too large, or an order exceeds 2.
    #[track_caller]
    pub fn gauss_xy(&self, sigma_u: f64, sigma_v: f64, order_u: u32, order_v: u32) -> Result<Image<T::Linear>> {
        let (row, column) = filters::gauss_xy(sigma_u, sigma_v, order_u, order_v)?;
        self.separable(&row, &column, Border::Reflect101)
    }

    /// Anisotropic Gaussian turned by `theta` degrees, as one dense kernel; at multiples of 90 degrees it is separable
    /// and computed as such. `u = x cos t - y sin t` and `v = x sin t + y cos t`, y pointing down.
    ///
    /// With another border: [`filters::gauss_2d`] and [`Image::correlate`].
    ///
    /// # Errors
    /// If `theta` is not finite, a sigma is not positive and finite or too large, or an order exceeds 2.
    #[track_caller]
    pub fn gauss_2d(
        &self,
        theta: f64,
        sigma_u: f64,
        sigma_v: f64,
        order_u: u32,
        order_v: u32,
    ) -> Result<Image<T::Linear>> {
        match filters::axis_aligned(theta, sigma_u, sigma_v, order_u, order_v)? {
            Some((row, column)) => self.separable(&row, &column, Border::Reflect101),
            None => {
                let kernel = filters::gauss_2d(theta, sigma_u, sigma_v, order_u, order_v)?;
                self.correlate(&kernel, Border::Reflect101)
            }
        }
    }

    /// Anisotropic Gaussian turned by `theta` degrees, decomposed: first along u, then along v, sampling bilinearly. At
    /// 0 degrees it is [`Image::gauss_xy`].
    ///
    /// With another border: [`filters::gauss_uv`] and [`Image::correlate`] twice.
    ///
    /// # Errors
    /// If `theta` is not finite, a sigma is not positive and finite or too large, or an order exceeds 2.
    #[track_caller]
    pub fn gauss_uv(
        &self,
        theta: f64,
        sigma_u: f64,
        sigma_v: f64,
        order_u: u32,
        order_v: u32,
    ) -> Result<Image<T::Linear>> {
        let (u, v) = filters::gauss_uv(theta, sigma_u, sigma_v, order_u, order_v)?;
        if u.is_row() && v.is_column() {
            return self.separable(&u, &v, Border::Reflect101);
        }
        self.correlate(&u, Border::Reflect101)?.correlate(&v, Border::Reflect101)
    }

    /// Isotropic Gaussian smoothing of radius `ceil(3 sigma)`.
    ///
    /// With another border: [`filters::gauss`]`(sigma, 0, 0)` and [`Image::separable`].
    ///
    /// # Errors
    /// If `sigma` is not positive and finite or too large.
    #[track_caller]
    pub fn gauss(&self, sigma: f64) -> Result<Image<T::Linear>> {
        self.gauss_derivative(sigma, 0, 0)
    }

    /// The derivative, of order `order_y` along y and `order_x` along x, of the image smoothed by [`Image::gauss`]
    /// (`scipy.ndimage.gaussian_filter`, sign included).
    ///
    /// With another border: [`filters::gauss`] and [`Image::separable`].
    ///
    /// # Errors
    /// If `sigma` is not positive and finite or too large, or an order exceeds 2.
    #[track_caller]
    pub fn gauss_derivative(&self, sigma: f64, order_y: u32, order_x: u32) -> Result<Image<T::Linear>> {
        let (row, column) = filters::gauss(sigma, order_y, order_x)?;
        self.separable(&row, &column, Border::Reflect101)
    }

    /// The mean over `size x size` pixels; an even size reads one pixel more above and to the left.
    ///
    /// With another border: [`filters::box_filter`] and [`Image::separable`].
    ///
    /// # Errors
    /// If `size` is zero or too large.
    #[track_caller]
    pub fn box_filter(&self, size: usize) -> Result<Image<T::Linear>> {
        let (row, column) = filters::box_filter(size)?;
        self.separable(&row, &column, Border::Reflect101)
    }

    /// OpenCV's 3x3 `Sobel(dx = 1, dy = 0)`: 8 times the slope along x.
    ///
    /// With another border: [`filters::sobel_x`] and [`Image::separable`].
    #[track_caller]
    pub fn sobel_x(&self) -> Image<T::Linear> {
        self.sobel(filters::sobel_x(), Location::caller())
    }

    /// OpenCV's 3x3 `Sobel(dx = 0, dy = 1)`: 8 times the slope along y.
    ///
    /// With another border: [`filters::sobel_y`] and [`Image::separable`].
    #[track_caller]
    pub fn sobel_y(&self) -> Image<T::Linear> {
        self.sobel(filters::sobel_y(), Location::caller())
    }

    /// OpenCV's 3x3 `Laplacian` (`ksize = 1`): the four neighbours minus four times the pixel.
    ///
    /// With another border: [`filters::laplace`] and [`Image::correlate`].
    #[track_caller]
    pub fn laplace(&self) -> Image<T::Linear> {
        self.linear().correlated(filters::laplace(), Border::Reflect101, Location::caller())
    }

    /// Erosion: the smallest pixel under a `height x width` rectangle. Unlike OpenCV, pixels mirrored at the border
    /// take part.
    ///
    /// With another border: [`filters::erosion`] and [`Image::generalized`].
    ///
    /// # Errors
    /// If a size is zero, even or too large.
    #[track_caller]
    pub fn erode(&self, height: usize, width: usize) -> Result<Image<T>> {
        let site = Location::caller();
        filters::check_window("erode", height, width, site)?;
        Ok(self.extreme_under(height, width, Reduce::Min, site))
    }

    /// Dilation: the largest pixel under a `height x width` rectangle; see [`Image::erode`].
    ///
    /// With another border: [`filters::dilation`] and [`Image::generalized`].
    ///
    /// # Errors
    /// If a size is zero, even or too large.
    #[track_caller]
    pub fn dilate(&self, height: usize, width: usize) -> Result<Image<T>> {
        let site = Location::caller();
        filters::check_window("dilate", height, width, site)?;
        Ok(self.extreme_under(height, width, Reduce::Max, site))
    }

    /// The median of 3x3 pixels.
    ///
    /// With another border: [`Image::median`].
    #[track_caller]
    pub fn median3(&self) -> Image<T> {
        self.median(MedianSize::Three, Border::Reflect101)
    }

    /// The median of 5x5 pixels.
    ///
    /// With another border: [`Image::median`].
    #[track_caller]
    pub fn median5(&self) -> Image<T> {
        self.median(MedianSize::Five, Border::Reflect101)
    }

    fn sobel(&self, (row, column): (Filter, Filter), site: Site) -> Image<T::Linear> {
        self.linear().node(Op::Separable { row, column, border: Border::Reflect101 }, site)
    }

    /// The extreme under a rectangle, row by row and then column by column: the same bits as in one pass, ties and NaN
    /// included, because both orders keep the first extreme in row-major order.
    fn extreme_under(&self, height: usize, width: usize, reduce: Reduce, site: Site) -> Image<T> {
        [Filter::row(vec![0.0; width]), Filter::column(vec![0.0; height])]
            .into_iter()
            .filter(|window| window.taps().len() > 1)
            .fold(self.clone(), |image, window| {
                let operation = Generalized { window, combine: Combine::Pixel, reduce };
                image.node(Op::Generalized(operation, Border::Reflect101), site)
            })
    }
}

fn check_filter(op: &'static str, filter: &Filter, site: Site) -> Result<()> {
    let reach = match filter.layout() {
        &Layout::Dense { height, width, .. } => {
            if filter.taps().is_empty() {
                return Err(Error::Empty { op, shape: Shape::new(height, width, 1), site });
            }
            let reach = filter.reach();
            reach.up.max(reach.down).max(reach.left).max(reach.right)
        }
        Layout::Sparse(offsets) => {
            let Some(reach) = offsets.iter().map(|&(y, x)| y.unsigned_abs().max(x.unsigned_abs())).max() else {
                return Err(Error::Empty { op, shape: Shape::new(0, 0, 1), site });
            };
            reach as usize
        }
    };
    if reach > MAX_RADIUS {
        return Err(Error::parameter(op, format!("the filter reaches {reach} pixels, more than {MAX_RADIUS}"), site));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_without_taps_or_of_enormous_reach_are_refused() {
        let site = Location::caller();
        let check = |f: Filter| check_filter("correlate", &f, site);
        assert!(matches!(check(Filter::row(Vec::new())), Err(Error::Empty { .. })));
        assert!(matches!(check(Filter::sparse(Vec::new(), Vec::new())), Err(Error::Empty { .. })));
        assert!(matches!(check(Filter::sparse([(i32::MIN, 0)], [1.0])), Err(Error::Parameter { .. })));
        assert!(matches!(check(Filter::row(vec![1.0; 2 * MAX_RADIUS + 2])), Err(Error::Parameter { .. })));
        assert!(check(Filter::row(vec![1.0; 2 * MAX_RADIUS + 1])).is_ok());
    }
}
