//! DLPack (<https://dmlc.github.io/dlpack/latest>): tensors as Python capsules, which one library makes and another
//! takes over.

use std::any::Any;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyCapsule, PyDict};

/// The supported version of the protocol.
pub(super) const VERSION: (u32, u32) = (1, 1);
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;
const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";
/// Devices with host memory: `kDLCPU` and `kDLCUDAHost`.
const HOST: [i32; 2] = [1, 3];

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    number: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DlDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`.
#[repr(C)]
struct DlManagedTensor {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct DlManagedTensorVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManagedTensorVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// A tensor for another library.
pub(crate) struct TensorExport {
    /// Address of the pixels on the host or on a GPU.
    pub(crate) address: u64,
    /// `(1, 0)`, or 2 and the number of the GPU.
    pub(crate) device: (i32, i32),
    /// NumPy's name of the type: `f4`.
    pub(crate) kind: &'static str,
    pub(crate) shape: Vec<i64>,
    /// Strides, in pixels.
    pub(crate) strides: Vec<i64>,
    pub(crate) read_only: bool,
    pub(crate) copied: bool,
    /// The owner of the pixels.
    pub(crate) _owner: Box<dyn Any + Send + Sync>,
}

/// The content of a capsule: the tensor, its arrays, and the owner of the pixels.
struct CapsuleContent<M> {
    managed: M,
    _exported: TensorExport,
}

/// The type of this name: signed, unsigned, float, truth value.
fn data_type(kind: &str) -> Option<DlDataType> {
    let (code, bits) = match kind.as_bytes() {
        [code, size @ (b'1' | b'2' | b'4' | b'8')] => (code, (size - b'0') * 8),
        _ => return None,
    };
    let code = match code {
        b'i' => 0,
        b'u' => 1,
        b'f' => 2,
        b'b' => 6,
        _ => return None,
    };
    Some(DlDataType { code, bits, lanes: 1 })
}

/// NumPy's name of a type.
fn kind(dtype: DlDataType) -> Option<String> {
    let code = match dtype.code {
        0 => 'i',
        1 => 'u',
        2 => 'f',
        5 => 'c',
        6 => 'b',
        _ => return None,
    };
    (dtype.lanes == 1 && dtype.bits.is_multiple_of(8)).then(|| format!("{code}{}", dtype.bits / 8))
}

unsafe extern "C" fn delete_plain(managed: *mut DlManagedTensor) {
    // SAFETY: made by `export` by `Box::into_raw`, and deleted once.
    drop(unsafe { Box::from_raw((*managed).context.cast::<CapsuleContent<DlManagedTensor>>()) });
}

unsafe extern "C" fn delete_versioned(managed: *mut DlManagedTensorVersioned) {
    // SAFETY: as above.
    drop(unsafe { Box::from_raw((*managed).context.cast::<CapsuleContent<DlManagedTensorVersioned>>()) });
}

/// Deletes a tensor that no library took over.
unsafe extern "C" fn dropped_plain(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is live; one that somebody took over has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) == 1 {
            delete_plain(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        }
    }
}

/// [`dropped_plain`] for a versioned tensor.
unsafe extern "C" fn dropped_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// A capsule of the tensor, in the newest supported version or the oldest.
pub(crate) fn export<'py>(
    py: Python<'py>,
    mut exported: TensorExport,
    versioned: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    let dtype = data_type(exported.kind).ok_or_else(|| PyBufferError::new_err("no such type in DLPack"))?;
    let (kind, number) = exported.device;
    let ndim = i32::try_from(exported.shape.len()).map_err(|_| PyBufferError::new_err("too many axes"))?;
    // The content of vectors does not move with them.
    let tensor = DlTensor {
        data: exported.address as usize as *mut c_void,
        device: DlDevice { kind, number },
        ndim,
        dtype,
        shape: exported.shape.as_mut_ptr(),
        strides: exported.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let flags = if exported.read_only { READ_ONLY } else { 0 } | if exported.copied { IS_COPIED } else { 0 };
    let none = std::ptr::null_mut();
    if versioned {
        let (major, minor) = VERSION;
        let managed =
            DlManagedTensorVersioned { major, minor, context: none, deleter: Some(delete_versioned), flags, tensor };
        let owned = Box::into_raw(Box::new(CapsuleContent { managed, _exported: exported }));
        // SAFETY: the box is live and owned by nobody else; the capsule's destructor, or the library that takes the
        // tensor over, deletes it.
        unsafe {
            (*owned).managed.context = owned.cast();
            let at = NonNull::new_unchecked((&raw mut (*owned).managed).cast());
            let made = PyCapsule::new_with_pointer_and_destructor(py, at, VERSIONED, Some(dropped_versioned));
            made.inspect_err(|_| delete_versioned(at.as_ptr().cast()))
        }
    } else {
        let managed = DlManagedTensor { tensor, context: none, deleter: Some(delete_plain) };
        let owned = Box::into_raw(Box::new(CapsuleContent { managed, _exported: exported }));
        // SAFETY: as above.
        unsafe {
            (*owned).managed.context = owned.cast();
            let at = NonNull::new_unchecked((&raw mut (*owned).managed).cast());
            let made = PyCapsule::new_with_pointer_and_destructor(py, at, PLAIN, Some(dropped_plain));
            made.inspect_err(|_| delete_plain(at.as_ptr().cast()))
        }
    }
}

/// A tensor of another library, as received.
enum ReceivedTensor {
    Plain(NonNull<DlManagedTensor>),
    Versioned(NonNull<DlManagedTensorVersioned>),
}

/// A tensor taken over from a capsule; deleted with this object.
#[pyclass(frozen, module = "horus_image._horus")]
pub(crate) struct Tensor {
    taken: ReceivedTensor,
    #[pyo3(get)]
    pub(super) address: u64,
    #[pyo3(get)]
    pub(super) device: (i32, i32),
    #[pyo3(get)]
    pub(super) kind: Option<String>,
    #[pyo3(get)]
    pub(super) shape: Vec<i64>,
    /// Strides, in elements.
    #[pyo3(get)]
    pub(super) strides: Vec<i64>,
    #[pyo3(get)]
    read_only: bool,
}

// SAFETY: the tensor is only read when it is taken over, and deleted once, by the thread that drops this with the
// interpreter's lock.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: it was taken over, so that nobody else deletes it.
        unsafe {
            match self.taken {
                ReceivedTensor::Plain(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
                ReceivedTensor::Versioned(managed) => {
                    if let Some(delete) = managed.as_ref().deleter {
                        delete(managed.as_ptr());
                    }
                }
            }
        }
    }
}

#[pymethods]
impl Tensor {
    /// Takes over the content of a capsule; then nobody else can.
    #[new]
    pub(super) fn new(capsule: &Bound<'_, PyCapsule>) -> PyResult<Tensor> {
        // Without an interpreter lock, too, one thread comes first.
        with_critical_section(capsule.as_any(), || Tensor::from_capsule(capsule))
    }

    /// NumPy's array interface for host memory.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let kind = self.kind.as_deref().filter(|_| HOST.contains(&self.device.0));
        let kind =
            kind.ok_or_else(|| PyBufferError::new_err("the tensor is not in host memory, or NumPy lacks its type"))?;
        let size: i64 = kind[1..].parse().unwrap_or(1);
        let strides: Vec<i64> = self.strides.iter().map(|stride| stride * size).collect();
        described(py, kind, &self.shape, &strides, (self.address, self.read_only))
    }
}

impl Tensor {
    fn from_capsule(capsule: &Bound<'_, PyCapsule>) -> PyResult<Tensor> {
        let at = |name: &CStr| capsule.is_valid_checked(Some(name)).then(|| capsule.pointer_checked(Some(name)));
        let (taken, used) = match (at(VERSIONED), at(PLAIN)) {
            (Some(at), _) => (ReceivedTensor::Versioned(at?.cast()), VERSIONED_USED),
            (None, Some(at)) => (ReceivedTensor::Plain(at?.cast()), PLAIN_USED),
            (None, None) => {
                return Err(PyValueError::new_err(
                    "the capsule holds no tensor of DLPack, or another library has taken it",
                ));
            }
        };
        // SAFETY: a capsule of this name holds such a tensor, which lives until it is deleted. If
        // the major version differs, only the version and the deleter may be accessed.
        let (tensor, flags) = unsafe {
            match &taken {
                ReceivedTensor::Plain(managed) => (&managed.as_ref().tensor, 0),
                ReceivedTensor::Versioned(managed) if managed.as_ref().major == VERSION.0 => {
                    (&managed.as_ref().tensor, managed.as_ref().flags)
                }
                ReceivedTensor::Versioned(managed) => {
                    let text = format!(
                        "a tensor of DLPack {}; versions up to {} are supported",
                        managed.as_ref().major,
                        VERSION.0
                    );
                    return Err(PyBufferError::new_err(text));
                }
            }
        };
        let ndim = usize::try_from(tensor.ndim).map_err(|_| PyBufferError::new_err("a negative number of axes"))?;
        let list = |at: *mut i64| {
            if at.is_null() || ndim == 0 {
                return Vec::new();
            }
            // SAFETY: shape and strides have an entry for each axis.
            unsafe { std::slice::from_raw_parts(at, ndim) }.to_vec()
        };
        let (shape, mut strides) = (list(tensor.shape), list(tensor.strides));
        if strides.is_empty() {
            strides = contiguous(&shape);
        }
        let address = (tensor.data as usize as u64).wrapping_add(tensor.byte_offset);
        let device = (tensor.device.kind, tensor.device.number);
        let (kind, read_only) = (kind(tensor.dtype), flags & READ_ONLY != 0);
        // SAFETY: a live capsule, and a name that lives for ever.
        if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        Ok(Tensor { taken, address, device, kind, shape, strides, read_only })
    }
}

/// Strides of contiguous elements.
fn contiguous(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

/// A dictionary of the array interface, strides in bytes.
pub(crate) fn described<'py>(
    py: Python<'py>,
    kind: &str,
    shape: &[i64],
    strides: &[i64],
    data: (u64, bool),
) -> PyResult<Bound<'py, PyDict>> {
    let interface = PyDict::new(py);
    let order = if kind.ends_with('1') { '|' } else { '<' };
    interface.set_item("typestr", format!("{order}{kind}"))?;
    interface.set_item("shape", pyo3::types::PyTuple::new(py, shape)?)?;
    interface.set_item("strides", pyo3::types::PyTuple::new(py, strides)?)?;
    interface.set_item("data", data)?;
    interface.set_item("version", 3)?;
    Ok(interface)
}
