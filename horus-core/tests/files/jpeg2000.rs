//! JPEG 2000 files, as OpenJPEG wrote them.

use horus_core::dtype::DType;
use horus_core::error::Result;
use horus_core::io::AnyImage;
use horus_core::session::Session;
use horus_core::shape::Shape;

use crate::{TestFolder, refused, session};

macro_rules! files {
    ($($name:literal),*) => { [$(($name, include_bytes!(concat!("jpeg2000/", $name)).as_slice())),*] };
}

/// Files, by name.
pub(crate) const FILES: [(&str, &[u8]); 6] =
    files!("colour.jp2", "wide.j2k", "twelve.jp2", "lossy.jp2", "alpha.jp2", "grey.j2k");

const HEIGHT: usize = 23;
const WIDTH: usize = 37;

fn stored(name: &str) -> &'static [u8] {
    FILES.iter().find(|(n, _)| *n == name).expect("a file").1
}

fn open(session: &Session, bytes: &[u8]) -> Result<AnyImage> {
    AnyImage::open(session, TestFolder::new().put("a.jp2", bytes))
}

/// The file with `to` in place of the first `from`.
fn with(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = file.windows(from.len()).position(|w| w == from).expect("what is replaced");
    [&file[..at], to, &file[at + from.len()..]].concat()
}

#[test]
fn files_without_loss_are_read_exactly() -> Result<()> {
    let s = session();
    for (name, channels, dtype) in [
        ("colour.jp2", 3, DType::U8),
        ("alpha.jp2", 4, DType::U8),
        ("grey.j2k", 1, DType::U8),
        ("wide.j2k", 1, DType::U16),
        ("twelve.jp2", 1, DType::U16),
    ] {
        let image = open(&s, stored(name))?;
        assert_eq!((image.dtype(), image.shape()), (dtype, Shape::new(HEIGHT, WIDTH, channels)), "{name}");
        assert_eq!(image.alpha().is_some(), channels == 4);
        for (i, v) in image.convert::<f64>().to_vec()?.into_iter().enumerate() {
            let (c, y, x) = (i % channels, i / channels / WIDTH, i / channels % WIDTH);
            let want = match name {
                "wide.j2k" => (WIDTH * y + x) * 76,
                // White stays white.
                "twelve.jp2" => (f64::from((((WIDTH * y + x) * 76) >> 4) as u32) * 65535.0 / 4095.0).round() as usize,
                _ => usize::from([7 * x, 11 * y, 5 * (x ^ y), 255 - 6 * x][c] as u8),
            };
            assert_eq!(v, want as f64, "{name}: {c} {y} {x}");
        }
    }
    Ok(())
}

/// The standard leaves the precision of the transform open.
#[test]
fn files_with_loss_are_read_as_by_openjpeg() -> Result<()> {
    let s = session();
    let want = AnyImage::read(&s, include_bytes!("jpeg2000/lossy.ppm"))?.convert::<u8>().to_vec()?;
    let read = open(&s, stored("lossy.jp2"))?.convert::<u8>().to_vec()?;
    let most = read.iter().zip(&want).map(|(a, b)| a.abs_diff(*b)).max().expect("pixels");
    assert!(read.len() == want.len() && most <= 1, "{most}");
    Ok(())
}

#[test]
fn truncated_files_are_refused() {
    let s = session();
    for (name, file) in FILES {
        for cut in [file.len() - 1, file.len() - 40, file.len() / 2, 60, 20, 12] {
            refused(open(&s, &file[..cut]));
        }
        assert_eq!(refused(open(&s, &file[..file.len() - 1])), "the data is truncated", "{name}");
    }
}

#[test]
fn what_is_not_supported_is_told() {
    let s = session();
    let told = |file: &[u8]| refused(open(&s, file));
    let grey = stored("grey.j2k");
    // One component of eight bits, at each pixel.
    let of = |bits: u8| with(grey, &[0, 1, 7, 1, 1], &[0, 1, bits, 1, 1]);
    assert_eq!(told(&of(0x87)), "samples with sign are not supported");
    assert_eq!(told(&of(16)), "samples of 17 bits are not supported; the limit is 16");
    assert_eq!(told(&with(grey, &[0, 1, 7, 1, 1], &[0, 9, 7, 1, 1])), "9 components are not supported; the limit is 4");
    let coded = with(grey, &[0xff, 0x52], &[0xff, 0x53]);
    assert_eq!(told(&coded), "components with codings of their own are not supported");
}

/// The crate would allocate up to 1392 bytes for each pixel of such files.
#[test]
fn small_files_that_take_much_memory_are_refused() -> Result<()> {
    let s = session();
    let blocks = include_bytes!("jpeg2000/small-blocks.j2k").as_slice();
    let precincts = include_bytes!("jpeg2000/small-precincts.j2k");
    assert_eq!(open(&s, blocks)?.convert::<u8>().max_value().get()?, 0);
    let told = refused(open(&s, precincts));
    let bytes = precincts.len();
    assert_eq!(told, format!("the file declares 400x400 pixels, more than its {bytes} bytes can hold"));
    // Sides of the picture and of its tile.
    let side = |n: u32| [n.to_be_bytes(); 2].concat();
    let large = with(&with(blocks, &side(400), &side(9999)), &side(400), &side(9999));
    let told = refused(open(&s, &large));
    assert!(told.starts_with("its pixels need ") && told.ends_with("to decode; the limit is 8589934592"), "{told}");
    // A file without its tiles: one for each pixel.
    let tiles = with(&with(blocks, &side(400), &side(4000)), &side(400), &side(1));
    let told = refused(open(&s, &tiles));
    assert!(told.starts_with("the file declares 4000x4000 pixels, more than its"), "{told}");
    Ok(())
}
