//! Volume of a partition at each level.

use crate::{Blocks, Levels};

/// The exchanges between the parts of one level in a time step, in halo points. A part receives the
/// points that its blocks receive from blocks of other parts, including points that cross a higher
/// level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelVolume {
    /// Number of parts of the level.
    pub parts: usize,
    /// Points that all parts receive together.
    pub volume: u64,
    /// The fewest points that a part receives.
    pub least: u64,
    /// The most points that a part receives.
    pub most: u64,
    /// The fewest blocks of a part.
    pub fewest_blocks: usize,
    /// The most blocks of a part.
    pub most_blocks: usize,
}

impl LevelVolume {
    /// Mean number of points that a part receives.
    pub fn mean(&self) -> f64 {
        self.volume as f64 / self.parts as f64
    }
}

/// Counts the volume of a partition at every level, the highest first. `parts` is the part of the
/// last level of each block.
///
/// ```
/// # use horus_partition::{Blocks, Levels, Mask, Seams, volumes};
/// let mask = Mask::new(4, 1, vec![true; 4])?;
/// let blocks = Blocks::new(&mask, (1, 1), 1, Seams::default())?;
/// let levels: Levels = "2:2".parse()?;
/// let of = volumes(&blocks, &levels, &[0, 1, 2, 3]);
/// assert_eq!([of[0].volume, of[1].volume], [2, 6]); // nodes: one pair of neighbours, both ways; devices: three
/// assert_eq!([of[0].most, of[1].most], [1, 2]);
/// # Ok::<(), horus_partition::Invalid>(())
/// ```
///
/// # Panics
/// If the number of parts is not the number of blocks, or a number is not a part of the last level.
pub fn volumes(blocks: &Blocks, levels: &Levels, parts: &[usize]) -> Vec<LevelVolume> {
    assert_eq!(parts.len(), blocks.len(), "a part for each block");
    (0..levels.depth())
        .map(|level| {
            let group = levels.group(level);
            let mut points = vec![0; levels.parts_at(level)];
            let mut sizes = vec![0; points.len()];
            for i in 0..blocks.len() {
                let part = parts[i] / group;
                sizes[part] += 1;
                let others = blocks.neighbours(i).iter().filter(|n| parts[n.block] / group != part);
                points[part] += others.map(|n| n.received).sum::<u64>();
            }
            LevelVolume {
                parts: points.len(),
                volume: points.iter().sum(),
                least: points.iter().copied().min().unwrap_or(0),
                most: points.iter().copied().max().unwrap_or(0),
                fewest_blocks: sizes.iter().copied().min().unwrap_or(0),
                most_blocks: sizes.iter().copied().max().unwrap_or(0),
            }
        })
        .collect()
}
