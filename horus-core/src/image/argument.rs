//! What stands on the right of a pixel operation: an image, or a scalar of the image's type.

use std::panic::Location;

use super::{Image, record};
use crate::dtype::Pixel;
use crate::error::{Result, Site};
use crate::graph::{Op, Operand};
use crate::ops::pixel::PixelOp;

mod sealed {
    pub trait Sealed {}
}

/// The second operand of a pixel operation on an [`Image<T>`]: an image of the same size, or a scalar. Sealed.
///
/// With an image the operation is checked and yields a `Result`; with a scalar it cannot fail and yields the image: one
/// writes `a.max(&b)?`, but `a.max(0.0)`.
pub trait Argument<T: Pixel>: sealed::Sealed {
    /// What an operation that yields pixels of type `R` returns.
    type Output<R: Pixel>;

    /// Records `left op self`.
    #[doc(hidden)]
    fn record<R: Pixel>(self, op: PixelOp, left: &Image<T>, site: Site) -> Self::Output<R>;

    /// The operand itself.
    #[doc(hidden)]
    fn operand(&self) -> Choice<'_, T>;
}

/// An image or a scalar.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Choice<'a, T: Pixel> {
    /// An image.
    Image(&'a Image<T>),
    /// The same value for each pixel.
    Scalar(T),
}

impl<T: Pixel> sealed::Sealed for T {}
impl<T: Pixel> Argument<T> for T {
    type Output<R: Pixel> = Image<R>;

    fn record<R: Pixel>(self, op: PixelOp, left: &Image<T>, site: Site) -> Image<R> {
        left.node(Op::Pixel(op, vec![Operand::Input(0), Operand::Const(self.scalar())]), site)
    }

    fn operand(&self) -> Choice<'_, T> {
        Choice::Scalar(*self)
    }
}

impl<T: Pixel> sealed::Sealed for &Image<T> {}
impl<T: Pixel> Argument<T> for &Image<T> {
    type Output<R: Pixel> = Result<Image<R>>;

    fn record<R: Pixel>(self, op: PixelOp, left: &Image<T>, site: Site) -> Result<Image<R>> {
        left.check_match(op.info().name, self, site)?;
        let operands = vec![Operand::Input(0), Operand::Input(1)];
        Ok(record(left.session(), Op::Pixel(op, operands), &[left.handle(), self.handle()], left.shape(), site))
    }

    fn operand(&self) -> Choice<'_, T> {
        Choice::Image(self)
    }
}

impl<T: Pixel> Image<T> {
    /// A pixel operation with this image as its only operand.
    #[track_caller]
    pub(super) fn unary(&self, op: PixelOp) -> Image<T> {
        self.node(Op::Pixel(op, vec![Operand::Input(0)]), Location::caller())
    }

    /// A pixel operation with a scalar on the left.
    #[track_caller]
    pub(super) fn scalar_left(&self, op: PixelOp, left: T) -> Image<T> {
        self.node(Op::Pixel(op, vec![Operand::Const(left.scalar()), Operand::Input(0)]), Location::caller())
    }
}
