//! Files before their samples are known, and with them.

use std::path::Path;
use std::sync::Arc;

use tiff::tags::Tag;

use super::format::{Beside, Parts, write};
use super::tiff::directory::Entry;
use super::tiff::file as tiff_file;
use super::tiff::metadata as tiff_metadata;
use super::tiff::ome;
use super::tiff::tiles::Tiles;
use super::{Alpha, Clipping, Exif, Format, Georeference, SaveOptions, Scale, Sink, density, exif, texts};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::error::Audience;
use horus_base::lengths::PixelSize;
use horus_base::shape::Shape;
use horus_host::host::buffer::HostBuffer;
use horus_host::host::workers::Workers;

/// The properties of a file, without its samples. Belongs to no session.
#[derive(Clone, Debug)]
pub struct Draft {
    format: Format,
    shape: Shape,
    /// The type of the image, and of the samples.
    dtype: DType,
    stored: DType,
    parts: Parts,
    /// Scaling of the samples.
    pub scale: StoredScale,
    /// The range of the file, if values outside were counted.
    pub counted: Option<StoredRange>,
    clipping: Clipping,
    beside: Beside,
    /// Number of sizes, each half as high and wide as the one before.
    sizes: usize,
    /// The value of missing pixels that the options ask for, in the words of a file.
    nodata: Option<String>,
    /// The size of its pixels, if it is known.
    pub pixel: Option<PixelSize>,
    /// Their size in a print or a scan.
    pub printed: Option<PixelSize>,
    /// Names of its channels, if these are no colours of one pixel.
    pub names: Vec<String>,
    /// The last channel is alpha.
    pub alpha: Option<Alpha>,
    /// The colour profile of its samples.
    pub profile: Option<Arc<[u8]>>,
    /// EXIF data of its pixels.
    pub exif: Option<Exif>,
    /// Texts of people.
    pub texts: Option<Arc<[(String, String)]>>,
}

/// The smallest and the largest value that a file holds.
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
    /// None.
    Not,
    /// A known one.
    By(Scale),
    /// By the smallest and the largest value, which the evaluation finds; the largest sample.
    Range(u16),
}

/// What files of a format do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// A place on the earth.
    Georeference,
    /// A value of missing pixels.
    Nodata,
    /// A colour table, of so many bits.
    Colours,
    /// The size of pixels, or this one.
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
    /// Texts of people.
    Texts,
}

impl Lacking {
    /// The files that have it.
    pub fn elsewhere(self) -> &'static str {
        match self {
            Lacking::Georeference | Lacking::Nodata => "only TIFF files have one",
            Lacking::Colours => "only TIFF files, and PNG files of 8 bits, have one",
            Lacking::PixelSize | Lacking::Levels => "only TIFF, PNG and OME files have one",
            Lacking::Names => "only OME files have them",
            Lacking::Profile | Lacking::Printed => "only JPEG, PNG and TIFF files have one",
            Lacking::Exif => "only JPEG, PNG and TIFF files have them",
            Lacking::Texts => {
                "only PNG files have all; TIFF and JPEG files have titles, authors, descriptions and copyrights"
            }
        }
    }
}

/// The report on clipped values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clipped {
    /// For the user.
    pub warning: Option<String>,
    /// The reason for refusing the file.
    pub error: Option<String>,
}

impl Draft {
    /// The file of an image of such pixels.
    ///
    /// # Errors
    /// A message, if the format cannot hold the channels, the size or the depth, or does not support the options.
    pub fn new(format: Format, dtype: DType, shape: Shape, options: &SaveOptions) -> Result<Draft, String> {
        let format = format.with_channels(shape.channels);
        let stored = format.stored(dtype, shape, options)?;
        let parts = Parts::of(format, stored, shape, options)?;
        let nodata = options.nodata.map(|value| nodata(value, stored)).transpose()?;
        let clipping = options.clipping;
        let (scale, counted, beside) = (StoredScale::Not, None, Beside::default());
        Ok(Draft {
            format,
            shape,
            dtype,
            stored,
            parts,
            scale,
            counted,
            clipping,
            beside,
            sizes: options.sizes,
            nodata,
            pixel: None,
            printed: None,
            names: Vec::new(),
            alpha: None,
            profile: None,
            exif: None,
            texts: None,
        })
    }

    /// Stores where the picture lies and what its values stand for; a value of missing pixels that the options ask for comes
    /// before that of the picture. Returns what the format does not have.
    pub fn locate(&mut self, at: &Georeference) -> Vec<Lacking> {
        if self.format == Format::Tiff {
            let nodata = self.nodata.clone().unwrap_or_else(|| at.nodata().to_owned());
            self.add(at.clone().with_values(nodata, at.colours().to_vec()).entries());
            return Vec::new();
        }
        let mut lacking = Vec::new();
        if at.is_placed() {
            lacking.push(Lacking::Georeference);
        }
        if !at.nodata().is_empty() {
            lacking.push(Lacking::Nodata);
        }
        if !at.colours().is_empty() {
            match (self.format, at.colours().len() / 3) {
                (Format::Png, count @ 256) => {
                    let byte = |plane: usize, value: usize| (at.colours()[plane * count + value] >> 8) as u8;
                    self.beside.chunks.colours =
                        (0..count).flat_map(|value| [0, 1, 2].map(|plane| byte(plane, value))).collect();
                }
                _ => lacking.push(Lacking::Colours),
            }
        }
        lacking
    }

    /// True if the options ask for a value of missing pixels.
    pub fn has_nodata(&self) -> bool {
        self.nodata.is_some()
    }

    /// Shapes of the samples of all sizes, the largest first.
    pub fn sizes(&self) -> Vec<Shape> {
        tiff_file::shapes(self.shape, self.sizes).collect()
    }

    /// Describes the picture as OME-TIFF, if that is what the file's path is called (`.ome.tif`), with the
    /// size of its pixels and a page for each channel, unless three or four without names are colours; other TIFF files and
    /// PNG files have the size as their resolution. Colour profiles, resolutions of prints, EXIF data and texts are stored
    /// where files have them. Returns what the file does not have. The last change of a draft.
    pub fn describe(&mut self, path: &Path) -> Vec<Lacking> {
        /// Segments of a JPEG file hold so much of a profile, and are numbered by a byte.
        const LONGEST_OF_JPEG: usize = 254 * 65519;
        let pixel = self.pixel;
        let mut lacking = Vec::new();
        match (self.profile.take(), self.format) {
            (None, _) => {}
            (Some(profile), Format::Tiff) => self.add(vec![Entry::bytes_of(Tag::IccProfile.to_u16(), &profile)]),
            (Some(profile), Format::Jpeg) if profile.len() > LONGEST_OF_JPEG => lacking.push(Lacking::Profile),
            (profile, Format::Png | Format::Jpeg) => self.beside.chunks.profile = profile,
            _ => lacking.push(Lacking::Profile),
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let lower = name.to_ascii_lowercase();
        let ome = [".ome.tif", ".ome.tiff"].iter().find_map(|end| lower.strip_suffix(end));
        let ome = if self.format == Format::Tiff { ome } else { None };
        self.note(ome.is_some(), &mut lacking);
        let has_names = self.names.iter().any(|name| !name.is_empty());
        if self.format == Format::Png {
            self.beside.chunks.pixel = pixel.map(|size| [size.rows, size.columns]);
        }
        let is_sized = self.format == Format::Png && self.beside.chunks.density().is_some();
        if let Some(printed) = self.printed.filter(|_| !is_sized && (self.format != Format::Tiff || pixel.is_none())) {
            let dots = density::dots(printed);
            match self.format {
                Format::Tiff => self.add(tiff_metadata::resolution(printed, true)),
                Format::Png | Format::Jpeg if dots.is_some() => self.beside.chunks.dots = dots,
                _ => lacking.push(Lacking::Printed),
            }
        }
        if self.format != Format::Tiff {
            if pixel.is_some() && !is_sized {
                lacking.push(Lacking::PixelSize);
            }
            if has_names {
                lacking.push(Lacking::Names);
            }
            return lacking;
        }
        let name = ome.and_then(|ome| name.get(..ome.len()));
        if let Some(name) = name {
            let channels = self.shape.channels;
            let is_named = self.names.len() == channels;
            let apart = is_named || !matches!(channels, 1 | 3 | 4);
            self.names.resize(channels, String::new());
            let names = apart.then_some(&self.names[..]);
            let text = ome::description(name, self.shape, self.stored, pixel, names);
            self.add(vec![Entry::ascii(Tag::ImageDescription.to_u16(), &text)]);
            self.beside.apart = apart;
        } else if has_names {
            lacking.push(Lacking::Names);
        }
        if let Some(pixel) = pixel {
            self.add(tiff_metadata::resolution(pixel, false));
        }
        if let Some(alpha) = self.alpha.filter(|_| self.shape.channels > 1 && !self.beside.apart) {
            self.add(vec![tiff_metadata::alpha_entry(alpha)]);
        }
        lacking
    }

    /// Stores EXIF data and texts; the description of an OME file is another.
    fn note(&mut self, is_ome: bool, lacking: &mut Vec<Lacking>) {
        /// Bytes of a segment of a JPEG file, without its length.
        const LONGEST: usize = 65533;
        let said = self.texts.take();
        let said = said.as_deref().unwrap_or_default();
        let (mut fields, others) = texts::entries(said);
        let mut missed = others.iter().any(|keyword| *keyword != texts::COMMENT);
        if is_ome {
            let all = fields.len();
            fields.retain(|entry| !entry.is_of_file());
            missed |= fields.len() < all;
        }
        let exif = self.exif.take().map(|exif| exif.entries(self.shape));
        match self.format {
            Format::Tiff => {
                fields.extend(exif.unwrap_or_default());
                self.add(fields);
            }
            Format::Png => {
                self.beside.chunks.texts = said.to_vec();
                self.beside.chunks.exif = exif.map(exif::bytes_of);
                missed = false;
            }
            Format::Jpeg => {
                let comment = said.iter().find(|(keyword, _)| keyword == texts::COMMENT);
                self.beside.chunks.texts = comment.cloned().into_iter().collect();
                if comment.is_some() {
                    let others: Vec<_> =
                        said.iter().filter(|(keyword, _)| keyword != texts::COMMENT).cloned().collect();
                    fields = texts::entries(&others).0;
                }
                let both = [exif.clone().unwrap_or_default(), fields.clone()].concat();
                let fits = |entries: Vec<Entry>| {
                    Some(exif::bytes_of(entries)).filter(|bytes| bytes.len() + exif::IN_JPEG.len() <= LONGEST)
                };
                self.beside.chunks.exif = if both.is_empty() { None } else { fits(both) };
                if self.beside.chunks.exif.is_none() {
                    missed |= !fields.is_empty();
                    exif.is_some().then(|| lacking.push(Lacking::Exif));
                }
            }
            _ => {
                missed |= !fields.is_empty() && said.iter().any(|(keyword, _)| keyword != texts::COMMENT);
                exif.is_some().then(|| lacking.push(Lacking::Exif));
            }
        }
        if missed {
            lacking.push(Lacking::Texts);
        }
    }

    /// True if black and white of the samples are those of a file with samples of type `of`, and both files have integers.
    pub fn keeps_black_and_white(&self, of: DType) -> bool {
        let integers = |dtype| matches!(dtype, DType::U8 | DType::U16);
        let scaled = match self.scale {
            StoredScale::Not => self.stored == of,
            StoredScale::By(Scale { low, high, .. }) => low == 0.0 && (high == 1.0 || !self.dtype.is_float()),
            StoredScale::Range(_) => false,
        };
        integers(of) && integers(self.stored) && self.dtype != DType::Bool && scaled
    }

    fn add(&mut self, entries: Vec<Entry>) {
        self.beside.entries.extend(entries);
    }

    /// Lets a TIFF file be in the tiles of the file that its picture is from, unless the options ask for others or the picture
    /// is no larger than a tile: whatever memory there is, so that the bytes of a file do not depend on it.
    pub fn in_tiles_of(&mut self, tile: Option<(usize, usize)>) {
        /// Maximum rows and columns of a tile.
        const LARGEST: usize = 4096;
        let Shape { height, width, .. } = self.shape;
        let fits = |(rows, columns): &(usize, usize)| {
            let side = |side: usize, of: usize| side.is_multiple_of(Tiles::STEP) && side <= LARGEST && side < of;
            side(*rows, height) && side(*columns, width)
        };
        if let Parts::Tiff(wanted @ None, ..) = &mut self.parts {
            *wanted = tile.filter(fits);
        }
    }

    /// Rows and columns of its tiles.
    pub(super) fn tile(&self) -> Option<(usize, usize)> {
        if let Parts::Tiff(tile, ..) = self.parts { tile } else { None }
    }

    /// What the file says beside its pixels.
    pub(super) fn told_beside(&self) -> &Beside {
        &self.beside
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The shape and type of the stored samples.
    pub fn stored(&self) -> (Shape, DType) {
        (self.shape, self.stored)
    }

    /// The encoder of the samples of each [size](Draft::sizes), those of a pixel beside each other, followed by what
    /// [`Draft::told`] takes.
    ///
    /// # Panics
    /// If a buffer is missing.
    pub fn encoder(self, mut fetched: Vec<Arc<HostBuffer>>) -> Encoder {
        assert!(fetched.len() >= self.sizes, "the samples");
        let told = fetched.split_off(self.sizes);
        let (scale, clipped) = self.told(&mut told.into_iter());
        let Draft { format, shape, stored, parts, beside, .. } = self;
        Encoder { format, shape, stored, parts: (parts, beside), pixels: fetched, scale, clipped }
    }

    /// The scale, and the report on clipped values: from the smallest and the largest value, if they
    /// are the scale, and the number of values outside, if they are counted.
    ///
    /// # Panics
    /// If a buffer is missing.
    pub fn told(&self, fetched: &mut dyn Iterator<Item = Arc<HostBuffer>>) -> (Option<Scale>, Clipped) {
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

    fn clipped(&self, count: f64, held: StoredRange) -> Clipped {
        if count == 0.0 {
            return Clipped::default();
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
            Audience::now().told(
                format!("Scaling::Unit scales {low}..={high}, "),
                format!("--scaling unit scales {low}..={high}, "),
                format!("scaling=\"unit\" scales {low}..={high}, "),
            )
        };
        let range = Audience::now().told(
            "Scaling::Range stretches",
            "--scaling range stretches",
            "scaling=\"range\" stretches",
        );
        let allow = Audience::now().told("Clipping::Allow", "--clipping allow", "clipping=\"allow\"");
        let instead = format!("{unit}{range}, tif and npy files hold every value");
        match self.clipping {
            Clipping::Warn => Clipped { warning: Some(format!("{what} and were clipped; {instead}")), error: None },
            Clipping::Refuse => Clipped { warning: None, error: Some(format!("{what}; {instead}, {allow} clips")) },
            Clipping::Allow => Clipped::default(),
        }
    }
}

/// The words of a file for the value that stands for missing pixels, among samples of type `stored`.
fn nodata(value: f64, stored: DType) -> Result<String, String> {
    let held = dispatch!(stored, T => T::from_f64(value).to_f64());
    let fits = if stored.is_float() { held.is_finite() == value.is_finite() } else { held == value };
    if !fits {
        return Err(format!("{value} stands for missing pixels (nodata), and samples of {stored} do not hold it"));
    }
    let whole = held.fract() == 0.0 && held.abs() < 1e15;
    Ok(match held {
        nan if nan.is_nan() => "nan".to_owned(),
        held if whole => held.to_string(),
        held => format!("{held:?}"),
    })
}

/// The range of an image's values, of which none may be finite.
fn range<T: Pixel>(low: &HostBuffer, high: &HostBuffer, full: u16) -> Scale {
    let (low, high) = (low.as_slice::<T>()[0].to_f64(), high.as_slice::<T>()[0].to_f64());
    if low <= high { Scale { low, high, full } } else { Scale { low: 0.0, high: 0.0, full } }
}

/// The samples of a file on the host, ready to be encoded on any thread. Belongs to no session.
#[derive(Debug)]
pub struct Encoder {
    format: Format,
    shape: Shape,
    stored: DType,
    parts: (Parts, Beside),
    /// Of each size, the samples of a pixel beside each other.
    pixels: Vec<Arc<HostBuffer>>,
    scale: Option<Scale>,
    clipped: Clipped,
}

impl Encoder {
    /// The format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The scale, if values were scaled.
    pub fn scale(&self) -> Option<Scale> {
        self.scale
    }

    /// A warning about the values, if any.
    pub fn warning(&self) -> Option<&str> {
        self.clipped.warning.as_deref()
    }

    /// Writes the file, divided among `workers` as far as the format permits; its bytes do not
    /// depend on them. Returns the scale.
    ///
    /// # Errors
    /// A message, if clipped values are refused, the file cannot be written or memory is exhausted.
    pub fn write(self, to: &mut dyn Sink, workers: &Workers) -> Result<Option<Scale>, String> {
        if let Some(refused) = self.clipped.error {
            return Err(refused);
        }
        write(to, self.format, self.parts, &self.pixels, self.stored, self.shape, workers)?;
        Ok(self.scale)
    }
}
