//! Slides of Aperio (`svs`) and Hamamatsu (`ndpi`): TIFF files in which the sizes of one picture are pages, among pages
//! that show the whole slide or its label. Sizes are told apart as by OpenSlide.

use tiff::decoder::ifd::Value;
use tiff::decoder::{Decoder, IfdDecoder};
use tiff::tags::Tag;

use super::source::TiffReader;
use horus_base::lengths::PixelSize;

/// Tags of Hamamatsu: the format of a file, the magnification, and the distance from the focus.
const FORMAT: Tag = Tag::Unknown(65420);
const LENS: Tag = Tag::Unknown(65421);
const FOCUS: Tag = Tag::Unknown(65424);
/// The first bytes of descriptions of Aperio.
const APERIO: &[u8] = b"Aperio";

/// The maker of a slide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slide {
    Aperio,
    Hamamatsu,
}

impl Slide {
    /// Recognises a slide by its first directory.
    ///
    /// # Errors
    /// A message, if the file of `bytes` bytes has offsets that a directory does not hold.
    pub(super) fn of(first: &mut IfdDecoder<'_>, bytes: u64) -> Result<Option<Slide>, String> {
        let mut text = [0; APERIO.len()];
        if first.find_tag_bytes(Tag::ImageDescription, &mut text, 0).is_ok() && text == APERIO {
            return Ok(Some(Slide::Aperio));
        }
        if first.find_tag(FORMAT).ok().flatten().is_none() {
            return Ok(None);
        }
        // Their upper halves are after the directory.
        if bytes > u64::from(u32::MAX) {
            return Err(format!("a slide of Hamamatsu (NDPI) of {bytes} bytes; the limit is {}", u32::MAX));
        }
        Ok(Some(Slide::Hamamatsu))
    }

    /// Returns `true` if a directory is one of the sizes of the picture.
    pub(super) fn is_size(self, directory: &mut IfdDecoder<'_>) -> bool {
        let mut number = |tag| match directory.find_tag(tag) {
            Ok(Some(Value::Float(number))) => f64::from(number),
            Ok(Some(Value::Signed(number))) => number.into(),
            _ => 0.0,
        };
        match self {
            Slide::Aperio => directory.find_entry(Tag::TileWidth).is_some(),
            // Pages of the whole slide have negative numbers; other distances from the focus are other pictures.
            Slide::Hamamatsu => number(LENS) > 0.0 && number(FOCUS) == 0.0,
        }
    }
}

/// The size of pixels in the description of Aperio, in micrometres.
pub(super) fn pixel(page: &mut Decoder<TiffReader<'_>>) -> Option<PixelSize> {
    let Ok(Some(Value::Ascii(text))) = page.find_tag(Tag::ImageDescription) else { return None };
    let fields = text.starts_with("Aperio").then(|| text.split('|'))?;
    let side = fields.filter_map(|field| field.split_once('=')).find(|(name, _)| name.trim() == "MPP")?.1;
    let side = side.trim().parse().ok();
    PixelSize::of([None, side, side])
}
