//! Upper limits of the pixels in a file of a given size: a file that declares more is corrupt, or
//! made to exhaust memory.

use exr::compression::Compression;

use super::OpenOptions;
use horus_base::error::Audience;

/// Maximum bytes of a file, and of its decoded pixels: enough for large scans, but not for any
/// claim of a header.
pub(super) const MEMORY_LIMIT: u64 = 8 << 30;

/// Maximum bytes that a byte of deflated data encodes: two bits, the shortest codes of a length and
/// a distance, repeat 258 bytes.
pub(super) const DEFLATE: u64 = 1032;

/// Maximum pixels that a byte of JPEG data encodes. A block has 64 pixels of the largest component.
/// In sequential files it takes two bits, a code for its mean and one for the end of the block; in
/// progressive ones a bit, as the ends of 32767 blocks are one code.
pub(super) const JPEG: u64 = 512;

/// Rejects pictures larger than the user allows.
pub(super) fn check_size(height: u64, width: u64, options: &OpenOptions) -> Result<(), String> {
    let most = options.max_pixels;
    if height.checked_mul(width).is_none_or(|pixels| pixels > most) {
        let limit = Audience::now().told("OpenOptions::max_pixels", "--max-pixels", "max_pixels=");
        return Err(format!("{width}x{height} pixels exceed the limit of {most} ({limit})"));
    }
    Ok(())
}

/// Rejects files that declare more than their bytes can hold: `most` pixels, `None` for no limit.
pub(super) fn check_capacity(height: u64, width: u64, most: Option<u64>, size: u64) -> Result<(), String> {
    let claimed = height.checked_mul(width);
    if most.is_some_and(|most| claimed.is_none_or(|pixels| pixels > most)) {
        return Err(format!("the file declares {width}x{height} pixels, more than its {size} bytes can hold"));
    }
    Ok(())
}

/// Maximum pixels of a PNG file of this width.
pub(super) fn png(bytes: &[u8], width: u64) -> Option<u64> {
    // After signature and chunk header: width, height, bits per sample, colour type.
    const BITS: usize = 24;
    const COLOUR: usize = 25;
    let samples = match bytes.get(COLOUR)? {
        2 => 3,
        4 => 2,
        6 => 4,
        _ => 1,
    };
    let bits = u64::from(*bytes.get(BITS)?) * samples;
    // Each row begins with the number of its filter.
    let row = width.checked_mul(bits)?.div_ceil(8) + 1;
    let rows = (bytes.len() as u64).saturating_mul(DEFLATE) / row;
    Some(rows.saturating_mul(width))
}

/// Maximum pixels of a PNM file.
pub(super) fn pnm(bytes: &[u8]) -> Option<u64> {
    // Only bitmaps have pixels of less than a byte.
    let pixels = if bytes.starts_with(b"P4") { 8 } else { 1 };
    Some(pixels * bytes.len() as u64)
}

/// Maximum pixels of a BMP file.
pub(super) fn bmp(bytes: &[u8]) -> Option<u64> {
    // 16 bits of the second header.
    const COMPRESSION: usize = 30;
    let pixels = match bytes.get(COMPRESSION) {
        // Two bytes repeat a pixel up to 255 times. (Pixels can also be skipped; no more than these
        // are accepted.)
        Some(1 | 2) => 128,
        _ => 8,
    };
    Some(pixels * bytes.len() as u64)
}

/// Maximum pixels of a TIFF file with these bits per pixel and this compression, in rows of
/// `width`.
pub(super) fn tiff(bytes: u64, compression: u16, bits: u64, width: u64) -> Option<u64> {
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
        NEW_JPEG => return Some(bytes.saturating_mul(JPEG)),
        // A bit marks a row, of any width, as equal to the previous one; no scanner is wider than
        // this.
        FAX4 if width > 1 << 16 => return Some(0),
        FAX4 => return Some(bytes.saturating_mul(8).saturating_mul(width)),
        // Unknown to the decoder.
        _ => return None,
    };
    Some(bytes.saturating_mul(8 * expansion) / bits.max(1))
}

/// Maximum pixels of an OpenEXR file with this compression and these bytes for each pixel.
pub(super) fn exr(bytes: u64, compression: Compression, pixel: u64) -> u64 {
    let expansion = match compression {
        Compression::Uncompressed => 1,
        // Two bytes repeat one up to 128 times.
        Compression::RLE => 64,
        Compression::ZIP1 | Compression::ZIP16 => DEFLATE,
        // Of four bytes of a float three are deflated.
        Compression::PXR24 => DEFLATE * 4 / 3,
        // At least a bit and the eight of a number repeat a half up to 255 times.
        Compression::PIZ => 454,
        // Three bytes are 16 halves.
        Compression::B44 | Compression::B44A => 11,
        // Not decoded.
        _ => 0,
    };
    bytes.saturating_mul(expansion) / pixel.max(1)
}

/// The markers of JPEG data, with the bytes that follow each.
pub(super) fn markers(jpeg: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    const STUFFING: u8 = 0x00;
    const TEMPORARY: u8 = 0x01;
    const RESTART: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
    const START_OF_IMAGE: u8 = 0xd8;
    let mut at = 0;
    // From marker to marker, over the segments that have a length and over coded pixels, which hold no markers but
    // restarts.
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
                    // Without a length, nothing follows.
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

/// Returns `true` if JPEG data has an end marker after the pixels: the decoder fills missing pixels
/// with grey.
pub(super) fn jpeg_ends(jpeg: &[u8]) -> bool {
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
pub(super) fn jpeg_frame(jpeg: &[u8]) -> u64 {
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
    fn what_bytes_can_hold_follows_from_the_format() {
        // A 1-bit grey PNG of 8 pixels a row: two bytes a row.
        let mut png_header = [0; 26];
        png_header[24] = 1;
        assert_eq!(png(&png_header, 8), Some(26 * DEFLATE / 2 * 8));
        png_header[25] = 6;
        png_header[24] = 16;
        assert_eq!(png(&png_header, 1), Some(26 * DEFLATE / 9));
        assert_eq!(png(b"short", 8), None);
        assert_eq!((pnm(b"P4 8 1 _"), pnm(b"P5 8 1 _")), (Some(64), Some(8)));
        assert_eq!(tiff(100, 1, 24, 10), Some(33));
        assert_eq!(tiff(100, 4, 1, 50), Some(100 * 8 * 50));
        assert_eq!(tiff(100, 50_000, 8, 10), Some(100 * 32768));
        assert_eq!((tiff(100, 4, 1, 70_000), tiff(100, 50_001, 8, 10)), (Some(0), None));
    }

    #[test]
    fn sizes_are_compared_without_overflow() {
        let options = OpenOptions { max_pixels: 100, ..OpenOptions::default() };
        assert!(check_size(10, 10, &options).is_ok());
        assert!(check_size(10, 11, &options).unwrap_err().contains("11x10 pixels exceed the limit of 100"));
        assert!(check_size(u64::MAX, 2, &options).is_err());
        assert!(check_capacity(u64::MAX, 2, Some(u64::MAX), 0).is_err());
        assert!(check_capacity(u64::MAX, 2, None, 0).is_ok());
    }

    #[test]
    fn frames_are_found_behind_other_segments() {
        let jpeg = [
            &[0xff, 0xd8, 0xff, 0xe1, 0, 4, 0xff, 0xc0][..],
            &[0xff, 0xc4, 0, 7, 8, 255, 255, 255, 255],
            &[0xff, 0xc2, 0, 7, 8, 1, 0, 0, 3],
            &[0xff, 0xd9],
        ];
        assert_eq!(jpeg_frame(&jpeg.concat()), 256 * 3);
        assert_eq!(jpeg_frame(&[0xff, 0xd8, 0xff, 0xc0]), 0);
    }
}
