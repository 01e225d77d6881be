//! Zarr arrays and OME-Zarr images for Horus: chunks and shards, read and written in parallel,
//! region by region.
//!
//! A store is a folder or, with the feature `remote`, at a URL, where it is only read. [`open`] reads its metadata and returns an image whose pixels are
//! read by evaluations, which read only the chunks that they require. [`save`] writes an OME-Zarr
//! image, region by region if it does not fit in memory, with the same bits. The crate consists of
//! a [`RegionSource`] and a [`RegionSink`].
//!
//! ```
//! # use horus_core::{cpu::device::CpuDevice, image::Image, session::Session};
//! # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
//! # let folder = tempfile::tempdir().expect("a folder");
//! let path = folder.path().join("slope.zarr");
//! let image = Image::from_fn(&session, 300, 500, |y, x| (y * x) as u16);
//! horus_zarr::save(&image, &path, &horus_zarr::ZarrSaveOptions::default())?;
//! let again = horus_zarr::open(&session, &path, &horus_zarr::ZarrOptions::default())?;
//! assert_eq!(again.convert::<u16>().crop(299, 499, 1, 1).to_vec()?, [(299 * 499) as u16]);
//! # Ok::<(), horus_core::error::Error>(())
//! ```
//!
//! | | read | written |
//! | --- | --- | --- |
//! | images | OME-Zarr 0.1 to 0.5: one level, one time; axes t, c, z, y, x in any order; c is the channels, with their names, z the depth | OME-Zarr 0.5, one level or several |
//! | arrays | version 3 by the names of axes; without names, and version 2, like npy files: (y, x), (y, x, c) or, as a volume, (z, y, x), (z, y, x, c) | |
//! | types | all types of Horus; bool as 0 and 1, float16 as `f32`; int64 and uint64 as `i32` and `u32`: an integer that exceeds them is an error | all types of Horus, and bool |
//! | codecs | bytes in both orders, transpose, gzip, zlib, zstd, crc32c, shards | none, gzip or zstd, with or without shards |
//!
//! An absent chunk has the fill value, as specified. If files have other names than the chunks
//! should have, a warning is logged. A chunk that is truncated or cannot be decoded is an error
//! that names its file. Ranks that see one store read and write
//! the chunks of their rows; all ranks return the same result.

mod checkpoint;
mod layout;
mod location;
mod misnamed_chunks;
#[cfg(feature = "remote")]
mod remote;
mod sink;
mod source;
mod store;
mod types;
mod unfinished_store;

use std::cell::OnceCell;
use std::path::Path;

use horus_core::dtype::Element;
use horus_core::error::{Audience, Error, Result};
use horus_core::image::Image;
use horus_core::io::{
    AnyImage, Compression, Downsampling, FileInfo, Format, OpenOptions, PixelSize, RegionSink, RegionSource, SinkRole,
    channel_names, on_root, pixel_size, pixel_size_of, save_all_to, sizes_of, tell_untold, with_pixel_size,
};
use horus_core::session::Session;
use horus_core::shape::Shape;

pub use crate::checkpoint::ZarrCheckpoints;
use crate::layout::Role;
use crate::location::NodeLocation;
use crate::sink::{ArraySink, write_json};
use crate::source::ArraySource;
use crate::store::{Channels, Multiscale, ZarrNode, names_of, no_image};
use crate::unfinished_store::UnfinishedStore;

/// Options for reading a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZarrOptions {
    /// The size of an OME-Zarr image, counted from 0, the largest; an array has one size.
    pub level: usize,
    /// The time, counted from 0; required if there are several.
    pub time: Option<usize>,
    /// `true` if the first of three unnamed axes is the depth; by default the last is the channels,
    /// as in npy files.
    pub volume: bool,
    /// The maximum number of pixels (rows times columns times levels) of the image; 2^32 by
    /// default.
    pub max_pixels: u64,
}

impl Default for ZarrOptions {
    fn default() -> ZarrOptions {
        ZarrOptions { level: 0, time: None, volume: false, max_pixels: 1 << 32 }
    }
}

/// Options for writing a store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZarrSaveOptions {
    /// Levels, rows and columns of a chunk, which has one channel; 1, 512 and 512 by default.
    /// Chunks are clipped to smaller images.
    pub chunk: [usize; 3],
    /// Levels, rows and columns of a shard, multiples of the chunk's. A shard is a file with many
    /// chunks that can be read separately. Without shards, each chunk is a file.
    pub shard: Option<[usize; 3]>,
    /// Compression of chunks.
    pub codec: ZarrCodec,
    /// Number of sizes; 1 by default. Each size is half as high and wide as the one before, rounded
    /// up, and has the same depth, as in TIFF files
    /// ([`SaveOptions::sizes`](horus_core::io::SaveOptions::sizes)). The metadata gives the
    /// positions of pixels: size k has a scale of 2^k pixels and, if pixels stand for blocks, a
    /// translation of (2^k - 1) / 2 pixels.
    pub sizes: usize,
    /// How pixels of smaller sizes are computed, as in TIFF files
    /// ([`SaveOptions::resampling`](horus_core::io::SaveOptions::resampling)).
    pub resampling: Option<Downsampling>,
    /// The distance of levels, rows and columns in micrometres; by default the size of the image's
    /// pixels ([`horus_core::io::pixel_size`]), if known.
    pub pixel: Option<[f64; 3]>,
}

impl Default for ZarrSaveOptions {
    fn default() -> ZarrSaveOptions {
        let codec = ZarrCodec::default();
        ZarrSaveOptions { chunk: [1, 512, 512], shard: None, codec, sizes: 1, resampling: None, pixel: None }
    }
}

/// Compression of chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ZarrCodec {
    /// No compression.
    None,
    /// gzip, which every reader supports.
    Gzip,
    /// zstd, with a checksum. The default.
    #[default]
    Zstd,
}

impl ZarrCodec {
    /// The codec for a compression of TIFF files; Deflate becomes gzip.
    ///
    /// # Errors
    /// A message for LZW, which stores do not support.
    pub fn of(compression: Compression) -> Result<ZarrCodec, String> {
        match compression {
            Compression::None => Ok(ZarrCodec::None),
            Compression::Deflate => Ok(ZarrCodec::Gzip),
            Compression::Zstd => Ok(ZarrCodec::Zstd),
            other => Err(format!("stores are compressed by none, deflate or zstd, not by {other:?}")),
        }
    }
}

/// Returns `true` if there is a store at a path: a folder with Zarr metadata. A URL is one of a
/// store unless it ends like the name of a picture file, such as `.tif`.
pub fn is_store(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    if let Some(url) = path.to_str().filter(|_| is_url(path)) {
        let name = url.split('?').next().unwrap_or(url);
        return !Path::new(name).extension().is_some_and(|e| Format::is_read(&e.to_string_lossy()));
    }
    path.is_dir() && ZarrNode::at(&NodeLocation::Folder(path.to_owned())).is_ok()
}

/// Returns `true` if a path is a URL of a server: `http://`, `https://` or `s3://`.
///
/// ```
/// assert!(horus_zarr::is_url("https://host/image.zarr") && !horus_zarr::is_url("image.zarr"));
/// ```
pub fn is_url(path: impl AsRef<Path>) -> bool {
    let scheme = path.as_ref().to_str().and_then(|path| path.split_once("://")).map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["http", "https", "s3"].iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// The error of a build without the feature `remote`.
#[cfg(not(feature = "remote"))]
const WITHOUT_REMOTE: &str =
    "it is on a server, and this program was built without them (horus-zarr's feature `remote`)";

/// Opens an OME-Zarr image or an array, in a folder or, with the feature `remote`, at a URL. Its
/// metadata is read now, its pixels on demand. The store must not change until then; a replaced
/// folder is detected.
///
/// Of a server, each chunk that an evaluation needs is requested once, and several at a time. What
/// was sent is kept while it fits into an eighth of the memory limit, at most 1 GiB. A request that
/// fails is repeated four times. A server that is silent for 30 seconds is an error. `s3://` URLs
/// are read with the credentials, region and endpoint of the usual variables (`AWS_...`), without
/// credentials as public.
///
/// # Errors
/// [`Error::File`] on every rank if there is no store or no image in it; if its metadata is
/// invalid; if its axes, types or codecs are not supported; if it has several times and none is
/// selected; if there is no such level or time. Evaluations report a chunk that cannot be read,
/// with the name of its file.
#[track_caller]
pub fn open(session: &Session, path: impl AsRef<Path>, options: &ZarrOptions) -> Result<AnyImage> {
    let path = path.as_ref();
    let (mut pixel, mut names, mut is_of_labels) = (None, Vec::new(), false);
    let image = AnyImage::from_source(session, path, || {
        let (source, size, channels) = source(&NodeLocation::of(path, session.host_limit())?, options)?;
        (pixel, names, is_of_labels) = (size, channels, source.is_of_labels);
        Ok(Box::new(source))
    })?;
    let image = image.with_pixel_size(pixel_size_of(session, || Ok(pixel))?).with_channel_names(names);
    Ok(if is_of_labels { image.with_labels() } else { image })
}

/// Opens a picture file at a URL, such as a cloud optimized GeoTIFF, like [`AnyImage::open_with`].
/// Headers are read now; strips and tiles on demand, each once while it stays in the cache. Other
/// formats are read as a whole. With the feature `remote`; requests are those of [`open`].
///
/// # Errors
/// [`Error::File`] on every rank if the server cannot be reached or sends an error, or there is no
/// such file; if the file is no picture.
#[track_caller]
pub fn open_picture(session: &Session, url: impl AsRef<Path>, options: &OpenOptions) -> Result<AnyImage> {
    let url = url.as_ref();
    #[cfg(feature = "remote")]
    return AnyImage::open_ranges(session, url, options, || {
        let text = url.to_str().ok_or("a URL is text")?;
        Ok(Box::new(remote::RemotePicture::at(text, session.host_limit())?))
    });
    #[cfg(not(feature = "remote"))]
    {
        let _unused = (session, options);
        Err(Error::read(url, WITHOUT_REMOTE))
    }
}

/// Returns the properties of an image without reading its pixels: shape and type of one size,
/// heights and widths of all sizes, chunks as tiles; and the size of the pixels. Only this process
/// reads.
///
/// ```
/// # use horus_core::{cpu::device::CpuDevice, image::Image, session::Session};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// # let folder = std::env::temp_dir().join("horus-zarr-describe");
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("cells.zarr");
/// let options = horus_zarr::ZarrSaveOptions { sizes: 2, ..Default::default() };
/// horus_zarr::save(&Image::<f32>::zeros(&session, (40, 60)), &path, &options)?;
/// assert_eq!(horus_zarr::describe(&path, &Default::default())?.0.levels, [(40, 60), (20, 30)]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`open`].
pub fn describe(path: impl AsRef<Path>, options: &ZarrOptions) -> Result<(FileInfo, Option<PixelSize>)> {
    /// Memory for what a server sends, which is metadata here.
    const LIMIT: usize = 128 << 20;
    let path = path.as_ref();
    let told = || -> Result<_, String> {
        let at = NodeLocation::of(path, LIMIT)?;
        let (found, pixel, _) = source(&at, options)?;
        let extents = |level| {
            let (found, ..) = source(&at, &ZarrOptions { level, ..*options })?;
            Ok((found.shape().height, found.shape().width))
        };
        let sizes = match ZarrNode::at(&at)? {
            ZarrNode::Array => 1,
            ZarrNode::Group(attributes) => Multiscale::of(&attributes)?.map_or(0, |image| image.levels.len()),
        };
        let (shape, (rows, columns)) = (found.shape(), found.chunk());
        let tile = (rows.min(shape.height), columns.min(shape.width));
        let levels = (options.level..sizes).map(extents).collect::<Result<_, String>>()?;
        Ok((FileInfo { shape, dtype: found.dtype(), tile, pages: 1, levels }, pixel))
    };
    told().map_err(|cause| Error::read(path, cause))
}

/// The pixels of a store, their size, and the names of the channels.
fn source(root: &NodeLocation, options: &ZarrOptions) -> Result<(ArraySource, Option<PixelSize>, Vec<String>), String> {
    /// Maximum number of channels whose names are read.
    const MOST_NAMED: usize = u16::MAX as usize;
    let (mut pixel, mut names) = (None, None);
    let mut is_of_labels = false;
    let mut found = match ZarrNode::at(root)? {
        ZarrNode::Array if options.level > 0 => {
            return Err(format!("size {} requested, but an array has one (they start at 0)", options.level));
        }
        ZarrNode::Array => {
            let names = names_of(root)?;
            ArraySource::open(root, |axes| of_array(axes, names.as_deref(), options.volume), options.time)?
        }
        ZarrNode::Group(attributes) => {
            let Some(image) = Multiscale::of(&attributes)? else { return Err(no_image(root)) };
            let Multiscale { axes, levels, pixels, channels, .. } = image;
            is_of_labels = image.is_of_labels;
            let level = levels.get(options.level).ok_or_else(|| {
                format!("size {} requested, but it has {} (they start at 0)", options.level, levels.len())
            })?;
            pixel = pixels.get(options.level).copied().flatten();
            names = Some(channels);
            let all = [Role::Time, Role::Channel, Role::Level, Role::Row, Role::Column];
            let told = |n: usize| Ok(axes.unwrap_or_else(|| all[all.len().saturating_sub(n)..].to_vec()));
            let at = root.join(level);
            let within = |cause| format!("{}: {cause}", level.display());
            if !matches!(ZarrNode::at(&at).map_err(within)?, ZarrNode::Array) {
                return Err(within("it is no array".into()));
            }
            ArraySource::open(&at, told, options.time).map_err(within)?
        }
    };
    found.is_of_labels |= is_of_labels;
    let shape = found.shape();
    let pixels = [shape.depth, shape.height, shape.width].iter().try_fold(1u64, |all, n| all.checked_mul(*n as u64));
    if pixels.is_none_or(|pixels| pixels > options.max_pixels) {
        let most = options.max_pixels;
        let limit = Audience::now().select_wording("ZarrOptions::max_pixels", "--max-pixels", "max_pixels=");
        return Err(format!("{shape} pixels exceed the limit of {most} ({limit})"));
    }
    // Channels of an OME-Zarr image are not colours, even without names.
    let is_told = |names: &Vec<String>| shape.channels > 1 || names.iter().any(|name| !name.is_empty());
    let names = names.filter(|names| shape.channels <= MOST_NAMED && is_told(names)).map(|mut names| {
        names.resize(shape.channels, String::new());
        names
    });
    Ok((found, pixel, names.unwrap_or_default()))
}

/// The roles of an array's axes.
fn of_array(axes: usize, names: Option<&[String]>, volume: bool) -> Result<Vec<Role>, String> {
    use Role::{Channel, Column, Level, Row};
    if let Some(roles) = names.and_then(|names| names.iter().map(|name| Role::named(name)).collect()) {
        return Ok(roles);
    }
    match (axes, volume) {
        (2, _) => Ok(vec![Row, Column]),
        (3, false) => Ok(vec![Row, Column, Channel]),
        (3, true) => Ok(vec![Level, Row, Column]),
        (4, _) => Ok(vec![Level, Row, Column, Channel]),
        (n, _) => {
            Err(format!("an array of {n} axes whose names are not t, c, z, y and x; without names, 2 to 4 are read"))
        }
    }
}

/// Evaluates an image and writes it as an OME-Zarr image of version 0.5, exactly, in its own type.
/// The store is written to a temporary folder next to its path, metadata last, and renamed when
/// complete. A failure or a kill leaves no partial store that can be opened. An existing store is
/// replaced atomically on systems that can exchange folders, such as Linux.
///
/// Axes are c, z, y and x, without c or z for a single channel or level. Names of channels
/// ([`AnyImage::channel_names`]) become labels for viewers. Chunks of zeros are not stored.
///
/// # Errors
/// The error that the image carries; [`Error::File`] if there is something other than an image at
/// the path, no folder can be created next to it, chunks have no pixels, shards do not consist of
/// whole chunks, or writing fails; also if the program fails. An existing store is then unchanged.
#[track_caller]
pub fn save<T: Element>(image: &Image<T>, path: impl AsRef<Path>, options: &ZarrSaveOptions) -> Result<()> {
    let path = path.as_ref();
    let failed = |cause| Error::write(path, cause);
    let begun = OnceCell::new();
    let given = options.pixel.map(|sides| PixelSize::of(sides.map(Some)));
    let pixel = given.unwrap_or_else(|| pixel_size(image));
    // An error for a wrong number names the path.
    let levels = sizes_of(image, options.sizes.max(1), options.resampling)?;
    let shapes: Vec<Shape> = levels.iter().map(Image::shape).collect();
    save_all_to(&levels, path, |role| {
        if is_url(path) {
            return Err("servers are only read".into());
        }
        if options.sizes == 0 {
            return Err("an image has at least one size".into());
        }
        if let Some(wrong) = options.pixel.into_iter().flatten().find(|side| !(*side > 0.0 && side.is_finite())) {
            return Err(format!("a side of a pixel is {wrong} micrometres; it must be positive and finite"));
        }
        if let SinkRole::Other(place) = role {
            return Ok(vec![Box::new(ArraySink::join(place, shapes[0], T::TAG, options)?)]);
        }
        let made = UnfinishedStore::at(path)?;
        let sink = |(size, shape): (usize, &Shape)| {
            let sink = ArraySink::begin(&made.folder().join(size.to_string()), *shape, T::TAG, options)?;
            Ok(Box::new(sink) as Box<dyn RegionSink>)
        };
        let sinks = shapes.iter().enumerate().map(sink).collect::<Result<_, String>>()?;
        begun.set(made).map_err(|_| "it is begun twice")?;
        Ok(sinks)
    })?;
    let moved = on_root(image.session(), "moving a store into place", || {
        let begun = begun.into_inner().ok_or("rank 0 has no store")?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let channels = Channels { names: channel_names(image), dtype: T::TAG };
        write_json(
            &begun.folder().join("zarr.json"),
            &store::group(&name, &shapes, options.resampling, pixel, &channels),
        )?;
        begun.commit()
    })?;
    moved.map_err(failed)?;
    tell_untold(&given.map_or_else(|| image.clone(), |size| with_pixel_size(image, size)), path);
    Ok(())
}
