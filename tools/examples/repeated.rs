//! The host's time for a detector that is recorded anew for each picture, and whose plan is known: on a device that
//! computes nothing, so that all time is the host's.
//!
//! `cargo run --release -p horus-tools --example repeated -- [PICTURES]`; each number is the least of all pictures.
//!
//! With `PICTURES DEVICE SIDE...`, ConvRot on a device: the median milliseconds of a picture of so many rows and columns, and
//! of those the milliseconds without recording it again.

use std::any::Any;
use std::hint::black_box;
use std::time::{Duration, Instant};

use horus::prelude::{Error, Image};
use horus_apps::detectors::{Detector, Params, conv2d, convrot, convuv};
use horus_core::cpu::device::CpuDevice;
use horus_core::device::{
    Batch, BatchedLaunch, Batching, Device, DeviceMemory, DeviceNames, Launch, Memory, MemoryKind, Staging,
};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::workers::Workers;
use horus_core::session::Session;

type DeviceResult = Result<(), DeviceError>;

/// A device with memory of its own that computes and copies nothing, and submits launches together.
struct IdleDevice(CpuDevice);

/// So many bytes that are not there.
#[derive(Debug)]
struct AbsentMemory(usize);

impl DeviceMemory for AbsentMemory {
    fn len(&self) -> usize {
        self.0
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[derive(Debug)]
struct JointBatch;
impl Batch for JointBatch {}

impl Staging for IdleDevice {}

impl Batching for IdleDevice {
    fn batch(&self, _: &[BatchedLaunch<'_>]) -> Result<Option<Box<dyn Batch>>, DeviceError> {
        Ok(Some(Box::new(JointBatch)))
    }
    fn submit(&self, _: &mut dyn Batch, _: &[&Memory], _: &mut [Memory]) -> Result<bool, DeviceError> {
        Ok(true)
    }
}

impl Device for IdleDevice {
    fn names(&self) -> DeviceNames {
        DeviceNames::named("a device that computes nothing")
    }
    fn memory(&self) -> MemoryKind<'_> {
        MemoryKind::Separate(Some(1 << 37))
    }
    fn workers(&self) -> &Workers {
        self.0.workers()
    }
    fn staging(&self) -> &dyn Staging {
        self
    }
    fn batching(&self) -> Option<&dyn Batching> {
        Some(self)
    }
    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        Ok(Memory::Device(Box::new(AbsentMemory(bytes))))
    }
    fn write(&self, _: &[u8], _: &mut Memory, _: usize) -> DeviceResult {
        Ok(())
    }
    fn read(&self, _: &Memory, _: usize, _: &mut [u8]) -> DeviceResult {
        Ok(())
    }
    fn copy(&self, _: &Memory, _: &mut Memory, _: &[StridedCopy]) -> DeviceResult {
        Ok(())
    }
    fn launch(&self, _: Launch<'_>) -> DeviceResult {
        Ok(())
    }
    fn synchronize(&self) -> DeviceResult {
        Ok(())
    }
}

/// Milliseconds of pictures on a device.
fn on_device(pictures: usize, device: &str, side: usize) -> Result<(), Error> {
    let session = horus::Session::builder().device(device).build()?;
    let params = Params::default();
    let pixels: Vec<f32> = (0..side * side).map(|i| (i * 7 % 251) as f32 / 251.0).collect();
    let image = Image::from_slice(&session, (side, side), &pixels);
    session.evaluate()?;
    let mut all: Vec<[f64; 2]> = Vec::new();
    for _ in 0..pictures {
        let start = Instant::now();
        let lines = convrot(&image, &params);
        let recorded = start.elapsed();
        session.evaluate()?;
        black_box(&lines);
        all.push([start.elapsed(), start.elapsed() - recorded].map(|time| time.as_secs_f64() * 1e3));
    }
    let median = |i: usize| {
        let mut of: Vec<f64> = all.iter().map(|times| times[i]).collect();
        of.sort_by(f64::total_cmp);
        of[of.len() / 2]
    };
    println!("convrot {side} on {}: {:.3} ms, {:.3} without recording", session.device_name(), median(0), median(1));
    Ok(())
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let pictures: usize = arguments.get(1).and_then(|s| s.parse().ok()).unwrap_or(1000);
    if let [device, sides @ ..] = &arguments[2.min(arguments.len())..] {
        return sides.iter().flat_map(|side| side.parse()).try_for_each(|side| on_device(pictures, device, side));
    }
    let params = Params::default();
    let (orientations, scales) = (params.orientations().count(), params.scales().count());
    let all: [(&str, Detector, usize); 3] = [
        ("convrot", convrot, 1 + orientations * (4 + 5 * scales)),
        ("conv2d", conv2d, 1 + orientations * 5 * scales),
        ("convuv", convuv, 1 + orientations * 7 * scales),
    ];
    for (name, detector, operations) in all {
        let session = Session::on(Box::new(IdleDevice(CpuDevice::new(Some(1))?))).build()?;
        let mut least = [Duration::MAX; 5];
        for _ in 0..pictures {
            let (start, before) = (Instant::now(), session.times());
            let image = Image::from_slice(&session, (16, 16), &[0.5f32; 256]);
            let lines = detector(&image, &params);
            let recorded = start.elapsed();
            black_box(lines.to_vec()?);
            let read = start.elapsed() - recorded;
            drop((lines, image));
            let planning = session.times().planning - before.planning;
            let run = session.times().total() - before.total() - planning;
            let now = [recorded, planning, run, read - planning - run, start.elapsed()];
            least.iter_mut().zip(now).for_each(|(least, now)| *least = (*least).min(now));
        }
        let [recorded, planning, run, rest, all] = least.map(|t| t.as_secs_f64() * 1e6);
        println!(
            "{name}, some {operations} operations: recorded in {recorded:.1} us ({:.0} ns each), plan found in \
             {planning:.1} us, run in {run:.1} us, the rest of reading {rest:.1} us; all {all:.1} us",
            recorded * 1e3 / operations as f64
        );
    }
    Ok(())
}
