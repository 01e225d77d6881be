//! Picture files, and Zarr stores, which are folders.

use std::path::Path;
use std::str::FromStr;

use horus::error::{Error, Result};
use horus::prelude::{AnyImage, Clipping, Compression, Depth, Image, OpenOptions, SaveOptions, Scaling};
use horus::types::Element;
use horus_zarr::{ZarrCodec, ZarrOptions, ZarrSaveOptions};
use pyo3::exceptions::PyValueError;
use pyo3::{FromPyObject, PyResult, pyfunction};

/// Opens a picture: a page or a time, in one of its sizes, of at most so many pixels.
pub(crate) fn open(
    session: &horus::Session,
    path: &Path,
    page: Option<usize>,
    volume: bool,
    size: usize,
    max_pixels: Option<u64>,
) -> Result<AnyImage> {
    let usual = OpenOptions::default();
    let max_pixels = max_pixels.unwrap_or(usual.max_pixels);
    let is_url = horus_zarr::is_url(path);
    if path.is_dir() || (is_url && horus_zarr::is_store(path)) {
        let options = ZarrOptions { level: size, time: page, volume, max_pixels };
        return horus_zarr::open(session, path, &options);
    }
    let options = OpenOptions { page, volume, level: size, max_pixels, ..usual };
    if is_url {
        return horus_zarr::open_picture(session, path, &options);
    }
    AnyImage::open_with(session, path, &options)
}

/// The micrometres of a length with a unit; `None` if the text is no length.
#[pyfunction]
pub(crate) fn length(text: &str) -> Option<f64> {
    horus::io::length(text)
}

/// Options for writing a file or a store.
pub(crate) struct WriteOptions {
    compression: Option<Compression>,
    tile: Option<(usize, usize)>,
    /// Number of sizes of the picture.
    sizes: Option<usize>,
    /// Depth, scaling, clipping and quality of files, and the resampling of smaller sizes.
    samples: SaveOptions,
}

/// Conversion of values to a file's: depth, scaling, clipping and resampling by name, quality, and the value of missing
/// pixels.
#[derive(FromPyObject)]
pub(crate) struct SampleOptions {
    #[pyo3(item)]
    depth: Option<String>,
    #[pyo3(item)]
    scaling: Option<String>,
    #[pyo3(item)]
    clipping: Option<String>,
    #[pyo3(item)]
    quality: Option<u8>,
    #[pyo3(item)]
    resampling: Option<String>,
    #[pyo3(item)]
    nodata: Option<f64>,
}

/// The value with this name.
fn parsed<T: FromStr<Err = String>>(what: &str, name: Option<&str>) -> PyResult<Option<T>> {
    let parsed = |name: &str| {
        name.parse().map_err(|known| PyValueError::new_err(format!("no {what} is called {name}: {known}")))
    };
    name.map(parsed).transpose()
}

impl SampleOptions {
    /// The options; an error for an unknown name.
    fn options(&self) -> PyResult<SaveOptions> {
        fn chosen<T: Copy + Default>(what: &str, name: &Option<String>, known: &[(&str, T)]) -> PyResult<T> {
            let Some(name) = name else { return Ok(T::default()) };
            let found = known.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            found.ok_or_else(|| PyValueError::new_err(format!("{what} is {name:?}; it may be {}", names())))
        }
        let depths = [("auto", Depth::Auto), ("8", Depth::Eight), ("16", Depth::Sixteen), ("float", Depth::Float)];
        let scalings =
            [("auto", Scaling::Auto), ("none", Scaling::None), ("unit", Scaling::Unit), ("range", Scaling::Range)];
        let clippings = [("warn", Clipping::Warn), ("refuse", Clipping::Refuse), ("allow", Clipping::Allow)];
        Ok(SaveOptions {
            depth: chosen("depth", &self.depth, &depths)?,
            scaling: chosen("scaling", &self.scaling, &scalings)?,
            clipping: chosen("clipping", &self.clipping, &clippings)?,
            quality: self.quality,
            resampling: parsed("resampling", self.resampling.as_deref())?,
            nodata: self.nodata,
            ..SaveOptions::default()
        })
    }
}

impl WriteOptions {
    /// Options with the compression of this name, tiles or chunks of so many rows and columns, and so many sizes, whose
    /// smaller ones are resampled by the method of this name.
    pub(crate) fn named(
        compression: Option<&str>,
        tile: Option<(usize, usize)>,
        sizes: Option<usize>,
        samples: Option<SampleOptions>,
    ) -> PyResult<WriteOptions> {
        let samples = samples.map_or(Ok(SaveOptions::default()), |samples| samples.options())?;
        Ok(WriteOptions { compression: parsed("compression", compression)?, tile, sizes, samples })
    }

    /// Evaluates an image and writes it to a file, or to a store if it has the name of a store.
    pub(crate) fn save<T: Element>(&self, image: &Image<T>, path: &Path) -> Result<()> {
        if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("zarr")) {
            let (compression, sizes) = (self.compression.unwrap_or_default(), self.sizes.unwrap_or(1));
            let options = SaveOptions { tile: self.tile, compression, sizes, ..self.samples };
            return image.save_with(path, &options).map(drop);
        }
        if (SaveOptions { resampling: None, ..self.samples }) != SaveOptions::default() {
            return Err(Error::write(
                path,
                "a store keeps values as they are: depth, scaling, clipping, quality and nodata apply to files only",
            ));
        }
        let mut options = ZarrSaveOptions::default();
        options.sizes = self.sizes.unwrap_or(options.sizes);
        options.resampling = self.samples.resampling;
        if let Some((rows, columns)) = self.tile {
            options.chunk = [1, rows, columns];
        }
        if let Some(compression) = self.compression {
            options.codec = ZarrCodec::of(compression).map_err(|cause| Error::write(path, cause))?;
        }
        horus_zarr::save(image, path, &options)
    }
}
