//! Filters within a tolerance, against sums in `f64`, and their bits on ranks and in regions.

use std::sync::{Arc, Mutex};

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::{DType, Float};
use horus_core::filters::{self, tolerance};
use horus_core::image::Image;
use horus_core::ops::neighbourhood::Filter;
use horus_core::session::{Session, SessionBuilder};
use horus_core::shape::Border;
use horus_testing::cases::part;

const BORDERS: [Border; 5] = Border::all(-0.75);

fn builder() -> SessionBuilder {
    Session::on(Box::new(CpuDevice::new(Some(1)).unwrap()))
}

/// A session, and what it explains.
fn explaining() -> (Session, Arc<Mutex<String>>) {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = told.clone();
    (builder().explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap(), told)
}

fn noise(i: usize) -> f64 {
    let mixed = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / (1u64 << 23) as f64 - 1.0
}

fn random(height: usize, width: usize) -> Filter {
    Filter::dense(height, width, (0..height * width).map(noise).collect::<Vec<_>>())
}

/// Filters of every algorithm: of low rank, of none, off their centres.
fn all_filters() -> Vec<(&'static str, Filter)> {
    let bump = |y: f64, x: f64| (-(y * y + x * x) / 18.0).exp();
    let at = |i: usize| ((i / 21) as f64 - 10.0, (i % 21) as f64 - 10.0);
    let log = |i: usize| at(i).0.hypot(at(i).1).powi(2) / 9.0 - 2.0;
    let laplace = Filter::dense(21, 21, (0..441).map(|i| log(i) * bump(at(i).0, at(i).1)).collect::<Vec<_>>());
    let one = |n: usize| (0..n).map(|i| 1.0 + noise(i)).collect::<Vec<_>>();
    let outer: Vec<f64> = one(16).iter().flat_map(|a| one(15).into_iter().map(move |b| a * b)).collect();
    vec![
        ("rank of an outer product", Filter::dense(16, 15, outer.clone())),
        ("rank of an outer product, turned", Filter::dense(16, 15, outer).flipped()),
        ("rank of a Laplacian", laplace),
        ("rank of an oriented Gaussian", filters::gauss_2d(15.0, 4.0, 3.0, 0, 2)),
        ("no rank", random(31, 29)),
        ("even and turned", random(24, 32).flipped()),
        (
            "scattered",
            Filter::sparse(
                (0..900).map(|i| (i % 41 - 20, i / 41 - 9)).collect::<Vec<_>>(),
                (0..900).map(noise).collect::<Vec<_>>(),
            ),
        ),
    ]
}

/// Pictures on which algorithms err most, and their names.
fn pictures<T: Float>(height: usize, width: usize) -> Vec<(&'static str, Vec<T>)> {
    let of = |value: &dyn Fn(usize, usize) -> f64| {
        (0..height * width).map(|i| T::from_f64(value(i / width, i % width))).collect::<Vec<T>>()
    };
    // The smallest number, and some thousand times that.
    let tiny = if T::DTYPE == DType::F64 { f64::from_bits(1) } else { f64::from(f32::from_bits(1)) };
    let large = if T::DTYPE == DType::F64 { 1e280 } else { 1e28 };
    vec![
        ("noise", of(&|y, x| noise(y * width + x))),
        ("a single bright pixel", of(&|y, x| if (y, x) == (height / 2, width / 3) { 1e6 } else { 0.0 })),
        ("a bright corner over grey", of(&|y, x| if (y, x) == (0, width - 1) { 1.0 } else { 1e-7 })),
        ("alternating signs", of(&|y, x| if (y + x) % 2 == 0 { 1.0 } else { -1.0 })),
        ("stripes", of(&|y, _| if y % 2 == 0 { 0.1 } else { -0.1 })),
        ("a gradient", of(&|y, x| 3.0 * y as f64 - x as f64)),
        ("a gradient far from 0", of(&|y, x| 1e5 + y as f64 + x as f64 / 7.0)),
        ("constant", of(&|_, _| 1.0 / 3.0)),
        ("subnormal", of(&|y, x| tiny * (1000.0 * noise(y * width + x)).round())),
        ("large", of(&|y, x| large * noise(y + x * height))),
    ]
}

fn read<T: Float>(pixels: &[T], (height, width): (usize, usize), y: isize, x: isize, border: Border) -> f64 {
    match (border.map(y, height), border.map(x, width)) {
        (Some(y), Some(x)) => pixels[y * width + x].to_f64(),
        _ => T::from_f64(border.constant().unwrap()).to_f64(),
    }
}

/// The sum of products in `f64`.
fn exact<T: Float>(pixels: &[T], size: (usize, usize), filter: &Filter, border: Border, at: usize) -> f64 {
    let (y, x) = ((at / size.1) as isize, (at % size.1) as isize);
    let taps = filter.taps().iter().zip(filter.offsets());
    taps.map(|(tap, (dy, dx))| tap * read(pixels, size, y + dy, x + dx, border)).sum()
}

fn bounds_hold<T: Float<Linear = T>>(tolerances: &[f64]) {
    let (session, told) = explaining();
    let size = (190, 176);
    let mut algorithms = [0; 3];
    for (n, (of, filter)) in all_filters().into_iter().enumerate() {
        let magnitude: f64 = filter.taps().iter().map(|t| t.abs()).sum();
        for (k, (name, pixels)) in pictures::<T>(size.0, size.1).into_iter().enumerate() {
            let border = BORDERS[(k + filter.taps().len()) % 5];
            let image = Image::from_slice(&session, size, &pixels);
            let largest =
                pixels.iter().map(|v| v.to_f64().abs()).fold(border.constant().unwrap_or(0.0).abs(), f64::max);
            let places: Vec<usize> = (0..pixels.len()).step_by(101).collect();
            let exact: Vec<f64> = places.iter().map(|at| exact(&pixels, size, &filter, border, *at)).collect();
            for t in part(tolerances.to_vec(), |all| vec![all[(n + k) % all.len()]]) {
                told.lock().unwrap().clear();
                let got = image.within(t).with_border(border).correlate(&filter).to_vec().unwrap();
                let told = told.lock().unwrap();
                let [sum, tiles, direct] = ["rank ", "by transforms of", "direct: "].map(|w| told.contains(w));
                algorithms[usize::from(tiles) + 2 * usize::from(direct)] += 1;
                assert_eq!(u8::from(sum) + u8::from(tiles) + u8::from(direct), 1, "{told}");
                // Its rounding, and that of the sum it is compared with, may exceed the tolerance.
                let rounding = filter.cost() * tolerance::smallest(T::DTYPE) + filter.cost() * f64::EPSILON;
                let t = if direct { t.max(rounding) } else { t };
                // Products below the normal numbers are rounded to whole smallest numbers, and so are
                // the rows of terms.
                let subnormal = if T::DTYPE == DType::F64 { f64::from_bits(1) } else { f64::from(f32::from_bits(1)) };
                let allowed = t * largest * magnitude + 40.0 * filter.cost() * (1.0 + magnitude) * subnormal;
                for (at, b) in places.iter().zip(&exact) {
                    let off = (got[*at].to_f64() - b).abs();
                    assert!(off <= allowed, "{of}, {name}, {border}, within {t:e}: {off:e} at {at}, {allowed:e}");
                }
            }
        }
    }
    assert!(algorithms.iter().all(|n| *n > 0), "each algorithm is tried: {algorithms:?}");
}

#[test]
fn results_of_single_precision_are_within_the_tolerance() {
    bounds_hold::<f32>(&[1e-2, 1e-5, 5.97e-8]);
}

#[test]
fn results_of_double_precision_are_within_the_tolerance() {
    bounds_hold::<f64>(&[1e-3, 1e-9, 1e-13]);
}

#[test]
fn integers_are_filtered_within_the_tolerance() {
    let session = builder().build().unwrap();
    let pixels: Vec<u8> = (0..190 * 176).map(|i| (127.5 + 127.5 * noise(i)) as u8).collect();
    let floats: Vec<f32> = pixels.iter().map(|v| f32::from(*v)).collect();
    let (image, filter) = (Image::from_slice(&session, (190, 176), &pixels), random(31, 29));
    let got = image.within(1e-6).convolve(&filter).to_vec().unwrap();
    let same =
        Image::from_slice(&session, (190, 176), &floats).within(1e-6).correlate(&filter.flipped()).to_vec().unwrap();
    assert_eq!(got, same);
    let worst = (0..got.len())
        .step_by(11)
        .map(|i| (f64::from(got[i]) - exact(&floats, (190, 176), &filter.flipped(), Border::Reflect101, i)).abs());
    let magnitude: f64 = filter.taps().iter().map(|t| t.abs()).sum();
    assert!(worst.fold(0.0, f64::max) <= 1e-6 * 255.0 * magnitude);
}

#[test]
fn pixels_that_are_not_finite_spoil_what_they_spoil_without_a_tolerance() {
    let session = builder().build().unwrap();
    let size = (150, 170);
    for (of, filter) in all_filters() {
        for (name, special) in [("infinity", f32::INFINITY), ("minus infinity", f32::NEG_INFINITY), ("NaN", f32::NAN)] {
            let mut pixels: Vec<f32> = (0..size.0 * size.1).map(|i| noise(i) as f32).collect();
            (pixels[20 * size.1 + 31], pixels[149 * size.1 + 160]) = (special, special);
            let image = Image::from_slice(&session, size, &pixels);
            for border in [Border::Reflect101, Border::Constant(2.0)] {
                let image = image.with_border(border);
                let direct = image.correlate(&filter).to_vec().unwrap();
                for t in [1e-3, 1e-5] {
                    let got = image.within(t).correlate(&filter).to_vec().unwrap();
                    let magnitude: f64 = filter.taps().iter().map(|t| t.abs()).sum();
                    for (at, (a, b)) in got.iter().zip(&direct).enumerate() {
                        let what = format!("{of}, {name}, {border}, within {t:e} at {at}: {a}, {b}");
                        assert_eq!(a.is_finite(), b.is_finite(), "{what}");
                        // The direct result itself is rounded.
                        let near = f64::from((a - b).abs()) <= (t + 1e-4) * 2.0 * magnitude;
                        assert!(near || !b.is_finite(), "{what}");
                    }
                }
            }
        }
    }
}

/// A volume, and the parts of a filter for five levels: of several reaches, and one without taps that matter.
fn volume<T: Float>(session: &Session) -> (Image<T>, Vec<Filter>) {
    let image = Image::from_volume_fn(session, 7, 48, 94, |z, y, x| T::from_f64(noise(z * 4512 + y * 94 + x)));
    let dot = Filter::dense(1, 1, vec![0.5]);
    (image, vec![random(17, 15), random(15, 18), dot, random(16, 16).flipped(), random(15, 17)])
}

#[test]
fn filters_of_volumes_are_within_the_tolerance() {
    let (session, told) = explaining();
    let (image, parts) = volume::<f64>(&session);
    let even = [&parts[..], &parts[..1]].concat();
    let magnitude: f64 = even.iter().flat_map(|part| part.taps()).map(|tap| tap.abs()).sum();
    for border in BORDERS {
        let near = image.within(1e-10).with_border(border);
        for (near, far) in [
            (near.correlate(&parts), image.with_border(border).correlate(&parts)),
            (near.convolve(&even), image.with_border(border).convolve(&even)),
        ] {
            told.lock().unwrap().clear();
            let (near, far) = (near.to_vec().unwrap(), far.to_vec().unwrap());
            assert!(told.lock().unwrap().contains("across levels by transforms of"), "{}", told.lock().unwrap());
            let worst = near.iter().zip(&far).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // The exact sum is rounded, too.
            assert!(worst > 0.0 && worst <= 2e-10 * magnitude, "{border}: {worst:e}");
        }
    }
    // Parts that cost less one by one are computed so.
    let small = vec![random(3, 3), random(3, 3)];
    told.lock().unwrap().clear();
    assert_eq!(image.within(1e-3).correlate(&small).to_vec().unwrap(), image.correlate(&small).to_vec().unwrap());
    assert!(!told.lock().unwrap().contains("across levels"));
}

#[test]
fn pixels_that_are_not_finite_spoil_the_levels_that_read_them() {
    let session = builder().build().unwrap();
    let (image, parts) = volume::<f64>(&session);
    for special in [f64::INFINITY, f64::NAN] {
        let at = |z: usize, y: usize, x: usize| (z, y, x) == (6, 3, 44) || (z, y, x) == (0, 39, 0);
        let holes = Image::from_volume_fn(&session, 7, 48, 94, |z, y, x| if at(z, y, x) { special } else { 0.0 });
        for border in [Border::Reflect, Border::Constant(2.0)] {
            let image = (&image + &holes).with_border(border);
            let (near, direct) = (image.within(1e-9).correlate(&parts), image.correlate(&parts));
            for (at, (a, b)) in near.to_vec().unwrap().iter().zip(&direct.to_vec().unwrap()).enumerate() {
                assert_eq!(a.is_finite(), b.is_finite(), "{border} at {at}: {a}, {b}");
                assert!(!a.is_finite() || (a - b).abs() < 1e-6, "{border} at {at}: {a}, {b}");
            }
        }
    }
}

fn on_ranks<R: Send>(ranks: usize, run: impl Fn(&Session) -> R + Sync) -> Vec<R> {
    ThreadComm::run(ranks, |comm| {
        let comm: Arc<dyn Communicator> = Arc::new(comm);
        run(&builder().communicator(comm).build().unwrap())
    })
}

/// A picture whose results need several tiles, and strips on five ranks are thinner than halos.
fn program(session: &Session, border: Border) -> Vec<Image<f32>> {
    let image = Image::from_fn(session, 190, 176, |y, x| {
        let special = (y, x) == (3, 160);
        if special { f32::INFINITY } else { noise(y * 176 + x) as f32 }
    });
    let filters = all_filters();
    let near = |t: f64, k: usize| image.within(t).with_border(border).correlate(&filters[k].1);
    // One by one, in an expression, and of a result that was not stored.
    let (volume, parts) = volume::<f32>(session);
    let across = volume.within(1e-6).with_border(border).correlate(&parts);
    let single = near(1e-4, 3).within(1e-5).correlate(&filters[6].1);
    vec![near(1e-5, 4), near(1e-3, 2) + near(1e-4, 5).abs(), single, across]
}

fn bits(image: &Image<f32>) -> Vec<u32> {
    image.to_vec().unwrap().iter().map(|v| if v.is_nan() { u32::MAX } else { v.to_bits() }).collect()
}

#[test]
fn bits_are_the_same_on_any_number_of_ranks_and_threads() {
    for border in BORDERS {
        let alone: Vec<Vec<u32>> = program(&builder().build().unwrap(), border).iter().map(bits).collect();
        let three = Session::on(Box::new(CpuDevice::new(Some(3)).unwrap())).build().unwrap();
        let threads: Vec<Vec<u32>> = program(&three, border).iter().map(bits).collect();
        assert!(threads == alone, "three threads, {border}");
        for ranks in 2..=5 {
            for (rank, got) in
                on_ranks(ranks, |s| program(s, border).iter().map(bits).collect::<Vec<_>>()).iter().enumerate()
            {
                assert!(*got == alone, "{border}, rank {rank} of {ranks}");
            }
        }
    }
}

#[test]
fn parts_of_a_result_have_the_bits_of_the_whole() {
    for border in BORDERS {
        let session = builder().build().unwrap();
        for (k, image) in program(&session, border).iter().enumerate() {
            let of = image.shape();
            for (top, left, height, width) in [(0, 0, 5, 7), (80, 120, 30, 53), (189, 0, 1, 176), (13, 77, 50, 3)] {
                let (top, left) = (top % of.height, left % of.width);
                let (height, width) = (height.min(of.height - top), width.min(of.width - left));
                // A program of its own, of which no whole result is kept.
                let fresh = &program(&builder().build().unwrap(), border)[k];
                let part = bits(&fresh.crop(top, left, height, width));
                let whole = bits(&image.crop(0, 0, of.height, of.width));
                for (i, got) in part.iter().enumerate() {
                    let (z, y, x) = (i / (height * width), top + i / width % height, left + i % width);
                    let at = (z * of.height + y) * of.width + x;
                    assert_eq!(*got, whole[at], "{border}, {k}: {z}, {y}, {x} of {height}x{width}");
                }
            }
        }
    }
}

#[test]
fn faults_of_a_tolerance_are_told() {
    let session = builder().build().unwrap();
    let image = Image::constant(&session, (5, 5), 1.0f32);
    for t in [0.0, -1e-3, f64::NAN, f64::INFINITY] {
        let message = image.within(t).gauss(1.0).check().unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("within: the tolerance is {t}; it must be positive and finite (at ")),
            "{message}"
        );
    }
    let message = image.within(1e-8).check().unwrap_err().to_string();
    assert!(message.starts_with("within: a tolerance of 1e-8; the smallest of f32 is 5.97e-8 (at "), "{message}");
    let double = Image::constant(&session, (5, 5), 1.0f64);
    assert!(double.within(1e-8).check().is_ok());
    assert!(double.within(1e-17).check().unwrap_err().to_string().contains("the smallest of f64 is 1.11e-16"));
    // 8-bit integers are filtered in f32.
    assert!(Image::constant(&session, (5, 5), 1u8).within(1e-8).check().is_err());
    // The result of a filter has no tolerance, and a tolerance stays with a border mode.
    let small = filters::gauss_2d(30.0, 1.0, 1.0, 0, 0);
    assert_eq!(tolerance::smallest(DType::F32), 0.5 * f64::from(f32::EPSILON));
    assert!(image.within(1e-3).with_border(Border::Wrap).correlate(&small).check().is_ok());
}

#[test]
fn operations_without_a_faster_way_have_the_exact_bits_and_plans_say_so() {
    let (session, told) = explaining();
    let image = Image::from_fn(&session, 150, 160, |y, x| noise(y * 160 + x) as f32);
    let exact = [image.gauss(2.0), image.correlate(&random(3, 5)), image.median(3)];
    let near = image.within(1e-3);
    let within = [near.gauss(2.0), near.correlate(&random(3, 5)), near.median(3)];
    for (a, b) in within.iter().zip(&exact) {
        told.lock().unwrap().clear();
        assert_eq!(bits(a), bits(b));
    }
    let plan = |image: &Image<f32>| {
        told.lock().unwrap().clear();
        image.to_vec().unwrap();
        told.lock().unwrap().clone()
    };
    assert!(plan(&near.correlate(&random(3, 5))).contains("correlate 3x5 (direct: nothing faster is within 0.001)"));
    assert!(plan(&near.gauss(3.0)).contains("1x19 (direct: nothing faster is within 0.001)"));
    let tiles = plan(&near.correlate(&random(31, 29)));
    assert!(tiles.contains("correlate 31x29 (within 6.0e-8) by transforms of "), "{tiles}");
    let sum = plan(&near.correlate(&all_filters()[0].1));
    assert!(sum.contains("1x15 (rank 1 of 16x15, within "), "{sum}");
}
