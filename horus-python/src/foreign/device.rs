//! Arrays of other libraries in the memory of a GPU.

use horus::prelude::{DType, Image as Typed, Result, Session as Open, Shape};
use horus_core::host::external::DeviceArray;
use horus_core::session::DeviceInput;
use numpy::{PyArrayDescr, PyArrayDescrMethods, dtype as descr};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};

use super::dlpack::{Tensor, VERSION};
use super::on_device;
use crate::any::{Any, AnyElement};

/// An array in the memory of a GPU: its description, and the object that keeps it alive.
#[pyclass(frozen, name = "DeviceArray", module = "horus_image._horus")]
pub(crate) struct GpuArray {
    #[pyo3(get)]
    keeper: Py<PyAny>,
    address: u64,
    #[pyo3(get)]
    dtype: Py<PyArrayDescr>,
    /// The pixel type whose elements equal these, for masks bytes; `None` if there is none.
    stored: Option<DType>,
    shape: Vec<i64>,
    /// Strides, in bytes.
    strides: Vec<i64>,
    /// The GPU, if the array names one.
    #[pyo3(get)]
    gpu: Option<i32>,
    /// The stream whose work comes first.
    stream: Option<u64>,
    /// True if the elements are contiguous, in C order.
    #[pyo3(get)]
    contiguous: bool,
}

#[pymethods]
impl GpuArray {
    #[new]
    fn new(
        keeper: Py<PyAny>,
        address: u64,
        dtype: &Bound<'_, PyArrayDescr>,
        shape: Vec<i64>,
        strides: Vec<i64>,
        gpu: Option<i32>,
        stream: Option<u64>,
    ) -> GpuArray {
        let contiguous = is_contiguous(&shape, &strides, dtype.itemsize() as i64);
        let (stored, dtype) = (stored(dtype), dtype.clone().unbind());
        GpuArray { keeper, address, dtype, stored, shape, strides, gpu, stream, contiguous }
    }

    /// The array of an object that supports DLPack and whose library works in a stream.
    #[staticmethod]
    fn of(array: &Bound<'_, PyAny>, stream: u64) -> PyResult<GpuArray> {
        let py = array.py();
        let asked = PyDict::new(py);
        asked.set_item(intern!(py, "stream"), stream)?;
        asked.set_item(intern!(py, "max_version"), VERSION)?;
        let method = intern!(py, "__dlpack__");
        let capsule = array.call_method(method, (), Some(&asked)).or_else(|error| {
            if !error.is_instance_of::<PyTypeError>(py) {
                return Err(error);
            }
            // Libraries before version 1.0 of the protocol.
            asked.del_item(intern!(py, "max_version"))?;
            array.call_method(method, (), Some(&asked))
        })?;
        let tensor = Tensor::new(capsule.cast::<PyCapsule>()?)?;
        let dtype = tensor.dtype(py)?;
        let size = dtype.itemsize() as i64;
        let strides = tensor.strides.iter().map(|stride| stride * size).collect();
        let (address, gpu, shape) = (tensor.address, tensor.device.1, tensor.shape.clone());
        let keeper = Bound::new(py, tensor)?.into_any().unbind();
        Ok(GpuArray::new(keeper, address, &dtype, shape, strides, Some(gpu), Some(stream)))
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    #[getter]
    fn size(&self) -> i64 {
        self.shape.iter().product()
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.shape.first().ok_or_else(|| PyTypeError::new_err("an array without axes has no length"))?;
        Ok(first.unsigned_abs() as usize)
    }

    /// One part along the first axis.
    fn __getitem__(&self, py: Python<'_>, at: i64) -> PyResult<GpuArray> {
        let ([extent, shape @ ..], [stride, strides @ ..]) = (&self.shape[..], &self.strides[..]) else {
            return Err(PyIndexError::new_err(at));
        };
        if !(0..*extent).contains(&at) {
            return Err(PyIndexError::new_err(at));
        }
        let address = self.address.wrapping_add_signed(at * stride);
        let (keeper, dtype) = (self.keeper.clone_ref(py), self.dtype.bind(py));
        Ok(GpuArray::new(keeper, address, dtype, shape.to_vec(), strides.to_vec(), self.gpu, self.stream))
    }
}

impl GpuArray {
    /// Its elements as pixels, of this shape; `None` if no pixel type has these elements, or they are not contiguous.
    pub(crate) fn pixels(&self, py: Python<'_>, shape: Shape) -> Option<GpuPixels> {
        let dtype = self.stored.filter(|_| self.contiguous)?;
        let memory = on_device(self.keeper.bind(py), self.address, shape.len() * dtype.size(), self.stream);
        Some(GpuPixels { shape, dtype, memory })
    }

    /// Levels, rows and columns; `None` if the number of axes is not an image's.
    pub(crate) fn extents(&self) -> Option<Shape> {
        let extent = |i: usize| usize::try_from(self.shape[i]).ok();
        Some(match self.shape.len() {
            1 => Shape::new(1, extent(0)?, 1),
            2 => Shape::new(extent(0)?, extent(1)?, 1),
            3 => Shape::volume(extent(0)?, extent(1)?, extent(2)?, 1),
            _ => return None,
        })
    }
}

/// Pixels in the memory of a GPU.
pub(crate) struct GpuPixels {
    shape: Shape,
    dtype: DType,
    memory: DeviceArray,
}

impl GpuPixels {
    /// The pixels as an input of a program, in place.
    pub(crate) fn input(&self) -> DeviceInput<'_> {
        DeviceInput::Array(self.shape, self.dtype, &self.memory)
    }

    /// An image of the pixels, copied or in place.
    pub(crate) fn image(&self, session: &Open, copy: bool) -> Result<Any> {
        horus_core::dispatch!(self.dtype, T => {
            Typed::<T>::from_device_array(session, self.shape, &self.memory, copy).map(<T as AnyElement>::into_any)
        })
    }
}

/// The pixel type whose elements equal this type of NumPy, for masks bytes.
fn stored(dtype: &Bound<'_, PyArrayDescr>) -> Option<DType> {
    if dtype.kind() == b'b' {
        return Some(DType::U8);
    }
    DType::ALL.into_iter().find(|pixel| pixel.numpy().as_bytes()[0] == dtype.kind() && pixel.size() == dtype.itemsize())
}

/// Returns `true` if elements of `size` bytes are contiguous, in C order.
fn is_contiguous(shape: &[i64], strides: &[i64], size: i64) -> bool {
    let mut expected = size;
    shape.len() == strides.len()
        && shape.iter().zip(strides).rev().all(|(extent, stride)| {
            let as_expected = *extent <= 1 || *stride == expected;
            expected *= extent;
            as_expected
        })
}

impl Tensor {
    /// NumPy's type of the elements.
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDescr>> {
        Ok(match self.kind.as_deref() {
            Some("f4") => descr::<f32>(py),
            Some("u1") => descr::<u8>(py),
            Some("b1") => descr::<bool>(py),
            Some(kind) => PyArrayDescr::new(py, kind)?,
            None => return Err(PyTypeError::new_err("images have no pixels of the type of this array")),
        })
    }
}
