//! PNM files whose samples are converted: plain text, bitmaps, other maximum values, and PAM.

use super::number;
use crate::{Decode, PictureHeader, native, truncated};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// The samples of a PNM file.
pub(super) struct PnmSamples<'a> {
    pub(super) shape: Shape,
    rest: &'a [u8],
    most: u32,
    coding: PnmCoding,
}

#[derive(Clone, Copy, PartialEq)]
enum PnmCoding {
    /// Rows of bits; 1 is black.
    Bits,
    /// Digits 0 and 1; 1 is black.
    TextBits,
    Text,
    Binary,
    /// Bytes 0 and 1; 1 is white.
    Flags,
}

impl<'a> PnmSamples<'a> {
    /// Reads the header.
    pub(super) fn of(bytes: &'a [u8]) -> Result<PnmSamples<'a>, String> {
        let mut at = 2;
        let (coding, channels) = match bytes.first_chunk() {
            Some(b"P1") => (PnmCoding::TextBits, 1),
            Some(b"P2") => (PnmCoding::Text, 1),
            Some(b"P3") => (PnmCoding::Text, 3),
            Some(b"P4") => (PnmCoding::Bits, 1),
            Some(b"P5") => (PnmCoding::Binary, 1),
            Some(b"P6") => (PnmCoding::Binary, 3),
            _ => return PnmSamples::of_any(bytes),
        };
        let mut next = || number(bytes, &mut at).ok_or("its header is broken");
        let (width, height) = (next()?, next()?);
        let most = if matches!(coding, PnmCoding::Bits | PnmCoding::TextBits) { 1 } else { next()? };
        PnmSamples::new(width, height, channels, most, coding, &bytes[at..])
    }

    fn new(
        width: u32,
        height: u32,
        channels: usize,
        most: u32,
        coding: PnmCoding,
        rest: &'a [u8],
    ) -> Result<PnmSamples<'a>, String> {
        if !(1..=0xffff).contains(&most) {
            return Err(format!("its maximum value is {most}, not 1 to 65535"));
        }
        let shape = Shape::new(height as usize, width as usize, channels);
        Ok(PnmSamples { shape, rest, most, coding })
    }

    /// The type of pixels.
    pub(super) fn dtype(&self) -> DType {
        if self.most > u8::MAX.into() { DType::U16 } else { DType::U8 }
    }

    /// The offset of samples that require at most a byte swap, in a PGM or PPM file that begins with these bytes.
    pub(super) fn offset(&self, head: &[u8]) -> Option<u64> {
        let whole = self.coding == PnmCoding::Binary && matches!(self.most, 255 | 65535) && !self.shape.is_empty();
        (whole && !head.starts_with(b"P7")).then(|| (head.len() - self.rest.len()) as u64)
    }

    /// Reads the header of a PAM file: lines of a name and a value.
    fn of_any(bytes: &'a [u8]) -> Result<PnmSamples<'a>, String> {
        let mut rest = bytes.strip_prefix(b"P7\n").ok_or("its header is broken")?;
        let mut numbers = [None; 4];
        let mut kind: Option<String> = None;
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(truncated)?;
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if line.starts_with(b"#") {
                continue;
            }
            let line = str::from_utf8(line).map_err(|e| e.to_string())?;
            let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let place = match name {
                "ENDHDR" => break,
                "WIDTH" => 0,
                "HEIGHT" => 1,
                "DEPTH" => 2,
                "MAXVAL" => 3,
                // Several lines are parts of one value.
                "TUPLTYPE" => {
                    kind = Some(kind.map_or(value.trim().to_owned(), |first| format!("{first} {}", value.trim())));
                    continue;
                }
                _ => return Err(format!("the line {line:?} of its header is unknown")),
            };
            let value: u32 = value.trim().parse().map_err(|e| format!("{name} of its header: {e}"))?;
            if numbers[place].replace(value).is_some() {
                return Err(format!("its header has {name} twice"));
            }
        }
        let [Some(width), Some(height), Some(channels), Some(most)] = numbers else {
            return Err("its header lacks WIDTH, HEIGHT, DEPTH or MAXVAL".into());
        };
        let coding = match (kind.as_deref(), channels, most) {
            (Some("BLACKANDWHITE"), 1, 1) | (Some("BLACKANDWHITE_ALPHA"), 2, 1) => PnmCoding::Flags,
            (None, 1..=4, _) | (Some("GRAYSCALE"), 1, _) | (Some("GRAYSCALE_ALPHA"), 2, _) => PnmCoding::Binary,
            (Some("RGB"), 3, _) | (Some("RGB_ALPHA"), 4, _) => PnmCoding::Binary,
            (kind, ..) => {
                let kind = kind.unwrap_or("without a name");
                return Err(format!("{channels} samples {kind} up to {most} are not supported"));
            }
        };
        PnmSamples::new(width, height, channels as usize, most, coding, rest)
    }
}

impl Decode for PnmSamples<'_> {
    fn most(&self, _: u64, bytes: u64) -> u64 {
        // Only bitmaps have pixels of less than a byte.
        if self.coding == PnmCoding::Bits { 8 * bytes } else { bytes }
    }

    /// Decodes the samples, scaled to the maximum of their type.
    fn read(self: Box<Self>, _: &PictureHeader, to: &mut [u8], _: &Workers) -> Result<(), String> {
        let PnmSamples { shape, rest, most, coding } = *self;
        let wide = most > u8::MAX.into();
        let mut words = rest.split(is_space).filter(|word| !word.is_empty());
        match coding {
            PnmCoding::Bits => {
                let row = shape.width.div_ceil(8);
                let rows = rest.get(..row * shape.height).ok_or_else(truncated)?;
                for (from, to) in rows.chunks_exact(row).zip(to.chunks_exact_mut(shape.width)) {
                    to.iter_mut().enumerate().for_each(|(x, to)| *to = 1 - (from[x / 8] >> (7 - x % 8) & 1));
                }
            }
            PnmCoding::TextBits => {
                let mut digits = rest.iter().filter(|byte| !is_space(byte));
                for to in to.iter_mut() {
                    *to = match digits.next().ok_or_else(truncated)? {
                        b'0' => 1,
                        b'1' => 0,
                        other => return Err(format!("{:?} is neither 0 nor 1", char::from(*other))),
                    };
                }
            }
            PnmCoding::Text if wide => {
                for to in to.as_chunks_mut().0 {
                    *to = sample(words.next())?.to_ne_bytes();
                }
            }
            PnmCoding::Text => {
                for to in to.iter_mut() {
                    *to = u8::try_from(sample(words.next())?).map_err(|e| e.to_string())?;
                }
            }
            PnmCoding::Binary | PnmCoding::Flags => {
                to.copy_from_slice(rest.get(..to.len()).ok_or_else(truncated)?);
                if wide {
                    native(to);
                }
                if coding == PnmCoding::Flags && to.iter().any(|flag| *flag > 1) {
                    return Err("a sample is neither 0 nor 1".into());
                }
            }
        }
        let full: u32 = if wide { u16::MAX.into() } else { u8::MAX.into() };
        if most != full {
            let factor = full as f32 / most as f32;
            if wide {
                for sample in to.as_chunks_mut().0 {
                    *sample = ((f32::from(u16::from_ne_bytes(*sample)) * factor).round() as u16).to_ne_bytes();
                }
            } else {
                to.iter_mut().for_each(|sample| *sample = (f32::from(*sample) * factor).round() as u8);
            }
        }
        Ok(())
    }
}

/// Returns `true` if the header of a PAM file says that the last sample is alpha.
pub(super) fn has_alpha(head: &[u8]) -> bool {
    let lines = head.strip_prefix(b"P7\n").unwrap_or_default().split(|byte| *byte == b'\n');
    let mut kinds = lines.take_while(|line| *line != b"ENDHDR").filter_map(|line| line.strip_prefix(b"TUPLTYPE"));
    kinds.any(|kind| kind.trim_ascii().ends_with(b"_ALPHA"))
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r' | b' ')
}

/// Parses a number that consists only of digits.
fn sample(word: Option<&[u8]>) -> Result<u16, String> {
    word.ok_or_else(truncated)?.iter().try_fold(0u16, |value, byte| match byte {
        b'0'..=b'9' => {
            let next = value.checked_mul(10).and_then(|value| value.checked_add(u16::from(byte - b'0')));
            next.ok_or_else(|| "a sample exceeds 65535".to_owned())
        }
        other => Err(format!("{:?} is no digit", char::from(*other))),
    })
}
