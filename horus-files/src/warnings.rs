//! Warnings that are given once, for any number of files and ranks.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
struct WarningRegistry {
    /// The subjects so far.
    subjects: BTreeSet<String>,
    /// Subjects and messages for another rank, if that rank gives the warnings.
    collected: Option<Vec<(String, String)>>,
}

static NOTICES: Mutex<WarningRegistry> = Mutex::new(WarningRegistry { subjects: BTreeSet::new(), collected: None });

fn warning_registry() -> MutexGuard<'static, WarningRegistry> {
    NOTICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Warns of a subject, once per process.
pub fn warn_once(subject: &str, message: impl FnOnce() -> String) {
    let mut all = warning_registry();
    if !all.subjects.insert(subject.to_owned()) {
        return;
    }
    let message = message();
    if let Some(held) = &mut all.collected {
        held.push((subject.to_owned(), message));
        return;
    }
    drop(all);
    horus_base::warn!("{message}");
}

/// Collects the warnings of this process for another rank, from [`CollectedWarnings::begin`] on. If dropped, it gives
/// them here.
#[derive(Debug)]
pub struct CollectedWarnings(());

impl CollectedWarnings {
    /// Collects all warnings from now on.
    #[must_use]
    pub fn begin() -> CollectedWarnings {
        warning_registry().collected.get_or_insert_default();
        CollectedWarnings(())
    }

    /// Subjects and messages for the other rank, which passes them to [`warn_once`].
    #[must_use]
    pub fn end(self) -> Vec<(String, String)> {
        warning_registry().collected.take().unwrap_or_default()
    }
}

impl Drop for CollectedWarnings {
    fn drop(&mut self) {
        for (_, message) in warning_registry().collected.take().unwrap_or_default() {
            horus_base::warn!("{message}");
        }
    }
}
