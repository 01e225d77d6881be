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
use horus_testing::simulated::SimulatedDevice;

/// Bytes of a simulated device.
const ROOM: usize = 1 << 26;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(1)).expect("a CPU")
}

/// Devices of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceConnection {
    /// The host's memory.
    Unified,
    /// Memory of their own; exchanges go through the host.
    Separate,
    /// Connected, with memory of their own.
    Connected,
}

const KINDS: [DeviceConnection; 3] =
    [DeviceConnection::Unified, DeviceConnection::Separate, DeviceConnection::Connected];

fn device(kind: DeviceConnection, room: usize) -> Arc<dyn Device> {
    match kind {
        DeviceConnection::Unified => Arc::new(cpu()),
        DeviceConnection::Separate => Arc::new(SimulatedDevice::new(cpu(), room).requiring_preparation()),
        DeviceConnection::Connected => {
            Arc::new(SimulatedDevice::new(cpu(), room).requiring_preparation().with_fabric())
        }
    }
}

/// A session on `lanes` lanes, where every program runs on all.
fn lanes(kind: DeviceConnection, lanes: usize) -> SessionBuilder {
    Session::over((0..lanes).map(|_| device(kind, ROOM)).collect())
}

fn one() -> Session {
    Session::on(Box::new(cpu())).build().unwrap()
}
