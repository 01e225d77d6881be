//! The private half of the Python package `horus-image`: the module `horus_image._horus`.
//!
//! It exposes images, sessions and errors of Horus to Python. Functions of SciPy, such as `gaussian_filter`, are
//! composed in Python (`python/horus_image/`), where they take a microsecond and can be compared with SciPy's source.
//!
//! Pixels are checked before they are read, the interpreter is free while Horus computes or copies, and every failure,
//! including a panic, is an exception. Objects have their own locks, so the module also works without the interpreter's
//! lock. All unsafe code is in `foreign`, for memory shared with other libraries.

mod any;
mod arrays;
mod blocks;
mod detectors;
mod ending;
mod errors;
mod files;
mod filters;
mod foreign;
mod image;
mod logging;
mod memory;
mod operators;
mod program;
mod ranks;
mod reductions;
mod sampling;
mod session;

use pyo3::prelude::*;

/// The compiled part of `horus_image`.
#[pymodule(gil_used = false)]
mod _horus {
    use numpy::{PyArray1, PyArrayMethods};
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::detectors::{absdiv, extreme_value, oriented, rotate};
    #[pymodule_export]
    use crate::ending::{end_calls, forget_calls};
    #[pymodule_export]
    use crate::errors::HorusError;
    #[pymodule_export]
    use crate::files::length;
    #[pymodule_export]
    use crate::filters::{
        PyFilter, affine, box_mean, box_variance, channel, correlate, correlate_depth, crop, equal, extreme, flip,
        index, median, pad, paste, rank, related, resize, shift, stack, step, transpose, truncated,
    };
    #[pymodule_export]
    use crate::foreign::{GpuArray, Tensor};
    #[pymodule_export]
    use crate::image::{PyImage, PySourceLine};
    #[pymodule_export]
    use crate::logging::log_to;
    #[pymodule_export]
    use crate::memory::{PyDeviceMemory, PyMemory};
    #[pymodule_export]
    use crate::operators::{
        binary, binary_of_number, cast, clamp, compare, convert, convert_colour, invert, logic, mul_add, select, unary,
    };
    #[pymodule_export]
    use crate::program::{PyImageProgram, PyProgram, PyRecording, get_all, iterate};
    #[pymodule_export]
    use crate::ranks::leave_ranks;
    #[pymodule_export]
    use crate::reductions::{
        by_label, equalize_adapthist, histogram, histogram_by_label, hough_line, label_boxes, label_counts,
        label_shapes, min_max, otsu_bin, reduce, reduce_along, reduced, tiled,
    };
    #[pymodule_export]
    use crate::sampling::{
        component_sizes, distances, label, lookup, matmul, nearest, reconstruct, remap, spline_coefficients, watershed,
    };
    #[pymodule_export]
    use crate::session::PySession;

    /// Adds the version, and the operations on pixels by kind, from the table that all back ends share.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        horus_core::session::wait_by(crate::ending::wait);
        horus_core::error::Audience::Python.set();
        // Imports NumPy now. When a `__del__` makes the first call at the end of the interpreter, nothing can be
        // imported, and looking up NumPy's functions would panic.
        module.py().import("numpy")?;
        drop(PyArray1::<u8>::zeros(module.py(), 1, false).try_readonly()?);
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("PIXEL_OPERATIONS", crate::operators::table())
    }
}
