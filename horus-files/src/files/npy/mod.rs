//! NumPy arrays.

pub(crate) mod read;
pub(crate) mod write;
