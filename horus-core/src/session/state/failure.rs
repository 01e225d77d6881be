//! Failed values: they carry their error until a value is read.
//!
//! A [`Handle`] has a record or a *failure*: the first error, with the user's call site, and shape and type as far as
//! they are known. An operation on a failure shares it and makes no record. Filters and footprints that cannot be
//! applied carry their error, too. Reading the value returns the error, and [`Session::evaluate`] returns the first
//! error that is still alive. The design is in `docs/design/failures.md`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};

use crate::comm::agree::agree_on;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::session::{Handle, Session};
use crate::shape::Shape;

/// The first error of a value, shared by everything computed from it. If it is never read, it becomes a warning when
/// the last owner is dropped, unless it was superseded.
#[derive(Debug)]
pub(crate) struct ValueFailure {
    error: Error,
    seen: AtomicBool,
}

impl ValueFailure {
    pub(crate) fn new(error: Error) -> ValueFailure {
        ValueFailure { error, seen: AtomicBool::new(false) }
    }

    /// Marks the error as superseded by an earlier one.
    pub(crate) fn supersede(&self) {
        self.seen.store(true, Ordering::Relaxed);
    }

    /// Reads the error.
    pub(crate) fn look(&self) -> Error {
        self.seen.store(true, Ordering::Relaxed);
        self.error.clone()
    }
}

impl Drop for ValueFailure {
    fn drop(&mut self) {
        if !*self.seen.get_mut() && !std::thread::panicking() {
            crate::warn!("an error was discarded with its image: {}", self.error);
        }
    }
}

impl Session {
    /// A value that could not be recorded.
    pub(crate) fn failed(&self, shape: Shape, dtype: DType, error: Error) -> Handle {
        let failure = Arc::new(ValueFailure::new(error));
        let mut failures = self.failures();
        failures.retain(|f| f.strong_count() > 0);
        failures.push(Arc::downgrade(&failure));
        drop(failures);
        Handle::new(self, Err(failure), (shape, dtype))
    }

    /// Failed values that may still be alive.
    pub(crate) fn failures(&self) -> MutexGuard<'_, Vec<Weak<ValueFailure>>> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Error of a value that is read, after all ranks have synchronised. All ranks read the same value; if it failed on
    /// some ranks only, all end with an error.
    pub(crate) fn fail<T>(&self, failure: &ValueFailure) -> Result<T> {
        let error = failure.look();
        if self.ranks() > 1 {
            agree_on(self.comm(), &format!("a value that failed: {error}"))?;
        }
        Err(error)
    }
}
