//! Reading and writing picture files.
//!
//! Files are read and written by rank 0 alone; the other ranks learn whether it went well, and all return the same
//! error if it did not. Formats are recognised by content when reading, and chosen by extension when writing.
//!
//! | format | read | write |
//! | --- | --- | --- |
//! | PNG | 8 and 16 bit, 1 to 4 channels | 8 and 16 bit, 1 to 4 channels |
//! | JPEG | 8 bit, grey and colour | 8 bit, grey and colour |
//! | TIFF | 8 and 16 bit, 32-bit and 64-bit float | 8 and 16 bit, 32-bit float; 1, 3 or 4 channels |
//! | PNM | 8 and 16 bit | 8 and 16 bit, grey (`pgm`) and colour (`ppm`) |
//! | BMP | 8 bit | 8 bit; 1, 3 or 4 channels |
//! | NumPy `npy` | | the exact values, any type and number of channels |

mod decode;
mod encode;
mod save;

use std::panic::Location;
use std::path::Path;

pub use save::{Depth, SaveOptions, Scale, Scaling, Target};

use crate::agree::agree_on;
use crate::buffer::HostBuffer;
use crate::comm::guarded;
use crate::dtype::{DType, Pixel};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::session::Session;
use crate::shape::Shape;

/// A picture of whichever type its file has.
#[derive(Clone, Debug)]
pub enum AnyImage {
    /// 8 bits per channel.
    U8(Image<u8>),
    /// 16 bits per channel.
    U16(Image<u16>),
    /// Floating point.
    F32(Image<f32>),
}

/// Evaluates `$body` with `$image` bound to the image of whatever type.
macro_rules! each {
    ($any:expr, $image:ident => $body:expr) => {
        match $any {
            AnyImage::U8($image) => $body,
            AnyImage::U16($image) => $body,
            AnyImage::F32($image) => $body,
        }
    };
}

impl AnyImage {
    /// Reads a picture: PNG, JPEG, TIFF, PNM or BMP, recognised by content. 64-bit floats become `f32`; palettes are
    /// resolved; an orientation noted in the file is not applied.
    ///
    /// # Errors
    /// On every rank alike, if rank 0 cannot read or decode the file.
    #[track_caller]
    pub fn open(session: &Session, path: impl AsRef<Path>) -> Result<AnyImage> {
        let site = Location::caller();
        let path = path.as_ref();
        let mut pixels = None;
        let answer = on_root(session, "opening a picture", || {
            let picture = decode::read(path)?;
            let header = header(picture.shape, picture.dtype);
            pixels = Some(picture.pixels);
            Ok(header)
        })?;
        let (shape, dtype) = parse_header(&answer.map_err(|cause| Error::read(path, cause))?);
        let handle = session.source_on_root(shape, dtype, pixels, site);
        Ok(match dtype {
            DType::U8 => AnyImage::U8(Image::from_handle(handle)),
            DType::U16 => AnyImage::U16(Image::from_handle(handle)),
            _ => AnyImage::F32(Image::from_handle(handle)),
        })
    }

    /// Rows, columns and channels.
    pub fn shape(&self) -> Shape {
        each!(self, image => image.shape())
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        each!(self, image => image.dtype())
    }

    /// The pixels converted to type `T`, unscaled; see [`Image::convert`].
    #[track_caller]
    pub fn convert<T: Pixel>(&self) -> Image<T> {
        each!(self, image => image.convert())
    }

    /// The luminance ([`Image::luminance`]) on a scale where the full range of an integer type is `0..=1`; floating-point
    /// pictures keep their scale.
    /// More than four channels are an error.
    #[track_caller]
    pub fn to_luminance_unit(&self) -> Image<f32> {
        match self {
            AnyImage::U8(image) => image.luminance() / f32::from(u8::MAX),
            AnyImage::U16(image) => image.luminance() / f32::from(u16::MAX),
            AnyImage::F32(image) => image.luminance(),
        }
    }
}

impl<T: Pixel> Image<T> {
    /// Reads a picture and converts its values to type `T`, unscaled; see [`AnyImage::open`] to keep the file's type.
    ///
    /// # Errors
    /// As [`AnyImage::open`].
    #[track_caller]
    pub fn open(session: &Session, path: impl AsRef<Path>) -> Result<Image<T>> {
        Ok(AnyImage::open(session, path)?.convert())
    }
}

/// Runs `work` on rank 0 and tells every rank how it went: its answer, or the reason why there is none. `op` says what is
/// done, for ranks that do something else.
///
/// # Errors
/// When another rank failed, went away, or does something else.
pub fn on_root(
    session: &Session,
    op: &str,
    work: impl FnOnce() -> Result<Vec<u8>, String>,
) -> Result<Result<Vec<u8>, String>> {
    const DONE: u8 = 1;
    let comm = session.comm();
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

/// A picture in memory, channels one after the other.
struct Picture {
    shape: Shape,
    dtype: DType,
    pixels: HostBuffer,
}

fn header(shape: Shape, dtype: DType) -> Vec<u8> {
    let type_index = DType::ALL.iter().position(|t| *t == dtype).unwrap_or_default();
    [shape.height, shape.width, shape.channels, type_index].iter().flat_map(|v| (*v as u64).to_le_bytes()).collect()
}

fn parse_header(bytes: &[u8]) -> (Shape, DType) {
    let mut fields = bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b) as usize);
    let mut next = || fields.next().expect("a header has four fields");
    (Shape::new(next(), next(), next()), DType::ALL[next()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_journey() {
        for dtype in DType::ALL {
            let shape = Shape::new(3, 70_000, 4);
            assert_eq!(parse_header(&header(shape, dtype)), (shape, dtype));
        }
    }
}
