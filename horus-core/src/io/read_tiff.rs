//! TIFF files: one of their pages, chunky or planar, of integers or floats.

use std::io::Cursor;

use image::metadata::Orientation;
use tiff::ColorType;
use tiff::decoder::{ChunkType, Decoder, DecodingResult, Limits};
use tiff::tags::{CompressionMethod, PlanarConfiguration, Tag};

use super::bounds::{self, MEMORY_LIMIT, check_capacity, check_size};
use super::decode::{in_planes, planes};
use super::load::Means;
use super::{OpenOptions, Picture, metadata};
use crate::dtype::Pixel;
use crate::shape::Shape;

type Reader<'a> = Decoder<Cursor<&'a [u8]>>;

/// Decodes the requested page, or all as the levels of a volume.
pub(super) fn read(bytes: &[u8], options: &OpenOptions, means: Means<'_>) -> Result<Picture, String> {
    if options.volume && options.page.is_none() {
        return volume(bytes, options, means);
    }
    let mut decoder = at_page(bytes, options.page.unwrap_or(0))?;
    let noted = noted(&mut decoder);
    options.orientation.of(pixels(decoder, bytes, options, means)?, noted, means)
}

/// All pages, which have one size and type.
fn volume(bytes: &[u8], options: &OpenOptions, means: Means<'_>) -> Result<Picture, String> {
    let depth = pages(bytes);
    let page = |z: usize| read(bytes, &OpenOptions { page: Some(z), ..*options }, means);
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

/// The orientation stored in a page; warns of other metadata that is ignored. What cannot be read counts as absent.
fn noted(decoder: &mut Reader<'_>) -> Orientation {
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

fn pixels(mut decoder: Reader<'_>, bytes: &[u8], options: &OpenOptions, means: Means<'_>) -> Result<Picture, String> {
    let color = decoder.colortype().map_err(text)?;
    let (w, h) = decoder.dimensions().map_err(text)?;
    check_size(u64::from(h), u64::from(w), options)?;
    let tag = |decoder: &mut Reader<'_>, tag| decoder.find_tag_unsigned::<u16>(tag).map_err(text);
    let compression = tag(&mut decoder, Tag::Compression)?.unwrap_or(CompressionMethod::None.to_u16());
    let samples = tag(&mut decoder, Tag::SamplesPerPixel)?.unwrap_or(1);
    let bits = u64::from(color.bit_depth()) * u64::from(samples);
    let most = bounds::tiff(bytes.len() as u64, compression, bits, u64::from(w));
    check_capacity(u64::from(h), u64::from(w), most, bytes)?;
    if compression == CompressionMethod::ModernJPEG.to_u16() {
        check_jpegs(&mut decoder, bytes)?;
    }
    let channels = match color {
        ColorType::Gray(_) => 1,
        ColorType::GrayA(_) => 2,
        ColorType::RGB(_) => 3,
        ColorType::RGBA(_) | ColorType::CMYK(_) => 4,
        ColorType::Multiband { num_samples, .. } => usize::from(num_samples),
        other => return Err(format!("TIFF pixels of type {other:?} are not supported")),
    };
    let page = Page {
        means,
        shape: Shape::new(h as usize, w as usize, channels),
        cmyk: matches!(color, ColorType::CMYK(_)),
        planar: channels > 1
            && tag(&mut decoder, Tag::PlanarConfiguration)? == Some(PlanarConfiguration::Planar.to_u16()),
    };
    let limit = usize::try_from(MEMORY_LIMIT).unwrap_or(usize::MAX);
    let size = [w as usize, channels, usize::from(color.bit_depth()).div_ceil(8)];
    if size.iter().try_fold(h as usize, |n, m| n.checked_mul(*m)).is_none_or(|bytes| bytes > limit) {
        return Err(format!("{} pixels of {} bits need more than {limit} bytes", page.shape, color.bit_depth()));
    }
    let mut limits = Limits::default();
    (limits.decoding_buffer_size, limits.intermediate_buffer_size) = (limit, limit);
    let mut decoder = decoder.with_limits(limits);
    if color.bit_depth() < 8 {
        return page.packed(decoder, color.bit_depth());
    }
    let read = if page.planar { read_planes(&mut decoder, page.shape)? } else { decoder.read_image().map_err(text)? };
    match read {
        DecodingResult::U8(v) => page.picture(v, |c, k| ((255.0 - f32::from(c)) * (1.0 - f32::from(k) / 255.0)) as u8),
        DecodingResult::U16(v) => {
            page.picture(v, |c, k| ((65535.0 - f32::from(c)) * (1.0 - f32::from(k) / 65535.0)) as u16)
        }
        DecodingResult::I32(v) => page.exact(v),
        DecodingResult::F32(v) => page.exact(v),
        DecodingResult::F64(v) => page.exact(v),
        // Wider types hold the same numbers.
        DecodingResult::I8(v) => page.exact(v.into_iter().map(i32::from).collect()),
        DecodingResult::I16(v) => page.exact(v.into_iter().map(i32::from).collect()),
        DecodingResult::F16(v) => page.exact(v.into_iter().map(f32::from).collect()),
        DecodingResult::U32(_) | DecodingResult::U64(_) | DecodingResult::I64(_) => Err(format!(
            "{}TIFF integers of {} bits are not supported; use 8 or 16 bits, 32 bits with sign, or floats",
            if matches!(read, DecodingResult::I64(_)) { "" } else { "unsigned " },
            color.bit_depth()
        )),
    }
}

/// Number of pages, as far as they can be read.
pub(super) fn pages(bytes: &[u8]) -> usize {
    let Ok(mut decoder) = Decoder::new(Cursor::new(bytes)) else { return 1 };
    let mut pages = 1;
    // A page that the decoder cannot read counts, but the pages after it cannot be reached.
    while decoder.more_images() {
        pages += 1;
        if decoder.next_image().is_err() {
            break;
        }
    }
    pages
}

fn at_page(bytes: &[u8], page: usize) -> Result<Reader<'_>, String> {
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(text)?;
    for before in 0..page {
        if !decoder.more_images() {
            return Err(super::decode::no_page(page, before + 1));
        }
        decoder.next_image().map_err(text)?;
    }
    Ok(decoder)
}

/// Rejects JPEG data that declares more pixels than its strip or tile has: the decoder trusts it.
fn check_jpegs(decoder: &mut Reader<'_>, bytes: &[u8]) -> Result<(), String> {
    let mut tag = |tag| Ok::<_, String>(decoder.find_tag_unsigned_vec::<u64>(tag).map_err(text)?.unwrap_or_default());
    let (offsets, counts) = (
        [tag(Tag::StripOffsets)?, tag(Tag::TileOffsets)?].concat(),
        [tag(Tag::StripByteCounts)?, tag(Tag::TileByteCounts)?].concat(),
    );
    let tables: Vec<u8> = tag(Tag::JPEGTables)?.into_iter().map(|byte| byte as u8).collect();
    let (w, h) = decoder.chunk_dimensions();
    let (_, height) = decoder.dimensions().map_err(text)?;
    let most = match decoder.get_chunk_type() {
        // A strip may be said to have any number of rows.
        ChunkType::Strip => u64::from(w) * u64::from(h.min(height)),
        ChunkType::Tile => u64::from(w) * u64::from(h),
    };
    // Encoders may pad to whole blocks.
    const BLOCK: u64 = 64;
    let most = most + BLOCK * (u64::from(w) + u64::from(h.min(1 << 16)) + BLOCK);
    // As the decoder sees them: the end of the file ends what is said to go beyond, and tables that are shared come first,
    // without their end, in place of the data's first marker.
    const MARKER: usize = 2;
    let data = |offset: u64, count: u64| {
        let data = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
        &data[..data.len().min(usize::try_from(count).unwrap_or(usize::MAX))]
    };
    let frame = |(offset, count): (&u64, &u64)| match &tables[..] {
        [] => bounds::jpeg_frame(data(*offset, *count)),
        tables => {
            let first = &tables[..tables.len().saturating_sub(MARKER)];
            let rest = data(*offset, *count).get(MARKER..).unwrap_or_default();
            bounds::jpeg_frame(&[first, rest].concat())
        }
    };
    if offsets.iter().zip(&counts).map(frame).any(|pixels| pixels > most) {
        return Err("its JPEG data declares more pixels than its strip or tile holds".into());
    }
    Ok(())
}

/// The planes of a planar file, one after the other. Read by strips and tiles: the decoder's own way takes the last tiles
/// of all planes but the first for whole ones and writes them into the next plane.
fn read_planes(decoder: &mut Reader<'_>, shape: Shape) -> Result<DecodingResult, String> {
    let (across, per_plane) = {
        let (w, h) = decoder.chunk_dimensions();
        let across = shape.width.div_ceil((w as usize).max(1));
        (across, across * shape.height.div_ceil((h as usize).max(1)))
    };
    let mut all: Option<DecodingResult> = None;
    for plane in 0..shape.channels {
        for i in 0..per_plane {
            let index = u32::try_from(plane * per_plane + i).map_err(|e| e.to_string())?;
            let (w, h) = decoder.chunk_dimensions();
            let (columns, _) = decoder.chunk_data_dimensions(index);
            let chunk = decoder.read_chunk(index).map_err(text)?;
            let (top, left) = (i / across * h as usize, i % across * w as usize);
            let place = Place { plane, top, left, columns: columns as usize, shape };
            macro_rules! place {
                ($($kind:ident)*) => {
                    match (all.take(), chunk) {
                        $((None, DecodingResult::$kind(chunk)) => {
                            let mut planes = Vec::new();
                            planes.try_reserve_exact(shape.len()).map_err(|e| e.to_string())?;
                            planes.resize(shape.len(), Default::default());
                            place.copy(&mut planes, &chunk);
                            DecodingResult::$kind(planes)
                        }
                        (Some(DecodingResult::$kind(mut planes)), DecodingResult::$kind(chunk)) => {
                            place.copy(&mut planes, &chunk);
                            DecodingResult::$kind(planes)
                        })*
                        _ => return Err("its strips or tiles have different types".into()),
                    }
                };
            }
            all = Some(place!(U8 U16 U32 U64 F16 F32 F64 I8 I16 I32 I64));
        }
    }
    all.ok_or_else(|| "the picture has no pixels".into())
}

/// Where the rows of a strip or tile belong.
struct Place {
    plane: usize,
    top: usize,
    left: usize,
    columns: usize,
    shape: Shape,
}

impl Place {
    fn copy<S: Copy>(&self, planes: &mut [S], chunk: &[S]) {
        let Shape { height, width, .. } = self.shape;
        let columns = self.columns.min(width.saturating_sub(self.left));
        if columns == 0 {
            return;
        }
        for (y, row) in (self.top..height).zip(chunk.chunks_exact(self.columns)) {
            let at = (self.plane * height + y) * width + self.left;
            planes[at..at + columns].copy_from_slice(&row[..columns]);
        }
    }
}

/// What a page is made of.
struct Page<'a> {
    means: Means<'a>,
    shape: Shape,
    cmyk: bool,
    planar: bool,
}

impl Page<'_> {
    fn exact<T: Pixel>(&self, samples: Vec<T>) -> Result<Picture, String> {
        if self.cmyk {
            return Err(format!("CMYK TIFF pixels as {} are not supported", T::DTYPE));
        }
        self.ordered(samples, self.shape)
    }

    /// Pixels of 8 or 16 bits; `light` makes of cyan and black red, and so on.
    fn picture<T: Pixel>(&self, mut samples: Vec<T>, light: impl Fn(T, T) -> T) -> Result<Picture, String> {
        if !self.cmyk {
            return self.ordered(samples, self.shape);
        }
        let shape = Shape { channels: 3, ..self.shape };
        if self.planar {
            let (colours, black) = samples.split_at_mut_checked(shape.len()).ok_or("a plane is missing")?;
            for plane in colours.chunks_exact_mut(shape.area()) {
                plane.iter_mut().zip(&*black).for_each(|(c, k)| *c = light(*c, *k));
            }
            samples.truncate(shape.len());
        } else {
            samples =
                samples.as_chunks::<4>().0.iter().flat_map(|[c, m, y, k]| [c, m, y].map(|c| light(*c, *k))).collect();
        }
        self.ordered(samples, shape)
    }

    fn ordered<T: Pixel>(&self, samples: Vec<T>, shape: Shape) -> Result<Picture, String> {
        if self.planar { in_planes(&samples, shape, self.means) } else { planes(&samples, shape, self.means) }
    }

    /// Grey pixels of less than a byte, each row beginning with a byte.
    fn packed(&self, mut decoder: Reader<'_>, bits: u8) -> Result<Picture, String> {
        let channels = self.shape.channels;
        if channels != 1 || ![1, 2, 4].contains(&bits) {
            return Err(format!("TIFF pixels of {channels} channels of {bits} bits are not supported"));
        }
        let DecodingResult::U8(packed) = decoder.read_image().map_err(text)? else {
            return Err(format!("non-integer TIFF pixels of {bits} bits are not supported"));
        };
        let (per_byte, full) = (8 / usize::from(bits), (1u16 << bits) as u8 - 1);
        let row = |row: &[u8]| -> Vec<u8> {
            let pixel = |x: usize| {
                let shift = 8 - bits * (x % per_byte + 1) as u8;
                (row[x / per_byte] >> shift & full) * (u8::MAX / full)
            };
            (0..self.shape.width).map(pixel).collect()
        };
        let pixels: Vec<u8> = packed.chunks_exact(self.shape.width.div_ceil(per_byte)).flat_map(row).collect();
        in_planes(&pixels, self.shape, self.means)
    }
}

fn text(e: tiff::TiffError) -> String {
    e.to_string()
}
