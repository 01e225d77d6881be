//! PFM and PBM files, as OpenCV 5 wrote them.

use horus_core::dtype::DType;
use horus_core::error::{Error, Result};
use horus_core::image::Image;
use horus_core::io::{AnyImage, Depth, OpenOptions, SaveOptions, Scale};
use horus_core::session::Session;
use horus_core::shape::{Axis, Region, Shape};

use crate::{TestFolder, refused, session};

const GREY: &[u8] = include_bytes!("pnm/grey.pfm");
const COLOUR: &[u8] = include_bytes!("pnm/colour.pfm");
const DIAGONALS: &[u8] = include_bytes!("pnm/diagonals.pbm");
const HEIGHT: usize = 5;
const WIDTH: usize = 11;

/// Files as seeds of others.
pub(crate) const FLOATS: [&[u8]; 2] = [GREY, COLOUR];

/// The pixels of the files: exact in 32 bits.
fn floats(session: &Session, channels: usize) -> Image<f32> {
    let grey = Image::<f32>::from_fn(session, HEIGHT, WIDTH, |y, x| (WIDTH * y + x) as f32 / 8.0 - 2.0);
    match channels {
        1 => grey,
        _ => Image::stack(session, [&grey, &(&grey * 2.0), &(&grey * -1.0)], Axis::Channels),
    }
}

/// The cause of a failed save.
fn unsaved(saved: Result<Option<Scale>>) -> String {
    match saved {
        Err(Error::File { action: "write", cause, .. }) => cause,
        other => panic!("{other:?}"),
    }
}

/// The file with its samples in the other byte order, which the sign of the scale tells.
fn swapped(file: &[u8]) -> Vec<u8> {
    let (before, after) = (b"\n-1\n", b"\n1\n");
    let at = file.windows(before.len()).position(|bytes| bytes == before).expect("a scale");
    let samples = file[at + before.len()..].as_chunks::<4>().0.iter().flat_map(|sample| sample.iter().rev());
    file[..at].iter().chain(after).chain(samples).copied().collect()
}

#[test]
fn floats_are_read_from_below_in_both_byte_orders() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    for (channels, file) in [(1, GREY), (3, COLOUR)] {
        let want = floats(&s, channels);
        for file in [file.to_vec(), swapped(file)] {
            let path = folder.put("a.pfm", &file);
            for on_demand in [false, true] {
                let options = OpenOptions { on_demand: Some(on_demand), ..OpenOptions::default() };
                let image = AnyImage::open_with(&s, &path, &options)?;
                assert_eq!((image.dtype(), image.shape()), (DType::F32, Shape::new(HEIGHT, WIDTH, channels)));
                assert_eq!(image.convert::<f32>().to_vec()?, want.to_vec()?);
                let region = Some(Region::new(1, 3, 3, 4));
                let part = AnyImage::open_with(&s, &path, &OpenOptions { region, ..options })?;
                assert_eq!(part.convert::<f32>().to_vec()?, want.crop(1, 3, 3, 4).to_vec()?);
            }
            assert_eq!(AnyImage::read(&s, &file)?.convert::<f32>().to_vec()?, want.to_vec()?);
        }
    }
    Ok(())
}

#[test]
fn damaged_floats_are_refused() {
    let (s, folder) = (session(), TestFolder::new());
    let told = |file: &[u8]| refused(s.open(folder.put("a.pfm", file)));
    for cut in [GREY.len() - 1, GREY.len() / 2] {
        let all = format!("the file declares {WIDTH}x{HEIGHT} pixels, more than its {cut} bytes can hold");
        assert_eq!(told(&GREY[..cut]), all);
    }
    assert!(told(b"PF\n60000 60000\n-1\n____________").starts_with("the file declares 60000x60000 pixels, more than"));
    assert_eq!(told(b"PFand other text "), "\"and\" is no number of rows or columns");
}

#[test]
fn floats_are_written_as_by_others() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.at("a.pfm");
    for (channels, file) in [(1, GREY), (3, COLOUR)] {
        let image = floats(&s, channels);
        // Of 64 bits, too.
        image.save(&path)?;
        let written = std::fs::read(&path).expect("a file");
        image.convert::<f64>().save(&path)?;
        assert_eq!(std::fs::read(&path).expect("a file"), written);
        if cfg!(target_endian = "little") {
            assert!(written == file, "{channels}");
        }
        assert_eq!(Image::<f32>::open(&s, &path)?.to_vec()?, image.to_vec()?);
    }
    let odd = [f32::NAN, f32::INFINITY, -0.0, 1e-42];
    Image::from_slice(&s, (2, 2), &odd).save(&path)?;
    let read: Vec<u32> = Image::<f32>::open(&s, &path)?.to_vec()?.into_iter().map(f32::to_bits).collect();
    assert_eq!(read, odd.map(f32::to_bits));
    // Integers only if asked for.
    let bytes = Image::from_slice(&s, (1, 3), &[0u8, 7, 255]);
    assert_eq!(
        unsaved(bytes.save(&path)),
        "a pfm file cannot hold 8 bits per sample; save as png, tif, pgm, bmp, webp, jpg, npy, or ask for Depth::Float (32-bit floats, unscaled)"
    );
    bytes.save_with(&path, &SaveOptions { depth: Depth::Float, ..SaveOptions::default() })?;
    assert_eq!(Image::<f32>::open(&s, &path)?.to_vec()?, [0.0, 7.0, 255.0]);
    Ok(())
}

#[test]
fn masks_are_written_as_bitmaps() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.at("a.pbm");
    let diagonals = Image::<u8>::from_fn(&s, HEIGHT, WIDTH, |y, x| ((x + y) % 3 == 0).into());
    diagonals.gt(0).save(&path)?;
    assert_eq!(std::fs::read(&path).expect("a file"), DIAGONALS);
    // White is true.
    assert_eq!(Image::<u8>::open(&s, &path)?.to_vec()?, (diagonals * 255).to_vec()?);
    let told = unsaved(Image::<u8>::constant(&s, (2, 2), 1).save(&path));
    assert!(told.starts_with("a pbm file cannot hold 8 bits per sample; save as png, "), "{told}");
    assert!(told.ends_with("; it holds masks, such as the result of a comparison"), "{told}");
    Ok(())
}
