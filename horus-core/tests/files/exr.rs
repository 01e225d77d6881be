//! OpenEXR files, as OpenEXR 3.5 wrote them.

use horus_core::dtype::DType;
use horus_core::error::Result;
use horus_core::io::AnyImage;
use horus_core::shape::Shape;

use crate::{TestFolder, WARNINGS, refused, session, warnings};

macro_rules! files {
    ($($name:literal),*) => { [$(($name, include_bytes!(concat!("exr/", $name, ".exr")).as_slice())),*] };
}

/// Files, by name.
pub(crate) const FILES: [(&str, &[u8]); 8] =
    files!("grey-piz", "tiles-zip", "window-zips", "alpha-rle", "depth", "rgb-pxr24", "smooth-b44a", "others-zip");

const HEIGHT: usize = 23;
const WIDTH: usize = 17;

fn open(name: &str, bytes: &[u8]) -> Result<AnyImage> {
    AnyImage::open(&session(), TestFolder::new().put(&format!("{name}.exr"), bytes))
}

fn stored(name: &str) -> Vec<u8> {
    FILES.iter().find(|(n, _)| *n == name).expect("a file").1.to_vec()
}

/// The file with `to` in place of the first `from`.
fn with(mut file: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = file.windows(from.len()).position(|w| w == from).expect("what is replaced");
    file[at..at + to.len()].copy_from_slice(to);
    file
}

#[test]
fn channels_by_name_of_lines_and_tiles_in_every_compression() -> Result<()> {
    for (name, bytes) in FILES {
        let channels = match name {
            "grey-piz" | "depth" => 1,
            "alpha-rle" => 2,
            "window-zips" => 4,
            _ => 3,
        };
        let image = open(name, bytes)?;
        assert_eq!((image.dtype(), image.shape()), (DType::F32, Shape::new(HEIGHT, WIDTH, channels)), "{name}");
        for (i, v) in image.convert::<f32>().to_vec()?.into_iter().map(f64::from).enumerate() {
            let (c, y, x) = (i % channels, i / channels / WIDTH, i / channels % WIDTH);
            let (want, off) = if name.starts_with("smooth") {
                let wave = (y as f64 / 5.0 + c as f64).sin() + (x as f64 / 4.0).cos();
                // Lossy.
                (1.5 + wave / 4.0, 0.02)
            } else {
                (((7 * y + 3 * x + 5 * c) % 64) as f64 / 8.0 - 2.0, 0.0)
            };
            assert!((v - want).abs() <= off, "{name}: {v}, not {want}, at {c} {y} {x}");
        }
    }
    Ok(())
}

#[test]
fn what_is_no_picture_is_refused() {
    let other = [
        ("vectors", include_bytes!("exr/vectors.exr").as_slice(), "its channels u, v are neither R, G, B nor Y"),
        ("dwaa", include_bytes!("exr/smooth-dwaa.exr"), "compression by DWA is not supported"),
        ("integers", include_bytes!("exr/integers.exr"), "its channel Y has integers of 32 bits"),
    ];
    for (name, bytes, cause) in other {
        assert_eq!(refused(open(name, bytes)), cause);
    }
    // One sample in all, of the first channel.
    let sampled = with(stored("alpha-rle"), &[1, 0, 0, 0, 1, 0, 0, 0, b'Y'], &[17, 0, 0, 0, 23, 0, 0, 0, b'Y']);
    let told = refused(open("a", &sampled));
    assert!(told.starts_with("the decoder has no such files: channel subsampling"), "{told}");
}

#[test]
fn headers_that_mislead_are_refused() {
    let compressed = b"compression\0compression\0\x01\0\0\0";
    for number in [10, 11] {
        let file = with(stored("alpha-rle"), &[&compressed[..], &[1]].concat(), &[&compressed[..], &[number]].concat());
        assert_eq!(refused(open("a", &file)), "compression by HTJ2K is not supported");
    }
    let named = with(stored("window-zips"), b"A\0\x02\0\0\0", b"B\0\x02\0\0\0");
    assert_eq!(refused(open("a", &named)), "it has several channels B");
    let side = 32_768u32.to_le_bytes();
    let tiles = with(stored("tiles-zip"), &[8, 0, 0, 0, 11, 0, 0, 0], &[side, side].concat());
    let told = refused(open("a", &tiles));
    assert!(told.starts_with("blocks of 6442450944 bytes exceed the limit"), "{told}");
}

#[test]
fn channels_that_are_not_read_are_told() {
    // A name that no other test has.
    let file = with(stored("others-zip"), b"Z\0\x02\0\0\0", b"W\0\x02\0\0\0");
    warnings("".as_ref(), || drop(open("a", &file).expect("a picture")));
    let told = "of OpenEXR files only the grey or colour of the first part is read, not W, id";
    assert!(WARNINGS.0.lock().unwrap().iter().any(|w| w == told));
}

#[test]
fn a_file_that_lacks_blocks_or_has_one_twice_is_refused() {
    let whole = stored("rgb-pxr24");
    for cut in [whole.len() - 1, whole.len() / 2, 400, 40, 4] {
        refused(open("a", &whole[..cut]));
    }
    // The second row in the place of the first. The table of places precedes the first block.
    let file = stored("alpha-rle");
    let table = (0..file.len()).find(|at| file[*at..].starts_with(&(at + 8 * HEIGHT).to_le_bytes())).expect("a table");
    let second = u64::from_le_bytes(*file[table + 8..].first_chunk().expect("a place")) as usize;
    let twice = [&file[..second], &[0; 4], &file[second + 4..]].concat();
    assert_eq!(refused(open("a", &twice)), "a block is in the place of another");
}

#[test]
fn more_pixels_than_the_bytes_can_hold_are_refused() {
    let corner = |x: i32, y: i32| [x.to_le_bytes(), y.to_le_bytes()].concat();
    for name in ["grey-piz", "depth"] {
        let large = with(stored(name), &corner(16, 22), &corner(59_999, 59_999));
        let told = refused(open(name, &large));
        assert!(told.contains("declares 60000x60000 pixels, more than its"), "{told}");
    }
}
