//! The lock of a session's state.
//!
//! An evaluation holds the session's state from its beginning to its end, and calls observers and explain sinks in
//! between. These run on the same thread and would deadlock. What they may do (drop, copy and record images) is
//! deferred until the state is free; everything else is an error.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Mutable, Session};
use crate::error::{Error, Result};
use crate::execute::Stored;

type Change = Box<dyn FnOnce(&mut Mutable) + Send>;

/// This thread's number, from 1.
fn me() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static ME: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
    ME.with(|me| *me)
}

/// A session's state, the thread that has it, and what is to be changed when it is free.
pub(super) struct Owned {
    state: Mutex<Mutable>,
    /// The thread that has the state; 0 if none has. Only whether it is the asking thread matters, and that thread wrote it.
    owner: AtomicU64,
    later: Mutex<Vec<Change>>,
}

impl Owned {
    pub(super) fn new(state: Mutable) -> Owned {
        Owned { state: Mutex::new(state), owner: AtomicU64::new(0), later: Mutex::default() }
    }
}

/// The state, locked.
pub(super) struct Locked<'a> {
    state: MutexGuard<'a, Mutable>,
    owned: &'a Owned,
    /// Dropped after the lock.
    freed: Vec<Stored>,
}

impl Deref for Locked<'_> {
    type Target = Mutable;
    fn deref(&self) -> &Mutable {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Mutable {
        &mut self.state
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let later = std::mem::take(&mut *self.owned.later.lock().unwrap_or_else(PoisonError::into_inner));
        later.into_iter().for_each(|change| change(&mut self.state));
        self.freed = std::mem::take(&mut self.state.freed);
        self.owned.owner.store(0, Ordering::Relaxed);
    }
}

impl Session {
    /// The state.
    ///
    /// # Errors
    /// [`Error::Reentry`] if this thread has it: the session evaluates, and what is called in between asks for `what`.
    pub(super) fn lock(&self, what: &'static str) -> Result<Locked<'_>> {
        let owned = &self.0.state;
        if owned.owner.load(Ordering::Relaxed) == me() {
            return Err(Error::Reentry { what });
        }
        let state = owned.state.lock().unwrap_or_else(PoisonError::into_inner);
        owned.owner.store(me(), Ordering::Relaxed);
        Ok(Locked { state, owned, freed: Vec::new() })
    }

    /// Changes the state: now, or when this thread's evaluation is over.
    pub(super) fn change(&self, change: impl FnOnce(&mut Mutable) + Send + 'static) {
        match self.lock("a change") {
            Ok(mut state) => change(&mut state),
            Err(_) => self.put_off(change),
        }
    }

    /// Changes the state when this thread's evaluation is over.
    pub(super) fn put_off(&self, change: impl FnOnce(&mut Mutable) + Send + 'static) {
        self.0.state.later.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(change));
    }
}
