//! TIFF files.

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
