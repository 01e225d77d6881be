//! Reading of PNG files with the crate `png`.

use std::io::{BufRead, Cursor, Seek};
use std::sync::Arc;

use png::{BitDepth, ColorType, Limits, Transformations};

use super::chunks;
use crate::density::{self, INCH, MOST_IN_PRINT};
use crate::{
    Alpha, DEFLATE, Decode, DirectoryFields, MEMORY_LIMIT, Metadata, OpenOptions, PictureHeader, PictureSource,
    StoredOrientation, decode_metadata, native, profile, texts,
};
use horus_base::dtype::DType;
use horus_base::lengths::PixelSize;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// Decoder of the pixels of a file in memory.
pub(super) struct PngDecoder<'a> {
    bytes: &'a [u8],
    reader: Box<png::Reader<Cursor<&'a [u8]>>>,
}

impl<'a> PngDecoder<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Result<(PictureHeader, PngDecoder<'a>), String> {
        let (header, reader) = header(Cursor::new(bytes), &PictureSource::of(bytes)?)?;
        Ok((header, PngDecoder { bytes, reader: Box::new(reader) }))
    }
}

impl Decode for PngDecoder<'_> {
    fn most(&self, width: u64, bytes: u64) -> u64 {
        most(self.bytes, width, bytes)
    }

    fn read(mut self: Box<Self>, header: &PictureHeader, to: &mut [u8], _: &Workers) -> Result<(), String> {
        self.reader.next_frame(to).map_err(|e| e.to_string())?;
        if header.dtype == DType::U16 {
            native(to);
        }
        Ok(())
    }
}

/// Maximum pixels, in rows of `width`, of a file of `bytes` bytes that begins with `head`.
fn most(head: &[u8], width: u64, bytes: u64) -> u64 {
    // After signature and chunk header: width, height, bits per sample, colour type.
    const BITS: usize = 24;
    const COLOUR: usize = 25;
    let (Some(bits), Some(colour)) = (head.get(BITS), head.get(COLOUR)) else { return 0 };
    let samples = match colour {
        2 => 3,
        4 => 2,
        6 => 4,
        _ => 1,
    };
    // Each row begins with the number of its filter.
    let row = width.saturating_mul(u64::from(*bits) * samples).div_ceil(8) + 1;
    (bytes.saturating_mul(DEFLATE) / row).saturating_mul(width)
}

/// A reader of a PNG file, before its pixels. Samples of less than a byte, and palettes, become bytes.
pub(super) fn reader<R: BufRead + Seek>(from: R) -> Result<png::Reader<R>, String> {
    let most = usize::try_from(MEMORY_LIMIT).unwrap_or(usize::MAX);
    let mut decoder = png::Decoder::new_with_limits(from, Limits { bytes: most });
    decoder.set_transformations(Transformations::EXPAND);
    decoder.read_info().map_err(|e| e.to_string())
}

/// Reads the header of a PNG file from `from`.
pub(super) fn header<R: BufRead + Seek>(
    from: R,
    source: &PictureSource<'_>,
) -> Result<(PictureHeader, png::Reader<R>), String> {
    let reader = self::reader(from)?;
    let channels = match reader.output_color_type().0 {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
        ColorType::Indexed => return Err("it has a palette of more than a byte".into()),
    };
    let dtype = if reader.output_color_type().1 == BitDepth::Sixteen { DType::U16 } else { DType::U8 };
    let info = reader.info();
    // The decoder itself rejects longer palettes. Colours that pixels of few bits cannot index are ignored, as in
    // libpng.
    if let (ColorType::Indexed, Some(palette)) = (info.color_type, &info.palette)
        && !palette.len().is_multiple_of(3)
    {
        return Err(format!("its palette has {} bytes: a colour has 3", palette.len()));
    }
    let noted = chunks::exif(source).and_then(|exif| StoredOrientation::of_exif(&exif)).unwrap_or_default();
    let profile = info.icc_profile.as_ref().map(|profile| profile.len());
    let header =
        PictureHeader { orientation: noted, profile, ..PictureHeader::new(info.width, info.height, channels, dtype)? };
    Ok((header, reader))
}

/// Maximum bytes of the inflated texts of a PNG file.
const INFLATED: usize = 2 << 20;

/// The texts of a PNG file, by their keywords, without texts that cannot be inflated or that, together with those
/// before, exceed [`INFLATED`] bytes.
pub(super) fn texts(source: &PictureSource<'_>) -> Result<Vec<(String, String)>, String> {
    let file = chunks::without_pixels(source, &[b"PLTE", b"tEXt", b"zTXt", b"iTXt"]);
    let reader = self::reader(Cursor::new(&file))?;
    let info = reader.info();
    let mut all: Vec<(String, String)> = Vec::new();
    all.extend(info.uncompressed_latin1_text.iter().map(|text| (text.keyword.clone(), text.text.clone())));
    let mut left = INFLATED;
    macro_rules! inflated {
        ($texts:expr) => {
            for text in $texts {
                let mut text = text.clone();
                if let Ok(found) = text.decompress_text_with_limit(left).and_then(|()| text.get_text()) {
                    left = left.saturating_sub(found.len());
                    all.push((text.keyword, found));
                }
            }
        };
    }
    inflated!(&info.compressed_latin1_text);
    inflated!(&info.utf8_text);
    Ok(all)
}

/// Metadata of a file with this many channels. Metadata that cannot be read counts as absent.
pub(super) fn metadata(source: &PictureSource<'_>, options: &OpenOptions, channels: usize) -> Metadata {
    let blob = chunks::exif(source);
    let fields = || blob.as_deref().and_then(DirectoryFields::of);
    let turned = blob.as_deref().and_then(StoredOrientation::of_exif).unwrap_or_default();
    let (pixel, printed) = of_png(source);
    let printed = printed.or_else(|| density::of_exif(fields()).filter(|_| pixel.is_none()));
    // Only sides change.
    let placed = options.orientation.placed(Shape::new(1, 1, 1), turned);
    let [pixel, printed] = [pixel, printed].map(|size| size?.mapped_by(&placed));
    let texts = || [texts(source).unwrap_or_default(), texts::of_fields(fields())].concat();
    Metadata {
        pixel,
        printed,
        // The other channels are grey or colours.
        alpha: matches!(channels, 2 | 4).then_some(Alpha::Unassociated),
        profile: decode_metadata(|| profile::of(profile(source).ok()??, channels)),
        exif: fields().and_then(|mut fields| fields.exif(options.orientation)).map(Arc::new),
        texts: decode_metadata(|| texts::select_authored_texts(texts())),
        ..Metadata::default()
    }
}

fn profile(source: &PictureSource<'_>) -> Result<Option<Vec<u8>>, String> {
    let file = chunks::without_pixels(source, &[b"PLTE", b"iCCP"]);
    let reader = reader(Cursor::new(&file))?;
    Ok(reader.info().icc_profile.as_ref().map(|profile| profile.to_vec()))
}

/// The size of pixels, or of pixels in a print, by the chunks of a PNG file before its pixels.
fn of_png(source: &PictureSource<'_>) -> (Option<PixelSize>, Option<PixelSize>) {
    let mut before = chunks::chunks(source).take_while(|chunk| &chunk.name != b"IDAT");
    let body = before.find(|chunk| &chunk.name == b"pHYs").and_then(|chunk| chunk.body(source));
    body.and_then(|body| of_density(&body)).unwrap_or_default()
}

/// The size of pixels by the density of a PNG file, in pixels per metre; or the size in a print, if the density is a
/// whole number of dots per inch, at most [`MOST_IN_PRINT`].
fn of_density(body: &[u8]) -> Option<(Option<PixelSize>, Option<PixelSize>)> {
    const METRE: u8 = 1;
    const DOTS: f64 = INCH / 1e6;
    let in_print = |density: &[u8; 4]| {
        let (density, dots) = (u32::from_be_bytes(*density), (f64::from(u32::from_be_bytes(*density)) * DOTS).round());
        let near = dots <= MOST_IN_PRINT && [(dots / DOTS).floor(), (dots / DOTS).ceil()].contains(&f64::from(density));
        near.then_some(INCH / dots)
    };
    let ([columns, rows], [METRE]) = body.as_chunks::<4>() else { return None };
    let side = |density: &[u8; 4]| Some(1e6 / f64::from(u32::from_be_bytes(*density)));
    Some(match (in_print(rows), in_print(columns)) {
        (Some(rows), Some(columns)) => (None, PixelSize::of([None, Some(rows), Some(columns)])),
        _ => (PixelSize::of([None, side(rows), side(columns)]), None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_for_print_are_no_sizes() {
        use super::super::write::{PngMetadata, PngSamples, write};
        use horus_host::workers::Workers;
        let read = |pixel| {
            let (beside, mut bytes) = (PngMetadata { pixel: Some(pixel), ..PngMetadata::default() }, Vec::new());
            let shape = Shape::new(1, 2, 1);
            write(&mut bytes, PngSamples::Eight(&[1, 2]), shape, &beside, &Workers::alone()).unwrap();
            // A profile that is longer than the first bytes that are read.
            let profile = [&5000u32.to_be_bytes()[..], b"iCCP", &[7; 5004]].concat();
            bytes.splice(33..33, profile);
            of_png(&PictureSource::of(&bytes).unwrap()).0.map(|size| [size.rows, size.columns])
        };
        for dots in [1.0, 72.0, 96.0, 300.0, 1200.0] {
            assert_eq!(read([25_400.0 / dots; 2]), None, "{dots} dots per inch");
        }
        for sizes in [[0.5, 0.5], [250.0, 250.0], [254.0, 250.0]] {
            let found = read(sizes).unwrap();
            // Densities are whole numbers.
            assert!(found.iter().zip(sizes).all(|(a, b)| (a / b - 1.0).abs() < 1.0 / 3937.0), "{found:?}, {sizes:?}");
        }
    }

    #[test]
    fn what_bytes_can_hold_follows_from_the_header() {
        // 1-bit grey in rows of 8 pixels: two bytes a row.
        let mut head = [0; 26];
        head[24] = 1;
        assert_eq!(most(&head, 8, 26), 26 * DEFLATE / 2 * 8);
        (head[24], head[25]) = (16, 6);
        assert_eq!(most(&head, 1, 26), 26 * DEFLATE / 9);
    }
}
