//! The blocks of pinned memory that a device keeps, and who has borrowed them.

use std::any::Any;
use std::collections::HashSet;
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use horus_core::error::DeviceError;
use horus_core::host::buffer::HostMemory;

use super::{Pinned, SMALLEST};
use crate::memory::Core;

/// Pinning a block takes longer than copying through smaller ones. Up to this size it hides behind kernels.
const AT_ONCE: usize = 32 << 20;

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
}
