//! Regions: a program evaluated for rectangles of its results.
//!
//! [`required_regions`] propagates regions of results backwards through a recorded program: a filter needs
//! some more rows and columns, a rotation a footprint, a sum everything. [`restrict`] rewrites the program to
//! the same operations on smaller images. The arithmetic of every required pixel, and so its bits, are those
//! of the whole image. Later stages (fusion, plans, devices, ranks) know nothing of regions. All of this is a
//! pure function of the program.
//!
//! Design: `docs/design/regions.md`.

mod computed;
mod divide;
mod narrow;
mod reads;
mod restrict;
mod slab;
mod stack;

pub use crate::ops::footprint::Rect;
pub use divide::Division;
pub use narrow::{deferrable_roots, narrow};
pub use reads::required_regions;
pub use restrict::{CropRule, InPlace, RegionSupply, RestrictedGraph, restrict};
pub use slab::slab;
pub use stack::stack;
