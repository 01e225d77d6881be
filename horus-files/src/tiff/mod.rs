//! The TIFF format.

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
mod slide;
pub(super) mod source;
mod stack;
mod tiles;

use file::TiffFile;

use crate::{
    DecodeResources, Encoder, FileInfo, FileSpec, FormatOption, FormatProperties, Metadata, OpenOptions, Picture,
    PictureFormat, PictureSource, RegionDecoder, RegionFile, Sink, UnsupportedMetadata, decode_metadata, guarded,
};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::workers::Workers;

/// TIFF files.
pub(super) struct Tiff;

impl PictureFormat for Tiff {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "tif",
            title: "TIFF",
            magic: &source::MAGIC,
            pages: true,
            suffixes: &["tiff"],
            read: &["svs", "ndpi"],
            types: &DType::ALL,
            alpha: Some(&[]),
            levels: true,
            by_regions: true,
            options: &[FormatOption::Sizes, FormatOption::Tile, FormatOption::Compression, FormatOption::Nodata],
            ..FormatProperties::PLAIN
        }
    }

    fn read(
        &self,
        source: &PictureSource<'_>,
        options: &OpenOptions,
        means: DecodeResources<'_>,
    ) -> Result<Picture, String> {
        guarded(|| read::read(source, options, means))
    }

    fn regions(
        &self,
        source: &PictureSource<'static>,
        options: &OpenOptions,
    ) -> Result<Option<Box<dyn RegionDecoder>>, String> {
        guarded(|| Ok(Some(Box::new(read::open(source, options)?) as Box<dyn RegionDecoder>)))
    }

    fn unread(&self, source: &PictureSource<'_>, options: &OpenOptions) -> Option<String> {
        decode_metadata(|| read::unread(source, options))
    }

    fn describe(&self, source: &PictureSource<'_>, options: &OpenOptions) -> Result<FileInfo, String> {
        guarded(|| read::describe(source, options))
    }

    fn tags(&self, source: &PictureSource<'_>, options: &OpenOptions) -> Result<Vec<(String, String)>, String> {
        read::tags(source, options)
    }

    fn metadata(&self, source: &PictureSource<'_>, options: &OpenOptions, channels: usize) -> Metadata {
        metadata::of(source, options, channels)
    }

    fn fits(&self, shape: Shape) -> bool {
        // Numbers of samples have 16 bits.
        shape.channels <= u16::MAX as usize
    }

    fn check(&self, file: &FileSpec) -> Result<(), String> {
        TiffFile::of(file).map(drop)
    }

    fn omits_metadata(&self, what: UnsupportedMetadata, file: &FileSpec) -> bool {
        metadata::lacks(what, file)
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, workers: &Workers) -> Result<(), String> {
        let pixels: Vec<&[u8]> = file.pixels.iter().map(|pixels| pixels.bytes()).collect();
        TiffFile::of(&file.draft)?.write(to, &pixels, workers)
    }

    fn in_regions(&self, file: &FileSpec) -> Result<Box<dyn RegionFile>, String> {
        Ok(Box::new(TiffFile::of(file)?))
    }
}
