//! The orientation of pictures: how files say that they are to be viewed.

use super::{DecodeResources, Picture, exif, pixel_bytes};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Region, Shape};

/// Use of the orientation stored in a file: the camera's (EXIF of JPEG and PNG files), or the sides of the first row
/// and column (TIFF).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orientation {
    /// The picture is rotated and mirrored for viewing, as OpenCV's `imread` does. The default.
    #[default]
    Apply,
    /// Rows and columns stay as in the file, as in scikit-image and Pillow.
    Keep,
}

/// The rotation and mirroring of a picture for viewing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StoredOrientation {
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

impl StoredOrientation {
    /// The orientation with this number in EXIF and TIFF.
    pub(super) fn numbered(number: u16) -> Option<StoredOrientation> {
        use StoredOrientation::{
            FlipHorizontal, FlipVertical, No, Rotate90, Rotate90FlipH, Rotate180, Rotate270, Rotate270FlipH,
        };
        let all = [No, FlipHorizontal, Rotate180, FlipVertical, Rotate90FlipH, Rotate90, Rotate270FlipH, Rotate270];
        all.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The orientation in EXIF data.
    pub(super) fn of_exif(data: &[u8]) -> Option<StoredOrientation> {
        exif::orientation(data).and_then(StoredOrientation::numbered)
    }

    /// The position in the stored picture of each pixel of the reoriented one.
    fn placed(self, stored: Shape) -> PositionMap {
        let (up, leftwards) = backwards(self);
        let along = |backwards: bool, side: usize| if backwards { (-1.0, (side - 1) as f64) } else { (1.0, 0.0) };
        let ((y, y0), (x, x0)) = (along(up, stored.height), along(leftwards, stored.width));
        PositionMap::of(if is_across(self) { [[0.0, x, x0], [y, 0.0, y0]] } else { [[x, 0.0, x0], [0.0, y, y0]] })
    }
}

impl Orientation {
    /// Returns `true` if a picture with this stored orientation is reoriented.
    pub(super) fn turns(self, noted: StoredOrientation) -> bool {
        self == Orientation::Apply && noted != StoredOrientation::No
    }

    /// The shape of a picture in the requested orientation; `noted` is the file's.
    pub(super) fn shape(self, stored: Shape, noted: StoredOrientation) -> Shape {
        let across = self.turns(noted) && is_across(noted);
        let (height, width) = if across { (stored.width, stored.height) } else { (stored.height, stored.width) };
        Shape { height, width, ..stored }
    }

    /// The position in the stored picture of each pixel of the picture in the requested orientation; `noted` is the
    /// file's.
    pub(super) fn placed(self, stored: Shape, noted: StoredOrientation) -> PositionMap {
        if self.turns(noted) { noted.placed(stored) } else { PositionMap::default() }
    }

    /// The region of the stored picture that becomes a region of the picture.
    pub(super) fn stored(self, region: Region, stored: Shape, noted: StoredOrientation) -> Region {
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
    pub(super) fn of(
        self,
        picture: Picture,
        noted: StoredOrientation,
        means: DecodeResources<'_>,
    ) -> Result<Picture, String> {
        match self {
            Orientation::Keep => Ok(picture),
            Orientation::Apply if noted == StoredOrientation::No => Ok(picture),
            Orientation::Apply => {
                let Picture { shape, dtype, pixels, metadata } = picture;
                let mut turned = (means.allocate)(pixels.len()).map_err(|e| e.to_string())?;
                turn(pixels.bytes(), turned.bytes_mut(), shape, noted, pixel_bytes(shape, dtype));
                Ok(Picture { shape: self.shape(shape, noted), dtype, pixels: turned, metadata })
            }
        }
    }
}

/// Returns `true` if rows become columns.
fn is_across(how: StoredOrientation) -> bool {
    matches!(
        how,
        StoredOrientation::Rotate90
            | StoredOrientation::Rotate270
            | StoredOrientation::Rotate90FlipH
            | StoredOrientation::Rotate270FlipH
    )
}

/// Returns flags for rows and columns of the file that are counted backwards.
fn backwards(how: StoredOrientation) -> (bool, bool) {
    use StoredOrientation::{FlipHorizontal, FlipVertical, Rotate90, Rotate180, Rotate270, Rotate270FlipH};
    (
        matches!(how, FlipVertical | Rotate180 | Rotate90 | Rotate270FlipH),
        matches!(how, FlipHorizontal | Rotate180 | Rotate270 | Rotate270FlipH),
    )
}

/// Reorients every level, of pixels of `pixel` bytes.
fn turn(from: &[u8], to: &mut [u8], shape: Shape, how: StoredOrientation, pixel: usize) {
    #[inline(always)]
    fn each(from: &[u8], to: &mut [u8], Shape { height, width, .. }: Shape, how: StoredOrientation, pixel: usize) {
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
    // Pixels of usual sizes are moved as a whole.
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

    /// A PNG file with another chunk, before or after its pixels.
    fn with_chunk(name: &[u8; 4], body: &[u8], behind: bool) -> Vec<u8> {
        let mut bytes = stored(ImageFormat::Png, 1);
        let mut chunk = Vec::new();
        super::super::png::write::chunk(name, body, &mut chunk);
        // After signature and header; or before the end mark.
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
                let how = StoredOrientation::numbered(number).unwrap();
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
