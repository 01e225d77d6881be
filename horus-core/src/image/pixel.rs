//! Pixel operations by name, and conversions.

use std::panic::Location;

use super::argument::{Term, pixel};
use super::{Argument, Image};
use crate::dtype::Pixel;
use crate::error::Error;
use crate::graph::{Op, Operand};
use crate::ops::pixel::PixelOp;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        /// Operations on each pixel of one image.
        impl<T: Pixel> Image<T> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Image<T> {
                self.unary(PixelOp::$op)
            })*
        }
    };
}

unary! {
    /// `-a`; integers saturate (0 for unsigned types).
    neg Neg;
    /// `|a|`; `i32::MIN` saturates.
    abs Abs;
    /// Square root; integers round to nearest even, negative integers give 0, negative floats NaN.
    sqrt Sqrt;
    /// Natural exponential.
    exp Exp;
    /// Natural logarithm.
    log Log;
    /// `a * a`; integers saturate.
    square Square;
    /// `1 / a`; integers truncate, and give 0 for 0.
    recip Recip;
    /// -1, 0 or 1.
    sign Sign;
    /// Largest integer not above `a`.
    floor Floor;
    /// Smallest integer not below `a`.
    ceil Ceil;
    /// Nearest integer, the even one of two as near (as numpy rounds).
    round Round;
    /// Sine of an angle in radians.
    sin Sin;
    /// Cosine of an angle in radians.
    cos Cos;
}

macro_rules! binary {
    ($result:ty; $($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        $($(#[$doc])*
        #[track_caller]
        pub fn $name(&self, other: impl Argument<T>) -> Image<$result> {
            self.with(PixelOp::$op, other, Location::caller())
        })*
    };
}

/// Operations on each pixel of an image and of an [`Argument`]: another image, a scalar, a reduction, a value per channel.
/// Sizes that do not meet are an error.
impl<T: Pixel> Image<T> {
    binary! { T;
        /// `a + b`; integers saturate. Also written `&a + &b`.
        add Add;
        /// `a - b`; integers saturate. Also written `&a - &b`.
        sub Sub;
        /// `a * b`; integers saturate. Also written `&a * &b`.
        mul Mul;
        /// `a / b`; integers truncate and give 0 for `b == 0`. Also written `&a / &b`.
        div Div;
        /// The smaller of both; a NaN is ignored.
        min Min;
        /// The larger of both; a NaN is ignored.
        max Max;
        /// `|a - b|`; integers saturate.
        absdiff AbsDiff;
        /// `a` to the power `b`.
        pow Pow;
        /// Angle of the point with ordinate `a` and abscissa `b`, in radians: `-pi..=pi`.
        atan2 Atan2;
        /// `sqrt(a * a + b * b)`, which neither over- nor underflows on the way: the length of a gradient.
        hypot Hypot;
    }
}

/// Comparisons: masks of where they hold. A comparison with NaN does not hold, except [`Image::ne`].
impl<T: Pixel> Image<T> {
    binary! { bool;
        /// Where `a < b`.
        lt Lt;
        /// Where `a <= b`.
        le Le;
        /// Where `a > b`.
        gt Gt;
        /// Where `a >= b`.
        ge Ge;
        /// Where `a == b`.
        eq Eq;
        /// Where `a != b`.
        ne Ne;
    }
}

/// Operations with further parameters, and conversions.
impl<T: Pixel> Image<T> {
    /// A pixel operation with this image as its only operand.
    #[track_caller]
    pub(super) fn unary(&self, op: PixelOp) -> Image<T> {
        self.node(Op::Pixel(op, vec![Operand::Input(0)]), Location::caller())
    }

    /// `|a / b|`, and 0 where `|b| < eps`. A negative `eps` or one that is NaN is an error.
    #[track_caller]
    pub fn absdiv(&self, other: impl Argument<T>, eps: T) -> Image<T> {
        let site = Location::caller();
        if eps.is_nan() || eps < T::ZERO {
            let error = Error::parameter("absdiv", format!("eps is {eps}, it must not be negative"), site);
            return self.attempt(self.shape(), || Err(error));
        }
        pixel(PixelOp::AbsDiv, vec![Term::image(self), other.term(), Term::scalar(eps.scalar())], site)
    }

    /// Limits each pixel to `lo..=hi`; a NaN becomes `lo`. Limits that are not ordered are an error.
    #[track_caller]
    pub fn clamp(&self, lo: T, hi: T) -> Image<T> {
        let site = Location::caller();
        if lo.is_nan() || hi.is_nan() || lo > hi {
            let error = Error::parameter("clamp", format!("the limits {lo} and {hi} are not ordered"), site);
            return self.attempt(self.shape(), || Err(error));
        }
        let operands = vec![Operand::Input(0), Operand::Const(lo.scalar()), Operand::Const(hi.scalar())];
        self.node(Op::Pixel(PixelOp::Clamp, operands), site)
    }

    /// 1 where a pixel is larger than `t`, else 0, in the image's own type. For a mask see [`Image::gt`].
    #[track_caller]
    pub fn threshold(&self, t: T) -> Image<T> {
        self.with(PixelOp::Threshold, t, Location::caller())
    }

    /// The pixels as type `U`: exact where `U` can hold them, else rounded to nearest (ties to even) and, for integers,
    /// saturated; NaN becomes 0. Nothing is scaled; see [`Image::to_unit`].
    #[track_caller]
    pub fn convert<U: Pixel>(&self) -> Image<U> {
        if U::DTYPE == T::DTYPE {
            return Image::from_handle(self.handle().clone());
        }
        self.node(Op::Convert, Location::caller())
    }

    /// The pixels as floats in which an integer type's `0..=MAX` spans `0..=1`; floats stay as they are. `f64` stays
    /// `f64`, everything else becomes `f32`.
    #[track_caller]
    pub fn to_unit(&self) -> Image<T::Linear> {
        let floats = self.convert::<T::Linear>();
        if T::DTYPE.is_float() {
            return floats;
        }
        floats.with(PixelOp::Div, T::HIGHEST.to_linear(), Location::caller())
    }
}
