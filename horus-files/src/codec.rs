//! Files that are decoded as a whole: the header first, then all pixels.

use super::StoredOrientation;
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// The header of a picture file.
#[derive(Clone, Copy, Debug)]
pub(super) struct PictureHeader {
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) orientation: StoredOrientation,
    /// Length of a colour profile.
    pub(super) profile: Option<usize>,
}

impl PictureHeader {
    pub(super) fn new(width: u32, height: u32, channels: usize, dtype: DType) -> Result<PictureHeader, String> {
        let shape = Shape::new(height as usize, width as usize, channels);
        let sides = [shape.height, shape.width, channels];
        if sides.iter().try_fold(dtype.size(), |n, side| n.checked_mul(*side)).is_none() {
            return Err(format!("{width}x{height} pixels are too large"));
        }
        Ok(PictureHeader { shape, dtype, orientation: StoredOrientation::No, profile: None })
    }
}

/// Decoder of the pixels of a file whose header has been read.
pub(super) trait Decode {
    /// Maximum pixels, in rows of `width`, that a file of this many bytes encodes.
    fn most(&self, width: u64, bytes: u64) -> u64;

    /// Bytes used for decoding, in addition to the file and the pixels.
    fn scratch_bytes(&self, _header: &PictureHeader, _workers: &Workers) -> u64 {
        0
    }

    /// Decodes the pixels, interleaved, into memory of their size.
    fn read(self: Box<Self>, header: &PictureHeader, to: &mut [u8], workers: &Workers) -> Result<(), String>;
}

/// A header, and the decoder of the pixels after it.
pub(super) type Decoder<'a> = (PictureHeader, Box<dyn Decode + 'a>);

/// Converts samples of two bytes from big-endian, as in files, to the byte order of this machine.
pub(super) fn native(samples: &mut [u8]) {
    samples.as_chunks_mut().0.iter_mut().for_each(|sample| *sample = u16::from_be_bytes(*sample).to_ne_bytes());
}

/// Allocates zeros, of a length that a file gives.
pub(super) fn zeros<T: Clone + Default>(count: usize) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|e| e.to_string())?;
    all.resize(count, T::default());
    Ok(all)
}

/// Bytes read from the front, little-endian.
#[derive(Clone, Copy)]
pub(super) struct ByteReader<'a>(pub(super) &'a [u8]);

impl<'a> ByteReader<'a> {
    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (first, rest) = self.0.split_at_checked(n).ok_or_else(truncated)?;
        self.0 = rest;
        Ok(first)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(truncated)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn u8(&mut self) -> Result<u8, String> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }
}

pub(super) fn truncated() -> String {
    "the data is truncated".into()
}

#[cfg(test)]
mod tests;
