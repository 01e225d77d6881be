//! Checks stored samples for every type, depth and scaling against a plain function over pixels.

use super::*;
use crate::comm::threads::ThreadComm;
use crate::cpu::device::CpuDevice;
use crate::dispatch;
use crate::dtype::Pixel;
use crate::image::Image;
use crate::plan::ResultDelivery;
use crate::session::Session;
use crate::shape::Axis;

#[test]
fn a_mean_of_known_pixels_is_not_taken_for_a_missing_one() {
    fn mean<T: Pixel>(missing: f64, pixels: [f64; 4]) -> f64 {
        let s = crate::session::Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
        let image = Image::from_fn(&s, 2, 2, |y, x| T::from_f64(pixels[2 * y + x]));
        let small = samples::smaller(image.handle(), crate::session::SizeReduction::MeansBut(missing));
        Image::<T>::from_handle(small).to_vec().unwrap()[0].to_f64()
    }
    assert_eq!(mean::<i16>(0.0, [-1.0, 1.0, 1.0, -1.0]), 1.0);
    assert_eq!(mean::<u8>(255.0, [255.0, 3.0, 5.0, 255.0]), 4.0);
    assert_eq!(mean::<u8>(255.0, [255.0, 255.0, 5.0, 255.0]), 255.0, "most are missing");
    let near = mean::<f64>(-9999.0, [-9998.0, -10_000.0, -9998.0, -10_000.0]);
    assert!(near != -9999.0 && (near + 9999.0).abs() < 0.01, "{near}");
    assert!(mean::<f32>(f64::NAN, [f64::NAN; 4]).is_nan());
}

/// Interleaved samples.
#[derive(Debug, PartialEq)]
enum InterleavedSamples {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl InterleavedSamples {
    fn stored(&self) -> DType {
        match self {
            InterleavedSamples::U8(_) => DType::U8,
            InterleavedSamples::U16(_) => DType::U16,
            InterleavedSamples::U32(_) => DType::U32,
            InterleavedSamples::I8(_) => DType::I8,
            InterleavedSamples::I16(_) => DType::I16,
            InterleavedSamples::I32(_) => DType::I32,
            InterleavedSamples::F32(_) => DType::F32,
            InterleavedSamples::F64(_) => DType::F64,
        }
    }
}

/// Interleaves planes and maps each value by `map`.
fn interleaved<T: Pixel, S>(pixels: &[T], shape: Shape, map: impl Fn(T) -> S) -> Vec<S> {
    let area = shape.area();
    let map = &map;
    (0..area).flat_map(|i| (0..shape.channels).map(move |c| map(pixels[c * area + i]))).collect()
}

/// Pixels of an image of type `dtype` as interleaved samples of type `stored`.
fn sample<T: Pixel>(
    pixels: &[T],
    shape: Shape,
    dtype: DType,
    stored: DType,
    scaling: Scaling,
) -> (InterleavedSamples, Option<Scale>) {
    let full = match stored {
        DType::F64 => return (InterleavedSamples::F64(interleaved(pixels, shape, Pixel::to_f64)), None),
        DType::F32 => return (InterleavedSamples::F32(interleaved(pixels, shape, |v| v.to_f64() as f32)), None),
        DType::U32 => {
            return (InterleavedSamples::U32(interleaved(pixels, shape, |v| u32::from_f64(v.to_f64()))), None);
        }
        DType::I8 => return (InterleavedSamples::I8(interleaved(pixels, shape, |v| i8::from_f64(v.to_f64()))), None),
        DType::I16 => {
            return (InterleavedSamples::I16(interleaved(pixels, shape, |v| i16::from_f64(v.to_f64()))), None);
        }
        DType::I32 => {
            return (InterleavedSamples::I32(interleaved(pixels, shape, |v| i32::from_f64(v.to_f64()))), None);
        }
        DType::U16 => u16::MAX,
        DType::U8 | DType::Bool => u16::from(u8::MAX),
    };
    let scale = match scaling {
        // True is white.
        Scaling::Auto | Scaling::Unit if dtype == DType::Bool => Some(Scale { low: 0.0, high: 1.0, full }),
        Scaling::Auto if T::DTYPE.is_float() => Some(Scale { low: 0.0, high: 1.0, full }),
        Scaling::Auto | Scaling::None => None,
        Scaling::Unit => {
            let high = if T::DTYPE.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
            Some(Scale { low: 0.0, high, full })
        }
        Scaling::Range => {
            let finite = pixels.iter().map(|v| v.to_f64()).filter(|v| v.is_finite());
            let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
            // Without a finite value there is no range.
            Some(if low <= high { Scale { low, high, full } } else { Scale { low: 0.0, high: 0.0, full } })
        }
    };
    let value = |v: T| match scale {
        None => v.to_f64(),
        Some(Scale { low, high, .. }) if low == high => 0.0,
        Some(Scale { low, high, full }) => {
            // Halves of the largest numbers have a finite difference.
            let unit = if (high - low).is_finite() { 1.0 } else { 0.5 };
            (v.to_f64() * unit - low * unit) / (high * unit - low * unit) * f64::from(full)
        }
    };
    let samples = if stored == DType::U8 {
        InterleavedSamples::U8(interleaved(pixels, shape, |v| u8::from_f64(value(v))))
    } else {
        InterleavedSamples::U16(interleaved(pixels, shape, |v| u16::from_f64(value(v))))
    };
    (samples, scale)
}

fn stored<T: Pixel>(pixels: &[T], stored: DType, scaling: Scaling) -> (InterleavedSamples, Option<Scale>) {
    sample(pixels, Shape::new(1, pixels.len(), 1), T::DTYPE, stored, scaling)
}

fn eight<T: Pixel>(pixels: &[T], scaling: Scaling) -> (Vec<u8>, Option<Scale>) {
    match stored(pixels, DType::U8, scaling) {
        (InterleavedSamples::U8(v), scale) => (v, scale),
        _ => panic!("8 bits were asked for"),
    }
}

#[test]
fn the_range_is_spread_over_all_integers() {
    let (v, scale) = eight(&[-1.0f32, 0.0, 1.0, f32::NAN, f32::INFINITY], Scaling::Range);
    assert_eq!(v, [0, 128, 255, 0, 255]);
    assert_eq!(scale, Some(Scale { low: -1.0, high: 1.0, full: 255 }));
    assert_eq!(scale.unwrap().to_string(), "-1..1 -> 0..255");
}

#[test]
fn floats_are_taken_to_be_in_0_to_1() {
    let pixels = [0.5f32, 0.0, 1.0, -0.1, 1.1, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.1];
    // 127.5 and the product of f32's nearest to 0.1: ties to even, else to nearest.
    let (v, scale) = eight(&pixels, Scaling::Auto);
    assert_eq!(v, [128, 0, 255, 0, 255, 0, 255, 0, 26]);
    assert_eq!(scale, Some(Scale { low: 0.0, high: 1.0, full: 255 }));
    assert_eq!(eight(&pixels, Scaling::Unit), (v, scale));
    // A constant has no range, but a grey value.
    assert_eq!(eight(&[0.5f64; 4], Scaling::Auto).0, [128; 4]);
    let (InterleavedSamples::U16(v), _) = stored(&[0.5f32, 1.0], DType::U16, Scaling::Auto) else { panic!("16 bits") };
    assert_eq!(v, [32768, 65535]);
}

#[test]
fn integers_are_scaled_only_if_asked() {
    assert_eq!(eight(&[0u16, 200, 300], Scaling::Auto), (vec![0, 200, 255], None));
    assert_eq!(eight(&[0u16, 257, 32896, 65535], Scaling::Unit).0, [0, 1, 128, 255]);
    assert_eq!(eight(&[-5i32, 1 << 30, i32::MAX], Scaling::Unit).0, [0, 128, 255]);
    let (InterleavedSamples::U16(v), _) = stored(&[0u8, 1, 255], DType::U16, Scaling::Unit) else { panic!("16 bits") };
    assert_eq!(v, [0, 257, 65535]);
}

#[test]
fn exact_samples_are_not_scaled() {
    let pixels = [i32::MIN, -1, i32::MAX];
    let (InterleavedSamples::I32(v), None) = stored(&pixels, DType::I32, Scaling::Auto) else { panic!("32 bits") };
    assert_eq!(v, pixels);
    let pixels = [0.1f64, 1e300];
    let (InterleavedSamples::F64(v), None) = stored(&pixels, DType::F64, Scaling::Range) else { panic!("64 bits") };
    assert_eq!(v, pixels);
}

#[test]
fn one_value_or_none_becomes_zero() {
    assert_eq!(eight(&[7.0f32, 7.0], Scaling::Range).0, [0, 0]);
    assert_eq!(eight(&[f32::NAN, f32::INFINITY], Scaling::Range).0, [0, 0]);
}

#[test]
fn the_widest_range_is_scaled_without_overflow() {
    let pixels = [f64::MIN, f64::MIN / 2.0, 0.0, f64::MAX / 2.0, f64::MAX];
    assert_eq!(eight(&pixels, Scaling::Range).0, [0, 64, 128, 191, 255]);
}

#[test]
fn unscaled_values_are_rounded_and_saturated() {
    assert_eq!(eight(&[2.5f32, 3.5, -4.0, 300.0, f32::NAN], Scaling::None), (vec![2, 4, 0, 255, 0], None));
}

#[test]
fn channels_are_interleaved() {
    let (InterleavedSamples::U16(v), None) =
        sample(&[1u16, 2, 10, 20], Shape::new(1, 2, 2), DType::U16, DType::U16, Scaling::Auto)
    else {
        panic!("integers are not scaled")
    };
    assert_eq!(v, [1, 10, 2, 20]);
}

/// Numbers of every kind, some of them unusual.
fn wild<T: Pixel>(shape: Shape, seed: u64) -> Vec<T> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, -0.0, 1e-320, 1.0, 0.5];
    let value = |r: u64, kind: u64| match (seed % 4, kind % 40) {
        // Magnitudes of pixels, of the unit interval, and arbitrary ones.
        (0, 0) => T::from_f64(odd[(r % odd.len() as u64) as usize]),
        (1, 0..20) => T::from_f64(f64::from_bits(r)),
        (2, _) => T::from_f64(3.0),
        (_, 1..20) => T::from_f64((r >> 40) as f64 / 40.0 - 1000.0),
        _ => T::from_f64((r >> 11) as f64 / (1u64 << 53) as f64 * 1.2 - 0.1),
    };
    (0..shape.len()).map(|_| value(next(), next())).collect()
}

const SCALINGS: [Scaling; 4] = [Scaling::Auto, Scaling::None, Scaling::Unit, Scaling::Range];

/// Samples and scale of an image in a file of a format, as recorded and evaluated.
fn saved<T: crate::dtype::Element>(
    image: &Image<T>,
    format: Format,
    options: &SaveOptions,
) -> Option<(InterleavedSamples, Encoder)> {
    let saving = Saving::record(image, format, options).unwrap().ok()?;
    let handles: Vec<_> = saving.handles.iter().collect();
    let fetched = image.session().fetch_all(&handles, ResultDelivery::Everyone).unwrap();
    let fetched: Vec<_> = fetched.into_iter().map(Option::unwrap).collect();
    let (_, stored) = saving.draft.stored();
    let told = match stored {
        DType::U8 | DType::Bool => InterleavedSamples::U8(fetched[0].as_slice().to_vec()),
        DType::U16 => InterleavedSamples::U16(fetched[0].as_slice().to_vec()),
        DType::U32 => InterleavedSamples::U32(fetched[0].as_slice().to_vec()),
        DType::I8 => InterleavedSamples::I8(fetched[0].as_slice().to_vec()),
        DType::I16 => InterleavedSamples::I16(fetched[0].as_slice().to_vec()),
        DType::I32 => InterleavedSamples::I32(fetched[0].as_slice().to_vec()),
        DType::F32 => InterleavedSamples::F32(fetched[0].as_slice().to_vec()),
        DType::F64 => InterleavedSamples::F64(fetched[0].as_slice().to_vec()),
    };
    Some((told, saving.draft.clone().encoder(fetched)))
}

/// Returns `true` if both hold the same numbers, ignoring the bits of a NaN.
fn alike(a: &InterleavedSamples, b: &InterleavedSamples) -> bool {
    fn floats<T: Pixel>(a: &[T], b: &[T]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.scalar() == b.scalar() || (a.is_nan() && b.is_nan()))
    }
    match (a, b) {
        (InterleavedSamples::F32(a), InterleavedSamples::F32(b)) => floats(a, b),
        (InterleavedSamples::F64(a), InterleavedSamples::F64(b)) => floats(a, b),
        _ => a == b,
    }
}

fn compare<T: Pixel>(session: &Session, shape: Shape, seed: u64) {
    let pixels = wild::<T>(shape, seed);
    let planes: Vec<Image<T>> = (0..shape.channels)
        .map(|c| {
            let plane = pixels[c * shape.area()..(c + 1) * shape.area()].to_vec();
            Image::from_slice(session, (shape.height, shape.width), &plane)
        })
        .collect();
    let image = if planes.len() == 1 { planes[0].clone() } else { Image::stack(session, &planes, Axis::Channels) };
    let mut compared = 0;
    for depth in [Depth::Auto, Depth::Eight, Depth::Sixteen, Depth::Float] {
        for scaling in SCALINGS {
            let options = SaveOptions { depth, scaling, ..SaveOptions::default() };
            let Some((got, encoder)) = saved(&image, Format::Tiff, &options) else { continue };
            let stored = got.stored();
            let (want, scale) = sample(&pixels, shape, T::DTYPE, stored, scaling);
            let what = format!("{} {shape} seed {seed}, {options:?}, {} ranks", T::DTYPE, session.ranks());
            assert!(alike(&got, &want), "{what}: {got:?} instead of {want:?}");
            assert_eq!(encoder.scale(), scale, "{what}");
            assert_eq!(encoder.warning().map(counted), lost(&pixels, stored, scaling), "{what}");
            compared += 1;
        }
    }
    assert!(compared >= 8);
}

/// The number of values in a warning.
fn counted(warning: &str) -> usize {
    warning.split(' ').next().unwrap().parse().unwrap()
}

/// The number of values that 8 or 16 bits do not preserve up to rounding; NaN aside.
fn lost<T: Pixel>(pixels: &[T], stored: DType, scaling: Scaling) -> Option<usize> {
    let full = match stored {
        DType::U8 => 255.0,
        DType::U16 => 65535.0,
        _ => return None,
    };
    let scale = match scaling {
        Scaling::Range => return None,
        Scaling::Auto if !T::DTYPE.is_float() => 1.0,
        Scaling::None => 1.0,
        _ if T::DTYPE.is_float() => full,
        _ => full / T::HIGHEST.to_f64(),
    };
    let step = |v: &&T| {
        let v = v.to_f64() * scale;
        v < -0.5 || v > full + 0.5
    };
    Some(pixels.iter().filter(step).count()).filter(|n| *n > 0)
}

fn on_ranks(ranks: usize, threads: usize, program: impl Fn(&Session) + Sync) {
    ThreadComm::run(ranks, |comm| {
        let cpu = Box::new(CpuDevice::new(Some(threads)).unwrap());
        program(&Session::on(cpu).communicator(std::sync::Arc::new(comm)).build().unwrap());
    });
}

#[test]
fn what_is_stored_is_what_a_plain_function_stores() {
    for (ranks, threads) in [(1, 1), (1, 5), (2, 1), (5, 1)] {
        on_ranks(ranks, threads, |session| {
            for (seed, shape) in
                [(1, 1), (1, 7), (9, 1), (13, 70)].into_iter().flat_map(|s| [1, 3, 4].map(|c| (s, c))).enumerate()
            {
                let ((height, width), channels) = shape;
                let shape = Shape::new(height, width, channels);
                for seed in [seed as u64, 4 + seed as u64 % 4] {
                    for dtype in DType::ALL {
                        dispatch!(dtype, T => compare::<T>(session, shape, seed));
                    }
                }
            }
        });
    }
}

#[test]
fn masks_are_black_and_white_unless_told_otherwise() {
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    for pixels in [vec![true, false, true], vec![true; 3], vec![false; 3]] {
        let image = Image::from_slice(&session, (1, 3), &pixels);
        let numbers: Vec<u8> = pixels.iter().map(|v| u8::from(*v)).collect();
        for (depth, stored) in [(Depth::Eight, DType::U8), (Depth::Sixteen, DType::U16)] {
            for scaling in SCALINGS {
                let (got, encoder) =
                    saved(&image, Format::Png, &SaveOptions { depth, scaling, ..SaveOptions::default() }).unwrap();
                let (want, scale) = sample(&numbers, image.shape(), DType::Bool, stored, scaling);
                assert_eq!((got, encoder.scale()), (want, scale), "{pixels:?} {depth:?} {scaling:?}");
            }
        }
    }
}

#[test]
fn a_scale_that_was_not_meant_is_told() {
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    let told = |pixels: &[f32]| {
        let image = Image::from_slice(&session, (1, pixels.len()), pixels);
        saved(&image, Format::Png, &SaveOptions::default()).unwrap().1.warning().map(str::to_owned)
    };
    assert_eq!(told(&[0.0, 1.0, f32::NAN]), None);
    assert!(told(&[0.0, 200.0, 255.0, 1.0]).unwrap().starts_with("2 of 4 values lie outside 0..=1 (50.0 %) and were"));
    // Values that round to white are white.
    assert_eq!(told(&[1.001, -0.001]), None);
    let mut odd = vec![0.5; 10_000];
    odd[7] = 1.01;
    assert!(told(&odd).unwrap().starts_with("1 of 10000 values lies outside 0..=1 (less than 0.1 %)"));
}

#[test]
fn integers_that_do_not_fit_are_told_of_refused_or_allowed() {
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    let image = Image::from_slice(&session, (1, 4), &[0u16, 255, 256, 65535]);
    let options = SaveOptions { depth: Depth::Eight, ..SaveOptions::default() };
    let told = saved(&image, Format::Png, &options).unwrap().1.warning().unwrap().to_owned();
    assert!(
        told.starts_with("2 of 4 values lie outside 0..=255 (50.0 %) and were clipped; Scaling::Unit scales 0..=65535"),
        "{told}"
    );
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.png", "a.tif", "a.pgm"] {
        let path = folder.path().join(name);
        let refused = image.save_with(&path, &SaveOptions { clipping: Clipping::Refuse, ..options }).unwrap_err();
        assert!(refused.to_string().contains("2 of 4 values lie outside 0..=255"), "{refused}");
        assert!(!path.exists(), "{name}");
    }
    let allowed = SaveOptions { clipping: Clipping::Allow, ..options };
    assert_eq!(saved(&image, Format::Png, &allowed).unwrap().1.warning(), None);
    let unit = SaveOptions { scaling: Scaling::Unit, clipping: Clipping::Refuse, ..options };
    image.save_with(folder.path().join("a.png"), &unit).unwrap();
}

/// Pixels of a JPEG file approximate those of the image, the better the higher its quality.
#[test]
fn jpeg_files_have_the_quality_that_is_asked_for() {
    let session = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap();
    let plane = |k: usize| {
        Image::from_fn(&session, 61, 83, move |y, x| (128.0 + 90.0 * ((y * k + x) as f64 / 17.0).sin()) as u8)
    };
    let encode = |image: &Image<u8>, quality| {
        let bytes = image.encode(Format::Jpeg, &SaveOptions { quality, ..SaveOptions::default() }).unwrap();
        let back = Image::<u8>::read(&session, &bytes).unwrap();
        assert_eq!(back.shape(), image.shape());
        (bytes, back.absdiff(image).mean().get().unwrap())
    };
    for image in [plane(2), Image::stack(&session, [plane(1), plane(2), plane(3)], Axis::Channels)] {
        let (usual, error) = encode(&image, None);
        assert!(error < 1.5, "{error}");
        assert_eq!(encode(&image, Some(95)).0, usual);
        let (small, coarse) = encode(&image, Some(20));
        assert!(small.len() < usual.len() && coarse > error, "{coarse} and {error}");
    }
    let refused = |format, quality| {
        let options = SaveOptions { quality: Some(quality), ..SaveOptions::default() };
        plane(1).encode(format, &options).unwrap_err().to_string()
    };
    assert!(refused(Format::Jpeg, 0).contains("a quality of 0 requested; it is from 1 to 100"));
    assert!(refused(Format::Png, 90).contains("a png file has no quality; save as jpg"));
}
