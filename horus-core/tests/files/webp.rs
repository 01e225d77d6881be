//! WebP files, as libwebp wrote them by Pillow 13.

use std::io::Cursor;

use horus_core::dtype::DType;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::{Alpha, AnyImage, OpenOptions, Orientation, Picture};
use horus_core::session::Session;
use horus_core::shape::Shape;

use crate::{TestFolder, refused, session};

macro_rules! files {
    ($($name:literal),*) => { [$(($name, include_bytes!(concat!("webp/", $name, ".webp")).as_slice())),*] };
}

/// Files, by name.
pub(crate) const FILES: [(&str, &[u8]); 5] = files!("colour", "alpha", "colour-lossy", "alpha-lossy", "turned");

const HEIGHT: usize = 23;
const WIDTH: usize = 37;

fn stored(name: &str) -> &'static [u8] {
    FILES.iter().find(|(n, _)| *n == name).expect("a file").1
}

/// The pixels of the files without loss.
fn pixels(channels: usize) -> Vec<u8> {
    let pixel = |y: usize, x: usize| [7 * x, 11 * y, 5 * (x ^ y), 255 - 6 * x].map(|v| v as u8);
    (0..HEIGHT * WIDTH).flat_map(|i| pixel(i / WIDTH, i % WIDTH).into_iter().take(channels)).collect()
}

fn open(session: &Session, bytes: &[u8]) -> Result<AnyImage> {
    AnyImage::open(session, TestFolder::new().put("a.webp", bytes))
}

#[test]
fn files_without_loss_are_read_exactly() -> Result<()> {
    let s = session();
    for (name, channels) in [("colour", 3), ("alpha", 4)] {
        let image = open(&s, stored(name))?;
        assert_eq!((image.dtype(), image.shape()), (DType::U8, Shape::new(HEIGHT, WIDTH, channels)), "{name}");
        assert!(image.convert::<u8>().to_vec()? == pixels(channels), "{name}");
        assert_eq!(image.alpha().is_some(), channels == 4);
    }
    Ok(())
}

/// The standard defines the samples of each block; decoders differ in how they interpolate colours.
#[test]
fn files_with_loss_are_read_as_by_libwebp() -> Result<()> {
    let s = session();
    for (name, want) in [
        ("colour-lossy", include_bytes!("webp/colour-lossy.pam").as_slice()),
        ("alpha-lossy", include_bytes!("webp/alpha-lossy.pam").as_slice()),
    ] {
        let (read, want) = (open(&s, stored(name))?, AnyImage::read(&s, want)?);
        assert_eq!(read.shape(), want.shape());
        let (read, want) = (read.convert::<u8>().to_vec()?, want.convert::<u8>().to_vec()?);
        let most = read.iter().zip(&want).map(|(a, b)| a.abs_diff(*b)).max().expect("pixels");
        assert!(most <= 1, "{name}: {most}");
    }
    Ok(())
}

#[test]
fn exif_data_turn_pictures_and_are_kept() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let turned = open(&s, stored("turned"))?;
    let upright = Image::<u8>::from_slice(&s, Shape::new(HEIGHT, WIDTH, 3), &pixels(3));
    // The first row of the file is the right column.
    let want = upright.transpose().flip(horus_core::shape::Axis::Columns);
    assert!(turned.convert::<u8>().to_vec()? == want.to_vec()?);
    let path = folder.at("a.webp");
    turned.convert::<u8>().save(&path)?;
    let again = Picture::open(&path, &OpenOptions::default())?;
    assert!(again.metadata().exif.is_some() && again.shape() == Shape::new(WIDTH, HEIGHT, 3));
    let kept = OpenOptions { orientation: Orientation::Keep, ..OpenOptions::default() };
    assert_eq!(Picture::read(stored("turned"), &kept)?.shape(), Shape::new(HEIGHT, WIDTH, 3));
    Ok(())
}

#[test]
fn files_are_written_without_loss() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.at("a.webp");
    for channels in [1, 3, 4] {
        let image = Image::<u8>::from_slice(&s, Shape::new(HEIGHT, WIDTH, channels), &pixels(channels));
        image.save(&path)?;
        let theirs = image::load(Cursor::new(std::fs::read(&path).expect("a file")), image::ImageFormat::WebP);
        let theirs = theirs.expect("a picture");
        let want = if channels == 1 { pixels(1).into_iter().flat_map(|v| [v; 3]).collect() } else { pixels(channels) };
        assert!(theirs.into_bytes() == want, "{channels}");
        assert!(s.open(&path)?.convert::<u8>().to_vec()? == want, "{channels}");
    }
    // Colours are not multiplied by alpha.
    let rgba = AnyImage::U8(Image::from_slice(&s, Shape::new(1, 1, 4), &[51, 102, 0, 102]));
    rgba.with_alpha(Some(Alpha::Associated)).convert::<u8>().save(&path)?;
    assert_eq!(s.open(&path)?.convert::<u8>().to_vec()?, [128, 255, 0, 102]);
    let wide = Image::<u8>::constant(&s, (1, 16384), 0).save(&path);
    assert!(format!("{wide:?}").contains("a webp file cannot hold 1x16384 pixels"), "{wide:?}");
    Ok(())
}

#[test]
fn what_is_not_read_is_told() {
    let s = session();
    assert_eq!(refused(open(&s, include_bytes!("webp/film.webp"))), "animations are not supported");
    for (name, file) in FILES {
        for cut in [file.len() - 1, file.len() / 2, 40, 16] {
            refused(open(&s, &file[..cut]));
        }
        assert_eq!(refused(open(&s, &file[..file.len() - 1])), "the WebP data is truncated", "{name}");
    }
    let told = refused(open(&s, b"RIFF\x04\0\0\0WAVEfmt "));
    assert!(told.starts_with("Invalid WebP signature"), "{told}");
}
