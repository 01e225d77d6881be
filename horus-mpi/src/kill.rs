//! The end of a process that other ranks wait for.

/// Ends this process by a signal that no handler catches, as launchers then end the others. Of SIGABRT Open MPI prints where in the
/// library it was raised.
pub fn kill() -> ! {
    #[cfg(unix)]
    {
        unsafe extern "C" {
            /// The C library's `raise`: sends this process a signal.
            safe fn raise(signal: std::ffi::c_int) -> std::ffi::c_int;
        }
        const SIGKILL: std::ffi::c_int = 9;
        raise(SIGKILL);
    }
    std::process::abort()
}
