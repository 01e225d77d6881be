//! Evaluated pixels as memory for other libraries: NumPy, and libraries that support DLPack or CUDA's array interface.

use std::sync::{Mutex, PoisonError};

use horus::prelude::{DType, Error, Image as Typed, Result};
use horus::types::LoopState as _;
use horus_core::host::buffer::HostBuffer;
use horus_core::host::external::DeviceArray;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::any::AnyElement;
use crate::ending;
use crate::foreign::{TensorExport, described, export};
use crate::image::PyImage;

/// Extents and strides, in pixels, of an array.
pub(crate) type StridedLayout = (Vec<i64>, Vec<i64>);

fn in_bytes(strides: &[i64], dtype: DType) -> Vec<i64> {
    strides.iter().map(|stride| stride * dtype.size() as i64).collect()
}

/// Pixels on the host.
#[pyclass(frozen, name = "Memory", module = "horus_image._horus")]
pub(crate) struct PyMemory {
    buffer: Mutex<HostBuffer>,
    dtype: DType,
    layout: StridedLayout,
    address: u64,
    writable: bool,
}

impl PyMemory {
    fn over(mut buffer: HostBuffer, dtype: DType, layout: StridedLayout, writable: bool) -> PyMemory {
        let address = if writable { buffer.bytes_mut().as_ptr() } else { buffer.bytes().as_ptr() };
        let address = address as usize as u64;
        PyMemory { buffer: Mutex::new(buffer), dtype, layout, address, writable }
    }

    /// Exclusively owned pixels: in place if they have no other owner, else copied.
    pub(crate) fn owned(mut buffer: HostBuffer, dtype: DType, layout: StridedLayout) -> PyMemory {
        buffer.bytes_mut();
        buffer.hand_over();
        PyMemory::over(buffer, dtype, layout, true)
    }

    fn share(&self) -> HostBuffer {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl PyMemory {
    /// The same pixels, exclusively owned: in place if they have no other owner any more, else copied.
    fn own(&self, py: Python<'_>) -> PyMemory {
        let taken = {
            let mut held = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *held, HostBuffer::zeroed(0))
        };
        let (dtype, layout) = (self.dtype, self.layout.clone());
        ending::detached(py, move || PyMemory::owned(taken, dtype, layout))
    }

    /// A copy of the pixels.
    fn copied(&self, py: Python<'_>) -> PyMemory {
        let (share, dtype, layout) = (self.share(), self.dtype, self.layout.clone());
        ending::detached(py, move || PyMemory::owned(share, dtype, layout))
    }

    /// NumPy's array interface.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (shape, strides) = &self.layout;
        described(py, self.dtype.numpy(), shape, &in_bytes(strides, self.dtype), (self.address, !self.writable))
    }

    /// A DLPack capsule.
    fn capsule<'py>(&self, py: Python<'py>, versioned: bool, copied: bool) -> PyResult<Bound<'py, PyCapsule>> {
        if !self.writable && !versioned {
            return Err(PyBufferError::new_err("pixels that must not be written need DLPack 1.0"));
        }
        let (shape, strides) = self.layout.clone();
        let (kind, owner) = (self.dtype.numpy(), Box::new(self.share()));
        let exported = TensorExport {
            address: self.address,
            device: (1, 0),
            kind,
            shape,
            strides,
            read_only: !self.writable,
            copied,
            _owner: owner,
        };
        export(py, exported, versioned)
    }
}

/// Pixels on a GPU.
#[pyclass(frozen, name = "DeviceMemory", module = "horus_image._horus")]
pub(crate) struct PyDeviceMemory {
    array: DeviceArray,
    gpu: usize,
    dtype: DType,
    layout: StridedLayout,
    copied: bool,
}

#[pymethods]
impl PyDeviceMemory {
    /// The number of the GPU.
    #[getter]
    fn gpu(&self) -> usize {
        self.gpu
    }

    /// CUDA's array interface.
    #[getter]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (shape, strides) = &self.layout;
        let data = (self.array.address(), false);
        let interface = described(py, self.dtype.numpy(), shape, &in_bytes(strides, self.dtype), data)?;
        interface.set_item("stream", self.array.stream())?;
        Ok(interface)
    }

    /// A DLPack capsule.
    fn capsule<'py>(&self, py: Python<'py>, versioned: bool) -> PyResult<Bound<'py, PyCapsule>> {
        if !self.copied && !versioned {
            return Err(PyBufferError::new_err("pixels that must not be written need DLPack 1.0"));
        }
        let (shape, strides) = self.layout.clone();
        let exported = TensorExport {
            address: self.array.address(),
            device: (2, i32::try_from(self.gpu).unwrap_or(i32::MAX)),
            kind: self.dtype.numpy(),
            shape,
            strides,
            read_only: !self.copied,
            copied: self.copied,
            _owner: Box::new(self.array.clone()),
        };
        export(py, exported, versioned)
    }
}

/// An image's pixels on the host, evaluated.
pub(crate) fn buffer<T: AnyElement>(image: &Typed<T>, copied: bool) -> Result<HostBuffer> {
    let mut handles = Vec::new();
    image.handles(&mut handles);
    let missing = || Error::Lost("an image has no value".into());
    image.session().buffer_of(handles.first().copied().ok_or_else(missing)?, copied)
}

/// Evaluates an image into host memory: a copy, or possibly shared.
pub(crate) fn on_host<T: AnyElement>(
    py: Python<'_>,
    of: &PyImage,
    image: &Typed<T>,
    layout: StridedLayout,
    copied: bool,
) -> PyResult<PyMemory> {
    let buffer = of.read_value(py, || buffer(image, copied))?;
    Ok(match copied {
        true => PyMemory::owned(buffer, image.dtype(), layout),
        false => PyMemory::over(buffer, image.dtype(), layout, false),
    })
}

/// Evaluates an image in place on a GPU, or a copy of it, for later work of a stream; without a stream it is complete
/// on return.
pub(crate) fn on_gpu<T: AnyElement>(
    py: Python<'_>,
    of: &PyImage,
    image: &Typed<T>,
    layout: StridedLayout,
    (copied, stream): (bool, Option<u64>),
) -> PyResult<PyDeviceMemory> {
    let array = of.read_value(py, || {
        let lent = image.to_device_array(stream)?;
        if !copied {
            return Ok(lent);
        }
        Typed::<T>::from_device_array(image.session(), image.shape(), &lent, true)?.to_device_array(stream)
    })?;
    let gpu = image.session().gpu().unwrap_or(0);
    Ok(PyDeviceMemory { array, gpu, dtype: image.dtype(), layout, copied })
}
