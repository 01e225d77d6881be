//! The arithmetic operators `+ - * /` and unary `-`.

use std::ops::{Add, Div, Mul, Neg, Sub};
use std::panic::Location;

use super::{Argument, Image};
use crate::dtype::Pixel;
use crate::error::Result;
use crate::ops::pixel::PixelOp;

macro_rules! operator {
    ($trait:ident, $method:ident, $($scalar:ty)*) => {
        operator!(@images $trait, $method, &Image<T>, &Image<T>);
        operator!(@images $trait, $method, &Image<T>, Image<T>);
        operator!(@images $trait, $method, Image<T>, &Image<T>);
        operator!(@images $trait, $method, Image<T>, Image<T>);
        operator!(@scalar $trait, $method, &Image<T>);
        operator!(@scalar $trait, $method, Image<T>);
        $(
            operator!(@left $trait, $method, $scalar, &Image<$scalar>);
            operator!(@left $trait, $method, $scalar, Image<$scalar>);
        )*
    };
    (@images $trait:ident, $method:ident, $left:ty, $right:ty) => {
        impl<T: Pixel> $trait<$right> for $left {
            type Output = Result<Image<T>>;
            #[track_caller]
            fn $method(self, right: $right) -> Result<Image<T>> {
                let (left, right): (&Image<T>, &Image<T>) = (&self, &right);
                right.record(PixelOp::$trait, left, Location::caller())
            }
        }
    };
    (@scalar $trait:ident, $method:ident, $left:ty) => {
        impl<T: Pixel> $trait<T> for $left {
            type Output = Image<T>;
            #[track_caller]
            fn $method(self, right: T) -> Image<T> {
                right.record(PixelOp::$trait, &self, Location::caller())
            }
        }
    };
    (@left $trait:ident, $method:ident, $left:ty, $right:ty) => {
        impl $trait<$right> for $left {
            type Output = Image<$left>;
            #[track_caller]
            fn $method(self, right: $right) -> Image<$left> {
                right.scalar_left(PixelOp::$trait, self)
            }
        }
    };
}

operator!(Add, add, u8 u16 i32 f32 f64);
operator!(Sub, sub, u8 u16 i32 f32 f64);
operator!(Mul, mul, u8 u16 i32 f32 f64);
operator!(Div, div, u8 u16 i32 f32 f64);

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
