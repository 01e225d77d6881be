//! Images in page-locked host memory that launches use in place of the device's: the same pixels,
//! and the number of copies.
//!
//! `cases.rs` runs on a GPU too (`horus-cuda/tests/gpu`).

mod cases;

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::image::{Image, Pixels};
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
fn several_results_are_computed_in_the_memory_of_their_targets() {
    for transfer in [Transfer::Auto, Transfer::Implicit] {
        let (session, log) = logged(transfer);
        let room = || session.pixels::<f32>(LARGE, LARGE, 1).unwrap();
        let (from, mut twice, mut thrice) = (room(), room(), room());
        let given = |twice: &[f32], thrice: &[f32]| {
            let mut places = [twice.as_ptr(), thrice.as_ptr()];
            places.sort_unstable();
            places
        };
        let before = given(&twice, &thrice);
        for _ in 0..3 {
            let image = Image::from_pixels(&session, from.clone()) + 1.0;
            session.read_into(((&(&image * 2.0), &mut twice), (&(&image * 3.0), &mut thrice))).unwrap();
            assert!(twice.iter().all(|v| *v == 2.0) && thrice.iter().all(|v| *v == 3.0));
        }
        assert_eq!(given(&twice, &thrice), before, "{transfer:?}: the memory is that of the targets");
        assert_eq!((log.get().writes, log.get().reads, log.get().maps), (0, 0, 9), "{transfer:?}");
        // With a target that lends nothing, all are copied, and keep their memory.
        let image = Image::from_pixels(&session, from.clone());
        let (mut values, product) = (vec![0.0; LARGE * LARGE], &image * 2.0);
        let sum = &image + 4.0;
        session.read_into(((&product, &mut twice), (&sum, &mut values), (&product, &mut thrice))).unwrap();
        assert!(twice.iter().all(|v| *v == 0.0) && values.iter().all(|v| *v == 4.0) && thrice[..] == twice[..]);
        assert!(twice.is_page_locked() && thrice.is_page_locked());
    }
}

#[test]
fn results_that_are_not_computed_in_targets_are_copied_there() {
    for transfer in [Transfer::Auto, Transfer::Implicit, Transfer::Hybrid(None)] {
        let (session, _) = logged(transfer);
        let room = || session.pixels::<f32>(LARGE, LARGE, 1).unwrap();
        let (from, mut first, mut second) = (room(), room(), room());
        let image = Image::from_pixels(&session, from) + 1.0;
        session.evaluate().unwrap();
        let (twice, turned) = (&image * 2.0, image.transpose());
        session.read_into(((&twice, &mut first), (&image, &mut second))).unwrap();
        assert!(first.iter().all(|v| *v == 2.0) && second.iter().all(|v| *v == 1.0), "{transfer:?}");
        session.read_into(((&image, &mut first), (&(&turned * 3.0), &mut second))).unwrap();
        assert!(first.iter().all(|v| *v == 1.0) && second.iter().all(|v| *v == 3.0), "{transfer:?}");
        session.read_into(((&turned, &mut first), (&twice, &mut second))).unwrap();
        assert!(first.iter().all(|v| *v == 1.0) && second.iter().all(|v| *v == 2.0), "{transfer:?}");
        // Targets do not share memory with images.
        first.fill(9.0);
        assert_eq!(turned.pixel((1, 1)).unwrap(), 1.0);
        assert!(first.is_page_locked() && second.is_page_locked());
    }
}

#[test]
fn bands_compute_several_results_by_one_launch() {
    let (session, log) = logged(Transfer::Streams(std::num::NonZeroU8::new(4)));
    let room = || session.pixels::<f32>(LARGE, LARGE, 1).unwrap();
    let (from, mut smooth, mut edges) = (room(), room(), room());
    let image = Image::from_pixels(&session, from);
    let both = (image.gauss_xy(2.0, 2.0, 0, 0), image.gauss_xy(2.0, 2.0, 1, 0));
    let alone = session.stats().made.launches;
    session.read_into(((&both.0, &mut smooth), (&both.1, &mut edges))).unwrap();
    let launches = session.stats().made.launches - alone;
    assert_eq!((launches, log.get().writes), (1, 4), "one launch of four bands");
    assert!(log.get().reads > 2, "both results are copied in bands");
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
    // The second target has as many bytes, of another type.
    let program = |session: &Session, to: &mut Pixels<bool>, and: &mut Option<Pixels<f32>>| {
        let from = session.pixels::<f32>(30, 20, 1).unwrap();
        let smooth = Image::from_pixels(session, from).gauss(1.0);
        let above = smooth.gt(-1.0);
        match and {
            Some(and) => session.read_into(((&(smooth.crop(0, 0, 15, 10) - 7.0), and), (&above, to))),
            None => above.read_into(to),
        }
    };
    let mut failures = 0;
    for (call, several) in (0..16).flat_map(|call| [(call, false), (call, true)]) {
        let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), 1 << 28).with_mapping());
        let session = Session::on(Box::new(device)).transfer(Transfer::Implicit).build().unwrap();
        let mut to = session.pixels::<bool>(30, 20, 1).unwrap();
        let mut and = several.then(|| session.pixels::<f32>(15, 10, 1).unwrap());
        fault.fail_after(call);
        let first = program(&session, &mut to, &mut and);
        failures += usize::from(first.is_err());
        assert_eq!(to.len(), 600, "call {call} fails");
        assert!(and.as_ref().is_none_or(|and| and.len() == 150), "call {call} fails");
        assert!(to.iter().all(|b| !*b || first.is_ok()), "call {call} fails");
        fault.disarm();
        program(&session, &mut to, &mut and).unwrap();
        assert!(to.iter().all(|b| *b) && and.is_none_or(|and| and.iter().all(|v| *v == -7.0)));
    }
    assert!(failures > 0, "no call fails the evaluation");
}
