//! Formats of picture files: decoded and encoded as a whole, or region by region, by all threads.
//!
//! A file is recognised by its content when it is read, by its extension when it is written. Files are not trusted:
//! reading ends with a picture or an error, in time and memory bounded by the file's size and
//! [`OpenOptions::max_pixels`]. A new file is complete or absent. `docs/design/files.md` describes the design.
//!
//! | format | read | written |
//! | --- | --- | --- |
//! | PNG | 8 and 16 bit, 1 to 4 channels | the same |
//! | JPEG | 8 bit, grey and colour; sequential or progressive, any scans and sampling factors | 8 bit, grey and colour, any quality |
//! | TIFF | unsigned integers of 1 to 16 and 32 bit, signed of 8, 16 and 32, floats of 16, 32 and 64; any number of channels; grey with white as 0, inks, YCbCr in JPEG data, colour tables; any page and smaller copy, or all pages as a volume; chunky or planar; strips or tiles, some of which may be left out; LZW, deflate, PackBits, Zstandard, JPEG, JPEG 2000, CCITT group 4 | integers of 8, 16 and 32 bit, floats of 32 and 64; up to 65535 channels (3 and 4 are colours, other numbers bands, with or without alpha); a page for each level, in one or several sizes; strips or tiles; deflate, LZW, Zstandard |
//! | PNM | 8 and 16 bit | 8 and 16 bit, grey (`pgm`) and colour (`ppm`); masks (`pbm`) |
//! | PFM | single precision, grey and colour, in both byte orders; not multiplied by the scale | the same, scale 1 |
//! | BMP | 8 bit | 8 bit; 1, 3 or 4 channels |
//! | QOI | 8 bit, colour, with or without alpha | the same |
//! | OpenEXR | half and single precision, as `f32`: grey (`Y`, or the only channel) or colour (`R`, `G`, `B`), with or without alpha, of the first part; scan lines or tiles; any compression but DWA and HTJ2K | single precision, the same channels; scan lines, deflated |
//! | WebP | 8 bit, colour, with or without alpha; with or without loss; no animations | 1, 3 or 4 channels, without loss |
//! | JPEG 2000 (`jp2` and code streams) | 1 to 16 bit, grey and colour, with or without alpha; any order of packets; one coding for all components and tiles | |
//! | NumPy `npy` | `u8`, `u16`, `u32`, `i8`, `i16`, `i32`, `f32`, `f64` and `bool`; 2, 3 (channels last or, for a volume, levels first) or 4 dimensions (levels first, channels last) | the exact values, any type, levels and channels |
//!
//! Metadata:
//!
//! | | read | written |
//! | --- | --- | --- |
//! | orientation (TIFF; EXIF in JPEG, PNG and WebP) | applied, or unchanged with [`Orientation::Keep`] | with EXIF: none, or the unchanged one if rows and columns did not change |
//! | alpha | the last channel, if the file says so (`AnyImage::alpha`): `ExtraSamples` of TIFF, the type of PNG, QOI, WebP, JPEG 2000 and PAM, a mask of BMP, `A` of OpenEXR; premultiplied colours (OpenEXR, some TIFF files, with a warning) are not changed | TIFF: alpha is declared, other channels beyond colours are unspecified; PNG, BMP, QOI, WebP: the last of 2 or 4 channels, by which premultiplied colours are divided; OpenEXR: the last of 2 or 4 channels, by which other colours are multiplied |
//! | colour profile (ICC; JPEG, PNG, TIFF, WebP, JPEG 2000) | not applied, which is logged; an attribute of the image | in JPEG, PNG, TIFF and WebP files of 8 or 16 bits, if channels and their scale are those of the file that was read |
//! | gamma, primaries (PNG), linear colours (QOI) | not applied | none |
//! | fewer bits than a type (PNG, TIFF, PNM, BMP, JPEG 2000) | scaled to the range of the type: white stays white | none |
//! | size of a pixel (TIFF: OME-XML, ImageJ, Aperio, resolution per centimetre; PNG: resolution per metre) | [`Metadata::pixel`] | in OME-XML (`.ome.tif`), and as the resolution of TIFF and PNG files |
//! | resolution of prints and scans (JPEG; TIFF per inch; PNG: whole dots per inch up to 1200; EXIF) | [`Metadata::printed`] | as the resolution of JPEG files, and of TIFF and PNG files without a size of a pixel |
//! | EXIF (JPEG, PNG, TIFF, WebP) | [`Metadata::exif`], without thumbnails, maker notes, applied orientation, and fields that are wrong for moved pixels | in JPEG, PNG, TIFF and WebP files |
//! | texts by people: title, author, description, copyright (TIFF, EXIF), others (PNG), comments (JPEG) | [`Metadata::texts`] | in PNG files; in TIFF and JPEG files if they have a tag for the text; comments in JPEG files |
//! | colour table | PNG and BMP: resolved, missing colours are black; TIFF with a colour for each value: an attribute of the image, whose pixels are indices | in TIFF and PNG files of unchanged indices |
//! | smaller copies (TIFF), sizes of slides (Aperio `svs`, Hamamatsu `ndpi` up to 4 GiB; their other pages are pages) | [`OpenOptions::level`] | [`SaveOptions::sizes`], [`SaveOptions::resampling`] |
//! | axes of pages (OME-XML; descriptions of ImageJ, tifffile, MetaMorph, Zeiss), names of channels (OME-XML) | with [`OpenOptions::volume`]: levels, channels, and the time that the page selects; otherwise the channels of one level and time | in OME-XML |
//! | georeference, value of missing pixels (TIFF) | an attribute of the image | unchanged; [`SaveOptions::nodata`] sets another value |
//!
//! Internal: other crates of Horus use this one, and its interface is not covered by semantic versioning. Programs
//! depend on `horus-image`.

mod bmp;
mod bounds;
mod codec;
mod count;
mod decode;
mod density;
mod exif;
mod exr;
mod file_spec;
mod format;
mod info;
mod interleave;
mod jpeg;
mod jpeg2000;
mod load;
mod npy;
mod opened;
mod options;
mod orientation;
mod output;
mod picture;
mod png;
mod pnm;
mod profile;
mod qoi;
mod raster;
mod reader;
mod replace;
mod target;
mod temporary;
mod texts;
mod tiff;
mod warnings;
mod webp;
mod writer;

pub use count::FileTraffic;
pub use decode::guarded;
pub use exif::Exif;
pub use file_spec::{ClippingReport, Encoder, FileSpec, StoredRange, StoredScale, UnsupportedMetadata};
pub use format::Format;
pub use info::FileInfo;
pub use load::{ByteRanges, DecodeResources, Reserve};
pub use opened::OpenedPicture;
pub use options::{Clipping, Depth, Downsampling, OpenOptions, SaveOptions, Scale, Scaling};
pub use orientation::Orientation;
pub use picture::{Allocate, Alpha, IN_MEMORY, Metadata, Picture};
pub use reader::{PictureReader, RegionSource};
pub use target::{FileTarget, SPOOLED, Sink, cause, same_file};
pub use temporary::{TemporaryFile, TemporaryImage};
pub use tiff::compression::Compression;
pub use tiff::georeference::Georeference;
pub use warnings::{CollectedWarnings, warn_once};
pub use writer::{PictureWriter, RegionSink, SinkPlace, SinkRole};

// What all formats use.
use bounds::{DEFLATE, MEMORY_LIMIT, check_capacity, check_size};
use codec::{ByteReader, Decode, Decoder, PictureHeader, native, truncated, zeros};
use count::Count;
use decode::decode_metadata;
use exif::DirectoryFields;
use format::{FormatOption, FormatProperties, PictureFormat};
use load::PictureSource;
use orientation::StoredOrientation;
use output::{PositionedOutput, WRITERS};
use raster::{Raster, SampleConversion};
use reader::RegionDecoder;
use writer::RegionFile;

use horus_base::dtype::DType;
use horus_base::error::Error;
use horus_base::shape::{Region, Shape};

/// The requested region of a picture, all of it by default.
fn region_of(shape: Shape, requested: Option<Region>) -> Result<Region, String> {
    let region = requested.unwrap_or(Region::whole(shape));
    let Shape { height, width, .. } = shape;
    if region.is_inside(shape) {
        Ok(region)
    } else {
        Err(format!("a region of {region} is not inside its {height}x{width} pixels"))
    }
}

/// Bytes of a pixel, with all its channels.
fn pixel_bytes(shape: Shape, dtype: DType) -> usize {
    shape.channels * shape.samples * dtype.size()
}

/// The cause of an error, without the path.
pub fn cause_of(error: Error) -> String {
    match error {
        Error::File { cause, .. } => cause,
        other => other.to_string(),
    }
}
