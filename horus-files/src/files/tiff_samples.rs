//! Samples of TIFF files as pixels of the types that images have.

use tiff::decoder::DecodingResult;

use horus_base::dtype::DType;

/// Stored samples, and their conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Samples {
    /// Samples of a pixel type.
    Of(DType),
    /// 16-bit floats, converted to 32 bits.
    Half,
    /// 8-bit cyan, magenta, yellow and black, converted to red, green and blue.
    Cmyk8,
    /// 16-bit ones.
    Cmyk16,
    /// Grey of less than a byte, converted to bytes.
    Packed(u8),
    /// Indices of a colour table of less than a byte, in bytes.
    Indices(u8),
}

impl Samples {
    /// Samples of `bits` bits in a TIFF sample format.
    ///
    /// # Errors
    /// A message, if images have no such pixels.
    pub(super) fn of(bits: u8, format: u16, channels: usize, cmyk: bool) -> Result<Samples, String> {
        const INTEGERS: u16 = 2;
        const FLOATS: u16 = 3;
        let samples = match (format, bits) {
            (INTEGERS, 8) => Samples::Of(DType::I8),
            (INTEGERS, 16) => Samples::Of(DType::I16),
            (INTEGERS, 32) => Samples::Of(DType::I32),
            (FLOATS, 16) => Samples::Half,
            (FLOATS, 32) => Samples::Of(DType::F32),
            (FLOATS, 64) => Samples::Of(DType::F64),
            (FLOATS, _) => return Err(format!("TIFF floats of {bits} bits are not supported")),
            (_, 64) => return Err("TIFF integers of 64 bits are not supported; use 8, 16 or 32 bits, or floats".into()),
            (_, 32) => Samples::Of(DType::U32),
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
            Samples::Half => DType::F32,
            Samples::Cmyk8 | Samples::Packed(_) | Samples::Indices(_) => DType::U8,
            Samples::Cmyk16 => DType::U16,
        }
    }

    /// Channels of the image, from the number of samples per pixel.
    pub(super) fn channels(self, samples: usize) -> usize {
        if self.is_cmyk() { 3 } else { samples }
    }

    pub(super) fn is_cmyk(self) -> bool {
        matches!(self, Samples::Cmyk8 | Samples::Cmyk16)
    }

    /// Returns `true` if the bytes of a file are pixels, up to their byte order.
    pub(super) fn are_pixels(self) -> bool {
        matches!(self, Samples::Of(_) | Samples::Cmyk8 | Samples::Cmyk16)
    }

    /// Converts a row of cyan, magenta, yellow and black to red, green and blue, a plane each.
    pub(super) fn light(self, inks: [&[u8]; 4], to: [&mut [u8]; 3]) {
        let [inks @ .., black] = inks;
        for (ink, to) in inks.into_iter().zip(to) {
            match self {
                Samples::Cmyk8 => {
                    lit(ink, black, to, |c: u8, k| ((255.0 - f32::from(c)) * (1.0 - f32::from(k) / 255.0)) as u8)
                }
                _ => {
                    lit(ink, black, to, |c: u16, k| ((65535.0 - f32::from(c)) * (1.0 - f32::from(k) / 65535.0)) as u16)
                }
            }
        }
    }

    /// The decoded bytes, in the type of the image's pixels.
    pub(super) fn bytes(self, decoded: DecodingResult, columns: usize) -> Result<Vec<u8>, String> {
        fn wide<T: bytemuck::NoUninit>(samples: impl IntoIterator<Item = T>) -> Vec<u8> {
            let samples: Vec<T> = samples.into_iter().collect();
            bytemuck::cast_slice(&samples).to_vec()
        }
        Ok(match (self, decoded) {
            (Samples::Of(DType::U8) | Samples::Cmyk8, DecodingResult::U8(v)) => v,
            (Samples::Packed(bits), DecodingResult::U8(v)) => unpacked(&v, bits, columns, u8::MAX / full(bits)),
            (Samples::Indices(bits), DecodingResult::U8(v)) => unpacked(&v, bits, columns, 1),
            (Samples::Of(DType::U16) | Samples::Cmyk16, DecodingResult::U16(v)) => wide(v),
            (Samples::Of(DType::U32), DecodingResult::U32(v)) => wide(v),
            (Samples::Of(DType::I8), DecodingResult::I8(v)) => wide(v),
            (Samples::Of(DType::I16), DecodingResult::I16(v)) => wide(v),
            (Samples::Of(DType::I32), DecodingResult::I32(v)) => wide(v),
            (Samples::Of(DType::F32), DecodingResult::F32(v)) => wide(v),
            (Samples::Of(DType::F64), DecodingResult::F64(v)) => wide(v),
            (Samples::Half, DecodingResult::F16(v)) => wide(v.into_iter().map(f32::from)),
            _ => return Err("its strips or tiles have different types".into()),
        })
    }
}

/// The largest number of so many bits.
fn full(bits: u8) -> u8 {
    (1u16 << bits) as u8 - 1
}

/// Unpacks samples of fewer bits to bytes, `by` times as large; each row begins on a byte boundary.
fn unpacked(packed: &[u8], bits: u8, columns: usize, by: u8) -> Vec<u8> {
    let (per_byte, full) = (8 / usize::from(bits), full(bits));
    let row = |row: &[u8]| -> Vec<u8> {
        let pixel = |x: usize| {
            let shift = 8 - bits * (x % per_byte + 1) as u8;
            (row[x / per_byte] >> shift & full) * by
        };
        (0..columns).map(pixel).collect()
    };
    packed.chunks_exact(columns.div_ceil(per_byte).max(1)).flat_map(row).collect()
}

/// Red, green or blue from an ink and black.
fn lit<T: bytemuck::Pod>(ink: &[u8], black: &[u8], to: &mut [u8], light: impl Fn(T, T) -> T) {
    let pairs = ink.chunks_exact(size_of::<T>()).zip(black.chunks_exact(size_of::<T>()));
    for ((c, k), to) in pairs.zip(to.chunks_exact_mut(size_of::<T>())) {
        to.copy_from_slice(bytemuck::bytes_of(&light(
            bytemuck::pod_read_unaligned(c),
            bytemuck::pod_read_unaligned(k),
        )));
    }
}
