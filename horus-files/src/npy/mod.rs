//! The format of NumPy arrays.

mod read;
mod write;

use crate::{
    DecodeResources, Encoder, FileSpec, FormatProperties, OpenOptions, Picture, PictureFormat, PictureHeader,
    PictureSource, Raster, RegionFile, SampleConversion, Sink, StoredOrientation, raster, writer,
};
use horus_host::workers::Workers;

/// NumPy array files.
pub(super) struct Npy;

static FACTS: FormatProperties = FormatProperties {
    name: "npy",
    title: "npy",
    magic: &[b"\x93NUMPY"],
    side: usize::MAX,
    levels: true,
    by_regions: true,
    ..FormatProperties::PLAIN
};

impl PictureFormat for Npy {
    fn facts(&self) -> &FormatProperties {
        &FACTS
    }

    fn header(&self, source: &PictureSource<'_>, options: &OpenOptions) -> Result<PictureHeader, String> {
        let (Raster { shape, dtype, .. }, _) = read::raster(source, options)?;
        Ok(PictureHeader { shape, dtype, orientation: StoredOrientation::No, profile: None })
    }

    fn raster(&self, source: &PictureSource<'_>, options: &OpenOptions) -> Result<Option<Raster>, String> {
        let (raster, by_columns) = read::raster(source, options)?;
        Ok((!by_columns).then_some(raster))
    }

    fn read(
        &self,
        source: &PictureSource<'_>,
        options: &OpenOptions,
        means: DecodeResources<'_>,
    ) -> Result<Picture, String> {
        read::read(source, options, means)
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        raster::write(to, &header(&file.draft), file.pixels[0].bytes(), file.draft.stored, workers)
    }

    fn in_regions(&self, file: &FileSpec) -> Result<Box<dyn RegionFile>, String> {
        Ok(writer::of_rows(header(file), file))
    }
}

/// The header of a file to write, and the byte order of its pixels.
fn header(file: &FileSpec) -> (Vec<u8>, SampleConversion) {
    (write::header(file.stored, file.shape), SampleConversion::Unchanged)
}
