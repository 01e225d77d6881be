//! Reductions of whole images and of labels.

use horus::error::Result;
use horus::prelude::{Axis, Image as Typed, Pixel, Value};
use horus::types::{Axes, ByLabel, LabelShape};
use horus_core::image::bindings;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::any::{Any, numbers};
use crate::image::PyImage;

/// Evaluates `$body` with `$of` bound to the image of labels.
macro_rules! of_labels {
    ($labels:expr, $of:ident => $body:expr) => {
        match &$labels.any {
            Any::U8($of) => $body,
            Any::U16($of) => $body,
            Any::I32($of) => $body,
            other => Err(PyTypeError::new_err(format!("labels must be u8, u16 or i32, not {}", other.dtype()))),
        }
    };
}

/// The `sum`, `mean`, `variance`, `min` or `max` of all pixels.
#[pyfunction]
pub(crate) fn reduce(py: Python<'_>, a: &PyImage, name: &str) -> PyResult<f64> {
    numbers!(&a.any, name, image => a.read_value(py, || match name {
        "sum" => image.sum().get(),
        "mean" => image.mean().get(),
        "variance" => image.variance().get(),
        "min" => image.min_value().get().map(|v| v.to_f64()),
        "max" => image.max_value().get().map(|v| v.to_f64()),
        other => Err(unknown(other)),
    }))
}

/// The smallest and the largest of all pixels, in one evaluation.
#[pyfunction]
pub(crate) fn min_max(py: Python<'_>, a: &PyImage) -> PyResult<(f64, f64)> {
    numbers!(&a.any, "min_max", image => a.read_value(py, || {
        let (low, high) = image.session().get_all((image.min_value(), image.max_value()))?;
        Ok((low.to_f64(), high.to_f64()))
    }))
}

/// [`reduce`] as the only pixel of an image that is not evaluated yet, with the type of `a` for `min` and `max`, else
/// `f64`.
#[pyfunction]
pub(crate) fn reduced(a: &PyImage, name: &str) -> PyResult<PyImage> {
    numbers!(&a.any, name, image => match name {
        "sum" => a.recorded(|| image.sum().to_image()),
        "mean" => a.recorded(|| image.mean().to_image()),
        "variance" => a.recorded(|| image.variance().to_image()),
        "min" => a.recorded(|| image.min_value().to_image()),
        "max" => a.recorded(|| image.max_value().to_image()),
        _ => Err(PyValueError::new_err(unknown(name).to_string())),
    })
}

/// The `sum`, `min` or `max` along some of the axes (0: levels, 1: rows, 2: columns, 3: channels), whose extents become
/// 1, or the running sums (`cumsum`). Sums are `f64`, others have the type of `a`.
#[pyfunction]
pub(crate) fn reduce_along(a: &PyImage, name: &str, axes: Vec<usize>) -> PyResult<PyImage> {
    let axes: Axes = axes.into_iter().map(axis).collect::<PyResult<_>>()?;
    numbers!(&a.any, name, image => match name {
        "sum" => a.recorded(|| image.over(axes).sum()),
        "min" => a.recorded(|| image.over(axes).min()),
        "max" => a.recorded(|| image.over(axes).max()),
        "cumsum" => a.recorded(|| image.over(axes).cumsum()),
        _ => Err(PyValueError::new_err(unknown(name).to_string())),
    })
}

/// The `sum`, `mean`, `variance`, `min` or `max` of each tile of so many rows and columns; `min` and `max` have the
/// type of `a`, others `f64`.
#[pyfunction]
pub(crate) fn tiled(a: &PyImage, name: &str, height: usize, width: usize) -> PyResult<PyImage> {
    numbers!(&a.any, name, image => match name {
        "sum" => a.recorded(|| image.tiles(height, width).sum()),
        "mean" => a.recorded(|| image.tiles(height, width).mean()),
        "variance" => a.recorded(|| image.tiles(height, width).variance()),
        "min" => a.recorded(|| image.tiles(height, width).min()),
        "max" => a.recorded(|| image.tiles(height, width).max()),
        _ => Err(PyValueError::new_err(unknown(name).to_string())),
    })
}

/// The axis with this number.
pub(crate) fn axis(number: usize) -> PyResult<Axis> {
    let axes = [Axis::Depth, Axis::Rows, Axis::Columns, Axis::Channels];
    axes.get(number).copied().ok_or_else(|| PyValueError::new_err(format!("axis {number} requested; axes are 0 to 3")))
}

fn unknown(name: &str) -> horus::prelude::Error {
    horus::prelude::Error::Config(format!("no reduction is called {name}"))
}

/// Number of pixels in each of `bins` equal parts of a range.
#[pyfunction]
pub(crate) fn histogram<'py>(
    py: Python<'py>,
    a: &PyImage,
    bins: usize,
    low: f64,
    high: f64,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let counts = numbers!(&a.any, "histogram", image => a.read_value(py, || image.histogram(bins, low, high).get()))?;
    Ok(PyArray1::from_vec(py, counts))
}

/// The bin after which counts divide into two classes with the largest variance between them, rounded as in scikit-image:
/// weights in `f32`, moments in `f64`. The first and the last bin are not empty, and there are two or more.
#[pyfunction]
pub(crate) fn otsu_bin(counts: PyReadonlyArray1<'_, f32>, centres: PyReadonlyArray1<'_, f64>) -> PyResult<usize> {
    let (counts, centres) = (counts.as_slice()?, centres.as_slice()?);
    let bins = counts.iter().zip(centres).enumerate();
    // Weight and mean of the bins from each one on.
    let (mut weight, mut moment) = (0.0f32, 0.0f64);
    let mut above = vec![(0.0, 0.0); counts.len()];
    for (i, (count, centre)) in bins.clone().rev() {
        weight += count;
        moment += f64::from(*count) * centre;
        above[i] = (weight, moment / f64::from(weight));
    }
    (weight, moment) = (0.0, 0.0);
    let (mut best, mut most) = (0, f64::NEG_INFINITY);
    for ((i, (count, centre)), (rest, mean)) in bins.zip(&above[1..]) {
        weight += count;
        moment += f64::from(*count) * centre;
        let apart = moment / f64::from(weight) - mean;
        let between = f64::from(weight * rest) * (apart * apart);
        if between > most {
            (best, most) = (i, between);
        }
    }
    Ok(best)
}

/// The `sum`, `mean`, `variance`, `median`, `min` or `max` of the pixels of each label from 0 to `count - 1`.
#[pyfunction]
pub(crate) fn by_label<'py>(
    py: Python<'py>,
    a: &PyImage,
    labels: &PyImage,
    count: usize,
    name: &str,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let values = of_labels!(labels, of => labelled(py, a, of, count, name))?;
    Ok(PyArray1::from_vec(py, values))
}

fn labelled<L: Pixel>(py: Python<'_>, a: &PyImage, labels: &Typed<L>, count: usize, name: &str) -> PyResult<Vec<f64>> {
    fn of<T: Pixel, L: Pixel>(parts: &ByLabel<T, L>, name: &str) -> Result<Vec<f64>> {
        let numbers = |values: Vec<T>| values.into_iter().map(|v| v.to_f64()).collect();
        match name {
            "sum" => parts.sum().get(),
            "mean" => parts.mean().get(),
            "variance" => parts.variance().get(),
            "median" => parts.median().get(),
            "min" => parts.min().get().map(numbers),
            "max" => parts.max().get().map(numbers),
            other => Err(unknown(other)),
        }
    }
    numbers!(&a.any, name, image => a.read_value(py, || of(&image.by_label(labels, count), name)))
}

/// Number of pixels of each label from 0 to `count - 1`.
#[pyfunction]
pub(crate) fn label_counts<'py>(
    py: Python<'py>,
    labels: &PyImage,
    count: usize,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let counts = numbers!(&labels.any, "label_counts", image => labels.read_value(py, || image.by_label(image, count).counts().get()))?;
    Ok(PyArray1::from_vec(py, counts))
}

/// The first and the last position, along each of the last `axes` axes, of the pixels of each label from 0 to `count -
/// 1`, a row each; infinite for a label without pixels. One evaluation.
#[pyfunction]
pub(crate) fn label_boxes<'py>(
    py: Python<'py>,
    labels: &PyImage,
    count: usize,
    axes: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    fn ends<L: Pixel>(labels: &Typed<L>, count: usize, axis: Axis) -> (Value<Vec<f64>>, Value<Vec<f64>>) {
        let parts = Typed::<f64>::index(labels.session(), labels.shape(), axis).by_label(labels, count);
        (parts.min(), parts.max())
    }
    let rows = numbers!(&labels.any, "label_boxes", image => labels.read_value(py, || {
        let session = image.session();
        let [depth, rows, columns] = [Axis::Depth, Axis::Rows, Axis::Columns].map(|axis| ends(image, count, axis));
        match axes {
            1 => session.get_all(columns).map(|(low, high)| vec![low, high]),
            2 => session.get_all((rows.0, rows.1, columns.0, columns.1)).map(|(a, b, c, d)| vec![a, b, c, d]),
            _ => {
                let all = (depth.0, depth.1, rows.0, rows.1, columns.0, columns.1);
                session.get_all(all).map(|(a, b, c, d, e, f)| vec![a, b, c, d, e, f])
            }
        }
    }))?;
    Ok(PyArray2::from_vec2(py, &rows)?)
}

/// For the pixels of each label from 0 to `count - 1`, in the plane: their number, their mean row and column, the
/// variances of rows and columns, and their covariance. Reads the pixels once.
#[pyfunction]
pub(crate) fn label_shapes<'py>(
    py: Python<'py>,
    labels: &PyImage,
    count: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let shapes = numbers!(&labels.any, "label_shapes", image => labels.read_value(py, || image.by_label(image, count).shapes().get()))?;
    let row = |shape: &LabelShape| {
        let ((y, x), (yy, yx, xx)) = (shape.centre, shape.covariance);
        vec![shape.pixels as f64, y, x, yy, xx, yx]
    };
    Ok(PyArray2::from_vec2(py, &shapes.iter().map(row).collect::<Vec<_>>())?)
}

/// The histogram of the pixels of each label from 0 to `count - 1`, one row each.
#[pyfunction]
pub(crate) fn histogram_by_label<'py>(
    py: Python<'py>,
    a: &PyImage,
    labels: &PyImage,
    count: usize,
    bins: usize,
    range: (f64, f64),
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let (low, high) = range;
    let rows = of_labels!(labels, of => numbers!(&a.any, "histogram", image => {
        a.read_value(py, || image.by_label(of, count).histogram(bins, low, high).get())
    }))?;
    let flat = PyArray1::from_vec(py, rows.concat());
    flat.reshape([count, bins]).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The histograms of tiles equalized with limited contrast; `f64`, from 0 to 1.
#[pyfunction]
pub(crate) fn equalize_adapthist(
    py: Python<'_>,
    a: &PyImage,
    tile: (usize, usize),
    limit: f64,
    bins: usize,
) -> PyResult<PyImage> {
    let found = numbers!(&a.any, "equalize_adapthist", image => {
        a.read_value(py, || bindings::equalize_adapthist(image, tile, limit, bins))
    })?;
    a.recorded(|| found)
}

/// The Hough transform of a mask: for each normal of a line (its cosine and sine), a row of counts of distances.
#[pyfunction]
pub(crate) fn hough_line<'py>(
    py: Python<'py>,
    a: &PyImage,
    normals: Vec<[f64; 2]>,
) -> PyResult<Bound<'py, PyArray2<u64>>> {
    let mask = a.any.mask("hough_line")?;
    let counts = a.read_value(py, || horus::prelude::hough_line(mask, &normals).get())?;
    Ok(PyArray2::from_vec2(py, &counts)?)
}
