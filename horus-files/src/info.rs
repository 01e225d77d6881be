//! Headers of picture files, read without their pixels.

use std::path::Path;

use super::{OpenOptions, PictureSource, decode};
use horus_base::dtype::DType;
use horus_base::error::{Error, Result};
use horus_base::shape::Shape;

/// The properties of a picture file; see `AnyImage::describe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Levels, rows, columns and channels of the picture, as stored: no orientation is applied.
    pub shape: Shape,
    /// The element type.
    pub dtype: DType,
    /// Rows and columns that are read at once: of a tile, a strip, a row, or the whole picture.
    pub tile: (usize, usize),
    /// Number of pages.
    pub pages: usize,
    /// Rows and columns of the page and of its smaller copies, the largest first.
    pub levels: Vec<(usize, usize)>,
}

impl FileInfo {
    /// The properties of a picture file, read by this process only; see `AnyImage::describe`.
    ///
    /// # Errors
    /// As [`Picture::open`](super::Picture::open), as far as the headers show.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<FileInfo> {
        let path = path.as_ref();
        let told = PictureSource::open(path).and_then(|source| FileInfo::of(&source, options));
        told.map_err(|cause| Error::read(path, cause))
    }

    /// Metadata of a file as names and texts: the tags of a page of a TIFF file, except those that locate its pixels,
    /// and the texts of a PNG file. A tag with many values shows only their number.
    ///
    /// # Errors
    /// As [`FileInfo::open`].
    pub fn tags(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Vec<(String, String)>> {
        let path = path.as_ref();
        let tags = |source: PictureSource<'_>| decode::guarded(|| source.format().tags(&source, options));
        PictureSource::open(path).and_then(tags).map_err(|cause| Error::read(path, cause))
    }

    fn of(source: &PictureSource<'_>, options: &OpenOptions) -> std::result::Result<FileInfo, String> {
        let unbounded = OpenOptions { max_pixels: u64::MAX, region: None, ..*options };
        source.format().describe(source, &unbounded)
    }
}
