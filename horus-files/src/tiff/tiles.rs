//! Tiles or strips of a TIFF file, written region by region: each thread encodes its own.
//!
//! The crate `tiff` encodes only strips, from the first to the last; its compressors are used.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Mutex, PoisonError};

use tiff::tags::{ExtraSamples, PhotometricInterpretation, PlanarConfiguration, SampleFormat, Tag};

use super::compression::Compression;
use super::directory::DirectoryEntry;
use crate::interleave::copy_spaced;
use crate::load::read_exact_at;
use crate::{Count, PositionedOutput, WRITERS, pixel_bytes};
use horus_base::dtype::DType;
use horus_base::shape::{Region, Shape};
use horus_host::workers::Workers;

/// The format of samples of a type.
const fn sample_format(dtype: DType) -> SampleFormat {
    match dtype {
        float if float.is_float() => SampleFormat::IEEEFP,
        signed if signed.is_signed() => SampleFormat::Int,
        _ => SampleFormat::Uint,
    }
}

/// The tiles or strips of all pages of a file, in one size.
#[derive(Debug)]
pub(super) struct TiffTiles {
    pub(super) shape: Shape,
    dtype: DType,
    /// Rows and columns of each.
    rows: usize,
    columns: usize,
    /// Tiles are whole, strips end with the picture.
    tiled: bool,
    /// Each channel of a level has a page of its own.
    has_channel_pages: bool,
    pub(super) compression: Compression,
    /// Offset of the first in the output.
    first: u64,
    written: Mutex<WrittenTiles>,
    /// Tiles with missing pixels, by row and column.
    pending: Mutex<HashMap<(usize, usize), PendingTile>>,
    pub(super) count: Count,
}

#[derive(Debug)]
struct WrittenTiles {
    /// Offset and length of each tile or strip; 0 for missing ones.
    places: Vec<(u64, u64)>,
    end: u64,
}

/// The pixels of a tile or strip in all levels and channels; some are missing.
#[derive(Debug)]
struct PendingTile {
    pixels: Vec<u8>,
    missing: usize,
}

/// A tile or strip of a page.
#[derive(Clone, Copy)]
struct TiffChunk {
    page: usize,
    row: usize,
    column: usize,
}

impl TiffTiles {
    /// Approximate bytes of a strip.
    const STRIP: usize = 256 << 10;
    /// The sides of TIFF tiles are multiples of this.
    pub(super) const STEP: usize = 16;

    /// Tiles of `tile` rows and columns, otherwise strips; for each level or, with channels `apart`, for each channel.
    ///
    /// # Errors
    /// A message, if TIFF files do not support such tiles.
    pub(super) fn new(
        shape: Shape,
        dtype: DType,
        tile: Option<(usize, usize)>,
        compression: Compression,
        apart: bool,
    ) -> Result<TiffTiles, String> {
        let pixel = dtype.size() * if apart { 1 } else { shape.channels };
        let (rows, columns) = match tile {
            Some((rows, columns)) => {
                let fits = |side: usize| side > 0 && side.is_multiple_of(TiffTiles::STEP);
                let bytes = rows.checked_mul(columns).and_then(|area| area.checked_mul(pixel));
                if !fits(rows) || !fits(columns) || bytes.is_none_or(|bytes| bytes > u32::MAX as usize / 2) {
                    return Err(format!(
                        "tiles of {rows}x{columns} pixels: the sides of TIFF tiles are multiples of 16"
                    ));
                }
                (rows, columns)
            }
            None => ((TiffTiles::STRIP / (shape.width * pixel)).clamp(1, shape.height), shape.width),
        };
        let tiles = TiffTiles {
            shape,
            dtype,
            rows,
            columns,
            tiled: tile.is_some(),
            has_channel_pages: apart,
            compression,
            first: 0,
            written: Mutex::new(WrittenTiles { places: Vec::new(), end: 0 }),
            pending: Mutex::default(),
            count: Count::default(),
        };
        let chunks = tiles.chunks();
        u32::try_from(chunks).map_err(|_| format!("{chunks} tiles or strips are more than TIFF files have"))?;
        tiles.written().places = vec![(0, 0); chunks];
        Ok(tiles)
    }

    fn written(&self) -> std::sync::MutexGuard<'_, WrittenTiles> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same pixels in these tiles, or in strips.
    pub(super) fn laid(&self, tile: Option<(usize, usize)>, apart: bool) -> Result<TiffTiles, String> {
        TiffTiles::new(self.shape, self.dtype, tile, self.compression, apart)
    }

    /// Rows and columns of a tile, if there are tiles.
    pub(super) fn tile(&self) -> Option<(usize, usize)> {
        self.tiled.then_some((self.rows, self.columns))
    }

    pub(super) fn has_channel_pages(&self) -> bool {
        self.has_channel_pages
    }

    /// Rows and columns of a tile or strip.
    pub(super) fn chunk(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// The number of pages.
    pub(super) fn pages(&self) -> usize {
        self.shape.depth * self.pages_of_level()
    }

    fn pages_of_level(&self) -> usize {
        if self.has_channel_pages { self.shape.channels } else { 1 }
    }

    /// The number of samples of a pixel of a page.
    fn samples(&self) -> usize {
        self.shape.channels / self.pages_of_level()
    }

    /// The number of tiles or strips of all pages.
    pub(super) fn chunks(&self) -> usize {
        self.pages() * self.down() * self.across()
    }

    /// Sets the offset of the first tile or strip; before anything is written.
    pub(super) fn begin(&mut self, first: u64) {
        self.first = first;
        self.written().end = first;
    }

    /// The offset after the last one written.
    pub(super) fn end(&self) -> u64 {
        self.written().end
    }

    fn down(&self) -> usize {
        self.shape.height.div_ceil(self.rows)
    }

    fn across(&self) -> usize {
        self.shape.width.div_ceil(self.columns)
    }

    /// Bytes of a tile or strip, before it is compressed.
    fn chunk_bytes(&self) -> usize {
        self.rows * self.columns * self.samples() * self.dtype.size()
    }

    /// Bytes of a page, before it is compressed.
    fn page_bytes(&self) -> u64 {
        let height = if self.tiled { self.down() * self.rows } else { self.shape.height };
        (height * self.across() * self.columns * self.samples() * self.dtype.size()) as u64
    }

    /// Bytes of all pages, before they are compressed.
    pub(super) fn raw_bytes(&self) -> u64 {
        self.pages() as u64 * self.page_bytes()
    }

    /// Encodes and writes the pixels of a region of all levels, without gaps. Partly written tiles or strips wait for
    /// the rest.
    ///
    /// # Errors
    /// A message, if a tile or strip was written before, or writing fails.
    pub(super) fn put(
        &self,
        to: &dyn PositionedOutput,
        region: Region,
        pixels: &[u8],
        workers: &Workers,
    ) -> Result<(), String> {
        if region.height * region.width == 0 {
            return Ok(());
        }
        let rows = region.top / self.rows..region.bottom().div_ceil(self.rows);
        let columns = region.left / self.columns..region.right().div_ceil(self.columns);
        let cells = rows.flat_map(|row| columns.clone().map(move |column| (row, column)));
        let (whole, parts): (Vec<_>, Vec<_>) = cells.partition(|cell| {
            let Region { top, left, height, width } = self.cell(*cell);
            let down = region.top <= top && top + height <= region.bottom();
            down && region.left <= left && left + width <= region.right()
        });
        self.encode(to, &whole, region, pixels, workers)?;
        for cell in parts {
            if let Some(pixels) = self.gather(cell, region, pixels)? {
                self.encode(to, &[cell], self.cell(cell), &pixels, workers)?;
            }
        }
        Ok(())
    }

    /// The region of a tile or strip.
    fn cell(&self, (row, column): (usize, usize)) -> Region {
        let (top, left) = (row * self.rows, column * self.columns);
        let Shape { height, width, .. } = self.shape;
        Region::new(top, left, self.rows.min(height - top), self.columns.min(width - left))
    }

    /// Adds the pixels of a region to a tile or strip; returns all its pixels if none is missing any more.
    fn gather(&self, at: (usize, usize), region: Region, pixels: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let (cell, pixel) = (self.cell(at), pixel_bytes(self.shape, self.dtype));
        let (top, bottom) = (cell.top.max(region.top), cell.bottom().min(region.bottom()));
        let (left, right) = (cell.left.max(region.left), cell.right().min(region.right()));
        let mut all = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let area = cell.height * cell.width;
        let new = || PendingTile { pixels: vec![0; self.shape.depth * area * pixel], missing: area };
        let pending = all.entry(at).or_insert_with(new);
        let levels = pixels.chunks_exact(region.height * region.width * pixel);
        for (from, to) in levels.zip(pending.pixels.chunks_exact_mut(area * pixel)) {
            for y in top..bottom {
                let from = &from[((y - region.top) * region.width + left - region.left) * pixel..];
                let to = &mut to[((y - cell.top) * cell.width + left - cell.left) * pixel..];
                let bytes = (right - left) * pixel;
                to[..bytes].copy_from_slice(&from[..bytes]);
            }
        }
        pending.missing =
            pending.missing.checked_sub((bottom - top) * (right - left)).ok_or("pixels were put twice")?;
        Ok(if pending.missing == 0 { all.remove(&at).map(|whole| whole.pixels) } else { None })
    }

    /// Encodes and writes tiles or strips of a region.
    fn encode(
        &self,
        to: &dyn PositionedOutput,
        cells: &[(usize, usize)],
        region: Region,
        pixels: &[u8],
        workers: &Workers,
    ) -> Result<(), String> {
        let page = |page| cells.iter().map(move |(row, column)| TiffChunk { page, row: *row, column: *column });
        let chunks: Vec<TiffChunk> = (0..self.pages()).flat_map(page).collect();
        if self.compression == Compression::None {
            let one = |scratch: &mut Vec<u8>, chunk: TiffChunk| {
                self.raw(chunk, region, pixels, scratch);
                self.write(to, chunk, scratch)
            };
            return workers.each_by(WRITERS, chunks, one);
        }
        let row = self.columns * self.samples() * self.dtype.size();
        let encode = |scratch: &mut Vec<u8>, (chunk, encoded): (&TiffChunk, &mut Vec<u8>)| {
            self.raw(*chunk, region, pixels, scratch);
            self.compression.encode(scratch, row, self.samples(), self.dtype, encoded)
        };
        // Written in order, so that the file does not depend on the threads.
        const AT_ONCE: usize = 4;
        let together = if workers.threads() == 1 { 1 } else { AT_ONCE * workers.threads() };
        let mut encoded = vec![Vec::new(); together.min(chunks.len())];
        for some in chunks.chunks(together) {
            workers.each(some.iter().zip(&mut encoded).collect(), encode)?;
            some.iter().zip(&encoded).try_for_each(|(chunk, bytes)| self.write(to, *chunk, bytes))?;
        }
        Ok(())
    }

    /// Fails unless a region inside the picture consists of whole tiles or strips.
    pub(super) fn is_whole(&self, region: Region) -> Result<(), String> {
        let ends = |at: usize, step: usize, end: usize| at.is_multiple_of(step) || at == end;
        let begins = region.top.is_multiple_of(self.rows) && region.left.is_multiple_of(self.columns);
        let Shape { height, width, .. } = self.shape;
        if begins && ends(region.bottom(), self.rows, height) && ends(region.right(), self.columns, width) {
            return Ok(());
        }
        let what = if self.tiled { "tiles" } else { "strips" };
        Err(format!("a region of {region} is not made of whole {what} of {}x{} pixels", self.rows, self.columns))
    }

    /// The samples of a tile or strip.
    fn raw(&self, chunk: TiffChunk, region: Region, pixels: &[u8], to: &mut Vec<u8>) {
        let (size, pixel) = (self.dtype.size(), pixel_bytes(self.shape, self.dtype));
        let (top, left) = (chunk.row * self.rows, chunk.column * self.columns);
        let (height, width) = (self.rows.min(region.bottom() - top), self.columns.min(region.right() - left));
        let own = self.samples() * size;
        let row = self.columns * own;
        to.resize(if self.tiled { self.chunk_bytes() } else { height * row }, 0);
        let (level, channel) = (chunk.page / self.pages_of_level(), chunk.page % self.pages_of_level());
        for (y, to) in to.chunks_mut(row).enumerate() {
            let (inside, beyond) = to.split_at_mut(width * own);
            beyond.fill(0);
            if y >= height {
                inside.fill(0);
                continue;
            }
            let first = (level * region.height + top + y - region.top) * region.width + left - region.left;
            copy_spaced(&pixels[first * pixel + channel * size..], pixel, inside, own, own);
        }
    }

    fn write(&self, to: &dyn PositionedOutput, chunk: TiffChunk, bytes: &[u8]) -> Result<(), String> {
        let at = self
            .enter(chunk, bytes.len() as u64)
            .map_err(|index| format!("{} {index} is written twice", if self.tiled { "tile" } else { "strip" }))?;
        to.write_at(at, bytes)?;
        self.count.chunk();
        self.count.bytes(bytes.len());
        Ok(())
    }

    /// Records a tile or strip of so many bytes, and returns its offset; its index, if it was recorded before.
    fn enter(&self, chunk: TiffChunk, count: u64) -> Result<u64, usize> {
        let index = chunk.row * self.across() + chunk.column;
        let mut written = self.written();
        let at = match self.compression {
            Compression::None => {
                let page = self.first + chunk.page as u64 * self.page_bytes();
                page + (index * self.chunk_bytes()) as u64
            }
            _ => written.end,
        };
        let place = &mut written.places[chunk.page * self.down() * self.across() + index];
        if place.1 > 0 {
            return Err(index);
        }
        *place = (at, count);
        // Each begins on a word boundary.
        written.end = written.end.max((at + count).next_multiple_of(2));
        Ok(at)
    }

    /// Records the tiles or strips of a region that another process writes, without compression. The other process
    /// also writes those of which this region has only a part.
    pub(super) fn leave(&self, region: Region) {
        for row in region.top / self.rows..region.bottom().div_ceil(self.rows) {
            for column in region.left / self.columns..region.right().div_ceil(self.columns) {
                let rows = if self.tiled { self.rows } else { self.cell((row, column)).height };
                let bytes = rows * self.columns * self.samples() * self.dtype.size();
                for page in 0..self.pages() {
                    let _ = self.enter(TiffChunk { page, row, column }, bytes as u64);
                }
            }
        }
    }

    /// Copies tiles and strips, which were written in any order, from their file to another, at offset `at` and
    /// following, in the order of [`TiffFile::write`](super::file::TiffFile::write). Returns the offset after them.
    ///
    /// # Errors
    /// A message, if reading or writing fails.
    pub(super) fn collect(&self, from: &File, to: &File, at: u64) -> Result<u64, String> {
        let mut written = self.written();
        let mut bytes = Vec::new();
        written.end = at;
        let WrittenTiles { places, end } = &mut *written;
        for (place, count) in places {
            bytes.resize(usize::try_from(*count).map_err(|e| e.to_string())?, 0);
            read_exact_at(from, *place, &mut bytes)?;
            to.write_at(*end, &bytes)?;
            *place = *end;
            *end = (*end + *count).next_multiple_of(2);
        }
        Ok(*end)
    }

    /// Fails if a tile or strip is missing.
    pub(super) fn is_complete(&self) -> Result<(), String> {
        let written = self.written();
        let missing = written.places.iter().filter(|(_, count)| *count == 0).count();
        if missing > 0 {
            let what = if self.tiled { "tiles" } else { "strips" };
            return Err(format!("{missing} of its {} {what} are missing", written.places.len()));
        }
        Ok(())
    }

    /// The directory of a page; offsets are `big` in large files. `more` are entries besides those of its pixels.
    pub(super) fn page(&self, page: usize, big: bool, more: Vec<DirectoryEntry>) -> Vec<DirectoryEntry> {
        let chunks = self.down() * self.across();
        let written = self.written();
        let places = &written.places[page * chunks..][..chunks];
        let (Shape { height, width, .. }, channels) = (self.shape, self.samples());
        let (format, bits) = (sample_format(self.dtype), self.dtype.size() * 8);
        // Channels other than colours are declared as grey and extra samples, of which the last may be alpha.
        let (alpha, more): (Vec<DirectoryEntry>, Vec<DirectoryEntry>) =
            more.into_iter().partition(DirectoryEntry::is_alpha);
        let alpha: Option<u16> = alpha.iter().flat_map(DirectoryEntry::numbers).last();
        let (colours, extra) = match channels {
            3 if alpha.is_none() => (PhotometricInterpretation::RGB, 0),
            4 => (PhotometricInterpretation::RGB, 1),
            1 if more.iter().any(DirectoryEntry::is_colours) => (PhotometricInterpretation::RGBPalette, 0),
            _ => (PhotometricInterpretation::BlackIsZero, channels - 1),
        };
        // Sizes fit, because the format was checked.
        let side = |tag: Tag, n: usize| DirectoryEntry::long(tag.to_u16(), n as u32);
        let one = |tag: Tag, value: u16| DirectoryEntry::short(tag.to_u16(), [value]);
        let (offsets, counts) = if self.tiled {
            (Tag::TileOffsets, Tag::TileByteCounts)
        } else {
            (Tag::StripOffsets, Tag::StripByteCounts)
        };
        let (offsets, counts) = (offsets.to_u16(), counts.to_u16());
        let mut entries = vec![
            side(Tag::ImageWidth, width),
            side(Tag::ImageLength, height),
            DirectoryEntry::short(Tag::BitsPerSample.to_u16(), std::iter::repeat_n(bits as u16, channels)),
            one(Tag::Compression, self.compression.method().to_u16()),
            one(Tag::PhotometricInterpretation, colours.to_u16()),
            one(Tag::SamplesPerPixel, channels as u16),
            one(Tag::PlanarConfiguration, PlanarConfiguration::Chunky.to_u16()),
            DirectoryEntry::short(Tag::SampleFormat.to_u16(), std::iter::repeat_n(format.to_u16(), channels)),
            DirectoryEntry::places(offsets, places.iter().map(|(at, _)| *at).collect(), big),
            DirectoryEntry::places(counts, places.iter().map(|(_, count)| *count).collect(), big),
        ];
        if self.tiled {
            entries.extend([side(Tag::TileWidth, self.columns), side(Tag::TileLength, self.rows)]);
        } else {
            entries.push(side(Tag::RowsPerStrip, self.rows));
        }
        if self.compression.predicts(self.dtype) {
            entries.push(one(Tag::Predictor, tiff::tags::Predictor::Horizontal.to_u16()));
        }
        if extra > 0 {
            let unspecified = ExtraSamples::Unspecified.to_u16();
            let all = std::iter::repeat_n(unspecified, extra - 1).chain([alpha.unwrap_or(unspecified)]);
            entries.push(DirectoryEntry::short(Tag::ExtraSamples.to_u16(), all));
        }
        entries.extend(more);
        entries
    }
}
