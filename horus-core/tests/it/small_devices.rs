//! Programs over images in memory that a device with memory of its own cannot hold: by regions, to the same bits.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::Result;
use horus_core::image::{Image, Until};
use horus_core::io::{AnyImage, SaveOptions};
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::{CallCountsHandle, SimulatedDevice};

const HEIGHT: usize = 160;
const WIDTH: usize = 96;
const LEVELS: usize = 7;
/// Bytes of the largest image.
const IMAGE: usize = LEVELS * HEIGHT * WIDTH * 4;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(1)).unwrap()
}

/// A session on as many devices of `capacity` bytes each.
fn small(devices: usize, capacity: usize) -> (Session, Vec<CallCountsHandle>) {
    let devices: Vec<_> = (0..devices).map(|_| SimulatedDevice::new(cpu(), capacity).with_fabric()).collect();
    let logs = devices.iter().map(SimulatedDevice::call_counts).collect();
    let devices = devices.into_iter().map(|device| Arc::new(device) as Arc<dyn Device>).collect();
    (Session::over(devices).build().unwrap(), logs)
}

fn value(i: usize) -> f32 {
    ((i * 131 + i / 97 * 71) % 257) as f32 * 0.37 - 20.0
}

fn given(s: &Session, levels: usize) -> Image<f32> {
    let pixels: Vec<f32> = (0..levels * HEIGHT * WIDTH).map(value).collect();
    Image::from_slice(s, Shape::volume(levels, HEIGHT, WIDTH, 1), &pixels)
}

fn bits(image: &Image<f32>) -> Result<Vec<u32>> {
    Ok(image.to_vec()?.into_iter().map(f32::to_bits).collect())
}

/// The name of a program, and the program.
type SmallDeviceProgram = (&'static str, fn(&Session) -> Result<Vec<u32>>);

const PROGRAMS: [SmallDeviceProgram; 13] = [
    ("a filter across levels", |s| bits(&given(s, LEVELS).with_border(Border::Reflect101).gauss((1.0, 2.0, 1.5)))),
    ("many operations", |s| {
        let (a, b) = (given(s, LEVELS), given(s, LEVELS) * 0.5);
        let turned = a.with_border(Border::Reflect).shift(1, 5, -3);
        bits(&(a.gauss(1.0).absdiv(&b, 1e-3).max(&turned) - b.median(3)))
    }),
    ("one level by all", |s| {
        let (all, one) = (given(s, LEVELS), given(s, 1));
        bits(&(&all * one.gauss(2.0) + all.over(Axis::Depth).sum().convert::<f32>()))
    }),
    ("a mean, and what it divides", |s| {
        let a = given(s, LEVELS);
        bits(&(a.gauss(1.0) / a.mean()))
    }),
    ("results that are kept", |s| {
        let a = given(s, LEVELS);
        let (smooth, edges, few) = (a.gauss(1.0), a.sobel(Axis::Rows), a.gauss(1.0).step(4));
        s.evaluate()?;
        let again = bits(&(&smooth - &edges))?;
        Ok([again, bits(&smooth)?, bits(&edges)?, bits(&few)?].concat())
    }),
    ("results read together", |s| {
        let a = given(s, LEVELS);
        let (smooth, edges) = (a.gauss(1.0), a.sobel(Axis::Columns));
        let (mut one, mut two) = (vec![0.0; a.shape().len()], vec![0.0; a.shape().len()]);
        s.read_into(((&smooth, &mut one), (&edges, &mut two)))?;
        Ok([one, two].concat().into_iter().map(f32::to_bits).collect())
    }),
    ("into pixels", |s| {
        let a = given(s, LEVELS);
        let mut room = s.pixels_of::<f32>(a.shape())?;
        a.gauss(1.0).read_into(&mut room)?;
        let next = Image::from_pixels(s, room).erode(3).to_pixels()?;
        Ok(next.iter().map(|v| v.to_bits()).collect())
    }),
    ("saved and opened", |s| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.npy");
        given(s, 1).gauss(2.0).save_with(&file, &SaveOptions::default())?;
        bits(&AnyImage::open(s, &file)?.convert::<f32>().rotate(30.0, Interpolation::Bicubic))
    }),
    ("a loop", |s| bits(&s.iterate(given(s, LEVELS), 7, |u| u.gauss((0.5, 1.0, 1.0)) * 0.9)?.state)),
    ("a loop of two images until it is smooth", |s| {
        let start = (given(s, LEVELS), given(s, LEVELS).gt(0.5));
        let found =
            s.iterate(start, Until::below(0.02, 9).every(3), |(u, m)| (m.select(u, u.gauss(1.0)), m.erode(3)))?;
        let rest = found.state.1.convert::<f32>();
        Ok([bits(&found.state.0)?, bits(&rest)?, vec![found.steps as u32]].concat())
    }),
    ("a loop that is watched", |s| {
        let mut seen = Vec::new();
        let see = |_, u: &Image<f32>| -> Result<ControlFlow<()>> {
            seen.push(u.sum().get()?.to_bits() as u32);
            Ok(ControlFlow::Continue(()))
        };
        let found = s.iterate_watched(given(s, LEVELS), 4, |u| u.gauss(1.0), 2, see)?;
        Ok([bits(&found.state)?, seen].concat())
    }),
    ("there and back", |s| {
        let turned = given(s, 1).rotate(40.0, Interpolation::Bilinear).gauss(2.0);
        bits(&turned.rotate(-40.0, Interpolation::Bilinear))
    }),
    ("labels", |s| {
        let labels = given(s, 1).gt(3.0).label(horus_core::ops::components::Connectivity::FACES);
        Ok(labels.to_vec()?.into_iter().map(|n| n as u32).collect())
    }),
];

#[test]
fn programs_larger_than_a_device_give_the_same_bits_within_its_memory() {
    for (name, program) in PROGRAMS {
        let want = program(&Session::on(Box::new(cpu())).build().unwrap()).unwrap();
        for (devices, capacity) in [(1, IMAGE * 3), (1, IMAGE), (1, IMAGE / 3), (2, IMAGE / 3)] {
            let (s, logs) = small(devices, capacity);
            let got = program(&s).unwrap_or_else(|e| panic!("{name} on {devices} of {capacity} bytes: {e}"));
            assert!(got == want, "{name} on {devices} of {capacity} bytes");
            let peaks: Vec<usize> = logs.iter().map(|log| log.get().peak).collect();
            assert!(peaks.iter().all(|peak| *peak <= capacity), "{name}: {peaks:?} of {capacity} bytes");
        }
    }
}

/// A session on a device of `capacity` bytes that tells its plans.
fn explained(capacity: usize) -> (Session, Arc<Mutex<String>>) {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let builder = Session::on(Box::new(SimulatedDevice::new(cpu(), capacity)));
    (builder.explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap(), told)
}

#[test]
fn images_are_evicted_where_regions_would_compute_much_again() -> Result<()> {
    let level = HEIGHT * WIDTH * 4;
    let run = |capacity, far: f64| {
        let (s, told) = explained(capacity);
        let a = given(&s, 1);
        let (b, c) = (a.gauss(far), a.sobel(Axis::Rows).gauss(far));
        let got = bits(&(b.gauss(far) - c.gauss(far) * a))?;
        let text = std::mem::take(&mut *told.lock().unwrap());
        Ok::<_, horus_core::error::Error>((got, text.contains("regions:")))
    };
    for (far, by_regions) in [(0.5, true), (20.0, false)] {
        let (want, whole) = run(1 << 30, far)?;
        let (got, regions) = run(4 * level, far)?;
        assert!(got == want && !whole);
        assert_eq!(regions, by_regions, "filters of {far} pixels");
    }
    Ok(())
}

#[test]
fn images_on_a_device_make_room_and_stay_what_they_are() -> Result<()> {
    let program = |s: &Session| {
        let kept = given(s, 2).gauss(1.0);
        s.evaluate()?;
        // The kept image is on the device only, and is read with others that do not fit beside it.
        let all: Vec<Image<f32>> = (0..4).map(|i| given(s, 2).shift(0, i, 0) * &kept).collect();
        let sum = all.iter().skip(1).fold(all[0].gauss(1.0), |sum, image| sum + image.gauss(1.0));
        Ok::<_, horus_core::error::Error>([bits(&sum)?, bits(&kept)?, bits(&sum)?].concat())
    };
    let want = program(&Session::on(Box::new(cpu())).build()?)?;
    for capacity in [IMAGE * 4, IMAGE, IMAGE / 2] {
        assert!(program(&explained(capacity).0)? == want, "{capacity} bytes");
    }
    Ok(())
}

#[test]
fn a_loop_on_a_small_device_needs_no_memory_for_two_states() -> Result<()> {
    let program = |s: &Session| s.iterate(given(s, LEVELS), 5, |u| u.gauss(1.0))?.state.sum().get();
    let want = program(&Session::on(Box::new(cpu())).build()?)?;
    let device = SimulatedDevice::new(cpu(), IMAGE / 3);
    let s = Session::on(Box::new(device)).host_memory(IMAGE * 9 / 5).build()?;
    assert_eq!(program(&s)?.to_bits(), want.to_bits(), "the state is in files");
    Ok(())
}

#[test]
fn a_loop_that_does_not_divide_says_so_or_evicts() -> Result<()> {
    let program = |s: &Session| {
        let start = Image::from_fn(s, WIDTH, WIDTH, |y, x| value(y * WIDTH + x));
        bits(&s.iterate(start, 3, |u| u.matmul(u) * 1e-3)?.state)
    };
    let want = program(&Session::on(Box::new(cpu())).build()?)?;
    let image = WIDTH * WIDTH * 4;
    assert!(program(&explained(3 * image).0)? == want);
    let told = program(&explained(image).0).unwrap_err().to_string();
    assert!(told.contains("out of memory") && told.contains("matmul"), "{told}");
    Ok(())
}

#[test]
fn a_failure_in_a_region_leaves_the_images() -> Result<()> {
    for n in 0..40 {
        let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), IMAGE / 2));
        let s = Session::on(Box::new(device)).build()?;
        let a = given(&s, LEVELS);
        fault.fail_after(n);
        let met = bits(&a.gauss(1.0));
        let failed = fault.disarm();
        assert!(failed || met.is_ok(), "{n}");
        assert_eq!(a.to_vec()?, (0..LEVELS * HEIGHT * WIDTH).map(value).collect::<Vec<f32>>(), "{n}");
        if let Ok(got) = &met {
            assert!(got == &bits(&a.gauss(1.0))?);
        }
    }
    Ok(())
}
