//! Picture files that are read region by region.

use std::fmt::Debug;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::count::FileTraffic;
use super::{
    Count, DecodeResources, OpenOptions, Picture, PictureSource, Raster, cause_of, check_size, decode, pixel_bytes,
    region_of,
};
use horus_base::dtype::DType;
use horus_base::error::{Error, Result};
use horus_base::shape::{Region, Shape};
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;

/// An open picture file, read region by region from any number of threads. Its headers are read once, its pixels for
/// each region.
///
/// TIFF files decode the strips or tiles that contain the region; npy and PNM files read its rows. Other files are
/// decoded as a whole for the first region, and stay in memory. A reader belongs to no session: with several ranks,
/// each opens its own.
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
    /// The region of the picture to read.
    within: Region,
    /// Shape of this region.
    shape: Shape,
    dtype: DType,
    chunk: (usize, usize),
    levels: Vec<(usize, usize)>,
    /// A warning about pages of the file that are not read.
    unread: Option<String>,
    /// Parts of the picture can be decoded separately.
    by_regions: bool,
    /// Tells the file from others at its path.
    identity: Option<u64>,
    pixels: Box<dyn RegionDecoder>,
}

/// Pixels of an open file, read region by region.
pub(super) trait RegionDecoder: Debug + Send + Sync {
    /// The picture's shape, after orientation.
    fn shape(&self) -> Shape;

    fn dtype(&self) -> DType;

    /// Rows and columns that are decoded at once: of a tile, a strip, a row, or the whole picture.
    fn tile(&self) -> (usize, usize);

    /// Rows and columns of a tile, if the file has tiles.
    fn tiles(&self) -> Option<(usize, usize)> {
        None
    }

    /// Rows and columns that are read at once.
    fn chunk(&self) -> (usize, usize) {
        self.tile()
    }

    /// Levels that are read at once.
    fn levels(&self) -> usize {
        self.shape().depth
    }

    /// Rows and columns of the page and of its smaller copies.
    fn sizes(&self) -> Vec<(usize, usize)> {
        vec![(self.shape().height, self.shape().width)]
    }

    /// Bytes that a thread uses, in addition to the pixels, to decode a strip or tile.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Reads a region inside the picture, of some levels, without gaps.
    fn read(&self, levels: Range<usize>, region: Region, to: &mut [u8], workers: &Workers) -> ReadResult<()>;

    /// Fails if bytes of a region are missing in the file.
    fn is_complete(&self, _region: Region) -> ReadResult<()> {
        Ok(())
    }

    /// The amount read.
    fn counted(&self) -> FileTraffic;
}

/// A result whose error is the cause, without the path.
type ReadResult<T> = std::result::Result<T, String>;

/// Pixels stored in a file as in memory.
pub(super) fn of_raster(source: PictureSource<'static>, raster: Raster) -> Box<dyn RegionDecoder> {
    Box::new(RasterReader { source, raster, count: Count::default() })
}

#[derive(Debug)]
struct RasterReader {
    source: PictureSource<'static>,
    raster: Raster,
    count: Count,
}

impl RegionDecoder for RasterReader {
    fn shape(&self) -> Shape {
        self.raster.shape
    }

    fn dtype(&self) -> DType {
        self.raster.dtype.stored()
    }

    fn tile(&self) -> (usize, usize) {
        (1, self.raster.shape.width)
    }

    fn read(&self, levels: Range<usize>, region: Region, to: &mut [u8], workers: &Workers) -> ReadResult<()> {
        self.raster.fill(&self.source, region, to, workers)?;
        self.count.chunks(levels.len() * region.height);
        self.count.bytes(to.len());
        Ok(())
    }

    fn counted(&self) -> FileTraffic {
        self.count.traffic()
    }
}

/// A picture that is decoded as a whole on demand.
#[derive(Debug)]
struct WholePictureReader {
    source: PictureSource<'static>,
    options: OpenOptions,
    shape: Shape,
    dtype: DType,
    decoded: OnceLock<ReadResult<Picture>>,
    count: Count,
}

impl WholePictureReader {
    fn of(source: PictureSource<'static>, options: OpenOptions) -> ReadResult<WholePictureReader> {
        let unbounded = OpenOptions { max_pixels: u64::MAX, ..options };
        let header = decode::guarded(|| source.format().header(&source, &unbounded))?;
        let (shape, dtype) = (options.orientation.shape(header.shape, header.orientation), header.dtype.stored());
        Ok(WholePictureReader { source, options, shape, dtype, decoded: OnceLock::new(), count: Count::default() })
    }
}

impl RegionDecoder for WholePictureReader {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn tile(&self) -> (usize, usize) {
        (self.shape.height, self.shape.width)
    }

    fn read(&self, _: Range<usize>, region: Region, to: &mut [u8], _: &Workers) -> ReadResult<()> {
        let decode = || {
            // On this thread only: others wait for it, and they may be all the workers.
            let means =
                DecodeResources { workers: &Workers::alone(), allocate: &HostBuffer::try_zeroed, reserve: None };
            let (picture, _) = decode::decode(&self.source, &self.options, means)?;
            self.count.chunk();
            self.count.bytes(usize::try_from(self.source.size()).unwrap_or(usize::MAX));
            Ok(picture)
        };
        self.decoded.get_or_init(decode).as_ref().map_err(Clone::clone)?.copy(region, to);
        Ok(())
    }

    fn counted(&self) -> FileTraffic {
        self.count.traffic()
    }
}

impl PictureReader {
    /// Opens a picture file and reads its headers. The options are those of `AnyImage::open_with`. With a region,
    /// coordinates are relative to its first pixel. [`OpenOptions::max_pixels`] bounds each region that is read, not
    /// the picture.
    ///
    /// # Errors
    /// As `AnyImage::open_with`, as far as the headers show; also if strips, tiles or rows are beyond the end of the
    /// file.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<PictureReader> {
        let path = path.as_ref();
        let reader = PictureSource::open(path)
            .and_then(|source| PictureReader::of(source, path, options))
            .map_err(|cause| Error::read(path, cause))?;
        reader.warn_unread();
        Ok(reader)
    }

    /// [`PictureReader::open`] for an open file, without its warning.
    pub(super) fn of(source: PictureSource<'static>, path: &Path, options: &OpenOptions) -> ReadResult<PictureReader> {
        let (format, identity) = (source.format(), source.identity());
        decode::one_picture(format, options)?;
        // A region does not require that the whole fits the file. A file decoded as a whole is bounded as a whole.
        let unbounded = OpenOptions { max_pixels: u64::MAX, ..*options };
        let regions = format.regions(&source, &unbounded)?;
        let by_regions = regions.is_some();
        // A requested page ends the search for directories; the rest is counted once.
        let unread = format.unread(&source, options);
        let pixels = match regions {
            Some(pixels) => pixels,
            None => Box::new(WholePictureReader::of(source, OpenOptions { region: None, ..*options })?),
        };
        let (whole, chunk) = (pixels.shape(), pixels.tile());
        let within = region_of(whole, options.region)?;
        pixels.is_complete(within)?;
        let shape = Shape { height: within.height, width: within.width, ..whole };
        Ok(PictureReader {
            path: path.to_owned(),
            options: *options,
            within,
            shape,
            dtype: pixels.dtype(),
            chunk: (chunk.0.min(shape.height), chunk.1.min(shape.width)),
            levels: pixels.sizes(),
            unread,
            by_regions,
            identity,
            pixels,
        })
    }

    /// A file that another process has opened, and described; `None` if it cannot be opened here. Warns of nothing.
    pub fn reopen(path: &Path, options: &OpenOptions) -> Option<PictureReader> {
        PictureReader::of(PictureSource::open(path).ok()?, path, options).ok()
    }

    /// Warns of ignored pages.
    pub(super) fn warn_unread(&self) {
        decode::warn_unread(&self.path.display(), self.unread.as_deref());
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

    /// Rows and columns that are decoded at once: of a tile, a strip, a row, or the whole picture.
    pub fn chunk(&self) -> (usize, usize) {
        self.chunk
    }

    /// Rows and columns of a tile, if the file has tiles.
    pub(super) fn tiles(&self) -> Option<(usize, usize)> {
        self.pixels.tiles()
    }

    /// Rows and columns of the page and of its smaller copies, as stored; [`OpenOptions::level`]
    /// selects one.
    pub fn levels(&self) -> &[(usize, usize)] {
        &self.levels
    }

    /// Returns `true` if parts of the picture can be decoded separately.
    pub(super) fn by_regions(&self) -> bool {
        self.by_regions
    }

    /// The amount read since the file was opened.
    pub fn counted(&self) -> FileTraffic {
        self.pixels.counted()
    }

    /// Reads a region of all levels and channels.
    ///
    /// # Errors
    /// [`Error::File`] if the region is not inside the picture or has more than [`OpenOptions::max_pixels`] pixels, if
    /// a part of the file cannot be read or decoded (the strip or tile is named), or if there is not enough memory.
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

    /// Reads a region of all levels and channels, with all workers, into `to`: interleaved samples, level by level, row
    /// by row, without gaps.
    ///
    /// # Errors
    /// As [`PictureReader::read`], and if `to` is not as long as the region; part of `to` may then have changed.
    pub fn read_into(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<()> {
        self.fill(0..self.shape.depth, region, to, workers).map_err(|cause| Error::read(&self.path, cause))
    }

    /// Converts a region of the picture being read to a region of the whole picture.
    fn placed(&self, region: Region) -> ReadResult<Region> {
        let region = region_of(self.shape, Some(region))?;
        check_size((self.shape.depth * region.height) as u64, region.width as u64, &self.options)?;
        Ok(Region { top: self.within.top + region.top, left: self.within.left + region.left, ..region })
    }

    fn fill(&self, levels: Range<usize>, region: Region, to: &mut [u8], workers: &Workers) -> ReadResult<()> {
        let region = self.placed(region)?;
        let rows = levels.len() * region.height;
        let wanted = rows * region.width * pixel_bytes(self.shape, self.dtype);
        if to.len() != wanted {
            return Err(format!("a region of {region} takes {wanted} bytes, not {}", to.len()));
        }
        decode::guarded(|| self.pixels.read(levels, region, to, workers))
    }
}

/// A source of pixels, such as a file, that is read region by region on demand, for `AnyImage::from_source`.
pub trait RegionSource: Send + Sync {
    /// Levels, rows, columns and channels.
    fn shape(&self) -> Shape;

    /// The element type; truth values are bytes 0 and 1.
    fn dtype(&self) -> DType;

    /// Rows and columns that are read at once, such as a tile's: regions are multiples of them where that costs
    /// nothing.
    fn chunk(&self) -> (usize, usize);

    /// Reads a region inside the picture, of all levels and channels, into memory of its size: interleaved samples,
    /// level by level, row by row, without gaps. Called on any thread, several at a time; `workers` may help.
    ///
    /// # Errors
    /// The cause, without the path.
    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> std::result::Result<(), String>;

    /// Levels that are read at once. If levels do not depend on each other, an image is read in slabs of a multiple of
    /// them. All levels by default.
    fn levels(&self) -> usize {
        self.shape().depth
    }

    /// Bytes that each thread uses, in addition to the pixels, to read a chunk: 0 if pixels are read in place. The
    /// bytes of a chunk by default.
    fn scratch_bytes(&self) -> usize {
        let (rows, columns) = self.chunk();
        rows.saturating_mul(columns).saturating_mul(pixel_bytes(self.shape(), self.dtype()))
    }

    /// [Reads](RegionSource::fill) a region of some levels only: a multiple of [`RegionSource::levels`], or the last
    /// ones.
    ///
    /// # Errors
    /// The cause, without the path; also if these levels cannot be read separately.
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

    /// A number that tells these pixels from others at the same path, if several processes may open them and each
    /// reads what it needs; `None`, the default, if one process reads for all.
    fn identity(&self) -> Option<u64> {
        None
    }

    /// Returns `true` if only some regions can be read, those of the requested results. Evaluations then compute only
    /// these results, and no other value of the program.
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
        let chunk = self.pixels.chunk();
        (chunk.0.min(self.chunk.0), chunk.1.min(self.chunk.1))
    }

    fn scratch_bytes(&self) -> usize {
        self.pixels.scratch_bytes()
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> std::result::Result<(), String> {
        self.read_into(region, to, workers).map_err(cause_of)
    }

    /// Pages are read one by one.
    fn levels(&self) -> usize {
        self.pixels.levels()
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

    /// Of files whose parts are decoded separately.
    fn identity(&self) -> Option<u64> {
        self.identity.filter(|_| self.by_regions)
    }
}
