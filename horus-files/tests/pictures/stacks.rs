//! TIFF files whose pages are channels, levels and times: those of `tests/goldens/pages.py`, whose pixels count from 0 on in the
//! order time, level, channel, row, column; and descriptions that make no sense.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use horus_base::dispatch;
use horus_base::dtype::Pixel;
use horus_base::lengths::PixelSize;
use horus_base::shape::{Region, Shape};
use horus_files::{FileInfo, OpenOptions, Picture, PictureReader, RegionSource};
use horus_host::workers::Workers;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/goldens/pages/{name}.tif"))
}

fn volume(page: Option<usize>) -> OpenOptions {
    OpenOptions { volume: true, page, ..OpenOptions::default() }
}

fn values(bytes: &[u8], picture: &Picture) -> Vec<f64> {
    dispatch!(picture.dtype(), T => bytemuck::pod_collect_to_vec::<u8, T>(bytes).into_iter().map(T::to_f64).collect())
}

/// Files with their times, levels and channels, and the size of their pixels.
fn all() -> Vec<(&'static str, [usize; 3], Option<PixelSize>)> {
    let um = |levels, rows, columns| PixelSize::of([Some(levels), Some(rows), Some(columns)]);
    vec![
        ("imagej-pages", [2, 3, 2], um(2.0, 0.5, 0.25)),
        // tifffile leaves out the resolution of truncated files.
        ("imagej-one-directory", [2, 3, 2], um(2.0, 0.5, 0.25)),
        ("imagej-colours", [1, 3, 3], None),
        ("imagej-composite", [1, 1, 2], None),
        ("imagej-images", [1, 4, 1], um(0.5, 0.1, 0.1)),
        ("tifffile-pages", [2, 3, 2], None),
        ("tifffile-one-directory", [2, 3, 2], None),
        ("tifffile-turned", [1, 3, 2], None),
        ("tifffile-no-axes", [1, 3, 1], None),
        ("tifffile-planes", [1, 3, 3], None),
        ("tifffile-halves", [1, 3, 1], None),
        ("metamorph", [1, 3, 1], None),
        ("zeiss", [2, 3, 3], um(2.0, 0.5, 0.25)),
        ("zeiss-two", [2, 3, 2], um(2.0, 0.5, 0.25)),
        ("micromanager", [2, 3, 2], um(2.0, 0.5, 0.25)),
    ]
}

#[test]
fn pages_are_channels_levels_and_times() {
    for (name, [times, levels, channels], pixel) in all() {
        let path = golden(name);
        let shape = Shape::volume(levels, 5, 7, channels);
        for time in 0..times {
            let options = volume((times > 1).then_some(time));
            let picture = Picture::open(&path, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!((picture.shape(), picture.metadata().pixel), (shape, pixel), "{name}");
            let dtype = picture.dtype();
            let counted = |i: usize| if dtype.size() == 1 { (i % 256) as f64 } else { i as f64 };
            // In the file, channels come before rows.
            let value = |z: usize, y: usize, x: usize, c: usize| ((z * channels + c) * 5 + y) * 7 + x;
            let values_of = |z: usize, ys: Range<usize>, xs: Range<usize>| {
                let places = ys.flat_map(|y| xs.clone().map(move |x| (y, x)));
                let samples = places.flat_map(|(y, x)| (0..channels).map(move |c| value(z, y, x, c)));
                samples.map(|i| counted(time * shape.len() + i)).collect::<Vec<f64>>()
            };
            let want: Vec<f64> = (0..levels).flat_map(|z| values_of(z, 0..5, 0..7)).collect();
            let reader = PictureReader::open(&path, &options).unwrap();
            assert_eq!((RegionSource::levels(&reader), reader.shape()), (1, shape), "{name}");
            // A part of the last level.
            let mut part = vec![0; channels * 2 * 3 * dtype.size()];
            let region = Region::new(1, 4, 2, 3);
            reader.fill_levels(levels - 1..levels, region, &mut part, &Workers::alone()).unwrap();
            assert_eq!(values(&part, &picture), values_of(levels - 1, 1..3, 4..7), "{name}");
            // Of the bytes of a file, too.
            let bytes = std::fs::read(&path).unwrap();
            for picture in [Picture::read(&bytes, &options).unwrap(), picture] {
                let pixels = picture.clone().into_pixels();
                assert_eq!(values(pixels.bytes(), &picture), want, "{name}");
            }
        }
        if times > 1 {
            let told = Picture::open(&path, &volume(None)).unwrap_err().to_string();
            assert!(
                told.contains("it has 2 times, of which one is read as a volume: choose it by OpenOptions::page"),
                "{name}: {told}"
            );
        }
    }
}

#[test]
fn planes_without_a_directory_are_pages() {
    for (name, [times, levels, channels], _) in all() {
        let samples = match name {
            "imagej-colours" | "tifffile-planes" | "zeiss" => 3,
            "zeiss-two" => 2,
            _ => 1,
        };
        let path = golden(name);
        let pages = times * levels * channels / samples;
        let info = FileInfo::open(&path, &volume(Some(0).filter(|_| times > 1))).unwrap();
        assert_eq!((info.pages, info.shape), (pages, Shape::volume(levels, 5, 7, channels)), "{name}");
        let thumbnail = (name == "zeiss-two").then_some((2, 3));
        assert!(info.levels.iter().copied().eq([(5, 7)].into_iter().chain(thumbnail)), "{name}: {:?}", info.levels);
        let page = |page| OpenOptions { page: Some(page), ..OpenOptions::default() };
        let told = Picture::open(&path, &page(pages)).unwrap_err().to_string();
        assert!(told.contains(&format!("page {pages} requested, but it has {pages}")), "{name}: {told}");
        let last = Picture::open(&path, &page(pages - 1)).unwrap();
        assert_eq!(last.shape(), Shape::new(5, 7, samples), "{name}");
        let first = (pages - 1) * 35 * samples;
        // The channels of this one are its slowest axis.
        let first = if name == "tifffile-turned" {
            first
        } else {
            first % if last.dtype().size() == 1 { 256 } else { 1 << 16 }
        };
        assert_eq!(values(&last.clone().into_pixels().bytes()[..last.dtype().size()], &last), [first as f64], "{name}");
        let tags = FileInfo::tags(&path, &OpenOptions::default()).unwrap();
        let by = ["OME", "ImageJ", "tifffile", "MetaMorph", "LSM"]
            .iter()
            .filter(|by| tags.iter().any(|(tag, _)| tag == **by));
        assert_eq!(by.count(), 1, "{name}");
    }
    // Of one level and time, the channels are read without asking for a volume, as those of OME-TIFF files.
    let flat = Picture::open(golden("imagej-composite"), &OpenOptions::default()).unwrap();
    assert_eq!((flat.shape(), flat.metadata().names.len()), (Shape::new(5, 7, 2), 2));
}

/// A big-endian file of one directory, with this description, and `planes` planes of 3 x 4 bytes.
fn described(text: &str, planes: usize) -> Vec<u8> {
    const ENTRIES: usize = 9;
    let text = [text.as_bytes(), &[0]].concat();
    let end = 8 + 2 + 12 * ENTRIES + 4;
    let data = end + text.len();
    let entries: [(u16, u16, usize, usize); ENTRIES] = [
        (256, 4, 1, 4),
        (257, 4, 1, 3),
        (258, 4, 1, 8),
        (259, 4, 1, 1),
        (262, 4, 1, 1),
        (270, 2, text.len(), end),
        (273, 4, 1, data),
        (278, 4, 1, 3),
        (279, 4, 1, 12),
    ];
    let mut file = b"MM\0*\0\0\0\x08\0\x09".to_vec();
    for (tag, kind, count, value) in entries {
        file.extend([tag.to_be_bytes(), kind.to_be_bytes()].concat());
        file.extend([(count as u32).to_be_bytes(), (value as u32).to_be_bytes()].concat());
    }
    file.extend([0; 4]);
    file.extend(text);
    file.extend((0..12 * planes).map(|i| i as u8));
    file
}

#[test]
fn descriptions_of_other_pages_do_not_change_them() {
    let read = |text: &str, planes: usize, options: &OpenOptions| {
        Picture::read(&described(text, planes), options).map(|picture| picture.shape()).map_err(|e| e.to_string())
    };
    let shape = |levels, channels| Ok(Shape::volume(levels, 3, 4, channels));
    assert_eq!(read("ImageJ=1.53\nimages=3\n", 3, &volume(None)), shape(3, 1));
    assert_eq!(read("ImageJ=1.53\nimages=6\nchannels=2\nslices=3\norder=zct", 6, &volume(None)), shape(3, 2));
    assert_eq!(read("shape=(3, 3, 4)", 3, &volume(None)), shape(3, 1));
    // Of a picture of which a part was cut out, or of one page.
    for text in
        ["{\"shape\": [5, 30, 40]}", "{\"shape\": [3, 4]}", "{\"shape\": [\"3\", 3, 4]}", "ImageJ=1.53\n", "{}", ""]
    {
        assert_eq!(read(text, 3, &volume(None)), shape(1, 1), "{text}");
    }
    for (text, cause) in [
        ("ImageJ=1.53\nimages=1000000000000\n", "its ImageJ description gives images as \"1000000000000\""),
        ("ImageJ=1.53\nimages=-3\n", "gives images as \"-3\""),
        ("ImageJ=1.53\nslices=0\n", "gives slices as \"0\""),
        ("ImageJ=1.53\nimages=3\nframes=many\n", "gives frames as \"many\""),
        ("ImageJ=1.53\nimages=3\nchannels=1048576\nslices=1048576\n", "names more than 1048576 planes"),
        ("ImageJ=1.53\nimages=3\norder=zzt\n", "has the order of axes \"zzt\""),
        ("ImageJ=1.53\nimages=4\nslices=4", "its ImageJ description names 4 planes, and the file has 1: its "),
        ("{\"shape\": [1048577, 3, 4]}", "its tifffile description names more than 1048576 planes"),
        ("{\"shape\": [18446744073709551615, 9, 3, 4]}", "names more than 1048576 planes"),
        (
            "{\"shape\": [2, 2, 3, 4]}",
            "names 4 planes, and the file has 1: its 182 bytes are too few for planes of 12 bytes",
        ),
    ] {
        let told = read(text, 3, &volume(None)).unwrap_err();
        assert!(told.contains(cause), "{text}: {told}");
        assert_eq!(read(text, 3, &OpenOptions::default()), shape(1, 1), "{text}");
        let told = read(text, 3, &OpenOptions { page: Some(1), ..OpenOptions::default() }).unwrap_err();
        assert!(told.contains("page 1 requested, but it has 1"), "{text}: {told}");
    }
    // Any part of a file is read, or is an error.
    let whole = described("ImageJ=1.53\nimages=3\nchannels=3\n", 3);
    for end in 0..whole.len() {
        let _ = (Picture::read(&whole[..end], &volume(None)), Picture::read(&whole[..end], &OpenOptions::default()));
    }
}

#[test]
fn the_last_plane_of_a_file_beyond_4_gib_is_read_alone() {
    let (planes, side) = (540, 2000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.tif");
    let mut head = described(&format!("ImageJ=1.53\nimages={planes}\nchannels=2\nslices=270\nhyperstack=true\n"), 0);
    let entry =
        |tag: u16| 10 + 12 * [256, 257, 258, 259, 262, 270, 273, 278, 279].iter().position(|t| *t == tag).unwrap();
    let bytes = side * side * 2;
    for (tag, value) in [(256, side), (257, side), (258, 16), (278, side), (279, bytes)] {
        head[entry(tag) + 8..][..4].copy_from_slice(&(value as u32).to_be_bytes());
    }
    let mut file = File::create(&path).unwrap();
    file.write_all(&head).unwrap();
    let size = head.len() as u64 + bytes as u64 * planes;
    assert!(size > 1 << 32);
    file.set_len(size).unwrap();
    // The last pixel.
    file.seek(SeekFrom::End(-2)).unwrap();
    file.write_all(&[1, 2]).unwrap();
    let reader = PictureReader::open(&path, &volume(None)).unwrap();
    assert_eq!(reader.shape(), Shape::volume(270, side, side, 2));
    let mut part = [0; 2 * 4];
    reader.fill_levels(269..270, Region::new(side - 1, side - 2, 1, 2), &mut part, &Workers::alone()).unwrap();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, u16>(&part), [0, 0, 0, 0x0102]);
    assert!(reader.counted().bytes < 100, "{:?}", reader.counted());
    // One byte less is no file of so many planes.
    file.set_len(size - 1).unwrap();
    let told = PictureReader::open(&path, &volume(None)).unwrap_err().to_string();
    assert!(told.contains("names 540 planes, and the file has 1"), "{told}");
}
