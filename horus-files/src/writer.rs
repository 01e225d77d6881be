//! Picture files that are written region by region.

use std::fmt::Debug;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::count::FileTraffic;
use super::replace::{UnfinishedFile, file_number};
use super::target::{FileTarget, reserve};
use super::{
    Compression, Count, FileSpec, Format, PositionedOutput, SampleConversion, SaveOptions, WRITERS, cause_of,
    pixel_bytes, region_of,
};
use horus_base::dtype::DType;
use horus_base::error::{Error, Result};
use horus_base::shape::{Region, Shape};
use horus_host::workers::Workers;

/// A picture file that is written region by region, from any number of threads: TIFF, npy, PGM and PPM.
///
/// The file has no name before [`PictureWriter::finish`]. If the writer is dropped before, nothing remains, and an
/// existing file at the path stays; see [`FileTarget`]. Uncompressed data is written in place, in any order. A writer
/// belongs to no session.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// use horus::io::{PictureWriter, Workers};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let file = folder.path().join("tiles.tif");
/// let writer =
///     PictureWriter::create(&file, Shape::new(40, 20, 1), DType::U8, Some((32, 16)), Compression::Deflate)?;
/// assert_eq!(writer.chunk(), (32, 16));
/// writer.put(Region::new(32, 0, 8, 20), &[7; 8 * 20], &Workers::alone())?;
/// writer.put(Region::new(0, 0, 32, 20), &[9; 32 * 20], &Workers::alone())?;
/// writer.finish()?;
/// assert_eq!(Image::<u8>::open(&session, &file)?.min_value().get()?, 7);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[derive(Debug)]
pub struct PictureWriter {
    path: PathBuf,
    shape: Shape,
    dtype: DType,
    unfinished: UnfinishedFile,
    parts: Box<dyn RegionFile>,
    /// The first failure: some data is then missing.
    failed: OnceLock<String>,
}

/// A file that is written region by region, in each of its sizes.
pub(super) trait RegionFile: Debug + Send + Sync {
    /// The known bytes of the file.
    fn bytes(&self) -> u64;

    /// Begins the file, which will be moved to a path.
    fn begin(&mut self, to: &File, path: &Path) -> WriteResult<()>;

    fn shape(&self, size: usize) -> Shape;

    /// Rows and columns of chunks: regions are multiples.
    fn chunk(&self, _size: usize) -> (usize, usize) {
        (1, 1)
    }

    /// Rejects a region inside the picture that does not consist of whole chunks.
    fn is_whole(&self, _size: usize, _region: Region) -> WriteResult<()> {
        Ok(())
    }

    /// Returns `true` if several processes can write regions of one file.
    fn is_shareable(&self) -> bool {
        false
    }

    /// What another process needs to know to write regions of the file, besides its size and type.
    fn layout(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Continues the file that another process has begun with this layout.
    fn join(&mut self, _layout: &[u64]) -> WriteResult<()> {
        Err("its regions are written by one process".into())
    }

    /// Leaves a region to another process.
    fn leave(&self, _region: Region) -> WriteResult<()> {
        Ok(())
    }

    /// Encodes and writes the pixels of a region, once.
    fn put(&self, to: &File, size: usize, region: Region, pixels: &[u8], workers: &Workers) -> WriteResult<()>;

    /// Fails if a region is missing.
    fn is_complete(&self) -> WriteResult<()>;

    /// Completes a file whose regions were written.
    fn finish(&self, _to: &File) -> WriteResult<()> {
        Ok(())
    }

    /// The amount written.
    fn counted(&self) -> FileTraffic;
}

/// A result whose error is the cause, without the path.
type WriteResult<T> = std::result::Result<T, String>;

impl PictureWriter {
    /// Begins a file in the format of the path's extension, with samples of type `dtype`, stored unchanged: `tif`, in
    /// tiles of these rows and columns, multiples of 16, or in strips; `npy`, `pgm`, `ppm` or `pnm`, without tiles and
    /// compression. A volume has a page for each level, or is an array of three or four axes.
    ///
    /// # Errors
    /// [`Error::File`] if the format is another one or does not support such pixels, no file can be created there, or
    /// the file system is known to have too little space.
    pub fn create(
        path: impl AsRef<Path>,
        shape: Shape,
        dtype: DType,
        tile: Option<(usize, usize)>,
        compression: Compression,
    ) -> Result<PictureWriter> {
        let (path, options) = (path.as_ref(), SaveOptions { tile, compression, ..SaveOptions::default() });
        let draft = || {
            let format = Format::of(path, shape.channels)?;
            if shape.is_empty() {
                return Err("the picture has no pixels".into());
            }
            let draft = FileSpec::new(format, dtype, shape, &options)?;
            // Truth values are always stored as bytes.
            if draft.stored.stored() != dtype.stored() {
                return Err(format!("a {} file cannot hold {dtype} pixels as they are", format.name()));
            }
            Ok(draft)
        };
        let draft = draft().map_err(|cause| Error::write(path, cause))?;
        PictureWriter::begin(path, &draft, dtype, SinkRole::First)
    }

    fn begin(path: &Path, draft: &FileSpec, dtype: DType, role: SinkRole<'_>) -> Result<PictureWriter> {
        let begin = || {
            let mut parts = draft.format.listed().in_regions(draft)?;
            let begun = FileTarget::new(path)?.begin(role)?;
            if let SinkRole::Other(place) = role {
                parts.join(place.of_format())?;
            } else {
                reserve(begun.file(), parts.bytes())?;
                parts.begin(begun.file(), path)?;
            }
            Ok(PictureWriter {
                path: path.to_owned(),
                shape: draft.shape,
                dtype,
                unfinished: begun,
                parts,
                failed: OnceLock::new(),
            })
        };
        begin().map_err(|cause: String| Error::write(path, cause))
    }

    /// Begins a file of this specification, and returns sinks for its [sizes](FileSpec::sizes), the largest first. The
    /// last one to finish completes the file, which has the bytes that an [`Encoder`](super::Encoder) writes.
    ///
    /// # Errors
    /// As [`PictureWriter::create`].
    pub fn sinks(path: &Path, draft: &FileSpec, role: SinkRole<'_>) -> Result<Vec<Box<dyn RegionSink>>> {
        let file = Arc::new(PictureWriter::begin(path, draft, draft.stored, role)?);
        let sink = |size| Box::new(SizeSink { file: Arc::clone(&file), size }) as Box<dyn RegionSink>;
        Ok((0..draft.options.sizes).map(sink).collect())
    }

    /// Levels, rows, columns and channels.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The type of the samples.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Rows and columns of chunks (a tile, a strip or a pixel): regions are multiples. The last ones end with the
    /// picture.
    pub fn chunk(&self) -> (usize, usize) {
        self.parts.chunk(0)
    }

    /// The amount written.
    pub fn counted(&self) -> FileTraffic {
        self.parts.counted()
    }

    /// Writes a region of all levels and channels, with all workers: interleaved samples, level by level, row by row,
    /// without gaps. Each pixel is written once. The bytes of a file depend neither on the order of its regions nor on
    /// the workers.
    ///
    /// # Errors
    /// [`Error::File`] if the region is not inside the picture, does not consist of whole
    /// [chunks](PictureWriter::chunk), or differs from `pixels` in size: nothing is written. Also if a tile, a strip
    /// or, in other formats, a pixel was written before, or writing fails: the file can then not be finished.
    pub fn put(&self, region: Region, pixels: &[u8], workers: &Workers) -> Result<()> {
        let whole = region_of(self.shape, Some(region)).and_then(|region| self.parts.is_whole(0, region));
        whole.map_err(|cause| Error::write(&self.path, cause))?;
        self.put_size(0, region, pixels, workers)
    }

    /// Writes a region of one size.
    fn put_size(&self, size: usize, region: Region, pixels: &[u8], workers: &Workers) -> Result<()> {
        let shape = self.parts.shape(size);
        let fits = || {
            region_of(shape, Some(region))?;
            let wanted = shape.depth * region.height * region.width * pixel_bytes(shape, self.dtype);
            if pixels.len() != wanted {
                return Err(format!("a region of {region} takes {wanted} bytes, not {}", pixels.len()));
            }
            Ok(())
        };
        fits().map_err(|cause: String| Error::write(&self.path, cause))?;
        let put = self.parts.put(self.unfinished.file(), size, region, pixels, workers);
        put.map_err(|cause| {
            self.failed.get_or_init(|| cause.clone());
            Error::write(&self.path, cause)
        })
    }

    /// Completes the file and moves it into place.
    ///
    /// # Errors
    /// [`Error::File`] with the cause if a region failed; if pixels are missing; if writing or
    /// moving the file fails. An existing file at the path then stays.
    pub fn finish(self) -> Result<()> {
        let PictureWriter { path, unfinished: begun, parts, failed, .. } = self;
        let finish = || {
            if let Some(cause) = failed.into_inner() {
                return Err(cause);
            }
            parts.is_complete()?;
            if begun.is_of_other() {
                return Ok(());
            }
            parts.finish(begun.file())?;
            begun.move_into_place()
        };
        finish().map_err(|cause| Error::write(&path, cause))
    }
}

/// The part of a process in writing an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkRole<'a> {
    /// It begins the output and finishes it; others may write parts, if it can be [opened](RegionSink::place) by them.
    First,
    /// It writes parts of what the first process has begun at this place.
    Other(&'a SinkPlace),
}

/// An unfinished output that other processes can open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkPlace {
    /// Its temporary path.
    pub path: PathBuf,
    /// The parts of all processes are in one file. Only processes of one host then share it: file systems of several
    /// hosts write whole pages, which may contain rows of two processes.
    pub is_one_file: bool,
    /// Another host has begun it: what is written is complete only when it is flushed.
    pub is_of_other_host: bool,
    /// Numbers that the sinks of other processes need, whose meaning the sink knows.
    pub layout: Vec<u64>,
}

impl SinkPlace {
    /// Length of the number of a file.
    const NUMBER: usize = if cfg!(unix) { 2 } else { 0 };

    /// The number of a picture file: its path may be of another file for other processes.
    pub(super) fn number(&self) -> &[u64] {
        self.layout.get(..SinkPlace::NUMBER).unwrap_or_default()
    }

    /// What the format of a picture file needs.
    fn of_format(&self) -> &[u64] {
        self.layout.get(SinkPlace::NUMBER..).unwrap_or_default()
    }
}

/// A sink to which `save_to` writes an image region by region.
///
/// Its output must not be visible before it is finished. A sink that is dropped before leaves nothing.
pub trait RegionSink: Send {
    /// Rows and columns of chunks, such as tiles: regions are multiples. The last ones end with the image.
    fn chunk(&self) -> (usize, usize);

    /// Writes a region of all levels and channels that consists of whole [chunks](RegionSink::chunk): interleaved
    /// samples, level by level, row by row, without gaps. Each pixel is passed once; `workers` may help.
    ///
    /// # Errors
    /// The cause, without the path. No further call follows.
    fn put(&mut self, region: Region, pixels: &[u8], workers: &Workers) -> std::result::Result<(), String>;

    /// Levels that are written at once: an image may be written in slabs of a multiple of them. By default more than
    /// any image has.
    fn levels(&self) -> usize {
        usize::MAX
    }

    /// [Writes](RegionSink::put) a region of some levels only: a multiple of [`RegionSink::levels`], or the last ones.
    /// By default, only all levels are passed.
    ///
    /// # Errors
    /// The cause, without the path. No further call follows.
    fn put_levels(
        &mut self,
        _levels: Range<usize>,
        region: Region,
        pixels: &[u8],
        workers: &Workers,
    ) -> std::result::Result<(), String> {
        self.put(region, pixels, workers)
    }

    /// The unfinished output, if other processes can open it ([`SinkRole::Other`]) and write parts of it; `None`, the
    /// default, if one process writes.
    fn place(&self) -> Option<SinkPlace> {
        None
    }

    /// Leaves a region to another process, which writes it. By default, nothing is done.
    ///
    /// # Errors
    /// The cause, without the path. No further call follows.
    fn leave(&mut self, _levels: Range<usize>, _region: Region) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Completes the output and moves it into place. If several processes write, the first one finishes last and moves
    /// it.
    ///
    /// # Errors
    /// The cause, without the path.
    fn finish(self: Box<Self>) -> std::result::Result<(), String>;
}

impl RegionSink for PictureWriter {
    fn chunk(&self) -> (usize, usize) {
        self.chunk()
    }

    fn put(&mut self, region: Region, pixels: &[u8], workers: &Workers) -> std::result::Result<(), String> {
        PictureWriter::put(self, region, pixels, workers).map_err(cause_of)
    }

    fn finish(self: Box<Self>) -> std::result::Result<(), String> {
        PictureWriter::finish(*self).map_err(cause_of)
    }
}

/// One size of a file.
struct SizeSink {
    file: Arc<PictureWriter>,
    size: usize,
}

impl RegionSink for SizeSink {
    fn chunk(&self) -> (usize, usize) {
        self.file.parts.chunk(self.size)
    }

    fn put(&mut self, region: Region, pixels: &[u8], workers: &Workers) -> std::result::Result<(), String> {
        self.file.put_size(self.size, region, pixels, workers).map_err(cause_of)
    }

    fn place(&self) -> Option<SinkPlace> {
        let path = self.file.unfinished.place().filter(|_| self.file.parts.is_shareable())?;
        let number = file_number(self.file.unfinished.file());
        let layout = [&number[..], &self.file.parts.layout()].concat();
        Some(SinkPlace { path, is_one_file: true, is_of_other_host: false, layout })
    }

    fn leave(&mut self, _: Range<usize>, region: Region) -> std::result::Result<(), String> {
        self.file.parts.leave(region)
    }

    fn finish(self: Box<Self>) -> std::result::Result<(), String> {
        Arc::into_inner(self.file).map_or(Ok(()), |file| file.finish().map_err(cause_of))
    }
}

/// A file that consists of a header and pixels as in memory, up to their byte order.
pub(super) fn of_rows((header, order): (Vec<u8>, SampleConversion), file: &FileSpec) -> Box<dyn RegionFile> {
    let (shape, size) = (file.shape, file.stored.size());
    Box::new(RasterWriter { header, order, shape, size, written: Mutex::default(), count: Count::default() })
}

/// A file of pixels, level by level, row by row.
#[derive(Debug)]
struct RasterWriter {
    header: Vec<u8>,
    order: SampleConversion,
    shape: Shape,
    /// Bytes of a sample.
    size: usize,
    /// Regions written so far.
    written: Mutex<Vec<Region>>,
    count: Count,
}

impl RasterWriter {
    /// Bytes written at a time, if rows are contiguous: they stay in the cache.
    const AT_ONCE: usize = 1 << 20;

    /// Records that a region is written, once.
    fn enter(&self, region: Region) -> WriteResult<()> {
        if region.height * region.width == 0 {
            return Ok(());
        }
        let apart = |a: &Region, b: &Region| {
            let beside = |at: usize, n: usize, other: usize| at + n <= other;
            beside(a.top, a.height, b.top)
                || beside(b.top, b.height, a.top)
                || beside(a.left, a.width, b.left)
                || beside(b.left, b.width, a.left)
        };
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if !written.iter().all(|known| apart(known, &region)) {
            return Err("pixels of this region were written before".into());
        }
        written.push(region);
        Ok(())
    }
}

impl RegionFile for RasterWriter {
    fn bytes(&self) -> u64 {
        self.header.len() as u64 + (self.shape.len() * self.size) as u64
    }

    fn begin(&mut self, to: &File, _: &Path) -> WriteResult<()> {
        to.write_at(0, &self.header)
    }

    fn shape(&self, _: usize) -> Shape {
        self.shape
    }

    fn is_shareable(&self) -> bool {
        true
    }

    /// Bytes of the header, which tells properties that other processes may not know.
    fn layout(&self) -> Vec<u64> {
        vec![self.header.len() as u64]
    }

    fn join(&mut self, layout: &[u64]) -> WriteResult<()> {
        let bytes = layout.first().and_then(|bytes| usize::try_from(*bytes).ok()).ok_or("a file without a layout")?;
        self.header = vec![0; bytes];
        Ok(())
    }

    fn leave(&self, region: Region) -> WriteResult<()> {
        self.enter(region)
    }

    fn put(&self, to: &File, _: usize, region: Region, pixels: &[u8], workers: &Workers) -> WriteResult<()> {
        let Shape { depth, height, width, channels, .. } = self.shape;
        let pixel = channels * self.size;
        let together = if region.width == width { (RasterWriter::AT_ONCE / (width * pixel)).max(1) } else { 1 };
        let parts = |z| (0..region.height).step_by(together).map(move |y| (z, y));
        let parts: Vec<(usize, usize)> = (0..depth).flat_map(parts).collect();
        let row = region.width * pixel;
        let one = |scratch: &mut Vec<u8>, (z, y): (usize, usize)| {
            let rows = together.min(region.height - y);
            let from = &pixels[(z * region.height + y) * row..][..rows * row];
            let place = (z * height + region.top + y) as u64 * width as u64 + region.left as u64;
            let at = self.header.len() as u64 + place * pixel as u64;
            if self.order == SampleConversion::Unchanged {
                to.write_at(at, from)?;
            } else {
                scratch.clear();
                scratch.extend_from_slice(from);
                self.order.apply(scratch, self.size);
                to.write_at(at, scratch)?;
            }
            self.count.chunks(rows);
            self.count.bytes(from.len());
            Ok::<(), String>(())
        };
        self.enter(region)?;
        workers.each_by(WRITERS, parts, one)
    }

    fn is_complete(&self) -> WriteResult<()> {
        let regions = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let written = self.shape.depth * regions.iter().map(|r| r.height * r.width).sum::<usize>();
        let all = self.shape.depth * self.shape.area();
        if written == all {
            return Ok(());
        }
        Err(format!("{written} pixels were written, and it has {all}"))
    }

    fn counted(&self) -> FileTraffic {
        self.count.traffic()
    }
}
