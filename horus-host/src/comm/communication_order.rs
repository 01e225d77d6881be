//! The order of communication among sessions that share a rank's communicator.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type WaitForSession = Arc<dyn Fn() + Send + Sync>;

/// The session of this rank that may be evaluating on its own thread. The next session to communicate waits for it. So
/// only one thread of a rank communicates at a time, and all ranks make the same calls in the same order.
#[derive(Default)]
pub struct CommunicationOrder(Mutex<Option<(usize, WaitForSession)>>);

impl CommunicationOrder {
    /// An order that no session has claimed.
    pub const fn new() -> CommunicationOrder {
        CommunicationOrder(Mutex::new(None))
    }

    /// Declares that session `who` evaluates on its own thread from now on, after all others have finished; `settle`
    /// waits for it.
    pub fn claim(&self, who: usize, settle: impl Fn() + Send + Sync + 'static) {
        self.wait_for_others(who);
        *self.lock() = Some((who, Arc::new(settle)));
    }

    /// Waits for work started by sessions other than `who`.
    pub fn wait_for_others(&self, who: usize) {
        // The other session keeps its claim: it may start new work before this one does.
        let other = self.lock().as_ref().filter(|(id, _)| *id != who).map(|(_, settle)| Arc::clone(settle));
        if let Some(settle) = other {
            settle();
        }
    }

    /// Waits for work started by any session.
    pub fn wait(&self) {
        let settle = self.lock().as_ref().map(|(_, settle)| Arc::clone(settle));
        if let Some(settle) = settle {
            settle();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(usize, WaitForSession)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CommunicationOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lock().is_some() { "Turns, claimed" } else { "Turns, free" })
    }
}
