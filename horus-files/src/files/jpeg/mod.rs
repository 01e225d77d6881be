//! JPEG.

pub(crate) mod general;
pub(crate) mod read;
pub(crate) mod segments;
pub(crate) mod write;

use std::borrow::Cow;

use crate::files::codec::Decoder;
use crate::files::format::{Choice, Facts, PictureFormat};
use crate::files::load::Source;
use crate::files::{Metadata, OpenOptions};
use horus_base::dtype::DType;

/// JPEG files.
#[derive(Debug)]
pub(super) struct Jpeg;

static FACTS: Facts = Facts {
    name: "jpg",
    title: "JPEG",
    suffixes: &["jpeg"],
    types: &[DType::U8],
    channels: &[1, 3],
    side: u16::MAX as usize,
    lossy: true,
    aside: true,
    takes: &[Choice::Quality],
    ..Facts::PLAIN
};

impl PictureFormat for Jpeg {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.starts_with(&[0xff, 0xd8, 0xff])
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        read::decoder(bytes)
    }

    fn without_pixels(&self, source: &Source<'_>) -> Option<Vec<u8>> {
        segments::head(source).map(Cow::into_owned)
    }

    fn is_complete(&self, bytes: &[u8]) -> Result<(), String> {
        // The decoder fills missing pixels with grey.
        if segments::ends(bytes) { Ok(()) } else { Err("the JPEG data is truncated".into()) }
    }

    fn metadata(&self, source: &Source<'_>, options: &OpenOptions, channels: usize) -> Metadata {
        read::metadata(source, options, channels)
    }
}
