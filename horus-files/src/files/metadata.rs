//! Metadata of picture files.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::bounds::markers;
use super::load::{Kind, Means, Source};
use super::png::chunks as png_chunks;
use super::{Picture, codec, exif, pixel_bytes};
use horus_base::placed::Placed;
use horus_base::shape::{Region, Shape};

/// Use of the orientation stored in a file: that of the camera (EXIF of JPEG and PNG files), or the
/// sides of the first row and column (TIFF).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orientation {
    /// The picture is rotated and mirrored for viewing, as OpenCV's `imread` does. The default.
    #[default]
    Apply,
    /// Rows and columns are those of the file, as scikit-image and Pillow read them.
    Keep,
}

/// How a picture is turned and mirrored for viewing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turned {
    #[default]
    No,
    FlipHorizontal,
    Rotate180,
    FlipVertical,
    Rotate90FlipH,
    Rotate90,
    Rotate270FlipH,
    Rotate270,
}

impl Turned {
    /// By its number in EXIF and TIFF.
    pub(super) fn numbered(number: u16) -> Option<Turned> {
        use Turned::{FlipHorizontal, FlipVertical, No, Rotate90, Rotate90FlipH, Rotate180, Rotate270, Rotate270FlipH};
        let all = [No, FlipHorizontal, Rotate180, FlipVertical, Rotate90FlipH, Rotate90, Rotate270FlipH, Rotate270];
        all.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// As EXIF data say.
    pub(super) fn of_exif(data: &[u8]) -> Option<Turned> {
        exif::orientation(data).and_then(Turned::numbered)
    }

    /// The place in the stored picture of each pixel of the turned one.
    fn placed(self, stored: Shape) -> Placed {
        let (up, leftwards) = backwards(self);
        let along = |backwards: bool, side: usize| if backwards { (-1.0, (side - 1) as f64) } else { (1.0, 0.0) };
        let ((y, y0), (x, x0)) = (along(up, stored.height), along(leftwards, stored.width));
        Placed::of(if is_across(self) { [[0.0, x, x0], [y, 0.0, y0]] } else { [[x, 0.0, x0], [0.0, y, y0]] })
    }
}

impl Orientation {
    /// Returns `true` if a picture with this stored orientation is turned.
    pub(super) fn turns(self, noted: Turned) -> bool {
        self == Orientation::Apply && noted != Turned::No
    }

    /// The shape of a picture in the requested orientation; `noted` is the file's.
    pub(super) fn shape(self, stored: Shape, noted: Turned) -> Shape {
        let across = self.turns(noted) && is_across(noted);
        let (height, width) = if across { (stored.width, stored.height) } else { (stored.height, stored.width) };
        Shape { height, width, ..stored }
    }

    /// The place in the stored picture of each pixel of the picture in the requested orientation; `noted` is the file's.
    pub(super) fn placed(self, stored: Shape, noted: Turned) -> Placed {
        if self.turns(noted) { noted.placed(stored) } else { Placed::default() }
    }

    /// The part of the stored picture that becomes a region of the picture.
    pub(super) fn stored(self, region: Region, stored: Shape, noted: Turned) -> Region {
        if !self.turns(noted) {
            return region;
        }
        let Region { top, left, height, width } = region;
        let (top, left, height, width) =
            if is_across(noted) { (left, top, width, height) } else { (top, left, height, width) };
        let (up, leftwards) = backwards(noted);
        let top = if up { stored.height - top - height } else { top };
        let left = if leftwards { stored.width - left - width } else { left };
        Region::new(top, left, height, width)
    }

    /// The picture in the requested orientation; `noted` is the file's.
    pub(super) fn of(self, picture: Picture, noted: Turned, means: Means<'_>) -> Result<Picture, String> {
        match self {
            Orientation::Keep => Ok(picture),
            Orientation::Apply if noted == Turned::No => Ok(picture),
            Orientation::Apply => {
                let Picture { shape, dtype, pixels, metadata } = picture;
                let mut turned = (means.room)(pixels.len()).map_err(|e| e.to_string())?;
                turn(pixels.bytes(), turned.bytes_mut(), shape, noted, pixel_bytes(shape, dtype));
                Ok(Picture { shape: self.shape(shape, noted), dtype, pixels: turned, metadata })
            }
        }
    }
}

/// Returns `true` if rows become columns.
fn is_across(how: Turned) -> bool {
    matches!(how, Turned::Rotate90 | Turned::Rotate270 | Turned::Rotate90FlipH | Turned::Rotate270FlipH)
}

/// Returns flags for rows and columns of the file that are counted backwards.
fn backwards(how: Turned) -> (bool, bool) {
    use Turned::{FlipHorizontal, FlipVertical, Rotate90, Rotate180, Rotate270, Rotate270FlipH};
    (
        matches!(how, FlipVertical | Rotate180 | Rotate90 | Rotate270FlipH),
        matches!(how, FlipHorizontal | Rotate180 | Rotate270 | Rotate270FlipH),
    )
}

/// Reorients every level, of pixels of `pixel` bytes.
fn turn(from: &[u8], to: &mut [u8], shape: Shape, how: Turned, pixel: usize) {
    #[inline(always)]
    fn each(from: &[u8], to: &mut [u8], Shape { height, width, .. }: Shape, how: Turned, pixel: usize) {
        let (up, left) = backwards(how);
        let level = height * width * pixel;
        for (from, to) in from.chunks_exact(level).zip(to.chunks_exact_mut(level)) {
            let row = |y: usize| {
                let y = if up { height - 1 - y } else { y };
                &from[y * width * pixel..(y + 1) * width * pixel]
            };
            if !is_across(how) {
                for (y, to) in to.chunks_exact_mut(width * pixel).enumerate() {
                    let pixels = row(y).chunks_exact(pixel);
                    if left {
                        to.chunks_exact_mut(pixel).zip(pixels.rev()).for_each(|(to, from)| to.copy_from_slice(from));
                    } else {
                        to.copy_from_slice(row(y));
                    }
                }
                continue;
            }
            // In blocks, so that columns being read stay in the cache.
            const BLOCK: usize = 32;
            for (block, to) in to.chunks_mut(BLOCK * height * pixel).enumerate() {
                for first in (0..height).step_by(BLOCK) {
                    let last = height.min(first + BLOCK);
                    for (i, to) in to.chunks_exact_mut(height * pixel).enumerate() {
                        let x = block * BLOCK + i;
                        let x = if left { width - 1 - x } else { x };
                        let to = to[first * pixel..last * pixel].chunks_exact_mut(pixel);
                        (first..last).zip(to).for_each(|(y, to)| to.copy_from_slice(&row(y)[x * pixel..][..pixel]));
                    }
                }
            }
        }
    }
    // Usual pixels are moved as a whole.
    match pixel {
        1 => each(from, to, shape, how, 1),
        2 => each(from, to, shape, how, 2),
        3 => each(from, to, shape, how, 3),
        4 => each(from, to, shape, how, 4),
        6 => each(from, to, shape, how, 6),
        8 => each(from, to, shape, how, 8),
        _ => each(from, to, shape, how, pixel),
    }
}

/// Warns that a colour profile is not applied, once per process, as many pictures may have the same.
pub(super) fn tell_profile(bytes: usize) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    let level = if TOLD.swap(true, Ordering::Relaxed) { log::Level::Debug } else { log::Level::Info };
    log::log!(level, "a colour profile of {bytes} bytes is not applied; samples are used as stored");
}

const APP0: u8 = 0xe0;
const APP1: u8 = 0xe1;
const APP2: u8 = 0xe2;
const COMMENT: u8 = 0xfe;
const SCAN: u8 = 0xda;
const JFIF: &[u8] = b"JFIF\0";
/// A part of a colour profile in a JPEG file begins with this; its number and the number of parts follow.
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
pub(super) fn jpeg_head<'a>(source: &'a Source<'_>) -> Option<Cow<'a, [u8]>> {
    let mut head = Cow::Borrowed(source.head());
    // A part of the file that begins it, each twice as long as the one before.
    while !markers(&head).any(|(marker, _)| marker == SCAN) && (head.len() as u64) < source.size() {
        let length = usize::try_from(source.size().min(2 * head.len() as u64)).ok()?;
        let mut longer = codec::zeros(length).ok()?;
        source.read_at(0, &mut longer).ok()?;
        head = longer.into();
    }
    Some(head)
}

/// A PNG or JPEG file with what it says before and behind its pixels, without these; `None` for other files.
pub(super) fn without_pixels(source: &Source<'_>) -> Option<Vec<u8>> {
    const NAMES: [&[u8; 4]; 7] = [b"PLTE", b"iCCP", b"pHYs", b"eXIf", b"tEXt", b"zTXt", b"iTXt"];
    match source.kind() {
        Kind::Png => Some(png_chunks::without_pixels(source, &NAMES)),
        Kind::Jpeg => jpeg_head(source).map(Cow::into_owned),
        _ => None,
    }
}

/// The EXIF data of a JPEG file.
pub(super) fn jpeg_exif(bytes: &[u8]) -> Option<&[u8]> {
    segments(bytes).find_map(|(marker, body)| body.strip_prefix(exif::IN_JPEG).filter(|_| marker == APP1))
}

/// How a JPEG file is turned.
pub(super) fn jpeg_turned(bytes: &[u8]) -> Turned {
    jpeg_exif(bytes).and_then(Turned::of_exif).unwrap_or_default()
}

/// The comments of a JPEG file.
pub(super) fn jpeg_comments(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    segments(bytes).filter(|(marker, _)| *marker == COMMENT).map(|(_, body)| body)
}

/// Pixels per unit, columns and rows, of a JPEG file, and the number of the unit in TIFF files.
pub(super) fn jpeg_density(bytes: &[u8]) -> Option<([f64; 2], u16)> {
    let told = |(marker, body): (u8, &[u8])| {
        // Behind the version.
        let [unit, a, b, c, d] = *body.strip_prefix(JFIF).filter(|_| marker == APP0)?.get(2..)?.first_chunk()?;
        let unit = [2, 3].get(usize::from(unit).checked_sub(1)?)?;
        Some(([[a, b], [c, d]].map(|n| f64::from(u16::from_be_bytes(n))), *unit))
    };
    segments(bytes).find_map(told)
}

/// The colour profile of a JPEG file, if none of its parts is missing.
pub(super) fn jpeg_profile(bytes: &[u8]) -> Option<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{DynamicImage, GrayImage, ImageFormat};

    use super::super::{FileInfo, OpenOptions, PictureReader};
    use super::*;

    const SHAPE: (usize, usize) = (2, 3);
    /// Two rows of three, and their display with each of the eight orientations, as defined by
    /// EXIF: the sides of the scene that the first row and the first column represent.
    const STORED: [u8; 6] = [1, 2, 3, 4, 5, 6];
    const SEEN: [(usize, [u8; 6]); 8] = [
        (2, [1, 2, 3, 4, 5, 6]), // top, left
        (2, [3, 2, 1, 6, 5, 4]), // top, right
        (2, [6, 5, 4, 3, 2, 1]), // bottom, right
        (2, [4, 5, 6, 1, 2, 3]), // bottom, left
        (3, [1, 4, 2, 5, 3, 6]), // left, top
        (3, [4, 1, 5, 2, 6, 3]), // right, top
        (3, [6, 3, 5, 2, 4, 1]), // right, bottom
        (3, [3, 6, 2, 5, 1, 4]), // left, bottom
    ];

    /// EXIF data of one entry.
    fn exif(orientation: u16) -> Vec<u8> {
        let entry = [&[0x12, 1, 3, 0, 1, 0, 0, 0][..], &orientation.to_le_bytes(), &[0, 0]].concat();
        [&b"II*\0\x08\0\0\0\x01\0"[..], &entry, &[0; 4]].concat()
    }

    fn stored(format: ImageFormat, scale: usize) -> Vec<u8> {
        let (h, w) = (SHAPE.0 * scale, SHAPE.1 * scale);
        let pixel = |x: u32, y: u32| STORED[y as usize / scale * SHAPE.1 + x as usize / scale] * 40;
        let picture = GrayImage::from_fn(w as u32, h as u32, |x, y| image::Luma([pixel(x, y)]));
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::ImageLuma8(picture).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// A PNG file with another chunk, before its pixels or behind them.
    fn with_chunk(name: &[u8; 4], body: &[u8], behind: bool) -> Vec<u8> {
        let mut bytes = stored(ImageFormat::Png, 1);
        let mut chunk = Vec::new();
        super::super::png::write::chunk(name, body, &mut chunk);
        // After signature and header; before the end mark.
        let at = if behind { bytes.len() - 12 } else { 33 };
        bytes.splice(at..at, chunk);
        bytes
    }

    fn png(exif: &[u8]) -> Vec<u8> {
        with_chunk(b"eXIf", exif, false)
    }

    fn jpeg(exif: &[u8]) -> Vec<u8> {
        // The compression roughly preserves blocks of one colour.
        let bytes = stored(ImageFormat::Jpeg, 8);
        let length = (exif.len() as u16 + 8).to_be_bytes();
        [&bytes[..2], &[0xff, 0xe1], &length, b"Exif\0\0", exif, &bytes[2..]].concat()
    }

    /// A file of one strip, written by hand.
    fn tiff(orientation: u16) -> Vec<u8> {
        let entries: [(u16, u16, u32); 9] = [
            (256, 3, 3),
            (257, 3, 2),
            (258, 3, 8),
            (259, 3, 1),
            (262, 3, 1),
            (273, 4, 8 + 2 + 9 * 12 + 4),
            (274, 3, u32::from(orientation)),
            (278, 3, 2),
            (279, 4, 6),
        ];
        let mut bytes = b"II*\0\x08\0\0\0\x09\0".to_vec();
        for (tag, kind, value) in entries {
            bytes.extend([tag.to_le_bytes(), kind.to_le_bytes(), [1, 0], [0, 0]].concat());
            bytes.extend(value.to_le_bytes());
        }
        [bytes, vec![0; 4], STORED.map(|v| v * 40).to_vec()].concat()
    }

    fn seen(bytes: &[u8], orientation: Orientation, scale: usize) -> (usize, Vec<u8>) {
        let picture = Picture::read(bytes, &OpenOptions { orientation, ..OpenOptions::default() }).unwrap();
        let Shape { height, width, .. } = picture.shape();
        let pixels = picture.pixels.as_slice::<u8>();
        let at = |y: usize, x: usize| {
            let pixel = pixels[(y * scale + scale / 2) * width + x * scale + scale / 2];
            ((u16::from(pixel) + 20) / 40) as u8
        };
        let (h, w) = (height / scale, width / scale);
        (h, (0..h * w).map(|i| at(i / w, i % w)).collect())
    }

    #[test]
    fn pictures_are_seen_as_they_are_meant() {
        for (number, (height, pixels)) in (1u16..).zip(SEEN) {
            let want = (height, pixels.to_vec());
            let behind = with_chunk(b"eXIf", &exif(number), true);
            for (name, bytes, scale) in [
                ("png", png(&exif(number)), 1),
                ("png, behind the pixels", behind, 1),
                ("jpg", jpeg(&exif(number)), 8),
                ("tif", tiff(number), 1),
            ] {
                assert_eq!(seen(&bytes, Orientation::Apply, scale), want, "{name}, orientation {number}");
                assert_eq!(seen(&bytes, Orientation::Keep, scale), (2, STORED.to_vec()), "{name}, kept");
            }
        }
    }

    /// The EXIF data and the texts of a PNG file may be anywhere; its density, only before the pixels.
    #[test]
    fn chunks_behind_the_pixels_are_found_before_the_pixels_are_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let put = |bytes: &[u8]| std::fs::write(file.path(), bytes).unwrap();
        put(&with_chunk(b"eXIf", &exif(6), true));
        let options = OpenOptions::default();
        assert_eq!(PictureReader::open(file.path(), &options).unwrap().shape(), Shape::new(3, 2, 1));
        put(&with_chunk(b"tEXt", b"Author\0somebody", true));
        let texts = FileInfo::tags(file.path(), &options).unwrap();
        assert_eq!(texts, [("Author".to_owned(), "somebody".to_owned())]);
        // A pixel of 2 by 1 micrometres, whose sides change places.
        let metres = [&500_000u32.to_be_bytes()[..], &1_000_000u32.to_be_bytes(), &[1]].concat();
        let mut turned = with_chunk(b"pHYs", &metres, false);
        let size = |bytes: &[u8]| Picture::read(bytes, &options).unwrap().metadata().pixel;
        assert!(size(&turned).is_some());
        let exif = with_chunk(b"eXIf", &exif(6), true);
        let whole = stored(ImageFormat::Png, 1).len();
        turned.splice(turned.len() - 12.., exif[whole - 12..].iter().copied());
        let sides = size(&turned).map(|size| [size.rows, size.columns]);
        assert_eq!(sides, size(&with_chunk(b"pHYs", &metres, false)).map(|size| [size.columns, size.rows]));
    }

    #[test]
    fn damaged_notes_change_nothing() {
        let whole = exif(6);
        let mut damaged: Vec<Vec<u8>> = (0..whole.len() - 4).map(|n| whole[..n.min(17)].to_vec()).collect();
        damaged.extend([0, 9, 777].map(exif));
        damaged.push([b"XX", &whole[2..]].concat());
        damaged.push([&whole[..4], &[255; 4], &whole[8..]].concat());
        for note in damaged {
            assert_eq!(seen(&png(&note), Orientation::Apply, 1), (2, STORED.to_vec()), "{note:?}");
            assert_eq!(seen(&jpeg(&note), Orientation::Apply, 8), (2, STORED.to_vec()), "{note:?}");
        }
        for number in [0, 9, 777] {
            assert_eq!(seen(&tiff(number), Orientation::Apply, 1), (2, STORED.to_vec()));
        }
    }

    #[test]
    fn large_levels_of_pixels_of_any_size_are_turned() {
        let shape = Shape::volume(2, 70, 45, 1);
        for pixel in [1, 2, 3, 4, 5, 6, 8, 12] {
            let from: Vec<u8> = (0..shape.len() * pixel).map(|i| (i * 31 % 251) as u8).collect();
            for number in 1..=8 {
                let how = Turned::numbered(number).unwrap();
                let turned = Orientation::Apply.shape(shape, how);
                let mut to = vec![0; from.len()];
                turn(&from, &mut to, shape, how, pixel);
                let placed = how.placed(shape);
                for z in 0..2 {
                    for y in 0..turned.height {
                        for x in 0..turned.width {
                            let (up, left) = (69 - y.min(69), 44 - x.min(44));
                            let (sy, sx) = match number {
                                1 => (y, x),
                                2 => (y, left),
                                3 => (up, left),
                                4 => (up, x),
                                5 => (x, y),
                                6 => (69 - x, y),
                                7 => (69 - x, 44 - y),
                                _ => (x, 44 - y),
                            };
                            let got = &to[((z * turned.height + y) * turned.width + x) * pixel..][..pixel];
                            let want = &from[((z * 70 + sy) * 45 + sx) * pixel..][..pixel];
                            assert!(got == want, "{number}, {pixel} bytes: {z} {y} {x}");
                            assert_eq!(placed.at(y as f64, x as f64), (sy as f64, sx as f64), "{number}");
                        }
                    }
                }
            }
        }
    }
}
