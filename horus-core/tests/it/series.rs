//! Recurrent programs: each frame changes a state that the next one reads, and a small value is
//! observed.

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::{Image, Value};
use horus_core::session::{Session, Stats};
use horus_testing::simulated::SimulatedDevice;
use std::sync::Arc;

const FRAMES: usize = 200;
const HEIGHT: usize = 24;
const WIDTH: usize = 40;
const BYTES: usize = HEIGHT * WIDTH * 4;

fn pixels(k: usize) -> Vec<f32> {
    (0..HEIGHT * WIDTH).map(|i| ((i * 7 + k * 31) % 101) as f32 / 101.0).collect()
}

fn frame(s: &Session, k: usize) -> Image<f32> {
    Image::from_slice(s, (HEIGHT, WIDTH), &pixels(k))
}

/// The moving pixels of a frame, and the background after it.
fn step(f: &Image<f32>, background: &Image<f32>) -> Result<(Value<f64>, Image<f32>)> {
    let moving = f.absdiff(background).gt(0.2).convert::<f32>();
    Ok((moving.sum(), ((background * 0.95) + (f * 0.05))))
}

/// The counts by plain loops: the arithmetic of each pixel is the same, and sums of ones are exact.
fn expected() -> Vec<f64> {
    let mut background = vec![0.5f32; HEIGHT * WIDTH];
    let count = |k: usize| {
        let f = pixels(k);
        let moving = f.iter().zip(&background).filter(|(f, b)| (*f - **b).abs() > 0.2).count();
        background.iter_mut().zip(&f).for_each(|(b, f)| *b = *b * 0.95 + f * 0.05);
        moving as f64
    };
    (0..FRAMES).map(count).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum ObservationOrder {
    AtEachFrame,
    InOrder,
    LastFirst,
}

fn run(s: &Session, look: ObservationOrder) -> Result<Vec<f64>> {
    let mut background = Image::constant(s, (HEIGHT, WIDTH), 0.5f32);
    let (mut counts, mut values) = (Vec::new(), Vec::new());
    for k in 0..FRAMES {
        let f = frame(s, k);
        let (count, next) = step(&f, &background)?;
        background = next;
        match look {
            ObservationOrder::AtEachFrame => counts.push(count.get()?),
            _ => values.push(count),
        }
    }
    if look == ObservationOrder::LastFirst {
        values.reverse();
    }
    for v in &values {
        counts.push(v.get()?);
    }
    if look == ObservationOrder::LastFirst {
        counts.reverse();
    }
    Ok(counts)
}

fn check(stats: Stats, look: ObservationOrder, what: &str) {
    assert!(stats.planned <= 8, "{what}: {} plans", stats.planned);
    assert!(stats.made.launches <= 6 * FRAMES, "{what}: {} launches", stats.made.launches);
    let once = look == ObservationOrder::LastFirst;
    assert!(once || stats.evaluations == FRAMES, "{what}: {} evaluations", stats.evaluations);
}

#[test]
fn a_running_state_is_computed_once_per_frame() {
    let want = expected();
    for look in [ObservationOrder::AtEachFrame, ObservationOrder::InOrder, ObservationOrder::LastFirst] {
        for ranks in 1..=3 {
            let all = ThreadComm::run(ranks, |comm| {
                let builder = Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).communicator(Arc::new(comm));
                let s = builder.build().unwrap();
                let counts = run(&s, look).unwrap_or_else(|e| panic!("{e}"));
                (counts, s.stats())
            });
            for (counts, stats) in all {
                assert_eq!(counts, want);
                check(stats, look, &format!("{ranks} ranks"));
            }
        }
    }
}

#[test]
fn a_running_state_takes_the_memory_of_a_few_images() {
    for look in [ObservationOrder::AtEachFrame, ObservationOrder::InOrder, ObservationOrder::LastFirst] {
        let device = SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 30);
        let log = device.call_counts();
        let s = Session::on(Box::new(device)).build().unwrap();
        assert_eq!(run(&s, look).unwrap(), expected());
        // Collected frames are given to the session and stay on the host; the device holds each of
        // them only while it is read, and at most the last of the states.
        assert!(log.get().peak <= 12 * BYTES, "{} images at once", log.get().peak / BYTES);
        assert!(log.get().bytes <= 2 * BYTES, "{} bytes left", log.get().bytes);
    }
}
