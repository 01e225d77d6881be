//! Uploads of a simulated device, host memory that it uses in place of its own, and memory that it exports.

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::exchange::PendingArrivals;
use super::memory::{SeparateMemory, foreign, separate};
use super::{POISON, SimulatedDevice};
use horus_base::error::DeviceError;
use horus_host::StridedCopy;
use horus_host::buffer::{HostBuffer, HostMemory};
use horus_host::device::{Device, DeviceQueue, Fabric, Foreign, Memory, Staging, Ticket};
use horus_host::external::DeviceArray;

/// Memory treated as page-locked.
#[derive(Debug)]
struct PageLockedMemory(HostBuffer);

impl PageLockedMemory {
    fn room(bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        Ok(Some(Box::new(PageLockedMemory(HostBuffer::try_zeroed(bytes)?))))
    }
}

impl HostMemory for PageLockedMemory {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn allocate_alike(&self) -> Option<Box<dyn HostMemory>> {
        PageLockedMemory::room(self.0.len()).ok().flatten()
    }
}

impl<D: Device> Staging for SimulatedDevice<D> {
    fn page_locked(&self, bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        if self.mapping { PageLockedMemory::room(bytes) } else { Ok(None) }
    }

    fn maps(&self, buffer: &HostBuffer) -> bool {
        self.mapping && buffer.adopted().is_some_and(|memory| memory.as_any().is::<PageLockedMemory>())
    }

    /// The device's copy is poisoned, and the host sees none of it before [`Staging::unmap`].
    fn map(&self, mut buffer: HostBuffer) -> Result<Memory, HostBuffer> {
        if !self.maps(&buffer) {
            return Err(buffer);
        }
        if !buffer.is_shared() {
            buffer.bytes_mut().fill(POISON);
        }
        self.counters.maps.fetch_add(1, Ordering::Relaxed);
        let (memory, counters) = (Memory::Host(buffer), Arc::clone(&self.counters));
        Ok(Memory::Device(Box::new(SeparateMemory { memory, identity: Arc::default(), mapped: true, counters })))
    }

    fn unmap(&self, mut memory: Memory) -> Result<HostBuffer, DeviceError> {
        self.inner.synchronize()?;
        let Memory::Device(block) = &mut memory else { return Err(foreign()) };
        let block = block.as_any_mut().downcast_mut::<SeparateMemory>().filter(|block| block.mapped);
        block.and_then(|block| block.memory.host().cloned()).ok_or_else(foreign)
    }

    /// The bytes reach the block when the upload arrives, not before.
    fn begin_upload(
        &self,
        source: &HostBuffer,
        target: &mut Memory,
        pieces: &[StridedCopy],
    ) -> Result<Ticket, DeviceError> {
        let begun = self.counters.writes.fetch_add(1, Ordering::Relaxed) as u64;
        let upload =
            self.spans.note(DeviceQueue::Upload, || PendingArrivals::upload(source.bytes(), target, pieces))?;
        // Exchanges are counted from the other end.
        let ticket = u64::MAX / 2 + begun;
        self.pending_exchanges.lock().unwrap_or_else(PoisonError::into_inner).insert(ticket, upload);
        Ok(Ticket(ticket))
    }

    fn wait_for_upload(&self, ticket: Ticket, target: &mut Memory) -> Result<(), DeviceError> {
        Fabric::wait_for_exchange(self, ticket, &mut [target])
    }
}

impl<D: Device> Foreign for SimulatedDevice<D> {
    fn ordinal(&self) -> usize {
        0
    }

    fn adopt(&self, array: &DeviceArray, _copied: bool) -> Result<Memory, DeviceError> {
        let buffer = array.owner().downcast_ref::<HostBuffer>().ok_or_else(foreign)?;
        let (memory, counters) = (Memory::Host(buffer.clone()), Arc::clone(&self.counters));
        Ok(Memory::Device(Box::new(SeparateMemory { memory, identity: Arc::default(), mapped: true, counters })))
    }

    fn export(&self, memory: &Memory, stream: Option<u64>) -> Result<DeviceArray, DeviceError> {
        let buffer = separate(memory)?.host().ok_or_else(foreign)?;
        let address = buffer.bytes().as_ptr() as usize as u64;
        Ok(DeviceArray::ours(address, buffer.len(), stream, Arc::new(buffer.clone())))
    }
}
