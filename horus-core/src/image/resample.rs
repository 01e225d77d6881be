//! Resizing, and pyramids.

use std::panic::Location;

use super::alpha::{Mixing, border_beyond};
use super::{Image, check_shape};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, Site};
use crate::ir::graph::Op;
use crate::ops::Resize;
use crate::ops::geometric::{Affine, Interpolation};
use crate::ops::neighbourhood::Filter;
use crate::ops::resize::{Resampling, ResizedLines};
use crate::shape::{Border, Shape};

/// The binomial filter of pyramids.
const BINOMIAL: [f64; 5] = [0.0625, 0.25, 0.375, 0.25, 0.0625];

/// The pixels of a resized image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resizing {
    /// Samples between the nearest pixels, however much an axis shrinks. Edge pixels are repeated.
    Sampled(Interpolation),
    /// Weighted averages of all pixels.
    Averaged(Resampling),
}

impl From<Interpolation> for Resizing {
    fn from(how: Interpolation) -> Resizing {
        Resizing::Sampled(how)
    }
}

impl From<Resampling> for Resizing {
    fn from(how: Resampling) -> Resizing {
        Resizing::Averaged(how)
    }
}

/// Resizing, and levels of pyramids. Levels have the type of linear filters: `f64` for `f64`, else
/// `f32`.
impl<T: Pixel> Image<T> {
    /// Resizes each plane to `height x width` pixels of the same type. Pixel centres are aligned
    /// (`source = (target + 0.5) * scale - 0.5` on each axis). Colours are weighted by
    /// [alpha](crate::io::AnyImage::alpha), unless they are stored multiplied by it.
    ///
    /// `how` is an [`Interpolation`] or a [`Resampling`]. An interpolation samples, skips pixels
    /// when it shrinks, and fuses with other operations. A resampling averages all pixels, by
    /// Pillow's filters, OpenCV's `INTER_AREA` or scikit-image's Gaussian. `f32` and integers of up
    /// to 16 bits are summed in `f32`, others in `f64`, by fused multiply-adds down the columns and
    /// then along the row. Integers are rounded to nearest once and saturate. Pillow and OpenCV
    /// round 8-bit pixels more than once and differ by at most 1, or by more where a filter
    /// overshoots and Pillow saturates between columns and rows. A size of zero or too large is an
    /// error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 2), &[10u8, 20]);
    /// assert_eq!(image.resize(1, 4, Interpolation::Nearest).to_vec()?, [10, 10, 20, 20]);
    /// assert_eq!(image.resize(1, 4, Interpolation::Bilinear).to_vec()?, [10, 12, 18, 20]);
    /// let stripes = Image::from_slice(&session, (1, 9), &[0.0f32, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    /// let wrong = stripes.resize(1, 3, Interpolation::Bilinear); // stripes three times as wide
    /// assert_eq!(wrong.to_vec()?, [1.0, 0.0, 1.0]);
    /// let grey = stripes.resize(1, 3, Resampling::Lanczos);
    /// assert!((grey - 0.5).abs().max_value().get()? < 0.07);
    /// assert_eq!(stripes.resize(1, 2, Resampling::Area).to_vec()?, [2.0 / 4.5; 2]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("zoom", "thumbnail", "INTER_AREA"))]
    #[track_caller]
    pub fn resize(&self, height: usize, width: usize, how: impl Into<Resizing>) -> Image<T> {
        let call = Call::of("resize");
        let shape = Shape { height, width, ..self.shape() };
        match how.into() {
            Resizing::Sampled(interpolation) => {
                let (sy, sx) = (self.height() as f64 / height as f64, self.width() as f64 / width as f64);
                let map = [[sx, 0.0, 0.5 * sx - 0.5], [0.0, sy, 0.5 * sy - 0.5]];
                self.warp(call, map, shape, interpolation, Border::Replicate)
            }
            Resizing::Averaged(_) if shape == self.shape() => self.plain(),
            Resizing::Averaged(how) => self.by_alpha(&Averaged { call, how, size: Some([height, width]) }),
        }
    }

    /// The next level of a Gaussian pyramid, half as high and wide, rounded up (OpenCV's
    /// `pyrDown`): smoothed by `1 4 6 4 1` along both axes with mirrored edges, then every other
    /// pixel.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_fn(&session, 9, 12, |y, x| (y + x) as f32);
    /// let level = image.pyramid_down();
    /// let detail = &image - level.pyramid_up(9, 12);
    /// assert_eq!((level.height(), level.width()), (5, 6));
    /// assert!(detail.crop(4, 4, 1, 4).abs().max_value().get()? < 1e-6, "a slope has no detail");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("pyrDown", "pyramid_reduce"))]
    #[track_caller]
    pub fn pyramid_down(&self) -> Image<T::Linear> {
        self.by_alpha(&PyramidDown(self.border()))
    }

    /// Enlarges a level of a pyramid to `height x width` pixels, twice its size (or one less):
    /// zeros between the pixels, then `1 4 6 4 1` along both axes, times 4, with mirrored edges.
    /// Other sizes are errors.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let level = Image::constant(&session, (2, 2), 3.0f32);
    /// assert_eq!(level.pyramid_up(4, 3).to_vec()?, [3.0; 12]);
    /// assert!(level.pyramid_up(5, 3).check().is_err(), "5 is not about twice 2");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("pyrUp", "pyramid_expand"))]
    #[track_caller]
    pub fn pyramid_up(&self, height: usize, width: usize) -> Image<T::Linear> {
        let call @ Call { site, .. } = Call::of("pyramid_up");
        let shape = Shape { height, width, ..self.shape() };
        self.attempt(shape, || {
            check_shape(call, shape, T::Linear::TAG)?;
            if (height.div_ceil(2), width.div_ceil(2)) != (self.height(), self.width()) {
                let message = format!(
                    "requested {height}x{width} pixels; rows and columns must be twice those of {}, or one less",
                    self.shape()
                );
                return Err(crate::error::Error::parameter(call, message));
            }
            // A pattern, repeated over the image, in which one pixel in four is true.
            let corner = Image::from_slice(self.session(), (2, 2), &[true, false, false, false]);
            let even = corner.node_of_shape::<bool>(
                Op::Warp(Affine::IDENTITY, Interpolation::Nearest, Border::Wrap.into()),
                Shape::new(height, width, 1),
                site,
            );
            Ok(self.by_alpha(&PyramidUp { even, site }))
        })
    }
}

/// Weighted averages for a result of some height and width, or means of blocks of two rows and
/// columns.
struct Averaged {
    call: Call,
    how: Resampling,
    size: Option<[usize; 2]>,
}

impl Mixing for Averaged {
    type Of<P: Pixel> = P;

    fn of<P: Pixel>(&self, image: &Image<P>, _: fn(f64) -> f64) -> Image<P> {
        let Averaged { call, how, size } = *self;
        let [height, width] = size.unwrap_or([image.height(), image.width()].map(|n| n.div_ceil(2)));
        let shape = Shape { height, width, ..image.shape() };
        image.attempt(shape, || {
            check_shape(call, shape, P::TAG)?;
            let lines =
                |from, to| if size.is_some() { ResizedLines::new(from, to) } else { ResizedLines::halved(from) };
            let (rows, columns) = (lines(image.height(), height), lines(image.width(), width));
            Ok(image.node_of_shape(Op::from(Resize { how, rows, columns }), shape, call.site))
        })
    }
}

/// The next level of a pyramid, with this border mode.
struct PyramidDown(Border);

impl Mixing for PyramidDown {
    type Of<P: Pixel> = P::Linear;

    fn of<P: Pixel>(&self, image: &Image<P>, beyond: fn(f64) -> f64) -> Image<P::Linear> {
        let image = image.with_border(border_beyond(self.0, beyond));
        image.separable(&Filter::row(BINOMIAL), &Filter::column(BINOMIAL)).every_other([0; 2])
    }
}

/// The larger level of a pyramid, with the mask of the pixels that come from this level.
struct PyramidUp {
    even: Image<bool>,
    site: Site,
}

impl Mixing for PyramidUp {
    type Of<P: Pixel> = P::Linear;

    fn of<P: Pixel>(&self, image: &Image<P>, _: fn(f64) -> f64) -> Image<P::Linear> {
        let PyramidUp { even, site } = self;
        let shape = Shape { height: even.height(), width: even.width(), ..image.shape() };
        let spread = even.select(image.stepped(1 << 31, [0; 2], shape, site), P::ZERO);
        let taps = BINOMIAL.map(|t| 2.0 * t);
        spread.separable(&Filter::row(taps), &Filter::column(taps))
    }
}

/// Images half as high and wide, rounded up: a pixel for each block of two rows and two columns. At
/// an odd edge, blocks have fewer pixels.
impl<T: Pixel> Image<T> {
    /// The means of blocks, in the same type.
    #[track_caller]
    pub(crate) fn block_means(&self) -> Image<T> {
        let call = Call { op: "resize", site: Location::caller() };
        self.by_alpha(&Averaged { call, how: Resampling::Area, size: None })
    }

    /// The most frequent value of each block; on a tie the first.
    #[track_caller]
    pub(crate) fn block_modes(&self) -> Image<T> {
        // Beyond an odd edge, edge pixels are repeated: each counts twice, and the order of pixels
        // is unchanged.
        let [a, b, c, d] = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|first| self.every_other(first));
        let of_last = c.eq(&d).select(&c, &a);
        let of_three = (b.eq(&c) | b.eq(&d)).select(&b, of_last);
        (a.eq(&b) | a.eq(&c) | a.eq(&d)).select(&a, of_three)
    }
}

impl<T: Element> Image<T> {
    /// Every other pixel of every other row, starting at row and column `first`, each 0 or 1;
    /// always as many as from 0 on.
    #[track_caller]
    pub(crate) fn every_other(&self, first: [i64; 2]) -> Image<T> {
        let shape = Shape { height: self.height().div_ceil(2), width: self.width().div_ceil(2), ..self.shape() };
        self.stepped(2 << 32, first.map(|at| at << 32), shape, Location::caller())
    }

    /// Reads pixel `step (y, x) + first` of the image for pixel `(y, x)`; both have 32 fractional
    /// bits.
    fn stepped(&self, step: i64, [y0, x0]: [i64; 2], shape: Shape, site: Site) -> Image<T> {
        let map = Affine { xx: step, xy: 0, x0, yx: 0, yy: step, y0 };
        self.node_of_shape(Op::Warp(map, Interpolation::Nearest, Border::Replicate.into()), shape, site)
    }
}
