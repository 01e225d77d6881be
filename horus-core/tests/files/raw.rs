//! PNM and NumPy files, whose pixels are read directly into place; files in memory.

use std::io::Cursor;
use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::{DType, Pixel};
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::image::samples;
use horus_core::io::{AnyImage, Depth, Format, OpenOptions, Picture, SaveOptions, Scaling};
use horus_core::session::Session;
use horus_core::shape::Axis;
use horus_testing::cases::covering;
use image::{DynamicImage, ImageFormat, ImageReader};
use ndarray::{Array3, Ix3};

use crate::{TestFolder, refused, session};

fn on_ranks<R: Send>(ranks: usize, threads: usize, program: impl Fn(&Session) -> R + Sync) -> Vec<R> {
    ThreadComm::run(ranks, |comm| {
        let device = CpuDevice::new(Some(threads)).expect("a CPU");
        program(&Session::on(Box::new(device)).communicator(Arc::new(comm)).build().expect("a session"))
    })
}

/// Unstructured bytes.
fn noise(n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 41) as u8).collect()
}

/// A PNM file decoded by the `image` crate: type, and samples pixel by pixel as numbers; `None` if
/// it refuses.
fn oracle(file: &[u8]) -> Option<(DType, (usize, usize), Vec<f64>)> {
    let read = ImageReader::with_format(Cursor::new(file), ImageFormat::Pnm).decode().ok()?;
    if read.width() == 0 || read.height() == 0 {
        return None; // images are never empty
    }
    let size = (read.height() as usize, read.width() as usize);
    Some(match read {
        DynamicImage::ImageLuma8(p) => (DType::U8, size, p.iter().map(|v| f64::from(*v)).collect()),
        DynamicImage::ImageRgb8(p) => (DType::U8, size, p.iter().map(|v| f64::from(*v)).collect()),
        DynamicImage::ImageLuma16(p) => (DType::U16, size, p.iter().map(|v| f64::from(*v)).collect()),
        DynamicImage::ImageRgb16(p) => (DType::U16, size, p.iter().map(|v| f64::from(*v)).collect()),
        other => panic!("{:?}", other.color()),
    })
}

fn same_as_oracle(session: &Session, file: &[u8], what: &str) {
    let read = AnyImage::read(session, file);
    match (oracle(file), read) {
        (Some((dtype, (height, width), want)), Ok(read)) => {
            assert_eq!((read.dtype(), read.shape().height, read.shape().width), (dtype, height, width), "{what}");
            let got: Vec<f64> = read.convert::<f64>().to_array::<Ix3>().unwrap().into_iter().collect();
            assert!(got == want, "{what}");
        }
        (None, Err(_)) => {}
        (want, got) => {
            panic!("{what}: {got:?} where the image crate is {}", if want.is_some() { "glad" } else { "not" })
        }
    }
}

#[test]
fn pnm_files_are_what_the_image_crate_reads() {
    let s = session();
    let body = noise(7 * 5 * 3 * 2);
    let headers = [
        "P5 7 5 255 ",
        "P5\n7\t5\r255\n",
        "P5 # c\n7 5\n# 3 4\n255\n",
        "P57 5 255\n",
        "P5 7#\n5 255 ",
        "P5 007 05 0255 ",
        "P5 7 5 255#x\n ",
        "P5 7 5 65535 ",
        "P6 7 5 255 ",
        "P6 7 5 65535\n",
        "P5 7 5 254 ",
        "P5 7 5 256 ",
        "P5 7 5 1 ",
        "P5 7 5 15 ",
        "P6 7 5 1023 ",
        "P5 7 5 0 ",
        "P5 7 5 65536 ",
        "P5 0 5 255 ",
        "P5 7 0 255 ",
        "P5 -7 5 255 ",
        "P5 7 5 255",
        "P5 7 5",
        "P5",
        "P5 7.0 5 255 ",
        "P5 4294967296 5 255 ",
        "P4 7 5 ",
        "P5 7 5 255\n\n",
        "P5\x0b7\x0c5 255 ",
        "P5 7 5\n#\n255\r\n",
    ];
    for header in headers {
        let file = [header.as_bytes(), &body].concat();
        same_as_oracle(&s, &file, header);
        // Of any length, as in truncated files.
        for length in 0..file.len() {
            same_as_oracle(&s, &file[..length], &format!("{length} bytes of {header}"));
        }
    }
    same_as_oracle(&s, b"P2 3 1 255 7 8 9", "in letters");
}

/// Ranks, and threads of each.
const PLACES: [(usize, usize); 7] = [(1, 1), (1, 2), (1, 5), (2, 1), (3, 2), (4, 1), (5, 1)];

#[test]
fn large_pictures_are_read_in_parts_by_any_number_of_threads() -> Result<()> {
    let folder = TestFolder::new();
    // Parts of 256 KiB, and remainders.
    let sizes = [(1, 1), (1, 262_143), (1, 262_145), (301, 999)];
    for [size, colours, wide, place] in covering([sizes.len(), 2, 2, PLACES.len()]) {
        let ((height, width), (magic, channels)) = (sizes[size], [("P5", 1), ("P6", 3)][colours]);
        let ((full, bytes), (ranks, threads)) = ([(255, 1), (65535, 2)][wide], PLACES[place]);
        let body = noise(height * width * channels * bytes);
        let file = [format!("{magic} {width} {height} {full}\n").as_bytes(), &body].concat();
        let path = folder.put("a.pnm", &file);
        let (dtype, _, want) = oracle(&file).expect("a picture");
        let what = format!("{magic} {width}x{height} {full}");
        for read in on_ranks(ranks, threads, |s| {
            let images = [s.open(&path).unwrap(), AnyImage::read(s, &file).unwrap()];
            assert_eq!(images[0].dtype(), dtype);
            // It is written as it was read.
            let again = match &images[0] {
                AnyImage::U8(image) => image.encode(Format::Pnm, &SaveOptions::default()).unwrap(),
                AnyImage::U16(image) => image.encode(Format::Pnm, &SaveOptions::default()).unwrap(),
                other => panic!("{other:?}"),
            };
            assert!(again.ends_with(&body) && again.len() < body.len() + 30, "{what}");
            images.map(|i| i.convert::<f64>().to_array::<Ix3>().unwrap())
        }) {
            assert!(read.iter().all(|r| r.iter().eq(want.iter())), "{what}, {ranks} ranks, {threads} threads");
        }
    }
    Ok(())
}

#[test]
fn a_pnm_file_that_is_too_short_or_too_large_is_named() {
    let (s, folder) = (session(), TestFolder::new());
    let told =
        |bytes: &[u8], options: &OpenOptions| refused(AnyImage::open_with(&s, folder.put("a.pgm", bytes), options));
    let few = OpenOptions { max_pixels: 5, ..OpenOptions::default() };
    assert!(told(b"P5 3 2 255 ______", &few).contains("3x2 pixels exceed the limit of 5"));
    let any = OpenOptions::default();
    let short = told(b"P5 3 2 65535 ___________", &any);
    assert_eq!(short, "the file declares 3x2 pixels, more than its 24 bytes can hold");
    // A declared size allocates no memory.
    assert!(told(b"P6 65000 65000 255 ______", &any).contains("more than its 25 bytes can hold"));
    assert!(told(b"P6 4000000000 4000000000 65535 ______", &any).contains("exceed the limit of"));
    assert!(
        AnyImage::open_with(&s, folder.put("b.pgm", b"P5 1 1 255 _"), &OpenOptions { page: Some(1), ..any }).is_err()
    );
}

#[test]
fn arrays_of_every_type_and_order_are_read_by_any_number_of_threads() -> Result<()> {
    fn round<T: Pixel + ndarray_npy::WritableElement>(folder: &TestFolder, value: impl Fn(f64) -> T) {
        for (shape, fortran) in [((3, 5, 2), false), ((301, 299, 3), false), ((70, 80, 5), true), ((1, 1, 1), true)] {
            let c = Array3::from_shape_fn(shape, |(y, x, c)| value((y * 31 + x * 7 + c) as f64 * 0.5));
            let mut array = c.clone();
            if fortran {
                array = Array3::from_shape_fn(ndarray::ShapeBuilder::f(shape), |i| c[i]);
            }
            let mut file = Vec::new();
            ndarray_npy::WriteNpyExt::write_npy(&array, &mut file).unwrap();
            let path = folder.put("a.npy", &file);
            for (ranks, threads) in [(1, 1), (1, 2), (1, 5), (3, 1)] {
                for (read, bytes) in on_ranks(ranks, threads, |s| {
                    let image = Image::<T>::open(s, &path).unwrap();
                    (image.to_array::<Ix3>().unwrap(), image.encode(Format::Npy, &SaveOptions::default()).unwrap())
                }) {
                    assert_eq!(read, c, "{} {shape:?}, {ranks} ranks, {threads} threads", T::DTYPE);
                    let back: Array3<T> = Image::<T>::read(&session(), &bytes).unwrap().to_array().unwrap();
                    assert_eq!(back, c);
                }
            }
        }
    }
    let folder = TestFolder::new();
    round(&folder, |v| v as u8);
    round(&folder, |v| v as u16);
    round(&folder, |v| v as i32 - 5);
    round(&folder, |v| v as f32);
    round(&folder, |v| v);
    Ok(())
}

#[test]
fn files_have_the_same_bytes_for_any_number_of_ranks_and_threads() {
    let folder = TestFolder::new();
    let program = |s: &Session, channels: usize| {
        let planes = (0..channels).map(|c| samples::worms(s, 61, 83).gauss(1.0 + c as f64) * 1.5 - 0.1);
        Image::stack(s, planes.collect::<Vec<_>>(), Axis::Channels)
    };
    let formats = ["png", "tif", "npy", "pnm", "jpg", "bmp"].map(|f| Format::named(f).unwrap());
    let scalings = [Scaling::Auto, Scaling::Unit, Scaling::Range, Scaling::None];
    for [channels, format, depth, scaling, place] in covering([4, formats.len(), 2, scalings.len(), PLACES.len()]) {
        let (channels, format) = ([1, 3, 4, 6][channels], formats[format]);
        let (depth, scaling) = ([Depth::Eight, Depth::Sixteen][depth], scalings[scaling]);
        let (ranks, threads) = PLACES[place];
        let options = SaveOptions { depth, scaling, ..SaveOptions::default() };
        let saved = |s: &Session| {
            let image = program(s, channels);
            let bytes = image.encode(format, &options).ok()?;
            let mut sent = Vec::new();
            let scale = image.write_to(&mut sent, format, &options).unwrap();
            let path = folder.at(&format!("{}.{}", s.ranks(), format.name()));
            assert_eq!(image.save_with(&path, &options).unwrap(), scale);
            if s.rank() == 0 {
                assert!(sent == bytes && std::fs::read(path).unwrap() == bytes);
            } else {
                assert!(sent.is_empty(), "rank 0 alone writes");
            }
            Some((bytes, scale))
        };
        let want = on_ranks(1, 1, saved).pop();
        for got in on_ranks(ranks, threads, saved) {
            assert!(Some(got) == want, "{format:?}, {channels} channels, {options:?}, {ranks} ranks");
        }
    }
}

#[test]
fn every_rank_has_the_picture_that_rank_0_was_given() {
    let file = |v: u8| [b"P5 3 1 255 ", &[v; 3][..]].concat();
    for rank in on_ranks(3, 1, |s| {
        let mine = file(s.rank() as u8 + 40);
        let read = AnyImage::read(s, &mine).unwrap().convert::<u8>().to_vec().unwrap();
        let from = AnyImage::read_from(s, &mine[..]).unwrap().convert::<u8>().to_vec().unwrap();
        let broken = if s.rank() == 0 { &mine[..5] } else { &mine[..] };
        (read, from, AnyImage::read(s, broken).unwrap_err().to_string())
    }) {
        assert_eq!((rank.0, rank.1), (vec![40; 3], vec![40; 3]));
        assert!(rank.2.starts_with("cannot read a picture in memory: "), "{}", rank.2);
    }
}

#[test]
fn pictures_are_decoded_on_other_threads_and_belong_to_nobody() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let image = Image::from_fn(&s, 31, 17, |y, x| (y * 100 + x) as u16);
    for name in ["a.png", "a.tif", "a.pgm", "a.npy"] {
        image.save(folder.at(name))?;
        let path = folder.at(name);
        let decoded = std::thread::spawn(move || Picture::open(path, &OpenOptions::default())).join().unwrap()?;
        assert_eq!((decoded.dtype(), decoded.shape()), (DType::U16, image.shape()), "{name}");
        let bytes = std::fs::read(folder.at(name)).unwrap();
        let read = Picture::read(&bytes, &OpenOptions::default())?;
        for picture in [decoded, read] {
            assert_eq!(AnyImage::from_picture(&s, picture).convert::<u16>().to_vec()?, image.to_vec()?, "{name}");
        }
    }
    assert!(
        Picture::open(folder.at("none.png"), &OpenOptions::default()).unwrap_err().to_string().contains("none.png")
    );
    Ok(())
}

#[test]
fn what_memory_and_streams_refuse_is_named() {
    let s = session();
    let floats = Image::from_slice(&s, (1, 2), &[0.0f32, 1.0]);
    let told = |e: horus_core::error::Error| e.to_string();
    let float = SaveOptions { depth: Depth::Float, ..SaveOptions::default() };
    let refused = told(floats.encode(Format::Png, &float).unwrap_err());
    assert!(refused.starts_with("cannot write a png picture: a png file cannot hold 32-bit floats"), "{refused}");
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let full = told(floats.write_to(&mut Full, Format::Pgm, &SaveOptions::default()).unwrap_err());
    assert!(full.starts_with("cannot write a pgm picture: no storage space"), "{full}");
    assert!(told(AnyImage::read(&s, b"").unwrap_err()).contains("the file is empty"));
    assert!(told(AnyImage::read_from(&s, std::io::empty()).unwrap_err()).contains("the file is empty"));
    let wide = Image::from_slice(&s, (1, 1), &[300u16]).encode(Format::Png, &SaveOptions::default()).unwrap();
    assert!(told(Image::<u8>::read(&s, &wide).unwrap_err()).contains("it has u16 pixels, not u8"));
    assert!(Format::named("gif").unwrap_err().starts_with("unknown format gif; use png"));
}
