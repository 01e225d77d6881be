//! Several devices of one process: the same bits as one, without messages for given images and
//! results.

mod failures;
mod programs;
mod session;
mod taken;
mod taking;

use std::sync::Arc;

use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::session::{Session, SessionBuilder};
use horus_testing::simulated::Simulated;

/// Bytes of a simulated device.
const ROOM: usize = 1 << 26;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(1)).expect("a CPU")
}

/// Devices of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The host's memory.
    Unified,
    /// Memory of their own; exchanges go through the host.
    Separate,
    /// Connected, with memory of their own.
    Connected,
}

const KINDS: [Kind; 3] = [Kind::Unified, Kind::Separate, Kind::Connected];

fn device(kind: Kind, room: usize) -> Arc<dyn Device> {
    match kind {
        Kind::Unified => Arc::new(cpu()),
        Kind::Separate => Arc::new(Simulated::new(cpu(), room).demanding()),
        Kind::Connected => Arc::new(Simulated::new(cpu(), room).demanding().with_fabric()),
    }
}

/// A session on `lanes` lanes, where every program runs on all.
fn lanes(kind: Kind, lanes: usize) -> SessionBuilder {
    Session::over((0..lanes).map(|_| device(kind, ROOM)).collect())
}

fn one() -> Session {
    Session::on(Box::new(cpu())).build().unwrap()
}
