//! Host memory that launches access directly, until the stream has passed them.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard, PoisonError};

use cudarc::driver::sys::CUdeviceptr;
use horus_core::host::buffer::HostBuffer;

use super::{Block, Core, CudaMemory, Held, Reading};
use crate::driver::Event;

impl Core {
    /// Releases blocks that have been copied to the host. The context must be current.
    pub(crate) fn reap(&self) {
        // Owners stay if the driver cannot tell.
        let is_over = |r: &mut Reading| r.done.passed().unwrap_or(false);
        let over: Vec<Reading> = self.readings().extract_if(.., is_over).collect();
        let is_over = |(done, _): &mut (Event, Held)| done.passed().unwrap_or(false);
        let lent: Vec<_> = self.lent().extract_if(.., is_over).collect();
        drop((over, lent));
    }

    pub(super) fn lent(&self) -> MutexGuard<'_, Vec<(Event, Held)>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases all lent buffers; the stream must be idle.
    pub(crate) fn give_lent_back(&self) {
        let lent = std::mem::take(&mut *self.lent());
        drop(lent);
    }

    /// Holds what launches have used until the stream has passed them.
    pub(super) fn hold_lent(&self, held: Held) {
        let bound = self.context.bind();
        if bound.is_ok() && self.stream.idle().unwrap_or(false) {
            return; // idle
        }
        let done = bound.and_then(|()| Event::new(false));
        match done.and_then(|done| done.record(&self.stream).map(|()| done)) {
            Ok(done) => self.lent().push((done, held)),
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
            Block { core: Arc::clone(core), at, mapped: Some(buffer), owner: None, touched: AtomicBool::new(true) };
        CudaMemory { block: Arc::new(block), bytes }
    }

    /// The host buffer, if this is mapped host memory; nothing uses it any more.
    pub(crate) fn give_back(&mut self) -> Option<HostBuffer> {
        let Some(block) = Arc::get_mut(&mut self.block) else { return self.block.mapped.clone() };
        let buffer = block.mapped.take()?;
        block.at = 0;
        Some(buffer)
    }
}
