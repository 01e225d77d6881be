//! What files say beside their pixels: a row for each example of an operation that makes a picture.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use tiff::decoder::Decoder;
use tiff::decoder::ifd::Value;
use tiff::encoder::{Rational, TiffEncoder, colortype};
use tiff::tags::Tag;

use super::{pictures, run};
use crate::files::text;

const NODATA: Tag = Tag::Unknown(42113);

/// For each chain what the result of a picture says that says all: a letter for what is kept, the same one small for what is
/// moved with pixels, `-` for what is lost with a warning, `.` without one. Place on the earth (G), value of missing pixels (N),
/// size of pixels (S), colour profile (P), alpha (A), EXIF data (E), description (T).
const EXPECTED: &str = include_str!("attributes.txt");

/// Colours with alpha; pixels of 10 by 20 metres on the earth, and, elsewhere, of 100 micrometres.
fn input(path: &Path) {
    let pixels: Vec<u8> = (0..33 * 41 * 4).map(|i| (i * 37 % 251) as u8).collect();
    let mut file = TiffEncoder::new(File::create(path).unwrap()).unwrap();
    let mut image = file.new_image::<colortype::RGBA8>(41, 33).unwrap();
    let tags = image.encoder();
    tags.write_tag(Tag::ModelPixelScaleTag, &[10.0, 20.0, 0.0][..]).unwrap();
    tags.write_tag(Tag::ModelTiepointTag, &[0.0, 0.0, 0.0, 500.0, 4000.0, 0.0][..]).unwrap();
    tags.write_tag(Tag::GeoKeyDirectoryTag, &[1u16, 1, 0, 1, 1025, 0, 1, 1][..]).unwrap();
    tags.write_tag(NODATA, "255").unwrap();
    tags.write_tag(Tag::XResolution, Rational { n: 100, d: 1 }).unwrap();
    tags.write_tag(Tag::YResolution, Rational { n: 100, d: 1 }).unwrap();
    tags.write_tag(Tag::ResolutionUnit, 3u16).unwrap();
    tags.write_tag(Tag::ExtraSamples, &[2u16][..]).unwrap();
    let icc: Vec<u8> = (0..200).map(|i| if (16..20).contains(&i) { b"RGB "[i - 16] } else { i as u8 }).collect();
    tags.write_tag(Tag::IccProfile, &icc[..]).unwrap();
    tags.write_tag(Tag::Make, "Ours").unwrap();
    tags.write_tag(Tag::ImageDescription, "of the sea").unwrap();
    image.write_data(&pixels).unwrap();
}

/// A file's values of a tag, as far as they tell pictures of one source apart.
fn said(path: &Path) -> Vec<(char, &'static str, Option<String>)> {
    let mut file = Decoder::new(File::open(path).unwrap()).unwrap();
    let written = |value: Value| match value {
        Value::Rational(n, d) => format!("{}", f64::from(n) / f64::from(d)),
        other => format!("{other:?}"),
    };
    let mut get = |tags: &[Tag]| {
        let all: Vec<String> = tags.iter().filter_map(|tag| file.find_tag(*tag).unwrap()).map(written).collect();
        (!all.is_empty()).then(|| all.join(" "))
    };
    vec![
        ('G', "georeference", get(&[Tag::ModelPixelScaleTag, Tag::ModelTiepointTag, Tag::ModelTransformationTag])),
        ('N', "value of missing pixels", get(&[NODATA])),
        (
            'S',
            "size of pixels",
            get(&[Tag::XResolution, Tag::YResolution]).filter(|_| get(&[Tag::ResolutionUnit]).is_some()),
        ),
        ('P', "colour profile", get(&[Tag::IccProfile])),
        ('A', "alpha", get(&[Tag::ExtraSamples])),
        ('E', "EXIF data", get(&[Tag::Make])),
        ('T', "texts", get(&[Tag::ImageDescription])),
    ]
}

#[test]
fn every_operation_keeps_moves_or_drops_what_files_say() {
    let dir = pictures();
    let dir = dir.path();
    let (from, to) = (dir.join("in.tif"), dir.join("out.tif"));
    input(&from);
    let whole = said(&from);
    let expected: BTreeMap<&str, &str> = EXPECTED.lines().map(|line| line.rsplit_once(": ").unwrap()).collect();
    let mut wrong = Vec::new();
    for (_, example) in horus_apps::command::examples() {
        let _ = std::fs::remove_file(&to);
        let words: Vec<&str> = example.split(' ').collect();
        let out = run(dir, &[&["in.tif", "out.tif"], &words[..], &["--clipping", "allow"]].concat());
        let message = text(&out.stderr);
        if message.contains("the chain ends in numbers") {
            continue;
        }
        assert!(out.status.success(), "{example}: {message}");
        let found = said(&to);
        let letters = whole.iter().zip(&found).map(|((letter, name, before), (.., now))| match now {
            None if message.contains(&format!("its {name} ")) => '-',
            None => '.',
            Some(_) if now == before => *letter,
            Some(_) => letter.to_ascii_lowercase(),
        });
        let row: String = letters.collect();
        if expected.get(&*example) != Some(&&*row) {
            wrong.push(format!("{example}: {row}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
