//! A device that fails on request, to test the state after failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use horus_base::error::{DeviceError, MemoryBound};
use horus_host::StridedCopy;
use horus_host::buffer::{HostBuffer, HostMemory};
use horus_host::device::{
    Batch, BatchedLaunch, Batching, Device, DeviceNames, DeviceSpan, Fabric, Launch, Memory, MemoryKind, Staging,
    WorkLabel,
};
use horus_host::workers::Workers;

/// A device that behaves like `inner`, except for one call, which fails.
#[derive(Debug)]
pub struct FaultyDevice<D> {
    inner: D,
    calls: Arc<FaultCounter>,
}

#[derive(Debug)]
struct FaultCounter {
    made: AtomicUsize,
    /// The number of the call that fails.
    fails: AtomicUsize,
}

/// Controls when a [`FaultyDevice`] that belongs to a session fails.
#[derive(Clone, Debug)]
pub struct FaultControl(Arc<FaultCounter>);

impl FaultControl {
    /// Makes the `n`th call from now fail (0 is the next): an allocation, a copy, a launch or a batch of them.
    pub fn fail_after(&self, n: usize) {
        self.0.fails.store(self.0.made.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// Disables further failures; returns `true` if a call has failed.
    pub fn disarm(&self) -> bool {
        self.0.fails.swap(usize::MAX, Ordering::Relaxed) < self.0.made.load(Ordering::Relaxed)
    }
}

impl<D: Device> FaultyDevice<D> {
    /// A device on `inner`, and its control. No call fails until requested.
    pub fn new(inner: D) -> (FaultyDevice<D>, FaultControl) {
        let calls = Arc::new(FaultCounter { made: AtomicUsize::new(0), fails: AtomicUsize::new(usize::MAX) });
        (FaultyDevice { inner, calls: Arc::clone(&calls) }, FaultControl(calls))
    }

    fn call(&self, what: &str) -> Result<(), DeviceError> {
        let number = self.calls.made.fetch_add(1, Ordering::Relaxed);
        if number == self.calls.fails.load(Ordering::Relaxed) {
            return Err(DeviceError::Driver(format!("{what} fails on purpose")));
        }
        Ok(())
    }
}

impl<D: Device> Device for FaultyDevice<D> {
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
    fn batching(&self) -> Option<&dyn Batching> {
        self.inner.batching().map(|_| self as &dyn Batching)
    }
    fn fabric(&self) -> Option<&dyn Fabric> {
        self.inner.fabric()
    }
    fn allocate(&self, bytes: usize) -> Result<Memory, DeviceError> {
        // Reported like an error of a driver, so that it is handled as exhausted memory.
        let bound = MemoryBound::Setting { name: "a failure on purpose", bytes: 0 };
        let lacking = |_| DeviceError::OutOfMemory { bytes, used: 0, bound };
        self.call("an allocation").map_err(lacking)?;
        self.inner.allocate(bytes)
    }
    fn write(&self, source: &[u8], target: &mut Memory, at: usize) -> Result<(), DeviceError> {
        self.call("a copy to the device")?;
        self.inner.write(source, target, at)
    }
    fn read(&self, source: &Memory, at: usize, target: &mut [u8]) -> Result<(), DeviceError> {
        self.call("a copy to the host")?;
        self.inner.read(source, at, target)
    }
    fn copy(&self, source: &Memory, target: &mut Memory, pieces: &[StridedCopy]) -> Result<(), DeviceError> {
        self.call("a copy on the device")?;
        self.inner.copy(source, target, pieces)
    }
    fn launch(&self, launch: Launch<'_>) -> Result<(), DeviceError> {
        self.call("a launch")?;
        self.inner.launch(launch)
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()
    }
    fn recorded(&self, own: &dyn Fn(WorkLabel) -> bool) -> Result<Vec<DeviceSpan>, DeviceError> {
        self.inner.recorded(own)
    }
}

impl<D: Device> Batching for FaultyDevice<D> {
    fn batch(&self, launches: &[BatchedLaunch<'_>]) -> Result<Option<Box<dyn Batch>>, DeviceError> {
        self.inner.batching().map_or(Ok(None), |inner| inner.batch(launches))
    }
    fn submit(&self, batch: &mut dyn Batch, inputs: &[&Memory], outputs: &mut [Memory]) -> Result<bool, DeviceError> {
        self.call("a batch of launches")?;
        self.inner.batching().map_or(Ok(false), |inner| inner.submit(batch, inputs, outputs))
    }
}

impl<D: Device> Staging for FaultyDevice<D> {
    fn page_locked(&self, bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        self.inner.staging().page_locked(bytes)
    }
    fn maps(&self, buffer: &HostBuffer) -> bool {
        self.inner.staging().maps(buffer)
    }
    fn map(&self, buffer: HostBuffer) -> Result<Memory, HostBuffer> {
        if self.call("a use of the host's memory").is_ok() { self.inner.staging().map(buffer) } else { Err(buffer) }
    }
    fn unmap(&self, memory: Memory) -> Result<HostBuffer, DeviceError> {
        self.call("the end of a use of the host's memory")?;
        self.inner.staging().unmap(memory)
    }
}
