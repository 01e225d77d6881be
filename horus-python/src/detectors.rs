//! Building blocks of line detectors and ridge filters: oriented Gaussians, rotations, extremes as images.

use horus::prelude::{Image as Typed, Interpolation, Pixel};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::any::{Any, AnyElement, numbers};
use crate::filters::{border, near};
use crate::image::PyImage;

/// An anisotropic Gaussian or a derivative of it at `theta` degrees, with `sigmas` and `orders` along u and v: along
/// the axes (`xy`, which ignores the angle), as one dense filter (`2d`), or decomposed along u and v (`uv`); within a
/// tolerance if there is one.
#[pyfunction]
pub(crate) fn oriented(
    a: &PyImage,
    how: &str,
    theta: f64,
    sigmas: (f64, f64),
    orders: (u32, u32),
    within: Option<f64>,
) -> PyResult<PyImage> {
    let ((su, sv), (ou, ov)) = (sigmas, orders);
    match how {
        "xy" => numbers!(&a.any, "gauss_xy", image => a.recorded(|| near(image, within).gauss_xy(su, sv, ou, ov))),
        "2d" => {
            numbers!(&a.any, "gauss_2d", image => a.recorded(|| near(image, within).gauss_2d(theta, su, sv, ou, ov)))
        }
        "uv" => {
            numbers!(&a.any, "gauss_uv", image => a.recorded(|| near(image, within).gauss_uv(theta, su, sv, ou, ov)))
        }
        other => Err(PyValueError::new_err(format!("no oriented Gaussian is called {other}"))),
    }
}

/// Rotates about the centre, anti-clockwise as seen on the screen, with linear interpolation and
/// the same size.
#[pyfunction]
pub(crate) fn rotate(a: &PyImage, degrees: f64, mode: &str, cval: f64) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    numbers!(&a.any, "rotate", image => a.recorded(|| image.with_border(border).rotate(degrees, Interpolation::Bilinear)))
}

/// `|a / b|`, 0 where the magnitude of `b` is below `eps`, for images of one type.
#[pyfunction]
pub(crate) fn absdiv(a: &PyImage, b: &PyImage, eps: f64) -> PyResult<PyImage> {
    fn quotient<T: AnyElement + Pixel>(of: &PyImage, a: &Typed<T>, b: &Any, eps: f64) -> PyResult<PyImage> {
        let Some(b) = T::from_any(b) else {
            return Err(PyTypeError::new_err(format!(
                "absdiv: images of {} and of {}; both must have one type",
                T::DTYPE,
                b.dtype()
            )));
        };
        of.recorded(|| a.absdiv(b, T::from_f64(eps)))
    }
    numbers!(&a.any, "absdiv", image => quotient(a, image, &b.any, eps))
}

/// The smallest or largest pixel (`min`, `max`) as an image of one pixel, which pixel operations broadcast. Evaluates
/// nothing.
#[pyfunction]
pub(crate) fn extreme_value(a: &PyImage, name: &str) -> PyResult<PyImage> {
    numbers!(&a.any, name, image => match name {
        "min" => a.recorded(|| image.min_value().to_image()),
        "max" => a.recorded(|| image.max_value().to_image()),
        other => Err(PyValueError::new_err(format!("no extreme is called {other}"))),
    })
}
