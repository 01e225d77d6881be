//! TIFF files: one of their pages or of its smaller copies, whole or a region of it, or all pages as levels of a volume.

use std::collections::HashSet;

use image::metadata::Orientation;
use tiff::ColorType;
use tiff::Directory;
use tiff::decoder::Decoder;
use tiff::tags::{CompressionMethod, IfdPointer, PlanarConfiguration, Tag};

use super::bounds::{self, check_capacity, check_size};
use super::load::{Means, Source};
use super::tiff_chunks::{Chunks, Jpeg, Samples};
use super::tiff_source::{Reader, decoder_at, limits, reader};
use super::{OpenOptions, Picture, metadata, region_of};
use crate::shape::Shape;

/// The most directories that are followed.
const MOST_PAGES: usize = 1 << 20;

/// Decodes what is requested: a page, its copy of a level, a region; or all pages as the levels of a volume.
pub(super) fn read(source: &Source<'_>, options: &OpenOptions, means: Means<'_>) -> Result<Picture, String> {
    if options.volume && options.page.is_none() {
        return volume(source, options, means);
    }
    read_page(source, &Pages::of(source, options.page.unwrap_or(0))?, options.page.unwrap_or(0), options, means)
}

fn read_page(
    source: &Source<'_>,
    pages: &Pages,
    page: usize,
    options: &OpenOptions,
    means: Means<'_>,
) -> Result<Picture, String> {
    let mut decoder = decoder_at(source, pages.directory(page, options.level)?)?;
    let noted = noted(&mut decoder);
    let layout = Layout::of(source, &mut decoder, options)?;
    let turned = options.orientation.turns(noted);
    // Of a picture that is turned, a region is of what it becomes.
    let region = region_of(layout.shape, options.region.filter(|_| !turned))?;
    check_size(region.height as u64, region.width as u64, options)?;
    let picture = layout.chunks(source, pages.directory(page, options.level)?).read(decoder, region, means)?;
    let picture = options.orientation.of(picture, noted, means)?;
    if turned { picture.cropped(options.region, means) } else { Ok(picture) }
}

/// All pages, which have one size and type.
fn volume(source: &Source<'_>, options: &OpenOptions, means: Means<'_>) -> Result<Picture, String> {
    let pages = Pages::of(source, MOST_PAGES)?;
    let depth = pages.count();
    let page = |z: usize| read_page(source, &pages, z, options, means);
    let Picture { shape, dtype, pixels: first } = page(0)?;
    if depth == 1 {
        return Ok(Picture { shape, dtype, pixels: first });
    }
    check_size((depth as u64).saturating_mul(shape.height as u64), shape.width as u64, options)?;
    let size = first.len();
    let room = depth.checked_mul(size).ok_or_else(|| format!("{depth} pages of {shape} pixels are too large"))?;
    let mut pixels = (means.room)(room).map_err(|e| e.to_string())?;
    for (z, to) in pixels.bytes_mut().chunks_exact_mut(size).enumerate() {
        let level = if z == 0 { Picture { shape, dtype, pixels: first.clone() } } else { page(z)? };
        if (level.shape, level.dtype) != (shape, dtype) {
            let other = format!("{} {}", level.shape, level.dtype);
            return Err(format!(
                "page {z} has {other} pixels and page 0 {shape} {dtype}: they are no levels of a volume"
            ));
        }
        to.copy_from_slice(level.pixels.bytes());
    }
    Ok(Picture { shape: Shape { depth, ..shape }, dtype, pixels })
}

/// Number of pages, as far as they can be read.
pub(super) fn pages(source: &Source<'_>) -> usize {
    Pages::of(source, MOST_PAGES).map_or(1, |pages| pages.count())
}

/// Where the directories of pages are, each followed by those of its smaller copies, by size.
struct Pages(Vec<Vec<IfdPointer>>);

impl Pages {
    /// Those up to page `last`, if there are so many.
    fn of(source: &Source<'_>, last: usize) -> Result<Pages, String> {
        let mut file = Decoder::new(reader(source)).map_err(text)?.with_limits(limits());
        let mut next = file.ifd_pointer();
        let mut pages: Vec<Vec<(IfdPointer, u64)>> = Vec::new();
        let mut seen = HashSet::new();
        while let Some(pointer) = next.filter(|p| seen.insert(*p) && seen.len() <= MOST_PAGES) {
            let directory = match file.read_directory(pointer) {
                Ok(directory) => directory,
                // One that cannot be read counts, but those after it cannot be found.
                Err(_) if !pages.is_empty() => {
                    pages.push(vec![(pointer, 0)]);
                    break;
                }
                Err(e) => return Err(text(e)),
            };
            let here = (pointer, width(&mut file, &directory));
            let mut tags = file.read_directory_tags(&directory);
            let is_copy = tags.find_tag_unsigned::<u32>(Tag::NewSubfileType).ok().flatten().unwrap_or(0) & 1 == 1;
            let children = tags.find_tag_unsigned_vec::<u64>(Tag::SubIfd).ok().flatten().unwrap_or_default();
            let found = pages.len();
            match pages.last_mut() {
                Some(page) if is_copy => page.push(here),
                _ if found > last => break,
                _ => pages.push(vec![here]),
            }
            for child in children.into_iter().map(IfdPointer).filter(|p| seen.insert(*p)).collect::<Vec<_>>() {
                if let Ok(directory) = file.read_directory(child)
                    && let Some(page) = pages.last_mut()
                {
                    page.push((child, width(&mut file, &directory)));
                }
            }
            next = directory.next();
        }
        let in_order = |mut page: Vec<(IfdPointer, u64)>| {
            page[1..].sort_by_key(|(_, width)| std::cmp::Reverse(*width));
            page.into_iter().map(|(pointer, _)| pointer).collect()
        };
        Ok(Pages(pages.into_iter().map(in_order).collect()))
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn directory(&self, page: usize, level: usize) -> Result<IfdPointer, String> {
        let levels = self.0.get(page).ok_or_else(|| super::decode::no_page(page, self.0.len()))?;
        let (page, copies) = (format!("page {page}"), levels.len() - 1);
        let missing =
            || format!("level {level} requested, but {page} has {copies} smaller copies (level 0 is the page)");
        levels.get(level).copied().ok_or_else(missing)
    }
}

fn width(file: &mut Decoder<Reader<'_>>, directory: &Directory) -> u64 {
    file.read_directory_tags(directory).find_tag_unsigned::<u64>(Tag::ImageWidth).ok().flatten().unwrap_or(0)
}

/// What a file tells of its pixels, without reading them: the page, its smaller copies, how many pages there are.
pub(super) fn describe(source: &Source<'_>, options: &OpenOptions) -> Result<super::FileInfo, String> {
    let page = options.page.unwrap_or(0);
    let pages = Pages::of(source, MOST_PAGES)?;
    let any = OpenOptions { max_pixels: u64::MAX, ..*options };
    let mut levels = Vec::new();
    let mut first = None;
    for level in 0..pages.0.get(page).map_or(1, Vec::len) {
        let mut decoder = decoder_at(source, pages.directory(page, level)?)?;
        let layout = Layout::of(source, &mut decoder, &any)?;
        levels.push((layout.shape.height, layout.shape.width));
        first.get_or_insert(layout);
    }
    let Layout { shape, samples, chunk, .. } = first.ok_or("the file has no pages")?;
    let depth = if options.volume { pages.count() } else { 1 };
    Ok(super::FileInfo {
        shape: Shape { depth, channels: samples.channels(shape.channels), ..shape },
        dtype: samples.dtype(),
        tile: (chunk.0.min(shape.height), chunk.1.min(shape.width)),
        pages: pages.count(),
        levels,
    })
}

/// The orientation stored in a page; warns of other metadata that is ignored. What cannot be read counts as absent.
fn noted(decoder: &mut Decoder<Reader<'_>>) -> Orientation {
    const MULTIPLIED: u16 = 1;
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).ok().flatten().unwrap_or_default();
    if extra.contains(&MULTIPLIED) {
        log::warn!("its colours are premultiplied by alpha (TIFF ExtraSamples 1) and are used as stored");
    }
    if let Ok(Some(profile)) = decoder.find_tag(Tag::IccProfile).map(|v| v.and_then(|v| v.into_u8_vec().ok())) {
        metadata::tell_profile(profile.len());
    }
    let orientation = decoder.find_tag_unsigned::<u16>(Tag::Orientation).ok().flatten();
    let known = orientation.and_then(|number| u8::try_from(number).ok()).and_then(Orientation::from_exif);
    known.unwrap_or(Orientation::NoTransforms)
}

/// What a directory says of its pixels, checked.
struct Layout {
    /// Of the samples as they are stored.
    shape: Shape,
    samples: Samples,
    planar: bool,
    jpeg: Option<Jpeg>,
    /// Rows and columns of a strip or tile.
    chunk: (usize, usize),
}

impl Layout {
    fn of(source: &Source<'_>, decoder: &mut Decoder<Reader<'_>>, options: &OpenOptions) -> Result<Layout, String> {
        let color = decoder.colortype().map_err(text)?;
        let (w, h) = decoder.dimensions().map_err(text)?;
        if options.region.is_none() {
            check_size(u64::from(h), u64::from(w), options)?;
        }
        let mut tag = |tag| decoder.find_tag_unsigned::<u16>(tag).map_err(text);
        let compression = tag(Tag::Compression)?.unwrap_or(CompressionMethod::None.to_u16());
        let (count, planar) = (tag(Tag::SamplesPerPixel)?.unwrap_or(1), tag(Tag::PlanarConfiguration)?);
        let format = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).map_err(text)?;
        let bits = u64::from(color.bit_depth()) * u64::from(count);
        let most = bounds::tiff(source.size(), compression, bits, u64::from(w));
        check_capacity(u64::from(h), u64::from(w), most, source.size())?;
        let channels = match color {
            ColorType::Gray(_) => 1,
            ColorType::GrayA(_) => 2,
            ColorType::RGB(_) => 3,
            ColorType::RGBA(_) | ColorType::CMYK(_) => 4,
            ColorType::Multiband { num_samples, .. } => usize::from(num_samples),
            other => return Err(format!("TIFF pixels of type {other:?} are not supported")),
        };
        let shape = Shape::new(h as usize, w as usize, channels);
        if shape.is_empty() {
            return Err("the picture has no pixels".into());
        }
        let format = format.and_then(|formats| formats.first().copied()).unwrap_or(1);
        let (rows, columns) = {
            let (w, h) = decoder.chunk_dimensions();
            (h as usize, w as usize)
        };
        if rows == 0 || columns == 0 {
            return Err("its strips or tiles have no pixels".into());
        }
        Ok(Layout {
            shape,
            samples: Samples::of(color.bit_depth(), format, channels, matches!(color, ColorType::CMYK(_)))?,
            planar: channels > 1 && planar == Some(PlanarConfiguration::Planar.to_u16()),
            jpeg: (compression == CompressionMethod::ModernJPEG.to_u16()).then(|| Jpeg::of(decoder)).transpose()?,
            chunk: (rows, columns),
        })
    }

    fn chunks<'s>(self, source: &'s Source<'s>, directory: IfdPointer) -> Chunks<'s> {
        let Layout { shape, samples, planar, jpeg, chunk } = self;
        Chunks { source, directory, shape, samples, planar, jpeg, rows: chunk.0.min(shape.height), columns: chunk.1 }
    }
}

pub(super) fn text(e: tiff::TiffError) -> String {
    e.to_string()
}
