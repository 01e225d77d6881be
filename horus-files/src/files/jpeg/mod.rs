//! JPEG files.

pub(crate) mod general;
pub(crate) mod write;
