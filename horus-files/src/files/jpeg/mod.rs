//! JPEG.

pub(crate) mod general;
pub(crate) mod write;

use crate::files::format::{Choice, Facts, PictureFormat};
use horus_base::dtype::DType;

/// JPEG files.
#[derive(Debug)]
pub(super) struct Jpeg;

static FACTS: Facts = Facts {
    name: "jpg",
    suffixes: &["jpeg"],
    types: &[DType::U8],
    channels: &[1, 3],
    side: u16::MAX as usize,
    lossy: true,
    takes: &[Choice::Quality],
    ..Facts::PLAIN
};

impl PictureFormat for Jpeg {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }
}
