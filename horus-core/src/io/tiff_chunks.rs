//! Strips and tiles of a TIFF page: those that hold a region are decoded, by all threads, each where it belongs.

use rayon::prelude::*;
use tiff::decoder::{ChunkType, Decoder, DecodingResult};
use tiff::tags::{IfdPointer, Tag};

use super::load::{Means, Source};
use super::read_tiff::text;
use super::tiff_source::{Reader, decoder_at};
use super::{Picture, bounds};
use crate::dtype::DType;
use crate::shape::{Region, Shape};

/// How samples are stored, and what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Samples {
    /// The samples of a type that images have.
    Of(DType),
    /// Integers of 8 bits with sign, as such of 32.
    Signed8,
    /// Of 16 bits.
    Signed16,
    /// Floats of 16 bits, as such of 32.
    Half,
    /// Cyan, magenta, yellow and black of 8 bits, as red, green and blue.
    Cmyk8,
    /// Of 16 bits.
    Cmyk16,
    /// Grey of less than a byte, as bytes.
    Packed(u8),
}

impl Samples {
    /// Samples of so many bits in a TIFF sample format.
    ///
    /// # Errors
    /// A message, if images have no such pixels.
    pub(super) fn of(bits: u8, format: u16, channels: usize, cmyk: bool) -> Result<Samples, String> {
        const INTEGERS: u16 = 2;
        const FLOATS: u16 = 3;
        let samples = match (format, bits) {
            (INTEGERS, 8) => Samples::Signed8,
            (INTEGERS, 16) => Samples::Signed16,
            (INTEGERS, 32) => Samples::Of(DType::I32),
            (FLOATS, 16) => Samples::Half,
            (FLOATS, 32) => Samples::Of(DType::F32),
            (FLOATS, 64) => Samples::Of(DType::F64),
            (FLOATS, _) => return Err(format!("TIFF floats of {bits} bits are not supported")),
            (INTEGERS, 64) | (_, 32 | 64) => {
                return Err(format!(
                    "{}TIFF integers of {bits} bits are not supported; use 8 or 16 bits, 32 bits with sign, or floats",
                    if format == INTEGERS { "" } else { "unsigned " },
                ));
            }
            (_, 8) => Samples::Of(DType::U8),
            (_, 16) => Samples::Of(DType::U16),
            (_, 1 | 2 | 4) if channels == 1 => Samples::Packed(bits),
            _ => return Err(format!("TIFF pixels of {channels} channels of {bits} bits are not supported")),
        };
        match samples {
            Samples::Of(DType::U8) if cmyk => Ok(Samples::Cmyk8),
            Samples::Of(DType::U16) if cmyk => Ok(Samples::Cmyk16),
            other if cmyk => Err(format!("CMYK TIFF pixels as {} are not supported", other.dtype())),
            other => Ok(other),
        }
    }

    /// The type of the image's pixels.
    pub(super) fn dtype(self) -> DType {
        match self {
            Samples::Of(dtype) => dtype,
            Samples::Signed8 | Samples::Signed16 => DType::I32,
            Samples::Half => DType::F32,
            Samples::Cmyk8 | Samples::Packed(_) => DType::U8,
            Samples::Cmyk16 => DType::U16,
        }
    }

    /// Channels of the image, of so many samples for each pixel.
    pub(super) fn channels(self, samples: usize) -> usize {
        if self.is_cmyk() { 3 } else { samples }
    }

    fn is_cmyk(self) -> bool {
        matches!(self, Samples::Cmyk8 | Samples::Cmyk16)
    }

    /// The bytes of what was decoded, in the type of the image's pixels.
    fn bytes(self, decoded: DecodingResult, columns: usize) -> Result<Vec<u8>, String> {
        fn wide<T: bytemuck::NoUninit>(samples: impl IntoIterator<Item = T>) -> Vec<u8> {
            let samples: Vec<T> = samples.into_iter().collect();
            bytemuck::cast_slice(&samples).to_vec()
        }
        Ok(match (self, decoded) {
            (Samples::Of(DType::U8) | Samples::Cmyk8, DecodingResult::U8(v)) => v,
            (Samples::Packed(bits), DecodingResult::U8(v)) => unpacked(&v, bits, columns),
            (Samples::Of(DType::U16) | Samples::Cmyk16, DecodingResult::U16(v)) => wide(v),
            (Samples::Of(DType::I32), DecodingResult::I32(v)) => wide(v),
            (Samples::Of(DType::F32), DecodingResult::F32(v)) => wide(v),
            (Samples::Of(DType::F64), DecodingResult::F64(v)) => wide(v),
            (Samples::Signed8, DecodingResult::I8(v)) => wide(v.into_iter().map(i32::from)),
            (Samples::Signed16, DecodingResult::I16(v)) => wide(v.into_iter().map(i32::from)),
            (Samples::Half, DecodingResult::F16(v)) => wide(v.into_iter().map(f32::from)),
            _ => return Err("its strips or tiles have different types".into()),
        })
    }
}

/// Bytes of samples of fewer bits, each row beginning with a byte.
fn unpacked(packed: &[u8], bits: u8, columns: usize) -> Vec<u8> {
    let (per_byte, full) = (8 / usize::from(bits), (1u16 << bits) as u8 - 1);
    let row = |row: &[u8]| -> Vec<u8> {
        let pixel = |x: usize| {
            let shift = 8 - bits * (x % per_byte + 1) as u8;
            (row[x / per_byte] >> shift & full) * (u8::MAX / full)
        };
        (0..columns).map(pixel).collect()
    };
    packed.chunks_exact(columns.div_ceil(per_byte).max(1)).flat_map(row).collect()
}

/// Where the JPEG data of strips or tiles is.
#[derive(Clone, Debug)]
pub(super) struct Jpeg {
    offsets: Vec<u64>,
    counts: Vec<u64>,
    tables: Vec<u8>,
}

impl Jpeg {
    pub(super) fn of(decoder: &mut Decoder<Reader<'_>>) -> Result<Jpeg, String> {
        let (offsets, counts) = match decoder.get_chunk_type() {
            ChunkType::Strip => (Tag::StripOffsets, Tag::StripByteCounts),
            ChunkType::Tile => (Tag::TileOffsets, Tag::TileByteCounts),
        };
        let mut tag =
            |tag| Ok::<_, String>(decoder.find_tag_unsigned_vec::<u64>(tag).map_err(text)?.unwrap_or_default());
        let tables = tag(Tag::JPEGTables)?.into_iter().map(|byte| byte as u8).collect();
        Ok(Jpeg { offsets: tag(offsets)?, counts: tag(counts)?, tables })
    }
}

/// The strips or tiles of a page.
pub(super) struct Chunks<'s> {
    pub(super) source: &'s Source<'s>,
    pub(super) directory: IfdPointer,
    /// Of the samples as they are stored.
    pub(super) shape: Shape,
    pub(super) samples: Samples,
    pub(super) planar: bool,
    /// Of JPEG data.
    pub(super) jpeg: Option<Jpeg>,
    /// Of a strip or tile.
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// The part of each plane that a row of strips or tiles holds.
type Planes<'a> = Vec<&'a mut [u8]>;

impl<'s> Chunks<'s> {
    /// Decodes a region, which lies inside. `decoder` stands at the page; other threads make their own.
    pub(super) fn read(
        &self,
        decoder: Decoder<Reader<'s>>,
        region: Region,
        means: Means<'_>,
    ) -> Result<Picture, String> {
        let dtype = self.samples.dtype();
        let shape = Shape::new(region.height, region.width, self.samples.channels(self.shape.channels));
        let mut pixels = (means.room)(shape.len() * dtype.size()).map_err(|e| e.to_string())?;
        let first = region.top / self.rows;
        let last = (region.top + region.height - 1) / self.rows;
        let mut parts: Vec<Planes<'_>> = Vec::new();
        parts.resize_with(last - first + 1, || Vec::with_capacity(shape.channels));
        for plane in pixels.bytes_mut().chunks_mut(shape.area() * dtype.size()) {
            let mut rest = plane;
            for (k, part) in parts.iter_mut().enumerate() {
                let (top, bottom) = self.rows_of(first + k, region);
                let (here, below) = rest.split_at_mut((bottom - top) * region.width * dtype.size());
                part.push(here);
                rest = below;
            }
        }
        if means.workers.threads() == 1 || parts.len() == 1 {
            let mut decoder = decoder;
            parts.into_iter().enumerate().try_for_each(|(k, part)| self.row(&mut decoder, first + k, region, part))?;
        } else {
            let own = || decoder_at(self.source, self.directory);
            means.workers.run(|| {
                parts.into_par_iter().enumerate().try_for_each_init(own, |decoder, (k, part)| {
                    let decoder = decoder.as_mut().map_err(|e| e.clone())?;
                    self.row(decoder, first + k, region, part)
                })
            })?;
        }
        Ok(Picture { shape, dtype, pixels })
    }

    /// The rows of a region that a row of strips or tiles holds.
    fn rows_of(&self, row: usize, region: Region) -> (usize, usize) {
        let (top, bottom) = (row * self.rows, (row + 1) * self.rows);
        (top.max(region.top), bottom.min(region.top + region.height))
    }

    /// Decodes what a row of strips or tiles has of a region.
    fn row(
        &self,
        decoder: &mut Decoder<Reader<'s>>,
        row: usize,
        region: Region,
        mut planes: Planes<'_>,
    ) -> Result<(), String> {
        if !self.samples.is_cmyk() {
            return self.samples_of(decoder, row, region, &mut planes);
        }
        let len = planes[0].len();
        let mut inks = vec![0; 4 * len];
        self.samples_of(decoder, row, region, &mut inks.chunks_mut(len).collect::<Vec<_>>())?;
        let (colours, black) = inks.split_at(3 * len);
        for (ink, plane) in colours.chunks(len).zip(planes) {
            match self.samples {
                Samples::Cmyk8 => {
                    lit(ink, black, plane, |c: u8, k| ((255.0 - f32::from(c)) * (1.0 - f32::from(k) / 255.0)) as u8)
                }
                _ => lit(ink, black, plane, |c: u16, k| {
                    ((65535.0 - f32::from(c)) * (1.0 - f32::from(k) / 65535.0)) as u16
                }),
            }
        }
        Ok(())
    }

    fn samples_of(
        &self,
        decoder: &mut Decoder<Reader<'s>>,
        row: usize,
        region: Region,
        planes: &mut [&mut [u8]],
    ) -> Result<(), String> {
        let Shape { height, width, channels, .. } = self.shape;
        let across = width.div_ceil(self.columns);
        let down = height.div_ceil(self.rows);
        let (top, bottom) = self.rows_of(row, region);
        let size = self.samples.dtype().size();
        for plane in 0..if self.planar { channels } else { 1 } {
            for column in region.left / self.columns..=(region.left + region.width - 1) / self.columns {
                let index = u32::try_from((plane * down + row) * across + column).map_err(|e| e.to_string())?;
                self.check(index)?;
                let (columns, _) = decoder.chunk_data_dimensions(index);
                let columns = columns as usize;
                let decoded = decoder.read_chunk(index).map_err(text)?;
                let bytes = self.samples.bytes(decoded, columns)?;
                // Samples of a pixel that lie together.
                let together = if self.planar { 1 } else { channels };
                let left = column * self.columns;
                let (from, to) = (left.max(region.left), (left + columns).min(region.left + region.width));
                for y in top..bottom {
                    let at = ((y - row * self.rows) * columns + from - left) * together * size;
                    let line =
                        bytes.get(at..at + (to - from) * together * size).ok_or("a strip or tile is too short")?;
                    let at = ((y - top) * region.width + from - region.left) * size;
                    let place = at..at + (to - from) * size;
                    if together == 1 {
                        planes[plane][place].copy_from_slice(line);
                    } else {
                        let mut parts: Vec<&mut [u8]> = planes.iter_mut().map(|p| &mut p[place.clone()]).collect();
                        super::interleave::split(line, &mut parts, size);
                    }
                }
            }
        }
        Ok(())
    }

    /// Rejects JPEG data that declares more pixels than its strip or tile has: the decoder trusts it.
    fn check(&self, index: u32) -> Result<(), String> {
        let Some(Jpeg { offsets, counts, tables }) = &self.jpeg else { return Ok(()) };
        let (Some(at), Some(count)) = (offsets.get(index as usize), counts.get(index as usize)) else {
            return Err("a strip or tile is missing".into());
        };
        // As the decoder sees them: the end of the file ends what is said to go beyond, and tables that are shared come first,
        // without their end, in place of the data's first marker.
        const MARKER: usize = 2;
        let count = usize::try_from((*count).min(self.source.size().saturating_sub(*at))).map_err(|e| e.to_string())?;
        let mut data = vec![0; count];
        self.source.read_at(*at, &mut data)?;
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

/// Red, green or blue of an ink and black.
fn lit<T: bytemuck::Pod>(ink: &[u8], black: &[u8], to: &mut [u8], light: impl Fn(T, T) -> T) {
    let pairs = ink.chunks_exact(size_of::<T>()).zip(black.chunks_exact(size_of::<T>()));
    for ((c, k), to) in pairs.zip(to.chunks_exact_mut(size_of::<T>())) {
        to.copy_from_slice(bytemuck::bytes_of(&light(
            bytemuck::pod_read_unaligned(c),
            bytemuck::pod_read_unaligned(k),
        )));
    }
}
