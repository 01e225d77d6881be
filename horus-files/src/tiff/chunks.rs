//! Strips and tiles of a TIFF page: all threads decode those that contain a region, in place.

use std::fmt;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

use tiff::decoder::{ChunkType, Decoder};
use tiff::tags::Tag;

use super::coding::{TiffCoding, unread};
use super::read::text;
use super::samples::{ColourEncoding, StoredSamples, colour, invert, lights};
use super::source::TiffReader;
use crate::interleave::copy_spaced;
use crate::jpeg::{self, segments};
use crate::{Count, PictureSource, SampleConversion, guarded, jpeg2000, pixel_bytes};
use horus_base::shape::{Region, Shape};
use horus_host::workers::Workers;

/// Positions of the strips or tiles of a page in the file.
#[derive(Clone, Debug)]
pub(super) struct ChunkPositions {
    pub(super) kind: ChunkType,
    offsets: Vec<u64>,
    counts: Vec<u64>,
}

impl ChunkPositions {
    pub(super) fn of(decoder: &mut Decoder<TiffReader<'_>>) -> Result<ChunkPositions, String> {
        let kind = decoder.get_chunk_type();
        let (offsets, counts) = match kind {
            ChunkType::Strip => (Tag::StripOffsets, Tag::StripByteCounts),
            ChunkType::Tile => (Tag::TileOffsets, Tag::TileByteCounts),
        };
        let mut tag =
            |tag| Ok::<_, String>(decoder.find_tag_unsigned_vec::<u64>(tag).map_err(text)?.unwrap_or_default());
        Ok(ChunkPositions { kind, offsets: tag(offsets)?, counts: tag(counts)? })
    }

    /// Offset and length in bytes.
    fn at(&self, index: u32) -> Result<(u64, u64), String> {
        let place = self.offsets.get(index as usize).zip(self.counts.get(index as usize));
        place.map(|(at, count)| (*at, *count)).ok_or_else(|| "it is missing".to_owned())
    }

    /// The first byte and the number of bytes of contiguous strips.
    pub(super) fn contiguous_strips(&self) -> Option<(u64, u64)> {
        let mut strips = self.offsets.iter().zip(&self.counts);
        let (begin, first) = strips.next().filter(|_| self.kind == ChunkType::Strip)?;
        let end = strips
            .try_fold(begin.checked_add(*first)?, |end, (at, count)| at.checked_add(*count).filter(|_| *at == end))?;
        (end > *begin).then_some((*begin, end - begin))
    }

    /// Maximum pixels of the strips or tiles that the file leaves out, of `pixels` pixels each. (GDAL leaves out tiles
    /// of missing pixels.) Sizes above `LARGEST` are not trusted.
    pub(super) fn absent(&self, pixels: u64) -> u64 {
        const LARGEST: u64 = 1 << 22;
        let absent = self.offsets.iter().zip(&self.counts).filter(|place| *place == (&0, &0)).count();
        (absent as u64).saturating_mul(pixels.min(LARGEST))
    }
}

/// Storage of the pixels of a page.
#[derive(Clone, Debug)]
pub(super) enum ChunkStorage {
    /// Plain samples, in this byte order.
    Plain(SampleConversion),
    /// JPEG data, with the tables shared by all strips or tiles.
    Jpeg(Vec<u8>),
    /// JPEG 2000 code streams.
    Jpeg2000,
    /// Samples in any other coding.
    Coded(TiffCoding),
}

/// The strips or tiles of a page.
pub(super) struct Chunks<'s> {
    pub(super) source: PictureSource<'s>,
    /// Shape of the stored samples.
    pub(super) shape: Shape,
    pub(super) samples: StoredSamples,
    pub(super) colours: ColourEncoding,
    pub(super) planar: bool,
    pub(super) stored: ChunkStorage,
    pub(super) places: ChunkPositions,
    /// Rows of a strip or tile.
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// The sample of strips or tiles that the file leaves out.
    pub(super) missing: Vec<u8>,
    pub(super) count: Count,
    pub(super) halted: PartlyDecodedChunks<'s>,
}

/// The last large strips and tiles that were decoded up to a row, for regions that begin there or below.
pub(super) type PartlyDecodedChunks<'s> = Mutex<Vec<PartlyDecodedChunk<'s>>>;

/// A partly decoded strip or tile.
pub(super) struct PartlyDecodedChunk<'s> {
    /// Offset in the file.
    at: u64,
    /// The next row.
    row: usize,
    stream: Box<dyn Read + Send + 's>,
}

/// Bytes decoded at a time: they stay in the cache until they are in place.
const DECODED: usize = 256 << 10;

impl fmt::Debug for Chunks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("shape", &self.shape).field("samples", &self.samples).finish_non_exhaustive()
    }
}

/// The position of a page's samples among all samples of each pixel.
#[derive(Clone, Copy, Debug)]
pub(super) struct PixelStride {
    /// The first byte.
    pub(super) at: usize,
    /// Bytes of all samples of a pixel.
    pub(super) pixel: usize,
}

/// The part of a region in a strip or tile.
struct ChunkPart<'a> {
    row: usize,
    column: usize,
    part: Region,
    lines: InterleavedRows<'a>,
}

/// Rows of pixels, some of whose samples are decoded.
struct InterleavedRows<'a> {
    rows: Vec<&'a mut [u8]>,
    among: PixelStride,
}

impl InterleavedRows<'_> {
    /// Every row, from the first of the samples on.
    fn samples(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.rows.iter_mut().map(|row| &mut row[self.among.at..])
    }
}

impl<'s> Chunks<'s> {
    /// The picture's shape.
    pub(super) fn picture(&self) -> Shape {
        Shape { channels: self.colours.channels(self.shape.channels), ..self.shape }
    }

    /// Bytes of the samples of a pixel that are stored together.
    fn stored_pixel_bytes(&self) -> usize {
        self.samples.dtype().size() * if self.planar { 1 } else { self.shape.channels }
    }

    /// Rows of a strip or tile, at most the rows of the page.
    fn whole_rows(&self) -> usize {
        self.rows.min(self.shape.height)
    }

    /// Bytes of the stored samples of a row of a strip or tile.
    fn row_bytes(&self) -> usize {
        self.samples.row(self.columns * if self.planar { 1 } else { self.shape.channels })
    }

    /// Bytes that a thread uses, in addition to the pixels, to decode a strip or tile: 0 if its rows are read in place.
    pub(super) fn scratch_bytes(&self) -> usize {
        let chunk = self
            .whole_rows()
            .saturating_mul(self.columns)
            .saturating_mul(pixel_bytes(self.shape, self.samples.dtype()));
        let decoder = match &self.stored {
            ChunkStorage::Plain(_) => 0,
            // Data, coefficients and samples.
            ChunkStorage::Jpeg(_) => chunk.saturating_mul(3),
            ChunkStorage::Jpeg2000 => chunk.saturating_mul(24),
            // Stored and converted rows.
            ChunkStorage::Coded(coding) => 2 * chunk.min(DECODED.max(self.row_bytes())) + coding.window(chunk),
        };
        if self.colours == ColourEncoding::Inks { decoder.saturating_add(chunk) } else { decoder }
    }

    /// Takes the stream of a strip or tile that was decoded up to a row, at most this one.
    fn halted(&self, at: u64, first: usize) -> Option<(Box<dyn Read + Send + 's>, usize)> {
        let mut halted = self.halted.lock().unwrap_or_else(PoisonError::into_inner);
        let found = halted.iter().position(|half| half.at == at && half.row <= first)?;
        let PartlyDecodedChunk { row, stream, .. } = halted.remove(found);
        Some((stream, row))
    }

    /// Stores the stream of a large strip or tile with remaining rows.
    fn halt(&self, at: u64, row: usize, stream: Box<dyn Read + Send + 's>) {
        const LARGE: usize = 1 << 20;
        const MOST: usize = 8;
        if row >= self.whole_rows() || self.whole_rows().saturating_mul(self.row_bytes()) < LARGE {
            return;
        }
        let mut halted = self.halted.lock().unwrap_or_else(PoisonError::into_inner);
        if halted.len() >= MOST {
            halted.remove(0);
        }
        halted.push(PartlyDecodedChunk { at, row, stream });
    }

    /// Decodes a region inside the page to its position `among` the samples of a level, without gaps. The pixels are
    /// `behind` bytes after those of the page.
    pub(super) fn read(
        &self,
        behind: u64,
        region: Region,
        (to, among): (&mut [u8], PixelStride),
        workers: &Workers,
    ) -> Result<(), String> {
        workers.each(self.cells(region, to, among), |scratch, cell| guarded(|| self.cell(behind, cell, scratch)))
    }

    /// Fails if bytes of a region are missing in the file; see [`Chunks::read`].
    pub(super) fn is_complete(&self, behind: u64, region: Region) -> Result<(), String> {
        let (rows, columns) = self.of(region);
        for plane in 0..if self.planar { self.shape.channels } else { 1 } {
            for (row, column) in rows.clone().flat_map(|row| columns.clone().map(move |column| (row, column))) {
                let index = self.index(plane, row, column)?;
                let (at, count) = self.places.at(index).map_err(|e| self.named(index, e))?;
                let end = at.saturating_add(count).saturating_add(behind);
                if end > self.source.size() {
                    let cause = format!("it ends at byte {end}, the file at {}", self.source.size());
                    return Err(self.named(index, cause));
                }
            }
        }
        Ok(())
    }

    /// The rows and columns of strips or tiles that contain a region.
    fn of(&self, region: Region) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
        let rows = region.top / self.rows..region.bottom().div_ceil(self.rows);
        (rows, region.left / self.columns..region.right().div_ceil(self.columns))
    }

    /// The part of a region in a strip or tile.
    fn part(&self, row: usize, column: usize, region: Region) -> Region {
        let (top, left) = ((row * self.rows).max(region.top), (column * self.columns).max(region.left));
        let bottom = ((row + 1) * self.rows).min(region.bottom());
        let right = ((column + 1) * self.columns).min(region.right());
        Region::new(top, left, bottom - top, right - left)
    }

    /// Divides the target of a region along the strips or tiles.
    fn cells<'a>(&self, region: Region, to: &'a mut [u8], among: PixelStride) -> Vec<ChunkPart<'a>> {
        let (rows, columns) = self.of(region);
        let mut cells: Vec<ChunkPart<'a>> = Vec::with_capacity(rows.len() * columns.len());
        for row in rows.clone() {
            for column in columns.clone() {
                let part = self.part(row, column, region);
                let lines = InterleavedRows { rows: Vec::with_capacity(part.height), among };
                cells.push(ChunkPart { row, column, part, lines });
            }
        }
        for (y, mut line) in to.chunks_mut(region.width * among.pixel).enumerate() {
            let first = ((region.top + y) / self.rows - rows.start) * columns.len();
            for cell in &mut cells[first..first + columns.len()] {
                let (here, rest) = line.split_at_mut(cell.part.width * among.pixel);
                cell.lines.rows.push(here);
                line = rest;
            }
        }
        cells
    }

    fn index(&self, plane: usize, row: usize, column: usize) -> Result<u32, String> {
        let (across, down) = (self.shape.width.div_ceil(self.columns), self.shape.height.div_ceil(self.rows));
        u32::try_from((plane * down + row) * across + column).map_err(|e| e.to_string())
    }

    fn named(&self, index: u32, cause: String) -> String {
        match self.places.kind {
            ChunkType::Strip => format!("strip {index}: {cause}"),
            ChunkType::Tile => format!("tile {index}: {cause}"),
        }
    }

    /// Decodes the part of a region in a strip or tile.
    fn cell(&self, behind: u64, cell: ChunkPart<'_>, scratch: &mut Vec<u8>) -> Result<(), String> {
        let ChunkPart { row, column, part, mut lines } = cell;
        let (dtype, pixel) = (self.samples.dtype(), lines.among.pixel);
        if self.colours == ColourEncoding::Inks {
            let stored = self.shape.channels * dtype.size();
            let mut inks = vec![0; part.height * part.width * stored];
            let rows = inks.chunks_mut(part.width * stored).collect();
            let mut inked = InterleavedRows { rows, among: PixelStride { at: 0, pixel: stored } };
            self.planes(behind, (row, column), part, &mut inked, scratch)?;
            let both = inked.rows.iter().zip(lines.samples());
            both.for_each(|(inks, to)| lights(inks, stored, to, pixel, dtype));
            return Ok(());
        }
        self.planes(behind, (row, column), part, &mut lines, scratch)?;
        match self.colours {
            ColourEncoding::Inverted => lines.samples().for_each(|row| invert(row, pixel, dtype)),
            ColourEncoding::Luma => lines.samples().for_each(|row| colour(row, pixel)),
            _ => {}
        }
        Ok(())
    }

    /// Decodes the samples of rows.
    fn planes(
        &self,
        behind: u64,
        (row, column): (usize, usize),
        part: Region,
        lines: &mut InterleavedRows<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), String> {
        // The first column and row of a strip or tile that are requested.
        let from = [part.left - column * self.columns, part.top - row * self.rows];
        let begin = lines.among.at;
        for plane in 0..if self.planar { self.shape.channels } else { 1 } {
            lines.among.at = begin + plane * self.stored_pixel_bytes();
            let index = self.index(plane, row, column)?;
            let decode = |(at, count): (u64, u64)| {
                if (at, count) == (0, 0) {
                    self.fill(plane, lines);
                    return Ok(());
                }
                let place = (at.saturating_add(behind), count);
                match &self.stored {
                    ChunkStorage::Plain(order) => self.plain(place, from, part, lines, *order, scratch),
                    ChunkStorage::Jpeg(tables) => self.jpeg(place, from, part, lines, tables),
                    ChunkStorage::Jpeg2000 => self.jpeg2000(place, from, part, lines),
                    ChunkStorage::Coded(coding) => self.coded(place, from, part, lines, *coding, scratch),
                }
            };
            self.places.at(index).and_then(decode).map_err(|cause| self.named(index, cause))?;
        }
        lines.among.at = begin;
        Ok(())
    }

    /// Fills the samples of a strip or tile that the file leaves out, from this sample of each pixel on.
    fn fill(&self, first: usize, lines: &mut InterleavedRows<'_>) {
        const NO_COLOUR: u8 = 128;
        let (together, pixel) = (self.stored_pixel_bytes(), lines.among.pixel);
        for to in lines.samples().flat_map(|row| row.chunks_mut(pixel)) {
            for (c, to) in (first..).zip(to[..together].chunks_exact_mut(self.missing.len())) {
                match self.colours {
                    ColourEncoding::Luma if c > 0 => to.fill(NO_COLOUR),
                    _ => to.copy_from_slice(&self.missing),
                }
            }
        }
    }

    /// Copies pixels as stored, from column `skip` on, to rows from this one on.
    fn put(&self, rows: &[u8], columns: usize, skip: usize, first: usize, lines: &mut InterleavedRows<'_>) {
        let (together, pixel) = (self.stored_pixel_bytes(), lines.among.pixel);
        for (row, to) in rows.chunks_exact(columns * together).zip(lines.samples().skip(first)) {
            copy_spaced(&row[skip * together..], together, to, pixel, together);
        }
    }

    /// Reads plain samples: only the requested rows of the strip or tile.
    fn plain(
        &self,
        (at, count): (u64, u64),
        [skip, first]: [usize; 2],
        part: Region,
        lines: &mut InterleavedRows<'_>,
        order: SampleConversion,
        scratch: &mut Vec<u8>,
    ) -> Result<(), String> {
        /// Bytes read at a time: they stay in the cache until they are in place.
        const AT_ONCE: usize = 512 << 10;
        /// Minimum bytes of a row that is read separately.
        const LONG: usize = 2 << 10;
        let (size, pixel) = (self.samples.dtype().size(), self.stored_pixel_bytes());
        // The rows of a tile at the right edge are as long as those of any other.
        let needed = ((first + part.height - 1) * self.columns + skip + part.width) * pixel;
        if count < needed as u64 {
            return Err(format!("it has {count} bytes, {needed} are needed"));
        }
        if at.checked_add(needed as u64).is_none() {
            return Err("it lies beyond the file".into());
        }
        // For long rows, only the requested part.
        let few = part.width * 4 < self.columns;
        let columns = if few { part.width } else { self.columns };
        let (at, skip) = if few { (at + (skip * pixel) as u64, 0) } else { (at, skip) };
        // Whole rows of pixels are read in place.
        let in_place = (pixel, columns) == (lines.among.pixel, part.width) && (few || columns * pixel >= LONG);
        let rows = if few || in_place { 1 } else { (AT_ONCE / (columns * pixel)).max(1) };
        for y in (0..part.height).step_by(rows) {
            let rows = rows.min(part.height - y);
            // The last row of a strip or tile may end with its last pixel.
            let left = count - ((first + y) * self.columns * pixel) as u64;
            let wanted = rows * columns * pixel;
            let bytes = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
            let to = if in_place {
                &mut *lines.rows[y]
            } else {
                scratch.resize(scratch.len().max(wanted), 0);
                &mut scratch[..bytes]
            };
            self.source.read_at(at + ((first + y) * self.columns * pixel) as u64, to)?;
            order.apply(to, size);
            if !in_place {
                self.put(&scratch[..wanted], columns, skip, y, lines);
            }
            self.count.bytes(bytes);
        }
        self.count.chunk();
        Ok(())
    }

    /// Decodes samples in another coding, from the first row of the strip or tile on.
    fn coded(
        &self,
        (at, count): (u64, u64),
        [skip, first]: [usize; 2],
        part: Region,
        lines: &mut InterleavedRows<'_>,
        coding: TiffCoding,
        scratch: &mut Vec<u8>,
    ) -> Result<(), String> {
        /// Longest row of tiles that are wider than the picture.
        const LONGEST: usize = 64 << 20;
        let channels = if self.planar { 1 } else { self.shape.channels };
        let samples = self.columns * channels;
        let length = self.row_bytes();
        if length > LONGEST.max(2 * self.samples.row(self.shape.width * channels)) {
            return Err(format!("its rows have {length} bytes"));
        }
        let halted = self.halted(at, first);
        let is_new = halted.is_none();
        let (mut stream, row) = match halted {
            Some(half) => half,
            None => (coding.stream(&self.source, at, count, self.columns)?, 0),
        };
        let before = ((first - row) * length) as u64;
        io::copy(&mut stream.by_ref().take(before), &mut io::sink()).map_err(|e| unread(&e))?;
        let rows = (DECODED / length).clamp(1, part.height);
        scratch.resize(scratch.len().max(rows * length), 0);
        let mut converted = Vec::new();
        for y in (0..part.height).step_by(rows) {
            let stored = &mut scratch[..rows.min(part.height - y) * length];
            stream.read_exact(stored).map_err(|e| unread(&e))?;
            stored.chunks_exact_mut(length).for_each(|row| coding.restore(row, self.samples.size(), channels));
            let pixels = if self.samples.are_pixels() {
                &*stored
            } else {
                converted.clear();
                stored.chunks_exact(length).for_each(|row| self.samples.convert(row, samples, &mut converted));
                &converted
            };
            self.put(pixels, self.columns, skip, y, lines);
        }
        self.halt(at, first + part.height, stream);
        if is_new {
            self.count.chunk();
            self.count.bytes(usize::try_from(count).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    /// Decodes samples of JPEG data.
    fn jpeg(
        &self,
        place: (u64, u64),
        from: [usize; 2],
        part: Region,
        lines: &mut InterleavedRows<'_>,
        tables: &[u8],
    ) -> Result<(), String> {
        const MARKER: usize = 2;
        let mut data = self.data(place)?;
        // Shared tables come first, without their end marker, instead of the data's first marker.
        if !tables.is_empty() {
            let tables = &tables[..tables.len().saturating_sub(MARKER)];
            data = [tables, data.get(MARKER..).unwrap_or_default()].concat();
        }
        // The decoder trusts the data. Encoders may pad to whole blocks.
        const BLOCK: u64 = 64;
        let (w, h) = (self.columns as u64, self.rows as u64);
        if segments::frame_pixels(&data) > w * h + BLOCK * (w + h + BLOCK) {
            return Err("its JPEG data declares more pixels than its strip or tile holds".into());
        }
        let (pixels, shape) = jpeg::read::as_stored(&data)?;
        self.put_part(&pixels, shape, from, part, lines)
    }

    /// Decodes JPEG 2000 data.
    fn jpeg2000(
        &self,
        place: (u64, u64),
        from: [usize; 2],
        part: Region,
        lines: &mut InterleavedRows<'_>,
    ) -> Result<(), String> {
        let (pixels, shape, dtype) = jpeg2000::as_stored(&self.data(place)?, self.columns as u64 * self.rows as u64)?;
        if dtype != self.samples.dtype() {
            return Err(format!("its JPEG 2000 data has {dtype} samples, not {}", self.samples.dtype()));
        }
        self.put_part(&pixels, shape, from, part, lines)
    }

    /// The data of a strip or tile, which may end at the end of the file.
    fn data(&self, (at, count): (u64, u64)) -> Result<Vec<u8>, String> {
        let count = usize::try_from(count.min(self.source.size().saturating_sub(at))).map_err(|e| e.to_string())?;
        let mut data = vec![0; count];
        self.source.read_at(at, &mut data)?;
        self.count.chunk();
        self.count.bytes(count);
        Ok(data)
    }

    /// Copies a part of a decoded strip or tile of this shape.
    fn put_part(
        &self,
        pixels: &[u8],
        Shape { height, width, channels, .. }: Shape,
        [skip, first]: [usize; 2],
        part: Region,
        lines: &mut InterleavedRows<'_>,
    ) -> Result<(), String> {
        if channels != if self.planar { 1 } else { self.shape.channels } {
            return Err(format!("its JPEG data has {channels} channels"));
        }
        if skip + part.width > width || first + part.height > height {
            return Err(format!("its JPEG data has {width}x{height} pixels, too few"));
        }
        let row = width * self.stored_pixel_bytes();
        self.put(&pixels[first * row..(first + part.height) * row], width, skip, 0, lines);
        Ok(())
    }
}
