//! Windows bitmaps, as OS/2 and Windows write them: with a palette, bit fields, or run lengths.

use crate::target::Sink;
use crate::{
    Alpha, ByteReader, Decode, Decoder, Encoder, FormatProperties, Metadata, OpenOptions, PictureFormat, PictureHeader,
    PictureSource, cause, truncated,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// BMP files.
pub(super) struct Bmp;

impl PictureFormat for Bmp {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "bmp",
            title: "BMP",
            magic: &[b"BM"],
            types: &[DType::U8],
            channels: &[1, 3, 4],
            alpha: Some(&[4]),
            alpha_kind: Some(Alpha::Unassociated),
            side: u16::MAX as usize,
            ..FormatProperties::PLAIN
        }
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        let (header, bitmap) = Bitmap::of(bytes)?;
        Ok((header, Box::new(bitmap)))
    }

    fn header(&self, source: &PictureSource<'_>, _: &OpenOptions) -> Result<PictureHeader, String> {
        Ok(Bitmap::of(source.head())?.0)
    }

    fn metadata(&self, _: &PictureSource<'_>, _: &OpenOptions, channels: usize) -> Metadata {
        Metadata { alpha: (channels == 4).then_some(Alpha::Unassociated), ..Metadata::default() }
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, _: &Workers) -> Result<(), String> {
        write(to, file.pixels[0].as_slice(), file.draft.shape)
    }

    fn fits(&self, shape: Shape) -> bool {
        // Sizes have 32 bits.
        shape.len() < u32::MAX as usize - (1 << 20)
    }
}

/// Lengths of the headers of the file and of the picture: OS/2, Windows, and Windows with bit fields and colour space.
const FILE: u32 = 14;
const CORE: u32 = 12;
const INFO: u32 = 40;
const V4: u32 = 108;

/// Codings with bit fields in the file, and with the default ones.
const FIELDS: u32 = 3;

/// The pixels of a bitmap.
struct Bitmap<'a> {
    rest: ByteReader<'a>,
    width: usize,
    channels: usize,
    top_down: bool,
    coding: BmpCoding,
}

enum BmpCoding {
    /// Bits of an index into the palette.
    Palette(usize, Palette),
    /// Run lengths of indices of 4 or 8 bits.
    Runs(usize, Palette),
    /// Blue, green, red.
    Bytes,
    /// Bit fields of 2 or 4 bytes: red, green, blue, and alpha if there is any.
    Fields(usize, [BitField; 4]),
}

type Palette = [[u8; 3]; 256];

/// Contiguous bits of a pixel.
#[derive(Clone, Copy)]
struct BitField {
    shift: u32,
    most: u32,
}

impl BitField {
    /// The field of a mask in pixels of `bits` bits.
    fn of(mask: u32, bits: u32) -> Result<BitField, String> {
        let shift = mask.trailing_zeros() % 32;
        let length = mask.count_ones();
        if (mask >> shift).trailing_ones() != length {
            return Err(format!("the bits of its mask {mask:#x} are not contiguous"));
        }
        if mask != 0 && shift + length > bits {
            return Err(format!("its mask {mask:#x} exceeds its pixels of {bits} bits"));
        }
        // The high bits of a field with more bits than a byte.
        Ok(BitField { shift: shift + length.saturating_sub(8), most: (1 << length.min(8)) - 1 })
    }

    /// The value of the field in a pixel, scaled to a byte and rounded.
    fn of_pixel(self, pixel: u32) -> u8 {
        let value = pixel >> self.shift & self.most;
        ((2 * 255 * value + self.most) / (2 * self.most.max(1))) as u8
    }
}

impl<'a> Bitmap<'a> {
    /// Reads the header and the palette, which are in the first kilobytes.
    fn of(file: &'a [u8]) -> Result<(PictureHeader, Bitmap<'a>), String> {
        let mut bytes = ByteReader(file);
        if bytes.take(2)? != b"BM" {
            return Err("it has no signature".into());
        }
        bytes.take(8)?; // length
        let at = bytes.u32()?;
        let length = bytes.u32()?;
        if ![CORE, INFO, 52, 56, V4, 124].contains(&length) {
            return Err(format!("its header of {length} bytes is unknown"));
        }
        let core = length == CORE;
        let (width, height) = if core {
            (i32::from(bytes.u16()?), i32::from(bytes.u16()?))
        } else {
            (bytes.u32()?.cast_signed(), bytes.u32()?.cast_signed())
        };
        let most = i32::from(u16::MAX);
        if !(1..=most).contains(&width) || height > most || height == i32::MIN || height == 0 {
            return Err(format!("it declares {width}x{height} pixels, not 1 to {most} rows and columns"));
        }
        if bytes.u16()? != 1 {
            return Err("it has more than one plane".into());
        }
        let bits = u32::from(bytes.u16()?);
        let compression = if core { 0 } else { bytes.u32()? };
        let mut used = 0;
        if !core {
            bytes.take(12)?; // length, resolution
            used = bytes.u32()?;
            bytes.u32()?; // important colours
        }
        let top_down = height < 0;
        if top_down && compression != 0 && compression != FIELDS {
            return Err(format!("a bitmap from top to bottom has no compression {compression}"));
        }
        let palette = |bytes: &[u8]| {
            let size = 1 << bits;
            if used > size {
                return Err(format!("its palette has {used} colours, for pixels of {bits} bits"));
            }
            let mut palette = [[0; 3]; 256];
            let colours = if used == 0 { size } else { used } as usize;
            let each = if core { 3 } else { 4 };
            let stored = bytes.get((FILE + length) as usize..).and_then(|rest| rest.get(..colours * each));
            for (to, from) in palette.iter_mut().zip(stored.ok_or_else(truncated)?.chunks_exact(each)) {
                *to = [from[2], from[1], from[0]];
            }
            Ok(palette)
        };
        let fields = |masks: [u32; 4]| {
            let [red, green, blue, alpha] = masks.map(|mask| BitField::of(mask, bits));
            Ok::<_, String>(BmpCoding::Fields(bits as usize / 8, [red?, green?, blue?, alpha?]))
        };
        let mut has_alpha = false;
        let coding = match (compression, bits) {
            (0, 1 | 4 | 8) => BmpCoding::Palette(bits as usize, palette(file)?),
            (0, 2) if !core => BmpCoding::Palette(2, palette(file)?),
            (0, 24) => BmpCoding::Bytes,
            (0, 16) if !core => fields([0x7c00, 0x3e0, 0x1f, 0])?,
            (0, 32) if !core => fields([0xff_0000, 0xff00, 0xff, 0])?,
            (1, 8) | (2, 4) => BmpCoding::Runs(bits as usize, palette(file)?),
            (FIELDS, 16 | 32) => {
                let colours = [bytes.u32()?, bytes.u32()?, bytes.u32()?];
                // The older headers have no alpha.
                let alpha = if length > 52 { bytes.u32()? } else { 0 };
                if colours.contains(&0) {
                    return Err("it has no mask for one of its colours".into());
                }
                has_alpha = alpha != 0;
                fields([colours[0], colours[1], colours[2], alpha])?
            }
            _ => return Err(format!("pixels of {bits} bits with compression {compression} are not supported")),
        };
        let (rows, channels) = (height.unsigned_abs(), if has_alpha { 4 } else { 3 });
        let header = PictureHeader::new(width.unsigned_abs(), rows, channels, DType::U8)?;
        let rest = ByteReader(file.get(at as usize..).unwrap_or_default());
        Ok((header, Bitmap { rest, width: header.shape.width, channels, top_down, coding }))
    }
}

impl Decode for Bitmap<'_> {
    fn most(&self, _: u64, bytes: u64) -> u64 {
        // Two bytes repeat a pixel up to 255 times. (Pixels can also be skipped; no more than these are accepted.)
        if matches!(self.coding, BmpCoding::Runs(..)) { 128 * bytes } else { 8 * bytes }
    }

    fn read(mut self: Box<Self>, _: &PictureHeader, to: &mut [u8], _: &Workers) -> Result<(), String> {
        let (width, channels) = (self.width, self.channels);
        let bits = match &self.coding {
            BmpCoding::Runs(bits, palette) => return runs(self.rest, *bits, palette, width, to),
            BmpCoding::Palette(bits, _) => *bits,
            BmpCoding::Bytes => 24,
            BmpCoding::Fields(bytes, _) => 8 * bytes,
        };
        // Rows are whole words.
        let length = (bits * width).div_ceil(32) * 4;
        let rows = to.len() / (width * channels);
        for y in 0..rows {
            let y = if self.top_down { y } else { rows - 1 - y };
            let to = &mut to[y * width * channels..][..width * channels];
            let row = self.rest.take(length)?;
            match &self.coding {
                BmpCoding::Palette(bits, palette) => {
                    for (x, to) in to.chunks_exact_mut(3).enumerate() {
                        to.copy_from_slice(&palette[index(row, x, *bits)]);
                    }
                }
                BmpCoding::Fields(bytes, fields) => {
                    for (to, from) in to.chunks_exact_mut(channels).zip(row.chunks_exact(*bytes)) {
                        let pixel = from.iter().rev().fold(0, |pixel, byte| pixel << 8 | u32::from(*byte));
                        to.iter_mut().zip(fields).for_each(|(to, field)| *to = field.of_pixel(pixel));
                    }
                }
                _ => to
                    .as_chunks_mut()
                    .0
                    .iter_mut()
                    .zip(row.as_chunks().0)
                    .for_each(|(to, [b, g, r])| *to = [*r, *g, *b]),
            }
        }
        Ok(())
    }
}

/// The index at `x`; the first index is in the high bits of a byte.
fn index(row: &[u8], x: usize, bits: usize) -> usize {
    let bit = x * bits;
    usize::from(row[bit / 8]) >> (8 - bits - bit % 8) & ((1 << bits) - 1)
}

/// Decodes run lengths. Skipped pixels are black.
fn runs(mut bytes: ByteReader<'_>, bits: usize, palette: &Palette, width: usize, to: &mut [u8]) -> Result<(), String> {
    const END_OF_ROW: u8 = 0;
    const END: u8 = 1;
    const SKIP: u8 = 2;
    let corrupt = || "its run lengths exceed its rows".to_owned();
    to.fill(0);
    let rows = to.len() / (width * 3);
    // Rows are counted from the bottom.
    let (mut x, mut y) = (0, 0);
    let mut put = |y: usize, x: usize, n: usize, row: &[u8]| {
        let to = &mut to[((rows - 1 - y) * width + x) * 3..][..n * 3];
        to.chunks_exact_mut(3).enumerate().for_each(|(i, to)| to.copy_from_slice(&palette[index(row, i, bits)]));
    };
    while y < rows {
        match (bytes.u8()?, bytes.u8()?) {
            (0, END_OF_ROW) => (x, y) = (0, y + 1),
            (0, END) => return Ok(()),
            (0, SKIP) => {
                let (right, up) = (usize::from(bytes.u8()?), usize::from(bytes.u8()?));
                let from = if up == 0 { x.min(width) } else { x };
                y += up;
                if y >= rows || from + right > width {
                    return Err(corrupt());
                }
                x += right;
            }
            (0, n) => {
                let n = usize::from(n);
                let row = bytes.take((n * bits).div_ceil(8).next_multiple_of(2))?;
                if x + n > width {
                    return Err(corrupt());
                }
                put(y, x, n, row);
                x += n;
            }
            (n, value) => {
                let mut n = usize::from(n);
                let end = x + n;
                // Some programs write longer runs of bytes than a row has left.
                if bits == 8 {
                    n = n.min(width.saturating_sub(x));
                } else if end > width {
                    return Err(corrupt());
                }
                if n > 0 {
                    put(y, x, n, &[value; 255]);
                }
                x = end;
            }
        }
    }
    Ok(())
}

/// Writes interleaved bytes of 1, 3 or 4 channels: indices of a grey palette, colours, or colours with alpha.
fn write(to: &mut dyn Sink, pixels: &[u8], shape: Shape) -> Result<(), String> {
    let Shape { height, width, channels, .. } = shape;
    let (length, colours) = match channels {
        1 => (INFO, 256),
        3 => (INFO, 0),
        _ => (V4, 0),
    };
    let row = (width * channels).next_multiple_of(4);
    let exceeds = |_| format!("{width}x{height} pixels exceed the limit of the format");
    let size = u32::try_from(row * height).map_err(exceeds)?;
    let at = FILE + length + 4 * colours;
    let total = u32::try_from(u64::from(at) + u64::from(size)).map_err(exceeds)?;
    let side = |n: usize| u32::try_from(n).map_err(exceeds);
    let mut header = b"BM".to_vec();
    let depth = 1 | (8 * channels as u32) << 16; // planes, bits
    let compression = if length == V4 { FIELDS } else { 0 };
    for word in [total, 0, at, length, side(width)?, side(height)?, depth, compression, size, 0, 0, colours, 0] {
        header.extend(word.to_le_bytes());
    }
    if length == V4 {
        const SRGB: u32 = 0x7352_4742;
        // Without end points and gamma.
        for word in [0xff_0000, 0xff00, 0xff, 0xff00_0000, SRGB].into_iter().chain([0; 12]) {
            header.extend(word.to_le_bytes());
        }
    }
    header.extend((0..colours).flat_map(|grey| [grey as u8, grey as u8, grey as u8, 0]));
    to.write_all(&header).map_err(cause)?;
    let mut line = vec![0; row];
    for from in pixels.chunks_exact(width * channels).rev() {
        line[..from.len()].copy_from_slice(from);
        if channels > 1 {
            line[..from.len()].chunks_exact_mut(channels).for_each(|pixel| pixel.swap(0, 2));
        }
        to.write_all(&line).map_err(cause)?;
    }
    Ok(())
}
