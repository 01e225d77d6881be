//! Samples at positions that are pixels of other images.

use crate::ops::Remap;
use std::panic::Location;

use super::{Image, check_shape, record};
use crate::dtype::{Float, Pixel};
use crate::error::{Error, Result, Site};
use crate::ir::graph::Op;
use crate::ops::sampling::Sampling;
use crate::shape::{Border, Shape};

/// Positions are pixels of two or three images, `f32` or `f64`, which may be computed (see [`index`](Image::index)). Each sample is
/// interpolated in `f32`, of `f64`, `i32` and `u32` in `f64`, as by an affine map, and rounded to the image's type. Positions are split
/// into pixels and fractions in `f64`; where one is infinite or no number, the sample is a NaN, of integers 0. Beyond 2^30 pixels they are
/// held there. Every rank needs all of the image, and its rows of the positions.
impl<T: Pixel> Image<T> {
    /// At each pixel of the result the sample at row `rows` and column `columns`, which are images of one extent, one channel and one
    /// level (OpenCV's `remap`, SciPy's `map_coordinates`). Each level of a volume is sampled alike, as is each channel.
    ///
    /// `how` is an [`Interpolation`](crate::ops::geometric::Interpolation) or a [`Sampling`], which has B-splines, too.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_fn(&session, 8, 8, |y, x| (10 * y + x) as f32);
    /// let shape = Shape::new(4, 4, 1);
    /// let (y, x) = (Image::<f64>::index(&session, shape, Axis::Rows), Image::index(&session, shape, Axis::Columns));
    /// let swirled = image.remap(&(&y * 0.5 + 1.0), &(&x + &y), Interpolation::Bilinear, Border::Replicate);
    /// assert_eq!(swirled.pixel(3, 2)?, 10.0 * 2.5 + 5.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "map_coordinates")]
    #[track_caller]
    pub fn remap<C: Float>(
        &self,
        rows: &Image<C>,
        columns: &Image<C>,
        how: impl Into<Sampling>,
        border: Border,
    ) -> Image<T> {
        let shape = Shape { depth: self.depth(), channels: self.channels(), ..rows.shape() };
        self.sampled("remap", [rows, columns], shape, (how.into(), border), Location::caller())
    }

    /// At each pixel of the result the sample of the volume at level `levels`, row `rows` and column `columns`, which are images or
    /// volumes of one extent and one channel. Beyond the first and the last level the border is that of the plane.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let volume = Image::from_volume_fn(&session, 4, 3, 3, |z, y, x| (100 * z + 10 * y + x) as f64);
    /// let plane = Shape::new(3, 3, 1);
    /// let (y, x) = (Image::<f64>::index(&session, plane, Axis::Rows), Image::index(&session, plane, Axis::Columns));
    /// let oblique = volume.remap_3d(&(&x * 0.5 + 1.0), &y, &x, Sampling::Linear, Border::Reflect101);
    /// assert_eq!(oblique.pixel(2, 1)?, 150.0 + 20.0 + 1.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "map_coordinates")]
    #[track_caller]
    pub fn remap_3d<C: Float>(
        &self,
        levels: &Image<C>,
        rows: &Image<C>,
        columns: &Image<C>,
        how: impl Into<Sampling>,
        border: Border,
    ) -> Image<T> {
        let shape = Shape { channels: self.channels(), ..levels.shape() };
        self.sampled("remap_3d", [levels, rows, columns], shape, (how.into(), border), Location::caller())
    }

    fn sampled<C: Float, const N: usize>(
        &self,
        op: &'static str,
        coordinates: [&Image<C>; N],
        shape: Shape,
        (how, border): (Sampling, Border),
        site: Site,
    ) -> Image<T> {
        self.attempt(shape, || {
            coordinates.iter().try_for_each(|c| self.holds_positions(op, c, coordinates[0].shape(), site))?;
            check_shape(op, shape, T::DTYPE, site)?;
            let mut handles = vec![self.handle()];
            handles.extend(coordinates.iter().map(|c| c.handle()));
            Ok(record(self.session(), Op::from(Remap { sampling: how, border }), &handles, shape, site))
        })
    }

    /// Checks one of several images of positions of the extent of the first.
    fn holds_positions<C: Float>(&self, op: &'static str, image: &Image<C>, first: Shape, site: Site) -> Result<()> {
        image.check()?;
        if !self.session().same(image.session()) {
            return Err(Error::ForeignImage { op, site });
        }
        let shape = image.shape();
        if shape.channels != 1 || (op == "remap" && shape.depth != 1) {
            let most = if op == "remap" { "one channel and one level" } else { "one channel" };
            return Err(Error::parameter(op, format!("positions are images of {most}, not {shape}"), site));
        }
        if shape != first {
            return Err(Error::parameter(op, format!("positions of {first} and {shape} differ in size"), site));
        }
        Ok(())
    }
}
