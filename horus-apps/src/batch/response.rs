//! The result of an operation on a picture.

use std::path::Path;

use horus::prelude::*;
use horus_core::dtype::Element;
use horus_core::io::{Format, PixelSize, Saving, on_root, pixel_size};
use horus_core::series::Savable;
use horus_core::session::MemoryForecast;

use crate::caller::Caller;

/// The image that results from an operation, of any type.
#[derive(Clone, Debug)]
pub enum Response {
    /// Numeric pixels.
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
    ([$($pixel:ident $variant:ident),*]) => {
        $(impl From<Image<$pixel>> for Response {
            fn from(image: Image<$pixel>) -> Response {
                Response::Picture(AnyImage::$variant(image))
            }
        })*
    };
}
horus_core::numeric_types!([from_images]);

/// Evaluates `$body` with `$image` bound to the numeric image, of any type, or `$else` with `$other` bound to a mask or
/// to an image of an unknown type.
macro_rules! each_number {
    ($response:expr, $image:ident => $body:expr, $($other:tt)*) => {
        horus_core::numeric_types! { [$crate::batch::each_variant] $response, $image => $body, $($other)* }
    };
}
macro_rules! each_variant {
    ([$($pixel:ident $variant:ident),*] $response:expr, $image:ident => $body:expr, $($other:pat => $else:expr),*) => {
        match $response {
            $($crate::batch::Response::Picture(horus::prelude::AnyImage::$variant($image)) => $body,)*
            $($other => $else,)*
        }
    };
}
pub(crate) use {each_number, each_variant};

/// Evaluates `$body` with `$image` bound to the image, of any type.
macro_rules! each {
    ($response:expr, $image:ident => $body:expr) => {
        each_number!(
            $response, $image => Ok($body),
            Response::Mask($image) => Ok($body),
            Response::Picture(other) => Err(Error::Config(format!("{} pixels are not supported", other.dtype())))
        )
    };
}

/// The result of a program for a picture.
#[derive(Clone, Debug)]
pub struct Product {
    /// The image.
    pub image: Response,
    /// The depth in which it is saved if no option sets one.
    pub depth: Depth,
}

impl From<Response> for Product {
    fn from(image: Response) -> Product {
        Product { image, depth: Depth::Auto }
    }
}

impl Product {
    fn options(&self, options: &SaveOptions) -> SaveOptions {
        let depth = if options.depth == Depth::Auto { self.depth } else { options.depth };
        SaveOptions { depth, ..*options }
    }

    /// Evaluates and writes it; the path's extension sets the format unless one is given.
    ///
    /// # Errors
    /// Errors of the evaluation and of the file.
    pub fn save(
        &self,
        caller: &Caller,
        path: &Path,
        format: Option<Format>,
        options: &SaveOptions,
    ) -> Result<Option<Scale>> {
        self.image.save(caller, path, format, &self.options(options))
    }
}

impl Savable for Product {
    fn saving(&self, path: &Path, options: &SaveOptions) -> Result<Saving> {
        self.image.saving(path, &self.options(options))
    }
}

/// Rows and columns of a thumbnail at most.
const THUMBNAIL: usize = 160;

impl Response {
    /// A small PNG file of the image: of a volume the middle level, of channels that are no colours the first. Floats
    /// are shown from their smallest to their largest value. Collective.
    pub(crate) fn thumbnail(&self) -> Result<Vec<u8>> {
        let (pixels, is_float) = match self {
            Response::Picture(image) => (image.colours().to_unit(), image.dtype().is_float()),
            Response::Mask(mask) => (mask.convert(), false),
        };
        let level = pixels.slice(pixels.depth() / 2);
        let level = if matches!(level.channels(), 1 | 3) { level } else { level.channel(0) };
        let side = |n: usize| (n * THUMBNAIL / level.height().max(level.width()).max(THUMBNAIL)).max(1);
        let small = level.resize(side(level.height()), side(level.width()), Resampling::Area);
        let scaling = if is_float { Scaling::Range } else { Scaling::Unit };
        small.encode(Format::Png, &SaveOptions { scaling, ..SaveOptions::default() })
    }

    /// The size and type of the image.
    pub(crate) fn kind(&self) -> (Shape, DType) {
        match self {
            Response::Picture(image) => (image.shape(), image.dtype()),
            Response::Mask(mask) => (mask.shape(), DType::Bool),
        }
    }

    /// The size of the image's pixels, if it is known.
    ///
    /// # Errors
    /// If the type of the image is unknown.
    pub(crate) fn pixel_size(&self) -> Result<Option<PixelSize>> {
        each!(self, image => pixel_size(image))
    }

    /// Fails if the image carries an error.
    pub(crate) fn check(&self) -> Result<()> {
        each!(self, image => image.check())?
    }

    /// Predicts the computation of the image on several ranks.
    pub(crate) fn forecast(&self, cluster: Cluster) -> Result<Forecast> {
        each!(self, image => image.session().forecast(image, cluster))?
    }

    /// Predicts the memory for computing the image.
    pub(crate) fn forecast_memory(&self) -> Result<MemoryForecast> {
        each!(self, image => image.session().forecast_memory(image))?
    }

    /// Evaluates and writes it; the path's extension sets the format unless one is given.
    fn save(
        &self,
        caller: &Caller,
        path: &Path,
        format: Option<Format>,
        options: &SaveOptions,
    ) -> Result<Option<Scale>> {
        match format {
            None => each!(self, image => image.save_with(path, options))?,
            Some(format) => each!(self, image => save_as(image, (caller, path), format, options))?,
        }
    }

    /// Evaluates and writes a Zarr store.
    #[cfg(feature = "zarr")]
    pub(crate) fn save_store(&self, path: &Path, options: &horus_zarr::ZarrSaveOptions) -> Result<()> {
        each!(self, image => horus_zarr::save(image, path, options))?
    }

    /// Returns `true` if both have the same type, size and bits. Evaluates both, on every rank.
    pub(crate) fn same_bits(&self, other: &Response) -> Result<bool> {
        macro_rules! same {
            ([$($pixel:ident $variant:ident),*]) => {
                match (self, other) {
                    (Response::Mask(a), Response::Mask(b)) => Ok(a.to_vec()? == b.to_vec()?),
                    $((Response::Picture(AnyImage::$variant(a)), Response::Picture(AnyImage::$variant(b))) => {
                        Ok(a.to_vec()?.into_iter().map(Pixel::scalar).eq(b.to_vec()?.into_iter().map(Pixel::scalar)))
                    })*
                    _ => Ok(false),
                }
            };
        }
        horus_core::numeric_types!([same])
    }
}

/// Writes a file in a given format, whatever its name.
fn save_as<T: Element>(
    image: &Image<T>,
    (caller, path): (&Caller, &Path),
    format: Format,
    options: &SaveOptions,
) -> Result<Option<Scale>> {
    let failed = |cause| Error::write(path, cause);
    let (mut target, mut bytes) = (None, Vec::new());
    let made = on_root(image.session(), "creating a file for a picture", || {
        target = Some(caller.file(path)?);
        Ok(())
    })?;
    made.map_err(failed)?;
    let scale = image.write_to(&mut bytes, format, options)?;
    let written = on_root(image.session(), "writing a picture", || {
        let target = target.ok_or("rank 0 has no file")?;
        target.fill(&bytes)
    })?;
    written.map_err(failed)?;
    Ok(scale)
}

impl Savable for Response {
    fn saving(&self, path: &Path, options: &SaveOptions) -> Result<Saving> {
        each!(self, image => image.saving(path, options))?
    }
}
