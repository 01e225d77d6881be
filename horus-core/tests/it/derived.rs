//! Statistics of tiles, windows and labels compared with their definitions, with the same bits in
//! every mode and on any number of ranks.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::image::Image;
use horus_core::plan::Mode;
use horus_core::session::Session;
use horus_core::shape::Shape;
use horus_testing::simulated::SimulatedDevice;

fn session(mode: Mode) -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).mode(mode).build().unwrap()
}

/// The result of `compute` in every mode on one rank, and fused on up to five: the same bits.
pub(crate) fn everywhere(compute: impl Fn(&Session) -> Vec<f64> + Sync) -> Vec<f64> {
    let alone = compute(&session(Mode::Fused));
    let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for mode in [Mode::Naive, Mode::Lazy] {
        assert_eq!(bits(&compute(&session(mode))), bits(&alone), "{mode:?}");
    }
    for ranks in 2..=5 {
        let all = ThreadComm::run(ranks, |comm| {
            let cpu = CpuDevice::new(Some(1)).unwrap();
            let device: Box<dyn Device> =
                if ranks == 3 { Box::new(SimulatedDevice::new(cpu, usize::MAX / 2)) } else { Box::new(cpu) };
            compute(&Session::on(device).communicator(Arc::new(comm)).build().unwrap())
        });
        assert!(all.iter().all(|one| bits(one) == bits(&alone)), "{ranks} ranks");
    }
    alone
}

const H: usize = 29;
const W: usize = 150;

/// Numbers of every size without simple values.
fn value(y: usize, x: usize) -> f32 {
    let n = (y * 7919 + x * 104_729) % 1009;
    (n as f32 - 400.0) / 3.0 + if x > 60 { 1000.0 } else { 0.0 }
}

/// Number, sum, squared deviation, minimum and maximum of some pixels, added one by one in `f64`.
fn plain(pixels: impl Iterator<Item = f64> + Clone) -> [f64; 5] {
    let (n, sum) = pixels.clone().fold((0.0, 0.0), |(n, s), v| (n + 1.0, s + v));
    let squares = pixels.clone().map(|v| (v - sum / n).powi(2)).sum();
    [n, sum, squares, pixels.clone().fold(f64::INFINITY, f64::min), pixels.fold(f64::NEG_INFINITY, f64::max)]
}

#[track_caller]
fn close(ours: f64, want: f64, what: &str) {
    assert!((ours - want).abs() <= 1e-12 * want.abs().max(1.0), "{what}: {ours} instead of {want}");
}

#[test]
fn tiles_and_windows_have_the_statistics_of_their_pixels() {
    for (size, step, whole) in
        [((8, 16), (8, 16), false), ((5, 70), (3, 33), true), ((1, 1), (1, 1), false), ((64, 64), (64, 64), false)]
    {
        let parts = |image: &Image<f32>| if whole { image.windows(size, step) } else { image.tiles(size.0, size.1) };
        let ours = everywhere(|s| {
            let image = Image::from_fn(s, H, W, value);
            let parts = parts(&image);
            let f64s = |image: Image<f32>| image.convert::<f64>();
            let all = [parts.sum(), parts.mean(), parts.variance(), f64s(parts.min()), f64s(parts.max())];
            all.iter().flat_map(|image| image.to_vec().unwrap()).collect()
        });
        let count = |extent: usize, size: usize, step: usize| {
            if whole { (extent - size) / step + 1 } else { extent.div_ceil(step) }
        };
        let (rows, columns) = (count(H, size.0, step.0), count(W, size.1, step.1));
        assert_eq!(ours.len(), 5 * rows * columns, "{size:?}");
        for y in 0..rows {
            for x in 0..columns {
                let (top, left) = (y * step.0, x * step.1);
                let down = top..H.min(top + size.0);
                let pixels = down.flat_map(|y| (left..W.min(left + size.1)).map(move |x| f64::from(value(y, x))));
                let [n, sum, squares, least, most] = plain(pixels);
                for (k, want) in [sum, sum / n, squares / n, least, most].into_iter().enumerate() {
                    close(ours[(k * rows + y) * columns + x], want, &format!("{size:?}, {k} at {y}, {x}"));
                }
            }
        }
    }
}

#[test]
fn tiles_are_reduced_channel_by_channel_and_of_any_expression() {
    let ours = everywhere(|s| {
        let image =
            Image::from_slice(s, Shape::new(2, 4, 2), &[1u8, 10, 2, 0, 3, 10, 4, 0, 5, 250, 6, 0, 7, 255, 8, 0]);
        let sums = (image.convert::<f32>() * 0.5).tiles(2, 2).sum();
        let mut all = sums.to_vec().unwrap();
        all.extend(image.tiles(1, 4).max().to_vec().unwrap().into_iter().map(f64::from));
        all
    });
    assert_eq!(ours, [7.0, 130.0, 11.0, 132.5, 4.0, 10.0, 8.0, 255.0]);
}

#[test]
fn parts_that_are_none_are_errors() {
    let s = session(Mode::Fused);
    let image = Image::from_fn(&s, 4, 5, value);
    let message = |image: &Image<f64>| image.check().unwrap_err().to_string();
    assert!(message(&image.tiles(0, 3).sum()).starts_with("tiles: an image of 4x5 has no tiles of 0x3 pixels"));
    assert!(image.tiles(9, 9).mean().check().is_ok());
    let wrong = message(&image.windows((5, 2), (1, 1)).variance());
    assert!(
        wrong.starts_with("windows: an image of 4x5 has no windows of 5x2 pixels every 1 rows and 1 columns"),
        "{wrong}"
    );
    assert!(image.windows((2, 2), (0, 1)).min().check().is_err());
}

/// The labels of the tests: patches and single pixels, some without a label.
fn label(y: usize, x: usize) -> i32 {
    match (y / 7 + 3 * (x / 40), (y * 31 + x * 17) % 23) {
        (_, 0) => -1,
        (_, 1) => 1_000_000,
        (_, 2) => 4,
        (patch, _) => (patch % 4) as i32,
    }
}

const LABELS: usize = 6;

#[test]
fn labels_have_the_statistics_of_their_pixels_in_any_order() {
    let ours = everywhere(|s| {
        let (image, labels) = (Image::from_fn(s, H, W, value), Image::from_fn(s, H, W, label));
        let parts = image.by_label(&labels, LABELS);
        let f64s = |v: Vec<f32>| v.into_iter().map(f64::from).collect::<Vec<_>>();
        let counts = labels.by_label(&labels, LABELS).counts().get().unwrap().into_iter().map(|n| n as f64).collect();
        let (sum, mean, variance) = s.get_all((parts.sum(), parts.mean(), parts.variance())).unwrap();
        let (least, most) = (f64s(parts.min().get().unwrap()), f64s(parts.max().get().unwrap()));
        [counts, sum, mean, variance, least, most].concat()
    });
    for k in 0..LABELS {
        let all = (0..H).flat_map(|y| (0..W).map(move |x| (y, x)));
        let pixels = all.filter(|&(y, x)| label(y, x) == k as i32).map(|(y, x)| f64::from(value(y, x)));
        let [n, sum, squares, least, most] = plain(pixels);
        let of = |statistic: usize| ours[statistic * LABELS + k];
        assert_eq!((of(0), of(4), of(5)), (n, least, most), "label {k}");
        if k == 5 {
            assert!(n == 0.0 && of(1) == 0.0 && of(2).is_nan() && of(3).is_nan(), "nothing has label 5");
        } else {
            close(of(1), sum, "sum");
            close(of(2), sum / n, "mean");
            close(of(3), squares / n, "variance");
        }
    }
}

/// The value at a percentage of the way through numbers in order, and by the median's rule.
fn in_order(mut pixels: Vec<f64>, percent: f64) -> (f64, f64) {
    pixels.sort_by(f64::total_cmp);
    let at = (pixels.len() - 1) as f64 * (percent / 100.0);
    let (value, next) = (pixels[at.floor() as usize], pixels[at.ceil() as usize]);
    (value + (next - value) * at.fract(), (pixels[(pixels.len() - 1) / 2] + pixels[pixels.len() / 2]) / 2.0)
}

#[test]
fn labels_have_the_order_statistics_of_their_pixels() {
    const PERCENTS: [f64; 6] = [0.0, 12.5, 50.0, 83.0, 99.9, 100.0];
    fn check<T: horus_core::dtype::Pixel>(pixel: impl Fn(usize, usize) -> T + Copy + Sync) {
        let ours = everywhere(|s| {
            let (image, labels) = (Image::from_fn(s, H, W, pixel), Image::from_fn(s, H, W, label));
            let parts = image.by_label(&labels, LABELS);
            let mut all = parts.median().get().unwrap();
            all.extend(PERCENTS.iter().flat_map(|percent| parts.percentile(*percent).get().unwrap()));
            all
        });
        for k in 0..LABELS {
            let all = (0..H).flat_map(|y| (0..W).map(move |x| (y, x)));
            let pixels = all.filter(|&(y, x)| label(y, x) == k as i32).map(|(y, x)| pixel(y, x).to_f64());
            let pixels: Vec<f64> = pixels.filter(|v| !v.is_nan()).collect();
            for (i, percent) in PERCENTS.into_iter().enumerate() {
                let (median, percentile) = (ours[k], ours[(i + 1) * LABELS + k]);
                if k == 5 {
                    assert!(pixels.is_empty() && median.is_nan() && percentile.is_nan(), "nothing has label 5");
                    continue;
                }
                let want = in_order(pixels.clone(), percent);
                close(percentile, want.0, &format!("{percent} of label {k}"));
                let rounding = if T::DTYPE == horus_core::dtype::DType::F32 { 1e-7 } else { 0.0 };
                assert!(
                    (median - want.1).abs() <= rounding * want.1.abs(),
                    "{median}, the median {} of label {k}",
                    want.1
                );
            }
        }
    }
    check(value);
    check(|y, x| if (y + x) % 11 == 0 { f32::NAN } else { value(y, x) });
    check(|y, x| f64::from(value(y, x)) * 1e300);
    check(|y, x| ((y * 37 + x * 101) % 251) as u8);
    check(|y, x| i32::MAX - ((y * 37 + x * 101) % 7) as i32);
}

#[test]
fn order_statistics_of_labels_at_the_limits() {
    let s = session(Mode::Fused);
    let image = Image::from_slice(&s, (2, 1, 3), &[5.0f32, f32::NAN, 1.0, 2.0, f32::INFINITY, 4.0]);
    // More labels than `f32` has integers.
    let many = (1 << 24) + 2;
    let labels = Image::from_slice(&s, (2, 1, 3), &[0, 0, many - 1, many - 1, 0, many]);
    let median = image.by_label(&labels, many as usize).median().get().unwrap();
    assert_eq!((median[0], median[many as usize - 1]), (f64::INFINITY, 1.5));
    assert!(median[1..many as usize - 1].iter().all(|v| v.is_nan()), "labels without pixels");
    // A level is one label.
    let levels = Image::from_slice(&s, (2, 1, 3), &[0u8, 0, 0, 1, 1, 1]);
    assert_eq!(image.by_label(&levels, 2).median().get().unwrap(), [3.0, 4.0]);
    let one = Image::from_slice(&s, (1, 1), &[7u16]);
    assert_eq!(one.by_label(&Image::from_slice(&s, (1, 1), &[0u8]), 1).percentile(31.0).get().unwrap(), [7.0]);
    let wrong = image.by_label(&levels, 2).percentile(101.0).check().unwrap_err().to_string();
    assert!(wrong.starts_with("percentile: requested the percentile 101; the range is 0 to 100"), "{wrong}");
    let unfit = image.by_label(&one, 2).median().check().unwrap_err().to_string();
    assert!(unfit.starts_with("by_label: labels of 1x1"), "{unfit}");
}

#[test]
fn sums_of_labels_are_exact() {
    // Sums that no order of addition in `f64` gives: large values cancel, and 300 times 2^-60 is
    // left.
    let pixel = |y: usize, x: usize| match (y + x) % 3 {
        0 => 1e30,
        1 => -1e30,
        _ => 2f64.powi(-60),
    };
    let ours = everywhere(|s| {
        let image = Image::from_fn(s, 30, 30, pixel);
        let one = Image::from_fn(s, 30, 30, |_, _| 0u8);
        image.by_label(&one, 1).sum().get().unwrap()
    });
    assert_eq!(ours, [300.0 * 2f64.powi(-60)]);
    let wild = everywhere(|s| {
        let image = Image::from_slice(s, (1, 6), &[f32::INFINITY, 1.0, f32::NAN, 2.0, -0.0, f32::NEG_INFINITY]);
        let labels = Image::from_slice(s, (1, 6), &[0u16, 0, 1, 1, 2, 3]);
        let parts = image.by_label(&labels, 4);
        let mut all = parts.sum().get().unwrap();
        all.extend(parts.min().get().unwrap().into_iter().chain(parts.max().get().unwrap()).map(f64::from));
        all.into_iter().map(|v| if v.is_nan() { 77.0 } else { v }).collect()
    });
    let (inf, low) = (f64::INFINITY, f64::NEG_INFINITY);
    assert_eq!(wild, [inf, 77.0, 0.0, low, 1.0, 2.0, 0.0, low, inf, 2.0, 0.0, low]);
}

#[test]
fn shapes_of_labels_are_those_of_their_pixels() {
    let ours = everywhere(|s| {
        let labels = Image::from_fn(s, H, W, label);
        let shapes = labels.by_label(&labels, 4).shapes().get().unwrap();
        let all = shapes.into_iter().map(|s| {
            let (yy, yx, xx) = s.covariance;
            [s.pixels as f64, s.centre.0, s.centre.1, yy, yx, xx]
        });
        all.flatten().collect()
    });
    for k in 0..4 {
        let all: Vec<[f64; 2]> = (0..H)
            .flat_map(|y| (0..W).map(move |x| (y, x)))
            .filter(|&(y, x)| label(y, x) == k)
            .map(|(y, x)| [y as f64, x as f64])
            .collect();
        let n = all.len() as f64;
        let mean = [0, 1].map(|a| all.iter().map(|p| p[a]).sum::<f64>() / n);
        let of = |a: usize, b: usize| all.iter().map(|p| (p[a] - mean[a]) * (p[b] - mean[b])).sum::<f64>() / n;
        for (i, want) in [n, mean[0], mean[1], of(0, 0), of(0, 1), of(1, 1)].into_iter().enumerate() {
            close(ours[6 * k as usize + i], want, &format!("label {k}, {i}"));
        }
    }
}

/// More labels than pixels in 32 rows, few of which are those of neighbours.
#[test]
fn there_may_be_as_many_labels_as_pixels() {
    const MANY: usize = 200_000;
    let (h, w) = (70, 90);
    let of = |y: usize, x: usize| ((y * w + x) * 7919 % MANY) as i32 / 2 * 2;
    let value = |y: usize, x: usize| ((y * 37 + x * 101) % 251) as u8;
    for ranks in [1, 3] {
        let told = ThreadComm::run(ranks, |comm| {
            let cpu = Box::new(CpuDevice::new(Some(2)).unwrap());
            let s = Session::on(cpu).communicator(Arc::new(comm)).build().unwrap();
            let (image, labels) = (Image::from_fn(&s, h, w, value), Image::from_fn(&s, h, w, of));
            let parts = image.by_label(&labels, MANY);
            let (variance, max) = s.get_all((parts.variance(), parts.max())).unwrap();
            (parts.sum().get().unwrap(), variance, max, labels.by_label(&labels, MANY).shapes().get().unwrap())
        });
        for (sums, variances, most, shapes) in told {
            let mut want = vec![(0.0, 0.0, 0u8, 0u64, 0.0); MANY];
            for (y, x) in (0..h).flat_map(|y| (0..w).map(move |x| (y, x))) {
                let (at, v) = (&mut want[of(y, x) as usize], value(y, x));
                let f = f64::from(v);
                *at = (at.0 + f, at.1 + f * f, at.2.max(v), at.3 + 1, at.4 + x as f64);
            }
            for (k, (sum, squares, max, n, x)) in want.into_iter().enumerate() {
                assert_eq!((sums[k], most[k], shapes[k].pixels), (sum, max, n), "label {k}");
                if n > 0 {
                    let spread = squares / n as f64 - (sum / n as f64).powi(2);
                    close(variances[k], spread, "variance");
                    close(shapes[k].centre.1, x / n as f64, "centre");
                }
            }
        }
    }
}

#[test]
fn histograms_of_labels_are_those_of_their_pixels() {
    let ours = everywhere(|s| {
        let (image, labels) = (Image::from_fn(s, H, W, value), Image::from_fn(s, H, W, label));
        let counts = image.by_label(&labels, 5).histogram(9, -100.0, 1100.0).get().unwrap();
        counts.into_iter().flatten().map(|n| n as f64).collect()
    });
    let mut want = vec![0.0; 45];
    for (y, x) in (0..H).flat_map(|y| (0..W).map(move |x| (y, x))) {
        let (k, v) = (label(y, x), f64::from(value(y, x)));
        if (0..5).contains(&k) && (-100.0..=1100.0).contains(&v) {
            want[k as usize * 9 + (((v + 100.0) / 1200.0 * 9.0) as usize).min(8)] += 1.0;
        }
    }
    assert_eq!(ours, want);
}

#[test]
fn labels_that_do_not_fit_are_errors() {
    let s = session(Mode::Fused);
    let image = Image::from_fn(&s, 4, 5, value);
    let message = |sum: horus_core::image::Value<Vec<f64>>| sum.check().unwrap_err().to_string();
    let labels = Image::<u8>::zeros(&s, (4, 4));
    assert!(message(image.by_label(&labels, 2).sum()).starts_with("by_label: labels of 4x4 for an image of 4x5"));
    assert!(message(image.by_label(&image, 2).mean()).contains("labels must be integers, not f32"));
    assert!(message(image.by_label(&Image::<u8>::zeros(&s, (4, 5)), 0).variance()).contains("0 labels"));
    let zeros = Image::<u8>::zeros(&s, (4, 5));
    let most = zeros.by_label(&zeros, (1 << 28) + 1).shapes().check().unwrap_err().to_string();
    assert!(most.starts_with("by_label: 268435457 labels; the range is 1 to 2^28"), "{most}");
    let most = zeros.by_label(&zeros, (1 << 24) + 1).counts().check().unwrap_err().to_string();
    assert!(most.starts_with("counts: 16777217 labels; the range is 1 to 2^24"), "{most}");
    let unfit = image.by_label(&labels, 2).counts().check().unwrap_err().to_string();
    assert!(unfit.starts_with("by_label: labels of 4x4 for an image of 4x5"), "{unfit}");
    assert!(image.by_label(&Image::<u8>::zeros(&s, (4, 5)), 2).histogram(0, 0.0, 1.0).check().is_err());
}
