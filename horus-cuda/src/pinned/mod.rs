//! Host memory that the GPU accesses directly, and the blocks of it that a device caches.

mod blocks;
mod places;

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use horus_core::error::DeviceError;
use horus_core::host::buffer::HostMemory;
use horus_core::host::sequential_output::SequentialOutput;
use horus_core::host::workers::Workers;

use crate::driver::{CallersContext, check, during};
use crate::memory::Core;

pub(crate) use blocks::{PinnedBlock, PinnedBlocks, PinnedLimits};
pub(crate) use places::{PinnedPlace, PinnedPlaces};

/// Blocks are multiples of this many bytes, a multiple of every system's page size.
const SMALLEST: usize = 64 << 10;
/// Most bytes of a device's blocks for copies.
pub(crate) const MOST: usize = 256 << 20;
/// Bytes released by the program that stay pinned for the next pixels of the same size.
pub(crate) const KEPT: usize = 2 << 30;

/// Memory pinned for all GPUs of the process. It must not be dropped while one accesses it.
pub(crate) struct Pinned {
    at: *mut u8,
    len: usize,
    /// `true` for memory mapped from the system and registered with the driver, `false` for the
    /// driver's own.
    mapped: bool,
    core: Arc<Core>,
}

// SAFETY: plain memory, owned.
unsafe impl Send for Pinned {}
// SAFETY: through a shared reference it is only read.
unsafe impl Sync for Pinned {}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pinned bytes", self.len)
    }
}

impl Pinned {
    /// A block of `len` bytes, a multiple of [`SMALLEST`].
    ///
    /// Mapped pages are zero, and large ones are pinned faster than the driver's. Where mapping is not possible, the
    /// driver allocates.
    pub(crate) fn new(core: &Arc<Core>, len: usize) -> Result<Pinned, DeviceError> {
        Pinned::touched_by(&Workers::alone(), core, len)
    }

    /// [`Pinned::new`] in which `workers` take the page faults of a large block in parallel; the driver takes them one
    /// after the other.
    pub(crate) fn touched_by(workers: &Workers, core: &Arc<Core>, len: usize) -> Result<Pinned, DeviceError> {
        core.context.bind()?;
        Pinned::registered(workers, core, len).map_or_else(|| Pinned::allocated(core, len), Ok)
    }

    /// A block allocated by the driver.
    pub(crate) fn allocated(core: &Arc<Core>, len: usize) -> Result<Pinned, DeviceError> {
        const FLAGS: u32 = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: a context is current.
        let at = unsafe { result::malloc_host(len, FLAGS) };
        let at = during(at, || format!("allocating {len} bytes of pinned memory"))?;
        // SAFETY: the block is `len` bytes; zeroing makes all of them initialised.
        unsafe { std::ptr::write_bytes(at.cast::<u8>(), 0, len) };
        Ok(Pinned { at: at.cast(), len, mapped: false, core: Arc::clone(core) })
    }

    /// A block mapped from the system, if the driver registers it.
    pub(crate) fn registered(workers: &Workers, core: &Arc<Core>, len: usize) -> Option<Pinned> {
        let at = pages::map(len)?;
        // SAFETY: mapped above; `len` zeroed bytes without another owner.
        SequentialOutput::over(unsafe { std::slice::from_raw_parts_mut(at, len) }).fault(workers);
        const FLAGS: u32 = sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        // SAFETY: the range is mapped, and stays so until it is unregistered; a context is current.
        let code = unsafe { sys::cuMemHostRegister_v2(at.cast(), len, FLAGS) };
        if let Err(e) = check(code, || format!("pinning {len} bytes")) {
            log::debug!("{e}");
            // SAFETY: mapped above, and nobody else has the address.
            unsafe { pages::unmap(at, len) };
            return None;
        }
        Some(Pinned { at, len, mapped: true, core: Arc::clone(core) })
    }

    /// Its address, for the driver.
    pub(crate) fn address(&self) -> *mut c_void {
        self.at.cast()
    }
}

impl HostMemory for Pinned {
    fn bytes(&self) -> &[u8] {
        // SAFETY: owned, initialised memory of this length. Callers wait for transfers into it
        // before they read.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively. Callers wait for transfers from it before
        // they write.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn allocate_alike(&self) -> Option<Box<dyn HostMemory>> {
        let another =
            Pinned::new(&self.core, self.len).inspect_err(|e| log::debug!("{e}: pixels are copied elsewhere"));
        Some(Box::new(another.ok()?))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _context = CallersContext::keep();
        // Without a context nothing is pinned any more, and the driver's memory is gone.
        let bound = self.core.context.bind().is_ok();
        // SAFETY: made in one of these ways and not used after; owners wait for transfers before
        // they drop it. A block that stays registered also stays mapped.
        unsafe {
            match (self.mapped, bound) {
                (false, true) => drop(sys::cuMemFreeHost(self.at.cast())),
                (true, true) if sys::cuMemHostUnregister(self.at.cast()) == sys::CUresult::CUDA_SUCCESS => {
                    pages::unmap(self.at, self.len);
                }
                _ => {}
            }
        }
    }
}

/// Memory mapped from the system.
#[cfg(target_os = "linux")]
mod pages {
    /// A large page.
    const LARGE: usize = 2 << 20;

    /// Zeroed memory, in large pages if it is large; `None` if there is none.
    pub(super) fn map(len: usize) -> Option<*mut u8> {
        let large = len >= LARGE;
        let room = if large { len.checked_add(LARGE)? } else { len };
        let (read, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the system's choice.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), room, read, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let base: *mut u8 = base.cast();
        let before = if large { base.align_offset(LARGE) } else { 0 };
        let at = base.wrapping_add(before);
        // SAFETY: inside the new mapping, which has no other owner; the ends are page-aligned. Advice that the system
        // ignores costs speed only; a child process must not share pages that the GPU writes.
        unsafe {
            if before > 0 {
                libc::munmap(base.cast(), before);
            }
            if room - before > len {
                libc::munmap(at.wrapping_add(len).cast(), room - before - len);
            }
            if large {
                libc::madvise(at.cast(), len, libc::MADV_HUGEPAGE);
            }
            libc::madvise(at.cast(), len, libc::MADV_DONTFORK);
        }
        Some(at)
    }

    /// Unmaps memory.
    ///
    /// # Safety
    /// [`map`] must have returned `at` for this length, and it must not be used any more.
    pub(super) unsafe fn unmap(at: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(at.cast(), len) };
    }
}

/// On other systems the driver allocates.
#[cfg(not(target_os = "linux"))]
mod pages {
    pub(super) fn map(_: usize) -> Option<*mut u8> {
        None
    }

    /// # Safety
    /// There is nothing to unmap.
    pub(super) unsafe fn unmap(_: *mut u8, _: usize) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::pages;

    const K: usize = 1 << 10;
    const M: usize = 1 << 20;

    #[test]
    fn mapped_memory_is_aligned_zero_and_writable_to_its_end() {
        for len in [64 * K, 2 * M, 5 * M] {
            let at = pages::map(len).unwrap();
            assert_eq!(at.align_offset(if len < 2 * M { 4096 } else { 2 * M }), 0);
            // SAFETY: just mapped, `len` bytes, and unmapped once.
            unsafe {
                let bytes = std::slice::from_raw_parts_mut(at, len);
                assert!(bytes.iter().all(|b| *b == 0));
                bytes.fill(1);
                pages::unmap(at, len);
            }
        }
    }
}
