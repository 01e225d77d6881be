//! Threads that let go of the interpreter's lock, and the end of the interpreter.
//!
//! A thread that wants the lock when the interpreter is about to end does not return: Python ends the thread, which unwinds the Rust code
//! below, and that drops objects of Python without the lock. So when the interpreter ends, a thread that is in a call does not ask for the
//! lock again: it sleeps until the process has ended, as threads do from Python 3.14 on.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::session::{allow_all, cancel_all};

/// For how long the end of the interpreter waits for calls of other threads: long enough for steps of an evaluation, which ends after one.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Threads in a call that have let go of the lock.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// Threads that are about to take the lock, or wait for it.
static RETURNING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread has let go of the lock here.
    static DETACHED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread ends the interpreter: it keeps the lock.
    static ENDS: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread is about to take the lock; false if it must not any more.
fn may_return() -> bool {
    RETURNING.fetch_add(1, Ordering::SeqCst);
    let may = !ENDING.load(Ordering::SeqCst) || ENDS.get();
    if !may {
        returned();
    }
    may
}

fn returned() {
    RETURNING.fetch_sub(1, Ordering::SeqCst);
}

/// Sleeps until the process has ended.
fn sleep() -> ! {
    loop {
        std::thread::park();
    }
}

/// Does something with this thread said to have let go of the lock, or not.
fn with_detached<R>(detached: bool, work: impl FnOnce() -> R) -> std::thread::Result<R> {
    let before = DETACHED.replace(detached);
    let done = catch_unwind(AssertUnwindSafe(work));
    DETACHED.set(before);
    done
}

/// Does something while other threads of Python run.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    let done = py.detach(|| {
        if ENDING.load(Ordering::SeqCst) && !ENDS.get() {
            sleep();
        }
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let done = with_detached(true, work);
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        if !may_return() {
            sleep();
        }
        done
    });
    returned();
    done.unwrap_or_else(|panic| resume_unwind(panic))
}

/// What is called with the lock by a thread that let go of it; none once the interpreter is about to end.
pub(crate) fn attached<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    if !may_return() {
        return None;
    }
    let there = Cell::new(false);
    let done = Python::try_attach(|py| {
        returned();
        there.set(true);
        with_detached(false, || work(py))
    });
    if !there.get() {
        returned();
    }
    done.map(|done| done.unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Does what may take long while other threads of Python run: one may evaluate, and want the lock to look whether it is to end.
pub(crate) fn wait(work: &mut (dyn FnMut() + Send)) {
    if DETACHED.get() || attached(|py| detached(py, &mut *work)).is_none() {
        work();
    }
}

/// Ends calls that other threads are in: to be called when the interpreter ends, by the thread that ends it.
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

/// Forgets calls of threads that a child process does not have.
#[pyfunction]
pub(crate) fn forget_calls() {
    INSIDE.store(0, Ordering::SeqCst);
    RETURNING.store(0, Ordering::SeqCst);
}
