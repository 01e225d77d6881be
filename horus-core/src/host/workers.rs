//! Threads for the work of one device on the host, and copies that they share.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::Piece;
use super::spare::Spare;
use super::stores::{self, Stores};
use crate::error::Error;

/// More threads than any machine has processors: a request beyond is a mistake and would exhaust the system.
const MOST_THREADS: usize = 4096;
/// The fewest bytes that one thread copies: with 1 and 4 MiB, images took longer from host to GPU and back (16
/// threads).
pub(super) const SHARE: usize = 256 << 10;

/// A pool of its own threads; a single thread is the caller's.
#[derive(Debug, Default)]
pub struct Workers(Option<ThreadPool>);

impl Workers {
    /// The calling thread.
    pub const fn alone() -> Workers {
        Workers(None)
    }

    /// Workers with `threads` threads, by default one per logical processor.
    ///
    /// # Errors
    /// [`Error::Config`] for 0 or more than 4096 threads, or if they cannot be started.
    pub fn new(threads: Option<usize>) -> Result<Workers, Error> {
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        match threads {
            0 => Err(Error::Config("requested 0 threads; a device needs at least 1".into())),
            n if n > MOST_THREADS => Err(Error::Config(format!("requested {n} threads; the limit is {MOST_THREADS}"))),
            1 => Ok(Workers(None)),
            n => {
                let builder = ThreadPoolBuilder::new().num_threads(n).thread_name(|i| format!("horus-{i}"));
                let pool = builder.build().map_err(|e| Error::Config(format!("cannot start {n} threads: {e}")))?;
                Ok(Workers(Some(pool)))
            }
        }
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.0.as_ref().map_or(1, ThreadPool::current_num_threads)
    }

    /// Runs `work` in the pool, where it may use rayon, and waits for it.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            Some(pool) => run_on(pool, work),
            None => work(),
        }
    }

    /// Sets all bytes to 0, by all threads: of fresh memory, each meets page faults.
    pub fn clear(&self, bytes: &mut [u8]) {
        let share = (bytes.len() / self.threads()).max(SHARE);
        if self.threads() > 1 && bytes.len() >= 2 * SHARE {
            self.run(|| bytes.par_chunks_mut(share).for_each(|part| part.fill(0)));
        } else {
            bytes.fill(0);
        }
    }

    /// Calls `work` with each number of `0..parts`, begun in this order, on as many threads as are free.
    pub fn in_order(&self, parts: usize, work: impl Fn(usize) + Sync) {
        let next = AtomicUsize::new(0);
        let some = || {
            let part = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < parts);
            while let Some(part) = part() {
                work(part);
            }
        };
        let threads = self.threads().min(parts);
        if threads < 2 {
            return some();
        }
        // A thread that is busy comes too late, and finds nothing left.
        self.run(|| rayon::scope(|scope| (0..threads).for_each(|_| scope.spawn(|_| some()))));
    }

    /// Copies chunks, all threads together one after the other, so that the first are there early: `done` is called with the
    /// index of each that is, by the thread that was last.
    ///
    /// That costs the threads one meeting for all chunks, where a copy of each costs one of each: tens of microseconds, in
    /// which they would copy a megabyte.
    ///
    /// # Panics
    /// If a source and its target are not as long.
    pub fn copy_in_turn(&self, chunks: Vec<(&[u8], Spare<'_>)>, stores: Stores, done: impl Fn(usize) + Sync) {
        let mut parts: Vec<Part<'_>> = Vec::new();
        let mut left: Vec<AtomicUsize> = Vec::with_capacity(chunks.len());
        for (chunk, (from, to)) in chunks.into_iter().enumerate() {
            assert_eq!(from.len(), to.left(), "a chunk is as long as what is copied");
            let before = parts.len();
            parts.extend(from.chunks(SHARE).zip(to.into_parts(SHARE)).map(|(from, to)| Part { chunk, from, to }));
            left.push(AtomicUsize::new(parts.len() - before));
            if parts.len() == before {
                done(chunk);
            }
        }
        let copy = |part: usize| {
            let Part { chunk, from, to } = &parts[part];
            // SAFETY: as long, as both were cut alike. Each part is copied once, by one thread: nobody else writes there.
            unsafe { stores::copy(from.as_ptr(), to.as_ptr(), from.len(), stores) };
            if left[*chunk].fetch_sub(1, Ordering::AcqRel) == 1 {
                done(*chunk);
            }
        };
        self.in_order(parts.len(), copy);
    }

    /// Copies bytes, after what other threads have submitted to these workers.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        assert_eq!(from.len(), to.len(), "a copy is as long as what is copied");
        self.copy_pieces(from, to, &[Piece::run(0, 0, from.len())]);
    }

    /// Copies pieces, which do not overlap in the target.
    ///
    /// # Panics
    /// If one reaches beyond the source or the target.
    pub fn copy_pieces(&self, from: &[u8], to: &mut [u8], pieces: &[Piece]) {
        let total: usize = pieces.iter().map(|p| p.bytes * p.rows).sum();
        let share = (total / self.threads()).max(SHARE);
        if self.threads() > 1
            && total >= 2 * SHARE
            && let Some(parts) = divided(to, pieces.iter().flat_map(|p| shares(*p, share)).collect())
        {
            return self.run(|| parts.into_par_iter().for_each(|(to, piece)| copy_rows(from, to, piece)));
        }
        pieces.iter().for_each(|p| copy_rows(from, to, *p));
    }
}

/// A part of a chunk, and where it goes.
struct Part<'a> {
    chunk: usize,
    from: &'a [u8],
    to: Spare<'a>,
}

fn copy_rows(from: &[u8], to: &mut [u8], piece: Piece) {
    if piece.bytes == 0 {
        return; // wherever it lies
    }
    piece.runs().for_each(|(a, b, bytes)| to[b..b + bytes].copy_from_slice(&from[a..a + bytes]));
}

/// A piece in parts of about `share` bytes.
fn shares(piece: Piece, share: usize) -> impl Iterator<Item = Piece> {
    let together = piece.rows > 0 && piece.bytes == piece.from_stride && piece.bytes == piece.to_stride;
    // Rows that follow each other on both sides may be cut anywhere.
    let (bytes, rows) = if together { (1, piece.bytes * piece.rows) } else { (piece.bytes, piece.rows) };
    let (from_stride, to_stride) = if together { (1, 1) } else { (piece.from_stride, piece.to_stride) };
    let at_once = share.div_ceil(bytes.max(1));
    (0..rows).step_by(at_once).map(move |first| {
        let (from, to) = (piece.from + first * from_stride, piece.to + first * to_stride);
        let rows = at_once.min(rows - first);
        if together { Piece::run(from, to, rows) } else { Piece { from, to, rows, ..piece } }
    })
}

/// The target cut up, a part for each piece; `None` if pieces interlace.
fn divided(mut target: &mut [u8], mut pieces: Vec<Piece>) -> Option<Vec<(&mut [u8], Piece)>> {
    pieces.retain(|p| p.bytes > 0 && p.rows > 0);
    pieces.sort_unstable_by_key(|p| p.to);
    let mut at = 0;
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let extent = (piece.rows - 1) * piece.to_stride + piece.bytes;
        let (part, rest) = target.split_at_mut(piece.to.checked_sub(at)?).1.split_at_mut(extent);
        parts.push((part, Piece { to: 0, ..piece }));
        (target, at) = (rest, piece.to + extent);
    }
    Some(parts)
}

/// Runs `work` on a worker of `pool` and waits for it.
///
/// [`ThreadPool::install`] would do, but for a caller that is a worker of another pool: while it waits it takes up
/// other jobs of its own pool, and those may want the session that this one keeps locked.
fn run_on<R: Send>(pool: &ThreadPool, work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_none() || pool.current_thread_index().is_some() {
        return pool.install(work);
    }
    let mut result = None;
    let (done, finished) = mpsc::sync_channel::<()>(1);
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(|| result = Some(catch_unwind(AssertUnwindSafe(work))));
    // SAFETY: the job is over, and its box with what it borrows gone, before the message arrives or the channel closes;
    // this function neither returns nor unwinds before that.
    let job: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(job) };
    pool.spawn(move || {
        job();
        drop(done);
    });
    // Nothing is ever sent: the channel closes.
    let _ = finished.recv();
    match result {
        Some(Ok(result)) => result,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("the pool runs what it is given"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequential(from: &[u8], to: &mut [u8], pieces: &[Piece]) {
        let runs = pieces.iter().flat_map(|p| p.runs()).filter(|(.., n)| *n > 0);
        runs.for_each(|(a, b, n)| to[b..b + n].copy_from_slice(&from[a..a + n]));
    }

    #[test]
    fn any_number_of_threads_copies_the_same() {
        let from: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let strided = |from, to, bytes, rows| Piece { from, to, bytes, rows, from_stride: 1500, to_stride: 2000 };
        let copies: [&[Piece]; 6] = [
            &[Piece::run(0, 0, 3_000_000)],
            &[Piece::run(7, 1_000_001, 1_999_999), Piece::run(0, 3, 700_000)],
            &[strided(0, 5, 900, 1000), strided(300, 2_000_005, 1200, 400)],
            &[strided(0, 0, 900, 1000), strided(0, 1000, 900, 1000)], // interlaced
            &[Piece { from: 0, to: 0, bytes: 1000, rows: 2000, from_stride: 1000, to_stride: 1000 }],
            &[Piece::run(0, 9_000_000, 0), Piece { rows: 0, ..Piece::run(0, 0, 9) }],
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
            let targets = Spare::over(&mut to).into_parts(size);
            let check = |k: usize| {
                let want = from.chunks(size).nth(k).unwrap();
                // SAFETY: inside `to`, and nobody writes there any more.
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
        let nothing: Vec<(&[u8], Spare<'_>)> = vec![(&[], Spare::over(&mut []))];
        Workers::alone().copy_in_turn(nothing, Stores::Cached, |k| assert_eq!(told.fetch_add(1, Ordering::Relaxed), k));
        assert_eq!(told.into_inner(), 1);
    }

    #[test]
    fn parts_begin_in_order_and_each_is_done_once() {
        for (threads, parts) in [(1, 5), (3, 0), (3, 1), (3, 1000)] {
            let (seen, begun) = (std::sync::Mutex::new(Vec::new()), AtomicUsize::new(0));
            Workers::new(Some(threads)).unwrap().in_order(parts, |i| {
                // Those before have begun, though others may be quicker to say so.
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
        let parts: Vec<Piece> = shares(Piece::run(3, 5, 1000), 300).collect();
        assert_eq!(
            parts.iter().map(|p| (p.from, p.to, p.bytes)).collect::<Vec<_>>(),
            [(3, 5, 300), (303, 305, 300), (603, 605, 300), (903, 905, 100)]
        );
        let rows = Piece { from: 0, to: 0, bytes: 100, rows: 7, from_stride: 100, to_stride: 128 };
        assert_eq!(shares(rows, 250).map(|p| p.rows).collect::<Vec<_>>(), [3, 3, 1]);
    }

    #[test]
    #[should_panic(expected = "as long as")]
    fn a_copy_of_another_length_is_refused() {
        Workers::default().copy(&[1, 2], &mut [0]);
    }
}
