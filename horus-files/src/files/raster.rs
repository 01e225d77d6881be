//! Uncompressed pixels in a file: read directly into the image's memory, and written from there.

use rayon::prelude::*;

use super::interleave::{join, split};
use super::load::{Means, Source};
use super::target::{Sink, cause};
use super::{Picture, region_of};
use horus_base::dtype::DType;
use horus_base::shape::{Region, Shape};
use horus_host::host::buffer::HostBuffer;
use horus_host::host::workers::Workers;

/// Bytes read at a time: they stay in the cache until they are in place.
const CHUNK: usize = 256 << 10;

/// Conversion of each sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Unchanged.
    Kept,
    /// Its bytes are reversed.
    Swapped,
    /// Nonzero becomes 1.
    Truth,
}

impl Order {
    pub(super) fn apply(self, bytes: &mut [u8], size: usize) {
        fn swap<const N: usize>(bytes: &mut [u8]) {
            bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|sample| sample.reverse());
        }
        match (self, size) {
            (Order::Kept, _) | (Order::Swapped, 1) => {}
            (Order::Swapped, 2) => swap::<2>(bytes),
            (Order::Swapped, 4) => swap::<4>(bytes),
            (Order::Swapped, _) => swap::<8>(bytes),
            (Order::Truth, _) => bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0)),
        }
    }
}

/// Layout of the pixels in a file: row by row, interleaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Raster {
    /// The first byte.
    pub(super) at: u64,
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) order: Order,
}

impl Raster {
    /// Reads the pixels.
    ///
    /// # Errors
    /// A message, if pixels are missing or there is not enough memory.
    pub(super) fn read(self, source: &Source<'_>, region: Option<Region>, means: Means<'_>) -> Result<Picture, String> {
        let region = region_of(self.shape, region)?;
        let shape = Shape { height: region.height, width: region.width, ..self.shape };
        let mut pixels = (means.room)(shape.len() * self.dtype.size()).map_err(|e| e.to_string())?;
        self.fill(source, region, pixels.bytes_mut(), means.workers)?;
        Ok(Picture::from_pixels(shape, self.dtype.stored(), pixels))
    }

    /// Reads a region, which lies inside, into planes without gaps.
    pub(super) fn fill(
        self,
        source: &Source<'_>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> Result<(), String> {
        if region == Region::whole(self.shape) {
            self.all(source, to, workers)
        } else {
            self.part(source, region, to, workers)
        }
    }

    /// Reads a region: the part of each row inside it.
    fn part(self, source: &Source<'_>, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        let Raster { at, shape: whole, dtype, order } = self;
        let shape = Shape { height: region.height, width: region.width, ..whole };
        let (size, channels) = (dtype.size(), shape.channels);
        // The parts of all channels in a row of a level.
        let mut rows: Vec<Vec<&mut [u8]>> = Vec::new();
        rows.resize_with(shape.depth * shape.height, || Vec::with_capacity(channels));
        for (p, plane) in to.chunks_mut(shape.area() * size).enumerate() {
            let level = &mut rows[p / channels * shape.height..];
            plane.chunks_mut(shape.width * size).zip(level).for_each(|(part, row)| row.push(part));
        }
        let read = |scratch: &mut Vec<u8>, (k, mut planes): (usize, Vec<&mut [u8]>)| {
            let (z, y) = (k / shape.height, k % shape.height + region.top);
            let pixel = (z * whole.height + y) as u64 * whole.width as u64 + region.left as u64;
            let from = at + pixel * (channels * size) as u64;
            if let [row] = &mut planes[..] {
                source.read_at(from, row)?;
                order.apply(row, size);
            } else {
                scratch.resize(shape.width * channels * size, 0);
                source.read_at(from, scratch)?;
                order.apply(scratch, size);
                split(scratch, &mut planes, size);
            }
            Ok::<(), String>(())
        };
        let rows = rows.into_iter().enumerate();
        if workers.threads() == 1 {
            let mut scratch = Vec::new();
            rows.into_iter().try_for_each(|row| read(&mut scratch, row))
        } else {
            let rows: Vec<_> = rows.collect();
            workers.run(|| rows.into_par_iter().try_for_each_init(Vec::new, read))
        }
    }

    fn all(self, source: &Source<'_>, bytes: &mut [u8], workers: &Workers) -> Result<(), String> {
        let Raster { at, shape, dtype, order } = self;
        let (size, channels) = (dtype.size(), shape.channels);
        let one = |k: usize, to: &mut [u8]| {
            source.read_at(at + (k * CHUNK) as u64, to)?;
            order.apply(to, size);
            Ok(())
        };
        // Pixels per chunk, with several channels.
        let n = (CHUNK / (size * channels)).max(1);
        let several = |scratch: &mut Vec<u8>, from: usize, mut planes: Vec<&mut [u8]>| {
            scratch.resize(planes.iter().map(|p| p.len()).sum(), 0);
            source.read_at(at + from as u64, scratch)?;
            order.apply(scratch, size);
            split(scratch, &mut planes, size);
            Ok(())
        };
        let threads = workers.threads();
        if channels == 1 {
            if threads == 1 || bytes.len() <= CHUNK {
                bytes.chunks_mut(CHUNK).enumerate().try_for_each(|(k, to)| one(k, to))
            } else {
                workers.run(|| bytes.par_chunks_mut(CHUNK).enumerate().try_for_each(|(k, to)| one(k, to)))
            }
        } else {
            let mut parts: Vec<Vec<&mut [u8]>> = Vec::new();
            let chunks = shape.area().div_ceil(n);
            parts.resize_with(shape.depth * chunks, || Vec::with_capacity(channels));
            for (p, plane) in bytes.chunks_mut(shape.area() * size).enumerate() {
                let level = &mut parts[p / channels * chunks..];
                plane.chunks_mut(n * size).zip(level).for_each(|(part, parts)| parts.push(part));
            }
            let first = |k: usize| (k / chunks * shape.area() + k % chunks * n) * size * channels;
            if threads == 1 || parts.len() == 1 {
                let mut scratch = Vec::new();
                parts.into_iter().enumerate().try_for_each(|(k, planes)| several(&mut scratch, first(k), planes))
            } else {
                workers.run(|| {
                    let parts = parts.into_par_iter().enumerate();
                    parts.try_for_each_init(Vec::new, |scratch, (k, planes)| several(scratch, first(k), planes))
                })
            }
        }
    }
}

/// Writes interleaved pixels row by row, from planes. If they must be converted, `workers` prepare
/// a part at a time, which stays in their caches.
///
/// (One thread writes: file systems serialise writes to a file, and two threads took longer.)
pub(super) fn write(
    to: &mut dyn Sink,
    pixels: &HostBuffer,
    dtype: DType,
    shape: Shape,
    order: Order,
    workers: &Workers,
) -> Result<(), String> {
    let (size, channels, area) = (dtype.size(), shape.channels, shape.area());
    if channels == 1 && order == Order::Kept {
        return to.write_all(pixels.bytes()).map_err(cause);
    }
    let n = (CHUNK / (size * channels)).max(1);
    let bytes = n * size * channels;
    let threads = workers.threads().min(area.div_ceil(n));
    let mut scratch = vec![0; threads * bytes];
    let all: Vec<&[u8]> = pixels.bytes().chunks(area * size).collect();
    for (planes, start) in
        all.chunks(channels).flat_map(|level| (0..area).step_by(threads * n).map(move |s| (level, s)))
    {
        let part = &mut scratch[..(area - start).min(threads * n) * size * channels];
        let fill = |k: usize, to: &mut [u8]| {
            let (at, n) = ((start + k * n) * size, to.len() / channels);
            let planes: Vec<&[u8]> = planes.iter().map(|plane| &plane[at..at + n]).collect();
            join(&planes, to, size);
            order.apply(to, size);
        };
        if threads == 1 {
            fill(0, part);
        } else {
            workers.run(|| part.par_chunks_mut(bytes).enumerate().for_each(|(k, to)| fill(k, to)));
        }
        to.write_all(part).map_err(cause)?;
    }
    Ok(())
}
