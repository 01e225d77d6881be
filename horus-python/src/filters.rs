//! Filters, geometry, channels and levels.

use horus::prelude::{
    Axis, Border, Combine, Filter as Weights, Generalized, Image as Typed, Interpolation, MovingWindow, Pixel, Reduce,
    Resampling, Shape, Taps,
};
use horus::types::{Axes, LoopState as _, Resizing};
use horus_core::image::bindings;
use horus_core::ops::edge::{InsidePixels, WarpPositions};
use horus_core::ops::neighbourhood::{FilterLayout, Pairing};
use horus_core::position_map::Relation;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::any::{Any, AnyElement, each, numbers};
use crate::errors::{caught, exception};
use crate::image::{PyImage, interned};
use crate::reductions;
use crate::session::PySession;

/// The taps of a filter, made once: dense taps of so many rows and columns, or one for each offset (row, column).
#[pyclass(frozen, name = "Filter", module = "horus_image._horus")]
pub(crate) struct PyFilter(Weights);

#[pymethods]
impl PyFilter {
    #[new]
    #[pyo3(signature = (taps, height, width, offsets=None))]
    fn new(taps: Vec<f64>, height: usize, width: usize, offsets: Option<Vec<(i32, i32)>>) -> PyResult<PyFilter> {
        let filter = match offsets {
            Some(offsets) => Weights::sparse(offsets, taps),
            None => Weights::dense(height, width, taps),
        };
        match filter.fault() {
            Some(fault) => Err(exception(fault)),
            None => Ok(PyFilter(filter)),
        }
    }

    fn __repr__(&self) -> String {
        let kind = if matches!(self.0.layout(), FilterLayout::Sparse(_)) { "taps" } else { "filter" };
        format!("<{kind} {}>", self.0)
    }
}

/// The border mode with this name in SciPy.
pub(crate) fn border(mode: &str, cval: f64) -> PyResult<Border> {
    match mode {
        "reflect" => Ok(Border::Reflect),
        "mirror" => Ok(Border::Reflect101),
        "nearest" => Ok(Border::Replicate),
        "wrap" => Ok(Border::Wrap),
        "constant" => Ok(Border::Constant(cval)),
        other => Err(PyValueError::new_err(format!("no border mode is called {other}"))),
    }
}

/// Correlation with the parts of a filter, each with the level that it reads, within a tolerance if there is one. Images
/// of `f64` yield `f64`, all others `f32`.
#[pyfunction]
pub(crate) fn correlate(
    a: &PyImage,
    parts: Vec<(PyRef<'_, PyFilter>, isize)>,
    mode: &str,
    cval: f64,
    within: Option<f64>,
) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    let parts: Vec<_> = parts.iter().map(|(filter, level)| (filter.0.clone(), *level)).collect();
    numbers!(&a.any, "correlate", image => {
        a.recorded(|| bindings::correlate(&near(&image.with_border(border), within), &parts))
    })
}

/// Correlation in the image's own type, rounded as in SciPy. The footprint's offsets and taps are in the order of the
/// sum. With a `sign`, taps after the first form pairs, whose pixels are added (1) or subtracted (-1). Each tap reads
/// the plane so many levels from the pixel's level.
#[pyfunction]
pub(crate) fn truncated(
    a: &PyImage,
    window: &PyFilter,
    levels: Vec<i32>,
    sign: i32,
    mode: &str,
    cval: f64,
) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    let pairing = match sign {
        0 => Pairing::Single,
        1.. => Pairing::Sum,
        _ => Pairing::Difference,
    };
    numbers!(&a.any, "truncated", image => {
        a.recorded(|| bindings::truncated(&image.with_border(border), &window.0, &levels, pairing))
    })
}

/// The image with a tolerance for its next linear filter, if there is one.
pub(crate) fn near<T: Pixel>(image: &Typed<T>, within: Option<f64>) -> Typed<T> {
    within.map_or_else(|| image.clone(), |t| image.within(t))
}

/// Correlation along the levels, with the anchor at half the number of taps.
#[pyfunction]
pub(crate) fn correlate_depth(a: &PyImage, filter: &PyFilter, mode: &str, cval: f64) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    let taps = filter.0.taps();
    numbers!(&a.any, "correlate_depth", image => a.recorded(|| image.with_border(border).correlate(Taps::Depth(taps))))
}

/// The smallest or largest (`min`, `max`) pixel under the footprint. A weight is added to or subtracted from its pixel
/// (`add`, `sub`), or only marks it as part of the footprint (`pixel`).
#[pyfunction]
pub(crate) fn extreme(
    a: &PyImage,
    window: &PyFilter,
    combine: &str,
    reduce: &str,
    mode: &str,
    cval: f64,
) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    let combine = match combine {
        "pixel" => Combine::Pixel,
        "add" => Combine::Add,
        "sub" => Combine::Sub,
        other => return Err(PyValueError::new_err(format!("no way to combine pixels is called {other}"))),
    };
    let reduce = match reduce {
        "min" => Reduce::Min,
        "max" => Reduce::Max,
        other => return Err(PyValueError::new_err(format!("no extreme is called {other}"))),
    };
    let operation = Generalized { window: window.0.clone(), combine, reduce };
    numbers!(&a.any, "extreme", image => a.recorded(|| image.with_border(border).generalized(&operation)))
}

/// The median of so many levels, rows and columns: 3x3, 5x5 or 3x3x3 pixels.
#[pyfunction]
pub(crate) fn median(a: &PyImage, size: (usize, usize, usize), mode: &str, cval: f64) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    numbers!(&a.any, "median", image => a.recorded(|| image.with_border(border).median(size)))
}

/// The mean over a rectangle of rows and columns, with its anchor (row, column) at the pixel.
#[pyfunction]
pub(crate) fn box_mean(
    a: &PyImage,
    size: (usize, usize),
    anchor: (usize, usize),
    mode: &str,
    cval: f64,
) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    numbers!(&a.any, "box_mean", image => a.recorded(|| image.with_border(border).box_mean(MovingWindow::at(size, anchor))))
}

/// The variance over a rectangle, in `f64`; see [`box_mean`].
#[pyfunction]
pub(crate) fn box_variance(
    a: &PyImage,
    size: (usize, usize),
    anchor: (usize, usize),
    mode: &str,
    cval: f64,
) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    numbers!(&a.any, "box_variance", image => a.recorded(|| bindings::box_variance(&image.with_border(border), MovingWindow::at(size, anchor))))
}

/// The pixel of rank `rank`, 0 being the smallest, among the pixels at some offsets (level, row, column): by value, -0
/// before +0, NaN last. Few pixels are compared pairwise.
#[pyfunction]
pub(crate) fn rank(
    a: &PyImage,
    offsets: Vec<(isize, isize, isize)>,
    rank: usize,
    mode: &str,
    cval: f64,
) -> PyResult<PyImage> {
    /// Most pixels for which comparisons are faster.
    const FEW: usize = 9;
    if rank >= offsets.len() {
        let message = format!("requested place {rank} of {} pixels; the first is 0", offsets.len());
        return Err(PyValueError::new_err(message));
    }
    let border = border(mode, cval)?;
    if offsets.len() > FEW {
        let far = |v: isize| PyValueError::new_err(format!("an offset of {v} pixels; the limit is {}", i32::MAX));
        let near = |v: isize| i32::try_from(v).map_err(|_| far(v));
        let offsets = offsets.iter().map(|&(z, y, x)| Ok((near(z)?, near(y)?, near(x)?)));
        let offsets = offsets.collect::<PyResult<Vec<_>>>()?;
        return numbers!(&a.any, "rank", image => a.recorded(|| bindings::rank_at(&image.with_border(border), offsets, rank)));
    }
    numbers!(&a.any, "rank", image => a.recorded(|| {
        let around = offsets.iter().map(|&(z, y, x)| image.with_border(border).shift(-z, -y, -x));
        Typed::of_all(image.session(), around).in_place(rank)
    }))
}

/// The affine map from positions (column, row, 1) of the result to positions of the image: `[xx, xy, x0, yx, yy, y0]`.
/// With `along`, its numbers for rows and columns give the positions (see `WarpPositions`), and positions beyond the
/// first or the last pixel yield the constant.
#[pyfunction]
pub(crate) fn affine(
    a: &PyImage,
    matrix: [f64; 6],
    size: (usize, usize),
    interpolation: &str,
    mode: &str,
    cval: f64,
    along: Option<[[f64; 6]; 2]>,
) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    let Some(how) = interpolated(interpolation) else {
        return Err(PyValueError::new_err(format!("no interpolation is called {interpolation}")));
    };
    let [xx, xy, x0, yx, yy, y0] = matrix;
    let map = [[xx, xy, x0], [yx, yy, y0]];
    let Some(along) = along else {
        return numbers!(&a.any, "affine", image => a.recorded(|| image.with_border(border).affine(map, size, how)));
    };
    let along = along.map(|[down, right, y, x, offset, last]| WarpPositions {
        before: [down, right],
        per: [y, x],
        offset,
        last,
    });
    let inside = InsidePixels { origin: [0, 0], along, value: cval };
    numbers!(&a.any, "affine", image => a.recorded(|| bindings::affine_inside(image, map, size, how, inside)))
}

/// The image as the result of a function of several operations, with the metadata of the function's images. A map
/// (matrix and offset) leads from its levels, rows and columns to theirs; without a map they are the same. Images whose
/// rows and columns differ from the first image's are left out: they are numbers, rows or columns.
#[pyfunction]
pub(crate) fn related(
    a: &PyImage,
    function: &str,
    images: Vec<PyRef<'_, PyImage>>,
    map: Option<([[f64; 3]; 3], [f64; 3])>,
) -> PyResult<PyImage> {
    let plane = |image: &PyImage| (image.any.shape().height, image.any.shape().width);
    let relation = map.map_or_else(Relation::identity, |(matrix, offset)| Relation::from_affine(matrix, offset));
    let mut handles = Vec::new();
    let images = images.iter().filter(|image| plane(image) == plane(&images[0]));
    images.for_each(|image| each!(&image.any, image => image.handles(&mut handles)));
    let inputs: Vec<_> = handles.into_iter().map(|handle| (handle, relation)).collect();
    each!(&a.any, image => a.recorded(|| bindings::related(image, interned(function), &inputs)))
}

fn interpolated(name: &str) -> Option<Interpolation> {
    Interpolation::ALL.into_iter().find(|how| how.name() == name)
}

/// Resizes the rows and columns of each level and channel; `how` is an interpolation or an average.
#[pyfunction]
pub(crate) fn resize(a: &PyImage, size: (usize, usize), how: &str) -> PyResult<PyImage> {
    let (height, width) = size;
    let average = || Resampling::ALL.into_iter().find(|of| of.name() == how).map(Resizing::from);
    let Some(how) = interpolated(how).map(Resizing::from).or_else(average) else {
        return Err(PyValueError::new_err(format!("resize: no interpolation and no average is called {how}")));
    };
    numbers!(&a.any, "resize", image => a.recorded(|| image.resize(height, width, how)))
}

/// Shifts the image by whole pixels along levels, rows and columns.
#[pyfunction]
pub(crate) fn shift(a: &PyImage, by: (isize, isize, isize), mode: &str, cval: f64) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    let (dz, dy, dx) = by;
    each!(&a.any, image => a.recorded(|| image.with_border(border).shift(dz, dy, dx)))
}

/// Reverses levels, rows and columns.
#[pyfunction]
pub(crate) fn flip(a: &PyImage, depth: bool, rows: bool, columns: bool) -> PyResult<PyImage> {
    let all = [(depth, Axis::Depth), (rows, Axis::Rows), (columns, Axis::Columns)];
    let axes: Axes = all.into_iter().filter_map(|(turned, axis)| turned.then_some(axis)).collect();
    each!(&a.any, image => a.recorded(|| image.flip(axes)))
}

/// Exchanges rows and columns.
#[pyfunction]
pub(crate) fn transpose(a: &PyImage) -> PyResult<PyImage> {
    each!(&a.any, image => a.recorded(|| image.transpose()))
}

/// Crops levels, rows and columns, each from its first.
#[pyfunction]
pub(crate) fn crop(a: &PyImage, from_: (usize, usize, usize), size: (usize, usize, usize)) -> PyResult<PyImage> {
    let ((z, top, left), (depth, height, width)) = (from_, size);
    let whole = a.any.shape();
    each!(&a.any, image => a.recorded(|| {
        let levels = if (z, depth) == (0, whole.depth) { image.clone() } else { image.slice(z..z + depth) };
        if (top, left, height, width) == (0, 0, whole.height, whole.width) {
            return levels;
        }
        levels.crop(top, left, height, width)
    }))
}

/// Takes every n-th level, row and column, including the first of each.
#[pyfunction]
pub(crate) fn step(a: &PyImage, by: (usize, usize, usize)) -> PyResult<PyImage> {
    let (levels, rows, columns) = by;
    each!(&a.any, image => a.recorded(|| {
        let image = if levels == 1 { image.clone() } else { image.step((levels, 1, 1)) };
        if (rows, columns) == (1, 1) { image } else { image.step((rows, columns)) }
    }))
}

/// Pads rows and columns on each side.
#[pyfunction]
pub(crate) fn pad(
    a: &PyImage,
    rows: (usize, usize),
    columns: (usize, usize),
    mode: &str,
    cval: f64,
) -> PyResult<PyImage> {
    let border = border(mode, cval)?;
    each!(&a.any, image => a.recorded(|| image.with_border(border).pad(rows.0, rows.1, columns.0, columns.1)))
}

/// Stacks images of one type as the levels of a volume, or as channels.
#[pyfunction]
pub(crate) fn stack(images: Vec<PyRef<'_, PyImage>>, channels: bool) -> PyResult<PyImage> {
    fn of_type<T: AnyElement>(images: &[PyRef<'_, PyImage>], _first: &Typed<T>, channels: bool) -> PyResult<PyImage> {
        let typed: Option<Vec<&Typed<T>>> = images.iter().map(|image| T::from_any(&image.any)).collect();
        let Some(typed) = typed else {
            return Err(PyValueError::new_err("stack: the images differ in type; convert them"));
        };
        images[0].recorded(|| match channels {
            true => Typed::stack(typed[0].session(), typed.iter().copied(), Axis::Channels),
            false => Typed::stack(typed[0].session(), typed.iter().copied(), Axis::Depth),
        })
    }
    let Some(first) = images.first() else {
        return Err(PyValueError::new_err("stack: no images given; at least one is needed"));
    };
    each!(&first.any, image => of_type(&images, image, channels))
}

/// `b` over `a`, with its first pixel in row `top` and column `left`; both have one type.
#[pyfunction]
pub(crate) fn paste(a: &PyImage, b: &PyImage, top: isize, left: isize) -> PyResult<PyImage> {
    fn like<'a, T: AnyElement>(b: &'a PyImage, a: &Typed<T>) -> PyResult<&'a Typed<T>> {
        let (over, under) = (b.any.dtype(), a.dtype());
        T::from_any(&b.any).ok_or_else(|| {
            PyTypeError::new_err(format!("paste: pixels of {over} over {under}; both must have one type"))
        })
    }
    each!(&a.any, image => {
        let b = like(b, image)?;
        a.recorded(|| image.paste(b, top, left))
    })
}

/// One channel.
#[pyfunction]
pub(crate) fn channel(a: &PyImage, index: usize) -> PyResult<PyImage> {
    each!(&a.any, image => a.recorded(|| image.channel(index)))
}

/// The index of each pixel along an axis (0: levels, 1: rows, 2: columns), as `f64`.
#[pyfunction]
pub(crate) fn index(session: &PySession, shape: (usize, usize, usize), axis: usize) -> PyResult<PyImage> {
    let axis = reductions::axis(axis)?;
    let (depth, height, width) = shape;
    let any = caught(|| {
        let image = Typed::<f64>::index(&session.open, Shape::volume(depth, height, width, 1), axis);
        image.check().map(|()| Any::F64(image))
    })?;
    Ok(session.image(any))
}

/// Returns `True` if two images have the same pixels. Evaluates both.
#[pyfunction]
pub(crate) fn equal(py: Python<'_>, a: &PyImage, b: &PyImage) -> PyResult<bool> {
    fn differ<T: AnyElement + Pixel>(a: &Typed<T>, b: &PyImage) -> Option<Typed<bool>> {
        T::from_any(&b.any).map(|b| a.ne(b))
    }
    let differ = match (&a.any, &b.any) {
        (Any::Bool(x), Any::Bool(y)) => Some(x ^ y),
        (numbers, _) => numbers!(numbers, "equal", image => Ok(differ(image, b)))?,
    };
    let Some(differ) = differ else { return Ok(false) };
    a.read_value(py, || differ.count().get()).map(|count| count == 0)
}
