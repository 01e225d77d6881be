//! Small pictures of a series that are computed together have the bits of each computed alone.

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};

use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::dtype::{DType, Element};
use horus_core::error::{Error, Result};
use horus_core::host::buffer::HostBuffer;
use horus_core::image::{Image, equalize_hist};
use horus_core::io::{AnyImage, Picture, SaveOptions, Scaling};
use horus_core::ops::components::Connectivity;
use horus_core::ops::geometric::Interpolation;
use horus_core::prelude::Resampling;
use horus_core::session::Session;
use horus_core::shape::{Axis, Shape};
use horus_testing::simulated::SimulatedDevice;

fn devices() -> [Box<dyn Device>; 2] {
    let cpu = || CpuDevice::new(Some(2)).unwrap();
    [Box::new(cpu()), Box::new(SimulatedDevice::new(cpu(), 1 << 24).requiring_preparation())]
}

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

/// Picture `i`, of bytes.
fn picture(i: usize, shape: Shape) -> Picture {
    let bytes: Vec<u8> = (0..shape.len()).map(|k| (k * k + k * 7 + i * 31 + (k >> 3)) as u8).collect();
    Picture::from_pixels(shape, DType::U8, HostBuffer::from_slice(&bytes))
}

fn grey(picture: &AnyImage) -> Image<f32> {
    picture.luminance()
}

fn shapes() -> [Shape; 3] {
    [Shape::new(1, 1, 3), Shape::new(17, 13, 1), Shape::new(16, 9, 3)]
}

trait Bits: Element {
    fn bits(&self) -> u64;
}

macro_rules! bits {
    ($($dtype:ty: $bits:expr),*) => {
        $(impl Bits for $dtype {
            fn bits(&self) -> u64 {
                $bits(*self)
            }
        })*
    };
}
bits!(f32: |v: f32| u64::from(v.to_bits()), f64: f64::to_bits, u8: u64::from, i32: |v| v as u64, bool: u64::from);

/// The bits of the pixels of each result, and the number of evaluations.
fn run<T: Bits>(
    session: &Session,
    pictures: impl IntoIterator<Item = Picture>,
    program: impl Fn(&AnyImage) -> Image<T>,
    once: bool,
) -> (Vec<Vec<u64>>, usize) {
    let before = session.stats().evaluations;
    let series = session.series(pictures, program);
    let series = if once { series.recorded_once() } else { series };
    let found = series.into_iter().enumerate().map(|(i, item)| {
        assert_eq!(item.number, i);
        item.result.unwrap().iter().map(T::bits).collect()
    });
    (found.collect(), session.stats().evaluations - before)
}

fn check<T: Bits>(name: &str, together: bool, program: fn(&AnyImage) -> Image<T>) {
    const COUNT: usize = 5;
    for device in devices() {
        let session = Session::on(device).build().unwrap();
        for shape in shapes() {
            let pictures = || (0..COUNT).map(move |i| picture(i, shape));
            let (each, evaluations) = run(&session, pictures(), program, false);
            assert_eq!(evaluations, COUNT);
            let (all, evaluations) = run(&session, pictures(), program, true);
            assert!(all == each, "{name} of {shape}");
            assert_eq!(evaluations, if together { 1 } else { COUNT }, "{name} of {shape}");
        }
    }
}

#[test]
fn operations_on_levels_are_computed_together() {
    check("pixels", true, |p| (grey(p) * 2.0 - 0.25).abs().sqrt());
    check("bytes", true, |p| p.convert::<u8>() / 2);
    check("a mask", true, |p| grey(p).gt(0.5));
    check("gauss", true, |p| grey(p).gauss(1.5));
    check("a line", true, |p| grey(p).gauss_xy(2.0, 1.0, 0, 2).max(grey(p).rotate(30.0, Interpolation::Bilinear)));
    check("a median", true, |p| grey(p).median(3));
    check("a large median", true, |p| p.convert::<u8>().median(9));
    check("a mean", true, |p| p.convert::<u8>().box_mean(5));
    check("erosion", true, |p| p.convert::<u8>().erode(3).dilate(7));
    check("a cubic rotation", true, |p| grey(p).rotate(-70.0, Interpolation::Bicubic));
    check("a mirror image", true, |p| grey(p).flip(Axis::Rows));
    check("another size", true, |p| grey(p).resize(5, 9, Resampling::Area));
    check("a transposition", true, |p| grey(p).transpose());
    check("all channels", true, |p| p.convert::<f32>().gauss(1.0));
    check("a channel", true, |p| p.convert::<f32>().unstack(Axis::Channels).remove(0).gauss(1.0));
    check("more channels", true, |p| {
        let image = grey(p);
        Image::stack(image.session(), &[image.gauss(1.0), image.clone(), &image * 2.0], Axis::Channels)
    });
    check("the picture", true, |p| p.convert::<u8>());
    check("thinning", true, |p| horus_core::image::thin(&grey(p).gt(0.4)));
    check("distances", true, |p| grey(p).gt(0.4).distances().euclidean::<f32>());
}

#[test]
fn images_of_the_program_are_the_same_for_all_pictures() {
    check("a flat field", true, |p| {
        let image = p.luminance();
        let flat = |y: usize, x: usize| 1.0 + (3 * y + x) as f32 / 50.0;
        let flat: Image<f32> = Image::from_fn(image.session(), image.shape().height, image.shape().width, flat);
        image / flat.gauss(1.0)
    });
    check("an image of one colour", true, |p| {
        let image = p.convert::<f32>();
        let (session, shape) = (image.session().clone(), image.shape());
        image.clone().max(Image::constant(&session, shape, 0.25f32)) + Image::constant(&session, (1, 1), 1.0f32)
    });
}

#[test]
fn sums_and_extremes_are_of_each_picture() {
    check("an image of reductions", true, |p| {
        let image = p.convert::<f32>();
        let all = [Axis::Rows, Axis::Columns, Axis::Channels];
        image.over(all).max() - image.over(all).min()
    });
    check("rows", true, |p| p.luminance().over(Axis::Columns).mean());
    let session = session();
    for shape in [Shape::new(1, 1, 1), Shape::new(2100, 3, 1), Shape::new(40, 30, 3)] {
        let values = |once: bool| -> Vec<(f64, f64, f32, u8)> {
            let series = session.series((0..4).map(|i| picture(i, shape)), |p| {
                let image = p.convert::<f32>() / 3.0;
                (image.sum(), image.mean(), image.min_value(), p.convert::<u8>().max_value())
            });
            let series = if once { series.recorded_once() } else { series };
            series.values().map(|item| item.result.unwrap()).collect()
        };
        let before = session.stats().evaluations;
        let (once, evaluations) = (values(true), session.stats().evaluations - before);
        let bits = |all: Vec<(f64, f64, f32, u8)>| {
            all.into_iter().map(|(a, b, c, d)| (a.to_bits(), b.to_bits(), c.to_bits(), d)).collect::<Vec<_>>()
        };
        assert_eq!((bits(once), evaluations), (bits(values(false)), 1), "{shape}");
    }
}

#[test]
fn operations_that_would_mix_pictures_are_computed_for_each() {
    check("labels", false, |p| p.luminance().gt(0.5).label(Connectivity::FACES));
    check("a table", false, |p| equalize_hist(&p.luminance(), 64));
    check("a volume", false, |p| {
        let image = p.luminance();
        Image::stack(image.session(), &[image.clone(), &image * 2.0], Axis::Depth).gauss(1.0)
    });
    let (session, shape) = (session(), Shape::new(9, 7, 1));
    let variances = |once: bool| -> Vec<u64> {
        let series = session.series((0..4).map(|i| picture(i, shape)), |p| p.luminance().variance());
        let series = if once { series.recorded_once() } else { series };
        series.values().map(|item| item.result.unwrap().to_bits()).collect()
    };
    assert_eq!(variances(true), variances(false));
    assert_eq!(session.stats().evaluations, 8);
}

#[test]
fn pictures_of_several_kinds_come_in_order() {
    let shapes = shapes();
    let pictures = || (0..30).map(|i| picture(i, shapes[i * i % 3]));
    let calls = Cell::new(0);
    let program = |p: &AnyImage| {
        calls.set(calls.get() + 1);
        p.luminance().gauss(1.0)
    };
    let session = session();
    let (each, _) = run(&session, pictures(), program, false);
    calls.set(0);
    let (all, evaluations) = run(&session, pictures(), program, true);
    assert!(all == each);
    assert_eq!((evaluations, calls.get()), (2, 2), "squares have two remainders by 3");
    let series = session.series(Vec::<Picture>::new(), program).recorded_once();
    assert_eq!(series.into_iter().count(), 0);
    assert_eq!(run(&session, pictures().take(1), program, true).0[..], each[..1]);
}

#[test]
fn many_pictures_are_a_few_evaluations() {
    let session = session();
    let shape = Shape::new(1, 1, 1);
    let before = session.stats().planned;
    let (all, evaluations) = run(&session, (0..5000).map(|i| picture(i, shape)), |p| p.convert::<u8>() + 1, true);
    assert!(all.iter().enumerate().all(|(i, bytes)| *bytes == [u64::from(((i * 31) as u8).saturating_add(1))]));
    assert!(evaluations <= 10, "{evaluations}");
    assert!(session.stats().planned - before <= 8);
    for ahead in [1, 3] {
        let series = session.series((0..9).map(|i| picture(i, shape)), |p| p.convert::<u8>()).recorded_once();
        let before = session.stats().evaluations;
        assert_eq!(series.ahead(ahead).into_iter().count(), 9);
        assert_eq!(session.stats().evaluations - before, 9 / ahead, "{ahead} in progress");
    }
}

#[test]
fn a_failed_picture_does_not_spoil_others() {
    let session = session();
    let shape = Shape::new(8, 8, 1);
    let inputs = (0..9).map(|i| if i % 4 == 2 { Err(Error::Config("broken".into())) } else { Ok(picture(i, shape)) });
    let series = session.series(inputs, |p| p.luminance().gauss(1.0)).recorded_once();
    let results: Vec<Result<_>> = series.into_iter().map(|item| item.result).collect();
    for (i, result) in results.into_iter().enumerate() {
        assert_eq!(result.err().map(|e| e.to_string()), (i % 4 == 2).then(|| "broken".to_owned()));
    }
    // An operation that fails does so for each picture.
    let series = session.series((0..5).map(|i| picture(i, shape)), |p| p.luminance().resize(0, 1, Resampling::Area));
    let errors: Vec<String> = series.recorded_once().into_iter().map(|i| i.result.unwrap_err().to_string()).collect();
    assert!(errors.len() == 5 && errors.iter().all(|e| e.contains("series_together.rs")), "{errors:?}");
}

#[test]
fn files_are_written_together() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for device in devices() {
        let session = Session::on(device).build().unwrap();
        for scaling in [Scaling::Auto, Scaling::Range, Scaling::None] {
            let write = |folder: &Path, once: bool| {
                let before = session.stats().evaluations;
                let pictures = (0..12).map(|i| picture(i, Shape::new(20, 30, 3)));
                let series = session.series(pictures, |p| p.convert::<f32>().gauss(1.5) / 255.0);
                let series = if once { series.recorded_once() } else { series };
                let name = |number: &Path| folder.join(number).with_extension("png");
                let options = SaveOptions { scaling, ..SaveOptions::default() };
                let saved = series.save(name, &options).all().unwrap();
                (saved, session.stats().evaluations - before)
            };
            let (each, _) = write(folders[0].path(), false);
            let (once, evaluations) = write(folders[1].path(), true);
            assert_eq!(evaluations, 1, "{scaling:?}");
            for (a, b) in each.iter().zip(&once) {
                assert_eq!(a.scale, b.scale);
                assert_eq!(std::fs::read(&a.path).unwrap(), std::fs::read(&b.path).unwrap());
            }
        }
    }
}

#[test]
fn plans_tell_whether_pictures_are_computed_together() {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let device = Box::new(CpuDevice::new(Some(1)).unwrap());
    let session = Session::on(device).explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap();
    let pictures = || (0..3).map(|i| picture(i, Shape::new(8, 8, 1)));
    let series = session.series(pictures(), |p| p.luminance().gauss(1.0)).recorded_once();
    assert_eq!(series.into_iter().count(), 3);
    assert!(told.lock().unwrap().contains("3 pictures as the levels of a volume"));
    let series = session.series(pictures(), |p| p.luminance().gt(0.5).label(Connectivity::FACES)).recorded_once();
    assert_eq!(series.into_iter().count(), 3);
    let told = told.lock().unwrap();
    assert!(told.contains("picture by picture: label is not computed level by level"), "{told}");
}
