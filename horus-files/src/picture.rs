//! Decoded pictures independent of a session.

use std::path::Path;
use std::sync::Arc;

use super::{DecodeResources, Exif, Georeference, OpenOptions, PictureSource, decode, pixel_bytes, region_of};
use horus_base::dtype::DType;
use horus_base::error::{DeviceError, Error, Result};
use horus_base::lengths::PixelSize;
use horus_base::shape::{Region, Shape};
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;

/// The name, in messages, of a picture without a path.
pub const IN_MEMORY: &str = "a picture in memory";

/// A decoded picture, independent of a session: it can be created on any thread and passed to the thread that records.
///
/// Its pixels have the file's type and are interleaved: level by level, row by row. `AnyImage::from_picture` creates an
/// image from it; `AnyImage::open` does both on rank 0.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// use horus::io::Picture;
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let file = folder.path().join("two.pgm");
/// # std::fs::write(&file, b"P5 2 1 255 ab").expect("a file");
/// let decoding = std::thread::spawn(move || Picture::open(file, &OpenOptions::default()));
/// let picture = decoding.join().expect("decoders do not panic")?;
/// let shape = picture.shape();
/// assert_eq!(AnyImage::from_picture(&session, picture).shape(), shape);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Picture {
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    /// Interleaved samples: level by level, row by row.
    pub(super) pixels: HostBuffer,
    pub(super) metadata: Box<Metadata>,
}

/// How the alpha channel of a picture relates to its colours. The last channel is alpha only if the file says so,
/// whatever the number of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alpha {
    /// Colours are not multiplied by alpha.
    Unassociated,
    /// Colours are multiplied by alpha (premultiplied), and are used unchanged.
    Associated,
}

/// Metadata of a picture file, as far as images have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// Position on the earth, and the meaning of values.
    pub reference: Option<Georeference>,
    /// The size of a pixel.
    pub pixel: Option<PixelSize>,
    /// The size of a pixel in a print or a scan, by a resolution that does not say what the pixels show.
    pub printed: Option<PixelSize>,
    /// Names of channels that are planes and not colours; empty for channels without a name.
    pub names: Vec<String>,
    /// The kind of alpha in the last channel, if it is alpha.
    pub alpha: Option<Alpha>,
    /// The colour profile (ICC), unchanged.
    pub profile: Option<Arc<[u8]>>,
    /// The EXIF data.
    pub exif: Option<Arc<Exif>>,
    /// Texts by people, by the keywords of PNG.
    pub texts: Option<Arc<[(String, String)]>>,
    /// Rows and columns of the tiles in which the picture is stored.
    pub tile: Option<(usize, usize)>,
}

impl Metadata {
    /// The metadata of the picture in an open file, with this many channels and these tiles. Metadata that cannot be
    /// read counts as absent.
    pub(super) fn of(
        source: &PictureSource<'_>,
        options: &OpenOptions,
        channels: usize,
        tile: Option<(usize, usize)>,
    ) -> Metadata {
        let format = source.format();
        // The file without its pixels is found once.
        let small = format.without_pixels(source);
        let small = small.as_deref().and_then(|bytes| PictureSource::of(bytes).ok());
        let said = format.metadata(small.as_ref().unwrap_or(source), options, channels);
        Metadata { tile, ..said }
    }
}

/// Allocates memory for pixels, with unspecified contents.
pub type Allocate<'a> = &'a dyn Fn(usize) -> Result<HostBuffer, DeviceError>;

/// Allocates memory outside any pool.
const UNPOOLED: Allocate<'static> = &HostBuffer::try_zeroed;

impl Picture {
    /// Reads and decodes a file on this rank only, as `AnyImage::open_with` does.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be read or decoded, or declares more pixels than its bytes can encode or the
    /// options allow.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Picture> {
        Picture::open_in(path.as_ref(), options, UNPOOLED)
    }

    /// [`Picture::open`] with memory from `room`, on the calling thread.
    pub fn open_in(path: &Path, options: &OpenOptions, room: Allocate<'_>) -> Result<Picture> {
        let means = DecodeResources { workers: &Workers::default(), allocate: room, reserve: None };
        decode::read(path, options, means).map_err(|cause| Error::read(path, cause))
    }

    /// Decodes the bytes of a file.
    ///
    /// # Errors
    /// As [`Picture::open`].
    pub fn read(bytes: &[u8], options: &OpenOptions) -> Result<Picture> {
        Picture::read_in(bytes, options, UNPOOLED)
    }

    /// [`Picture::read`] with memory from `room`, on the calling thread.
    pub fn read_in(bytes: &[u8], options: &OpenOptions, room: Allocate<'_>) -> Result<Picture> {
        let means = DecodeResources { workers: &Workers::default(), allocate: room, reserve: None };
        let decoded = PictureSource::of(bytes).and_then(|source| decode::first(&source, &IN_MEMORY, options, means));
        decoded.map_err(|cause| Error::read(Path::new(IN_MEMORY), cause))
    }

    /// Copies a region to its own memory; returns the whole picture if none is requested.
    pub(super) fn cropped(self, region: Option<Region>, means: DecodeResources<'_>) -> Result<Picture, String> {
        let whole = self.shape;
        let region = region_of(whole, region)?;
        if region == Region::whole(whole) {
            return Ok(self);
        }
        let shape = Shape { height: region.height, width: region.width, ..whole };
        let mut pixels = (means.allocate)(shape.len() * self.dtype.size()).map_err(|e| e.to_string())?;
        self.copy(region, pixels.bytes_mut());
        Ok(Picture { shape, pixels, ..self })
    }

    /// Copies a region inside the picture, of all levels, without gaps.
    pub(super) fn copy(&self, region: Region, to: &mut [u8]) {
        let (whole, pixel) = (self.shape, pixel_bytes(self.shape, self.dtype));
        let levels = self.pixels.bytes().chunks(whole.area() * pixel);
        for (from, to) in levels.zip(to.chunks_mut(region.height * region.width * pixel)) {
            let rows = from.chunks(whole.width * pixel).skip(region.top);
            for (row, to) in rows.zip(to.chunks_mut(region.width * pixel)) {
                to.copy_from_slice(&row[region.left * pixel..region.right() * pixel]);
            }
        }
    }

    /// Levels, rows, columns and channels.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The metadata of the file.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The interleaved pixels: level by level, row by row.
    pub fn into_pixels(self) -> HostBuffer {
        self.pixels
    }

    /// A picture of these interleaved pixels (level by level, row by row), without metadata.
    pub fn from_pixels(shape: Shape, dtype: DType, pixels: HostBuffer) -> Picture {
        Picture { shape, dtype, pixels, metadata: Box::default() }
    }

    /// The picture with other metadata.
    #[must_use]
    pub fn with_metadata(self, metadata: Metadata) -> Picture {
        Picture { metadata: Box::new(metadata), ..self }
    }
}
