//! Encoding of pixels to files.

use std::path::Path;
use std::sync::Arc;

use super::jpeg::write as jpeg;
use super::npy::write as write_npy;
use super::png::write as png;
use super::target::Sink;
use super::tiff::compression::Compression;
use super::tiff::directory::Entry;
use super::tiff::file::TiffFile;
use super::{Depth, SaveOptions, Scaling};
use super::{bmp, pnm};
use horus_base::dtype::DType;
use horus_base::error::Audience;
use horus_base::shape::Shape;
use horus_host::host::buffer::HostBuffer;
use horus_host::host::workers::Workers;

const KNOWN: &str = "png, jpg, tif, pgm, ppm, pnm, bmp or npy";

/// A file format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG.
    Jpeg,
    /// TIFF.
    Tiff,
    /// Portable graymap, binary.
    Pgm,
    /// Portable pixmap, binary.
    Ppm,
    /// [`Format::Pgm`] for one channel, else [`Format::Ppm`].
    Pnm,
    /// Windows bitmap.
    Bmp,
    /// A NumPy array: the exact values.
    Npy,
}

impl Format {
    /// Formats suggested by error messages.
    const ALL: [Format; 7] =
        [Format::Png, Format::Tiff, Format::Pgm, Format::Ppm, Format::Bmp, Format::Jpeg, Format::Npy];

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
            extension => match Format::known(extension) {
                Some(format) => Ok(format.with_channels(channels)),
                None => Err(format!("unknown extension .{}; use {KNOWN}", extension.to_ascii_lowercase())),
            },
        }
    }

    /// The format of a name, which is that of its extension: `png`, `jpg`, `tif`, `pgm`, `ppm`, `pnm`, `bmp` or `npy`.
    ///
    /// # Errors
    /// A message, if there is no such format.
    pub fn named(name: &str) -> Result<Format, String> {
        Format::known(name).ok_or_else(|| format!("unknown format {name}; use {KNOWN}"))
    }

    fn known(name: &str) -> Option<Format> {
        Some(match name.to_ascii_lowercase().as_str() {
            "png" => Format::Png,
            "jpg" | "jpeg" => Format::Jpeg,
            "tif" | "tiff" => Format::Tiff,
            "pnm" => Format::Pnm,
            "pgm" => Format::Pgm,
            "ppm" => Format::Ppm,
            "bmp" => Format::Bmp,
            "npy" => Format::Npy,
            _ => return None,
        })
    }

    /// The name, which is the extension of its files.
    pub fn name(self) -> &'static str {
        self.holds().0
    }

    /// The format for this number of channels.
    pub(super) fn with_channels(self, channels: usize) -> Format {
        match self {
            Format::Pnm if channels == 1 => Format::Pgm,
            Format::Pnm => Format::Ppm,
            other => other,
        }
    }

    /// The name, sample types, numbers of channels (any, if none is listed) and maximum rows or
    /// columns of a format.
    fn holds(self) -> (&'static str, &'static [DType], &'static [usize], usize) {
        use DType::{U8, U16};
        const MOST: usize = i32::MAX as usize;
        match self {
            Format::Png => ("png", &[U8, U16], &[1, 2, 3, 4], MOST),
            Format::Jpeg => ("jpg", &[U8], &[1, 3], u16::MAX as usize),
            Format::Tiff => ("tif", &DType::ALL, &[], MOST),
            Format::Pgm => ("pgm", &[U8, U16], &[1], MOST),
            Format::Ppm => ("ppm", &[U8, U16], &[3], MOST),
            Format::Pnm => ("pnm", &[U8, U16], &[1, 3], MOST),
            Format::Bmp => ("bmp", &[U8], &[1, 3, 4], u16::MAX as usize),
            Format::Npy => ("npy", &[], &[], usize::MAX),
        }
    }

    fn can(self, dtype: DType, shape: Shape) -> bool {
        let (_, types, channels, side) = self.holds();
        // Sizes have 32 bits.
        let fits = match self {
            Format::Bmp => shape.len() < u32::MAX as usize - (1 << 20),
            // Numbers of samples have 16 bits.
            Format::Tiff => shape.channels <= u16::MAX as usize,
            _ => true,
        };
        let channels = channels.is_empty() || channels.contains(&shape.channels);
        let levels = shape.depth == 1 || matches!(self, Format::Npy | Format::Tiff);
        let types = types.is_empty() || types.contains(&dtype);
        types && channels && levels && shape.height.max(shape.width) <= side && fits
    }

    /// The type of sample in which an image of `dtype` pixels is stored.
    ///
    /// # Errors
    /// If the format cannot hold such samples or such a shape; names the formats that can.
    pub(super) fn stored(self, dtype: DType, shape: Shape, options: &SaveOptions) -> Result<DType, String> {
        if self == Format::Npy {
            return Ok(dtype);
        }
        let scaled = matches!(options.scaling, Scaling::Unit | Scaling::Range);
        let stored = match (options.depth, dtype) {
            (Depth::Eight, _) | (Depth::Auto, DType::U8 | DType::Bool) => DType::U8,
            (Depth::Sixteen, _) | (Depth::Auto, DType::U16) => DType::U16,
            (Depth::Float, _) => DType::F32,
            (Depth::Auto, _) if scaled => DType::U8,
            (Depth::Auto, DType::F32 | DType::F64) if self != Format::Tiff => DType::U8,
            (Depth::Auto, _) => dtype,
        };
        let (name, types, numbers, _) = self.holds();
        if self.can(stored, shape) {
            return Ok(stored);
        }
        let bits = 8 * stored.size();
        let what = match stored {
            float if float.is_float() => format!("{bits}-bit floats"),
            signed if signed.is_signed() => format!("{bits}-bit signed integers"),
            _ => format!("{bits} bits per sample"),
        };
        let others: Vec<&str> = Format::ALL.iter().filter(|f| f.can(stored, shape)).map(|f| f.holds().0).collect();
        let others = format!("save as {}", others.join(", "));
        let Shape { depth, height, width, channels, .. } = shape;
        // No depth helps.
        if !numbers.is_empty() && !numbers.contains(&channels) {
            return Err(format!("a {name} file has {}, and the image {channels}; {others}", listed(numbers)));
        }
        // Every format but npy has a depth that holds it.
        if types.contains(&stored) {
            let levels = if depth == 1 { String::new() } else { format!("{depth} levels of ") };
            let size = format!("{levels}{height}x{width} pixels of {channels} channels");
            return Err(format!("a {name} file cannot hold {size} and {what}; {others}"));
        }
        let option = if options.depth == Depth::Auto {
            Audience::now().told(
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
}

/// Numbers of channels in words: `1, 3 or 4 channels`.
fn listed(numbers: &[usize]) -> String {
    let words: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last} channels", rest.join(", ")),
        _ if numbers == [1] => "1 channel".into(),
        _ => format!("{} channels", words.concat()),
    }
}

/// The error for callers that did not check [`Format::stored`].
pub(super) fn unheld(format: Format) -> String {
    format!("a {} file holds 8 or 16 bits per sample", format.name())
}

/// Partitioning and compression of a file, where the format leaves a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// The encoder's default.
    Usual,
    /// A JPEG file of this quality.
    Jpeg(u8),
    /// Tiles of a TIFF file, else strips, and its number of sizes.
    Tiff(Option<(usize, usize)>, Compression, usize),
}

/// Metadata of a file beside its pixels.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// Tags of a TIFF file.
    pub(super) entries: Vec<Entry>,
    /// Each channel has pages of its own in a TIFF file.
    pub(super) apart: bool,
    /// Chunks of a PNG file; a JPEG file has segments of the same contents.
    pub(super) chunks: png::Beside,
}

impl Parts {
    /// The parts requested by the options.
    ///
    /// # Errors
    /// A message, if the format does not support them.
    pub(super) fn of(format: Format, stored: DType, shape: Shape, options: &SaveOptions) -> Result<Parts, String> {
        match (options.quality, format) {
            (None, _) | (Some(1..=100), Format::Jpeg) => {}
            (Some(quality), Format::Jpeg) => {
                return Err(format!("a quality of {quality} requested; it is from 1 to 100"));
            }
            (Some(_), _) => return Err(format!("a {} file has no quality; save as jpg", format.name())),
        }
        if options.sizes != 1 && format != Format::Tiff {
            return Err(format!("a {} file has one size; save as tif, or as a Zarr store", format.name()));
        }
        match (options.tile, options.compression) {
            (tile, compression) if format == Format::Tiff => {
                TiffFile::new(shape, stored, tile, compression, options.sizes, false)?;
                Ok(Parts::Tiff(tile, compression, options.sizes))
            }
            (None, Compression::None) => Ok(options.quality.map_or(Parts::Usual, Parts::Jpeg)),
            (Some(_), _) => Err(format!("a {} file has no tiles; save as tif", format.name())),
            _ => Err(format!("a {} file leaves no choice of a compression; save as tif", format.name())),
        }
    }
}

/// Writes pixels of type `dtype`, which the format holds: those of each size, the largest first.
pub(super) fn write(
    to: &mut dyn Sink,
    format: Format,
    (parts, beside): (Parts, Beside),
    pixels: &[Arc<HostBuffer>],
    dtype: DType,
    shape: Shape,
    workers: &Workers,
) -> Result<(), String> {
    if let Parts::Tiff(tile, compression, sizes) = parts {
        let file = TiffFile::new(shape, dtype, tile, compression, sizes, beside.apart)?.with(beside.entries);
        return file.write(to, &pixels.iter().map(|pixels| pixels.bytes()).collect::<Vec<_>>(), workers);
    }
    let [pixels] = pixels else { return Err(format!("{} sizes of a file of one", pixels.len())) };
    match format {
        Format::Npy => return write_npy::write(to, pixels, dtype, shape),
        Format::Pgm | Format::Ppm | Format::Pnm => return pnm::write(to, format, pixels, dtype, shape, workers),
        _ => {}
    }
    let chunks = &beside.chunks;
    match (format, dtype.stored()) {
        (Format::Jpeg, DType::U8) if matches!(shape.channels, 1 | 3) => {
            let quality = if let Parts::Jpeg(quality) = parts { Some(quality) } else { None };
            jpeg::write(to, pixels.as_slice(), shape, (quality, chunks), workers)
        }
        (Format::Png, DType::U8) => png::write(to, png::Samples::Eight(pixels.as_slice()), shape, chunks, workers),
        (Format::Png, DType::U16) => png::write(to, png::Samples::Sixteen(pixels.as_slice()), shape, chunks, workers),
        (Format::Bmp, DType::U8) => bmp::write(to, pixels.as_slice(), shape),
        _ => Err(unheld(format)),
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
        assert_eq!(e, "a png file cannot hold 32-bit floats; save as tif, npy, or ask for a depth of 8 or 16 bits");
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
        assert_eq!(e, "a pgm file has 1 channel, and the image 3; save as png, tif, ppm, bmp, jpg, npy");
        let e = refused(Format::Jpeg, DType::U8, Shape::new(1, 70_000, 1), Depth::Auto);
        assert!(e.contains("1x70000 pixels") && e.contains("save as png, tif, pgm, npy"), "{e}");
    }
}
