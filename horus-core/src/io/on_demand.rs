//! Large pictures, opened now and read on demand.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AnyImage, Metadata, RegionSource, on_root, opened};
use crate::comm::guarded;
use crate::dtype::DType;
use crate::error::{Call, Error, Result, Site};
use crate::session::{OnDemandImage, Session, everywhere};
use crate::shape::Shape;

/// The properties of an opened picture, known to every rank.
#[derive(Serialize, Deserialize)]
pub(super) enum SharedPicture {
    Now((Shape, DType)),
    Later(OnDemandPicture),
}

/// The properties of a picture that is read on demand, known to every rank. If `lacks` is not
/// 0, this many bytes of memory are missing, and the picture is not read.
#[derive(Serialize, Deserialize)]
pub(super) struct OnDemandPicture {
    kind: (Shape, DType),
    chunk: (usize, usize),
    levels: usize,
    beside: usize,
    lacks: usize,
    /// Of the pixels, if other ranks may read them.
    identity: Option<u64>,
}

impl OnDemandPicture {
    /// # Errors
    /// A message if the size exceeds the address space.
    pub(super) fn of(source: &dyn RegionSource, lacks: usize) -> Result<OnDemandPicture, String> {
        let kind = opened(source.shape(), source.dtype().stored())?;
        Ok(OnDemandPicture {
            kind,
            chunk: source.chunk(),
            levels: source.levels(),
            beside: source.scratch_bytes(),
            lacks,
            identity: source.identity().filter(|_| lacks == 0),
        })
    }

    /// Returns `true` if a source has these pixels.
    fn is_of(&self, source: &dyn RegionSource) -> bool {
        self.identity == source.identity() && self.kind == (source.shape(), source.dtype().stored())
    }
}

impl AnyImage {
    /// An image whose pixels are read region by region, on demand, from the source that `open`
    /// returns, such as a store of arrays. Large pictures are read in the same way
    /// ([`OpenOptions::on_demand`](super::OpenOptions::on_demand)). Rank 0 calls `open` and reads;
    /// if its source has an [identity](RegionSource::identity), the other ranks call `open`, too, and
    /// each reads its part if all have the same pixels. All ranks return the same. Messages name
    /// `path`.
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
        let (path, site) = (path.as_ref(), Call::of("open").site);
        let (mut source, mut open) = (None, Some(open));
        let answer = on_root(session, "opening pixels to be read later", || {
            let found = open.take().ok_or("it is opened twice")?()?;
            let shape = found.shape();
            if shape.is_empty() {
                return Err(format!("its size, {shape}, has no pixels"));
            }
            let known = OnDemandPicture::of(&*found, 0)?;
            session.expect_file((shape.len() * found.dtype().size()) as u64);
            source = Some(Arc::from(found));
            Ok(known)
        })?;
        let known = answer.map_err(|cause| Error::read(path, cause))?;
        // For files, the tile is part of the metadata.
        let tile = Some(known.chunk).filter(|(_, columns)| *columns < known.kind.0.width);
        let image = AnyImage::later(session, path, known, (source, || open?().ok()), site)?;
        Ok(image.with_metadata(Metadata { tile, ..Metadata::default() }))
    }

    /// An image whose pixels are read on demand: from rank 0's source, or by each rank from its own
    /// if `reopen` gives all of them the same pixels.
    pub(super) fn later(
        session: &Session,
        path: &Path,
        known: OnDemandPicture,
        (root, reopen): (Option<Arc<dyn RegionSource>>, impl FnOnce() -> Option<Box<dyn RegionSource>>),
        site: Site,
    ) -> Result<AnyImage> {
        let own = match root {
            None if known.identity.is_some() => {
                let own = guarded(session.comm(), "opening a picture", reopen);
                own.filter(|source| known.is_of(&**source)).map(Arc::from)
            }
            root => root,
        };
        let is_shared = known.identity.is_some() && everywhere(session, "opening a picture", own.is_some())?;
        let source = own.filter(|_| is_shared || session.rank() == 0);
        let OnDemandPicture { kind: (shape, dtype), chunk, levels, beside, lacks: missing_bytes, .. } = known;
        let (shape, part, path) = (shape.stored(), 0..shape.depth, path.into());
        let later = OnDemandImage { shape, dtype, chunk, levels, beside, missing_bytes, part, path, source, is_shared };
        Ok(AnyImage::from_handle(session.source_later(later, site)))
    }
}
