//! Files that are decoded as a whole: the header first, then all pixels.

use std::io::{BufRead, Cursor, Seek};

use png::{BitDepth, ColorType, Limits, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::bmp::Bitmap;
use super::bounds::MEMORY_LIMIT;
use super::exr::Exr;
use super::jpeg::general::GeneralJpeg;
use super::load::{Kind, Source};
use super::metadata;
use super::metadata::Turned;
use super::png::chunks as png_chunks;
use super::pnm::plain::Plain;
use super::tiff::source as tiff_source;
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::host::buffer::HostBuffer;
use horus_host::host::workers::Workers;

/// What a file says of its picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) shape: Shape,
    pub(super) dtype: DType,
    pub(super) noted: Turned,
    /// Length of a colour profile.
    pub(super) profile: Option<usize>,
}

impl Header {
    pub(super) fn new(width: u32, height: u32, channels: usize, dtype: DType) -> Result<Header, String> {
        let shape = Shape::new(height as usize, width as usize, channels);
        let sides = [shape.height, shape.width, channels];
        if sides.iter().try_fold(dtype.size(), |n, side| n.checked_mul(*side)).is_none() {
            return Err(format!("{width}x{height} pixels are too large"));
        }
        Ok(Header { shape, dtype, noted: Turned::No, profile: None })
    }

    /// Reads no more of a file than its header, where that is possible.
    pub(super) fn of(kind: Kind, source: &Source<'_>) -> Result<Header, String> {
        let all = || source.all(&HostBuffer::try_zeroed);
        match kind {
            Kind::Png => Ok(png(tiff_source::reader(source), source)?.0),
            Kind::Bmp => Ok(Bitmap::of(source.head())?.0),
            Kind::Exr => Ok(Exr::of(tiff_source::reader(source))?.0),
            Kind::Pnm => {
                let head = source.head();
                match Plain::of(head) {
                    Ok((header, _)) => Ok(header),
                    // Comments may be long.
                    Err(_) if source.size() > head.len() as u64 => Ok(Plain::of(&all()?)?.0),
                    Err(e) => Err(e),
                }
            }
            _ => {
                // What comes before the pixels suffices, of a file that is not broken.
                let head = metadata::without_pixels(source);
                let header = head.and_then(|head| Some(Decoder::of(kind, &head).ok()?.0));
                header.map_or_else(|| Ok(Decoder::of(kind, &all()?)?.0), Ok)
            }
        }
    }
}

/// Most bytes of the compressed texts of a PNG file.
const INFLATED: usize = 2 << 20;

/// The texts of a PNG file, by their keywords. Compressed ones that cannot be inflated are left out, and those that exceed, with the
/// ones before, [`INFLATED`] bytes.
pub(super) fn texts(source: &Source<'_>) -> Result<Vec<(String, String)>, String> {
    let file = png_chunks::without_pixels(source, &[b"PLTE", b"tEXt", b"zTXt", b"iTXt"]);
    let reader = png_reader(Cursor::new(&file))?;
    let info = reader.info();
    let mut all: Vec<(String, String)> = Vec::new();
    all.extend(info.uncompressed_latin1_text.iter().map(|text| (text.keyword.clone(), text.text.clone())));
    let mut left = INFLATED;
    macro_rules! inflated {
        ($texts:expr) => {
            for text in $texts {
                let mut text = text.clone();
                if let Ok(found) = text.decompress_text_with_limit(left).and_then(|()| text.get_text()) {
                    left = left.saturating_sub(found.len());
                    all.push((text.keyword, found));
                }
            }
        };
    }
    inflated!(&info.compressed_latin1_text);
    inflated!(&info.utf8_text);
    Ok(all)
}

/// A file whose header has been read.
pub(super) enum Decoder<'a> {
    Png(Box<png::Reader<Cursor<&'a [u8]>>>),
    Jpeg(&'a [u8], ColorSpace),
    GeneralJpeg(GeneralJpeg<'a>),
    Pnm(Plain<'a>),
    Bmp(Box<Bitmap<'a>>),
    Exr(Box<Exr<Cursor<&'a [u8]>>>),
}

impl<'a> Decoder<'a> {
    pub(super) fn of(kind: Kind, bytes: &'a [u8]) -> Result<(Header, Decoder<'a>), String> {
        Ok(match kind {
            Kind::Png => {
                let (header, reader) = png(Cursor::new(bytes), &Source::of(bytes)?)?;
                (header, Decoder::Png(Box::new(reader)))
            }
            Kind::Pnm => {
                let (header, plain) = Plain::of(bytes)?;
                (header, Decoder::Pnm(plain))
            }
            Kind::Bmp => {
                let (header, bitmap) = Bitmap::of(bytes)?;
                (header, Decoder::Bmp(Box::new(bitmap)))
            }
            Kind::Exr => {
                let (header, exr) = Exr::of(Cursor::new(bytes))?;
                (header, Decoder::Exr(Box::new(exr)))
            }
            _ => jpeg(bytes)?,
        })
    }

    /// Decodes the pixels, interleaved, into memory of their size.
    pub(super) fn read(self, header: &Header, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        match self {
            Decoder::Png(mut reader) => {
                reader.next_frame(to).map_err(|e| e.to_string())?;
                if header.dtype == DType::U16 {
                    native(to);
                }
                Ok(())
            }
            Decoder::Jpeg(bytes, colours) => {
                let options = options().jpeg_set_out_colorspace(colours);
                let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
                decoder.decode_into(to).map_err(|e| e.to_string())
            }
            Decoder::GeneralJpeg(jpeg) => jpeg.read(to),
            Decoder::Pnm(plain) => plain.read(header.shape, to),
            Decoder::Bmp(bitmap) => bitmap.read(to),
            Decoder::Exr(exr) => exr.read(header, to, workers),
        }
    }
}

/// Samples of two bytes, of which files have the high one first, in the order of this machine.
pub(super) fn native(samples: &mut [u8]) {
    samples.as_chunks_mut().0.iter_mut().for_each(|sample| *sample = u16::from_be_bytes(*sample).to_ne_bytes());
}

/// A PNG file from its pixels on. Samples of less than a byte and palettes become bytes.
pub(super) fn png_reader<R: BufRead + Seek>(from: R) -> Result<png::Reader<R>, String> {
    let most = usize::try_from(MEMORY_LIMIT).unwrap_or(usize::MAX);
    let mut decoder = png::Decoder::new_with_limits(from, Limits { bytes: most });
    decoder.set_transformations(Transformations::EXPAND);
    decoder.read_info().map_err(|e| e.to_string())
}

/// The header of a PNG file, which is read from `from`.
fn png<R: BufRead + Seek>(from: R, source: &Source<'_>) -> Result<(Header, png::Reader<R>), String> {
    let reader = png_reader(from)?;
    let channels = match reader.output_color_type().0 {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
        ColorType::Indexed => return Err("it has a palette of more than a byte".into()),
    };
    let dtype = if reader.output_color_type().1 == BitDepth::Sixteen { DType::U16 } else { DType::U8 };
    let info = reader.info();
    // The decoder refuses longer ones itself. Colours that pixels of few bits cannot name are not used, as by libpng.
    if let (ColorType::Indexed, Some(palette)) = (info.color_type, &info.palette)
        && !palette.len().is_multiple_of(3)
    {
        return Err(format!("its palette has {} bytes: a colour has 3", palette.len()));
    }
    let noted = png_chunks::exif(source).and_then(|exif| Turned::of_exif(&exif)).unwrap_or_default();
    let profile = info.icc_profile.as_ref().map(|profile| profile.len());
    let header = Header { noted, profile, ..Header::new(info.width, info.height, channels, dtype)? };
    Ok((header, reader))
}

/// The header of a JPEG file, and the decoder of its pixels.
fn jpeg(bytes: &[u8]) -> Result<(Header, Decoder<'_>), String> {
    let (height, width, channels, decoder) = if let Some(general) = GeneralJpeg::of(bytes) {
        (general.height, general.width, general.channels(), Decoder::GeneralJpeg(general))
    } else {
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options());
        decoder.decode_headers().map_err(|e| e.to_string())?;
        let unread = "its header is incomplete";
        let (width, height) = decoder.dimensions().ok_or(unread)?;
        let (colours, channels) = match decoder.input_colorspace().ok_or(unread)? {
            ColorSpace::Luma => (ColorSpace::Luma, 1),
            ColorSpace::LumaA => (ColorSpace::LumaA, 2),
            ColorSpace::RGBA => (ColorSpace::RGBA, 4),
            _ => (ColorSpace::RGB, 3),
        };
        (height, width, channels, Decoder::Jpeg(bytes, colours))
    };
    let (noted, profile) = (metadata::jpeg_turned(bytes), metadata::jpeg_profile(bytes).map(|profile| profile.len()));
    // Sides have 16 bits.
    let header = Header::new(width as u32, height as u32, channels, DType::U8)?;
    Ok((Header { noted, profile, ..header }, decoder))
}

/// The pixels of JPEG data, interleaved, in the colours that they are stored in.
pub(super) fn jpeg_as_stored(bytes: &[u8]) -> Result<(Vec<u8>, Shape), String> {
    if let Some(general) = GeneralJpeg::of(bytes) {
        let shape = Shape::new(general.height, general.width, general.stored_channels());
        let mut pixels = zeros(shape.len())?;
        general.read_as_stored(&mut pixels)?;
        return Ok((pixels, shape));
    }
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options());
    decoder.decode_headers().map_err(|e| e.to_string())?;
    let unread = "its header is incomplete";
    let (width, height) = decoder.dimensions().ok_or(unread)?;
    let colours = decoder.input_colorspace().ok_or(unread)?;
    decoder.set_options(options().jpeg_set_out_colorspace(colours));
    let pixels = decoder.decode().map_err(|e| e.to_string())?;
    let channels = pixels.len().checked_div(width * height).ok_or("the picture has no pixels")?;
    Ok((pixels, Shape::new(height, width, channels)))
}

fn options() -> DecoderOptions {
    DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX)
}

/// So many zeros, of a size that a file gives.
pub(super) fn zeros<T: Clone + Default>(count: usize) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|e| e.to_string())?;
    all.resize(count, T::default());
    Ok(all)
}

/// Bytes that are read from the front, little-endian.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
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
