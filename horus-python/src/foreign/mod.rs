//! Memory between Horus and other libraries, where it lies: the only unsafe code of this package.

#![allow(unsafe_code, reason = "arrays of other libraries are addresses")]

mod dlpack;

use std::sync::Arc;

use horus::core::host::external::{DeviceArray, External, Owner};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

pub(crate) use dlpack::{Exported, Tensor, described, export};

/// What keeps an object of Python: let go of with the interpreter's lock held, now or when somebody has it next.
fn owner(object: &Bound<'_, PyAny>) -> Owner {
    Arc::new(object.clone().unbind())
}

/// The pixels of an array where they lie, if they lie one after the other; the array is kept.
pub(crate) fn lent<T: numpy::Element>(array: &Bound<'_, PyArrayDyn<T>>) -> Option<External> {
    if !array.is_c_contiguous() || array.is_empty() || !array.data().is_aligned() {
        return None;
    }
    // SAFETY: NumPy keeps the memory as long as the array, and never moves it while somebody else refers to the array. That nobody
    // writes to it is the promise of whoever calls `asarray` with `copy=False`, and of a call that returns when it has read.
    Some(unsafe { External::new(array.data().cast(), array.len() * size_of::<T>(), owner(array.as_any())) })
}

/// Bytes in the memory of a GPU, which `object` keeps, after what is in a stream.
pub(crate) fn on_device(object: &Bound<'_, PyAny>, address: u64, bytes: usize, stream: Option<u64>) -> DeviceArray {
    // SAFETY: what the protocols (DLPack, `__cuda_array_interface__`) promise of objects that have them; as above.
    unsafe { DeviceArray::new(address, bytes, stream, owner(object)) }
}
