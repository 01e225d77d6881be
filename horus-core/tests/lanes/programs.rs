//! Programs of many kinds on lanes of every kind.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::device::Device;
use horus_core::dtype::{Element, Pixel};
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::components::Connectivity;
use horus_core::ops::geometric::Interpolation;
use horus_core::plan::movement::Load;
use horus_core::plan::{Mode, Transfer};
use horus_core::session::Session;
use horus_core::shape::{Axis, Border};
use horus_testing::simulated::SimulatedDevice;

use crate::{DeviceConnection, KINDS, ROOM, cpu, device, lanes, one};

/// Divisions of rows among this many lanes.
fn divisions(lanes: usize) -> Vec<Vec<f64>> {
    let equal = vec![1.0; lanes];
    let ascending = (1..=lanes).map(|lane| lane as f64).collect();
    let some = (0..lanes).map(|lane| f64::from(u8::from(lane != 0) * 2 + u8::from(lane == lanes - 1))).collect();
    if lanes == 1 { vec![equal] } else { vec![equal, ascending, some] }
}

fn given(s: &Session, height: usize, width: usize) -> Image<f32> {
    let pixels: Vec<f32> = (0..height * width).map(|i| ((i * 31 + i / width * 17) % 101) as f32 * 0.37 - 9.0).collect();
    Image::from_slice(s, (height, width), &pixels)
}

fn bits<T: Element + Pixel>(image: &Image<T>) -> Result<Vec<u8>> {
    Ok(bytemuck::cast_slice(&image.to_vec()?).to_vec())
}

/// The results of a program, as bytes. They are read one after the other, and later ones read
/// earlier ones.
fn program(s: &Session, height: usize) -> Result<Vec<Vec<u8>>> {
    let (a, b) = (given(s, height, 23), given(s, height, 23) * 0.5);
    let mut all = Vec::new();
    let smooth = a.gauss(1.3) - &b;
    all.push(bits(&smooth)?);
    let wrapped = smooth.with_border(Border::Wrap).separable(
        &horus_core::ops::neighbourhood::Filter::row(vec![0.25, 0.5, 0.25]),
        &horus_core::ops::neighbourhood::Filter::column(vec![0.1, 0.2, 0.4, 0.2, 0.1]),
    );
    all.push(bits(&wrapped)?);
    // Of an image whose strips have periodic rows around them, where they cover all of it.
    all.push(bits(&smooth.reconstruct(&(&smooth + 1.0), Connectivity::FACES))?);
    let turned = wrapped.with_border(Border::Reflect).rotate(33.0, Interpolation::Bilinear).median(3);
    all.push(turned.max_value().get()?.to_bits().to_le_bytes().to_vec());
    all.push(bits(&(turned.flip([Axis::Rows, Axis::Columns]) + turned.transpose().transpose()))?);
    let (mean, variance) = s.get_all((turned.mean(), turned.variance()))?;
    all.extend([mean, variance].map(|v| v.to_bits().to_le_bytes().to_vec()));
    let mask = turned.gt(0.5).opening(&horus_core::filters::Footprint::disc(1));
    all.push(mask.count().get()?.to_le_bytes().to_vec());
    all.push(turned.histogram(13, -20.0, 20.0).get()?.iter().flat_map(|n| n.to_le_bytes()).collect());
    let colours = mask.select([1.0, 0.0, 0.25], &turned); // three channels
    all.push(bits(&colours)?);
    all.push(bits(&colours.gauss(0.8).over(Axis::Columns).sum())?);
    all.push(bits(&turned.over(Axis::Rows).sum())?);
    all.push(bits(&(&turned - turned.mean()))?);
    all.push(bits(&a)?); // as given
    Ok(all)
}

#[test]
fn every_number_of_lanes_and_every_division_computes_the_same_bits() {
    for height in [1, 3, 40] {
        let want = program(&one(), height).unwrap();
        for kind in KINDS {
            for count in 1..=5 {
                for weights in divisions(count) {
                    for mode in [Mode::Fused, Mode::Lazy, Mode::Naive] {
                        let s = lanes(kind, count).weights(weights.clone()).mode(mode).build().unwrap();
                        let got = program(&s, height).unwrap_or_else(|e| panic!("{kind:?} {weights:?} {mode:?}: {e}"));
                        let same: Vec<bool> = got.iter().zip(&want).map(|(a, b)| a == b).collect();
                        assert!(got == want, "{kind:?} {weights:?} {mode:?} {height} rows: {same:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_is_sent_for_giving_and_reading() {
    for kind in KINDS {
        for count in 2..=4 {
            let s = lanes(kind, count).build().unwrap();
            let image = given(&s, 37, 11);
            let result = image.sqrt_abs_twice();
            let want = given(&one(), 37, 11).sqrt_abs_twice();
            assert_eq!(bits(&result).unwrap(), bits(&want).unwrap());
            let mut into = vec![0.0f32; 37 * 11];
            (image * 2.0 + &result).read_into(&mut into).unwrap();
            assert_eq!(s.stats().sent, Load::default(), "{kind:?}, {count} lanes");
            assert!(s.stats().made.exchanges_between_ranks() == 0);
        }
    }
}

trait Twice {
    fn sqrt_abs_twice(&self) -> Image<f32>;
}

impl Twice for Image<f32> {
    fn sqrt_abs_twice(&self) -> Image<f32> {
        ((self * self) + 1.0).sqrt() * 3.0 - self
    }
}

#[test]
fn each_lane_copies_its_own_strip_once() {
    let simulated: Vec<_> = (0..3).map(|_| Arc::new(SimulatedDevice::new(cpu(), ROOM).with_fabric())).collect();
    let devices = simulated.iter().map(|d| Arc::clone(d) as Arc<dyn Device>).collect();
    let s = Session::over(devices).transfer(Transfer::Explicit).build().unwrap();
    let image = Image::<f32>::from_fn(&s, 96, 64, |y, x| (y * 64 + x) as f32);
    let result = (image.gauss(1.0) * 2.0).to_vec().unwrap();
    assert_eq!(result.len(), 96 * 64);
    for device in &simulated {
        let log = device.call_counts().get();
        assert_eq!((log.writes, log.reads), (1, 1), "one upload of the strip, one download");
    }
    assert_eq!(s.stats().sent, Load::default(), "each uploads what its filter reads");
}

#[test]
fn bands_of_any_number_leave_each_lane() {
    for kind in [DeviceConnection::Separate, DeviceConnection::Connected] {
        for bands in [1u8, 3, 16, 64] {
            let s = lanes(kind, 3).transfer(Transfer::Streams(bands.try_into().ok())).build().unwrap();
            let of = |s: &Session| -> Result<[Vec<u8>; 3]> {
                let image = given(s, 61, 19);
                let colours = Image::stack(
                    s,
                    [&image, &image.gauss(1.0), &image.rotate(20.0, Interpolation::Bilinear)],
                    Axis::Channels,
                );
                let turned = |angle| image.gauss(1.0).rotate(angle, Interpolation::Bilinear);
                let updated = (0..5).fold(image.clone(), |result, k| result.max(turned(30.0 * f64::from(k))));
                Ok([bits(&(image.gauss(2.0) - 1.0))?, bits(&colours.gauss(1.5))?, bits(&updated)?])
            };
            assert!(of(&s).unwrap() == of(&one()).unwrap(), "{kind:?}, {bands} bands");
        }
    }
}

#[test]
fn results_go_where_the_program_wants_them() {
    let of = |s: &Session| -> Result<Vec<Vec<u8>>> {
        let image = given(s, 45, 16);
        let (mut slice, mut pixels) = (vec![0.0f32; 45 * 16], s.pixels::<f32>(45, 16, 1)?);
        let smooth = image.gauss(1.0);
        smooth.read_into(&mut slice)?;
        (&smooth * 2.0).read_into(&mut pixels)?;
        let (mut first, mut second) = (vec![0.0f32; 45 * 16], vec![0.0f32; 45 * 16]);
        let (above, below) = (&smooth + 1.0, &smooth - 1.0);
        s.read_into(((&above, &mut first), (&below, &mut second)))?;
        let array = smooth.to_array::<ndarray::Ix2>()?;
        let pixel = smooth.pixel((44, 3))?;
        let lists = [slice, pixels[..].to_vec(), first, second, array.into_iter().collect(), vec![pixel]];
        Ok(lists.iter().map(|l| bytemuck::cast_slice(l).to_vec()).collect())
    };
    let want = of(&one()).unwrap();
    for kind in KINDS {
        assert!(of(&lanes(kind, 3).build().unwrap()).unwrap() == want, "{kind:?}");
    }
}

/// Two results of one launch that both read rows of other strips.
fn two_that_read_elsewhere(s: &Session, axis: Axis) -> Result<Vec<Vec<u8>>> {
    let x = given(s, 32, 32);
    let reciprocal = 1.0 / (&x * x.over(axis).max());
    let chosen = reciprocal.gt(0.3).select(reciprocal.absdiff(&x), &reciprocal);
    let median = chosen.median(3);
    s.evaluate()?;
    [reciprocal, chosen, median].iter().map(bits).collect()
}

#[test]
fn none_of_several_results_that_read_other_strips_is_lost() {
    for axis in [Axis::Rows, Axis::Columns] {
        let want = two_that_read_elsewhere(&one(), axis).unwrap();
        for weights in [vec![1.0, 0.0], vec![0.0, 3.0, 1.0], vec![1.0; 5], vec![1.0; 8]] {
            let count = weights.len();
            let s = lanes(DeviceConnection::Connected, count).weights(weights.clone()).build().unwrap();
            assert!(two_that_read_elsewhere(&s, axis).unwrap() == want, "lanes {weights:?} {axis:?}");
            let on_ranks = ThreadComm::run(count, |comm| {
                let s = Session::sharing(device(DeviceConnection::Connected, ROOM)).communicator(Arc::new(comm));
                two_that_read_elsewhere(&s.weights(weights.clone()).build().unwrap(), axis).unwrap()
            });
            assert!(on_ranks.iter().all(|got| *got == want), "ranks {weights:?} {axis:?}");
        }
    }
}
