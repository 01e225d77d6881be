//! From a file to pixels.

use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult};

use super::Picture;
use crate::buffer::HostBuffer;
use crate::dtype::Pixel;
use crate::shape::Shape;

/// The most memory that decoding may take: room for large scans, but not for whatever a broken header claims.
const MEMORY_LIMIT: u64 = 8 << 30;

/// Reads and decodes a file; the error is the cause alone.
pub(super) fn read(path: &Path) -> Result<Picture, String> {
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    decode(&bytes)
}

fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let format = image::guess_format(bytes).map_err(|_| "not a PNG, JPEG, TIFF, PNM or BMP file".to_owned())?;
    match format {
        ImageFormat::Tiff => {
            if let Some(picture) = float_tiff(bytes)? {
                return Ok(picture);
            }
        }
        ImageFormat::Jpeg if !ends(bytes) => return Err("the JPEG data end too early".into()),
        ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Pnm | ImageFormat::Bmp => {}
        other => return Err(format!("{other:?} files are not supported; use PNG, JPEG, TIFF, PNM or BMP")),
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MEMORY_LIMIT);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    planar(reader.decode().map_err(|e| e.to_string())?)
}

/// Whether JPEG data have an end, after the pixels and before whatever else the file holds: the decoder fills what is
/// missing with grey.
fn ends(jpeg: &[u8]) -> bool {
    const STUFFING: u8 = 0x00;
    const TEMPORARY: u8 = 0x01;
    const RESTART: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
    const START_OF_IMAGE: u8 = 0xd8;
    const END_OF_IMAGE: u8 = 0xd9;
    const START_OF_SCAN: u8 = 0xda;
    let (mut at, mut scanned) = (0, false);
    // From marker to marker, over the segments that have a length and over coded pixels, which hold no markers but
    // restarts.
    while let Some(&[first, marker]) = jpeg.get(at..).and_then(|rest| rest.first_chunk()) {
        match (first, marker) {
            (0xff, END_OF_IMAGE) => return scanned,
            (0xff, STUFFING | TEMPORARY | START_OF_IMAGE) => at += 2,
            (0xff, m) if RESTART.contains(&m) => at += 2,
            // A marker may be preceded by any number of these bytes.
            (0xff, 0xff) => at += 1,
            (0xff, m) => {
                let Some(&length) = jpeg.get(at + 2..).and_then(|rest| rest.first_chunk()) else { return false };
                at += 2 + usize::from(u16::from_be_bytes(length));
                scanned |= m == START_OF_SCAN;
            }
            _ => at += 1,
        }
    }
    false
}

fn planar(picture: DynamicImage) -> Result<Picture, String> {
    let (h, w) = (picture.height() as usize, picture.width() as usize);
    match picture {
        DynamicImage::ImageLuma8(p) => planes(p.as_raw(), h, w, 1),
        DynamicImage::ImageLumaA8(p) => planes(p.as_raw(), h, w, 2),
        DynamicImage::ImageRgb8(p) => planes(p.as_raw(), h, w, 3),
        DynamicImage::ImageRgba8(p) => planes(p.as_raw(), h, w, 4),
        DynamicImage::ImageLuma16(p) => planes(p.as_raw(), h, w, 1),
        DynamicImage::ImageLumaA16(p) => planes(p.as_raw(), h, w, 2),
        DynamicImage::ImageRgb16(p) => planes(p.as_raw(), h, w, 3),
        DynamicImage::ImageRgba16(p) => planes(p.as_raw(), h, w, 4),
        DynamicImage::ImageRgb32F(p) => planes(p.as_raw(), h, w, 3),
        DynamicImage::ImageRgba32F(p) => planes(p.as_raw(), h, w, 4),
        other => Err(format!("pixels of type {:?} are not supported", other.color())),
    }
}

/// A TIFF of floating-point samples, which the `image` crate reads only in part; `None` for other TIFFs.
fn float_tiff(bytes: &[u8]) -> Result<Option<Picture>, String> {
    let mut limits = tiff::decoder::Limits::default();
    let limit = usize::try_from(MEMORY_LIMIT).unwrap_or(usize::MAX);
    (limits.decoding_buffer_size, limits.intermediate_buffer_size) = (limit, limit);
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(|e| e.to_string())?.with_limits(limits);
    let color = decoder.colortype().map_err(|e| e.to_string())?;
    if color.bit_depth() < 32 {
        return Ok(None);
    }
    let channels = match color {
        ColorType::Gray(_) => 1,
        ColorType::GrayA(_) => 2,
        ColorType::RGB(_) => 3,
        ColorType::RGBA(_) => 4,
        other => return Err(format!("TIFF pixels of type {other:?} are not supported")),
    };
    let (w, h) = decoder.dimensions().map_err(|e| e.to_string())?;
    let samples = match decoder.read_image().map_err(|e| e.to_string())? {
        DecodingResult::F32(v) => v,
        DecodingResult::F64(v) => v.into_iter().map(|v| v as f32).collect(),
        _ => return Err(format!("TIFF integers of {} bits are not supported", color.bit_depth())),
    };
    planes(&samples, h as usize, w as usize, channels).map(Some)
}

/// Interleaved pixels, channels put one after the other.
fn planes<T: Pixel>(pixels: &[T], height: usize, width: usize, channels: usize) -> Result<Picture, String> {
    let shape = Shape::new(height, width, channels);
    if shape.is_empty() {
        return Err("the picture has no pixels".into());
    }
    if pixels.len() != shape.len() {
        return Err(format!("{} samples for {shape} pixels", pixels.len()));
    }
    let mut buffer = HostBuffer::try_zeroed(size_of_val(pixels)).map_err(|e| e.to_string())?;
    let planes = buffer.as_mut_slice::<T>();
    if channels == 1 {
        planes.copy_from_slice(pixels);
    } else {
        for (c, plane) in planes.chunks_exact_mut(shape.area()).enumerate() {
            plane.iter_mut().zip(pixels.chunks_exact(channels)).for_each(|(to, pixel)| *to = pixel[c]);
        }
    }
    Ok(Picture { shape, dtype: T::DTYPE, pixels: buffer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    fn gradient() -> DynamicImage {
        DynamicImage::ImageRgb8(image::RgbImage::from_fn(40, 30, |x, y| image::Rgb([x as u8, y as u8, 200])))
    }

    #[test]
    fn channels_are_put_one_after_the_other() {
        for format in [ImageFormat::Png, ImageFormat::Tiff, ImageFormat::Bmp, ImageFormat::Pnm] {
            let p = decode(&encoded(&gradient(), format)).unwrap();
            assert_eq!((p.shape, p.dtype), (Shape::new(30, 40, 3), DType::U8), "{format:?}");
            let at = |c: usize, y: usize, x: usize| p.pixels.as_slice::<u8>()[(c * 30 + y) * 40 + x];
            assert_eq!([at(0, 3, 7), at(1, 3, 7), at(2, 3, 7)], [7, 3, 200], "{format:?}");
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
        // As phones append films: any bytes, even those that begin a scan.
        let film = [&bytes[..], b"\0\0\0\x18ftypmp42", &[0xff, 0xda, 0xff, 0xd8, 0, 7]].concat();
        let got = decode(&film).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(got.pixels.bytes(), want.pixels.bytes());
        // A thumbnail inside a segment has an end, but it is not the picture's.
        let note = [&bytes[..2], &[0xff, 0xe1, 0, 6, 0xff, 0xda, 0xff, 0xd9], &bytes[2..]].concat();
        assert!(decode(&note).is_ok());
        assert!(decode(&note[..note.len() - 2]).is_err());
    }

    #[test]
    fn what_is_no_picture_says_so() {
        assert!(decode(b"").err().unwrap().contains("not a PNG"));
        assert!(decode(b"GIF89a____________").err().unwrap().contains("Gif files are not supported"));
    }
}
