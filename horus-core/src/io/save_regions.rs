//! Saving of images that do not fit in memory: region by region.

use std::path::Path;
use std::sync::Arc;

use super::save::{pack, unpack};
use super::{Format, PictureWriter, RegionSink, SaveOptions, Saving, Scale, cause_of, on_root};
use crate::dtype::Element;
use crate::error::{Call, Error, Result};
use crate::host::buffer::HostBuffer;
use crate::image::Image;
use crate::region::Rect;
use crate::session::{Handle, Session};
use crate::shape::Region;

/// Rows and columns of tiles of TIFF files are multiples of this.
const TILE: usize = 16;
/// Maximum rows and columns of a tile.
const LARGEST: usize = 4096;

/// Saves an image region by region if it exceeds the memory and the format supports that; `None`
/// otherwise. The inner error is the cause, the same on every rank.
pub(super) fn by_regions(
    path: &Path,
    saving: &Saving,
    options: &SaveOptions,
    call: Call,
    session: &Session,
) -> Result<Option<Result<Option<Scale>, String>>> {
    let (format, (shape, stored)) = (saving.draft.format(), saving.draft.stored());
    if !matches!(format, Format::Tiff | Format::Npy | Format::Pgm | Format::Ppm | Format::Pnm) {
        return Ok(None);
    }
    let handles: Vec<&Handle> = saving.handles.iter().collect();
    let Some((samples, others)) = handles.split_first() else { return Ok(None) };
    let Some(large) = session.does_not_fit(samples)? else { return Ok(None) };
    let whole = |(h, w): &(usize, usize)| h % TILE == 0 && w % TILE == 0 && *h.max(w) <= LARGEST;
    let tile = options.tile.or(large.tile.filter(whole)).filter(|_| format == Format::Tiff);
    let begin = || {
        // Devices and pipes take only complete files.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(None);
        }
        let made = PictureWriter::create(path, shape, stored, tile, options.compression).map_err(cause_of)?;
        Ok(Some(Box::new(made.located(&saving.draft)) as Box<dyn RegionSink>))
    };
    let mut begun = match Begun::on_root(session, begin)? {
        Err(cause) => return Ok(Some(Err(cause))),
        Ok(None) => return Ok(None),
        Ok(Some(begun)) => begun,
    };
    // First, the range of the values, and the number of values outside.
    let told: Vec<Option<Arc<HostBuffer>>> =
        if others.is_empty() { Vec::new() } else { session.bring(others, call)? };
    if let Err(cause) = begun.stream(samples)? {
        return Ok(Some(Err(cause)));
    }
    let saved = begun.finish(session, || {
        let (scale, clipped) = saving.draft.told(&mut told.into_iter().flatten());
        if let Some(warning) = clipped.warning {
            crate::warn!("{}: {warning}", path.display());
        }
        clipped.error.map_or(Ok(pack(scale)), Err)
    })?;
    Ok(Some(saved.map(|bytes| unpack(&bytes))))
}

/// A file begun by rank 0.
struct Begun {
    /// On rank 0.
    sink: Option<Box<dyn RegionSink>>,
    /// Rows and columns of which regions are multiples.
    grain: (usize, usize),
}

impl Begun {
    /// The result of `begin`, which rank 0 calls; `Ok(None)` if that is `None`.
    fn on_root(
        session: &Session,
        begin: impl FnOnce() -> Result<Option<Box<dyn RegionSink>>, String>,
    ) -> Result<Result<Option<Begun>, String>> {
        let mut sink = None;
        let created = on_root(session, "creating a file for a picture", || {
            sink = begin()?;
            let chunk = sink.as_ref().map(|sink| sink.chunk());
            Ok(chunk
                .iter()
                .flat_map(|(rows, columns)| [*rows, *columns])
                .flat_map(|n| (n as u64).to_le_bytes())
                .collect())
        })?;
        Ok(created.map(|told| match told.as_chunks().0 {
            [rows, columns] => {
                let grain = (u64::from_le_bytes(*rows) as usize, u64::from_le_bytes(*columns) as usize);
                Some(Begun { sink, grain })
            }
            _ => None,
        }))
    }

    /// Computes a value region by region and writes the regions.
    fn stream(&mut self, value: &Handle) -> Result<Result<(), String>> {
        let (session, sink) = (&value.session, &mut self.sink);
        let mut put = |region: Rect, pixels: &[u8]| {
            let sink = sink.as_mut().ok_or("another rank writes the file")?;
            sink.put(region.inside(), pixels, session.workers())
        };
        session.stream(value, self.grain, &mut put)
    }

    /// Computes a value and writes all of it.
    fn put(&mut self, value: &Handle, call: Call) -> Result<Result<(), String>> {
        let session = &value.session;
        let brought = session.bring(&[value], call)?;
        let put = on_root(session, "putting pixels", || {
            let pixels = brought.into_iter().flatten().next().ok_or("rank 0 has no pixels")?;
            let sink = self.sink.as_mut().ok_or("rank 0 has no file")?;
            sink.put(Region::whole(value.shape), pixels.bytes(), session.workers())?;
            Ok(Vec::new())
        })?;
        Ok(put.map(drop))
    }

    /// Calls `tell` on rank 0, returns its result on every rank, and completes the file unless it
    /// is an error.
    fn finish(
        self,
        session: &Session,
        tell: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<Result<Vec<u8>, String>> {
        on_root(session, "saving a picture", || {
            let told = tell()?;
            self.sink.ok_or("rank 0 has no file")?.finish()?;
            Ok(told)
        })
    }
}

/// Evaluates the image and writes it, region by region if it is computed from pictures that are
/// read on demand and exceeds the memory, to the sink that `begin` returns: see
/// [`Image::save_with`], which does this for picture files. Only rank 0 calls `begin`, before
/// anything is computed, and writes; all ranks return the same. Messages name `path`. Samples
/// are those of the image, truth values bytes 0 and 1.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// use horus::io::{RegionSink, Workers};
/// # use std::sync::{Arc, Mutex};
/// /// Adds up what it gets.
/// struct Sum(u32, Arc<Mutex<u32>>);
/// impl RegionSink for Sum {
///     fn chunk(&self) -> (usize, usize) {
///         (16, 16)
///     }
///     fn put(&mut self, _: Region, pixels: &[u8], _: &Workers) -> Result<(), String> {
///         self.0 += pixels.iter().map(|p| u32::from(*p)).sum::<u32>();
///         Ok(())
///     }
///     fn finish(self: Box<Self>) -> Result<(), String> {
///         *self.1.lock().unwrap() = self.0;
///         Ok(())
///     }
/// }
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let total = Arc::new(Mutex::new(0));
/// let sink = Sum(0, Arc::clone(&total));
/// let image = Image::from_fn(&session, 20, 30, |_, x| x as u8);
/// horus::io::save_to(&image, "a sum", || Ok(Box::new(sink)))?;
/// assert_eq!(*total.lock().unwrap(), 20 * (29 * 30 / 2));
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// The error that the image carries; [`Error::File`] with the error of `begin` or the sink; if
/// the program fails. The sink is then dropped unfinished.
#[track_caller]
pub fn save_to<T: Element>(
    image: &Image<T>,
    path: impl AsRef<Path>,
    begin: impl FnOnce() -> Result<Box<dyn RegionSink>, String>,
) -> Result<()> {
    image.look()?;
    let (session, call) = (image.session(), Call::of("save_to"));
    let failed = |cause| Error::write(path.as_ref(), cause);
    let begun = Begun::on_root(session, || begin().map(Some))?.map_err(failed)?;
    let mut begun = begun.ok_or_else(|| failed("rank 0 has no file".to_owned()))?;
    let put = match session.does_not_fit(image.handle())? {
        Some(_) => begun.stream(image.handle())?,
        None => begun.put(image.handle(), call)?,
    };
    put.map_err(failed)?;
    begun.finish(session, || Ok(Vec::new()))?.map(drop).map_err(failed)
}
