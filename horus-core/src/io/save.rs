//! Saving images.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::save_regions::by_regions;
use super::{Encoder, FileTarget, Format, SaveOptions, Saving, Scale, on_root};
use crate::dtype::Element;
use crate::error::{Call, Error, Result};
use crate::image::Image;
use crate::session::Session;

/// Saving.
impl<T: Element> Image<T> {
    /// Saves with the default [`SaveOptions`]: integers unchanged, floats scaled from `0..=1` to
    /// the full range of the file, masks as 0 and the file's largest integer. See
    /// [`Image::save_with`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("steps.png");
    /// Image::from_slice(&session, (1, 3), &[0.0f32, 0.5, 1.0]).save(&file)?;
    /// assert_eq!(Image::<u8>::open(&session, &file)?.to_vec()?, [0, 128, 255]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Image::save_with`].
    #[doc(alias("imsave", "imwrite"))]
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<Option<Scale>> {
        self.save_with(path, &SaveOptions::default())
    }

    /// Evaluates the image and saves it in the format of the path's extension: png, jpg, tif, pgm,
    /// ppm, pnm, bmp, or npy for the exact values. Returns the scale if values were scaled. In
    /// integer formats NaN becomes 0, and values outside the range of the file are clipped; a
    /// warning gives their number ([`SaveOptions::clipping`]).
    ///
    /// Rank 0 writes an unnamed file in the target's directory and then links it into place. A
    /// failure or a kill leaves no partial file, and the source file of a picture can be
    /// overwritten. For large npy, PNM and uncompressed TIFF files, each rank of one host writes its
    /// rows if every rank can open the file. Symbolic links are followed. Devices and pipes are
    /// written to directly; see
    /// [`FileTarget`]. All ranks return the same.
    ///
    /// If an image computed from pictures that are read on demand
    /// ([`OpenOptions::on_demand`](super::OpenOptions::on_demand)) does not fit in memory
    /// (`HORUS_HOST_MEMORY`, `HORUS_GPU_MEMORY`), it is computed region by region with the same
    /// bits. TIFF, npy and PNM files are then written region by region with the same bytes; for
    /// other formats the samples must fit in memory.
    ///
    /// A TIFF file has tiles if the options request them, or if the image comes from a tiled file
    /// and is larger than a tile; else strips.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("steps.png");
    /// let image = Image::from_slice(&session, (1, 3), &[-2.0f32, 0.0, 2.0]);
    /// let range = SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() };
    /// let scale = image.save_with(&file, &range)?.expect("floats are scaled");
    /// assert_eq!(scale.to_string(), "-2..2 -> 0..255");
    /// assert_eq!(Image::<u8>::open(&session, &file)?.to_vec()?, [0, 128, 255]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// TIFF files with tiles and compression, which use all threads:
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("tiles.tif");
    /// let image = Image::from_fn(&session, 300, 500, |y, x| (y * x) as u16);
    /// let tiled = SaveOptions { tile: Some((256, 256)), compression: Compression::Deflate, ..SaveOptions::default() };
    /// image.save_with(&file, &tiled)?;
    /// assert_eq!(AnyImage::describe(&session, &file, &OpenOptions::default())?.tile, (256, 256));
    /// assert_eq!(Image::<u16>::open(&session, &file)?.to_vec()?, image.to_vec()?);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the image carries. Before anything is computed: if the extension is unknown;
    /// if the format does not support the channels, the size, the depth (the message names formats
    /// that do), tiles, compression or quality; if no file can be created in the directory. After
    /// that: if the program fails, values would be clipped despite
    /// [`Clipping::Refuse`](super::Clipping::Refuse), or the file cannot be written.
    #[doc(alias = "imwrite")]
    #[track_caller]
    pub fn save_with(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<Option<Scale>> {
        self.look()?;
        let path = path.as_ref();
        let failed = |cause: String| Error::write(path, cause);
        let format = Format::of(path, self.channels()).map_err(failed)?;
        let saving = Saving::record(self, format, options)?.map_err(failed)?.described(self.session(), path);
        if let Some(saved) = by_regions(path, &saving, options, Call::of("save"), self.session())? {
            return saved.map_err(failed);
        }
        let mut target = None;
        let answer = on_root(self.session(), "creating a file for a picture", || {
            target = Some(FileTarget::new(path)?);
            Ok(())
        })?;
        answer.map_err(failed)?;
        let written = encoded(self.session(), saving, Call::of("save"), |encoder| {
            let target = target.ok_or("rank 0 has no file")?;
            if let Some(warning) = encoder.warning() {
                crate::warn!("{}: {warning}", path.display());
            }
            let mut scale = None;
            target.fill(|to| {
                scale = encoder.write(to, self.session().workers())?;
                Ok(())
            })?;
            Ok(scale.map(encode_scale))
        })?;
        written.map(|scale| scale.map(decode_scale)).map_err(failed)
    }
}

/// Evaluates the samples for `call` and calls `write` on rank 0. Every rank gets the result or
/// error of `write`.
pub(super) fn encoded<T: Serialize + DeserializeOwned>(
    session: &Session,
    saving: Saving,
    call: Call,
    write: impl FnOnce(Encoder) -> Result<T, String>,
) -> Result<Result<T, String>> {
    let fetched = session.bring(&saving.handles.iter().collect::<Vec<_>>(), call)?;
    on_root(session, "saving a picture", || {
        let fetched: Option<Vec<_>> = fetched.into_iter().collect();
        write(saving.draft.encoder(fetched.ok_or("rank 0 has no pixels")?))
    })
}

/// A scale as sent to other ranks.
pub(crate) type ScaleMessage = (f64, f64, u16);

pub(crate) fn encode_scale(Scale { low, high, full }: Scale) -> ScaleMessage {
    (low, high, full)
}

pub(crate) fn decode_scale((low, high, full): ScaleMessage) -> Scale {
    Scale { low, high, full }
}
