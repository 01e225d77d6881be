//! The lock of a session's state.
//!
//! An evaluation holds the session's state from its beginning to its end, and calls observers and
//! explain sinks in between. These run on the same thread and would deadlock; other threads would
//! wait. Drops and records meanwhile, on any thread, are deferred until the state is free,
//! and so are evaluations to be started: all in the order of the calls, in which every rank does
//! the same. Observers that make any other request get an error; other threads wait.
//!
//! An evaluation holds the session's state (`session/state/lock.rs`). Drops and records
//! meanwhile, on any thread, wait in one queue, and so do evaluations that `Session::start` begins
//! (`session/state/start.rs`). The queue is processed in the order of the calls, so every rank does the
//! same as if each evaluation had run inside its call, by the session's thread, or by the next read
//! of a value. `Communicator::communication_order` tells if more than one thread of a rank may communicate; if
//! not (an MPI library that grants less than `MPI_THREAD_SERIALIZED`), `start` evaluates inside the
//! call. Before MPI is finalised, the started evaluations of sessions left open are completed.
//! Observers may drop, copy, record and start; statistics and times are as of the last evaluation;
//! reading values is an error (`Error::Reentry`). A thread that fills the queue blocks, and so does
//! one that drops the last image of a session with started evaluations: the wait runs as a program
//! in another language has set (`session/state/wait.rs`), in Python without the interpreter's lock,
//! which observers take.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::{Error, Result};
use crate::session::images::DroppedImages;
use crate::session::state::start::DeferredEvaluation;
use crate::session::state::wait::waiting;
use crate::session::{Session, SessionState};

/// Maximum number of deferred changes; a thread that gets this far ahead of an evaluation blocks.
const MOST: usize = 1 << 16;

/// This thread's number, from 1.
fn me() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static ME: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    ME.with(|me| *me)
}

thread_local! {
    /// Number of times this thread has requested the state of a session.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

type StateChange = Box<dyn FnOnce(&Session, &mut SessionState) + Send>;

/// A deferred action.
enum DeferredAction {
    /// A change of the state that holds this many bytes of pixels.
    Change(StateChange, usize),
    /// An evaluation, for the next waiter or for the session's thread.
    Start(DeferredEvaluation),
}

/// Deferred actions, in order.
#[derive(Default)]
struct DeferredQueue {
    waiting: VecDeque<DeferredAction>,
    bytes: usize,
}

impl DeferredQueue {
    fn push(&mut self, later: DeferredAction) {
        if let DeferredAction::Change(_, bytes) = later {
            self.bytes += bytes;
        }
        self.waiting.push_back(later);
    }

    /// The next action, unless it starts an evaluation and only `changes` are wanted.
    fn next(&mut self, changes: bool) -> Option<DeferredAction> {
        if changes && matches!(self.waiting.front(), Some(DeferredAction::Start(_))) {
            return None;
        }
        let next = self.waiting.pop_front()?;
        if let DeferredAction::Change(_, bytes) = next {
            self.bytes -= bytes;
        }
        Some(next)
    }
}

/// A session's state, the thread that holds it, and the actions deferred until it is free.
pub(crate) struct StateLock {
    state: Mutex<SessionState>,
    /// The thread that holds the state; 0 if none does. Threads only compare it with themselves,
    /// and only they write their own number.
    owner: AtomicU64,
    /// Locked while the state is released: the holder of the state processes everything deferred
    /// before.
    later: Mutex<DeferredQueue>,
}

impl StateLock {
    pub(crate) fn new(state: SessionState) -> StateLock {
        StateLock { state: Mutex::new(state), owner: AtomicU64::new(0), later: Mutex::default() }
    }

    fn later(&self) -> MutexGuard<'_, DeferredQueue> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if no thread holds it and nothing is deferred.
    fn free(&self, later: &DeferredQueue) -> Option<MutexGuard<'_, SessionState>> {
        if !later.waiting.is_empty() {
            return None;
        }
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error.take()
            && !std::thread::panicking()
        {
            crate::warn!("an error was discarded with its session: {error}");
        }
    }
}

/// The state, locked. Fields are dropped in this order.
pub(crate) struct LockedState<'a> {
    session: &'a Session,
    state: MutexGuard<'a, SessionState>,
    /// Held while the state is released.
    later: Option<MutexGuard<'a, DeferredQueue>>,
    /// Dropped after the locks.
    dropped: DroppedImages,
}

impl Deref for LockedState<'_> {
    type Target = SessionState;
    fn deref(&self) -> &SessionState {
        &self.state
    }
}

impl DerefMut for LockedState<'_> {
    fn deref_mut(&mut self) -> &mut SessionState {
        &mut self.state
    }
}

impl<'a> LockedState<'a> {
    fn new(session: &'a Session, state: MutexGuard<'a, SessionState>) -> LockedState<'a> {
        session.0.state.owner.store(me(), Ordering::Relaxed);
        LockedState { session, state, later: None, dropped: DroppedImages::default() }
    }

    /// Processes deferred actions: all, or the changes before the next evaluation. Nothing more can
    /// be deferred while the result lives.
    fn catch_up(&mut self, changes: bool) -> MutexGuard<'a, DeferredQueue> {
        let session = self.session;
        loop {
            let mut later = session.0.state.later();
            let Some(next) = later.next(changes) else { return later };
            drop(later);
            let state = &mut *self.state;
            // A panic (of an observer) does not belong to the thread that happens to run this: it
            // is reported as an error.
            let done = catch_unwind(AssertUnwindSafe(|| match next {
                DeferredAction::Change(change, _) => change(session, state),
                DeferredAction::Start(start) => session.run_deferred(state, start),
            }));
            if let Err(panic) = done {
                let text = panic.downcast_ref::<&str>().copied();
                let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                self.state.lost = Some(format!("an evaluation panicked: {}", text.unwrap_or("with no message")));
            }
        }
    }
}

impl Drop for LockedState<'_> {
    fn drop(&mut self) {
        if self.later.is_none() {
            self.later = Some(self.catch_up(true));
        }
        self.dropped = self.state.images.dropped();
        self.session.0.state.owner.store(0, Ordering::Relaxed);
    }
}

impl Session {
    /// The state, after all deferred actions.
    ///
    /// # Errors
    /// [`Error::Reentry`] if this thread holds it: a callback of an evaluation requests `what`;
    /// [`Error::Forked`] in a child of the process that opened the session.
    pub(crate) fn lock(&self, what: &'static str) -> Result<LockedState<'_>> {
        ASKED.set(ASKED.get() + 1);
        self.lock_to_give(what)
    }

    /// [`Session::lock`] for a caller that gives the session pixels and reads nothing.
    ///
    /// # Errors
    /// As [`Session::lock`].
    pub(crate) fn lock_to_give(&self, what: &'static str) -> Result<LockedState<'_>> {
        if !self.0.is_here() {
            return Err(Error::Forked { what });
        }
        if self.is_mine() {
            return Err(Error::Reentry { what });
        }
        self.wait_for_other_sessions();
        Ok(self.acquire())
    }

    /// Number of times this thread has read values, or made another request that waits for
    /// evaluations. Concurrent evaluations, and those forced by much recording, do not count: they
    /// depend on timing.
    pub(crate) fn looks() -> u64 {
        ASKED.get()
    }

    /// The state, which another thread may hold, after all deferred actions.
    pub(crate) fn acquire(&self) -> LockedState<'_> {
        let state = self.0.state.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut locked = LockedState::new(self, state);
        drop(locked.catch_up(false));
        locked
    }

    /// Returns `true` if this thread holds the state.
    pub(crate) fn is_mine(&self) -> bool {
        self.0.state.owner.load(Ordering::Relaxed) == me()
    }

    /// Changes the state by a short action that calls no code of the program: now, or after the current evaluation.
    pub(crate) fn change(&self, change: impl FnOnce(&mut SessionState) + Send + 'static) {
        match self.free() {
            Some(mut state) => change(&mut state),
            None => self.change_with(0, move |_, state| change(state)),
        }
    }

    /// The state for a short action that calls no code of the program, unless a thread holds it or an action is
    /// deferred. Nothing can be deferred while the result lives.
    pub(crate) fn free(&self) -> Option<LockedState<'_>> {
        if !self.0.is_here() {
            return None;
        }
        let later = self.0.state.later();
        let state = self.0.state.free(&later)?;
        Some(LockedState { session: self, state, later: Some(later), dropped: DroppedImages::default() })
    }

    /// Changes the state by an action that holds this many bytes of pixels: now, or after the current evaluation.
    pub(crate) fn change_with(&self, bytes: usize, change: impl FnOnce(&Session, &mut SessionState) + Send + 'static) {
        if !self.0.is_here() {
            return;
        }
        let owned = &self.0.state;
        loop {
            let mut later = owned.later();
            if !self.is_mine() {
                if let Some(state) = owned.free(&later) {
                    let mut locked = LockedState::new(self, state);
                    drop(later);
                    return change(self, &mut locked);
                }
                if later.waiting.len() >= MOST
                    || later.bytes.saturating_add(bytes) > self.0.settings.max_pinned.max(bytes)
                {
                    drop(later);
                    waiting(|| drop(self.acquire()));
                    continue;
                }
            }
            return later.push(DeferredAction::Change(Box::new(change), bytes));
        }
    }

    /// Starts an evaluation when its turn comes.
    pub(crate) fn defer_evaluation(&self, start: DeferredEvaluation) {
        self.0.state.later().push(DeferredAction::Start(start));
    }
}
