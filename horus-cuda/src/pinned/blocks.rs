//! Blocks of pinned memory that a device caches and hands out.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use horus_core::error::DeviceError;
use horus_core::host::buffer::HostMemory;

use super::{Pinned, SMALLEST};

/// Largest block that is pinned at the first request. Pinning takes longer than copying through smaller blocks; up to
/// this size kernels hide it.
const AT_ONCE: usize = 32 << 20;

/// Requests after which a block for passing pixels is worth its cost. Locking pages takes 0.2 to 0.4 ms per MiB.
/// Compared with locked chunks, a direct copy by the GPU saves 0.006 ms per MiB of an upload and 0.009 of a download
/// (H200, 16 cores: 55 GB/s instead of 41 and 37).
const PAYS: usize = 32;

/// Block size for a request: four sizes per doubling, so that at most a fifth is wasted.
fn class(bytes: usize) -> Option<usize> {
    let step = bytes.max(1).checked_next_power_of_two()? / 8;
    bytes.max(1).checked_next_multiple_of(step.max(SMALLEST))
}

/// Block size for the program's pixels: whole pages, and large pages if it is large.
fn pages(bytes: usize) -> Option<usize> {
    const LARGE: usize = 2 << 20;
    let page = if bytes < LARGE { SMALLEST } else { LARGE };
    bytes.max(1).checked_next_multiple_of(page).filter(|size| isize::try_from(*size).is_ok())
}

/// Limits on the memory of blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedLimits {
    /// Most bytes of all blocks.
    most: usize,
    /// Most bytes of unused blocks.
    most_unused: usize,
    /// Larger sizes must be requested twice.
    at_once: usize,
    /// Block size for a request.
    size: fn(usize) -> Option<usize>,
}

impl PinnedLimits {
    /// Limits for copies: at most `most` bytes. A single read is not worth a large block of its own.
    pub(crate) fn of_copies(most: usize) -> PinnedLimits {
        PinnedLimits { most, most_unused: most, at_once: AT_ONCE, size: class }
    }

    /// Limits for memory that the program requests: none, except that at most `kept` bytes stay after they are
    /// released.
    pub(crate) fn of_program(kept: usize) -> PinnedLimits {
        PinnedLimits { most: usize::MAX, most_unused: kept, at_once: usize::MAX, size: pages }
    }
}

/// Blocks of a device; unused blocks serve the next request of their size.
#[derive(Debug)]
pub(crate) struct PinnedBlocks<M> {
    rules: PinnedLimits,
    state: Mutex<PinnedBlocksState<M>>,
    /// `true` once [`PinnedBlocks::stock`] must end.
    closed: AtomicBool,
}

#[derive(Debug)]
struct PinnedBlocksState<M> {
    /// Unused blocks, the most recently used last.
    free: Vec<(usize, M)>,
    /// Bytes of all blocks.
    total_bytes: usize,
    /// Large sizes that were requested.
    wanted: HashSet<usize>,
    /// Number of requests for sizes that were not allocated.
    passed: HashMap<usize, usize>,
}

impl<M> PinnedBlocks<M> {
    pub(crate) fn new(rules: PinnedLimits) -> Arc<PinnedBlocks<M>> {
        let state =
            PinnedBlocksState { free: Vec::new(), total_bytes: 0, wanted: HashSet::new(), passed: HashMap::new() };
        Arc::new(PinnedBlocks { rules, state: Mutex::new(state), closed: AtomicBool::new(false) })
    }

    fn state(&self) -> MutexGuard<'_, PinnedBlocksState<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least `bytes` bytes, free or newly allocated by `allocate`. `None` if the
    /// limit would be exceeded, if the system has no memory, and at the first request of a large
    /// size.
    pub(crate) fn take(
        self: &Arc<PinnedBlocks<M>>,
        bytes: usize,
        allocate: impl Fn(usize) -> Result<M, DeviceError>,
    ) -> Option<PinnedBlock<M>> {
        let taken = self.try_take(bytes, allocate);
        taken.inspect_err(|e| log::debug!("{e}: pixels go through other memory")).ok().flatten()
    }

    /// A free block of at least `bytes` bytes.
    pub(crate) fn ready(self: &Arc<PinnedBlocks<M>>, bytes: usize) -> Option<PinnedBlock<M>> {
        let size = (self.rules.size)(bytes)?;
        let mut state = self.state();
        let free = state.free.iter().rposition(|(s, _)| *s == size)?;
        let (size, memory) = state.free.remove(free);
        Some(PinnedBlock { memory: Some(memory), size, blocks: Arc::clone(self) })
    }

    /// [`PinnedBlocks::take`] for passing pixels: a free block, or a new one if the size is requested often enough.
    pub(crate) fn take_if_frequent(
        self: &Arc<PinnedBlocks<M>>,
        bytes: usize,
        allocate: impl Fn(usize) -> Result<M, DeviceError>,
    ) -> Option<PinnedBlock<M>> {
        if let Some(ready) = self.ready(bytes) {
            return Some(ready);
        }
        let size = (self.rules.size)(bytes)?;
        {
            let mut state = self.state();
            let times = state.passed.entry(size).or_default();
            *times += 1;
            if *times < PAYS {
                return None;
            }
            state.wanted.insert(size);
        }
        self.take(bytes, allocate)
    }

    /// Ends [`PinnedBlocks::stock`]: no more blocks are used.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Allocates `count` free blocks of so many bytes, within the limit.
    pub(crate) fn stock(
        self: &Arc<PinnedBlocks<M>>,
        bytes: usize,
        count: usize,
        allocate: impl Fn(usize) -> Result<M, DeviceError>,
    ) {
        let Some(size) = (self.rules.size)(bytes) else { return };
        for _ in 0..count {
            {
                let mut state = self.state();
                if self.closed.load(Ordering::Relaxed) || state.total_bytes.saturating_add(size) > self.rules.most {
                    return;
                }
                state.total_bytes += size;
            }
            // Other threads can take finished blocks while the next one is allocated.
            match allocate(size) {
                Ok(memory) => self.state().free.push((size, memory)),
                Err(e) => {
                    self.state().total_bytes -= size;
                    return log::debug!("{e}: no more memory is pinned ahead");
                }
            }
        }
    }

    /// [`PinnedBlocks::take`] that returns the system's error.
    pub(crate) fn try_take(
        self: &Arc<PinnedBlocks<M>>,
        bytes: usize,
        allocate: impl Fn(usize) -> Result<M, DeviceError>,
    ) -> Result<Option<PinnedBlock<M>>, DeviceError> {
        let PinnedLimits { most, at_once, size, .. } = self.rules;
        let Some(size) = size(bytes).filter(|size| *size <= most) else { return Ok(None) };
        let loan = |memory| Some(PinnedBlock { memory: Some(memory), size, blocks: Arc::clone(self) });
        let mut given_up = Vec::new();
        {
            let mut state = self.state();
            if let Some(i) = state.free.iter().rposition(|(s, _)| *s == size) {
                return Ok(loan(state.free.remove(i).1));
            }
            if size > at_once && state.wanted.insert(size) {
                return Ok(None);
            }
            if (state.total_bytes - state.unused()).saturating_add(size) > most {
                return Ok(None);
            }
            while state.total_bytes.saturating_add(size) > most {
                given_up.push(state.give_up());
            }
            state.total_bytes += size;
        }
        drop(given_up);
        let mut made = allocate(size);
        if made.is_err() {
            // Dropping unused blocks may free enough memory.
            let mut unused = Vec::new();
            {
                let mut state = self.state();
                while !state.free.is_empty() {
                    unused.push(state.give_up());
                }
            }
            if !unused.is_empty() {
                drop(unused);
                made = allocate(size);
            }
        }
        made.map(loan).inspect_err(|_| self.state().total_bytes -= size)
    }
}

impl<M> PinnedBlocksState<M> {
    /// Bytes of unused blocks.
    fn unused(&self) -> usize {
        self.free.iter().map(|(size, _)| size).sum()
    }

    /// Removes the least recently used block, to be dropped without the lock.
    fn give_up(&mut self) -> M {
        let (size, memory) = self.free.remove(0);
        self.total_bytes -= size;
        memory
    }
}

/// A block in use, returned when dropped, which must be after the GPU is done with it.
pub(crate) struct PinnedBlock<M> {
    memory: Option<M>,
    size: usize,
    blocks: Arc<PinnedBlocks<M>>,
}

impl<M> fmt::Debug for PinnedBlock<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a block of {} bytes", self.size)
    }
}

impl<M> PinnedBlock<M> {
    /// Leaks the memory: it is unknown when the GPU is done with it.
    pub(crate) fn abandon(&mut self) {
        std::mem::forget(self.memory.take());
    }
}

impl PinnedBlock<Pinned> {
    /// Its address, for the driver.
    pub(crate) fn address(&self) -> *mut c_void {
        self.memory.as_ref().map_or(std::ptr::null_mut(), Pinned::address)
    }
}

impl HostMemory for PinnedBlock<Pinned> {
    fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], Pinned::bytes)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], Pinned::bytes_mut)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn allocate_alike(&self) -> Option<Box<dyn HostMemory>> {
        let core = &self.memory.as_ref()?.core;
        Some(Box::new(self.blocks.take(self.size, |size| Pinned::new(core, size))?))
    }
}

impl<M> Drop for PinnedBlock<M> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let mut given_up = Vec::new();
        let mut state = self.blocks.state();
        let kept = self.blocks.rules.most_unused;
        if self.size > kept {
            state.total_bytes -= self.size;
            given_up.push(memory);
        } else {
            state.free.push((self.size, memory));
            while state.unused() > kept {
                given_up.push(state.give_up());
            }
        }
        drop(state);
        drop(given_up);
    }
}

#[cfg(test)]
mod tests;
