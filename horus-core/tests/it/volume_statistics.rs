//! Positions of the extremes of volumes, and statistics of their labels: against plain loops, with
//! the same bits in every mode and on any number of ranks.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::image::Image;
use horus_core::plan::Mode;
use horus_core::session::{Session, SessionBuilder};
use horus_core::shape::Axis;
use horus_testing::simulated::SimulatedDevice;

/// Enough rows for several blocks of labels, and not a multiple of them.
const SIZES: [[usize; 3]; 4] = [[4, 75, 6], [1, 40, 9], [5, 2, 3], [1, 1, 1]];

fn builder(simulated: bool) -> SessionBuilder {
    let cpu = CpuDevice::new(Some(2)).unwrap();
    let device: Box<dyn Device> =
        if simulated { Box::new(SimulatedDevice::new(cpu, usize::MAX / 2)) } else { Box::new(cpu) };
    Session::on(device)
}

/// The result of `program`, checked to be the same in every mode, on 1 to 3 ranks.
fn everywhere<R: PartialEq + std::fmt::Debug + Send>(program: impl Fn(&Session) -> R + Sync) -> R {
    let first = program(&builder(false).build().unwrap());
    for mode in [Mode::Naive, Mode::Lazy, Mode::Fused] {
        for ranks in 1..=3 {
            let all = ThreadComm::run(ranks, |comm| {
                program(&builder(ranks == 2).communicator(Arc::new(comm)).mode(mode).build().unwrap())
            });
            all.iter().for_each(|one| assert_eq!(*one, first, "{mode:?}, {ranks} ranks"));
        }
    }
    first
}

fn value(z: usize, y: usize, x: usize) -> f32 {
    ((z * 37 + y * 31 + x * 17) % 29) as f32 * 0.3 - 4.0
}

fn label(z: usize, y: usize, x: usize) -> i32 {
    ((z * 5 + y / 3 + x) % 6) as i32 - 1
}

fn places([d, h, w]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..d).flat_map(move |z| (0..h).flat_map(move |y| (0..w).map(move |x| (z, y, x))))
}

#[test]
fn extremes_are_where_loops_find_them_first() {
    for size in SIZES {
        let [d, h, w] = size;
        let found = everywhere(|s| {
            let volume = Image::from_volume_fn(s, d, h, w, value);
            s.get_all((volume.argmin(), volume.argmax())).unwrap()
        });
        let first = |better: fn(f32, f32) -> bool| {
            let mut at: Option<(f32, [usize; 4])> = None;
            for (z, y, x) in places(size) {
                if at.is_none_or(|(best, _)| better(value(z, y, x), best)) {
                    at = Some((value(z, y, x), [z, y, x, 0]));
                }
            }
            at.map(|(_, place)| place)
        };
        assert_eq!(found, (first(|a, b| a < b), first(|a, b| a > b)), "{size:?}");
    }
}

#[test]
fn ties_channels_and_nan() {
    let s = builder(false).build().unwrap();
    // The first level that has it, and in it the first channel, though a later one has it in an
    // earlier row.
    let levels = [[[9, 1], [9, 9]], [[9, 9], [1, 9]], [[1, 1], [1, 1]]];
    let array = |f: &dyn Fn(usize, usize, usize) -> u8| {
        ndarray::Array4::from_shape_fn((3, 2, 2, 2), |(z, y, x, c)| if c == 0 { 9 } else { f(z, y, x) })
    };
    let two = Image::from_volume_array(&s, array(&|z, y, x| levels[z][y][x]).view());
    assert_eq!(two.argmin().get().unwrap(), Some([0, 0, 1, 1]));
    assert_eq!(two.argmax().get().unwrap(), Some([0, 0, 0, 0]));
    let later = Image::from_slice(&s, (2, 2, 2), &[5, 5, 5, 5, 5, 5, 3, 3]);
    assert_eq!(later.argmin().get().unwrap(), Some([1, 1, 0, 0]));
    let nan = f32::NAN;
    let some = Image::from_slice(&s, (3, 1, 2), &[nan, nan, -0.0, nan, 0.0, nan]);
    assert_eq!((some.argmin().get().unwrap(), some.argmax().get().unwrap()), (Some([1, 0, 0, 0]), Some([1, 0, 0, 0])));
    let none = Image::from_slice(&s, (2, 1, 1), &[nan; 2]);
    assert_eq!((none.argmin().get().unwrap(), none.argmax().get().unwrap()), (None, None));
}

#[test]
fn labels_of_volumes_are_reduced_over_all_levels() {
    const LABELS: usize = 5;
    for size in SIZES {
        let [d, h, w] = size;
        let found = everywhere(|s| {
            let (volume, labels) = (Image::from_volume_fn(s, d, h, w, value), Image::from_volume_fn(s, d, h, w, label));
            let parts = volume.by_label(&labels, LABELS);
            let (sum, mean, variance) = s.get_all((parts.sum(), parts.mean(), parts.variance())).unwrap();
            let (min, max) = s.get_all((parts.min(), parts.max())).unwrap();
            let bits = |v: Vec<f64>| v.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            let histogram = parts.histogram(4, -4.0, 4.0).get().unwrap();
            let floats = (bits(sum), bits(mean), bits(variance));
            (floats, (min, max), histogram, labels.by_label(&labels, LABELS).counts().get().unwrap())
        });
        let ((sums, means, variances), (mins, maxs), histograms, counts) = found;
        for k in 0..LABELS {
            let of: Vec<f32> =
                places(size).filter(|&(z, y, x)| label(z, y, x) == k as i32).map(|(z, y, x)| value(z, y, x)).collect();
            let (n, what) = (of.len() as f64, format!("{size:?}, label {k}"));
            assert_eq!(counts[k], of.len() as u64, "{what}");
            let sum: f64 = of.iter().map(|v| f64::from(*v)).sum();
            assert!((f64::from_bits(sums[k]) - sum).abs() <= 1e-12 * n, "{what}");
            assert_eq!(mins[k], of.iter().copied().fold(f32::INFINITY, f32::min), "{what}");
            assert_eq!(maxs[k], of.iter().copied().fold(f32::NEG_INFINITY, f32::max), "{what}");
            let bin = |v: f32| (((f64::from(v) + 4.0) / 8.0 * 4.0) as usize).min(3);
            let mut bins = vec![0; 4];
            of.iter().filter(|v| (-4.0..=4.0).contains(*v)).for_each(|v| bins[bin(*v)] += 1);
            assert_eq!(histograms[k], bins, "{what}");
            let (mean, variance) = (f64::from_bits(means[k]), f64::from_bits(variances[k]));
            if of.is_empty() {
                assert!(mean.is_nan() && variance.is_nan(), "{what}");
                continue;
            }
            let spread = of.iter().map(|v| (f64::from(*v) - sum / n).powi(2)).sum::<f64>() / n;
            assert!((mean - sum / n).abs() < 1e-12 && (variance - spread).abs() < 1e-12, "{what}");
        }
    }
}

#[test]
fn labels_that_do_not_fit_a_volume_are_errors() {
    let s = builder(false).build().unwrap();
    let volume = Image::from_volume_fn(&s, 3, 4, 5, value);
    let told = |labels: &Image<u8>| volume.by_label(labels, 2).sum().get().unwrap_err().to_string();
    let said = told(&Image::zeros(&s, (4, 5)));
    assert!(said.starts_with("by_label: labels of 4x5 for an image of 3x4x5") && said.contains(".rs:"), "{said}");
    let said =
        told(&Image::stack(&s, [Image::constant(&s, (3, 4, 5), 1), Image::constant(&s, (3, 4, 5), 0)], Axis::Channels));
    assert!(said.starts_with("by_label: labels of 3x4x5x2 for an image of 3x4x5"), "{said}");
    let labels = Image::constant(&s, (3, 4, 5), 1u8);
    let said = labels.by_label(&labels, 2).shapes().get().unwrap_err().to_string();
    assert!(said.starts_with("shapes: the label image has 3 levels; take one (`slice`)"), "{said}");
}
