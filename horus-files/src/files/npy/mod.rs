//! NumPy arrays.

mod read;
pub(crate) mod write;

use crate::files::codec::Header;
use crate::files::format::{Facts, PictureFormat};
use crate::files::load::{Means, Source};
use crate::files::orientation::Turned;
use crate::files::raster::Raster;
use crate::files::{OpenOptions, Picture};

/// Files of NumPy arrays.
#[derive(Debug)]
pub(super) struct Npy;

static FACTS: Facts =
    Facts { name: "npy", title: "npy", side: usize::MAX, levels: true, by_regions: true, ..Facts::PLAIN };

impl PictureFormat for Npy {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.starts_with(b"\x93NUMPY")
    }

    fn header(&self, source: &Source<'_>, options: &OpenOptions) -> Result<Header, String> {
        let (Raster { shape, dtype, .. }, _) = read::raster(source, options)?;
        Ok(Header { shape, dtype, noted: Turned::No, profile: None })
    }

    fn raster(&self, source: &Source<'_>, options: &OpenOptions) -> Result<Option<Raster>, String> {
        let (raster, by_columns) = read::raster(source, options)?;
        Ok((!by_columns).then_some(raster))
    }

    fn read(&self, source: &Source<'_>, options: &OpenOptions, means: Means<'_>) -> Result<Picture, String> {
        read::read(source, options, means)
    }
}
