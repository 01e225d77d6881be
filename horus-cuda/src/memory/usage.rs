//! Amount of allocated GPU memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::driver::result::{device::get_default_mem_pool, mem_pool};

use super::Core;

/// Bytes allocated now, and the most at a time.
#[derive(Debug, Default)]
pub(super) struct AllocatedBytes {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl AllocatedBytes {
    /// Adds bytes and returns the former amount; the error, for an overflow, is the present amount.
    pub(super) fn add(&self, bytes: usize) -> Result<usize, usize> {
        let added = |used: usize| used.checked_add(bytes);
        let before = self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, added)?;
        self.most.fetch_max(before + bytes, Ordering::Relaxed);
        Ok(before)
    }

    pub(super) fn subtract(&self, bytes: usize) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }
}

impl Core {
    /// Bytes allocated now.
    pub(crate) fn used(&self) -> usize {
        self.used.now()
    }

    /// The largest number of bytes allocated at a time.
    pub(crate) fn most_used(&self) -> usize {
        self.used.most.load(Ordering::Relaxed)
    }

    /// Returns the pool's unused memory to the system.
    pub(crate) fn trim(&self) {
        if self.pooled {
            // SAFETY: live handles. A failure leaves the pool as it is; the following allocation reports it.
            let _ = unsafe { get_default_mem_pool(self.context.device).and_then(|pool| mem_pool::trim_to(pool, 0)) };
        }
    }
}
