//! An operation that is recorded once has the same effect on each picture as when it is called for
//! each.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::{AnyImage, OpenOptions, Picture, SaveOptions, Scaling};
use horus_core::ops::geometric::Interpolation;
use horus_core::session::{Progress, Session};
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::SimulatedDevice;

/// A distinct picture; every third is larger, every fourth has 16 bits.
fn picture(i: usize) -> Result<Picture> {
    let (width, height) = if i.is_multiple_of(3) { (40, 30) } else { (31, 17) };
    let deep = i.is_multiple_of(4);
    let mut bytes = format!("P5\n{width} {height}\n{}\n", if deep { 65535 } else { 255 }).into_bytes();
    bytes.extend((0..width * height * (1 + usize::from(deep))).map(|k| (k * 7 + i * 31) as u8));
    Picture::read(&bytes, &OpenOptions::default())
}

fn devices() -> [Box<dyn Device>; 3] {
    let cpu = || CpuDevice::new(Some(2)).unwrap();
    let small = SimulatedDevice::new(cpu(), 1 << 20);
    [Box::new(cpu()), Box::new(small), Box::new(SimulatedDevice::new(cpu(), 1 << 24).requiring_preparation())]
}

fn lines(picture: &AnyImage) -> Image<f32> {
    let image = picture.luminance();
    image
        .rotate(30.0, Interpolation::Bilinear)
        .gauss(1.5)
        .max(image.gauss_xy(2.0, 1.0, 0, 2))
        .rotate(-30.0, Interpolation::Bilinear)
}

#[test]
fn files_are_the_same_bytes() {
    for scaling in [Scaling::Range, Scaling::Auto] {
        for device in devices() {
            let session = Session::on(device).build().unwrap();
            let options = SaveOptions { scaling, ..SaveOptions::default() };
            let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
            let calls = Cell::new(0);
            let write = |folder: &Path, once: bool| {
                let series = session.series((0..12).map(picture), |p| {
                    calls.set(calls.get() + 1);
                    lines(p)
                });
                let series = if once { series.recorded_once() } else { series };
                // Names of two kinds.
                let name = |number: &Path| {
                    let odd = number.to_str().is_some_and(|n| n.ends_with('5'));
                    folder.join(number).with_extension(if odd { "tif" } else { "png" })
                };
                series.save(name, &options).all().unwrap()
            };
            let (each, before) = (write(folders[0].path(), false), session.stats());
            assert_eq!(calls.replace(0), 12);
            let (once, after) = (write(folders[1].path(), true), session.stats());
            assert_eq!(calls.get(), 5, "two sizes of two depths, and a file of another format");
            assert_eq!(after.evaluations - before.evaluations, 5, "those of a kind together");
            for (a, b) in each.iter().zip(&once) {
                assert_eq!(a.scale, b.scale);
                assert_eq!(std::fs::read(&a.path).unwrap(), std::fs::read(&b.path).unwrap());
            }
        }
    }
}

#[test]
fn images_of_the_session_take_part() {
    for device in devices() {
        let session = Session::on(device).build().unwrap();
        let dark = Image::from_slice(&session, (17, 31), &(0..17 * 31).map(|i| i as f32 * 1e-4).collect::<Vec<_>>());
        let flat = dark.gauss(2.0); // not computed yet
        let of = |i: usize| picture([1, 2, 5, 7, 10, 11][i]);
        let operation = |p: &AnyImage| (p.luminance() - &dark).absdiff(&flat);
        let pixels = |once: bool| -> Vec<Vec<f32>> {
            let series = session.series((0..6).map(of), operation);
            let series = if once { series.recorded_once() } else { series };
            series.into_iter().map(|item| item.result.unwrap().to_vec()).collect()
        };
        let once = pixels(true);
        assert_eq!(once, pixels(false));
        assert_eq!(flat.to_vec().unwrap().len(), 17 * 31, "it is still there");
    }
}

#[test]
fn an_operation_that_looks_is_called_for_each() {
    let session = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap();
    let operation = |p: &AnyImage| {
        let image = p.luminance();
        let most = image.max_value().get().expect("a value");
        image * (1.0 / most)
    };
    let series = session.series((1..3).map(picture), operation).recorded_once();
    let most: Vec<f32> = series.into_iter().map(|i| i.result.unwrap().iter().copied().fold(0.0, f32::max)).collect();
    assert!(most.iter().all(|m| (m - 1.0).abs() < 1e-6), "{most:?}");
}

/// Pictures of one kind.
const ALIKE: [usize; 4] = [1, 2, 5, 7];

fn sharp(smooth: &Image<f32>, p: &AnyImage) -> Image<f32> {
    p.luminance() - smooth
}

fn sharpened() -> Vec<Vec<f32>> {
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    let series = session.series(ALIKE.map(picture), |p| sharp(&p.luminance().gauss(1.5), p));
    series.into_iter().map(|item| item.result.unwrap().to_vec()).collect()
}

#[test]
fn what_is_evaluated_while_the_operation_is_recorded_leaves_it_alone() {
    type Meanwhile = fn(&Image<f32>);
    let evaluate: Meanwhile = |image| image.session().evaluate().unwrap();
    let look: Meanwhile = |image| assert_eq!(image.to_vec().unwrap().len(), 17 * 31);
    let much: Meanwhile = |image| drop((0..9u8).map(|i| image + f32::from(i)).collect::<Vec<_>>());
    let cases: [(&str, bool, Meanwhile, usize); 9] = [
        ("evaluated", true, evaluate, 1),
        ("evaluated", false, evaluate, 4), // the series cannot know that nothing depends on the value
        ("started", true, |image| image.session().start(), 1),
        ("started", false, |image| image.session().start(), 1),
        ("started alone", false, Image::start, 1),
        ("much is recorded", true, much, 1),
        ("much is recorded", false, much, 1),
        ("looked at", true, look, 4),
        ("looked at", false, look, 4),
    ];
    let want = sharpened();
    for (name, elsewhere, meanwhile, most) in cases {
        let device = Box::new(CpuDevice::new(Some(1)).unwrap());
        let session = Session::on(device).flush_limits(8, usize::MAX).build().unwrap();
        let calls = Cell::new(0);
        let series = session.series(ALIKE.map(picture), |p| {
            calls.set(calls.get() + 1);
            let smooth = p.luminance().gauss(1.5);
            if elsewhere {
                std::thread::scope(|scope| drop(scope.spawn(|| meanwhile(&smooth))));
            } else {
                meanwhile(&smooth);
            }
            sharp(&smooth, p)
        });
        let found: Vec<_> = series.recorded_once().into_iter().map(|i| i.result.unwrap().to_vec()).collect();
        assert!(found == want, "{name}, by another thread: {elsewhere}");
        assert_eq!(calls.get(), most, "{name}, by another thread: {elsewhere}");
    }
}

#[test]
fn what_is_started_before_the_picture_is_evaluated_is_no_part_of_the_operation() {
    let (begin, begun) = mpsc::channel();
    let begin = Mutex::new(Some(begin));
    let observer = move |_: Progress<'_>| {
        if let Some(begin) = begin.lock().unwrap().take() {
            begin.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(200)); // recorded and started work waits
        }
    };
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).observer(observer).build().unwrap();
    let (begun, held) = (Cell::new(Some(begun)), RefCell::default());
    let series = session.series(ALIKE.map(picture), |p| {
        if let Some(begun) = begun.take() {
            let other = Image::constant(&session, (3, 3), 1.0f32) + 1.0;
            std::thread::spawn(move || other.to_vec());
            begun.recv().unwrap();
        }
        let smooth = p.luminance().gauss(1.5);
        *held.borrow_mut() = Some(smooth.clone());
        session.start();
        sharp(&smooth, p)
    });
    let found: Vec<_> = series.recorded_once().into_iter().map(|i| i.result.unwrap().to_vec()).collect();
    assert!(found == sharpened());
}

#[test]
fn an_operation_that_ignores_the_picture_is_called_for_each() {
    let session = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap();
    let calls = Cell::new(0);
    let series = session.series((0..4).map(|_| picture(1)), |_| {
        calls.set(calls.get() + 1);
        Image::constant(&session, (2, 2), calls.get() as f32)
    });
    let values: Vec<f32> = series.recorded_once().into_iter().map(|i| i.result.unwrap()[0]).collect();
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_failure_is_of_one_picture() {
    for once in [false, true] {
        let mut failures = 0;
        for call in 0.. {
            let (device, fault) = FaultyDevice::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 24));
            let session = Session::on(Box::new(device)).build().unwrap();
            let series = session.series((0..6).map(|_| picture(1)), lines).ahead(1);
            let series = if once { series.recorded_once() } else { series };
            let (mut good, mut failed) = (None, 0);
            for (i, item) in series.into_iter().enumerate() {
                match item.result {
                    Ok(pixels) => {
                        let pixels = pixels.to_vec();
                        assert_eq!(*good.get_or_insert_with(|| pixels.clone()), pixels, "picture {i}");
                    }
                    Err(e) => {
                        assert!(e.to_string().contains("on purpose"), "{e}");
                        assert!(!e.to_string().contains("engine.rs"), "{e}");
                        failed += 1;
                    }
                }
                if i == 1 {
                    fault.fail_after(call);
                }
            }
            assert!(failed <= 1, "{failed} pictures after call {call}");
            failures += failed;
            if !fault.disarm() {
                break;
            }
        }
        assert!(failures > 6, "{failures}");
    }
}

#[test]
fn ranks_write_the_same_files() {
    let options = SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() };
    let run = |ranks: usize| -> Vec<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        ThreadComm::run(ranks, |comm| {
            let device = Box::new(CpuDevice::new(Some(1)).unwrap());
            let session = Session::on(device).communicator(Arc::new(comm)).build().unwrap();
            let name = |number: &Path| path.join(number).with_extension("png");
            let saved = session.series((0..9).map(picture), lines).recorded_once().save(name, &options).all().unwrap();
            assert_eq!(saved.len(), 9);
        });
        (0..9).map(|i| std::fs::read(path.join(format!("{i:06}.png"))).unwrap()).collect()
    };
    let one = run(1);
    assert_eq!(run(2), one);
    assert_eq!(run(3), one);
}
