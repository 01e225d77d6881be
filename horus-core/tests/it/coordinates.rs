//! Images of pixel positions: on any number of ranks, read by everything, never stored.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::image::Image;
use horus_core::ops::neighbourhood::Filter;
use horus_core::plan::Mode;
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::simulated::SimulatedDevice;

const SHAPE: Shape = Shape::new(23, 31, 3);

fn session(mode: Mode) -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).mode(mode).build().unwrap()
}

/// The result of `compute` in every mode on one rank, and fused on up to four: the same bits.
fn everywhere(compute: impl Fn(&Session) -> Vec<f64> + Sync) -> Vec<f64> {
    let alone = compute(&session(Mode::Fused));
    let bits = |v: &[f64]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for mode in [Mode::Naive, Mode::Lazy] {
        assert_eq!(bits(&compute(&session(mode))), bits(&alone), "{mode:?}");
    }
    for ranks in 2..=4 {
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

/// Pixels, row by row.
fn expected(shape: Shape, f: impl Fn(usize, usize, usize) -> f64) -> Vec<f64> {
    let places = (0..shape.height).flat_map(|y| (0..shape.width).map(move |x| (y, x)));
    places.flat_map(|(y, x)| (0..shape.channels).map(move |c| (c, y, x))).map(|(c, y, x)| f(c, y, x)).collect()
}

#[test]
fn every_axis_counts_from_zero_on_all_ranks() {
    for (axis, at) in [(Axis::Rows, 1), (Axis::Columns, 2), (Axis::Channels, 0)] {
        let want = expected(SHAPE, |c, y, x| [c, y, x][at] as f64);
        let held = everywhere(|s| Image::<f64>::index(s, SHAPE, axis).to_vec().unwrap());
        assert_eq!(held, want, "{axis}");
        let bytes = everywhere(|s| {
            (Image::<u8>::index(s, SHAPE, axis) + 1).to_vec().unwrap().into_iter().map(f64::from).collect()
        });
        assert_eq!(bytes, want.iter().map(|v| v + 1.0).collect::<Vec<_>>(), "{axis} in bytes");
    }
}

#[test]
fn levels_and_their_channels_are_told_apart() {
    let shape = Shape::volume(4, 5, 3, 2);
    for axis in [Axis::Depth, Axis::Channels] {
        let at = |plane: usize| if axis == Axis::Depth { plane / 2 } else { plane % 2 } as f64;
        // Planes in order: levels, then channels.
        let held = everywhere(|s| {
            let index = Image::<f64>::index(s, shape, axis);
            let levels = (0..4).flat_map(|z| (0..2).map(move |c| (z, c)));
            levels.flat_map(|(z, c)| index.slice(z).channel(c).to_vec().unwrap()).collect()
        });
        assert_eq!(held, (0..8).flat_map(|plane| [at(plane); 15]).collect::<Vec<_>>(), "{axis}");
        // Beyond the last level the border applies.
        for (border, beyond) in [(Border::Constant(9.0), 9.0), (Border::Replicate, 3.0)] {
            let sum = everywhere(|s| {
                vec![Image::<f64>::index(s, shape, axis).with_border(border).shift(-1, 0, 0).sum().get().unwrap()]
            });
            let next = |z: usize, c: usize| match (z < 4, axis) {
                (true, _) => at(2 * z + c),
                (false, Axis::Depth) => beyond,
                (false, _) if border == Border::Replicate => c as f64,
                (false, _) => beyond,
            };
            let want: f64 = (1..5).flat_map(|z| (0..2).map(move |c| 15.0 * next(z, c))).sum();
            assert_eq!(sum, [want], "{axis} {border}");
        }
    }
}

#[test]
fn filters_of_coordinates_see_the_border_of_the_whole_image() {
    let shape = Shape { channels: 1, ..SHAPE };
    let (h, w) = (shape.height as isize, shape.width as isize);
    for border in [Border::Wrap, Border::Reflect101, Border::Replicate, Border::Constant(7.0)] {
        // Sums of integers: exact in any order.
        let ours = everywhere(|s| {
            let place = Image::<f64>::index(s, shape, Axis::Rows) * 100.0 + Image::index(s, shape, Axis::Columns);
            place.with_border(border).correlate(&Filter::dense(7, 5, vec![1.0; 35])).to_vec().unwrap()
        });
        let value = |y: isize, x: isize| match (border.map(y, shape.height), border.map(x, shape.width)) {
            (Some(y), Some(x)) => (100 * y + x) as f64,
            _ => 7.0,
        };
        let mut want: Vec<f64> = Vec::new();
        for y in 0..h {
            for x in 0..w {
                want.push(
                    (-3..=3)
                        .flat_map(|dy| (-2..=2).map(move |dx| (dy, dx)))
                        .map(|(dy, dx)| value(y + dy, x + dx))
                        .sum(),
                );
            }
        }
        assert_eq!(ours, want, "{border}");
    }
}

#[test]
fn recorded_functions_of_coordinates_are_those_of_rust() {
    let (h, w) = (19, 40);
    let ours = everywhere(|s| {
        let [y, x] = [Axis::Rows, Axis::Columns].map(|axis| Image::<f64>::index(s, (h, w), axis));
        let image = (&y * 3.0 - &x).abs() / (&y * &x + 1.0);
        let mask = y.gt(x);
        let mut all = image.to_vec().unwrap();
        all.push((image * mask.convert::<f64>()).sum().get().unwrap());
        all
    });
    let value = |y: usize, x: usize| ((y as f64) * 3.0 - x as f64).abs() / ((y * x) as f64 + 1.0);
    let want = expected(Shape::new(h, w, 1), |_, y, x| value(y, x));
    assert_eq!(ours[..h * w], want);
    let below: f64 = (0..h).flat_map(|y| (0..w.min(y)).map(move |x| value(y, x))).sum();
    assert!((ours[h * w] - below).abs() < 1e-12 * below);
}

#[test]
fn reading_coordinates_adds_no_launch() {
    let s = session(Mode::Fused);
    let launches = |image: Image<f32>| {
        let before = s.stats().made.launches;
        image.to_vec().unwrap();
        s.stats().made.launches - before
    };
    let image = Image::from_slice(&s, (8, 8), &[1.0f32; 64]);
    let shape = image.shape();
    let rows = Image::<f32>::index(&s, shape, Axis::Rows);
    let columns = Image::<f32>::index(&s, shape, Axis::Columns);
    assert_eq!(launches(&image * &rows + &columns * 0.5), 1);
    let colour = Image::from_slice(&s, Shape::new(8, 8, 3), &[[1.0f32, 2.0, 3.0]; 64].concat());
    assert_eq!(launches(&colour * &rows), 3, "one channel that meets three is not stored either, but planes are");
    assert_eq!(launches(&colour * &image), 1, "of channels that are read as they lie");
}

#[test]
fn what_a_type_cannot_count_is_an_error() {
    let s = session(Mode::Fused);
    let long = |n: usize| Shape::new(1, n, 1);
    assert!(Image::<u8>::index(&s, long(256), Axis::Columns).check().is_ok());
    let error = Image::<u8>::index(&s, long(257), Axis::Columns).check().unwrap_err().to_string();
    assert!(error.starts_with("index: u8 cannot hold the columns of an image of 1x257"), "{error}");
    assert!(Image::<u8>::index(&s, long(257), Axis::Rows).check().is_ok(), "they are all in row 0");
    assert!(Image::<f32>::index(&s, long((1 << 24) + 1), Axis::Columns).check().is_ok());
    for n in [(1 << 24) + 2, (1 << 24) + 3] {
        assert!(Image::<f32>::index(&s, long(n), Axis::Columns).check().is_err(), "{n}");
    }
    assert!(Image::<f64>::index(&s, long(1 << 30), Axis::Columns).check().is_ok());
}
