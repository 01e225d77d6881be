//! EXIF data, resolutions of prints, and texts of people: kept where they are true, else missed with a reason.

use std::collections::HashMap;
use std::path::Path;

use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::{AnyImage, OpenOptions, Orientation, PixelSize, SaveOptions, with_pixel_size};
use horus_core::ops::geometric::Interpolation;
use horus_core::shape::Axis;
use image::ImageDecoder;

use super::{TestFolder, session, warnings};

/// Directories of EXIF data: the first, of the exposure, of the place.
const DIRECTORIES: [u32; 3] = [0, 0x8769, 0x8825];

/// Tag, kind, number of values, and their bytes.
type ExifField = (u16, u16, u32, Vec<u8>);

/// EXIF data by hand, high bytes first: fields of the three directories, and a directory of a thumbnail.
fn exif(fields: [&[ExifField]; 3]) -> Vec<u8> {
    let mut all = [0, 1, 2].map(|d| fields[d].to_vec());
    for d in [1, 2] {
        all[0].push((DIRECTORIES[d] as u16, 4, 1, vec![0; 4]));
    }
    all[0].sort_by_key(|(tag, ..)| *tag);
    let length = |d: usize| 2 + 12 * all[d].len() + 4;
    let starts = [8, 8 + length(0), 8 + length(0) + length(1)];
    let thumbnail = starts[2] + length(2);
    let mut values = thumbnail + 6;
    for (tag, .., value) in &mut all[0] {
        if let Some(d) = [1, 2].into_iter().find(|d| DIRECTORIES[*d] == u32::from(*tag)) {
            *value = (starts[d] as u32).to_be_bytes().to_vec();
        }
    }
    let (mut out, mut behind) = (b"MM\0*\0\0\0\x08".to_vec(), Vec::<u8>::new());
    for (d, fields) in all.iter().enumerate() {
        out.extend((fields.len() as u16).to_be_bytes());
        for (tag, kind, count, value) in fields {
            out.extend([tag.to_be_bytes(), kind.to_be_bytes()].concat());
            out.extend(count.to_be_bytes());
            if value.len() <= 4 {
                out.extend(value.iter().copied().chain([0; 4]).take(4));
            } else {
                out.extend((values as u32).to_be_bytes());
                values += value.len();
                behind.extend(value);
            }
        }
        out.extend((if d == 0 { thumbnail as u32 } else { 0 }).to_be_bytes());
    }
    out.extend([0; 6]);
    out.extend(behind);
    out
}

fn quotients(all: &[(u32, u32)]) -> Vec<u8> {
    all.iter().flat_map(|(a, b)| [a.to_be_bytes(), b.to_be_bytes()].concat()).collect()
}

/// Those of a camera that was held upright: 300 by 150 pixels per inch.
fn camera(maker: &[u8; 4], orientation: u8) -> Vec<u8> {
    exif([
        &[
            (0x10f, 2, 5, [&maker[..], &[0]].concat()),
            (0x112, 3, 1, vec![0, orientation]),
            (0x11a, 5, 1, quotients(&[(300, 1)])),
            (0x11b, 5, 1, quotients(&[(300, 2)])),
            (0x128, 3, 1, vec![0, 2]),
            (0x13b, 2, 4, b"Ann\0".to_vec()),
        ],
        &[
            (0x829a, 5, 1, quotients(&[(1, 125)])),
            (0x9204, 10, 1, quotients(&[((-2i32) as u32, 3)])),
            (0x9214, 3, 2, vec![0, 3, 0, 4]),
            (0x927c, 7, 8, b"by maker".to_vec()),
            (0xa002, 4, 1, vec![0, 0, 0, 30]),
            (0xa003, 4, 1, vec![0, 0, 0, 20]),
        ],
        &[(1, 2, 2, b"N\0".to_vec()), (2, 5, 3, quotients(&[(52, 1), (31, 1), (12, 5)]))],
    ])
}

/// A JPEG file of 30x20 pixels with EXIF data and a comment.
fn jpeg(exif: &[u8], comment: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let pixels: Vec<u8> = (0..600).map(|i| (i * 7 % 256) as u8).collect();
    image::codecs::jpeg::JpegEncoder::new(&mut bytes).encode(&pixels, 30, 20, image::ExtendedColorType::L8).unwrap();
    let segment =
        |marker: u8, body: Vec<u8>| [&[0xff, marker][..], &(body.len() as u16 + 2).to_be_bytes(), &body].concat();
    // The encoder's own density is none.
    let own = [&b"Exif\0\0"[..], exif].concat();
    [&bytes[..2], &segment(0xe1, own), &segment(0xfe, comment.to_vec()), &bytes[2..]].concat()
}

/// The bytes of the fields of EXIF data or of a TIFF file, in this machine's order, by directory and tag.
fn fields(bytes: &[u8]) -> HashMap<(u32, u16), Vec<u8>> {
    let little = bytes.starts_with(b"II");
    let number = |at: usize, n: usize| {
        let digits = bytes[at..at + n].iter();
        let more = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
        if little { digits.rev().fold(0, more) } else { digits.fold(0, more) }
    };
    let mut all = HashMap::new();
    let mut places = vec![(0, number(4, 4) as usize)];
    while let Some((directory, at)) = places.pop() {
        for k in 0..number(at, 2) as usize {
            let at = at + 2 + 12 * k;
            let (tag, kind, count) = (number(at, 2), number(at + 2, 2), number(at + 4, 4) as usize);
            let size = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8][kind as usize];
            let from = if size * count <= 4 { at + 8 } else { number(at + 8, 4) as usize };
            if DIRECTORIES[1..].contains(&tag) {
                places.push((tag, number(at + 8, 4) as usize));
            }
            all.insert((directory, tag as u16), bytes[from..from + size * count].to_vec());
        }
    }
    all
}

/// The EXIF data of a file, as the crate `image` finds them, or the whole of a TIFF file.
fn found(path: &Path) -> HashMap<(u32, u16), Vec<u8>> {
    if path.extension().unwrap() == "tif" {
        return fields(&std::fs::read(path).unwrap());
    }
    let exif = image::ImageReader::open(path).unwrap().into_decoder().unwrap().exif_metadata().unwrap();
    exif.map(|exif| fields(&exif)).unwrap_or_default()
}

fn short(n: u16) -> Vec<u8> {
    n.to_ne_bytes().to_vec()
}

fn long(n: u32) -> Vec<u8> {
    n.to_ne_bytes().to_vec()
}

#[test]
fn what_a_camera_noted_is_kept_where_it_is_true() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let input = folder.put("in.jpg", &jpeg(&camera(b"Ours", 6), b"by hand"));
    let open = |path: &Path| s.open(path).unwrap().convert::<u8>();
    let (e, g) = (DIRECTORIES[1], DIRECTORIES[2]);
    // From a JPEG file, and again from each other.
    let mut from = input;
    for kind in ["png", "tif", "jpg", "tif", "png", "jpg"] {
        let output = folder.at(&format!("out.{kind}"));
        let image = open(&from);
        assert_eq!(image.shape(), (30, 20).into(), "it was turned");
        assert!(warnings(&output, || image.save(&output).map(drop).unwrap()).is_empty(), "{kind}");
        let all = found(&output);
        let get = |d, tag| all.get(&(d, tag)).cloned();
        assert_eq!(get(0, 0x10f), Some(b"Ours\0".to_vec()), "{kind}");
        assert_eq!(get(0, 0x112), Some(short(1)), "{kind}: the orientation was applied");
        assert_eq!(get(e, 0x829a), Some([long(1), long(125)].concat()), "{kind}");
        assert_eq!(get(e, 0x9204), Some([long(-2i32 as u32), long(3)].concat()), "{kind}");
        assert_eq!((get(e, 0xa002), get(e, 0xa003)), (Some(long(20)), Some(long(30))), "{kind}");
        assert_eq!((get(e, 0x9214), get(e, 0x927c)), (Some([short(3), short(4)].concat()), None), "{kind}");
        assert_eq!(get(g, 1), Some(b"N\0".to_vec()), "{kind}");
        assert_eq!(get(g, 2), Some([52, 1, 31, 1, 12, 5].map(long).concat()), "{kind}");
        let bytes = std::fs::read(&output).unwrap();
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        // Sides change places: 150 by 300.
        match kind {
            "png" => {
                assert!(has(&[&b"pHYs"[..], &5906u32.to_be_bytes(), &11811u32.to_be_bytes(), &[1]].concat()));
                assert!(has(b"tEXtAuthor\0Ann") && has(b"tEXtComment\0by hand"));
            }
            "jpg" => {
                assert!(has(&[&b"JFIF\0\x01\x02\x01"[..], &150u16.to_be_bytes(), &300u16.to_be_bytes()].concat()));
                assert_eq!(get(0, 0x13b), Some(b"Ann\0".to_vec()));
                assert!(has(&[&[0xff, 0xfe, 0, 9][..], b"by hand"].concat()));
            }
            _ => {
                let side = |tag| {
                    let two = get(0, tag).unwrap();
                    let [a, b] = [0, 4].map(|at| u32::from_ne_bytes(*two[at..].first_chunk().unwrap()));
                    f64::from(a) / f64::from(b)
                };
                assert_eq!((side(0x11a), side(0x11b), get(0, 0x128)), (150.0, 300.0, Some(short(2))));
                assert_eq!(get(0, 0x13b), Some(b"Ann\0".to_vec()));
                assert_eq!(get(0, 0x10e), Some(b"by hand\0".to_vec()));
            }
        }
        // A comment is the description of a TIFF file, and stays one.
        if kind == "tif" {
            std::fs::copy(folder.at("in.jpg"), folder.at("again.jpg")).unwrap();
            from = folder.at("again.jpg");
        } else {
            from = output;
        }
    }
    Ok(())
}

#[test]
fn what_a_camera_noted_follows_pixels_or_is_missed_with_a_reason() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let input = folder.put("in.jpg", &jpeg(&camera(b"Ours", 1), b"by hand"));
    let other = folder.put("other.jpg", &jpeg(&camera(b"Them", 1), b"by hand"));
    let (image, other) = (s.open(&input)?.convert::<u8>(), s.open(&other)?.convert::<u8>());
    let e = DIRECTORIES[1];
    let saved = |image: &Image<u8>, name: &str| {
        let path = folder.at(name);
        let _ = std::fs::remove_file(&path);
        let warned = warnings(&path, || image.save(&path).map(drop).unwrap());
        let why = warned.into_iter().map(|text| text.split_once("its ").expect("a warning").1.to_owned());
        let reasons = why.collect::<Vec<_>>();
        let all = if name.ends_with("tif") { found(&path) } else { HashMap::new() };
        (all, reasons)
    };
    for (i, moved) in [image.crop(1, 2, 9, 9), image.flip(Axis::Rows), image.resize(10, 15, Interpolation::Nearest)]
        .iter()
        .enumerate()
    {
        let (all, reasons) = saved(moved, &format!("moved{i}.tif"));
        assert!(reasons.is_empty(), "{reasons:?}");
        assert!(all.contains_key(&(0, 0x10f)) && all.contains_key(&(e, 0x829a)));
        assert!(!all.contains_key(&(e, 0x9214)), "a place in other pixels");
        assert_eq!(all.get(&(e, 0xa002)), Some(&long(moved.width() as u32)));
        let pixels = u32::from_ne_bytes(*all[&(0, 0x11a)].first_chunk().unwrap());
        let units = u32::from_ne_bytes(*all[&(0, 0x11a)][4..].first_chunk().unwrap());
        assert_eq!(f64::from(pixels) / f64::from(units), if i == 2 { 150.0 } else { 300.0 }, "half as many");
    }
    let (all, reasons) = saved(&image.max(image.median(3)), "own.tif");
    assert!(reasons.is_empty() && all.contains_key(&(0, 0x10f)));
    let (all, reasons) = saved(&image.max(&other), "both.tif");
    assert!(!all.contains_key(&(0, 0x10f)) && all.contains_key(&(0, 0x13b)), "the author is the same");
    assert_eq!(reasons, ["EXIF data are not stored: images with different EXIF data were combined (max)"]);
    let (_, reasons) = saved(&image.over(Axis::Columns).max(), "rows.tif");
    let new = |what: &str| format!("{what} not stored: its pixels are new ones (row_max)");
    assert_eq!(reasons, [new("resolution is"), new("EXIF data are"), new("texts are")]);
    let (_, reasons) = saved(&image, "in.bmp");
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(
        reasons.contains(&"EXIF data are not stored: only JPEG, PNG, TIFF and WebP files have them".into()),
        "{reasons:?}"
    );
    assert!(
        reasons.contains(&"resolution is not stored: only JPEG, PNG and TIFF files have one".into()),
        "{reasons:?}"
    );
    // A size of pixels is what files have one place for.
    let sized = with_pixel_size(&image, PixelSize::of([None, Some(5.0), Some(5.0)]));
    let (all, reasons) = saved(&sized, "sized.tif");
    assert!(reasons.is_empty() && all[&(0, 0x128)] == short(3));
    Ok(())
}

#[test]
fn an_orientation_that_is_kept_stays_while_rows_do() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let input = folder.put("in.jpg", &jpeg(&camera(b"Ours", 6), b""));
    let options = OpenOptions { orientation: Orientation::Keep, ..OpenOptions::default() };
    let image = AnyImage::open_with(&s, &input, &options)?.convert::<u8>();
    for kind in ["png", "jpg", "tif"] {
        let output = folder.at(&format!("out.{kind}"));
        image.crop(1, 1, 8, 9).save(&output)?;
        assert_eq!(found(&output)[&(0, 0x112)], short(6), "{kind}");
        assert_eq!(s.open(&output)?.shape(), (9, 8).into(), "{kind}");
        image.flip(Axis::Rows).save(&output)?;
        assert_eq!(found(&output)[&(0, 0x112)], short(1), "{kind}");
    }
    Ok(())
}

#[test]
fn damaged_notes_of_a_camera_change_no_pixels() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let whole = camera(b"Ours", 1);
    let want = s.open(folder.put("in.jpg", &jpeg(&[], b"")))?.convert::<u8>().to_vec()?;
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).step_by(3).map(|n| whole[..n].to_vec()).collect();
    for at in (0..whole.len()).step_by(2) {
        for byte in [0, 0xff] {
            let mut one = whole.clone();
            one[at] = byte;
            damaged.push(one);
        }
    }
    for (i, exif) in damaged.iter().enumerate() {
        let image = AnyImage::read(&s, &jpeg(exif, b"by hand"))?.convert::<u8>();
        assert!(image.to_vec()? == want, "{i}");
        image.save(folder.at("out.tif"))?;
        assert_eq!(s.open(folder.at("out.tif"))?.shape(), image.shape());
    }
    Ok(())
}

/// Frames of a series share a recording, and each has its own notes.
#[test]
fn each_picture_of_a_series_has_its_own_notes() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let makers = [b"Anna", b"Bert", b"Cleo"];
    let files = makers.map(|maker| {
        let name = String::from_utf8(maker.to_vec()).unwrap();
        folder.put(&format!("{name}.jpg"), &jpeg(&camera(maker, 1), name.as_bytes()))
    });
    let background = s.open(&files[0])?.convert::<u8>();
    for (alone, once) in [(true, false), (true, true), (false, false), (false, true)] {
        let out = TestFolder::new();
        let recorded = std::cell::Cell::new(0);
        let series = s.series(&files, |image: &AnyImage| {
            recorded.set(recorded.get() + 1);
            let image = image.convert::<u8>();
            if alone { image.median(3) } else { image.max(&background) }
        });
        let series = if once { series.recorded_once() } else { series };
        let name = |path: &Path| out.at(path.with_extension("tif").file_name().unwrap().to_str().unwrap());
        series.save(name, &SaveOptions::default()).for_each(|saved| drop(saved.result.unwrap()));
        if alone && once {
            assert_eq!(recorded.get(), 1, "one recording for all");
        }
        for (i, (file, maker)) in files.iter().zip(makers).enumerate() {
            let all = found(&name(file));
            let kept = alone || i == 0;
            let want = kept.then(|| [&maker[..], &[0]].concat());
            assert_eq!(all.get(&(0, 0x10f)).cloned(), want, "{i}, alone: {alone}, once: {once}");
            assert_eq!(all.get(&(0, 0x10e)).cloned(), want, "{i}, alone: {alone}, once: {once}");
            assert_eq!(warnings(&name(file), || ()).len(), if kept { 0 } else { 2 }, "{i}");
        }
    }
    Ok(())
}
