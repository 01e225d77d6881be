//! Forks of the process. Of its threads a child has the one that forked, and no device: nothing of its parent's sessions works there.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);

/// A number that a child does not share with its parent: how often both, and those before them, were forked. It is read at each
/// operation, for which a process id, a call of the system, would cost too much.
pub fn generation() -> u32 {
    #[cfg(unix)]
    {
        static ONCE: Once = Once::new();
        extern "C" fn forked() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        ONCE.call_once(|| {
            // SAFETY: The handler adds to an atomic number, which is all that it does and may be done after a fork.
            if unsafe { libc::pthread_atfork(None, None, Some(forked)) } != 0 {
                horus_base::warn!("no memory to notice forks of this process");
            }
        });
    }
    FORKS.load(Ordering::Relaxed)
}
