//! The interface of the formats of picture files, and the list of formats.

use std::fmt::{self, Debug};
use std::path::Path;

use super::{
    Alpha, Compression, DecodeResources, Decoder, Depth, Encoder, FileInfo, FileSpec, Metadata, OpenOptions, Picture,
    PictureHeader, PictureSource, Raster, RegionDecoder, RegionFile, SaveOptions, Scaling, Sink, UnsupportedMetadata,
    decode, guarded, reader, texts,
};
use horus_base::dtype::DType;
use horus_base::error::Audience;
use horus_base::shape::Shape;
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;

/// A format of picture files. Other code uses this interface instead of naming formats.
pub(super) trait PictureFormat: Sync {
    /// The properties of its files.
    fn facts(&self) -> &FormatProperties;

    /// Reads the header of a file that is decoded as a whole, and prepares to decode the pixels. The bytes before the
    /// pixels suffice for the header.
    fn decoder<'a>(&self, _bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        Err(format!("{} files are not decoded as a whole", self.facts().title))
    }

    /// Rejects a file that ends early, if its decoder does not.
    fn is_complete(&self, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }

    /// The bytes before and after the pixels of a file, if the format can leave the pixels out.
    fn without_pixels(&self, _source: &PictureSource<'_>) -> Option<Vec<u8>> {
        None
    }

    /// Reads the header of a file that is decoded as a whole, and no more than necessary.
    fn header(&self, source: &PictureSource<'_>, _options: &OpenOptions) -> Result<PictureHeader, String> {
        // The bytes before the pixels suffice, unless the file is corrupt.
        let header = self.without_pixels(source).and_then(|head| Some(self.decoder(&head).ok()?.0));
        header.map_or_else(|| Ok(self.decoder(&source.all(&HostBuffer::try_zeroed)?)?.0), Ok)
    }

    /// The position of pixels that are stored as in memory.
    fn raster(&self, _source: &PictureSource<'_>, _options: &OpenOptions) -> Result<Option<Raster>, String> {
        Ok(None)
    }

    /// Reads the picture, or the requested region.
    fn read(
        &self,
        source: &PictureSource<'_>,
        options: &OpenOptions,
        means: DecodeResources<'_>,
    ) -> Result<Picture, String> {
        match self.raster(source, options)? {
            Some(raster) => raster.read(source, options.region, means),
            None => decode::whole(self, source, options, means),
        }
    }

    /// The reader of regions, if the file supports them.
    fn regions(
        &self,
        source: &PictureSource<'static>,
        options: &OpenOptions,
    ) -> Result<Option<Box<dyn RegionDecoder>>, String> {
        Ok(self.raster(source, options)?.map(|raster| reader::of_raster(source.clone(), raster)))
    }

    /// A warning about pages that are not read.
    fn unread(&self, _source: &PictureSource<'_>, _options: &OpenOptions) -> Option<String> {
        None
    }

    /// The properties of a file, as stored.
    fn describe(&self, source: &PictureSource<'_>, options: &OpenOptions) -> Result<FileInfo, String> {
        let (shape, dtype, tile) = match self.raster(source, options) {
            Ok(Some(Raster { shape, dtype, .. })) => (shape, dtype, (1, shape.width)),
            _ => {
                let PictureHeader { shape, dtype, .. } = guarded(|| self.header(source, options))?;
                (shape, dtype, (shape.height, shape.width))
            }
        };
        Ok(FileInfo { shape, dtype, tile, pages: 1, levels: vec![(shape.height, shape.width)] })
    }

    /// Descriptions of a file, as names and texts.
    fn tags(&self, _source: &PictureSource<'_>, _options: &OpenOptions) -> Result<Vec<(String, String)>, String> {
        Ok(Vec::new())
    }

    /// Metadata of a file that is read as this many channels. Metadata that cannot be read counts as absent.
    fn metadata(&self, _source: &PictureSource<'_>, _options: &OpenOptions, _channels: usize) -> Metadata {
        Metadata::default()
    }

    /// Rejects options that the format does not support.
    fn check(&self, _file: &FileSpec) -> Result<(), String> {
        Ok(())
    }

    /// Returns `true` if a file does not support this metadata, which the image has.
    fn omits_metadata(&self, what: UnsupportedMetadata, file: &FileSpec) -> bool {
        // A lone comment may be lost without a warning.
        let mut texts = file.metadata.texts.iter().flat_map(|texts| texts.iter());
        what != UnsupportedMetadata::Texts || texts.any(|(keyword, _)| keyword != texts::COMMENT)
    }

    /// Writes a file whole.
    fn write(&self, _to: &mut dyn Sink, _file: &Encoder, _workers: &Workers) -> Result<(), String> {
        Err(format!("{} files are only read", self.facts().title))
    }

    /// A file that is written region by region, if [`FormatProperties::by_regions`].
    fn in_regions(&self, _file: &FileSpec) -> Result<Box<dyn RegionFile>, String> {
        let (name, others) = (self.facts().name, Format::in_regions());
        Err(format!("a {name} file cannot be written region by region; save as {others}"))
    }

    /// The format for this many channels, if this is a name for several formats.
    fn with_channels(&self, _channels: usize) -> Option<Format> {
        None
    }

    /// Returns `false` if a picture of this shape is too large, though its sides are not.
    fn fits(&self, _shape: Shape) -> bool {
        true
    }
}

impl Debug for dyn PictureFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().title)
    }
}

/// The properties of files of a format.
pub(super) struct FormatProperties {
    /// The name of the format, which is the usual suffix of its files.
    pub(super) name: &'static str,
    /// Its name in messages about reading.
    pub(super) title: &'static str,
    /// The magic bytes: files begin with one of these.
    pub(super) magic: &'static [&'static [u8]],
    /// Other suffixes.
    pub(super) suffixes: &'static [&'static str],
    /// Suffixes of files that are only read.
    pub(super) read: &'static [&'static str],
    /// Types of samples. If the list is empty, values of any type are stored unchanged, whatever the options say.
    pub(super) types: &'static [DType],
    /// Numbers of channels; any, if the list is empty.
    pub(super) channels: &'static [usize],
    /// Numbers of channels of which the last may be alpha; any, if the list is empty.
    pub(super) alpha: Option<&'static [usize]>,
    /// The kind of alpha in all its files, if the format defines it.
    pub(super) alpha_kind: Option<Alpha>,
    /// Maximum rows or columns.
    pub(super) side: usize,
    /// Files may contain volumes.
    pub(super) levels: bool,
    /// Compression changes samples.
    pub(super) lossy: bool,
    /// Files may have several pages, and smaller copies of pages.
    pub(super) pages: bool,
    /// Decoding uses memory that the header does not determine.
    pub(super) uses_hidden_memory: bool,
    /// Files are written region by region.
    pub(super) by_regions: bool,
    /// Options that only some formats support.
    pub(super) options: &'static [FormatOption],
}

impl FormatProperties {
    /// The properties of a format without special features.
    pub(super) const PLAIN: FormatProperties = FormatProperties {
        name: "",
        title: "",
        magic: &[],
        suffixes: &[],
        read: &[],
        types: &[],
        channels: &[],
        alpha: None,
        alpha_kind: None,
        side: i32::MAX as usize,
        levels: false,
        lossy: false,
        pages: false,
        uses_hidden_memory: false,
        by_regions: false,
        options: &[],
    };

    fn has(&self, suffix: &str) -> bool {
        self.name == suffix || self.suffixes.contains(&suffix)
    }
}

/// Options that only some formats support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormatOption {
    Quality,
    Sizes,
    Tile,
    Compression,
    Nodata,
}

/// Lists the formats: first the writable ones, with their names.
macro_rules! formats {
    ($($(#[$doc:meta])+ $name:ident = $format:expr,)+ read only: $($read:expr),*) => {
        /// A file format to write.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])+ $name,)+
        }

        /// All formats, first [`Format::ALL`].
        pub(super) static FORMATS: &[&dyn PictureFormat] = &[$(&$format,)+ $(&$read),*];

        impl Format {
            const ALL: &[Format] = &[$(Format::$name,)+];
        }
    };
}

formats! {
    /// Portable Network Graphics.
    Png = super::png::Png,
    /// JPEG.
    Jpeg = super::jpeg::Jpeg,
    /// TIFF.
    Tiff = super::tiff::Tiff,
    /// Portable bitmap: masks. True is white.
    Pbm = super::pnm::Pbm,
    /// Portable graymap, binary.
    Pgm = super::pnm::PGM,
    /// Portable pixmap, binary.
    Ppm = super::pnm::PPM,
    /// [`Format::Pgm`] for one channel, else [`Format::Ppm`].
    Pnm = super::pnm::PNM,
    /// Portable floatmap: 32-bit floats, grey or colour.
    Pfm = super::pnm::Pfm,
    /// Windows bitmap.
    Bmp = super::bmp::Bmp,
    /// Quite OK Image.
    Qoi = super::qoi::Qoi,
    /// OpenEXR: 32-bit floats.
    Exr = super::exr::OpenExr,
    /// WebP, without loss.
    WebP = super::webp::WebP,
    /// A NumPy array: the exact values.
    Npy = super::npy::Npy,
    read only: super::jpeg2000::Jpeg2000
}

impl Format {
    /// The format of a path's extension; `pnm` is PGM or PPM by the number of channels.
    ///
    /// ```
    /// # use horus_core::{self as horus, prelude::*};
    /// use horus::io::Format;
    /// # use std::path::Path;
    /// assert_eq!(Format::of(Path::new("lines.PNG"), 1), Ok(Format::Png));
    /// assert_eq!(Format::of(Path::new("lines.pnm"), 3), Ok(Format::Ppm));
    /// assert!(Format::of(Path::new("lines"), 1).unwrap_err().contains("no extension"));
    /// ```
    ///
    /// # Errors
    /// A message, if there is no extension or it is unknown.
    pub fn of(path: &Path, channels: usize) -> Result<Format, String> {
        match path.extension().and_then(|e| e.to_str()).unwrap_or_default() {
            "" => Err("the file name has no extension to choose a format from".into()),
            extension => {
                let extension = extension.to_ascii_lowercase();
                let format = Format::find_named(&extension, || format!("unknown extension .{extension}"))?;
                Ok(format.with_channels(channels))
            }
        }
    }

    /// The format with this name, which is its extension: `png`, `jpg`, `tif`, `pbm`, `pgm`, `ppm`, `pnm`, `pfm`,
    /// `bmp`, `qoi`, `exr`, `webp` or `npy`.
    ///
    /// # Errors
    /// A message, if there is no such format.
    pub fn named(name: &str) -> Result<Format, String> {
        Format::find_named(&name.to_ascii_lowercase(), || format!("unknown format {name}"))
    }

    fn find_named(name: &str, unknown: impl FnOnce() -> String) -> Result<Format, String> {
        let found = Format::ALL.iter().copied().find(|format| format.facts().has(name));
        found.ok_or_else(|| format!("{}; use {}", unknown(), Format::names()))
    }

    /// The names of all formats, in words: `png, jpg ... or npy`.
    pub fn names() -> String {
        alternatives(Format::ALL.iter().map(|format| format.name()))
    }

    /// Returns `true` if readable pictures have this extension, in lower case.
    pub fn is_read(extension: &str) -> bool {
        FORMATS.iter().map(|format| format.facts()).any(|facts| facts.has(extension) || facts.read.contains(&extension))
    }

    /// The interface of the format.
    pub(super) fn listed(self) -> &'static dyn PictureFormat {
        FORMATS[self as usize]
    }

    fn facts(self) -> &'static FormatProperties {
        self.listed().facts()
    }

    /// The name, which is the extension of its files.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns `true` if values of any type are stored unchanged, whatever the options say.
    pub fn keeps_values(self) -> bool {
        self.facts().types.is_empty()
    }

    /// Returns `true` if files are written region by region.
    pub fn by_regions(self) -> bool {
        self.facts().by_regions
    }

    /// Returns `true` if samples of this type are stored unchanged, unless the options ask for another type.
    pub fn stores(self, dtype: DType) -> bool {
        self.keeps_values() || self.facts().types.contains(&dtype)
    }

    /// Numbers of channels of which the last may be alpha, any if the list is empty; `None` if files have no alpha.
    pub fn alpha(self) -> Option<&'static [usize]> {
        self.facts().alpha
    }

    /// The kind of alpha in the last of this many channels, if the format defines it.
    pub fn alpha_kind(self, channels: usize) -> Option<Alpha> {
        self.facts().alpha_kind.filter(|_| self.facts().alpha.is_some_and(|all| all.contains(&channels)))
    }

    /// The format for this number of channels.
    pub(super) fn with_channels(self, channels: usize) -> Format {
        self.listed().with_channels(channels).unwrap_or(self)
    }

    fn can(self, dtype: DType, shape: Shape) -> bool {
        let &FormatProperties { types, channels, side, levels, .. } = self.facts();
        (types.is_empty() || types.contains(&dtype))
            && (channels.is_empty() || channels.contains(&shape.channels))
            && (levels || shape.depth == 1)
            && shape.height.max(shape.width) <= side
            && self.listed().fits(shape)
    }

    /// The sample type that stores an image of `dtype` pixels.
    ///
    /// # Errors
    /// If the format does not support such samples or such a shape; names the formats that do.
    pub(super) fn stored(self, dtype: DType, shape: Shape, options: &SaveOptions) -> Result<DType, String> {
        let &FormatProperties { name, types, channels: numbers, .. } = self.facts();
        if types.is_empty() {
            return Ok(dtype);
        }
        let scaled = matches!(options.scaling, Scaling::Unit | Scaling::Range);
        let stored = match (options.depth, dtype) {
            (Depth::Auto, DType::Bool) if types.contains(&DType::Bool) => DType::Bool,
            (Depth::Eight, _) | (Depth::Auto, DType::U8 | DType::Bool) => DType::U8,
            (Depth::Sixteen, _) | (Depth::Auto, DType::U16) => DType::U16,
            (Depth::Float, _) => DType::F32,
            (Depth::Auto, _) if scaled => DType::U8,
            (Depth::Auto, DType::F64) if types == [DType::F32] => DType::F32,
            (Depth::Auto, float) if float.is_float() && !types.contains(&float) => DType::U8,
            (Depth::Auto, _) => dtype,
        };
        if self.can(stored, shape) {
            return Ok(stored);
        }
        let bits = 8 * stored.size();
        let what = match stored {
            float if float.is_float() => format!("{bits}-bit floats"),
            signed if signed.is_signed() => format!("{bits}-bit signed integers"),
            _ => format!("{bits} bits per sample"),
        };
        let named = |format: Format| format.with_channels(shape.channels) == format;
        let mut others: Vec<Format> =
            Format::ALL.iter().copied().filter(|f| named(*f) && f.can(stored, shape)).collect();
        others.sort_by_key(|format| (format.keeps_values(), format.facts().lossy));
        let others: Vec<&str> = others.into_iter().map(Format::name).collect();
        let others = format!("save as {}", others.join(", "));
        let Shape { depth, height, width, channels, .. } = shape;
        // No depth helps.
        if !numbers.is_empty() && !numbers.contains(&channels) {
            let channel = if numbers == [1] { "channel" } else { "channels" };
            let numbers = alternatives(numbers);
            return Err(format!("a {name} file has {numbers} {channel}, and the image {channels}; {others}"));
        }
        // Every other format with a choice of types has a depth that stores it.
        if types.contains(&stored) {
            let levels = if depth == 1 { String::new() } else { format!("{depth} levels of ") };
            let size = format!("{levels}{height}x{width} pixels of {channels} channels");
            return Err(format!("a {name} file cannot hold {size} and {what}; {others}"));
        }
        let option = if types == [DType::Bool] {
            "; it holds masks, such as the result of a comparison"
        } else if types == [DType::F32] {
            Audience::now().select_wording(
                ", or ask for Depth::Float (32-bit floats, unscaled)",
                ", or ask for --depth 32 (floats, unscaled)",
                ", or ask for depth=\"float\" (32-bit floats, unscaled)",
            )
        } else if options.depth == Depth::Auto {
            Audience::now().select_wording(
                ", or ask for Depth::Eight with Scaling::Unit or Scaling::Range (8 bits, scaled) or with Scaling::None (saturated)",
                ", or ask for --depth 8 with --scaling unit or range (8 bits, scaled) or none (saturated)",
                ", or ask for depth=8 with scaling=\"unit\" or \"range\" (8 bits, scaled) or \"none\" (saturated)",
            )
        } else if types.contains(&DType::U16) {
            ", or ask for a depth of 8 or 16 bits"
        } else {
            ", or ask for a depth of 8 bits"
        };
        Err(format!("a {name} file cannot hold {what}; {others}{option}"))
    }

    /// The formats whose files are written region by region, first those for any picture.
    fn in_regions() -> String {
        let mut all: Vec<Format> = Format::ALL.iter().copied().filter(|format| format.by_regions()).collect();
        all.retain(|format| format.listed().with_channels(1).is_none());
        all.sort_by_key(|format| !format.facts().channels.is_empty());
        alternatives(all.into_iter().map(Format::name))
    }

    /// Rejects options that the format does not support.
    ///
    /// # Errors
    /// A message that names the formats that do.
    pub(super) fn check_options(self, options: &SaveOptions) -> Result<(), String> {
        let asked = [
            (FormatOption::Quality, options.quality.is_some(), "has no quality"),
            (FormatOption::Sizes, options.sizes != 1, "has one size"),
            (FormatOption::Tile, options.tile.is_some(), "has no tiles"),
            (FormatOption::Compression, options.compression != Compression::None, "leaves no choice of a compression"),
            (FormatOption::Nodata, options.nodata.is_some(), "has no value of missing pixels (nodata)"),
        ];
        match asked.iter().find(|(choice, asked, _)| *asked && !self.facts().options.contains(choice)) {
            None => Ok(()),
            Some((choice, _, lacks)) => {
                let takes = |format: &&Format| format.facts().options.contains(choice);
                let others = alternatives(Format::ALL.iter().filter(takes).map(|format| format.name()));
                let store = if *choice == FormatOption::Sizes { ", or as a Zarr store" } else { "" };
                Err(format!("a {} file {lacks}; save as {others}{store}", self.name()))
            }
        }
    }
}

/// Joins words in a message: `1, 3 or 4`.
pub(super) fn alternatives(words: impl IntoIterator<Item: ToString>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_choose_the_format() {
        let of = |name: &str| Format::of(Path::new(name), 3);
        assert_eq!(of("a.b.PNG"), Ok(Format::Png));
        assert_eq!(of("a.jpeg"), Ok(Format::Jpeg));
        assert_eq!(of("a.pnm"), Ok(Format::Ppm));
        assert!(of("a.gif").unwrap_err().contains("unknown extension .gif"));
        assert!(of("png").is_err() && of(".png").is_err());
    }

    #[test]
    fn the_type_of_an_image_chooses_what_is_stored() {
        let auto = SaveOptions::default();
        let grey = Shape::new(2, 2, 1);
        let stored = |format: Format, dtype| format.stored(dtype, grey, &auto);
        for format in [Format::Png, Format::Tiff, Format::Pgm] {
            assert_eq!(stored(format, DType::U8), Ok(DType::U8));
            assert_eq!(stored(format, DType::U16), Ok(DType::U16));
        }
        for dtype in DType::ALL {
            assert_eq!(stored(Format::Tiff, dtype), Ok(dtype));
            assert_eq!(stored(Format::Npy, dtype), Ok(dtype));
        }
        for dtype in [DType::F32, DType::F64] {
            assert_eq!(stored(Format::Png, dtype), Ok(DType::U8));
            assert_eq!(stored(Format::Jpeg, dtype), Ok(DType::U8));
            // A scale requests integers.
            let range = SaveOptions { scaling: Scaling::Range, ..auto };
            assert_eq!(Format::Tiff.stored(dtype, grey, &range), Ok(DType::U8));
        }
    }

    #[test]
    fn formats_refuse_what_they_cannot_hold_and_say_what_can() {
        let refused = |format: Format, dtype, shape, depth| {
            format.stored(dtype, shape, &SaveOptions { depth, ..SaveOptions::default() }).unwrap_err()
        };
        let (grey, five) = (Shape::new(2, 2, 1), Shape::new(2, 2, 5));
        let e = refused(Format::Jpeg, DType::U16, grey, Depth::Auto);
        assert!(
            e.starts_with(
                "a jpg file cannot hold 16 bits per sample; save as png, tif, pgm, npy, or ask for Depth::Eight"
            ),
            "{e}"
        );
        let e = refused(Format::Png, DType::I32, grey, Depth::Auto);
        assert!(e.starts_with("a png file cannot hold 32-bit signed integers; save as tif, npy, or "), "{e}");
        let e = refused(Format::Png, DType::F32, grey, Depth::Float);
        assert_eq!(
            e,
            "a png file cannot hold 32-bit floats; save as tif, pfm, exr, npy, or ask for a depth of 8 or 16 bits"
        );
        let e = refused(Format::Png, DType::U8, five, Depth::Auto);
        assert_eq!(e, "a png file has 1, 2, 3 or 4 channels, and the image 5; save as tif, npy");
        // A depth would not help.
        let e = refused(Format::Jpeg, DType::I32, Shape::new(2, 2, 2), Depth::Auto);
        assert_eq!(e, "a jpg file has 1 or 3 channels, and the image 2; save as tif, npy");
        let e = refused(Format::Bmp, DType::U8, Shape::new(2, 2, 2), Depth::Auto);
        assert_eq!(e, "a bmp file has 1, 3 or 4 channels, and the image 2; save as png, tif, npy");
        let e = refused(Format::Ppm, DType::U8, five, Depth::Auto);
        assert_eq!(e, "a ppm file has 3 channels, and the image 5; save as tif, npy");
        let e = refused(Format::Pgm, DType::U8, Shape::new(2, 2, 3), Depth::Auto);
        assert_eq!(e, "a pgm file has 1 channel, and the image 3; save as png, tif, ppm, bmp, qoi, webp, jpg, npy");
        let e = refused(Format::Jpeg, DType::U8, Shape::new(1, 70_000, 1), Depth::Auto);
        assert!(e.contains("1x70000 pixels") && e.contains("save as png, tif, pgm, npy"), "{e}");
    }
}
