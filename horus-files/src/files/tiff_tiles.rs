//! TIFF files in tiles or strips, written region by region: each is encoded by its thread and
//! appended to the file.
//!
//! The `tiff` crate encodes strips, from the first to the last; its compressors are used.

use std::sync::{Mutex, PoisonError};

use tiff::tags::{ExtraSamples, PhotometricInterpretation, PlanarConfiguration, Tag};

use super::compression::Compression;
use super::count::Count;
use super::interleave::join;
use super::output::{Output, WRITERS};
use super::tiff_directory::{Entry, directories, header};
use super::write_tiff::sample_format;
use horus_base::dtype::DType;
use horus_base::shape::{Region, Shape};
use horus_host::host::workers::Workers;

/// The tiles or strips of a file.
#[derive(Debug)]
pub(super) struct Tiles {
    shape: Shape,
    dtype: DType,
    /// Rows and columns of each.
    rows: usize,
    columns: usize,
    /// Tiles are whole, strips end with the picture.
    tiled: bool,
    compression: Compression,
    /// Offsets in the file take 64 bits.
    big: bool,
    /// Entries of each page beside those of its pixels.
    pub(super) entries: Vec<Entry>,
    written: Mutex<Written>,
    pub(super) count: Count,
}

#[derive(Debug)]
struct Written {
    /// Offset and length of each tile or strip; 0 for missing ones.
    places: Vec<(u64, u64)>,
    end: u64,
}

/// A tile or strip of a level.
#[derive(Clone, Copy)]
struct Chunk {
    level: usize,
    row: usize,
    column: usize,
}

impl Tiles {
    /// Offset of the first: tiles of powers of two are aligned to memory pages.
    const FIRST: u64 = 4096;
    /// Approximate bytes of a strip.
    const STRIP: usize = 256 << 10;
    /// The sides of TIFF tiles are multiples of this.
    pub(super) const STEP: usize = 16;

    /// Tiles of `tile` rows and columns, else strips.
    ///
    /// # Errors
    /// A message, if TIFF files do not support such tiles.
    pub(super) fn new(
        shape: Shape,
        dtype: DType,
        tile: Option<(usize, usize)>,
        compression: Compression,
    ) -> Result<Tiles, String> {
        let pixel = shape.channels * dtype.size();
        let (rows, columns) = match tile {
            Some((rows, columns)) => {
                let fits = |side: usize| side > 0 && side.is_multiple_of(Tiles::STEP);
                let bytes = rows.checked_mul(columns).and_then(|area| area.checked_mul(pixel));
                if !fits(rows) || !fits(columns) || bytes.is_none_or(|bytes| bytes > u32::MAX as usize / 2) {
                    return Err(format!(
                        "tiles of {rows}x{columns} pixels: the sides of TIFF tiles are multiples of 16"
                    ));
                }
                (rows, columns)
            }
            None => ((Tiles::STRIP / (shape.width * pixel)).clamp(1, shape.height), shape.width),
        };
        let mut tiles = Tiles {
            shape,
            dtype,
            rows,
            columns,
            tiled: tile.is_some(),
            compression,
            big: false,
            entries: Vec::new(),
            written: Mutex::new(Written { places: Vec::new(), end: Tiles::FIRST }),
            count: Count::default(),
        };
        let chunks = shape.depth * tiles.down() * tiles.across();
        u32::try_from(chunks).map_err(|_| format!("{chunks} tiles or strips are more than TIFF files have"))?;
        let most = compression.most(tiles.raw_bytes(), chunks as u64);
        const DIRECTORIES: u64 = 1 << 12;
        let directories = shape.depth as u64 * (DIRECTORIES + 6 * shape.channels as u64) + 16 * chunks as u64;
        tiles.big = most.saturating_add(directories) > u64::from(u32::MAX) - Tiles::FIRST;
        if let Ok(written) = tiles.written.get_mut() {
            written.places = vec![(0, 0); chunks];
        }
        Ok(tiles)
    }

    /// Rows and columns of a tile or strip.
    pub(super) fn chunk(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// The known bytes of the file: none, if they are compressed.
    pub(super) fn known_bytes(&self) -> u64 {
        if self.compression == Compression::None { Tiles::FIRST + self.raw_bytes() } else { 0 }
    }

    fn down(&self) -> usize {
        self.shape.height.div_ceil(self.rows)
    }

    fn across(&self) -> usize {
        self.shape.width.div_ceil(self.columns)
    }

    /// Bytes of a tile or strip, before it is compressed.
    fn chunk_bytes(&self) -> usize {
        self.rows * self.columns * self.shape.channels * self.dtype.size()
    }

    /// Bytes of a level, before it is compressed.
    fn level_bytes(&self) -> u64 {
        let height = if self.tiled { self.down() * self.rows } else { self.shape.height };
        (height * self.across() * self.columns * self.shape.channels * self.dtype.size()) as u64
    }

    fn raw_bytes(&self) -> u64 {
        self.shape.depth as u64 * self.level_bytes()
    }

    /// Encodes and writes a region that [is whole](Tiles::is_whole); pixels are planes without gaps.
    ///
    /// # Errors
    /// A message, if a tile or strip was written before, or writing fails.
    pub(super) fn put(&self, to: &dyn Output, region: Region, pixels: &[u8], workers: &Workers) -> Result<(), String> {
        let rows = region.top / self.rows..region.bottom().div_ceil(self.rows);
        let columns = region.left / self.columns..region.right().div_ceil(self.columns);
        let level = |level| {
            let columns = columns.clone();
            rows.clone().flat_map(move |row| columns.clone().map(move |column| Chunk { level, row, column }))
        };
        let chunks: Vec<Chunk> = (0..self.shape.depth).flat_map(level).collect();
        if self.compression == Compression::None {
            let one = |scratch: &mut Vec<u8>, chunk: Chunk| {
                self.raw(chunk, region, pixels, scratch);
                self.write(to, chunk, scratch)
            };
            return workers.each_by(WRITERS, chunks, one);
        }
        let row = self.columns * self.shape.channels * self.dtype.size();
        let encode = |scratch: &mut Vec<u8>, (chunk, encoded): (&Chunk, &mut Vec<u8>)| {
            self.raw(*chunk, region, pixels, scratch);
            self.compression.encode(scratch, row, self.shape.channels, self.dtype, encoded)
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

    /// Fails unless a region, which lies inside, consists of whole tiles or strips.
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

    /// The interleaved samples of a tile or strip.
    fn raw(&self, chunk: Chunk, region: Region, pixels: &[u8], to: &mut Vec<u8>) {
        let (size, channels) = (self.dtype.size(), self.shape.channels);
        let (top, left) = (chunk.row * self.rows, chunk.column * self.columns);
        let (height, width) = (self.rows.min(region.bottom() - top), self.columns.min(region.right() - left));
        let row = self.columns * channels * size;
        to.resize(if self.tiled { self.chunk_bytes() } else { height * row }, 0);
        let plane = region.height * region.width * size;
        let level = &pixels[chunk.level * channels * plane..][..channels * plane];
        for (y, to) in to.chunks_mut(row).enumerate() {
            let (inside, beyond) = to.split_at_mut(width * channels * size);
            beyond.fill(0);
            if y >= height {
                inside.fill(0);
                continue;
            }
            let at = ((top + y - region.top) * region.width + left - region.left) * size;
            let end = at + width * size;
            match channels {
                1 => inside.copy_from_slice(&level[at..end]),
                _ => join(&level.chunks(plane).map(|plane| &plane[at..end]).collect::<Vec<_>>(), inside, size),
            }
        }
    }

    fn write(&self, to: &dyn Output, chunk: Chunk, bytes: &[u8]) -> Result<(), String> {
        let index = chunk.row * self.across() + chunk.column;
        let count = bytes.len() as u64;
        let at = {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            let at = match self.compression {
                Compression::None => {
                    let level = Tiles::FIRST + chunk.level as u64 * self.level_bytes();
                    level + (index * self.chunk_bytes()) as u64
                }
                _ => written.end,
            };
            let place = &mut written.places[chunk.level * self.down() * self.across() + index];
            if place.1 > 0 {
                return Err(format!("{} {index} is written twice", if self.tiled { "tile" } else { "strip" }));
            }
            *place = (at, count);
            // Each begins on a word boundary.
            written.end = written.end.max((at + count).next_multiple_of(2));
            at
        };
        to.write_at(at, bytes)?;
        self.count.chunk();
        self.count.bytes(bytes.len());
        Ok(())
    }

    /// Writes the directories, and the header last.
    ///
    /// # Errors
    /// A message, if a tile or strip is missing, or writing fails.
    pub(super) fn finish(&self, to: &dyn Output) -> Result<(), String> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = written.places.iter().filter(|(_, count)| *count == 0).count();
        if missing > 0 {
            let what = if self.tiled { "tiles" } else { "strips" };
            return Err(format!("{missing} of its {} {what} are missing", written.places.len()));
        }
        let pages = written.places.chunks(self.down() * self.across()).enumerate();
        let pages = pages.map(|(page, places)| self.page(page == 0, places)).collect();
        let (bytes, first) = directories(pages, self.big, written.end);
        to.write_at(written.end, &bytes)?;
        to.write_at(0, &header(self.big, first))
    }

    fn page(&self, first: bool, places: &[(u64, u64)]) -> Vec<Entry> {
        let Shape { height, width, channels, .. } = self.shape;
        let (format, bits) = (sample_format(self.dtype), self.dtype.size() * 8);
        // Channels other than colours are declared as grey and unspecified extra samples.
        let (colours, more) = match channels {
            3 | 4 => (PhotometricInterpretation::RGB, channels - 3),
            _ => (PhotometricInterpretation::BlackIsZero, channels - 1),
        };
        // Sizes fit, as the format was checked.
        let side = |tag: Tag, n: usize| Entry::long(tag.to_u16(), n as u32);
        let one = |tag: Tag, value: u16| Entry::short(tag.to_u16(), [value]);
        let (offsets, counts) = if self.tiled {
            (Tag::TileOffsets, Tag::TileByteCounts)
        } else {
            (Tag::StripOffsets, Tag::StripByteCounts)
        };
        let (offsets, counts) = (offsets.to_u16(), counts.to_u16());
        let mut entries = vec![
            side(Tag::ImageWidth, width),
            side(Tag::ImageLength, height),
            Entry::short(Tag::BitsPerSample.to_u16(), std::iter::repeat_n(bits as u16, channels)),
            one(Tag::Compression, self.compression.method().to_u16()),
            one(Tag::PhotometricInterpretation, colours.to_u16()),
            one(Tag::SamplesPerPixel, channels as u16),
            one(Tag::PlanarConfiguration, PlanarConfiguration::Chunky.to_u16()),
            Entry::short(Tag::SampleFormat.to_u16(), std::iter::repeat_n(format.to_u16(), channels)),
            Entry::places(offsets, places.iter().map(|(at, _)| *at).collect(), self.big),
            Entry::places(counts, places.iter().map(|(_, count)| *count).collect(), self.big),
        ];
        if self.tiled {
            entries.extend([side(Tag::TileWidth, self.columns), side(Tag::TileLength, self.rows)]);
        } else {
            entries.push(side(Tag::RowsPerStrip, self.rows));
        }
        if self.compression.predicts(self.dtype) {
            entries.push(one(Tag::Predictor, tiff::tags::Predictor::Horizontal.to_u16()));
        }
        if more > 0 {
            let what = if channels == 4 { ExtraSamples::UnassociatedAlpha } else { ExtraSamples::Unspecified };
            entries.push(Entry::short(Tag::ExtraSamples.to_u16(), std::iter::repeat_n(what.to_u16(), more)));
        }
        entries.extend(self.entries.iter().filter(|entry| first || !entry.is_of_file()).cloned());
        entries
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tiff::decoder::{Decoder, DecodingResult};

    use super::super::output::Shared;
    use super::super::target::Sink;
    use super::*;

    #[test]
    fn large_files_have_places_of_64_bits() {
        let shape = Shape::volume(2, 37, 50, 3);
        let pixels: Vec<u16> = (0..shape.len()).map(|i| (i * 977) as u16).collect();
        for (tile, compression) in [(Some((16, 32)), Compression::None), (None, Compression::Deflate)] {
            let mut tiles = Tiles::new(shape, DType::U16, tile, compression).unwrap();
            assert!(!tiles.big);
            tiles.big = true;
            let mut file = Cursor::new(Vec::new());
            let to = Shared::new(&mut file as &mut dyn Sink);
            tiles.put(&to, Region::whole(shape), bytemuck::cast_slice(&pixels), &Workers::alone()).unwrap();
            tiles.finish(&to).unwrap();
            assert_eq!(file.get_ref()[2], 43);
            let mut decoder = Decoder::new(Cursor::new(file.into_inner())).unwrap();
            for level in pixels.chunks(shape.area() * 3) {
                let DecodingResult::U16(read) = decoder.read_image().unwrap() else { panic!("other samples") };
                let at = |i: usize, c: usize| level[c * shape.area() + i];
                let want: Vec<u16> = (0..shape.area()).flat_map(|i| (0..3).map(move |c| at(i, c))).collect();
                assert!(read == want, "{compression:?}");
                if decoder.more_images() {
                    decoder.next_image().unwrap();
                }
            }
            assert!(!decoder.more_images());
        }
    }

    #[test]
    fn places_have_64_bits_where_32_may_not_do() {
        let big = |side, compression| {
            let tiles = Tiles::new(Shape::new(side, side, 1), DType::U8, Some((512, 512)), compression).unwrap();
            tiles.big
        };
        // 127 tiles of 512 pixels across and down are 4032 MiB, 128 are 4 GiB.
        for compression in [Compression::None, Compression::Deflate] {
            assert!(!big(127 * 512, compression) && big(127 * 512 + 1, compression));
        }
    }
}
