//! Large pictures: opened now, read on demand.

use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use super::{AnyImage, HEADER_FIELDS, Metadata, RegionSource, on_root, opened, parse_header};
use crate::error::{Error, Result, Site};
use crate::session::{Later, Session};

/// The header, known to every rank, of a picture that rank 0 reads on demand; it is not read, if it `lacks` memory: so many
/// bytes.
///
/// # Errors
/// A message, if its size exceeds the address space.
pub(super) fn known(source: &dyn RegionSource, lacks: usize) -> Result<Vec<u8>, String> {
    let (rows, columns) = source.chunk();
    let mut bytes = opened(source.shape(), source.dtype().stored())?;
    bytes.extend(told(&[rows, columns, source.levels(), source.beside(), lacks]));
    Ok(bytes)
}

/// Numbers for other ranks.
pub(super) fn told(numbers: &[usize]) -> Vec<u8> {
    numbers.iter().flat_map(|n| (*n as u64).to_le_bytes()).collect()
}

/// Told numbers, as many as are expected.
pub(super) fn numbers<const N: usize>(bytes: &[u8]) -> Option<[usize; N]> {
    let found: Vec<usize> = bytes.as_chunks().0.iter().map(|n| u64::from_le_bytes(*n) as usize).collect();
    found.try_into().ok()
}

impl AnyImage {
    /// An image whose pixels are read region by region on demand, like those of large pictures
    /// ([`OpenOptions::later`](super::OpenOptions::later)), from the source that `open` returns: a store of arrays, for
    /// example. Only rank 0 calls it and reads; all ranks return the same. Messages name `path`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use horus::io::{FileTraffic, RegionSource, Workers};
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
    ///     fn counted(&self) -> FileTraffic {
    ///         FileTraffic::default()
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
            let known = known(&*found, 0)?;
            session.expect_file((shape.len() * found.dtype().size()) as u64);
            source = Some(Arc::from(found));
            Ok(known)
        })?;
        let known = answer.map_err(|cause| Error::read(path, cause))?;
        let image = AnyImage::later(session, path, &known, source, site);
        let image = image.ok_or_else(|| Error::read(path, "rank 0 did not tell its size"))?;
        // Those of files are told with what else they say.
        let tile = numbers(&known[HEADER_FIELDS * size_of::<u64>()..])
            .map(|[rows, columns, _, _, _]| (rows, columns))
            .filter(|(_, columns)| *columns < image.shape().width);
        Ok(image.with_metadata(Metadata { tile, ..Metadata::default() }))
    }

    /// The image of a picture that is read on demand, if rank 0 announced that after the header.
    pub(super) fn later(
        session: &Session,
        path: &Path,
        header: &[u8],
        stock: Option<Arc<dyn RegionSource>>,
        site: Site,
    ) -> Option<AnyImage> {
        let [rows, columns, levels, beside, lacks] = numbers(header.get(HEADER_FIELDS * size_of::<u64>()..)?)?;
        let (shape, dtype) = parse_header(header);
        let (chunk, part) = ((rows, columns), 0..shape.depth);
        let later =
            Later { shape: shape.stored(), dtype, chunk, levels, beside, lacks, part, path: path.into(), stock };
        Some(AnyImage::from_handle(session.source_later(later, site)))
    }
}
