//! Strips and tiles of a TIFF page: those that contain a region are decoded in place, by all
//! threads.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use tiff::decoder::{ChunkType, Decoder};
use tiff::tags::{IfdPointer, Tag};

use super::bounds;
use super::count::Count;
use super::interleave::split;
use super::load::Source;
use super::raster::Order;
use super::read_tiff::text;
use super::tiff_samples::Samples;
use super::tiff_source::{Reader, decoder_at};
use horus_base::shape::{Region, Shape};
use horus_host::host::workers::Workers;

/// Positions of the strips or tiles of a page in the file.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) kind: ChunkType,
    offsets: Vec<u64>,
    counts: Vec<u64>,
}

impl Places {
    pub(super) fn of(decoder: &mut Decoder<Reader<'_>>) -> Result<Places, String> {
        let kind = decoder.get_chunk_type();
        let (offsets, counts) = match kind {
            ChunkType::Strip => (Tag::StripOffsets, Tag::StripByteCounts),
            ChunkType::Tile => (Tag::TileOffsets, Tag::TileByteCounts),
        };
        let mut tag =
            |tag| Ok::<_, String>(decoder.find_tag_unsigned_vec::<u64>(tag).map_err(text)?.unwrap_or_default());
        Ok(Places { kind, offsets: tag(offsets)?, counts: tag(counts)? })
    }

    /// Offset and length in bytes.
    fn at(&self, index: u32) -> Result<(u64, u64), String> {
        let place = self.offsets.get(index as usize).zip(self.counts.get(index as usize));
        place.map(|(at, count)| (*at, *count)).ok_or_else(|| "it is missing".to_owned())
    }
}

/// Coding of the pixels of a page.
#[derive(Clone, Debug)]
pub(super) enum Coding {
    /// Plain samples, in this byte order.
    Plain(Order),
    /// JPEG data, with the tables shared by all strips or tiles.
    Jpeg(Vec<u8>),
    /// Any other coding known to the decoder.
    Other,
}

/// The strips or tiles of a page.
pub(super) struct Chunks<'s> {
    pub(super) source: Source<'s>,
    pub(super) directory: IfdPointer,
    /// Shape of the stored samples.
    pub(super) shape: Shape,
    pub(super) samples: Samples,
    pub(super) planar: bool,
    pub(super) coding: Coding,
    pub(super) places: Places,
    /// Rows of a strip or tile.
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Idle decoders that have read the directory.
    pub(super) decoders: Mutex<Vec<Decoder<Reader<'s>>>>,
    pub(super) count: Count,
}

impl fmt::Debug for Chunks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("shape", &self.shape).field("samples", &self.samples).finish_non_exhaustive()
    }
}

/// The part of a region in a strip or tile: the rows of each plane, first plane first.
struct Cell<'a> {
    row: usize,
    column: usize,
    part: Region,
    lines: Vec<&'a mut [u8]>,
}

impl Chunks<'_> {
    /// The picture's shape.
    pub(super) fn picture(&self) -> Shape {
        Shape { channels: self.samples.channels(self.shape.channels), ..self.shape }
    }

    /// Decodes a region, which lies inside, into planes without gaps.
    pub(super) fn read(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        workers.each(self.cells(region, to), |scratch, cell| self.cell(cell, scratch))
    }

    /// Fails if the file lacks bytes of a region.
    pub(super) fn is_complete(&self, region: Region) -> Result<(), String> {
        let (rows, columns) = self.of(region);
        for plane in 0..if self.planar { self.shape.channels } else { 1 } {
            for (row, column) in rows.clone().flat_map(|row| columns.clone().map(move |column| (row, column))) {
                let index = self.index(plane, row, column)?;
                let (at, count) = self.places.at(index).map_err(|e| self.named(index, e))?;
                if at.saturating_add(count) > self.source.size() {
                    let size = self.source.size();
                    let cause = format!("it ends at byte {}, the file at {size}", at.saturating_add(count));
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

    /// The target of a region, cut along the strips or tiles.
    fn cells<'a>(&self, region: Region, to: &'a mut [u8]) -> Vec<Cell<'a>> {
        let size = self.samples.dtype().size();
        let (rows, columns) = self.of(region);
        let channels = self.picture().channels;
        let mut cells: Vec<Cell<'a>> = Vec::with_capacity(rows.len() * columns.len());
        for row in rows.clone() {
            for column in columns.clone() {
                let part = self.part(row, column, region);
                cells.push(Cell { row, column, part, lines: Vec::with_capacity(channels * part.height) });
            }
        }
        for plane in to.chunks_mut(region.height * region.width * size) {
            for (y, mut line) in plane.chunks_mut(region.width * size).enumerate() {
                let first = ((region.top + y) / self.rows - rows.start) * columns.len();
                for cell in &mut cells[first..first + columns.len()] {
                    let (here, rest) = line.split_at_mut(cell.part.width * size);
                    cell.lines.push(here);
                    line = rest;
                }
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
    fn cell(&self, cell: Cell<'_>, scratch: &mut Vec<u8>) -> Result<(), String> {
        let Cell { row, column, part, mut lines } = cell;
        let (height, bytes) = (part.height, part.width * self.samples.dtype().size());
        if !self.samples.is_cmyk() {
            return self.planes(row, column, part, &mut lines, scratch);
        }
        let mut inks = vec![0; 4 * height * bytes];
        self.planes(row, column, part, &mut inks.chunks_mut(bytes).collect::<Vec<_>>(), scratch)?;
        let inks: Vec<&[u8]> = inks.chunks(bytes).collect();
        let mut lines = lines.chunks_mut(height);
        if let (Some(red), Some(green), Some(blue)) = (lines.next(), lines.next(), lines.next()) {
            for (y, ((red, green), blue)) in red.iter_mut().zip(green).zip(blue).enumerate() {
                self.samples.light([0, 1, 2, 3].map(|ink| inks[ink * height + y]), [red, green, blue]);
            }
        }
        Ok(())
    }

    /// Decodes samples into the rows of each plane.
    fn planes(
        &self,
        row: usize,
        column: usize,
        part: Region,
        lines: &mut [&mut [u8]],
        scratch: &mut Vec<u8>,
    ) -> Result<(), String> {
        let each = if self.planar { part.height } else { lines.len() };
        for (plane, lines) in lines.chunks_mut(each).enumerate() {
            let index = self.index(plane, row, column)?;
            let decoded = match &self.coding {
                Coding::Plain(order) => self.plain(index, (row, column), part, lines, *order, scratch),
                _ => self.coded(index, (row, column), part, lines),
            };
            decoded.map_err(|cause| self.named(index, cause))?;
        }
        Ok(())
    }

    /// Copies rows of pixels, from column `skip` on, into the rows of planes.
    fn put(&self, rows: &[u8], columns: usize, skip: usize, first: usize, height: usize, lines: &mut [&mut [u8]]) {
        let size = self.samples.dtype().size();
        let together = if self.planar { 1 } else { self.shape.channels };
        for (y, row) in (first..).zip(rows.chunks_exact(columns * together * size)) {
            let row = &row[skip * together * size..];
            if together == 1 {
                let to = &mut lines[y];
                to.copy_from_slice(&row[..to.len()]);
            } else {
                let mut planes: Vec<&mut [u8]> = lines.iter_mut().skip(y).step_by(height).map(|l| &mut **l).collect();
                let samples = planes.iter().map(|plane| plane.len()).sum();
                split(&row[..samples], &mut planes, size);
            }
        }
    }

    /// Plain samples: only rows of the strip or tile are read.
    fn plain(
        &self,
        index: u32,
        (row, column): (usize, usize),
        part: Region,
        lines: &mut [&mut [u8]],
        order: Order,
        scratch: &mut Vec<u8>,
    ) -> Result<(), String> {
        /// Bytes read at a time: they stay in the cache until they are in place.
        const AT_ONCE: usize = 512 << 10;
        let size = self.samples.dtype().size();
        let pixel = size * if self.planar { 1 } else { self.shape.channels };
        // The rows of a tile at the right edge are as long as those of any other.
        let (skip, first) = (part.left - column * self.columns, part.top - row * self.rows);
        let (at, count) = self.places.at(index)?;
        let needed = ((first + part.height - 1) * self.columns + skip + part.width) * pixel;
        if count < needed as u64 {
            return Err(format!("it has {count} bytes, {needed} are needed"));
        }
        if at.checked_add(needed as u64).is_none() {
            return Err("it lies beyond the file".into());
        }
        // Of long rows only the requested part.
        let few = part.width * 4 < self.columns;
        let columns = if few { part.width } else { self.columns };
        let (at, skip) = if few { (at + (skip * pixel) as u64, 0) } else { (at, skip) };
        let rows = if few { 1 } else { (AT_ONCE / (columns * pixel)).max(1) };
        for y in (0..part.height).step_by(rows) {
            let rows = rows.min(part.height - y);
            // The last row of a strip or tile may end with its last pixel.
            let left = count - ((first + y) * self.columns * pixel) as u64;
            let wanted = rows * columns * pixel;
            let bytes = wanted.min(usize::try_from(left).unwrap_or(usize::MAX));
            scratch.resize(scratch.len().max(wanted), 0);
            self.source.read_at(at + ((first + y) * self.columns * pixel) as u64, &mut scratch[..bytes])?;
            order.apply(&mut scratch[..bytes], size);
            self.put(&scratch[..wanted], columns, skip, y, part.height, lines);
            self.count.bytes(bytes);
        }
        self.count.chunk();
        Ok(())
    }

    /// The decoded samples of a strip or tile.
    fn coded(
        &self,
        index: u32,
        (row, column): (usize, usize),
        part: Region,
        lines: &mut [&mut [u8]],
    ) -> Result<(), String> {
        self.check(index)?;
        let spare = self.decoders.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut decoder = match spare {
            Some(decoder) => decoder,
            None => decoder_at(&self.source, self.directory)?,
        };
        let (columns, _) = decoder.chunk_data_dimensions(index);
        let columns = columns as usize;
        let decoded = decoder.read_chunk(index).map_err(text)?;
        // A decoder that has failed is not reused.
        self.decoders.lock().unwrap_or_else(PoisonError::into_inner).push(decoder);
        let bytes = self.samples.bytes(decoded, columns)?;
        let pixel = self.samples.dtype().size() * if self.planar { 1 } else { self.shape.channels };
        let first = part.top - row * self.rows;
        let rows =
            bytes.get(first * columns * pixel..(first + part.height) * columns * pixel).ok_or("it is too short")?;
        self.put(rows, columns, part.left - column * self.columns, 0, part.height, lines);
        self.count.chunk();
        self.count.bytes(usize::try_from(self.places.at(index)?.1).unwrap_or(usize::MAX));
        Ok(())
    }

    /// Rejects JPEG data that declares more pixels than its strip or tile has: the decoder trusts
    /// it.
    fn check(&self, index: u32) -> Result<(), String> {
        let Coding::Jpeg(tables) = &self.coding else { return Ok(()) };
        let (at, count) = self.places.at(index)?;
        // As the decoder sees them: data ends at the end of the file, and shared tables come first,
        // without their end marker, in place of the data's first marker.
        const MARKER: usize = 2;
        let count = usize::try_from(count.min(self.source.size().saturating_sub(at))).map_err(|e| e.to_string())?;
        let mut data = vec![0; count];
        self.source.read_at(at, &mut data)?;
        let pixels = if tables.is_empty() {
            bounds::jpeg_frame(&data)
        } else {
            let first = &tables[..tables.len().saturating_sub(MARKER)];
            bounds::jpeg_frame(&[first, data.get(MARKER..).unwrap_or_default()].concat())
        };
        // Encoders may pad to whole blocks.
        const BLOCK: u64 = 64;
        let (w, h) = (self.columns as u64, self.rows as u64);
        let most = w * h + BLOCK * (w + h + BLOCK);
        if pixels > most {
            return Err("its JPEG data declares more pixels than its strip or tile holds".into());
        }
        Ok(())
    }
}
