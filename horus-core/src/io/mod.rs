//! Reading and writing picture files.
//!
//! Rank 0 reads and writes files, of large ones each rank its rows if it can; all ranks return the
//! same result or the same error.
//! [`horus_files`] implements the formats. The design is in `docs/design/saving.md`. Decoded pixels
//! keep the type of the file. Files larger than memory are read and written region by region, by
//! [`PictureReader`] and [`PictureWriter`], on any number of threads. [`AnyImage::describe`]
//! returns the properties of a file; [`OpenOptions::region`] opens a region. A [`RegionSource`] or
//! a [`RegionSink`] connects other stores of pixels.
//!
//! Pictures in memory ([`AnyImage::read`], [`Image::encode`]) and streams ([`AnyImage::read_from`],
//! [`Image::write_to`]) have the same bytes as files.
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

/// The picture type of the crate `image`, in the version that Horus uses, because it appears in
/// signatures. Requires the feature `image`.
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
    Alpha, ByteRanges, Clipping, Compression, Depth, Downsampling, Encoder, FileInfo, FileTarget, FileTraffic, Format,
    Georeference, Metadata, OpenOptions, Orientation, Picture, PictureReader, PictureWriter, RegionSink, RegionSource,
    SaveOptions, Scale, Scaling, Sink, SinkPlace, SinkRole, same_file,
};
use horus_files::{DecodeResources, IN_MEMORY, OpenedPicture, SPOOLED, StoredRange, StoredScale, cause, cause_of};

#[doc(hidden)]
pub use crate::host::workers::Workers;

pub use crate::session::{on_first, on_root};

use crate::dtype::DType;
use crate::image::is_addressable;
use crate::shape::Shape;

/// Size and type of an opened picture.
fn opened(shape: Shape, dtype: DType) -> Result<(Shape, DType), String> {
    if is_addressable(shape, dtype) {
        Ok((shape, dtype))
    } else {
        Err(format!("a picture of {shape} {dtype} pixels is too large"))
    }
}
