//! Images as Python objects.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use horus::error::{Result, SourceLine};
use horus::io::{Alpha, Format, PixelSize, alpha, channel_names, pixel_size, with_alpha, with_pixel_size};
use horus::prelude::{Image as Typed, Region, SaveOptions, Shape};
use horus::types::LoopState as _;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::any::{self, Any, AnyElement, each, numbers, typed};
use crate::arrays;
use crate::blocks::NumpyBlocks;
use crate::errors::{caught, detached};
use crate::files::{SampleOptions, WriteOptions};
use crate::foreign::GpuArray;
use crate::memory::{self, PyDeviceMemory, PyMemory};
use crate::session::{EvaluationWatch, PySession};

/// A lazy image: levels, rows, columns and channels of one type.
#[pyclass(frozen, name = "Image", module = "horus_image._horus")]
pub(crate) struct PyImage {
    pub(crate) any: Any,
    watch: Arc<EvaluationWatch>,
}

impl PyImage {
    pub(crate) fn new(any: Any, watch: Arc<EvaluationWatch>) -> PyImage {
        PyImage { any, watch }
    }

    /// Another image of the same session.
    pub(crate) fn new_in_session(&self, any: Any) -> PyImage {
        PyImage::new(any, Arc::clone(&self.watch))
    }

    /// The recorded result as another image of the same session, or the exception for the error that it carries.
    pub(crate) fn recorded<T: AnyElement>(&self, make: impl FnOnce() -> Typed<T>) -> PyResult<PyImage> {
        let any = caught(|| {
            let image = make();
            image.check()?;
            Ok(T::into_any(image))
        })?;
        Ok(self.new_in_session(any))
    }

    /// Reads a value while other Python threads run, until the user interrupts it.
    pub(crate) fn read_value<R: Send>(&self, py: Python<'_>, look: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
        self.watch.finish_evaluation(detached(py, look))
    }
}

/// A line of the user's program.
#[pyclass(frozen, name = "SourceLine", module = "horus_image._horus")]
pub(crate) struct PySourceLine(SourceLine);

#[pymethods]
impl PySourceLine {
    #[new]
    fn new(file: &str, line: u32, call: &str) -> PySourceLine {
        PySourceLine(SourceLine { file: interned(file), line, call: interned(call) })
    }
}

/// The name of a program's file, or of a function, stored for ever: there are few.
pub(crate) fn interned(file: &str) -> &'static str {
    static FILES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = files.get(file) {
        return known;
    }
    let kept: &'static str = Box::leak(file.into());
    files.insert(kept);
    kept
}

#[pymethods]
impl PyImage {
    /// An image of the pixels of an array of one to four axes: columns; rows and columns; levels, rows and columns, or,
    /// with channels, rows, columns and channels; all four. Any strides are accepted; pixels are copied once, or read
    /// in place. Truth values are given as bytes.
    #[staticmethod]
    #[pyo3(signature = (session, array, dtype, channels, copy=true))]
    fn of_array(
        py: Python<'_>,
        session: &PySession,
        array: &Bound<'_, PyAny>,
        dtype: &str,
        channels: bool,
        copy: bool,
    ) -> PyResult<PyImage> {
        if dtype == "bool" {
            return arrays::import_mask(py, session, array, channels, copy);
        }
        typed!(dtype, T => arrays::import_array::<T>(py, session, array, channels, copy))
    }

    /// An image of this shape from the elements of a contiguous array in the memory of the session's GPU, copied or in
    /// place; a mask's elements are bytes.
    #[staticmethod]
    fn of_device(
        py: Python<'_>,
        session: &PySession,
        array: &GpuArray,
        shape: [usize; 4],
        copy: bool,
    ) -> PyResult<PyImage> {
        let [depth, height, width, channels] = shape;
        let shape = Shape::volume(depth, height, width, channels);
        let none = || PyTypeError::new_err("the array must be contiguous, and of a type that images have");
        let pixels = array.pixels(py, shape).ok_or_else(none)?;
        let any = detached(py, || pixels.image(&session.open, copy))?;
        Ok(session.image(any))
    }

    /// An image of a large array, called `name` in messages, with only these blocks in memory: their row, their column,
    /// and an array of levels, rows, columns and channels. They are read in place, during evaluations.
    #[staticmethod]
    fn of_parts(
        py: Python<'_>,
        session: &PySession,
        name: &str,
        dtype: &str,
        shape: [usize; 4],
        blocks: Vec<(usize, usize, Bound<'_, PyAny>)>,
    ) -> PyResult<PyImage> {
        let [depth, height, width, channels] = shape;
        let shape = Shape::volume(depth, height, width, channels);
        NumpyBlocks::new(shape, any::named(dtype)?, &blocks)?.image(py, session, name)
    }

    /// The regions that computing this image reads from images of parts: first row, first column, rows and columns;
    /// `None` for an image from which it reads nothing.
    fn reads(&self, py: Python<'_>, sources: Vec<PyRef<'_, PyImage>>) -> PyResult<Vec<Option<[usize; 4]>>> {
        let mut handles = Vec::new();
        sources.iter().for_each(|image| each!(&image.any, image => image.handles(&mut handles)));
        each!(&self.any, image => {
            let mut of = Vec::new();
            image.handles(&mut of);
            let regions = detached(py, || image.session().reads(of[0], &handles))?;
            let numbers = |region: Region| [region.top, region.left, region.height, region.width];
            Ok(regions.into_iter().map(|region| region.map(numbers)).collect())
        })
    }

    /// An image of one channel with the same value everywhere.
    #[staticmethod]
    fn filled(session: &PySession, dtype: &str, shape: [usize; 3], value: f64) -> PyResult<PyImage> {
        use horus::prelude::Pixel;
        let [depth, height, width] = shape;
        typed!(dtype, T => {
            let value = <T as Pixel>::from_f64(value);
            let any = caught(|| {
                let image = Typed::constant(&session.open, (depth, height, width), value);
                image.check().map(|()| <T as AnyElement>::into_any(image))
            })?;
            Ok(session.image(any))
        })
    }

    /// Sets the line of the user's program that recorded the image and its ancestors, unless it is set; errors of
    /// evaluations name it.
    fn recorded_at(&self, line: &PySourceLine) {
        let mut handles = Vec::new();
        each!(&self.any, image => image.handles(&mut handles));
        handles.iter().for_each(|handle| handle.recorded_at(line.0));
    }

    /// The numbers of levels, rows, columns and channels.
    #[getter]
    fn shape(&self) -> [usize; 4] {
        let shape = self.any.shape();
        [shape.depth, shape.height, shape.width, shape.channels]
    }

    /// The name of the type: `u8` and so on.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.any.dtype().name()
    }

    /// Evaluates the image into a new array of this shape.
    fn to_array<'py>(&self, py: Python<'py>, shape: Vec<usize>) -> PyResult<Bound<'py, PyAny>> {
        each!(&self.any, image => arrays::given(py, self, image, shape))
    }

    /// Evaluates the image into an array of its type, contiguous and in C order.
    fn read_into(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        each!(&self.any, image => arrays::put(py, self, image, array))
    }

    /// Evaluates the image into memory that NumPy and DLPack can read, with these extents and strides (in pixels); into
    /// memory of its own if it is `copied`.
    #[pyo3(signature = (shape, strides, copied=false))]
    fn memory(&self, py: Python<'_>, shape: Vec<i64>, strides: Vec<i64>, copied: bool) -> PyResult<PyMemory> {
        each!(&self.any, image => memory::on_host(py, self, image, (shape, strides), copied))
    }

    /// Evaluates the image in place on a GPU; optionally as a separate copy.
    fn on_gpu(
        &self,
        py: Python<'_>,
        shape: Vec<i64>,
        strides: Vec<i64>,
        copy: bool,
        stream: Option<u64>,
    ) -> PyResult<PyDeviceMemory> {
        each!(&self.any, image => memory::on_gpu(py, self, image, (shape, strides), (copy, stream)))
    }

    /// The number of the GPU that computes the image, `None` for a CPU. Evaluates it if the device is not chosen yet.
    fn gpu(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        each!(&self.any, image => {
            if image.session().device().is_none() {
                self.read_value(py, || memory::buffer(image, false))?;
            }
            Ok(image.session().gpu())
        })
    }

    /// The distances between levels (possibly unknown), rows and columns, in micrometres.
    fn pixel_size(&self) -> Option<(Option<f64>, f64, f64)> {
        let size = each!(&self.any, image => pixel_size(image))?;
        Some((size.levels, size.rows, size.columns))
    }

    /// The same pixels, with these distances.
    fn with_pixel_size(&self, levels: Option<f64>, rows: f64, columns: f64) -> PyResult<PyImage> {
        let size = PixelSize::of([levels, Some(rows), Some(columns)]).filter(|size| size.levels == levels);
        let size = size.ok_or_else(|| {
            let depth = levels.map(|side| format!("{side}, ")).unwrap_or_default();
            let text =
                format!("pixel_size has sides of {depth}{rows} and {columns} micrometres; they must be positive");
            PyValueError::new_err(text)
        })?;
        each!(&self.any, image => self.recorded(|| with_pixel_size(image, Some(size))))
    }

    /// The same pixels, whose last channel is, or is not, alpha that colours are not multiplied by.
    fn with_alpha(&self, is_alpha: bool) -> PyResult<PyImage> {
        each!(&self.any, image => self.recorded(|| with_alpha(image, is_alpha.then_some(Alpha::Unassociated))))
    }

    /// Returns `True` if the channels are red, green and blue of one pixel, with or without alpha.
    fn is_colour(&self) -> bool {
        each!(&self.any, image => {
            channel_names(image).is_empty() && image.channels() - usize::from(alpha(image).is_some()) == 3
        })
    }

    /// Begins to evaluate the image.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        each!(&self.any, image => detached(py, || {
            image.start();
            Ok(())
        }))
    }

    /// Evaluates the image and writes it to a file or a store, depending on the name.
    #[pyo3(signature = (path, compression=None, tile=None, sizes=None, samples=None))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        compression: Option<&str>,
        tile: Option<(usize, usize)>,
        sizes: Option<usize>,
        samples: Option<SampleOptions>,
    ) -> PyResult<()> {
        let how = WriteOptions::named(compression, tile, sizes, samples)?;
        each!(&self.any, image => self.read_value(py, || how.save(image, &path)))
    }

    /// Evaluates the image and encodes it as the bytes of a file.
    fn encode<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let format = Format::named(format).map_err(PyValueError::new_err)?;
        let bytes = each!(&self.any, image => self.read_value(py, || image.encode(format, &SaveOptions::default())))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// One channel of `f32`; integers are scaled to 0 to 1.
    fn luminance(&self) -> PyResult<PyImage> {
        numbers!(&self.any, "luminance", image => self.recorded(|| image.luminance()))
    }
}
