//! Pixels between NumPy's arrays and Horus.

use horus::ndarray::{ArrayView4, ArrayViewD, Axis, Ix4};
use horus::prelude::{DType, Image as Typed, Shape};
use horus_core::dtype::are_truths;
use horus_core::host::buffer::HostBuffer;
use horus_core::host::external::External;
use numpy::{
    Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::any::AnyElement;
use crate::ending;
use crate::errors::detached;
use crate::foreign::borrow_array;
use crate::image::PyImage;
use crate::memory::{PyMemory, StridedLayout};
use crate::session::PySession;

/// An image of an array's pixels; see [`Image`]. They are read in place if this is requested and their layout allows
/// it. Otherwise they are copied before this returns, so that the array may change or be freed.
pub(crate) fn import_array<T: AnyElement + Element>(
    py: Python<'_>,
    session: &PySession,
    array: &Bound<'_, PyAny>,
    channels: bool,
    copy: bool,
) -> PyResult<PyImage> {
    let array: Bound<'_, PyArrayDyn<T>> = array.extract()?;
    let shape = shape_of(array.shape(), channels)?;
    if !copy && let Some(pixels) = borrow_array(&array) {
        return finished(py, session, move || Typed::<T>::from_external(&session.open, shape, pixels));
    }
    let array: PyReadonlyArrayDyn<'_, T> = array.try_readonly()?;
    let view = array.as_array();
    let view = with_axes(view, channels)?;
    finished(py, session, || Typed::from_volume_array(&session.open, view))
}

/// [`import_array`] for truth values, given as bytes: a NumPy array may contain other values than 0 and 1.
pub(crate) fn import_mask(
    py: Python<'_>,
    session: &PySession,
    array: &Bound<'_, PyAny>,
    channels: bool,
    copy: bool,
) -> PyResult<PyImage> {
    let array: Bound<'_, PyArrayDyn<u8>> = array.extract()?;
    let shape = shape_of(array.shape(), channels)?;
    let bytes: PyReadonlyArrayDyn<'_, u8> = array.try_readonly()?;
    let view = bytes.as_array();
    let truths = detach_if_large(py, view.len(), || view.as_slice().is_some_and(are_truths));
    if !copy
        && truths
        && let Some(pixels) = borrow_array(&array)
    {
        return finished(py, session, move || Typed::<bool>::from_external(&session.open, shape, pixels));
    }
    let view = with_axes(view, channels)?;
    finished(py, session, || Typed::from_volume_array(&session.open, view.mapv(|byte| byte != 0).view()))
}

/// Accesses so many bytes. If there are many, other Python threads run meanwhile.
fn detach_if_large<R: Send>(py: Python<'_>, bytes: usize, look: impl FnOnce() -> R + Send) -> R {
    const FEW: usize = 1 << 18;
    if bytes < FEW { look() } else { ending::detached(py, look) }
}

/// The pixels of an array of this type in place; `None` if its layout is not that of an image.
pub(crate) fn in_place(array: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<External>> {
    fn of<T: Element>(array: &Bound<'_, PyAny>) -> PyResult<Option<External>> {
        let array: Bound<'_, PyArrayDyn<T>> = array.extract()?;
        Ok(borrow_array(&array))
    }
    let py = array.py();
    let truths = |pixels: &External| {
        let bytes = pixels.bytes();
        detach_if_large(py, bytes.len(), || are_truths(bytes))
    };
    let pixels = match dtype {
        DType::Bool if array.cast::<PyArrayDyn<bool>>().is_ok() => of::<bool>(array),
        _ => horus_core::dispatch!(dtype, T => of::<T>(array)),
    }?;
    Ok(pixels.filter(|pixels| dtype != DType::Bool || truths(pixels)))
}

/// The shape of an array as an image.
fn shape_of(extents: &[usize], channels: bool) -> PyResult<Shape> {
    match (extents, channels) {
        (&[width], false) => Ok(Shape::new(1, width, 1)),
        (&[height, width], false) => Ok(Shape::new(height, width, 1)),
        (&[depth, height, width], false) => Ok(Shape::volume(depth, height, width, 1)),
        (&[height, width, channels], true) => Ok(Shape::new(height, width, channels)),
        (&[depth, height, width, channels], _) => Ok(Shape::volume(depth, height, width, channels)),
        _ => {
            let axes = extents.len();
            Err(PyValueError::new_err(format!("an array of {axes} axes is not an image; images have one to four")))
        }
    }
}

/// The pixels with all four axes.
fn with_axes<T>(mut view: ArrayViewD<'_, T>, channels: bool) -> PyResult<ArrayView4<'_, T>> {
    let axes = view.ndim();
    let channels = axes == 3 && channels;
    if axes == 1 {
        view = view.insert_axis(Axis(0));
    }
    if axes < 3 || channels {
        view = view.insert_axis(Axis(0));
    }
    if axes < 4 && !channels {
        let last = Axis(view.ndim());
        view = view.insert_axis(last);
    }
    view.into_dimensionality::<Ix4>().map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The image, unless it carries an error. Other Python threads run while pixels are copied.
fn finished<T: AnyElement>(
    py: Python<'_>,
    session: &PySession,
    make: impl FnOnce() -> Typed<T> + Send,
) -> PyResult<PyImage> {
    let any = detached(py, || {
        let image = make();
        image.check()?;
        Ok(T::into_any(image))
    })?;
    Ok(session.image(any))
}

/// A new array of an image's pixels, which takes over their memory.
pub(crate) fn given<'py, T: AnyElement + Element>(
    py: Python<'py>,
    of: &PyImage,
    image: &Typed<T>,
    shape: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let pixels = of.read_value(py, || image.to_vec())?;
    Ok(PyArray1::from_vec(py, pixels).reshape(shape)?.into_any())
}

/// An array of the pixels of one channel. Few pixels are copied, which takes less time than passing on their memory.
pub(crate) fn export_buffer<'py>(
    py: Python<'py>,
    buffer: HostBuffer,
    dtype: DType,
    layout: StridedLayout,
) -> PyResult<Bound<'py, PyAny>> {
    const FEW: usize = 1 << 16;
    if buffer.len() >= FEW {
        let memory = PyMemory::owned(buffer, dtype, layout);
        return PyModule::import(py, "numpy")?.getattr("asarray")?.call1((memory,));
    }
    let shape: Vec<usize> = layout.0.iter().map(|extent| extent.unsigned_abs() as usize).collect();
    if dtype == DType::Bool {
        let truths = PyArray1::from_iter(py, buffer.bytes().iter().map(|byte| *byte != 0));
        return Ok(truths.reshape(shape)?.into_any());
    }
    horus_core::dispatch!(dtype, T => {
        Ok(PyArray1::from_slice(py, buffer.as_slice::<T>()).reshape(shape)?.into_any())
    })
}

/// Writes an image's pixels to an array of the program.
pub(crate) fn put<T: AnyElement + Element>(
    py: Python<'_>,
    of: &PyImage,
    image: &Typed<T>,
    array: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mut array: PyReadwriteArrayDyn<'_, T> = array.extract()?;
    let place = array.as_slice_mut()?;
    of.read_value(py, || image.read_into(place))
}
