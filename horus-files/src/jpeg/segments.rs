//! The segments of JPEG files, and their metadata.

use std::borrow::Cow;

use crate::exif::IN_JPEG;
use crate::{PictureSource, StoredOrientation, zeros};

const APP0: u8 = 0xe0;
const APP1: u8 = 0xe1;
const APP2: u8 = 0xe2;
const COMMENT: u8 = 0xfe;
const SCAN: u8 = 0xda;
const JFIF: &[u8] = b"JFIF\0";
/// Prefix of a part of a colour profile in a JPEG file; its number and the number of parts follow.
const PROFILE: &[u8] = b"ICC_PROFILE\0";

/// The segments of a JPEG file before its pixels: their markers and bodies.
fn segments(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let bounded = |(marker, body): (u8, _)| {
        let rest: &[u8] = body;
        // The length, which counts itself, comes before.
        let length = bytes[..bytes.len() - rest.len()].last_chunk().map_or(0, |two| u16::from_be_bytes(*two));
        (marker, rest.get(..usize::from(length).saturating_sub(2)).unwrap_or(rest))
    };
    markers(bytes).take_while(|(marker, _)| *marker != SCAN).map(bounded)
}

/// The segments of an open JPEG file before its pixels, or of the whole file if it has none.
pub(super) fn head<'a>(source: &'a PictureSource<'_>) -> Option<Cow<'a, [u8]>> {
    let mut head = Cow::Borrowed(source.head());
    // Reads the beginning of the file, each time twice as much.
    while !markers(&head).any(|(marker, _)| marker == SCAN) && (head.len() as u64) < source.size() {
        let length = usize::try_from(source.size().min(2 * head.len() as u64)).ok()?;
        let mut longer = zeros(length).ok()?;
        source.read_at(0, &mut longer).ok()?;
        head = longer.into();
    }
    Some(head)
}

/// The EXIF data of a JPEG file.
pub(super) fn exif(bytes: &[u8]) -> Option<&[u8]> {
    segments(bytes).find_map(|(marker, body)| body.strip_prefix(IN_JPEG).filter(|_| marker == APP1))
}

/// The orientation of a JPEG file.
pub(super) fn turned(bytes: &[u8]) -> StoredOrientation {
    exif(bytes).and_then(StoredOrientation::of_exif).unwrap_or_default()
}

/// The comments of a JPEG file.
pub(super) fn comments(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    segments(bytes).filter(|(marker, _)| *marker == COMMENT).map(|(_, body)| body)
}

/// Pixels per unit, columns and rows, of a JPEG file, and the number of the unit as in TIFF files.
pub(super) fn density(bytes: &[u8]) -> Option<([f64; 2], u16)> {
    let told = |(marker, body): (u8, &[u8])| {
        // After the version.
        let [unit, a, b, c, d] = *body.strip_prefix(JFIF).filter(|_| marker == APP0)?.get(2..)?.first_chunk()?;
        let unit = [2, 3].get(usize::from(unit).checked_sub(1)?)?;
        Some(([[a, b], [c, d]].map(|n| f64::from(u16::from_be_bytes(n))), *unit))
    };
    segments(bytes).find_map(told)
}

/// The colour profile of a JPEG file, if it is complete.
pub(super) fn profile(bytes: &[u8]) -> Option<Vec<u8>> {
    let part = |(marker, body): (u8, &'_ [u8])| {
        let (head, part) = body.strip_prefix(PROFILE)?.split_first_chunk::<2>()?;
        (marker == APP2).then(|| (*head, part.to_vec()))
    };
    let mut parts: Vec<([u8; 2], Vec<u8>)> = segments(bytes).filter_map(part).collect();
    parts.sort_by_key(|([number, _], _)| *number);
    let count = parts.len();
    let whole = parts.iter().enumerate().all(|(i, (head, _))| head.map(usize::from) == [i + 1, count]);
    (count > 0 && whole).then(|| parts.into_iter().flat_map(|(_, part)| part).collect())
}

/// The markers of JPEG data, with the bytes after each.
pub(super) fn markers(jpeg: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    const STUFFING: u8 = 0x00;
    const TEMPORARY: u8 = 0x01;
    const RESTART: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
    const START_OF_IMAGE: u8 = 0xd8;
    let mut at = 0;
    // Goes from marker to marker, over segments with a length and over coded pixels, whose only markers are restarts.
    std::iter::from_fn(move || {
        while let Some(&[first, marker]) = jpeg.get(at..).and_then(|rest| rest.first_chunk()) {
            match (first, marker) {
                (0xff, STUFFING | TEMPORARY | START_OF_IMAGE) => at += 2,
                (0xff, m) if RESTART.contains(&m) => at += 2,
                // A marker may be preceded by any number of these bytes.
                (0xff, 0xff) => at += 1,
                (0xff, END_OF_IMAGE) => {
                    at += 2;
                    return Some((END_OF_IMAGE, &[][..]));
                }
                (0xff, marker) => {
                    let length = jpeg.get(at + 2..).and_then(|rest| rest.first_chunk());
                    let body = jpeg.get(at + 4..).unwrap_or_default();
                    // Nothing follows a marker without a length.
                    at = length.map_or(jpeg.len(), |l| at + 2 + usize::from(u16::from_be_bytes(*l)));
                    return Some((marker, body));
                }
                _ => at += 1,
            }
        }
        None
    })
}

const END_OF_IMAGE: u8 = 0xd9;

/// Returns `true` if JPEG data has an end marker after the pixels. (The decoder fills missing pixels with grey.)
pub(super) fn has_end_marker(jpeg: &[u8]) -> bool {
    const START_OF_SCAN: u8 = 0xda;
    let mut scanned = false;
    for (marker, _) in markers(jpeg) {
        match marker {
            END_OF_IMAGE => return scanned,
            START_OF_SCAN => scanned = true,
            _ => {}
        }
    }
    false
}

/// Maximum pixels declared by a frame of these JPEG data.
pub(crate) fn frame_pixels(jpeg: &[u8]) -> u64 {
    // Excludes tables, extensions and conditioning, which are numbered among the frames.
    let frame = |marker: u8| (0xc0..=0xcf).contains(&marker) && ![0xc4, 0xc8, 0xcc].contains(&marker);
    let side = |two: &[u8]| two.first_chunk().map_or(0, |b| u64::from(u16::from_be_bytes(*b)));
    // Bits per sample, height, width.
    let pixels = |body: &[u8]| body.get(1..5).map_or(0, |sides| side(sides) * side(&sides[2..]));
    markers(jpeg).filter(|(marker, _)| frame(*marker)).map(|(_, body)| pixels(body)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_behind_other_segments() {
        let jpeg = [
            &[0xff, 0xd8, 0xff, 0xe1, 0, 4, 0xff, 0xc0][..],
            &[0xff, 0xc4, 0, 7, 8, 255, 255, 255, 255],
            &[0xff, 0xc2, 0, 7, 8, 1, 0, 0, 3],
            &[0xff, 0xd9],
        ];
        assert_eq!(frame_pixels(&jpeg.concat()), 256 * 3);
        assert_eq!(frame_pixels(&[0xff, 0xd8, 0xff, 0xc0]), 0);
    }
}
