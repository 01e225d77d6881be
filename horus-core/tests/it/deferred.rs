//! Sessions that get their device at the first computation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use horus_core::comm::threads::ThreadComm;
use horus_core::comm::{Communicator, SingleRankComm};
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::{Error, Result};
use horus_core::host::buffer::Pool;
use horus_core::host::workers::Workers;
use horus_core::image::Image;
use horus_core::image::samples;
use horus_core::plan::work::ProgramWork;
use horus_core::session::{Chooser, Session};
use horus_testing::faulty::{FaultControl, FaultyDevice};
use horus_testing::simulated::SimulatedDevice;

/// Chooses a device of one kind, and records the work that it was chosen for.
#[derive(Default)]
struct RecordingChooser {
    separate: bool,
    refuses: Option<usize>,
    asked: AtomicUsize,
    work: Mutex<Option<ProgramWork>>,
}

impl Chooser for RecordingChooser {
    fn choose(&self, work: &ProgramWork, comm: &dyn Communicator) -> Result<Arc<dyn Device>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        *self.work.lock().unwrap() = Some(*work);
        // All ranks get a device or none does.
        if self.refuses.is_some_and(|rank| rank < comm.size()) {
            return Err(Error::Config("there is no such device".into()));
        }
        let cpu = CpuDevice::new(Some(1))?;
        Ok(if self.separate { Arc::new(SimulatedDevice::new(cpu, 1 << 20)) } else { Arc::new(cpu) })
    }
}

fn session(chosen: &Arc<RecordingChooser>, comm: impl Communicator + 'static) -> Session {
    let workers = Arc::new(Workers::new(Some(2)).unwrap());
    let builder = Session::deferred(Arc::<RecordingChooser>::clone(chosen), workers, Pool::new(1 << 20));
    builder.communicator(Arc::new(comm)).build().unwrap()
}

fn program(s: &Session) -> Image<f32> {
    let pixels: Vec<f32> = (0..35 * 9).map(|i| (i * 37 % 101) as f32).collect();
    let given = Image::from_slice(s, (35, 9), &pixels);
    (given.gauss(1.5) - samples::worms(s, 35, 9)).abs()
}

#[test]
fn a_device_is_chosen_at_the_first_evaluation_and_kept() {
    let want = program(&Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap()).to_vec().unwrap();
    for separate in [false, true] {
        for ranks in 1..=3 {
            ThreadComm::run(ranks, |comm| {
                let chosen = Arc::new(RecordingChooser { separate, ..RecordingChooser::default() });
                let s = session(&chosen, comm);
                let image = program(&s);
                let other = program(&s);
                assert!(s.device().is_none() && s.device_name().contains("not yet chosen"));
                assert_eq!(chosen.asked.load(Ordering::Relaxed), 0, "nothing was looked at");
                assert_eq!(image.to_vec().unwrap(), want);
                let name = s.device_name();
                assert_eq!(name.contains("simulated"), separate, "{name}");
                // Earlier and later data are where the device finds them.
                assert_eq!(other.to_vec().unwrap(), want);
                assert_eq!(program(&s).to_vec().unwrap(), want);
                assert_eq!(chosen.asked.load(Ordering::Relaxed), 1);
                assert!(s.times().start > std::time::Duration::ZERO);
            });
        }
    }
}

#[test]
fn the_work_is_told() {
    let chosen = Arc::new(RecordingChooser::default());
    let s = session(&chosen, SingleRankComm);
    let image = Image::from_slice(&s, (10, 20), &[1.0f32; 200]);
    image.gauss(1.0).to_vec().unwrap();
    let work = chosen.work.lock().unwrap().unwrap();
    assert_eq!((work.operations, work.bytes), (1, 2.0 * 800.0));
    // Taps within three sigma on each side.
    assert_eq!(work.filtering, 200.0 * 14.0);
}

#[test]
fn where_there_is_no_device_every_evaluation_says_so_and_recording_goes_on() {
    let chosen = Arc::new(RecordingChooser { refuses: Some(0), ..RecordingChooser::default() });
    let s = session(&chosen, SingleRankComm);
    let image = program(&s);
    for _ in 0..2 {
        assert_eq!(image.to_vec().unwrap_err().to_string(), "there is no such device");
    }
    s.evaluate().unwrap_err();
    assert!(image.check().is_ok() && s.device().is_none());
}

/// Chooses a device one call of which fails.
struct FailingChooser {
    call: usize,
    fault: Mutex<Option<FaultControl>>,
}

impl Chooser for FailingChooser {
    fn choose(&self, _: &ProgramWork, _: &dyn Communicator) -> Result<Arc<dyn Device>> {
        let (device, fault) = FaultyDevice::new(SimulatedDevice::new(CpuDevice::new(Some(1))?, 1 << 20));
        fault.fail_after(self.call);
        *self.fault.lock().unwrap() = Some(fault);
        Ok(Arc::new(device))
    }
}

#[test]
fn whatever_fails_on_a_chosen_device_nothing_that_was_given_before_is_lost() {
    let want = program(&Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap()).to_vec().unwrap();
    let mut failures = 0;
    for call in 0.. {
        let failing = Arc::new(FailingChooser { call, fault: Mutex::new(None) });
        let workers = Arc::new(Workers::new(Some(2)).unwrap());
        let s = Session::deferred(Arc::<FailingChooser>::clone(&failing), workers, Pool::new(1 << 20)).build().unwrap();
        let (image, other) = (program(&s), program(&s));
        let met = image.to_vec();
        let fault = failing.fault.lock().unwrap().take().unwrap();
        if !fault.disarm() {
            assert_eq!(met.unwrap(), want);
            break;
        }
        if let Err(e) = met {
            failures += 1;
            assert!(e.to_string().contains("on purpose"), "call {call}: {e}");
        }
        for image in [image, other] {
            assert_eq!(image.to_vec().unwrap(), want, "after call {call} failed");
        }
    }
    assert!(failures > 2, "{failures}");
}

#[test]
fn a_rank_may_compute_alone_beside_the_others() {
    for first in [false, true] {
        ThreadComm::run(3, |comm| {
            let rank = comm.rank();
            let chosen = Arc::new(RecordingChooser { separate: true, ..RecordingChooser::default() });
            let s = session(&chosen, comm);
            let want = if first { program(&s).to_vec().unwrap() } else { Vec::new() };
            let alone = s.alone().unwrap();
            assert_eq!((alone.rank(), alone.ranks()), (0, 1));
            // A different number of evaluations on each rank.
            for _ in 0..rank {
                let got = program(&alone).to_vec().unwrap();
                assert!(!first || got == want);
            }
            assert_eq!(alone.stats().evaluations, rank);
            let all = program(&s).to_vec().unwrap();
            assert!(!first || all == want);
        });
    }
}
