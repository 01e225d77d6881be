//! Volumes: levels of an image, and operations across them.
//!
//! Below this interface a volume is a list of planes: channel `c` of level `z` is plane
//! `z * channels + c`. The leaf `LoadPlane` reads another plane at the same pixel, given by a
//! `PlaneMap` (step and offset along the depth under a border mode, or a fixed channel). Slices,
//! shifts along the depth, and repeated levels and channels are this leaf and cost no launch. A
//! filter along the depth is a chain of multiply-adds of such reads, from +0 in the order of the
//! taps. A filter with a part for each level is the sum of the parts' responses, from the first to
//! the last. Volumes are distributed in strips of rows, like images.

use super::create::{VolumeArray, array4, source, write};
use super::{Image, LevelRange, check_shape, image_or_failure};
use crate::dtype::Element;
use crate::error::{Call, Error, Result, Site};
use crate::ir::graph::Op;
use crate::ops::planes::PlaneMap;
use crate::session::Session;
use crate::shape::{Border, Shape};

/// The largest shift for which positions stay in the range of kernels.
const FARTHEST: isize = 1 << 28;

/// Creation of volumes. As for images, every rank passes the same pixels.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let volume = Image::from_volume_fn(&session, 3, 2, 2, |z, y, x| (100 * z + 10 * y + x) as f32);
/// assert_eq!((volume.depth(), volume.to_string().as_str()), (3, "3x2x2 f32 image"));
/// // The difference from the level above, and a coefficient for each level.
/// let above = volume.with_border(Border::Replicate).shift(1, 0, 0);
/// let weights = Image::from_slice(&session, (3, 1, 1), &[1.0, 10.0, 0.1]);
/// let slopes = (&volume - above) * weights;
/// assert_eq!(slopes.slice(1).to_vec()?, [1000.0; 4]);
/// assert_eq!(volume.over(Axis::Depth).mean().to_vec()?, volume.slice(1).to_vec()?);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// A volume of one channel whose pixel in level `z`, row `y` and column `x` is `f(z, y, x)`.
    #[doc(alias = "fromfunction")]
    #[track_caller]
    pub fn from_volume_fn(
        session: &Session,
        depth: usize,
        height: usize,
        width: usize,
        mut f: impl FnMut(usize, usize, usize) -> T,
    ) -> Image<T> {
        let shape = Shape::volume(depth, height, width, 1);
        let fill = |buffer: &mut [u8]| {
            for (i, row) in buffer.chunks_exact_mut(width * size_of::<T>()).enumerate() {
                write(row, (0..width).map(|x| f(i / height, i % height, x)));
            }
        };
        image_or_failure(session, shape, source(Call::of("from_volume_fn"), session, shape, fill))
    }

    /// A volume from an array of any strides, of shape `(depth, height, width)` or
    /// `(depth, height, width, channels)`; with a dynamic number of axes also an image of
    /// `(height, width)`. Other numbers of axes are an error. ([`Image::from_array`] takes the last
    /// of three axes as channels.)
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let array = ndarray::Array3::from_shape_fn((4, 3, 2), |(z, y, x)| (100 * z + 10 * y + x) as f32);
    /// let odd = array.slice(ndarray::s![1..;2, ..;-1, ..]); // every other level, rows upside down
    /// let volume = Image::from_volume_array(&session, odd);
    /// assert_eq!((&volume * 2.0).to_volume_array()?, &odd * 2.0);
    /// for extents in [&[3, 4][..], &[2, 3, 4], &[2, 3, 4, 2]] {
    ///     let array = ndarray::ArrayD::from_elem(extents, 7u8);
    ///     assert_eq!(Image::from_volume_array(&session, array.view()).to_array()?, array);
    /// }
    /// let line = ndarray::ArrayD::from_elem(&[5][..], 7u8);
    /// let told = Image::from_volume_array(&session, line.view()).check().unwrap_err().to_string();
    /// assert!(told.starts_with("from_volume_array: an array of 1 axis; an image has 2, a volume 3"), "{told}");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn from_volume_array<'a>(session: &Session, pixels: impl VolumeArray<'a, T>) -> Image<T> {
        let call = Call::of("from_volume_array");
        match pixels.channels_last() {
            Ok(pixels) => array4(call, session, pixels),
            Err(axes) => {
                let axes = if axes == 1 { "1 axis".into() } else { format!("{axes} axes") };
                let message = format!("an array of {axes}; an image has 2, a volume 3, and a volume with channels 4");
                image_or_failure(session, Shape::new(0, 0, 0), Err(Error::parameter(call, message)))
            }
        }
    }
}

/// Operations on the levels of a volume.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let volume = Image::from_slice(&session, (4, 1, 2), &[0u8, 1, 10, 11, 20, 21, 30, 31]);
/// assert_eq!(volume.slice(2).to_vec()?, [20, 21]);
/// assert_eq!(volume.slice(1..3).to_vec()?, [10, 11, 20, 21]);
/// assert_eq!(volume.flip(Axis::Depth).slice(0).to_vec()?, [30, 31]);
/// let odd = volume.unstack(Axis::Depth).into_iter().skip(1).step_by(2);
/// assert_eq!(Image::stack(&session, odd, Axis::Depth).to_vec()?, [10, 11, 30, 31]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> Image<T> {
    /// Level `z` as an image, or the levels of a range `from..to` as a volume. It costs no launch:
    /// operations read the level in place. An empty range, or a level outside, is an error.
    #[track_caller]
    pub fn slice(&self, levels: impl Into<LevelRange>) -> Image<T> {
        let (site, levels) = (Call::of("slice").site, levels.into());
        let (from, depth) = match &levels {
            LevelRange::One(z) => (*z, 1),
            LevelRange::Range(levels) => (levels.start, levels.len()),
        };
        let shape = Shape { depth, ..self.shape() };
        self.attempt(shape, || {
            check_shape(Call { op: "slice", site }, shape, T::TAG)?;
            if from.checked_add(depth).is_none_or(|end| end > self.depth()) {
                let message = match levels {
                    LevelRange::One(z) => {
                        format!("level {z} requested, but there are only {} (indices start at 0)", self.depth())
                    }
                    LevelRange::Range(_) => format!("{depth} levels from level {from} lie outside {}", self.shape()),
                };
                return Err(Error::parameter(Call { op: "slice", site }, message));
            }
            Ok(match levels {
                LevelRange::One(z) => self.level(z, site),
                LevelRange::Range(_) => self.levels(depth, 1, from as isize, Border::Replicate, site),
            })
        })
    }

    /// Shifts by whole pixels: `dz` levels on, `dy` rows down, `dx` columns to the right. Pixel
    /// `(z, y, x)` of the result is pixel `(z - dz, y - dy, x - dx)`; beyond the edges it is 0, or
    /// as set by [`Image::with_border`] (`scipy.ndimage.shift` of order 0; `numpy.roll` with
    /// [`Border::Wrap`]). Exact for every type. A shift by 2^28 pixels or more is an error.
    ///
    /// A shift only by levels costs no launch.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let volume = Image::from_slice(&session, (2, 1, 3), &[1, 2, 3, 4, 5, 6]);
    /// assert_eq!(volume.shift(0, 0, 1).to_vec()?, [0, 1, 2, 0, 4, 5]);
    /// assert_eq!(volume.with_border(Border::Replicate).shift(1, 0, 0).to_vec()?, [1, 2, 3, 1, 2, 3]);
    /// assert_eq!(volume.with_border(Border::Wrap).shift(-1, 0, 1).to_vec()?, [6, 4, 5, 3, 1, 2]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "roll")]
    #[track_caller]
    pub fn shift(&self, dz: isize, dy: isize, dx: isize) -> Image<T> {
        let site = Call::of("shift").site;
        self.attempt(self.shape(), || self.shifted([dz, dy, dx], self.outside(), site))
    }

    pub(super) fn shifted(&self, by: [isize; 3], border: Border, site: Site) -> Result<Image<T>> {
        if let Some(far) = by.iter().find(|d| d.unsigned_abs() >= FARTHEST.unsigned_abs()) {
            let message = format!("requested a shift by {far}; the limit is {}", FARTHEST - 1);
            return Err(Error::parameter(Call { op: "shift", site }, message));
        }
        let [dz, dy, dx] = by;
        let moved = self.window(Call { op: "shift", site }, [-dy, -dx], self.shape(), border)?;
        Ok(moved.levels(self.depth(), 1, -dz, border, site))
    }

    pub(super) fn level(&self, z: usize, site: Site) -> Image<T> {
        self.levels(1, 0, z as isize, Border::Replicate, site)
    }

    /// The levels `step * z + offset`, for `depth` values of `z`. An image that carries an error
    /// keeps it.
    pub(super) fn levels(&self, depth: usize, step: i32, offset: isize, border: Border, site: Site) -> Image<T> {
        let shape = Shape { depth, ..self.shape() };
        if shape == self.shape() && (step, offset) == (1, 0) || (self.depth(), depth, offset) == (1, 1, 0) {
            return self.plain();
        }
        let map = PlaneMap::levels(self.shape(), self.channels(), step, offset as i32, border);
        self.node_of_shape(Op::Planes(map), shape, site)
    }
}
