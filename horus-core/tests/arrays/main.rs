//! Pixels between the program's memory and images: every path preserves the values, shared memory
//! never changes, and unnecessary copies are avoided.

mod device;
mod external;

use std::sync::Arc;

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::dtype::Pixel;
use horus_core::error::Error;
use horus_core::host::buffer::Pool;
use horus_core::host::workers::Workers;
use horus_core::image::{Image, Pixels};
use horus_core::plan::Mode;
use horus_core::plan::work::ProgramWork;
use horus_core::session::{Chooser, Session};
use horus_core::shape::Shape;
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::SimulatedDevice;

use device::Locking;

fn cpu() -> Box<dyn Device> {
    Box::new(CpuDevice::new(Some(2)).unwrap())
}

fn simulated() -> Box<dyn Device> {
    Box::new(SimulatedDevice::new(CpuDevice::new(Some(2)).unwrap(), 1 << 26))
}

fn locking() -> Box<dyn Device> {
    Box::new(Locking::new(1 << 26, usize::MAX).0)
}

fn taking() -> Box<dyn Device> {
    Box::new(Locking::new(1 << 26, 1).0)
}

const DEVICES: [fn() -> Box<dyn Device>; 4] = [cpu, simulated, locking, taking];

/// Tests every way into and out of a session.
fn everywhere<T: Pixel>(session: &Session, shape: Shape, value: impl Fn(usize) -> T) {
    let Shape { height, width, channels, .. } = shape;
    let values: Vec<T> = (0..shape.len()).map(&value).collect();
    // Saturates as images do.
    let want: Vec<T> = values.iter().map(|v| v.max(T::ONE).add(T::ONE)).collect();
    let mut pixels = session.pixels::<T>(height, width, channels).unwrap();
    assert!(pixels.iter().all(|v| *v == T::ZERO), "fresh pixels are 0");
    assert_eq!((pixels.shape(), pixels.len()), (shape, shape.len()));
    pixels.copy_from_slice(&values);
    let array = pixels.to_array();
    let ways_in = [
        Image::from_pixels(session, pixels.clone()),
        Image::from_slice(session, shape, &values),
        Image::from_array(session, array.view()),
        Image::from_array(session, pixels.view()),
    ];
    let mut kept = session.pixels::<T>(height, width, channels).unwrap();
    let mut vec = vec![T::ZERO; shape.len()];
    for image in ways_in {
        let result = image.max(T::ONE) + T::ONE;
        assert_eq!(result.to_vec().unwrap(), want);
        assert_eq!(result.to_pixels().unwrap()[..], want);
        kept.fill(T::ZERO);
        result.read_into(&mut kept).unwrap();
        assert_eq!(kept[..], want);
        assert_eq!(kept[kept.len() - 1], want[want.len() - 1]);
        vec.fill(T::ZERO);
        result.read_into(&mut vec).unwrap();
        assert_eq!(vec, want);
        vec.fill(T::ZERO);
        result.read_into(&mut vec[..]).unwrap();
        assert_eq!(vec, want);
        let array = result.to_array::<ndarray::Ix3>().unwrap();
        assert_eq!(array, kept.view());
        let first = session.rank() == 0;
        assert_eq!(result.gather().unwrap().map(|p| p.to_vec()), first.then(|| want.clone()));
        kept.fill(T::ZERO);
        vec.fill(T::ZERO);
        assert_eq!(result.gather_into(&mut kept).unwrap(), first);
        assert_eq!(result.gather_into(if first { &mut vec[..] } else { &mut [] }).unwrap(), first);
        let there = if first { want.clone() } else { vec![T::ZERO; want.len()] };
        assert_eq!((&kept[..], &vec), (&there[..], &there));
        // An image without operations also comes back.
        assert_eq!(image.to_pixels().unwrap()[..], values);
        image.read_into(&mut kept).unwrap();
        assert_eq!(kept[..], values);
    }
}

#[test]
fn all_types_and_channels_go_in_and_out_on_every_device_and_any_ranks() {
    for device in DEVICES {
        for (ranks, mode) in [(1, Mode::Fused), (1, Mode::Naive), (2, Mode::Fused), (3, Mode::Lazy)] {
            ThreadComm::run(ranks, |comm| {
                let session = Session::on(device()).mode(mode).communicator(Arc::new(comm)).build().unwrap();
                everywhere(&session, Shape::new(5, 7, 1), |i| i as u8 * 7);
                everywhere(&session, Shape::new(3, 4, 3), |i| (5000 * i).min(65_535) as u16);
                everywhere(&session, Shape::new(1, 1, 2), |i| i as i32 - 9);
                everywhere(&session, Shape::new(11, 2, 4), |i| i as f32 - 40.5);
                everywhere(&session, Shape::new(2, 90, 1), |i| (i as f64).sqrt());
            });
        }
    }
}

#[test]
fn masks_go_in_and_out() {
    for device in DEVICES {
        ThreadComm::run(2, |comm| {
            let session = Session::on(device()).communicator(Arc::new(comm)).build().unwrap();
            let mut mask = session.pixels::<bool>(4, 5, 1).unwrap();
            assert!(mask.iter().all(|v| !v));
            mask[7] = true;
            mask[19] = true;
            let want: Vec<bool> = (0..20).map(|i| i != 7 && i != 19).collect();
            let not = !Image::from_pixels(&session, mask.clone());
            let (mut kept, mut vec) = (session.pixels::<bool>(4, 5, 1).unwrap(), vec![true; 20]);
            not.read_into(&mut kept).unwrap();
            not.read_into(&mut vec).unwrap();
            assert_eq!((&kept[..], &vec, not.to_vec().unwrap()), (&want[..], &want, want.clone()));
            assert_eq!(not.to_pixels().unwrap()[..], want);
        });
    }
}

#[test]
fn large_images_are_copied_by_all_threads() {
    for device in DEVICES {
        let session = Session::on(device()).build().unwrap();
        let shape = Shape::new(700, 1001, 2);
        everywhere(&session, shape, |i| (i as f32).mul_add(0.25, -9.0));
    }
}

#[test]
fn whoever_writes_changes_nothing_that_others_have() {
    for device in DEVICES {
        let session = Session::on(device()).build().unwrap();
        let mut pixels = session.pixels::<i32>(10, 10, 1).unwrap();
        pixels.fill(3);
        let other = pixels.clone();
        let image = Image::from_pixels(&session, pixels.clone());
        pixels.fill(4); // the image was not evaluated
        assert_eq!((image.sum().get().unwrap(), other[0], pixels[0]), (300.0, 3, 4));
        let twice = &image * 2;
        let mut result = twice.to_pixels().unwrap();
        let shared = result.clone();
        result.view_mut()[[9, 9, 0]] = 0;
        assert_eq!((result[99], shared[99], twice.pixel((9, 9)).unwrap()), (0, 6, 6));
        // Reused memory that became an image, and is then written by another.
        let kept = Image::from_pixels(&session, result.clone());
        (&image + 10).read_into(&mut result).unwrap();
        assert_eq!((result[99], kept.pixel((9, 9)).unwrap(), kept.pixel((0, 0)).unwrap()), (13, 0, 6));
        // An image read into the memory that it is computed from.
        let mut state = session.pixels::<i32>(2, 2, 1).unwrap();
        for i in 0..5 {
            assert_eq!(state[..], [i; 4]);
            (Image::from_pixels(&session, state.clone()) + 1).read_into(&mut state).unwrap();
        }
    }
}

#[test]
fn memory_stays_where_it_is_and_is_page_locked_where_that_is_of_use() {
    let (device, counts) = Locking::new(1 << 20, usize::MAX);
    let session = Session::on(Box::new(device)).build().unwrap();
    let mut frame = session.pixels::<f32>(50, 40, 1).unwrap();
    let mut result = session.pixels::<f32>(50, 40, 1).unwrap();
    let (from, to) = (frame.as_ptr(), result.as_ptr());
    assert!(frame.is_page_locked() && result.is_page_locked());
    for i in 0..4 {
        frame.fill(i as f32);
        let image = Image::from_pixels(&session, frame.clone());
        (image * 3.0).read_into(&mut result).unwrap();
        assert_eq!(result[1999], 3.0 * i as f32);
        assert_eq!((frame.as_ptr(), result.as_ptr()), (from, to), "copied in turn {i}");
    }
    assert_eq!(counts.get(), [2, 4, 0], "the device read the frames by itself");
    let fresh = Image::from_pixels(&session, frame.clone()).gauss(1.0).to_pixels().unwrap();
    assert!(fresh.is_page_locked());
    // A copy made because of sharing is of the same kind.
    let shared = frame.clone();
    frame[0] = 1.0;
    assert!(frame.is_page_locked() && frame.as_ptr() != shared.as_ptr());
    assert_eq!(counts.get()[0], 4);
    drop((frame, shared, result, fresh));
    assert_eq!(counts.get()[0], 0, "all of it went back");
}

#[test]
fn the_cpu_copies_nothing() {
    let session = Session::on(cpu()).build().unwrap();
    let mut pixels = session.pixels::<u16>(30, 30, 2).unwrap();
    let at = pixels.as_ptr();
    pixels.fill(7);
    let image = Image::from_pixels(&session, pixels);
    let mut back = image.to_pixels().unwrap();
    assert_eq!(back.as_ptr(), at);
    assert!(!back.is_page_locked());
    drop(image);
    back[0] = 1;
    assert_eq!(back.as_ptr(), at, "nobody else has it");
    let result = (Image::from_pixels(&session, back) + 1).to_pixels().unwrap();
    assert_eq!((result[0], result[1]), (2, 8));
    let mut kept = session.pixels::<u16>(30, 30, 2).unwrap();
    let image = Image::from_pixels(&session, result);
    image.read_into(&mut kept).unwrap();
    assert_eq!((kept[0], kept[1]), (2, 8));
    kept[0] = 9;
    assert_eq!(image.pixel((0, 0)).unwrap(), 2);
}

#[test]
fn pages_that_cannot_be_locked_are_ordinary_memory() {
    let (device, counts) = Locking::new(1000, usize::MAX);
    let session = Session::on(Box::new(device)).build().unwrap();
    let mut pixels = session.pixels::<f32>(20, 20, 1).unwrap();
    assert!(!pixels.is_page_locked() && session.pixels::<f32>(2, 2, 1).unwrap().is_page_locked());
    pixels.fill(2.0);
    let image = Image::from_pixels(&session, pixels) * 2.0;
    let result = image.to_pixels().unwrap();
    assert!(!result.is_page_locked() && result.iter().all(|v| *v == 4.0));
    assert_eq!(counts.get()[1], 0);
}

/// Chooses a device that locks pages, or the CPU.
struct LockingChooser(bool);

impl Chooser for LockingChooser {
    fn choose(&self, _: &ProgramWork, _: &dyn Communicator) -> Result<Arc<dyn Device>, Error> {
        Ok(if self.0 { locking() } else { cpu() }.into())
    }
}

#[test]
fn memory_given_before_the_device_is_known_is_replaced_by_better() {
    for separate in [true, false] {
        let workers = Arc::new(Workers::new(Some(2)).unwrap());
        let session =
            Session::deferred(Arc::new(LockingChooser(separate)), workers, Pool::new(1 << 20)).build().unwrap();
        let mut frame = session.pixels::<f32>(20, 30, 1).unwrap();
        let mut result = session.pixels::<f32>(20, 30, 1).unwrap();
        let mut never = session.pixels::<f32>(2, 3, 1).unwrap();
        frame.fill(1.0);
        assert!(!frame.is_page_locked());
        for i in 0..3 {
            frame[0] = i as f32;
            assert_eq!(frame.is_page_locked(), separate && i > 0, "turn {i}");
            (Image::from_pixels(&session, frame.clone()) + 1.0).read_into(&mut result).unwrap();
            assert_eq!((result[0], result[1], result[599]), (i as f32 + 1.0, 2.0, 2.0));
            assert_eq!(result.is_page_locked(), separate);
        }
        drop(session);
        never[5] = 7.0;
        assert_eq!(never[..], [0.0, 0.0, 0.0, 0.0, 0.0, 7.0]);
    }
}

#[test]
fn slices_go_to_a_device_that_takes_them_at_once() {
    let (device, counts) = Locking::new(0, 1000);
    let session = Session::on(Box::new(device)).build().unwrap();
    let mut values: Vec<u8> = (0..1200).map(|i| (i % 251) as u8).collect();
    let image = Image::from_slice(&session, (30, 40), &values);
    let small = Image::from_slice(&session, (1, 3), &values[..3]);
    let want = values.clone();
    values.fill(0);
    assert_eq!((counts.get()[2], session.stats().made.uploads), (1, 0));
    assert_eq!((image.to_vec().unwrap(), small.to_vec().unwrap()), (want.clone(), want[..3].to_vec()));
    assert_eq!((&image - 1).sum().get().unwrap(), want.iter().map(|v| f64::from(v.saturating_sub(1))).sum::<f64>());
    assert_eq!(session.stats().made.uploads, 1, "only that at the beginning");
    // In naive mode copies surround operations.
    let (device, counts) = Locking::new(0, 1000);
    let session = Session::on(Box::new(device)).mode(Mode::Naive).build().unwrap();
    assert_eq!(Image::from_slice(&session, (30, 40), &want).to_vec().unwrap(), want);
    assert_eq!(counts.get()[2], 0);
}

#[test]
fn pixels_outlive_their_session_and_serve_others() {
    let (device, counts) = Locking::new(1 << 20, usize::MAX);
    let first = Session::on(Box::new(device)).build().unwrap();
    let mut pixels = first.pixels::<f64>(6, 6, 1).unwrap();
    pixels.fill(1.5);
    let result = (Image::from_pixels(&first, pixels.clone()) * 2.0).to_pixels().unwrap();
    drop(first);
    assert_eq!((pixels[35], result[35], counts.get()[0]), (1.5, 3.0, 2));
    for device in DEVICES {
        let session = Session::on(device()).build().unwrap();
        let image = Image::from_pixels(&session, pixels.clone()) + Image::from_pixels(&session, result.clone());
        image.read_into(&mut pixels).unwrap();
        image.read_into(&mut pixels).unwrap();
        drop((image, session));
        assert!(pixels.iter().all(|v| *v == 4.5));
        pixels.fill(1.5);
    }
    drop((pixels, result));
    assert_eq!(counts.get()[0], 0);
}

/// The line that an error names, without file and column.
fn line(error: &str) -> u32 {
    let at = error.rsplit_once("main.rs:").unwrap_or_else(|| panic!("{error} names no line")).1;
    at.split(':').next().unwrap().parse().unwrap()
}

#[test]
fn wrong_sizes_are_errors_that_name_the_call() {
    for device in DEVICES {
        let session = Session::on(device()).build().unwrap();
        let image = Image::<f32>::zeros(&session, (3, 4));
        let first = line!();
        let errors = [
            session.pixels::<u8>(0, 4, 1).unwrap_err(),
            session.pixels::<u8>(4, 4, 0).unwrap_err(),
            session.pixels::<f64>(1 << 40, 1 << 40, 1).unwrap_err(),
            image.read_into(&mut [0.0; 11]).unwrap_err(),
            image.read_into(&mut vec![0.0; 13]).unwrap_err(),
            image.read_into(&mut session.pixels(4, 3, 1).unwrap()).unwrap_err(),
            image.gather_into(&mut session.pixels(3, 4, 2).unwrap()).unwrap_err(),
        ];
        let texts = errors.map(|e| e.to_string());
        let parts = ["0x4", "4x4x0", "too large", "11 values", "13 values", "4x3 pixels", "3x4x2 pixels"];
        for (i, (text, part)) in texts.iter().zip(parts).enumerate() {
            assert!(text.contains(part), "{text}");
            assert_eq!(line(text), first + 2 + i as u32, "{text}");
        }
        assert!(texts[3].starts_with("read_into: the image has 3x4 pixels, and there is room for "), "{}", texts[3]);
        // The image's own error comes first.
        let failed = image.gauss(-1.0).read_into(&mut [0.0; 2]).unwrap_err().to_string();
        assert!(failed.contains("sigma is -1"), "{failed}");
    }
}

#[test]
fn a_rank_whose_memory_does_not_fit_ends_all_with_an_error() {
    let errors = ThreadComm::run(3, |comm| {
        let rank = comm.rank();
        let session = Session::on(simulated()).communicator(Arc::new(comm)).build().unwrap();
        let image = Image::<f32>::zeros(&session, (3, 4));
        image.read_into(&mut vec![0.0; if rank == 1 { 11 } else { 12 }]).unwrap_err().to_string()
    });
    assert!(errors.iter().any(|e| e.contains("11 values")), "{errors:?}");
}

#[test]
fn what_fails_on_the_way_leaves_memory_and_image_usable() {
    let (device, fault) = FaultyDevice::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20));
    let session = Session::on(Box::new(device)).build().unwrap();
    let mut pixels = session.pixels::<f32>(8, 8, 1).unwrap();
    pixels.fill(2.0);
    let image = Image::from_pixels(&session, pixels.clone());
    let mut kept = vec![0.0; 64];
    let mut failures = 0;
    for n in 0..10 {
        fault.fail_after(n);
        let read = (&image * 2.0).read_into(&mut kept);
        if fault.disarm() {
            let error = read.unwrap_err().to_string();
            assert!(error.contains("on purpose"), "{error}");
            failures += 1;
        }
        (&image * 2.0).read_into(&mut kept).unwrap();
        (&image * 3.0).read_into(&mut pixels).unwrap();
        assert!(kept.iter().all(|v| *v == 4.0) && pixels.iter().all(|v| *v == 6.0));
    }
    assert!(failures > 1, "{failures} calls fail");
}

#[test]
fn pixels_say_what_they_are() {
    let session = Session::on(locking()).build().unwrap();
    let pixels: Pixels<u16> = session.pixels(3, 4, 2).unwrap();
    assert_eq!(format!("{pixels:?}"), "Pixels(3x4x2 u16, page-locked)");
    assert_eq!(pixels.view().dim(), (3, 4, 2));
}
