//! Pixels between NumPy's arrays and Horus.

use horus::ndarray::{ArrayViewD, Axis, Ix4};
use horus::prelude::Image as Typed;
use numpy::{Element, PyArray, PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::any::Held;
use crate::errors::detached;
use crate::image::Image;
use crate::session::Session;

/// An image of an array's pixels; see [`Image`]. They are copied before this returns, so that the array may change or go.
pub(crate) fn taken<T: Held + Element>(
    py: Python<'_>,
    session: &Session,
    array: &Bound<'_, PyAny>,
    channels: bool,
) -> PyResult<Image> {
    let array: PyReadonlyArrayDyn<'_, T> = array.extract()?;
    let mut view: ArrayViewD<'_, T> = array.as_array();
    let axes = view.ndim();
    if axes == 1 {
        view = view.insert_axis(Axis(0));
    }
    if axes < 3 || (axes == 3 && channels) {
        view = view.insert_axis(Axis(0));
    }
    if axes < 4 && !(axes == 3 && channels) {
        let last = Axis(view.ndim());
        view = view.insert_axis(last);
    }
    let Ok(view) = view.into_dimensionality::<Ix4>() else {
        return Err(PyValueError::new_err(format!("an array of {axes} axes is no image; images have one to four")));
    };
    let any = detached(py, || {
        let image = Typed::from_array4(&session.open, view);
        image.check()?;
        Ok(T::held(image))
    })?;
    Ok(session.image(any))
}

/// A new array of an image's pixels, which takes the memory that they come in.
pub(crate) fn given<'py, T: Held + Element>(
    py: Python<'py>,
    of: &Image,
    image: &Typed<T>,
    shape: Vec<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    if image.channels() == 1 {
        let pixels = of.looked(py, || image.to_vec())?;
        return Ok(PyArray1::from_vec(py, pixels).reshape(shape)?.into_any());
    }
    let pixels = of.looked(py, || image.to_array4())?;
    Ok(PyArray::from_owned_array(py, pixels).reshape(shape)?.into_any())
}

/// An image's pixels in an array that the program has.
pub(crate) fn put<T: Held + Element>(
    py: Python<'_>,
    of: &Image,
    image: &Typed<T>,
    array: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mut array: PyReadwriteArrayDyn<'_, T> = array.extract()?;
    let place = array.as_slice_mut()?;
    if image.channels() != 1 {
        return Err(PyValueError::new_err("an image of several channels has no pixels in the order of an array"));
    }
    of.looked(py, || image.read_into(place))
}
