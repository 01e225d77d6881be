//! OpenEXR files, as OpenEXR 3.5 wrote them, and files that Horus wrote.

use std::io::Read;

use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::DType;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::{Alpha, AnyImage, Depth, SaveOptions, Scaling};
use horus_core::session::Session;
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

/// Reads lines of 32-bit floats, deflated 16 at a time, by the description of the format ("OpenEXR File Layout"), not by
/// the crate that wrote them: names of channels, and the bits of the samples, line by line, channel by channel.
fn parsed(file: &[u8], width: usize, height: usize) -> (Vec<String>, Vec<u32>) {
    fn until_zero<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
        let text = rest.split(|byte| *byte == 0).next().expect("a text");
        *rest = &rest[text.len() + 1..];
        text
    }
    fn bytes<'a>(rest: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (first, others) = rest.split_at(count);
        *rest = others;
        first
    }
    let long = |bytes: &[u8]| u32::from_le_bytes(*bytes.first_chunk().expect("four bytes")) as usize;
    let mut rest = file.strip_prefix(b"\x76\x2f\x31\x01\x02\0\0\0").expect("lines of one part");
    let mut names = Vec::new();
    loop {
        let name = until_zero(&mut rest);
        if name.is_empty() {
            break;
        }
        let _type = until_zero(&mut rest);
        let length = long(bytes(&mut rest, 4));
        let mut value = bytes(&mut rest, length);
        match name {
            b"compression" => assert_eq!(value, [3]),
            b"lineOrder" => assert_eq!(value, [0]),
            b"dataWindow" | b"displayWindow" => {
                assert_eq!([0, 4, 8, 12].map(|at| long(&value[at..])), [0, 0, width - 1, height - 1]);
            }
            b"channels" => {
                while value.len() > 1 {
                    names.push(String::from_utf8_lossy(until_zero(&mut value)).into_owned());
                    // Floats, of each pixel.
                    let channel = bytes(&mut value, 16);
                    assert_eq!([0, 8, 12].map(|at| long(&channel[at..])), [2, 1, 1]);
                }
            }
            _ => {}
        }
    }
    let places = bytes(&mut rest, 8 * height.div_ceil(16));
    let mut bits = Vec::new();
    for (k, place) in places.chunks(8).enumerate() {
        let mut block = &file[long(place)..];
        assert_eq!(long(bytes(&mut block, 4)), 16 * k);
        let length = long(bytes(&mut block, 4));
        let data = bytes(&mut block, length);
        let whole = 4 * width * names.len() * (height - 16 * k).min(16);
        if length == whole {
            bits.extend(data.chunks(4).map(|sample| long(sample) as u32));
            continue;
        }
        let mut differences = Vec::new();
        flate2::read::ZlibDecoder::new(data).read_to_end(&mut differences).expect("deflated data");
        assert_eq!(differences.len(), whole);
        // Each byte is the difference from the one before, plus 128; first the bytes at even places, then the others.
        let mut byte = 0u8;
        let mut sum = |(i, by): (usize, &u8)| {
            byte = if i == 0 { *by } else { byte.wrapping_add(*by).wrapping_sub(128) };
            byte
        };
        let apart: Vec<u8> = differences.iter().enumerate().map(&mut sum).collect();
        let (even, odd) = apart.split_at(whole / 2);
        let together: Vec<u8> = even.iter().zip(odd).flat_map(|(even, odd)| [*even, *odd]).collect();
        bits.extend(together.chunks(4).map(|sample| long(sample) as u32));
    }
    (names, bits)
}

#[test]
fn written_files_have_the_same_values() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.at("a.exr");
    let odd = [f32::NAN, f32::NEG_INFINITY, -0.0, 1e-42, f32::MAX];
    for channels in 1..=4 {
        // More than a block of 16 lines.
        let shape = Shape::new(37, 19, channels);
        let values: Vec<f32> = (0..shape.len()).map(|i| odd.get(i % 50).copied().unwrap_or(i as f32 / 8.0)).collect();
        let image = Image::from_slice(&s, shape, &values);
        image.save(&path)?;
        let (names, stored) = parsed(&std::fs::read(&path).expect("a file"), 19, 37);
        let places: &[usize] = [&["Y"][..], &["A", "Y"], &["B", "G", "R"], &["A", "B", "G", "R"]]
            .iter()
            .position(|known| names == **known)
            .map(|found| [&[0][..], &[1, 0], &[2, 1, 0], &[3, 2, 1, 0]][found])
            .expect("known names");
        let lines = values.chunks(19 * channels);
        let want = lines.flat_map(|line| {
            places.iter().flat_map(|place| line[*place..].iter().step_by(channels).map(|v| v.to_bits()))
        });
        assert!(stored.into_iter().eq(want), "{names:?}");
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let read = s.open(&path)?;
        assert_eq!((read.dtype(), read.shape()), (DType::F32, shape));
        assert!(bits(read.convert::<f32>().to_vec()?) == bits(values), "{channels}");
        assert_eq!(read.alpha().is_some(), channels % 2 == 0);
        // The bytes do not depend on threads.
        let threads = Session::on(Box::new(CpuDevice::new(Some(3))?)).build()?;
        let again = AnyImage::open(&threads, &path)?.convert::<f32>();
        again.save(folder.at("b.exr"))?;
        assert!(std::fs::read(folder.at("b.exr")).unwrap() == std::fs::read(&path).unwrap(), "{channels}");
    }
    // Colours are multiplied by alpha.
    let rgba = AnyImage::F32(Image::from_slice(&s, Shape::new(1, 2, 4), &[1.0, 0.5, 0.0, 0.5, 1.0, 1.0, 1.0, 0.0]));
    let rgba = rgba.with_alpha(Some(Alpha::Unassociated)).convert::<f32>();
    // Floats have no scaling.
    let unscaled = SaveOptions { depth: Depth::Float, scaling: Scaling::Range, ..SaveOptions::default() };
    for options in [SaveOptions::default(), unscaled] {
        rgba.save_with(&path, &options)?;
        assert_eq!(s.open(&path)?.convert::<f32>().to_vec()?, [0.5, 0.25, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0]);
    }
    let bytes = Image::<u8>::from_slice(&s, Shape::new(1, 1, 2), &[100, 51]);
    let bytes = AnyImage::U8(bytes).with_alpha(Some(Alpha::Unassociated)).convert::<u8>();
    bytes.save_with(&path, &SaveOptions { depth: Depth::Float, ..SaveOptions::default() })?;
    assert_eq!(s.open(&path)?.convert::<f32>().to_vec()?, [20.0, 51.0]);
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
