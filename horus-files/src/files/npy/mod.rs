//! NumPy arrays.

pub(crate) mod read;
pub(crate) mod write;

use crate::files::format::{Facts, PictureFormat};

/// Files of NumPy arrays.
#[derive(Debug)]
pub(super) struct Npy;

static FACTS: Facts = Facts { name: "npy", side: usize::MAX, levels: true, by_regions: true, ..Facts::PLAIN };

impl PictureFormat for Npy {
    fn facts(&self) -> &'static Facts {
        &FACTS
    }
}
