//! The context that is current on a thread.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr::null_mut;

use cudarc::driver::sys;
use horus_core::error::DeviceError;

use super::check;

#[derive(Clone, Copy)]
enum Current {
    /// Contexts stay current on threads of Horus.
    Ours,
    /// A context of the caller is current, or none.
    Callers,
    /// A context is current in place of the caller's.
    Replaced(sys::CUcontext),
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current::Ours) };
}

/// Keeps the context that is current on this thread: other libraries of the process allocate on the GPU of the current
/// context. When the first such value of a thread is dropped, the context is current again.
#[must_use]
pub struct CallersContext {
    is_outermost: bool,
    /// Values stay on their thread.
    _thread: PhantomData<*const ()>,
}

impl CallersContext {
    /// Calls of CUDA on this thread replace the current context until the result is dropped.
    pub fn keep() -> CallersContext {
        let is_outermost = matches!(CURRENT.get(), Current::Ours);
        if is_outermost {
            CURRENT.set(Current::Callers);
        }
        CallersContext { is_outermost, _thread: PhantomData }
    }
}

impl Drop for CallersContext {
    fn drop(&mut self) {
        if !self.is_outermost {
            return;
        }
        if let Current::Replaced(context) = CURRENT.replace(Current::Ours) {
            // SAFETY: the context was current on this thread. A failure, as after its destruction, leaves ours.
            unsafe { sys::cuCtxSetCurrent(context) };
        }
    }
}

/// Makes a context current on this thread.
pub(super) fn make_current(context: sys::CUcontext) -> Result<(), DeviceError> {
    if matches!(CURRENT.get(), Current::Callers) {
        let mut before = null_mut();
        // SAFETY: a pointer to a live handle.
        check(unsafe { sys::cuCtxGetCurrent(&mut before) }, || "using the GPU".into())?;
        CURRENT.set(Current::Replaced(before));
    }
    // SAFETY: a context of the caller's, which it keeps.
    check(unsafe { sys::cuCtxSetCurrent(context) }, || "using the GPU".into())
}
