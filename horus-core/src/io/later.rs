//! Large pictures: opened now, read on demand.

use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use super::count::FileTraffic;
use super::load::Source;
use super::reader::PictureReader;
use super::{AnyImage, OpenOptions, cause_of, on_root, opened};
use crate::dtype::DType;
use crate::error::{Error, Result, Site};
use crate::host::workers::Workers;
use crate::session::{Later, PixelsRead, RegionSource, Session};
use crate::shape::{Region, Shape};

/// Minimum bytes of a picture that is read on demand; a smaller one is read at once.
const LARGE: usize = 64 << 20;
/// A smaller file is not large, unless its compression is unusually high.
const FILE: u64 = 1 << 20;

impl RegionSource for PictureReader {
    fn shape(&self) -> Shape {
        self.shape()
    }

    fn dtype(&self) -> DType {
        self.dtype()
    }

    fn chunk(&self) -> (usize, usize) {
        self.chunk()
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        self.read_into(region, to, workers).map_err(cause_of)
    }

    fn counted(&self) -> PixelsRead {
        let FileTraffic { chunks, bytes, .. } = self.counted();
        PixelsRead { chunks, bytes }
    }
}

/// Minimum bytes of a large picture where images may take `limit` bytes.
pub(super) fn large(limit: usize) -> usize {
    /// Maximum fraction of the memory for a picture that is read at once.
    const PART: usize = 8;
    LARGE.min(limit / PART)
}

/// The reader of a picture's regions, if it is to be read on demand; images may take `limit` bytes.
pub(super) fn reader(path: &Path, options: &OpenOptions, limit: usize) -> Option<PictureReader> {
    if options.later == Some(false) {
        return None;
    }
    let least = FILE.min(large(limit) as u64);
    if options.later.is_none() && std::fs::metadata(path).map_or(0, |found| found.len()) < least {
        return None;
    }
    // Reading it reports its faults.
    reader_of(Source::open(path).ok()?, path, options, limit)
}

/// [`reader`] of an open file.
pub(super) fn reader_of(
    source: Source<'static>,
    path: &Path,
    options: &OpenOptions,
    limit: usize,
) -> Option<PictureReader> {
    let forced = options.later == Some(true);
    let reader = PictureReader::of(source, path, options).ok().filter(PictureReader::by_regions)?;
    let shape = reader.shape();
    let large = shape.len().saturating_mul(reader.dtype().size()) >= large(limit);
    let allowed = (shape.depth as u64).saturating_mul(shape.area() as u64) <= options.max_pixels;
    let reader = ((large || forced) && allowed).then_some(reader)?;
    reader.tell_pages();
    Some(reader)
}

/// The header, known to every rank, of a picture that rank 0 reads on demand.
///
/// # Errors
/// A message, if its size exceeds the address space.
pub(super) fn known(source: &dyn RegionSource) -> Result<Vec<u8>, String> {
    let (rows, columns) = source.chunk();
    let mut bytes = opened(source.shape(), source.dtype().stored())?;
    bytes.extend([rows, columns].iter().flat_map(|n| (*n as u64).to_le_bytes()));
    Ok(bytes)
}

fn chunk_of_bytes(bytes: &[u8]) -> Option<(usize, usize)> {
    match bytes.as_chunks().0 {
        [rows, columns] => Some((u64::from_le_bytes(*rows) as usize, u64::from_le_bytes(*columns) as usize)),
        _ => None,
    }
}

impl AnyImage {
    /// An image whose pixels are read region by region on demand, like those of large pictures
    /// ([`OpenOptions::later`]), from the source that `open` returns: a store of arrays, for
    /// example. Only rank 0 calls it and reads; all ranks return the same. Messages name `path`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use horus::io::{PixelsRead, RegionSource, Workers};
    /// /// Each pixel is its row.
    /// struct Rows;
    /// impl RegionSource for Rows {
    ///     fn shape(&self) -> Shape {
    ///         Shape::new(200, 100, 1)
    ///     }
    ///     fn dtype(&self) -> DType {
    ///         DType::U8
    ///     }
    ///     fn chunk(&self) -> (usize, usize) {
    ///         (1, 100)
    ///     }
    ///     fn fill(&self, region: Region, to: &mut [u8], _: &Workers) -> Result<(), String> {
    ///         to.chunks_mut(region.width).zip(region.top..).for_each(|(row, y)| row.fill(y as u8));
    ///         Ok(())
    ///     }
    ///     fn counted(&self) -> PixelsRead {
    ///         PixelsRead::default()
    ///     }
    /// }
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = AnyImage::from_source(&session, "rows", || Ok(Box::new(Rows)))?.convert::<u8>();
    /// assert_eq!(image.crop(150, 7, 2, 1).to_vec()?, [150, 151]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::File`] with the error of `open`, or if there are no pixels.
    #[track_caller]
    pub fn from_source(
        session: &Session,
        path: impl AsRef<Path>,
        open: impl FnOnce() -> Result<Box<dyn RegionSource>, String>,
    ) -> Result<AnyImage> {
        let (path, site) = (path.as_ref(), Location::caller());
        let mut source = None;
        let answer = on_root(session, "opening pixels to be read later", || {
            let found = open()?;
            let shape = found.shape();
            if shape.is_empty() {
                return Err(format!("its size, {shape}, has no pixels"));
            }
            let known = known(&*found)?;
            session.expect_file((shape.len() * found.dtype().size()) as u64);
            source = Some(Arc::from(found));
            Ok(known)
        })?;
        let known = answer.map_err(|cause| Error::read(path, cause))?;
        let image = AnyImage::later(session, path, &known, source, site);
        image.ok_or_else(|| Error::read(path, "rank 0 did not tell its size"))
    }

    /// The image of a picture that is read on demand, if rank 0 announced that after the header.
    pub(super) fn later(
        session: &Session,
        path: &Path,
        header: &[u8],
        stock: Option<Arc<dyn RegionSource>>,
        site: Site,
    ) -> Option<AnyImage> {
        let chunk = chunk_of_bytes(header.get(super::HEADER_FIELDS * size_of::<u64>()..)?)?;
        let (shape, dtype) = super::parse_header(header);
        Some(AnyImage::from_handle(session.source_later(Later { shape, dtype, chunk, path: path.into(), stock }, site)))
    }
}
