//! Warnings that are given once, however many files and ranks they concern.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
struct Notices {
    /// The subjects so far.
    told: BTreeSet<String>,
    /// Subjects and messages for another rank, if that tells them.
    held: Option<Vec<(String, String)>>,
}

static NOTICES: Mutex<Notices> = Mutex::new(Notices { told: BTreeSet::new(), held: None });

fn notices() -> MutexGuard<'static, Notices> {
    NOTICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Warns of a subject, once per process.
pub fn tell_once(subject: &str, message: impl FnOnce() -> String) {
    let mut all = notices();
    if !all.told.insert(subject.to_owned()) {
        return;
    }
    let message = message();
    if let Some(held) = &mut all.held {
        held.push((subject.to_owned(), message));
        return;
    }
    drop(all);
    horus_base::warn!("{message}");
}

/// Warnings of this process that another rank gives: from [`HeldNotices::begin`] on, until it is dropped, which gives
/// them here.
#[derive(Debug)]
pub struct HeldNotices(());

impl HeldNotices {
    /// Holds what is told from now on.
    #[must_use]
    pub fn begin() -> HeldNotices {
        notices().held.get_or_insert_default();
        HeldNotices(())
    }

    /// Subjects and messages for the other rank, which passes them to [`tell_once`].
    #[must_use]
    pub fn end(self) -> Vec<(String, String)> {
        notices().held.take().unwrap_or_default()
    }
}

impl Drop for HeldNotices {
    fn drop(&mut self) {
        for (_, message) in notices().held.take().unwrap_or_default() {
            horus_base::warn!("{message}");
        }
    }
}
