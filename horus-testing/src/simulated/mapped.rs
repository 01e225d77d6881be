//! Host memory that a simulated device uses in place of its own.

use std::any::Any;
use std::sync::Arc;

use super::memory::{SeparateMemory, foreign};
use horus_base::error::DeviceError;
use horus_host::device::Memory;
use horus_host::host::buffer::{HostBuffer, HostMemory};
use horus_host::host::external::DeviceArray;

/// Memory treated as page-locked.
#[derive(Debug)]
pub(super) struct Locked(HostBuffer);

impl Locked {
    pub(super) fn room(bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        Ok(Some(Box::new(Locked(HostBuffer::try_zeroed(bytes)?))))
    }
}

impl HostMemory for Locked {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn alike(&self) -> Option<Box<dyn HostMemory>> {
        Locked::room(self.0.len()).ok().flatten()
    }
}

/// Returns `true` if a buffer lies there.
pub(super) fn is_locked(buffer: &HostBuffer) -> bool {
    buffer.adopted().is_some_and(|memory| memory.as_any().is::<Locked>())
}

/// Extracts the buffer from memory made over it.
pub(super) fn given_back(memory: &mut Memory) -> Result<HostBuffer, DeviceError> {
    let Memory::Device(block) = memory else { return Err(foreign()) };
    let block = block.as_any_mut().downcast_mut::<SeparateMemory>().filter(|block| block.mapped).ok_or_else(foreign)?;
    block.memory.host().cloned().ok_or_else(foreign)
}

/// The buffer of an array lent by a simulated device; other memory is rejected.
pub(super) fn adopted(array: &DeviceArray) -> Result<HostBuffer, DeviceError> {
    array.owner().downcast_ref::<HostBuffer>().cloned().ok_or_else(foreign)
}

/// An array that shares a buffer.
pub(super) fn lent(buffer: &HostBuffer) -> DeviceArray {
    let address = buffer.bytes().as_ptr() as usize as u64;
    DeviceArray::ours(address, buffer.len(), Arc::new(buffer.clone()))
}
