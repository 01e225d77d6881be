//! Properties that formats keep, and images that they refuse.

use std::time::Duration;

use horus_core::dtype::{DType, Pixel};
use horus_core::error::{Error, Result};
use horus_core::image::Image;
use horus_core::io::{AnyImage, Depth, OpenOptions, PictureReader, PixelSize, SaveOptions, Scaling};
use horus_core::session::Session;
use horus_core::shape::{Axis, Shape};
use ndarray::{Array3, Ix2, Ix3, array};

use crate::tiffs::{self, TiffTestPage};
use crate::{TestFolder, refused, session, warnings};

#[test]
fn a_16_bit_picture_stays_one() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let image = Image::from_fn(&s, 5, 7, |y, x| (9000 * y + 7 * x) as u16);
    for name in ["a.png", "a.tif", "a.pgm", "a.npy"] {
        image.save(folder.at(name))?;
        let AnyImage::U16(read) = s.open(folder.at(name))? else { panic!("{name} has another type") };
        read.save(folder.at(name))?;
        assert_eq!(Image::<u16>::open(&s, folder.at(name))?.to_array::<Ix2>()?, image.to_array()?, "{name}");
    }
    Ok(())
}

#[test]
fn wide_types_survive_tiff_and_npy() -> Result<()> {
    fn round<T: Pixel>(s: &Session, folder: &TestFolder, pixels: &Array3<T>) -> Result<()> {
        for channels in [1, 2, 3, 4, 5, 12] {
            let image = Image::from_array(s, pixels.slice(ndarray::s![.., .., ..channels]));
            for name in ["a.tif", "a.npy"] {
                assert_eq!(image.save(folder.at(name))?, None);
                let read = s.open(folder.at(name))?;
                assert_eq!((read.dtype(), read.shape()), (T::DTYPE, image.shape()), "{name}");
                assert_eq!(Image::<T>::open(s, folder.at(name))?.to_array::<Ix3>()?, image.to_array()?, "{name}");
            }
        }
        Ok(())
    }
    let (s, folder) = (session(), TestFolder::new());
    let shape = (5, 6, 12);
    let value = |(y, x, c): (usize, usize, usize)| (y * 1000 + x * 17 + c) as f64 - 2000.3;
    round(&s, &folder, &Array3::from_shape_fn(shape, |i| value(i) as f32))?;
    round(&s, &folder, &Array3::from_shape_fn(shape, |i| value(i) * 1e-7))?;
    round(&s, &folder, &Array3::from_shape_fn(shape, |i| value(i) as i32 * 400_000))?;
    round(&s, &folder, &Array3::from_shape_fn(shape, |i| value(i) as u16))?;
    round(&s, &folder, &Array3::from_shape_fn(shape, |i| value(i) as i16 * 3))?;
    round(&s, &folder, &Array3::from_shape_fn(shape, |i| value(i).abs() as u32 * 1_000_000))?;
    round(&s, &folder, &Array3::from_shape_fn(shape, |i| (value(i) / 20.0) as i8))?;
    round(&s, &folder, &Array3::from_shape_fn(shape, |i| value(i) as u8))
}

#[test]
fn what_a_format_cannot_hold_is_refused_before_anything_is_computed() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let wide = Image::from_fn(&s, 4, 4, |y, x| (9000 * y + x) as u16).flip([Axis::Rows, Axis::Columns]);
    let cause = |saved: Result<_>| match saved.map(|_| ()) {
        Err(Error::File { action: "write", cause, .. }) => cause,
        other => panic!("{other:?}"),
    };
    for name in ["a.jpg", "a.bmp"] {
        let told = cause(wide.save(folder.at(name)));
        assert!(
            told.contains("cannot hold 16 bits per sample; save as png, tif, pgm, npy, or ask for Depth::Eight"),
            "{told}"
        );
    }
    let told = cause(wide.convert::<i32>().save(folder.at("a.png")));
    assert!(told.contains("cannot hold 32-bit signed integers; save as tif, npy, or "), "{told}");
    let told = cause(wide.convert::<i8>().save(folder.at("a.pgm")));
    assert!(told.contains("cannot hold 8-bit signed integers; save as tif, npy, or "), "{told}");
    let told = cause(wide.convert::<i16>().save(folder.at("a.bmp")));
    assert!(told.contains("cannot hold 16-bit signed integers; save as tif, npy, or "), "{told}");
    let told = cause(wide.convert::<u32>().save(folder.at("a.png")));
    assert!(told.contains("cannot hold 32 bits per sample; save as tif, npy, or "), "{told}");
    assert_eq!((s.stats().evaluations, folder.names().len()), (0, 0));
    // The advice in the message works.
    let options = SaveOptions { depth: Depth::Eight, scaling: Scaling::Unit, ..SaveOptions::default() };
    wide.save_with(folder.at("a.jpg"), &options)?;
    wide.convert::<i32>().save_with(folder.at("a.png"), &SaveOptions { scaling: Scaling::Range, ..options })?;
    assert_eq!(s.open(folder.at("a.png"))?.dtype(), DType::U8);
    Ok(())
}

#[test]
fn floats_between_0_and_1_are_what_pictures_show() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let (path, range) = (folder.at("a.png"), SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() });
    let grey = Image::<f32>::constant(&s, (2, 2), 0.5);
    let scale = grey.save(&path)?.expect("floats are scaled");
    assert_eq!((scale.low, scale.high, scale.full), (0.0, 1.0, 255));
    assert_eq!(Image::<u8>::open(&s, &path)?.to_vec()?, [128; 4]);
    grey.save_with(&path, &SaveOptions { depth: Depth::Sixteen, ..SaveOptions::default() })?;
    assert_eq!(Image::<u16>::open(&s, &path)?.to_vec()?, [32768; 4]);
    let wild = Image::from_array(&s, array![[f32::NAN, -1.0, 0.25, 2.0]].view());
    let told = warnings(&path, || assert!(wild.save(&path).is_ok()));
    assert_eq!(Image::<u8>::open(&s, &path)?.to_vec()?, [0, 0, 64, 255]);
    assert!(
        told.len() == 1 && told[0].contains("2 of 4 values lie outside 0..=1 (50.0 %) and were clipped"),
        "{told:?}"
    );
    wild.save_with(&path, &range)?;
    assert_eq!(Image::<u8>::open(&s, &path)?.to_vec()?, [0, 0, 106, 255]);
    // Round trip: pictures read as floats are saved as they were.
    let bytes = Image::from_fn(&s, 16, 16, |y, x| (16 * y + x) as u8);
    bytes.save(&path)?;
    for floats in [Image::<f32>::open(&s, &path)?, s.open(&path)?.to_unit(), s.open(&path)?.luminance()] {
        floats.save(folder.at("b.png"))?;
        assert_eq!(Image::<u8>::open(&s, folder.at("b.png"))?.to_vec()?, bytes.to_vec()?);
    }
    Ok(())
}

#[test]
fn one_rule_scales_pictures_that_become_floats() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    Image::from_array(&s, array![[0u8, 51, 255]].view()).save(folder.at("8.png"))?;
    Image::from_array(&s, array![[0u16, 13107, 65535]].view()).save(folder.at("16.png"))?;
    Image::from_array(&s, array![[0i32, i32::MAX]].view()).save(folder.at("32.tif"))?;
    Image::from_array(&s, array![[0u32, u32::MAX]].view()).save(folder.at("u32.tif"))?;
    Image::from_array(&s, array![[0i8, i8::MAX]].view()).save(folder.at("i8.tif"))?;
    Image::from_array(&s, array![[0i16, i16::MAX]].view()).save(folder.at("i16.npy"))?;
    Image::from_array(&s, array![[-3.5f32, 70.0]].view()).save(folder.at("f.tif"))?;
    Image::from_array(&s, array![[-3.5f64, 1e-3]].view()).save(folder.at("d.npy"))?;
    let ends = ["32.tif", "u32.tif", "i8.tif", "i16.npy"].map(|name| (name, vec![0.0f32, 1.0]));
    for (name, want) in [("8.png", vec![0.0, 0.2, 1.0]), ("16.png", vec![0.0, 0.2, 1.0])].into_iter().chain(ends) {
        assert_eq!(Image::<f32>::open(&s, folder.at(name))?.to_vec()?, want, "{name}");
        assert_eq!(s.open(folder.at(name))?.to_unit().to_vec()?, want, "{name}");
        assert_eq!(s.open(folder.at(name))?.luminance().to_vec()?, want, "{name}");
    }
    // Double precision from the start, not via f32.
    assert_eq!(Image::<f64>::open(&s, folder.at("8.png"))?.to_vec()?, [0.0, 51.0 / 255.0, 1.0]);
    for (name, want) in [("f.tif", vec![-3.5f32, 70.0]), ("d.npy", vec![-3.5, 1e-3])] {
        assert_eq!(Image::<f32>::open(&s, folder.at(name))?.to_vec()?, want, "{name}");
        assert_eq!(s.open(folder.at(name))?.to_unit().to_vec()?, want, "{name}");
    }
    assert_eq!(Image::<f64>::open(&s, folder.at("d.npy"))?.to_vec()?, [-3.5, 1e-3]);
    // Other differences of types neither scale nor clip.
    let told = Image::<u8>::open(&s, folder.at("16.png")).expect_err("16 bits are not 8").to_string();
    assert!(
        told.contains("it has u16 pixels, not u8: open it as Image::<u16>") && told.contains("convert::<u8>()"),
        "{told}"
    );
    assert!(Image::<i32>::open(&s, folder.at("f.tif")).is_err());
    assert_eq!(s.open(folder.at("16.png"))?.convert::<u8>().to_vec()?, [0, 255, 255]);
    Ok(())
}

#[test]
fn pages_are_read_one_by_one_and_told() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let pages: Vec<TiffTestPage> = (0..3u8).map(|page| TiffTestPage::grey(2, 1, &[page, 10 * page])).collect();
    for big_endian in [false, true] {
        let path = folder.put(if big_endian { "big.tif" } else { "a.tif" }, &tiffs::file(&pages, big_endian));
        let told = warnings(&path, || assert_eq!(s.open(&path).unwrap().convert::<u8>().to_vec().unwrap(), [0, 0]));
        assert!(told.len() == 1 && told[0].contains("has 3 pages"), "{told:?}");
        for page in 0..3u8 {
            let read = AnyImage::open_page(&s, &path, page.into())?.convert::<u8>();
            assert_eq!(read.to_vec()?, [page, 10 * page]);
        }
        assert_eq!(warnings(&path, || ()).len(), 1, "who asks for a page knows of the others");
        let later = OpenOptions { on_demand: Some(true), ..OpenOptions::default() };
        assert_eq!(warnings(&path, || drop(AnyImage::open_with(&s, &path, &later).unwrap())).len(), 2);
        assert_eq!(warnings(&path, || drop(PictureReader::open(&path, &OpenOptions::default()).unwrap())).len(), 3);
        assert_eq!(refused(AnyImage::open_page(&s, &path, 3)), "page 3 requested, but it has 3 (pages start at 0)");
    }
    // Planes without a directory, and described ones that the file does not have.
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/goldens/pages/imagej-one-directory.tif");
    let stack = std::fs::read(golden).expect("a golden");
    let path = folder.put("stack.tif", &stack);
    let told = warnings(&path, || assert_eq!(s.open(&path).unwrap().shape(), Shape::new(5, 7, 1)));
    assert!(told.len() == 1 && told[0].contains("has 12 pages: page 0 is used"), "{told:?}");
    let later = OpenOptions { volume: true, page: Some(1), on_demand: Some(true), ..OpenOptions::default() };
    let volume = AnyImage::open_with(&s, &path, &later)?;
    assert_eq!(
        (volume.shape(), volume.pixel_size()),
        (Shape::volume(3, 5, 7, 2), PixelSize::of([Some(2.0), Some(0.5), Some(0.25)]))
    );
    let last = volume.convert::<u16>().slice(2).channel(1);
    assert_eq!(last.to_vec()?, (11 * 35..12 * 35).collect::<Vec<u16>>());
    let path = folder.put("short.tif", &stack[..stack.len() - 1]);
    let told = warnings(&path, || drop(s.open(&path).unwrap()));
    let cause = "short.tif: its ImageJ description names 12 planes, and the file has 1: its 1239 bytes are too few";
    assert!(told.len() == 1 && told[0].contains(cause), "{told:?}");
    let path = folder.put("one.tif", &tiffs::file(&pages[..1], false));
    assert!(warnings(&path, || assert!(s.open(&path).is_ok())).is_empty());
    Image::<u8>::zeros(&s, (2, 2)).save(folder.at("a.png"))?;
    assert_eq!(AnyImage::open_page(&s, folder.at("a.png"), 0)?.dtype(), DType::U8);
    assert!(refused(AnyImage::open_page(&s, folder.at("a.png"), 1)).contains("page 1 requested"));
    Ok(())
}

/// The value of a pixel of a test picture.
fn told_by_place(c: u32, y: u32, x: u32) -> u8 {
    (80 * c + 9 * y + x) as u8
}

/// A planar page of three channels, in strips of `rows` rows or in tiles; `encode` makes the bytes
/// of a sample.
fn planes(bits: u32, format: u32, rows: u32, tile: Option<(u32, u32)>, encode: impl Fn(u8) -> Vec<u8>) -> TiffTestPage {
    let (width, height, samples) = (7, 8, 3);
    let (w, h) = tile.unwrap_or((width, rows));
    let mut chunks = Vec::new();
    for c in 0..samples {
        for top in (0..height).step_by(h as usize) {
            for left in (0..width).step_by(w as usize) {
                // Tiles are whole, strips end with the picture.
                let bottom = if tile.is_some() { top + h } else { (top + h).min(height) };
                let pixels = (top..bottom).flat_map(|y| (left..left + w).map(move |x| (y, x)));
                let value = |(y, x)| if y < height && x < width { told_by_place(c, y, x) } else { 222 };
                chunks.push(pixels.map(value).flat_map(&encode).collect());
            }
        }
    }
    let photometric = 2;
    TiffTestPage {
        width,
        height,
        bits,
        format,
        samples,
        planar: true,
        compression: 1,
        photometric,
        tile,
        rows,
        chunks,
        ..TiffTestPage::default()
    }
}

#[test]
fn planes_are_read_whatever_they_are_cut_into() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let want: Vec<u8> =
        (0..8).flat_map(|y| (0..7).flat_map(move |x| (0..3).map(move |c| told_by_place(c, y, x)))).collect();
    // Strips of all rows, of some, and beyond the picture; tiles beyond it on either side.
    let cuts = [(8, None), (4, None), (3, None), (0, Some((16, 16))), (0, Some((4, 3))), (0, Some((7, 5)))];
    for (rows, tile) in cuts {
        for big in [false, true] {
            let order = |le: &[u8]| if big { le.iter().rev().copied().collect() } else { le.to_vec() };
            let pages = [
                (DType::U8, planes(8, 1, rows, tile, |v| vec![v])),
                (DType::U16, planes(16, 1, rows, tile, |v| order(&u16::from(v).to_le_bytes()))),
                (DType::U32, planes(32, 1, rows, tile, |v| order(&u32::from(v).to_le_bytes()))),
                (DType::I16, planes(16, 2, rows, tile, |v| order(&i16::from(v).to_le_bytes()))),
                (DType::I32, planes(32, 2, rows, tile, |v| order(&i32::from(v).to_le_bytes()))),
                (DType::F32, planes(32, 3, rows, tile, |v| order(&f32::from(v).to_le_bytes()))),
                (DType::F64, planes(64, 3, rows, tile, |v| order(&f64::from(v).to_le_bytes()))),
            ];
            for (dtype, page) in pages {
                let read = s.open(folder.put("a.tif", &tiffs::file(&[page], big)))?;
                assert_eq!((read.dtype(), read.shape().channels), (dtype, 3));
                assert_eq!(read.convert::<u8>().to_vec()?, want, "{dtype} {rows} {tile:?} big endian: {big}");
            }
        }
    }
    Ok(())
}

#[test]
fn grey_pixels_take_any_number_of_bits() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let mut page = TiffTestPage { width: 3, ..TiffTestPage::grey(3, 2, &[0b1010_0000, 0b0110_0000]) };
    page.bits = 1;
    let bits = s.open(folder.put("1.tif", &tiffs::file(&[page.clone()], false)))?;
    assert_eq!(bits.convert::<u8>().to_vec()?, [255, 0, 255, 0, 255, 255]);
    (page.bits, page.chunks) = (4, vec![vec![0x0f, 0x10, 0xa5, 0x20]]);
    let nibbles = s.open(folder.put("4.tif", &tiffs::file(&[page.clone()], false)))?;
    assert_eq!(nibbles.convert::<u8>().to_vec()?, [0, 255, 17, 170, 85, 34]);
    (page.bits, page.format, page.chunks) = (8, 2, vec![vec![255, 1, 2, 3, 4, 128]]);
    let signed = s.open(folder.put("i8.tif", &tiffs::file(&[page.clone()], false)))?;
    assert_eq!((signed.dtype(), signed.convert::<i32>().to_vec()?), (DType::I8, vec![-1, 1, 2, 3, 4, -128]));
    (page.bits, page.format, page.chunks) =
        (32, 1, vec![[0, 1, u32::MAX, 1 << 31, 3, 4].map(u32::to_le_bytes).as_flattened().to_vec()]);
    let wide = Image::<u32>::open(&s, folder.put("u32.tif", &tiffs::file(&[page.clone()], false)))?;
    assert_eq!(wide.to_vec()?, [0, 1, u32::MAX, 1 << 31, 3, 4]);
    // 12 bits, the high ones first in files of either byte order.
    (page.bits, page.chunks) = (12, vec![vec![0, 0x1f, 0xff, 0x80, 0, 0, 0x20, 0x03, 0, 0x40]]);
    for big_endian in [false, true] {
        let read = Image::<u16>::open(&s, folder.put("u12.tif", &tiffs::file(&[page.clone()], big_endian)))?;
        assert_eq!(read.to_vec()?, [16, 65535, 32776, 32, 48, 64]);
    }
    page.chunks = vec![[[0x01, 0x23, 0x45, 0x67, 0x80]; 2].concat()];
    (page.bits, page.samples, page.photometric) = (4, 3, 2);
    let colours = s.open(folder.put("rgb4.tif", &tiffs::file(&[page.clone()], false)))?;
    let row: Vec<u8> = (0..9).map(|v| 17 * v).collect();
    assert_eq!(colours.convert::<u8>().to_vec()?, [&row[..], &row].concat());
    page = TiffTestPage { bits: 64, ..TiffTestPage::grey(3, 2, &[0; 48]) };
    for (format, bits, cause) in
        [(1, 64, "TIFF integers of 64 bits are not supported"), (5, 32, "complex"), (6, 64, "complex")]
    {
        (page.format, page.bits) = (format, bits);
        let told = refused(s.open(folder.put("wide.tif", &tiffs::file(&[page.clone()], false))));
        assert!(told.contains(cause), "{told}");
    }
    Ok(())
}

#[test]
fn unusual_pages_are_read() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let read = |page: &TiffTestPage| s.open(folder.put("a.tif", &tiffs::file(std::slice::from_ref(page), false)));
    // Of signed integers, too, the smallest is white where 0 is, and alpha stays.
    let pixels: Vec<u8> = [i16::MIN, -2, 300].iter().flat_map(|v| v.to_le_bytes()).collect();
    let signed = TiffTestPage { bits: 16, format: 2, photometric: 0, ..TiffTestPage::grey(3, 1, &pixels) };
    assert_eq!(read(&signed)?.convert::<i16>().to_vec()?, [i16::MAX, 1, -301]);
    let extra = |meaning| vec![(tiffs::EXTRA_SAMPLES, vec![meaning])];
    let alpha =
        TiffTestPage { samples: 2, photometric: 0, tags: extra(2), ..TiffTestPage::grey(2, 1, &[0, 10, 200, 20]) };
    assert_eq!(read(&alpha)?.convert::<u8>().to_vec()?, [255, 10, 55, 20]);
    // A sample beyond the colours that is not said to be alpha, as infrared.
    let bands = TiffTestPage {
        samples: 4,
        photometric: 2,
        tags: extra(0),
        ..TiffTestPage::grey(1, 2, &[1, 2, 3, 4, 5, 6, 7, 8])
    };
    assert_eq!(read(&bands)?.convert::<u8>().to_vec()?, [1, 2, 3, 4, 5, 6, 7, 8]);
    let reversed = TiffTestPage { tags: vec![(266, vec![2])], ..TiffTestPage::grey(2, 1, &[1, 0b1100_0010]) };
    assert_eq!(read(&reversed)?.convert::<u8>().to_vec()?, [128, 0b0100_0011]);
    let mask = TiffTestPage { bits: 1, photometric: 4, ..TiffTestPage::grey(3, 1, &[0b1010_0000]) };
    assert_eq!(read(&mask)?.convert::<u8>().to_vec()?, [255, 0, 255]);
    // Tiles that are left out have the value of missing pixels; compressed ones, too.
    let nodata = || vec![(tiffs::NODATA, vec![u32::from_le_bytes(*b"7\0\0\0")])];
    for compression in [1, 32773] {
        let tile = Some((16, 16));
        let data = if compression == 1 { vec![3; 256] } else { vec![129, 3, 129, 3] };
        let sparse = TiffTestPage {
            tile,
            compression,
            sparse: true,
            chunks: vec![data, vec![]],
            tags: nodata(),
            ..TiffTestPage::grey(20, 2, &[])
        };
        let read = read(&sparse)?.convert::<u8>();
        assert_eq!(read.to_vec()?, [[vec![3; 16], vec![7; 4]].concat(), [vec![3; 16], vec![7; 4]].concat()].concat());
    }
    let told = refused(read(&TiffTestPage { compression: 34887, ..TiffTestPage::grey(1, 1, &[0]) }));
    assert!(told.contains("its compression LERC (34887) is not supported; use none, LZW"), "{told}");
    Ok(())
}

#[test]
fn colours_of_jpeg_data_are_those_of_a_jpeg_file() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let picture =
        image::RgbImage::from_fn(24, 16, |x, y| image::Rgb([(10 * x) as u8, (15 * y) as u8, (5 * (x + y)) as u8]));
    let mut jpeg = std::io::Cursor::new(Vec::new());
    image::DynamicImage::ImageRgb8(picture).write_to(&mut jpeg, image::ImageFormat::Jpeg).expect("a picture");
    let want = s.open(folder.put("a.jpg", jpeg.get_ref()))?.convert::<f32>();
    let page = TiffTestPage {
        samples: 3,
        photometric: 6,
        compression: 7,
        chunks: vec![jpeg.into_inner()],
        ..TiffTestPage::grey(24, 16, &[])
    };
    let read = s.open(folder.put("a.tif", &tiffs::file(std::slice::from_ref(&page), false)))?.convert::<f32>();
    // Each rounds once.
    assert!((&read - &want).abs().max_value().get()? <= 2.0);
    let told = refused(s.open(folder.put(
        "b.tif",
        &tiffs::file(&[TiffTestPage { compression: 1, chunks: vec![vec![0; 24 * 16 * 3]], ..page }], false),
    )));
    assert!(told.contains("YCbCr TIFF pixels of 3 u8 samples are not supported unless they are JPEG data"), "{told}");
    Ok(())
}

#[test]
fn inks_become_red_green_and_blue() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let pixels = [[0, 0, 0, 0], [255, 0, 0, 0], [0, 100, 199, 52]];
    let chunky = TiffTestPage { samples: 4, photometric: 5, ..TiffTestPage::grey(3, 1, &pixels.concat()) };
    let plane = |c: usize| pixels.iter().map(|p| p[c]).collect();
    let planar = TiffTestPage { planar: true, chunks: (0..4).map(plane).collect(), ..chunky.clone() };
    for page in [chunky, planar] {
        let read = s.open(folder.put("a.tif", &tiffs::file(&[page], false)))?;
        // (255 - c) (1 - k / 255): 203, 123.4 and 44.6, rounded.
        assert_eq!(read.convert::<u8>().to_vec()?, [255, 255, 255, 0, 255, 255, 203, 123, 45]);
    }
    Ok(())
}

#[test]
fn arrays_of_numpy_are_pictures() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let written = Array3::from_shape_fn((4, 5, 2), |(y, x, c)| (y * 100 + x * 10 + c) as f64 / 7.0);
    ndarray_npy::write_npy(folder.at("c.npy"), &written).expect("an array");
    // NumPy writes transposed arrays in Fortran order.
    let transposed = written.clone().permuted_axes([1, 0, 2]);
    let mut fortran = Array3::zeros(ndarray::ShapeBuilder::f((5, 4, 2)));
    fortran.assign(&transposed);
    ndarray_npy::write_npy(folder.at("f.npy"), &fortran).expect("an array");
    assert!(String::from_utf8_lossy(&std::fs::read(folder.at("f.npy")).unwrap()).contains("'fortran_order': True"));
    for (name, want) in [("c.npy", &written), ("f.npy", &transposed)] {
        let AnyImage::F64(read) = s.open(folder.at(name))? else { panic!("{name} has another type") };
        assert_eq!(read.to_array()?, want, "{name}");
    }
    ndarray_npy::write_npy(folder.at("b.npy"), &array![[true, false]]).expect("an array");
    assert_eq!(Image::<u8>::open(&s, folder.at("b.npy"))?.to_vec()?, [1, 0]);
    ndarray_npy::write_npy(folder.at("i64.npy"), &array![[1i64, 2]]).expect("an array");
    let told = refused(s.open(folder.at("i64.npy")));
    assert!(told.contains("NumPy arrays of type <i8 are not supported; use bool, uint8,"), "{told}");
    ndarray_npy::write_npy(folder.at("1d.npy"), &array![1.0f32, 2.0]).expect("an array");
    assert!(refused(s.open(folder.at("1d.npy"))).contains("of shape (2,) is not a picture"));
    Ok(())
}

/// Work done in less time than this has computed nothing large.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(2);

/// The colour profile of a file, as the crate `image` reads it.
fn profile(path: &std::path::Path) -> Option<Vec<u8>> {
    use image::ImageDecoder;
    let reader = image::ImageReader::open(path).unwrap();
    if reader.format() == Some(image::ImageFormat::Tiff) {
        // With the limits of a reader, tags are no longer than the pixels.
        return image::codecs::tiff::TiffDecoder::new(reader.into_inner()).unwrap().icc_profile().unwrap();
    }
    reader.into_decoder().unwrap().icc_profile().unwrap()
}

#[test]
fn colour_profiles_are_kept_where_they_are_true() -> Result<()> {
    use image::ImageEncoder;
    let (s, folder) = (session(), TestFolder::new());
    // Longer than a segment of a JPEG file; its header names the colours.
    let colours = |i: usize| if (16..20).contains(&i) { b"RGB "[i - 16] } else { (i * 7 % 251) as u8 };
    let rgb: Vec<u8> = (0..70_000).map(colours).collect();
    let pixels: Vec<u8> = (0..20 * 30 * 3).map(|i| (i * 11 % 256) as u8).collect();
    let mut files = [Vec::new(), Vec::new()];
    let [png, jpg] = &mut files;
    let mut encoder = image::codecs::png::PngEncoder::new(png);
    encoder.set_icc_profile(rgb.clone()).unwrap();
    encoder.write_image(&pixels, 30, 20, image::ExtendedColorType::Rgb8).unwrap();
    let mut encoder = image::codecs::jpeg::JpegEncoder::new(jpg);
    encoder.set_icc_profile(rgb.clone()).unwrap();
    encoder.write_image(&pixels, 30, 20, image::ExtendedColorType::Rgb8).unwrap();
    let sources = [folder.put("a.png", &files[0]), folder.put("a.jpg", &files[1]), folder.at("a.tif")];
    s.open(&sources[0])?.convert::<u8>().save(&sources[2])?;
    let eight = SaveOptions { depth: Depth::Eight, ..SaveOptions::default() };
    for source in &sources {
        let (bytes, unit) = (s.open(source)?.convert::<u8>(), s.open(source)?.to_unit());
        for kind in ["png", "jpg", "tif"] {
            let kept = folder.at(&format!("kept.{kind}"));
            bytes.save(&kept)?;
            assert!(profile(&kept) == Some(rgb.clone()), "{kind} of {}", source.display());
            // The means of pixels have the same colours.
            unit.gauss(1.0).save_with(&kept, &eight)?;
            assert!(profile(&kept) == Some(rgb.clone()), "{kind} of {}", source.display());
            // Grey has others, and so have values that are stretched.
            let lost = folder.at(&format!("lost.{kind}"));
            unit.luminance().save_with(&lost, &eight)?;
            assert_eq!(profile(&lost), None, "{kind}");
            bytes.save_with(&lost, &SaveOptions { scaling: Scaling::Range, ..eight })?;
            assert_eq!(profile(&lost), None, "{kind}");
        }
        // All channels, but not of the picture.
        let others = folder.at("others.png");
        Image::stack(&s, [2, 1, 0].map(|c| bytes.channel(c)), Axis::Channels).save(&others)?;
        assert_eq!(profile(&others), None);
        // Channels that are split, and put together as they were, have its colours, also beside alpha.
        let channels = [0, 1, 2].map(|c| bytes.channel(c).median(3));
        Image::stack(&s, &channels, Axis::Channels).save(&others)?;
        assert!(profile(&others) == Some(rgb.clone()));
        let alpha = Image::constant(&s, (20, 30), 9u8);
        let with_alpha = Image::stack(&s, [&bytes, &alpha], Axis::Channels);
        with_alpha.save(&others)?;
        assert!(profile(&others) == Some(rgb.clone()));
        s.open(&others)?.colours().convert::<u8>().save(&others)?;
        assert!(profile(&others) == Some(rgb.clone()));
        bytes.channel(1).save(&others)?;
        assert_eq!(profile(&others), None);
    }
    Ok(())
}
