//! Operands of pixel operations (images, scalars, reductions, one value per channel) and
//! broadcasting.
//!
//! Broadcasting has no operation of its own. `Op::Planes` repeats a channel: all planes of the
//! result read the same one. `Op::Warp` with a step of 0 along an axis repeats a row, a column or a
//! pixel (a reduction is a pixel). Both fuse into the pixel operation that reads them, so repeated
//! pixels are not stored.

use super::{Image, Value, record, record_as};
use crate::dtype::{Element, Pixel, Scalar};
use crate::error::{Call, Error, Result, Site};
use crate::ir::graph::{Op, PixelOpOperand};
use crate::ops::Merge;
use crate::ops::geometric::{Affine, Interpolation};
use crate::ops::pixel::PixelOp;
use crate::ops::planes::PlaneMap;
use crate::session::{Handle, Session};
use crate::shape::{Border, Shape};

mod sealed {
    pub trait SealedArgument<T> {}
}

/// The second operand of a pixel operation on an [`Image<T>`]: an image of type `T` (owned or
/// borrowed), a scalar, a reduction ([`Value`]), which need not be evaluated first, or an array of
/// one value per channel. Sealed.
///
/// Axes of length 1 broadcast: one channel combines with many, a row or a column with an image, an
/// image or one value per level with a volume.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let grey = Image::from_fn(&session, 2, 3, |y, x| (y + x) as f32);
/// let colour = Image::stack(&session, [&grey, &grey, &grey], Axis::Channels) * [0.5, 1.0, 2.0];
/// let shaded = colour / grey.max_value() + &grey;
/// assert_eq!(shaded.to_array::<ndarray::Ix3>()?[[1, 2, 2]], 3.0 * 2.0 / 3.0 + 3.0);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no operand of an image of `{T}`",
    label = "not an operand of an image of `{T}`",
    note = "operands have the type of the image's pixels: images, scalars (`1.0` for floats, `1` for integers), values, and arrays of a value per channel",
    note = "`convert::<{T}>()` makes an image of `{T}` of another image or of a picture (`AnyImage`), `to_unit()` scales integers to 0..=1; scalars by `as {T}`",
    note = "to compute with fractions, convert the image: `image.convert::<f32>() * 0.5`"
)]
pub trait Argument<T: Pixel>: sealed::SealedArgument<T> {
    /// The operand itself.
    #[doc(hidden)]
    fn term(self) -> ArgumentTerm;
}

/// An operand without its type.
#[doc(hidden)]
#[derive(Clone)]
pub struct ArgumentTerm(OperandKind);

#[derive(Clone)]
enum OperandKind {
    /// An image.
    Image(Handle),
    /// The same value for each pixel.
    Scalar(Scalar),
    /// A value for each channel.
    Channels(Vec<Scalar>),
}

impl<T: Pixel> sealed::SealedArgument<T> for T {}
impl<T: Pixel> Argument<T> for T {
    fn term(self) -> ArgumentTerm {
        ArgumentTerm(OperandKind::Scalar(self.scalar()))
    }
}

macro_rules! images {
    ($($image:ty),*) => {$(
        impl<T: Element> sealed::SealedArgument<T> for $image {}
        impl<T: Pixel> Argument<T> for $image {
            fn term(self) -> ArgumentTerm {
                ArgumentTerm::image(&self)
            }
        }
    )*};
}
images!(Image<T>, &Image<T>, &mut Image<T>);

macro_rules! values {
    ($($value:ty),*) => {$(
        impl<T, V> sealed::SealedArgument<T> for $value {}
    )*};
}
values!(Value<V>, &Value<V>);

impl<T: Pixel> Argument<T> for Value<T> {
    fn term(self) -> ArgumentTerm {
        ArgumentTerm::image(&self.to_image())
    }
}

impl<T: Pixel> Argument<T> for &Value<T> {
    fn term(self) -> ArgumentTerm {
        ArgumentTerm::image(&self.to_image())
    }
}

/// A sum or a mean combined with an image of `f32`, rounded to its type.
impl Argument<f32> for Value<f64> {
    #[track_caller]
    fn term(self) -> ArgumentTerm {
        self.term_f32()
    }
}

/// A sum or a mean combined with an image of `f32`, rounded to its type.
impl Argument<f32> for &Value<f64> {
    #[track_caller]
    fn term(self) -> ArgumentTerm {
        self.term_f32()
    }
}

impl Value<f64> {
    #[track_caller]
    fn term_f32(&self) -> ArgumentTerm {
        ArgumentTerm::image(&self.to_image().convert::<f32>())
    }
}

macro_rules! arrays {
    ($($array:ty),*) => {$(
        impl<T: Pixel, const N: usize> sealed::SealedArgument<T> for $array {}
        impl<T: Pixel, const N: usize> Argument<T> for $array {
            fn term(self) -> ArgumentTerm {
                ArgumentTerm(OperandKind::Channels(self.iter().map(|v| v.scalar()).collect()))
            }
        }
    )*};
}
arrays!([T; N], &[T; N]);

impl ArgumentTerm {
    pub(super) fn image<T: Element>(image: &Image<T>) -> ArgumentTerm {
        ArgumentTerm(OperandKind::Image(image.handle().clone()))
    }

    pub(super) fn scalar(value: Scalar) -> ArgumentTerm {
        ArgumentTerm(OperandKind::Scalar(value))
    }

    fn handle(&self) -> Option<&Handle> {
        match &self.0 {
            OperandKind::Image(handle) => Some(handle),
            _ => None,
        }
    }

    /// The shape. For an array only the channels are known.
    fn shape(&self) -> Option<Shape> {
        match &self.0 {
            OperandKind::Image(handle) => Some(handle.shape),
            OperandKind::Channels(values) => Some(Shape::new(1, 1, values.len())),
            OperandKind::Scalar(_) => None,
        }
    }
}

/// Records a pixel operation on `terms`, at least one of which is an image; axes of length 1 are
/// repeated.
pub(super) fn pixel<R: Element, const N: usize>(op: PixelOp, terms: [ArgumentTerm; N], site: Site) -> Image<R> {
    let name = op.info().name;
    let mut images = terms.iter().filter_map(ArgumentTerm::handle);
    let first = images.next().expect("a pixel operation has an image among its operands");
    let (session, extent) = (first.session.clone(), first.shape);
    let mut failed = terms.iter().filter_map(ArgumentTerm::handle).filter(|h| h.failed());
    if let Some(carried) = failed.next().and_then(|h| h.failure_with_shape(extent, R::TAG)) {
        failed.filter(|h| !h.same_failure(&carried)).for_each(Handle::supersede);
        return Image::from_handle(carried);
    }
    let met = common(Call { op: name, site }, &session, &terms);
    super::image_or_failure(&session, extent, met.map(|shape| combine(op, terms, &session, shape, site)))
}

/// The shape that all operands broadcast to.
fn common(call: Call, session: &Session, terms: &[ArgumentTerm]) -> Result<Shape> {
    if terms.iter().filter_map(ArgumentTerm::handle).any(|h| !session.same(&h.session)) {
        return Err(Error::ForeignImage { op: call.op, site: call.site });
    }
    let mut shapes = terms.iter().filter_map(ArgumentTerm::shape);
    let mut common = shapes.next().unwrap_or(Shape::new(1, 1, 1));
    for shape in shapes {
        common = common.broadcast(shape).ok_or_else(|| Error::ShapeMismatch {
            op: call.op,
            left: common.into(),
            right: shape.into(),
            site: call.site,
        })?;
    }
    Ok(common)
}

fn combine<R: Element, const N: usize>(
    op: PixelOp,
    terms: [ArgumentTerm; N],
    session: &Session,
    shape: Shape,
    site: Site,
) -> Image<R> {
    let terms = terms.map(|term| match term.0 {
        OperandKind::Image(handle) => OperandKind::Image(spread(handle, shape, site)),
        OperandKind::Channels(values) if values.len() != 1 => {
            OperandKind::Image(spread(channels(session, &values, site), shape, site))
        }
        one => one,
    });
    let mut images = Vec::with_capacity(N);
    let operand = |term| match term {
        &OperandKind::Scalar(value) => PixelOpOperand::Const(value),
        OperandKind::Channels(values) => PixelOpOperand::Const(values[0]),
        OperandKind::Image(handle) => {
            images.push(handle);
            PixelOpOperand::Input(images.len() - 1)
        }
    };
    let operands = terms.iter().map(operand).collect();
    record(session, Op::Pixel(op, operands), &images, shape, site)
}

/// A pixel whose channels are `values`.
fn channels(session: &Session, values: &[Scalar], site: Site) -> Handle {
    let one = Shape::new(1, 1, 1);
    let fill = |v: &Scalar| record_as(session, Op::Fill(*v), &[], one, v.dtype(), site);
    let planes: Vec<Handle> = values.iter().map(fill).collect();
    let dtype = planes.first().map_or(crate::dtype::DType::U8, |p| p.dtype);
    let shape = Shape::new(1, 1, planes.len());
    record_as(session, Op::from(Merge), &planes.iter().collect::<Vec<_>>(), shape, dtype, site)
}

/// The image with its axes of length 1 repeated up to `shape`.
fn spread(image: Handle, shape: Shape, site: Site) -> Handle {
    let (from, dtype) = (image.shape, image.dtype);
    if from == shape {
        return image;
    }
    let session = &image.session.clone();
    let mut spread = image;
    if (from.depth, from.channels) != (shape.depth, shape.channels) {
        // Every level, or channel, of the result reads the only one.
        let planes = Shape { height: from.height, width: from.width, ..shape };
        let step = i32::from(from.depth == shape.depth);
        let map = PlaneMap::levels(from, shape.channels, step, 0, Border::Replicate);
        spread = record_as(session, Op::Planes(map), &[&spread], planes, dtype, site);
    }
    if (from.height, from.width) != (shape.height, shape.width) {
        let step = |from: usize, to: usize| if from == to { 1 << 32 } else { 0 };
        let map = Affine {
            xx: step(from.width, shape.width),
            yy: step(from.height, shape.height),
            ..Affine { xx: 0, xy: 0, x0: 0, yx: 0, yy: 0, y0: 0 }
        };
        let op = Op::Warp(map, Interpolation::Nearest, Border::Replicate.into());
        spread = record_as(session, op, &[&spread], shape, dtype, site);
    }
    spread
}

impl<T: Pixel> Image<T> {
    /// Records a pixel operation with this image first and `other` second.
    pub(super) fn with<R: Element>(&self, op: PixelOp, other: impl Argument<T>, site: Site) -> Image<R> {
        pixel(op, [ArgumentTerm::image(self), other.term()], site)
    }
}
