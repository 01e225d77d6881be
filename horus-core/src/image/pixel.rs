//! Pixel operations by name, and conversions.

use std::panic::Location;

use super::argument::Choice;
use super::{Argument, Image, record};
use crate::dtype::Pixel;
use crate::error::{Error, Result};
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
        ///
        /// # Errors
        /// With an image: if sizes or sessions differ. With a scalar there is no error and no `Result`.
        #[track_caller]
        pub fn $name<A: Argument<T>>(&self, other: A) -> A::Output<$result> {
            other.record(PixelOp::$op, self, Location::caller())
        })*
    };
}

/// Operations on each pixel of two images of one size, or of an image and a scalar.
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

/// Comparisons: masks of 1 where they hold, else 0. A comparison with NaN does not hold, except [`Image::ne`].
impl<T: Pixel> Image<T> {
    binary! { u8;
        /// 1 where `a < b`, else 0.
        lt Lt;
        /// 1 where `a <= b`, else 0.
        le Le;
        /// 1 where `a > b`, else 0.
        gt Gt;
        /// 1 where `a >= b`, else 0.
        ge Ge;
        /// 1 where `a == b`, else 0.
        eq Eq;
        /// 1 where `a != b`, else 0.
        ne Ne;
    }
}

/// Operations with further parameters, and conversions.
impl<T: Pixel> Image<T> {
    /// `|a / b|`, and 0 where `|b| < eps`; `b` is an image or a scalar.
    ///
    /// # Errors
    /// If sizes or sessions differ, or `eps` is negative or NaN.
    #[track_caller]
    pub fn absdiv(&self, other: impl Argument<T>, eps: T) -> Result<Image<T>> {
        let site = Location::caller();
        if eps.is_nan() || eps < T::ZERO {
            return Err(Error::parameter("absdiv", format!("eps is {eps}, it must not be negative"), site));
        }
        let mut inputs = vec![self.handle()];
        let divisor = match other.operand() {
            Choice::Image(b) => {
                self.check_match("absdiv", b, site)?;
                inputs.push(b.handle());
                Operand::Input(1)
            }
            Choice::Scalar(v) => Operand::Const(v.scalar()),
        };
        let op = Op::Pixel(PixelOp::AbsDiv, vec![Operand::Input(0), divisor, Operand::Const(eps.scalar())]);
        Ok(record(self.session(), op, &inputs, self.shape(), site))
    }

    /// Limits each pixel to `lo..=hi`; a NaN becomes `lo`.
    ///
    /// # Errors
    /// If `lo > hi` or either is NaN.
    #[track_caller]
    pub fn clamp(&self, lo: T, hi: T) -> Result<Image<T>> {
        let site = Location::caller();
        if lo.is_nan() || hi.is_nan() || lo > hi {
            return Err(Error::parameter("clamp", format!("the limits {lo} and {hi} are not ordered"), site));
        }
        let operands = vec![Operand::Input(0), Operand::Const(lo.scalar()), Operand::Const(hi.scalar())];
        Ok(self.node(Op::Pixel(PixelOp::Clamp, operands), site))
    }

    /// 1 where a pixel is larger than `t`, else 0, in the image's own type. For a mask see [`Image::gt`].
    #[track_caller]
    pub fn threshold(&self, t: T) -> Image<T> {
        t.record(PixelOp::Threshold, self, Location::caller())
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
        T::HIGHEST.to_linear().record(PixelOp::Div, &floats, Location::caller())
    }
}

impl Image<u8> {
    /// `a` where this mask is not 0, else `b`, an image or a scalar.
    ///
    /// # Errors
    /// If sizes or sessions differ.
    #[track_caller]
    pub fn select<T: Pixel>(&self, a: &Image<T>, b: impl Argument<T>) -> Result<Image<T>> {
        let site = Location::caller();
        self.check_match("select", a, site)?;
        let mut inputs = vec![self.handle(), a.handle()];
        let last = match b.operand() {
            Choice::Image(b) => {
                self.check_match("select", b, site)?;
                inputs.push(b.handle());
                Operand::Input(2)
            }
            Choice::Scalar(v) => Operand::Const(v.scalar()),
        };
        let op = Op::Pixel(PixelOp::Select, vec![Operand::Input(0), Operand::Input(1), last]);
        Ok(record(self.session(), op, &inputs, self.shape(), site))
    }
}
