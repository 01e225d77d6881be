//! Large pictures: opened now, read when an evaluation asks for their pixels.

use std::path::Path;
use std::sync::Arc;

use super::count::FileTraffic;
use super::reader::PictureReader;
use super::{AnyImage, OpenOptions};
use crate::error::Error;
use crate::host::workers::Workers;
use crate::region::Rect;
use crate::session::{Later, PixelsRead, Session, Stock};
use crate::shape::Region;

/// A picture of so many bytes is read when it is needed; a smaller one may be needed as a whole, and is read at once.
const LARGE: usize = 64 << 20;
/// A smaller file is not large, unless it is compressed more than pictures are.
const FILE: u64 = 1 << 20;

impl Stock for PictureReader {
    fn read(&self, region: Rect, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        let [top, left] = region.corner().map(isize::unsigned_abs);
        let region = Region::new(top, left, region.rows.len(), region.columns.len());
        self.read_into(region, to, workers).map_err(|e| match e {
            Error::File { cause, .. } => cause,
            other => other.to_string(),
        })
    }

    fn so_far(&self) -> PixelsRead {
        let FileTraffic { chunks, bytes, .. } = self.counted();
        PixelsRead { chunks, bytes }
    }
}

/// What reads a picture region by region, if it is to be read when it is needed.
pub(super) fn reader(path: &Path, options: &OpenOptions) -> Option<PictureReader> {
    if options.later == Some(false) {
        return None;
    }
    let forced = options.later == Some(true);
    if !forced && std::fs::metadata(path).map_or(0, |found| found.len()) < FILE {
        return None;
    }
    // What is wrong with it, reading tells.
    let reader = PictureReader::open(path, options).ok().filter(PictureReader::by_regions)?;
    let shape = reader.shape();
    let large = shape.len().saturating_mul(reader.dtype().size()) >= LARGE;
    let allowed = (shape.depth as u64).saturating_mul(shape.area() as u64) <= options.max_pixels;
    ((large || forced) && allowed).then_some(reader)
}

/// What every rank knows of a picture that rank 0 reads when it is needed: rows and columns that are read at once.
pub(super) fn chunk_to_bytes(chunk: (usize, usize)) -> Vec<u8> {
    [chunk.0 as u64, chunk.1 as u64].iter().flat_map(|n| n.to_le_bytes()).collect()
}

fn chunk_of_bytes(bytes: &[u8]) -> Option<(usize, usize)> {
    match bytes.as_chunks().0 {
        [rows, columns] => Some((u64::from_le_bytes(*rows) as usize, u64::from_le_bytes(*columns) as usize)),
        _ => None,
    }
}

impl AnyImage {
    /// The image of a picture that is read when it is needed, if rank 0 told so in what follows the header.
    pub(super) fn later(
        session: &Session,
        path: &Path,
        header: &[u8],
        reader: Option<PictureReader>,
        site: crate::error::Site,
    ) -> Option<AnyImage> {
        let chunk = chunk_of_bytes(header.get(super::HEADER_FIELDS * size_of::<u64>()..)?)?;
        let (shape, dtype) = super::parse_header(header);
        let stock = reader.map(|reader| Arc::new(reader) as Arc<dyn Stock>);
        Some(AnyImage::from_handle(session.source_later(Later { shape, dtype, chunk, path: path.into(), stock }, site)))
    }
}
