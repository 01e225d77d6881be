//! Parts of files: a region read from a file equals a crop of the whole, however the file is
//! divided.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::DType;
use horus_core::error::Result;
use horus_core::host::workers::Workers;
use horus_core::image::Image;
use horus_core::io::{AnyImage, OpenOptions, Orientation, Picture, PictureReader};
use horus_core::session::Session;
use horus_core::shape::{Region, Shape};
use image::{DynamicImage, ImageFormat, RgbImage};

use super::tiffs::{self, TiffTestPage};
use super::{TestFolder, refused};

const HEIGHT: usize = 23;
const WIDTH: usize = 38;

fn sample(c: usize, y: usize, x: usize) -> u8 {
    (y * 41 + x * 7 + c * 90) as u8
}

/// A chunky page of samples, in strips of so many rows or in tiles; `encode` makes the bytes of a
/// sample.
fn page(
    samples: usize,
    rows: usize,
    tile: Option<(usize, usize)>,
    bits: u32,
    encode: impl Fn(u8) -> Vec<u8>,
) -> TiffTestPage {
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
    TiffTestPage {
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
        ..TiffTestPage::default()
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

/// Expected samples of a region of such a picture.
fn wanted(samples: usize, Region { top, left, height, width }: Region) -> Vec<u8> {
    let places = (top..top + height).flat_map(|y| (left..left + width).map(move |x| (y, x)));
    places.flat_map(|(y, x)| (0..samples).map(move |c| sample(c, y, x))).collect()
}

#[test]
fn regions_of_tiffs_are_those_of_the_picture_however_it_is_cut() -> Result<()> {
    let folder = TestFolder::new();
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
    let (s, folder) = (super::session(), TestFolder::new());
    let colour = RgbImage::from_fn(WIDTH as u32, HEIGHT as u32, |x, y| {
        image::Rgb([0, 1, 2].map(|c| sample(c, y as usize, x as usize)))
    });
    let raw = [format!("P6 {WIDTH} {HEIGHT} 255\n").as_bytes(), colour.as_raw()].concat();
    for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Pnm] {
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::ImageRgb8(colour.clone()).write_to(&mut bytes, format).expect("a picture");
        let path = folder.put("a", if format == ImageFormat::Pnm { &raw } else { bytes.get_ref() });
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
        let level =
            |z| (region.top..region.bottom()).flat_map(move |y| (region.left..region.right()).map(move |x| (z, y, x)));
        let want: Vec<f32> = (0..3).flat_map(level).map(|(z, y, x)| f32::from(sample(z, y, x)) * 0.5).collect();
        assert_eq!(read.convert::<f32>().to_vec()?, want, "{region}");
    }
    Ok(())
}

#[test]
fn an_array_by_columns_has_the_same_regions() -> Result<()> {
    let (s, folder) = (super::session(), TestFolder::new());
    let header = format!("{{'descr': '|u1', 'fortran_order': True, 'shape': ({HEIGHT}, {WIDTH}), }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend((0..WIDTH).flat_map(|x| (0..HEIGHT).map(move |y| sample(0, y, x))));
    let path = folder.put("f.npy", &bytes);
    for region in regions() {
        assert_eq!(
            AnyImage::open_with(&s, &path, &part(region))?.convert::<u8>().to_vec()?,
            wanted(1, region),
            "{region}"
        );
    }
    assert_eq!(AnyImage::describe(&s, &path, &OpenOptions::default())?.tile, (HEIGHT, WIDTH));
    Ok(())
}

#[test]
fn smaller_copies_of_a_page_are_its_levels() -> Result<()> {
    let (s, folder) = (super::session(), TestFolder::new());
    let small = |n: u32, v: u8| TiffTestPage { copy: true, ..TiffTestPage::grey(n, n, &vec![v; (n * n) as usize]) };
    let full = |v: u8| TiffTestPage::grey(8, 8, &[v; 64]);
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
    let (s, folder) = (super::session(), TestFolder::new());
    // All tiles but one are missing: the file ends after the first.
    let whole = tiffs::file(&[page(1, 0, Some((16, 16)), 8, |v| vec![v])], false);
    let mut broken = page(1, 0, Some((16, 16)), 8, |v| vec![v]);
    broken.compression = 8; // no tile is compressed
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
    // The limit applies to the region, not the picture.
    let few = OpenOptions { max_pixels: 110, ..part(inside) };
    assert!(AnyImage::open_with(&s, folder.at("a.tif"), &few).is_ok());
    let fewer = OpenOptions { max_pixels: 109, ..few };
    assert!(refused(AnyImage::open_with(&s, folder.at("a.tif"), &fewer)).contains("exceed the limit of 109"));
    Ok(())
}

#[test]
fn regions_outside_of_a_picture_are_refused() -> Result<()> {
    let (s, folder) = (super::session(), TestFolder::new());
    Image::<u8>::zeros(&s, (5, 6)).save(folder.at("a.npy"))?;
    Image::<u8>::zeros(&s, (5, 6)).save(folder.at("a.tif"))?;
    Image::<u8>::zeros(&s, (5, 6)).save(folder.at("a.png"))?;
    for name in ["a.npy", "a.tif", "a.png"] {
        for (top, left, height, width) in
            [(0, 0, 6, 6), (5, 0, 1, 1), (0, 6, 1, 1), (0, 0, 0, 3), (usize::MAX, 0, 2, 1)]
        {
            let why = refused(AnyImage::open_with(&s, folder.at(name), &part(Region::new(top, left, height, width))));
            assert!(why.contains("is not inside its 5x6 pixels"), "{name}: {why}");
        }
    }
    Ok(())
}

#[test]
fn a_region_of_a_picture_that_is_turned_is_of_what_is_seen() -> Result<()> {
    let (s, folder) = (super::session(), TestFolder::new());
    // The sides of the scene of the first row and the first column, and so the stored place of a
    // visible pixel.
    let stored = |orientation: u32, y: usize, x: usize| {
        let (up, left) = ((HEIGHT - 1).wrapping_sub(y), (WIDTH - 1).wrapping_sub(x));
        match orientation {
            1 => (y, x),
            2 => (y, left),
            3 => (up, left),
            4 => (up, x),
            5 => (x, y),
            6 => (HEIGHT - 1 - x, y),
            7 => (HEIGHT - 1 - x, WIDTH - 1 - y),
            _ => (x, WIDTH - 1 - y),
        }
    };
    for orientation in 1..=8 {
        let turned = orientation > 4;
        let (height, width) = if turned { (WIDTH, HEIGHT) } else { (HEIGHT, WIDTH) };
        for (samples, rows, tile) in [(1, 5, None), (3, 0, Some((16, 16)))] {
            let page = TiffTestPage { orientation, ..page(samples, rows, tile, 8, |v| vec![v]) };
            let path = folder.put("a.tif", &tiffs::file(&[page], false));
            let reader = PictureReader::open(&path, &OpenOptions::default())?;
            assert_eq!(reader.shape(), Shape::new(height, width, samples), "orientation {orientation}");
            for region in [Region::new(0, 0, height, width), Region::new(3, 4, 5, 6), Region::new(height - 2, 1, 2, 17)]
            {
                let rows = region.top..region.bottom();
                let places = rows.flat_map(|y| (region.left..region.right()).map(move |x| stored(orientation, y, x)));
                let want: Vec<u8> = places.flat_map(|(y, x)| (0..samples).map(move |c| sample(c, y, x))).collect();
                let read = AnyImage::open_with(&s, &path, &part(region))?;
                assert_eq!(read.convert::<u8>().to_vec()?, want, "orientation {orientation}, {region}");
                assert_eq!(values(&s, reader.read(region)?), want, "orientation {orientation}, {region}");
            }
            let region = Region::new(3, 4, 5, 6);
            let options = OpenOptions { orientation: Orientation::Keep, ..part(region) };
            let kept = AnyImage::open_with(&s, &path, &options)?;
            assert_eq!(kept.convert::<u8>().to_vec()?, wanted(samples, region), "orientation {orientation}, kept");
        }
    }
    Ok(())
}

/// The pixels of a picture of bytes.
fn values(session: &Session, picture: Picture) -> Vec<u8> {
    AnyImage::from_picture(session, picture).convert::<u8>().to_vec().expect("its pixels")
}

/// Files of the same picture, divided into different parts, with the rows and columns that are
/// decoded at once.
fn cut(folder: &TestFolder) -> Vec<(PathBuf, (usize, usize))> {
    let tiff = |name: &str, rows, tile| folder.put(name, &tiffs::file(&[page(3, rows, tile, 8, |v| vec![v])], false));
    let colours = (0..HEIGHT * WIDTH).flat_map(|i| (0..3).map(move |c| sample(c, i / WIDTH, i % WIDTH)));
    let raw: Vec<u8> = format!("P6 {WIDTH} {HEIGHT} 255\n").bytes().chain(colours).collect();
    let picture = RgbImage::from_raw(WIDTH as u32, HEIGHT as u32, raw[raw.len() - 3 * HEIGHT * WIDTH..].to_vec());
    let mut png = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture.expect("its pixels")).write_to(&mut png, ImageFormat::Png).expect("a picture");
    vec![
        (tiff("tiles.tif", 0, Some((16, 16))), (16, 16)),
        (tiff("strips.tif", 5, None), (5, WIDTH)),
        (folder.put("a.ppm", &raw), (1, WIDTH)),
        (folder.put("a.png", png.get_ref()), (HEIGHT, WIDTH)),
    ]
}

#[test]
fn an_open_file_is_read_by_several_threads() -> Result<()> {
    fn shared<T: Send + Sync>(_: &T) {}
    let (s, folder) = (super::session(), TestFolder::new());
    for (path, chunk) in cut(&folder) {
        let reader = PictureReader::open(&path, &OpenOptions::default())?;
        shared(&reader);
        assert_eq!((reader.shape(), reader.dtype()), (Shape::new(HEIGHT, WIDTH, 3), DType::U8), "{path:?}");
        assert_eq!((reader.chunk(), reader.levels()), (chunk, &[(HEIGHT, WIDTH)][..]), "{path:?}");
        let read: Vec<(Region, Picture)> = std::thread::scope(|scope| {
            let read = |region| reader.read(region).map(|picture| (region, picture));
            let threads: Vec<_> = regions().into_iter().map(|region| scope.spawn(move || read(region))).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect::<Result<_>>()
        })?;
        for (region, picture) in read {
            assert_eq!(picture.shape(), Shape::new(region.height, region.width, 3));
            assert_eq!(values(&s, picture), wanted(3, region), "{path:?}, {region}");
        }
        for workers in [Workers::alone(), Workers::new(Some(3))?] {
            for region in regions() {
                let mut to = vec![7; 3 * region.height * region.width];
                reader.read_into(region, &mut to, &workers)?;
                assert_eq!(to, wanted(3, region), "{path:?}, {region}, {} threads", workers.threads());
            }
        }
        // A part has its own coordinates.
        let reader = PictureReader::open(&path, &part(Region::new(5, 14, 12, 20)))?;
        assert_eq!(reader.shape(), Shape::new(12, 20, 3));
        assert_eq!(values(&s, reader.read(Region::new(2, 3, 4, 5))?), wanted(3, Region::new(7, 17, 4, 5)), "{path:?}");
        for outside in [Region::new(0, 0, 13, 1), Region::new(0, 20, 1, 1), Region::new(0, 0, 0, 1)] {
            let why = reader.read(outside).expect_err("outside").to_string();
            assert!(why.contains("is not inside its 12x20 pixels"), "{why}");
        }
        let why = reader.read_into(Region::new(0, 0, 2, 2), &mut [0; 11], &Workers::alone()).expect_err("short");
        assert!(why.to_string().contains("takes 12 bytes, not 11"), "{why}");
    }
    Ok(())
}

#[test]
fn no_more_is_read_than_holds_the_region() -> Result<()> {
    let folder = TestFolder::new();
    let files = cut(&folder);
    let read = |(path, _): &(PathBuf, (usize, usize)), regions: &[Region]| {
        let reader = PictureReader::open(path, &OpenOptions::default())?;
        regions.iter().try_for_each(|region| reader.read(*region).map(drop))?;
        Ok::<_, horus_core::error::Error>((reader.counted().chunks, reader.counted().bytes))
    };
    let (corner, wide) = (Region::new(2, 3, 4, 5), Region::new(14, 0, 4, WIDTH));
    assert_eq!(read(&files[0], &[])?, (0, 0), "opening reads no pixels");
    // Rows 2 to 5 of a tile of 16 columns; two rows of three tiles, twice.
    assert_eq!(read(&files[0], &[corner])?, (1, 4 * 16 * 3));
    assert_eq!(read(&files[0], &[wide])?, (6, 4 * 48 * 3));
    // Five rows of 38 pixels are less than a quarter; strips begin with rows 0 and 5, 10 and 15.
    assert_eq!(read(&files[1], &[corner])?, (2, 4 * 5 * 3));
    assert_eq!(read(&files[1], &[wide])?, (2, 4 * 38 * 3));
    assert_eq!(read(&files[2], &[corner, wide])?, (8, (4 * 5 + 4 * 38) * 3));
    let whole = std::fs::metadata(&files[3].0).expect("a file").len();
    assert_eq!(read(&files[3], &[corner, wide])?, (1, whole), "once as a whole");
    Ok(())
}

#[test]
fn a_truncated_file_is_refused_before_it_is_read() -> Result<()> {
    let folder = TestFolder::new();
    let cause =
        |path: &Path, options: &OpenOptions| PictureReader::open(path, options).expect_err("truncated").to_string();
    let tiles = page(1, 0, Some((16, 16)), 8, |v| vec![v]);
    let deflated =
        TiffTestPage { compression: 8, chunks: tiles.chunks.iter().map(|t| deflate(t)).collect(), ..tiles.clone() };
    for page in [tiles, deflated] {
        // Directories at the front, as written by streaming encoders.
        let whole = tiffs::directory_first(&page);
        let reader = PictureReader::open(folder.put("a.tif", &whole), &OpenOptions::default())?;
        let mut all = vec![0; HEIGHT * WIDTH];
        reader.read_into(Region::new(0, 0, HEIGHT, WIDTH), &mut all, &Workers::alone())?;
        assert_eq!(all, wanted(1, Region::new(0, 0, HEIGHT, WIDTH)));
        let path = folder.put("b.tif", &whole[..whole.len() - 1]);
        let why = cause(&path, &OpenOptions::default());
        assert!(why.contains("tile 5: it ends at byte") && why.contains("b.tif"), "{why}");
        // Present parts can be read.
        let first = PictureReader::open(&path, &part(Region::new(0, 0, HEIGHT, 32)))?;
        assert_eq!(first.read(Region::new(0, 0, HEIGHT, 32))?.shape(), Shape::new(HEIGHT, 32, 1));
        // A file truncated while it is read.
        std::fs::write(folder.at("a.tif"), &whole[..whole.len() - 200]).expect("a writable folder");
        let why = reader.read(Region::new(0, 0, HEIGHT, WIDTH)).expect_err("it is cut").to_string();
        // (A decoder reads ahead.)
        assert!(why.contains(": tile ") && why.contains("end of file"), "{why}");
    }
    let array = [&b"P5 7 9 255 "[..], &[1; 62]].concat();
    assert!(cause(&folder.put("a.pgm", &array), &OpenOptions::default()).contains("more than its 73 bytes can hold"));
    Ok(())
}

/// Stored blocks of zlib data.
pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    const MOST: usize = 0xffff;
    let sum = bytes.iter().fold((1u32, 0u32), |(a, b), v| {
        let a = (a + u32::from(*v)) % 65521;
        (a, (b + a) % 65521)
    });
    let count = bytes.len().div_ceil(MOST);
    let block = |(i, part): (usize, &[u8])| {
        let length = part.len() as u16;
        [&[u8::from(i + 1 == count)][..], &length.to_le_bytes(), &(!length).to_le_bytes(), part].concat()
    };
    let blocks: Vec<u8> = bytes.chunks(MOST).enumerate().flat_map(block).collect();
    [&[0x78, 1][..], &blocks, &(sum.1 << 16 | sum.0).to_be_bytes()].concat()
}
