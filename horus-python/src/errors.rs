//! Errors of Horus as Python's exceptions.

use std::any::Any as Payload;
use std::panic::{AssertUnwindSafe, catch_unwind};

use horus::error::{DeviceError, Error, Result};
use horus_core::error::Audience;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::ending;

create_exception!(horus_image, HorusError, PyException, "What Horus met that no exception of Python's own names.");

/// The messages of the operating system, and of Rust, that a file or folder does not exist.
const NOT_FOUND: [&str; 2] = ["(os error 2)", "entity not found"];

/// The exception for an error. Source lines in Rust are omitted, because Python's traceback shows the call of Horus.
/// Errors of evaluations name the line that recorded the operation if it is known, which is for lazy images.
pub(crate) fn exception(error: &Error) -> PyErr {
    let named =
        |op: &str, message: &str| PyValueError::new_err(format!("{}: {message}", Audience::Python.method_name(op)));
    match error {
        Error::ShapeMismatch { op, left, right, .. } => {
            named(op, &format!("images differ in size, {left} and {right}"))
        }
        Error::Empty { op, shape, .. } => named(op, &format!("size {shape} has no pixels")),
        Error::Parameter { op, message, .. } => named(op, message),
        Error::ForeignImage { op, .. } => named(op, "the images belong to different sessions"),
        Error::Config(message) => PyValueError::new_err(message.clone()),
        Error::Forked { .. } => PyRuntimeError::new_err(error.to_string()),
        // The cause comes from the rank that accesses files, the same on all ranks.
        Error::File { cause, .. } if NOT_FOUND.iter().any(|told| cause.contains(told)) => {
            PyFileNotFoundError::new_err(error.to_string())
        }
        Error::File { .. } => PyOSError::new_err(error.to_string()),
        Error::Device { source: DeviceError::OutOfMemory { .. }, .. } => {
            PyMemoryError::new_err(without_place(&error.to_string()))
        }
        // Memory of another library on another device than the session's.
        Error::Device { op, source: DeviceError::Argument(message), .. } if op.starts_with("from_device_array") => {
            PyValueError::new_err(message.clone())
        }
        other => HorusError::new_err(without_place(&other.to_string())),
    }
}

/// A message without Rust source lines of recorded operations; lines of the user's program stay.
pub(crate) fn without_place(message: &str) -> String {
    let mut told = message.to_owned();
    for (opening, closing, left) in [(" (at ", ')', 0), (" (recorded at ", ')', 0), (" recorded at ", '`', 1)] {
        let mut from = 0;
        while let Some(start) = told[from..].find(opening).map(|at| from + at) {
            let end = told[start..].find(closing).map_or(told.len(), |at| start + at + 1 - left);
            if told[start..end].contains(".rs:") {
                told.replace_range(start..end, "");
            }
            from = if told[start..].starts_with(opening) { end } else { start };
        }
    }
    told
}

/// The result of `work`, or the exception for its error. A panic, which is a defect of Horus, becomes an exception too:
/// it neither ends the interpreter nor escapes an `except Exception`.
pub(crate) fn caught<R>(work: impl FnOnce() -> Result<R>) -> PyResult<R> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(exception(&error)),
        Err(panic) => Err(panicked(&*panic)),
    }
}

/// [`caught`] while other Python threads may run.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    let done = ending::detached(py, || caught(work));
    crate::logging::deliver_messages(py);
    done
}

fn panicked(panic: &(dyn Payload + Send)) -> PyErr {
    let said = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    HorusError::new_err(format!("internal error: {}; please report this", said.unwrap_or("a panic")))
}
