//! Pictures decoded and encoded, and files replaced, by the public interface.

mod decode;
mod encode;
mod notices;
mod npy;
mod stacks;
mod target;

use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_files::{OpenOptions, Picture};
use horus_host::buffer::HostBuffer;

/// The contents of a file.
struct Decoded {
    shape: Shape,
    dtype: DType,
    pixels: HostBuffer,
}

/// Decodes a file, or yields the error.
fn read(bytes: &[u8], options: &OpenOptions) -> Result<Decoded, String> {
    let picture = Picture::read(bytes, options).map_err(|e| e.to_string())?;
    Ok(Decoded { shape: picture.shape(), dtype: picture.dtype(), pixels: picture.into_pixels() })
}
