//! Owners of host memory and arrays of other libraries that launches access directly, until the stream has passed the
//! launches.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use horus_core::host::buffer::HostBuffer;

use super::{Core, CudaMemory, ForeignOwners, GpuBlock, GpuDownload, MemoryOwner};
use crate::driver::{CallersContext, CudaEvent};

impl Core {
    /// Releases the memory of launches that the stream has passed. The context must be current.
    pub(crate) fn release_finished(&self) {
        let arrays = self.arrays();
        if !arrays.is_empty() {
            self.retain_owner(Box::new(arrays));
        }
        // Owners stay if the driver cannot tell.
        let is_over = |r: &mut GpuDownload| r.done.passed().unwrap_or(false);
        let over: Vec<GpuDownload> = self.lock_downloads().extract_if(.., is_over).collect();
        // They are in the order of the stream.
        let mut lent = self.foreign_owners();
        let still =
            lent.in_use.iter().position(|(done, _)| !done.passed().unwrap_or(false)).unwrap_or(lent.in_use.len());
        let ended: Vec<(CudaEvent, MemoryOwner)> = lent.in_use.drain(..still).collect();
        let (events, owners): (Vec<CudaEvent>, Vec<MemoryOwner>) = ended.into_iter().unzip();
        lent.spare.extend(events);
        drop(lent);
        drop((over, owners));
    }

    fn foreign_owners(&self) -> MutexGuard<'_, ForeignOwners> {
        self.foreign_owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases all owners; the stream must be idle.
    pub(crate) fn release_foreign_owners(&self) {
        let held = std::mem::take(&mut self.foreign_owners().in_use);
        drop((held, self.arrays()));
    }

    /// The arrays that launches so far have used.
    pub(super) fn arrays(&self) -> Vec<MemoryOwner> {
        std::mem::take(&mut self.foreign_owners().arrays)
    }

    /// Keeps an array that launches have used, until the stream of its library waits for them or the stream has passed
    /// them.
    pub(super) fn retain_array(&self, owner: MemoryOwner) {
        let _context = CallersContext::keep();
        if self.is_idle() {
            return;
        }
        self.foreign_owners().arrays.push(owner);
    }

    fn is_idle(&self) -> bool {
        self.context.bind().is_ok() && self.stream.idle().unwrap_or(false)
    }

    /// Keeps the owner of memory that launches have used, until the stream has passed them.
    pub(super) fn retain_owner(&self, held: MemoryOwner) {
        let _context = CallersContext::keep();
        if self.is_idle() {
            return;
        }
        let mut lent = self.foreign_owners();
        let spare = lent.spare.pop();
        let done = self.context.bind().and_then(|()| spare.map_or_else(|| CudaEvent::new(false), Ok));
        match done.and_then(|done| done.record(&self.stream).map(|()| done)) {
            Ok(done) => lent.in_use.push_back((done, held)),
            // It is unknown when it is free, so it is leaked.
            Err(_) => std::mem::forget(held),
        }
    }
}

impl CudaMemory {
    /// Host memory that launches access at this address.
    pub(crate) fn mapped(core: &Arc<Core>, at: CUdeviceptr, buffer: HostBuffer) -> CudaMemory {
        let bytes = buffer.len();
        let block =
            GpuBlock { core: Arc::clone(core), at, mapped: Some(buffer), owner: None, touched: AtomicBool::new(true) };
        CudaMemory { block: Arc::new(block), bytes }
    }

    /// The host buffer, if this is mapped host memory. Launches may still write to it.
    pub(crate) fn host_buffer(&self) -> Option<&HostBuffer> {
        self.block.mapped.as_ref()
    }

    /// The host buffer, if this is mapped host memory that nothing uses any more.
    pub(crate) fn take_host_buffer(&mut self) -> Option<HostBuffer> {
        let Some(block) = Arc::get_mut(&mut self.block) else { return self.block.mapped.clone() };
        let buffer = block.mapped.take()?;
        block.at = 0;
        Some(buffer)
    }
}
