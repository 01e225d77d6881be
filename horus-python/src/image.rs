//! Images as Python objects.

use std::path::PathBuf;
use std::sync::Arc;

use horus::error::Result;
use horus::io::Format;
use horus::prelude::{Image as Typed, SaveOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::any::{Any, Held, each, numbers, typed};
use crate::arrays;
use crate::errors::{caught, detached};
use crate::files::Written;
use crate::session::{Session, Watch};

/// A lazy image: levels, rows, columns and channels of one type.
#[pyclass(frozen, module = "horus_image._horus")]
pub(crate) struct Image {
    pub(crate) any: Any,
    watch: Arc<Watch>,
}

impl Image {
    pub(crate) fn new(any: Any, watch: Arc<Watch>) -> Image {
        Image { any, watch }
    }

    /// What an operation records, as another image of this one's session; the exception for the error that it carries.
    pub(crate) fn recorded<T: Held>(&self, make: impl FnOnce() -> Typed<T>) -> PyResult<Image> {
        let any = caught(|| {
            let image = make();
            image.check()?;
            Ok(T::held(image))
        })?;
        Ok(Image::new(any, Arc::clone(&self.watch)))
    }

    /// What looking at a value yields, while other threads of Python run, until the user ends it.
    pub(crate) fn looked<R: Send>(&self, py: Python<'_>, look: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
        self.watch.after(detached(py, look))
    }
}

#[pymethods]
impl Image {
    /// An image of the pixels of an array of one to four axes: columns; rows and columns; levels, rows and columns, or, with
    /// channels, rows, columns and channels; all four. Strides are any; pixels are copied once.
    #[staticmethod]
    fn of_array(
        py: Python<'_>,
        session: &Session,
        array: &Bound<'_, PyAny>,
        dtype: &str,
        channels: bool,
    ) -> PyResult<Image> {
        if dtype == "bool" {
            return arrays::taken::<bool>(py, session, array, channels);
        }
        typed!(dtype, T => arrays::taken::<T>(py, session, array, channels))
    }

    /// An image of one channel whose pixels are all of one value.
    #[staticmethod]
    fn filled(session: &Session, dtype: &str, shape: [usize; 3], value: f64) -> PyResult<Image> {
        use horus::prelude::Pixel;
        let [depth, height, width] = shape;
        typed!(dtype, T => {
            let value = <T as Pixel>::from_f64(value);
            let any = caught(|| {
                let image = Typed::constant_volume(&session.open, depth, height, width, value);
                image.check().map(|()| <T as Held>::held(image))
            })?;
            Ok(session.image(any))
        })
    }

    /// Levels, rows, columns and channels.
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

    /// Evaluates an image of one channel into an array of its type, contiguous and in C order.
    fn read_into(&self, py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<()> {
        each!(&self.any, image => arrays::put(py, self, image, array))
    }

    /// Begins to evaluate the image.
    fn start(&self) -> PyResult<()> {
        each!(&self.any, image => caught(|| {
            image.start();
            Ok(())
        }))
    }

    /// Evaluates the image and writes a file or a store of it, as its name says.
    #[pyo3(signature = (path, compression=None, tile=None))]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        compression: Option<&str>,
        tile: Option<(usize, usize)>,
    ) -> PyResult<()> {
        let how = Written::named(compression, tile)?;
        each!(&self.any, image => self.looked(py, || how.save(image, &path)))
    }

    /// Evaluates the image and returns the bytes of a file of it.
    fn encode<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let format = Format::named(format).map_err(PyValueError::new_err)?;
        let bytes = each!(&self.any, image => self.looked(py, || image.encode(format, &SaveOptions::default())))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// One channel of numbers, on the scale of the type, as `f32`.
    fn luminance(&self) -> PyResult<Image> {
        numbers!(&self.any, "luminance", image => self.recorded(|| image.luminance()))
    }
}
