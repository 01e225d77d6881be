//! NumPy arrays.

mod read;
mod write;

use crate::{
    Draft, Encoder, Facts, Header, Means, OpenOptions, Order, Picture, PictureFormat, Raster, RegionFile, Sink, Source,
    Turned, raster, writer,
};
use horus_host::workers::Workers;

/// Files of NumPy arrays.
pub(super) struct Npy;

static FACTS: Facts = Facts {
    name: "npy",
    title: "npy",
    magic: &[b"\x93NUMPY"],
    side: usize::MAX,
    levels: true,
    by_regions: true,
    ..Facts::PLAIN
};

impl PictureFormat for Npy {
    fn facts(&self) -> &Facts {
        &FACTS
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

    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        raster::write(to, &header(&file.draft), file.pixels[0].bytes(), file.draft.stored, workers)
    }

    fn in_regions(&self, file: &Draft) -> Result<Box<dyn RegionFile>, String> {
        Ok(writer::of_rows(header(file), file))
    }
}

/// The header of a file to write, and the byte order of its pixels.
fn header(file: &Draft) -> (Vec<u8>, Order) {
    (write::header(file.stored, file.shape), Order::Kept)
}
