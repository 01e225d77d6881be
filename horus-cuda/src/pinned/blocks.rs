//! The blocks of pinned memory that a device keeps, and who has borrowed them.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use horus_core::error::DeviceError;
use horus_core::host::buffer::HostMemory;

use super::{Pinned, SMALLEST};

/// Pinning a block takes longer than copying through smaller ones. Up to this size it hides behind kernels.
const AT_ONCE: usize = 32 << 20;

/// To lock pages takes 0.2 to 0.4 ms for each MiB; a copy that the GPU makes by itself saves some 0.02 ms of each, against one
/// through chunks that are locked already (H200, 16 cores). So it pays for what comes so often.
const PAYS: usize = 16;

/// Bytes of the block for so many: in each doubling four sizes, so that at most a fifth is wasted.
fn class(bytes: usize) -> Option<usize> {
    let step = bytes.max(1).checked_next_power_of_two()? / 8;
    bytes.max(1).checked_next_multiple_of(step.max(SMALLEST))
}

/// Bytes of the block for so many pixels of the program, which may be much memory: whole pages, large ones if it is large.
fn pages(bytes: usize) -> Option<usize> {
    const LARGE: usize = 2 << 20;
    let page = if bytes < LARGE { SMALLEST } else { LARGE };
    bytes.max(1).checked_next_multiple_of(page).filter(|size| isize::try_from(*size).is_ok())
}

/// How much memory blocks take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Bytes that all have together, at most.
    most: usize,
    /// Bytes that those have together that nobody uses, at most.
    kept: usize,
    /// A larger size must come twice.
    at_once: usize,
    /// Bytes of the block for so many.
    size: fn(usize) -> Option<usize>,
}

impl Rules {
    /// For copies: at most `most` bytes. What is read once does not pay for a large block of its own.
    pub(crate) fn of_copies(most: usize) -> Rules {
        Rules { most, kept: most, at_once: AT_ONCE, size: class }
    }

    /// For memory that the program asks for: as much as there is, of which `kept` bytes stay when it lets go of them.
    pub(crate) fn of_program(kept: usize) -> Rules {
        Rules { most: usize::MAX, kept, at_once: usize::MAX, size: pages }
    }
}

/// Blocks of a device: those that nobody uses are kept for the next who asks for their size.
#[derive(Debug)]
pub(crate) struct Blocks<M> {
    rules: Rules,
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
    /// How often sizes were asked for that were not made.
    passed: HashMap<usize, usize>,
}

impl<M> Blocks<M> {
    pub(crate) fn new(rules: Rules) -> Arc<Blocks<M>> {
        let state = State { free: Vec::new(), held: 0, wanted: HashSet::new(), passed: HashMap::new() };
        Arc::new(Blocks { rules, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least `bytes` bytes, one that is free or a new one of `allocate`. None if there would be too many
    /// bytes, if the system has none, and for a large block when its size is asked for the first time.
    pub(crate) fn take(
        self: &Arc<Blocks<M>>,
        bytes: usize,
        allocate: impl Fn(usize) -> Result<M, DeviceError>,
    ) -> Option<Loan<M>> {
        let taken = self.try_take(bytes, allocate);
        taken.inspect_err(|e| log::debug!("{e}: pixels go through other memory")).ok().flatten()
    }

    /// A block of at least `bytes` bytes that is free.
    pub(crate) fn ready(self: &Arc<Blocks<M>>, bytes: usize) -> Option<Loan<M>> {
        let size = (self.rules.size)(bytes)?;
        let mut state = self.state();
        let free = state.free.iter().rposition(|(s, _)| *s == size)?;
        let (size, memory) = state.free.remove(free);
        Some(Loan { memory: Some(memory), size, blocks: Arc::clone(self) })
    }

    /// [`Blocks::take`] for what passes once: a block that is free, or a new one where the size has come so often that it pays.
    pub(crate) fn lend(
        self: &Arc<Blocks<M>>,
        bytes: usize,
        allocate: impl Fn(usize) -> Result<M, DeviceError>,
    ) -> Option<Loan<M>> {
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

    /// Makes `count` blocks of so many bytes that lie ready, as far as there may be so many.
    pub(crate) fn stock(
        self: &Arc<Blocks<M>>,
        bytes: usize,
        count: usize,
        allocate: impl Fn(usize) -> Result<M, DeviceError>,
    ) {
        let Some(size) = (self.rules.size)(bytes) else { return };
        for _ in 0..count {
            {
                let mut state = self.state();
                if state.held.saturating_add(size) > self.rules.most {
                    return;
                }
                state.held += size;
            }
            // Others take those that are made while the next is.
            match allocate(size) {
                Ok(memory) => self.state().free.push((size, memory)),
                Err(e) => {
                    self.state().held -= size;
                    return log::debug!("{e}: no more memory is pinned ahead");
                }
            }
        }
    }

    /// [`Blocks::take`] that tells why the system has none.
    pub(crate) fn try_take(
        self: &Arc<Blocks<M>>,
        bytes: usize,
        allocate: impl Fn(usize) -> Result<M, DeviceError>,
    ) -> Result<Option<Loan<M>>, DeviceError> {
        let Rules { most, at_once, size, .. } = self.rules;
        let Some(size) = size(bytes).filter(|size| *size <= most) else { return Ok(None) };
        let loan = |memory| Some(Loan { memory: Some(memory), size, blocks: Arc::clone(self) });
        let mut given_up = Vec::new();
        {
            let mut state = self.state();
            if let Some(i) = state.free.iter().rposition(|(s, _)| *s == size) {
                return Ok(loan(state.free.remove(i).1));
            }
            if size > at_once && state.wanted.insert(size) {
                return Ok(None);
            }
            if (state.held - state.unused()).saturating_add(size) > most {
                return Ok(None);
            }
            while state.held.saturating_add(size) > most {
                given_up.push(state.give_up());
            }
            state.held += size;
        }
        drop(given_up);
        let mut made = allocate(size);
        if made.is_err() {
            // What nobody uses may be what is lacking.
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
        made.map(loan).inspect_err(|_| self.state().held -= size)
    }
}

impl<M> State<M> {
    /// Bytes that nobody uses.
    fn unused(&self) -> usize {
        self.free.iter().map(|(size, _)| size).sum()
    }

    /// Takes the block out that has not been used for longest, to be dropped without the lock.
    fn give_up(&mut self) -> M {
        let (size, memory) = self.free.remove(0);
        self.held -= size;
        memory
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
}

impl HostMemory for Loan<Pinned> {
    fn bytes(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], Pinned::bytes)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.as_mut().map_or(&mut [], Pinned::bytes_mut)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn alike(&self) -> Option<Box<dyn HostMemory>> {
        let core = &self.memory.as_ref()?.core;
        Some(Box::new(self.blocks.take(self.size, |size| Pinned::new(core, size))?))
    }
}

impl<M> Drop for Loan<M> {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let mut given_up = Vec::new();
        let mut state = self.blocks.state();
        let kept = self.blocks.rules.kept;
        if self.size > kept {
            state.held -= self.size;
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
            Fakes(Blocks::new(Rules::of_copies(most)), Arc::default())
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
    fn what_passes_once_is_lent_what_is_there_until_it_pays_to_make_more() {
        let fakes = Fakes::new(256 * M);
        let make = |size: usize| {
            fakes.1.fetch_add(size, Ordering::Relaxed);
            Ok(Fake(size, Arc::clone(&fakes.1)))
        };
        assert!((1..PAYS).all(|_| fakes.0.lend(64 * M, make).is_none()));
        let often = fakes.0.lend(64 * M, make).expect("it pays");
        assert!(fakes.0.lend(M, make).is_none() && fakes.0.ready(64 * M).is_none());
        drop(often);
        assert!(fakes.0.lend(64 * M - 9, make).is_some(), "the same");
        assert_eq!(fakes.there(), 64 * M);
        drop(fakes.take(M).unwrap());
        assert!(fakes.0.lend(M, make).is_some(), "it is there");
        assert!(fakes.0.lend(usize::MAX, make).is_none());
    }

    #[test]
    fn a_stock_lies_ready_and_is_never_too_much() {
        let fakes = Fakes::new(4 * M);
        let make = |size: usize| {
            fakes.1.fetch_add(size, Ordering::Relaxed);
            Ok(Fake(size, Arc::clone(&fakes.1)))
        };
        assert!(fakes.0.ready(M).is_none());
        fakes.0.stock(M, 2, make);
        let (a, b) = (fakes.0.ready(M).unwrap(), fakes.0.ready(M).unwrap());
        assert!(fakes.0.ready(M).is_none());
        fakes.0.stock(M, 9, make);
        assert_eq!((fakes.there(), fakes.0.state().held), (4 * M, 4 * M));
        drop((a, b));
        fakes.0.stock(64 * K, 1, |_| Err(DeviceError::Driver("no memory to pin".into())));
        assert_eq!(fakes.0.state().held, 4 * M);
    }

    #[test]
    fn the_program_has_as_much_as_it_asks_for_and_some_of_it_is_kept() {
        let fakes = Fakes(Blocks::new(Rules::of_program(100 * M)), Arc::default());
        let first = fakes.take(64 * M).expect("the first time, too");
        let others = [fakes.take(64 * M - 5).unwrap(), fakes.take(300 * M + 1).unwrap(), fakes.take(3).unwrap()];
        assert_eq!(fakes.there(), 2 * 64 * M + 302 * M + 64 * K);
        drop(others);
        assert_eq!(fakes.there(), 2 * 64 * M + 64 * K, "what is too large to be kept is not");
        drop(first);
        assert_eq!(fakes.there(), 64 * M + 64 * K);
        let again = fakes.take(63 * M + 1).unwrap();
        assert_eq!(fakes.there(), 64 * M + 64 * K, "the same block");
        assert!(fakes.take(usize::MAX).is_none());
        drop(again);
    }

    #[test]
    fn what_is_kept_makes_room_where_there_is_no_other() {
        let there = Arc::new(AtomicUsize::new(0));
        let blocks = Blocks::new(Rules::of_program(100 * M));
        let allocate = |size: usize| {
            if there.load(Ordering::Relaxed) + size > 70 * M {
                return Err(DeviceError::Driver("no more pages can be locked".into()));
            }
            there.fetch_add(size, Ordering::Relaxed);
            Ok(Fake(size, Arc::clone(&there)))
        };
        drop([blocks.try_take(20 * M, allocate).unwrap(), blocks.try_take(30 * M, allocate).unwrap()]);
        assert_eq!(there.load(Ordering::Relaxed), 50 * M, "both are kept");
        let large = blocks.try_take(60 * M, allocate).unwrap().unwrap();
        assert_eq!(there.load(Ordering::Relaxed), 60 * M, "both made room");
        let error = blocks.try_take(20 * M, allocate).unwrap_err().to_string();
        assert!(error.contains("no more pages can be locked"), "{error}");
        drop(large);
        assert_eq!(blocks.state().held, 60 * M, "what failed does not count");
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
