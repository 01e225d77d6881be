//! Files that declare more than they hold.

use std::io::Cursor;
use std::time::Instant;

use horus_core::error::Result;
use horus_core::io::{AnyImage, FileInfo, OpenOptions};
use image::{DynamicImage, GrayImage, ImageFormat};

use crate::formats::AT_ONCE;
use crate::tiffs::{self, TiffTestPage};
use crate::{TestFolder, refused, session};

fn encoded(side: u32, format: ImageFormat) -> Vec<u8> {
    let picture = GrayImage::from_fn(side, side, |x, y| image::Luma([(x * 3 + y) as u8]));
    encoded_as(&DynamicImage::ImageLuma8(picture), format)
}

fn encoded_as(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// JPEG data that declare a wrong size.
fn jpeg(height: u16, width: u16) -> Vec<u8> {
    let mut bytes = encoded(16, ImageFormat::Jpeg);
    let frame = bytes.windows(2).position(|w| w == [0xff, 0xc0]).expect("a frame");
    bytes[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    bytes[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    bytes
}

/// Asserts that `bytes` are refused at once for content that they cannot hold.
fn is_refused(name: &str, bytes: &[u8], cause: &str) {
    let (s, folder) = (session(), TestFolder::new());
    let started = Instant::now();
    let told = refused(s.open(folder.put(name, bytes)));
    assert!(told.contains(cause), "{name}: {told}");
    assert!(started.elapsed() < AT_ONCE, "{name} took {:?}", started.elapsed());
}

#[test]
fn what_bytes_cannot_hold_is_refused_at_once() {
    let bomb = jpeg(32765, 65535);
    assert!(bomb.len() < 1000);
    is_refused("a.jpg", &bomb, "declares 65535x32765 pixels, more than its");
    let mut png = encoded(16, ImageFormat::Png);
    png[16..24].copy_from_slice(&[0, 0, 0x70, 0, 0, 0, 0x70, 0]);
    // With the checksum of the changed header.
    let sum = crate::fuzz::crc(&png[12..29]);
    png[29..33].copy_from_slice(&sum.to_be_bytes());
    is_refused("a.png", &png, "declares 28672x28672 pixels, more than its");
    is_refused("a.pgm", b"P5 60000 60000 255 \0\0\0", "declares 60000x60000 pixels, more than its 22 bytes");
    is_refused("a.pbm", b"P4 60000 60000 \0\0\0", "more than its");
    let mut bmp = encoded(16, ImageFormat::Bmp);
    bmp[18..26].copy_from_slice(&[0, 0xf0, 0, 0, 0, 0xf0, 0, 0]);
    is_refused("a.bmp", &bmp, "declares 61440x61440 pixels, more than its");
    for compression in [1, 4, 5, 7, 8, 32773] {
        let page = TiffTestPage { compression, ..TiffTestPage::grey(60_000, 60_000, &[0; 100]) };
        is_refused("a.tif", &tiffs::file(&[page], false), "declares 60000x60000 pixels, more than its");
    }
    // A strip of few pixels whose own JPEG data declare many.
    let strip = TiffTestPage { compression: 7, chunks: vec![jpeg(16000, 16000)], ..TiffTestPage::grey(16, 16, &[]) };
    let strip = tiffs::file(&[strip], false);
    is_refused("b.tif", &strip, "JPEG data declares more pixels than its strip");
    // The same with a declared length beyond the file. (Tag 279, one value of 32 bits.)
    let count = strip.windows(8).position(|w| w == [23, 1, 4, 0, 1, 0, 0, 0]).expect("a count") + 8;
    let longer = [&strip[..count], &[255, 255, 0, 0], &strip[count + 4..]].concat();
    is_refused("c.tif", &longer, "JPEG data declares more pixels than its strip");
}

#[test]
fn a_text_that_grows_beyond_reason_is_left_out() {
    let folder = TestFolder::new();
    // The compressed rows of a black picture are a text of 16 MB of zeros.
    let bomb = encoded_as(&DynamicImage::ImageLuma8(GrayImage::new(4000, 4000)), ImageFormat::Png);
    let packed = rows(&bomb);
    assert!(packed.len() < 100_000, "{} bytes", packed.len());
    let small = encoded(16, ImageFormat::Png);
    let text = |keyword: &str, data: &[u8]| {
        let body = [b"zTXt", keyword.as_bytes(), b"\0\0", data].concat();
        let length = (body.len() as u32 - 4).to_be_bytes();
        [&length[..], &body, &crate::fuzz::crc(&body).to_be_bytes()].concat()
    };
    // Eleven zeros: one row of ten black pixels, after the number of its filter.
    let few = encoded_as(&DynamicImage::ImageLuma8(GrayImage::new(10, 1)), ImageFormat::Png);
    let few = rows(&few);
    let file = [&small[..33], &text("Bomb", &packed), &text("Kept", &few), &small[33..]].concat();
    let started = Instant::now();
    let tags = FileInfo::tags(folder.put("a.png", &file), &OpenOptions::default()).unwrap();
    assert_eq!(tags, [("Kept".to_owned(), "\0".repeat(11))]);
    assert!(started.elapsed() < AT_ONCE);
}

/// The compressed rows of a PNG file.
fn rows(png: &[u8]) -> Vec<u8> {
    let (mut rest, mut found) = (&png[8..], Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (chunk, after) = after.split_at(4 + u32::from_be_bytes(*length) as usize);
        found.extend(chunk.strip_prefix(b"IDAT").unwrap_or_default());
        rest = &after[4..];
    }
    found
}

/// Directories of a TIFF file that follow one another in a circle.
#[test]
fn pages_that_lead_back_to_themselves_end() {
    let (s, folder) = (session(), TestFolder::new());
    let mut file = tiffs::file(&[TiffTestPage::grey(4, 2, &[7; 8]), TiffTestPage::grey(4, 2, &[9; 8])], false);
    let first: [u8; 4] = file[4..8].try_into().unwrap();
    let end = file.len() - 4;
    file[end..].copy_from_slice(&first);
    let path = folder.put("a.tif", &file);
    let started = Instant::now();
    assert_eq!(s.open(&path).unwrap().convert::<u8>().to_vec().unwrap(), [7; 8]);
    for told in [
        AnyImage::describe(&s, &path, &OpenOptions::default()).map(|info| info.pages),
        AnyImage::open_volume(&s, &path).map(|volume| volume.shape().depth),
        AnyImage::open_page(&s, &path, 1000).map(|page| page.shape().depth),
    ] {
        // Each page once, or an error.
        assert!(told.as_ref().map_or(true, |pages| *pages == 2), "{told:?}");
    }
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
}

#[test]
fn what_is_dense_but_whole_is_read() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let even = DynamicImage::ImageLuma8(GrayImage::new(3000, 3000));
    for (format, name) in [(ImageFormat::Jpeg, "a.jpg"), (ImageFormat::Png, "a.png")] {
        even.save_with_format(folder.at(name), format).unwrap();
        assert!(std::fs::metadata(folder.at(name)).unwrap().len() < 3000 * 3000 / 80, "{name} is not dense");
        assert_eq!(s.open(folder.at(name))?.shape().area(), 9_000_000, "{name}");
    }
    let strip = TiffTestPage { compression: 7, chunks: vec![jpeg(16, 16)], ..TiffTestPage::grey(16, 16, &[]) };
    assert_eq!(s.open(folder.put("b.tif", &tiffs::file(&[strip], false)))?.shape().area(), 256);
    Ok(())
}

#[test]
fn a_user_bounds_the_pixels() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let options = |max_pixels| OpenOptions { max_pixels, ..OpenOptions::default() };
    let formats = [
        ("a.png", ImageFormat::Png),
        ("a.jpg", ImageFormat::Jpeg),
        ("a.tif", ImageFormat::Tiff),
        ("a.bmp", ImageFormat::Bmp),
    ];
    for (name, format) in formats {
        let path = folder.put(name, &encoded(16, format));
        assert_eq!(AnyImage::open_with(&s, &path, &options(256))?.shape().area(), 256);
        let told = refused(AnyImage::open_with(&s, &path, &options(255)));
        assert!(told.contains("16x16 pixels exceed the limit of 255"), "{told}");
    }
    s.open(folder.at("a.png"))?.to_unit().save(folder.at("a.npy"))?;
    assert!(AnyImage::open_with(&s, folder.at("a.npy"), &options(255)).is_err());
    Ok(())
}
