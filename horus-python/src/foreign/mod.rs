//! Memory that Horus shares in place with other libraries, including mpi4py: the only unsafe code of this package.

#![allow(unsafe_code, reason = "arrays of other libraries are addresses")]

mod device;
mod dlpack;
pub(crate) mod messages;

use std::sync::Arc;

use horus_core::host::external::{DeviceArray, External, Owner};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

pub(crate) use device::{GpuArray, GpuPixels};
pub(crate) use dlpack::{Tensor, TensorExport, described, export};

/// An owner that keeps a Python object alive. It is released with the interpreter's lock, now or when a thread next
/// takes the lock.
fn owner(object: &Bound<'_, PyAny>) -> Owner {
    Arc::new(object.clone().unbind())
}

/// The pixels of a contiguous array in place; keeps the array alive.
pub(crate) fn borrow_array<T: numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<External> {
    if !array.is_c_contiguous() || array.is_empty() || !array.data().is_aligned() {
        return None;
    }
    // SAFETY: NumPy keeps the memory as long as the array, and never moves it while others refer to
    // the array. Callers of `asarray` with `copy=False` promise that nobody writes to it, and other
    // calls return only after reading.
    Some(unsafe { External::new(array.data().cast(), array.len() * size_of::<T>(), owner(array.as_any())) })
}

/// Bytes in the memory of a GPU, kept alive by `object`, ordered after the present work of a stream.
fn on_device(object: &Bound<'_, PyAny>, address: u64, bytes: usize, stream: Option<u64>) -> DeviceArray {
    // SAFETY: the promises of the protocols (DLPack, `__cuda_array_interface__`) for objects that support them; as
    // above.
    unsafe { DeviceArray::new(address, bytes, stream, owner(object)) }
}
