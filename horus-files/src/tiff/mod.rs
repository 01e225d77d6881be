//! TIFF.

mod chunks;
mod coding;
pub(super) mod compression;
pub(super) mod directory;
mod file;
pub(super) mod georeference;
mod metadata;
mod ome;
mod read;
pub(super) mod samples;
pub(super) mod source;
mod stack;
mod tiles;

use file::TiffFile;

use crate::{
    Choice, Draft, Encoder, Facts, FileInfo, Lacking, Means, Metadata, OpenOptions, Picture, PictureFormat, Pixels,
    RegionFile, Sink, Source, guarded, told,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// TIFF files.
pub(super) struct Tiff;

impl PictureFormat for Tiff {
    fn facts(&self) -> &Facts {
        &Facts {
            name: "tif",
            title: "TIFF",
            magic: &source::MAGIC,
            pages: true,
            suffixes: &["tiff"],
            types: &DType::ALL,
            alpha: Some(&[]),
            levels: true,
            by_regions: true,
            takes: &[Choice::Sizes, Choice::Tile, Choice::Compression, Choice::Nodata],
            ..Facts::PLAIN
        }
    }

    fn read(&self, source: &Source<'_>, options: &OpenOptions, means: Means<'_>) -> Result<Picture, String> {
        guarded(|| read::read(source, options, means))
    }

    fn regions(&self, source: &Source<'static>, options: &OpenOptions) -> Result<Option<Box<dyn Pixels>>, String> {
        guarded(|| Ok(Some(Box::new(read::open(source, options)?) as Box<dyn Pixels>)))
    }

    fn unread(&self, source: &Source<'_>, options: &OpenOptions) -> Option<String> {
        told(|| read::unread(source, options))
    }

    fn describe(&self, source: &Source<'_>, options: &OpenOptions) -> Result<FileInfo, String> {
        guarded(|| read::describe(source, options))
    }

    fn tags(&self, source: &Source<'_>, options: &OpenOptions) -> Result<Vec<(String, String)>, String> {
        read::tags(source, options)
    }

    fn metadata(&self, source: &Source<'_>, options: &OpenOptions, channels: usize) -> Metadata {
        metadata::of(source, options, channels)
    }

    fn fits(&self, shape: Shape) -> bool {
        // Numbers of samples have 16 bits.
        shape.channels <= u16::MAX as usize
    }

    fn check(&self, file: &Draft) -> Result<(), String> {
        TiffFile::of(file).map(drop)
    }

    fn lacks(&self, what: Lacking, file: &Draft) -> bool {
        metadata::lacks(what, file)
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        let pixels: Vec<&[u8]> = file.pixels.iter().map(|pixels| pixels.bytes()).collect();
        TiffFile::of(&file.draft)?.write(to, &pixels, workers)
    }

    fn in_regions(&self, file: &Draft) -> Result<Box<dyn RegionFile>, String> {
        Ok(Box::new(TiffFile::of(file)?))
    }
}
