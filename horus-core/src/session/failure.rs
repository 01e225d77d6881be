//! Failed values: they carry their error to whoever looks at them.
//!
//! A handle (`session::Handle`) holds a record or a *failure* (`session/failure.rs`): the first error, with the
//! user's call site, and shape and type as far as they are known. `Image::attempt` is how a method validates; what
//! is recorded on a failure shares it, and no record is made. Filters and footprints that cannot be applied hold
//! their error likewise. Looking at the value returns the error, `Session::evaluate` returns the first one still
//! alive, and one that is dropped unseen is a warning. A rank that looks at a failure meets the others by `agree_on`
//! before it returns, where they would agree on a plan: if all look at the same failure all return it, and if only
//! some have it all are told and end. `check` alone asks no other rank.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use super::{Handle, Session};
use crate::comm::agree::agree_on;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The first error of a value, shared by everything that is computed from it. If nobody ever looked, it becomes a warning when the
/// last of them goes, unless an earlier error was carried on instead.
#[derive(Debug)]
pub(super) struct Failure {
    error: Error,
    seen: AtomicBool,
}

impl Failure {
    pub(super) fn new(error: Error) -> Failure {
        Failure { error, seen: AtomicBool::new(false) }
    }

    /// Another error is carried on in its place.
    pub(super) fn supersede(&self) {
        self.seen.store(true, Ordering::Relaxed);
    }

    /// The error, for somebody who looks.
    pub(super) fn look(&self) -> Error {
        self.seen.store(true, Ordering::Relaxed);
        self.error.clone()
    }
}

impl Drop for Failure {
    fn drop(&mut self) {
        if !*self.seen.get_mut() && !std::thread::panicking() {
            crate::warn!("an error was discarded with its image: {}", self.error);
        }
    }
}

impl Session {
    /// A value that could not be recorded.
    pub(crate) fn failed(&self, shape: Shape, dtype: DType, error: Error) -> Handle {
        let failure = Arc::new(Failure::new(error));
        let mut failures = self.failures();
        failures.retain(|f| f.strong_count() > 0);
        failures.push(Arc::downgrade(&failure));
        drop(failures);
        Handle { session: self.clone(), shape, dtype, record: Err(failure) }
    }

    /// Failed values that may still be alive.
    pub(super) fn failures(&self) -> MutexGuard<'_, Vec<Weak<Failure>>> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of a value that is looked at, after all ranks have synchronized: they look at the same value, and if
    /// it failed on some ranks only, all end with an error.
    pub(super) fn fail<T>(&self, failure: &Failure) -> Result<T> {
        let error = failure.look();
        if self.ranks() > 1 {
            agree_on(self.comm(), &format!("a value that failed: {error}"))?;
        }
        Err(error)
    }
}
