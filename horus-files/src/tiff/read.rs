//! Reading of TIFF files: a page or one of its smaller copies, whole or a region of it; or all pages as levels of a
//! volume.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Mutex;

use tiff::Directory;
use tiff::decoder::ifd::Value;
use tiff::decoder::{ChunkType, Decoder};
use tiff::tags::{CompressionMethod, IfdPointer, PhotometricInterpretation, PlanarConfiguration, Tag};

use super::chunks::{ChunkPositions, ChunkStorage, Chunks, PixelStride};
use super::coding::TiffCoding;
use super::directory::NODATA;
use super::samples::{ColourEncoding, StoredSamples};
use super::slide::Slide;
use super::source::{TiffReader, are_indices, decoder_at, directory_of, limits, reader};
use super::stack::{self, DescriptionAuthor, Stack};
use crate::count::FileTraffic;
use crate::interleave::copy_spaced;
use crate::{
    Count, DEFLATE, DecodeResources, FileInfo, Metadata, OpenOptions, Orientation, Picture, PictureSource,
    RegionDecoder, StoredOrientation, check_capacity, check_size, decode, jpeg, pixel_bytes, profile, region_of,
};
use horus_base::dispatch;
use horus_base::dtype::{DType, Pixel};
use horus_base::error::Audience;
use horus_base::shape::{Region, Shape};
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;

/// Maximum number of directories that are read.
const MOST_PAGES: usize = 1 << 20;

/// Decodes the requested page, level and region; or all pages as the levels of a volume.
pub(super) fn read(
    source: &PictureSource<'_>,
    options: &OpenOptions,
    means: DecodeResources<'_>,
) -> Result<Picture, String> {
    let pages = open(source, options)?;
    let whole = pages.shape();
    let region = region_of(whole, options.region)?;
    check_size((whole.depth as u64).saturating_mul(region.height as u64), region.width as u64, options)?;
    let (shape, dtype) = (Shape { height: region.height, width: region.width, ..whole }, pages.dtype());
    let size = [shape.depth, shape.channels, dtype.size()].iter().try_fold(shape.area(), |n, m| n.checked_mul(*m));
    let size = size.ok_or_else(|| format!("{whole} pixels are too large"))?;
    let mut pixels = (means.allocate)(size).map_err(|e| e.to_string())?;
    pages.read(0..whole.depth, region, pixels.bytes_mut(), means.workers)?;
    let tile = pages.tiles();
    Ok(Picture::from_pixels(shape, dtype, pixels).with_metadata(Metadata { tile, ..Metadata::default() }))
}

/// Opens the requested page, its channels in other pages, or all pages as levels of a volume, each at the requested
/// level.
pub(super) fn open<'s>(source: &PictureSource<'s>, options: &OpenOptions) -> Result<Pages<'s>, String> {
    match stack::stack_of_pages(source, options)? {
        // A wrong description does not hide the page.
        stack @ Some(_) if !options.volume => opened(source, options, stack).or_else(|_| opened(source, options, None)),
        stack => opened(source, options, stack),
    }
}

fn opened<'s>(source: &PictureSource<'s>, options: &OpenOptions, stack: Option<Stack>) -> Result<Pages<'s>, String> {
    let page = options.page.unwrap_or(0);
    let all = stack.is_some() || (options.volume && options.page.is_none());
    let found = Directories::of(source, if all { MOST_PAGES } else { page })?;
    let wanted: Vec<usize> = match &stack {
        Some(stack) => stack.pages(options.page)?,
        None if all => (0..found.count()).collect(),
        None => vec![page],
    };
    let mut pages: Vec<(IfdPointer, TiffPage<'s>)> = Vec::new();
    let mut planes = Vec::with_capacity(wanted.len());
    for z in wanted {
        let PagePosition { directory, behind } = found.place(z, options.level)?;
        // For several planes after one directory.
        if pages.last().is_none_or(|(last, _)| *last != directory) {
            pages.push((directory, TiffPage::of(source, directory, options)?));
        }
        planes.push((pages.len() - 1, behind));
        let ((_, first), (_, page)) = (&pages[0], &pages[pages.len() - 1]);
        if (page.shape(), page.chunks.samples.dtype()) != (first.shape(), first.chunks.samples.dtype()) {
            let what = |page: &TiffPage<'_>| format!("{} {}", page.shape(), page.chunks.samples.dtype());
            let (other, first) = (what(page), what(first));
            return Err(format!("page {z} has {other} pixels and page 0 {first}; pages of a volume must be alike"));
        }
    }
    let pages: Vec<TiffPage<'s>> = pages.into_iter().map(|(_, page)| page).collect();
    let Some(first) = pages.first() else { return Err("the file has no pages".into()) };
    let channels = stack.as_ref().map_or(1, |stack| stack.channels);
    if let Some(stack) =
        stack.filter(|stack| stack.by == DescriptionAuthor::Ome && stack.samples != first.shape().channels)
    {
        let (told, has) = (stack.samples, first.shape().channels);
        return Err(format!("its OME-XML has planes of {told} channels, and its pages have {has}"));
    }
    Ok(Pages { pages, planes, channels, sizes: found.levels(page) })
}

/// Pages that are read together: the levels of a volume, or their channels; at least one.
#[derive(Debug)]
pub(super) struct Pages<'s> {
    pages: Vec<TiffPage<'s>>,
    /// The page of each plane, and the bytes from the page's pixels to the plane's.
    planes: Vec<(usize, u64)>,
    /// Planes of a level, whose samples are interleaved in a picture.
    channels: usize,
    /// Rows and columns of the page and of its smaller copies.
    sizes: Vec<(usize, usize)>,
}

impl RegionDecoder for Pages<'_> {
    fn shape(&self) -> Shape {
        let one = self.pages[0].shape();
        Shape { depth: self.planes.len() / self.channels, channels: self.channels * one.channels, ..one }
    }

    fn dtype(&self) -> DType {
        self.pages[0].chunks.samples.dtype()
    }

    fn tiles(&self) -> Option<(usize, usize)> {
        (self.pages[0].chunks.places.kind == ChunkType::Tile).then(|| self.tile())
    }

    fn tile(&self) -> (usize, usize) {
        let TiffPage { orientation, stored_orientation: noted, chunks } = &self.pages[0];
        let Shape { height, width, .. } = chunks.shape;
        let tile = Shape::new(chunks.rows.min(height), chunks.columns.min(width), 1);
        let seen = orientation.shape(tile, *noted);
        (seen.height, seen.width)
    }

    /// The chunk of a strip or tile, unless rows of strips are read in place.
    fn chunk(&self) -> (usize, usize) {
        let (rows, columns) = self.tile();
        if self.tiles().is_none() && self.scratch_bytes() == 0 && columns == self.shape().width {
            (1, columns)
        } else {
            (rows, columns)
        }
    }

    fn scratch_bytes(&self) -> usize {
        self.pages.iter().map(|page| page.chunks.scratch_bytes()).max().unwrap_or(0)
    }

    fn levels(&self) -> usize {
        1
    }

    fn sizes(&self) -> Vec<(usize, usize)> {
        self.sizes.clone()
    }

    fn read(&self, levels: Range<usize>, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        let planes = &self.planes[levels.start * self.channels..levels.end * self.channels];
        let (own, pixel) = (pixel_bytes(self.pages[0].shape(), self.dtype()), pixel_bytes(self.shape(), self.dtype()));
        for (planes, to) in planes.chunks(self.channels).zip(to.chunks_mut(region.height * region.width * pixel)) {
            for (c, (page, behind)) in planes.iter().enumerate() {
                self.pages[*page].read(*behind, region, (to, PixelStride { at: c * own, pixel }), workers)?;
            }
        }
        Ok(())
    }

    fn is_complete(&self, region: Region) -> Result<(), String> {
        self.planes.iter().try_for_each(|(page, behind)| {
            let page = &self.pages[*page];
            page.chunks.is_complete(*behind, page.stored(region))
        })
    }

    fn counted(&self) -> FileTraffic {
        self.pages.iter().map(|page| page.chunks.count.traffic()).sum()
    }
}

/// A page with its directory.
#[derive(Debug)]
struct TiffPage<'s> {
    orientation: Orientation,
    stored_orientation: StoredOrientation,
    chunks: Chunks<'s>,
}

impl<'s> TiffPage<'s> {
    fn shape(&self) -> Shape {
        self.orientation.shape(self.chunks.picture(), self.stored_orientation)
    }

    fn stored(&self, region: Region) -> Region {
        self.orientation.stored(region, self.chunks.shape, self.stored_orientation)
    }

    fn read(
        &self,
        behind: u64,
        region: Region,
        (to, among): (&mut [u8], PixelStride),
        workers: &Workers,
    ) -> Result<(), String> {
        let stored = self.stored(region);
        if !self.orientation.turns(self.stored_orientation) {
            return self.chunks.read(behind, stored, (to, among), workers);
        }
        let shape = Shape { height: stored.height, width: stored.width, ..self.chunks.picture() };
        let dtype = self.chunks.samples.dtype();
        let own = PixelStride { at: 0, pixel: pixel_bytes(shape, dtype) };
        let mut pixels = HostBuffer::try_zeroed(shape.len() * dtype.size()).map_err(|e| e.to_string())?;
        self.chunks.read(behind, stored, (pixels.bytes_mut(), own), workers)?;
        let means = DecodeResources { workers, allocate: &HostBuffer::try_zeroed, reserve: None };
        let picture =
            self.orientation.of(Picture::from_pixels(shape, dtype, pixels), self.stored_orientation, means)?;
        copy_spaced(picture.pixels.bytes(), own.pixel, &mut to[among.at..], among.pixel, own.pixel);
        Ok(())
    }
}

/// The warning about pages that are not read, if the first page is read by default.
pub(super) fn unread(source: &PictureSource<'_>, options: &OpenOptions) -> Option<String> {
    if options.page.is_some() || options.volume {
        return None;
    }
    let all = Directories::of(source, MOST_PAGES).map_or(1, |pages| pages.count());
    let missing = match stack::of_source(source) {
        Some(Err(cause)) if all == 1 => return Some(format!(": {cause}; page 0 is used")),
        Some(Err(cause)) => format!("; {cause}"),
        Some(Ok(stack)) if stack.levels * stack.times == 1 && stack.planes() == all => return None,
        _ if all == 1 => return None,
        _ => String::new(),
    };
    let others = Audience::now().select_wording(
        "AnyImage::open_page reads the others, AnyImage::open_volume all",
        "--page N reads the others, --volume all as levels",
        "page=N reads the others, volume=True all as levels",
    );
    Some(format!(" has {all} pages: page 0 is used; {others}{missing}"))
}

/// Number of pages of a file, if it is less than `most`, otherwise any number from `most` on.
pub(super) fn pages_up_to(source: &PictureSource<'_>, most: usize) -> Result<usize, String> {
    Ok(Directories::of(source, most)?.count())
}

/// The directory of a page, or of a smaller copy of it.
pub(super) fn directory_of_page(source: &PictureSource<'_>, page: usize, level: usize) -> Result<IfdPointer, String> {
    Ok(Directories::of(source, page)?.place(page, level)?.directory)
}

/// Rows and columns of a page and of its smaller copies.
pub(super) fn levels_of_page(source: &PictureSource<'_>, page: usize) -> Result<Vec<(usize, usize)>, String> {
    Ok(Directories::of(source, page)?.levels(page))
}

/// Positions of the directories of pages, each followed by the directories of its smaller copies, by size.
pub(super) struct Directories {
    pages: Vec<Vec<PageDirectory>>,
    /// Pages without a directory whose pixels follow those of the only directory, and the bytes of each.
    behind: (usize, u64),
}

/// The position of a page.
struct PagePosition {
    directory: IfdPointer,
    /// Bytes from the pixels of the directory to the pixels of the page.
    behind: u64,
}

/// A directory, and the rows and columns of its picture, 0 if they cannot be read.
#[derive(Clone, Copy)]
struct PageDirectory {
    pointer: IfdPointer,
    height: usize,
    width: usize,
}

impl PageDirectory {
    fn of(file: &mut Decoder<TiffReader<'_>>, pointer: IfdPointer, directory: &Directory) -> PageDirectory {
        let mut tags = file.read_directory_tags(directory);
        let mut side = |tag| tags.find_tag_unsigned::<u32>(tag).ok().flatten().unwrap_or(0) as usize;
        PageDirectory { pointer, height: side(Tag::ImageLength), width: side(Tag::ImageWidth) }
    }
}

impl Directories {
    /// The directories up to page `last`, or fewer if the file has fewer.
    fn of(source: &PictureSource<'_>, last: usize) -> Result<Directories, String> {
        let mut file = Decoder::new(reader(source)).map_err(text)?.with_limits(limits());
        let mut next = file.ifd_pointer();
        let mut pages: Vec<Vec<PageDirectory>> = Vec::new();
        let (mut seen, mut slide) = (HashSet::new(), None);
        while let Some(pointer) = next.filter(|p| seen.insert(*p) && seen.len() <= MOST_PAGES) {
            let directory = match directory_of(&mut file, pointer) {
                Ok(directory) => directory,
                // An unreadable directory counts, but those after it cannot be found.
                Err(_) if !pages.is_empty() => {
                    pages.push(vec![PageDirectory { pointer, height: 0, width: 0 }]);
                    break;
                }
                Err(e) => return Err(text(e)),
            };
            let here = PageDirectory::of(&mut file, pointer, &directory);
            let mut tags = file.read_directory_tags(&directory);
            if pages.is_empty() {
                slide = Slide::of(&mut tags, source.size())?.filter(|slide| slide.is_size(&mut tags));
            }
            let is_size = slide.map(|slide| slide.is_size(&mut tags));
            let is_copy = tags.find_tag_unsigned::<u32>(Tag::NewSubfileType).ok().flatten().unwrap_or(0) & 1 == 1;
            let children = tags.find_tag_unsigned_vec::<u64>(Tag::SubIfd).ok().flatten().unwrap_or_default();
            let found = pages.len();
            match (is_size, &mut pages[..]) {
                (Some(true), [page, ..]) => page.push(here),
                (None, [.., page]) if is_copy => page.push(here),
                (None, _) if found > last => break,
                _ => pages.push(vec![here]),
            }
            for child in children.into_iter().map(IfdPointer).filter(|p| seen.insert(*p)).collect::<Vec<_>>() {
                if let Ok(directory) = directory_of(&mut file, child)
                    && let Some(page) = pages.last_mut()
                {
                    page.push(PageDirectory::of(&mut file, child, &directory));
                }
            }
            next = directory.next();
        }
        pages.iter_mut().for_each(|page| page[1..].sort_by_key(|copy| std::cmp::Reverse(copy.width)));
        let behind = match &pages[..] {
            // The description is in the first page.
            [only] if last > 0 && only.len() == 1 => stack::contiguous(source).ok().flatten(),
            _ => None,
        };
        Ok(Directories { pages, behind: behind.map_or((0, 0), |(planes, bytes)| (planes - 1, bytes)) })
    }

    fn count(&self) -> usize {
        self.pages.len() + self.behind.0
    }

    /// The number of the page that has the directory of a page.
    fn described(&self, page: usize) -> usize {
        if page < self.count() { page.min(self.pages.len() - 1) } else { page }
    }

    /// Rows and columns of a page and of its smaller copies.
    pub(super) fn levels(&self, page: usize) -> Vec<(usize, usize)> {
        let levels = self.pages.get(self.described(page));
        levels.map_or_else(Vec::new, |levels| levels.iter().map(|l| (l.height, l.width)).collect())
    }

    fn place(&self, page: usize, level: usize) -> Result<PagePosition, String> {
        let described = self.described(page);
        let levels = self.pages.get(described).ok_or_else(|| decode::no_page(page, self.count()))?;
        let copies = levels.len() - 1;
        let missing =
            || format!("level {level} requested, but page {page} has {copies} smaller copies (level 0 is the page)");
        let directory = levels.get(level).map(|listed| listed.pointer).ok_or_else(missing)?;
        Ok(PagePosition { directory, behind: (page - described) as u64 * self.behind.1 })
    }
}

/// The number of the page whose directory is read: the first of a described volume, whose `page` is a time.
pub(super) fn directory_page(source: &PictureSource<'_>, options: &OpenOptions) -> usize {
    options.page.filter(|_| !(options.volume && stack::of_source(source).is_some())).unwrap_or(0)
}

/// The properties of a file, without its pixels: the page, its smaller copies, the number of pages.
pub(super) fn describe(source: &PictureSource<'_>, options: &OpenOptions) -> Result<FileInfo, String> {
    let as_stored = OpenOptions { orientation: Orientation::Keep, ..*options };
    let opened = open(source, &as_stored)?;
    let found = Directories::of(source, MOST_PAGES)?;
    Ok(FileInfo {
        shape: opened.shape(),
        dtype: opened.dtype(),
        tile: opened.tile(),
        pages: found.count(),
        levels: found.levels(directory_page(source, options)),
    })
}

/// The tags of a page as texts, except those that locate its pixels.
pub(super) fn tags(source: &PictureSource<'_>, options: &OpenOptions) -> Result<Vec<(String, String)>, String> {
    const PLACES: [Tag; 4] = [Tag::StripOffsets, Tag::StripByteCounts, Tag::TileOffsets, Tag::TileByteCounts];
    let page = directory_page(source, options);
    let directory = directory_of_page(source, page, options.level)?;
    let mut decoder = decoder_at(source, directory)?;
    let mut all = Vec::new();
    for found in decoder.tag_iter() {
        // An unreadable tag does not hide the others.
        let Ok((tag, value)) = found else { continue };
        if !PLACES.contains(&tag) {
            all.push((tag_name(tag), written(&value)));
        }
    }
    all.sort();
    if let Some(Ok(stack)) = stack::of_source(source) {
        all.push((stack.by.name().into(), stack.describe_axes()));
    }
    Ok(all)
}

/// The name of a tag, or its number.
fn tag_name(tag: Tag) -> String {
    match tag {
        Tag::Unknown(42112) => "GdalMetadata".into(),
        Tag::Unknown(number) => number.to_string(),
        known => format!("{known:?}").trim_end_matches("Tag").to_owned(),
    }
}

/// Formats a value as text.
fn written(value: &Value) -> String {
    const MOST: usize = 64;
    match value {
        Value::Byte(n) => n.to_string(),
        Value::Short(n) => n.to_string(),
        Value::SignedByte(n) => n.to_string(),
        Value::SignedShort(n) => n.to_string(),
        Value::Signed(n) => n.to_string(),
        Value::SignedBig(n) => n.to_string(),
        Value::Unsigned(n) | Value::Ifd(n) => n.to_string(),
        Value::UnsignedBig(n) | Value::IfdBig(n) => n.to_string(),
        Value::Float(n) => n.to_string(),
        Value::Double(n) => n.to_string(),
        Value::Rational(a, b) => format!("{a}/{b}"),
        Value::SRational(a, b) => format!("{a}/{b}"),
        Value::Ascii(text) => text.trim_end_matches('\0').to_owned(),
        Value::List(all) if all.len() <= MOST => all.iter().map(written).collect::<Vec<_>>().join(" "),
        Value::List(all) => format!("{} values", all.len()),
        other => format!("{other:?}"),
    }
}

/// The orientation stored in a page. Warns of metadata that is not applied. Unreadable metadata counts as absent.
fn stored_orientation(decoder: &mut Decoder<TiffReader<'_>>) -> StoredOrientation {
    const MULTIPLIED: u16 = 1;
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).ok().flatten().unwrap_or_default();
    if extra.contains(&MULTIPLIED) {
        horus_base::warn!("its colours are premultiplied by alpha (TIFF ExtraSamples 1) and are used as stored");
    }
    if let Ok(Some(profile)) = decoder.find_tag(Tag::IccProfile).map(|v| v.and_then(|v| v.into_u8_vec().ok())) {
        profile::log_unapplied_profile(profile.len());
    }
    let orientation = decoder.find_tag_unsigned::<u16>(Tag::Orientation).ok().flatten();
    orientation.and_then(StoredOrientation::numbered).unwrap_or_default()
}

impl<'s> TiffPage<'s> {
    /// Reads and validates the description of the pixels in a directory.
    fn of(source: &PictureSource<'s>, directory: IfdPointer, options: &OpenOptions) -> Result<TiffPage<'s>, String> {
        let mut decoder = decoder_at(source, directory)?;
        let noted = stored_orientation(&mut decoder);
        let (w, h) = decoder.dimensions().map_err(text)?;
        let mut numbers = |tag| decoder.find_tag_unsigned_vec::<u16>(tag).map_err(text);
        let mut first = |tag| Ok::<_, String>(numbers(tag)?.and_then(|all| all.first().copied()));
        // All samples of a page must have the same number of bits and the same format.
        let (bits, format) = (first(Tag::BitsPerSample)?.unwrap_or(1), first(Tag::SampleFormat)?.unwrap_or(1));
        let count = first(Tag::SamplesPerPixel)?.unwrap_or(1);
        let compression = first(Tag::Compression)?.unwrap_or(CompressionMethod::None.to_u16());
        let is_jpeg = compression == CompressionMethod::ModernJPEG.to_u16();
        let is_jpeg2000 = JPEG_2000.contains(&compression);
        let planar = count > 1 && first(Tag::PlanarConfiguration)? == Some(PlanarConfiguration::Planar.to_u16());
        let photometric = first(Tag::PhotometricInterpretation)?.and_then(PhotometricInterpretation::from_u16);
        let (columns, rows) = decoder.chunk_dimensions();
        let places = ChunkPositions::of(&mut decoder)?;
        // A region allocates only its own memory.
        if options.region.is_none() {
            check_size(u64::from(h), u64::from(w), options)?;
            let most = self::most(source.size(), compression, u64::from(bits) * u64::from(count), u64::from(w));
            let absent = places.absent(u64::from(rows) * u64::from(columns));
            check_capacity(u64::from(h), u64::from(w), most.map(|most| most.saturating_add(absent)), source.size())?;
        }
        let shape = Shape::new(h as usize, w as usize, usize::from(count));
        if shape.is_empty() {
            return Err("the picture has no pixels".into());
        }
        if rows == 0 || columns == 0 {
            return Err("its strips or tiles have no pixels".into());
        }
        let samples = StoredSamples::of(bits, format, are_indices(&mut decoder))?;
        let colours = match (photometric, count) {
            // Whatever it says about its pixels.
            (Some(_), 3) if compression == JPEG_2000_OF_LUMA && samples.dtype() == DType::U8 => ColourEncoding::Luma,
            (Some(PhotometricInterpretation::WhiteIsZero), _) => ColourEncoding::Inverted,
            (Some(PhotometricInterpretation::BlackIsZero | PhotometricInterpretation::TransparencyMask), _)
            | (Some(PhotometricInterpretation::RGBPalette), 1)
            // Zeiss (LSM) declares two channels as colours.
            | (Some(PhotometricInterpretation::RGB), 2..) => ColourEncoding::Unchanged,
            (Some(PhotometricInterpretation::CMYK), 4..) if matches!(samples.dtype(), DType::U8 | DType::U16) => {
                ColourEncoding::Inks
            }
            (Some(PhotometricInterpretation::YCbCr), 3) if is_jpeg => ColourEncoding::Luma,
            (Some(PhotometricInterpretation::YCbCr), 3) if is_jpeg2000 && samples.dtype() == DType::U8 => {
                ColourEncoding::Luma
            }
            (Some(what), _) => {
                let luma = what == PhotometricInterpretation::YCbCr;
                let (dtype, unless) = (samples.dtype(), if luma { " unless they are JPEG data" } else { "" });
                return Err(format!("{what:?} TIFF pixels of {count} {dtype} samples are not supported{unless}"));
            }
            (None, _) => return Err("it does not say what its pixels are".into()),
        };
        if are_indices(&mut decoder)
            && let Some(table) = decoder.find_tag_unsigned_vec::<u16>(Tag::ColorMap).map_err(text)?
            && table.len() != 3 << bits.min(16)
        {
            let numbers = table.len();
            return Err(format!("its colour table has {numbers} numbers, for pixels of {bits} bits"));
        }
        let stored = if is_jpeg {
            if samples != StoredSamples::Of(DType::U8) {
                return Err(format!("JPEG data of {bits} bits are not supported"));
            }
            let tables = decoder.find_tag_unsigned_vec::<u64>(Tag::JPEGTables).map_err(text)?.unwrap_or_default();
            ChunkStorage::Jpeg(tables.into_iter().map(|byte| byte as u8).collect())
        } else if is_jpeg2000 {
            ChunkStorage::Jpeg2000
        } else {
            let coding = TiffCoding::of(&mut decoder, bits)?;
            coding.plain().filter(|_| samples.are_pixels()).map_or(ChunkStorage::Coded(coding), ChunkStorage::Plain)
        };
        let missing = match decoder.find_tag(Tag::Unknown(NODATA)) {
            Ok(Some(Value::Ascii(text))) => text.trim_end_matches('\0').trim().parse().unwrap_or(0.0),
            _ => 0.0,
        };
        let chunks = Chunks {
            source: source.clone(),
            shape,
            samples,
            colours,
            planar,
            stored,
            places,
            rows: (rows as usize).min(shape.height),
            columns: columns as usize,
            missing: dispatch!(samples.dtype(), T => bytemuck::bytes_of(&T::from_f64(missing)).to_vec()),
            count: Count::default(),
            halted: Mutex::default(),
        };
        Ok(TiffPage { orientation: options.orientation, stored_orientation: noted, chunks })
    }
}

/// JPEG 2000: Aperio's, of YCbCr and of red, green and blue; and a later number.
const JPEG_2000: [u16; 3] = [JPEG_2000_OF_LUMA, 33005, 34712];
const JPEG_2000_OF_LUMA: u16 = 33003;

/// Maximum pixels of a TIFF file with these bits per pixel and this compression, in rows of `width`.
fn most(bytes: u64, compression: u16, bits: u64, width: u64) -> Option<u64> {
    const NONE: u16 = 1;
    const FAX4: u16 = 4;
    const LZW: u16 = 5;
    const NEW_JPEG: u16 = 7;
    const ADOBE_DEFLATE: u16 = 8;
    const OLD_DEFLATE: u16 = 32946;
    const PACK_BITS: u16 = 32773;
    const ZSTD: u16 = 50000;
    let expansion = match compression {
        NONE => 1,
        // Two bytes repeat one up to 128 times.
        PACK_BITS => 64,
        // A code of 12 bits stands for a string at most as long as the table, 4096.
        LZW => 2731,
        ADOBE_DEFLATE | OLD_DEFLATE => DEFLATE,
        // Four bytes repeat one up to 128 KiB times, the longest block.
        ZSTD => 32768,
        // Blank tiles of 1024 x 1024 pixels have some 80 bytes.
        other if JPEG_2000.contains(&other) => return Some(bytes.saturating_mul(1 << 14)),
        NEW_JPEG => return Some(bytes.saturating_mul(jpeg::read::MOST)),
        // A bit marks a row, of any width, as equal to the previous one; no scanner is wider than this.
        FAX4 if width > 1 << 16 => return Some(0),
        FAX4 => return Some(bytes.saturating_mul(8).saturating_mul(width)),
        // The decoder does not know it.
        _ => return None,
    };
    Some(bytes.saturating_mul(8 * expansion) / bits.max(1))
}

pub(super) fn text(e: tiff::TiffError) -> String {
    e.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bytes_can_hold_follows_from_the_compression() {
        assert_eq!(most(100, 1, 24, 10), Some(33));
        assert_eq!(most(100, 4, 1, 50), Some(100 * 8 * 50));
        assert_eq!(most(100, 50_000, 8, 10), Some(100 * 32768));
        assert_eq!((most(100, 4, 1, 70_000), most(100, 50_001, 8, 10)), (Some(0), None));
    }
}
