//! The end of a process that has a GPU.

/// Ends the process with this status and runs nothing more: no destructors, no `atexit` handlers. The driver's handler
/// would free piece by piece what the system frees at once.
///
/// The caller must have written and flushed everything, and must not belong to a group of processes
/// that expect a regular exit.
pub fn end_process(status: i32) -> ! {
    #[cfg(unix)]
    // SAFETY: takes a number and does not return; nothing uses this process's memory afterwards.
    unsafe {
        libc::_exit(status)
    }
    #[cfg(not(unix))]
    std::process::exit(status)
}
