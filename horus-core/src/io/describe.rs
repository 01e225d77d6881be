//! Headers of picture files, read without their pixels.

use std::path::Path;

use super::{AnyImage, FileInfo, OpenOptions, cause_of, on_root};
use crate::error::{Error, Result};
use crate::session::Session;

impl AnyImage {
    /// Returns the properties of a picture file without reading its pixels: its size, and valid
    /// values of [`OpenOptions::region`], `level` and `page`. Rank 0 reads; all ranks return the
    /// same.
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
    /// The errors of [`AnyImage::open_with`] that the headers show.
    pub fn describe(session: &Session, path: impl AsRef<Path>, options: &OpenOptions) -> Result<FileInfo> {
        let path = path.as_ref();
        let told = on_root(session, "describing a picture", || {
            let FileInfo { shape, dtype, tile, pages, levels } = FileInfo::open(path, options).map_err(cause_of)?;
            Ok((shape, dtype, tile, pages, levels))
        })?;
        let (shape, dtype, tile, pages, levels) = told.map_err(|cause| Error::read(path, cause))?;
        Ok(FileInfo { shape, dtype, tile, pages, levels })
    }
}
