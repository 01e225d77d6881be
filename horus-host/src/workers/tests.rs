//! Copies by any number of threads write the same bytes.

use std::sync::atomic::AtomicBool;

use super::*;

fn sequential(from: &[u8], to: &mut [u8], pieces: &[StridedCopy]) {
    let runs = pieces.iter().flat_map(|p| p.runs()).filter(|(.., n)| *n > 0);
    runs.for_each(|(a, b, n)| to[b..b + n].copy_from_slice(&from[a..a + n]));
}

#[test]
fn any_number_of_threads_copies_the_same() {
    let from: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let strided = |from, to, bytes, rows| StridedCopy { from, to, bytes, rows, from_stride: 1500, to_stride: 2000 };
    let copies: [&[StridedCopy]; 6] = [
        &[StridedCopy::run(0, 0, 3_000_000)],
        &[StridedCopy::run(7, 1_000_001, 1_999_999), StridedCopy::run(0, 3, 700_000)],
        &[strided(0, 5, 900, 1000), strided(300, 2_000_005, 1200, 400)],
        &[strided(0, 0, 900, 1000), strided(0, 1000, 900, 1000)], // interlaced
        &[StridedCopy { from: 0, to: 0, bytes: 1000, rows: 2000, from_stride: 1000, to_stride: 1000 }],
        &[StridedCopy::run(0, 9_000_000, 0), StridedCopy { rows: 0, ..StridedCopy::run(0, 0, 9) }],
    ];
    for pieces in copies {
        let mut want = vec![0xaa; 3_100_000];
        sequential(&from, &mut want, pieces);
        for threads in [1, 2, 5] {
            let mut got = vec![0xaa; 3_100_000];
            Workers::new(Some(threads)).unwrap().copy_pieces(&from, &mut got, pieces);
            assert!(got == want, "{threads} threads, {pieces:?}");
        }
    }
}

#[test]
fn chunks_are_copied_and_told_of_once_they_are_there() {
    let from: Vec<u8> = (0..5_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (threads, size, stores) in
        [(1, 1_000_000, Stores::Cached), (2, 300_001, Stores::Streamed), (5, 2_000_000, Stores::Cached)]
    {
        let mut to = vec![0; from.len()];
        let at = to.as_ptr() as usize;
        let told: Vec<AtomicUsize> = from.chunks(size).map(|_| AtomicUsize::new(0)).collect();
        let targets: Vec<_> = to.chunks_mut(size).map(SequentialOutput::over).collect();
        let check = |k: usize| {
            let want = from.chunks(size).nth(k).unwrap();
            // SAFETY: inside `to`, and nothing writes there any more.
            let got = unsafe { std::slice::from_raw_parts((at + k * size) as *const u8, want.len()) };
            assert!(got == want, "chunk {k} is told of and not there");
            told[k].fetch_add(1, Ordering::Relaxed);
        };
        let workers = Workers::new(Some(threads)).unwrap();
        workers.copy_in_turn(from.chunks(size).zip(targets).collect(), stores, check);
        assert!(told.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{threads} threads, {told:?}");
        assert!(to == from);
    }
    let told = AtomicUsize::new(0);
    let nothing: Vec<(&[u8], SequentialOutput<'_>)> = vec![(&[], SequentialOutput::over(&mut []))];
    Workers::alone().copy_in_turn(nothing, Stores::Cached, |k| assert_eq!(told.fetch_add(1, Ordering::Relaxed), k));
    assert_eq!(told.into_inner(), 1);
}

#[test]
fn chunks_that_arrive_late_are_waited_for_and_those_that_never_do_are_left() {
    let from: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for (threads, comes) in [(1, 9), (2, 9), (4, 9), (3, 5), (1, 0)] {
        let size = from.len() / 9 + 1;
        // Two alternating buffers: a chunk is written after the previous one in its buffer has been
        // copied.
        let mut buffers = vec![vec![0u8; size]; 2];
        let places: Vec<usize> = buffers.iter_mut().map(|b| b.as_mut_ptr() as usize).collect();
        let mut to = vec![0; from.len()];
        let start = to.as_mut_ptr();
        let part = |k: usize| &from[k * size..from.len().min((k + 1) * size)];
        let chunk = |k: usize| RawCopy {
            from: places[k % 2] as *const u8,
            to: start.wrapping_add(k * size),
            bytes: part(k).len(),
        };
        let chunks: Vec<RawCopy> = (0..9).map(chunk).collect();
        let there: Vec<AtomicBool> = (0..9).map(|_| AtomicBool::new(false)).collect();
        let gone = AtomicUsize::new(0);
        let arrive = |k: usize| {
            // SAFETY: the buffer has this length, and nothing reads it before it is reported.
            unsafe { std::ptr::copy_nonoverlapping(part(k).as_ptr(), places[k % 2] as *mut u8, part(k).len()) };
            there[k].store(true, Ordering::Release);
        };
        (0..comes.min(2)).for_each(arrive);
        let arrived = |k: usize| {
            while !there[k].load(Ordering::Acquire) {
                if k >= comes {
                    return false;
                }
                std::thread::yield_now();
            }
            true
        };
        let done = |k: usize| {
            gone.fetch_add(1, Ordering::Relaxed);
            if k + 2 < comes {
                arrive(k + 2);
            }
        };
        let workers = Workers::new(Some(threads)).unwrap();
        // SAFETY: a chunk is overwritten only once it is done, and the targets in `to` do not
        // overlap.
        unsafe { workers.copy_arriving(&chunks, Stores::Streamed, arrived, done) };
        let whole = from.len().min(comes * size);
        assert!(to[..whole] == from[..whole] && to[whole..].iter().all(|b| *b == 0), "{threads} threads, {comes}");
        assert_eq!(gone.into_inner(), comes);
    }
}

#[test]
fn parts_begin_in_order_and_each_is_done_once() {
    for (threads, parts) in [(1, 5), (3, 0), (3, 1), (3, 1000)] {
        let (seen, begun) = (std::sync::Mutex::new(Vec::new()), AtomicUsize::new(0));
        Workers::new(Some(threads)).unwrap().in_order(parts, |i| {
            // Earlier ones have started, but others may signal first.
            assert!(begun.fetch_add(1, Ordering::Relaxed) + threads > i);
            seen.lock().unwrap().push(i);
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..parts), "{threads} threads, {parts} parts");
    }
}

#[test]
fn all_bytes_are_cleared() {
    for (n, threads) in [(0, 2), (1, 5), (1_000_003, 1), (1_000_003, 3)] {
        let mut bytes = vec![7; n];
        Workers::new(Some(threads)).unwrap().clear(&mut bytes);
        assert!(bytes.iter().all(|b| *b == 0), "{n} bytes, {threads} threads");
    }
}

#[test]
fn shares_are_of_the_size_asked_for() {
    let parts: Vec<StridedCopy> = shares(StridedCopy::run(3, 5, 1000), 300).collect();
    assert_eq!(
        parts.iter().map(|p| (p.from, p.to, p.bytes)).collect::<Vec<_>>(),
        [(3, 5, 300), (303, 305, 300), (603, 605, 300), (903, 905, 100)]
    );
    let rows = StridedCopy { from: 0, to: 0, bytes: 100, rows: 7, from_stride: 100, to_stride: 128 };
    assert_eq!(shares(rows, 250).map(|p| p.rows).collect::<Vec<_>>(), [3, 3, 1]);
}

#[test]
#[should_panic(expected = "as long as")]
fn a_copy_of_another_length_is_refused() {
    Workers::default().copy(&[1, 2], &mut [0]);
}

#[test]
fn each_item_is_worked_on_once_by_threads_that_keep_what_they_have() {
    for threads in [1, 2, 5] {
        let workers = Workers::new(Some(threads)).unwrap();
        for n in [0, 1, 3, 100] {
            let (states, done) = (AtomicUsize::new(0), Mutex::new(vec![0; n]));
            let work = |state: &mut Option<()>, item: usize| {
                if state.replace(()).is_none() {
                    states.fetch_add(1, Ordering::Relaxed);
                }
                done.lock().unwrap()[item] += 1;
                Ok::<(), ()>(())
            };
            workers.each((0..n).collect(), work).unwrap();
            assert!(done.into_inner().unwrap().iter().all(|times| *times == 1));
            assert!(states.into_inner() <= threads.min(n));
        }
        let begun = AtomicUsize::new(0);
        let failed = workers.each((0..1000).collect(), |(), item: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if item >= 10 { Err(item) } else { Ok(()) }
        });
        assert!((10..10 + threads).contains(&failed.unwrap_err()), "others end with what they have begun");
        assert!(begun.into_inner() <= 10 + 2 * threads);
    }
}

#[test]
fn parts_are_shared_with_the_threads_that_help() {
    let once = |workers: &Workers, parts: usize| {
        let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
        let nested = AtomicUsize::new(0);
        workers.help(|| {
            share(workers.threads(), parts, &|k| {
                done[k].fetch_add(1, Ordering::Relaxed);
                share(workers.threads(), 3, &|_| {
                    nested.fetch_add(1, Ordering::Relaxed);
                });
            });
        });
        assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{parts} parts, {done:?}");
        assert_eq!(nested.into_inner(), 3 * parts);
    };
    let outer = Workers::new(Some(2)).unwrap();
    for threads in [1, 2, 5] {
        let workers = Workers::new(Some(threads)).unwrap();
        for parts in [0, 1, 2, 100] {
            once(&workers, parts);
            workers.run(|| once(&workers, parts));
            outer.run(|| once(&workers, parts)); // from a thread of another pool
            outer.help(|| once(&workers, parts));
        }
    }
}

#[test]
fn a_thread_works_while_the_others_are_busy() {
    let workers = Workers::new(Some(2)).unwrap();
    let (busy, end) = (AtomicUsize::new(0), AtomicBool::new(false));
    let wait = |until: &dyn Fn() -> bool| {
        while !until() {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            workers.run(|| {
                share(2, 2, &|_| {
                    busy.fetch_add(1, Ordering::Relaxed);
                    wait(&|| end.load(Ordering::Relaxed));
                });
            });
        });
        wait(&|| busy.load(Ordering::Relaxed) == 2);
        // Both threads of the pool wait for the last part, which this thread reaches alone.
        workers.in_order(10, |k| end.store(k == 9, Ordering::Relaxed));
    });
}

#[test]
fn a_panic_of_a_part_reaches_the_caller_and_ends_the_help() {
    let workers = Workers::new(Some(3)).unwrap();
    for bad in [0, 7, 49] {
        let work = || workers.help(|| share(3, 50, &|k| assert!(k != bad, "part {bad}")));
        let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>(), Some(&format!("part {bad}")));
        assert!(HELPERS.with_borrow(Option::is_none), "no pool helps any more");
    }
    let done = AtomicUsize::new(0);
    workers.in_order(20, |_| {
        done.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(done.into_inner(), 20, "the pool still works");
}
