//! Blocking work inside calls that otherwise return at once: recording, copying and dropping images.

use std::sync::OnceLock;

/// Runs blocking work on a thread.
type BlockingRunner = fn(&mut (dyn FnMut() + Send));

static WAIT: OnceLock<BlockingRunner> = OnceLock::new();

/// Sets how every session of the process runs blocking work, for languages with an interpreter lock. `wait` must
/// release the lock, run the work once, and take the lock again. Otherwise observers that need the lock would wait for
/// a thread that waits for their evaluation. Only the first call has an effect.
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
