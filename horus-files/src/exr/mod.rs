//! OpenEXR files, decoded and encoded block by block with the crate `exr`: grey or colour, in half or single precision;
//! written in single.

use std::collections::BTreeSet;
use std::io::{BufRead, Cursor, Seek};

use exr::block::chunk::Chunk;
use exr::block::reader::Reader;
use exr::block::writer::ChunksWriter;
use exr::block::{BlockIndex, UncompressedBlock, enumerate_ordered_header_block_indices};
use exr::compression::Compression;
use exr::error::Error;
use exr::math::Vec2;
use exr::meta::BlockDescription;
use exr::meta::attribute::{ChannelDescription, LineOrder, SampleType, Text};
use exr::meta::header::Header as Part;
use half::f16;
use rayon::prelude::*;

use crate::{
    Alpha, DEFLATE, Decode, Decoder, Encoder, FormatProperties, Metadata, OpenOptions, PictureFormat, PictureHeader,
    PictureSource, Sink, guarded, warn_once,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// OpenEXR files.
pub(super) struct OpenExr;

impl PictureFormat for OpenExr {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "exr",
            title: "OpenEXR",
            magic: &[b"\x76\x2f\x31\x01"],
            types: &[DType::F32],
            channels: &[1, 2, 3, 4],
            alpha: Some(&[2, 4]),
            alpha_kind: Some(Alpha::Associated),
            ..FormatProperties::PLAIN
        }
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        let (header, exr) = Exr::of(Cursor::new(bytes))?;
        Ok((header, Box::new(exr)))
    }

    fn header(&self, source: &PictureSource<'_>, _: &OpenOptions) -> Result<PictureHeader, String> {
        Ok(Exr::of(source.reader())?.0)
    }

    fn metadata(&self, _: &PictureSource<'_>, _: &OpenOptions, channels: usize) -> Metadata {
        // The other channels of these files are grey or colours.
        let alpha = matches!(channels, 2 | 4).then_some(Alpha::Associated);
        Metadata { alpha, ..Metadata::default() }
    }

    /// Writes blocks of lines, deflated. All workers compress blocks; the bytes do not depend on them.
    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        let Shape { height, width, channels, .. } = file.draft.shape;
        let pixels = file.pixels[0].as_slice::<f32>();
        // Files have channels in the order of their names.
        let channels_by_name: &[(&str, usize)] = match channels {
            1 => &[("Y", 0)],
            2 => &[("A", 1), ("Y", 0)],
            3 => &[("B", 2), ("G", 1), ("R", 0)],
            _ => &[("A", 3), ("B", 2), ("G", 1), ("R", 0)],
        };
        let described = channels_by_name.iter().map(|(name, _)| ChannelDescription::named(*name, SampleType::F32));
        let mut part = Part::new(Text::default(), (width, height), described.collect());
        part.own_attributes.layer_name = None;
        let part = part.with_encoding(Compression::ZIP16, BlockDescription::ScanLines, LineOrder::Increasing);
        let encode = |headers: &[Part], &(place, index): &(usize, BlockIndex)| {
            let (Vec2(_, top), Vec2(_, rows)) = (index.pixel_position, index.pixel_size);
            let lines = pixels[top * width * channels..][..rows * width * channels].chunks_exact(width * channels);
            let samples = |line: &'_ [f32], place: usize| -> Vec<u8> {
                line[place..].iter().step_by(channels).flat_map(|v| v.to_ne_bytes()).collect()
            };
            let data = lines.flat_map(|line| channels_by_name.iter().flat_map(move |(_, place)| samples(line, *place)));
            let block = UncompressedBlock { index, data: data.collect() };
            Ok::<_, Error>((place, block.compress_to_chunk(headers)?))
        };
        let written = exr::block::write(to, std::iter::once(part).collect(), true, |meta, chunks| {
            let blocks: Vec<_> = enumerate_ordered_header_block_indices(&meta.headers).collect();
            for some in blocks.chunks(AT_ONCE * workers.threads()) {
                let encoded = some.par_iter().map(|block| encode(&meta.headers, block));
                for (place, chunk) in workers.run(|| encoded.collect::<Result<Vec<_>, Error>>())? {
                    chunks.write_chunk(place, chunk)?;
                }
            }
            Ok(())
        });
        written.map_err(cause)
    }
}

/// Blocks for each thread that are decoded before their pixels are copied.
const AT_ONCE: usize = 2;

/// Maximum bytes of a block: 2048x2048 pixels of a tile, or 32 lines of 131072, of four channels.
const MOST_OF_BLOCK: usize = 64 << 20;

/// The first part of a file.
struct Exr<R> {
    reader: Reader<R>,
    /// The channel of the image for each stored channel, if any.
    places: Vec<Option<usize>>,
}

impl<R: BufRead + Seek> Exr<R> {
    fn of(from: R) -> Result<(PictureHeader, Exr<R>), String> {
        let reader = exr::block::read(from, false).map_err(cause)?;
        let part = &reader.headers()[0];
        match part.compression {
            // The decoder trusts the length in these data.
            Compression::DWAA(_) | Compression::DWAB(_) => return Err("compression by DWA is not supported".into()),
            Compression::HTJ2K32 | Compression::HTJ2K256 => return Err("compression by HTJ2K is not supported".into()),
            _ => {}
        }
        // The decoder allocates a whole block before it reads it, even if the file is shorter.
        if let Some(large) = reader.headers().iter().map(Part::max_block_byte_size).find(|bytes| *bytes > MOST_OF_BLOCK)
        {
            return Err(format!("blocks of {large} bytes exceed the limit of {MOST_OF_BLOCK}"));
        }
        let places = places(part)?;
        let Vec2(width, height) = part.layer_size;
        let side = |n: usize| u32::try_from(n).map_err(|_| format!("{width}x{height} pixels are too large"));
        let header = PictureHeader::new(side(width)?, side(height)?, places.iter().flatten().count(), DType::F32)?;
        Ok((header, Exr { reader, places }))
    }

    fn part(&self) -> &Part {
        &self.reader.headers()[0]
    }
}

impl<R: BufRead + Seek> Decode for Exr<R> {
    fn most(&self, _: u64, bytes: u64) -> u64 {
        most(bytes, self.part().compression, self.part().channels.bytes_per_pixel as u64)
    }

    fn scratch_bytes(&self, _: &PictureHeader, workers: &Workers) -> u64 {
        let part = self.part();
        let (Vec2(width, height), most) = (part.layer_size, part.max_block_pixel_size());
        let block = width.min(most.0).saturating_mul(height.min(most.1)).saturating_mul(part.channels.bytes_per_pixel);
        // Compressed, decompressed and intermediate data; and the offset of each block in the file.
        let places = self.reader.headers().iter().map(|part| part.chunk_count).sum::<usize>().saturating_mul(100);
        (3 * block).saturating_mul(part.chunk_count.min(AT_ONCE * workers.threads())).saturating_add(places) as u64
    }

    fn read(self: Box<Self>, header: &PictureHeader, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        const SAMPLE: usize = size_of::<f32>();
        let (width, channels) = (header.shape.width, header.shape.channels);
        let whole = |layer: usize, level: Vec2<usize>| layer == 0 && level == Vec2(0, 0);
        let chunks = self.reader.filter_chunks(true, |_, tile, block| whole(block.layer, tile.level_index));
        let mut chunks = chunks.map_err(cause)?;
        let meta = exr::block::reader::ChunksReader::meta_data(&chunks).clone();
        let part = &meta.headers[0];
        let others = part.channels.list.iter().zip(&self.places).filter(|(_, place)| place.is_none());
        let others: Vec<String> = others.map(|(channel, _)| channel.name.to_string()).collect();
        if !others.is_empty() || meta.headers.len() > 1 {
            let others = if others.is_empty() { "other parts".into() } else { others.join(", ") };
            let told = format!("of OpenEXR files only the grey or colour of the first part is read, not {others}");
            warn_once(&told, || told.clone());
        }
        let decode = |chunk: Chunk| match chunk.layer_index {
            0 => guarded(|| UncompressedBlock::decompress_chunk(chunk, &meta, false).map_err(cause)),
            _ => Err(cause(Error::Invalid("part of a block".into()))),
        };
        let mut found = BTreeSet::new();
        loop {
            let some = chunks.by_ref().take(AT_ONCE * workers.threads()).collect::<Result<Vec<Chunk>, Error>>();
            let some = some.map_err(cause)?;
            if some.is_empty() {
                return Ok(());
            }
            let blocks = workers.run(|| some.into_par_iter().map(decode).collect::<Result<Vec<_>, String>>());
            for block in blocks? {
                let Vec2(x, y) = block.index.pixel_position;
                if !whole(block.index.layer, block.index.level) || !found.insert((y, x)) {
                    return Err("a block is in the place of another".into());
                }
                for line in block.lines(&part.channels) {
                    let Some(place) = self.places[line.location.channel] else { continue };
                    let Vec2(x, y) = line.location.position;
                    let to = &mut to[(y * width + x) * channels * SAMPLE..];
                    let to = to.as_chunks_mut::<SAMPLE>().0.iter_mut().skip(place).step_by(channels);
                    if part.channels.list[line.location.channel].sample_type == SampleType::F16 {
                        let halves = line.value.as_chunks().0.iter().map(|half| f16::from_ne_bytes(*half).to_f32());
                        to.zip(halves).for_each(|(to, v)| *to = v.to_ne_bytes());
                    } else {
                        to.zip(line.value.as_chunks().0).for_each(|(to, v)| *to = *v);
                    }
                }
            }
        }
    }
}

/// Maps the channels of a part to the channels of an image: red, green and blue, or luminance, each with or without
/// alpha; or the only channel, whatever its name.
fn places(part: &Part) -> Result<Vec<Option<usize>>, String> {
    let stored = &part.channels.list;
    let names: Vec<String> = stored.iter().map(|channel| channel.name.to_string()).collect();
    let has = |name: &&str| names.iter().any(|n| n == name);
    let colours = [&["R", "G", "B"][..], &["Y"]].into_iter().find(|all| all.iter().all(has));
    let mut wanted: Vec<&str> = match (&names[..], colours) {
        ([only], _) => vec![only],
        (_, Some(["Y"])) if has(&"RY") || has(&"BY") => {
            return Err("luminance with chroma (Y, RY, BY) is not supported".into());
        }
        (_, Some(colours)) => colours.to_vec(),
        (_, None) => return Err(format!("its channels {} are neither R, G, B nor Y", names.join(", "))),
    };
    if wanted.len() < names.len() && has(&"A") {
        wanted.push("A");
    }
    for (channel, name) in stored.iter().zip(&names) {
        if wanted.contains(&name.as_str()) && names.iter().filter(|n| *n == name).count() > 1 {
            return Err(format!("it has several channels {name}"));
        }
        if channel.sample_type == SampleType::U32 && wanted.contains(&name.as_str()) {
            return Err(format!("its channel {name} has integers of 32 bits"));
        }
    }
    Ok(names.iter().map(|name| wanted.iter().position(|wanted| wanted == name)).collect())
}

/// Maximum pixels of an OpenEXR file with this compression and these bytes for each pixel.
fn most(bytes: u64, compression: Compression, pixel: u64) -> u64 {
    let expansion = match compression {
        Compression::Uncompressed => 1,
        // Two bytes repeat one up to 128 times.
        Compression::RLE => 64,
        Compression::ZIP1 | Compression::ZIP16 => DEFLATE,
        // Three of the four bytes of a float are deflated.
        Compression::PXR24 => DEFLATE * 4 / 3,
        // At least nine bits, one and the eight of a count, repeat a half up to 255 times.
        Compression::PIZ => 454,
        // Three bytes are 16 halves.
        Compression::B44 | Compression::B44A => 11,
        // Not decoded.
        _ => 0,
    };
    bytes.saturating_mul(expansion) / pixel.max(1)
}

fn cause(error: Error) -> String {
    match error {
        Error::Invalid(what) => format!("invalid {what}"),
        Error::NotSupported(what) => format!("the decoder has no such files: {what}"),
        other => other.to_string(),
    }
}
