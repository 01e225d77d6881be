//! Sea blocks and the points that they exchange.

use std::ops::Range;

use crate::{Invalid, Mask};

/// Neighbours beyond the edges of the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seams {
    /// The column beyond the last is the first.
    pub periodic: bool,
    /// The row beyond the north (row 0) is row 0, reversed. A tripolar grid has its northern poles
    /// on land, at both ends and in the middle of row 0; the sea between them is folded onto itself
    /// (thesis, section 4.1.4).
    pub tripole: bool,
}

/// The exchange of a block with another block in a time step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The other block.
    pub block: usize,
    /// Points of this block's halo that the other owns.
    pub received: u64,
    /// Points of the other's halo that this block owns: the same number, unless blocks at an edge
    /// are thinner than the halo.
    pub sent: u64,
}

/// The sea blocks of a mask as a graph, numbered row by row from the north-west. In every time step
/// each block receives its halo, the points around it `halo` deep, from the blocks that own them.
/// Halos are sent per block, as in the Parallel Ocean Program: a point that two blocks of one part
/// receive is counted twice. A land block neither receives nor sends. A block with any sea is
/// computed and sent whole.
#[derive(Clone, Debug)]
pub struct Blocks {
    width: usize,
    height: usize,
    block: (usize, usize),
    columns: usize,
    rows: usize,
    halo: usize,
    seams: Seams,
    /// Column and row, in blocks.
    places: Vec<(usize, usize)>,
    /// The number of the block at each position, row by row.
    at: Vec<Option<usize>>,
    /// Offset of the first neighbour of each block.
    offsets: Vec<usize>,
    neighbours: Vec<Neighbour>,
}

impl Blocks {
    /// Divides a mask into blocks of `block` points (columns, rows). Blocks at the eastern and
    /// southern edges may be smaller.
    ///
    /// ```
    /// # use horus_partition::{Blocks, Mask, Seams};
    /// let mask = Mask::new(120, 120, vec![true; 120 * 120])?;
    /// let blocks = Blocks::new(&mask, (60, 60), 2, Seams::default())?;
    /// assert_eq!(blocks.len(), 4);
    /// let received: Vec<u64> = blocks.neighbours(0).iter().map(|n| n.received).collect();
    /// assert_eq!(received, [60 * 2, 60 * 2, 2 * 2]); // east, south, south-east
    /// # Ok::<(), horus_partition::Invalid>(())
    /// ```
    ///
    /// # Errors
    /// [`Invalid::Block`] if a size of the block is 0, [`Invalid::NoSea`] if the mask is all land.
    pub fn new(mask: &Mask, block: (usize, usize), halo: usize, seams: Seams) -> Result<Blocks, Invalid> {
        if block.0 == 0 || block.1 == 0 {
            return Err(Invalid::Block { width: block.0, height: block.1 });
        }
        let (width, height) = (mask.width(), mask.height());
        let (columns, rows) = (width.div_ceil(block.0), height.div_ceil(block.1));
        let mut wet = vec![false; columns * rows];
        for y in 0..height {
            for x in (0..width).filter(|x| mask.is_sea(*x, y)) {
                wet[y / block.1 * columns + x / block.0] = true;
            }
        }
        let places: Vec<(usize, usize)> =
            (0..columns * rows).filter(|i| wet[*i]).map(|i| (i % columns, i / columns)).collect();
        if places.is_empty() {
            return Err(Invalid::NoSea { points: width * height });
        }
        let mut at = vec![None; columns * rows];
        for (i, (column, row)) in places.iter().enumerate() {
            at[row * columns + column] = Some(i);
        }
        let (offsets, neighbours) = (vec![0; places.len() + 1], Vec::new());
        let mut all = Blocks { width, height, block, columns, rows, halo, seams, places, at, offsets, neighbours };
        all.connect();
        Ok(all)
    }

    /// Computes the neighbours.
    fn connect(&mut self) {
        let mut both: Vec<Vec<Neighbour>> = vec![Vec::new(); self.len()];
        for i in 0..self.len() {
            for (block, points) in self.around(i) {
                both[i].push(Neighbour { block, received: points, sent: 0 });
                both[block].push(Neighbour { block: i, received: 0, sent: points });
            }
        }
        for (i, mut of) in both.into_iter().enumerate() {
            of.sort_by_key(|n| n.block);
            for next in of {
                match self.neighbours[self.offsets[i]..].last_mut() {
                    Some(last) if last.block == next.block => {
                        last.received += next.received;
                        last.sent += next.sent;
                    }
                    _ => self.neighbours.push(next),
                }
            }
            self.offsets[i + 1] = self.neighbours.len();
        }
    }

    /// The owners of the halo of block `i`, with numbers of points. An owner may occur several
    /// times.
    fn around(&self, i: usize) -> Vec<(usize, u64)> {
        let (column, row) = self.places[i];
        let edges = |index: usize, size: usize, length: usize| {
            let (from, to) = (index * size, ((index + 1) * size).min(length));
            let (from, to, halo) = (from as i64, to as i64, self.halo as i64);
            [from - halo..from, from..to, to..to + halo]
        };
        let (across, down) = (edges(column, self.block.0, self.width), edges(row, self.block.1, self.height));
        let mut found = Vec::new();
        for (v, rows) in down.into_iter().enumerate() {
            for (r, folded, high) in self.rows_at(rows) {
                for (_, columns) in across.iter().enumerate().filter(|(u, _)| (*u, v) != (1, 1)) {
                    for (c, wide) in self.columns_at(columns.clone(), folded) {
                        if let Some(owner) = self.at[r * self.columns + c].filter(|owner| *owner != i) {
                            found.push((owner, wide * high));
                        }
                    }
                }
            }
        }
        found
    }

    /// The columns of blocks that own columns of points, with the number of points; counted from
    /// the east if the row is `folded`.
    fn columns_at(&self, points: Range<i64>, folded: bool) -> Vec<(usize, u64)> {
        let width = self.width as i64;
        let inside = points.filter_map(|x| match x {
            x if (0..width).contains(&x) => Some(x),
            x if self.seams.periodic => Some(x.rem_euclid(width)),
            _ => None,
        });
        runs(inside.map(|x| (if folded { width - 1 - x } else { x } as usize) / self.block.0))
    }

    /// The rows of blocks that own rows of points: row, `true` if folded, number of points.
    fn rows_at(&self, points: Range<i64>) -> Vec<(usize, bool, u64)> {
        let height = self.height as i64;
        let owner = |y: i64| match y {
            y if (0..height).contains(&y) => Some((y, false)),
            y if y < 0 && self.seams.tripole && -1 - y < height => Some((-1 - y, true)),
            _ => None,
        };
        let inside = points.filter_map(owner).map(|(y, folded)| (y as usize / self.block.1, folded));
        runs(inside).into_iter().map(|((r, folded), count)| (r, folded, count)).collect()
    }

    /// Number of blocks with sea.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Number of blocks of the grid, including land.
    pub fn in_all(&self) -> usize {
        self.at.len()
    }

    /// Columns of blocks.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows of blocks.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns and rows of points in a block.
    pub fn block(&self) -> (usize, usize) {
        self.block
    }

    /// Depth of the halo in points.
    pub fn halo(&self) -> usize {
        self.halo
    }

    /// The neighbours beyond the edges.
    pub fn seams(&self) -> Seams {
        self.seams
    }

    /// Column and row of block `i`, in blocks.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn place(&self, i: usize) -> (usize, usize) {
        self.places[i]
    }

    /// The block at a column and row of blocks, if it has sea.
    ///
    /// # Panics
    /// If there is no such position.
    pub fn at(&self, column: usize, row: usize) -> Option<usize> {
        assert!(column < self.columns, "column {column} of {}", self.columns);
        self.at[row * self.columns + column]
    }

    /// The part at each position of the grid of blocks, row by row; `None` for land blocks. With
    /// the parts of the last level as ranks, these are the ranks of `horus::prelude::BlockMap`.
    ///
    /// ```
    /// # use horus_partition::{Blocks, Mask, Scheme, Seams};
    /// let mask = Mask::drawn(&["....", "#..#"])?;
    /// let blocks = Blocks::new(&mask, (1, 1), 1, Seams::default())?;
    /// let parts = Scheme::Hierarchical.partition(&blocks, &"2".parse()?)?;
    /// assert_eq!(blocks.placed(&parts)[4..], [None, Some(0), Some(1), None]);
    /// # Ok::<(), horus_partition::Invalid>(())
    /// ```
    ///
    /// # Panics
    /// If the number of parts is not the number of blocks.
    pub fn placed(&self, parts: &[usize]) -> Vec<Option<usize>> {
        assert_eq!(parts.len(), self.len(), "a part for each block");
        self.at.iter().map(|block| block.map(|i| parts[i])).collect()
    }

    /// The blocks that exchange points with block `i`, in order.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn neighbours(&self, i: usize) -> &[Neighbour] {
        &self.neighbours[self.offsets[i]..self.offsets[i + 1]]
    }
}

/// Groups consecutive equal items, with their numbers.
fn runs<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<(T, u64)> {
    let mut all: Vec<(T, u64)> = Vec::new();
    for item in items {
        match all.last_mut() {
            Some((last, count)) if *last == item => *count += 1,
            _ => all.push((item, 1)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sea(width: usize, height: usize) -> Mask {
        Mask::new(width, height, vec![true; width * height]).unwrap()
    }

    /// Total points that block `i` receives.
    fn received(blocks: &Blocks, i: usize) -> u64 {
        blocks.neighbours(i).iter().map(|n| n.received).sum()
    }

    /// Section 4.1.1 of the thesis: 4 x (60 x 2) + 4 x 4 = 496 for a block of 60 x 60 and a halo of 2.
    #[test]
    fn a_block_receives_what_the_thesis_says() {
        let blocks = Blocks::new(&sea(180, 180), (60, 60), 2, Seams::default()).unwrap();
        assert_eq!(received(&blocks, 4), 496);
        assert_eq!(blocks.neighbours(4).len(), 8);
        assert!((0..9).all(|i| blocks.neighbours(i).iter().all(|n| n.received == n.sent)));
    }

    #[test]
    fn land_is_left_out() {
        let mask = Mask::drawn(&["..####", "..####", "..##..", "..##.."]).unwrap();
        let blocks = Blocks::new(&mask, (2, 2), 1, Seams::default()).unwrap();
        assert_eq!((blocks.len(), blocks.in_all()), (3, 6));
        assert_eq!([0, 1, 2].map(|i| blocks.place(i)), [(0, 0), (0, 1), (2, 1)]);
        assert_eq!(blocks.neighbours(0), [Neighbour { block: 1, received: 2, sent: 2 }]);
        assert_eq!(blocks.neighbours(2), []);
        assert_eq!((blocks.at(2, 0), blocks.at(2, 1)), (None, Some(2)));
        let round = Blocks::new(&mask, (2, 2), 1, Seams { periodic: true, tripole: false }).unwrap();
        let east: Vec<(usize, u64)> = round.neighbours(2).iter().map(|n| (n.block, n.received)).collect();
        assert_eq!(east, [(0, 1), (1, 2)]);
    }

    #[test]
    fn the_northern_row_is_folded() {
        let blocks = Blocks::new(&sea(60, 20), (10, 10), 2, Seams { periodic: true, tripole: true }).unwrap();
        // The second block of the northern row is opposite the second from the east; the other two
        // contribute one corner each.
        let opposite: Vec<(usize, u64)> =
            blocks.neighbours(1).iter().filter(|n| (3..6).contains(&n.block)).map(|n| (n.block, n.received)).collect();
        assert_eq!(opposite, [(3, 4), (4, 20), (5, 4)]);
        assert_eq!(received(&blocks, 1), 4 * 20 + 4 * 4);
        // The two in the middle are neighbours across the fold and side by side.
        let middle = blocks.neighbours(2).iter().find(|n| n.block == 3).unwrap();
        assert_eq!(middle.received, 20 + 20);
    }

    #[test]
    fn edges_thinner_than_the_halo_send_what_they_have() {
        let blocks = Blocks::new(&sea(21, 10), (10, 10), 2, Seams::default()).unwrap();
        assert_eq!(blocks.neighbours(1)[1], Neighbour { block: 2, received: 10, sent: 20 });
        assert_eq!((received(&blocks, 0), received(&blocks, 1), received(&blocks, 2)), (20, 30, 20));
    }

    #[test]
    fn blocks_without_extent_and_masks_without_sea_are_refused() {
        let one = Seams::default();
        assert_eq!(Blocks::new(&sea(4, 4), (0, 2), 1, one).unwrap_err(), Invalid::Block { width: 0, height: 2 });
        let land = Mask::new(2, 2, vec![false; 4]).unwrap();
        assert_eq!(Blocks::new(&land, (1, 1), 1, one).unwrap_err(), Invalid::NoSea { points: 4 });
    }
}
