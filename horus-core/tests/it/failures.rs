//! State after a failed evaluation: everything it did not need is intact, and the message helps.

use std::sync::Arc;

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::error::{Error, Result};
use horus_core::image::Image;
use horus_core::session::Session;
use horus_core::shape::Axis;
use horus_testing::faulty::{FaultControl, FaultyDevice};
use horus_testing::simulated::SimulatedDevice;

const SIDE: usize = 48;
const IMAGE: usize = SIDE * SIDE * 4;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(1)).expect("a CPU")
}

fn on(device: impl Device + 'static) -> Session {
    Session::on(Box::new(device)).build().expect("a session")
}

fn given(s: &Session, seed: usize) -> Image<f32> {
    Image::from_fn(s, SIDE, SIDE, |y, x| ((y * 31 + x * 17 + seed) % 101) as f32)
}

fn bits(image: &Image<f32>) -> Result<Vec<u32>> {
    Ok(image.to_vec()?.into_iter().map(f32::to_bits).collect())
}

/// Held and dropped images, some evaluated before, read by the present evaluation.
struct FailureProgram {
    held: Image<f32>,
    before: Image<f32>,
    state: Image<f32>,
    result: Image<f32>,
}

fn program(s: &Session) -> Result<FailureProgram> {
    let held = given(s, 1);
    let passing = given(s, 2);
    let before = held.gauss(1.0) + &passing;
    before.sum().get()?;
    let state = passing.median(3) * 0.5 + held.transpose();
    state.sum().get()?;
    let next = state * 0.75 + before.flip([Axis::Rows, Axis::Columns]);
    let result = next.gauss(2.0) - given(s, 3);
    Ok(FailureProgram { held, before, state: next, result })
}

fn everything(p: &FailureProgram) -> Result<Vec<Vec<u32>>> {
    [&p.result, &p.state, &p.before, &p.held].map(bits).into_iter().collect()
}

/// Makes each call of the evaluation fail in turn; afterwards all must be as without failure.
fn survives(session: impl Fn() -> (Session, FaultControl)) {
    let (s, _) = session();
    let want = everything(&program(&s).unwrap()).unwrap();
    let mut failures = 0;
    for n in 0.. {
        let (s, fault) = session();
        let p = program(&s).unwrap();
        fault.fail_after(n);
        let met = bits(&p.result);
        if !fault.disarm() {
            assert_eq!(met.unwrap(), want[0]);
            assert!(failures > 2, "{failures} of {n}");
            return;
        }
        match met {
            // The memory was available after all.
            Ok(got) => assert_eq!(got, want[0], "call {n}"),
            Err(e) => {
                failures += 1;
                let message = e.to_string();
                assert!(message.contains("on purpose") && message.contains("failures.rs:"), "call {n}: {message}");
            }
        }
        let got = everything(&p).unwrap_or_else(|e| panic!("after call {n} failed: {e}"));
        assert!(got == want, "after call {n} failed");
        let more = bits(&(p.result * 2.0)).unwrap();
        let twice: Vec<u32> = want[0].iter().map(|b| (f32::from_bits(*b) * 2.0).to_bits()).collect();
        assert!(more == twice, "after call {n} failed");
    }
}

#[test]
fn after_any_failure_the_session_computes_the_right_bits() {
    survives(|| {
        let (device, fault) = FaultyDevice::new(cpu());
        (on(device), fault)
    });
    // With memory for everything, and so little that images are evicted.
    for images in [100, 4] {
        survives(|| {
            let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), images * IMAGE));
            (on(device), fault)
        });
    }
}

#[test]
fn a_session_without_memory_for_one_thing_goes_on_with_another() {
    let small = on(SimulatedDevice::new(cpu(), 3 * IMAGE));
    let bounded = on(cpu().bounded(6 * IMAGE));
    for s in [small, bounded] {
        let image = given(&s, 5);
        let blurred = image.gauss(1.0);
        let sum = blurred.sum().get().unwrap();
        let large = image.resize(2 * SIDE, 2 * SIDE, horus_core::ops::geometric::Interpolation::Nearest);
        let huge = large.matmul(&large); // all of the second for any row
        let line = line!() - 1;
        drop(large);
        let recorded = &image + 1.0;
        for _ in 0..2 {
            // The line of what a device has no room for, or of the call whose vector the host has none for.
            let call = line!() + 1;
            let message = huge.to_vec().unwrap_err().to_string();
            assert!(message.contains("out of memory") && message.contains("bytes needed"), "{message}");
            let lines = [line - 1, line, call].map(|line| format!("failures.rs:{line}:"));
            assert!(lines.iter().any(|line| message.contains(line)), "{message}");
            // The factors and some of the result, or everything in use when it is computed.
            let needed = message.split(" bytes needed").next().and_then(|m| m.rsplit(' ').next()).unwrap();
            assert!((4 * IMAGE..10 * IMAGE).contains(&needed.parse().unwrap()), "{message}");
            assert!(
                message.contains(&format!("{}", 3 * IMAGE)) || message.contains(&format!("{}", 6 * IMAGE)),
                "{message}"
            );
        }
        assert_eq!(blurred.sum().get().unwrap(), sum);
        let want: Vec<f32> = image.to_vec().unwrap().into_iter().map(|v| v + 1.0).collect();
        assert_eq!(recorded.to_vec().unwrap(), want);
        assert!(matches!(s.evaluate(), Err(Error::Device { .. })), "the large one is recorded still");
        drop(huge);
        s.evaluate().unwrap();
    }
}

#[test]
fn an_image_that_is_lost_in_a_failed_evaluation_is_named_with_the_reason() {
    let want = {
        let s = on(cpu());
        bits(&given(&s, 1).median(3).transpose().gauss(1.0)).unwrap()
    };
    let mut lost = 0;
    for n in 0.. {
        let (device, fault) = FaultyDevice::new(cpu());
        // What nobody holds is not kept aside for the case of a failure.
        let s = Session::on(Box::new(device)).flush_limits(4096, 0).build().expect("a session");
        let (other, passing) = (given(&s, 2), given(&s, 1));
        passing.sum().get().unwrap();
        let result = passing.median(3).transpose().gauss(1.0);
        drop(passing);
        fault.fail_after(n);
        let met = bits(&result);
        if !fault.disarm() {
            assert_eq!(met.unwrap(), want);
            assert!(lost > 0, "no image was lost in {n} calls");
            return;
        }
        let met = met.err().map(|e| e.to_string());
        for _ in 0..2 {
            match bits(&result) {
                Ok(got) => assert_eq!(got, want, "after call {n} failed"),
                Err(e @ Error::ImageLost { .. }) => {
                    lost += 1;
                    let message = e.to_string();
                    let met = met.as_ref().unwrap_or_else(|| panic!("call {n}: nothing failed, but {message}"));
                    assert!(message.contains(met) && message.contains("lost"), "call {n}: {message}");
                }
                Err(e) => panic!("after call {n} failed: {e}"),
            }
        }
        drop(result);
        assert_eq!(other.sum().get().unwrap(), given(&s, 2).sum().get().unwrap(), "after call {n} failed");
        s.evaluate().unwrap();
    }
}

#[test]
fn what_is_foreseen_not_to_fit_is_refused_and_nothing_is_lost() {
    let s = on(cpu().bounded(7 * IMAGE));
    let passing = Image::from_fn(&s, SIDE, SIDE, |y, x| (y ^ x) as f32);
    let other = given(&s, 1);
    let huge = passing.median(3).resize(4 * SIDE, 4 * SIDE, horus_core::ops::geometric::Interpolation::Nearest);
    drop(passing);
    let told = || huge.to_vec().unwrap_err().to_string();
    let first = told();
    assert!(first.contains("out of memory") && first.contains("are needed"), "{first}");
    assert_eq!(told(), first);
    assert!(other.median(3).to_vec().is_ok(), "what has nothing to do with it goes on");
}

#[test]
fn ranks_go_on_after_what_they_all_foresee() {
    for ranks in [2, 3] {
        let all = ThreadComm::run(ranks, |comm| {
            let room = if comm.rank() == 1 { 4 * IMAGE } else { 1 << 30 };
            let device = Box::new(SimulatedDevice::new(cpu(), room));
            let s = Session::on(device).communicator(Arc::new(comm)).build().unwrap();
            let image = given(&s, 5);
            let huge = image.resize(8 * SIDE, 8 * SIDE, horus_core::ops::geometric::Interpolation::Nearest);
            let message = huge.to_vec().unwrap_err().to_string();
            (message, bits(&image.gauss(1.0)).unwrap())
        });
        let s = on(cpu());
        let want = bits(&given(&s, 5).gauss(1.0)).unwrap();
        for (message, got) in all {
            assert!(message.contains("out of memory") && message.contains("failures.rs:"), "{message}");
            assert!(message.contains(&format!("{} bytes of the smallest device", 4 * IMAGE)), "{message}");
            assert!(got == want);
        }
    }
}

#[test]
fn ranks_end_together_after_what_one_of_them_meets() {
    let messages = ThreadComm::run(3, |comm| {
        let fails = comm.rank() == 1;
        let (device, fault) = FaultyDevice::new(SimulatedDevice::new(cpu(), 1 << 30));
        let s = Session::on(Box::new(device)).communicator(Arc::new(comm)).build().unwrap();
        if fails {
            fault.fail_after(1);
        }
        let image = given(&s, 5);
        let first = bits(&image.gauss(1.0)).unwrap_err().to_string();
        (first, bits(&image.median(3)).unwrap_err().to_string())
    });
    for (first, then) in messages {
        assert!(first.contains("on purpose"), "{first}");
        assert!(then.contains("is unusable") && then.contains("on purpose"), "{then}");
    }
}
