//! The JPEG format.

pub(super) mod general;
pub(super) mod read;
pub(super) mod segments;
mod write;

use std::borrow::Cow;

use write::JpegMetadata;

use crate::{
    Decoder, Encoder, FileSpec, FormatOption, FormatProperties, Metadata, OpenOptions, PictureFormat, PictureSource,
    Sink, UnsupportedMetadata,
};
use horus_base::dtype::DType;
use horus_host::workers::Workers;

/// JPEG files.
pub(super) struct Jpeg;

impl PictureFormat for Jpeg {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "jpg",
            title: "JPEG",
            magic: &[b"\xff\xd8\xff"],
            suffixes: &["jpeg"],
            types: &[DType::U8],
            channels: &[1, 3],
            side: u16::MAX as usize,
            lossy: true,
            uses_hidden_memory: true,
            options: &[FormatOption::Quality],
            ..FormatProperties::PLAIN
        }
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        read::decoder(bytes)
    }

    fn without_pixels(&self, source: &PictureSource<'_>) -> Option<Vec<u8>> {
        segments::head(source).map(Cow::into_owned)
    }

    fn is_complete(&self, bytes: &[u8]) -> Result<(), String> {
        // The decoder fills missing pixels with grey.
        if segments::has_end_marker(bytes) { Ok(()) } else { Err("the JPEG data is truncated".into()) }
    }

    fn metadata(&self, source: &PictureSource<'_>, options: &OpenOptions, channels: usize) -> Metadata {
        read::metadata(source, options, channels)
    }

    fn check(&self, file: &FileSpec) -> Result<(), String> {
        match file.options.quality {
            None | Some(1..=100) => Ok(()),
            Some(quality) => Err(format!("a quality of {quality} requested; it is from 1 to 100")),
        }
    }

    fn omits_metadata(&self, what: UnsupportedMetadata, file: &FileSpec) -> bool {
        JpegMetadata::of(file).lacks(what)
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        let beside = (file.draft.options.quality, &JpegMetadata::of(&file.draft));
        write::write(to, file.pixels[0].as_slice(), file.draft.shape, beside, workers)
    }
}
