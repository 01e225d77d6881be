//! Picture files, and folders that are Zarr stores.

use std::path::Path;
use std::str::FromStr;

use horus::error::{Error, Result};
use horus::prelude::{AnyImage, Compression, Downsampling, Image, OpenOptions, SaveOptions};
use horus::types::Element;
use horus_zarr::{ZarrCodec, ZarrOptions, ZarrSaveOptions};
use pyo3::exceptions::PyValueError;
use pyo3::{PyResult, pyfunction};

/// Opens a picture: a page or a time, in one of its sizes.
pub(crate) fn open(
    session: &horus::Session,
    path: &Path,
    page: Option<usize>,
    volume: bool,
    size: usize,
) -> Result<AnyImage> {
    if path.is_dir() {
        let options = ZarrOptions { level: size, time: page, volume, ..ZarrOptions::default() };
        return horus_zarr::open(session, path, &options);
    }
    AnyImage::open_with(session, path, &OpenOptions { page, volume, level: size, ..OpenOptions::default() })
}

/// The micrometres of a length with a unit; nothing if it is none.
#[pyfunction]
pub(crate) fn length(text: &str) -> Option<f64> {
    horus::io::length(text)
}

/// Options for writing a file or a store.
pub(crate) struct Written {
    compression: Option<Compression>,
    tile: Option<(usize, usize)>,
    /// Number of sizes.
    sizes: Option<usize>,
    /// Pixels of smaller sizes.
    resampling: Option<Downsampling>,
}

impl Written {
    /// With the compression of this name, in tiles or chunks of so many rows and columns, in so many sizes, of which the
    /// smaller have pixels of this name.
    pub(crate) fn named(
        compression: Option<&str>,
        tile: Option<(usize, usize)>,
        sizes: Option<usize>,
        resampling: Option<&str>,
    ) -> PyResult<Written> {
        fn parsed<T: FromStr<Err = String>>(what: &str, name: Option<&str>) -> PyResult<Option<T>> {
            let parsed = |name: &str| {
                name.parse().map_err(|known| PyValueError::new_err(format!("no {what} is called {name}: {known}")))
            };
            name.map(parsed).transpose()
        }
        let compression = parsed("compression", compression)?;
        Ok(Written { compression, tile, sizes, resampling: parsed("resampling", resampling)? })
    }

    /// Evaluates an image and writes it to a file, or to a store if the name is that of one.
    pub(crate) fn save<T: Element>(&self, image: &Image<T>, path: &Path) -> Result<()> {
        if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("zarr")) {
            let (compression, sizes) = (self.compression.unwrap_or_default(), self.sizes.unwrap_or(1));
            let Written { tile, resampling, .. } = *self;
            let options = SaveOptions { tile, compression, sizes, resampling, ..SaveOptions::default() };
            return image.save_with(path, &options).map(drop);
        }
        let mut options = ZarrSaveOptions::default();
        options.sizes = self.sizes.unwrap_or(options.sizes);
        options.resampling = self.resampling;
        if let Some((rows, columns)) = self.tile {
            options.chunk = [1, rows, columns];
        }
        if let Some(compression) = self.compression {
            options.codec = ZarrCodec::of(compression).map_err(|cause| Error::write(path, cause))?;
        }
        horus_zarr::save(image, path, &options)
    }
}
