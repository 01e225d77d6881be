//! Colour profiles (ICC) of files: read, and judged, but not applied.

use std::io::Cursor;
use std::sync::Arc;

use tiff::tags::Tag;

use super::load::{Kind, Source};
use super::png::chunks as png_chunks;
use super::tiff::read as read_tiff;
use super::tiff::source::decoder_at;
use super::{OpenOptions, codec, decode, metadata};

/// The colour profile of a picture of so many channels in an open file. One that cannot be read, or is for other
/// colours, counts as absent.
pub(super) fn of(source: &Source<'_>, options: &OpenOptions, channels: usize) -> Option<Arc<[u8]>> {
    let read = || -> Result<Option<Vec<u8>>, String> {
        match source.kind() {
            Kind::Jpeg => Ok(metadata::jpeg_head(source).as_deref().and_then(metadata::jpeg_profile)),
            Kind::Png => {
                let file = png_chunks::without_pixels(source, &[b"PLTE", b"iCCP"]);
                let reader = codec::png_reader(Cursor::new(&file))?;
                Ok(reader.info().icc_profile.as_ref().map(|profile| profile.to_vec()))
            }
            Kind::Tiff => {
                let page = read_tiff::directory_page(source, options);
                let mut page = decoder_at(source, read_tiff::directory_of_page(source, page, 0)?)?;
                let tag = page.find_tag(Tag::IccProfile).map_err(read_tiff::text)?;
                Ok(tag.and_then(|value| value.into_u8_vec().ok()))
            }
            _ => Ok(None),
        }
    };
    decode::guarded(read).ok().flatten().filter(|profile| fits(profile, channels)).map(Arc::from)
}

/// True if a profile is for pixels of so many channels, grey or red, green and blue, of which one more may be alpha.
fn fits(profile: &[u8], channels: usize) -> bool {
    match profile.get(16..20) {
        Some(b"GRAY") => matches!(channels, 1 | 2),
        Some(b"RGB ") => matches!(channels, 3 | 4),
        _ => false,
    }
}
