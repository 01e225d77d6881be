//! OME-XML, the description in the first page of an OME-TIFF file (schema 2016-06): axes, names of
//! channels, and sizes of pixels.

use tiff::decoder::Decoder;
use tiff::decoder::ifd::Value;
use tiff::tags::Tag as TiffTag;

use super::directory::Entry;
use super::read;
use super::source::{Reader, decoder_at};
use super::stack::{self, By, MOST_PLANES, Stack, here};
use crate::files::load::{Kind, Source};
use crate::files::metadata::Turned;
use crate::files::png::chunks::{self as png_chunks, chunks};
use crate::files::{OpenOptions, decode, exif, metadata};
use horus_base::dtype::DType;
use horus_base::lengths::{PixelSize, micrometres};
use horus_base::placed::Placed;
use horus_base::shape::Shape;

/// Times that each plane may be named, on average: once, in files that are right.
const MOST_NAMED: usize = 4;

/// The first image that a description tells of; `None` if it is no OME-XML.
///
/// # Errors
/// A message about metadata that makes no sense.
pub(crate) fn described(description: &str) -> Option<Result<Stack, String>> {
    let tags: Vec<Tag<'_>> = tags(description);
    let root = tags.iter().find(|tag| tag.name == "OME")?;
    let first = tags.iter().position(|tag| tag.name == "Pixels")?;
    // Further images follow.
    let end = tags[first + 1..].iter().position(|tag| tag.name == "Pixels").map_or(tags.len(), |n| first + 1 + n);
    Some(of_pixels(root, &tags[first..end]))
}

fn of_pixels(root: &Tag<'_>, tags: &[Tag<'_>]) -> Result<Stack, String> {
    let pixels = &tags[0];
    let extent = |name: &str| match pixels.value(name).map(|text| text.trim().parse::<usize>()) {
        None => Ok(1),
        Some(Ok(n)) if (1..=MOST_PLANES).contains(&n) => Ok(n),
        Some(_) => Err(format!("its OME-XML gives {name} as {:?}", pixels.value(name).unwrap_or_default())),
    };
    let (times, levels, all) = (extent("SizeT")?, extent("SizeZ")?, extent("SizeC")?);
    let channels: Vec<&Tag<'_>> = tags.iter().filter(|tag| tag.name == "Channel").collect();
    let samples = channels.first().map_or(Some(1), |tag| tag.number("SamplesPerPixel", 1)).unwrap_or(0);
    if samples == 0 || !all.is_multiple_of(samples) {
        return Err(format!("its OME-XML divides {all} channels into planes of {samples}"));
    }
    let planes = times.checked_mul(levels).and_then(|n| n.checked_mul(all / samples)).filter(|n| *n <= MOST_PLANES);
    let planes = planes.ok_or_else(|| format!("its OME-XML has more than {MOST_PLANES} planes"))?;
    let order = pixels.value("DimensionOrder").unwrap_or_else(|| "XYCZT".into());
    let axes = stack::order(order.chars().filter(|axis| "CZT".contains(*axis)));
    let axes = axes.ok_or_else(|| format!("its OME-XML has the order of axes {order:?}"))?;
    let many = |axis: char| match axis {
        'C' => all / samples,
        'Z' => levels,
        _ => times,
    };
    // The position in the order of the file of a plane, and its position here.
    let place = |of: &dyn Fn(char) -> usize| axes.iter().rev().fold(0, |n, axis| n * many(*axis) + of(*axis));
    let here = |position| here(&axes, ['C', 'Z', 'T'].map(many), position);
    let mut pages = vec![None; planes];
    let (mut listed, mut named) = (false, 0usize);
    for (i, tag) in tags.iter().enumerate().filter(|(_, tag)| tag.name == "TiffData") {
        listed = true;
        let first = |axis: char| tag.number(&format!("First{axis}"), 0).filter(|n| *n < many(axis));
        let [c, z, t] = ['C', 'Z', 'T'].map(first);
        let (Some(c), Some(z), Some(t)) = (c, z, t) else { continue };
        let ifd = tag.number("IFD", 0).unwrap_or(0);
        let count = tag.number("PlaneCount", if tag.value("IFD").is_some() { 1 } else { planes });
        let uuid = tags.get(i + 1).filter(|next| next.name == "UUID");
        if uuid.is_some_and(|uuid| root.value("UUID").is_none_or(|own| own.trim() != uuid.text.trim())) {
            continue; // in another file
        }
        let begin = place(&|axis| match axis {
            'C' => c,
            'Z' => z,
            _ => t,
        });
        let count = count.unwrap_or(0).min(planes - begin.min(planes));
        named = named.saturating_add(count);
        if named > MOST_NAMED * planes {
            return Err(format!("its OME-XML names {planes} planes {named} times"));
        }
        for k in 0..count {
            pages[here(begin + k)] = ifd.checked_add(k);
        }
    }
    if !listed {
        (0..planes).for_each(|k| pages[here(k)] = Some(k));
    }
    let side = |axis: char| {
        let size: f64 = pixels.value(&format!("PhysicalSize{axis}"))?.trim().parse().ok()?;
        let unit = pixels.value(&format!("PhysicalSize{axis}Unit"));
        Some(size * micrometres(unit.as_deref().unwrap_or("µm"))?)
    };
    let names = channels.iter().map(|tag| tag.value("Name").unwrap_or_default()).collect();
    let pixel = PixelSize::of(['Z', 'Y', 'X'].map(side));
    Ok(Stack { by: By::Ome, times, levels, channels: all / samples, samples, names, pixel, pages })
}

/// Micrometres of an inch and of a centimetre.
const INCH: f64 = 25_400.0;
const CENTIMETRE: f64 = 10_000.0;

/// The size of pixels that an open file gives: a TIFF file in OME-XML or as ImageJ does, or as a resolution in pixels per
/// centimetre, a PNG file in pixels per metre; and that of a print or a scan: another resolution. `None` if it gives none.
/// Unreadable tags count as absent.
pub(crate) fn sides(source: &Source<'_>, options: &OpenOptions) -> (Option<PixelSize>, Option<PixelSize>) {
    let read = || match source.kind() {
        Kind::Tiff => of_page(source, options),
        Kind::Png => {
            let turned = png_chunks::exif(source).and_then(|exif| Turned::of_exif(&exif)).unwrap_or_default();
            let (pixel, printed) = of_png(source);
            // Only sides change.
            let placed = options.orientation.placed(Shape::new(1, 1, 1), turned);
            let printed = printed.or_else(|| of_exif(source, options).filter(|_| pixel.is_none()));
            Ok([pixel, printed].map(|size| size?.seen(&placed)))
        }
        Kind::Jpeg => {
            let head = metadata::jpeg_head(source).unwrap_or_default();
            let placed = options.orientation.placed(Shape::new(1, 1, 1), metadata::jpeg_turned(&head));
            let told = metadata::jpeg_density(&head).and_then(|(sides, unit)| in_print(sides.map(|n| [n, 1.0]), unit));
            Ok([None, told.or_else(|| of_exif(source, options)).and_then(|size| size.seen(&placed))])
        }
        _ => Ok([None, None]),
    };
    decode::guarded(read).unwrap_or_default().into()
}

/// Those of the page of a TIFF file.
fn of_page(source: &Source<'_>, options: &OpenOptions) -> Result<[Option<PixelSize>; 2], String> {
    let page = read::directory_page(source, options);
    let mut decoder = decoder_at(source, read::directory_of_page(source, page, 0)?)?;
    let (by_centimetre, printed) = match of_resolution(&mut decoder) {
        Some((size, true)) => (Some(size), None),
        other => (None, other.map(|(size, _)| size)),
    };
    let found = match stack::described(source) {
        Some(Ok(Stack { by: By::Tifffile | By::MetaMorph, .. })) | None => by_centimetre,
        Some(stack) => stack?.pixel,
    };
    let placed = placed_in_page(source, page, options)?;
    Ok([found, printed].map(|size| size?.seen(&placed)))
}

/// The place in a page of each pixel of its smaller copy, or of itself, in the requested orientation.
pub(crate) fn placed_in_page(source: &Source<'_>, page: usize, options: &OpenOptions) -> Result<Placed, String> {
    let mut copy = decoder_at(source, read::directory_of_page(source, page, options.level)?)?;
    let turned = copy.find_tag_unsigned::<u16>(TiffTag::Orientation).ok().flatten().and_then(Turned::numbered);
    let levels = read::levels_of_page(source, page)?;
    let both = levels.first().copied().zip(levels.get(options.level).copied());
    let ((height, width), (rows, columns)) = both.ok_or("its sizes are unknown")?;
    let [down, across] = apart([height, width], [rows, columns]);
    let first = |step: f64| (step - 1.0) / 2.0;
    let placed = Placed::of([[across, 0.0, first(across)], [0.0, down, first(down)]]);
    Ok(placed.then(&options.orientation.placed(Shape::new(rows, columns, 1), turned.unwrap_or_default())))
}

/// The size of pixels in a print or a scan of which so many columns and rows fill so many units: inches or centimetres, by
/// their number in TIFF files.
fn in_print([columns, rows]: [[f64; 2]; 2], unit: u16) -> Option<PixelSize> {
    let unit = match unit {
        2 => INCH,
        3 => CENTIMETRE,
        _ => return None,
    };
    let side = |[pixels, units]: [f64; 2]| Some(units * unit / pixels);
    PixelSize::of([None, side(rows), side(columns)])
}

/// The size of pixels in a print or a scan by the resolution in EXIF data.
fn of_exif(source: &Source<'_>, options: &OpenOptions) -> Option<PixelSize> {
    /// That of pictures of unknown resolution.
    const UNKNOWN: ([f64; 2], u64) = ([72.0, 72.0], 2);
    let tags = [TiffTag::XResolution, TiffTag::YResolution, TiffTag::ResolutionUnit].map(|tag| tag.to_u16());
    let fields = exif::of_picture(source, options, &tags);
    let [columns, rows] = [tags[0], tags[1]].map(|tag| exif::find(&fields, tag).and_then(Entry::quotient));
    let unit = exif::find(&fields, tags[2]).and_then(Entry::integer).unwrap_or(2);
    let told = ([columns?, rows?], unit);
    if told == UNKNOWN { None } else { in_print(told.0.map(|n| [n, 1.0]), unit.try_into().ok()?) }
}

/// Pixels of a page from a pixel of its smaller copy to the next, along axes of these extents: a power of two, if those are
/// halves, rounded up as ours or down, of copies that have a pixel for each block. Of others, which cover the same area,
/// the quotient.
fn apart(page: [usize; 2], copy: [usize; 2]) -> [f64; 2] {
    let times = |halved: fn(usize, u32) -> usize| (0..u32::BITS).find(|times| page.map(|n| halved(n, *times)) == copy);
    match times(|n, times| n.div_ceil(1 << times)).or_else(|| times(|n, times| (n >> times).max(1))) {
        // A single pixel is not halved.
        Some(times) => page.map(|from| (1 << times).min(from.next_power_of_two()) as f64),
        None => [page[0] as f64 / copy[0].max(1) as f64, page[1] as f64 / copy[1].max(1) as f64],
    }
}

/// The size of pixels that the chunks of a PNG file tell which come before its pixels; or that of a print.
fn of_png(source: &Source<'_>) -> (Option<PixelSize>, Option<PixelSize>) {
    let mut before = chunks(source).take_while(|chunk| &chunk.name != b"IDAT");
    let body = before.find(|chunk| &chunk.name == b"pHYs").and_then(|chunk| chunk.body(source));
    body.and_then(|body| of_density(&body)).unwrap_or_default()
}

/// Most dots per inch that are those of a print; more are sizes of pixels.
const MOST_IN_PRINT: f64 = 1200.0;

/// The size of pixels by the density of a PNG file, in pixels per metre; or that of a print: by whole dots per inch, unless
/// they are many.
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

/// The size of pixels by the resolution of a TIFF page, and whether that is per centimetre.
fn of_resolution(decoder: &mut Decoder<Reader<'_>>) -> Option<(PixelSize, bool)> {
    const PER_CENTIMETRE: u16 = 3;
    let unit = decoder.find_tag_unsigned::<u16>(TiffTag::ResolutionUnit).ok()??;
    let mut side = |tag| match decoder.find_tag(tag) {
        Ok(Some(Value::Rational(pixels, units))) => Some([f64::from(pixels), f64::from(units)]),
        _ => None,
    };
    let sides = [side(TiffTag::XResolution)?, side(TiffTag::YResolution)?];
    Some((in_print(sides, unit)?, unit == PER_CENTIMETRE))
}

/// The tags of a resolution in pixels per centimetre, or of one of a print in pixels per inch.
pub(crate) fn resolution(pixel: PixelSize, printed: bool) -> Vec<Entry> {
    let (unit, number) = if printed { (INCH, 2) } else { (CENTIMETRE, 3) };
    let side = |tag: TiffTag, side: f64| Entry::rational(tag.to_u16(), unit / side);
    vec![
        side(TiffTag::XResolution, pixel.columns),
        side(TiffTag::YResolution, pixel.rows),
        Entry::short(TiffTag::ResolutionUnit.to_u16(), [number]),
    ]
}

/// Whole dots per inch of a print, columns and rows, if files can tell them: others would be sizes of pixels.
pub(crate) fn dots(printed: PixelSize) -> Option<[u16; 2]> {
    let dots = [printed.columns, printed.rows].map(|side| (INCH / side).round());
    dots.iter().all(|n| (1.0..=MOST_IN_PRINT).contains(n)).then(|| dots.map(|n| n as u16))
}

/// The description of a file with a page for each level, whose pixels are interleaved samples; or, with names of
/// channels, empty ones for those without, for each level and channel, channels the fastest.
pub(crate) fn description(
    name: &str,
    shape: Shape,
    dtype: DType,
    pixel: Option<PixelSize>,
    names: Option<&[String]>,
) -> String {
    let Shape { depth, height, width, channels, .. } = shape;
    let kind = match dtype.stored().name().split_at(1) {
        ("u", bits) => format!("uint{bits}"),
        ("i", bits) => format!("int{bits}"),
        (_, "32") => "float".into(),
        _ => "double".into(),
    };
    let side = |axis: char, side: f64| format!(" PhysicalSize{axis}=\"{side}\" PhysicalSize{axis}Unit=\"µm\"");
    let sides = pixel.map_or_else(String::new, |size| {
        let depth = size.levels.map(|levels| side('Z', levels)).unwrap_or_default();
        format!("{}{}{depth}", side('X', size.columns), side('Y', size.rows))
    });
    let samples = if names.is_some() { 1 } else { channels };
    let interleaved = samples > 1;
    let planes = depth * channels / samples.max(1);
    let channel = |(k, name): (usize, &String)| {
        let name = if name.is_empty() { String::new() } else { format!(" Name=\"{}\"", escaped(name)) };
        format!("<Channel ID=\"Channel:0:{k}\"{name} SamplesPerPixel=\"{samples}\"/>")
    };
    let told: String = names.unwrap_or(&[String::new()]).iter().enumerate().map(channel).collect();
    let big = cfg!(target_endian = "big");
    let schema = "http://www.openmicroscopy.org/Schemas/OME/2016-06";
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OME xmlns=\"{schema}\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"{schema} {schema}/ome.xsd\" \
         Creator=\"horus-image\"><Image ID=\"Image:0\" Name=\"{}\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" \
         Type=\"{kind}\" SizeX=\"{width}\" SizeY=\"{height}\" SizeC=\"{channels}\" SizeZ=\"{depth}\" SizeT=\"1\" \
         BigEndian=\"{big}\" Interleaved=\"{interleaved}\"{sides}>{told}\
         <TiffData IFD=\"0\" PlaneCount=\"{planes}\"/></Pixels></Image></OME>",
        escaped(name),
    )
}

/// A text as the value of an attribute; XML has no control characters.
fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The beginning of an element, and the text up to the next.
struct Tag<'a> {
    /// Without the prefix of a name space.
    name: &'a str,
    attributes: &'a str,
    text: &'a str,
}

impl Tag<'_> {
    /// The value of an attribute.
    fn value(&self, name: &str) -> Option<String> {
        let mut rest = self.attributes;
        while let Some((key, after)) = rest.split_once('=') {
            let after = after.trim_start();
            let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (value, next) = after[1..].split_once(quote)?;
            if key.trim() == name {
                return Some(unescaped(value));
            }
            rest = next;
        }
        None
    }

    /// The number of an attribute, or one by default; `None` if it is none.
    fn number(&self, name: &str, by_default: usize) -> Option<usize> {
        self.value(name).map_or(Some(by_default), |text| text.trim().parse().ok())
    }
}

/// A text with its references to characters, by name or number, replaced; others stay.
fn unescaped(text: &str) -> String {
    /// Bytes of the longest that is known, with its end.
    const LONGEST: usize = "#x10ffff;".len();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        plain.push_str(before);
        let end = after.bytes().take(LONGEST).position(|byte| byte == b';');
        let found = end.and_then(|end| {
            let (name, next) = (&after[..end], &after[end + 1..]);
            let number = |digits: &str, base| u32::from_str_radix(digits, base).ok().and_then(char::from_u32);
            let known = match name {
                "quot" => Some('"'),
                "apos" => Some('\''),
                "lt" => Some('<'),
                "gt" => Some('>'),
                "amp" => Some('&'),
                _ => match name.strip_prefix("#x") {
                    Some(digits) => number(digits, 16),
                    None => number(name.strip_prefix('#')?, 10),
                },
            };
            Some((known?, next))
        });
        let (one, next) = found.unwrap_or(('&', after));
        plain.push(one);
        rest = next;
    }
    plain + rest
}

/// The elements of a text, in their order; comments and declarations are left out.
fn tags(xml: &str) -> Vec<Tag<'_>> {
    let mut all = Vec::new();
    let mut rest = xml;
    while let Some((_, after)) = rest.split_once('<') {
        if let Some(comment) = after.strip_prefix("!--") {
            let Some((_, next)) = comment.split_once("-->") else { break };
            rest = next;
            continue;
        }
        // A value may contain the end of a tag.
        let mut quote = None;
        let end = after.char_indices().find(|(_, c)| match (quote, c) {
            (None, '>') => true,
            (None, '"' | '\'') => {
                quote = Some(*c);
                false
            }
            (Some(q), c) if q == *c => {
                quote = None;
                false
            }
            _ => false,
        });
        let Some((end, _)) = end else { break };
        let (inside, next) = (&after[..end], &after[end + 1..]);
        rest = next;
        if inside.starts_with(['/', '!', '?']) {
            continue;
        }
        let inside = inside.trim_end_matches('/');
        let (name, attributes) = inside.split_once(char::is_whitespace).unwrap_or((inside, ""));
        let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
        all.push(Tag { name, attributes, text: next.split_once('<').map_or("", |(text, _)| text) });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(pixels: &str, children: &str) -> Result<Stack, String> {
        let xml = format!(
            "<?xml version=\"1.0\"?><!-- <Pixels/> --><ome:OME UUID=\"urn:uuid:1\"><Image><ome:Pixels {pixels}>{children}</ome:Pixels></Image></ome:OME>"
        );
        described(&xml).expect("OME-XML")
    }

    #[test]
    fn copies_of_blocks_lie_powers_of_two_apart() {
        assert_eq!(apart([37, 50], [10, 13]), [4.0, 4.0]);
        assert_eq!(apart([37, 50], [9, 12]), [4.0, 4.0], "rounded down");
        assert_eq!(apart([37, 50], [37, 50]), [1.0, 1.0]);
        assert_eq!(apart([5, 1], [1, 1]), [8.0, 1.0]);
        assert_eq!(apart([1000, 3], [250, 1]), [4.0, 4.0]);
        assert_eq!(apart([300, 200], [100, 50]), [3.0, 4.0]);
    }

    #[test]
    fn densities_for_print_are_no_sizes() {
        use crate::files::png::write::{Beside, Samples, write};
        use horus_host::host::workers::Workers;
        let read = |pixel| {
            let (beside, mut bytes) = (Beside { pixel: Some(pixel), ..Beside::default() }, Vec::new());
            let shape = Shape::new(1, 2, 1);
            write(&mut bytes, Samples::Eight(&[1, 2]), shape, &beside, &Workers::alone()).unwrap();
            // A profile that is longer than the first bytes that are read.
            let profile = [&5000u32.to_be_bytes()[..], b"iCCP", &[7; 5004]].concat();
            bytes.splice(33..33, profile);
            of_png(&Source::of(&bytes).unwrap()).0.map(|size| [size.rows, size.columns])
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
    fn planes_are_found_in_the_order_of_the_file() {
        let sizes = "SizeX='4' SizeY='3' SizeC='2' SizeZ='3' SizeT='2'";
        let found = image(&format!("DimensionOrder=\"XYZTC\" {sizes}"), "<TiffData/>").unwrap();
        assert_eq!((found.times, found.levels, found.channels), (2, 3, 2));
        // Levels are the fastest, then times, then channels.
        assert_eq!(found.pages(Some(1)).unwrap(), [3, 9, 4, 10, 5, 11]);
        assert!(found.pages(None).unwrap_err().contains("it has 2 times"));
        assert!(found.pages(Some(2)).unwrap_err().contains("time 2 requested, but it has 2"));
        let plain = image("SizeC='2' SizeZ='2'", "").unwrap();
        assert_eq!(plain.pages(None).unwrap(), [0, 1, 2, 3]);
        let listed = "<TiffData IFD='1' FirstZ='0'/><TiffData IFD='0' FirstZ='1'/>";
        assert_eq!(image("DimensionOrder='XYCZT' SizeZ='2'", listed).unwrap().pages(None).unwrap(), [1, 0]);
        let uuid = |of: &str| {
            format!("<TiffData IFD='0' PlaneCount='2'><UUID FileName='a.ome.tif'>urn:uuid:{of}</UUID></TiffData>")
        };
        assert_eq!(image("SizeZ='2'", &uuid("1")).unwrap().pages(None).unwrap(), [0, 1]);
        assert!(image("SizeZ='2'", &uuid("2")).unwrap().pages(None).unwrap_err().contains("other files"));
    }

    #[test]
    fn pixels_have_a_size_in_micrometres_and_channels_have_names() {
        let sizes = "PhysicalSizeX='250' PhysicalSizeXUnit='nm' PhysicalSizeY='0.25' PhysicalSizeZ='0.002' PhysicalSizeZUnit='mm'";
        let found = image(&format!("SizeC='2' SizeZ='5' {sizes}"), "<Channel Name='a &amp; b&#x3b2;&no;&'/><Channel/>")
            .unwrap();
        assert_eq!(found.pixel, PixelSize::of([Some(2.0), Some(0.25), Some(0.25)]));
        assert_eq!(found.told(), "5 levels, 2 channels (a & bβ&no;&), pixels of 2x0.25x0.25 µm");
        assert_eq!(image("PhysicalSizeX='1' PhysicalSizeXUnit='pixel' PhysicalSizeY='1'", "").unwrap().pixel, None);
        assert!(described("ImageJ=1.54").is_none() && described("<OME></OME>").is_none());
    }

    #[test]
    fn metadata_that_makes_no_sense_is_an_error_or_left_out() {
        for (pixels, children, cause) in [
            ("SizeZ='0'", "", "gives SizeZ as \"0\""),
            ("SizeT='many'", "", "gives SizeT as \"many\""),
            ("SizeC='3'", "<Channel SamplesPerPixel='2'/>", "divides 3 channels into planes of 2"),
            ("SizeC='3'", "<Channel SamplesPerPixel='0'/>", "divides 3 channels into planes of 0"),
            ("SizeC='1048576' SizeZ='1048576'", "", "more than"),
            ("DimensionOrder='XYCZC'", "", "order of axes \"XYCZC\""),
        ] {
            let error = image(pixels, children).unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
        let beyond =
            image("SizeZ='2'", "<TiffData IFD='7' FirstZ='5'/><TiffData FirstZ='1' PlaneCount='900'/>").unwrap();
        assert_eq!(beyond.pages, [None, Some(0)]);
        let whole = format!("<OME UUID='a'>{}</OME>", "<Pixels SizeZ='2' PhysicalSizeX='1'><TiffData/></Pixels>");
        (0..whole.len()).for_each(|n| drop(described(&whole[..n])));
    }

    #[test]
    fn what_is_written_is_read() {
        let pixel = PixelSize::of([Some(2.0), Some(0.5), Some(0.25)]);
        let shape = Shape::volume(4, 3, 2, 3);
        let text = description("a<b>&\"c\"", shape, DType::U16, pixel, None);
        let found = described(&text).expect("OME-XML").unwrap();
        assert_eq!((found.times, found.levels, found.channels, found.samples, found.pixel), (1, 4, 1, 3, pixel));
        assert_eq!(found.pages(None).unwrap(), [0, 1, 2, 3]);
        let names = ["<\"α\" & &amp;>", "", "c\u{1b}"].map(String::from);
        let text = description("a", shape, DType::U16, pixel, Some(&names));
        let found = described(&text).expect("OME-XML").unwrap();
        assert_eq!((found.levels, found.channels, found.samples, found.planes()), (4, 3, 1, 12));
        assert_eq!(found.names, ["<\"α\" & &amp;>", "", "c"]);
        assert_eq!(found.pages(None).unwrap(), (0..12).collect::<Vec<_>>());
    }
}
