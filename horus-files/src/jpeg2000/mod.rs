//! JPEG 2000 files and code streams (ISO/IEC 15444-1), decoded by the crate `hayro-jpeg2000`: grey or colour, with or
//! without alpha, of up to 16 bits.

mod structure;

use hayro_jpeg2000::{ColorSpace, DecodeSettings, DecoderContext, Image};

use structure::Structure;

use crate::{
    Alpha, Decode, Decoder, FormatProperties, MEMORY_LIMIT, Metadata, OpenOptions, PictureFormat, PictureHeader,
    PictureSource, decode_metadata, profile, zeros,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;

/// JPEG 2000 files.
pub(super) struct Jpeg2000;

impl PictureFormat for Jpeg2000 {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "jp2",
            title: "JPEG 2000",
            magic: &[structure::SIGNATURE, structure::CODE_STREAM],
            suffixes: &["j2k", "j2c", "jpc"],
            types: &[DType::U8, DType::U16],
            ..FormatProperties::PLAIN
        }
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        let (header, picture) = Jpeg2000Picture::of(bytes)?;
        Ok((header, Box::new(picture)))
    }

    fn metadata(&self, source: &PictureSource<'_>, _: &OpenOptions, channels: usize) -> Metadata {
        let said = decode_metadata(|| {
            let bytes = source.all(&HostBuffer::try_zeroed).ok()?;
            let (_, Jpeg2000Picture { image, .. }) = Jpeg2000Picture::of(&bytes).ok()?;
            let profile = match image.color_space() {
                ColorSpace::Icc { profile, .. } => profile::of(profile.clone(), channels),
                _ => None,
            };
            let alpha = image.has_alpha().then_some(Alpha::Unassociated);
            Some(Metadata { alpha, profile, ..Metadata::default() })
        });
        said.unwrap_or_default()
    }
}

/// The samples of a code stream of at most `most` pixels, interleaved, in the stored colours.
pub(crate) fn as_stored(bytes: &[u8], most: u64) -> Result<(Vec<u8>, Shape, DType), String> {
    let (header, picture) = Jpeg2000Picture::of(bytes)?;
    let PictureHeader { shape, dtype, .. } = header;
    if shape.area() as u64 > most {
        return Err("its JPEG 2000 data declares more pixels than its strip or tile holds".into());
    }
    // The decoder would convert such colours.
    if picture.structure.is_subsampled {
        return Err("JPEG 2000 data with fewer samples of colours are not supported in TIFF files".into());
    }
    let mut pixels = zeros(shape.len() * dtype.size())?;
    Box::new(picture).read(&header, &mut pixels, &Workers::alone())?;
    Ok((pixels, shape, dtype))
}

/// A file whose header has been read.
struct Jpeg2000Picture<'a> {
    image: Image<'a>,
    structure: Structure,
}

impl<'a> Jpeg2000Picture<'a> {
    fn of(bytes: &'a [u8]) -> Result<(PictureHeader, Jpeg2000Picture<'a>), String> {
        let structure = Structure::of(bytes)?;
        // Strict: a truncated file is an error.
        let settings = DecodeSettings { strict: true, ..DecodeSettings::default() };
        let image = Image::new(bytes, &settings).map_err(|e| e.to_string())?;
        let (colours, profile) = match image.color_space() {
            ColorSpace::Gray => (1, None),
            ColorSpace::RGB => (3, None),
            ColorSpace::Icc { profile, num_channels: channels @ (1 | 3) } => (*channels, Some(profile.len())),
            ColorSpace::CMYK => return Err("inks (CMYK) are not supported".into()),
            other => return Err(format!("{} channels of unknown colours are not supported", other.num_channels())),
        };
        let dtype = if structure.bits > 8 { DType::U16 } else { DType::U8 };
        let channels = usize::from(colours) + usize::from(image.has_alpha());
        let header = PictureHeader::new(image.width(), image.height(), channels, dtype)?;
        let beside = structure.decoding_bytes();
        if beside > MEMORY_LIMIT {
            return Err(format!("its pixels need {beside} bytes to decode; the limit is {MEMORY_LIMIT}"));
        }
        Ok((PictureHeader { profile, ..header }, Jpeg2000Picture { image, structure }))
    }
}

impl Decode for Jpeg2000Picture<'_> {
    /// A packet of a byte encodes any number of equal pixels: [`Structure`] compares their number with the bytes, and
    /// the memory with its limit.
    fn most(&self, _: u64, _: u64) -> u64 {
        u64::MAX
    }

    fn scratch_bytes(&self, _: &PictureHeader, _: &Workers) -> u64 {
        self.structure.decoding_bytes()
    }

    /// Decodes the samples, scaled to the maximum of their type.
    fn read(self: Box<Self>, header: &PictureHeader, to: &mut [u8], _: &Workers) -> Result<(), String> {
        let mut context = DecoderContext::default();
        let decoded = self.image.decode(&mut context).map_err(|e| e.to_string())?;
        let (all, channels) = (decoded.components(), header.shape.channels);
        if all.len() != channels || all.iter().any(|plane| plane.samples().len() != header.shape.area()) {
            return Err(format!("it has {} planes, not {channels} of its size", all.len()));
        }
        for (place, plane) in all.iter().enumerate() {
            let full = if header.dtype == DType::U16 { f32::from(u16::MAX) } else { f32::from(u8::MAX) };
            let scale = full / ((1u32 << plane.bit_depth().min(16)) - 1) as f32;
            // A conversion of floats saturates.
            let samples = plane.samples().iter().map(|v| (v * scale).round());
            if header.dtype == DType::U16 {
                let to = to.as_chunks_mut().0.iter_mut().skip(place).step_by(channels);
                to.zip(samples).for_each(|(to, v)| *to = (v as u16).to_ne_bytes());
            } else {
                to.iter_mut().skip(place).step_by(channels).zip(samples).for_each(|(to, v)| *to = v as u8);
            }
        }
        Ok(())
    }
}
