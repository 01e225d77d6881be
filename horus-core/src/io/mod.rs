//! Reading and writing picture files.
//!
//! Files are read and written by rank 0 only; all ranks return the same result or the same error.
//! The formats themselves are in [`horus_files`], which knows no session.
//!
//! The pixel type of a file is part of the program: decoded pixels keep it, and conversions are
//! recorded like any operation. So are the conversions of saving, on the device, with the
//! operations around them:
//!
//! | step | where |
//! | --- | --- |
//! | smallest and largest finite value ([`Scaling::Range`]); values that the file cannot hold counted ([`Clipping`]) | recorded |
//! | values scaled to the file's range, rounded, saturated, narrowed to 8 or 16 bits | recorded |
//! | one copy to rank 0: 8 or 16 bits per sample, and the scale with it | one evaluation |
//! | byte order, compression | rank 0's threads ([`Encoder`]) |
//!
//! Files larger than memory are read and written region by region: [`PictureReader`] decodes the
//! strips, tiles or rows that hold a region, [`PictureWriter`] writes those of TIFF, NumPy and PNM
//! files in place; both from any number of threads. [`AnyImage::describe`] returns the properties
//! of a file, [`OpenOptions::region`] opens a part of it. Other stores of pixels are a
//! [`RegionSource`] or a [`RegionSink`].
//!
//! PNM and NumPy files are read directly into the image's memory and written from there. Pictures
//! in memory ([`AnyImage::read`], [`Image::encode`]) and streams ([`AnyImage::read_from`],
//! [`Image::write_to`]) hold the same bytes.
//!
//! [`Image::encode`]: crate::image::Image::encode
//! [`Image::write_to`]: crate::image::Image::write_to

// Opening and saving come first in the documentation.
mod any;

mod save;

mod describe;
#[cfg(feature = "image")]
mod dynamic;
mod memory;
mod on_demand;
mod pixel_size;
mod samples;
mod save_regions;
mod saving;
#[cfg(test)]
mod tests;

/// A picture of the crate `image`, which appears in signatures, of the version that Horus uses; with the feature `image`.
#[cfg(feature = "image")]
pub use ::image::DynamicImage;
pub use any::AnyImage;
pub(crate) use any::each;
pub use horus_base::lengths::{PixelSize, length};
pub use pixel_size::{alpha, channel_names, pixel_size, pixel_size_of, with_alpha, with_pixel_size};
pub(crate) use save::{ScaleMessage, decode_scale, encode_scale};
pub use save_regions::{save_all_to, save_to};
pub(crate) use saving::describe as describe_file;
pub use saving::{Saving, sizes_of, tell_untold};

#[doc(hidden)]
pub use horus_files::guarded as decoded_quietly;
pub(crate) use horus_files::{Allocate, FileSpec};
pub use horus_files::{
    Alpha, Clipping, Compression, Depth, Downsampling, Encoder, FileInfo, FileTarget, FileTraffic, Format,
    Georeference, Metadata, OpenOptions, Orientation, Picture, PictureReader, PictureWriter, RegionSink, RegionSource,
    SaveOptions, Scale, Scaling, Sink, same_file,
};
use horus_files::{DecodeResources, IN_MEMORY, OpenedPicture, SPOOLED, StoredRange, StoredScale, cause, cause_of};

#[doc(hidden)]
pub use crate::host::workers::Workers;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::comm::agree::agree_on;
use crate::comm::{Communicator, guarded, share};
use crate::dtype::DType;
use crate::error::Result;
use crate::image::is_addressable;
use crate::session::Session;
use crate::shape::Shape;

/// Runs `work` on rank 0 and returns its result or error on every rank. `op` names the call, for
/// messages if ranks make different ones.
///
/// # Errors
/// If another rank failed, left, or makes another call.
pub fn on_root<T: Serialize + DeserializeOwned>(
    session: &Session,
    op: &str,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<Result<T, String>> {
    on_first(session.comm(), op, work)
}

/// [`on_root`] without a session.
///
/// # Errors
/// As [`on_root`].
pub fn on_first<T: Serialize + DeserializeOwned>(
    comm: &dyn Communicator,
    op: &str,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<Result<T, String>> {
    agree_on(comm, op)?;
    share(comm, 0, || guarded(comm, op, work)).map_err(|e| e.during(comm.rank(), op))
}

/// Size and type of an opened picture.
fn opened(shape: Shape, dtype: DType) -> Result<(Shape, DType), String> {
    if is_addressable(shape, dtype) {
        Ok((shape, dtype))
    } else {
        Err(format!("a picture of {shape} {dtype} pixels is too large"))
    }
}
