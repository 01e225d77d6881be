//! Tests with the crate `image` as the oracle: the same pixels are read, the same files rejected.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::{DynamicImage, ImageFormat};
use png::{BitDepth, ColorType};

use super::*;
use crate::format::PictureFormat;
use crate::jpeg::general::GeneralJpeg;
use crate::{Format, OpenOptions, Picture};

/// Shape, type, orientation and pixels; `None` for rejected files.
type DecodedPicture = Option<(Shape, DType, StoredOrientation, Vec<u8>)>;

const MOST_BYTES: usize = 1 << 22;

/// Bytes of the pixels, according to the header.
fn size(kind: &'static dyn PictureFormat, bytes: &[u8]) -> Option<usize> {
    let header = || kind.decoder(bytes).ok().map(|(header, _)| header.shape.len() * header.dtype.size());
    catch_unwind(AssertUnwindSafe(header)).ok().flatten()
}

fn ours(kind: &'static dyn PictureFormat, bytes: &[u8]) -> DecodedPicture {
    let read = || {
        let (header, decoder) = kind.decoder(bytes).ok()?;
        let size = header.shape.len() * header.dtype.size();
        if size == 0 {
            return None;
        }
        // Every byte is written, whatever its value before.
        let mut pixels = vec![0xa5; size];
        decoder.read(&header, &mut pixels, &Workers::new(Some(1)).ok()?).ok()?;
        Some((header.shape, header.dtype, header.orientation, pixels))
    };
    catch_unwind(AssertUnwindSafe(read)).ok().flatten()
}

/// Decodes with functions that the crate compiled itself: compiling its decoders for another reader takes long. The
/// files have no orientation.
fn theirs(format: ImageFormat, bytes: &[u8]) -> DecodedPicture {
    let picture = catch_unwind(|| image::load_from_memory_with_format(bytes, format).ok()).ok().flatten()?;
    let color = picture.color();
    let dtype = if color.bytes_per_pixel() > color.channel_count() { DType::U16 } else { DType::U8 };
    let shape = Shape::new(picture.height() as usize, picture.width() as usize, usize::from(color.channel_count()));
    let pixels = picture.into_bytes();
    (!pixels.is_empty()).then(|| (shape, dtype, StoredOrientation::numbered(1).unwrap(), pixels))
}

/// Reproducible numbers.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |n| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % n
    }
}

/// Compares files, and corrupt files made from them.
fn compare(kind: &'static dyn PictureFormat, format: ImageFormat, files: &[Vec<u8>], broken: usize) {
    let mut next = random(0x5eed);
    for (i, file) in files.iter().enumerate() {
        assert!(theirs(format, file).is_some(), "{format:?} {i} is whole");
        assert!(ours(kind, file) == theirs(format, file), "{format:?} {i}");
        for _ in 0..broken {
            let mut bytes = file.clone();
            for _ in 0..=next(3) {
                let at = if next(3) > 0 { next(bytes.len().min(72)) } else { next(bytes.len()) };
                match next(4) {
                    0 => bytes[at] = next(256) as u8,
                    1 => bytes[at] = [0, 1, 2, 255, b' ', b'#', b'1', b'9'][next(8)],
                    2 => bytes[at] ^= 1 << next(8),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            // The oracle reads samples without a name as bytes, whatever their maximum is.
            if bytes.starts_with(b"P7") && !bytes.windows(9).any(|word| word == b"\nTUPLTYPE") {
                continue;
            }
            // The oracle misplaces samples of these, or rejects them.
            if format == ImageFormat::Jpeg && GeneralJpeg::of(&bytes).is_some() {
                continue;
            }
            // Decoders may fill missing pixels, which takes long in a large picture.
            if size(kind, &bytes).is_some_and(|size| size > MOST_BYTES) {
                continue;
            }
            let (ours, theirs) = (ours(kind, &bytes), theirs(format, &bytes));
            assert!(ours == theirs, "{format:?} {i}: {} of {}, {bytes:?}", ours.is_some(), theirs.is_some());
        }
    }
}

/// A bitmap with this header, masks or a palette after it, and any pixels.
fn bitmap(length: u32, size: (u16, i16), bits: u16, compression: u32, behind: &[u8], pixels: &[u8]) -> Vec<u8> {
    let mut header = length.to_le_bytes().to_vec();
    let (width, height) = size;
    if length == 12 {
        header.extend([width.to_le_bytes(), height.to_le_bytes(), [1, 0], bits.to_le_bytes()].concat());
    } else {
        header.extend([u32::from(width).to_le_bytes(), i32::from(height).to_le_bytes()].concat());
        header.extend([[1, 0], bits.to_le_bytes()].concat());
        header.extend(compression.to_le_bytes());
        header.extend([0; 20]);
    }
    header.extend(behind);
    header.resize(header.len().max(length as usize), 0);
    let at = (14 + header.len() as u32).to_le_bytes();
    [b"BM", &[0; 8][..], &at, &header, pixels].concat()
}

#[test]
fn bitmaps_of_every_kind() {
    let mut next = random(3);
    let mut noise = |n: usize| (0..n).map(|_| next(256) as u8).collect::<Vec<u8>>();
    let masks = |masks: &[u32]| masks.iter().flat_map(|mask| mask.to_le_bytes()).collect::<Vec<u8>>();
    let mut files = Vec::new();
    for (bits, row) in [(1, 4), (4, 8), (8, 16), (24, 40)] {
        let colours = if bits > 8 { 0 } else { 3 << bits };
        files.push(bitmap(12, (13, 5), bits, 0, &noise(colours), &noise(5 * row)));
    }
    for (bits, row) in [(1, 4), (2, 4), (4, 8), (8, 16), (16, 28), (24, 40), (32, 52)] {
        let colours = if bits > 8 { 0 } else { 4 << bits };
        files.push(bitmap(40, (13, 5), bits, 0, &noise(colours), &noise(5 * row)));
        files.push(bitmap(40, (13, -5), bits, 0, &noise(colours), &noise(5 * row)));
    }
    for fields in
        [[0x7c00, 0x3e0, 0x1f, 0x8000], [0xf00, 0xf0, 0xf, 0], [0xe000, 0x1c00, 0x300, 0xff], [1, 6, 0xf8, 0x3f00]]
    {
        for length in [40, 56, 108, 124] {
            files.push(bitmap(length, (13, 5), 16, 3, &masks(&fields), &noise(5 * 28)));
        }
    }
    for fields in [
        [0xff00_0000, 0xff_0000, 0xff00, 0],
        [0xff_0000, 0xff00, 0xff, 0xff00_0000],
        [0x3ff0_0000, 0xf_fc00, 0x3ff, 0xc000_0000],
        [0x7f, 0x3f80, 0x1_c000, 0],
    ] {
        for length in [40, 52, 108] {
            files.push(bitmap(length, (13, -5), 32, 3, &masks(&fields), &noise(5 * 52)));
        }
    }
    let palette = noise(1024);
    let runs: [&[u8]; 5] = [
        &[13, 1, 0, 0, 4, 0, 4, 1, 0, 0, 0, 1],
        &[3, 7, 0, 2, 4, 0, 2, 9, 0, 2, 1, 2, 3, 1, 0, 1],
        &[0, 5, 1, 2, 3, 4, 5, 0, 3, 9, 0, 0, 13, 2, 0, 0, 13, 3, 0, 0, 13, 4, 0, 0, 1, 5, 0, 0],
        &[2, 5, 0, 4, 1, 2, 3, 4, 0, 2, 0, 3, 4, 17, 0, 0, 0, 3, 1, 2, 3, 0, 0, 1],
        &[0, 1],
    ];
    for runs in runs {
        files.push(bitmap(40, (13, 5), 8, 1, &palette, runs));
        files.push(bitmap(40, (13, 5), 4, 2, &palette[..64], runs));
    }
    // Longer than the row, which only runs of bytes may be.
    files.push(bitmap(40, (13, 5), 8, 1, &palette, &[200, 3, 0, 0, 9, 1, 9, 2, 0, 2, 0, 0, 0, 1]));
    compare(Format::Bmp.listed(), ImageFormat::Bmp, &files, 400);
}

#[test]
fn maps_of_every_kind() {
    let files: [&[u8]; 20] = [
        b"P1\n# a comment\n4 2\n0 1 1 0 1001\n",
        b"P2 3 1 15 0 7 15\n",
        b"P2 3 1 15\n 0\t16 250 ",
        b"P2 2 2 1000 0 500 1000 7",
        b"P3 1 2 255 1 2 3 4 5 6\n",
        b"P3 1 1 65535 1 2 65535",
        b"P4 9 2\n\x80\x00\x7f\x80",
        b"P4 8#x\n 1 \xa5",
        b"P5 3 2 7 \x00\x01\x02\x05\x07\x09",
        b"P5 2 1 1023 \x03\xff\x00\x01",
        b"P6 1 1 100 \x00\x32\x64",
        b"P5 3 1 255\n\x00\x01\x02",
        b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\nabcdef",
        b"P7\n#y\nWIDTH 1\nHEIGHT 2\nDEPTH 4\nMAXVAL 9\nTUPLTYPE RGB_ALPHA\nENDHDR\n\0\x01\x02\x03\x04\x05\x06\x07\x09",
        b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE\nENDHDR\n\x01\x00",
        b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE_ALPHA\nENDHDR\n\x01\x00",
        b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 4095\nTUPLTYPE GRAYSCALE\nENDHDR\n\x0f\xff\x01\x00",
        b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n\x01\x00",
        b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL 200\nENDHDR\n\x01\x00\xff\x11",
        b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 300\nTUPLTYPE RGB_ALPHA\nENDHDR\n\x01\x00\0\x11\x01\x02\x01\x03",
    ];
    compare(Format::Pnm.listed(), ImageFormat::Pnm, &files.map(<[u8]>::to_vec), 400);
}

#[test]
fn pictures_of_other_formats() {
    let pixel = |i: u32| (i.wrapping_mul(i) >> 3) as u8;
    let mut pictures: Vec<DynamicImage> = [
        DynamicImage::new_luma8(17, 9),
        DynamicImage::new_luma_a8(16, 3),
        DynamicImage::new_rgb8(19, 31),
        DynamicImage::new_rgba8(5, 6),
    ]
    .into();
    for picture in &mut pictures {
        let (w, h, color) = (picture.width(), picture.height(), picture.color());
        let made = (0..w * h * u32::from(color.channel_count())).map(pixel).collect();
        *picture = match color.channel_count() {
            1 => image::GrayImage::from_raw(w, h, made).unwrap().into(),
            2 => image::GrayAlphaImage::from_raw(w, h, made).unwrap().into(),
            3 => image::RgbImage::from_raw(w, h, made).unwrap().into(),
            _ => image::RgbaImage::from_raw(w, h, made).unwrap().into(),
        };
    }
    let wide = [pictures[0].to_luma16().into(), pictures[1].to_luma_alpha16().into(), pictures[2].to_rgb16().into()];
    let encoded = |picture: &DynamicImage, format| {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let mut files: Vec<_> = pictures.iter().chain(&wide).map(|p| encoded(p, ImageFormat::Png)).collect();
    for (depth, colour) in [(BitDepth::One, ColorType::Grayscale), (BitDepth::Two, ColorType::Indexed)] {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 9, 4);
        encoder.set_depth(depth);
        encoder.set_color(colour);
        if colour == ColorType::Indexed {
            encoder.set_palette(&[1, 2, 3, 40, 50, 60, 70, 80, 90, 255, 0, 9][..]);
            encoder.set_trns(&[255, 7][..]);
        }
        let row = (9 * depth as usize).div_ceil(8);
        encoder.write_header().unwrap().write_image_data(&vec![0b1110_0100; 4 * row]).unwrap();
        files.push(file);
    }
    compare(Format::Png.listed(), ImageFormat::Png, &files, 200);
    let jpeg = |picture| encoded(picture, ImageFormat::Jpeg);
    let mut files = vec![jpeg(&pictures[0]), jpeg(&pictures[2])];
    files.push(include_bytes!("../../../horus-core/tests/files/progressive.jpg").to_vec());
    compare(Format::Jpeg.listed(), ImageFormat::Jpeg, &files, 200);
}

#[test]
fn more_than_a_byte_per_sample_needs_no_name() {
    // PAM without a name of its samples, which the oracle reads as bytes whatever their maximum is.
    let file = b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 1\nMAXVAL 65535\nENDHDR\n\x01\x02\xff\xff";
    let (shape, dtype, _, pixels) = ours(Format::Pnm.listed(), file).unwrap();
    assert_eq!((shape, dtype), (Shape::new(1, 2, 1), DType::U16));
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, u16>(&pixels), [0x102, 0xffff]);
}

#[test]
fn palettes_fit_their_bits() {
    let read = |bits: u8, bytes: usize| {
        let palette: Vec<u8> = (1..=bytes).map(|v| v as u8).collect();
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 4, 1);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::from_u8(bits).unwrap());
        encoder.set_palette(palette);
        let row: &[u8] = if bits == 2 { &[0b00_01_10_11] } else { &[0, 1, 2, 3] };
        encoder.write_header().unwrap().write_image_data(row).unwrap();
        Picture::read(&file, &OpenOptions::default())
    };
    for bits in [2, 8] {
        let short = read(bits, 9).unwrap().into_pixels();
        assert_eq!(short.bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0], "{bits} bits: what is missing is black");
        let long = read(bits, 768).unwrap().into_pixels();
        assert_eq!(long.bytes(), std::array::from_fn::<u8, 12, _>(|v| v as u8 + 1), "{bits} bits");
    }
    for (bytes, cause) in [(4, "its palette has 4 bytes: a colour has 3"), (900, "PLTE")] {
        let error = read(8, bytes).unwrap_err().to_string();
        assert!(error.contains(cause), "{error}");
    }
}
