//! How TIFF files are compressed.

use tiff::encoder::compression::{CompressionAlgorithm, Deflate, DeflateLevel};
use tiff::tags::CompressionMethod;

use crate::dtype::DType;

/// How the tiles or strips of a TIFF file are compressed, without loss.
///
/// Of integers, the differences of neighbours are (TIFF predictor 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all. The default.
    #[default]
    None,
    /// By deflate (zlib), at its fastest.
    Deflate,
}

impl Compression {
    pub(super) fn method(self) -> CompressionMethod {
        match self {
            Compression::None => CompressionMethod::None,
            Compression::Deflate => CompressionMethod::Deflate,
        }
    }

    /// Whether samples are replaced by differences before they are compressed.
    pub(super) fn predicts(self, dtype: DType) -> bool {
        self != Compression::None && !dtype.is_float()
    }

    /// The bytes of rows of `row` bytes that are stored; the rows are changed.
    pub(super) fn encode(self, raw: &mut [u8], row: usize, channels: usize, dtype: DType) -> Result<Vec<u8>, String> {
        if self.predicts(dtype) {
            for row in raw.chunks_mut(row) {
                match dtype {
                    DType::U8 | DType::Bool => differences::<u8>(row, channels, u8::wrapping_sub),
                    DType::U16 => differences::<u16>(row, channels, u16::wrapping_sub),
                    _ => differences::<u32>(row, channels, u32::wrapping_sub),
                }
            }
        }
        let mut to = Vec::with_capacity(raw.len() / 2);
        match self {
            Compression::None => to.extend_from_slice(raw),
            Compression::Deflate => {
                Deflate::with_level(DeflateLevel::Fast).write_to(&mut to, raw).map_err(|e| e.to_string())?;
            }
        }
        Ok(to)
    }
}

/// Puts differences from the pixel before in the place of the samples of a row.
fn differences<T: bytemuck::Pod>(row: &mut [u8], channels: usize, minus: impl Fn(T, T) -> T) {
    let size = size_of::<T>();
    let at = |row: &[u8], k: usize| bytemuck::pod_read_unaligned::<T>(&row[k * size..(k + 1) * size]);
    for k in (channels..row.len() / size).rev() {
        let difference = minus(at(row, k), at(row, k - channels));
        row[k * size..(k + 1) * size].copy_from_slice(bytemuck::bytes_of(&difference));
    }
}
