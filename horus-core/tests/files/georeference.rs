//! GeoTIFF: saved files lie where the pixels lay that they show.

use std::fs::File;
use std::path::Path;

use horus_core::image::Image;
use horus_core::io::{AnyImage, Compression, OpenOptions, SaveOptions};
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::resize::Resampling;
use horus_core::shape::{Axis, Region};
use tiff::decoder::Decoder;
use tiff::encoder::{TiffEncoder, colortype};
use tiff::tags::Tag;

use super::{Folder, session};

const NODATA: Tag = Tag::Unknown(42113);
/// Version, one key: coordinates are those of a pixel's area.
const KEYS: [u16; 8] = [1, 1, 0, 1, 1025, 0, 1, 1];

/// A picture of 64x48 pixels of 10 by 20 metres from (500, 4000) on.
fn geotiff(path: &Path) {
    let pixels: Vec<u8> = (0..64 * 48).map(|i| (i * 7 % 251) as u8).collect();
    let mut file = TiffEncoder::new(File::create(path).unwrap()).unwrap();
    let mut image = file.new_image::<colortype::Gray8>(64, 48).unwrap();
    let tags = image.encoder();
    tags.write_tag(Tag::ModelPixelScaleTag, &[10.0, 20.0, 0.0][..]).unwrap();
    tags.write_tag(Tag::ModelTiepointTag, &[0.0, 0.0, 0.0, 500.0, 4000.0, 0.0][..]).unwrap();
    tags.write_tag(Tag::GeoKeyDirectoryTag, &KEYS[..]).unwrap();
    tags.write_tag(NODATA, "255").unwrap();
    image.write_data(&pixels).unwrap();
}

/// Scale, tie point and transformation of a file, its keys, and the value of missing pixels.
#[derive(Debug, Default, PartialEq)]
struct Told {
    scale: Vec<f64>,
    tie: Vec<f64>,
    matrix: Vec<f64>,
    keys: Vec<u16>,
    nodata: Option<String>,
}

fn told(path: &Path) -> Told {
    let mut file = Decoder::new(File::open(path).unwrap()).unwrap();
    let mut doubles = |tag| file.find_tag(tag).unwrap().map(|v| v.into_f64_vec().unwrap()).unwrap_or_default();
    let (scale, tie) = (doubles(Tag::ModelPixelScaleTag), doubles(Tag::ModelTiepointTag));
    let matrix = doubles(Tag::ModelTransformationTag);
    let keys = file.find_tag(Tag::GeoKeyDirectoryTag).unwrap().map(|v| v.into_u16_vec().unwrap()).unwrap_or_default();
    let nodata = file.find_tag(NODATA).unwrap().map(|v| v.into_string().unwrap());
    Told { scale, tie, matrix, keys, nodata }
}

#[test]
fn saved_files_lie_where_their_pixels_lay() {
    let (s, folder) = (session(), Folder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input);
    let whole = told(&input);
    let image = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    let saved = |image: &Image<u8>| {
        image.save(&output).unwrap();
        assert_eq!(Image::<u8>::open(&s, &output).unwrap().to_vec().unwrap(), image.to_vec().unwrap());
        told(&output)
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
    let (s, folder) = (session(), Folder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input);
    let picture =
        AnyImage::open_with(&s, &input, &OpenOptions { later: Some(true), ..OpenOptions::default() }).unwrap();
    let tiled = SaveOptions { tile: Some((16, 16)), compression: Compression::Deflate, ..SaveOptions::default() };
    picture.convert::<u8>().save_with(&output, &tiled).unwrap();
    assert_eq!(told(&output), told(&input));
    picture.convert::<f32>().sqrt().save(&output).unwrap();
    let floats = told(&output);
    assert_eq!((&floats.tie, floats.nodata), (&told(&input).tie, None), "255 is not the root of 255");
}

#[test]
fn what_is_no_part_of_the_picture_has_no_place() {
    let (s, folder) = (session(), Folder::new());
    let (input, output) = (folder.at("in.tif"), folder.at("out.tif"));
    geotiff(&input);
    let image = AnyImage::open(&s, &input).unwrap().convert::<u8>();
    for lost in [image.max(image.flip(Axis::Rows)), image.pad(1, 1, 1, 1).crop(0, 0, 48, 64).max(&image)] {
        lost.save(&output).unwrap();
        assert_eq!(told(&output), Told::default());
    }
    let region = Region::new(4, 2, 10, 10);
    let part =
        AnyImage::open_with(&s, &input, &OpenOptions { region: Some(region), ..OpenOptions::default() }).unwrap();
    part.convert::<u8>().save(&output).unwrap();
    assert_eq!(told(&output).tie[3..5], [520.0, 3920.0]);
}
