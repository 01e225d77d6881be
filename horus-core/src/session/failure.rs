//! Failed values: they carry their error to whoever looks at them.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

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
