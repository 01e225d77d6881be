//! Images in page-locked host memory that launches use in place of the device's: the same pixels,
//! and the number of copies.
//!
//! `cases.rs` runs on a GPU too (`horus-cuda/tests/gpu`).

mod cases;

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::image::Image;
use horus_core::plan::Transfer;
use horus_core::session::Session;
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::{CallCountsHandle, SimulatedDevice};

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(2)).unwrap()
}

/// A session on a device with memory of its own.
pub(crate) fn opened(transfer: Transfer) -> Session {
    logged(transfer).0
}

fn logged(transfer: Transfer) -> (Session, CallCountsHandle) {
    let device = SimulatedDevice::new(cpu(), 1 << 28).with_mapping();
    let log = device.call_counts();
    (Session::on(Box::new(device)).transfer(transfer).build().unwrap(), log)
}

/// Rows and columns of an image whose copies take much longer than a launch.
const LARGE: usize = 700;

/// Runs a program on pixels of a session into others, three times; returns the number of copies to
/// the device, of copies to the host, and of mapped buffers.
fn ran(transfer: Transfer, program: fn(Image<f32>) -> Image<f32>) -> (usize, usize, usize) {
    let (session, log) = logged(transfer);
    let mut to = session.pixels::<f32>(LARGE, LARGE, 1).unwrap();
    let from = session.pixels::<f32>(LARGE, LARGE, 1).unwrap();
    for _ in 0..3 {
        program(Image::from_pixels(&session, from.clone())).read_into(&mut to).unwrap();
    }
    let log = log.get();
    assert_eq!(log.bytes, 0, "nothing stays on the device");
    (log.writes, log.reads, log.maps)
}

#[test]
fn implicit_copies_nothing_and_hybrid_no_result() {
    let filtered = |transfer| ran(transfer, |image| image.gauss(2.0));
    assert_eq!(filtered(Transfer::Explicit), (3, 3, 0));
    assert_eq!(filtered(Transfer::Implicit), (0, 0, 6));
    assert_eq!(filtered(Transfer::Hybrid(std::num::NonZeroU8::new(4))), (12, 0, 3));
    // Tiles of filters read pixels several times.
    assert_eq!(filtered(Transfer::Auto).0, 3);
    assert_eq!(ran(Transfer::Auto, |image| image * 2.0), (0, 0, 6));
}

#[test]
fn a_choice_that_turns_out_badly_is_not_made_again() {
    let (session, log) = logged(Transfer::Auto);
    let mut to = session.pixels::<f32>(LARGE, LARGE, 1).unwrap();
    let image = Image::from_pixels(&session, session.pixels::<f32>(LARGE, LARGE, 1).unwrap());
    for _ in 0..5 {
        (&image * 2.0).read_into(&mut to).unwrap();
    }
    let log = log.get();
    // The first program reads the image in host memory, the second detects a repeated read and
    // copies it.
    assert_eq!((log.writes, log.reads, log.maps), (1, 4, 2));
}

#[test]
fn ordinary_memory_is_copied_whatever_is_requested() {
    let plain = || SimulatedDevice::new(cpu(), 1 << 28);
    let values: Vec<f32> = (0..64 * 48).map(|i| (i % 97) as f32).collect();
    let want = {
        let session = Session::on(Box::new(cpu())).build().unwrap();
        Image::from_slice(&session, (64, 48), &values).gauss(2.0).to_vec().unwrap()
    };
    for transfer in [Transfer::Implicit, Transfer::Hybrid(None)] {
        let device = plain();
        let log = device.call_counts();
        let session = Session::on(Box::new(device)).transfer(transfer).build().unwrap();
        assert!(Image::from_slice(&session, (64, 48), &values).gauss(2.0).to_vec().unwrap() == want);
        assert_eq!((log.get().maps, log.get().reads), (0, 1), "{transfer:?}");
        let session = Session::on(Box::new(cpu())).transfer(transfer).build().unwrap();
        assert!(Image::from_slice(&session, (64, 48), &values).gauss(2.0).to_vec().unwrap() == want);
        let all = ThreadComm::run(3, |comm| {
            let device = SimulatedDevice::new(cpu(), 1 << 28).with_mapping();
            let session =
                Session::on(Box::new(device)).communicator(Arc::new(comm)).transfer(transfer).build().unwrap();
            Image::from_slice(&session, (64, 48), &values).gauss(2.0).to_vec().unwrap()
        });
        assert!(all.iter().all(|got| *got == want), "{transfer:?}");
    }
}

#[test]
fn pixels_keep_their_size_and_type_whatever_fails() {
    let program = |session: &Session, to: &mut horus_core::image::Pixels<bool>| {
        let from = session.pixels::<f32>(30, 20, 1).unwrap();
        Image::from_pixels(session, from).gauss(1.0).gt(-1.0).read_into(to)
    };
    let mut failures = 0;
    for call in 0..12 {
        let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), 1 << 28).with_mapping());
        let session = Session::on(Box::new(device)).transfer(Transfer::Implicit).build().unwrap();
        let mut to = session.pixels::<bool>(30, 20, 1).unwrap();
        fault.fail_after(call);
        let first = program(&session, &mut to);
        failures += usize::from(first.is_err());
        assert_eq!(to.len(), 600, "call {call} fails");
        assert!(to.iter().all(|b| !*b || first.is_ok()), "call {call} fails");
        fault.disarm();
        program(&session, &mut to).unwrap();
        assert!(to.iter().all(|b| *b));
    }
    assert!(failures > 0, "no call fails the evaluation");
}
