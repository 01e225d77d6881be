//! Parts of files: what is read of a region is what a crop of the whole has, whatever the file is cut into.

use std::io::Cursor;

use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::DType;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::{AnyImage, OpenOptions, Orientation};
use horus_core::session::Session;
use horus_core::shape::{Region, Shape};
use image::{DynamicImage, ImageFormat, RgbImage};

use super::tiffs::{self, Page};
use super::{Folder, refused};

const HEIGHT: usize = 23;
const WIDTH: usize = 38;

fn sample(c: usize, y: usize, x: usize) -> u8 {
    (y * 41 + x * 7 + c * 90) as u8
}

/// A chunky page of samples, in strips of so many rows or in tiles; `encode` makes the bytes of a sample.
fn page(samples: usize, rows: usize, tile: Option<(usize, usize)>, bits: u32, encode: impl Fn(u8) -> Vec<u8>) -> Page {
    let (w, h) = tile.unwrap_or((WIDTH, rows));
    let mut chunks = Vec::new();
    for top in (0..HEIGHT).step_by(h) {
        for left in (0..WIDTH).step_by(w) {
            let bottom = if tile.is_some() { top + h } else { (top + h).min(HEIGHT) };
            let pixels = (top..bottom).flat_map(|y| (left..left + w).map(move |x| (y, x)));
            let values = pixels.flat_map(|(y, x)| (0..samples).map(move |c| (c, y, x)));
            let value = |(c, y, x)| if y < HEIGHT && x < WIDTH { sample(c, y, x) } else { 222 };
            chunks.push(values.map(value).flat_map(&encode).collect());
        }
    }
    Page {
        width: WIDTH as u32,
        height: HEIGHT as u32,
        bits,
        format: 1,
        samples: samples as u32,
        compression: 1,
        photometric: if samples == 1 { 1 } else { 2 },
        tile: tile.map(|(w, h)| (w as u32, h as u32)),
        rows: rows as u32,
        chunks,
        ..Page::default()
    }
}

/// All, a pixel, corners, a row, a column, parts of several tiles.
fn regions() -> Vec<Region> {
    let whole = Region::new(0, 0, HEIGHT, WIDTH);
    let corners = [(0, 0), (0, WIDTH - 3), (HEIGHT - 2, 0), (HEIGHT - 2, WIDTH - 3)];
    let corners = corners.map(|(top, left)| Region::new(top, left, 2, 3));
    let others = [(7, 15, 1, 1), (11, 0, 1, WIDTH), (0, 17, HEIGHT, 1), (5, 14, 12, 20), (15, 16, 1, 16)];
    [whole].into_iter().chain(corners).chain(others.map(|(t, l, h, w)| Region::new(t, l, h, w))).collect()
}

fn part(region: Region) -> OpenOptions {
    OpenOptions { region: Some(region), ..OpenOptions::default() }
}

/// What the region of a picture of such samples holds.
fn wanted(samples: usize, Region { top, left, height, width }: Region) -> Vec<u8> {
    let pixels = |c| (top..top + height).flat_map(move |y| (left..left + width).map(move |x| sample(c, y, x)));
    (0..samples).flat_map(pixels).collect()
}

#[test]
fn regions_of_tiffs_are_those_of_the_picture_however_it_is_cut() -> Result<()> {
    let folder = Folder::new();
    for threads in [1, 3] {
        let s = Session::on(Box::new(CpuDevice::new(Some(threads))?)).build()?;
        for samples in [1, 3] {
            for (rows, tile) in [(HEIGHT, None), (5, None), (1, None), (0, Some((16, 16))), (0, Some((64, 32)))] {
                for big in [false, true] {
                    let wide = |v: u8| if big { vec![v, 0] } else { vec![0, v] };
                    let eight = folder.put("8.tif", &tiffs::file(&[page(samples, rows, tile, 8, |v| vec![v])], big));
                    let sixteen = folder.put("16.tif", &tiffs::file(&[page(samples, rows, tile, 16, wide)], big));
                    for region in regions() {
                        let what = format!("{samples} samples, {rows} rows, {tile:?}, {region}, {threads} threads");
                        let read = AnyImage::open_with(&s, &eight, &part(region))?;
                        assert_eq!(read.shape(), Shape::new(region.height, region.width, samples), "{what}");
                        assert_eq!(read.convert::<u8>().to_vec()?, wanted(samples, region), "{what}");
                        let read = AnyImage::open_with(&s, &sixteen, &part(region))?.convert::<f32>() / 256.0;
                        assert_eq!(read.convert::<u8>().to_vec()?, wanted(samples, region), "16 bits, {what}");
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn regions_of_other_formats_are_those_of_the_picture() -> Result<()> {
    let (s, folder) = (super::session(), Folder::new());
    let colour = RgbImage::from_fn(WIDTH as u32, HEIGHT as u32, |x, y| {
        image::Rgb([0, 1, 2].map(|c| sample(c, y as usize, x as usize)))
    });
    for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Pnm] {
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::ImageRgb8(colour.clone()).write_to(&mut bytes, format).expect("a picture");
        let path = folder.put("a", bytes.get_ref());
        for region in regions() {
            let read = AnyImage::open_with(&s, &path, &part(region))?.convert::<u8>();
            assert_eq!(read.to_vec()?, wanted(3, region), "{format:?}, {region}");
        }
        let info = AnyImage::describe(&s, &path, &OpenOptions::default())?;
        assert_eq!((info.shape, info.dtype, info.pages), (Shape::new(HEIGHT, WIDTH, 3), DType::U8, 1), "{format:?}");
        assert_eq!(info.tile, (if format == ImageFormat::Pnm { 1 } else { HEIGHT }, WIDTH), "{format:?}");
    }
    let volume = Image::from_volume_fn(&s, 3, HEIGHT, WIDTH, |z, y, x| f32::from(sample(z, y, x)) * 0.5);
    volume.save(folder.at("v.npy"))?;
    for region in regions() {
        let options = OpenOptions { volume: true, ..part(region) };
        let read = AnyImage::open_with(&s, folder.at("v.npy"), &options)?;
        assert_eq!(read.shape(), Shape::volume(3, region.height, region.width, 1));
        let want: Vec<f32> = wanted(3, region).into_iter().map(|v| f32::from(v) * 0.5).collect();
        assert_eq!(read.convert::<f32>().to_vec()?, want, "{region}");
    }
    Ok(())
}

#[test]
fn an_array_by_columns_has_the_same_regions() -> Result<()> {
    let (s, folder) = (super::session(), Folder::new());
    let header = format!("{{'descr': '|u1', 'fortran_order': True, 'shape': ({HEIGHT}, {WIDTH}), }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend((0..WIDTH).flat_map(|x| (0..HEIGHT).map(move |y| sample(0, y, x))));
    let path = folder.put("f.npy", &bytes);
    for region in regions() {
        assert_eq!(AnyImage::open_with(&s, &path, &part(region))?.convert::<u8>().to_vec()?, wanted(1, region), "{region}");
    }
    assert_eq!(AnyImage::describe(&s, &path, &OpenOptions::default())?.tile, (HEIGHT, WIDTH));
    Ok(())
}

#[test]
fn smaller_copies_of_a_page_are_its_levels() -> Result<()> {
    let (s, folder) = (super::session(), Folder::new());
    let small = |n: u32, v: u8| Page { copy: true, ..Page::grey(n, n, &vec![v; (n * n) as usize]) };
    let full = |v: u8| Page::grey(8, 8, &[v; 64]);
    let bytes = tiffs::file(&[full(1), small(2, 3), small(4, 2), full(4), small(4, 5)], false);
    let path = folder.put("pyramid.tif", &bytes);
    let at = |page, level| OpenOptions { page: Some(page), level, ..OpenOptions::default() };
    for (page, level, side, value) in [(0, 0, 8, 1), (0, 1, 4, 2), (0, 2, 2, 3), (1, 0, 8, 4), (1, 1, 4, 5)] {
        let read = AnyImage::open_with(&s, &path, &at(page, level))?;
        assert_eq!(read.shape(), Shape::new(side, side, 1), "page {page}, level {level}");
        assert_eq!(read.convert::<u8>().to_vec()?, vec![value; side * side], "page {page}, level {level}");
    }
    let why = refused(AnyImage::open_with(&s, &path, &at(0, 3)));
    assert!(why.contains("level 3 requested, but page 0 has 2 smaller copies"), "{why}");
    assert!(refused(AnyImage::open_with(&s, &path, &at(2, 0))).contains("page 2 requested, but it has 2"));
    let info = AnyImage::describe(&s, &path, &OpenOptions::default())?;
    assert_eq!((info.pages, &info.levels[..]), (2, &[(8, 8), (4, 4), (2, 2)][..]));
    let volume = AnyImage::open_volume(&s, &path)?;
    assert_eq!(volume.shape(), Shape::volume(2, 8, 8, 1), "copies are no levels of a volume");
    let other = folder.put("a.pgm", b"P5 1 1 255 _");
    assert!(refused(AnyImage::open_with(&s, &other, &at(0, 1))).contains("only TIFF files have smaller copies"));
    Ok(())
}

#[test]
fn only_what_holds_the_region_is_read() -> Result<()> {
    let (s, folder) = (super::session(), Folder::new());
    // All tiles but one are missing: the file ends after the first.
    let whole = tiffs::file(&[page(1, 0, Some((16, 16)), 8, |v| vec![v])], false);
    let mut broken = page(1, 0, Some((16, 16)), 8, |v| vec![v]);
    broken.compression = 8; // of which no tile is
    let path = folder.put("a.tif", &whole);
    let inside = Region::new(3, 4, 10, 11);
    assert_eq!(AnyImage::open_with(&s, &path, &part(inside))?.convert::<u8>().to_vec()?, wanted(1, inside));
    let mut one = page(1, 0, Some((16, 16)), 8, |v| vec![v]);
    one.chunks.iter_mut().skip(1).for_each(Vec::clear);
    let path = folder.put("one.tif", &tiffs::file(&[one], false));
    assert_eq!(AnyImage::open_with(&s, &path, &part(inside))?.convert::<u8>().to_vec()?, wanted(1, inside));
    refused(AnyImage::open_with(&s, &path, &part(Region::new(3, 14, 1, 3))));
    refused(AnyImage::open(&s, &path));
    refused(AnyImage::open(&s, folder.put("broken.tif", &tiffs::file(&[broken], false))));
    // A region is what is bounded, not the picture.
    let few = OpenOptions { max_pixels: 110, ..part(inside) };
    assert!(AnyImage::open_with(&s, folder.at("a.tif"), &few).is_ok());
    let fewer = OpenOptions { max_pixels: 109, ..few };
    assert!(refused(AnyImage::open_with(&s, folder.at("a.tif"), &fewer)).contains("exceed the limit of 109"));
    Ok(())
}

#[test]
fn regions_outside_of_a_picture_are_refused() -> Result<()> {
    let (s, folder) = (super::session(), Folder::new());
    Image::<u8>::zeros(&s, 5, 6).save(folder.at("a.npy"))?;
    Image::<u8>::zeros(&s, 5, 6).save(folder.at("a.tif"))?;
    Image::<u8>::zeros(&s, 5, 6).save(folder.at("a.png"))?;
    for name in ["a.npy", "a.tif", "a.png"] {
        for (top, left, height, width) in [(0, 0, 6, 6), (5, 0, 1, 1), (0, 6, 1, 1), (0, 0, 0, 3), (usize::MAX, 0, 2, 1)] {
            let why = refused(AnyImage::open_with(&s, folder.at(name), &part(Region::new(top, left, height, width))));
            assert!(why.contains("is not inside its 5x6 pixels"), "{name}: {why}");
        }
    }
    Ok(())
}

#[test]
fn a_region_of_a_picture_that_is_turned_is_of_what_is_seen() -> Result<()> {
    let (s, folder) = (super::session(), Folder::new());
    let kept = folder.put("a.tif", &tiffs::file(&[page(1, 5, None, 8, |v| vec![v])], false));
    let region = Region::new(3, 4, 5, 6);
    let options = OpenOptions { orientation: Orientation::Keep, ..part(region) };
    assert_eq!(AnyImage::open_with(&s, &kept, &options)?.convert::<u8>().to_vec()?, wanted(1, region));
    Ok(())
}
