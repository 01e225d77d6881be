//! Slides as Aperio and Hamamatsu write them, by tifffile and by hand; tifffile reads them as the same levels.

use horus_core::dtype::DType;
use horus_core::error::Result;
use horus_core::io::{AnyImage, Format, OpenOptions, Picture, PictureReader, PixelSize};
use horus_core::shape::{Region, Shape};

use crate::{TestFolder, refused, session};

const APERIO: [&[u8]; 2] = [include_bytes!("slides/ycbcr.svs"), include_bytes!("slides/rgb.svs")];
/// With JPEG 2000 data.
const APERIO_2000: [&[u8]; 2] = [include_bytes!("slides/ycbcr-2000.svs"), include_bytes!("slides/rgb-2000.svs")];
const HAMAMATSU: &[u8] = include_bytes!("slides/three.ndpi");

/// Files as seeds of others.
pub(crate) const FILES: [&[u8]; 5] = [APERIO[0], APERIO[1], APERIO_2000[0], APERIO_2000[1], HAMAMATSU];

const HEIGHT: usize = 128;
const WIDTH: usize = 192;

/// The largest difference of a picture from the colours that were compressed, at `step` pixels of the largest size.
fn off(image: &AnyImage, step: f64, [top, left]: [usize; 2]) -> f64 {
    let Shape { height, width, channels, .. } = image.shape();
    let pixels = image.convert::<f64>().to_vec().expect("pixels");
    let off = |(i, v): (usize, f64)| {
        let (y, x) = (i / channels / width + top, i / channels % width + left);
        let [y, x] = [y, x].map(|at| step * (at as f64 + 0.5));
        (v - [x, 200.0 - y, 60.0 + (x + y) / 4.0][i % channels].floor()).abs()
    };
    assert_eq!(pixels.len(), height * width * 3);
    pixels.into_iter().enumerate().map(off).fold(0.0, f64::max)
}

#[test]
fn sizes_of_slides_are_levels_and_other_pages_are_pages() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    for (name, file, sizes, pages) in
        [("a.svs", APERIO[0], 3, 4), ("b.svs", APERIO[1], 3, 4), ("c.ndpi", HAMAMATSU, 2, 4)]
    {
        let path = folder.put(name, file);
        let told = AnyImage::describe(&s, &path, &OpenOptions::default())?;
        let levels: Vec<_> = (0..sizes).map(|k| (HEIGHT >> k, WIDTH >> k)).collect();
        assert_eq!((told.pages, &told.levels, told.dtype), (pages, &levels, DType::U8), "{name}");
        for level in 0..sizes {
            let options = OpenOptions { level, ..OpenOptions::default() };
            let image = AnyImage::open_with(&s, &path, &options)?;
            assert_eq!(image.shape(), Shape::new(HEIGHT >> level, WIDTH >> level, 3));
            // Quality 95, and colours of half the columns.
            let step = f64::from(1 << level);
            assert!(off(&image, step, [0, 0]) <= 6.0, "{name} {level}: {}", off(&image, step, [0, 0]));
            let side = if name == "c.ndpi" { 0.5 } else { 0.499 } * step;
            let pixel = Picture::open(&path, &options)?.metadata().pixel;
            assert_eq!(pixel, PixelSize::of([None, Some(side), Some(side)]), "{name} {level}");
        }
        let beyond = OpenOptions { level: sizes, ..OpenOptions::default() };
        let told = refused(AnyImage::open_with(&s, &path, &beyond));
        let copies = sizes - 1;
        assert_eq!(
            told,
            format!("level {sizes} requested, but page 0 has {copies} smaller copies (level 0 is the page)")
        );
        let page = |page: usize| AnyImage::open_with(&s, &path, &OpenOptions { page: Some(page), ..<_>::default() });
        // Aperio: a thumbnail, a label, the whole slide. Hamamatsu: out of focus, the whole slide, a label.
        let (label, shapes) = match name {
            "c.ndpi" => (3, [(HEIGHT, WIDTH, 3), (30, 60, 3), (20, 24, 1)]),
            _ => (2, [(80, 120, 3), (20, 24, 1), (30, 60, 3)]),
        };
        for (k, (height, width, channels)) in (1..).zip(shapes) {
            assert_eq!(page(k)?.shape(), Shape::new(height, width, channels), "{name} {k}");
        }
        let seen = page(label)?.convert::<u8>().to_vec()?;
        assert!(seen.iter().all(|v| v.abs_diff(77) <= 1), "{name}");
    }
    assert!(["svs", "ndpi"].into_iter().all(Format::is_read));
    Ok(())
}

#[test]
fn sizes_of_jpeg_2000_data_are_levels() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    for (file, most) in APERIO_2000.into_iter().zip([2.0, 0.0]) {
        let path = folder.put("a.svs", file);
        for level in 0..2 {
            let options = OpenOptions { level, ..OpenOptions::default() };
            let image = AnyImage::open_with(&s, &path, &options)?;
            assert_eq!(image.shape(), Shape::new(HEIGHT >> level, WIDTH >> level, 3));
            let off = off(&image, f64::from(1 << level), [0, 0]);
            assert!(off <= most, "{off}");
        }
        let reader = PictureReader::open(&path, &OpenOptions::default())?;
        let part = reader.read(Region::new(10, 70, 40, 50))?;
        assert_eq!(reader.counted().chunks, 1);
        assert!(off(&AnyImage::from_picture(&s, part), 1.0, [10, 70]) <= most);
    }
    Ok(())
}

#[test]
fn only_tiles_of_a_region_are_read() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    for file in APERIO {
        let path = folder.put("a.svs", file);
        let reader = PictureReader::open(&path, &OpenOptions::default())?;
        assert_eq!((reader.chunk(), reader.levels().len()), ((64, 64), 3));
        let part = reader.read(Region::new(10, 70, 40, 50))?;
        assert_eq!(reader.counted().chunks, 1);
        assert!(off(&AnyImage::from_picture(&s, part), 1.0, [10, 70]) <= 6.0);
    }
    Ok(())
}

#[test]
fn other_descriptions_leave_pages_as_they_are() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    // The tag 65420, a number.
    for (file, maker) in [(APERIO[0], b"Aperio".as_slice()), (HAMAMATSU, &[0x8c, 0xff, 4, 0, 1, 0, 0, 0])] {
        let at = file.windows(maker.len()).position(|bytes| bytes == maker).expect("a maker");
        let mut other = file.to_vec();
        other[at] ^= 0x40;
        let told = AnyImage::describe(&s, folder.put("a.tif", &other), &OpenOptions::default())?;
        assert_eq!(told.levels, [(HEIGHT, WIDTH)]);
    }
    Ok(())
}
