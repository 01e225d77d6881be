//! Every operation, type and border, on every device that needs no hardware, in every mode and on 1
//! to 5 ranks: the same bits as the sequential reference.
//!
//! The GPU's conformance test (`horus-cuda/tests/gpu/`) runs the same programs: it differs in this
//! file only.

mod draw;
mod found;
mod harness;
mod hostile;
mod kernels;
mod machines;
mod mapped;
mod ops;
mod passes;
mod programs;
mod random;
mod regions;
mod segments;
mod volumes;
mod waits;
mod wide;

use std::cell::Cell;

use harness::RunConfiguration;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::plan::Mode;
use horus_testing::cases::part;
use horus_testing::simulated::SimulatedDevice;

/// Number of random programs.
pub(crate) const RANDOM_PROGRAMS: u32 = 150;

/// Calls `f` with the device of a place.
pub(crate) fn with_device<R>(place: RunConfiguration, f: impl FnOnce(&dyn Device) -> R) -> R {
    let cpu = CpuDevice::new(Some(1)).unwrap();
    match (place.separate, place.direct) {
        (false, _) => f(&cpu),
        (true, false) => f(&SimulatedDevice::new(cpu, usize::MAX / 2).requiring_preparation().with_mapping()),
        (true, true) => f(&SimulatedDevice::new(cpu, usize::MAX / 2).requiring_preparation().with_fabric()),
    }
}

impl RunConfiguration {
    /// Each number of ranks with each kind of device; the modes that fuse less with one of them in turn.
    pub(crate) fn all() -> Vec<RunConfiguration> {
        let kinds = [(false, false), (true, false), (true, true)];
        let mut out = Vec::new();
        for ranks in 1..=5 {
            let few = [(Mode::Naive, kinds[ranks % 2]), (Mode::Lazy, kinds[ranks % 3])];
            for (mode, (separate, direct)) in few.into_iter().chain(kinds.map(|kind| (Mode::Fused, kind))) {
                if direct && ranks == 1 {
                    continue;
                }
                let from_root = (ranks + usize::from(separate && !direct)) % 2 == 0;
                // One rank in each mode, and those of several ranks that go through the host.
                let bands = (separate && !direct && mode != Mode::Naive).then_some([2, 3, 7, 16, 64][ranks - 1]);
                out.push(RunConfiguration {
                    ranks,
                    mode,
                    separate,
                    direct,
                    overlap: mode == Mode::Fused,
                    from_root,
                    bands,
                });
            }
        }
        out
    }

    /// Two of a few places that differ in every respect, at each call of a test others; all with `HORUS_CASES`.
    pub(crate) fn some() -> Vec<RunConfiguration> {
        thread_local! {
            static CALLS: Cell<usize> = const { Cell::new(0) };
        }
        let call = CALLS.replace(CALLS.get() + 1);
        part(RunConfiguration::few(), |few| {
            [call, call + 1 + call / few.len() % (few.len() - 1)].map(|i| few[i % few.len()]).into()
        })
    }

    fn few() -> Vec<RunConfiguration> {
        vec![
            RunConfiguration {
                ranks: 1,
                mode: Mode::Fused,
                separate: false,
                direct: false,
                overlap: false,
                from_root: false,
                bands: None,
            },
            RunConfiguration {
                ranks: 1,
                mode: Mode::Lazy,
                separate: true,
                direct: false,
                overlap: false,
                from_root: false,
                bands: Some(5),
            },
            RunConfiguration {
                ranks: 3,
                mode: Mode::Fused,
                separate: true,
                direct: false,
                overlap: false,
                from_root: false,
                bands: Some(4),
            },
            RunConfiguration {
                ranks: 2,
                mode: Mode::Naive,
                separate: false,
                direct: false,
                overlap: false,
                from_root: true,
                bands: None,
            },
            RunConfiguration {
                ranks: 4,
                mode: Mode::Fused,
                separate: true,
                direct: true,
                overlap: true,
                from_root: true,
                bands: None,
            },
            RunConfiguration {
                ranks: 3,
                mode: Mode::Lazy,
                separate: true,
                direct: true,
                overlap: false,
                from_root: false,
                bands: None,
            },
            RunConfiguration {
                ranks: 5,
                mode: Mode::Lazy,
                separate: false,
                direct: false,
                overlap: true,
                from_root: false,
                bands: None,
            },
        ]
    }
}
