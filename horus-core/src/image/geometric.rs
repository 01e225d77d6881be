//! Geometric operations.

use std::panic::Location;

use super::{Image, check_shape, typed_border};
use crate::dtype::Pixel;
use crate::error::{Error, Result, Site};
use crate::graph::Op;
use crate::ops::geometric::{Affine, Flip, Interpolation, rotation};
use crate::shape::{Border, Shape};

/// Geometric operations. They keep the pixel type; integers are rounded to nearest even where they interpolate.
impl<T: Pixel> Image<T> {
    /// Rotated about its centre by `degrees`, anti-clockwise as seen on the screen, into an image of the same size
    /// (OpenCV's `getRotationMatrix2D` about `((w - 1) / 2, (h - 1) / 2)`). Bilinear; outside is 0 and takes part in
    /// the interpolation (scipy `grid-constant`).
    ///
    /// # Errors
    /// If the angle is not finite.
    #[track_caller]
    pub fn rotate(&self, degrees: f64) -> Result<Image<T>> {
        self.rotate_with(degrees, Interpolation::Bilinear, outside::<T>())
    }

    /// [`Image::rotate`] with the given interpolation and border.
    ///
    /// # Errors
    /// If the angle is not finite.
    #[track_caller]
    pub fn rotate_with(&self, degrees: f64, interpolation: Interpolation, border: Border) -> Result<Image<T>> {
        let site = Location::caller();
        if !degrees.is_finite() {
            return Err(Error::parameter("rotate", format!("the angle is {degrees}, it must be finite"), site));
        }
        self.warp("rotate", rotation(degrees, self.shape()), self.shape(), interpolation, border, site)
    }

    /// Scaled to `height x width` pixels, pixel centres aligned: `source = (target + 0.5) * scale - 0.5` on each axis,
    /// edge pixels repeated outside. Downscaling samples and does not average; smooth first to avoid aliasing.
    ///
    /// # Errors
    /// If a size is zero or too large.
    #[track_caller]
    pub fn resize(&self, height: usize, width: usize, interpolation: Interpolation) -> Result<Image<T>> {
        let shape = Shape { height, width, ..self.shape() };
        let site = Location::caller();
        check_shape::<T>("resize", shape, site)?;
        let (sy, sx) = (self.height() as f64 / height as f64, self.width() as f64 / width as f64);
        let map = [[sx, 0.0, 0.5 * sx - 0.5], [0.0, sy, 0.5 * sy - 0.5]];
        self.warp("resize", map, shape, interpolation, Border::Replicate, site)
    }

    /// Moved by `dy` pixels down and `dx` to the right, bilinearly where these are not whole; outside is 0.
    ///
    /// # Errors
    /// If an offset is not finite, or larger than about 2^30.
    #[track_caller]
    pub fn translate(&self, dy: f64, dx: f64) -> Result<Image<T>> {
        let map = [[1.0, 0.0, -dx], [0.0, 1.0, -dy]];
        self.warp("translate", map, self.shape(), Interpolation::Bilinear, outside::<T>(), Location::caller())
    }

    /// The general affine map. `matrix` takes positions `(x, y, 1)` of the *output*, an image of `height x width` pixels,
    /// to positions `[x, y]` of the input (OpenCV's `warpAffine` with `WARP_INVERSE_MAP`).
    ///
    /// # Errors
    /// If a size is zero, a coefficient is not finite, or a position would lie further out than about 2^30 pixels.
    #[track_caller]
    pub fn affine(
        &self,
        matrix: [[f64; 3]; 2],
        (height, width): (usize, usize),
        interpolation: Interpolation,
        border: Border,
    ) -> Result<Image<T>> {
        let shape = Shape { height, width, ..self.shape() };
        self.warp("affine", matrix, shape, interpolation, border, Location::caller())
    }

    /// Mirrored.
    #[track_caller]
    pub fn flip(&self, how: Flip) -> Image<T> {
        self.node(Op::Flip(how), Location::caller())
    }

    /// Rows and columns exchanged: an image of `width x height` pixels.
    #[track_caller]
    pub fn transpose(&self) -> Image<T> {
        let Shape { height, width, channels } = self.shape();
        self.node_of_shape(Op::Transpose, Shape::new(width, height, channels), Location::caller())
    }

    fn warp(
        &self,
        op: &'static str,
        matrix: [[f64; 3]; 2],
        shape: Shape,
        interpolation: Interpolation,
        border: Border,
        site: Site,
    ) -> Result<Image<T>> {
        check_shape::<T>(op, shape, site)?;
        let Some(map) = Affine::new(matrix, shape) else {
            return Err(Error::parameter(op, format!("the map {matrix:?} is not finite or reaches too far"), site));
        };
        let border = typed_border(border, T::DTYPE);
        Ok(self.node_of_shape(Op::Warp(map, interpolation, border), shape, site))
    }
}

/// What lies outside an image that is moved: 0.
fn outside<T: Pixel>() -> Border {
    Border::Constant(T::ZERO.scalar())
}
