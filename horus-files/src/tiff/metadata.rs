//! Metadata of TIFF files: reading and writing.

use std::sync::Arc;

use tiff::decoder::Decoder;
use tiff::decoder::ifd::Value;
use tiff::tags::Tag;

use super::directory::DirectoryEntry;
use super::ome;
use super::read;
use super::slide;
use super::source::{TiffReader, decoder_at};
use super::stack::{self, DescriptionAuthor, Stack};
use crate::density::{CENTIMETRE, INCH, in_print};
use crate::{
    Alpha, DirectoryFields, FileSpec, Georeference, Metadata, OpenOptions, PictureSource, StoredOrientation,
    UnsupportedMetadata, decode_metadata, guarded, profile, texts,
};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::lengths::PixelSize;
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

/// The numbers in `ExtraSamples` for the kinds of alpha.
const ALPHAS: [(u16, Alpha); 2] = [(1, Alpha::Associated), (2, Alpha::Unassociated)];

/// The metadata of the page of an open file with this many channels. Metadata that cannot be read counts as absent.
pub(super) fn of(source: &PictureSource<'_>, options: &OpenOptions, channels: usize) -> Metadata {
    let [pixel, printed] = guarded(|| sides(source, options)).unwrap_or_default();
    Metadata {
        reference: Georeference::of(source, options),
        pixel,
        printed,
        names: stack::names(source, options, channels),
        alpha: decode_metadata(|| alpha(source, options, channels).ok().flatten()),
        profile: decode_metadata(|| profile::of(profile_of(source, options).ok()??, channels)),
        exif: decode_metadata(|| fields(source, options)?.exif(options.orientation)).map(Arc::new),
        texts: decode_metadata(|| texts::select_authored_texts(texts(source, options))),
        tile: None,
    }
}

/// The fields of the page.
fn fields<'a>(source: &'a PictureSource<'_>, options: &OpenOptions) -> Option<DirectoryFields<'a>> {
    DirectoryFields::at(source, read::directory_of_page(source, read::directory_page(source, options), 0).ok()?.0)
}

fn texts(source: &PictureSource<'_>, options: &OpenOptions) -> Vec<(String, String)> {
    let mut all = texts::of_fields(fields(source, options));
    if stack::described(source).is_some() {
        // The description of its pages is no text by people.
        all.retain(|(keyword, _)| keyword != texts::DESCRIPTION);
    }
    all
}

fn profile_of(source: &PictureSource<'_>, options: &OpenOptions) -> Result<Option<Vec<u8>>, String> {
    let page = read::directory_page(source, options);
    let mut page = decoder_at(source, read::directory_of_page(source, page, 0)?)?;
    let tag = page.find_tag(Tag::IccProfile).map_err(read::text)?;
    Ok(tag.and_then(|value| value.into_u8_vec().ok()))
}

fn alpha(source: &PictureSource<'_>, options: &OpenOptions, channels: usize) -> Result<Option<Alpha>, String> {
    // Channels of several pages are no colours.
    let is_apart = |stack: &Stack| stack.channels > 1 && stack.channels * stack.samples == channels;
    if channels == 1 || stack::stack_of_pages(source, options)?.is_some_and(|stack| is_apart(&stack)) {
        return Ok(None);
    }
    let page = read::directory_page(source, options);
    let mut page = decoder_at(source, read::directory_of_page(source, page, options.level)?)?;
    let extra = page.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).map_err(read::text)?;
    let last = extra.and_then(|extra| extra.last().copied());
    Ok(ALPHAS.into_iter().find(|(number, _)| Some(*number) == last).map(|(_, alpha)| alpha))
}

/// The name of an OME-TIFF file without its suffix (`.ome.tif`); `None` for other names.
fn ome_name(file: &FileSpec) -> Option<&str> {
    let lower = file.name.to_ascii_lowercase();
    let name = [".ome.tif", ".ome.tiff"].iter().find_map(|end| lower.strip_suffix(end))?;
    file.name.get(..name.len())
}

/// The fields of the texts of a file to write, and whether it has other texts. The description of an OME file is
/// OME-XML instead.
fn text_fields(file: &FileSpec) -> (Vec<DirectoryEntry>, bool) {
    let (mut fields, others) = texts::entries(file.metadata.texts.as_deref().unwrap_or_default());
    let all = fields.len();
    fields.retain(|entry| ome_name(file).is_none() || !entry.is_of_file());
    let others = others.iter().any(|keyword| *keyword != texts::COMMENT) || fields.len() < all;
    (fields, others)
}

/// Returns `true` if the file does not support this metadata, which the image has.
pub(super) fn lacks(what: UnsupportedMetadata, file: &FileSpec) -> bool {
    match what {
        UnsupportedMetadata::Names => ome_name(file).is_none(),
        UnsupportedMetadata::Texts => text_fields(file).1,
        _ => false,
    }
}

/// The entries of a file to write, besides those of its pixels. A file with the name of an OME-TIFF is described as
/// OME-XML, with the size of pixels and a page for each channel, unless three or four channels without names are
/// colours. Other files have the size as their resolution. Also returns whether channels are in separate pages.
///
/// # Errors
/// A message, if its samples cannot represent the value of missing pixels.
pub(crate) fn entries(file: &FileSpec) -> Result<(Vec<DirectoryEntry>, bool), String> {
    let &FileSpec { shape, stored, metadata: ref beside, .. } = file;
    let mut all = text_fields(file).0;
    let at = beside.reference.clone().unwrap_or_default();
    let missing = file.options.nodata.map(|value| nodata(value, stored)).transpose()?;
    let (missing, colours) = (missing.unwrap_or_else(|| at.nodata().to_owned()), at.colours().to_vec());
    all.extend(at.with_values(missing, colours).entries());
    all.extend(beside.profile.iter().map(|profile| DirectoryEntry::bytes_of(Tag::IccProfile.to_u16(), profile)));
    all.extend(beside.exif.iter().flat_map(|exif| exif.entries(shape)));
    match (beside.pixel, beside.printed) {
        (Some(pixel), _) => all.extend(resolution(pixel, false)),
        (None, Some(printed)) => all.extend(resolution(printed, true)),
        (None, None) => {}
    }
    let mut apart = false;
    if let Some(name) = ome_name(file) {
        let mut names = beside.names.clone();
        apart = names.len() == shape.channels || !matches!(shape.channels, 1 | 3 | 4);
        names.resize(shape.channels, String::new());
        let text = ome::description(name, shape, stored, beside.pixel, apart.then_some(&names[..]));
        all.push(DirectoryEntry::ascii(Tag::ImageDescription.to_u16(), &text));
    }
    if let Some(alpha) = beside.alpha.filter(|_| shape.channels > 1 && !apart) {
        let number = ALPHAS.into_iter().find(|(_, known)| *known == alpha).map_or(0, |(number, _)| number);
        all.push(DirectoryEntry::short(Tag::ExtraSamples.to_u16(), [number]));
    }
    Ok((all, apart))
}

/// Formats the value for missing pixels, for samples of type `stored`.
fn nodata(value: f64, stored: DType) -> Result<String, String> {
    let held = dispatch!(stored, T => T::from_f64(value).to_f64());
    let fits = if stored.is_float() { held.is_finite() == value.is_finite() } else { held == value };
    if !fits {
        return Err(format!("{value} stands for missing pixels (nodata), and samples of {stored} do not hold it"));
    }
    let whole = held.fract() == 0.0 && held.abs() < 1e15;
    Ok(match held {
        nan if nan.is_nan() => "nan".to_owned(),
        held if whole => held.to_string(),
        held => format!("{held:?}"),
    })
}

/// The size of pixels, in OME-XML, from ImageJ or Aperio, or as a resolution in pixels per centimetre; and the size in a print or
/// a scan: another resolution.
fn sides(source: &PictureSource<'_>, options: &OpenOptions) -> Result<[Option<PixelSize>; 2], String> {
    let page = read::directory_page(source, options);
    let mut decoder = decoder_at(source, read::directory_of_page(source, page, 0)?)?;
    let (by_centimetre, printed) = match of_resolution(&mut decoder) {
        Some((size, true)) => (Some(size), None),
        other => (None, other.map(|(size, _)| size)),
    };
    let found = match stack::described(source) {
        None => by_centimetre.or_else(|| slide::pixel(&mut decoder)),
        Some(Ok(Stack { by: DescriptionAuthor::Tifffile | DescriptionAuthor::MetaMorph, .. })) => by_centimetre,
        Some(stack) => stack?.pixel,
    };
    let placed = placed_in_page(source, page, options)?;
    Ok([found, printed].map(|size| size?.mapped_by(&placed)))
}

/// The position in a page of each pixel of its smaller copy, or of itself, in the requested orientation.
pub(super) fn placed_in_page(
    source: &PictureSource<'_>,
    page: usize,
    options: &OpenOptions,
) -> Result<PositionMap, String> {
    let mut copy = decoder_at(source, read::directory_of_page(source, page, options.level)?)?;
    let turned = copy.find_tag_unsigned::<u16>(Tag::Orientation).ok().flatten().and_then(StoredOrientation::numbered);
    let levels = read::levels_of_page(source, page)?;
    let both = levels.first().copied().zip(levels.get(options.level).copied());
    let ((height, width), (rows, columns)) = both.ok_or("its sizes are unknown")?;
    let [down, across] = level_scale([height, width], [rows, columns]);
    let first = |step: f64| (step - 1.0) / 2.0;
    let placed = PositionMap::of([[across, 0.0, first(across)], [0.0, down, first(down)]]);
    Ok(placed.then(&options.orientation.placed(Shape::new(rows, columns, 1), turned.unwrap_or_default())))
}

/// Distance in a page between pixels of its smaller copy, along axes of these lengths. A power of two, if the copy's
/// lengths are repeated halves (rounded up, as ours, or down) with a pixel for each block; otherwise the quotient,
/// because copies cover the same area.
fn level_scale(page: [usize; 2], copy: [usize; 2]) -> [f64; 2] {
    let times = |halved: fn(usize, u32) -> usize| (0..u32::BITS).find(|times| page.map(|n| halved(n, *times)) == copy);
    match times(|n, times| n.div_ceil(1 << times)).or_else(|| times(|n, times| (n >> times).max(1))) {
        // A single pixel is not halved.
        Some(times) => page.map(|from| (1 << times).min(from.next_power_of_two()) as f64),
        None => [page[0] as f64 / copy[0].max(1) as f64, page[1] as f64 / copy[1].max(1) as f64],
    }
}

/// The size of pixels by the resolution of a TIFF page, and whether the resolution is per centimetre.
fn of_resolution(decoder: &mut Decoder<TiffReader<'_>>) -> Option<(PixelSize, bool)> {
    const PER_CENTIMETRE: u16 = 3;
    let unit = decoder.find_tag_unsigned::<u16>(Tag::ResolutionUnit).ok()??;
    let mut side = |tag| match decoder.find_tag(tag) {
        Ok(Some(Value::Rational(pixels, units))) => Some([f64::from(pixels), f64::from(units)]),
        _ => None,
    };
    let sides = [side(Tag::XResolution)?, side(Tag::YResolution)?];
    Some((in_print(sides, unit)?, unit == PER_CENTIMETRE))
}

/// The tags of a resolution in pixels per centimetre or, for a print, in pixels per inch.
fn resolution(pixel: PixelSize, printed: bool) -> Vec<DirectoryEntry> {
    let (unit, number) = if printed { (INCH, 2) } else { (CENTIMETRE, 3) };
    let side = |tag: Tag, side: f64| DirectoryEntry::rational(tag.to_u16(), unit / side);
    vec![
        side(Tag::XResolution, pixel.columns),
        side(Tag::YResolution, pixel.rows),
        DirectoryEntry::short(Tag::ResolutionUnit.to_u16(), [number]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_blocks_lie_powers_of_two_apart() {
        assert_eq!(level_scale([37, 50], [10, 13]), [4.0, 4.0]);
        assert_eq!(level_scale([37, 50], [9, 12]), [4.0, 4.0], "rounded down");
        assert_eq!(level_scale([37, 50], [37, 50]), [1.0, 1.0]);
        assert_eq!(level_scale([5, 1], [1, 1]), [8.0, 1.0]);
        assert_eq!(level_scale([1000, 3], [250, 1]), [4.0, 4.0]);
        assert_eq!(level_scale([300, 200], [100, 50]), [3.0, 4.0]);
    }
}
