//! Picture files read region by region.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::bounds::check_size;
use super::codec::Header;
use super::count::{Count, FileTraffic};
use super::load::{Kind, Means, Source};
use super::npy::read as read_npy;
use super::raster::Raster;
use super::tiff::read::{self as read_tiff, Pages};
use super::{OpenOptions, Picture, cause_of, decode, pixel_bytes, pnm, region_of};
use horus_base::dtype::DType;
use horus_base::error::{Error, Result};
use horus_base::shape::{Region, Shape};
use horus_host::host::buffer::HostBuffer;
use horus_host::host::workers::Workers;

/// An open picture file, read region by region from any number of threads: its headers are read
/// once, its pixels as regions require.
///
/// For TIFF files the strips or tiles that contain the region are decoded, for npy and PNM files
/// its rows are read. Other files are decoded as a whole for the first region, and kept. It belongs
/// to no session: with several ranks, each opens its own.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// use horus::io::PictureReader;
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let file = folder.path().join("large.npy");
/// Image::from_fn(&session, 300, 400, |y, x| (y * x) as u16).save(&file)?;
/// let reader = PictureReader::open(&file, &OpenOptions::default())?;
/// assert_eq!((reader.shape().height, reader.chunk()), (300, (1, 400)));
/// let part = reader.read(Region::new(100, 10, 20, 30))?;
/// assert_eq!((part.shape().height, part.shape().width), (20, 30));
/// assert_eq!(reader.counted().bytes, 20 * 30 * 2);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[derive(Debug)]
pub struct PictureReader {
    path: PathBuf,
    options: OpenOptions,
    /// The part of the picture to read.
    within: Region,
    /// Shape of that part.
    shape: Shape,
    dtype: DType,
    chunk: (usize, usize),
    levels: Vec<(usize, usize)>,
    /// A warning about pages of the file that are not read.
    unread: Option<String>,
    pixels: Pixels,
}

#[derive(Debug)]
enum Pixels {
    Pages(Pages<'static>),
    Raster(Source<'static>, Raster, Count),
    /// Decoded as a whole on demand.
    Whole(Source<'static>, OnceLock<std::result::Result<Picture, String>>, Count),
}

impl PictureReader {
    /// Opens a picture file and reads its headers. The options are those of
    /// `AnyImage::open_with`; with a region, coordinates are relative
    /// to its first pixel. [`OpenOptions::max_pixels`] bounds each part that is read, not the
    /// picture.
    ///
    /// # Errors
    /// As `AnyImage::open_with`, as far as the headers show; also if
    /// strips, tiles or rows lie beyond the end of the file.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<PictureReader> {
        let path = path.as_ref();
        let reader = Source::open(path)
            .and_then(|source| PictureReader::of(source, path, options))
            .map_err(|cause| Error::read(path, cause))?;
        reader.tell_unread();
        Ok(reader)
    }

    /// [`PictureReader::open`] of an open file, without its warning.
    pub(super) fn of(
        source: Source<'static>,
        path: &Path,
        options: &OpenOptions,
    ) -> std::result::Result<PictureReader, String> {
        decode::one_picture(source.kind(), options)?;
        // A file decoded as a whole is bounded as a whole.
        let unbounded = OpenOptions { max_pixels: u64::MAX, region: None, ..*options };
        let raster = match source.kind() {
            Kind::Npy => Some(read_npy::raster(&source, &unbounded)?).filter(|(_, fortran)| !fortran).map(|(r, _)| r),
            Kind::Pnm => pnm::raster(&source, &unbounded)?,
            _ => None,
        };
        let mut unread = None;
        let (shape, dtype, chunk, levels, pixels) = if source.kind() == Kind::Tiff {
            // A region does not require that the whole fits into the file.
            let within = OpenOptions { region: options.region, ..unbounded };
            let (pages, found) = decode::guarded(|| read_tiff::open(&source, &within))?;
            let levels = found.levels(options.page.unwrap_or(0));
            // A requested page ends the search for directories; the rest is counted once.
            unread = decode::guarded(|| Ok(read_tiff::unread(&source, options))).ok().flatten();
            (pages.shape(), pages.dtype(), pages.tile(), levels, Pixels::Pages(pages))
        } else if let Some(raster) = raster {
            let shape = raster.shape;
            let pixels = Pixels::Raster(source, raster, Count::default());
            (shape, raster.dtype.stored(), (1, shape.width), vec![(shape.height, shape.width)], pixels)
        } else {
            let (shape, dtype) = match source.kind() {
                Kind::Npy => {
                    read_npy::describe(&source, &unbounded).map(|(shape, dtype, _)| (shape, dtype.stored()))?
                }
                kind => {
                    let header = decode::guarded(|| Header::of(kind, &source))?;
                    (options.orientation.shape(header.shape, header.noted), header.dtype)
                }
            };
            let whole = (shape.height, shape.width);
            (shape, dtype, whole, vec![whole], Pixels::Whole(source, OnceLock::new(), Count::default()))
        };
        let within = region_of(shape, options.region)?;
        if let Pixels::Pages(pages) = &pixels {
            pages.is_complete(within)?;
        }
        let shape = Shape { height: within.height, width: within.width, ..shape };
        let chunk = (chunk.0.min(shape.height), chunk.1.min(shape.width));
        let path = path.to_owned();
        Ok(PictureReader { path, options: *options, within, shape, dtype, chunk, levels, unread, pixels })
    }

    /// Warns of ignored pages.
    pub(super) fn tell_unread(&self) {
        decode::tell_unread(&self.path.display(), self.unread.as_deref());
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Levels, rows, columns and channels, after orientation.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Rows and columns that are decoded at once: of a tile, of a strip, of a row, or of the whole
    /// picture.
    pub fn chunk(&self) -> (usize, usize) {
        self.chunk
    }

    /// Rows and columns of a tile, if it has tiles.
    pub(super) fn tiles(&self) -> Option<(usize, usize)> {
        if let Pixels::Pages(pages) = &self.pixels { pages.tiles() } else { None }
    }

    /// Rows and columns of the page and of its smaller copies, as stored; [`OpenOptions::level`]
    /// selects one.
    pub fn levels(&self) -> &[(usize, usize)] {
        &self.levels
    }

    /// Returns `true` if less than the whole picture can be decoded.
    pub(super) fn by_regions(&self) -> bool {
        !matches!(self.pixels, Pixels::Whole(..))
    }

    /// The amount read since the file was opened.
    pub fn counted(&self) -> FileTraffic {
        match &self.pixels {
            Pixels::Pages(pages) => pages.counted(),
            Pixels::Raster(.., count) | Pixels::Whole(.., count) => count.so_far(),
        }
    }

    /// A region of all levels and channels.
    ///
    /// # Errors
    /// [`Error::File`] if the region does not lie inside or has more than [`OpenOptions::max_pixels`] pixels, if a part of the file
    /// cannot be read or decoded (the strip or tile is named), or if there is not enough memory.
    pub fn read(&self, region: Region) -> Result<Picture> {
        let read = || {
            self.placed(region)?;
            let shape = Shape { height: region.height, width: region.width, ..self.shape };
            let mut pixels = HostBuffer::try_zeroed(shape.len() * self.dtype.size()).map_err(|e| e.to_string())?;
            self.fill(0..shape.depth, region, pixels.bytes_mut(), &Workers::alone())?;
            Ok(Picture::from_pixels(shape, self.dtype, pixels))
        };
        read().map_err(|cause: String| Error::read(&self.path, cause))
    }

    /// Reads a region of all levels and channels, by all workers, into `to`: level by level, row by row, the samples of a pixel
    /// beside each other, without gaps.
    ///
    /// # Errors
    /// As [`PictureReader::read`], and if `to` is not as long as the region; it may be changed in part then.
    pub fn read_into(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<()> {
        self.fill(0..self.shape.depth, region, to, workers).map_err(|cause| Error::read(&self.path, cause))
    }

    /// The region of the whole picture for a region of the part being read.
    fn placed(&self, region: Region) -> std::result::Result<Region, String> {
        let region = region_of(self.shape, Some(region))?;
        check_size((self.shape.depth * region.height) as u64, region.width as u64, &self.options)?;
        Ok(Region { top: self.within.top + region.top, left: self.within.left + region.left, ..region })
    }

    fn fill(
        &self,
        levels: Range<usize>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> std::result::Result<(), String> {
        let region = self.placed(region)?;
        let rows = levels.len() * region.height;
        let wanted = rows * region.width * pixel_bytes(self.shape, self.dtype);
        if to.len() != wanted {
            return Err(format!("a region of {region} takes {wanted} bytes, not {}", to.len()));
        }
        match &self.pixels {
            Pixels::Pages(pages) => decode::guarded(|| pages.read(levels, region, to, workers)),
            Pixels::Raster(source, raster, count) => {
                raster.fill(source, region, to, workers)?;
                count.chunks(rows);
                count.bytes(wanted);
                Ok(())
            }
            Pixels::Whole(source, decoded, count) => {
                let decode = || {
                    let whole = OpenOptions { region: None, ..self.options };
                    // By this thread only: others wait for it, and they may be all the workers.
                    let means = Means { workers: &Workers::alone(), room: &HostBuffer::try_zeroed, reserve: None };
                    let (picture, _) = decode::decode(source, &whole, means)?;
                    count.chunk();
                    count.bytes(usize::try_from(source.size()).unwrap_or(usize::MAX));
                    Ok(picture)
                };
                decoded.get_or_init(decode).as_ref().map_err(Clone::clone)?.copy(region, to);
                Ok(())
            }
        }
    }
}

/// A source of pixels, such as a file, that is read region by region on demand, for
/// `AnyImage::from_source`.
pub trait RegionSource: Send + Sync {
    /// Levels, rows, columns and channels.
    fn shape(&self) -> Shape;

    /// The element type; truth values are bytes 0 and 1.
    fn dtype(&self) -> DType;

    /// Rows and columns that are read at once, such as those of a tile: regions are multiples of
    /// them where that costs nothing.
    fn chunk(&self) -> (usize, usize);

    /// Reads a region, which lies inside, of all levels and channels into memory of its size: level
    /// by level, row by row, the samples of a pixel beside each other, without gaps. On any thread,
    /// several at a time; `workers` may help.
    ///
    /// # Errors
    /// The cause, without the path.
    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> std::result::Result<(), String>;

    /// Levels that are read at once: an image is read in slabs of a multiple of them where its levels
    /// do not depend on each other. All levels by default.
    fn levels(&self) -> usize {
        self.shape().depth
    }

    /// Bytes that each thread takes, beside the pixels, while it reads a chunk: none, if pixels are read in place. Those of
    /// a chunk by default.
    fn beside(&self) -> usize {
        let (rows, columns) = self.chunk();
        rows.saturating_mul(columns).saturating_mul(pixel_bytes(self.shape(), self.dtype()))
    }

    /// [Reads](RegionSource::fill) a region of some levels only, a multiple of
    /// [`RegionSource::levels`] or the last ones.
    ///
    /// # Errors
    /// The cause, without the path: also if these levels are not read apart from others.
    fn fill_levels(
        &self,
        levels: Range<usize>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> std::result::Result<(), String> {
        let depth = self.shape().depth;
        if levels != (0..depth) {
            return Err(format!("levels {levels:?} of {depth} are not read apart from the others"));
        }
        self.fill(region, to, workers)
    }

    /// The amount read so far.
    fn counted(&self) -> FileTraffic;

    /// Returns `true` if only some regions can be read, those that the requested results need: then
    /// evaluations compute these only, and no other value that the program holds.
    fn is_partial(&self) -> bool {
        false
    }
}

impl RegionSource for PictureReader {
    fn shape(&self) -> Shape {
        self.shape()
    }

    fn dtype(&self) -> DType {
        self.dtype()
    }

    fn chunk(&self) -> (usize, usize) {
        let chunk = if let Pixels::Pages(pages) = &self.pixels { pages.chunk() } else { self.chunk };
        (chunk.0.min(self.chunk.0), chunk.1.min(self.chunk.1))
    }

    fn beside(&self) -> usize {
        if let Pixels::Pages(pages) = &self.pixels { pages.beside() } else { 0 }
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> std::result::Result<(), String> {
        self.read_into(region, to, workers).map_err(cause_of)
    }

    /// Pages are read one by one.
    fn levels(&self) -> usize {
        if matches!(self.pixels, Pixels::Pages(_)) { 1 } else { self.shape.depth }
    }

    fn fill_levels(
        &self,
        levels: Range<usize>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> std::result::Result<(), String> {
        let depth = self.shape.depth;
        if levels.is_empty() || levels.end > depth || (RegionSource::levels(self) == depth && levels != (0..depth)) {
            return Err(format!("levels {levels:?} of {depth} are not read apart from the others"));
        }
        self.fill(levels, region, to, workers)
    }

    fn counted(&self) -> FileTraffic {
        self.counted()
    }
}
