//! Ends a process that other ranks wait for.

/// Ends this process by a signal that no handler catches, so that launchers end the other
/// processes. SIGABRT is not used, because Open MPI prints where it was raised.
pub fn kill() -> ! {
    // SAFETY: a signal to this process.
    #[cfg(unix)]
    unsafe {
        libc::raise(libc::SIGKILL);
    }
    std::process::abort()
}
