//! PNG files.

pub(crate) mod chunks;
mod deflate;
pub(crate) mod write;
