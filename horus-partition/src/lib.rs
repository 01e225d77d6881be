//! Masked grids in blocks, distributed over a hierarchy of machines.
//!
//! An ocean model computes the sea points of a grid. The grid is divided into equal blocks and land
//! blocks are omitted. The other blocks are assigned to *devices*, grouped in *nodes*, grouped in
//! *clusters*. In every time step each block receives the points around it, its *halo*, from other
//! blocks. The *volume* of a level is the number of points that cross between its devices, nodes or
//! clusters. This crate computes partitions with equal load and small volume, and counts the volume
//! of any partition (B. van Werkhoven's thesis on GPUs in scientific supercomputing, section 4.1).
//! `docs/design/partition.md` in the repository describes the methods.
//!
//! ```
//! use horus_partition::{Blocks, Levels, Mask, Scheme, Seams, volumes};
//!
//! // 3600 x 2400 points in continents and seas, blocks of 60 x 60 with a halo of 2 points, east and west connected.
//! let mask = Mask::synthetic(3600, 2400, 1)?;
//! let blocks = Blocks::new(&mask, (60, 60), 2, Seams { periodic: true, tripole: false })?;
//! let levels: Levels = "2:16:8".parse()?; // 2 clusters of 16 nodes of 8 devices
//! let [curve, ours] = [Scheme::Curve, Scheme::Hierarchical].map(|s| s.partition(&blocks, &levels));
//! let [curve, ours] = [curve?, ours?].map(|parts| volumes(&blocks, &levels, &parts));
//! assert!(ours[0].volume < curve[0].volume); // between the clusters
//! # Ok::<(), horus_partition::Invalid>(())
//! ```
//!
//! All functions are pure: the same arguments give the same partition on every machine.
//!
//! | module | content |
//! | --- | --- |
//! | [`mask`] | sea points of a grid; a synthetic planet |
//! | [`blocks`] | blocks with sea and their exchanges, including seams, as a graph |
//! | [`levels`] | the hierarchy of parts |
//! | [`scheme`] | the partitions by name: Cartesian, rake, curves, zigzag (the thesis), hierarchical |
//! | [`volume`](mod@volume) | volume of a partition at each level |
//! | [`paint`](mod@paint) | a partition as a picture |

pub mod blocks;
mod curve;
mod flat;
mod hierarchy;
pub mod levels;
pub mod mask;
pub mod paint;
mod refine;
pub mod scheme;
mod starts;
mod subset;
pub mod volume;
mod zigzag;

pub use blocks::{Blocks, Seams};
pub use levels::Levels;
pub use mask::Mask;
pub use paint::paint;
pub use scheme::Scheme;
pub use volume::{LevelVolume, volumes};

/// Reasons why a partition is impossible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// An empty mask, or one whose number of points differs from its size.
    #[error("a mask of {width} x {height} points cannot be made of {points} points")]
    Size {
        /// Points in a row.
        width: usize,
        /// Rows.
        height: usize,
        /// Points given.
        points: usize,
    },
    /// A block without points.
    #[error("a block of {width} x {height} points is empty")]
    Block {
        /// Points in a row of a block.
        width: usize,
        /// Rows of a block.
        height: usize,
    },
    /// A mask of land only.
    #[error("the mask has no sea: all of its {points} points are 0, and nothing is to be computed")]
    NoSea {
        /// Points of the mask.
        points: usize,
    },
    /// Levels that are not positive numbers separated by colons.
    #[error("the levels `{text}` are not as in 2:16:8: {cause}")]
    Levels {
        /// The given text.
        text: String,
        /// The cause.
        cause: String,
    },
    /// More parts than blocks.
    #[error("{levels} are {parts} parts, but only {blocks} blocks have sea: make blocks smaller or parts fewer")]
    TooManyParts {
        /// The levels.
        levels: String,
        /// Parts of the last level.
        parts: usize,
        /// Blocks with sea.
        blocks: usize,
    },
}
