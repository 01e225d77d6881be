//! TIFF.

mod chunks;
mod coding;
pub(crate) mod compression;
pub(crate) mod directory;
pub(crate) mod file;
pub(crate) mod georeference;
pub(crate) mod ome;
pub(crate) mod read;
pub(crate) mod samples;
pub(crate) mod source;
pub(crate) mod stack;
pub(crate) mod tiles;

use crate::files::format::{Choice, Facts, PictureFormat};
use horus_base::dtype::DType;
use horus_base::shape::Shape;

/// TIFF files.
#[derive(Debug)]
pub(super) struct Tiff;

static FACTS: Facts = Facts {
    name: "tif",
    suffixes: &["tiff"],
    types: &DType::ALL,
    levels: true,
    by_regions: true,
    takes: &[Choice::Sizes, Choice::Tile, Choice::Compression, Choice::Nodata],
    ..Facts::PLAIN
};

impl PictureFormat for Tiff {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }

    fn fits(&self, shape: Shape) -> bool {
        // Numbers of samples have 16 bits.
        shape.channels <= u16::MAX as usize
    }
}
