//! The partitions by name.

use crate::{Blocks, Invalid, Levels, curve, flat, hierarchy};

/// Methods to distribute blocks over devices. Except for [`Scheme::Cartesian`] and
/// [`Scheme::Rake`], parts of the last level differ by at most one block, and parts of higher
/// levels by at most the difference that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scheme {
    /// A grid of one rectangle per device. Land blocks are omitted afterwards, so loads differ.
    Cartesian,
    /// The Cartesian scheme; then tasks with more blocks than the average pass blocks to the next
    /// task, along rows and then along columns.
    Rake,
    /// Equal pieces of Hilbert's curve through the smallest square of 2^n x 2^n blocks that
    /// contains the grid.
    Curve,
    /// Equal pieces of the curve of the Parallel Ocean Program ("space-filling curve" in the
    /// thesis). It is made of the common factors 2, 3 and 5 of columns and rows of blocks (Hilbert,
    /// Peano, Cinco); its cells are rectangles.
    PopCurve,
    /// The thesis's division into slices by zigzag lines, level by level; the best of all orders
    /// and starts.
    ZigZag,
    /// The better of the zigzag division and a division by halves, level by level, both refined by
    /// moving blocks between pairs of parts (Fiduccia and Mattheyses 1982).
    Hierarchical,
}

impl Scheme {
    /// All schemes, in the order of the thesis.
    pub const ALL: [Scheme; 6] =
        [Scheme::Cartesian, Scheme::Rake, Scheme::Curve, Scheme::PopCurve, Scheme::ZigZag, Scheme::Hierarchical];

    /// The name of the scheme.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Cartesian => "cartesian",
            Scheme::Rake => "rake",
            Scheme::Curve => "curve",
            Scheme::PopCurve => "pop-curve",
            Scheme::ZigZag => "zigzag",
            Scheme::Hierarchical => "hierarchical",
        }
    }

    /// Computes the part of the last level for each block.
    ///
    /// ```
    /// # use horus_partition::{Blocks, Mask, Scheme, Seams};
    /// let mask = Mask::drawn(&["....", "#..#"])?;
    /// let blocks = Blocks::new(&mask, (1, 1), 1, Seams::default())?;
    /// let parts = Scheme::Hierarchical.partition(&blocks, &"2:1".parse()?)?;
    /// assert_eq!(parts, [0, 0, 1, 1, 0, 1]); // west and east
    /// # Ok::<(), horus_partition::Invalid>(())
    /// ```
    ///
    /// # Errors
    /// [`Invalid::TooManyParts`] if there are fewer blocks than parts.
    pub fn partition(self, blocks: &Blocks, levels: &Levels) -> Result<Vec<usize>, Invalid> {
        let parts = levels.parts();
        if parts > blocks.len() {
            return Err(Invalid::TooManyParts { levels: levels.to_string(), parts, blocks: blocks.len() });
        }
        Ok(match self {
            Scheme::Cartesian => flat::cartesian(blocks, parts),
            Scheme::Rake => flat::rake(blocks, parts),
            Scheme::Curve => flat::cut(&curve::hilbert(blocks), parts),
            Scheme::PopCurve => flat::cut(&curve::pop(blocks), parts),
            Scheme::ZigZag => hierarchy::zigzag(blocks, levels),
            Scheme::Hierarchical => hierarchy::hierarchical(blocks, levels),
        })
    }
}
