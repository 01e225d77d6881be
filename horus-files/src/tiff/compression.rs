//! Compression of TIFF files.

use std::str::FromStr;

use tiff::encoder::compression::{CompressionAlgorithm, Deflate, DeflateLevel};
use tiff::tags::CompressionMethod;
use weezl::BitOrder;

use horus_base::dtype::DType;

/// Lossless compression of the tiles or strips of a TIFF file.
///
/// For integers, differences of neighbours are compressed (TIFF predictor 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// No compression. The default.
    #[default]
    None,
    /// Deflate (zlib) at its fastest: supported by all programs.
    Deflate,
    /// LZW: supported by all programs, including the oldest. Larger than Deflate.
    Lzw,
    /// Zstandard at its fastest: supported by fewer programs (libtiff from 4.0.10 on).
    Zstd,
}

/// Parses the name in lower case.
impl FromStr for Compression {
    type Err = String;

    fn from_str(name: &str) -> Result<Compression, String> {
        match name {
            "none" => Ok(Compression::None),
            "deflate" => Ok(Compression::Deflate),
            "lzw" => Ok(Compression::Lzw),
            "zstd" => Ok(Compression::Zstd),
            _ => Err("none, deflate, lzw or zstd".to_owned()),
        }
    }
}

impl Compression {
    pub(super) fn method(self) -> CompressionMethod {
        match self {
            Compression::None => CompressionMethod::None,
            Compression::Deflate => CompressionMethod::Deflate,
            Compression::Lzw => CompressionMethod::LZW,
            Compression::Zstd => CompressionMethod::ZSTD,
        }
    }

    /// Maximum compressed size of `raw` bytes in `chunks` chunks.
    pub(super) fn most(self, raw: u64, chunks: u64) -> u64 {
        let more = match self {
            Compression::None => return raw,
            // Incompressible data grows slightly; with LZW to 12 bits a byte.
            Compression::Deflate | Compression::Zstd => raw / 256,
            Compression::Lzw => raw / 2,
        };
        raw.saturating_add(more).saturating_add(64 * chunks)
    }

    /// Returns `true` if samples are replaced by differences before compression.
    pub(super) fn predicts(self, dtype: DType) -> bool {
        self != Compression::None && !dtype.is_float()
    }

    /// Encodes rows to `to`, given their bytes, channels and sample type; overwrites the rows.
    pub(super) fn encode(
        self,
        raw: &mut [u8],
        row: usize,
        channels: usize,
        dtype: DType,
        to: &mut Vec<u8>,
    ) -> Result<(), String> {
        if self.predicts(dtype) {
            for row in raw.chunks_mut(row) {
                match dtype.size() {
                    1 => differences::<u8>(row, channels, u8::wrapping_sub),
                    2 => differences::<u16>(row, channels, u16::wrapping_sub),
                    _ => differences::<u32>(row, channels, u32::wrapping_sub),
                }
            }
        }
        to.clear();
        let done = match self {
            Compression::None => {
                to.extend_from_slice(raw);
                return Ok(());
            }
            Compression::Deflate => Deflate::with_level(DeflateLevel::Fast).write_to(to, raw).map(drop),
            Compression::Lzw => {
                let mut encoder = weezl::encode::Encoder::with_tiff_size_switch(BitOrder::Msb, 8);
                encoder.into_vec(to).encode_all(raw).status.map(drop).map_err(std::io::Error::other)
            }
            Compression::Zstd => {
                const FASTEST: i32 = 1;
                to.resize(zstd::zstd_safe::compress_bound(raw.len()), 0);
                zstd::bulk::compress_to_buffer(raw, to, FASTEST).map(|bytes| to.truncate(bytes))
            }
        };
        done.map_err(|e| e.to_string())
    }
}

/// Replaces the samples of a row by differences from the previous pixel.
fn differences<T: bytemuck::Pod>(row: &mut [u8], channels: usize, minus: impl Fn(T, T) -> T) {
    let size = size_of::<T>();
    let at = |row: &[u8], k: usize| bytemuck::pod_read_unaligned::<T>(&row[k * size..(k + 1) * size]);
    for k in (channels..row.len() / size).rev() {
        let difference = minus(at(row, k), at(row, k - channels));
        row[k * size..(k + 1) * size].copy_from_slice(bytemuck::bytes_of(&difference));
    }
}
