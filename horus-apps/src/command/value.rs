//! The value passed from one operation to the next: a picture of any type, or a mask.

use horus::prelude::*;
use horus_core::dispatch;
use horus_core::image::LoopState;
use horus_core::io::Format;
use horus_core::session::Session;

use super::chain::{ChainError, record_by};
use crate::batch::{Product, Response};

/// The value that the next operation of a chain takes.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) pixels: Response,
    /// The number that is white in floats: 1, or the maximum of the integer type that they were computed from.
    scale: f64,
    /// The last integer type in the chain, which sets the depth of a file of floats.
    origin: Option<DType>,
    /// Alpha, set aside on a scale of its own.
    alpha: Option<Box<Current>>,
}

/// Treatment of alpha, the last channel where the file says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AlphaTreatment {
    /// Kept aside and saved with the result.
    Keep,
    /// Discarded.
    Drop,
    /// A channel like the others.
    Channel,
}

/// The file for a result.
#[derive(Clone, Debug)]
pub(crate) struct ResultFile {
    /// Its extension, which is the name of its format.
    pub(crate) format: String,
    /// `true` if it stores the exact values of floats.
    pub(crate) exact: bool,
}

/// Evaluates `$body` with `$image` bound to the numeric image, of any type; a mask is a [`ChainError`].
///
/// [`ChainError`]: super::chain::ChainError
macro_rules! numbers {
    ($current:expr, $image:ident => $body:expr) => {{
        use $crate::batch::{Response, each_number};
        use $crate::command::chain::ChainError;
        each_number!(
            &$current.pixels, $image => Ok($body),
            Response::Picture(other) => Err(ChainError::unknown_type(other)),
            Response::Mask(_) => Err(ChainError::of_mask())
        )
    }};
}
pub(crate) use numbers;

/// [`numbers`], but also for masks.
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
        let origin = (!picture.dtype().is_float()).then(|| picture.dtype());
        Current { pixels: Response::Picture(picture), scale: 1.0, origin, alpha: None }
    }

    /// A picture as it was read, with its alpha.
    pub(crate) fn opened(picture: AnyImage, alpha: AlphaTreatment) -> Current {
        let aside = match alpha {
            AlphaTreatment::Channel => return Current::read(picture),
            AlphaTreatment::Drop => None,
            AlphaTreatment::Keep => picture.alpha().map(|alpha| Box::new(Current::read(alpha))),
        };
        Current { alpha: aside, ..Current::read(picture.colours()) }
    }

    /// The result of an operation on this value, with numbers on the same scale.
    pub(crate) fn becomes(&self, pixels: impl Into<Response>) -> Current {
        Current { scale: self.white(), ..Current::unit(pixels) }
    }

    /// Floats on a scale where 1 is white.
    pub(crate) fn unit(pixels: impl Into<Response>) -> Current {
        Current { pixels: pixels.into(), scale: 1.0, origin: None, alpha: None }
    }

    /// The value that follows `before`. If the operation moves pixels, `moved` is applied to alpha too.
    pub(crate) fn after(
        self,
        before: Current,
        moved: impl FnOnce(&Current) -> Result<Current, ChainError>,
    ) -> Result<Current, ChainError> {
        let integer = !self.dtype().is_float() && self.dtype() != DType::Bool;
        let origin = if integer { Some(self.dtype()) } else { before.origin };
        let alpha = before.alpha.map(|alpha| moved(&alpha).map(Box::new)).transpose()?;
        Ok(Current { origin, alpha, ..self })
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

    /// All channels as `f32` on a scale where 1 is white; masks are 0 and 1.
    pub(crate) fn to_unit(&self) -> Image<f32> {
        match &self.pixels {
            Response::Picture(image) => self.scaled(image.to_unit()),
            Response::Mask(mask) => mask.convert(),
        }
    }

    /// One channel of `f32` on a scale where 1 is white.
    pub(crate) fn luminance(&self) -> Image<f32> {
        match &self.pixels {
            Response::Picture(image) => self.scaled(image.luminance()),
            Response::Mask(mask) => mask.convert::<f32>().luminance(),
        }
    }

    /// Scales floats that are on the scale of integers; the library scales integers.
    fn scaled(&self, image: Image<f32>) -> Image<f32> {
        if self.dtype().is_float() && self.scale != 1.0 { image / self.scale as f32 } else { image }
    }

    /// The session of the image.
    pub(crate) fn session(&self) -> Result<Session> {
        pixels!(self, image => image.session().clone())
            .map_err(|_: ChainError| Error::Config("pixels of an unknown type".into()))
    }

    /// The first error among recorded operations.
    pub(crate) fn check(&self) -> Result<()> {
        pixels!(self, image => image.check()).unwrap_or(Ok(()))
    }

    /// Names the operation that recorded the value, with its place in the chain.
    pub(crate) fn recorded_by(&self, operation: (usize, &'static str)) {
        let mut handles = Vec::new();
        let known: Result<(), ChainError> = pixels!(self, image => image.handles(&mut handles));
        // Operations refuse pixels of unknown types.
        if known.is_ok() {
            record_by(handles, operation);
        }
    }

    /// The image to save. Floats on the scale of integers are scaled to `0..=1` if a file of this format and these
    /// options stores integers whose white is 1; exact values are not changed. Floats computed from more than 8 bits
    /// are saved in 16 bits if the format supports them. Alpha is added, or dropped with a warning.
    pub(crate) fn to_save(&self, file: &ResultFile, options: &SaveOptions) -> Result<Product> {
        let stretched = !matches!(options.scaling, Scaling::Auto | Scaling::Unit);
        let scaled = !(file.exact || stretched || self.scale == 1.0) && self.dtype().is_float();
        let image = match &self.pixels {
            Response::Picture(AnyImage::F32(image)) if scaled => Response::from(image / self.scale as f32),
            Response::Picture(AnyImage::F64(image)) if scaled => Response::from(image / self.scale),
            _ => self.pixels.clone(),
        };
        let image = match &self.alpha {
            None => image,
            Some(alpha) => match self.without_alpha(file, options) {
                Some(why) => {
                    log::warn!("alpha is not saved: {why}");
                    image
                }
                None => alpha.with_alpha_channel(image, if scaled { 1.0 } else { self.white() })?,
            },
        };
        let deep = self.origin.is_some_and(|origin| origin.size() > 1);
        let holds = Format::named(&file.format).is_ok_and(|format| format.stores(DType::U16));
        let deep = deep && holds && !file.exact && self.dtype().is_float();
        Ok(Product { image, depth: if deep { Depth::Sixteen } else { Depth::Auto } })
    }

    /// The reason why a file of this value has no alpha, if it has none.
    fn without_alpha(&self, file: &ResultFile, options: &SaveOptions) -> Option<String> {
        let (shape, alpha) = (self.shape(), self.alpha.as_ref()?.shape());
        let format = &file.format;
        let Some(among) = Format::named(format).ok().and_then(Format::alpha) else {
            return Some(format!("a {format} file has none"));
        };
        if self.dtype() == DType::Bool {
            Some("the result is a mask".into())
        } else if (Shape { channels: 1, ..shape }) != alpha {
            Some(format!(
                "the result has {} x {} pixels, alpha {} x {}",
                shape.width, shape.height, alpha.width, alpha.height
            ))
        } else if !(among.is_empty() || among.contains(&(shape.channels + 1))) {
            Some(format!("a {format} file has none beside {} channels", shape.channels))
        } else if options.scaling == Scaling::Range {
            Some("--scaling range stretches the values".into())
        } else {
            None
        }
    }

    /// `colours`, whose white is `white`, with this channel of alpha in their type.
    fn with_alpha_channel(&self, colours: Response, white: f64) -> Result<Response> {
        fn joined<T: Pixel>(alpha: &Current, colours: &Image<T>, white: f64) -> Result<Response, ChainError>
        where
            Image<T>: Into<Response>,
        {
            let factor = white / alpha.white();
            let alpha: Image<T> = numbers!(alpha, image => match factor {
                1.0 => image.convert(),
                _ => (image.convert::<f64>() * factor).convert(),
            })?;
            Ok(Image::stack(colours.session(), [colours, &alpha], Axis::Channels).into())
        }
        let colours = Current::unit(colours);
        let made = numbers!(colours, image => joined(self, image, white)).and_then(|made| made);
        made.map_err(|_| Error::Config("alpha beside pixels of an unknown type".into()))
    }
}

/// The smallest number of an integer type.
pub(crate) fn smallest(dtype: DType) -> f64 {
    if dtype.is_signed() { dispatch!(dtype, T => T::LOWEST.to_f64()) } else { 0.0 }
}

/// The largest number of an integer type.
pub(crate) fn largest(dtype: DType) -> f64 {
    if dtype.is_float() || dtype == DType::Bool { 1.0 } else { dispatch!(dtype, T => T::HIGHEST.to_f64()) }
}
