//! Integer types: filters and statistics against numpy and scipy (`tests/goldens/integers.py`), and
//! arithmetic, conversions, tables, labels and coordinates at their limits.

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::dtype::{DType, Pixel};
use horus_core::filters::Footprint;
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::resize::Resampling;
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::simulated::SimulatedDevice;
use ndarray::{Array2, ArrayD, Ix2};
use ndarray_npy::{ReadableElement, read_npy};

fn load<T: ReadableElement>(name: &str) -> ArrayD<T> {
    let path = format!("{}/../tests/goldens/integers/{name}.npy", env!("CARGO_MANIFEST_DIR"));
    read_npy(path).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn plane<T: ReadableElement>(name: &str) -> Array2<T> {
    load(name).into_dimensionality().unwrap()
}

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

/// The result of `compute` on one rank, checked to be the same on three, whose devices have their
/// own memory.
fn on_ranks<R: PartialEq + std::fmt::Debug + Send>(compute: impl Fn(&Session) -> R + Sync) -> R {
    let alone = compute(&session());
    let all = ThreadComm::run(3, |comm| {
        let device: Box<dyn Device> = Box::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), usize::MAX / 2));
        compute(&Session::on(device).communicator(std::sync::Arc::new(comm)).build().unwrap())
    });
    assert!(all.iter().all(|one| *one == alone), "three ranks");
    alone
}

/// Calls a generic function for every type of integers, with its name in numpy.
macro_rules! for_each_integer {
    ($check:ident) => {
        $check::<u8>("uint8");
        $check::<u16>("uint16");
        $check::<u32>("uint32");
        $check::<i8>("int8");
        $check::<i16>("int16");
        $check::<i32>("int32");
    };
}

/// [`for_each_integer`], and the floats.
macro_rules! for_each_type {
    ($check:ident) => {
        for_each_integer!($check);
        $check::<f32>("float32");
        $check::<f64>("float64");
    };
}

fn filters_and_statistics<T: Pixel + ReadableElement>(name: &str) {
    let array = plane::<T>(name);
    let taps: Vec<f64> = load::<f64>("taps").iter().copied().collect();
    let ours = on_ranks(|s| {
        let image = Image::from_array(s, array.view());
        let filters = [
            image.erode(&Footprint::rectangle(3, 5)),
            image.with_border(Border::Replicate).dilate(&Footprint::rectangle(5, 3)),
            image.median(3),
            image.median(5),
        ];
        let filtered = filters.map(|image| image.to_array::<Ix2>().unwrap());
        let correlated = image.correlate(&Filter::dense(3, 3, taps.clone()));
        let correlated: Vec<f64> = correlated.convert::<f64>().to_vec().unwrap();
        let (sum, (mean, variance)) = s.get_all((image.sum(), (image.mean(), image.variance()))).unwrap();
        let (min, max) = s.get_all((image.min_value(), image.max_value())).unwrap();
        let histogram = image.histogram(13, T::LOWEST.to_f64(), T::HIGHEST.to_f64()).get().unwrap();
        (filtered, correlated, [sum, mean, variance, min.to_f64(), max.to_f64()], histogram)
    });
    let (filtered, correlated, statistics, histogram) = ours;
    for (ours, what) in filtered.into_iter().zip(["eroded", "dilated", "median", "median_5"]) {
        assert_eq!(ours, plane::<T>(&format!("{name}_{what}")), "{name} {what}");
    }
    // Nine products in f32 of pixels and taps, each of which is rounded.
    let largest = T::HIGHEST.to_f64().max(-T::LOWEST.to_f64()) * taps.iter().map(|t| t.abs()).sum::<f64>();
    for (ours, golden) in correlated.iter().zip(&load::<f64>(&format!("{name}_correlated"))) {
        assert!((ours - golden).abs() <= 10.0 * largest * f64::from(f32::EPSILON), "{name}: {ours}, not {golden}");
    }
    for (ours, golden) in statistics.iter().zip(&load::<f64>(&format!("{name}_statistics"))) {
        assert!((ours - golden).abs() <= 1e-13 * golden.abs(), "{name}: {ours}, not {golden}");
    }
    let golden: Vec<u64> = load::<f64>(&format!("{name}_histogram")).iter().map(|n| *n as u64).collect();
    assert_eq!(histogram, golden, "{name}");
}

#[test]
fn filters_and_statistics_are_those_of_scipy() {
    for_each_integer!(filters_and_statistics);
}

/// The limits of all types, their neighbours, halves between them, and values beyond.
fn edges() -> Vec<f64> {
    let powers = [0, 7, 8, 15, 16, 24, 31, 32, 53].map(|bits| 2f64.powi(bits));
    let around = powers.into_iter().flat_map(|p| [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5].map(|d| p + d));
    let both = around.flat_map(|v| [v, -v]);
    both.chain([0.0, -0.0, 2.5, 1e30, -1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]).collect()
}

/// The limits of an integer type, as integers.
fn limits(dtype: DType) -> Option<(i128, i128)> {
    let bits = 8 * dtype.size() as u32;
    match dtype {
        DType::U8 | DType::U16 | DType::U32 => Some((0, (1 << bits) - 1)),
        DType::I8 | DType::I16 | DType::I32 => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        _ => None,
    }
}

/// A number rounded to nearest, ties to even, and clamped, in integer arithmetic; 0 for a NaN.
fn rounded(v: f64, (low, high): (i128, i128)) -> i128 {
    // Twice a number below 2^100 is an integer and a half.
    let v = if v.is_nan() { 0.0 } else { v.clamp(-1e25, 1e25) };
    let below = v.floor() as i128;
    let part = v - v.floor();
    let up = part > 0.5 || part == 0.5 && below % 2 != 0;
    (below + i128::from(up)).clamp(low, high)
}

fn conversions_from<S: Pixel>(_: &str) {
    fn to<S: Pixel, D: Pixel>(pixels: &[S]) {
        let ours = on_ranks(|s| {
            let image = Image::from_slice(s, (1, pixels.len()), pixels);
            image.convert::<D>().convert::<f64>().to_vec().unwrap().into_iter().map(f64::to_bits).collect::<Vec<_>>()
        });
        for (&from, bits) in pixels.iter().zip(ours) {
            let (from, to) = (from.to_f64(), f64::from_bits(bits));
            match limits(D::DTYPE) {
                Some(limits) => assert_eq!(to as i128, rounded(from, limits), "{from} {} as {}", S::DTYPE, D::DTYPE),
                None if from.is_nan() => assert!(to.is_nan()),
                None if D::DTYPE == DType::F32 => assert_eq!(to, f64::from(from as f32), "{from} as f32"),
                None => assert_eq!(to, from, "{from} {} as f64", S::DTYPE),
            }
        }
    }
    // Values representable in the type, or the nearest ones; longer than any vector.
    let pixels: Vec<S> = edges().into_iter().map(S::from_f64).collect();
    assert!(pixels.len() > 128);
    to::<S, u8>(&pixels);
    to::<S, u16>(&pixels);
    to::<S, u32>(&pixels);
    to::<S, i8>(&pixels);
    to::<S, i16>(&pixels);
    to::<S, i32>(&pixels);
    to::<S, f32>(&pixels);
    to::<S, f64>(&pixels);
}

#[test]
fn every_type_converts_to_every_other_at_all_limits() {
    for_each_type!(conversions_from);
}

/// A function of integers.
type Exact = fn(i128, i128) -> i128;

fn arithmetic_at_limits<T: Pixel>(name: &str) {
    let limits @ (low, high) = limits(T::DTYPE).unwrap();
    let middle = [0, 1, -1, 2, 3, -7, 15, 16, 181, 182, 255, 256, 46_340, 46_341, 65_535, 65_536];
    let mut values: Vec<i128> = middle.into_iter().chain([low, low + 1, low / 2, high / 2, high - 1, high]).collect();
    values.retain(|v| (low..=high).contains(v));
    let pairs: Vec<(i128, i128)> = values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))).collect();
    let pixels =
        |of: fn(&(i128, i128)) -> i128| -> Vec<T> { pairs.iter().map(|p| T::from_f64(of(p) as f64)).collect() };
    let (a, b) = (pixels(|p| p.0), pixels(|p| p.1));
    let ours = on_ranks(|s| {
        let image = |v: &[T]| Image::from_slice(s, (1, v.len()), v);
        let (a, b) = (image(&a), image(&b));
        let all = [
            &a + &b,
            &a - &b,
            &a * &b,
            &a / &b,
            -&a,
            a.abs(),
            a.absdiff(&b),
            a.min(&b),
            a.max(&b),
            a.mul_add(&b, &a),
            a.sign(),
            a.flip(Axis::Columns).flip(Axis::Columns),
        ];
        all.map(|image| image.to_vec().unwrap())
    });
    let of: [(&str, Exact); 12] = [
        ("+", |a, b| a + b),
        ("-", |a, b| a - b),
        ("*", |a, b| a * b),
        ("/", |a, b| if b == 0 { 0 } else { a / b }),
        ("neg", |a, _| -a),
        ("abs", |a, _| a.abs()),
        ("absdiff", |a, b| (a - b).abs()),
        ("min", |a, b| a.min(b)),
        ("max", |a, b| a.max(b)),
        ("mul_add", |a, b| a * b),
        ("sign", |a, _| a.signum()),
        ("flips", |a, _| a),
    ];
    for ((what, exact), ours) in of.into_iter().zip(ours) {
        for (&(a, b), ours) in pairs.iter().zip(ours) {
            let mut want = exact(a, b).clamp(limits.0, limits.1);
            if what == "mul_add" {
                want = (want + a).clamp(limits.0, limits.1);
            }
            assert_eq!(ours.to_f64(), want as f64, "{name}: {a} {what} {b}");
        }
    }
}

#[test]
fn arithmetic_saturates_at_the_limits_of_each_type() {
    for_each_integer!(arithmetic_at_limits);
    let s = session();
    let image = Image::from_slice(&s, (1, 3), &[0u32, 7, u32::MAX]);
    assert_eq!((5u32 - &image).to_vec().unwrap(), [5, 0, 0]);
    assert_eq!((&image + 1).to_vec().unwrap(), [1, 8, u32::MAX]);
    let image = Image::from_slice(&s, (1, 3), &[-128i8, -1, 127]);
    assert_eq!((-100i8 - &image).to_vec().unwrap(), [28, -99, -128]);
    assert_eq!((image.to_unit() * 127.0).to_vec().unwrap(), [-128.0, -1.0, 127.0], "the largest is 1");
}

#[test]
fn tables_are_indexed_from_the_smallest_value_on() {
    let ours = on_ranks(|s| {
        let table: Vec<i32> = (0..256).map(|k| (k - 128) * 1000).collect();
        let all: Vec<i8> = (-128..=127).collect();
        let bytes = Image::from_slice(s, (16, 16), &all).lookup(&table).to_vec().unwrap();
        let table = Image::from_fn(s, 1, 1 << 16, |_, k| k as u32 * 60_000);
        let words = Image::from_slice(s, (1, 5), &[i16::MIN, -1, 0, 1, i16::MAX]).lookup(&table).to_vec().unwrap();
        let short = Image::from_slice(s, (1, 1), &[0i8]).lookup(&[0u8; 255]).check().unwrap_err().to_string();
        (bytes, words, short.split(" (at").next().unwrap().to_owned())
    });
    assert_eq!(ours.0, (-128..=127).map(|v| v * 1000).collect::<Vec<i32>>());
    assert_eq!(ours.1, [0, 32_767, 32_768, 32_769, 65_535].map(|k| k * 60_000));
    assert_eq!(ours.2, "lookup: the table has 255 entries; it must have 256");
}

fn labels_of<L: Pixel>(name: &str) {
    let labels: Vec<L> = [0.0, 1.0, 1.0, -1.0, 2.0, 0.0, 1e12, 2.0].map(L::from_f64).to_vec();
    let (sums, least, counts) = on_ranks(|s| {
        let labels = Image::from_slice(s, (2, 4), &labels);
        let image = Image::from_slice(s, (2, 4), &[1u32, 20, 30, 400, 5000, 6, u32::MAX, u32::MAX]);
        let parts = image.by_label(&labels, 3);
        let (sums, least) = s.get_all((parts.sum(), parts.min())).unwrap();
        (sums, least, labels.by_label(&labels, 3).counts().get().unwrap())
    });
    // A label below 0 becomes 0 in an unsigned type.
    let first = if L::LOWEST == L::ZERO { (407.0, 3) } else { (7.0, 2) };
    assert_eq!(sums, [first.0, 50.0, 5000.0 + f64::from(u32::MAX)], "{name}");
    assert_eq!((least, counts), (vec![1, 20, 5000], vec![first.1, 2, 2]), "{name}");
}

#[test]
fn labels_are_integers_of_any_type() {
    for_each_integer!(labels_of);
}

#[test]
fn coordinates_fit_their_type_and_large_numbers_are_interpolated_exactly() {
    let (x, near, half) = on_ranks(|s| {
        let x = Image::<u32>::index(s, Shape::new(2, 300, 1), Axis::Columns).to_vec().unwrap();
        let wide = Image::<i8>::index(s, Shape::new(2, 129, 1), Axis::Columns);
        assert!(wide.check().unwrap_err().to_string().starts_with("index: i8 cannot hold the columns"));
        assert_eq!(Image::<i8>::index(s, Shape::new(1, 128, 1), Axis::Columns).pixel((0, 127)).unwrap(), 127);
        // In f32 these would be one number.
        let image = Image::from_slice(s, (1, 2), &[u32::MAX, u32::MAX - 2]);
        let near = image.resize(1, 3, Interpolation::Bilinear).to_vec().unwrap();
        let half = Image::from_slice(s, (1, 2), &[-5i16, 10]).resize(1, 4, Interpolation::Bilinear).to_vec().unwrap();
        (x, near, half)
    });
    assert_eq!((x[128], x[299], x[300]), (128, 299, 0));
    assert_eq!(near, [u32::MAX, u32::MAX - 1, u32::MAX - 2]);
    // At 0.25 and 0.75 of the way: -1.25 and 6.25.
    assert_eq!(half, [-5, -1, 6, 10]);
}

/// Linear filters of taps that add up to 1 yield floats, which pictures hold as the nearest whole numbers: an even picture stays even.
#[test]
fn even_pictures_stay_even_when_what_is_filtered_is_rounded() {
    fn of<T: Pixel + PartialEq>(session: &Session, v: T) {
        let page = Image::constant(session, (9, 67), v);
        let even = |image: &Image<T>, what: &str| {
            let all = image.to_vec().unwrap();
            assert!(all.iter().all(|pixel| *pixel == v), "{what} of {v} of {}", T::DTYPE);
        };
        for border in [Border::Reflect101, Border::Wrap, Border::Constant(v.to_f64())] {
            for k in 0..60 {
                // Of 0.3 to 30 pixels.
                let sigma = 0.3 * 100f64.powf(f64::from(k) / 59.0);
                even(&page.with_border(border).gauss(sigma).convert(), &format!("gauss {sigma}, {border}"));
                let taps: Vec<f64> = (0..k + 1).map(|i| f64::from(1 + i % 3)).collect();
                let sum: f64 = taps.iter().sum();
                let taps: Vec<f64> = taps.iter().map(|tap| tap / sum).collect();
                let (row, column) = (Filter::row(taps.clone()), Filter::column(taps));
                even(&page.with_border(border).separable(&row, &column).convert(), &format!("separable {k}, {border}"));
                even(&page.with_border(border).correlate(&row).convert(), &format!("correlate {k}, {border}"));
                let side = k as usize + 1;
                even(&page.with_border(border).box_mean((side, side)).convert(), &format!("mean {side}, {border}"));
            }
        }
        for side in 1..60 {
            for how in Interpolation::ALL {
                even(&page.resize(side, 2 * side + 7, how), &format!("{side} by {how:?}"));
            }
            for how in Resampling::ALL {
                even(&page.resize(side, 3 * side, how), &format!("{side} by {how:?}"));
            }
        }
        even(&page.pyramid_down().convert(), "half of it");
        even(&page.pyramid_up(18, 134).convert(), "twice of it");
    }
    let session = session();
    for v in [1, 2, 127, 254, 255] {
        of::<u8>(&session, v);
    }
    for v in [1, 255, 32_767, 65_534, 65_535] {
        of::<u16>(&session, v);
    }
    of::<i16>(&session, i16::MIN);
}
