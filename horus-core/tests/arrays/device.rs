//! A simulated device that accesses page-locked memory directly.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use horus_core::cpu::device::CpuDevice;
use horus_core::device::{Device, DeviceNames, Launch, Memory, MemoryKind, Staging, Ticket};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::buffer::{HostBuffer, HostMemory};
use horus_core::host::workers::Workers;
use horus_testing::simulated::SimulatedDevice;

/// Memory that a device reads directly, with a count of its blocks.
#[derive(Debug)]
struct LockedMemory(Vec<u64>, Arc<LockedCounts>);

#[derive(Debug, Default)]
pub(crate) struct LockedCounts {
    /// Live blocks.
    blocks: AtomicUsize,
    /// Uploads from such memory.
    direct: AtomicUsize,
    /// Images taken at once.
    taken: AtomicUsize,
}

impl LockedCounts {
    /// All counts, in this order.
    pub(crate) fn get(&self) -> [usize; 3] {
        [&self.blocks, &self.direct, &self.taken].map(|count| count.load(Ordering::Relaxed))
    }
}

impl LockedMemory {
    fn new(bytes: usize, counts: &Arc<LockedCounts>) -> Box<LockedMemory> {
        counts.blocks.fetch_add(1, Ordering::Relaxed);
        Box::new(LockedMemory(vec![u64::MAX; bytes.div_ceil(8) + 8], Arc::clone(counts)))
    }

    fn at(&self) -> usize {
        self.0.as_ptr().align_offset(64)
    }
}

impl HostMemory for LockedMemory {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0[self.at()..])
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        let at = self.at();
        bytemuck::cast_slice_mut(&mut self.0[at..])
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn allocate_alike(&self) -> Option<Box<dyn HostMemory>> {
        Some(LockedMemory::new(self.0.len() * 8 - 64, &self.1))
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        self.1.blocks.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A simulated device that locks pages, up to `most` bytes at once, and takes images of `take`
/// bytes and more at once.
pub(crate) struct Locking {
    inner: SimulatedDevice<CpuDevice>,
    most: usize,
    take: usize,
    counts: Arc<LockedCounts>,
}

impl Locking {
    pub(crate) fn new(most: usize, take: usize) -> (Locking, Arc<LockedCounts>) {
        let counts = Arc::new(LockedCounts::default());
        let inner = SimulatedDevice::new(CpuDevice::new(Some(2)).unwrap(), 1 << 26);
        (Locking { inner, most, take, counts: Arc::clone(&counts) }, counts)
    }
}

impl Device for Locking {
    fn names(&self) -> DeviceNames {
        DeviceNames::named("a device that locks pages")
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

impl Staging for Locking {
    fn page_locked(&self, bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        if bytes > self.most {
            return Err(DeviceError::Driver("no more pages can be locked".into()));
        }
        Ok(Some(LockedMemory::new(bytes, &self.counts)))
    }
    fn upload_parts(&self, parts: &[&[u8]]) -> Result<Option<Memory>, DeviceError> {
        let whole = parts.concat();
        if whole.len() < self.take {
            return Ok(None);
        }
        let mut memory = self.allocate(whole.len())?;
        self.write(&whole, &mut memory, 0)?;
        self.counts.taken.fetch_add(1, Ordering::Relaxed);
        Ok(Some(memory))
    }
    fn begin_upload(
        &self,
        source: &HostBuffer,
        target: &mut Memory,
        pieces: &[StridedCopy],
    ) -> Result<Ticket, DeviceError> {
        for (from, to, bytes) in pieces.iter().flat_map(|p| p.runs()) {
            if source.adopted().is_some_and(|memory| memory.as_any().is::<LockedMemory>()) {
                self.counts.direct.fetch_add(1, Ordering::Relaxed);
            }
            self.write(&source.bytes()[from..from + bytes], target, to)?;
        }
        Ok(Ticket::OVER)
    }
}
