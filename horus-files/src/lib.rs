//! Formats of picture files: decoded and encoded whole, or region by region, by all threads.
//!
//! Formats are recognised by content when reading, and chosen by extension when writing. Each has a folder and a line of
//! the list in `format.rs`, of which other code asks what differs (`PictureFormat`).
//!
//! | format | read | write |
//! | --- | --- | --- |
//! | PNG | 8 and 16 bit, 1 to 4 channels | 8 and 16 bit, 1 to 4 channels |
//! | JPEG | 8 bit, grey and colour; sequential or progressive, in any scans and with any sampling factors | 8 bit, grey and colour, of any quality |
//! | TIFF | unsigned integers of 1 to 16 and 32 bit, signed ones of 8, 16 and 32, floats of 16, 32 and 64; any number of channels; grey of which 0 is white, inks, YCbCr as JPEG data, indices of colours; any page and any of its smaller copies, or all pages as a volume; chunky and planar, in strips or tiles, of which any may be left out; compressed by LZW, deflate, PackBits, Zstandard, JPEG, CCITT group 4 | signed and unsigned 8-, 16- and 32-bit integers, 32-bit and 64-bit floats; up to 65535 channels (3 and 4 are colours, other numbers bands, all with or without alpha); a page for each level, in one size or several; in strips or tiles, also compressed by deflate or Zstandard |
//! | PNM | 8 and 16 bit | 8 and 16 bit, grey (`pgm`) and colour (`ppm`) |
//! | BMP | 8 bit | 8 bit; 1, 3 or 4 channels |
//! | QOI | 8 bit, colour, with or without alpha | the same |
//! | OpenEXR | half and single precision, as `f32`: grey (`Y`, or the only channel) or colour (`R`, `G`, `B`), with or without alpha, of the first part; scan lines or tiles, compressed in any way but DWA and HTJ2K | |
//! | NumPy `npy` | `u8`, `u16`, `u32`, `i8`, `i16`, `i32`, `f32`, `f64` and `bool`, of 2 dimensions, 3 (the channels last, or of a volume the levels first) or 4 (levels first, channels last) | the exact values, any type, number of levels and channels |
//!
//! Metadata:
//!
//! | | read | written |
//! | --- | --- | --- |
//! | orientation (EXIF in JPEG and PNG, there also behind the pixels, TIFF) | applied, or kept with [`Orientation::Keep`] | with EXIF: none to apply, or the one that was kept, of rows that stayed as they are |
//! | alpha | the last channel, where the file says so (`AnyImage::alpha`): `ExtraSamples` of TIFF, the type of PNG, QOI and PAM, a mask of BMP, `A` of OpenEXR; premultiplied colours, as OpenEXR files have and TIFF files may declare, are taken unchanged, of TIFF with a warning | TIFF: an image's alpha is declared, other channels beyond colours are unspecified; PNG, BMP, QOI: the last of 2 or 4 channels, of which colours that are known to be premultiplied are divided by it |
//! | colour profile (ICC; JPEG, PNG, TIFF) | not applied: samples are taken as stored, which is logged; an attribute of the image | in JPEG, PNG and TIFF files of 8 or 16 bits, as long as channels and their scale are those of the file that was read |
//! | gamma, primaries (PNG), linear colours (QOI) | not applied | none |
//! | fewer bits than a type has (PNG, TIFF, PNM, BMP) | scaled to the range of the type: white stays white | none |
//! | size of a pixel (OME-XML, ImageJ, or a resolution per centimetre, of TIFF; a resolution per metre of PNG) | an attribute of the image ([`Metadata::pixel`]) | in OME-XML (`.ome.tif`), and as the resolution of TIFF and PNG files |
//! | other resolutions: of prints and scans (JPEG; per inch, TIFF; of whole dots per inch up to 1200, PNG; EXIF) | an attribute of the image ([`Metadata::printed`]) | as the resolution of JPEG files, and of TIFF and PNG files without a size of a pixel |
//! | EXIF (JPEG, PNG, TIFF) | an attribute of the image ([`Metadata::exif`]), without thumbnails, notes of makers, orientation that is applied, and what is untrue of pixels that moved | in JPEG, PNG and TIFF files |
//! | texts of people: title, author, description, copyright (TIFF, EXIF), others (PNG), comments (JPEG) | an attribute of the image ([`Metadata::texts`]) | in PNG files; in TIFF and JPEG files those that they have tags for; comments in JPEG files |
//! | colour table | of PNG and BMP resolved, colours that are missing black; of TIFF, where it has a colour for each value, an attribute of the image, whose pixels are indices | in TIFF and PNG files of indices that were only picked |
//! | smaller copies (TIFF) | [`OpenOptions::level`] | [`SaveOptions::sizes`], [`SaveOptions::resampling`] |
//! | axes of pages (OME-XML; descriptions of ImageJ, tifffile, MetaMorph and Zeiss), names of channels (OME-XML) | with [`OpenOptions::volume`]: levels, channels, and the time that the page selects; channels also without, of one level and time | in OME-XML |
//! | georeference, and the value of missing pixels (TIFF) | an attribute of the image | kept; [`SaveOptions::nodata`] names another value |
//!
//! PNG and JPEG files are written by all threads in bands of rows, with bytes that depend only on
//! the picture.
//!
//! Input files are not trusted: whatever they contain, reading ends with a picture or an error, in
//! time and memory bounded by their size and [`OpenOptions::max_pixels`].
//!
//! PNM and npy are read by parallel preads into the buffer that becomes the image (`raster.rs`);
//! one thread writes, as file systems serialise writers, to blocks reserved before. `png/write.rs`
//! cuts rows into bands that depend only on the picture; `scanlines.rs` of `horus-cpu` filters
//! them, once for each instruction set, `png/deflate.rs` encodes them. A file that is being written
//! has no name until it is complete (`replace.rs`, `O_TMPFILE` on Linux), so a killed process leaves
//! nothing; where the file system does not support that, it has a temporary name. Only where a folder takes
//! no new file is the old one overwritten, by a complete temporary file.

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
mod temporary_image;
mod texts;
mod tiff;
mod warnings;
mod writer;

pub use count::FileTraffic;
pub use decode::guarded;
pub use exif::Exif;
pub use file_spec::{ClippingReport, Encoder, FileSpec, StoredRange, StoredScale, UnsupportedMetadata};
pub use format::Format;
pub use info::FileInfo;
pub use load::{DecodeResources, Reserve};
pub use opened::OpenedPicture;
pub use options::{Clipping, Depth, Downsampling, OpenOptions, SaveOptions, Scale, Scaling};
pub use orientation::Orientation;
pub use picture::{Allocate, Alpha, IN_MEMORY, Metadata, Picture};
pub use reader::{PictureReader, RegionSource};
pub use target::{FileTarget, SPOOLED, Sink, cause, same_file};
pub use temporary_image::TemporaryImage;
pub use tiff::compression::Compression;
pub use tiff::georeference::Georeference;
pub use warnings::{CollectedWarnings, warn_once};
pub use writer::{PictureWriter, RegionSink};

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
