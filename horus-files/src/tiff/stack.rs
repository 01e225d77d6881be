//! The image that the pages of a TIFF file form, as its first page describes it: planes of several channels, levels and
//! times. OME-XML (`ome.rs`), ImageJ, tifffile, MetaMorph (STK) and Zeiss (LSM) write descriptions.
//!
//! ImageJ (in files beyond 4 GB), tifffile and MetaMorph write one directory for all planes, which are contiguous in
//! the file. A description is not trusted: it counts if the file has as many planes.

use std::fmt::Write;

use tiff::decoder::Decoder;
use tiff::decoder::ifd::Value;
use tiff::tags::Tag;

use super::chunks::ChunkPositions;
use super::ome;
use super::read;
use super::source::{TiffReader, decoder_at};
use crate::{OpenOptions, PictureSource, decode, exif, texts};
use horus_base::error::Audience;
use horus_base::lengths::{PixelSize, micrometres};

/// Maximum planes of a file: a limit on false metadata.
pub(super) const MOST_PLANES: usize = 1 << 20;

/// The author of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DescriptionAuthor {
    Ome,
    ImageJ,
    Tifffile,
    MetaMorph,
    Lsm,
}

impl DescriptionAuthor {
    pub(super) fn name(self) -> &'static str {
        match self {
            DescriptionAuthor::Ome => "OME",
            DescriptionAuthor::ImageJ => "ImageJ",
            DescriptionAuthor::Tifffile => "tifffile",
            DescriptionAuthor::MetaMorph => "MetaMorph",
            DescriptionAuthor::Lsm => "LSM",
        }
    }
}

/// The planes of the first image of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stack {
    pub(super) by: DescriptionAuthor,
    /// Times, levels, and channels, of which a plane contains [`Stack::samples`].
    pub(super) times: usize,
    pub(super) levels: usize,
    pub(super) channels: usize,
    pub(super) samples: usize,
    /// Names of channels, empty for channels without one.
    pub(super) names: Vec<String>,
    pub(super) pixel: Option<PixelSize>,
    /// The page of each plane, channels the fastest and times the slowest; `None` for a plane in another file.
    pub(super) pages: Vec<Option<usize>>,
}

/// Converts the position of a plane in the order of `axes` (of `CZT`), the fastest first, to its position with channels
/// the fastest and times the slowest. There are `many` channels, levels and times.
pub(super) fn here(axes: &[char; 3], many: [usize; 3], position: usize) -> usize {
    let mut rest = position;
    let mut at = [0; 3];
    for axis in axes {
        let i = "CZT".find(*axis).unwrap_or(0);
        at[i] = rest % many[i];
        rest /= many[i];
    }
    (at[2] * many[1] + at[1]) * many[0] + at[0]
}

/// An order of the axes, each of which occurs once.
pub(super) fn order(axes: impl Iterator<Item = char>) -> Option<[char; 3]> {
    let axes: [char; 3] = axes.collect::<Vec<_>>().try_into().ok()?;
    "CZT".chars().all(|axis| axes.contains(&axis)).then_some(axes)
}

impl Stack {
    /// Planes that are pages in this order of axes, the fastest first: `many` channels, levels and times.
    ///
    /// # Errors
    /// A message, if there are too many.
    fn in_order(by: DescriptionAuthor, axes: [char; 3], many: [usize; 3], samples: usize) -> Result<Stack, String> {
        let planes = many.iter().try_fold(1usize, |n, m| n.checked_mul(*m)).filter(|n| *n <= MOST_PLANES);
        let name = by.name();
        let planes = planes.ok_or_else(|| format!("its {name} description names more than {MOST_PLANES} planes"))?;
        let mut pages = vec![None; planes];
        (0..planes).for_each(|page| pages[here(&axes, many, page)] = Some(page));
        let [channels, levels, times] = many;
        Ok(Stack { by, times, levels, channels, samples, names: Vec::new(), pixel: None, pages })
    }

    /// The pages of a time, channels the fastest.
    ///
    /// # Errors
    /// A message: several times of which none is selected, no such time, or planes in another file.
    pub(super) fn pages(&self, time: Option<usize>) -> Result<Vec<usize>, String> {
        let n = self.times;
        let time = match time {
            None if n > 1 => {
                let choice = Audience::now().select_wording("OpenOptions::page", "--page N", "page=N");
                return Err(format!("it has {n} times, of which one is read as a volume: choose it by {choice}"));
            }
            Some(time) if time >= n => return Err(format!("time {time} requested, but it has {n} (times start at 0)")),
            time => time.unwrap_or(0),
        };
        let one = self.levels * self.channels;
        let pages: Option<Vec<usize>> = self.pages[time * one..][..one].iter().copied().collect();
        pages.ok_or_else(|| "planes of it are in other files, which are not read".into())
    }

    /// Planes of all times.
    pub(super) fn planes(&self) -> usize {
        self.pages.len()
    }

    /// Describes its axes, for people.
    pub(super) fn describe_axes(&self) -> String {
        let mut text = String::new();
        let mut add = |part: String| {
            let _ = write!(text, "{}{part}", if text.is_empty() { "" } else { ", " });
        };
        if self.times > 1 {
            add(format!("{} times", self.times));
        }
        if self.levels > 1 {
            add(format!("{} levels", self.levels));
        }
        let named: Vec<&str> = self.names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let channels = self.channels * self.samples;
        match (channels, named.is_empty()) {
            (1, true) => {}
            (n, true) => add(format!("{n} channels")),
            (n, false) => add(format!("{n} channels ({})", named.join(", "))),
        }
        if let Some(PixelSize { levels, rows, columns }) = self.pixel {
            let depth = levels.map(|side| format!("{side}x")).unwrap_or_default();
            add(format!("pixels of {depth}{rows}x{columns} µm"));
        }
        text
    }
}

/// The description in the first directory of a TIFF file, whether or not the file has the planes.
pub(super) fn described(source: &PictureSource<'_>) -> Option<Result<Stack, String>> {
    let first = read::directory_of_page(source, 0, 0).ok()?;
    let mut page = decoder_at(source, first).ok()?;
    // The first of several: Micro-Manager writes OME-XML, and then a description for ImageJ.
    let text = exif::text_of(source, first.0, Tag::ImageDescription.to_u16()).unwrap_or_default();
    let text = texts::decoded(&text);
    let found = ome::described(&text).or_else(|| imagej(&text, &mut page)).or_else(|| shaped(&text, &mut page));
    found.or_else(|| metamorph(&mut page)).or_else(|| zeiss(&mut page))
}

/// The image that the pages of a TIFF file form; `None` also if it has more pages than are described.
///
/// # Errors
/// A message about an invalid description, or one with planes that the file does not have.
pub(super) fn of_source(source: &PictureSource<'_>) -> Option<Result<Stack, String>> {
    let stack = match described(source)? {
        Ok(stack) if stack.by == DescriptionAuthor::Ome => return Some(Ok(stack)),
        Ok(stack) => stack,
        Err(cause) => return Some(Err(cause)),
    };
    let (planes, name) = (stack.planes(), stack.by.name());
    if planes == 1 {
        return None;
    }
    let has = read::pages_up_to(source, planes).ok()?;
    if has >= planes {
        return (has == planes).then_some(Ok(stack));
    }
    let why = contiguous(source).err().map(|why| format!(": {why}")).unwrap_or_default();
    Some(Err(format!("its {name} description names {planes} planes, and the file has {has}{why}")))
}

/// The image whose pages are read together, according to the description of a TIFF file: as a volume or, for an image
/// of one level and time, as its channels if no page is requested.
///
/// # Errors
/// A message, if a volume is requested and its metadata is invalid.
pub(super) fn stack_of_pages(source: &PictureSource<'_>, options: &OpenOptions) -> Result<Option<Stack>, String> {
    if options.volume {
        return of_source(source).transpose();
    }
    let is_flat = |stack: &Stack| stack.levels == 1 && stack.times == 1 && stack.pages(None).is_ok();
    let found = if options.page.is_none() { of_source(source) } else { None };
    Ok(found.and_then(Result::ok).filter(is_flat))
}

/// Names of the channels of an open file, read as this many, if they are planes of their own; empty for channels
/// without a name.
pub(super) fn names(source: &PictureSource<'_>, options: &OpenOptions, read: usize) -> Vec<String> {
    let found = decode::guarded(|| stack_of_pages(source, options)).ok().flatten();
    let Some(Stack { samples: 1, channels, mut names, .. }) = found else { return Vec::new() };
    if channels != read {
        // The page was read without its description.
        return Vec::new();
    }
    names.resize(channels, String::new());
    if channels == 1 && names[0].is_empty() { Vec::new() } else { names }
}

/// The contiguous planes after the only directory of a file, and the bytes of each; `None` if no others are described.
///
/// # Errors
/// The reason why the described planes are not contiguous.
pub(super) fn contiguous(source: &PictureSource<'_>) -> Result<Option<(usize, u64)>, String> {
    let Some(Ok(stack)) = described(source) else { return Ok(None) };
    if matches!(stack.by, DescriptionAuthor::Ome | DescriptionAuthor::Lsm) || stack.planes() == 1 {
        return Ok(None);
    }
    let mut page = decoder_at(source, read::directory_of_page(source, 0, 0)?)?;
    let (begin, bytes) =
        ChunkPositions::of(&mut page)?.contiguous_strips().ok_or("its tiles or strips do not follow each other")?;
    if number(&mut page, Tag::Compression).unwrap_or(1) != 1 {
        return Err("its pixels are compressed".into());
    }
    let PageSize { height, width, samples, planar } = PageSize::of(&mut page).ok_or("its size is unknown")?;
    let bits = number(&mut page, Tag::BitsPerSample).unwrap_or(1);
    let (planes, samples) = if planar { (samples as u64, 1) } else { (1, samples as u64) };
    let row = [width as u64, samples].iter().try_fold(bits, |n, m| n.checked_mul(*m)).map(|bits| bits.div_ceil(8));
    if row.and_then(|row| row.checked_mul(height as u64)?.checked_mul(planes)) != Some(bytes) {
        return Err(format!("its page has {bytes} bytes, not those of its pixels"));
    }
    let end = bytes.checked_mul(stack.planes() as u64).and_then(|all| all.checked_add(begin));
    if end.is_none_or(|end| end > source.size()) {
        return Err(format!("its {} bytes are too few for planes of {bytes} bytes", source.size()));
    }
    Ok(Some((stack.planes(), bytes)))
}

/// The first number of a tag.
fn number(page: &mut Decoder<TiffReader<'_>>, tag: Tag) -> Option<u64> {
    page.find_tag_unsigned_vec::<u64>(tag).ok().flatten()?.first().copied()
}

/// The size of a page.
#[derive(Clone, Copy)]
struct PageSize {
    height: usize,
    width: usize,
    samples: usize,
    planar: bool,
}

impl PageSize {
    fn of(page: &mut Decoder<TiffReader<'_>>) -> Option<PageSize> {
        const PLANAR: u64 = 2;
        let (width, height) = page.dimensions().ok()?;
        let samples = number(page, Tag::SamplesPerPixel).unwrap_or(1) as usize;
        let planar = samples > 1 && number(page, Tag::PlanarConfiguration) == Some(PLANAR);
        Some(PageSize { height: height as usize, width: width as usize, samples, planar })
    }
}

/// Parses the description of ImageJ: lines of names and values.
fn imagej(text: &str, page: &mut Decoder<TiffReader<'_>>) -> Option<Result<Stack, String>> {
    text.starts_with("ImageJ=").then(|| {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
        };
        let extent = |name: &str| match value(name).map(str::parse) {
            None => Ok(1),
            Some(Ok(n)) if (1..=MOST_PLANES).contains(&n) => Ok(n),
            _ => Err(format!("its ImageJ description gives {name} as {:?}", value(name).unwrap_or_default())),
        };
        let (images, mut channels) = (extent("images")?, extent("channels")?);
        let (mut levels, times) = (extent("slices")?, extent("frames")?);
        let samples = PageSize::of(page).map_or(1, |sizes| sizes.samples);
        // Samples of a pixel may be described as channels.
        if channels == samples && images != channels.saturating_mul(levels).saturating_mul(times) {
            channels = 1;
        }
        // A stack without other axes.
        if channels == 1 && levels == 1 && times == 1 {
            levels = images;
        }
        let order = match value("order").unwrap_or("default") {
            "default" => Some(['C', 'Z', 'T']),
            told => order(told.to_ascii_uppercase().chars()),
        };
        let order = order.ok_or_else(|| {
            format!("its ImageJ description has the order of axes {:?}", value("order").unwrap_or_default())
        })?;
        let mut stack = Stack::in_order(DescriptionAuthor::ImageJ, order, [channels, levels, times], samples)?;
        // Without a unit, the resolution is TIFF's: in inches, it is a print's.
        const CENTIMETRE: u64 = 3;
        let unit = match value("unit") {
            None => (number(page, Tag::ResolutionUnit) == Some(CENTIMETRE)).then_some("cm"),
            told => told,
        };
        let scale = |unit: Option<&str>| micrometres(&unit?.replace("\\u00B5", "µ"));
        let scales = ["zunit", "yunit", "xunit"].map(|name| scale(value(name).or(unit)));
        let mut side = |tag| match page.find_tag(tag) {
            Ok(Some(Value::Rational(pixels, units))) => Some(f64::from(units) / f64::from(pixels)),
            _ => None,
        };
        // The default is 1.
        let spacing = match value("spacing").map(str::parse::<f64>) {
            Some(spacing) => spacing.ok().map(f64::abs),
            None => (levels > 1).then_some(1.0),
        };
        let sides = [spacing, side(Tag::YResolution), side(Tag::XResolution)];
        let mut sides = sides.into_iter().zip(scales).map(|(side, scale)| Some(side? * scale?));
        stack.pixel = PixelSize::of(std::array::from_fn(|_| sides.next().flatten()));
        Ok(stack)
    })
}

/// Parses the description of tifffile: the shape of an array, as JSON with its axes, if they are known, or as a Python
/// tuple.
fn shaped(text: &str, page: &mut Decoder<TiffReader<'_>>) -> Option<Result<Stack, String>> {
    let told = text
        .strip_prefix("shape=")
        .or_else(|| text.starts_with('{').then(|| text.split_once("\"shape\":"))?.map(|t| t.1))?;
    let numbers = told.trim_start().strip_prefix(['[', '('])?.split_once([']', ')'])?.0;
    let numbers = numbers.split(',').map(str::trim).filter(|number| !number.is_empty());
    let extents: Vec<usize> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
    let axes = text.split_once("\"axes\":").and_then(|(_, rest)| rest.split('"').nth(1)).unwrap_or_default();
    let PageSize { height, width, samples, planar } = PageSize::of(page)?;
    // Programs that crop pictures may leave the description of the whole.
    let one = if planar { [samples, height, width] } else { [height, width, samples] };
    let one = if extents.ends_with(&one) { &one[..] } else { &[height, width] };
    let outer = extents.strip_suffix(one).filter(|_| samples == 1 || one.len() == 3)?;
    if outer.iter().all(|n| *n == 1) {
        return None;
    }
    let axes: Vec<char> = if axes.len() == extents.len() { axes.chars().collect() } else { Vec::new() };
    let long = || outer.iter().zip(&axes).filter(|(n, _)| **n > 1);
    let many = |axis: char| long().find(|(_, a)| **a == axis).map_or(1, |(n, _)| *n);
    // The last axis is the fastest.
    let known: Vec<char> = long().rev().map(|(_, axis)| *axis).collect();
    let others = "CZT".chars().filter(|axis| !known.contains(axis)).collect::<Vec<_>>();
    let (order, many) = match order(known.into_iter().chain(others)) {
        Some(order) if !axes.is_empty() => (order, ['C', 'Z', 'T'].map(many)),
        _ => {
            let planes = outer.iter().try_fold(1usize, |n, m| n.checked_mul(*m)).unwrap_or(usize::MAX);
            (['C', 'Z', 'T'], [1, planes, 1])
        }
    };
    if many.contains(&0) {
        return None;
    }
    Some(Stack::in_order(DescriptionAuthor::Tifffile, order, many, samples))
}

/// Reads the tag of MetaMorph that counts planes and has numbers for each.
fn metamorph(page: &mut Decoder<TiffReader<'_>>) -> Option<Result<Stack, String>> {
    const UIC2: u16 = 33629;
    let planes = page.image_ifd().find_entry(Tag::Unknown(UIC2))?.count();
    let samples = PageSize::of(page)?.samples;
    let planes = usize::try_from(planes).ok().filter(|n| *n > 0)?;
    Some(Stack::in_order(DescriptionAuthor::MetaMorph, ['C', 'Z', 'T'], [1, planes, 1], samples))
}

/// Reads the shape, and the size of a voxel in metres, of Zeiss.
fn zeiss(page: &mut Decoder<TiffReader<'_>>) -> Option<Result<Stack, String>> {
    const LSM: u16 = 34412;
    const MAGIC: [&[u8]; 2] = [b"LI\0\x03", b"LI\0\x04"];
    let mut told = [0; 64];
    let read = page.image_ifd().find_tag_bytes(Tag::Unknown(LSM), &mut told, 0).ok()??;
    if read < told.len() || !MAGIC.contains(&&told[..4]) {
        return None;
    }
    let long = |at: usize| told[at..].first_chunk().map_or(0, |four| i32::from_le_bytes(*four));
    let double = |at: usize| told[at..].first_chunk().map(|eight| f64::from_le_bytes(*eight) * 1e6);
    let [levels, times] = [16, 24].map(|at| usize::try_from(long(at)).unwrap_or(0));
    if levels == 0 || times == 0 {
        return None;
    }
    let samples = PageSize::of(page)?.samples;
    let stack = Stack::in_order(DescriptionAuthor::Lsm, ['C', 'Z', 'T'], [1, levels, times], samples);
    let pixel = PixelSize::of([56, 48, 40].map(double));
    Some(stack.map(|stack| Stack { pixel, ..stack }))
}
