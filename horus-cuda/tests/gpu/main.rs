//! The core's conformance programs on a GPU, through planner and executor: every operation, type
//! and border, random programs, every mode, and ranks that share the GPU give the bits of the
//! sequential reference.
//!
//! Needs a GPU and fails without one, so it is run by `scripts/gpu.sh` only and not by
//! `cargo test`.

#[path = "../../../horus-core/tests/conformance/draw.rs"]
mod draw;
#[path = "../../../horus-core/tests/conformance/harness.rs"]
mod harness;
#[path = "../../../horus-core/tests/conformance/hostile.rs"]
mod hostile;
#[path = "../../../horus-core/tests/conformance/mapped.rs"]
mod mapped;
#[path = "../../../horus-core/tests/conformance/ops.rs"]
mod ops;
#[path = "../../../horus-core/tests/mapped/cases.rs"]
mod page_locked;
#[path = "../../../horus-core/tests/conformance/programs.rs"]
mod programs;
#[path = "../../../horus-core/tests/conformance/random.rs"]
mod random;
#[path = "../../../horus-core/tests/conformance/segments.rs"]
mod segments;
#[path = "../../../horus-core/tests/conformance/volumes.rs"]
mod volumes;
#[path = "../../../horus-core/tests/conformance/wide.rs"]
mod wide;
// Modules of this crate.
mod arrays;
mod strips;
mod traced;
mod transfers;

use std::sync::LazyLock;

use harness::RunConfiguration;
use horus_core::device::Device;
use horus_core::plan::{Mode, Transfer};
use horus_core::session::Session;
use horus_cuda::CudaDevice;

/// Number of random programs: each compiles several kernels.
pub(crate) const RANDOM_PROGRAMS: u32 = 60;

/// Calls `f` with the GPU, which all tests share.
pub(crate) fn with_device<R>(place: RunConfiguration, f: impl FnOnce(&dyn Device) -> R) -> R {
    static GPU: LazyLock<CudaDevice> =
        LazyLock::new(|| CudaDevice::open(0, None).unwrap_or_else(|e| panic!("this test needs a GPU: {e}")));
    assert!(place.separate, "a GPU has memory of its own");
    f(&*GPU)
}

/// A session on the GPU.
pub(crate) fn opened(transfer: Transfer) -> Session {
    let gpu = CudaDevice::open(0, None).unwrap_or_else(|e| panic!("this test needs a GPU: {e}"));
    Session::on(Box::new(gpu)).transfer(transfer).build().unwrap()
}

impl RunConfiguration {
    pub(crate) fn all() -> Vec<RunConfiguration> {
        let place = |ranks, mode| {
            let overlap = mode == Mode::Fused;
            RunConfiguration { ranks, mode, separate: true, direct: false, overlap, from_root: ranks == 3, bands: None }
        };
        [1, 2, 3].into_iter().flat_map(|n| [Mode::Naive, Mode::Lazy, Mode::Fused].map(|m| place(n, m))).collect()
    }

    /// A few places that differ in every respect.
    pub(crate) fn some() -> Vec<RunConfiguration> {
        vec![
            RunConfiguration {
                ranks: 1,
                mode: Mode::Fused,
                separate: true,
                direct: false,
                overlap: true,
                from_root: false,
                bands: Some(4),
            },
            RunConfiguration {
                ranks: 1,
                mode: Mode::Naive,
                separate: true,
                direct: false,
                overlap: true,
                from_root: false,
                bands: None,
            },
            RunConfiguration {
                ranks: 3,
                mode: Mode::Lazy,
                separate: true,
                direct: false,
                overlap: true,
                from_root: true,
                bands: None,
            },
        ]
    }
}
