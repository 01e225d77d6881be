//! Converts return codes to errors that name the call.

use std::ffi::c_int;

use horus_core::comm::CommError;
use mpi::ffi;

/// At least `MPI_MAX_ERROR_STRING` of any implementation (256 in Open MPI, 512 in MPICH).
const LONGEST: usize = 8192;

/// Converts the return code of a call to a result.
pub(crate) fn check(call: &str, code: c_int) -> Result<(), CommError> {
    if succeeded(code) { Ok(()) } else { Err(CommError(format!("{call}: {}", text(code)))) }
}

pub(crate) fn succeeded(code: c_int) -> bool {
    code == ffi::MPI_SUCCESS as c_int
}

/// MPI's text for a return code.
pub(crate) fn text(code: c_int) -> String {
    let mut bytes = [0u8; LONGEST];
    let mut length: c_int = 0;
    // SAFETY: the buffer is longer than the longest message of any implementation, and both
    // pointers are valid.
    let told = unsafe { ffi::MPI_Error_string(code, bytes.as_mut_ptr().cast(), &raw mut length) };
    let length = usize::try_from(length).unwrap_or(0).min(LONGEST);
    if succeeded(told) && length > 0 {
        String::from_utf8_lossy(&bytes[..length]).trim().to_owned()
    } else {
        format!("error code {code}")
    }
}

/// A count or a rank in MPI's type.
pub(crate) fn int(n: usize) -> Result<c_int, CommError> {
    c_int::try_from(n).map_err(|_| CommError(format!("{n} exceeds the largest count of an MPI call")))
}
