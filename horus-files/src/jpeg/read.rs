//! Reading of JPEG files, by the crate `zune-jpeg`; files that it misplaces, by our decoder.

use std::sync::Arc;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::general::GeneralJpeg;
use super::segments;
use crate::density::{self, in_print};
use crate::{
    Decode, Decoder, DirectoryFields, Metadata, OpenOptions, PictureHeader, PictureSource, profile, texts, zeros,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// Maximum pixels that a byte of JPEG data encodes. A block has 64 pixels of the largest component. In sequential
/// files, a block takes at least two bits: a code for its mean and one for its end. In progressive files it takes one
/// bit, because one code ends 32767 blocks.
pub(crate) const MOST: u64 = 512;

/// JPEG data that the crate decodes to these colours.
struct LibraryJpegDecoder<'a>(&'a [u8], ColorSpace);

impl Decode for LibraryJpegDecoder<'_> {
    fn most(&self, _: u64, bytes: u64) -> u64 {
        bytes * MOST
    }

    fn scratch_bytes(&self, header: &PictureHeader, _: &Workers) -> u64 {
        // For progressive pictures, the coefficients of all pixels.
        2 * header.shape.len() as u64
    }

    fn read(self: Box<Self>, _: &PictureHeader, to: &mut [u8], _: &Workers) -> Result<(), String> {
        let options = options().jpeg_set_out_colorspace(self.1);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(self.0), options);
        decoder.decode_into(to).map_err(|e| e.to_string())
    }
}

impl Decode for GeneralJpeg<'_> {
    fn most(&self, _: u64, bytes: u64) -> u64 {
        bytes * MOST
    }

    fn scratch_bytes(&self, header: &PictureHeader, _: &Workers) -> u64 {
        // Coefficients and samples of all components.
        3 * header.shape.len() as u64 / self.channels() as u64 * self.stored_channels() as u64
    }

    fn read(self: Box<Self>, _: &PictureHeader, to: &mut [u8], _: &Workers) -> Result<(), String> {
        GeneralJpeg::read(&self, to)
    }
}

/// Reads the header of a JPEG file, and returns the decoder of its pixels.
pub(super) fn decoder(bytes: &[u8]) -> Result<Decoder<'_>, String> {
    let (height, width, channels, decoder): (_, _, _, Box<dyn Decode>) = if let Some(general) = GeneralJpeg::of(bytes) {
        (general.height, general.width, general.channels(), Box::new(general))
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
        (height, width, channels, Box::new(LibraryJpegDecoder(bytes, colours)))
    };
    let (noted, profile) = (segments::turned(bytes), segments::profile(bytes).map(|profile| profile.len()));
    // Sides have 16 bits.
    let header = PictureHeader::new(width as u32, height as u32, channels, DType::U8)?;
    Ok((PictureHeader { orientation: noted, profile, ..header }, decoder))
}

/// The pixels of JPEG data, interleaved, in the stored colours.
pub(crate) fn as_stored(bytes: &[u8]) -> Result<(Vec<u8>, Shape), String> {
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

/// Metadata of a file with this many channels.
pub(super) fn metadata(source: &PictureSource<'_>, options: &OpenOptions, channels: usize) -> Metadata {
    let head = segments::head(source).unwrap_or_default();
    let fields = || segments::exif(&head).and_then(DirectoryFields::of);
    let density = segments::density(&head).and_then(|(sides, unit)| in_print(sides.map(|n| [n, 1.0]), unit));
    let placed = options.orientation.placed(Shape::new(1, 1, 1), segments::turned(&head));
    let comments = segments::comments(&head).map(|comment| (texts::COMMENT.to_owned(), texts::decoded(comment)));
    Metadata {
        printed: density.or_else(|| density::of_exif(fields())).and_then(|size| size.mapped_by(&placed)),
        profile: segments::profile(&head).and_then(|profile| profile::of(profile, channels)),
        exif: fields().and_then(|mut fields| fields.exif(options.orientation)).map(Arc::new),
        texts: texts::select_authored_texts(texts::of_fields(fields()).into_iter().chain(comments).collect()),
        ..Metadata::default()
    }
}
