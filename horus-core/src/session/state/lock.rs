//! Lock of a session's state.
//!
//! An evaluation holds the lock from its beginning to its end, and calls observers and explain sinks meanwhile. Drops,
//! records and started evaluations are deferred until the lock is free, on any thread. They are processed in the order
//! of the calls, so every rank does the same. An observer that makes any other request gets an error; other threads
//! wait. The design is in `docs/design/concurrency.md`.

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

/// Maximum number of deferred actions; a full queue blocks the thread.
const MOST: usize = 1 << 16;

/// Number of this thread, from 1.
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

/// An action that is deferred until the state lock is free.
enum DeferredAction {
    /// Change of the state that holds this many bytes of pixels.
    Change(StateChange, usize),
    /// Evaluation, for the next thread that waits or for the session's thread.
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

    /// Removes the next action; `None` if it starts an evaluation and only `changes` are wanted.
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

/// State of a session, the thread that holds it, and the actions deferred until it is free.
pub(crate) struct StateLock {
    state: Mutex<SessionState>,
    /// Thread that holds the state; 0 if none does. A thread only compares the number with its own, and writes only its
    /// own.
    owner: AtomicU64,
    /// Locked while the state is released: the thread that holds the state processes everything deferred before.
    later: Mutex<DeferredQueue>,
}

impl StateLock {
    pub(crate) fn new(state: SessionState) -> StateLock {
        StateLock { state: Mutex::new(state), owner: AtomicU64::new(0), later: Mutex::default() }
    }

    fn later(&self) -> MutexGuard<'_, DeferredQueue> {
        self.later.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state, if no thread holds it and nothing is deferred.
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

/// The locked state. Fields are dropped in this order.
pub(crate) struct LockedState<'a> {
    session: &'a Session,
    state: MutexGuard<'a, SessionState>,
    /// Locked while the state is released.
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

    /// Processes deferred actions: all, or the changes before the next evaluation. Nothing can be deferred while the
    /// result lives.
    fn catch_up(&mut self, changes: bool) -> MutexGuard<'a, DeferredQueue> {
        let session = self.session;
        loop {
            let mut later = session.0.state.later();
            let Some(next) = later.next(changes) else { return later };
            drop(later);
            let state = &mut *self.state;
            // A panic of an observer is reported as an error, because it does not belong to the thread that runs this.
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
    /// Locks the state after all deferred actions.
    ///
    /// # Errors
    /// [`Error::Reentry`] if this thread holds the state: a callback of an evaluation requests `what`;
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

    /// Number of times this thread has read values, or made another request that waits for evaluations. Started
    /// evaluations, and those forced by much recording, do not count, because they depend on timing.
    pub(crate) fn looks() -> u64 {
        ASKED.get()
    }

    /// Locks the state, which another thread may hold, after all deferred actions.
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

    /// Changes the state by a short action that calls no code of the program, now or after the current evaluation.
    pub(crate) fn change(&self, change: impl FnOnce(&mut SessionState) + Send + 'static) {
        match self.free() {
            Some(mut state) => change(&mut state),
            None => self.change_with(0, move |_, state| change(state)),
        }
    }

    /// Locks the state for a short action that calls no code of the program, unless a thread holds it or an action is
    /// deferred. Nothing can be deferred while the result lives.
    pub(crate) fn free(&self) -> Option<LockedState<'_>> {
        if !self.0.is_here() {
            return None;
        }
        let later = self.0.state.later();
        let state = self.0.state.free(&later)?;
        Some(LockedState { session: self, state, later: Some(later), dropped: DroppedImages::default() })
    }

    /// Changes the state by an action that holds this many bytes of pixels, now or after the current evaluation.
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

    /// Starts an evaluation after all earlier actions.
    pub(crate) fn defer_evaluation(&self, start: DeferredEvaluation) {
        self.0.state.later().push(DeferredAction::Start(start));
    }
}
