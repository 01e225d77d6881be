//! Operations for the command and the Python package, which have them by name or as another library
//! defines them. Programs use the methods of [`Image`]; this module is not covered by semantic
//! versioning.

use super::equalize::adapted;
use super::{Argument, Image, MovingWindow};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, Result};
use crate::ops::edge::InsidePixels;
use crate::ops::geometric::Interpolation;
use crate::ops::neighbourhood::{Filter, Pairing};
use crate::ops::pixel::PixelOp;
use crate::position_map::Relation;
use crate::session::Handle;

/// A pixel operation of one operand.
///
/// ```
/// # use horus_core::{cpu::device::CpuDevice, prelude::*};
/// use horus_core::image::bindings::{binary, compare, unary};
/// use horus_core::ops::pixel::TABLE;
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_slice(&session, (1, 3), &[-4.0f32, 0.5, 2.5]);
/// let named = |name| TABLE.iter().find(|row| row.name == name).expect("a row").op;
/// assert_eq!(unary(&image, named("abs")).to_vec()?, [4.0, 0.5, 2.5]);
/// assert_eq!(binary(&image, named("add"), 1.0).to_vec()?, [-3.0, 1.5, 3.5]);
/// assert_eq!(compare(&image, named("gt"), 1.0).to_vec()?, [false, false, true]);
/// assert!(unary(&image, named("add")).check().unwrap_err().to_string().contains("not a unary operation"));
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[track_caller]
pub fn unary<T: Pixel>(image: &Image<T>, op: PixelOp) -> Image<T> {
    image.unary(op)
}

/// A pixel operation of two operands, `image` first.
#[track_caller]
pub fn binary<T: Pixel>(image: &Image<T>, op: PixelOp, other: impl Argument<T>) -> Image<T> {
    image.binary(op, other)
}

/// A comparison, with `image` first.
#[track_caller]
pub fn compare<T: Pixel>(image: &Image<T>, op: PixelOp, other: impl Argument<T>) -> Image<bool> {
    image.compare(op, other)
}

/// The conversion of NumPy's `astype`: integers keep their low bits, fractions are cut off.
#[track_caller]
pub fn cast<T: Element, U: Pixel>(image: &Image<T>) -> Image<U> {
    image.cast()
}

/// Correlation with the parts of a filter, each with the level that it reads, relative to that of the pixel.
#[track_caller]
pub fn correlate<T: Pixel>(image: &Image<T>, parts: &[(Filter, isize)]) -> Image<T::Linear> {
    image.parts(Call::of("correlate"), parts, image.border())
}

/// A linear filter in the type of the image, rounded as SciPy rounds it; each tap reads the level of its
/// pixel plus its number in `levels`.
#[track_caller]
pub fn truncated<T: Pixel>(image: &Image<T>, window: &Filter, levels: &[i32], pairing: Pairing) -> Image<T> {
    image.truncated(window, levels, pairing)
}

/// [`equalize_adapthist`](super::equalize_adapthist) in `f64`, for images of any type.
///
/// # Errors
/// As that function.
#[track_caller]
pub fn equalize_adapthist<T: Pixel>(
    image: &Image<T>,
    tile: (usize, usize),
    limit: f64,
    bins: usize,
) -> Result<Image<f64>> {
    adapted(image, Some(tile), limit, bins)
}

/// [`Image::affine`] at positions inside, and a constant elsewhere.
#[track_caller]
pub fn affine_inside<T: Pixel>(
    image: &Image<T>,
    matrix: [[f64; 3]; 2],
    size: (usize, usize),
    interpolation: Interpolation,
    inside: InsidePixels,
) -> Image<T> {
    image.affine_inside(matrix, size, interpolation, inside)
}

/// The variance over a window of rows and columns, by its own mean.
#[track_caller]
pub fn box_variance<T: Pixel>(image: &Image<T>, window: impl Into<MovingWindow>) -> Image<f64> {
    image.box_variance(window)
}

/// The pixel of rank `place` among those at `offsets`, by level, row and column.
#[track_caller]
pub fn rank_at<T: Element>(image: &Image<T>, offsets: Vec<(i32, i32, i32)>, place: usize) -> Image<T> {
    image.rank_at(offsets, place)
}

/// The image as the result of `function`, whose pixels relate in this way to the pixels of its inputs: the
/// attributes of files follow from it.
pub fn related<T: Element>(image: &Image<T>, function: &'static str, inputs: &[(&Handle, Relation)]) -> Image<T> {
    image.related(function, inputs)
}
