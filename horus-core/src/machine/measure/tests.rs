//! A quick measurement on any machine: plausible numbers, the same on all ranks.

use super::*;
use crate::comm::SingleRankComm;
use crate::comm::threads::ThreadComm;
use crate::cpu::device::CpuDevice;
use crate::ir::kernel::Family;
use horus_testing::faulty::FaultyDevice;
use horus_testing::simulated::SimulatedDevice;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(2)).expect("two threads")
}

#[test]
fn a_processor_is_measured() {
    let profile = measure(&cpu(), &SingleRankComm, true).expect("a profile");
    assert_eq!((profile.fault(), profile.origin), (None, ProfileOrigin::Measured));
    assert!(profile.hardware.device.starts_with("CPU (2 threads"), "{}", profile.hardware);
    assert!(Family::ALL.iter().all(|f| profile.families.contains_key(f)));
    let threads: Vec<f64> = profile.host_copy.0.iter().map(|(n, _)| *n).collect();
    assert_eq!(threads[0], 1.0);
    // Bounds for any machine since 1995.
    assert!(profile.host_copy.0.iter().all(|(_, rate)| (1e7..1e13).contains(rate)), "{:?}", profile.host_copy);
    assert!((1e6..1e13).contains(&profile.arithmetic.f32), "{:?}", profile.arithmetic);
    assert!((1e7..1e13).contains(&profile.memory.at(1e6)), "{:?}", profile.memory);
    let text = profile.to_string();
    for words in ["measured", "host copies", "multiply-adds", "separable filters"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn copies_of_a_device_with_memory_of_its_own_are_measured() {
    let device = SimulatedDevice::new(cpu(), 1 << 30).with_mapping();
    let assumed = here::assumed(here::hardware(&device), false);
    let profile = measure(&device, &SingleRankComm, true).expect("a profile");
    assert_eq!((profile.fault(), profile.origin), (None, ProfileOrigin::Measured));
    let lines = |p: &MachineProfile| {
        [p.upload.pinned, p.upload.staged, p.upload.mapped, p.download.pinned, p.download.staged, p.download.mapped]
    };
    assert!(lines(&profile).iter().zip(lines(&assumed)).all(|(found, assumed)| *found != assumed), "{profile:?}");
    assert!(profile.both_ways >= 1.0);
}

#[test]
fn ranks_get_the_profile_of_their_hardware_and_the_same_links() {
    /// Runs, at least one of which measures the link: on a busy machine, times may not fit a line.
    const RUNS: usize = 5;
    let measured = (0..RUNS).any(|_| {
        let profiles = ThreadComm::run(3, |comm| {
            let device = CpuDevice::new(Some(if comm.rank() == 1 { 2 } else { 1 })).expect("threads");
            measure(&device, &comm, true).expect("a profile")
        });
        assert_eq!(profiles[0], profiles[2], "one of a kind is measured");
        assert_ne!(profiles[0].hardware, profiles[1].hardware);
        assert!(profiles.iter().all(|p| p.links == profiles[0].links && p.fault().is_none()));
        profiles[0].links.host != crate::machine::Link::default()
    });
    assert!(measured, "links are measured");
}

#[test]
fn what_fails_is_assumed() {
    for call in 0..6 {
        let (device, fault) = FaultyDevice::new(cpu());
        fault.fail_after(call);
        let profile = measure(&device, &SingleRankComm, true).expect("a profile");
        assert_eq!(profile.fault(), None, "call {call} fails");
    }
}
