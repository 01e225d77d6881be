//! What goes from one operation to the next: a picture of any type, or a mask.

use horus::prelude::*;

/// The pixels of a picture, or a mask.
#[derive(Clone)]
pub(crate) enum Pixels {
    /// Numbers.
    Numbers(AnyImage),
    /// Truth values.
    Mask(Image<bool>),
}

macro_rules! from {
    ($($t:ty => $variant:ident),*) => {$(
        impl From<Image<$t>> for Pixels {
            fn from(image: Image<$t>) -> Pixels {
                Pixels::Numbers(AnyImage::$variant(image))
            }
        }
    )*};
}
from!(u8 => U8, u16 => U16, i32 => I32, f32 => F32, f64 => F64);

impl From<Image<bool>> for Pixels {
    fn from(mask: Image<bool>) -> Pixels {
        Pixels::Mask(mask)
    }
}

/// The value that the next operation of a chain takes.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) pixels: Pixels,
    /// Of floats, the number that is white: 1, or the largest of the integers that they were computed from.
    scale: f64,
}

/// Evaluates `$body` with `$image` bound to the image of numbers of whatever type; of a mask, a [`Fault`].
///
/// [`Fault`]: super::chain::Fault
macro_rules! numbers {
    ($current:expr, $image:ident => $body:expr) => {{
        use horus::prelude::AnyImage;
        use $crate::command::{chain::Fault, value::Pixels};
        match &$current.pixels {
            Pixels::Numbers(AnyImage::U8($image)) => Ok($body),
            Pixels::Numbers(AnyImage::U16($image)) => Ok($body),
            Pixels::Numbers(AnyImage::I32($image)) => Ok($body),
            Pixels::Numbers(AnyImage::F32($image)) => Ok($body),
            Pixels::Numbers(AnyImage::F64($image)) => Ok($body),
            Pixels::Numbers(other) => Err(Fault::unknown_type(other)),
            Pixels::Mask(_) => Err(Fault::of_mask()),
        }
    }};
}
pub(crate) use numbers;

/// [`numbers`], and masks alike.
macro_rules! pixels {
    ($current:expr, $image:ident => $body:expr) => {
        match &$current.pixels {
            $crate::command::value::Pixels::Mask($image) => Ok($body),
            _ => $crate::command::value::numbers!($current, $image => $body),
        }
    };
}
pub(crate) use pixels;

impl Current {
    /// A picture as it was read.
    pub(crate) fn read(picture: AnyImage) -> Current {
        Current { pixels: Pixels::Numbers(picture), scale: 1.0 }
    }

    /// What an operation made of this value, its numbers on the same scale.
    pub(crate) fn becomes(&self, pixels: impl Into<Pixels>) -> Current {
        Current { pixels: pixels.into(), scale: self.white() }
    }

    /// Floats in which 1 is white.
    pub(crate) fn unit(pixels: impl Into<Pixels>) -> Current {
        Current { pixels: pixels.into(), scale: 1.0 }
    }

    /// The element type.
    pub(crate) fn dtype(&self) -> DType {
        match &self.pixels {
            Pixels::Numbers(image) => image.dtype(),
            Pixels::Mask(_) => DType::Bool,
        }
    }

    /// Rows, columns and channels.
    pub(crate) fn shape(&self) -> Shape {
        match &self.pixels {
            Pixels::Numbers(image) => image.shape(),
            Pixels::Mask(mask) => mask.shape(),
        }
    }

    /// The number that is white.
    pub(crate) fn white(&self) -> f64 {
        match self.dtype() {
            DType::F32 | DType::F64 => self.scale,
            DType::Bool => 1.0,
            integer => largest(integer),
        }
    }

    /// All channels as `f32` in which 1 is white; masks are 0 and 1.
    pub(crate) fn to_unit(&self) -> Image<f32> {
        match &self.pixels {
            Pixels::Numbers(image) => self.from_scale(image.to_unit()),
            Pixels::Mask(mask) => mask.convert(),
        }
    }

    /// One channel of `f32` in which 1 is white.
    pub(crate) fn luminance(&self) -> Image<f32> {
        match &self.pixels {
            Pixels::Numbers(image) => self.from_scale(image.luminance()),
            Pixels::Mask(mask) => mask.convert::<f32>().luminance(),
        }
    }

    /// The library scales integers; floats may be on the scale of integers, too.
    fn from_scale(&self, image: Image<f32>) -> Image<f32> {
        if self.dtype().is_float() && self.scale != 1.0 { image / self.scale as f32 } else { image }
    }

    /// The first error of what was recorded.
    pub(crate) fn check(&self) -> Result<()> {
        pixels!(self, image => image.check()).unwrap_or(Ok(()))
    }

    /// What is saved: floats on the scale of integers are brought to `0..=1` where a file of this format and these options
    /// holds integers whose white is 1. Exact values are not touched.
    pub(crate) fn to_save(&self, exact: bool, options: &SaveOptions) -> Pixels {
        let stretched = !matches!(options.scaling, Scaling::Auto | Scaling::Unit);
        match &self.pixels {
            _ if exact || stretched || self.scale == 1.0 => self.pixels.clone(),
            Pixels::Numbers(AnyImage::F32(image)) => Pixels::from(image / self.scale as f32),
            Pixels::Numbers(AnyImage::F64(image)) => Pixels::from(image / self.scale),
            _ => self.pixels.clone(),
        }
    }
}

/// The largest number of an integer type.
pub(crate) fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::U8 => u8::HIGHEST.to_f64(),
        DType::U16 => u16::HIGHEST.to_f64(),
        DType::I32 => i32::HIGHEST.to_f64(),
        DType::F32 | DType::F64 | DType::Bool => 1.0,
    }
}
