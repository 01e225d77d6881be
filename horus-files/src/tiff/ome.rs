//! OME-XML, the description in the first page of an OME-TIFF file (schema 2016-06): axes, names of channels, and sizes
//! of pixels.

use super::stack::{self, DescriptionAuthor, MOST_PLANES, Stack, here};
use horus_base::dtype::DType;
use horus_base::lengths::{PixelSize, micrometres};
use horus_base::shape::Shape;

/// Maximum times that each plane may be named, on average; valid files name it once.
const MOST_NAMED: usize = 4;

/// The first image in a description; `None` if it is no OME-XML.
///
/// # Errors
/// A message about invalid metadata.
pub(super) fn described(description: &str) -> Option<Result<Stack, String>> {
    let tags: Vec<OmeElement<'_>> = tags(description);
    let root = tags.iter().find(|tag| tag.name == "OME")?;
    let first = tags.iter().position(|tag| tag.name == "Pixels")?;
    // Further images follow.
    let end = tags[first + 1..].iter().position(|tag| tag.name == "Pixels").map_or(tags.len(), |n| first + 1 + n);
    Some(of_pixels(root, &tags[first..end]))
}

fn of_pixels(root: &OmeElement<'_>, tags: &[OmeElement<'_>]) -> Result<Stack, String> {
    let pixels = &tags[0];
    let extent = |name: &str| match pixels.value(name).map(|text| text.trim().parse::<usize>()) {
        None => Ok(1),
        Some(Ok(n)) if (1..=MOST_PLANES).contains(&n) => Ok(n),
        Some(_) => Err(format!("its OME-XML gives {name} as {:?}", pixels.value(name).unwrap_or_default())),
    };
    let (times, levels, all) = (extent("SizeT")?, extent("SizeZ")?, extent("SizeC")?);
    let channels: Vec<&OmeElement<'_>> = tags.iter().filter(|tag| tag.name == "Channel").collect();
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
    // The position of a plane in the order of the file, and its position here.
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
    Ok(Stack { by: DescriptionAuthor::Ome, times, levels, channels: all / samples, samples, names, pixel, pages })
}

/// The description of a file with a page for each level, whose pixels are interleaved samples; or, with names of
/// channels (empty for channels without one), a page for each level and channel, channels the fastest.
pub(super) fn description(
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

/// Escapes a text for the value of an attribute; XML has no control characters.
fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The start tag of an element, and the text up to the next.
///
/// (The crate `roxmltree` takes cubic time for name spaces, whatever `nodes_limit` is: 39 s for a file of 100 kB. It
/// also rejects text that is not well-formed.)
struct OmeElement<'a> {
    /// The name without its name space prefix.
    name: &'a str,
    attributes: &'a str,
    text: &'a str,
}

impl OmeElement<'_> {
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

    /// The number of an attribute, or the default; `None` if it is no number.
    fn number(&self, name: &str, by_default: usize) -> Option<usize> {
        self.value(name).map_or(Some(by_default), |text| text.trim().parse().ok())
    }
}

/// Replaces references to characters, by name or number; other references stay.
fn unescaped(text: &str) -> String {
    /// Bytes of the longest known reference, with its end.
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

/// The elements of a text, in order, without comments and declarations.
fn tags(xml: &str) -> Vec<OmeElement<'_>> {
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
        all.push(OmeElement { name, attributes, text: next.split_once('<').map_or("", |(text, _)| text) });
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
        assert_eq!(found.describe_axes(), "5 levels, 2 channels (a & bβ&no;&), pixels of 2x0.25x0.25 µm");
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
