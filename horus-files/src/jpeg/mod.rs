//! JPEG.

pub(super) mod general;
pub(super) mod read;
pub(super) mod segments;
mod write;

use std::borrow::Cow;

use write::Beside;

use crate::{Choice, Decoder, Draft, Encoder, Facts, Lacking, Metadata, OpenOptions, PictureFormat, Sink, Source};
use horus_base::dtype::DType;
use horus_host::workers::Workers;

/// JPEG files.
pub(super) struct Jpeg;

impl PictureFormat for Jpeg {
    fn facts(&self) -> &Facts {
        &Facts {
            name: "jpg",
            title: "JPEG",
            magic: &[b"\xff\xd8\xff"],
            suffixes: &["jpeg"],
            types: &[DType::U8],
            channels: &[1, 3],
            side: u16::MAX as usize,
            lossy: true,
            aside: true,
            takes: &[Choice::Quality],
            ..Facts::PLAIN
        }
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

    fn check(&self, file: &Draft) -> Result<(), String> {
        match file.options.quality {
            None | Some(1..=100) => Ok(()),
            Some(quality) => Err(format!("a quality of {quality} requested; it is from 1 to 100")),
        }
    }

    fn lacks(&self, what: Lacking, file: &Draft) -> bool {
        Beside::of(file).lacks(what)
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        let beside = (file.draft.options.quality, &Beside::of(&file.draft));
        write::write(to, file.pixels[0].as_slice(), file.draft.shape, beside, workers)
    }
}
