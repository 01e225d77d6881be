//! Host memory that the GPU reads and writes by itself, and the blocks of it that a device keeps.

use std::any::Any;
use std::collections::HashSet;
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use horus_core::error::DeviceError;
use horus_core::host::buffer::HostMemory;

use crate::driver::check;
use crate::memory::Core;

/// Blocks are multiples of this many bytes: of every system's pages.
const SMALLEST: usize = 64 << 10;
/// Pinning a block takes longer than copying through smaller ones. Up to this size it hides behind kernels.
const AT_ONCE: usize = 32 << 20;
/// Bytes that the blocks of a device have together.
pub(crate) const MOST: usize = 256 << 20;

/// Pinned memory. It must not be dropped while the GPU reads or writes it.
pub(crate) struct Pinned {
    at: *mut u8,
    len: usize,
    /// Mapped from the system and registered with the driver; else the driver's own.
    mapped: bool,
    core: Arc<Core>,
}

// SAFETY: plain memory, owned.
unsafe impl Send for Pinned {}
// SAFETY: shared, it is only read.
unsafe impl Sync for Pinned {}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pinned bytes", self.len)
    }
}

impl Pinned {
    /// A block of `len` bytes, a multiple of [`SMALLEST`].
    ///
    /// Pages that the system maps are zero, and large ones are pinned faster than those of the driver. Where that is not
    /// possible the driver allocates.
    pub(crate) fn new(core: &Arc<Core>, len: usize) -> Result<Pinned, DeviceError> {
        core.context.bind()?;
        Pinned::registered(core, len).map_or_else(|| Pinned::allocated(core, len), Ok)
    }

    /// A block of the driver's.
    pub(crate) fn allocated(core: &Arc<Core>, len: usize) -> Result<Pinned, DeviceError> {
        let mut at: *mut c_void = std::ptr::null_mut();
        // SAFETY: a pointer to a live pointer; a context is current.
        check(unsafe { sys::cuMemHostAlloc(&mut at, len, 0) }, || format!("allocating {len} bytes of pinned memory"))?;
        // SAFETY: the block is `len` bytes; zeroing makes all of them initialised.
        unsafe { std::ptr::write_bytes(at.cast::<u8>(), 0, len) };
        Ok(Pinned { at: at.cast(), len, mapped: false, core: Arc::clone(core) })
    }

    /// A block of the system's, if the driver takes it.
    pub(crate) fn registered(core: &Arc<Core>, len: usize) -> Option<Pinned> {
        let at = pages::map(len)?;
        // SAFETY: the range is mapped, and stays so until it is unregistered; a context is current.
        let code = unsafe { sys::cuMemHostRegister_v2(at.cast(), len, 0) };
        if let Err(e) = check(code, || format!("pinning {len} bytes")) {
            log::debug!("{e}");
            // SAFETY: mapped above, and nobody else has the address.
            unsafe { pages::unmap(at, len) };
            return None;
        }
        Some(Pinned { at, len, mapped: true, core: Arc::clone(core) })
    }

    /// Where it is, for the driver.
    pub(crate) fn address(&self) -> *mut c_void {
        self.at.cast()
    }
}

impl HostMemory for Pinned {
    fn bytes(&self) -> &[u8] {
        // SAFETY: owned, initialised memory of this length. Callers wait for transfers into it before they look.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively. Callers wait for transfers from it before they write.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // Without a context nothing is pinned any more, and the driver's memory is gone.
        let bound = self.core.context.bind().is_ok();
        // SAFETY: made in one of these ways, and not used after; owners wait for transfers before they drop it. A block
        // that stays registered stays mapped, too.
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

/// Memory straight from the system.
#[cfg(target_os = "linux")]
mod pages {
    /// A large page.
    const LARGE: usize = 2 << 20;

    /// Zeroed memory, of large pages if it is large, or nothing.
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
        // SAFETY: inside the new mapping, nobody has these addresses; the ends are whole pages. Refused advice costs speed
        // only; a child process must not share pages that the GPU writes.
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

    /// Gives memory back.
    ///
    /// # Safety
    /// [`map`] returned `at` for this length, and it is not used any more.
    pub(super) unsafe fn unmap(at: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { libc::munmap(at.cast(), len) };
    }
}

/// Other systems' memory is the driver's.
#[cfg(not(target_os = "linux"))]
mod pages {
    pub(super) fn map(_: usize) -> Option<*mut u8> {
        None
    }

    /// # Safety
    /// There is nothing to unmap.
    pub(super) unsafe fn unmap(_: *mut u8, _: usize) {}
}

/// Bytes of the block for so many: in each doubling four sizes, so that at most a fifth is wasted.
fn class(bytes: usize) -> Option<usize> {
    let step = bytes.max(1).checked_next_power_of_two()? / 8;
    bytes.max(1).checked_next_multiple_of(step.max(SMALLEST))
}

/// Blocks of a device: those that nobody uses are kept for the next who asks for their size.
#[derive(Debug)]
pub(crate) struct Blocks<M> {
    most: usize,
    state: Mutex<State<M>>,
}

#[derive(Debug)]
struct State<M> {
    /// Blocks that nobody uses, those used last at the end.
    free: Vec<(usize, M)>,
    /// Bytes of all blocks.
    held: usize,
    /// Large sizes that were asked for.
    wanted: HashSet<usize>,
}

impl<M> Blocks<M> {
    /// Blocks of at most `most` bytes together.
    pub(crate) fn new(most: usize) -> Arc<Blocks<M>> {
        let state = State { free: Vec::new(), held: 0, wanted: HashSet::new() };
        Arc::new(Blocks { most, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least `bytes` bytes, one that is free or a new one of `allocate`. None if there would be too many
    /// bytes, if the system has none, and for a large block when its size is asked for the first time: what is read once
    /// does not pay for a block of its own.
    pub(crate) fn take(
        self: &Arc<Blocks<M>>,
        bytes: usize,
        allocate: impl FnOnce(usize) -> Result<M, DeviceError>,
    ) -> Option<Loan<M>> {
        let size = class(bytes).filter(|size| *size <= self.most)?;
        let loan = |memory| Loan { memory: Some(memory), size, blocks: Arc::clone(self) };
        let mut given_up = Vec::new();
        {
            let mut state = self.state();
            if let Some(i) = state.free.iter().rposition(|(s, _)| *s == size) {
                return Some(loan(state.free.remove(i).1));
            }
            if size > AT_ONCE && state.wanted.insert(size) {
                return None;
            }
            let lent: usize = state.held - state.free.iter().map(|(s, _)| s).sum::<usize>();
            if lent + size > self.most {
                return None;
            }
            while state.held + size > self.most {
                let (s, memory) = state.free.remove(0);
                state.held -= s;
                given_up.push(memory);
            }
            state.held += size;
        }
        drop(given_up);
        match allocate(size) {
            Ok(memory) => Some(loan(memory)),
            Err(e) => {
                log::debug!("{e}: pixels go through other memory");
                self.state().held -= size;
                None
            }
        }
    }
}

/// A block in use, given back when it is dropped: not before the GPU is done with it.
pub(crate) struct Loan<M> {
    memory: Option<M>,
    size: usize,
    blocks: Arc<Blocks<M>>,
}

impl<M> fmt::Debug for Loan<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a block of {} bytes", self.size)
    }
}

impl<M> Loan<M> {
    /// Leaves the memory alone for good: nobody can tell whether the GPU is done with it.
    pub(crate) fn abandon(&mut self) {
        std::mem::forget(self.memory.take());
    }
}

impl Loan<Pinned> {
    /// Where it is, for the driver.
    pub(crate) fn address(&self) -> *mut c_void {
        self.memory.as_ref().map_or(std::ptr::null_mut(), Pinned::address)
    }

    /// Whether it was pinned for this device.
    pub(crate) fn belongs_to(&self, core: &Arc<Core>) -> bool {
        self.memory.as_ref().is_some_and(|memory| Arc::ptr_eq(&memory.core, core))
    }
}

impl<M: HostMemory + 'static> HostMemory for Loan<M> {
    fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], M::bytes)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], M::bytes_mut)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<M> Drop for Loan<M> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.blocks.state().free.push((self.size, memory));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const K: usize = 1 << 10;
    const M: usize = 1 << 20;

    #[test]
    fn sizes_are_pages_and_waste_little() {
        let expected = [(0, 64 * K), (1, 64 * K), (64 * K, 64 * K), (64 * K + 1, 128 * K), (M, M), (M + 1, 5 * M / 4)];
        for (bytes, size) in expected.into_iter().chain([(16 * M, 16 * M), (67 * M, 80 * M), (65 * M, 80 * M)]) {
            assert_eq!(class(bytes), Some(size), "{bytes}");
        }
        for bytes in (1..200).map(|i| i * i * 7919) {
            let size = class(bytes).unwrap();
            assert!(size >= bytes && size.is_multiple_of(SMALLEST), "{bytes}: {size}");
            assert!(size - bytes < (size / 4).max(SMALLEST), "{bytes}: {size}");
            assert_eq!(class(size), Some(size), "{bytes}: {size}");
        }
        assert_eq!(class(usize::MAX), None);
    }

    /// Memory that counts how much of it there is.
    struct Fake(usize, Arc<AtomicUsize>);

    impl Drop for Fake {
        fn drop(&mut self) {
            self.1.fetch_sub(self.0, Ordering::Relaxed);
        }
    }

    /// Blocks of at most so many bytes, how much memory there is, and what takes a block.
    struct Fakes(Arc<Blocks<Fake>>, Arc<AtomicUsize>);

    impl Fakes {
        fn new(most: usize) -> Fakes {
            Fakes(Blocks::new(most), Arc::default())
        }

        fn take(&self, bytes: usize) -> Option<Loan<Fake>> {
            self.0.take(bytes, |size| {
                self.1.fetch_add(size, Ordering::Relaxed);
                Ok(Fake(size, Arc::clone(&self.1)))
            })
        }

        fn there(&self) -> usize {
            self.1.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn blocks_are_used_again_and_never_too_many() {
        let fakes = Fakes::new(4 * M);
        let (a, b) = (fakes.take(M).unwrap(), fakes.take(M - 7).unwrap());
        assert_eq!(fakes.there(), 2 * M);
        drop(a);
        let a = fakes.take(M - 1).unwrap();
        assert_eq!(fakes.there(), 2 * M, "the same block");
        let c = fakes.take(2 * M).unwrap();
        assert!(fakes.take(64 * K).is_none(), "all is in use");
        assert!(fakes.take(5 * M).is_none(), "more than there may be");
        drop((a, b));
        assert!(fakes.take(3 * M).is_none());
        assert_eq!(fakes.there(), 4 * M, "nothing is given up in vain");
        let d = fakes.take(5 * M / 4).unwrap();
        assert_eq!(fakes.there(), 13 * M / 4, "what nobody uses makes room");
        drop((c, d));
        assert_eq!(fakes.there(), 13 * M / 4);
        drop(fakes.take(0).unwrap());
        assert_eq!(fakes.there(), 13 * M / 4 + 64 * K);
    }

    #[test]
    fn a_large_block_is_made_when_its_size_comes_again() {
        let fakes = Fakes::new(256 * M);
        assert!(fakes.take(64 * M).is_none());
        assert!(fakes.take(40 * M).is_none());
        let first = fakes.take(64 * M).unwrap();
        assert!(fakes.take(64 * M - 1).is_some(), "of the same size");
        assert_eq!(fakes.there(), 128 * M);
        drop(first);
        assert!(fakes.take(AT_ONCE).is_some());
    }

    #[test]
    fn blocks_outlive_whoever_made_them_and_a_failure_takes_no_room() {
        let fakes = Fakes::new(M);
        let fails = |_| Err(DeviceError::Driver("no memory to pin".into()));
        assert!(fakes.0.take(M, fails).is_none());
        let loan = fakes.take(M).unwrap();
        let Fakes(blocks, there) = fakes;
        drop(blocks);
        assert_eq!(there.load(Ordering::Relaxed), M);
        drop(loan);
        assert_eq!(there.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn many_threads_take_and_give_back() {
        let fakes = Fakes::new(3 * M);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let fakes = &fakes;
                scope.spawn(move || {
                    for i in 0..500 {
                        drop(fakes.take((thread * 37 + i * 91) % 1500 * K));
                    }
                });
            }
        });
        let state = fakes.0.state();
        assert_eq!(state.held, state.free.iter().map(|(s, _)| s).sum::<usize>());
        assert_eq!(state.held, fakes.there());
        assert!(state.held <= 3 * M);
    }

    #[cfg(target_os = "linux")]
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
