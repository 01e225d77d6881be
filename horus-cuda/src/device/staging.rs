//! Transfers with the host, host memory that launches access directly, and memory of other libraries.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{self, CUdeviceptr};
use horus_core::device::check::part;
use horus_core::device::{
    Device as _, Download, DownloadStart, Fabric, Foreign, Memory, PendingDownload, Staging, Ticket,
};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::host::buffer::{HostBuffer, HostMemory, Pool};
use horus_core::host::external::DeviceArray;

use super::CudaDevice;
use crate::driver::check;
use crate::memory::CudaMemory;
use crate::transfers::pinned;

impl CudaDevice {
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
}

impl Staging for CudaDevice {
    fn allocate_read_ahead(&self, bytes: usize, pool: &Arc<Pool>) -> Result<HostBuffer, DeviceError> {
        self.transfers.allocate_upload_source(bytes, pool)
    }

    fn page_locked(&self, bytes: usize) -> Result<Option<Box<dyn HostMemory>>, DeviceError> {
        self.transfers.page_locked(bytes).map(Some)
    }

    fn maps(&self, buffer: &HostBuffer) -> bool {
        pinned(buffer).is_some()
    }

    fn map(&self, buffer: HostBuffer) -> Result<Memory, HostBuffer> {
        match self.address_of(&buffer) {
            Ok(Some(at)) => Ok(Memory::Device(Box::new(CudaMemory::mapped(&self.core, at, buffer)))),
            Ok(None) => Err(buffer),
            Err(e) => {
                log::debug!("{e}: pixels are copied");
                Err(buffer)
            }
        }
    }

    fn allocate_for_host(&self, bytes: usize, pool: &Arc<Pool>) -> Option<Memory> {
        let place = self.transfers.place(bytes)?;
        self.map(pool.try_adopt(Box::new(place), bytes).ok()?).ok()
    }

    fn unmap(&self, mut memory: Memory) -> Result<HostBuffer, DeviceError> {
        // Even after an error the memory holds the buffer until the stream is idle.
        self.synchronize()?;
        let other = || DeviceError::Argument(format!("memory that is not the host's was given to {}", self.about.name));
        self.own_mut(&mut memory)?.take_host_buffer().ok_or_else(other)
    }

    fn page_locked_for_transfer(&self, bytes: usize) -> Option<Box<dyn HostMemory>> {
        self.transfers.take_pinned(bytes)
    }

    fn upload_parts(&self, parts: &[&[u8]]) -> Result<Option<Memory>, DeviceError> {
        let taken = self.transfers.take(parts, self.capacity.load(Ordering::Relaxed))?;
        Ok(taken.map(|memory| Memory::Device(Box::new(memory))))
    }

    fn allocate_for_upload(&self, bytes: usize) -> Result<Memory, DeviceError> {
        Ok(Memory::Device(Box::new(self.transfers.allocate(bytes)?)))
    }

    fn begin_upload(
        &self,
        source: &HostBuffer,
        target: &mut Memory,
        pieces: &[StridedCopy],
    ) -> Result<Ticket, DeviceError> {
        self.core.context.bind()?;
        let ticket = self.exchanges.fetch_add(1, Ordering::Relaxed);
        self.transfers.begin(ticket, source, self.own_mut(target)?, pieces)
    }

    fn wait_for_upload(&self, ticket: Ticket, target: &mut Memory) -> Result<(), DeviceError> {
        Fabric::wait_for_exchange(self, ticket, &mut [target])
    }

    fn begin_download<'a>(
        &'a self,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: DownloadStart,
    ) -> Result<Box<dyn Download + 'a>, DeviceError> {
        let begun: Box<dyn Download> = self.transfers.begin_download(range, pool, when)?;
        Ok(begun)
    }

    fn start_download(
        &self,
        source: &Memory,
        range: Range<usize>,
        pool: &Arc<Pool>,
        when: DownloadStart,
    ) -> Result<Box<dyn PendingDownload>, DeviceError> {
        self.core.context.bind()?;
        part(range.start, range.len(), source.len())?;
        self.transfers.order(self.own(source)?, range, pool, when)
    }
}

impl Foreign for CudaDevice {
    fn ordinal(&self) -> usize {
        self.core.context.device.cast_unsigned() as usize
    }

    fn adopt(&self, array: &DeviceArray, copied: bool) -> Result<Memory, DeviceError> {
        Ok(Memory::Device(Box::new(self.core.adopt(array, copied)?)))
    }

    fn export(&self, memory: &Memory, stream: Option<u64>) -> Result<DeviceArray, DeviceError> {
        self.core.export_block(self.own(memory)?, stream)
    }
}
