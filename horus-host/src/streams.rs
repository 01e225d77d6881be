//! The state of the process's standard output when this code was loaded.

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns `true` if standard output was closed when the process started (`>&-`), or when it loaded a library with this
/// code. The Rust standard library opens the null device instead before `main`, and output is then lost without an
/// error. (Detected on Linux only.)
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

/// Runs before `main`, or when a library is loaded.
#[cfg(target_os = "linux")]
mod start {
    use super::{CLOSED, Ordering};

    extern "C" fn look() {
        // SAFETY: it reads a flag of a descriptor, which need not be open.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        CLOSED.store(flags == -1, Ordering::Relaxed);
    }

    // SAFETY: the section holds pointers to functions that the loader calls; this one needs nothing that the standard
    // library initialises.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;
}
