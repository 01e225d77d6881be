//! Blocking work inside calls that otherwise return at once: recording, copying and dropping
//! images.

use std::sync::OnceLock;

/// Runs blocking work on a thread.
type BlockingRunner = fn(&mut (dyn FnMut() + Send));

static WAIT: OnceLock<BlockingRunner> = OnceLock::new();

/// For programs in languages with an interpreter lock: every session of the process passes blocking
/// work inside calls that otherwise return at once to `wait`. It must release the lock, run the
/// work once, and take the lock again: observers that need the lock would otherwise wait for a
/// thread that waits for their evaluation. The first `wait` stays.
#[doc(hidden)]
pub fn wait_by(wait: BlockingRunner) {
    let _ = WAIT.set(wait);
}

/// Runs blocking work.
pub(crate) fn waiting(mut work: impl FnMut() + Send) {
    match WAIT.get() {
        Some(wait) => wait(&mut work),
        None => work(),
    }
}
