//! Images on demand: an evaluation reads only the regions that it needs.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::device::Geometry;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::StridedCopy;
use crate::host::buffer::HostBuffer;
use crate::host::workers::Workers;
use crate::ir::graph::{Graph, Op, ValueId};
use crate::plan::state::Placement;
use crate::region::{Rect, RegionSupply};
use crate::session::{Session, SessionState};
use crate::shape::{Region, Shape, Window};
use horus_files::{FileTraffic, RegionSource, TemporaryImage};

/// Pixels that were read on the rank that has them.
pub(crate) struct FetchedPixels {
    pub(crate) pixels: Option<HostBuffer>,
    pub(crate) read: FileTraffic,
}

/// An unread image.
#[derive(Clone)]
pub(crate) struct OnDemandImage {
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    /// Rows and columns that are read at once.
    pub(crate) chunk: (usize, usize),
    /// Levels that are read at once.
    pub(crate) levels: usize,
    /// Bytes, apart from the pixels, that each thread uses while it reads a chunk.
    pub(crate) beside: usize,
    /// Bytes for decoding an image that is decoded as a whole, if there were fewer: then it cannot be read.
    pub(crate) missing_bytes: usize,
    /// Levels of the source that the image has.
    pub(crate) part: Range<usize>,
    /// The file's path, for messages.
    pub(crate) path: Arc<Path>,
    /// Source of the pixels, on rank 0; of the same pixels on every rank, if it is shared.
    pub(crate) source: Option<Arc<dyn RegionSource>>,
    /// Every rank has a source.
    pub(crate) is_shared: bool,
}

/// An image in memory as a source of regions.
struct InMemorySource {
    shape: Shape,
    dtype: DType,
    pixels: HostBuffer,
}

impl RegionSource for InMemorySource {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn chunk(&self) -> (usize, usize) {
        (1, 1)
    }

    fn levels(&self) -> usize {
        1
    }

    fn scratch_bytes(&self) -> usize {
        0
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        self.fill_levels(0..self.shape.depth, region, to, workers)
    }

    fn fill_levels(
        &self,
        levels: Range<usize>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> Result<(), String> {
        let level = self.shape.area() * self.shape.channels * self.shape.pixel_bytes(self.dtype);
        let of = Shape { depth: levels.len(), ..self.shape };
        let Region { top, left, height, width } = region;
        let pieces = pieces(of, Rect::at(top, left, height, width), self.shape.pixel_bytes(self.dtype));
        workers.copy_pieces(&self.pixels.bytes()[level * levels.start..level * levels.end], to, &pieces);
        Ok(())
    }

    fn counted(&self) -> FileTraffic {
        FileTraffic::default()
    }
}

/// A source that is decoded once, to a temporary file, because its chunks are so large that regions would decode them
/// again and again. If the disk is full, regions read the source itself.
struct SpooledSource {
    from: Arc<dyn RegionSource>,
    /// Rows and columns that are decoded at once.
    part: (usize, usize),
    file: OnceLock<Result<Option<TemporaryImage>, String>>,
}

impl SpooledSource {
    /// Bytes that are decoded at once, if chunks are decoded in parts.
    const AT_ONCE: usize = 256 << 10;

    /// Decodes the source to a temporary file.
    fn file(&self, workers: &Workers) -> Result<Option<TemporaryImage>, String> {
        let (shape, levels) = (self.from.shape(), self.from.levels().max(1));
        let Ok(file) = TemporaryImage::new(shape.stored(), self.from.dtype()) else { return Ok(None) };
        let mut pixels = Vec::new();
        for first in (0..shape.depth).step_by(levels) {
            let levels = first..(first + levels).min(shape.depth);
            for top in (0..shape.height).step_by(self.part.0) {
                for left in (0..shape.width).step_by(self.part.1) {
                    let (height, width) = (self.part.0.min(shape.height - top), self.part.1.min(shape.width - left));
                    let region = Region { top, left, height, width };
                    pixels.resize(
                        levels.len() * height * width * shape.channels * shape.pixel_bytes(self.from.dtype()),
                        0,
                    );
                    self.from.fill_levels(levels.clone(), region, &mut pixels, workers)?;
                    file.put(levels.clone(), region, &pixels)?;
                }
            }
        }
        Ok(Some(file))
    }
}

impl RegionSource for SpooledSource {
    fn shape(&self) -> Shape {
        self.from.shape()
    }

    fn dtype(&self) -> DType {
        self.from.dtype()
    }

    fn chunk(&self) -> (usize, usize) {
        (1, self.shape().width)
    }

    fn levels(&self) -> usize {
        1
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        self.fill_levels(0..self.shape().depth, region, to, workers)
    }

    fn fill_levels(
        &self,
        levels: Range<usize>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> Result<(), String> {
        match self.file.get_or_init(|| self.file(workers)).as_ref().map_err(Clone::clone)? {
            Some(file) => file.fill_levels(levels, region, to, workers),
            None => self.from.fill_levels(levels, region, to, workers),
        }
    }

    fn counted(&self) -> FileTraffic {
        self.from.counted()
    }
}

impl OnDemandImage {
    /// Bytes that reading uses apart from the pixels: each thread decodes a chunk.
    pub(crate) fn decoders(&self, threads: usize) -> usize {
        let OnDemandImage { shape, chunk, .. } = self;
        let chunks = shape.height.div_ceil(chunk.0.max(1)) * shape.width.div_ceil(chunk.1.max(1));
        self.beside.saturating_mul(chunks.min(threads))
    }

    /// The image with a source that is decoded once, to a temporary file; `None` if regions are read in place, or only
    /// some can be read.
    pub(crate) fn once(&self, threads: usize) -> Option<OnDemandImage> {
        if self.beside == 0 || self.chunk.0 <= 1 || self.is_partial() {
            return None;
        }
        let (rows, columns) = self.chunk;
        let pixel = self.levels.max(1) * self.shape.channels * self.shape.pixel_bytes(self.dtype);
        // Whole chunks, one for each thread, or rows of one chunk that is decoded in parts.
        let across = columns.saturating_mul(threads.max(1)).min(self.shape.width);
        let in_parts = self.beside < rows.saturating_mul(columns).saturating_mul(pixel) / 2;
        let most = SpooledSource::AT_ONCE / across.saturating_mul(pixel).max(1);
        let part = (if in_parts { rows.min(most.max(1)) } else { rows }, across);
        let all = part.0.saturating_mul(part.1).saturating_mul(pixel).saturating_add(self.decoders(threads));
        let stock = self.source.as_ref().map(|from| {
            let once = SpooledSource { from: Arc::clone(from), part, file: OnceLock::new() };
            Arc::new(once) as Arc<dyn RegionSource>
        });
        let beside = all.div_ceil(threads.max(1).min(self.shape.height));
        let (chunk, is_shared) = ((1, self.shape.width), false);
        Some(OnDemandImage { chunk, levels: 1, beside, source: stock, is_shared, ..self.clone() })
    }

    /// The image as if it had been read as a whole into memory.
    pub(crate) fn read_before(&self) -> OnDemandImage {
        OnDemandImage { chunk: (1, 1), beside: 0, missing_bytes: 0, source: None, is_shared: false, ..self.clone() }
    }

    /// An image in host memory as a source of regions.
    pub(crate) fn from_memory(Geometry { shape, dtype, .. }: Geometry, pixels: HostBuffer) -> OnDemandImage {
        OnDemandImage::of(Arc::new(InMemorySource { shape, dtype, pixels }), "an image in memory")
    }

    /// An image with this rank's source and this name.
    pub(crate) fn of(stock: Arc<dyn RegionSource>, name: &str) -> OnDemandImage {
        let (shape, dtype, chunk, levels) = (stock.shape().stored(), stock.dtype(), stock.chunk(), stock.levels());
        let (part, path) = (0..shape.depth, Path::new(name).into());
        let beside = stock.scratch_bytes();
        let (missing_bytes, source) = (0, Some(stock));
        OnDemandImage { shape, dtype, chunk, levels, beside, missing_bytes, part, path, source, is_shared: false }
    }

    /// An image that will be in memory and read by regions.
    pub(crate) fn expected(shape: Shape, dtype: DType) -> OnDemandImage {
        let (part, path, chunk) = (0..shape.depth, Path::new("").into(), (1, shape.width));
        OnDemandImage {
            shape,
            dtype: dtype.stored(),
            chunk,
            levels: 1,
            beside: 0,
            missing_bytes: 0,
            part,
            path,
            source: None,
            is_shared: false,
        }
    }

    /// Returns `true` if only some regions can be read.
    pub(crate) fn is_partial(&self) -> bool {
        self.source.as_ref().is_some_and(|stock| stock.is_partial())
    }
}

/// An input of a region's program that is not in memory.
#[derive(Clone)]
pub(crate) struct RegionInput {
    pub(crate) value: ValueId,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    from: RegionInputOrigin,
    /// Where the pixels are once they are read: each rank reads what it has then.
    pub(crate) placement: Placement,
}

#[derive(Clone)]
enum RegionInputOrigin {
    /// Region of an unread image, with the image's name.
    Later(OnDemandImage, ValueId, Rect),
    /// A number, as an image of one pixel.
    Number(i32),
}

/// Error of pixels that could not be read, with its cause.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct PixelReadError {
    path: String,
    cause: String,
}

impl PixelReadError {
    pub(crate) fn error(self) -> Error {
        Error::read(Path::new(&self.path), self.cause)
    }
}

impl RegionInput {
    /// Bytes of the input's pixels.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.len().saturating_mul(self.dtype.size())
    }

    /// Returns `true` if every rank can read the pixels.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(&self.from, RegionInputOrigin::Later(later, ..) if later.is_shared)
    }

    /// Rows that this rank reads.
    pub(crate) fn rows(&self, session: &Session) -> Window {
        self.rows_of(session, session.rank())
    }

    /// Rows that a rank reads.
    pub(crate) fn rows_of(&self, session: &Session, rank: usize) -> Window {
        self.placement.rows(&session.0.partition, rank, self.shape.height)
    }

    /// Bytes of these rows.
    pub(crate) fn bytes_of(&self, rows: Window) -> usize {
        rows.len() * self.shape.width * self.shape.planes() * self.shape.pixel_bytes(self.dtype)
    }

    /// Reads the rows that this rank has. Works on any thread.
    pub(crate) fn read(
        &self,
        session: &Session,
        strips: Option<&mut DecodedStrips>,
    ) -> Result<FetchedPixels, PixelReadError> {
        let nothing = FileTraffic::default();
        let (later, name, region) = match &self.from {
            RegionInputOrigin::Number(n) => {
                return Ok(FetchedPixels { pixels: Some(HostBuffer::from_slice(&[*n])), read: nothing });
            }
            RegionInputOrigin::Later(later, name, region) => (later, *name, *region),
        };
        let rows = self.rows(session);
        let Some(stock) = later.source.as_ref().filter(|_| !rows.is_empty()) else {
            return Ok(FetchedPixels { pixels: None, read: nothing });
        };
        let first = region.rows.start;
        let region = Rect { rows: Window::new(first + rows.start, first + rows.end), ..region };
        let unread = |cause: String| PixelReadError { path: later.path.display().to_string(), cause };
        // Programs that may be computed by regions were refused before.
        let _decoder = session.reserve(later.missing_bytes).map_err(|e| unread(e.to_string()))?;
        let mut room = session.room_ahead(self.bytes_of(rows)).map_err(|e| unread(e.to_string()))?;
        // One thread of a session reads at a time.
        let before = stock.counted();
        let fill = |region: Rect, to: &mut HostBuffer| {
            stock.fill_levels(later.part.clone(), region.inside(), to.bytes_mut(), session.workers())
        };
        match strips.filter(|_| DecodedStrips::serve(session, later, region)) {
            None => fill(region, &mut room).map_err(unread)?,
            Some(strips) => {
                let new = strips.missing(name, later, region);
                if !new.is_empty() {
                    let bytes = new.area() * later.shape.planes() * later.shape.pixel_bytes(later.dtype);
                    let mut strip = session.room_ahead(bytes).map_err(|e| unread(e.to_string()))?;
                    fill(new, &mut strip).map_err(unread)?;
                    strips.0.entry(name).or_default().push((new, strip));
                }
                strips.copy(session, name, later, region, &mut room);
            }
        }
        let after = stock.counted();
        let read = FileTraffic { chunks: after.chunks - before.chunks, bytes: after.bytes - before.bytes };
        Ok(FetchedPixels { pixels: Some(room), read })
    }

    /// All of an unread image, under its name.
    pub(crate) fn all(value: ValueId, later: OnDemandImage) -> RegionInput {
        let (shape, dtype) = (later.shape, later.dtype);
        let from = RegionInputOrigin::Later(later, value, Rect::whole(shape));
        RegionInput { value, shape, dtype, from, placement: Placement::ROOT }
    }

    /// The image, if the input is all of it.
    pub(crate) fn whole(&self) -> Option<ValueId> {
        match &self.from {
            RegionInputOrigin::Later(later, of, region) if *region == Rect::whole(later.shape) => Some(*of),
            _ => None,
        }
    }
}

/// Decoded rows of chunks that the next regions, further down, may read again: adjacent strips of whole chunks, for
/// each image.
#[derive(Default)]
pub(crate) struct DecodedStrips(HashMap<ValueId, Vec<(Rect, HostBuffer)>>);

/// The chunks of a region are cached for the next region if they take at most one part in this many of the memory.
/// Divisions leave enough memory for the chunks of two regions.
pub(crate) const STRIPS: usize = 16;

impl DecodedStrips {
    /// Returns `true` if a region of whole rows ends within chunks, which the next region would decode again, and its
    /// chunks are small enough for the cache.
    fn serve(session: &Session, later: &OnDemandImage, region: Rect) -> bool {
        let (Shape { height, width, .. }, rows) = (later.shape, later.chunk.0);
        let covering = DecodedStrips::covering(later, region);
        let bytes = covering.area().saturating_mul(later.shape.planes() * later.shape.pixel_bytes(later.dtype));
        rows > 1
            && rows < height
            && region.columns.len() == width
            && covering != region
            && bytes <= session.host_limit() / STRIPS
    }

    /// Drops the strips of images that none of these inputs read.
    pub(crate) fn only(&mut self, parts: &[RegionInput]) {
        let read = |v: &ValueId| {
            parts.iter().any(|part| matches!(&part.from, RegionInputOrigin::Later(_, name, _) if name == v))
        };
        self.0.retain(|name, _| read(name));
    }

    /// Rows of all chunks of a region.
    fn covering(later: &OnDemandImage, region: Rect) -> Rect {
        let [start, end] = [region.rows.start, region.rows.end].map(isize::unsigned_abs);
        let rows = later.chunk.0.max(1);
        let end = end.next_multiple_of(rows).min(later.shape.height);
        Rect { rows: Window::new((start / rows * rows).cast_signed(), end.cast_signed()), ..region }
    }

    /// Drops the strips above a region, and returns the rows of its chunks that are not cached.
    fn missing(&mut self, name: ValueId, later: &OnDemandImage, region: Rect) -> Rect {
        let Rect { rows, .. } = DecodedStrips::covering(later, region);
        let strips = self.0.entry(name).or_default();
        // The next slab or stage begins again at the top.
        if strips.first().is_some_and(|(strip, _)| strip.rows.start > rows.start) {
            strips.clear();
        }
        strips.retain(|(strip, _)| strip.rows.end > rows.start);
        let has = strips.last().map_or(rows.start, |(strip, _)| strip.rows.end.clamp(rows.start, rows.end));
        Rect { rows: Window::new(has, rows.end), ..region }
    }

    /// Copies the cached part of a region.
    fn copy(&self, session: &Session, name: ValueId, later: &OnDemandImage, region: Rect, to: &mut HostBuffer) {
        let row = later.shape.line() * later.dtype.size();
        for (strip, pixels) in self.0.get(&name).into_iter().flatten() {
            let [start, end] = [strip.rows.start.max(region.rows.start), strip.rows.end.min(region.rows.end)];
            if start >= end {
                continue;
            }
            let rows = (end - start).unsigned_abs();
            let piece = |plane: usize| StridedCopy {
                from: (plane * strip.rows.len() + (start - strip.rows.start).unsigned_abs()) * row,
                to: (plane * region.rows.len() + (start - region.rows.start).unsigned_abs()) * row,
                bytes: row,
                rows,
                from_stride: row,
                to_stride: row,
            };
            let pieces: Vec<StridedCopy> = (0..later.shape.planes()).map(piece).collect();
            session.workers().copy_pieces(pixels.bytes(), to.bytes_mut(), &pieces);
        }
    }
}

/// Copies of a region of an image of shape `of`, with pixels of `element` bytes, to memory of the region's size: plane
/// by plane (for a stored image level by level), rows without gaps.
pub(crate) fn pieces(of: Shape, region: Rect, element: usize) -> Vec<StridedCopy> {
    let [top, left] = region.corner().map(isize::unsigned_abs);
    let (row, rows) = (region.columns.len() * element, region.rows.len());
    let piece = |plane: usize| StridedCopy {
        from: ((plane * of.height + top) * of.width + left) * element,
        to: plane * rows * row,
        bytes: row,
        rows,
        from_stride: of.width * element,
        to_stride: row,
    };
    (0..of.planes()).map(piece).collect()
}

/// Collects the regions of unread images that a program reads, and names them.
pub(crate) struct RegionInputs<'a> {
    pub(crate) state: &'a SessionState,
    /// `true` if the program reads coordinates as numbers, so that it is the same for all regions.
    pub(crate) numbers: bool,
    pub(crate) parts: Vec<RegionInput>,
    known: HashMap<(ValueId, Rect), ValueId>,
}

impl<'a> RegionInputs<'a> {
    pub(crate) fn new(state: &'a SessionState, numbers: bool) -> RegionInputs<'a> {
        RegionInputs { state, numbers, parts: Vec::new(), known: HashMap::new() }
    }
}

impl RegionSupply for RegionInputs<'_> {
    fn source(&mut self, of: ValueId, region: Rect) -> Option<ValueId> {
        let later = self.state.images.on_demand.get(&of).filter(|_| !self.state.images.in_memory.contains_key(&of))?;
        if let Some(known) = self.known.get(&(of, region)) {
            return Some(*known);
        }
        let value = self.state.names.value();
        self.known.insert((of, region), value);
        let (shape, dtype) = (region.shape(later.shape), later.dtype);
        let from = RegionInputOrigin::Later(later.clone(), of, region);
        self.parts.push(RegionInput { value, shape, dtype, from, placement: Placement::ROOT });
        Some(value)
    }

    fn number(&mut self, n: i32) -> Option<ValueId> {
        let value = self.numbers.then(|| self.state.names.value())?;
        let shape = Shape::new(1, 1, 1);
        let (from, placement) = (RegionInputOrigin::Number(n), Placement::Replicated);
        self.parts.push(RegionInput { value, shape, dtype: DType::I32, from, placement });
        Some(value)
    }
}

/// Source images of a program that can be read again, in memory or not.
pub(crate) fn unread<'a>(
    state: &'a SessionState,
    graph: &'a Graph<Op>,
) -> impl Iterator<Item = (ValueId, &'a OnDemandImage)> {
    let of = |op: &Op| if let Op::Source(v) = op { Some(*v) } else { None };
    graph.nodes.iter().filter_map(move |n| of(&n.op)).filter_map(|v| Some((v, state.images.on_demand.get(&v)?)))
}
