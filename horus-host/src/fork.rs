//! Detection of forks. A child process has only the thread that forked, and no device: the sessions of its parent do
//! not work there.

use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Counts the forks so far: the number differs between a child and its parent. Each operation reads it, where a system
/// call for the process id would be too slow.
pub fn generation() -> u32 {
    #[cfg(unix)]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        extern "C" fn forked() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        ONCE.call_once(|| {
            // SAFETY: the handler only increments an atomic, which is allowed after a fork.
            if unsafe { libc::pthread_atfork(None, None, Some(forked)) } != 0 {
                horus_base::warn!("out of memory: forks of this process will not be detected");
            }
        });
    }
    FORKS.load(Ordering::Relaxed)
}
