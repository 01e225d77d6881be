//! TIFF files to write: a page for each level, or for each channel of it, each in one size or several, in the layout of
//! cloud optimized GeoTIFF: first the directories, then the pixels of the smallest size, last those of the largest.

use std::fs::File;
use std::path::Path;

use tiff::tags::Tag;

use super::compression::Compression;
use super::directory::{Directory, DirectoryEntry, directories, header};
use super::metadata;
use super::tiles::TiffTiles;
use crate::count::FileTraffic;
use crate::file_spec::shapes;
use crate::output::SharedSink;
use crate::replace::is_permission_error;
use crate::target::{Sink, folder};
use crate::{FileSpec, PositionedOutput, RegionFile, SaveOptions, cause};
use horus_base::dtype::DType;
use horus_base::shape::{Region, Shape};
use horus_host::workers::Workers;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct TiffFile {
    /// The largest first.
    sizes: Vec<TiffTiles>,
    /// Files that contain the sizes until all are complete, if sizes are compressed and written in any order.
    temporary_files: Vec<File>,
    /// Entries of each page besides those of its pixels.
    entries: Vec<DirectoryEntry>,
    /// Offsets in the file take 64 bits.
    big: bool,
}

impl TiffFile {
    /// Pixels with sizes that are powers of two are aligned to memory pages.
    const PAGE: u64 = 4096;
    /// Maximum number of sizes: the smallest of any picture is a pixel.
    const MOST_SIZES: usize = 32;
    /// Sides of tiles of files of several sizes, unless others are given: GDAL's default.
    const TILE: usize = 512;

    /// The file for a specification.
    ///
    /// # Errors
    /// A message, if TIFF files do not support its options.
    pub(super) fn of(file: &FileSpec) -> Result<TiffFile, String> {
        let SaveOptions { tile, compression, sizes, .. } = file.options;
        // Independent of available memory, so that the bytes of a file do not depend on it.
        let tile = tile.or(file.metadata.tile.filter(|tile| TiffFile::is_tiled_like_source(*tile, file.shape)));
        let (entries, apart) = metadata::entries(file)?;
        Ok(TiffFile::new(file.shape, file.stored, tile, compression, sizes, apart)?.with(entries))
    }

    /// Returns `true` if a picture is, by default, stored in the tiles of its source file: if it is larger than one of
    /// them.
    fn is_tiled_like_source((rows, columns): (usize, usize), shape: Shape) -> bool {
        /// Maximum rows and columns of a tile.
        const LARGEST: usize = 4096;
        let side = |side: usize, of: usize| side.is_multiple_of(TiffTiles::STEP) && side <= LARGEST && side < of;
        side(rows, shape.height) && side(columns, shape.width)
    }

    /// A file of this many sizes in tiles of `tile` rows and columns; a file of one size may be in strips. Pages are
    /// levels or, with channels `apart`, each channel of each level.
    ///
    /// # Errors
    /// A message, if TIFF files do not support such tiles or sizes.
    pub(super) fn new(
        shape: Shape,
        dtype: DType,
        tile: Option<(usize, usize)>,
        compression: Compression,
        sizes: usize,
        apart: bool,
    ) -> Result<TiffFile, String> {
        if sizes == 0 || sizes > TiffFile::MOST_SIZES {
            return Err(format!("{sizes} sizes requested; a picture has 1 to {}", TiffFile::MOST_SIZES));
        }
        let tile = if sizes > 1 { tile.or(Some((TiffFile::TILE, TiffFile::TILE))) } else { tile };
        let one = |(k, shape): (usize, Shape)| {
            // A small size has at most one tile.
            let side =
                |side: usize, of: usize| if k > 0 { side.min(of.next_multiple_of(TiffTiles::STEP)) } else { side };
            let tile = tile.map(|(rows, columns)| (side(rows, shape.height), side(columns, shape.width)));
            TiffTiles::new(shape, dtype, tile, compression, apart)
        };
        let sizes = shapes(shape, sizes).enumerate().map(one).collect::<Result<Vec<TiffTiles>, String>>()?;
        let mut file = TiffFile { sizes, temporary_files: Vec::new(), entries: Vec::new(), big: false };
        file.lay();
        Ok(file)
    }

    /// Adds entries of each page besides those of its pixels; before anything is written.
    pub(super) fn with(mut self, entries: Vec<DirectoryEntry>) -> TiffFile {
        self.entries = entries;
        self.lay();
        self
    }

    /// Chooses the size of offsets, and computes the positions of the pixels.
    fn lay(&mut self) {
        let chunks: usize = self.sizes.iter().map(TiffTiles::chunks).sum();
        let most = self.compression().most(self.raw_bytes(), chunks as u64);
        self.big = false;
        let before = self.directories().len() as u64;
        self.big = most.saturating_add(before) > u64::from(u32::MAX) - 2 * TiffFile::PAGE;
        self.place();
    }

    /// Computes the positions of the pixels after the directories.
    fn place(&mut self) {
        let mut at = self.first();
        for size in self.sizes.iter_mut().rev() {
            size.begin(at);
            at += if size.compression == Compression::None { size.raw_bytes() } else { 0 };
        }
    }

    fn compression(&self) -> Compression {
        self.sizes[0].compression
    }

    fn raw_bytes(&self) -> u64 {
        self.sizes.iter().map(TiffTiles::raw_bytes).sum()
    }

    /// The offset of the first pixels.
    fn first(&self) -> u64 {
        (self.directories().len() as u64).next_multiple_of(TiffFile::PAGE)
    }

    /// Writes all pixels, last those of the largest size.
    ///
    /// # Errors
    /// A message, if writing fails.
    pub(super) fn write(mut self, to: &mut dyn Sink, pixels: &[&[u8]], workers: &Workers) -> Result<(), String> {
        to.expect(self.bytes());
        let to = SharedSink::new(to);
        let mut end = None;
        for (size, pixels) in self.sizes.iter_mut().zip(pixels).rev() {
            if let Some(end) = end.filter(|_| size.compression != Compression::None) {
                size.begin(end);
            }
            size.put(&to, Region::whole(size.shape), pixels, workers)?;
            end = Some(size.end());
        }
        self.sizes.iter().try_for_each(TiffTiles::is_complete)?;
        to.write_at(0, &self.directories())
    }

    /// The bytes before the pixels: the header and the directories.
    fn directories(&self) -> Vec<u8> {
        const REDUCED: u32 = 1;
        // Smaller copies of described pages belong to them (OME-TIFF); other copies follow their pages (GeoTIFF).
        let own = if self.entries.iter().any(DirectoryEntry::is_ome) { self.sizes.len() - 1 } else { 0 };
        let mut all = Vec::new();
        for page in 0..self.sizes[0].pages() {
            for (k, size) in self.sizes.iter().enumerate() {
                let is_told = |entry: &&DirectoryEntry| match (k, page) {
                    (0, 0) => true,
                    (0, _) => !entry.is_of_file(),
                    _ => entry.is_of_samples(),
                };
                let mut more: Vec<DirectoryEntry> = self.entries.iter().filter(is_told).cloned().collect();
                if k > 0 {
                    more.push(DirectoryEntry::long(Tag::NewSubfileType.to_u16(), REDUCED));
                }
                let entries = size.page(page, self.big, more);
                all.push(Directory { entries, own: if k == 0 { own } else { 0 } });
            }
        }
        let begin = header(self.big, 0).len() as u64;
        let (bytes, first) = directories(all, self.big, begin);
        [header(self.big, first), bytes].concat()
    }
}

impl RegionFile for TiffFile {
    fn bytes(&self) -> u64 {
        // The bytes of compressed pixels are not known.
        if self.compression() == Compression::None { self.first() + self.raw_bytes() } else { 0 }
    }

    /// Writes compressed sizes to separate unnamed files beside `path` until all are complete: the offset of a tile or
    /// strip is not known earlier, and the file does not depend on the order of its regions.
    fn begin(&mut self, _: &File, path: &Path) -> Result<(), String> {
        if self.compression() == Compression::None {
            return Ok(());
        }
        for size in &mut self.sizes {
            let aside = tempfile::tempfile_in(folder(path));
            // Like the file itself, if its folder does not permit new files.
            let aside = aside.or_else(|e| if is_permission_error(&e) { tempfile::tempfile() } else { Err(e) });
            self.temporary_files.push(aside.map_err(cause)?);
            size.begin(0);
        }
        Ok(())
    }

    fn shape(&self, size: usize) -> Shape {
        self.sizes[size].shape
    }

    fn chunk(&self, size: usize) -> (usize, usize) {
        self.sizes[size].chunk()
    }

    fn is_whole(&self, size: usize, region: Region) -> Result<(), String> {
        self.sizes[size].is_whole(region)
    }

    /// Compressed pixels of one process have no known place before those of another.
    fn is_shareable(&self) -> bool {
        self.compression() == Compression::None && self.sizes.len() == 1
    }

    /// The offset of the pixels, rows and columns of tiles (0 for strips), and whether channels have pages of their own.
    fn layout(&self) -> Vec<u64> {
        let (rows, columns) = self.sizes[0].tile().unwrap_or_default();
        vec![self.first(), rows as u64, columns as u64, u64::from(self.sizes[0].has_channel_pages())]
    }

    fn join(&mut self, layout: &[u64]) -> Result<(), String> {
        let &[first, rows, columns, apart] = layout else { return Err("a file without a layout".into()) };
        let side = |n: u64| usize::try_from(n).map_err(|e| e.to_string());
        let tile = Some((side(rows)?, side(columns)?)).filter(|(rows, _)| *rows > 0);
        self.sizes[0] = self.sizes[0].laid(tile, apart > 0)?;
        self.sizes[0].begin(first);
        Ok(())
    }

    fn leave(&self, region: Region) -> Result<(), String> {
        self.sizes[0].leave(region);
        Ok(())
    }

    fn put(&self, to: &File, size: usize, region: Region, pixels: &[u8], workers: &Workers) -> Result<(), String> {
        self.sizes[size].put(self.temporary_files.get(size).unwrap_or(to), region, pixels, workers)
    }

    fn is_complete(&self) -> Result<(), String> {
        self.sizes.iter().try_for_each(TiffTiles::is_complete)
    }

    fn finish(&self, to: &File) -> Result<(), String> {
        let mut both = self.sizes.iter().zip(&self.temporary_files).rev();
        both.try_fold(self.first(), |at, (size, from)| size.collect(from, to, at))?;
        to.write_at(0, &self.directories())
    }

    fn counted(&self) -> FileTraffic {
        self.sizes.iter().map(|size| size.count.traffic()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Seek};

    use tiff::decoder::{Decoder, DecodingResult};

    use super::*;

    /// The pages of a file, each read as interleaved `u16` samples.
    fn pages(file: Vec<u8>) -> Vec<Vec<u16>> {
        let mut decoder = Decoder::new(Cursor::new(file)).unwrap();
        let mut pages = Vec::new();
        loop {
            let DecodingResult::U16(read) = decoder.read_image().unwrap() else { panic!("other samples") };
            pages.push(read);
            if !decoder.more_images() {
                return pages;
            }
            decoder.next_image().unwrap();
        }
    }

    fn noise(shape: Shape) -> Vec<u16> {
        (0..shape.len()).map(|i| (i * 977) as u16).collect()
    }

    #[test]
    fn large_files_have_places_of_64_bits() {
        let shape = Shape::volume(2, 37, 50, 3);
        let pixels = noise(shape);
        for (tile, compression) in [(Some((16, 32)), Compression::None), (None, Compression::Deflate)] {
            let mut made = TiffFile::new(shape, DType::U16, tile, compression, 1, false).unwrap();
            assert!(!made.big);
            made.big = true;
            made.place();
            let mut file = Cursor::new(Vec::new());
            made.write(&mut file, &[bytemuck::cast_slice(&pixels)], &Workers::alone()).unwrap();
            assert_eq!(file.get_ref()[2], 43);
            let want = pixels.chunks(shape.area() * shape.channels);
            assert!(pages(file.into_inner()).iter().eq(want), "{compression:?}");
        }
    }

    #[test]
    fn channels_apart_have_pages_of_their_own() {
        let shape = Shape::volume(2, 37, 50, 3);
        let pixels = noise(shape);
        let page = |page: usize| {
            let level = &pixels[page / 3 * shape.area() * 3..][..shape.area() * 3];
            level[page % 3..].iter().step_by(3).copied().collect::<Vec<u16>>()
        };
        let want: Vec<Vec<u16>> = (0..6).map(page).collect();
        for (tile, compression) in [(Some((16, 32)), Compression::None), (None, Compression::Deflate)] {
            let new = || TiffFile::new(shape, DType::U16, tile, compression, 1, true).unwrap();
            let mut file = Cursor::new(Vec::new());
            new().write(&mut file, &[bytemuck::cast_slice(&pixels)], &Workers::alone()).unwrap();
            assert!(pages(file.into_inner()) == want, "{compression:?}");
            // In regions that cut the tiles.
            let (parts, mut file) = (new(), tempfile::tempfile().unwrap());
            for (top, bottom) in [(10, 37), (0, 10)] {
                let level = |z: usize| &pixels[(z * 37 + top) * 150..(z * 37 + bottom) * 150];
                let some = [level(0), level(1)].concat();
                let region = Region::new(top, 0, bottom - top, 50);
                parts.put(&file, 0, region, bytemuck::cast_slice(&some), &Workers::alone()).unwrap();
            }
            parts.finish(&file).unwrap();
            let mut read = Vec::new();
            file.rewind().unwrap();
            std::io::Read::read_to_end(&mut file, &mut read).unwrap();
            assert!(pages(read) == want, "{compression:?}, in parts");
        }
    }

    #[test]
    fn places_have_64_bits_where_32_may_not_do() {
        let big = |side, compression| {
            TiffFile::new(Shape::new(side, side, 1), DType::U8, Some((512, 512)), compression, 1, false).unwrap().big
        };
        // 127 tiles of 512 pixels across and down are 4032 MiB, 128 are 4 GiB.
        for compression in [Compression::None, Compression::Deflate] {
            assert!(!big(127 * 512, compression) && big(127 * 512 + 1, compression));
        }
    }

    #[test]
    fn sizes_put_in_parts_are_those_written_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for (depth, compression) in [(1, Compression::None), (1, Compression::Deflate), (2, Compression::Zstd)] {
            let shape = Shape::volume(depth, 75, 50, 1);
            let new = || TiffFile::new(shape, DType::U16, Some((16, 32)), compression, 3, false).unwrap();
            let sizes: Vec<Shape> = shapes(shape, 3).collect();
            assert_eq!((sizes[1].height, sizes[2].width), (38, 13));
            let pixels: Vec<Vec<u16>> = sizes.iter().map(|shape| noise(*shape)).collect();
            let mut whole = Cursor::new(Vec::new());
            let bytes: Vec<&[u8]> = pixels.iter().map(|pixels| bytemuck::cast_slice(pixels)).collect();
            new().write(&mut whole, &bytes, &Workers::alone()).unwrap();
            let mut parts = new();
            let file = tempfile::tempfile().unwrap();
            parts.begin(&file, &folder.path().join("a.tif")).unwrap();
            // In regions that cut the tiles of the smaller sizes, in another order than at once.
            for part in [3, 0, 4, 1, 2] {
                for (k, size) in sizes.iter().enumerate() {
                    let at = |part: usize| if part == 5 { size.height } else { (part * 16) >> k };
                    let region = Region::new(at(part), 0, at(part + 1) - at(part), size.width);
                    let planes = pixels[k].chunks(size.area());
                    let rows = planes.flat_map(|plane| &plane[region.top * size.width..region.bottom() * size.width]);
                    let rows: Vec<u16> = rows.copied().collect();
                    parts.put(&file, k, region, bytemuck::cast_slice(&rows), &Workers::alone()).unwrap();
                }
            }
            parts.finish(&file).unwrap();
            let mut read = Vec::new();
            (&file).rewind().unwrap();
            std::io::Read::read_to_end(&mut &file, &mut read).unwrap();
            let want: Vec<Vec<u16>> = (0..depth)
                .flat_map(|z| pixels.iter().zip(&sizes).map(move |(p, s)| p[z * s.area()..][..s.area()].to_vec()))
                .collect();
            let whole = whole.into_inner();
            assert!(read == whole, "{compression:?}: other bytes");
            assert!(pages(whole) == want, "{compression:?}");
        }
    }

    #[test]
    fn directories_come_first_and_then_the_smallest_size() {
        let shape = Shape::new(100, 80, 1);
        let mut file = Cursor::new(Vec::new());
        let pixels: Vec<Vec<u8>> = shapes(shape, 3).map(|shape| vec![7; shape.len()]).collect();
        let bytes: Vec<&[u8]> = pixels.iter().map(|pixels| &pixels[..]).collect();
        let made = TiffFile::new(shape, DType::U8, Some((32, 32)), Compression::Deflate, 3, false).unwrap();
        made.write(&mut file, &bytes, &Workers::alone()).unwrap();
        let mut decoder = Decoder::new(Cursor::new(file.into_inner())).unwrap();
        let mut at = Vec::new();
        for size in 0..3 {
            let directory = decoder.ifd_pointer().unwrap().0;
            assert!(directory < TiffFile::PAGE, "{directory}");
            at.push(decoder.get_tag_u64_vec(Tag::TileOffsets).unwrap()[0]);
            let reduced = decoder.find_tag(Tag::NewSubfileType).unwrap().map(|v| v.into_u32().unwrap());
            assert_eq!(reduced, (size > 0).then_some(1));
            if size < 2 {
                decoder.next_image().unwrap();
            }
        }
        assert!(at[2] == TiffFile::PAGE && at[2] < at[1] && at[1] < at[0], "{at:?}");
        assert!(TiffFile::new(shape, DType::U8, None, Compression::None, 0, false).unwrap_err().contains("0 sizes"));
    }
}
