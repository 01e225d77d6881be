//! Thousands of broken files made from valid ones: reading ends soon, with a picture or an error.
//!
//! Each decoder gets part of a second; `HORUS_FUZZ_SECONDS=3600` gives it an hour. Mutations follow
//! from a seed, which `HORUS_FUZZ_SEED` changes; a failing file is kept in the folder for temporary
//! files, and its path printed.

use std::env::var;
use std::fs;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use horus_core::error::Error;
use horus_core::io::{AnyImage, OpenOptions};
use horus_core::session::Session;
use image::{DynamicImage, GrayImage, ImageFormat, RgbImage, Rgba};

use crate::tiffs::{self, TiffTestPage};
use crate::{TestFolder, session};

/// Larger pictures are refused, which bounds decoding.
const MOST_PIXELS: u64 = 1 << 20;

/// No file of a few kilobytes takes longer, even in a build without optimisation.
const LONGEST: Duration = Duration::from_secs(20);

/// Xorshift, by Marsaglia.
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// A number that often breaks headers.
    fn extreme(&mut self) -> u32 {
        const EXTREME: [u32; 12] =
            [0, 1, 2, 7, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
        EXTREME[self.below(EXTREME.len())]
    }
}

/// Breaks a file in one to four places, headers more often than pixels.
fn mutated(whole: &[u8], random: &mut Xorshift) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=random.below(4) {
        let length = bytes.len();
        let at = if random.below(2) == 0 { random.below(length.min(128)) } else { random.below(length) };
        let Some(byte) = bytes.get_mut(at) else { continue };
        match random.below(8) {
            0 => *byte ^= 1 << random.below(8),
            1 => *byte = random.next() as u8,
            2 | 3 => {
                let (value, wide) = (random.extreme(), random.below(2) == 0);
                let mut value = if wide { value.to_le_bytes().to_vec() } else { (value as u16).to_le_bytes().to_vec() };
                if random.below(2) == 0 {
                    value.reverse();
                }
                bytes.iter_mut().skip(at).zip(value).for_each(|(to, v)| *to = v);
            }
            4 => bytes.truncate(at),
            5 => drop(bytes.drain(at..(at + 1 + random.below(16)).min(length))),
            6 => {
                let piece: Vec<u8> = bytes[at..(at + 1 + random.below(32)).min(length)].to_vec();
                let to = random.below(length);
                bytes.splice(to..to, piece);
            }
            _ => {
                // A digit, for text formats.
                *byte = b'0' + random.below(10) as u8;
            }
        }
    }
    bytes
}

/// The checksum of PNG and gzip (ISO 3309).
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |s, _| if s & 1 == 1 { s >> 1 ^ 0xedb8_8320 } else { s >> 1 })
    })
}

/// Corrects the checksum of each chunk of a PNG file, so that its content is decoded.
fn summed(mut png: Vec<u8>) -> Vec<u8> {
    let mut at = 8;
    while let Some(length) = png.get(at..).and_then(|rest| rest.first_chunk()) {
        let end = at.saturating_add(8).saturating_add(u32::from_be_bytes(*length) as usize);
        if end.saturating_add(4) > png.len() {
            break;
        }
        let sum = crc(&png[at + 4..end]);
        png[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
    png
}

/// Reads mutations of `seeds` until the time is over.
fn attack(name: &str, seeds: &[Vec<u8>], mend: impl Fn(Vec<u8>) -> Vec<u8>) {
    let number = |variable: &str| var(variable).ok().and_then(|v| v.parse::<f64>().ok());
    let time = Duration::from_secs_f64(number("HORUS_FUZZ_SECONDS").unwrap_or(0.3));
    let seed = number("HORUS_FUZZ_SEED").map_or(0x5eed, |s| s as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let (s, folder) = (session(), TestFolder::new());
    for whole in seeds {
        let _ = s.open(folder.put(name, whole)).unwrap_or_else(|e| panic!("the file is whole, but: {e}"));
    }
    let mut random = Xorshift(seed);
    let (started, mut tried) = (Instant::now(), 0u64);
    while tried < 100 || started.elapsed() < time {
        let mut bytes = mutated(&seeds[random.below(seeds.len())], &mut random);
        if random.below(4) > 0 {
            bytes = mend(bytes);
        }
        let path = folder.put(name, &bytes);
        let before = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| read(&s, &path)));
        let fault = match result {
            Ok(_) if before.elapsed() > LONGEST => format!("took {:?}", before.elapsed()),
            Ok(Ok(())) => String::new(),
            Ok(Err(fault)) => fault,
            Err(_) => "panicked".into(),
        };
        if !fault.is_empty() {
            let kept = std::env::temp_dir().join(format!("horus-fuzz-{seed:x}-{tried}-{name}"));
            fs::write(&kept, &bytes).unwrap();
            panic!("{name}, {}: {fault}", kept.display());
        }
        tried += 1;
    }
    eprintln!("{name}: {tried} broken files");
}

/// Reads a picture; the error describes unexpected behaviour.
fn read(s: &Session, path: &std::path::Path) -> Result<(), String> {
    let options = OpenOptions { max_pixels: MOST_PIXELS, ..OpenOptions::default() };
    match AnyImage::open_with(s, path, &options) {
        Ok(picture) if picture.shape().area() as u64 > MOST_PIXELS => Err(format!("has {} pixels", picture.shape())),
        Ok(picture) if picture.shape().is_empty() => Err("has no pixels".into()),
        Ok(_) => Ok(()),
        Err(Error::File { action: "read", cause, .. }) if !cause.trim().is_empty() => Ok(()),
        Err(e) => Err(format!("ended with {e:?}")),
    }
}

fn pictures() -> [DynamicImage; 3] {
    let grey = GrayImage::from_fn(37, 23, |x, y| image::Luma([(x * y) as u8]));
    let colour = RgbImage::from_fn(19, 31, |x, y| image::Rgb([x as u8, (y * 7) as u8, (x ^ y) as u8]));
    let wide = image::ImageBuffer::from_fn(17, 9, |x, y| Rgba([(x * 3000) as u16, (y * 7000) as u16, 9, 65535]));
    [grey.into(), colour.into(), wide.into()]
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

#[test]
fn broken_png_files_are_errors() {
    let seeds: Vec<_> = pictures().iter().map(|p| encoded(p, ImageFormat::Png)).collect();
    attack("a.png", &seeds, summed);
}

#[test]
fn broken_jpeg_files_are_errors() {
    let mut seeds: Vec<_> = pictures()[..2].iter().map(|p| encoded(p, ImageFormat::Jpeg)).collect();
    seeds.push(include_bytes!("progressive.jpg").to_vec());
    // Another decoder reads these.
    seeds.push(include_bytes!("jpeg/apart-both.jpg").to_vec());
    seeds.push(include_bytes!("jpeg/finer-both.jpg").to_vec());
    // Truncated files would be refused for that alone.
    attack("a.jpg", &seeds, |mut bytes| {
        bytes.extend([0xff, 0xd9]);
        bytes
    });
}

#[test]
fn broken_tiff_files_are_errors() {
    let mut seeds: Vec<_> = pictures().iter().map(|p| encoded(p, ImageFormat::Tiff)).collect();
    let grey = TiffTestPage::grey(8, 8, &[7; 64]);
    let planes =
        TiffTestPage { samples: 3, photometric: 2, planar: true, chunks: vec![vec![1; 64]; 3], ..grey.clone() };
    let tiles =
        TiffTestPage { tile: Some((16, 16)), width: 20, height: 20, chunks: vec![vec![5; 256]; 4], ..grey.clone() };
    let floats = TiffTestPage { bits: 32, format: 3, chunks: vec![vec![63; 256]], ..grey.clone() };
    let jpeg = encoded(&DynamicImage::ImageLuma8(GrayImage::new(8, 8)), ImageFormat::Jpeg);
    let jpeg = TiffTestPage { compression: 7, chunks: vec![jpeg], ..grey.clone() };
    let packed = TiffTestPage { compression: 32773, chunks: vec![vec![0xc1, 9]], ..grey.clone() };
    let fax = TiffTestPage { compression: 4, bits: 1, chunks: vec![vec![0xff; 4]], ..grey.clone() };
    for pages in
        [vec![grey], vec![planes.clone()], vec![tiles], vec![floats, planes], vec![jpeg], vec![packed], vec![fax]]
    {
        seeds.extend([tiffs::file(&pages, false), tiffs::file(&pages, true)]);
    }
    seeds.extend(crate::slides::FILES.map(<[u8]>::to_vec));
    attack("a.tif", &seeds, |bytes| bytes);
}

#[test]
fn broken_pnm_files_are_errors() {
    let mut seeds: Vec<_> = pictures()[..2].iter().map(|p| encoded(p, ImageFormat::Pnm)).collect();
    let plain: [&[u8]; 5] = [
        b"P1\n# a comment\n4 2\n0 1 1 0 1 0 0 1\n",
        b"P2 3 1 15 0 7 15\n",
        b"P3 1 2 255 1 2 3 4 5 6\n",
        b"P4 9 2\n\x80\x00\x7f\x80",
        b"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\nabcdef",
    ];
    seeds.extend(plain.iter().map(|p| p.to_vec()));
    seeds.push([&b"P5 2 2 65535\n"[..], &[1; 8]].concat());
    attack("a.pnm", &seeds, |bytes| bytes);
}

#[test]
fn broken_pfm_files_are_errors() {
    attack("a.pfm", &crate::pnm::FLOATS.map(<[u8]>::to_vec), |bytes| bytes);
}

#[test]
fn broken_bmp_files_are_errors() {
    let mut seeds: Vec<_> = pictures()[..2].iter().map(|p| encoded(p, ImageFormat::Bmp)).collect();
    // Eight by two pixels with a palette of two colours, run-length encoded.
    let mut runs = b"BM\x4c\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0\x08\0\0\0\x02\0\0\0\x01\0\x08\0\x01\0\0\0".to_vec();
    runs.extend([&[0; 12][..], &[2, 0, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 255, 255, 255, 0]].concat());
    runs.extend([8, 1, 0, 0, 4, 0, 4, 1, 0, 0, 0, 1]);
    seeds.push(runs);
    attack("a.bmp", &seeds, |bytes| bytes);
}

#[test]
fn broken_qoi_files_are_errors() {
    // A pixel, a run of two, small and larger differences, a pixel that was there before, alpha.
    let codes = [0xfe, 9, 8, 7, 0xc1, 0x6b, 0xa5, 0x3c, 0x1e, 0xff, 1, 2, 3, 4, 0];
    let file = |channels| [&b"qoif\0\0\0\x04\0\0\0\x02"[..], &[channels, 0], &codes, &[0; 7], &[1]].concat();
    attack("a.qoi", &[file(3), file(4)], |bytes| bytes);
}

#[test]
fn broken_exr_files_are_errors() {
    attack("a.exr", &crate::exr::FILES.map(|(_, file)| file.to_vec()), |bytes| bytes);
}

#[test]
fn broken_webp_files_are_errors() {
    // The length of the file would refuse most.
    attack("a.webp", &crate::webp::FILES.map(|(_, file)| file.to_vec()), |mut bytes| {
        let length = (bytes.len().saturating_sub(8) as u32).to_le_bytes();
        bytes.iter_mut().skip(4).zip(length).for_each(|(to, byte)| *to = byte);
        bytes
    });
}

#[test]
fn broken_jpeg_2000_files_are_errors() {
    attack("a.jp2", &crate::jpeg2000::FILES.map(|(_, file)| file.to_vec()), |bytes| bytes);
}

#[test]
fn broken_numpy_files_are_errors() {
    let array = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        bytes
    };
    use ndarray_npy::WriteNpyExt;
    let seeds = [
        array(&|to| ndarray::array![[1u8, 2], [3, 4]].write_npy(to).unwrap()),
        array(&|to| ndarray::array![[1.5f32, 2.5]].write_npy(to).unwrap()),
        array(&|to| ndarray::Array3::<f64>::zeros((3, 2, 4)).write_npy(to).unwrap()),
        array(&|to| ndarray::Array2::<i32>::ones(ndarray::ShapeBuilder::f((3, 2))).write_npy(to).unwrap()),
        array(&|to| ndarray::array![[true, false]].write_npy(to).unwrap()),
    ];
    attack("a.npy", &seeds, |bytes| bytes);
}
