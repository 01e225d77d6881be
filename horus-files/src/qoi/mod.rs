//! Quite OK Image: 8-bit colours, with or without alpha (qoiformat.org).

use crate::{
    Alpha, ByteReader, Decode, Decoder, Encoder, FormatProperties, Metadata, OpenOptions, PictureFormat, PictureHeader,
    PictureSource, Sink, cause,
};
use horus_base::dtype::DType;
use horus_host::workers::Workers;

/// QOI files.
pub(super) struct Qoi;

/// The high bits of a code; the others are its numbers.
const DIFFERENCE: u8 = 0x40;
const LUMA: u8 = 0x80;
const RUN: u8 = 0xc0;
/// Codes of eight bits.
const RGB: u8 = 0xfe;
const RGBA: u8 = 0xff;
/// Pixels of the longest run.
const LONGEST: u8 = 62;
const START: QoiPixel = [0, 0, 0, 255];
const END: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 1];

type QoiPixel = [u8; 4];

impl PictureFormat for Qoi {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "qoi",
            title: "QOI",
            magic: &[b"qoif"],
            types: &[DType::U8],
            channels: &[3, 4],
            alpha: Some(&[4]),
            alpha_kind: Some(Alpha::Unassociated),
            ..FormatProperties::PLAIN
        }
    }

    fn decoder<'a>(&self, bytes: &'a [u8]) -> Result<Decoder<'a>, String> {
        let (head, rest) = bytes.split_first_chunk::<14>().ok_or("its header is incomplete")?;
        let [_, _, _, _, a, b, c, d, e, f, g, h, channels @ (3 | 4), 0 | 1] = *head else {
            return Err(format!("{} channels of colour space {} are not supported", head[12], head[13]));
        };
        let [width, height] = [[a, b, c, d], [e, f, g, h]].map(u32::from_be_bytes);
        Ok((PictureHeader::new(width, height, channels.into(), DType::U8)?, Box::new(QoiDecoder(ByteReader(rest)))))
    }

    fn header(&self, source: &PictureSource<'_>, _: &OpenOptions) -> Result<PictureHeader, String> {
        Ok(self.decoder(source.head())?.0)
    }

    fn metadata(&self, _: &PictureSource<'_>, _: &OpenOptions, channels: usize) -> Metadata {
        Metadata { alpha: (channels == 4).then_some(Alpha::Unassociated), ..Metadata::default() }
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, _: &Workers) -> Result<(), String> {
        let shape = file.draft.shape;
        let [width, height] = [shape.width, shape.height].map(|side| (side as u32).to_be_bytes());
        let head = [&b"qoif"[..], &width, &height, &[shape.channels as u8, 0]].concat();
        to.write_all(&head).map_err(cause)?;
        let mut part = Vec::with_capacity(PART);
        let mut last = QoiEncoder::default();
        for pixels in file.pixels[0].as_slice().chunks(PART / 8 * shape.channels) {
            last.codes(pixels, shape.channels, &mut part);
            to.write_all(&part).map_err(cause)?;
            part.clear();
        }
        last.end(&mut part);
        to.write_all(&part).map_err(cause)?;
        to.write_all(&END).map_err(cause)
    }
}

/// The index of a pixel in the table of seen pixels.
fn place([r, g, b, a]: QoiPixel) -> usize {
    let sum = [(r, 3u8), (g, 5), (b, 7), (a, 11)].map(|(v, factor)| v.wrapping_mul(factor));
    usize::from(sum.into_iter().fold(0, u8::wrapping_add) % 64)
}

/// The codes of pixels.
struct QoiDecoder<'a>(ByteReader<'a>);

impl Decode for QoiDecoder<'_> {
    fn most(&self, _: u64, bytes: u64) -> u64 {
        bytes.saturating_mul(LONGEST.into())
    }

    fn read(mut self: Box<Self>, header: &PictureHeader, to: &mut [u8], _: &Workers) -> Result<(), String> {
        let (mut pixel, mut seen, mut run) = (START, [[0; 4]; 64], 0);
        for to in to.chunks_exact_mut(header.shape.channels) {
            if run > 0 {
                run -= 1;
            } else {
                let code = self.0.u8()?;
                let low = code & 63;
                match (code, code & 0xc0) {
                    (RGB, _) => pixel[..3].copy_from_slice(self.0.take(3)?),
                    (RGBA, _) => pixel.copy_from_slice(self.0.take(4)?),
                    (_, RUN) => run = low,
                    (_, DIFFERENCE) => {
                        let each = pixel.iter_mut().zip([low >> 4, low >> 2 & 3, low & 3]);
                        each.for_each(|(v, more)| *v = v.wrapping_add(more).wrapping_sub(2));
                    }
                    (_, LUMA) => {
                        let (others, green) = (self.0.u8()?, low.wrapping_sub(32));
                        let each = pixel.iter_mut().zip([others >> 4, 8, others & 15]);
                        each.for_each(|(v, more)| *v = v.wrapping_add(green).wrapping_add(more).wrapping_sub(8));
                    }
                    _ => pixel = seen[usize::from(low)],
                }
                seen[place(pixel)] = pixel;
            }
            to.copy_from_slice(&pixel[..to.len()]);
        }
        Ok(())
    }
}

/// Bytes of codes that are written at once.
const PART: usize = 1 << 16;

/// State of the encoder: the previous pixel, seen pixels, and the length of the run.
struct QoiEncoder {
    pixel: QoiPixel,
    seen: [QoiPixel; 64],
    run: u8,
}

impl Default for QoiEncoder {
    fn default() -> QoiEncoder {
        QoiEncoder { pixel: START, seen: [[0; 4]; 64], run: 0 }
    }
}

impl QoiEncoder {
    /// Adds the codes of the next pixels.
    fn codes(&mut self, pixels: &[u8], channels: usize, to: &mut Vec<u8>) {
        for from in pixels.chunks_exact(channels) {
            let mut pixel = START;
            pixel[..channels].copy_from_slice(from);
            if pixel == self.pixel && self.run < LONGEST {
                self.run += 1;
                continue;
            }
            self.end(to);
            if pixel == self.pixel {
                self.run = 1;
                continue;
            }
            let at = place(pixel);
            let [r, g, b, _] = std::array::from_fn(|c| pixel[c].wrapping_sub(self.pixel[c]));
            let small = [r, g, b].map(|difference| difference.wrapping_add(2));
            let beside = [r, b].map(|difference| difference.wrapping_sub(g).wrapping_add(8));
            let green = g.wrapping_add(32);
            if self.seen[at] == pixel {
                to.push(at as u8);
            } else if pixel[3] != self.pixel[3] {
                to.push(RGBA);
                to.extend(pixel);
            } else if small.iter().all(|v| *v < 4) {
                to.push(DIFFERENCE | small[0] << 4 | small[1] << 2 | small[2]);
            } else if green < 64 && beside.iter().all(|v| *v < 16) {
                to.extend([LUMA | green, beside[0] << 4 | beside[1]]);
            } else {
                to.push(RGB);
                to.extend(&pixel[..3]);
            }
            (self.seen[at], self.pixel) = (pixel, pixel);
        }
    }

    /// Ends a run, if there is one.
    fn end(&mut self, to: &mut Vec<u8>) {
        if self.run > 0 {
            to.push(RUN | (self.run - 1));
            self.run = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{FileSpec, Format, OpenOptions, Picture, SaveOptions};
    use horus_base::shape::Shape;

    /// Files of 8x6 pixels, by Pillow 13.0.
    const THEIRS: [(usize, &str); 2] = [
        (
            3,
            "716f696600000008000000060301a988c6fe0a141ea276a276a276a276a276a276a276fe285078aa7aaa7aaa7aaa7aaa7aaa7aaa7afe788838fe9de345fec23e52fee7995ffe0cf46cfe314f79fe56aa86fe7b0593fe0a141e16233009162330fec800d0fec80002fec80034fec80066fec80098fec800cafec800fcfec8002e0000000000000001",
        ),
        (
            4,
            "716f696600000008000000060401a988c6fe0a141ea276a276a276a276a276a276a276fe285078aa7aaa7aaa7aaa7aaa7aaa7aaa7afe788838fe9de345fec23e52fee7995ffe0cf46cfe314f79fe56aa86fe7b0593fe0a141e16233009162330ffc800d08cffc800028dffc800348effc800668fffc8009890ffc800ca91ffc800fc92ffc8002e930000000000000001",
        ),
    ];

    /// Runs, small and large differences, earlier colours, and alpha.
    fn picture(channels: usize) -> Vec<u8> {
        let pixel = |i: usize| {
            let k = i % 8;
            let colour = match i / 8 {
                0 => [9, 9, 9],
                1 => [10 + k, 20 + 2 * k, 30],
                2 => [40 + 9 * k, 80 + 10 * k, 120 + 12 * k],
                3 => [37 * i, 91 * i, 13 * i],
                4 => [10 + i % 4, 20 + i % 4 * 2, 30],
                _ => [200, 0, 50 * i],
            };
            [colour[0] as u8, colour[1] as u8, colour[2] as u8, if i < 40 { 255 } else { 100 + i as u8 }]
        };
        (0..48).flat_map(|i| pixel(i).into_iter().take(channels)).collect()
    }

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digit = |c: &u8| char::from(*c).to_digit(16).unwrap() as u8;
        hexadecimal.as_bytes().as_chunks::<2>().0.iter().map(|[a, b]| digit(a) << 4 | digit(b)).collect()
    }

    #[test]
    fn files_are_those_of_another_program() {
        for (channels, theirs) in THEIRS {
            let (shape, theirs) = (Shape::new(6, 8, channels), bytes(theirs));
            let read = Picture::read(&theirs, &OpenOptions::default()).unwrap();
            assert_eq!((read.shape(), read.metadata().alpha.is_some()), (shape, channels == 4));
            let pixels = read.into_pixels();
            assert_eq!(pixels.bytes(), picture(channels));
            let draft = FileSpec::new(Format::Qoi, DType::U8, shape, &SaveOptions::default()).unwrap();
            let mut ours = std::io::Cursor::new(Vec::new());
            draft.encoder(vec![Arc::new(pixels)]).write(&mut ours, &Workers::alone()).unwrap();
            let mut ours = ours.into_inner();
            // Their header declares linear colours.
            ours[13] = theirs[13];
            assert_eq!(ours, theirs);
            let cut = |n: usize| Picture::read(&theirs[..n], &OpenOptions::default());
            assert!((0..theirs.len() - END.len()).all(|n| cut(n).is_err()));
        }
    }

    #[test]
    fn runs_of_any_length_are_read_again() {
        for n in [1, 61, 62, 63, 124, 125, 200] {
            let pixels = [&[7, 8, 9].repeat(n)[..], &[7, 8, 10], &[0, 0, 0].repeat(n)].concat();
            let header = PictureHeader::new(2 * n as u32 + 1, 1, 3, DType::U8).unwrap();
            let (mut last, mut codes, mut read) = (QoiEncoder::default(), Vec::new(), vec![0; pixels.len()]);
            pixels.chunks(9).for_each(|part| last.codes(part, 3, &mut codes));
            last.end(&mut codes);
            Box::new(QoiDecoder(ByteReader(&codes))).read(&header, &mut read, &Workers::alone()).unwrap();
            assert_eq!(read, pixels, "{n}");
        }
    }
}
