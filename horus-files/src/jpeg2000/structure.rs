//! The structure of a JPEG 2000 code stream, before it is decoded: the decoder allocates what headers ask for. A small
//! file could ask for more than a thousand bytes for each pixel (blocks of one pixel, in many layers).
//!
//! Segments must have the lengths that their contents take, so that the decoder reads the same ones. Their letters are
//! those of Annex A.

use crate::truncated;

/// The first bytes of a file, and of a code stream without a file.
pub(super) const SIGNATURE: &[u8] = b"\0\0\0\x0cjP  \r\n\x87\n";
pub(super) const CODE_STREAM: &[u8] = b"\xff\x4f\xff\x51";

const SIZ: u16 = 0xff51;
const COD: u16 = 0xff52;
const COC: u16 = 0xff53;
const TLM: u16 = 0xff55;
const PLT: u16 = 0xff58;
const QCD: u16 = 0xff5c;
const QCC: u16 = 0xff5d;
const RGN: u16 = 0xff5e;
const POC: u16 = 0xff5f;
const PPM: u16 = 0xff60;
const PPT: u16 = 0xff61;
const CRG: u16 = 0xff63;
const COM: u16 = 0xff64;
const SOT: u16 = 0xff90;
const SOD: u16 = 0xff93;
const EOC: u16 = 0xffd9;

/// Maximum components: colours and alpha.
const MOST_COMPONENTS: u16 = 4;

/// What decides on the memory of a decoder.
#[derive(Debug)]
pub(super) struct Structure {
    width: u64,
    height: u64,
    components: u64,
    /// Bits of a sample.
    pub(super) bits: u8,
    /// Components have several distances of samples.
    pub(super) is_subsampled: bool,
    tiles: u64,
    layers: u64,
    /// Blocks of all components.
    blocks: u64,
    /// Packets in all layers, at least.
    packets: u64,
}

/// Bytes read from the front, big-endian.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<Bytes<'a>, String> {
        let (first, rest) = self.0.split_at_checked(count).ok_or_else(truncated)?;
        self.0 = rest;
        Ok(Bytes(first))
    }

    fn number(&mut self, count: usize) -> Result<u64, String> {
        Ok(self.take(count)?.0.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.number(1)? as u8)
    }

    fn short(&mut self) -> Result<u16, String> {
        Ok(self.number(2)? as u16)
    }

    fn long(&mut self) -> Result<u64, String> {
        self.number(4)
    }

    /// The contents of a segment, after its marker.
    fn segment(&mut self) -> Result<Bytes<'a>, String> {
        let length = usize::from(self.short()?).checked_sub(2).ok_or("a segment is shorter than its length")?;
        self.take(length)
    }

    /// Rejects bytes that the contents of a segment do not take.
    fn end(self, marker: u16) -> Result<(), String> {
        if self.0.is_empty() { Ok(()) } else { Err(format!("a segment {marker:#x} is longer than its contents")) }
    }
}

impl Structure {
    /// Reads the headers of a file or of a code stream.
    ///
    /// # Errors
    /// A message, if they are damaged or not supported, or describe more than the bytes can hold.
    pub(super) fn of(file: &[u8]) -> Result<Structure, String> {
        let mut bytes = Bytes(if file.starts_with(CODE_STREAM) { file } else { code_stream(file)? });
        let all = bytes.0.len() as u64;
        bytes.take(2)?;
        let mut found: Option<Structure> = None;
        let mut coding = None;
        loop {
            let marker = bytes.short()?;
            if marker == SOT {
                break;
            }
            let mut segment = bytes.segment()?;
            match (marker, &mut found) {
                (SIZ, None) => found = Some(Structure::of_size(segment)?),
                (COD, Some(size)) => {
                    let flags = segment.byte()?;
                    segment.byte()?; // order of packets
                    size.layers = segment.short()?.into();
                    segment.byte()?; // transform of components
                    let of_all = Coding::of(segment, flags)?;
                    coding = Some(of_all);
                }
                (_, Some(_)) if is_skipped(marker, segment)? => {}
                (TLM | PPM | CRG, Some(_)) => {}
                (COC, _) => return Err("components with codings of their own are not supported".into()),
                _ => return Err(format!("a segment {marker:#x} is out of place or unknown")),
            }
        }
        let (mut found, coding) = found.zip(coding).ok_or("it does not say how it is encoded")?;
        (found.blocks, found.packets) = coding.count(&found);
        let parts = parts(bytes)?;
        if parts < found.tiles || found.packets > all {
            let Structure { width, height, .. } = found;
            return Err(format!("the file declares {width}x{height} pixels, more than its {all} bytes can hold"));
        }
        Ok(found)
    }

    /// Reads the sizes of a picture.
    fn of_size(mut segment: Bytes<'_>) -> Result<Structure, String> {
        segment.short()?;
        let mut sides = [0; 8];
        for side in &mut sides {
            *side = segment.long()?;
        }
        let [right, bottom, left, top, tile_width, tile_height, tiles_left, tiles_top] = sides;
        let components = segment.short()?;
        let (Some(width), Some(height)) = (right.checked_sub(left), bottom.checked_sub(top)) else {
            return Err("it has no rows or columns".into());
        };
        if width * height == 0 || tile_width * tile_height == 0 || tiles_left > left || tiles_top > top {
            return Err("the picture or its tiles have no rows or columns".into());
        }
        if !(1..=MOST_COMPONENTS).contains(&components) {
            return Err(format!("{components} components are not supported; the limit is {MOST_COMPONENTS}"));
        }
        let (mut bits, mut distances) = (0, Vec::new());
        for _ in 0..components {
            let sample = segment.byte()?;
            if sample & 0x80 > 0 {
                return Err("samples with sign are not supported".into());
            }
            bits = bits.max(sample + 1);
            distances.push(segment.short()?);
        }
        if bits > 16 {
            return Err(format!("samples of {bits} bits are not supported; the limit is 16"));
        }
        segment.end(SIZ)?;
        let across = |end: u64, begin: u64, side: u64| (end - begin).div_ceil(side);
        let tiles = across(right, tiles_left, tile_width) * across(bottom, tiles_top, tile_height);
        let components = components.into();
        let is_subsampled = distances.iter().any(|distance| *distance != distances[0]);
        Ok(Structure { width, height, components, bits, is_subsampled, tiles, layers: 0, blocks: 0, packets: 0 })
    }

    /// Upper limit of the bytes for decoding. (Measured: 10 to 40 for each pixel, 24 for each block and layer.)
    pub(super) fn decoding_bytes(&self) -> u64 {
        let of_pixel = 8 * self.components + 16;
        let of_block = 400 + 24 * self.layers;
        let pixels = self.width.saturating_mul(self.height).saturating_mul(of_pixel);
        let tiles = self.tiles.saturating_mul(4096 * self.components);
        pixels.saturating_add(self.blocks.saturating_mul(of_block)).saturating_add(tiles)
    }
}

/// The coding of components.
struct Coding {
    levels: u8,
    /// Logarithms of the columns and rows of a block.
    block: [u8; 2],
    /// Logarithms of the columns and rows of the precincts of each resolution; empty for the largest.
    precincts: Vec<[u8; 2]>,
}

impl Coding {
    fn of(mut segment: Bytes<'_>, flags: u8) -> Result<Coding, String> {
        const MOST_LEVELS: u8 = 32;
        let levels = segment.byte()?;
        if levels > MOST_LEVELS {
            return Err(format!("{levels} resolutions are not supported; the limit is {MOST_LEVELS}"));
        }
        let block = [segment.byte()?, segment.byte()?].map(|side| side.saturating_add(2));
        segment.short()?; // style, transform
        let mut precincts = Vec::new();
        if flags & 1 == 1 {
            for _ in 0..=levels {
                let sides = segment.byte()?;
                precincts.push([sides & 15, sides >> 4]);
            }
        }
        segment.end(COD)?;
        Ok(Coding { levels, block, precincts })
    }

    /// Blocks of all components, at most, and packets, at least.
    fn count(&self, of: &Structure) -> (u64, u64) {
        let (mut blocks, mut packets) = (0u64, 0u64);
        for resolution in 0..=self.levels {
            let shrunk = self.levels - resolution;
            let sides = [of.width, of.height].map(|side| side.checked_shr(shrunk.into()).unwrap_or(0) + 1);
            let precinct = self.precincts.get(usize::from(resolution)).copied().unwrap_or([15; 2]);
            // The bands of a resolution, but for the smallest, have half its columns and rows.
            let halved = u8::from(resolution > 0);
            let mut one = 1;
            let mut all = 1;
            for axis in 0..2 {
                let side = self.block[axis].min(precinct[axis].saturating_sub(halved));
                // Tiles and precincts cut blocks.
                one *= 2 * ((sides[axis] >> halved >> side) + 1);
                all *= (sides[axis] >> precinct[axis]).max(1);
            }
            blocks = blocks.saturating_add(one.saturating_mul(if resolution > 0 { 3 } else { 1 }));
            packets = packets.saturating_add(all);
        }
        // Every tile has a block in each band.
        let least = of.tiles.saturating_mul(3 * u64::from(self.levels) + 1);
        let blocks = blocks.saturating_add(least).saturating_mul(of.components);
        (blocks, packets.saturating_mul(of.layers).saturating_mul(of.components))
    }
}

/// Returns `true` for a segment that does not decide on memory and may be in any header.
fn is_skipped(marker: u16, mut segment: Bytes<'_>) -> Result<bool, String> {
    match marker {
        COM | POC => {}
        RGN => {
            segment.take(3)?;
            segment.end(RGN)?;
        }
        QCD | QCC => {
            if marker == QCC {
                segment.byte()?;
            }
            match segment.byte()? & 31 {
                0 => {}
                1 => {
                    segment.short()?;
                    segment.end(marker)?;
                }
                _ if segment.0.len().is_multiple_of(2) => {}
                _ => return Err(format!("a segment {marker:#x} is longer than its contents")),
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The number of parts of tiles, which follow the marker of the first one.
fn parts(mut bytes: Bytes<'_>) -> Result<u64, String> {
    let mut count = 0;
    loop {
        let begin = bytes;
        let mut segment = bytes.segment()?;
        segment.short()?; // number of the tile
        let length = segment.long()? as usize;
        segment.short()?;
        segment.end(SOT)?;
        loop {
            let marker = bytes.short()?;
            if marker == SOD {
                break;
            }
            let segment = bytes.segment()?;
            match marker {
                PLT | PPT => {}
                COD | COC => return Err("tiles with codings of their own are not supported".into()),
                _ if is_skipped(marker, segment)? => {}
                _ => return Err(format!("a segment {marker:#x} is out of place or unknown")),
            }
        }
        count += 1;
        // The length counts the marker; 0 is all up to the end mark.
        let header = begin.0.len() - bytes.0.len() + 2;
        let data = match length {
            0 => bytes.0.len().saturating_sub(2),
            length => length.checked_sub(header).ok_or("a part of a tile is shorter than its header")?,
        };
        bytes.take(data)?;
        match bytes.short()? {
            SOT => {}
            EOC => return Ok(count),
            other => return Err(format!("{other:#x} follows a part of a tile")),
        }
    }
}

/// The only code stream in the boxes of a file.
fn code_stream(file: &[u8]) -> Result<&[u8], String> {
    let (mut bytes, mut found) = (Bytes(file), None);
    while !bytes.0.is_empty() {
        let (short, name) = (bytes.long()?, bytes.take(4)?);
        let length = match short {
            0 => bytes.0.len() as u64,
            1 => bytes.number(8)?.checked_sub(16).ok_or("a box is shorter than its header")?,
            short => short.checked_sub(8).ok_or("a box is shorter than its header")?,
        };
        let contents = bytes.take(usize::try_from(length).map_err(|_| truncated())?)?;
        if name.0 == b"jp2c" && found.replace(contents.0).is_some() {
            return Err("it has several code streams".into());
        }
    }
    let found = found.ok_or("it has no code stream")?;
    if found.starts_with(CODE_STREAM) { Ok(found) } else { Err("its code stream has no signature".into()) }
}
