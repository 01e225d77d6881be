//! Portable Network Graphics.

mod chunks;
mod deflate;
mod read;
pub(crate) mod write;

use crate::files::codec::{Decoder, Header};
use crate::files::format::{Facts, PictureFormat};
use crate::files::load::Source;
use crate::files::{Metadata, OpenOptions};
use horus_base::dtype::DType;

/// PNG files.
#[derive(Debug)]
pub(super) struct Png;

static FACTS: Facts = Facts {
    name: "png",
    title: "PNG",
    types: &[DType::U8, DType::U16],
    channels: &[1, 2, 3, 4],
    straight_alpha: &[2, 4],
    ..Facts::PLAIN
};

impl PictureFormat for Png {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.starts_with(b"\x89PNG\r\n\x1a\n")
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        let (header, pixels) = read::Pixels::of(bytes)?;
        Ok((header, Box::new(pixels)))
    }

    fn header(&self, source: &Source<'_>, _: &OpenOptions) -> Result<Header, String> {
        Ok(read::header(source.reader(), source)?.0)
    }

    fn without_pixels(&self, source: &Source<'_>) -> Option<Vec<u8>> {
        const NAMES: [&[u8; 4]; 7] = [b"PLTE", b"iCCP", b"pHYs", b"eXIf", b"tEXt", b"zTXt", b"iTXt"];
        Some(chunks::without_pixels(source, &NAMES))
    }

    fn tags(&self, source: &Source<'_>, _: &OpenOptions) -> Result<Vec<(String, String)>, String> {
        read::texts(source)
    }

    fn metadata(&self, source: &Source<'_>, options: &OpenOptions, channels: usize) -> Metadata {
        read::metadata(source, options, channels)
    }
}
