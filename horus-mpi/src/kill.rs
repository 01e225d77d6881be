//! The end of a process that other ranks wait for.

/// Ends this process by a signal that no handler catches, as launchers then end the others. Of SIGABRT Open MPI prints where in the
/// library it was raised.
pub fn kill() -> ! {
    // SAFETY: a signal to this process.
    #[cfg(unix)]
    unsafe {
        libc::raise(libc::SIGKILL);
    }
    std::process::abort()
}
