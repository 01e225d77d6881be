//! The PNG format.

mod chunks;
mod deflate;
mod read;
pub(super) mod write;

use write::{PngMetadata, PngSamples};

use crate::{
    Alpha, Decoder, Encoder, FileSpec, FormatProperties, Metadata, OpenOptions, PictureFormat, PictureHeader,
    PictureSource, Sink, UnsupportedMetadata,
};
use horus_base::dtype::DType;
use horus_host::workers::Workers;

/// PNG files.
pub(super) struct Png;

impl PictureFormat for Png {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "png",
            title: "PNG",
            magic: &[b"\x89PNG\r\n\x1a\n"],
            types: &[DType::U8, DType::U16],
            channels: &[1, 2, 3, 4],
            alpha: Some(&[2, 4]),
            alpha_kind: Some(Alpha::Unassociated),
            ..FormatProperties::PLAIN
        }
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        let (header, pixels) = read::PngDecoder::of(bytes)?;
        Ok((header, Box::new(pixels)))
    }

    fn header(&self, source: &PictureSource<'_>, _: &OpenOptions) -> Result<PictureHeader, String> {
        Ok(read::header(source.reader(), source)?.0)
    }

    fn without_pixels(&self, source: &PictureSource<'_>) -> Option<Vec<u8>> {
        const NAMES: [&[u8; 4]; 7] = [b"PLTE", b"iCCP", b"pHYs", b"eXIf", b"tEXt", b"zTXt", b"iTXt"];
        Some(chunks::without_pixels(source, &NAMES))
    }

    fn tags(&self, source: &PictureSource<'_>, _: &OpenOptions) -> Result<Vec<(String, String)>, String> {
        read::texts(source)
    }

    fn metadata(&self, source: &PictureSource<'_>, options: &OpenOptions, channels: usize) -> Metadata {
        read::metadata(source, options, channels)
    }

    fn omits_metadata(&self, what: UnsupportedMetadata, file: &FileSpec) -> bool {
        PngMetadata::of(file).lacks(what)
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        let samples = match file.draft.stored {
            DType::U16 => PngSamples::Sixteen(file.pixels[0].as_slice()),
            _ => PngSamples::Eight(file.pixels[0].as_slice()),
        };
        write::write(to, samples, file.draft.shape, &PngMetadata::of(&file.draft), workers)
    }
}
