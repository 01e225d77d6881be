//! Compressed strips and tiles of TIFF files: streams of stored samples, row by row.
//!
//! The crate `tiff` reads directories. Its decoder of pixels does not support odd numbers of bits or the order of bits,
//! loses samples beyond colours and alpha, and fails on LZW tiles at the right edge.

use std::io::{self, BufRead, BufReader, Bytes, Cursor, Read};

use fax::decoder::{DecodeStatus, Group4Decoder, pels};
use flate2::bufread::ZlibDecoder;
use tiff::decoder::Decoder;
use tiff::tags::{ByteOrder, CompressionMethod, Tag};
use weezl::decode::Configuration;
use weezl::{BitOrder, LzwStatus};

use super::read::text;
use super::source::TiffReader;
use crate::{PictureSource, SampleConversion, truncated};

/// Compressions, except JPEG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    None,
    Lzw,
    Deflate,
    PackBits,
    Zstd,
    Fax4,
}

/// Replacement of samples by their differences before compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Predictor {
    None,
    /// Differences of whole samples, as integers.
    Horizontal,
    /// Differences of bytes, the high bytes of a row first.
    Floats,
}

/// How the samples of a page are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct TiffCoding {
    codec: Codec,
    predictor: Predictor,
    order: SampleConversion,
    /// The first bit of a byte is the lowest.
    reversed: bool,
}

impl TiffCoding {
    /// The coding of a page whose samples have this many bits.
    ///
    /// # Errors
    /// A message, if the coding is not supported.
    pub(super) fn of(page: &mut Decoder<TiffReader<'_>>, bits: u16) -> Result<TiffCoding, String> {
        let little = page.byte_order() == ByteOrder::LittleEndian;
        let mut tag = |tag| Ok::<_, String>(page.find_tag_unsigned::<u16>(tag).map_err(text)?.unwrap_or(1));
        let (method, predictor) = (tag(Tag::Compression)?, tag(Tag::Predictor)?);
        let codec = match CompressionMethod::from_u16_exhaustive(method) {
            CompressionMethod::None => Codec::None,
            CompressionMethod::LZW => Codec::Lzw,
            CompressionMethod::Deflate | CompressionMethod::OldDeflate => Codec::Deflate,
            CompressionMethod::PackBits => Codec::PackBits,
            CompressionMethod::ZSTD => Codec::Zstd,
            CompressionMethod::Fax4 if bits == 1 => Codec::Fax4,
            _ => {
                let name = compression_name(method);
                return Err(format!(
                    "its compression {name} is not supported; use none, LZW, deflate, PackBits, Zstandard, JPEG, JPEG 2000 or, of 1 bit, CCITT group 4"
                ));
            }
        };
        let predictor = match (predictor, bits) {
            (1, _) => Predictor::None,
            (2, 8 | 16 | 32 | 64) => Predictor::Horizontal,
            (3, 16 | 32 | 64) => Predictor::Floats,
            _ => return Err(format!("its predictor {predictor} is not supported for samples of {bits} bits")),
        };
        // Samples with other numbers of bits follow each other from the high bit of each byte.
        let kept = little == cfg!(target_endian = "little") || !bits.is_multiple_of(8);
        let order = if kept { SampleConversion::Unchanged } else { SampleConversion::Swapped };
        Ok(TiffCoding { codec, predictor, order, reversed: tag(Tag::FillOrder)? == 2 })
    }

    /// The byte order of samples that are stored unchanged.
    pub(super) fn plain(self) -> Option<SampleConversion> {
        (self.codec == Codec::None && self.predictor == Predictor::None && !self.reversed).then_some(self.order)
    }

    /// Decodes the samples of `count` bytes of a file, in rows of `columns` pixels.
    pub(super) fn stream<'s>(
        self,
        source: &PictureSource<'s>,
        at: u64,
        count: u64,
        columns: usize,
    ) -> Result<Box<dyn Read + Send + 's>, String> {
        const AT_ONCE: u64 = 64 << 10;
        let end = at.saturating_add(count).min(source.size());
        let stored = FileByteRange { source: source.clone(), at, end, reversed: self.reversed };
        let stored = BufReader::with_capacity(count.min(AT_ONCE) as usize, stored);
        Ok(match self.codec {
            Codec::None => Box::new(stored),
            Codec::Lzw => {
                let decoder = Configuration::with_tiff_size_switch(BitOrder::Msb, 8).with_yield_on_full_buffer(true);
                Box::new(Lzw { from: stored, decoder: decoder.build() })
            }
            Codec::Deflate => Box::new(ZlibDecoder::new(stored)),
            Codec::PackBits => Box::new(PackBits { from: stored, left: 0, repeated: None }),
            Codec::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(stored).map_err(|e| e.to_string())?),
            Codec::Fax4 => {
                let width =
                    u16::try_from(columns).map_err(|_| format!("rows of {columns} pixels are too long for CCITT"))?;
                let decoder = Group4Decoder::new(stored.bytes(), width).map_err(|e| e.to_string())?;
                Box::new(Fax { decoder, row: Cursor::default(), width })
            }
        })
    }

    /// Estimated bytes in the decoder's memory for a strip or tile of this many bytes.
    pub(super) fn window(self, bytes: usize) -> usize {
        const ZSTD: usize = 8 << 20;
        const OTHERS: usize = 256 << 10;
        bytes.min(if self.codec == Codec::Zstd { ZSTD } else { OTHERS })
    }

    /// Converts a row, as it was compressed, to samples of `size` bytes in the byte order of this machine; pixels have
    /// `channels` samples.
    pub(super) fn restore(self, row: &mut [u8], size: usize, channels: usize) {
        macro_rules! sums {
            ($t:ty) => {{
                let samples = row.as_chunks_mut::<{ size_of::<$t>() }>().0;
                for i in channels..samples.len() {
                    let sum = <$t>::from_ne_bytes(samples[i]).wrapping_add(<$t>::from_ne_bytes(samples[i - channels]));
                    samples[i] = sum.to_ne_bytes();
                }
            }};
        }
        match (self.predictor, size) {
            (Predictor::None, _) => self.order.apply(row, size),
            (Predictor::Floats, _) => {
                for i in channels..row.len() {
                    row[i] = row[i].wrapping_add(row[i - channels]);
                }
                let (bytes, count) = (row.to_vec(), row.len() / size);
                for (i, sample) in row.chunks_exact_mut(size).enumerate() {
                    sample.iter_mut().enumerate().for_each(|(k, byte)| *byte = bytes[k * count + i]);
                }
                if cfg!(target_endian = "little") {
                    SampleConversion::Swapped.apply(row, size);
                }
            }
            (Predictor::Horizontal, _) => {
                self.order.apply(row, size);
                match size {
                    1 => sums!(u8),
                    2 => sums!(u16),
                    4 => sums!(u32),
                    _ => sums!(u64),
                }
            }
        }
    }
}

/// Name and number of a compression, for messages.
fn compression_name(method: u16) -> String {
    let name = match method {
        2 => "CCITT run lengths",
        3 => "CCITT group 3",
        4 => "CCITT group 4 of more than 1 bit",
        6 => "old JPEG",
        34887 => "LERC",
        34925 => "LZMA",
        50001 => "WebP",
        50002 | 52546 => "JPEG XL",
        _ => return format!("{method}"),
    };
    format!("{name} ({method})")
}

/// A range of bytes of a file.
struct FileByteRange<'s> {
    source: PictureSource<'s>,
    at: u64,
    end: u64,
    /// The bits of each byte are reversed.
    reversed: bool,
}

impl Read for FileByteRange<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = to.len().min(usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX));
        let to = &mut to[..n];
        self.source.read_at(self.at, to).map_err(io::Error::other)?;
        self.at += n as u64;
        if self.reversed {
            to.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
        }
        Ok(n)
    }
}

struct Lzw<R> {
    from: R,
    decoder: weezl::decode::Decoder,
}

impl<R: BufRead> Read for Lzw<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        /// The decoder also reports no progress while it takes codes from the bits in its buffer: at most eight.
        const HELD: usize = 8;
        let mut idle = 0;
        while idle <= HELD && !to.is_empty() {
            let done = self.decoder.decode_bytes(self.from.fill_buf()?, to);
            self.from.consume(done.consumed_in);
            let status = done.status.map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            if done.consumed_out > 0 {
                return Ok(done.consumed_out);
            }
            idle = match status {
                LzwStatus::Done => break,
                _ if done.consumed_in > 0 => 0,
                _ => idle + 1,
            };
        }
        Ok(0)
    }
}

struct PackBits<R> {
    from: R,
    /// Bytes of the run that are not read yet.
    left: usize,
    repeated: Option<u8>,
}

impl<R: BufRead> PackBits<R> {
    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.from.fill_buf()?.first().copied();
        self.from.consume(usize::from(byte.is_some()));
        Ok(byte)
    }
}

impl<R: BufRead> Read for PackBits<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let Some(count) = self.byte()? else { return Ok(0) };
            (self.left, self.repeated) = match count {
                0..=127 => (usize::from(count) + 1, None),
                128 => continue,
                _ => (257 - usize::from(count), self.byte()?),
            };
        }
        let n = to.len().min(self.left);
        let n = match self.repeated {
            Some(byte) => {
                to[..n].fill(byte);
                n
            }
            None => self.from.read(&mut to[..n])?,
        };
        self.left -= n;
        Ok(n)
    }
}

/// Rows of bits; 1 is black.
struct Fax<R> {
    decoder: Group4Decoder<Bytes<R>>,
    row: Cursor<Vec<u8>>,
    width: u16,
}

impl<R: Read> Read for Fax<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.row.position() as usize == self.row.get_ref().len() {
            match self.decoder.advance().map_err(io::Error::other)? {
                DecodeStatus::End => return Ok(0),
                DecodeStatus::Incomplete => {}
            }
            let mut bits = vec![0; usize::from(self.width).div_ceil(8)];
            for (x, colour) in pels(self.decoder.transition(), self.width).enumerate() {
                bits[x / 8] |= u8::from(colour == fax::Color::Black) << (7 - x % 8);
            }
            self.row = Cursor::new(bits);
        }
        self.row.read(to)
    }
}

/// The cause of a failed read, in the words of other formats.
pub(super) fn unread(e: &io::Error) -> String {
    if e.kind() == io::ErrorKind::UnexpectedEof { truncated() } else { e.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: TiffCoding = TiffCoding {
        codec: Codec::None,
        predictor: Predictor::None,
        order: SampleConversion::Unchanged,
        reversed: false,
    };

    fn noise(seed: usize, n: usize) -> Vec<u8> {
        let mut state = seed as u64 + 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..n).map(|_| next()).collect()
    }

    /// Reads pieces of some lengths in turn.
    fn decoded(coding: TiffCoding, stored: &[u8], n: usize, pieces: [usize; 2]) -> io::Result<Vec<u8>> {
        let file = [b"II*\0", stored].concat();
        let source = PictureSource::of(&file).expect("a TIFF file");
        let mut stream = coding.stream(&source, 4, stored.len() as u64, n).expect("a stream");
        let mut all = vec![0; n];
        let (mut rest, mut pieces) = (&mut all[..], pieces.into_iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at_mut(pieces.next().unwrap_or(1).min(rest.len()));
            stream.read_exact(piece)?;
            rest = after;
        }
        Ok(all)
    }

    /// The decoder of the crate `tiff` ends early where a piece begins with a code whose bits are already in its
    /// buffer.
    #[test]
    fn pieces_of_any_length_are_decoded() {
        for seed in 0..60 {
            // Some bytes twice, so that strings are found.
            let data: Vec<u8> =
                noise(seed, 512).iter().flat_map(|byte| vec![*byte; 1 + usize::from(byte % 2)]).collect();
            let lzw = weezl::encode::Encoder::with_tiff_size_switch(BitOrder::Msb, 8).encode(&data).unwrap();
            let mut deflate = Vec::new();
            flate2::bufread::ZlibEncoder::new(&data[..], flate2::Compression::fast())
                .read_to_end(&mut deflate)
                .unwrap();
            // A run of one byte, and one of others.
            let pairs = data.chunks(2).flat_map(|two| match two {
                [a, b] if a == b => vec![255, *a],
                two => [&[two.len() as u8 - 1][..], two].concat(),
            });
            let files = [
                (Codec::None, data.clone()),
                (Codec::Lzw, lzw),
                (Codec::Deflate, deflate),
                (Codec::PackBits, pairs.collect()),
                (Codec::Zstd, zstd::bulk::compress(&data, 1).unwrap()),
            ];
            for (codec, stored) in files {
                let coding = TiffCoding { codec, ..PLAIN };
                for pieces in [[7, 25], [1, 1], [data.len(), 1]] {
                    assert!(
                        decoded(coding, &stored, data.len(), pieces).unwrap() == data,
                        "{codec:?} {seed} {pieces:?}"
                    );
                }
                let reversed: Vec<u8> = stored.iter().map(|byte| byte.reverse_bits()).collect();
                let coding = TiffCoding { reversed: true, ..coding };
                assert!(decoded(coding, &reversed, data.len(), [64, 64]).unwrap() == data, "{codec:?}");
                let cut = decoded(TiffCoding { codec, ..PLAIN }, &stored[..stored.len() / 2], data.len(), [64, 64]);
                assert!(cut.is_err(), "{codec:?}");
            }
        }
    }

    #[test]
    fn differences_are_added_up() {
        let little = cfg!(target_endian = "little");
        for (size, channels) in [(1, 1), (1, 3), (2, 2), (4, 1), (8, 4)] {
            let want = noise(size, 6 * size * channels);
            let sample =
                |i: usize| want[i * size..][..size].iter().rev().fold(0u64, |all, byte| all << 8 | u64::from(*byte));
            let stored: Vec<u8> = (0..6 * channels)
                .flat_map(|i| {
                    let before = if i < channels { 0 } else { sample(i - channels) };
                    sample(i).wrapping_sub(before).to_le_bytes()[..size].iter().rev().copied().collect::<Vec<_>>()
                })
                .collect();
            // Big-endian in the file, little-endian in `want`.
            let order = if little { SampleConversion::Swapped } else { SampleConversion::Unchanged };
            let mut row = stored;
            TiffCoding { predictor: Predictor::Horizontal, order, ..PLAIN }.restore(&mut row, size, channels);
            if !little {
                SampleConversion::Swapped.apply(&mut row, size);
            }
            assert_eq!(row, want, "{size} {channels}");
        }
        let values = [1.5f32, -2.0, 1e-40, f32::MAX, 0.0, 7.0];
        let mut planes: Vec<u8> = (0..4).flat_map(|k| values.map(|v| v.to_be_bytes()[k])).collect();
        for i in (2..planes.len()).rev() {
            planes[i] = planes[i].wrapping_sub(planes[i - 2]);
        }
        TiffCoding { predictor: Predictor::Floats, ..PLAIN }.restore(&mut planes, 4, 2);
        assert_eq!(planes, values.map(f32::to_ne_bytes).concat());
    }
}
