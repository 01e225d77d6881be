//! Images, and other data, that do not fit in memory.

use std::fs::File;
use std::ops::Range;

use super::count::FileTraffic;
use super::load::read_exact_at;
use super::reader::RegionSource;
use super::target::reserve;
use super::{Count, PositionedOutput, cause, pixel_bytes};
use horus_base::dtype::DType;
use horus_base::shape::{Region, Shape};
use horus_host::workers::Workers;

/// A temporary file without a name, in `TMPDIR`, which disappears with the value.
#[derive(Debug)]
pub struct TemporaryFile(File);

impl TemporaryFile {
    /// An empty file.
    ///
    /// # Errors
    /// A message, if the file cannot be created.
    pub fn new() -> Result<TemporaryFile, String> {
        tempfile::tempfile().map(TemporaryFile).map_err(cause)
    }

    /// Writes bytes from `at` on.
    ///
    /// # Errors
    /// A message, if writing fails.
    pub fn put(&self, at: u64, bytes: &[u8]) -> Result<(), String> {
        self.0.write_at(at, bytes)
    }

    /// Reads bytes from `at` on.
    ///
    /// # Errors
    /// A message, if reading fails, or the file is shorter.
    pub fn get(&self, at: u64, to: &mut [u8]) -> Result<(), String> {
        read_exact_at(&self.0, at, to)
    }
}

/// An image in a [`TemporaryFile`]. The image is written in parts, then read.
#[derive(Debug)]
pub struct TemporaryImage {
    file: TemporaryFile,
    shape: Shape,
    dtype: DType,
    read: Count,
}

impl TemporaryImage {
    /// A file for an image, with elements as in memory.
    ///
    /// # Errors
    /// A message, if the file cannot be created or its file system has too little space.
    pub fn new(shape: Shape, dtype: DType) -> Result<TemporaryImage, String> {
        let file = TemporaryFile::new()?;
        reserve(&file.0, (shape.len() * dtype.size()) as u64)?;
        Ok(TemporaryImage { file, shape, dtype: dtype.stored(), read: Count::default() })
    }

    /// Writes a region of some levels: interleaved samples, level by level, row by row.
    ///
    /// # Errors
    /// A message, if writing fails.
    pub fn put(&self, levels: Range<usize>, region: Region, pixels: &[u8]) -> Result<(), String> {
        self.stretches(levels, region).try_for_each(|(at, part)| self.file.put(at, &pixels[part]))
    }

    /// The contiguous bytes of a region: the position of each run in the file and in the region.
    fn stretches(&self, levels: Range<usize>, region: Region) -> impl Iterator<Item = (u64, Range<usize>)> {
        let (Shape { height, width, .. }, pixel) = (self.shape, pixel_bytes(self.shape, self.dtype));
        // Whole rows adjoin.
        let (rows, row) =
            if region.width == width { (1, region.height * width) } else { (region.height, region.width) };
        levels.flat_map(move |z| (0..rows).map(move |y| (z, y))).enumerate().map(move |(i, (z, y))| {
            let at = ((z * height + region.top + y) * width + region.left) * pixel;
            (at as u64, i * row * pixel..(i + 1) * row * pixel)
        })
    }
}

impl RegionSource for TemporaryImage {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn chunk(&self) -> (usize, usize) {
        (1, self.shape.width)
    }

    fn scratch_bytes(&self) -> usize {
        0
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        self.fill_levels(0..self.shape.depth, region, to, workers)
    }

    fn levels(&self) -> usize {
        1
    }

    fn fill_levels(&self, levels: Range<usize>, region: Region, to: &mut [u8], _: &Workers) -> Result<(), String> {
        self.read.bytes(to.len());
        self.stretches(levels, region).try_for_each(|(at, part)| self.file.get(at, &mut to[part]))
    }

    fn counted(&self) -> FileTraffic {
        self.read.traffic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_part_by_part_is_read_in_any_parts() {
        let planar = Shape::volume(3, 5, 7, 2);
        let value = |z: usize, y: usize, x: usize, c: usize| (((z * 5 + y) * 7 + x) * 2 + c) as u8;
        let part = |levels: Range<usize>, at: Region| -> Vec<u8> {
            let rows = levels.flat_map(|z| (at.top..at.bottom()).map(move |y| (z, y)));
            let pixels = rows.flat_map(|(z, y)| (at.left..at.right()).map(move |x| (z, y, x)));
            pixels.flat_map(|(z, y, x)| [value(z, y, x, 0), value(z, y, x, 1)]).collect()
        };
        for shape in [planar, planar.interleaved()] {
            let aside = TemporaryImage::new(shape, DType::U8).unwrap();
            for (levels, region) in [
                (0..1, Region::whole(shape)),
                (1..3, Region::new(0, 0, 2, 7)),
                (1..3, Region::new(2, 0, 3, 4)),
                (1..3, Region::new(2, 4, 3, 3)),
            ] {
                aside.put(levels.clone(), region, &part(levels, region)).unwrap();
            }
            for (levels, region) in
                [(0..3, Region::whole(shape)), (2..3, Region::new(1, 3, 4, 2)), (0..2, Region::new(4, 0, 1, 7))]
            {
                let wanted = part(levels.clone(), region);
                let mut read = vec![0; wanted.len()];
                aside.fill_levels(levels, region, &mut read, &Workers::alone()).unwrap();
                assert_eq!(read, wanted);
            }
        }
        let lacking = TemporaryImage::new(Shape::new(1 << 30, 1 << 30, 1), DType::U8);
        assert!(lacking.is_err_and(|cause| cause.contains("no room for its")), "more than a disk has");
    }
}
