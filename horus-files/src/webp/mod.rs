//! WebP files, by the crate `image-webp`: 8-bit colours, with or without alpha; written without loss.

use std::io::{BufRead, Cursor, Seek};
use std::sync::Arc;

use image_webp::{ColorType, WebPDecoder, WebPEncoder};

use crate::{
    Alpha, Decode, Decoder, DirectoryFields, Encoder, FileSpec, FormatProperties, Metadata, OpenOptions, PictureFormat,
    PictureHeader, PictureSource, Sink, StoredOrientation, UnsupportedMetadata, cause, decode_metadata, density, exif,
    profile, texts,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// WebP files.
pub(super) struct WebP;

/// Maximum rows or columns.
const SIDE: u32 = 16383;

/// Maximum bytes of a profile or EXIF data.
const MOST_METADATA: usize = 16 << 20;

impl PictureFormat for WebP {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "webp",
            title: "WebP",
            magic: &[b"RIFF"],
            types: &[DType::U8],
            channels: &[1, 3, 4],
            alpha: Some(&[4]),
            alpha_kind: Some(Alpha::Unassociated),
            side: SIDE as usize,
            ..FormatProperties::PLAIN
        }
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        let (header, decoder) = opened(Cursor::new(bytes))?;
        Ok((header, Box::new(decoder)))
    }

    fn is_complete(&self, bytes: &[u8]) -> Result<(), String> {
        // The decoder fills missing pixels of lossy data. The length of the file is after its signature.
        let length = bytes.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_le_bytes(*four));
        if u64::from(length) + 8 > bytes.len() as u64 { Err("the WebP data is truncated".into()) } else { Ok(()) }
    }

    fn header(&self, source: &PictureSource<'_>, _: &OpenOptions) -> Result<PictureHeader, String> {
        Ok(opened(source.reader())?.0)
    }

    fn metadata(&self, source: &PictureSource<'_>, options: &OpenOptions, channels: usize) -> Metadata {
        let Some((exif, profile)) = decode_metadata(|| {
            let mut decoder = decoder(source.reader()).ok()?;
            Some((decoder.exif_metadata().ok().flatten(), decoder.icc_profile().ok().flatten()))
        }) else {
            return Metadata::default();
        };
        let exif = exif.as_deref().map(without_prefix);
        let fields = || exif.and_then(DirectoryFields::of);
        let turned = exif.and_then(StoredOrientation::of_exif).unwrap_or_default();
        let placed = options.orientation.placed(Shape::new(1, 1, 1), turned);
        Metadata {
            printed: density::of_exif(fields()).and_then(|size| size.mapped_by(&placed)),
            alpha: (channels == 4).then_some(Alpha::Unassociated),
            profile: profile.and_then(|profile| profile::of(profile, channels)),
            exif: fields().and_then(|mut fields| fields.exif(options.orientation)).map(Arc::new),
            texts: texts::select_authored_texts(texts::of_fields(fields())),
            ..Metadata::default()
        }
    }

    fn omits_metadata(&self, what: UnsupportedMetadata, _: &FileSpec) -> bool {
        !matches!(what, UnsupportedMetadata::Profile | UnsupportedMetadata::Exif)
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, _: &Workers) -> Result<(), String> {
        let Shape { height, width, channels, .. } = file.draft.shape;
        let colours = match channels {
            1 => ColorType::L8,
            3 => ColorType::Rgb8,
            _ => ColorType::Rgba8,
        };
        let said = &file.draft.metadata;
        let mut encoder = WebPEncoder::new(to);
        if let Some(profile) = &said.profile {
            encoder.set_icc_profile(profile.to_vec());
        }
        if let Some(exif) = &said.exif {
            encoder.set_exif_metadata(exif::bytes_of(exif.entries(file.draft.shape)));
        }
        // Sides are at most `SIDE`.
        let encoded = encoder.encode(file.pixels[0].as_slice(), width as u32, height as u32, colours);
        encoded.map_err(|e| match e {
            image_webp::EncodingError::IoError(e) => cause(e),
            other => other.to_string(),
        })
    }
}

/// EXIF data without the prefix of JPEG files, which some programs write.
fn without_prefix(exif: &[u8]) -> &[u8] {
    exif.strip_prefix(exif::IN_JPEG).unwrap_or(exif)
}

fn decoder<R: BufRead + Seek>(from: R) -> Result<WebPDecoder<R>, String> {
    let mut decoder = WebPDecoder::new(from).map_err(|e| e.to_string())?;
    decoder.set_memory_limit(MOST_METADATA);
    Ok(decoder)
}

/// Reads the header of a file.
fn opened<R: BufRead + Seek>(from: R) -> Result<(PictureHeader, WebPDecoder<R>), String> {
    let mut decoder = decoder(from)?;
    if decoder.is_animated() {
        return Err("animations are not supported".into());
    }
    let (width, height) = decoder.dimensions();
    let header = PictureHeader::new(width, height, if decoder.has_alpha() { 4 } else { 3 }, DType::U8)?;
    let exif = decoder.exif_metadata().ok().flatten();
    let orientation = exif.as_deref().map(without_prefix).and_then(StoredOrientation::of_exif).unwrap_or_default();
    let profile = decoder.icc_profile().ok().flatten().map(|profile| profile.len());
    Ok((PictureHeader { orientation, profile, ..header }, decoder))
}

impl<R: BufRead + Seek> Decode for WebPDecoder<R> {
    /// Data without loss encode any number of equal pixels in a few bytes.
    fn most(&self, _: u64, _: u64) -> u64 {
        u64::from(SIDE).pow(2)
    }

    fn scratch_bytes(&self, header: &PictureHeader, _: &Workers) -> u64 {
        // Colours of 32 bits; luminance, and colours of half the rows and columns; alpha apart.
        8 * header.shape.area() as u64
    }

    fn read(mut self: Box<Self>, _: &PictureHeader, to: &mut [u8], _: &Workers) -> Result<(), String> {
        self.read_image(to).map_err(|e| e.to_string())
    }
}
