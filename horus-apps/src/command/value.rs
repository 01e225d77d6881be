//! The value passed from one operation to the next: a picture of any type, or a mask.

use horus::core::dtype::Numeric;
use horus::core::session::Session;
use horus::prelude::*;

use super::chain::Fault;
use crate::batch::Response;

/// The value that the next operation of a chain takes.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) pixels: Response,
    /// Of floats, the number that is white: 1, or the largest of the integers that they were computed from.
    scale: f64,
}

/// Evaluates `$body` with `$image` bound to the image of numbers of whatever type; of a mask, a [`Fault`].
///
/// [`Fault`]: super::chain::Fault
macro_rules! numbers {
    ($current:expr, $image:ident => $body:expr) => {{
        use horus::prelude::AnyImage;
        use $crate::batch::Response;
        use $crate::command::chain::Fault;
        match &$current.pixels {
            Response::Picture(AnyImage::U8($image)) => Ok($body),
            Response::Picture(AnyImage::U16($image)) => Ok($body),
            Response::Picture(AnyImage::U32($image)) => Ok($body),
            Response::Picture(AnyImage::I8($image)) => Ok($body),
            Response::Picture(AnyImage::I16($image)) => Ok($body),
            Response::Picture(AnyImage::I32($image)) => Ok($body),
            Response::Picture(AnyImage::F32($image)) => Ok($body),
            Response::Picture(AnyImage::F64($image)) => Ok($body),
            Response::Picture(other) => Err(Fault::unknown_type(other)),
            Response::Mask(_) => Err(Fault::of_mask()),
        }
    }};
}
pub(crate) use numbers;

/// [`numbers`], and masks alike.
macro_rules! pixels {
    ($current:expr, $image:ident => $body:expr) => {
        match &$current.pixels {
            $crate::batch::Response::Mask($image) => Ok($body),
            _ => $crate::command::value::numbers!($current, $image => $body),
        }
    };
}
pub(crate) use pixels;

impl Current {
    /// A picture as it was read.
    pub(crate) fn read(picture: AnyImage) -> Current {
        Current { pixels: Response::Picture(picture), scale: 1.0 }
    }

    /// What an operation made of this value, its numbers on the same scale.
    pub(crate) fn becomes(&self, pixels: impl Into<Response>) -> Current {
        Current { pixels: pixels.into(), scale: self.white() }
    }

    /// Floats in which 1 is white.
    pub(crate) fn unit(pixels: impl Into<Response>) -> Current {
        Current { pixels: pixels.into(), scale: 1.0 }
    }

    /// The element type.
    pub(crate) fn dtype(&self) -> DType {
        match &self.pixels {
            Response::Picture(image) => image.dtype(),
            Response::Mask(_) => DType::Bool,
        }
    }

    /// Rows, columns and channels.
    pub(crate) fn shape(&self) -> Shape {
        match &self.pixels {
            Response::Picture(image) => image.shape(),
            Response::Mask(mask) => mask.shape(),
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
            Response::Picture(image) => self.scaled(image.to_unit()),
            Response::Mask(mask) => mask.convert(),
        }
    }

    /// One channel of `f32` in which 1 is white.
    pub(crate) fn luminance(&self) -> Image<f32> {
        match &self.pixels {
            Response::Picture(image) => self.scaled(image.luminance()),
            Response::Mask(mask) => mask.convert::<f32>().luminance(),
        }
    }

    /// The library scales integers; floats may be on the scale of integers, too.
    fn scaled(&self, image: Image<f32>) -> Image<f32> {
        if self.dtype().is_float() && self.scale != 1.0 { image / self.scale as f32 } else { image }
    }

    /// The session that it belongs to.
    pub(crate) fn session(&self) -> Result<Session> {
        pixels!(self, image => image.session().clone())
            .map_err(|_: Fault| Error::Config("pixels of an unknown type".into()))
    }

    /// The first error of what was recorded.
    pub(crate) fn check(&self) -> Result<()> {
        pixels!(self, image => image.check()).unwrap_or(Ok(()))
    }

    /// What is saved: floats on the scale of integers are brought to `0..=1` where a file of this format and these options
    /// holds integers whose white is 1. Exact values are not touched.
    pub(crate) fn to_save(&self, exact: bool, options: &SaveOptions) -> Response {
        let stretched = !matches!(options.scaling, Scaling::Auto | Scaling::Unit);
        match &self.pixels {
            _ if exact || stretched || self.scale == 1.0 => self.pixels.clone(),
            Response::Picture(AnyImage::F32(image)) => Response::from(image / self.scale as f32),
            Response::Picture(AnyImage::F64(image)) => Response::from(image / self.scale),
            _ => self.pixels.clone(),
        }
    }
}

/// The largest number of an integer type.
pub(crate) fn largest(dtype: DType) -> f64 {
    match dtype.numeric() {
        _ if dtype == DType::Bool => 1.0,
        Numeric::U8 => u8::HIGHEST.to_f64(),
        Numeric::U16 => u16::HIGHEST.to_f64(),
        Numeric::U32 => u32::HIGHEST.to_f64(),
        Numeric::I8 => i8::HIGHEST.to_f64(),
        Numeric::I16 => i16::HIGHEST.to_f64(),
        Numeric::I32 => i32::HIGHEST.to_f64(),
        Numeric::F32 | Numeric::F64 => 1.0,
    }
}
