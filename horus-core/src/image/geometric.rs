//! Geometric operations.

use crate::ops::Transpose;

use super::alpha::{Mixing, edge_beyond};
use super::argument::{ArgumentTerm, pixel};
use super::{Axes, Image, PerAxis, check_shape, record};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, Error, Result};
use crate::ir::graph::Op;
use crate::ops::edge::{InsidePixels, WarpEdge};
use crate::ops::geometric::{Affine, Flip, Interpolation, rotation};
use crate::ops::pixel::PixelOp;
use crate::shape::{Axis, Border, Shape};

/// The default border mode of operations that move pixels.
const OUTSIDE: Border = Border::Constant(0.0);

impl<T: Element> Image<T> {
    /// The border mode of operations that move pixels.
    pub(super) fn outside(&self) -> Border {
        self.border.unwrap_or(OUTSIDE)
    }
}

/// An affine map to an image of this height and width.
struct Warp {
    call: Call,
    matrix: [[f64; 3]; 2],
    size: [usize; 2],
    interpolation: Interpolation,
    edge: WarpEdge,
}

impl Mixing for Warp {
    type Of<P: Pixel> = P;

    fn of<P: Pixel>(&self, image: &Image<P>, beyond: fn(f64) -> f64) -> Image<P> {
        let Warp { call, matrix, size: [height, width], interpolation, edge } = *self;
        let shape = Shape { height, width, ..image.shape() };
        image.attempt(shape, || image.warped(call, matrix, shape, interpolation, edge_beyond(edge, beyond)))
    }
}

/// Geometric operations that interpolate. They keep the pixel type; integers are rounded to
/// nearest, ties to even. Colours of a picture with alpha are weighted by alpha, unless they are
/// stored multiplied by it.
impl<T: Pixel> Image<T> {
    /// Rotates about the centre by `degrees`, anti-clockwise as seen on the screen, into an image
    /// of the same size (OpenCV's `getRotationMatrix2D` about `((w - 1) / 2, (h - 1) / 2)`).
    /// [`Interpolation`] documents which images are reproduced exactly. Pixels outside are 0, or
    /// follow [`Image::with_border`], and take part in the interpolation (SciPy's `grid-constant`).
    /// An angle that is not finite is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (3, 3), &[1u8, 2, 3, 4, 5, 6, 7, 8, 9]);
    /// assert_eq!(image.rotate(90.0, Interpolation::Bilinear).to_vec()?, [3, 6, 9, 2, 5, 8, 1, 4, 7]);
    /// let white = Image::constant(&session, (9, 9), 255u8);
    /// assert_eq!(white.rotate(45.0, Interpolation::Bilinear).pixel((0, 0))?, 0); // a corner that came from outside
    /// let mirrored = white.with_border(Border::Reflect101).rotate(45.0, Interpolation::Bilinear);
    /// assert_eq!(mirrored.pixel((0, 0))?, 255);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("getRotationMatrix2D", "warpAffine"))]
    #[track_caller]
    pub fn rotate(&self, degrees: f64, interpolation: Interpolation) -> Image<T> {
        let call = Call::of("rotate");
        if !degrees.is_finite() {
            let error = Error::parameter(call, format!("the angle is {degrees}; it must be finite"));
            return self.attempt(self.shape(), || Err(error));
        }
        self.warp(call, rotation(degrees, self.shape()), self.shape(), interpolation, self.outside())
    }

    /// Translates by `dy` pixels down and `dx` to the right. Fractional offsets are interpolated
    /// bilinearly, so that ramps are preserved. Pixels outside are 0, or follow
    /// [`Image::with_border`]. An offset that is not finite, or larger than about 2^30, is an
    /// error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let line = Image::from_slice(&session, (1, 4), &[2.0f32, 4.0, 6.0, 8.0]);
    /// assert_eq!(line.translate(0.0, 1.0).to_vec()?, [0.0, 2.0, 4.0, 6.0]);
    /// assert_eq!(line.translate(0.0, -0.5).to_vec()?, [3.0, 5.0, 7.0, 4.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "warpAffine")]
    #[track_caller]
    pub fn translate(&self, dy: f64, dx: f64) -> Image<T> {
        let map = [[1.0, 0.0, -dx], [0.0, 1.0, -dy]];
        self.warp(Call::of("translate"), map, self.shape(), Interpolation::Bilinear, self.outside())
    }

    /// Applies an affine map. `matrix` maps positions `(x, y, 1)` of the *output*, an image of
    /// `height x width` pixels, to positions `[x, y]` of the input (OpenCV's `warpAffine` with
    /// `WARP_INVERSE_MAP`). It is an error if a size is zero, a coefficient is not finite, or a
    /// position is beyond about 2^30 pixels.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 3), &[1u8, 2, 3, 4, 5, 6]);
    /// let shear = [[1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]; // pixel (x, y) is read at (x + y, y)
    /// let sheared = image.affine(shear, (2, 3), Interpolation::Nearest);
    /// assert_eq!(sheared.to_vec()?, [1, 2, 3, 5, 6, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("affine_transform", "warpAffine"))]
    #[track_caller]
    pub fn affine(
        &self,
        matrix: [[f64; 3]; 2],
        (height, width): (usize, usize),
        interpolation: Interpolation,
    ) -> Image<T> {
        let shape = Shape { height, width, ..self.shape() };
        self.warp(Call::of("affine"), matrix, shape, interpolation, self.outside())
    }

    /// [`Image::affine`] of positions inside, and a constant elsewhere: for bindings.
    #[track_caller]
    pub(crate) fn affine_inside(
        &self,
        matrix: [[f64; 3]; 2],
        (height, width): (usize, usize),
        interpolation: Interpolation,
        inside: InsidePixels,
    ) -> Image<T> {
        let shape = Shape { height, width, ..self.shape() };
        let edge = WarpEdge::Inside(inside);
        let edge = if inside.everywhere(shape) { edge.border().into() } else { edge };
        self.warp(Call::of("affine"), matrix, shape, interpolation, edge)
    }

    pub(super) fn warp(
        &self,
        call: Call,
        matrix: [[f64; 3]; 2],
        shape: Shape,
        interpolation: Interpolation,
        edge: impl Into<WarpEdge>,
    ) -> Image<T> {
        let warp = Warp { call, matrix, size: [shape.height, shape.width], interpolation, edge: edge.into() };
        match interpolation {
            Interpolation::Nearest => warp.of(self, |value| value),
            Interpolation::Bilinear | Interpolation::Bicubic => self.by_alpha(&warp),
        }
    }
}

/// Geometric operations that move whole pixels.
impl<T: Element> Image<T> {
    /// Mirrors along one axis or an array of axes (`numpy.flip`): [`Axis::Columns`] exchanges left
    /// and right, [`Axis::Rows`] top and bottom, both make a half turn; [`Axis::Depth`] and
    /// [`Axis::Channels`] reverse levels or channels.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 2), &[1u8, 2, 3, 4]);
    /// assert_eq!(image.flip(Axis::Columns).to_vec()?, [2, 1, 4, 3]);
    /// assert_eq!(image.flip(Axis::Rows).to_vec()?, [3, 4, 1, 2]);
    /// assert_eq!(image.flip([Axis::Rows, Axis::Columns]).to_vec()?, [4, 3, 2, 1]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "fliplr")]
    #[track_caller]
    pub fn flip(&self, axes: impl Into<Axes>) -> Image<T> {
        let (site, axes) = (Call::of("flip").site, axes.into());
        let plane = match (axes.has(Axis::Rows), axes.has(Axis::Columns)) {
            (true, true) => self.node(Op::Flip(Flip::Both), site),
            (true, false) => self.node(Op::Flip(Flip::Vertical), site),
            (false, true) => self.node(Op::Flip(Flip::Horizontal), site),
            (false, false) => self.plain(),
        };
        let levels = match axes.has(Axis::Depth) {
            true => plane.levels(self.depth(), -1, self.depth() as isize - 1, Border::Replicate, site),
            false => plane,
        };
        match axes.has(Axis::Channels) && self.channels() > 1 {
            true => Image::stack(self.session(), levels.unstack(Axis::Channels).into_iter().rev(), Axis::Channels),
            false => levels,
        }
    }

    /// Transposes rows and columns: the result has `width x height` pixels.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (2, 3), &[1u8, 2, 3, 4, 5, 6]);
    /// assert_eq!(image.transpose().to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self) -> Image<T> {
        let Shape { height, width, .. } = self.shape();
        let turned = Shape { height: width, width: height, ..self.shape() };
        self.node_of_shape(Op::from(Transpose), turned, Call::of("transpose").site)
    }

    /// Crops to `height x width` pixels, the first in row `top` and column `left`; an error if some
    /// lie outside.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_fn(&session, 4, 5, |y, x| (10 * y + x) as u8);
    /// assert_eq!(image.crop(1, 2, 2, 3).to_vec()?, [12, 13, 14, 22, 23, 24]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("Rect", "roi"))]
    #[track_caller]
    pub fn crop(&self, top: usize, left: usize, height: usize, width: usize) -> Image<T> {
        let call = Call::of("crop");
        let shape = Shape { height, width, ..self.shape() };
        self.attempt(shape, || {
            let inside = |from: usize, size: usize, all: usize| from.checked_add(size).is_some_and(|end| end <= all);
            check_shape(call, shape, T::TAG)?;
            if !inside(top, height, self.height()) || !inside(left, width, self.width()) {
                let message =
                    format!("{height}x{width} pixels from row {top}, column {left} lie outside {}", self.shape());
                return Err(Error::parameter(call, message));
            }
            self.window(call, [top as isize, left as isize], shape, Border::Replicate)
        })
    }

    /// Selects every `y`-th row and `x`-th column, `(y, x)`, or every level, row and column,
    /// `(z, y, x)`, from the first on (NumPy's `a[::y, ::x]`); a single number applies to all axes.
    /// A step beyond the edge selects only the first. Pixels are not smoothed: see
    /// [`Image::pyramid_down`] and [`Image::resize`] for smaller pictures. A step of 0 is an error.
    /// To start elsewhere, [crop](Image::crop) first.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_fn(&session, 3, 5, |y, x| (10 * y + x) as u8);
    /// assert_eq!(image.step(2).to_vec()?, [0, 2, 4, 20, 22, 24]);
    /// assert_eq!(image.crop(0, 1, 3, 4).step((9, 3)).to_vec()?, [1, 4]);
    /// assert!(image.step((0, 1)).check().is_err());
    /// let volume = Image::from_volume_fn(&session, 5, 1, 2, |z, _, x| (10 * z + x) as u8);
    /// assert_eq!(volume.step((2, 1, 2)).to_vec()?, [0, 20, 40]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn step(&self, by: impl Into<PerAxis<usize>>) -> Image<T> {
        let call @ Call { site, .. } = Call::of("step");
        let [levels, rows, columns] = by.into().zyx(self.depth(), 1);
        let extent = |n: usize, step: usize| n.div_ceil(step.max(1));
        let (height, width) = (extent(self.height(), rows), extent(self.width(), columns));
        let depth = extent(self.depth(), levels);
        let shape = Shape { depth, height, width, ..self.shape() };
        self.attempt(shape, || {
            if levels == 0 || rows == 0 || columns == 0 {
                let message = format!(
                    "requested every {levels}-th level, {rows}-th row and {columns}-th column; steps begin at 1"
                );
                return Err(Error::parameter(call, message));
            }
            // An image has fewer than 2^31 levels.
            let kept = self.levels(depth, levels.min(self.depth().max(1)) as i32, 0, Border::Replicate, site);
            if (height, width) == (self.height(), self.width()) {
                return Ok(kept);
            }
            // Along an axis with one remaining pixel, only position 0 is read.
            let fixed = |step: usize, n: usize| (step.min(n) as i64) << 32;
            let map = Affine {
                xx: fixed(columns, self.width()),
                yy: fixed(rows, self.height()),
                ..Affine { xx: 0, xy: 0, x0: 0, yx: 0, yy: 0, y0: 0 }
            };
            Ok(kept.node_of_shape(Op::Warp(map, Interpolation::Nearest, Border::Replicate.into()), shape, site))
        })
    }

    /// Adds rows and columns at each side, filled by the border mode (OpenCV's `copyMakeBorder`):
    /// [`Border::Reflect101`], or set by [`Image::with_border`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let line = Image::from_slice(&session, (1, 3), &[1u8, 2, 3]);
    /// assert_eq!(line.pad(0, 0, 2, 1).to_vec()?, [3, 2, 1, 2, 3, 2]);
    /// assert_eq!(line.with_border(Border::Constant(9.0)).pad(0, 0, 1, 1).to_vec()?, [9, 1, 2, 3, 9]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "copyMakeBorder")]
    #[track_caller]
    pub fn pad(&self, top: usize, bottom: usize, left: usize, right: usize) -> Image<T> {
        let call = Call::of("pad");
        let height = self.height().saturating_add(top).saturating_add(bottom);
        let width = self.width().saturating_add(left).saturating_add(right);
        let shape = Shape { height, width, ..self.shape() };
        self.attempt(shape, || {
            check_shape(call, shape, T::TAG)?;
            self.window(call, [-(top as isize), -(left as isize)], shape, self.border())
        })
    }

    /// Pastes `other` over the image, its first pixel in row `top` and column `left`. Pixels beyond
    /// the edge are cut off. `other` has as many channels and levels as the image, or one.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let canvas = Image::<u8>::zeros(&session, (2, 4));
    /// let stamp = Image::constant(&session, (1, 2), 7u8);
    /// assert_eq!(canvas.paste(&stamp, 1, -1).to_vec()?, [0, 0, 0, 0, 7, 0, 0, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn paste(&self, other: &Image<T>, top: isize, left: isize) -> Image<T> {
        let call @ Call { site, .. } = Call::of("paste");
        self.attempt(self.shape(), || {
            other.check()?;
            // With the levels and channels of the part.
            let shape = |part: Shape| Shape { depth: part.depth, channels: part.channels, ..self.shape() };
            if !self.session().same(other.session()) {
                return Err(Error::ForeignImage { op: "paste", site });
            }
            let fits = |n: usize, all: usize| n == 1 || n == all;
            if !fits(other.channels(), self.channels()) || !fits(other.depth(), self.depth()) {
                return Err(Error::ShapeMismatch {
                    op: "paste",
                    left: self.shape().into(),
                    right: other.shape().into(),
                    site,
                });
            }
            let start = [top.saturating_neg(), left.saturating_neg()];
            let covered = Shape::new(other.height(), other.width(), 1);
            let covered: Image<bool> = record(self.session(), Op::Fill(true.stored()), &[], covered, site);
            let covered = covered.window(call, start, shape(covered.shape()), OUTSIDE)?;
            let placed = other.window(call, start, shape(other.shape()), OUTSIDE)?;
            let terms = [ArgumentTerm::image(&covered), ArgumentTerm::image(&placed), ArgumentTerm::image(self)];
            Ok(pixel(PixelOp::Select, terms, site))
        })
    }

    /// The pixels of `shape` from row and column `start`, which may lie outside.
    pub(super) fn window(&self, call: Call, [top, left]: [isize; 2], shape: Shape, border: Border) -> Result<Image<T>> {
        let map = [[1.0, 0.0, left as f64], [0.0, 1.0, top as f64]];
        self.warped(call, map, shape, Interpolation::Nearest, border.into())
    }

    fn warped(
        &self,
        call: Call,
        matrix: [[f64; 3]; 2],
        shape: Shape,
        interpolation: Interpolation,
        edge: WarpEdge,
    ) -> Result<Image<T>> {
        check_shape(call, shape, T::TAG)?;
        let Some(map) = Affine::new(matrix, shape) else {
            return Err(Error::parameter(call, format!("the map {matrix:?} is not finite or reaches too far")));
        };
        if map == Affine::IDENTITY && shape == self.shape() && matches!(edge, WarpEdge::Border(_)) {
            return Ok(self.plain());
        }
        Ok(self.node_of_shape(Op::Warp(map, interpolation, edge), shape, call.site))
    }
}
