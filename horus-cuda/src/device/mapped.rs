//! Host memory that launches access directly.

use cudarc::driver::sys::{self, CUdeviceptr};
use horus_core::device::{Device as _, Memory};
use horus_core::error::DeviceError;
use horus_core::host::buffer::HostBuffer;

use super::CudaDevice;
use crate::driver::check;
use crate::memory::CudaMemory;
use crate::transfers::pinned;

impl CudaDevice {
    /// See [`horus_core::device::Staging::map`]; only pinned memory is mapped.
    pub(super) fn map_host(&self, buffer: HostBuffer) -> Result<Memory, HostBuffer> {
        match self.address_of(&buffer) {
            Ok(Some(at)) => Ok(Memory::Device(Box::new(CudaMemory::mapped(&self.core, at, buffer)))),
            Ok(None) => Err(buffer),
            Err(e) => {
                log::debug!("{e}: pixels are copied");
                Err(buffer)
            }
        }
    }

    /// The device address of a pinned buffer.
    fn address_of(&self, buffer: &HostBuffer) -> Result<Option<CUdeviceptr>, DeviceError> {
        let Some(at) = pinned(buffer) else { return Ok(None) };
        self.core.context.bind()?;
        let mut address = 0;
        // SAFETY: a pointer to a live address; the block is pinned as long as the buffer is held.
        let code = unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, at, 0) };
        check(code, || format!("mapping {} pinned bytes", buffer.len()))?;
        Ok(Some(address))
    }

    /// See [`horus_core::device::Staging::unmap`].
    pub(super) fn unmap_host(&self, mut memory: Memory) -> Result<HostBuffer, DeviceError> {
        // Even after an error the memory holds the buffer until the stream is idle.
        self.synchronize()?;
        let other = || DeviceError::Argument(format!("memory that is not the host's was given to {}", self.about.name));
        self.own_mut(&mut memory)?.give_back().ok_or_else(other)
    }
}
