//! Threads that release the interpreter's lock, and the end of the interpreter.
//!
//! When a thread requests the lock while the interpreter is ending, Python ends the thread. This unwinds the Rust code
//! below and drops Python objects without the lock. When the interpreter ends, a thread inside a call therefore does
//! not request the lock again: it sleeps until the process has ended, as threads do from Python 3.14 on.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::session::{allow_all, cancel_all};

/// Time for which the end of the interpreter waits for calls of other threads. It is long enough for a step of an
/// evaluation, after which the evaluation ends.
const PATIENCE: Duration = Duration::from_secs(2);

/// `true` once the interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Number of threads that released the lock inside a call.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// Number of threads that are about to take the lock, or wait for it.
static RETURNING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// `true` if this thread released the lock here.
    static DETACHED: Cell<bool> = const { Cell::new(false) };
    /// `true` if this thread ends the interpreter, and therefore keeps the lock.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Announces that this thread is about to take the lock; `false` if it must not take it any more.
fn may_return() -> bool {
    RETURNING.fetch_add(1, Ordering::SeqCst);
    let may = !ENDING.load(Ordering::SeqCst) || ENDS.get();
    if !may {
        mark_returned();
    }
    may
}

fn mark_returned() {
    RETURNING.fetch_sub(1, Ordering::SeqCst);
}

/// Sleeps until the process has ended.
fn sleep() -> ! {
    loop {
        std::thread::park();
    }
}

/// Runs `work` with this thread marked as detached, or not.
fn with_detached<R>(detached: bool, work: impl FnOnce() -> R) -> std::thread::Result<R> {
    let before = DETACHED.replace(detached);
    let done = catch_unwind(AssertUnwindSafe(work));
    DETACHED.set(before);
    done
}

/// Runs `work` while other Python threads run.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    let done = py.detach(|| {
        if ENDING.load(Ordering::SeqCst) && !ENDS.get() {
            sleep();
        }
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let gpu = horus::keep_current_gpu();
        let done = with_detached(true, work);
        drop(gpu);
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        if !may_return() {
            sleep();
        }
        done
    });
    mark_returned();
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Calls `work` with the lock, from a thread that released it; `None` once the interpreter is about
/// to end.
pub(crate) fn attached<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    if !may_return() {
        return None;
    }
    let there = Cell::new(false);
    let done = Python::try_attach(|py| {
        mark_returned();
        there.set(true);
        with_detached(false, || work(py))
    });
    if !there.get() {
        mark_returned();
    }
    done.map(|done| done.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Runs long work while other Python threads run: one of them may be evaluating and need the lock to check whether the
/// work has ended.
pub(crate) fn wait(work: &mut (dyn FnMut() + Send)) {
    if DETACHED.get() || attached(|py| detached(py, &mut *work)).is_none() {
        work();
    }
}

/// Ends calls of other threads. The thread that ends the interpreter calls this.
#[pyfunction]
pub(crate) fn end_calls(py: Python<'_>) {
    ENDS.set(true);
    ENDING.store(true, Ordering::SeqCst);
    if INSIDE.load(Ordering::SeqCst) + RETURNING.load(Ordering::SeqCst) == 0 {
        return;
    }
    cancel_all();
    py.detach(|| {
        let until = Instant::now() + PATIENCE;
        while INSIDE.load(Ordering::SeqCst) + RETURNING.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    allow_all();
}

/// Forgets calls of threads that do not exist in a child process.
#[pyfunction]
pub(crate) fn forget_calls() {
    INSIDE.store(0, Ordering::SeqCst);
    RETURNING.store(0, Ordering::SeqCst);
}
