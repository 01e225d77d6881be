//! What an operation makes of a picture.

use std::path::Path;

use horus::prelude::*;

/// The image that an operation makes of a picture, of whichever type.
#[derive(Clone, Debug)]
pub enum Response {
    /// Numbers.
    Picture(AnyImage),
    /// A mask.
    Mask(Image<bool>),
}

impl From<AnyImage> for Response {
    fn from(image: AnyImage) -> Response {
        Response::Picture(image)
    }
}

impl From<Image<bool>> for Response {
    fn from(mask: Image<bool>) -> Response {
        Response::Mask(mask)
    }
}

macro_rules! from_images {
    ($($pixel:ty => $variant:ident),*) => {
        $(impl From<Image<$pixel>> for Response {
            fn from(image: Image<$pixel>) -> Response {
                Response::Picture(AnyImage::$variant(image))
            }
        })*
    };
}
from_images!(u8 => U8, u16 => U16, i32 => I32, f32 => F32, f64 => F64);

/// Evaluates `$body` with `$image` bound to the image of whatever type.
macro_rules! each {
    ($response:expr, $image:ident => $body:expr) => {
        match $response {
            Response::Picture(AnyImage::U8($image)) => Ok($body),
            Response::Picture(AnyImage::U16($image)) => Ok($body),
            Response::Picture(AnyImage::I32($image)) => Ok($body),
            Response::Picture(AnyImage::F32($image)) => Ok($body),
            Response::Picture(AnyImage::F64($image)) => Ok($body),
            Response::Mask($image) => Ok($body),
            // Whoever adds a type to pictures adds it here.
            Response::Picture(other) => Err(Error::Config(format!("{} pixels are not supported", other.dtype()))),
        }
    };
}

impl Response {
    /// The error that the image carries, if it does.
    pub(crate) fn check(&self) -> Result<()> {
        each!(self, image => image.check())?
    }

    /// What ranks would exchange to make it.
    pub(crate) fn forecast(&self, ranks: usize, link: Link) -> Result<Forecast> {
        each!(self, image => image.forecast(ranks, link))?
    }

    /// Evaluates and writes it.
    pub(crate) fn save_with(&self, path: &Path, options: &SaveOptions) -> Result<Option<Scale>> {
        each!(self, image => image.save_with(path, options))?
    }
}
