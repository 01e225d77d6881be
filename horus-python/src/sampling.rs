//! Samples at positions given by images, tables, connected components, distances, reconstruction, watersheds and matrix
//! products.

use horus::prelude::{Axis, Border, Connectivity, Float, Image as Typed, Pixel, Reconstruction, Sampling};
use horus_core::image::{Distances, Positions};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::any::{Any, AnyElement, each, numbers, typed};
use crate::filters::border;
use crate::image::PyImage;

/// Samples a B-spline of order 0 to 5, whose coefficients are the image, at positions along levels, rows and columns,
/// or along rows and columns of each level. With `within`, positions that are not between pixels yield `cval`.
#[pyfunction]
#[pyo3(signature = (a, at, order, mode, cval, within=false))]
pub(crate) fn remap(
    a: &PyImage,
    at: Vec<PyRef<'_, PyImage>>,
    order: usize,
    mode: &str,
    cval: f64,
    within: bool,
) -> PyResult<PyImage> {
    let (border, outside) = (border(mode, cval)?, within.then_some(cval));
    let how = spline(order)?;
    numbers!(&a.any, "remap", image => match at.first().map(|first| &first.any) {
        Some(Any::F64(_)) => {
            let at = positions::<f64>(&at)?;
            a.recorded(|| sampled(image, &at, how, border, outside))
        }
        Some(Any::F32(_)) => {
            let at = positions::<f32>(&at)?;
            a.recorded(|| sampled(image, &at, how, border, outside))
        }
        _ => Err(unfit()),
    })
}

fn spline(order: usize) -> PyResult<Sampling> {
    let none = || PyValueError::new_err(format!("a spline of order {order} requested; orders are 0 to 5"));
    Sampling::spline(order).ok_or_else(none)
}

/// The coefficients of splines of order 0 to 5 along some axes (0: levels, 1: rows, 2: columns). Images of `f64` yield
/// `f64`, all others `f32`.
#[pyfunction]
pub(crate) fn spline_coefficients(a: &PyImage, order: usize, axes: Vec<usize>, mode: &str) -> PyResult<PyImage> {
    let (how, border) = (spline(order)?, border(mode, 0.0)?);
    let along = |axis: usize| axes.contains(&axis);
    numbers!(&a.any, "spline_coefficients", image => a.recorded(|| {
        let in_plane = match (along(1), along(2)) {
            (true, true) => image.with_border(border).spline_coefficients([Axis::Rows, Axis::Columns], how),
            (true, false) => image.with_border(border).spline_coefficients(Axis::Rows, how),
            (false, true) => image.with_border(border).spline_coefficients(Axis::Columns, how),
            (false, false) => image.convert(),
        };
        if along(0) { in_plane.with_border(border).spline_coefficients(Axis::Depth, how) } else { in_plane }
    }))
}

/// Entries of a table, of type `dtype`, for the pixels of an image of integers of 8 or 16 bits. The first entry is for
/// the lowest value of their type.
#[pyfunction]
pub(crate) fn lookup(a: &PyImage, table: PyReadonlyArray1<'_, f64>, dtype: &str) -> PyResult<PyImage> {
    let table = table.as_slice()?;
    typed!(dtype, T => {
        let table: Vec<T> = table.iter().copied().map(<T as Pixel>::from_f64).collect();
        horus_core::dispatch_narrow!(a.any.dtype(), N => match N::from_any(&a.any) {
            Some(image) => a.recorded(|| image.lookup(&table)),
            None => Err(PyTypeError::new_err(format!(
                "lookup: pixels must be integers of 8 or 16 bits, not {}",
                a.any.dtype()
            ))),
        })
    })
}

fn unfit() -> PyErr {
    PyTypeError::new_err("remap: positions must be two or three images of one type, f32 or f64")
}

/// Two or three images of positions with the same type.
fn positions<'a, C: AnyElement>(at: &'a [PyRef<'_, PyImage>]) -> PyResult<Vec<&'a Typed<C>>> {
    let all: Option<Vec<_>> = at.iter().map(|image| C::from_any(&image.any)).collect();
    all.filter(|all| matches!(all.len(), 2 | 3)).ok_or_else(unfit)
}

fn sampled<T: Pixel, C: Float>(
    image: &Typed<T>,
    at: &[&Typed<C>],
    how: Sampling,
    border: Border,
    outside: Option<f64>,
) -> Typed<T> {
    let at = match *at {
        [rows, columns] => Positions::from([rows, columns]),
        [levels, rows, columns, ..] => Positions::from([levels, rows, columns]),
        _ => return image.clone(),
    };
    image.with_border(border).remap(outside.map_or(at, |value| at.within(value)), how)
}

/// The connected components of non-zero or true pixels. `structure` marks the neighbours of the centre among 27 pixels,
/// by level, row and column.
#[pyfunction]
pub(crate) fn label(a: &PyImage, structure: [bool; 27]) -> PyResult<PyImage> {
    let neighbours = connectivity(&structure);
    each!(&a.any, image => a.recorded(|| image.label(neighbours)))
}

/// The number of pixels of each pixel's component, in `i32`; `structure` as in `label`.
#[pyfunction]
pub(crate) fn component_sizes(a: &PyImage, structure: [bool; 27]) -> PyResult<PyImage> {
    let neighbours = connectivity(&structure);
    each!(&a.any, image => a.recorded(|| image.component_sizes(neighbours)))
}

/// Distances of non-zero or true pixels to the nearest zero or false one: `euclidean` in `f64`, for pixels of a size by
/// level, row and column, or `taxicab` or `chessboard` steps in `i32`.
#[pyfunction]
pub(crate) fn distances(a: &PyImage, metric: &str, size: [f64; 3]) -> PyResult<PyImage> {
    each!(&a.any, image => match metric {
        "euclidean" => a.recorded(|| of_size(image.distances(), size).euclidean::<f64>()),
        "taxicab" => a.recorded(|| image.distances().taxicab()),
        "chessboard" => a.recorded(|| image.distances().chessboard()),
        other => Err(PyValueError::new_err(format!("no distance is called {other:?}"))),
    })
}

fn of_size(distances: Distances, [levels, rows, columns]: [f64; 3]) -> Distances {
    distances.spaced(rows, columns).spaced_levels(levels)
}

/// Level, row and column of the nearest pixel that is zero or false.
#[pyfunction]
pub(crate) fn nearest(a: &PyImage, size: [f64; 3]) -> PyResult<(PyImage, PyImage, PyImage)> {
    each!(&a.any, image => {
        let distances = of_size(image.distances(), size);
        let [rows, columns] = distances.nearest();
        Ok((a.recorded(|| distances.nearest_level())?, a.recorded(|| rows)?, a.recorded(|| columns)?))
    })
}

fn connectivity(structure: &[bool; 27]) -> Connectivity {
    let place = |z: usize, y: usize, x: usize| structure[9 * z + 3 * y + x];
    let level = |z: usize| [0, 1, 2].map(|y| [0, 1, 2].map(|x| place(z, y, x)));
    Connectivity::new([0, 1, 2].map(level))
}

/// Grows a marker within a mask of its type, by dilation below it or by erosion above it, until nothing changes;
/// `structure` as in `label`.
#[pyfunction]
pub(crate) fn reconstruct(a: &PyImage, mask: &PyImage, structure: [bool; 27], erosion: bool) -> PyResult<PyImage> {
    fn like<'a, T: AnyElement>(mask: &'a PyImage, _marker: &Typed<T>) -> PyResult<&'a Typed<T>> {
        T::from_any(&mask.any)
            .ok_or_else(|| PyTypeError::new_err("reconstruct: the marker and the mask must have one type"))
    }
    let neighbours = connectivity(&structure);
    numbers!(&a.any, "reconstruct", marker => {
        let mask = like(mask, marker)?;
        a.recorded(|| marker.reconstruct(mask, Reconstruction { erosion, neighbours }))
    })
}

/// The matrix product of two images of floats of one type.
#[pyfunction]
pub(crate) fn matmul(a: &PyImage, b: &PyImage) -> PyResult<PyImage> {
    match (&a.any, &b.any) {
        (Any::F32(x), Any::F32(y)) => a.recorded(|| x.matmul(y)),
        (Any::F64(x), Any::F64(y)) => a.recorded(|| x.matmul(y)),
        _ => Err(PyTypeError::new_err("matmul: both images are of float32, or of float64; use astype")),
    }
}

/// The watershed of markers, in `i32`, within a mask; `structure` as in `label`. Evaluates it.
#[pyfunction]
#[pyo3(signature = (a, markers, structure, mask=None))]
pub(crate) fn watershed(
    py: Python<'_>,
    a: &PyImage,
    markers: &PyImage,
    structure: [bool; 27],
    mask: Option<PyRef<'_, PyImage>>,
) -> PyResult<PyImage> {
    let neighbours = connectivity(&structure);
    let Any::I32(markers) = &markers.any else {
        return Err(PyTypeError::new_err("watershed: markers must be i32"));
    };
    let mask = mask.as_ref().map(|mask| mask.any.mask("watershed")).transpose()?;
    let found = numbers!(&a.any, "watershed", image => {
        a.read_value(py, || horus::prelude::watershed(image, markers, neighbours, mask))
    })?;
    a.recorded(|| found)
}
