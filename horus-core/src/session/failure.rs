//! Failed values: they carry their error to whoever looks at them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use super::{Handle, Session};
use crate::comm::agree::agree_on;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

/// The first error of a value, shared by everything that is computed from it. If nobody ever looked, it is logged when the
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
            log::warn!("an error was discarded with its image: {}", self.error);
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
