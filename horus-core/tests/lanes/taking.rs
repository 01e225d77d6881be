//! A simulated device that takes given pixels immediately.

use std::sync::atomic::{AtomicUsize, Ordering};

use horus_core::cpu::device::CpuDevice;
use horus_core::device::{Device, DeviceNames, Fabric, Launch, Memory, MemoryKind, Staging, Ticket};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::buffer::HostBuffer;
use horus_core::host::workers::Workers;
use horus_testing::simulated::SimulatedDevice;

pub(crate) struct Taking {
    inner: SimulatedDevice<CpuDevice>,
    taken: AtomicUsize,
}

impl Taking {
    pub(crate) fn new(cpu: CpuDevice, room: usize) -> Taking {
        Taking { inner: SimulatedDevice::new(cpu, room).with_fabric(), taken: AtomicUsize::new(0) }
    }

    /// Bytes that it took.
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Device for Taking {
    fn names(&self) -> DeviceNames {
        self.inner.names()
    }
    fn memory(&self) -> MemoryKind<'_> {
        self.inner.memory()
    }
    fn workers(&self) -> &Workers {
        self.inner.workers()
    }
    fn staging(&self) -> &dyn Staging {
        self
    }
    fn fabric(&self) -> Option<&dyn Fabric> {
        self.inner.fabric()
    }
    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        self.inner.allocate(bytes)
    }
    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        self.inner.write(source, target, at)
    }
    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(source, at, target)
    }
    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        self.inner.copy(source, target, pieces)
    }
    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        self.inner.launch(launch)
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
}

impl Staging for Taking {
    fn upload_parts(&self, parts: &[&[u8]]) -> Result<Option<Memory>, DeviceError> {
        let mut memory = self.allocate(parts.iter().map(|p| p.len()).sum())?;
        let mut at = 0;
        for part in parts {
            self.write(part, &mut memory, at)?;
            at += part.len();
        }
        self.taken.fetch_add(at, Ordering::Relaxed);
        Ok(Some(memory))
    }
    fn begin_upload(
        &self,
        source: &HostBuffer,
        target: &mut Memory,
        pieces: &[StridedCopy],
    ) -> Result<Ticket, DeviceError> {
        self.inner.staging().begin_upload(source, target, pieces)
    }
    fn wait_for_upload(&self, ticket: Ticket, target: &mut Memory) -> Result<(), DeviceError> {
        self.inner.staging().wait_for_upload(ticket, target)
    }
}
