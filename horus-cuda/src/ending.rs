//! The end of a process that has a GPU.

/// Ends the process with this status and runs nothing more: no destructors, no handlers of `atexit`. The driver has such a
/// handler, which takes down piece by piece what the system frees in one go.
///
/// Whoever calls this has written and flushed everything, and belongs to no other processes that wait for a farewell.
pub fn end_process(status: i32) -> ! {
    #[cfg(unix)]
    // SAFETY: takes a number and does not return; no memory of this process is looked at after.
    unsafe {
        libc::_exit(status)
    }
    #[cfg(not(unix))]
    std::process::exit(status)
}
