//! Samples at positions given by the pixels of other images.

use crate::ops::Remap;

use super::{Image, Positions, check_shape, record};
use crate::dtype::{Float, Pixel, Scalar};
use crate::error::{Call, Error, Result, Site};
use crate::ir::graph::Op;
use crate::ops::sampling::Sampling;
use crate::shape::Shape;

/// Sampling. Positions are the pixels of two or three images of `f32` or `f64`, which may be
/// computed (see [`index`](Image::index)). Samples are interpolated in `f32` (in `f64` for `f64`,
/// `i32` and `u32`), as by an affine map, and rounded to the image's type. Positions are split into
/// pixels and fractions in `f64`, and clamped to 2^30 pixels. At an infinite or NaN position the
/// sample is NaN, or 0 for integers. Every rank reads the whole image, and its own rows of the
/// positions.
impl<T: Pixel> Image<T> {
    /// Samples the image at given positions (OpenCV's `remap`, SciPy's `map_coordinates`).
    /// `[&y, &x]` are images of the row and the column for each pixel of the result; they have the
    /// same size, one channel and one level. Each level and channel is sampled at the same
    /// positions. Three images or volumes, `[&z, &y, &x]`, are positions in a volume; the border
    /// mode also applies beyond the first and the last level.
    ///
    /// `how` is an [`Interpolation`](crate::ops::geometric::Interpolation) or a [`Sampling`], which
    /// also has B-splines.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_fn(&session, 8, 8, |y, x| (10 * y + x) as f32);
    /// let shape = Shape::new(4, 4, 1);
    /// let (y, x) = (Image::<f64>::index(&session, shape, Axis::Rows), Image::index(&session, shape, Axis::Columns));
    /// let swirled = image.with_border(Border::Replicate).remap([&(&y * 0.5 + 1.0), &(&x + &y)], Interpolation::Bilinear);
    /// assert_eq!(swirled.pixel((3, 2))?, 10.0 * 2.5 + 5.0);
    /// let volume = Image::from_volume_fn(&session, 4, 4, 4, |z, y, x| (100 * z + 10 * y + x) as f64);
    /// let oblique = volume.with_border(Border::Reflect101).remap([&(&x * 0.5 + 1.0), &y, &x], Sampling::Linear);
    /// assert_eq!(oblique.pixel((2, 1))?, 150.0 + 20.0 + 1.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "map_coordinates")]
    #[track_caller]
    pub fn remap<'a, C: Float>(&self, positions: impl Into<Positions<'a, C>>, how: impl Into<Sampling>) -> Image<T> {
        let (positions, site) = (positions.into(), Call::of("remap").site);
        let (at, plane) = (positions.axes(), positions.axes().len() == 2);
        let depth = if plane { self.depth() } else { at[0].depth() };
        let shape = Shape { depth, channels: self.channels(), ..at[0].shape() };
        self.attempt(shape, || {
            at.iter().try_for_each(|c| self.holds_positions(plane, c, at[0].shape(), site))?;
            check_shape(Call { op: "remap", site }, shape, T::DTYPE)?;
            let mut handles = vec![self.handle()];
            handles.extend(at.iter().map(|c| c.handle()));
            let outside = positions.outside().map(|value| Scalar::from_f64(T::DTYPE, value));
            let remap = Remap { sampling: how.into(), border: self.outside(), outside };
            Ok(record(self.session(), Op::from(remap), &handles, shape, site))
        })
    }

    /// Checks that an image of positions has the size of the first.
    fn holds_positions<C: Float>(&self, plane: bool, image: &Image<C>, first: Shape, site: Site) -> Result<()> {
        let call = Call { op: "remap", site };
        image.check()?;
        if !self.session().same(image.session()) {
            return Err(Error::ForeignImage { op: call.op, site });
        }
        let shape = image.shape();
        if shape.channels != 1 || (plane && shape.depth != 1) {
            let most = if plane { "one channel and one level" } else { "one channel" };
            return Err(Error::parameter(call, format!("positions are images of {most}, not {shape}")));
        }
        if shape != first {
            return Err(Error::parameter(call, format!("positions of {first} and {shape} differ in size")));
        }
        Ok(())
    }
}
