//! The arithmetic operators `+ - * /`, their assigning forms, and unary `-`.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};
use std::panic::Location;

use super::argument::{ArgumentTerm, pixel};
use super::{Argument, Image, Value};
use crate::dtype::Pixel;
use crate::ops::pixel::PixelOp;

macro_rules! operator {
    ($trait:ident, $method:ident, $assign:ident, $assign_method:ident, $($scalar:ty)*) => {
        operator!(@image $trait, $method, &Image<T>);
        operator!(@image $trait, $method, Image<T>);
        operator!(@value $trait, $method, &Value<T>);
        operator!(@value $trait, $method, Value<T>);
        $(
            operator!(@scalar $trait, $method, $scalar, Image);
            operator!(@scalar $trait, $method, $scalar, Value);
        )*
        impl<T: Pixel, A: Argument<T>> $assign<A> for Image<T> {
            #[track_caller]
            fn $assign_method(&mut self, right: A) {
                *self = self.with(PixelOp::$trait, right, Location::caller());
            }
        }
    };
    (@image $trait:ident, $method:ident, $left:ty) => {
        impl<T: Pixel, A: Argument<T>> $trait<A> for $left {
            type Output = Image<T>;
            #[track_caller]
            fn $method(self, right: A) -> Image<T> {
                self.with(PixelOp::$trait, right, Location::caller())
            }
        }
    };
    (@value $trait:ident, $method:ident, $left:ty) => {
        operator!(@value $trait, $method, $left, &Value<T>, Value<T>, |image| Value::single(&image));
        operator!(@value $trait, $method, $left, Value<T>, Value<T>, |image| Value::single(&image));
        operator!(@value $trait, $method, $left, T, Value<T>, |image| Value::single(&image));
        operator!(@value $trait, $method, $left, &Image<T>, Image<T>, |image| image);
        operator!(@value $trait, $method, $left, Image<T>, Image<T>, |image| image);
    };
    (@value $trait:ident, $method:ident, $left:ty, $right:ty, $out:ty, |$image:ident| $result:expr) => {
        impl<T: Pixel> $trait<$right> for $left {
            type Output = $out;
            #[track_caller]
            fn $method(self, right: $right) -> $out {
                let $image = self.to_image().with(PixelOp::$trait, right, Location::caller());
                $result
            }
        }
    };
    (@scalar $trait:ident, $method:ident, $left:ty, $right:ident) => {
        operator!(@scalar $trait, $method, $left, $right<$left>, &$right<$left>);
        operator!(@scalar $trait, $method, $left, $right<$left>, $right<$left>);
    };
    (@scalar $trait:ident, $method:ident, $left:ty, $out:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = $out;
            #[track_caller]
            fn $method(self, right: $right) -> $out {
                Reverse::reverse(&right, PixelOp::$trait, self, Location::caller())
            }
        }
    };
}

/// Right operands of a scalar.
trait Reverse<T: Pixel> {
    fn reverse(&self, op: PixelOp, left: T, site: crate::error::Site) -> Self;
}

impl<T: Pixel> Reverse<T> for Image<T> {
    fn reverse(&self, op: PixelOp, left: T, site: crate::error::Site) -> Image<T> {
        pixel(op, [ArgumentTerm::scalar(left.scalar()), ArgumentTerm::image(self)], site)
    }
}

impl<T: Pixel> Reverse<T> for Value<T> {
    fn reverse(&self, op: PixelOp, left: T, site: crate::error::Site) -> Value<T> {
        Value::single(&self.to_image().reverse(op, left, site))
    }
}

macro_rules! operators {
    ([$($t:ident $variant:ident),*]) => {
        operator!(Add, add, AddAssign, add_assign, $($t)*);
        operator!(Sub, sub, SubAssign, sub_assign, $($t)*);
        operator!(Mul, mul, MulAssign, mul_assign, $($t)*);
        operator!(Div, div, DivAssign, div_assign, $($t)*);
    };
}
crate::numeric_types!([operators]);

impl<T: Pixel> Neg for &Image<T> {
    type Output = Image<T>;
    #[track_caller]
    fn neg(self) -> Image<T> {
        self.unary(PixelOp::Neg)
    }
}

impl<T: Pixel> Neg for Image<T> {
    type Output = Image<T>;
    #[track_caller]
    fn neg(self) -> Image<T> {
        self.unary(PixelOp::Neg)
    }
}
