//! Headers of picture files, read without their pixels.

use std::path::Path;

use super::{AnyImage, FileInfo, HEADER_FIELDS, OpenOptions, cause_of, header, on_root, parse_header};
use crate::error::{Error, Result};
use crate::session::Session;

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
        let told = on_root(session, "describing a picture", || {
            FileInfo::open(path, options).map(|info| to_bytes(&info)).map_err(cause_of)
        })?;
        told.map(|bytes| from_bytes(&bytes)).map_err(|cause| Error::read(path, cause))
    }
}

/// Properties of a file, for other ranks.
fn to_bytes(info: &FileInfo) -> Vec<u8> {
    let mut bytes = header(info.shape, info.dtype);
    let numbers = [info.tile.0, info.tile.1, info.pages].into_iter();
    let numbers = numbers.chain(info.levels.iter().flat_map(|(height, width)| [*height, *width]));
    bytes.extend(numbers.flat_map(|n| (n as u64).to_le_bytes()));
    bytes
}

fn from_bytes(bytes: &[u8]) -> FileInfo {
    let (shape, dtype) = parse_header(bytes);
    let numbers = bytes.as_chunks().0.iter().skip(HEADER_FIELDS).map(|b| u64::from_le_bytes(*b) as usize);
    let numbers: Vec<usize> = numbers.collect();
    let ([height, width, pages], levels) = numbers.split_first_chunk().expect("three numbers follow the header");
    let levels = levels.as_chunks().0.iter().map(|[height, width]| (*height, *width)).collect();
    FileInfo { shape, dtype, tile: (*height, *width), pages: *pages, levels }
}
