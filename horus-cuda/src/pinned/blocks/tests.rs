//! Tests of pinned blocks, over counted memory.

use std::sync::atomic::AtomicUsize;

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

/// Memory that counts its total.
struct CountedMemory(usize, Arc<AtomicUsize>);

impl Drop for CountedMemory {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Blocks with a limit, and the total of their memory.
struct CountedBlocks(Arc<PinnedBlocks<CountedMemory>>, Arc<AtomicUsize>);

impl CountedBlocks {
    fn new(most: usize) -> CountedBlocks {
        CountedBlocks(PinnedBlocks::new(PinnedLimits::of_copies(most)), Arc::default())
    }

    fn take(&self, bytes: usize) -> Option<PinnedBlock<CountedMemory>> {
        self.0.take(bytes, |size| {
            self.1.fetch_add(size, Ordering::Relaxed);
            Ok(CountedMemory(size, Arc::clone(&self.1)))
        })
    }

    fn there(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

#[test]
fn blocks_are_used_again_and_never_too_many() {
    let fakes = CountedBlocks::new(4 * M);
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
    let fakes = CountedBlocks::new(256 * M);
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
    let fakes = CountedBlocks::new(256 * M);
    let make = |size: usize| {
        fakes.1.fetch_add(size, Ordering::Relaxed);
        Ok(CountedMemory(size, Arc::clone(&fakes.1)))
    };
    assert!((1..PAYS).all(|_| fakes.0.take_if_frequent(64 * M, make).is_none()));
    let often = fakes.0.take_if_frequent(64 * M, make).expect("it pays");
    assert!(fakes.0.take_if_frequent(M, make).is_none() && fakes.0.ready(64 * M).is_none());
    drop(often);
    assert!(fakes.0.take_if_frequent(64 * M - 9, make).is_some(), "the same");
    assert_eq!(fakes.there(), 64 * M);
    drop(fakes.take(M).unwrap());
    assert!(fakes.0.take_if_frequent(M, make).is_some(), "it is there");
    assert!(fakes.0.take_if_frequent(usize::MAX, make).is_none());
}

#[test]
fn a_stock_lies_ready_and_is_never_too_much() {
    let fakes = CountedBlocks::new(4 * M);
    let make = |size: usize| {
        fakes.1.fetch_add(size, Ordering::Relaxed);
        Ok(CountedMemory(size, Arc::clone(&fakes.1)))
    };
    assert!(fakes.0.ready(M).is_none());
    fakes.0.stock(M, 2, make);
    let (a, b) = (fakes.0.ready(M).unwrap(), fakes.0.ready(M).unwrap());
    assert!(fakes.0.ready(M).is_none());
    fakes.0.stock(M, 9, make);
    assert_eq!((fakes.there(), fakes.0.state().total_bytes), (4 * M, 4 * M));
    drop((a, b));
    let other = CountedBlocks::new(4 * M);
    other.0.close();
    other.0.stock(M, 2, make);
    assert_eq!(other.0.state().total_bytes, 0);
    fakes.0.stock(64 * K, 1, |_| Err(DeviceError::Driver("no memory to pin".into())));
    assert_eq!(fakes.0.state().total_bytes, 4 * M);
}

#[test]
fn the_program_has_as_much_as_it_asks_for_and_some_of_it_is_kept() {
    let fakes = CountedBlocks(PinnedBlocks::new(PinnedLimits::of_program(100 * M)), Arc::default());
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
    let blocks = PinnedBlocks::new(PinnedLimits::of_program(100 * M));
    let allocate = |size: usize| {
        if there.load(Ordering::Relaxed) + size > 70 * M {
            return Err(DeviceError::Driver("no more pages can be locked".into()));
        }
        there.fetch_add(size, Ordering::Relaxed);
        Ok(CountedMemory(size, Arc::clone(&there)))
    };
    drop([blocks.try_take(20 * M, allocate).unwrap(), blocks.try_take(30 * M, allocate).unwrap()]);
    assert_eq!(there.load(Ordering::Relaxed), 50 * M, "both are kept");
    let large = blocks.try_take(60 * M, allocate).unwrap().unwrap();
    assert_eq!(there.load(Ordering::Relaxed), 60 * M, "both made room");
    let error = blocks.try_take(20 * M, allocate).unwrap_err().to_string();
    assert!(error.contains("no more pages can be locked"), "{error}");
    drop(large);
    assert_eq!(blocks.state().total_bytes, 60 * M, "what failed does not count");
}

#[test]
fn blocks_outlive_whoever_made_them_and_a_failure_takes_no_room() {
    let fakes = CountedBlocks::new(M);
    let fails = |_| Err(DeviceError::Driver("no memory to pin".into()));
    assert!(fakes.0.take(M, fails).is_none());
    let loan = fakes.take(M).unwrap();
    let CountedBlocks(blocks, there) = fakes;
    drop(blocks);
    assert_eq!(there.load(Ordering::Relaxed), M);
    drop(loan);
    assert_eq!(there.load(Ordering::Relaxed), 0);
}

#[test]
fn many_threads_take_and_give_back() {
    let fakes = CountedBlocks::new(3 * M);
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
    assert_eq!(state.total_bytes, state.free.iter().map(|(s, _)| s).sum::<usize>());
    assert_eq!(state.total_bytes, fakes.there());
    assert!(state.total_bytes <= 3 * M);
}
