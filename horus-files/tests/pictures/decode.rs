//! Files of other encoders.

use std::io::Cursor;

use super::{Decoded, read};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_files::OpenOptions;
use image::{DynamicImage, ImageFormat};

fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    read(bytes, &OpenOptions::default())
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn gradient() -> DynamicImage {
    DynamicImage::ImageRgb8(image::RgbImage::from_fn(40, 30, |x, y| image::Rgb([x as u8, y as u8, 200])))
}

#[test]
fn samples_of_a_pixel_are_beside_each_other() {
    for format in [ImageFormat::Png, ImageFormat::Tiff, ImageFormat::Bmp, ImageFormat::Pnm] {
        let p = decode(&encoded(&gradient(), format)).unwrap();
        assert_eq!((p.shape, p.dtype), (Shape::new(30, 40, 3), DType::U8), "{format:?}");
        assert_eq!(p.pixels.as_slice::<u8>(), gradient().as_bytes(), "{format:?}");
    }
}

#[test]
fn sixteen_bits_are_kept() {
    let p = image::ImageBuffer::<image::Luma<u16>, _>::from_fn(5, 4, |x, y| image::Luma([(1000 * y + x) as u16]));
    for format in [ImageFormat::Png, ImageFormat::Tiff] {
        let p = decode(&encoded(&DynamicImage::ImageLuma16(p.clone()), format)).unwrap();
        assert_eq!(p.dtype, DType::U16);
        assert_eq!(p.pixels.as_slice::<u16>()[3 * 5 + 2], 3002);
    }
}

#[test]
fn truncated_files_are_errors_in_every_format() {
    let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Tiff, ImageFormat::Bmp, ImageFormat::Pnm];
    for format in formats {
        let bytes = encoded(&gradient(), format);
        assert!(decode(&bytes).is_ok(), "{format:?}");
        for keep in [8, bytes.len() / 2, bytes.len() - bytes.len() / 8] {
            assert!(decode(&bytes[..keep]).is_err(), "{format:?} cut to {keep} of {}", bytes.len());
        }
    }
}

#[test]
fn jpeg_files_may_hold_more_than_the_picture() {
    let bytes = encoded(&gradient(), ImageFormat::Jpeg);
    let want = decode(&bytes).unwrap();
    // Phones append films: arbitrary bytes, even those of a scan's start.
    let film = [&bytes[..], b"\0\0\0\x18ftypmp42", &[0xff, 0xda, 0xff, 0xd8, 0, 7]].concat();
    let got = decode(&film).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(got.pixels.bytes(), want.pixels.bytes());
    // A thumbnail inside a segment has an end marker, but not the picture's.
    let note = [&bytes[..2], &[0xff, 0xe1, 0, 6, 0xff, 0xda, 0xff, 0xd9], &bytes[2..]].concat();
    assert!(decode(&note).is_ok());
    assert!(decode(&note[..note.len() - 2]).is_err());
}
