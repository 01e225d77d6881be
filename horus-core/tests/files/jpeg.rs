//! JPEG files with any sampling factors and scans, alone and in TIFF files.

mod writer;

use horus_core::io::{OpenOptions, Picture};
use horus_core::shape::Shape;

use crate::tiffs::{self, TiffTestPage};
use writer::{JpegScanLayout, SampledComponent, encode};

type Factors = (usize, usize);

/// Components of some waves: their slope is at most 2 levels a pixel, so that a sample of four columns is exact to 3.
const WAVES: [fn(f64, f64) -> f64; 4] = [
    |y, x| 128.0 + 50.0 * (y / 40.0).sin() + 50.0 * (x / 50.0).cos(),
    |y, x| 128.0 + 30.0 * (y / 37.0 + 1.0).sin() + 20.0 * (x / 35.0).sin(),
    |y, x| 128.0 + 30.0 * ((y + x) / 39.0).cos(),
    |y, x| 150.0 + 50.0 * (y / 33.0).cos() + 30.0 * (x / 37.0).cos(),
];

/// Rounded samples and coefficients, and at the edges samples that are not in the middle of their pixels: of luminance
/// and of the difference that counts 1.77 times.
const CLOSE: f64 = 7.0;

/// Pixels, in planes, that a file of these components should have.
fn wanted((height, width): (usize, usize), components: usize, plain: bool) -> Vec<f64> {
    let place = |i: usize| ((i / width) as f64, (i % width) as f64);
    let colours = |[y, blue, red]: [f64; 3]| {
        let (blue, red) = (blue - 128.0, red - 128.0);
        [y + 1.402 * red, y - 0.344_136 * blue - 0.714_136 * red, y + 1.772 * blue]
    };
    let pixel = |i: usize| {
        let (y, x) = place(i);
        let [a, b, c, k] = WAVES.map(|wave| wave(y, x));
        match (components, plain) {
            (1, _) => vec![a],
            (3, true) => vec![a, b, c],
            (3, false) => colours([a, b, c]).to_vec(),
            // What is stored is the light that inks leave.
            _ => [a, b, c].map(|ink| ink * k / 255.0).to_vec(),
        }
    };
    (0..height * width).flat_map(pixel).map(|v| v.clamp(0.0, 255.0)).collect()
}

/// The largest difference from the pixels that a picture should have.
fn difference(picture: Picture, shape: Shape, wanted: &[f64]) -> f64 {
    assert_eq!(picture.shape(), shape);
    let pixels = picture.into_pixels();
    let pairs = pixels.as_slice::<u8>().iter().zip(wanted);
    pairs.map(|(got, wanted)| (f64::from(*got) - wanted).abs()).fold(0.0, f64::max)
}

fn file(size: (usize, usize), factors: &[Factors], scans: JpegScanLayout, restart: usize, plain: bool) -> Vec<u8> {
    let components: Vec<SampledComponent> =
        factors.iter().zip(WAVES).map(|(f, at)| SampledComponent { factors: *f, at }).collect();
    encode(size, &components, scans, restart, plain)
}

fn check(size: (usize, usize), factors: &[Factors], scans: JpegScanLayout, restart: usize, plain: bool) {
    let bytes = file(size, factors, scans, restart, plain);
    let what = format!("{size:?} {factors:?} {scans:?}, restart {restart}, plain {plain}");
    let picture = Picture::read(&bytes, &OpenOptions::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let shape = Shape::new(size.0, size.1, if factors.len() == 1 { 1 } else { 3 });
    let far = difference(picture, shape, &wanted(size, factors.len(), plain));
    assert!(far <= CLOSE, "{what}: {far} levels off");
}

const SIZES: [(usize, usize); 6] = [(37, 53), (64, 32), (8, 8), (1, 1), (17, 16), (33, 97)];
const ALL: [JpegScanLayout; 4] =
    [JpegScanLayout::Together, JpegScanLayout::Apart, JpegScanLayout::Progressive, JpegScanLayout::ProgressiveApart];

/// Interleaved scans have at most ten blocks in a unit.
fn fits(factors: &[Factors], scans: JpegScanLayout) -> bool {
    let blocks: usize = factors.iter().map(|(across, down)| across * down).sum();
    blocks <= 10 || factors.len() == 1 || matches!(scans, JpegScanLayout::Apart | JpegScanLayout::ProgressiveApart)
}

fn factor(i: usize) -> Factors {
    (i / 4 + 1, i % 4 + 1)
}

#[test]
fn grey_files_of_any_factors_are_read() {
    for scans in ALL {
        for i in 0..16 {
            check(SIZES[i % SIZES.len()], &[factor(i)], scans, i % 3, false);
        }
    }
}

/// The factors that encoders offer, with all scans, restart intervals and sizes.
#[test]
fn usual_factors_are_read_with_any_scans() {
    let one = (1, 1);
    let mut all: Vec<Vec<Factors>> = Vec::new();
    for f in [one, (2, 1), (1, 2), (2, 2)] {
        all.extend([vec![f, one, one], vec![one, f, f], vec![f, f, f], vec![f, one, one, f], vec![f, one, one, one]]);
    }
    all.extend([vec![(4, 1), one, one], vec![(4, 2), one, one], vec![(3, 1), one, one]]);
    for (i, factors) in all.iter().enumerate() {
        for scans in ALL.into_iter().filter(|scans| fits(factors, *scans)) {
            for (k, size) in SIZES.into_iter().enumerate() {
                for restart in if k == 0 { vec![0, 1, 5] } else { vec![(i + k) % 4] } {
                    check(size, factors, scans, restart, factors.len() == 4 || (i + k) % 3 == 0);
                }
            }
        }
    }
}

/// Every third of the 4096 factors of three components, and some of four, each with one of the scans, sizes and restart
/// intervals.
#[test]
fn any_factors_are_read() {
    for i in (0..4096).step_by(3) {
        let factors = [factor(i / 256), factor(i / 16 % 16), factor(i % 16)];
        let scans = ALL[(i + i / 7) % ALL.len()];
        let scans = if fits(&factors, scans) { scans } else { JpegScanLayout::Apart };
        check(SIZES[i % 5], &factors, scans, i % 11, i % 13 == 0);
        if i % 37 == 0 {
            let four = [factors[0], factors[1], factors[2], factor(i / 37 % 16)];
            check(SIZES[i % 5], &four, if fits(&four, scans) { scans } else { JpegScanLayout::Apart }, i % 11, true);
        }
    }
}

/// What libjpeg decodes, of files that it encoded.
#[test]
fn files_of_libjpeg_are_read_as_libjpeg_reads_them() {
    macro_rules! files {
        ($($name:literal, $far:literal;)*) => {
            [$(($name, include_bytes!(concat!("jpeg/", $name, ".jpg")).to_vec(),
                include_bytes!(concat!("jpeg/", $name, ".ppm")).to_vec(), $far),)*]
        };
    }
    // Halved columns and rows are interpolated alike, and each step rounds. Of three or four columns libjpeg repeats the
    // samples of colours, which differ by up to 13 levels a column.
    let files = files! {
        "apart-none", 3.0;
        "two-scans", 4.0;
        "apart-rows", 4.0;
        "apart-both", 4.0;
        "finer-columns", 4.0;
        "finer-rows", 4.0;
        "finer-both", 4.0;
        "quarter", 20.0;
        "third", 20.0;
    };
    for (name, jpeg, ppm, most) in files {
        let want = Picture::read(&ppm, &OpenOptions::default()).unwrap();
        let shape = want.shape();
        let want: Vec<f64> = want.into_pixels().as_slice::<u8>().iter().map(|v| f64::from(*v)).collect();
        let far = difference(Picture::read(&jpeg, &OpenOptions::default()).unwrap(), shape, &want);
        assert!(far <= most, "{name}: {far} levels off");
    }
}

#[test]
fn scans_of_single_components_are_read_in_tiff_files() {
    let size = (40, 56);
    for (factors, scans, plain) in [
        ([(1, 2), (1, 1), (1, 1)], JpegScanLayout::Apart, false),
        ([(2, 2), (1, 1), (1, 1)], JpegScanLayout::Apart, false),
        ([(1, 1), (2, 1), (2, 1)], JpegScanLayout::Together, false),
        ([(1, 1), (2, 2), (2, 2)], JpegScanLayout::Progressive, true),
    ] {
        let bytes = file(size, &factors, scans, 0, plain);
        let photometric = if plain { 2 } else { 6 };
        let page = TiffTestPage {
            samples: 3,
            photometric,
            compression: 7,
            chunks: vec![bytes],
            ..TiffTestPage::grey(56, 40, &[])
        };
        let picture = Picture::read(&tiffs::file(&[page], false), &OpenOptions::default()).unwrap();
        let far = difference(picture, Shape::new(40, 56, 3), &wanted(size, 3, plain));
        assert!(far <= CLOSE, "{factors:?} {scans:?}: {far} levels off");
    }
}
