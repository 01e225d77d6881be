//! What may take long inside calls that otherwise return at once: recording, copying and dropping images.

use std::sync::OnceLock;

/// How a thread carries out what may take long.
type Wait = fn(&mut (dyn FnMut() + Send));

static WAIT: OnceLock<Wait> = OnceLock::new();

/// For programs in languages with a lock around the interpreter: has every session of the process call `wait` with what may take long
/// inside calls that otherwise return at once. It lets go of the lock, calls what it was given, once, and takes the lock again: observers
/// that want the lock would otherwise wait for a thread that waits for their evaluation. The first `wait` stays.
#[doc(hidden)]
pub fn wait_by(wait: Wait) {
    let _ = WAIT.set(wait);
}

/// Does what may take long.
pub(super) fn waiting(mut work: impl FnMut() + Send) {
    match WAIT.get() {
        Some(wait) => wait(&mut work),
        None => work(),
    }
}
