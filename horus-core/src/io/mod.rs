//! Reading and writing picture files.
//!
//! Files are read and written by rank 0 only; all ranks return the same result or the same error.
//! Formats are recognised by content when reading, and chosen by extension when writing.
//!
//! | format | read | write |
//! | --- | --- | --- |
//! | PNG | 8 and 16 bit, 1 to 4 channels | 8 and 16 bit, 1 to 4 channels |
//! | JPEG | 8 bit, grey and colour | 8 bit, grey and colour, of any quality |
//! | TIFF | 1 to 16 bit and 32 bit, signed integers of 8, 16 and 32 bit, floats; any page and any of its smaller copies, or all pages as a volume; chunky and planar, in strips or tiles | signed and unsigned 8-, 16- and 32-bit integers, 32-bit and 64-bit floats; up to 65535 channels (3 are colours, 4 with alpha, other numbers bands); a page for each level; in strips or tiles, also compressed by deflate or Zstandard |
//! | PNM | 8 and 16 bit | 8 and 16 bit, grey (`pgm`) and colour (`ppm`) |
//! | BMP | 8 bit | 8 bit; 1, 3 or 4 channels |
//! | NumPy `npy` | `u8`, `u16`, `u32`, `i8`, `i16`, `i32`, `f32`, `f64` and `bool`, of 2 dimensions, 3 (the channels last, or of a volume the levels first) or 4 (levels first, channels last) | the exact values, any type, number of levels and channels |
//!
//! The pixel type of a file is part of the program: decoded pixels keep it, and conversions are
//! recorded like any operation. So are the conversions of saving, on the device, with the
//! operations around them:
//!
//! | step | where |
//! | --- | --- |
//! | smallest and largest finite value ([`Scaling::Range`]); values that the file cannot hold counted ([`Clipping`]) | recorded |
//! | values scaled to the file's range, rounded, saturated, narrowed to 8 or 16 bits | recorded |
//! | one copy to rank 0: 8 or 16 bits per sample, and the scale with it | one evaluation |
//! | channels interleaved, byte order, compression | rank 0's threads ([`Encoder`]) |
//!
//! Files larger than memory are read and written region by region: [`PictureReader`] decodes the
//! strips, tiles or rows that hold a region, [`PictureWriter`] writes those of TIFF, NumPy and PNM
//! files in place; both from any number of threads. [`AnyImage::describe`] returns the properties
//! of a file, [`OpenOptions::region`] opens a part of it. Other stores of pixels are a
//! [`RegionSource`] or a [`RegionSink`].
//!
//! PNM and NumPy files are read directly into the image's memory and written from there. Pictures
//! in memory ([`AnyImage::read`], [`Image::encode`]) and streams ([`AnyImage::read_from`],
//! [`Image::write_to`]) hold the same bytes.
//!
//! [`Image::encode`]: crate::image::Image::encode
//! [`Image::write_to`]: crate::image::Image::write_to
//!
//! Metadata:
//!
//! | | read | written |
//! | --- | --- | --- |
//! | orientation (EXIF in JPEG and PNG, TIFF) | applied, or kept with [`Orientation::Keep`] | none: rows stay as they are |
//! | alpha | the last of two or four channels ([`AnyImage::alpha`]); colours that a TIFF file declares premultiplied are taken unchanged, with a warning | with 2 (PNG) or 4 channels the last is alpha, colours not multiplied |
//! | colour profile (ICC) | not applied: samples are taken as stored, which is logged | none |
//! | gamma, primaries (PNG) | not applied | none |
//! | size of a pixel (PNG, JPEG, TIFF), description, georeference (TIFF) | dropped; of TIFF files with a warning when a picture is saved | none |
//!
//! PNG and JPEG files are written by all threads in bands of rows, with bytes that depend only on
//! the picture.
//!
//! Input files are not trusted: whatever they contain, reading ends with a picture or an error, in
//! time and memory bounded by their size and [`OpenOptions::max_pixels`].

// Opening and saving come first in the documentation.
mod any;

mod save;

mod bounds;
mod compression;
mod count;
mod decode;
mod describe;
mod dynamic;
mod encode;
mod interleave;
mod jpeg;
mod later;
mod load;
mod memory;
mod metadata;
mod output;
mod picture;
mod png;
mod pnm;
mod raster;
mod read_npy;
mod read_tiff;
mod reader;
mod replace;
mod samples;
mod save_regions;
mod saving;
mod target;
#[cfg(test)]
mod tests;
mod tiff_chunks;
mod tiff_directory;
mod tiff_samples;
mod tiff_source;
mod tiff_tiles;
mod write_npy;
mod write_tiff;
mod writer;

/// A picture of the crate `image`, which appears in signatures, of the version that Horus uses.
pub use ::image::DynamicImage;
pub use any::AnyImage;
pub use compression::Compression;
pub use count::FileTraffic;
pub use describe::FileInfo;
pub use encode::Format;
pub use metadata::Orientation;
pub use picture::Picture;
pub(crate) use picture::Room;
pub use reader::PictureReader;
pub use save::{Clipping, Depth, SaveOptions, Scale, Scaling};
pub use save_regions::save_to;
pub(crate) use saving::Detached;
pub use saving::{Encoder, Saving};
pub use target::{Sink, Target, same_file};
pub use writer::{PictureWriter, RegionSink};

#[doc(hidden)]
pub use crate::host::workers::Workers;
#[doc(hidden)]
pub use crate::session::PixelsRead;
pub use crate::session::RegionSource;

use crate::comm::agree::agree_on;
use crate::comm::{Communicator, guarded};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::image::is_addressable;
use crate::session::Session;
use crate::shape::{Region, Shape};

/// Options for reading a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// The page of a TIFF file, counted from 0. By default the first, with a warning if there are others.
    pub page: Option<usize>,
    /// The copy of a TIFF page to read, counted from 0, the page itself: pyramids have smaller
    /// copies, as pages marked as such or listed in the page.
    pub level: usize,
    /// The part of the picture to read; all of it by default. Of TIFF files only the strips or
    /// tiles that contain it are read, of npy and PNM files only its rows; others are decoded
    /// whole.
    pub region: Option<Region>,
    /// Maximum number of pixels (rows times columns, times levels) of a picture, or of the region
    /// to read; 2^32 by default. More is an error before memory is allocated.
    pub max_pixels: u64,
    /// The file is a volume: all pages of a TIFF file are levels, the first of three axes of an npy
    /// array is the depth. By default it is an image, and only an npy array of four axes, `(depth,
    /// height, width, channels)`, is a volume.
    pub volume: bool,
    /// Use of the orientation stored in the file; by default it is applied.
    pub orientation: Orientation,
    /// Pixels are read on demand, and only in the needed regions, instead of now. By default, this
    /// applies to TIFF, npy and PNM files of at least 64 MiB of pixels. Other files are always read
    /// at once. A file that is read on demand must not be changed in place until then; it can be
    /// replaced, as saving does.
    pub later: Option<bool>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            page: None,
            level: 0,
            region: None,
            max_pixels: 1 << 32,
            volume: false,
            orientation: Orientation::Apply,
            later: None,
        }
    }
}

/// Runs `work` on rank 0 and returns its result or error on every rank. `op` names the call, for
/// messages if ranks make different ones.
///
/// # Errors
/// If another rank failed, left, or makes another call.
pub fn on_root(
    session: &Session,
    op: &str,
    work: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<Result<Vec<u8>, String>> {
    on_first(session.comm(), op, work)
}

/// [`on_root`] without a session.
///
/// # Errors
/// As [`on_root`].
pub fn on_first(
    comm: &dyn Communicator,
    op: &str,
    work: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<Result<Vec<u8>, String>> {
    const DONE: u8 = 1;
    agree_on(comm, op)?;
    let mut message = Vec::new();
    if comm.rank() == 0 {
        match guarded(comm, op, work) {
            Ok(answer) => {
                message.push(DONE);
                message.extend(answer);
            }
            Err(cause) => {
                message.push(!DONE);
                message.extend(cause.into_bytes());
            }
        }
    }
    comm.broadcast(0, &mut message).map_err(|e| e.during(comm.rank(), op))?;
    match message.split_first() {
        Some((&DONE, answer)) => Ok(Ok(answer.to_vec())),
        Some((_, cause)) => Ok(Err(String::from_utf8_lossy(cause).into_owned())),
        None => Err(crate::comm::CommError("an empty answer from rank 0".into()).during(comm.rank(), op)),
    }
}

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

/// The cause of an error, without the path.
fn cause_of(error: Error) -> String {
    match error {
        Error::File { cause, .. } => cause,
        other => other.to_string(),
    }
}

/// Number of fields of a header.
const HEADER_FIELDS: usize = 5;

/// The header of an opened picture.
fn opened(shape: Shape, dtype: DType) -> Result<Vec<u8>, String> {
    if is_addressable(shape, dtype) {
        Ok(header(shape, dtype))
    } else {
        Err(format!("a picture of {shape} {dtype} pixels is too large"))
    }
}

fn header(shape: Shape, dtype: DType) -> Vec<u8> {
    let type_index = DType::ALL.iter().position(|t| *t == dtype).unwrap_or_default();
    let fields: [usize; HEADER_FIELDS] = [shape.depth, shape.height, shape.width, shape.channels, type_index];
    fields.iter().flat_map(|v| (*v as u64).to_le_bytes()).collect()
}

fn parse_header(bytes: &[u8]) -> (Shape, DType) {
    let mut fields = bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b) as usize);
    let mut next = || fields.next().expect("a header has five fields");
    (Shape::volume(next(), next(), next(), next()), DType::ALL[next()])
}
