//! Saving what does not fit into memory: region by region.

use std::path::Path;
use std::sync::Arc;

use super::save::{pack, unpack};
use super::{Format, PictureWriter, SaveOptions, Saving, Scale, on_root};
use crate::error::{Error, Result, Site};
use crate::host::buffer::HostBuffer;
use crate::region::Rect;
use crate::session::Session;
use crate::shape::Region;

/// Rows and columns of tiles of TIFF files are multiples of this.
const TILE: usize = 16;
/// A tile has at most so many rows and columns.
const LARGEST: usize = 4096;

/// Saves an image region by region if it needs more memory than there is and the format can be written so; `None` otherwise. The
/// inner error is the cause, the same on every rank.
pub(super) fn by_regions(
    path: &Path,
    saving: &Saving,
    options: &SaveOptions,
    call: (&'static str, Site),
    session: &Session,
) -> Result<Option<Result<Option<Scale>, String>>> {
    let (format, shape, stored) = saving.stores();
    if !matches!(format, Format::Tiff | Format::Npy | Format::Pgm | Format::Ppm | Format::Pnm) {
        return Ok(None);
    }
    let handles = saving.handles();
    let Some((samples, others)) = handles.split_first() else { return Ok(None) };
    let Some(large) = session.does_not_fit(samples)? else { return Ok(None) };
    let whole = |(h, w): &(usize, usize)| h % TILE == 0 && w % TILE == 0 && *h.max(w) <= LARGEST;
    let tile = options.tile.or(large.tile.filter(whole)).filter(|_| format == Format::Tiff);
    let mut writer = None;
    let created = on_root(session, "creating a file for a picture", || {
        // Devices and pipes take files that are complete.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(Vec::new());
        }
        let made = PictureWriter::create(path, shape, stored, tile, options.compression).map_err(cause)?;
        let (rows, columns) = made.chunk();
        writer = Some(made);
        Ok([rows, columns].iter().flat_map(|n| (*n as u64).to_le_bytes()).collect())
    })?;
    let grain = match created {
        Err(cause) => return Ok(Some(Err(cause))),
        Ok(bytes) => match bytes.as_chunks().0 {
            [rows, columns] => (u64::from_le_bytes(*rows) as usize, u64::from_le_bytes(*columns) as usize),
            _ => return Ok(None),
        },
    };
    // The range of the values, and how many are outside, first.
    let told: Vec<Option<Arc<HostBuffer>>> =
        if others.is_empty() { Vec::new() } else { session.bring(others, call)? };
    let mut put = |region: Rect, pixels: &[u8]| {
        let [top, left] = region.corner().map(isize::unsigned_abs);
        let region = Region::new(top, left, region.rows.len(), region.columns.len());
        let writer = writer.as_ref().ok_or("another rank writes the file")?;
        writer.put(region, pixels, session.workers()).map_err(cause)
    };
    if let Err(cause) = session.stream(samples, grain, &mut put)? {
        return Ok(Some(Err(cause)));
    }
    let saved = on_root(session, "saving a picture", || {
        writer.ok_or("rank 0 has no file")?.finish().map_err(cause)?;
        let (scale, warning) = saving.told(&mut told.into_iter().flatten());
        if let Some(warning) = warning {
            log::warn!("{}: {warning}", path.display());
        }
        Ok(pack(scale))
    })?;
    Ok(Some(saved.map(|bytes| unpack(&bytes))))
}

/// The cause of an error, without the path.
fn cause(error: Error) -> String {
    match error {
        Error::File { cause, .. } => cause,
        other => other.to_string(),
    }
}
