//! GeoTIFF: saved files lie where the pixels lay that they show; colour tables; names of channels.

use std::cell::Cell;
use std::fs::File;
use std::path::Path;

use horus_core::cpu::device::CpuDevice;
use horus_core::image::Image;
use horus_core::io::{
    AnyImage, Compression, OpenOptions, PixelSize, SaveOptions, channel_names, pixel_size, with_pixel_size,
};
use horus_core::ops::components::Connectivity;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::resize::Resampling;
use horus_core::session::Session;
use horus_core::shape::{Axis, Region, Shape};
use tiff::decoder::{Decoder, DecodingResult};
use tiff::encoder::{TiffEncoder, colortype};
use tiff::tags::Tag;

use super::{TestFolder, session, warnings};

const NODATA: Tag = Tag::Unknown(42113);
/// Version, one key: coordinates are those of a pixel's area.
const KEYS: [u16; 8] = [1, 1, 0, 1, 1025, 0, 1, 1];

/// A picture of 64x48 pixels of 10 by 20 metres from (500 + east, 4000) on; those of 255 are missing.
pub(super) fn geotiff(path: &Path, east: f64) {
    geotiff_of(path, east, "255");
}

/// [`geotiff`] with another value of missing pixels.
fn geotiff_of(path: &Path, east: f64, nodata: &str) {
    let pixels: Vec<u8> = (0..64 * 48).map(|i| (i * 7 % 251) as u8).collect();
    let mut file = TiffEncoder::new(File::create(path).unwrap()).unwrap();
    let mut image = file.new_image::<colortype::Gray8>(64, 48).unwrap();
    let tags = image.encoder();
    tags.write_tag(Tag::ModelPixelScaleTag, &[10.0, 20.0, 0.0][..]).unwrap();
    tags.write_tag(Tag::ModelTiepointTag, &[0.0, 0.0, 0.0, 500.0 + east, 4000.0, 0.0][..]).unwrap();
    tags.write_tag(Tag::GeoKeyDirectoryTag, &KEYS[..]).unwrap();
    tags.write_tag(NODATA, nodata).unwrap();
    image.write_data(&pixels).unwrap();
}

/// Scale, tie point and transformation of a file, its keys, and the value of missing pixels.
#[derive(Debug, Default, PartialEq)]
pub(super) struct GeoTags {
    pub(super) scale: Vec<f64>,
    pub(super) tie: Vec<f64>,
    pub(super) matrix: Vec<f64>,
    keys: Vec<u16>,
    pub(super) nodata: Option<String>,
}

pub(super) fn read_geo_tags(path: &Path) -> GeoTags {
    let mut file = Decoder::new(File::open(path).unwrap()).unwrap();
    let mut doubles = |tag| file.find_tag(tag).unwrap().map(|v| v.into_f64_vec().unwrap()).unwrap_or_default();
    let (scale, tie) = (doubles(Tag::ModelPixelScaleTag), doubles(Tag::ModelTiepointTag));
    let matrix = doubles(Tag::ModelTransformationTag);
    let keys = file.find_tag(Tag::GeoKeyDirectoryTag).unwrap().map(|v| v.into_u16_vec().unwrap()).unwrap_or_default();
    let nodata = file.find_tag(NODATA).unwrap().map(|v| v.into_string().unwrap());
    GeoTags { scale, tie, matrix, keys, nodata }
}

#[test]
fn saved_files_lie_where_their_pixels_lay() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input, 0.0);
    let whole = read_geo_tags(&input);
    let image = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    let saved = |image: &Image<u8>| {
        image.save(&output).unwrap();
        assert_eq!(Image::<u8>::open(&s, &output).unwrap().to_vec().unwrap(), image.to_vec().unwrap());
        read_geo_tags(&output)
    };
    assert_eq!(saved(&image), whole);
    assert_eq!(saved(&image.median(3).max(image.dilate((3, 3)))), whole, "neighbourhoods and pixels");
    assert_eq!(saved(&(&image - image.min_value())), whole, "a number has no place");
    assert_eq!(saved(&image.flip(Axis::Columns).flip(Axis::Columns)), whole);
    let turned = image.rotate(30.0, Interpolation::Nearest);
    assert_eq!(saved(&turned.rotate(-30.0, Interpolation::Nearest)), whole, "there and back");
    // An evaluated image lies there, too.
    let held = image.median(3);
    s.evaluate().unwrap();
    let cut = saved(&held.crop(3, 5, 20, 30));
    assert_eq!((&cut.scale, &cut.tie), (&whole.scale, &vec![0.0, 0.0, 0.0, 550.0, 3940.0, 0.0]));
    assert_eq!((cut.keys, cut.nodata.as_deref()), (whole.keys, Some("255")));
    let halves = saved(&image.resize(24, 32, Resampling::Area));
    assert_eq!((halves.scale, halves.tie), (vec![20.0, 40.0, 0.0], whole.tie));
    // The pixels of a pyramid are the smoothed even ones: their areas begin half a pixel before.
    let level = saved(&image.pyramid_down().convert());
    assert_eq!(level.tie[3..5], [495.0, 4010.0]);
    // A quarter turn needs all of a matrix: the first column of the result is the last row's.
    let quarter = saved(&image.transpose().flip(Axis::Columns));
    assert_eq!((quarter.scale.len(), quarter.tie.len(), quarter.matrix.len()), (0, 0, 16));
    let at = |x: f64, y: f64| {
        let m = &quarter.matrix;
        [m[0] * x + m[1] * y + m[3], m[4] * x + m[5] * y + m[7]]
    };
    let (a, b) = (at(0.0, 0.0), at(48.0, 64.0));
    let mut corners = [a[0], b[0], a[1], b[1]];
    corners.sort_by(f64::total_cmp);
    assert_eq!(corners, [500.0, 1140.0, 3040.0, 4000.0], "it covers the same area");
}

#[test]
fn tags_are_written_with_tiles_and_of_other_types() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input, 0.0);
    let picture =
        AnyImage::open_with(&s, &input, &OpenOptions { on_demand: Some(true), ..OpenOptions::default() }).unwrap();
    let tiled = SaveOptions { tile: Some((16, 16)), compression: Compression::Deflate, ..SaveOptions::default() };
    picture.convert::<u8>().save_with(&output, &tiled).unwrap();
    assert_eq!(read_geo_tags(&output), read_geo_tags(&input));
    picture.convert::<f32>().sqrt().save(&output).unwrap();
    let floats = read_geo_tags(&output);
    assert_eq!((&floats.tie, floats.nodata), (&read_geo_tags(&input).tie, None), "255 is not the root of 255");
}

#[test]
fn what_is_no_part_of_the_picture_has_no_place() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input, 0.0);
    let image = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    for lost in [image.max(image.flip(Axis::Rows)), image.pad(1, 1, 1, 1).crop(0, 0, 48, 64).max(&image)] {
        lost.save(&output).unwrap();
        assert_eq!(read_geo_tags(&output), GeoTags { nodata: Some("255".into()), ..GeoTags::default() });
    }
    // A file that says nothing of its place contradicts none, also where it tells the size of its pixels.
    let mask = folder.at("mask.tif");
    let plain = Image::constant(&s, (48, 64), 9u8);
    with_pixel_size(&plain, PixelSize::of([None, Some(0.5), Some(0.5)])).save(&mask).unwrap();
    let mask = AnyImage::open(&s, &mask).unwrap().convert::<u8>();
    for both in [image.max(&mask), mask.max(&image)] {
        both.save(&output).unwrap();
        assert_eq!(read_geo_tags(&output), read_geo_tags(&input));
    }
    let region = Region::new(4, 2, 10, 10);
    let part =
        AnyImage::open_with(&s, &input, &OpenOptions { region: Some(region), ..OpenOptions::default() }).unwrap();
    part.convert::<u8>().save(&output).unwrap();
    assert_eq!(read_geo_tags(&output).tie[3..5], [520.0, 3920.0]);
}

/// What the file that an image is saved to tells, and the warnings about it.
fn saved(image: &Image<u8>, path: &Path) -> (GeoTags, Vec<String>) {
    let warned = warnings(path, || image.save(path).map(drop).unwrap());
    (read_geo_tags(path), warned)
}

#[test]
fn images_of_one_grid_keep_it_whatever_their_values_stand_for() {
    let (s, folder) = (session(), TestFolder::new());
    let at = |name: &str| folder.at(name);
    geotiff_of(&at("a.tif"), 0.0, "255");
    geotiff_of(&at("b.tif"), 0.0, "0");
    let open = |name: &str| AnyImage::open(&s, at(name)).unwrap().convert::<u8>();
    let (a, b) = (open("a.tif"), open("b.tif"));
    let both = |path: &Path, first: &str, other: &str| {
        let path = path.display();
        vec![format!(
            "{path}: pixels of {first} are missing, as in one image that it was computed from; in another those of {other} were"
        )]
    };
    for (name, image, first, other) in [
        ("sum.tif", &a + &b, "255", "0"),
        ("mus.tif", &b + &a, "0", "255"),
        ("mean.tif", (&a.convert::<f32>() + &b.convert::<f32>()).convert(), "255", "0"),
    ] {
        let (found, warned) = saved(&image, &at(name));
        let want = GeoTags { nodata: Some(first.into()), ..read_geo_tags(&at("a.tif")) };
        assert_eq!((found, warned), (want, both(&at(name), first, other)), "{name}");
    }
    // A mask is of truth values, none of which is missing; what it selects keeps its own.
    let chosen = b.gt(5).select(&a, 0);
    assert_eq!(saved(&chosen, &at("chosen.tif")), (read_geo_tags(&at("a.tif")), Vec::new()));
    let mask = a.gt(5) & b.lt(9);
    let warned = warnings(&at("mask.tif"), || mask.save(at("mask.tif")).map(drop).unwrap());
    assert_eq!(read_geo_tags(&at("mask.tif")), GeoTags { nodata: None, ..read_geo_tags(&at("a.tif")) });
    let none = "its value of missing pixels is not stored: a mask has none (";
    assert!(warned.len() == 1 && warned[0].contains(none), "{warned:?}");
}

#[test]
fn every_file_that_loses_something_is_told_of_with_the_reason() {
    let (s, folder) = (session(), TestFolder::new());
    let at = |name: &str| folder.at(name);
    geotiff(&at("a.tif"), 0.0);
    geotiff(&at("b.tif"), 10.0);
    let open = |name: &str| AnyImage::open(&s, at(name)).unwrap().convert::<u8>();
    let (a, b) = (open("a.tif"), open("b.tif"));
    for name in ["one.tif", "two.tif"] {
        let (found, warned) = saved(&(&a + &b), &at(name));
        assert_eq!(found, GeoTags { nodata: Some("255".into()), ..GeoTags::default() });
        let why = "its georeference is not stored: images on different grids were combined (add)";
        assert_eq!(warned, [format!("{}: {why}", at(name).display())]);
        // What both are parts of agrees again: one column of the second is the next of the first.
        let parts = a.crop(0, 1, 48, 63).max(b.crop(0, 0, 48, 63));
        assert_eq!(saved(&parts, &at(name)).0.tie[3..5], [510.0, 4000.0]);
    }
    let reasons = |image: &Image<u8>, name: &str| {
        let _ = std::fs::remove_file(at(name));
        let warned = warnings(&at(name), || image.save(at(name)).map(drop).unwrap());
        let told = |text: String| text.split_once("its ").expect("a warning").1.to_owned();
        warned.into_iter().map(told).collect::<Vec<_>>()
    };
    let only = "is not stored: only TIFF files have one";
    assert_eq!(reasons(&a, "a.png"), [format!("georeference {only}"), format!("value of missing pixels {only}")]);
    let rows = a.over(Axis::Columns).max();
    assert_eq!(reasons(&rows, "rows.tif"), ["georeference is not stored: its pixels are new ones (row_max)"]);
    let flat = a.affine([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], (48, 64), Interpolation::Bilinear);
    assert_eq!(reasons(&flat, "flat.tif"), ["georeference is not stored: the map of its pixels has no inverse"]);
    let small = Image::constant(&s, (48, 64), 9u8);
    let sized = |side: f64| with_pixel_size(&small, PixelSize::of([None, Some(side), Some(2.0 * side)]));
    let two = sized(1.0).max(sized(2.0));
    let differ = "size of pixels is not stored: images with pixels of different sizes were combined (max)";
    assert_eq!(reasons(&two, "sizes.tif"), [differ]);
    let turned = sized(1.0).rotate(30.0, Interpolation::Bilinear);
    let oblique = "size of pixels is not stored: a map made pixels with oblique sides";
    assert_eq!(reasons(&turned, "turned.tif"), [oblique]);
    assert_eq!(
        reasons(&sized(1.0), "sized.jpg"),
        ["size of pixels is not stored: only TIFF, PNG and OME files have one"]
    );
    let deep = Image::from_volume_fn(&s, 3, 4, 5, |z, y, x| (z + y + x) as u8);
    let deep = with_pixel_size(&deep, PixelSize::of([2.0, 1.0, 1.0].map(Some)));
    let stacked = Image::stack(&s, [&deep, &deep], Axis::Depth);
    let levels = "distance of levels is not stored: levels of several images follow each other (stack)";
    assert_eq!(reasons(&stacked, "stacked.ome.tif"), [levels]);
    let named = |names: [&str; 1]| AnyImage::U8(small.clone()).with_channel_names(names.map(String::from).to_vec());
    let (dapi, gfp) = (named(["DAPI"]).convert::<u8>(), named(["GFP"]).convert::<u8>());
    assert_eq!(reasons(&dapi, "dapi.tif"), ["names of channels are not stored: only OME files have them"]);
    let names = "names of channels are not stored: images with channels of different names were combined (add)";
    assert_eq!(reasons(&(dapi + gfp), "both.ome.tif"), [names]);
}

#[test]
fn functions_of_several_operations_say_where_their_pixels_lie() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input, 0.0);
    let whole = read_geo_tags(&input);
    let image = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    let told = |image: &Image<u8>| saved(image, &output).0;
    let looped = |step: fn(&Image<u8>) -> Image<u8>| s.iterate(image.clone(), 3, step).unwrap().state;
    assert_eq!(told(&looped(|u| u.median(3))), whole);
    // One that looks at values is called each time.
    assert_eq!(told(&looped(|u| u.min(u.max_value().get().unwrap()))), whole);
    assert_eq!(told(&looped(|u| u.shift(0, 1, 0))).scale.len(), 0, "other places at each step");
    let markers = image.lt(40).convert::<i32>();
    let basins = horus_core::image::watershed(&image, &markers, Connectivity::FACES, None).unwrap();
    assert_eq!(GeoTags { nodata: whole.nodata.clone(), ..told(&basins.convert()) }, whole);
    let tiles = told(&image.tiles(2, 4).max());
    assert_eq!((tiles.scale, tiles.tie), (vec![40.0, 40.0, 0.0], whole.tie.clone()));
    let windows = told(&image.windows((3, 5), (1, 2)).max());
    // The middle of the first window is the pixel in row 1 and column 2, whose middle lies at (525, 3970).
    assert_eq!((windows.scale, &windows.tie[3..5]), (vec![20.0, 20.0, 0.0], &[515.0, 3980.0][..]));
    let table = image.gt(100).select(200, &image).lookup(&(0..=255).rev().collect::<Vec<u8>>());
    assert_eq!(told(&table), whole);
    // A size of pixels, and distances of levels.
    let volume = Image::from_volume_fn(&s, 6, 8, 10, |z, y, x| (z * y + x) as u8);
    let volume = with_pixel_size(&volume, PixelSize::of([4.0, 2.0, 1.0].map(Some)));
    let sides = |image: Image<u8>| {
        let size = pixel_size(&image).expect("a size");
        [size.levels.unwrap_or(0.0), size.rows, size.columns]
    };
    assert_eq!(sides(volume.median((3, 3, 3))), [4.0, 2.0, 1.0]);
    assert_eq!(sides(volume.step((2, 2, 3))), [8.0, 4.0, 3.0]);
    assert_eq!(sides(volume.flip([Axis::Depth, Axis::Rows])), [4.0, 2.0, 1.0]);
    assert_eq!(sides(volume.transpose()), [4.0, 1.0, 2.0]);
    assert_eq!(sides(volume.absdiff(volume.over(Axis::Depth).max())), [4.0, 2.0, 1.0]);
    assert_eq!(sides(volume.max(volume.shift(1, 1, 1))), [4.0, 2.0, 1.0], "pixels elsewhere have the same size");
    assert_eq!(sides(volume.slice(2)), [4.0, 2.0, 1.0]);
    assert_eq!(sides(Image::stack(&s, volume.unstack(Axis::Depth).iter().rev(), Axis::Depth)), [0.0, 2.0, 1.0]);
}

#[test]
fn each_picture_of_a_series_has_its_own_grid() {
    let (s, folder) = (session(), TestFolder::new());
    let at = |name: &str| folder.at(name);
    for (name, east) in [("a.tif", 0.0), ("b.tif", 10.0), ("c.tif", 0.0)] {
        geotiff(&at(name), east);
    }
    let fixed = AnyImage::open(&s, at("a.tif")).unwrap().convert::<u8>();
    type Make<'a> = &'a dyn Fn(&Image<u8>) -> Image<u8>;
    let alone: Make<'_> = &|image| image.median(3).max(image.min(9));
    let with: Make<'_> = &|image| image.max(&fixed);
    for (make, agree) in [(alone, [true; 3]), (with, [true, false, true])] {
        for once in [false, true] {
            let out = TestFolder::new();
            let files = ["a.tif", "b.tif", "c.tif"].map(at);
            let series = s.series(&files, |image: &AnyImage| make(&image.convert()));
            let series = if once { series.recorded_once() } else { series };
            let name = |path: &Path| out.at(path.file_name().unwrap().to_str().unwrap());
            let saves = series.save(name, &SaveOptions::default());
            saves.for_each(|saved| drop(saved.result.unwrap()));
            for (file, agrees) in files.iter().zip(agree) {
                let (found, own) = (read_geo_tags(&name(file)), read_geo_tags(file));
                let want = if agrees { own } else { GeoTags { nodata: own.nodata, ..GeoTags::default() } };
                assert_eq!(found, want, "{}, once: {once}", file.display());
                assert_eq!(warnings(&name(file), || ()).len(), usize::from(!agrees), "{}", file.display());
            }
        }
    }
}

/// The colours of values that a file tells.
fn colours(path: &Path) -> Option<Vec<u16>> {
    let mut file = Decoder::new(File::open(path).unwrap()).unwrap();
    let palette = file.find_tag(Tag::PhotometricInterpretation).unwrap().unwrap().into_u16().unwrap() == 3;
    let found = file.find_tag(Tag::ColorMap).unwrap().map(|v| v.into_u16_vec().unwrap());
    assert_eq!(palette, found.is_some());
    found
}

/// A file of 5x4 indices of `bits` bits, in one strip, written by hand; values are 0 to 3.
fn indexed(path: &Path, bits: u16, table: &[u16]) -> Vec<u8> {
    let indices: Vec<u8> = (0..20).map(|i| (i * 7 % 4) as u8).collect();
    let per_byte = usize::from(8 / bits);
    let pack = |row: &[u8]| -> Vec<u8> {
        let byte = |some: &[u8]| some.iter().enumerate().fold(0, |b, (k, v)| b | v << (8 - bits * (k as u16 + 1)));
        row.chunks(per_byte).map(byte).collect()
    };
    let strip: Vec<u8> = indices.chunks(5).flat_map(pack).collect();
    let entries = 9;
    let behind = 8 + 2 + 12 * entries + 4;
    let at = behind + 2 * table.len() as u32;
    let rows: [(u16, u16, u32, u32); 9] = [
        (256, 3, 1, 5),
        (257, 3, 1, 4),
        (258, 3, 1, u32::from(bits)),
        (259, 3, 1, 1),
        (262, 3, 1, 3),
        (273, 4, 1, at),
        (278, 3, 1, 4),
        (279, 4, 1, strip.len() as u32),
        (320, 3, table.len() as u32, behind),
    ];
    let mut bytes = b"II*\0\x08\0\0\0\x09\0".to_vec();
    for (tag, kind, count, value) in rows {
        bytes.extend([tag.to_le_bytes(), kind.to_le_bytes()].concat());
        bytes.extend([count.to_le_bytes(), value.to_le_bytes()].concat());
    }
    bytes.extend([0; 4]);
    bytes.extend(table.iter().flat_map(|colour| colour.to_le_bytes()));
    bytes.extend(strip);
    std::fs::write(path, bytes).unwrap();
    indices
}

#[test]
fn indices_keep_their_colours_while_they_are_picked() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    for bits in [2u16, 4, 8] {
        let count = 1usize << bits;
        let table: Vec<u16> = (0..3 * count).map(|i| (i * 257 % 65536) as u16).collect();
        let indices = indexed(&input, bits, &table);
        // A colour for each value of a byte.
        let wide: Vec<u16> = table
            .chunks(count)
            .flat_map(|plane| plane.iter().copied().chain(std::iter::repeat_n(0, 256 - count)))
            .collect();
        for later in [false, true] {
            let options = OpenOptions { on_demand: Some(later), ..OpenOptions::default() };
            let image = AnyImage::open_with(&s, &input, &options).unwrap().convert::<u8>();
            assert_eq!(image.to_vec().unwrap(), indices, "{bits} bits");
            let saved = |image: &Image<u8>| {
                image.save(&output).unwrap();
                assert_eq!(Image::<u8>::open(&s, &output).unwrap().to_vec().unwrap(), image.to_vec().unwrap());
                colours(&output)
            };
            assert_eq!(saved(&image), Some(wide.clone()));
            assert_eq!(saved(&image.crop(1, 1, 2, 3).flip(Axis::Rows).transpose()), Some(wide.clone()));
            assert_eq!(saved(&image.dilate((3, 3))), None, "other values");
            assert_eq!(saved(&image.resize(2, 3, Interpolation::Bilinear)), None);
            assert_eq!(saved(&(&image + 1)), None);
            let png = folder.at("out.png");
            image.save(&png).unwrap();
            let seen = Image::<u8>::open(&s, &png).unwrap();
            assert_eq!(seen.channels(), 3, "viewers show colours");
            let byte = |plane: usize, k: usize| (wide[plane * 256 + usize::from(indices[k])] >> 8) as u8;
            let want: Vec<u8> =
                (0..20).flat_map(|k| (0..3).map(move |plane| (plane, k))).map(|(p, k)| byte(p, k)).collect();
            assert_eq!(seen.to_vec().unwrap(), want);
        }
    }
}

/// Options for so many sizes in tiles of 16x16 pixels.
fn sizes(sizes: usize, compression: Compression) -> SaveOptions {
    SaveOptions { sizes, tile: Some((16, 16)), compression, ..SaveOptions::default() }
}

/// The pixels of a size of a file.
fn size(s: &Session, path: &Path, level: usize) -> Vec<u8> {
    let options = OpenOptions { level, ..OpenOptions::default() };
    AnyImage::open_with(s, path, &options).unwrap().convert::<u8>().to_vec().unwrap()
}

#[test]
fn smaller_sizes_are_means_of_the_pixels_that_are_not_missing() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input, 0.0);
    let image = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    // Pixels of the first columns are missing.
    let holes = Image::from_fn(&s, 48, 64, |_, x| if x < 5 { 255u8 } else { 0 });
    let image = image.max(&holes);
    for compression in [Compression::None, Compression::Deflate] {
        image.save_with(&output, &sizes(3, compression)).unwrap();
        assert_eq!(read_geo_tags(&output).nodata.as_deref(), Some("255"));
        let mut want: Vec<Vec<f64>> =
            image.to_vec().unwrap().chunks(64).map(|r| r.iter().map(|v| f64::from(*v)).collect()).collect();
        for level in 1..3 {
            let (h, w) = (want.len() / 2, want[0].len() / 2);
            let mean = |y: usize, x: usize| {
                let four =
                    [want[2 * y][2 * x], want[2 * y][2 * x + 1], want[2 * y + 1][2 * x], want[2 * y + 1][2 * x + 1]];
                let known: Vec<f64> = four.into_iter().filter(|v| *v != 255.0).collect();
                if known.len() < 2 { 255.0 } else { (known.iter().sum::<f64>() / known.len() as f64).round_ties_even() }
            };
            let half: Vec<Vec<f64>> = (0..h).map(|y| (0..w).map(|x| mean(y, x)).collect()).collect();
            want = half;
            let got = size(&s, &output, level);
            assert_eq!(got, want.concat().iter().map(|v| *v as u8).collect::<Vec<_>>(), "size {level}");
        }
        let mut file = Decoder::new(File::open(&output).unwrap()).unwrap();
        file.next_image().unwrap();
        assert_eq!(file.find_tag(NODATA).unwrap().unwrap().into_string().unwrap(), "255");
        assert!(file.find_tag(Tag::ModelPixelScaleTag).unwrap().is_none());
    }
}

#[test]
fn options_say_which_pixels_are_missing() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input, 0.0);
    let image = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    let missing = |nodata: f64| SaveOptions { nodata: Some(nodata), ..sizes(2, Compression::Deflate) };
    // Before the value of the picture, of 255, and in other types, whose samples 255 does not stand for.
    let told_of = warnings(&output, || {
        image.save_with(&output, &missing(7.0)).unwrap();
        assert_eq!(read_geo_tags(&output), GeoTags { nodata: Some("7".into()), ..read_geo_tags(&input) });
        image.convert::<f32>().save_with(&output, &missing(f64::NAN)).unwrap();
        assert_eq!(read_geo_tags(&output), GeoTags { nodata: Some("nan".into()), ..read_geo_tags(&input) });
    });
    assert_eq!(told_of, Vec::<String>::new());
    // Of an image that no file is known of.
    let plain = Image::from_slice(&s, (2, 3), &[9u8, 1, 9, 3, 8, 9]);
    plain.save_with(&output, &missing(9.0)).unwrap();
    assert_eq!(read_geo_tags(&output), GeoTags { nodata: Some("9".into()), ..GeoTags::default() });
    assert_eq!(size(&s, &output, 1), [4, 9], "means of 1, 3 and 8, and none of both");
    let refused = |name: &str, nodata| {
        let options = SaveOptions { nodata: Some(nodata), ..SaveOptions::default() };
        plain.save_with(folder.at(name), &options).unwrap_err().to_string()
    };
    assert!(refused("out.npy", 9.0).contains("no value of missing pixels (nodata); save as tif"));
    for nodata in [-1.0, 256.0, 0.5, f64::NAN] {
        assert!(refused("other.tif", nodata).contains("samples of u8 do not hold it"));
    }
    assert!(!folder.at("other.tif").exists());
}

#[test]
fn smaller_sizes_of_indices_are_indices() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    let indices = indexed(&input, 8, &(0..768).collect::<Vec<u16>>());
    let image = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    image.save_with(&output, &sizes(2, Compression::Deflate)).unwrap();
    // The most frequent of each block, else its first.
    let mode = |y: usize, x: usize| {
        let block: Vec<u8> = [(y, x), (y, x + 1), (y + 1, x), (y + 1, x + 1)]
            .into_iter()
            .filter(|(y, x)| *y < 4 && *x < 5)
            .map(|(y, x)| indices[y * 5 + x])
            .collect();
        let count = |value: &u8| block.iter().filter(|v| *v == value).count();
        let most = block.iter().map(count).max().unwrap();
        block.iter().copied().find(|value| count(value) == most).unwrap()
    };
    let want: Vec<u8> = [0, 2].iter().flat_map(|y| [0, 2, 4].map(|x| mode(*y, x))).collect();
    assert_eq!(size(&s, &output, 1), want);
    let mut file = Decoder::new(File::open(&output).unwrap()).unwrap();
    file.next_image().unwrap();
    assert_eq!(file.find_tag(Tag::ColorMap).unwrap().unwrap().into_u16_vec().unwrap().len(), 768);
}

#[test]
fn sizes_are_computed_region_by_region_with_the_same_pixels() {
    let folder = TestFolder::new();
    let (input, whole, parts) = (folder.at("in.tif"), folder.at("whole.tif"), folder.at("parts.tif"));
    let s = session();
    let large = Image::from_fn(&s, 1000, 1500, |y, x| (y * 31 + x * 7 % 251) as u8);
    large.save_with(&input, &sizes(1, Compression::Deflate)).unwrap();
    let save = |s: &Session, path: &Path| {
        let image = AnyImage::open_with(s, &input, &OpenOptions { on_demand: Some(true), ..OpenOptions::default() });
        image.unwrap().convert::<u8>().median(3).save_with(path, &sizes(4, Compression::Zstd)).unwrap();
    };
    save(&s, &whole);
    let device = CpuDevice::new(Some(1)).unwrap();
    let small = Session::on(Box::new(device)).host_memory(2 << 20).build().unwrap();
    save(&small, &parts);
    for level in 0..4 {
        assert!(size(&s, &whole, level) == size(&s, &parts, level), "size {level}");
    }
}

#[test]
fn pictures_of_a_series_lie_where_they_do_alone() {
    let (s, folder) = (session(), TestFolder::new());
    let names = ["a.tif", "b.tif", "c.tif", "none.tif", "table.tif"];
    for (k, name) in names.iter().take(3).enumerate() {
        geotiff(&folder.at(name), k as f64 * 640.0);
    }
    Image::from_fn(&s, 48, 64, |y, x| (y ^ x) as u8).save(folder.at("none.tif")).unwrap();
    indexed(&folder.at("table.tif"), 8, &(0..768).collect::<Vec<u16>>());
    let inputs = names.map(|name| folder.at(name));
    let other = AnyImage::open(&s, &inputs[0]).unwrap().convert::<u8>();
    let picked = |p: &AnyImage| p.convert::<u8>().crop(1, 2, 2, 3).flip(Axis::Rows);
    let smooth = |p: &AnyImage| p.convert::<u8>().crop(1, 1, 3, 3).median(3).resize(2, 2, Interpolation::Bilinear);
    let beside = |p: &AnyImage| p.convert::<u8>().crop(0, 0, 4, 4).max(other.crop(0, 0, 4, 4));
    type Operation<'a> = &'a dyn Fn(&AnyImage) -> Image<u8>;
    let operations: [(Operation<'_>, usize); 3] = [(&picked, 3), (&smooth, 3), (&beside, 5)];
    for (operation, recorded) in operations {
        for (extension, options) in
            [("tif", SaveOptions::default()), ("tif", sizes(2, Compression::None)), ("png", SaveOptions::default())]
        {
            let alone: Vec<Vec<u8>> = inputs
                .iter()
                .map(|input| {
                    let path = folder.at("alone").with_extension(extension);
                    operation(&AnyImage::open(&s, input).unwrap()).save_with(&path, &options).unwrap();
                    std::fs::read(path).unwrap()
                })
                .collect();
            for once in [false, true] {
                let calls = Cell::new(0);
                let series = s.series(&inputs, |p| {
                    calls.set(calls.get() + 1);
                    operation(p)
                });
                let series = if once { series.recorded_once() } else { series };
                let name = |path: &Path| path.with_extension(format!("out.{extension}"));
                let saved = series.save(name, &options).all().unwrap();
                for (saved, alone) in saved.iter().zip(&alone) {
                    assert!(std::fs::read(&saved.path).unwrap() == *alone, "{}, once: {once}", saved.path.display());
                }
                assert_eq!(calls.get(), if once { recorded } else { 5 }, "{extension}");
            }
        }
    }
    let cut = |p: &AnyImage| p.convert::<u8>().crop(3, 5, 20, 30);
    let series = s.series(&inputs[..3], cut).recorded_once();
    series.save(|path: &Path| path.with_extension("cut.tif"), &SaveOptions::default()).all().unwrap();
    for (k, name) in ["a.cut.tif", "b.cut.tif", "c.cut.tif"].iter().enumerate() {
        assert_eq!(read_geo_tags(&folder.at(name)).tie[3..5], [550.0 + 640.0 * k as f64, 3940.0]);
    }
}

#[test]
fn colours_are_as_many_as_values() {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.at("table.tif");
    for (bits, numbers) in [(8u16, 48usize), (8, 767), (8, 3 << 16), (4, 768), (2, 9), (1, 3)] {
        indexed(&path, bits, &vec![7; numbers]);
        for later in [false, true] {
            let options = OpenOptions { on_demand: Some(later), ..OpenOptions::default() };
            let cause = super::refused(AnyImage::open_with(&s, &path, &options));
            assert_eq!(cause, format!("its colour table has {numbers} numbers, for pixels of {bits} bits"));
        }
    }
}

/// Pages of a file: samples of a pixel, and all of them.
fn pages(path: &Path) -> Vec<(u16, Vec<u16>)> {
    let mut file = Decoder::new(File::open(path).unwrap()).unwrap();
    let mut all = Vec::new();
    loop {
        let samples = file.find_tag(Tag::SamplesPerPixel).unwrap().map_or(1, |v| v.into_u16().unwrap());
        let DecodingResult::U16(pixels) = file.read_image().unwrap() else { panic!("other samples") };
        all.push((samples, pixels));
        if !file.more_images() {
            return all;
        }
        file.next_image().unwrap();
    }
}

#[test]
fn channels_of_ome_tiff_are_pages_with_names() {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.at("cells.ome.tif");
    let shape = Shape::volume(2, 3, 5, 3);
    let pixels: Vec<u16> = (0..shape.len()).map(|i| (i * 977) as u16).collect();
    let image = Image::from_slice(&s, shape, &pixels);
    // Of three, without names, it is a colour.
    image.save(&path).unwrap();
    assert_eq!(pages(&path).iter().map(|page| page.0).collect::<Vec<_>>(), [3, 3]);
    let names = ["DAPI", "", "<β>"].map(String::from);
    let image = AnyImage::U16(image).with_channel_names(names.to_vec());
    let described = |path: &Path| {
        let mut file = Decoder::new(File::open(path).unwrap()).unwrap();
        file.find_tag(Tag::ImageDescription).unwrap().unwrap().into_string().unwrap()
    };
    let volume = OpenOptions { volume: true, ..OpenOptions::default() };
    let save = |image: &AnyImage| {
        image.convert::<u16>().save(&path).unwrap();
        AnyImage::open_with(&s, &path, &volume).unwrap()
    };
    let again = save(&image);
    // Pages of channels are beside each other, levels follow.
    let page = |at: usize| pixels[at / 3 * 45..][..45].iter().copied().skip(at % 3).step_by(3).collect();
    let planes = (0..6).map(|at| (1, page(at)));
    assert_eq!(pages(&path), planes.collect::<Vec<_>>());
    assert!(described(&path).contains("<Channel ID=\"Channel:0:2\" Name=\"&lt;β&gt;\" SamplesPerPixel=\"1\"/>"));
    assert_eq!((again.shape(), again.channel_names()), (shape, &names[..]));
    assert_eq!(again.convert::<u16>().to_vec().unwrap(), image.convert::<u16>().to_vec().unwrap());
    let of = |image: Image<u16>| channel_names(&image).to_vec();
    let image = again.convert::<u16>();
    assert_eq!(of(image.median(3).crop(0, 1, 3, 3)), names);
    assert_eq!(of(image.channel(2)), ["<β>"]);
    assert_eq!(of(image.slice(1).channel(2)), ["<β>"]);
    assert_eq!(of(Image::stack(&s, [&image.channel(2), &image.channel(0)], Axis::Channels)), ["<β>", "DAPI"]);
    assert_eq!(of(&image.channel(0) + &image.channel(2)).len(), 0, "it is neither");
    assert_eq!(of(&image + &Image::constant(&s, image.shape(), 1u16)), names);
    assert_eq!(save(&AnyImage::U16(image.channel(0))).channel_names(), ["DAPI"]);
    assert_eq!(save(&AnyImage::U16(image.slice(0))).channel_names(), names);
    // One level and time are read without asking for a volume; sizes are those of pages.
    image.slice(1).save_with(&path, &sizes(2, Compression::Deflate)).unwrap();
    let flat = AnyImage::open(&s, &path).unwrap();
    assert_eq!((flat.shape(), flat.channel_names()), (Shape::new(3, 5, 3), &names[..]));
    assert_eq!(flat.convert::<u16>().to_vec().unwrap(), image.slice(1).to_vec().unwrap());
    let half = AnyImage::open_with(&s, &path, &OpenOptions { level: 1, ..OpenOptions::default() }).unwrap();
    assert_eq!((half.shape(), half.channel_names()), (Shape::new(2, 3, 3), &names[..]));
    let page = AnyImage::open_page(&s, &path, 1).unwrap();
    assert_eq!((page.shape(), page.channel_names().len()), (Shape::new(3, 5, 1), 0));
    // Five are never colours.
    let _ = save(&AnyImage::U16(Image::from_slice(&s, Shape::new(4, 5, 5), &[7u16; 100])));
    assert_eq!(pages(&path).len(), 5);
    // Parts are put region by region.
    let small = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).host_memory(16 << 20).build().unwrap();
    let large = folder.at("large.ome.tif");
    let plane = Image::from_fn(&s, 2000, 1800, |y, x| (y * 3 + x) as u16);
    let named = AnyImage::U16(Image::stack(&s, [&plane, &plane], Axis::Channels));
    named.with_channel_names(["a", "b"].map(String::from).to_vec()).convert::<u16>().save(&large).unwrap();
    let later = OpenOptions { on_demand: Some(true), ..OpenOptions::default() };
    AnyImage::open_with(&small, &large, &later).unwrap().convert::<u16>().median(3).save(&path).unwrap();
    let parts = AnyImage::open(&s, &path).unwrap();
    assert_eq!(parts.channel_names(), ["a", "b"]);
    let want = AnyImage::open(&s, &large).unwrap().convert::<u16>().median(3).to_vec().unwrap();
    assert!(parts.convert::<u16>().to_vec().unwrap() == want);
}

/// Orientation 6: the first row is the right side, the first column the top.
#[test]
fn turned_pictures_and_smaller_copies_lie_where_they_lay() {
    let (s, folder) = (session(), TestFolder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input, 0.0);
    let whole = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    // The same directory behind the file, with an orientation.
    let bytes = std::fs::read(&input).unwrap();
    let first = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize;
    let entries = usize::from(u16::from_le_bytes(*bytes[first..].first_chunk().unwrap()));
    let mut all: Vec<[u8; 12]> = bytes[first + 2..][..12 * entries].as_chunks().0.to_vec();
    all.push([0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0]);
    all.sort_by_key(|entry| u16::from_le_bytes([entry[0], entry[1]]));
    let mut turned = bytes;
    let at = turned.len() as u32;
    turned[4..8].copy_from_slice(&at.to_le_bytes());
    turned.extend((all.len() as u16).to_le_bytes());
    turned.extend(all.concat());
    turned.extend([0; 4]);
    let turned = folder.put("turned.tif", &turned);
    let image = AnyImage::open(&s, &turned).unwrap().convert::<u8>();
    assert_eq!(image.shape(), Shape::new(64, 48, 1));
    assert!(warnings(&output, || image.save(&output).map(drop).unwrap()).is_empty());
    let found = read_geo_tags(&output);
    assert_eq!(found.nodata, Some("255".into()));
    let (stored, seen) = (whole.to_vec().unwrap(), image.to_vec().unwrap());
    let matrix = &found.matrix;
    for (row, column) in [(0, 0), (5, 7), (63, 47)] {
        let (stored_row, stored_column) = (47 - column, row);
        assert_eq!(seen[row * 48 + column], stored[stored_row * 64 + stored_column]);
        let (x, y) = (column as f64 + 0.5, row as f64 + 0.5);
        let place = [0, 4].map(|k| matrix[k] * x + matrix[k + 1] * y + matrix[k + 3]);
        let want = [500.0 + 10.0 * (stored_column as f64 + 0.5), 4000.0 - 20.0 * (stored_row as f64 + 0.5)];
        assert!(place.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{place:?}, {want:?}");
    }
    // A copy of half the rows and columns covers the same area.
    let sizes = SaveOptions { sizes: 2, ..SaveOptions::default() };
    whole.save_with(&output, &sizes).unwrap();
    let level = OpenOptions { level: 1, ..OpenOptions::default() };
    let copy = AnyImage::open_with(&s, &output, &level).unwrap().convert::<u8>();
    copy.save(folder.at("copy.tif")).unwrap();
    let found = read_geo_tags(&folder.at("copy.tif"));
    assert_eq!((copy.shape(), found.nodata), (Shape::new(24, 32, 1), Some("255".into())));
    assert_eq!((found.scale, &found.tie[3..5]), (vec![20.0, 40.0, 0.0], &[500.0, 4000.0][..]));
}
