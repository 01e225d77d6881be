//! Images: the public algebra.
//!
//! An [`Image`] is a cheap handle on a recorded value. Its methods and operators append to the
//! program of its session; nothing is computed until a value is read ([`Image::to_vec`],
//! [`Image::to_array`], [`Image::pixel`], [`Image::save`], [`Value::get`]).
//!
//! **Recording never fails.** An invalid call (sizes that differ, a parameter outside its domain,
//! an image without pixels) yields an image that carries an error, with the operation, the cause,
//! and the line of the program. Everything computed from it carries the error too. Reading the
//! image, or [`Image::check`], returns the error; an unread error is logged.
//!
//! The other operand of an operation is an image (owned or borrowed), a scalar, a reduction, or one
//! value per channel (see [`Argument`]). Images of different shapes broadcast if each axis has the
//! same length or length 1.
//!
//! ```
//! # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
//! # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
//! let a = Image::from_fn(&session, 3, 4, |y, x| (y + x) as f32);
//! let unit = (&a - a.min_value()) / (a.max_value() - a.min_value());
//! assert_eq!(unit.max_value().get()?, 1.0);
//!
//! let wrong = &a + Image::<f32>::zeros(&session, (5, 5));
//! let message = (wrong * 2.0).sum().get().unwrap_err().to_string();
//! assert!(message.starts_with("add: images differ in size, 3x4 and 5x5 (at "));
//! # Ok::<(), horus_core::error::Error>(())
//! ```
//!
//! Every rank runs the same program. Methods that read values are collective: every rank calls them
//! and gets the same result.

// The documentation lists methods in this order: in and out, arithmetic, filters, geometry, colour,
// reductions, volumes, loops.
pub mod bindings;
pub mod samples;

mod create;

mod arrays;
mod read;

mod argument;
mod operators;
mod pixel;

mod mask;

mod product;

mod bilateral;
mod canny;
mod neighbourhood;

mod morphology;
mod peaks;
mod reconstruction;
mod thin;
mod windowed;

mod geometric;

mod resample;
mod sampling;
mod splines;

mod alpha;
mod channels;
mod colour;
mod coordinates;
mod equalize;
mod lookup;

mod reduce;

mod axis;
mod order;

mod components;
mod distances;
mod hough;
mod labels;
mod read_several;
mod tiles;
mod value;
mod watershed;

mod volume;
mod volume_filters;

mod checkpoint;
mod iterate;
mod loop_state;

mod external;
mod forecasts;
mod form;
mod pixels;

use std::fmt;
use std::marker::PhantomData;

pub use argument::Argument;
pub use arrays::ArrayAxes;
pub use axis::{Axes, Grouping, Over, Several};
pub use bilateral::bilateral;
pub use canny::canny;
pub use checkpoint::{CheckpointImage, CheckpointStore, Checkpoints};
pub use colour::Colour;
pub use create::{PlaneArray, VolumeArray};
pub use distances::Distances;
pub use equalize::{equalize_adapthist, equalize_hist};
pub use form::{Footprints, LevelRange, MovingWindow, PerAxis, PixelIndex, Positions, Rank, Taps};
pub use hough::hough_line;
pub use iterate::{Ending, Iterated, Norm, Until};
pub use labels::{ByLabel, LabelShape};
pub use lookup::Table;
pub use loop_state::LoopState;
pub use mask::Inside;
pub use peaks::{local_maxima, peak_local_max};
pub use pixels::Pixels;
#[doc(hidden)]
pub use read::PixelTarget;
pub use read::ReadTarget;
pub use read_several::Reads;
pub use resample::Resizing;
pub use thin::thin;
pub use tiles::Tiles;
#[doc(hidden)]
pub use value::ValueReader;
pub use value::{Value, Values};
pub use watershed::watershed;

use crate::dtype::{DType, Element};
use crate::error::{Call, Error, Result, Site};
use crate::ir::graph::Op;
use crate::session::{Attributes, Handle, Session};
use crate::shape::{Border, Shape};
use horus_base::position_map::Relation;

/// An image of `height x width` pixels with one or more channels of type `T`, or a volume of
/// several such levels (see [`Image::depth`]). It is a handle on a recorded value.
///
/// Operations in the plane, such as resampling or a filter with one
/// [`Filter`](crate::ops::neighbourhood::Filter), process each level of a volume separately. Operations with a
/// number for each axis, such as [`Image::gauss`], extend across the levels of a volume, unless
/// they get a pair `(y, x)`. Filters and footprints extend across levels if there is one for each
/// of several levels.
///
/// Cloning copies the handle, not the pixels. Images are values: no operation changes its operands.
#[doc(alias("Mat", "ndarray"))]
#[must_use = "an image is only recorded: it is computed when it is read or saved"]
#[derive(Clone)]
pub struct Image<T: Element> {
    handle: Handle,
    /// The border mode of the next operation; `None` for its own default.
    border: Option<Border>,
    /// The tolerance of the next linear filter; `None` for the canonical order.
    tolerance: Option<f64>,
    pixel: PhantomData<T>,
}

/// An image of type `T` from its handle.
#[doc(hidden)]
impl<T: Element> From<Handle> for Image<T> {
    fn from(handle: Handle) -> Image<T> {
        Image::from_handle(handle)
    }
}

impl<T: Element> Image<T> {
    /// An image of type `T` from its handle.
    pub(crate) fn from_handle(handle: Handle) -> Image<T> {
        debug_assert_eq!(handle.dtype, T::TAG);
        Image { handle, border: None, tolerance: None, pixel: PhantomData }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Sets the border mode of the operation that is called on the result. The default is
    /// [`Border::Reflect101`] for filters, morphology and [`Image::pad`], and
    /// [`Border::Constant`]`(0.0)` for operations that move pixels ([`Image::shift`],
    /// [`Image::rotate`], [`Image::affine`], [`Image::remap`]). Results of operations have no
    /// border mode: set it for each operation of a chain. Operations that read nothing beyond the
    /// edge, such as `abs`, ignore it.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let line = Image::from_slice(&session, (1, 4), &[1.0f32, 2.0, 3.0, 4.0]);
    /// let right = Filter::row([0.0, 0.0, 1.0]); // the pixel to the right
    /// assert_eq!(line.correlate(&right).to_vec()?, [2.0, 3.0, 4.0, 3.0]);
    /// assert_eq!(line.with_border(Border::Wrap).correlate(&right).to_vec()?, [2.0, 3.0, 4.0, 1.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("mode", "borderType"))]
    pub fn with_border(&self, border: Border) -> Image<T> {
        Image { border: Some(border), ..self.clone() }
    }

    /// The border mode of filters.
    fn border(&self) -> Border {
        self.border.unwrap_or_default()
    }

    /// The image without a border mode, as a result.
    fn plain(&self) -> Image<T> {
        Image::from_handle(self.handle.clone())
    }

    /// The image as the result of a function of several operations, or computed on the host, whose pixels are related
    /// so to those of the function's inputs: what files say of these follows from that.
    pub(crate) fn related(&self, function: &'static str, inputs: &[(&Handle, Relation)]) -> Image<T> {
        let mut handle = self.handle.clone();
        handle.attributes = Attributes::of_function(function, &handle, inputs);
        Image::from_handle(handle)
    }

    /// Number of rows.
    pub fn height(&self) -> usize {
        self.shape().height
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.shape().width
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.shape().channels
    }

    /// Number of levels: 1 for an image, more for a volume.
    pub fn depth(&self) -> usize {
        self.shape().depth
    }

    /// Levels, rows, columns and channels. For an image that carries an error, as far as they are
    /// known.
    pub fn shape(&self) -> Shape {
        self.handle.shape
    }

    /// The pixel type.
    pub fn dtype(&self) -> DType {
        T::TAG
    }

    /// The session the image belongs to.
    pub fn session(&self) -> &Session {
        &self.handle.session
    }

    /// Returns the error that the image carries, if any. Nothing is computed, and no other rank is involved.
    ///
    /// # Errors
    /// The first error of the image or of its operands.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let blurred = Image::<f32>::zeros(&session, (4, 4)).gauss(-1.0);
    /// assert!(blurred.check().unwrap_err().to_string().contains("sigma is -1; it must be positive"));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        self.handle.check()
    }

    /// Starts the evaluation of the image and returns at once; reading the image waits.
    /// [`Session::start`] starts all recorded values.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let smooth = samples::worms(&session, 64, 64).gauss(2.0);
    /// smooth.start();
    /// let edges = smooth.sobel(Axis::Columns).abs(); // recorded meanwhile
    /// assert_eq!(smooth.to_vec()?.len(), 64 * 64);
    /// assert!(edges.mean().get()? > 0.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn start(&self) {
        self.session().start_one(&self.handle);
    }

    /// Records an operation on this image only; the result has the same shape.
    fn node<R: Element>(&self, op: Op, site: Site) -> Image<R> {
        self.node_of_shape(op, self.shape(), site)
    }

    /// Records an operation on this image only; the result has shape `shape`.
    fn node_of_shape<R: Element>(&self, op: Op, shape: Shape, site: Site) -> Image<R> {
        record(self.session(), op, &[&self.handle], shape, site)
    }

    /// Returns the image recorded by `make`; if this image carries an error or `make` fails, an
    /// image of `shape` with the error.
    fn attempt<R: Element>(&self, shape: Shape, make: impl FnOnce() -> Result<Image<R>>) -> Image<R> {
        match self.handle.failure_with_shape(shape, R::TAG) {
            Some(handle) => Image::from_handle(handle),
            None => image_or_failure(self.session(), shape, make()),
        }
    }
}

impl<T: Element> fmt::Display for Image<T> {
    /// Writes shape, type and error, but no pixels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} image", self.shape(), T::TAG)?;
        if self.handle.failed() { f.write_str(" that failed") } else { Ok(()) }
    }
}

impl<T: Element> fmt::Debug for Image<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({self})")
    }
}

/// Returns `made`, or an image of `shape` that carries the error.
fn image_or_failure<T: Element>(session: &Session, shape: Shape, made: Result<Image<T>>) -> Image<T> {
    made.unwrap_or_else(|error| Image::from_handle(session.failed(shape, T::TAG, error)))
}

/// Records an operation. Only here does a recorded value get its static type.
fn record<R: Element>(session: &Session, op: Op, inputs: &[&Handle], shape: Shape, site: Site) -> Image<R> {
    Image::from_handle(record_as(session, op, inputs, shape, R::TAG, site))
}

/// Records an operation after checking that its result, which may have a wider type or more
/// channels, is not too large.
fn record_as(session: &Session, op: Op, inputs: &[&Handle], shape: Shape, dtype: DType, site: Site) -> Handle {
    let known = inputs.iter().all(|h| !h.failed());
    match check_shape(Call { op: op.kind(), site }, shape, dtype) {
        Err(error) if known => session.failed(shape, dtype, error),
        _ => session.record(op, inputs, shape, dtype, site),
    }
}

/// Checks that a new image has pixels and is addressable.
fn check_shape(call: Call, shape: Shape, dtype: DType) -> Result<()> {
    if shape.is_empty() {
        return Err(Error::Empty { op: call.op, shape, site: call.site });
    }
    if !is_addressable(shape, dtype) {
        return Err(Error::parameter(call, format!("an image of {shape} {dtype} pixels is too large")));
    }
    Ok(())
}

/// Checks that an image is a single plane.
fn one_plane(call: Call, shape: Shape) -> Result<()> {
    if shape.planes() == 1 {
        return Ok(());
    }
    let Shape { depth, channels, .. } = shape;
    let message = format!("the image has {depth} levels and {channels} channels; take one (`channel`, `luminance`)");
    Err(Error::parameter(call, message))
}

/// Returns `true` if an image is not too large for kernels and memory.
pub(crate) fn is_addressable(shape: Shape, dtype: DType) -> bool {
    // The limit keeps every position within the integer range of kernels; see `Affine`.
    const LONGEST: usize = 1 << 30;
    // More than the memory of any machine, and small enough that sums over many images do not
    // overflow.
    const MOST_BYTES: usize = 1 << 48;
    let bytes = shape
        .height
        .checked_mul(shape.width)
        .and_then(|n| n.checked_mul(shape.depth))
        .and_then(|n| n.checked_mul(shape.channels))
        .and_then(|n| n.checked_mul(dtype.size()))
        .filter(|n| *n <= MOST_BYTES);
    // A launch has one row of blocks per plane.
    const MOST_PLANES: usize = 65_535;
    // Rows may be interleaved.
    bytes.is_some() && shape.planes() <= MOST_PLANES && shape.height.max(shape.interleaved().line()) <= LONGEST
}
