//! Uncompressed pixels in a file: read directly into the image's memory, and written from there.

use super::target::Sink;
use super::{DecodeResources, Picture, PictureSource, cause, pixel_bytes, region_of};
use horus_base::dtype::DType;
use horus_base::shape::{Region, Shape};
use horus_host::workers::Workers;

/// Bytes read at a time: they stay in the cache until they are in place.
const CHUNK: usize = 256 << 10;

/// Conversion of each sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleConversion {
    /// Unchanged.
    Unchanged,
    /// Its bytes are reversed.
    Swapped,
    /// Nonzero becomes 1.
    Truth,
}

impl SampleConversion {
    pub(super) fn apply(self, bytes: &mut [u8], size: usize) {
        fn swap<const N: usize>(bytes: &mut [u8]) {
            bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|sample| sample.reverse());
        }
        match (self, size) {
            (SampleConversion::Unchanged, _) | (SampleConversion::Swapped, 1) => {}
            (SampleConversion::Swapped, 2) => swap::<2>(bytes),
            (SampleConversion::Swapped, 4) => swap::<4>(bytes),
            (SampleConversion::Swapped, _) => swap::<8>(bytes),
            (SampleConversion::Truth, _) => bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0)),
        }
    }
}

/// Layout of the pixels in a file, as in memory: interleaved samples, level by level, row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raster {
    /// The first byte.
    pub(super) at: u64,
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) order: SampleConversion,
    /// The last row of a level is the first in the file.
    pub(super) bottom_up: bool,
}

impl Raster {
    /// Reads the pixels.
    ///
    /// # Errors
    /// A message, if pixels are missing or there is not enough memory.
    pub(super) fn read(
        self,
        source: &PictureSource<'_>,
        region: Option<Region>,
        means: DecodeResources<'_>,
    ) -> Result<Picture, String> {
        let region = region_of(self.shape, region)?;
        let shape = Shape { height: region.height, width: region.width, ..self.shape };
        let mut pixels = (means.allocate)(shape.len() * self.dtype.size()).map_err(|e| e.to_string())?;
        self.fill(source, region, pixels.bytes_mut(), means.workers)?;
        Ok(Picture::from_pixels(shape, self.dtype.stored(), pixels))
    }

    /// Reads a region inside the picture, without gaps.
    pub(super) fn fill(
        self,
        source: &PictureSource<'_>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> Result<(), String> {
        if region == Region::whole(self.shape) && !self.bottom_up {
            self.all(source, to, workers)
        } else {
            self.part(source, region, to, workers)
        }
    }

    /// Reads a region: the part of each row inside it.
    fn part(self, source: &PictureSource<'_>, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        let Raster { at, shape, dtype, order, bottom_up } = self;
        let pixel = pixel_bytes(shape, dtype);
        let read = |(): &mut (), (k, row): (usize, &mut [u8])| {
            let (z, y) = (k / region.height, k % region.height + region.top);
            let y = if bottom_up { shape.height - 1 - y } else { y };
            let first = (z * shape.height + y) as u64 * shape.width as u64 + region.left as u64;
            source.read_at(at + first * pixel as u64, row)?;
            order.apply(row, dtype.size());
            Ok::<(), String>(())
        };
        workers.each(to.chunks_mut(region.width * pixel).enumerate().collect(), read)
    }

    fn all(self, source: &PictureSource<'_>, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        let read = |(): &mut (), (k, to): (usize, &mut [u8])| {
            source.read_at(self.at + (k * CHUNK) as u64, to)?;
            self.order.apply(to, self.dtype.size());
            Ok::<(), String>(())
        };
        workers.each(to.chunks_mut(CHUNK).enumerate().collect(), read)
    }
}

/// Writes a header and pixels. If pixels must be converted, `workers` convert a part at a time, which stays in their
/// caches.
///
/// (One thread writes: file systems serialise writes to a file, and two threads took longer.)
pub(super) fn write(
    to: &mut dyn Sink,
    (header, order): &(Vec<u8>, SampleConversion),
    pixels: &[u8],
    dtype: DType,
    workers: &Workers,
) -> Result<(), String> {
    to.expect((header.len() + pixels.len()) as u64);
    to.write_all(header).map_err(cause)?;
    if *order == SampleConversion::Unchanged {
        return to.write_all(pixels).map_err(cause);
    }
    let mut scratch = vec![0; pixels.len().min(workers.threads() * CHUNK)];
    for some in pixels.chunks(scratch.len().max(1)) {
        let part = &mut scratch[..some.len()];
        let convert = |(): &mut (), (from, to): (&[u8], &mut [u8])| {
            to.copy_from_slice(from);
            order.apply(to, dtype.size());
            Ok::<(), String>(())
        };
        workers.each(some.chunks(CHUNK).zip(part.chunks_mut(CHUNK)).collect(), convert)?;
        to.write_all(part).map_err(cause)?;
    }
    Ok(())
}
