//! Regions: a program evaluated for rectangles of its results.
//!
//! A region of a result needs regions of its inputs: a filter some more rows and columns, a
//! rotation a footprint, a sum everything. [`required_regions`] propagates them backwards through a recorded
//! program. [`restrict`] rewrites the program to the same operations on smaller images: sources are
//! cut, affine maps moved and coordinates offset. Every needed pixel is computed from the same
//! operands by the same arithmetic, so its bits are those of the whole. Later stages (fusion,
//! plans, devices, ranks) know nothing of regions.
//!
//! A restricted image has *cut edges*, beyond which the whole image continues. Border modes apply
//! there too, and pixels computed from them are wrong. But regions reach as far as the needed
//! pixels do, so no needed pixel depends on them. At an edge of the whole image, border modes work
//! as usual: a region whose pixels read beyond it starts at the edge, and contains all mirrored
//! pixels.
//!
//! All of this is a pure function of the program.
//!
//! Affine maps move by whole pixels (in fixed point, so fractions are unchanged). A rectangle read
//! with a periodic border is as long as the image. Nodes that read each other pixel by pixel share
//! one rectangle, unless that is twice what one of them needs. The first optimizer pass also
//! narrows programs with whole results, so that a crop of an image computes only its surroundings.
//! A value that the user holds is not computed whole for a crop if recomputing the part later is
//! cheap relative to it (`region::spared`).

mod computed;
mod divide;
mod narrow;
mod reads;
mod restrict;
mod slab;

pub use crate::ops::footprint::Rect;
pub use divide::Division;
pub use narrow::{deferrable_roots, narrow};
pub use reads::required_regions;
pub use restrict::{CropRule, InPlace, RegionSupply, RestrictedGraph, restrict};
pub use slab::slab;
