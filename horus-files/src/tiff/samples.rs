//! Conversion of samples of TIFF files to pixel types.

use half::f16;

use horus_base::dtype::DType;

/// Stored samples, and their conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredSamples {
    /// Samples of a pixel type.
    Of(DType),
    /// 16-bit floats, converted to 32 bits.
    Half,
    /// Unsigned integers with fewer bits than a pixel type, scaled to its range.
    Packed(u16),
    /// Indices of a colour table with fewer bits than a pixel type, unchanged.
    Indices(u16),
}

impl StoredSamples {
    /// Samples of `bits` bits in a TIFF sample format.
    ///
    /// # Errors
    /// A message, if there is no such pixel type.
    pub(super) fn of(bits: u16, format: u16, are_indices: bool) -> Result<StoredSamples, String> {
        const INTEGERS: u16 = 2;
        const FLOATS: u16 = 3;
        const COMPLEX_INTEGERS: u16 = 5;
        const COMPLEX_FLOATS: u16 = 6;
        Ok(match (format, bits) {
            (INTEGERS, 8) => StoredSamples::Of(DType::I8),
            (INTEGERS, 16) => StoredSamples::Of(DType::I16),
            (INTEGERS, 32) => StoredSamples::Of(DType::I32),
            (FLOATS, 16) => StoredSamples::Half,
            (FLOATS, 32) => StoredSamples::Of(DType::F32),
            (FLOATS, 64) => StoredSamples::Of(DType::F64),
            (FLOATS, _) => return Err(format!("TIFF floats of {bits} bits are not supported")),
            (COMPLEX_INTEGERS | COMPLEX_FLOATS, _) => return Err("complex TIFF pixels are not supported".into()),
            (INTEGERS, _) | (_, 0 | 17..=31 | 33..) => {
                return Err(format!(
                    "TIFF integers of {bits} bits are not supported; use 8, 16 or 32 bits, 1 to 16 without sign, or floats"
                ));
            }
            (_, 32) => StoredSamples::Of(DType::U32),
            (_, 8) => StoredSamples::Of(DType::U8),
            (_, 16) => StoredSamples::Of(DType::U16),
            _ if are_indices => StoredSamples::Indices(bits),
            _ => StoredSamples::Packed(bits),
        })
    }

    /// The type of the image's pixels.
    pub(super) fn dtype(self) -> DType {
        match self {
            StoredSamples::Of(dtype) => dtype,
            StoredSamples::Half => DType::F32,
            StoredSamples::Packed(bits) | StoredSamples::Indices(bits) if bits < 8 => DType::U8,
            StoredSamples::Packed(_) | StoredSamples::Indices(_) => DType::U16,
        }
    }

    /// Returns `true` if the bytes of a file are pixels, up to their byte order.
    pub(super) fn are_pixels(self) -> bool {
        matches!(self, StoredSamples::Of(_))
    }

    /// Bytes of a stored sample; 1 for samples of less than a byte.
    pub(super) fn size(self) -> usize {
        match self {
            StoredSamples::Of(dtype) => dtype.size(),
            StoredSamples::Half => 2,
            StoredSamples::Packed(_) | StoredSamples::Indices(_) => 1,
        }
    }

    /// Bytes of a row of this many stored samples.
    pub(super) fn row(self, samples: usize) -> usize {
        match self {
            StoredSamples::Packed(bits) | StoredSamples::Indices(bits) => (usize::from(bits) * samples).div_ceil(8),
            _ => self.size() * samples,
        }
    }

    /// Appends a row of this many stored samples, in the type of the image's pixels.
    pub(super) fn convert(self, row: &[u8], samples: usize, to: &mut Vec<u8>) {
        let (bits, top) = match self {
            StoredSamples::Of(_) => return to.extend_from_slice(row),
            StoredSamples::Half => {
                let wide = |sample: &[u8; 2]| f16::from_ne_bytes(*sample).to_f32().to_ne_bytes();
                return to.extend(row.as_chunks().0.iter().flat_map(wide));
            }
            StoredSamples::Packed(bits) => {
                (usize::from(bits), if bits < 8 { u32::from(u8::MAX) } else { u32::from(u16::MAX) })
            }
            StoredSamples::Indices(bits) => (usize::from(bits), (1 << bits) - 1),
        };
        let full = (1u32 << bits) - 1;
        // 15 bits are in at most three bytes.
        let byte = |at: usize| row.get(at).map_or(0, |byte| u32::from(*byte));
        let sample = |i: usize| {
            let (at, bit) = (i * bits / 8, i * bits % 8);
            let three = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
            let value = three >> (24 - bit - bits) & full;
            (value * top + full / 2) / full
        };
        match self.dtype() {
            DType::U8 => to.extend((0..samples).map(|i| sample(i) as u8)),
            _ => to.extend((0..samples).flat_map(|i| (sample(i) as u16).to_ne_bytes())),
        }
    }
}

/// Colours of pixels that images represent differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColourEncoding {
    Unchanged,
    /// Grey in which 0 is white.
    Inverted,
    /// Cyan, magenta, yellow and black.
    Inks,
    /// Luminance, and the differences of blue and red from it.
    Luma,
}

impl ColourEncoding {
    /// Channels of the image, from the number of samples per pixel.
    pub(super) fn channels(self, samples: usize) -> usize {
        if self == ColourEncoding::Inks { samples - 1 } else { samples }
    }
}

/// Exchanges black and white in the first sample of each pixel of a row; for signed integers the smallest and the
/// largest value, for floats 0 and 1. A pixel has `pixel` bytes; the last one may be incomplete.
pub(crate) fn invert(row: &mut [u8], pixel: usize, dtype: DType) {
    let pixels = row.chunks_mut(pixel);
    match dtype {
        DType::F32 => pixels.filter_map(|pixel| pixel.first_chunk_mut()).for_each(|v| {
            *v = (1.0 - f32::from_ne_bytes(*v)).to_ne_bytes();
        }),
        DType::F64 => pixels.filter_map(|pixel| pixel.first_chunk_mut()).for_each(|v| {
            *v = (1.0 - f64::from_ne_bytes(*v)).to_ne_bytes();
        }),
        _ => pixels.for_each(|pixel| pixel[..dtype.size()].iter_mut().for_each(|byte| *byte = !*byte)),
    }
}

/// Converts cyan, magenta, yellow and black, of 8 or 16 bits, to red, green and blue, and copies the other samples:
/// from pixels of `stored` bytes to the first bytes of pixels of `pixel` bytes.
pub(crate) fn lights(inks: &[u8], stored: usize, to: &mut [u8], pixel: usize, dtype: DType) {
    let lit = |ink: u32, black: u32, most: u32| ((most - ink) * (most - black) + most / 2) / most;
    let size = dtype.size();
    for (inks, to) in inks.chunks_exact(stored).zip(to.chunks_mut(pixel)) {
        if dtype == DType::U8 {
            for (to, ink) in to.iter_mut().zip(&inks[..3]) {
                *to = lit((*ink).into(), inks[3].into(), u8::MAX.into()) as u8;
            }
        } else {
            let (inks, wide) = (inks.as_chunks().0, |bytes: &[u8; 2]| u32::from(u16::from_ne_bytes(*bytes)));
            for (to, ink) in to.as_chunks_mut().0.iter_mut().zip(&inks[..3]) {
                *to = (lit(wide(ink), wide(&inks[3]), u16::MAX.into()) as u16).to_ne_bytes();
            }
        }
        to[3 * size..stored - size].copy_from_slice(&inks[4 * size..]);
    }
}

/// Converts luminance and differences, the first samples of each pixel of `pixel` bytes, to red, green and blue (ITU-R
/// BT.601, full range, as in JPEG files).
pub(crate) fn colour(row: &mut [u8], pixel: usize) {
    for [first, second, third] in row.chunks_mut(pixel).filter_map(|pixel| pixel.first_chunk_mut()) {
        let (y, blue, red) = (f32::from(*first), f32::from(*second) - 128.0, f32::from(*third) - 128.0);
        *first = (y + 1.402 * red).round() as u8;
        *second = (y - 0.344_136 * blue - 0.714_136 * red).round() as u8;
        *third = (y + 1.772 * blue).round() as u8;
    }
}
