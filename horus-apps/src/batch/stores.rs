//! Zarr stores, with the feature `zarr`.

use std::path::Path;

use horus::io::FileInfo;
use horus::prelude::*;
use horus_core::session::Session as CoreSession;

use super::{BatchOptions, Response};

/// The extension of stores.
const EXTENSION: &str = "zarr";

/// Returns `true` if an output has the name of a store.
pub(crate) fn is_named(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(EXTENSION))
}

/// Returns `true` if an input is on a server.
pub(crate) fn is_url(path: &Path) -> bool {
    #[cfg(feature = "zarr")]
    return horus_zarr::is_url(path);
    #[cfg(not(feature = "zarr"))]
    path.to_str().is_some_and(|path| path.contains("://"))
}

/// Returns `true` if an input is a store: a directory with Zarr metadata, or with the name of a store; a URL that does
/// not end like the name of a picture file.
pub(crate) fn is_store(path: &Path) -> bool {
    #[cfg(feature = "zarr")]
    if is_url(path) {
        return horus_zarr::is_store(path);
    }
    path.is_dir() && (is_named(path) || ["zarr.json", ".zarray", ".zgroup"].iter().any(|name| path.join(name).exists()))
}

/// Reads a picture from a file or a store.
#[track_caller]
pub(crate) fn open(session: &CoreSession, path: &Path, options: &OpenOptions) -> Result<AnyImage> {
    // Only rank 0 reads the file system.
    let found = horus_core::io::on_root(session, "looking at a picture", || Ok(is_store(path)))?;
    match found {
        Ok(true) => store(session, path, options),
        _ if is_url(path) => remote(session, path, options),
        _ => AnyImage::open_with(session, path, options),
    }
}

#[cfg(feature = "zarr")]
#[track_caller]
fn remote(session: &CoreSession, url: &Path, options: &OpenOptions) -> Result<AnyImage> {
    horus_zarr::open_picture(session, url, options)
}

#[cfg(feature = "zarr")]
#[track_caller]
fn store(session: &CoreSession, path: &Path, options: &OpenOptions) -> Result<AnyImage> {
    horus_zarr::open(session, path, &of_store(options))
}

#[cfg(feature = "zarr")]
fn of_store(options: &OpenOptions) -> horus_zarr::ZarrOptions {
    let OpenOptions { page, max_pixels, volume, .. } = *options;
    horus_zarr::ZarrOptions { time: page, max_pixels, volume, ..Default::default() }
}

/// The properties of a store, found without reading its pixels, and the pixel size as a tag.
#[cfg(feature = "zarr")]
pub(crate) fn described(path: &Path, options: &OpenOptions) -> Result<(FileInfo, Vec<(String, String)>)> {
    let (info, size) = horus_zarr::describe(path, &of_store(options))?;
    let sides = size.map(|size| [size.levels, Some(size.rows), Some(size.columns)].into_iter().flatten());
    let tag = |sides: Vec<String>| ("PixelSize".to_owned(), format!("{} um", sides.join(" x ")));
    Ok((info, sides.map(|sides| tag(sides.map(|side| side.to_string()).collect())).into_iter().collect()))
}

/// Evaluates and writes a store.
#[cfg(feature = "zarr")]
pub(crate) fn save(response: &Response, path: &Path, options: &BatchOptions) -> Result<()> {
    let mut how = horus_zarr::ZarrSaveOptions::default();
    if let Some(side) = options.tile {
        how.chunk = [1, side.get(), side.get()];
    }
    how.sizes = options.sizes.map_or(how.sizes, |sizes| sizes.get());
    how.resampling = options.resampling;
    how.pixel = options.pixel_size.map(|side| [side; 3]);
    how.codec = horus_zarr::ZarrCodec::of(options.compression).map_err(|cause| Error::write(path, cause))?;
    response.save_store(path, &how)
}

#[cfg(not(feature = "zarr"))]
const WITHOUT: &str = "it is a Zarr store, and this program was built without them (cargo build --features zarr)";

#[cfg(not(feature = "zarr"))]
fn remote(_: &CoreSession, url: &Path, _: &OpenOptions) -> Result<AnyImage> {
    Err(Error::read(url, "it is on a server, and this program was built without them (cargo build --features remote)"))
}

#[cfg(not(feature = "zarr"))]
fn store(_: &CoreSession, path: &Path, _: &OpenOptions) -> Result<AnyImage> {
    Err(Error::read(path, WITHOUT))
}

#[cfg(not(feature = "zarr"))]
pub(crate) fn described(path: &Path, _: &OpenOptions) -> Result<(FileInfo, Vec<(String, String)>)> {
    Err(Error::read(path, WITHOUT))
}

/// The error for a build without stores.
#[cfg(not(feature = "zarr"))]
pub(crate) fn save(_: &Response, path: &Path, _: &BatchOptions) -> Result<()> {
    Err(Error::write(path, WITHOUT))
}
