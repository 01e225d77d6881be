//! Files to write: their properties, with and without samples.

use std::path::Path;
use std::sync::Arc;

use super::{Clipping, Format, Georeference, Metadata, SaveOptions, Scale, Sink};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::error::Audience;
use horus_base::shape::Shape;
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;

/// The properties of a file, without its samples. Belongs to no session.
#[derive(Clone, Debug)]
pub struct FileSpec {
    pub(super) format: Format,
    pub(super) shape: Shape,
    /// The type of the image, and of the samples.
    dtype: DType,
    pub(super) stored: DType,
    pub(super) options: SaveOptions,
    /// Scaling of the samples.
    pub scale: StoredScale,
    /// The range of the file, if values outside it are counted.
    pub counted: Option<StoredRange>,
    /// Metadata of the picture.
    pub metadata: Metadata,
    /// The name of the file, if it has one.
    pub(super) name: String,
}

/// The smallest and the largest value that a file can store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredRange {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

/// Scaling of stored samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StoredScale {
    /// No scaling.
    Not,
    /// A given scale.
    By(Scale),
    /// By the smallest and the largest value, which the evaluation computes. The number is the largest sample.
    Range(u16),
}

/// Metadata that a file format may not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedMetadata {
    /// Position on the earth.
    Georeference,
    /// The value of missing pixels.
    Nodata,
    /// A colour table, for this many bits.
    Colours,
    /// The size of pixels, or this particular one.
    PixelSize,
    /// The distance of levels.
    Levels,
    /// Names of channels.
    Names,
    /// A colour profile.
    Profile,
    /// The size of pixels in a print or a scan.
    Printed,
    /// EXIF data.
    Exif,
    /// Texts by people.
    Texts,
}

impl UnsupportedMetadata {
    /// Names of the formats that support it.
    pub fn supporting_formats(self) -> &'static str {
        match self {
            UnsupportedMetadata::Georeference | UnsupportedMetadata::Nodata => "only TIFF files have one",
            UnsupportedMetadata::Colours => "only TIFF files, and PNG files of 8 bits, have one",
            UnsupportedMetadata::PixelSize | UnsupportedMetadata::Levels => "only TIFF, PNG and OME files have one",
            UnsupportedMetadata::Names => "only OME files have them",
            UnsupportedMetadata::Profile => "only JPEG, PNG, TIFF and WebP files have one",
            UnsupportedMetadata::Printed => "only JPEG, PNG and TIFF files have one",
            UnsupportedMetadata::Exif => "only JPEG, PNG, TIFF and WebP files have them",
            UnsupportedMetadata::Texts => {
                "only PNG files have all; TIFF and JPEG files have titles, authors, descriptions and copyrights"
            }
        }
    }
}

/// The report on clipped values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClippingReport {
    /// A warning for the user.
    pub warning: Option<String>,
    /// The reason for refusing the file.
    pub error: Option<String>,
}

impl FileSpec {
    /// The file of an image of this pixel type and shape.
    ///
    /// # Errors
    /// A message, if the format does not support the channels, the size, the depth or the options.
    pub fn new(format: Format, dtype: DType, shape: Shape, options: &SaveOptions) -> Result<FileSpec, String> {
        let format = format.with_channels(shape.channels);
        let stored = format.stored(dtype, shape, options)?;
        format.check_options(options)?;
        let (scale, counted) = (StoredScale::Not, None);
        let (options, beside, name) = (*options, Metadata::default(), String::new());
        let draft = FileSpec { format, shape, dtype, stored, options, scale, counted, metadata: beside, name };
        format.listed().check(&draft)?;
        Ok(draft)
    }

    /// Returns `true` if the options ask for a value of missing pixels.
    pub fn has_nodata(&self) -> bool {
        self.options.nodata.is_some()
    }

    /// Shapes of the samples of all sizes, the largest first.
    pub fn sizes(&self) -> Vec<Shape> {
        shapes(self.shape, self.options.sizes).collect()
    }

    /// Gives the file its name, which decides on its metadata. Returns the metadata that it does not support.
    pub fn describe(&mut self, path: &Path) -> Vec<UnsupportedMetadata> {
        self.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (said, lacks) = (&self.metadata, |what| self.format.listed().omits_metadata(what, self));
        let at = |has: fn(&Georeference) -> bool| said.reference.as_ref().is_some_and(has);
        // A file has one resolution.
        let resolved = said.pixel.is_some() && !lacks(UnsupportedMetadata::PixelSize);
        let known = [
            (UnsupportedMetadata::Georeference, at(Georeference::is_placed)),
            (UnsupportedMetadata::Nodata, at(|at| !at.nodata().is_empty())),
            (UnsupportedMetadata::Colours, at(|at| !at.colours().is_empty())),
            (UnsupportedMetadata::Profile, said.profile.is_some()),
            (UnsupportedMetadata::Exif, said.exif.is_some()),
            (UnsupportedMetadata::Texts, said.texts.is_some()),
            (UnsupportedMetadata::Printed, said.printed.is_some() && !resolved),
            (UnsupportedMetadata::PixelSize, said.pixel.is_some()),
            (UnsupportedMetadata::Names, said.names.iter().any(|name| !name.is_empty())),
        ];
        known.into_iter().filter_map(|(what, known)| (known && lacks(what)).then_some(what)).collect()
    }

    /// Returns `true` if the samples have the black and white of a file with samples of type `of`, and both files have
    /// integers.
    pub fn keeps_black_and_white(&self, of: DType) -> bool {
        let integers = |dtype| matches!(dtype, DType::U8 | DType::U16);
        let scaled = match self.scale {
            StoredScale::Not => self.stored == of,
            StoredScale::By(Scale { low, high, .. }) => low == 0.0 && (high == 1.0 || !self.dtype.is_float()),
            StoredScale::Range(_) => false,
        };
        integers(of) && integers(self.stored) && self.dtype != DType::Bool && scaled
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The shape and type of the stored samples.
    pub fn stored(&self) -> (Shape, DType) {
        (self.shape, self.stored)
    }

    /// The encoder of the interleaved samples of each [size](FileSpec::sizes), followed by the arguments of
    /// [`FileSpec::scale_and_clipping`].
    ///
    /// # Panics
    /// If a buffer is missing.
    pub fn encoder(self, mut fetched: Vec<Arc<HostBuffer>>) -> Encoder {
        let sizes = self.options.sizes;
        assert!(fetched.len() >= sizes, "the samples");
        let told = fetched.split_off(sizes);
        let (scale, clipped) = self.scale_and_clipping(&mut told.into_iter());
        Encoder { draft: self, pixels: fetched, scale, clipped }
    }

    /// The scale, and the report on clipped values. `fetched` are the smallest and the largest value, if they are the
    /// scale, and the number of values outside, if they are counted.
    ///
    /// # Panics
    /// If a buffer is missing.
    pub fn scale_and_clipping(
        &self,
        fetched: &mut dyn Iterator<Item = Arc<HostBuffer>>,
    ) -> (Option<Scale>, ClippingReport) {
        let mut next = || fetched.next().expect("a buffer for each value");
        let scale = match self.scale {
            StoredScale::Not => None,
            StoredScale::By(scale) => Some(scale),
            StoredScale::Range(full) => {
                let (low, high) = (next(), next());
                Some(dispatch!(self.dtype, T => range::<T>(&low, &high, full)))
            }
        };
        let clipped = self.counted.map(|held| self.clipped(next().as_slice::<f64>()[0], held));
        (scale, clipped.unwrap_or_default())
    }

    fn clipped(&self, count: f64, held: StoredRange) -> ClippingReport {
        if count == 0.0 {
            return ClippingReport::default();
        }
        let all = self.shape.len();
        let percent = match 100.0 * count / all as f64 {
            little if little < 0.1 => "less than 0.1 %".to_owned(),
            percent => format!("{percent:.1} %"),
        };
        let StoredRange { low, high } = held;
        let lie = if count == 1.0 { "lies" } else { "lie" };
        let what = format!("{count} of {all} values {lie} outside {low}..={high} ({percent})");
        let unit = if self.dtype.is_float() {
            String::new()
        } else {
            let (low, high) = (0, dispatch!(self.dtype, T => T::HIGHEST.to_f64()));
            Audience::now().select_wording(
                format!("Scaling::Unit scales {low}..={high}, "),
                format!("--scaling unit scales {low}..={high}, "),
                format!("scaling=\"unit\" scales {low}..={high}, "),
            )
        };
        let range = Audience::now().select_wording(
            "Scaling::Range stretches",
            "--scaling range stretches",
            "scaling=\"range\" stretches",
        );
        let allow = Audience::now().select_wording("Clipping::Allow", "--clipping allow", "clipping=\"allow\"");
        let instead = format!("{unit}{range}, tif and npy files hold every value");
        match self.options.clipping {
            Clipping::Warn => {
                ClippingReport { warning: Some(format!("{what} and were clipped; {instead}")), error: None }
            }
            Clipping::Refuse => {
                ClippingReport { warning: None, error: Some(format!("{what}; {instead}, {allow} clips")) }
            }
            Clipping::Allow => ClippingReport::default(),
        }
    }
}

/// The shapes of a picture in this many sizes, each half as high and wide as the one before, rounded up.
pub(super) fn shapes(shape: Shape, sizes: usize) -> impl Iterator<Item = Shape> {
    let half = |shape: &Shape| {
        let Shape { height, width, .. } = *shape;
        Some(Shape { height: height.div_ceil(2), width: width.div_ceil(2), ..*shape })
    };
    std::iter::successors(Some(shape), half).take(sizes)
}

/// The range of an image's values, of which none may be finite.
fn range<T: Pixel>(low: &HostBuffer, high: &HostBuffer, full: u16) -> Scale {
    let (low, high) = (low.as_slice::<T>()[0].to_f64(), high.as_slice::<T>()[0].to_f64());
    if low <= high { Scale { low, high, full } } else { Scale { low: 0.0, high: 0.0, full } }
}

/// The samples of a file on the host, ready to be encoded on any thread. Belongs to no session.
#[derive(Debug)]
pub struct Encoder {
    pub(super) draft: FileSpec,
    /// The interleaved samples of each size.
    pub(super) pixels: Vec<Arc<HostBuffer>>,
    scale: Option<Scale>,
    clipped: ClippingReport,
}

impl Encoder {
    /// The format.
    pub fn format(&self) -> Format {
        self.draft.format
    }

    /// The scale, if values were scaled.
    pub fn scale(&self) -> Option<Scale> {
        self.scale
    }

    /// A warning about the values, if any.
    pub fn warning(&self) -> Option<&str> {
        self.clipped.warning.as_deref()
    }

    /// Writes the file, by all `workers` as far as the format permits; its bytes do not depend on them. Returns the
    /// scale.
    ///
    /// # Errors
    /// A message, if clipped values are refused, the file cannot be written or memory is exhausted.
    pub fn write(self, to: &mut dyn Sink, workers: &Workers) -> Result<Option<Scale>, String> {
        if let Some(refused) = &self.clipped.error {
            return Err(refused.clone());
        }
        self.draft.format.listed().write(to, &self, workers)?;
        Ok(self.scale)
    }
}
