//! Portable Network Graphics.

pub(crate) mod chunks;
mod deflate;
pub(crate) mod write;

use crate::files::format::{Facts, PictureFormat};
use horus_base::dtype::DType;

/// PNG files.
#[derive(Debug)]
pub(super) struct Png;

static FACTS: Facts = Facts {
    name: "png",
    types: &[DType::U8, DType::U16],
    channels: &[1, 2, 3, 4],
    straight_alpha: &[2, 4],
    ..Facts::PLAIN
};

impl PictureFormat for Png {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }
}
