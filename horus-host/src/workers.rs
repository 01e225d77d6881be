//! Host threads for the work of one device, and parallel copies.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use rayon::{Scope, ThreadPool, ThreadPoolBuilder};

use super::StridedCopy;
use super::sequential_output::SequentialOutput;
use super::stores::{self, Stores};
use horus_base::error::Error;

/// Upper limit of threads, above the processor count of any machine. A larger request is a mistake and would exhaust
/// the system.
const MOST_THREADS: usize = 4096;
/// Minimum bytes copied by one thread. With 1 and 4 MiB, transfers between host and GPU took longer (16 threads).
pub(super) const SHARE: usize = 256 << 10;
/// Minimum bytes of a chunk that one thread copies once the threads are awake.
const LEAST: usize = 64 << 10;

/// A pool of threads. A pool of one is the calling thread.
#[derive(Debug, Default)]
pub struct Workers(Option<Arc<ThreadPool>>);

thread_local! {
    /// The pool that helps this thread, which is not one of its threads.
    static HELPERS: RefCell<Option<Arc<ThreadPool>>> = const { RefCell::new(None) };
}

/// Calls `work` with each number of `0..parts`, started in this order, on up to `threads` threads: this one, which
/// begins at once, and those of the pool that [helps](Workers::help) it or contains it. A thread that wakes late finds
/// less work left.
pub fn share(threads: usize, parts: usize, work: &(dyn Fn(usize) + Sync)) {
    let threads = threads.min(parts);
    if threads < 2 {
        return (0..parts).for_each(work);
    }
    let next = AtomicUsize::new(0);
    let some = || {
        let part = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < parts);
        while let Some(part) = part() {
            work(part);
        }
    };
    let some = &some;
    fn together<'a>(scope: &Scope<'a>, threads: usize, some: &'a (dyn Fn() + Sync)) {
        (1..threads).for_each(|_| scope.spawn(move |_| some()));
        some();
    }
    match HELPERS.with_borrow(Clone::clone) {
        Some(pool) => pool.in_place_scope(|scope| together(scope, threads, some)),
        None => rayon::scope(|scope| together(scope, threads, some)),
    }
}

/// Calls `work` with each item, started in order, as [`share`] does, and with a state of the thread, made by `new`.
/// Returns the states.
pub fn share_items<I: Send, S: Send>(
    threads: usize,
    items: Vec<I>,
    new: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, I) + Sync,
) -> Vec<S> {
    let threads = threads.min(items.len());
    let (left, states) = (Mutex::new(items.into_iter()), Mutex::new(Vec::new()));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    share(threads, threads, &|_| {
        let mut state = None;
        while let Some(item) = next() {
            work(state.get_or_insert_with(&new), item);
        }
        states.lock().unwrap_or_else(PoisonError::into_inner).extend(state);
    });
    states.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the former helpers of a thread.
struct FormerHelpers(Option<Arc<ThreadPool>>);

impl Drop for FormerHelpers {
    fn drop(&mut self) {
        HELPERS.set(self.0.take());
    }
}

impl Workers {
    /// Workers of the calling thread only.
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
                Ok(Workers(Some(Arc::new(pool))))
            }
        }
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.0.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Runs `work` in the pool and waits for it. `work` may use rayon.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            Some(pool) => run_on(pool, work),
            None => work(),
        }
    }

    /// Runs `work` on this thread; the pool helps where `work` [shares](share) its parts. A thread of another pool
    /// waits while a thread of this pool runs `work`.
    pub fn help<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            None => work(),
            Some(pool) if rayon::current_thread_index().is_some() => run_on(pool, work),
            Some(pool) => {
                let _former = FormerHelpers(HELPERS.replace(Some(pool.clone())));
                work()
            }
        }
    }

    /// Sets all bytes to 0 with all threads. In fresh memory, each thread takes its share of the page faults.
    pub fn clear(&self, bytes: &mut [u8]) {
        let share = (bytes.len() / self.threads()).max(SHARE);
        if self.threads() > 1 && bytes.len() >= 2 * SHARE {
            self.all(bytes.chunks_mut(share).collect(), |part| part.fill(0));
        } else {
            bytes.fill(0);
        }
    }

    /// Calls `work` with each number of `0..parts`, started in this order, on all free threads.
    pub fn in_order(&self, parts: usize, work: impl Fn(usize) + Sync) {
        self.help(|| share(self.threads(), parts, &work));
    }

    /// Calls `work` with each item, started in order, on all free threads.
    pub fn all<I: Send>(&self, items: Vec<I>, work: impl Fn(I) + Sync) {
        self.help(|| share_items(self.threads(), items, || (), |(), item| work(item)));
    }

    /// Calls `work` with each item until one fails, started in order, on all free threads. A thread reuses one state,
    /// such as a buffer, for all its items.
    ///
    /// # Errors
    /// An error returned by `work`.
    pub fn each<I: Send, S: Default, E: Send>(
        &self,
        items: Vec<I>,
        work: impl Fn(&mut S, I) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        self.each_by(usize::MAX, items, work)
    }

    /// [`Workers::each`] on at most `most` threads, for work that the system does not run faster on more.
    ///
    /// # Errors
    /// As [`Workers::each`].
    pub fn each_by<I: Send, S: Default, E: Send>(
        &self,
        most: usize,
        items: Vec<I>,
        work: impl Fn(&mut S, I) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let threads = self.threads().min(items.len()).min(most);
        let mut items = items.into_iter();
        if threads < 2 {
            let mut state = S::default();
            return items.try_for_each(|item| work(&mut state, item));
        }
        let left = Mutex::new((items, None));
        let locked = || left.lock().unwrap_or_else(PoisonError::into_inner);
        let some = || {
            let mut state = S::default();
            loop {
                let Some(item) = locked().0.next() else { return };
                if let Err(e) = work(&mut state, item) {
                    let (items, failed) = &mut *locked();
                    *items = Vec::new().into_iter();
                    failed.get_or_insert(e);
                }
            }
        };
        self.help(|| share(threads, threads, &|_| some()));
        left.into_inner().unwrap_or_else(PoisonError::into_inner).1.map_or(Ok(()), Err)
    }

    /// Copies chunks in order, each with all threads, so that the first are complete early. The last thread of each
    /// chunk calls `done` with its index.
    ///
    /// The threads synchronise once for all chunks. Once per chunk would cost tens of microseconds, the time to copy a
    /// megabyte.
    ///
    /// # Panics
    /// If the lengths of a source and its target differ.
    pub fn copy_in_turn(
        &self,
        chunks: Vec<(&[u8], SequentialOutput<'_>)>,
        stores: Stores,
        done: impl Fn(usize) + Sync,
    ) {
        let raw = |(from, to): &(&[u8], SequentialOutput<'_>)| {
            assert_eq!(from.len(), to.remaining(), "a chunk is as long as what is copied");
            RawCopy { from: from.as_ptr(), to: to.as_ptr(), bytes: from.len() }
        };
        let raw: Vec<RawCopy> = chunks.iter().map(raw).collect();
        // SAFETY: the chunks are complete, and targets are mutably borrowed: nothing else writes there.
        unsafe { self.copy_arriving(&raw, stores, |_| true, done) };
    }

    /// [`Workers::copy_in_turn`] for chunks that may still be in transfer. `arrived` waits for the chunk of this index
    /// and returns `true` if it has arrived; otherwise the chunk is neither copied nor reported. All threads call
    /// `arrived` for the chunks in order.
    ///
    /// # Safety
    /// After `arrived` returned `true`, a chunk may be read until `done` is called for it, and nothing writes to it.
    /// Targets are writable and do not overlap. Nothing else reads or writes them.
    pub unsafe fn copy_arriving(
        &self,
        chunks: &[RawCopy],
        stores: Stores,
        arrived: impl Fn(usize) -> bool + Sync,
        done: impl Fn(usize) + Sync,
    ) {
        let share = |bytes: usize| (bytes / self.threads()).clamp(LEAST, SHARE);
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let mut left: Vec<AtomicUsize> = Vec::with_capacity(chunks.len());
        for (k, chunk) in chunks.iter().enumerate() {
            let before = parts.len();
            parts.extend((0..chunk.bytes).step_by(share(chunk.bytes)).map(|at| (k, at)));
            left.push(AtomicUsize::new(parts.len() - before));
            if parts.len() == before {
                done(k);
            }
        }
        self.in_order(parts.len(), |part| {
            let (k, at) = parts[part];
            if !arrived(k) {
                return;
            }
            let RawCopy { from, to, bytes } = chunks[k];
            let bytes = share(bytes).min(bytes - at);
            // SAFETY: the caller's promise, of a part of a chunk that no other thread copies.
            unsafe { stores::copy(from.add(at), to.add(at), bytes, stores) };
            if left[k].fetch_sub(1, Ordering::AcqRel) == 1 {
                done(k);
            }
        });
    }

    /// Copies bytes after the jobs that other threads have submitted to these workers.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        assert_eq!(from.len(), to.len(), "a copy is as long as what is copied");
        self.copy_pieces(from, to, &[StridedCopy::run(0, 0, from.len())]);
    }

    /// Copies pieces that do not overlap in the target.
    ///
    /// # Panics
    /// If one reaches beyond the source or the target.
    pub fn copy_pieces(&self, from: &[u8], to: &mut [u8], pieces: &[StridedCopy]) {
        let total: usize = pieces.iter().map(|p| p.bytes * p.rows).sum();
        let share = (total / self.threads()).max(SHARE);
        if self.threads() > 1
            && total >= 2 * SHARE
            && let Some(parts) = divided(to, pieces.iter().flat_map(|p| shares(*p, share)).collect())
        {
            return self.all(parts, |(to, piece)| copy_rows(from, to, piece));
        }
        pieces.iter().for_each(|p| copy_rows(from, to, *p));
    }
}

/// Source and target of a copy; see [`Workers::copy_arriving`].
#[derive(Clone, Copy, Debug)]
pub struct RawCopy {
    /// Source address.
    pub from: *const u8,
    /// Target address.
    pub to: *mut u8,
    /// Length in bytes.
    pub bytes: usize,
}

// SAFETY: plain addresses; their users promise the conditions of access.
unsafe impl Send for RawCopy {}
// SAFETY: as above.
unsafe impl Sync for RawCopy {}

fn copy_rows(from: &[u8], to: &mut [u8], piece: StridedCopy) {
    if piece.bytes == 0 {
        return; // nothing to copy
    }
    piece.runs().for_each(|(a, b, bytes)| to[b..b + bytes].copy_from_slice(&from[a..a + bytes]));
}

/// Divides a piece into parts of about `share` bytes.
fn shares(piece: StridedCopy, share: usize) -> impl Iterator<Item = StridedCopy> {
    let together = piece.rows > 0 && piece.bytes == piece.from_stride && piece.bytes == piece.to_stride;
    // Rows that are contiguous on both sides may be cut anywhere.
    let (bytes, rows) = if together { (1, piece.bytes * piece.rows) } else { (piece.bytes, piece.rows) };
    let (from_stride, to_stride) = if together { (1, 1) } else { (piece.from_stride, piece.to_stride) };
    let at_once = share.div_ceil(bytes.max(1));
    (0..rows).step_by(at_once).map(move |first| {
        let (from, to) = (piece.from + first * from_stride, piece.to + first * to_stride);
        let rows = at_once.min(rows - first);
        if together { StridedCopy::run(from, to, rows) } else { StridedCopy { from, to, rows, ..piece } }
    })
}

/// Divides the target into a part for each piece; `None` if pieces interlace.
fn divided(mut target: &mut [u8], mut pieces: Vec<StridedCopy>) -> Option<Vec<(&mut [u8], StridedCopy)>> {
    pieces.retain(|p| p.bytes > 0 && p.rows > 0);
    pieces.sort_unstable_by_key(|p| p.to);
    let mut at = 0;
    let mut parts = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let extent = (piece.rows - 1) * piece.to_stride + piece.bytes;
        let (part, rest) = target.split_at_mut(piece.to.checked_sub(at)?).1.split_at_mut(extent);
        parts.push((part, StridedCopy { to: 0, ..piece }));
        (target, at) = (rest, piece.to + extent);
    }
    Some(parts)
}

/// Runs `work` on a worker of `pool` and waits for it.
///
/// [`ThreadPool::install`] does not suffice for a caller that is a worker of another pool. While it waits, it runs
/// other jobs of its own pool, which may wait for the session that this caller has locked.
fn run_on<R: Send>(pool: &ThreadPool, work: impl FnOnce() -> R + Send) -> R {
    if rayon::current_thread_index().is_none() || pool.current_thread_index().is_some() {
        return pool.install(work);
    }
    let mut result = None;
    let (done, finished) = mpsc::sync_channel::<()>(1);
    let job: Box<dyn FnOnce() + Send + '_> = Box::new(|| result = Some(catch_unwind(AssertUnwindSafe(work))));
    // SAFETY: the job has ended, and its box with its borrows has been dropped, before the message
    // arrives or the channel closes; this function neither returns nor unwinds before that.
    let job: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(job) };
    pool.spawn(move || {
        job();
        // Closing the channel would also signal the end, but would not make the result visible.
        let _ = done.send(());
    });
    let _ = finished.recv();
    match result {
        Some(Ok(result)) => result,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("the pool runs what it is given"),
    }
}

#[cfg(test)]
mod tests;
