//! Pixel operations by name, and conversions.

use std::panic::Location;

use super::argument::{ArgumentTerm, pixel};
use super::{Argument, Image};
use crate::dtype::{Conversion, Element, Pixel};
use crate::error::{Call, Error, Site};
use crate::ir::graph::{Op, PixelOpOperand};
use crate::ops::pixel::{PixelKind, PixelOp};
use horus_plan::pixel_ops;

/// The method for a row of the table, if the row has one.
macro_rules! method {
    ($kind:ident $op:ident $doc:literal
     { $cuda:literal, $steps:literal $($transcendental:ident)?, fn $name:ident $(alias $($alias:literal)*)? $(, $($rest:tt)*)? }) => {
        method!(@$kind $op $name $doc [$($($alias)*)?]);
    };
    ($kind:ident $op:ident $doc:literal { $($without:tt)* }) => {};
    (@unary $op:ident $name:ident $doc:literal [$($alias:literal)*]) => {
        #[doc = $doc]
        $(#[doc(alias = $alias)])*
        #[track_caller]
        pub fn $name(&self) -> Image<T> {
            self.unary(PixelOp::$op)
        }
    };
    (@binary $op:ident $name:ident $doc:literal $aliases:tt) => {
        method!(@two Image<T>, $op $name $doc $aliases);
    };
    (@compare $op:ident $name:ident $doc:literal $aliases:tt) => {
        method!(@two Image<bool>, $op $name $doc $aliases);
    };
    (@two $result:ty, $op:ident $name:ident $doc:literal [$($alias:literal)*]) => {
        #[doc = $doc]
        $(#[doc(alias = $alias)])*
        #[track_caller]
        pub fn $name(&self, other: impl Argument<T>) -> $result {
            self.with(PixelOp::$op, other, Location::caller())
        }
    };
}

/// The methods for the table's operations with one and two operands; operations with three are
/// below.
macro_rules! methods {
    (unary { $($u:ident $un:literal |$ua:ident| $ub:expr, $ud:literal, $ut:tt;)* }
     binary { $($b:ident $bn:literal |$ba:ident, $bb:ident| $bx:expr, $bd:literal, $bt:tt;)* }
     compare { $($c:ident $cn:literal |$ca:ident, $cb:ident| $cx:expr, $cd:literal, $ct:tt;)* }
     $($rest:tt)*) => {
        /// Operations on each pixel of one image.
        ///
        /// ```
        /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
        /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
        /// let image = Image::from_slice(&session, (1, 3), &[-4.0f32, 0.5, 2.5]);
        /// assert_eq!(image.abs().sqrt().pixel((0, 0))?, 2.0);
        /// assert_eq!(image.round().to_vec()?, [-4.0, 0.0, 2.0]);
        /// assert_eq!((-image).sign().to_vec()?, [1.0, -1.0, -1.0]);
        /// # Ok::<(), horus_core::error::Error>(())
        /// ```
        impl<T: Pixel> Image<T> {
            $(method!(unary $u $ud $ut);)*
        }

        /// Operations on each pixel of an image and of an [`Argument`]: another image, a scalar, a
        /// reduction, or one value per channel. There are also the operators `+ - * /`, in which
        /// integers saturate. Shapes that do not broadcast are an error.
        ///
        /// ```
        /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
        /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
        /// let image = Image::from_slice(&session, (1, 3), &[10u8, 100, 200]);
        /// assert_eq!((&image + &image).to_vec()?, [20, 200, 255]); // integers saturate
        /// assert_eq!(image.absdiff(100).to_vec()?, [90, 0, 100]);
        /// assert_eq!(image.threshold(99).to_vec()?, [0, 1, 1]);
        /// assert_eq!(image.min(image.max_value() / 2).to_vec()?, [10, 100, 100]); // no look in between
        /// # Ok::<(), horus_core::error::Error>(())
        /// ```
        impl<T: Pixel> Image<T> {
            $(method!(binary $b $bd $bt);)*
        }

        /// Comparisons; they yield masks. A comparison with NaN is false, except [`Image::ne`].
        ///
        /// ```
        /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
        /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
        /// let image = Image::from_slice(&session, (1, 3), &[1.0, 2.0, f32::NAN]);
        /// assert_eq!(image.lt(2.0).to_vec()?, [true, false, false]);
        /// assert_eq!((image.ge(1.0) & image.ne(2.0)).select(&image, 0.0).to_vec()?, [1.0, 0.0, 0.0]);
        /// # Ok::<(), horus_core::error::Error>(())
        /// ```
        impl<T: Pixel> Image<T> {
            $(method!(compare $c $cd $ct);)*
        }
    };
}
pixel_ops!(methods);

/// Operations chosen at run time: see [`bindings`](super::bindings).
impl<T: Pixel> Image<T> {
    /// An operation of [`PixelKind::Unary`].
    #[track_caller]
    pub(crate) fn unary(&self, op: PixelOp) -> Image<T> {
        let site = Location::caller();
        if op.info().kind != PixelKind::Unary {
            return self.attempt(self.shape(), || Err(unlike("unary", op, "not a unary operation", site)));
        }
        self.node(Op::Pixel(op, vec![PixelOpOperand::Input(0)]), site)
    }

    /// An operation of [`PixelKind::Binary`], with this image first.
    #[track_caller]
    pub(crate) fn binary(&self, op: PixelOp, other: impl Argument<T>) -> Image<T> {
        let site = Location::caller();
        if op.info().kind != PixelKind::Binary {
            return self.attempt(self.shape(), || Err(unlike("binary", op, "not a binary operation", site)));
        }
        self.with(op, other, site)
    }

    /// A comparison ([`PixelKind::Compare`]), with this image first.
    #[track_caller]
    pub(crate) fn compare(&self, op: PixelOp, other: impl Argument<T>) -> Image<bool> {
        let site = Location::caller();
        if op.info().kind != PixelKind::Compare {
            return self.attempt(self.shape(), || Err(unlike("compare", op, "not a comparison", site)));
        }
        self.with(op, other, site)
    }
}

fn unlike(method: &'static str, op: PixelOp, what: &str, site: Site) -> Error {
    Error::parameter(Call { op: method, site }, format!("{op} is {what}"))
}

/// Operations with further parameters, and conversions.
impl<T: Pixel> Image<T> {
    /// `|a / b|`, and 0 where `|b| < eps`. A negative or NaN `eps` is an error.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let a = Image::from_slice(&session, (1, 3), &[-6.0f32, 6.0, 6.0]);
    /// let b = Image::from_slice(&session, (1, 3), &[2.0f32, -3.0, 0.0]);
    /// assert_eq!(a.absdiv(b, 1e-3).to_vec()?, [3.0, 2.0, 0.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn absdiv(&self, other: impl Argument<T>, eps: T) -> Image<T> {
        let call @ Call { site, .. } = Call::of("absdiv");
        if eps.is_nan() || eps < T::ZERO {
            let error = Error::parameter(call, format!("eps is {eps}; it must not be negative"));
            return self.attempt(self.shape(), || Err(error));
        }
        pixel(PixelOp::AbsDiv, [ArgumentTerm::image(self), other.term(), ArgumentTerm::scalar(eps.scalar())], site)
    }

    /// `image * factor + term`. Floats are rounded once (a fused multiply-add); integers saturate
    /// after each operation.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let a = Image::from_slice(&session, (1, 3), &[1.0f32, 2.0, 3.0]);
    /// assert_eq!(a.mul_add(2.0, &a).to_vec()?, [3.0, 6.0, 9.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "scaleAdd")]
    #[track_caller]
    pub fn mul_add(&self, factor: impl Argument<T>, term: impl Argument<T>) -> Image<T> {
        let terms = [ArgumentTerm::image(self), factor.term(), term.term()];
        pixel(PixelOp::MulAdd, terms, Call::of("mul_add").site)
    }

    /// Limits each pixel to `lo..=hi`; a NaN becomes `lo`. It is an error unless `lo <= hi`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 4), &[-1.0f32, 0.5, 7.0, f32::NAN]);
    /// assert_eq!(image.clamp(0.0, 1.0).to_vec()?, [0.0, 0.5, 1.0, 0.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias = "clip")]
    #[track_caller]
    pub fn clamp(&self, lo: T, hi: T) -> Image<T> {
        let call @ Call { site, .. } = Call::of("clamp");
        if lo.is_nan() || hi.is_nan() || lo > hi {
            let error = Error::parameter(call, format!("the limits {lo} and {hi} are not ordered"));
            return self.attempt(self.shape(), || Err(error));
        }
        let operands =
            vec![PixelOpOperand::Input(0), PixelOpOperand::Const(lo.scalar()), PixelOpOperand::Const(hi.scalar())];
        self.node(Op::Pixel(PixelOp::Clamp, operands), site)
    }

    /// Converts to floats and scales `0..=MAX` of an integer type to `0..=1`; float values stay the
    /// same. `f64` stays `f64`, all other types become `f32`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 3), &[0u8, 51, 255]);
    /// assert_eq!(image.to_unit().to_vec()?, [0.0, 0.2, 1.0]);
    /// assert_eq!(image.convert::<f32>().to_vec()?, [0.0, 51.0, 255.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("img_as_float"))]
    #[track_caller]
    pub fn to_unit(&self) -> Image<T::Linear> {
        let site = Call::of("to_unit").site;
        let floats = self.convert::<T::Linear>();
        if T::DTYPE.is_float() {
            return floats;
        }
        floats.with(PixelOp::Div, T::HIGHEST.to_linear(), site)
    }
}

impl<T: Element> Image<T> {
    /// Converts to type `U`: exact where `U` can represent the value, else rounded to nearest (ties
    /// to even). Integers saturate, and NaN becomes 0 in integers. Masks become 0 and 1. Nothing is
    /// scaled; see [`Image::to_unit`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 5), &[-3.0f32, 1.5, 2.5, 300.0, f32::NAN]);
    /// assert_eq!(image.convert::<u8>().to_vec()?, [0, 2, 2, 255, 0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[doc(alias("astype", "convertTo"))]
    #[track_caller]
    pub fn convert<U: Pixel>(&self) -> Image<U> {
        self.convert_by(Conversion::Nearest, Call::of("convert").site)
    }

    /// Casts pixels as C and NumPy do: floats are truncated, numbers that an integer type does not
    /// hold are taken modulo its range, infinities and NaN become 0. To floats it is
    /// [`Image::convert`].
    #[track_caller]
    pub(crate) fn cast<U: Pixel>(&self) -> Image<U> {
        self.convert_by(Conversion::Cast, Location::caller())
    }

    fn convert_by<U: Pixel>(&self, rule: Conversion, site: Site) -> Image<U> {
        if U::DTYPE == T::TAG {
            return Image::from_handle(self.handle().clone());
        }
        // To floats both rules are the same.
        self.node(Op::Convert(if U::DTYPE.is_float() { Conversion::Nearest } else { rule }), site)
    }
}
