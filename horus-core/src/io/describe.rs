//! Headers of picture files, read without their pixels.

use std::path::Path;

use super::load::{Kind, Source};
use super::{AnyImage, OpenOptions, decode, on_root, pnm, read_npy, read_tiff};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::shape::Shape;

/// The properties of a picture file; see [`AnyImage::describe`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileInfo {
    /// Levels, rows, columns and channels of the picture, as stored: no orientation is applied.
    pub shape: Shape,
    /// The element type.
    pub dtype: DType,
    /// Rows and columns that are read at once: of a tile, of a strip, of a row, or of the whole
    /// picture.
    pub tile: (usize, usize),
    /// Number of pages.
    pub pages: usize,
    /// Rows and columns of the page and of its smaller copies, the largest first.
    pub levels: Vec<(usize, usize)>,
}

impl AnyImage {
    /// The properties of a picture file, without reading its pixels: its size, and valid values of
    /// [`OpenOptions::region`], `level` and `page`. Rank 0 reads, and all ranks return the same.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("large.npy");
    /// Image::from_fn(&session, 300, 400, |y, x| (y * x) as f32).save(&file)?;
    /// let info = AnyImage::describe(&session, &file, &OpenOptions::default())?;
    /// assert_eq!((info.shape.height, info.shape.width), (300, 400));
    /// let corner = OpenOptions { region: Some(Region::new(290, 390, 10, 10)), ..OpenOptions::default() };
    /// let corner = AnyImage::open_with(&session, &file, &corner)?;
    /// assert_eq!(corner.convert::<f32>().to_vec()?[99], 299.0 * 399.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open_with`], as far as the headers show.
    pub fn describe(session: &Session, path: impl AsRef<Path>, options: &OpenOptions) -> Result<FileInfo> {
        let path = path.as_ref();
        let told =
            on_root(session, "describing a picture", || Ok(FileInfo::of(&Source::open(path)?, options)?.to_bytes()))?;
        told.map(|bytes| FileInfo::from_bytes(&bytes)).map_err(|cause| Error::read(path, cause))
    }
}

impl FileInfo {
    /// The properties of a picture file, read by this process only; see [`AnyImage::describe`].
    ///
    /// # Errors
    /// As [`AnyImage::describe`].
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<FileInfo> {
        let path = path.as_ref();
        let told = Source::open(path).and_then(|source| FileInfo::of(&source, options));
        told.map_err(|cause| Error::read(path, cause))
    }

    fn of(source: &Source<'_>, options: &OpenOptions) -> std::result::Result<FileInfo, String> {
        let unbounded = OpenOptions { max_pixels: u64::MAX, region: None, ..*options };
        let (shape, dtype, tile) = match source.kind() {
            Kind::Tiff => return decode::guarded(|| read_tiff::describe(source, &unbounded)),
            Kind::Npy => read_npy::describe(source, &unbounded)?,
            Kind::Image(format) => match pnm::raster(source, &unbounded) {
                Ok(Some(raster)) => (raster.shape, raster.dtype, (1, raster.shape.width)),
                _ => {
                    let (shape, dtype, _) = decode::guarded(|| decode::describe(format, source))?;
                    (shape, dtype, (shape.height, shape.width))
                }
            },
        };
        Ok(FileInfo { shape, dtype, tile, pages: 1, levels: vec![(shape.height, shape.width)] })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = super::header(self.shape, self.dtype);
        let numbers = [self.tile.0, self.tile.1, self.pages].into_iter();
        let numbers = numbers.chain(self.levels.iter().flat_map(|(height, width)| [*height, *width]));
        bytes.extend(numbers.flat_map(|n| (n as u64).to_le_bytes()));
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> FileInfo {
        let (shape, dtype) = super::parse_header(bytes);
        let numbers = bytes.as_chunks().0.iter().skip(super::HEADER_FIELDS).map(|b| u64::from_le_bytes(*b) as usize);
        let numbers: Vec<usize> = numbers.collect();
        let ([height, width, pages], levels) = numbers.split_first_chunk().expect("three numbers follow the header");
        let levels = levels.as_chunks().0.iter().map(|[height, width]| (*height, *width)).collect();
        FileInfo { shape, dtype, tile: (*height, *width), pages: *pages, levels }
    }
}
