use std::io::Cursor;

use image::{DynamicImage, ExtendedColorType, ImageFormat};
use proptest::prelude::*;

use super::*;

fn encoded(samples: PngSamples<'_>, shape: Shape, band: usize, threads: usize) -> Vec<u8> {
    let picture = PngPicture { band, ..PngPicture::new(samples, shape).unwrap() };
    let mut bytes = Vec::new();
    encode(&mut bytes, &picture, &PngMetadata::default(), &Workers::new(Some(threads)).unwrap()).unwrap();
    bytes
}

/// A file decoded by an independent decoder.
fn decoded(bytes: &[u8]) -> DynamicImage {
    // By default it does not verify the overall checksum.
    let mut options = png::DecodeOptions::default();
    options.set_ignore_adler32(false);
    let mut reader = png::Decoder::new_with_options(Cursor::new(bytes), options).read_info().unwrap();
    let mut room = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut room).unwrap();
    reader.finish().unwrap();
    image::load_from_memory_with_format(bytes, ImageFormat::Png).unwrap()
}

fn check(samples: PngSamples<'_>, shape: Shape, band: usize) -> Vec<u8> {
    let bytes = encoded(samples, shape, band, 1);
    let picture = decoded(&bytes);
    assert_eq!((picture.width() as usize, picture.height() as usize), (shape.width, shape.height));
    assert_eq!(usize::from(picture.color().channel_count()), shape.channels);
    match samples {
        PngSamples::Eight(v) => assert!(picture.as_bytes() == v, "{shape}"),
        PngSamples::Sixteen(v) => assert!(picture.as_bytes() == bytemuck::cast_slice::<u16, u8>(v), "{shape}"),
    }
    bytes
}

/// Reproducible numbers.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        (height, width, channels) in (1usize..40, 1usize..90, 1usize..5),
        (seed, bits, zeros) in (any::<u64>(), 0u32..17, 0u64..4),
        band in prop_oneof![Just(1), 1usize..3000],
    ) {
        let shape = Shape::new(height, width, channels);
        let mut next = random(seed);
        // Few or many distinct values, and runs.
        let mut sample = || if next() % 4 < zeros { 0 } else { (next() >> 11 & ((1 << bits) - 1)) as u16 };
        let wide: Vec<u16> = (0..shape.len()).map(|_| sample()).collect();
        let narrow: Vec<u8> = wide.iter().map(|v| *v as u8).collect();
        check(PngSamples::Eight(&narrow), shape, band);
        check(PngSamples::Sixteen(&wide), shape, band);
    }

    #[test]
    fn sums_of_parts_make_the_sum(data in prop::collection::vec(any::<u8>(), 0..9000), cut in 0usize..9000) {
        let (first, second) = data.split_at(cut.min(data.len()));
        let sum = Adler::of(first).followed_by(Adler::of(second), second.len());
        prop_assert_eq!(sum, Adler::of(&data));
    }
}

#[test]
fn the_smallest_and_the_narrowest_pictures() {
    let some: Vec<u8> = (0..600_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    for channels in 1..=4 {
        for (height, width) in [(1, 1), (1, 2), (1, 99_000), (99_000, 1), (2, 70_000)] {
            let shape = Shape::new(height, width, channels);
            check(PngSamples::Eight(&some[..shape.len()]), shape, BAND);
        }
    }
}

#[test]
fn any_number_of_threads_writes_the_same() {
    let shape = Shape::new(700, 900, 3);
    let mut next = random(7);
    let samples: Vec<u16> = (0..shape.len()).map(|i| (i as u64 / 50 + next() % 64) as u16).collect();
    for band in [2000, 30_000, BAND, usize::MAX / 2] {
        let want = check(PngSamples::Sixteen(&samples), shape, band);
        for threads in [2, 5] {
            assert!(encoded(PngSamples::Sixteen(&samples), shape, band, threads) == want, "{threads} threads");
        }
    }
}

#[test]
fn other_shapes_and_sizes_are_refused() {
    let refused = |n: usize, shape| PngPicture::new(PngSamples::Eight(&vec![0; n]), shape).err().unwrap();
    assert!(refused(10, Shape::new(1, 2, 5)).contains("a png file cannot hold"));
    assert!(refused(0, Shape::new(0, 2, 1)).contains("a png file cannot hold"));
    assert!(refused(3, Shape::new(2, 2, 1)).contains("3 samples"));
}

/// Names, samples and shapes of many kinds of pictures; 8 or 16 bits.
fn pictures() -> Vec<(String, Vec<u16>, Shape, bool)> {
    let mut pictures = Vec::new();
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets");
    for name in ["vessels.png", "vessels-lines.png", "retina.jpg", "small.png", "gallery/canny.png", "gallery/otsu.png"]
    {
        let picture = image::open(format!("{assets}/{name}")).unwrap();
        let shape = |channels| Shape::new(picture.height() as usize, picture.width() as usize, channels);
        let grey: Vec<u16> = picture.to_luma8().into_raw().into_iter().map(u16::from).collect();
        let colour: Vec<u16> = picture.to_rgb8().into_raw().into_iter().map(u16::from).collect();
        pictures.push((name.to_owned(), grey, shape(1), false));
        pictures.push((format!("{name} in colour"), colour, shape(3), false));
    }
    let (mut next, grey) = (random(3), Shape::new(600, 800, 1));
    let mut made = |name: &str, wide, sample: &mut dyn FnMut(usize, usize) -> u64| {
        let samples = (0..grey.len()).map(|i| sample(i / grey.width, i % grey.width) as u16);
        let samples = samples.map(|v| if wide { v } else { v & 0xff }).collect();
        pictures.push((name.to_owned(), samples, grey, wide));
    };
    let wave = |y: usize, x: usize| ((x as f64 / 60.0).sin() * (y as f64 / 45.0).cos() + 1.0) * 120.0;
    made("flat", false, &mut |_, _| 77);
    made("noise", false, &mut |_, _| next());
    made("noise in 16 bits", true, &mut |_, _| next());
    made("little noise", false, &mut |_, _| 100 + next() % 8);
    made("sparse", false, &mut |_, _| if next() % 100 == 0 { next() } else { 0 });
    made("gradient in 16 bits", true, &mut |y, x| (20 * x + 9 * y) as u64);
    made("waves", false, &mut |y, x| wave(y, x) as u64);
    made("waves with noise in 16 bits", true, &mut |y, x| (250.0 * wave(y, x)) as u64 + next() % 64);
    made("a mask", false, &mut |y, x| if wave(y, x) > 150.0 { 255 } else { 0 });
    made("a chessboard", false, &mut |y, x| ((y / 7 + x / 7) % 2 * 255) as u64);
    pictures
}

/// Guards against a regression in size; the previous encoder is the reference.
#[test]
fn files_are_at_most_a_tenth_larger_than_those_of_the_image_crate() {
    for (name, samples, shape, wide) in pictures() {
        let narrow: Vec<u8> = samples.iter().map(|v| *v as u8).collect();
        let samples16 = PngSamples::Sixteen(&samples);
        let (own, bytes): (_, &[u8]) = match wide {
            true => (check(samples16, shape, BAND), bytemuck::cast_slice(&samples)),
            false => (check(PngSamples::Eight(&narrow), shape, BAND), &narrow),
        };
        let colour = match (shape.channels, wide) {
            (1, false) => ExtendedColorType::L8,
            (1, true) => ExtendedColorType::L16,
            _ => ExtendedColorType::Rgb8,
        };
        let (w, h, mut theirs) = (shape.width as u32, shape.height as u32, Cursor::new(Vec::new()));
        image::write_buffer_with_format(&mut theirs, bytes, w, h, colour, ImageFormat::Png).unwrap();
        let theirs = theirs.into_inner().len();
        assert!(own.len() * 10 <= theirs * 11, "{name}: {} bytes, theirs {theirs}", own.len());
    }
}

#[test]
fn pixels_have_a_size_and_indices_their_colours() {
    let colours: Vec<u8> = (0..768).map(|i| (i * 7) as u8).collect();
    let beside = PngMetadata { pixel: Some([250.0, 0.5]), colours: colours.clone(), ..PngMetadata::default() };
    let mut bytes = Vec::new();
    write(&mut bytes, PngSamples::Eight(&[0, 9, 255, 3]), Shape::new(2, 2, 1), &beside, &Workers::alone()).unwrap();
    let reader = png::Decoder::new(Cursor::new(&bytes)).read_info().unwrap();
    let told = reader.info().pixel_dims.unwrap();
    assert_eq!((told.xppu, told.yppu, told.unit), (2_000_000, 4000, png::Unit::Meter));
    let seen = decoded(&bytes).to_rgb8().into_raw();
    let of = |index: usize| &colours[3 * index..][..3];
    assert_eq!(seen, [of(0), of(9), of(255), of(3)].concat());
    // A pixel of three kilometres gives 0 pixels per metre.
    assert_eq!(PngMetadata { pixel: Some([3e9, 1.0]), ..PngMetadata::default() }.density(), None);
}
