//! Blocks of planes, the ranks that compute them, and the pixels that ranks exchange for them.
//!
//! A map of blocks gives each block of a plane to a rank, or to none (land). A rank joins adjacent blocks to few
//! *rectangles*. Strips are a map with one block for each rank. All ranks have the same lists of the rectangles that
//! each rank has and needs, so each derives its messages from them: one for each other rank. The design is in
//! `docs/design/loops.md`.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};
use crate::host::StridedCopy;
use crate::ir::graph::{Graph, NodeId, Op};
use crate::ops::edge::WarpEdge;
use crate::ops::footprint::InputRead;
use crate::ops::geometric::{Affine, Interpolation};
use crate::ops::neighbourhood::Reach;
use crate::region::Rect;
use crate::shape::{Axis, Border, Shape, Window};

/// The rank that computes each block of a plane; see [`Session::place`](crate::session::Session::place).
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// // 4 x 6 pixels in blocks of 2 x 2, of which one is land: three blocks for rank 0, two for rank 1.
/// let ranks = [Some(0), Some(0), None, Some(0), Some(1), Some(1)];
/// let map = BlockMap::new((4, 6), (2, 2), ranks)?;
/// assert_eq!(map.to_string(), "2x3 blocks of 2x2, 1 left out, on 2 ranks");
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockMap {
    plane: (usize, usize),
    block: (usize, usize),
    ranks: Vec<Option<usize>>,
    steps: usize,
    age: Option<usize>,
}

impl BlockMap {
    /// Divides planes of `plane` rows and columns into blocks of `block` rows and columns; blocks at the far edges are
    /// smaller. `ranks` gives the rank of each block, row by row. A block with `None` (land) need not be computed.
    /// `horus-partition` makes such maps from masks. A rank with several of its parts gets as many times the work.
    ///
    /// # Errors
    /// [`Error::Config`] if an axis has length 0, there is not one entry for each block, or no block has a rank.
    pub fn new(
        plane: (usize, usize),
        block: (usize, usize),
        ranks: impl IntoIterator<Item = Option<usize>>,
    ) -> Result<BlockMap> {
        let map = BlockMap { plane, block, ranks: ranks.into_iter().collect(), steps: 1, age: None };
        let wrong = |cause: String| Err(Error::Config(format!("a map of blocks: {cause}")));
        if [plane.0, plane.1, block.0, block.1].contains(&0) {
            let ((h, w), (rows, columns)) = (plane, block);
            return wrong(format!("planes of {h}x{w} pixels have no blocks of {rows}x{columns}"));
        }
        let (down, across) = map.counts();
        if map.ranks.len() != down * across {
            return wrong(format!("{} ranks for {down}x{across} blocks", map.ranks.len()));
        }
        if map.ranks.iter().all(Option::is_none) {
            return wrong("no block has a rank, so nothing would be computed".into());
        }
        Ok(map)
    }

    /// Makes ranks exchange pixels only once in `steps` iterations (default: 1). Messages are fewer and longer, and the
    /// pixels near edges are computed on more than one rank. This is for slow networks.
    ///
    /// # Errors
    /// [`Error::Config`] if `steps` is 0.
    pub fn exchanging_every(self, steps: usize) -> Result<BlockMap> {
        if steps == 0 {
            return Err(Error::Config("a map of blocks: pixels cannot be exchanged every 0 steps".into()));
        }
        Ok(BlockMap { steps, ..self })
    }

    /// Lets loops continue without waiting for messages (chaotic relaxation). Each iteration uses the pixels that other
    /// ranks sent `age` exchanges before; a rank waits only for messages that take longer. A rank computes its blocks
    /// one after the other, in place, row by row, and does not join them. Between exchanges
    /// ([`BlockMap::exchanging_every`]) the pixels of other ranks stay as they are.
    ///
    /// **Results have other bits** than a loop in order. The bits depend on the map, but not on the network or on the
    /// order in which messages arrive: they are the same in each run. A loop is refused unless its step shows that it
    /// converges from any start. A filter does if its absolute taps sum to less than 1, or to 1 with a constant border.
    /// When the change is measured, or the state is watched, all ranks synchronise and continue with new pixels. Values
    /// that are not computed in blocks are computed in order.
    ///
    /// The variants of Venkatasubramanian (MSc thesis, chapter 5) with a factor `k`, with one block per rank: *Async 0*
    /// is `relaxed(1)`, *Async 1* is `relaxed(k)`, *Async 2* is `relaxed(0)` that exchanges every `k` iterations.
    /// *Async 3* is *Async 1* with several blocks per rank.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// // Two blocks, of which the second one sees what the first one has made in the same step.
    /// session.place(BlockMap::new((16, 16), (8, 16), [Some(0); 2])?.relaxed(4))?;
    /// let cold = Image::<f64>::zeros(&session, (16, 16));
    /// let warmed = session.iterate(cold, 500, |u| u.with_border(Border::Constant(1.0)).gauss(1.0) * 0.9 + 0.1)?;
    /// assert!(warmed.state.absdiff(1.0).max_value().get()? < 1e-9);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[must_use]
    pub fn relaxed(self, age: usize) -> BlockMap {
        BlockMap { age: Some(age), ..self }
    }

    /// Rows and columns of blocks.
    fn counts(&self) -> (usize, usize) {
        (self.plane.0.div_ceil(self.block.0), self.plane.1.div_ceil(self.block.1))
    }

    /// Iterations between exchanges.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    /// Age of other ranks' pixels in exchanges, if loops are relaxed.
    pub(crate) fn age(&self) -> Option<usize> {
        self.age
    }

    /// Rows and columns of a block.
    pub(crate) fn block(&self) -> (usize, usize) {
        self.block
    }

    /// The rank of each block, row by row.
    pub(crate) fn ranks(&self) -> &[Option<usize>] {
        &self.ranks
    }

    /// Indices of the blocks that a rectangle contains.
    pub(crate) fn blocks_in(&self, Rect { rows, columns }: Rect) -> impl Iterator<Item = usize> {
        let line = |w: Window, block: usize| w.start.unsigned_abs() / block..w.end.unsigned_abs().div_ceil(block);
        let (columns, across) = (line(columns, self.block.1), self.counts().1);
        line(rows, self.block.0).flat_map(move |y| columns.clone().map(move |x| y * across + x))
    }

    /// Largest rank.
    pub(crate) fn last_rank(&self) -> usize {
        self.ranks.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Rows and columns of the planes.
    pub(crate) fn plane(&self) -> (usize, usize) {
        self.plane
    }

    /// Returns `true` for an image with the rows and columns of the planes.
    pub(crate) fn divides(&self, shape: Shape) -> bool {
        (shape.height, shape.width) == self.plane
    }

    /// Map of the blocks that have no rank, distributed evenly over `ranks` ranks; `None` if there is no such block.
    pub(crate) fn left_out(&self, ranks: usize) -> Option<BlockMap> {
        let mut next = 0;
        let turned = self.ranks.iter().map(|rank| {
            let out = rank.is_none().then_some(next % ranks);
            next += usize::from(out.is_some());
            out
        });
        let ranks = turned.collect();
        (next > 0).then_some(BlockMap { ranks, steps: 1, age: None, ..*self })
    }

    /// Rectangles of all ranks, each with its rank: runs of adjacent blocks of a rank, joined with equal runs below.
    /// For relaxed loops these are the blocks.
    pub(crate) fn rectangles(&self) -> Vec<(usize, Rect)> {
        let ((down, across), (rows, columns)) = (self.counts(), self.block);
        let line = |from: usize, to: usize, extent: usize, n: usize| {
            Window::new((from * extent).cast_signed(), (to * extent).min(n).cast_signed())
        };
        let joined = self.age.is_none();
        let mut all: Vec<(usize, Rect)> = Vec::new();
        for y in 0..down {
            let row = &self.ranks[y * across..][..across];
            let window = line(y, y + 1, rows, self.plane.0);
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b && joined) {
                let columns = line(x, x + run.len(), columns, self.plane.1);
                x += run.len();
                let Some(rank) = run[0] else { continue };
                let above = |(r, rect): &&mut (usize, Rect)| {
                    joined && *r == rank && rect.columns == columns && rect.rows.end == window.start
                };
                match all.iter_mut().find(above) {
                    Some((_, rect)) => rect.rows.end = window.end,
                    None => all.push((rank, Rect { rows: window, columns })),
                }
            }
        }
        all
    }
}

impl fmt::Display for BlockMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((down, across), (rows, columns)) = (self.counts(), self.block);
        let out = self.ranks.iter().filter(|rank| rank.is_none()).count();
        let ranks = self.last_rank() + 1;
        write!(f, "{down}x{across} blocks of {rows}x{columns}, {out} left out, on {ranks} ranks")?;
        if self.steps > 1 {
            write!(f, ", exchanging every {} steps", self.steps)?;
        }
        self.age.map_or(Ok(()), |age| write!(f, ", relaxed by {age} exchanges"))
    }
}

/// Returns `true`, for rows and for columns, if the program commutes with a cyclic shift of all its images along that
/// axis: filters wrap around, and no operation uses coordinates.
pub(crate) fn turns(graph: &Graph<Op>, plane: (usize, usize)) -> [bool; 2] {
    let around = |reach: Reach, border: Border| {
        let wraps = border == Border::Wrap;
        [wraps || reach.up + reach.down == 0, wraps || reach.left + reach.right == 0]
    };
    let mut all = [true; 2];
    for node in &graph.nodes {
        let turns = match &node.op {
            Op::Source(_) | Op::Fill(_) | Op::Pixel(..) | Op::Convert(_) | Op::Planes(_) => [true; 2],
            Op::Index(axis) => [*axis != Axis::Rows, *axis != Axis::Columns],
            Op::Correlate(filter, border) => around(filter.reach(), *border),
            Op::Separable { row, column, border } => around(row.reach().then(column.reach()), *border),
            Op::OrderFilter(filter, border) => around(filter.reach(), *border),
            Op::Flip(flip) => [!flip.rows(), !flip.columns()],
            Op::Warp(map, how, edge) => {
                let from = graph.node(node.inputs[0]).shape;
                let Affine { xx, xy, x0, yx, yy, y0 } = *map;
                let still = Affine { x0: 0, y0: 0, ..*map } == Affine::IDENTITY;
                let ring =
                    |at: i64| *edge == WarpEdge::Border(Border::Wrap) || (at == 0 && *how == Interpolation::Nearest);
                // A translation, or one repeated row or column.
                let rows = still && ring(y0) && from.height == node.shape.height;
                let columns = still && ring(x0) && from.width == node.shape.width;
                let (row, column) = (from.height == 1 && yy == 0, from.width == 1 && xx == 0);
                let apart = xy == 0 && yx == 0;
                [rows || (row && apart), columns || (column && apart)]
            }
            Op::Whole(operation) => {
                // Tests a pixel in the second row and column: an operation that reads all pixels before it reads more
                // than one there.
                let [y, x] = [node.shape.height, node.shape.width].map(|n| n.min(2).saturating_sub(1));
                let pixel = Rect::at(y, x, 1, 1);
                let apart = |(k, input): (usize, &NodeId)| {
                    operation.reads(k, pixel, graph.node(*input).shape) == InputRead::inside(pixel)
                };
                [node.inputs.iter().enumerate().all(apart); 2]
            }
        };
        let Shape { height, width, .. } = node.shape;
        let fits = [height == plane.0 || height == 1, width == plane.1 || width == 1];
        (0..2).for_each(|axis| all[axis] &= turns[axis] && fits[axis]);
    }
    all
}

/// A rectangle of an image, in a buffer of the rank that has it or needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RankRect {
    /// Rank; `None` for an image that all ranks have.
    pub(crate) rank: Option<usize>,
    pub(crate) image: usize,
    pub(crate) rect: Rect,
    pub(crate) buffer: usize,
    /// Coordinates in the buffer minus coordinates in the image: the cyclic shift.
    pub(crate) turn: [isize; 2],
}

impl RankRect {
    /// Rectangles of an image of shape `of` that a program in shifted coordinates reads as this rectangle.
    pub(crate) fn turned(self, turn: [isize; 2], of: Shape) -> Vec<RankRect> {
        let line = |w: Window, turn: isize, n: usize| {
            let n = n.cast_signed();
            let parts = [-n, 0, n].map(|lap| {
                let turn = turn + lap;
                let at = Window::new(w.start - turn, w.end - turn);
                (at.intersect(Window::new(0, n)), turn)
            });
            parts.into_iter().filter(|(w, _)| !w.is_empty())
        };
        let rows = line(self.rect.rows, turn[0], of.height);
        let columns = line(self.rect.columns, turn[1], of.width);
        let columns: Vec<_> = columns.collect();
        let part = |rows, y, (columns, x): &(Window, isize)| RankRect {
            rect: Rect { rows, columns: *columns },
            turn: [y, *x],
            ..self
        };
        rows.flat_map(|(rows, y)| columns.iter().map(move |c| part(rows, y, c)).collect::<Vec<_>>()).collect()
    }
}

/// A rectangle moved down and right.
pub(crate) fn moved(Rect { rows, columns }: Rect, [y, x]: [isize; 2]) -> Rect {
    let by = |w: Window, n: isize| Window::new(w.start + n, w.end + n);
    Rect { rows: by(rows, y), columns: by(columns, x) }
}

/// A buffer, and a rectangle in its coordinates.
pub(crate) type BufferRect = (usize, Rect);

/// Copies and messages of one rank that bring each rank the pixels it needs.
#[derive(Debug, Default)]
pub(crate) struct BlockRoutes {
    /// Copies within this rank: source and target.
    pub(crate) local: Vec<(BufferRect, BufferRect)>,
    /// Contents of the message to each rank, in order.
    pub(crate) sent: BTreeMap<usize, Vec<BufferRect>>,
    /// Contents of the message from each rank, in order.
    pub(crate) received: BTreeMap<usize, Vec<BufferRect>>,
}

impl BlockRoutes {
    /// Routes of rank `rank`. The rectangles of an image in `held` do not overlap, except for images that all ranks
    /// have.
    pub(crate) fn of(rank: usize, held: &[RankRect], needed: &[RankRect]) -> BlockRoutes {
        let mut routes = BlockRoutes::default();
        for need in needed {
            for have in held.iter().filter(|have| have.image == need.image) {
                let from = have.rank.or(need.rank);
                if from != Some(rank) && need.rank != Some(rank) {
                    continue;
                }
                let part = both(have.rect, need.rect);
                let cut = |at: &RankRect| (at.buffer, moved(part, at.turn));
                match (from, need.rank) {
                    _ if part.is_empty() => {}
                    (from, to) if from == to => routes.local.push((cut(have), cut(need))),
                    (_, Some(to)) if to != rank => routes.sent.entry(to).or_default().push(cut(have)),
                    (Some(from), _) => routes.received.entry(from).or_default().push(cut(need)),
                    _ => {}
                }
            }
        }
        routes
    }
}

/// Intersection of two rectangles.
pub(crate) fn both(a: Rect, b: Rect) -> Rect {
    Rect { rows: a.rows.intersect(b.rows), columns: a.columns.intersect(b.columns) }
}

/// A buffer with a rectangle of all planes of an image, rows without gaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferExtent {
    pub(crate) rect: Rect,
    pub(crate) planes: usize,
    /// Bytes of a pixel of a plane.
    pub(crate) element: usize,
}

impl BufferExtent {
    /// Bytes of a rectangle of all planes.
    pub(crate) fn bytes_of(&self, rect: Rect) -> usize {
        rect.area() * self.planes * self.element
    }

    /// Byte at which a rectangle starts in a plane, and distance between rows.
    fn start(&self, part: Rect, plane: usize) -> (usize, usize) {
        let [top, left] = part.seen_from(self.rect).corner().map(isize::unsigned_abs);
        let (rows, columns) = (self.rect.rows.len(), self.rect.columns.len());
        (((plane * rows + top) * columns + left) * self.element, columns * self.element)
    }

    /// Copies of a rectangle to one of the same size in another buffer of the same image.
    pub(crate) fn pieces(&self, part: Rect, (to, there): (BufferExtent, Rect)) -> impl Iterator<Item = StridedCopy> {
        (0..self.planes).map(move |plane| {
            let ((from, from_stride), (to, to_stride)) = (self.start(part, plane), to.start(there, plane));
            let bytes = part.columns.len() * self.element;
            StridedCopy { from, to, bytes, rows: part.rows.len(), from_stride, to_stride }
        })
    }

    /// Copies of a rectangle to a message, from byte `at` on.
    pub(crate) fn packed(&self, part: Rect, at: usize) -> impl Iterator<Item = StridedCopy> {
        let message = BufferExtent { rect: part, ..*self };
        self.pieces(part, (message, part)).map(move |piece| StridedCopy { to: piece.to + at, ..piece })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn map(plane: (usize, usize), block: (usize, usize), drawn: &str) -> BlockMap {
        let ranks = drawn.chars().filter(|c| *c != ' ').map(|c| c.to_digit(10).map(|d| d as usize));
        BlockMap::new(plane, block, ranks).unwrap()
    }

    #[test]
    fn rectangles_make_up_the_blocks_and_are_few() {
        let all = map((7, 9), (2, 3), "001 001 .01 221");
        let found = all.rectangles();
        let expected = [
            (0, Rect::at(0, 0, 4, 6)),
            (1, Rect::at(0, 6, 7, 3)),
            (0, Rect::at(4, 3, 2, 3)),
            (2, Rect::at(6, 0, 1, 6)),
        ];
        assert_eq!(found, expected);
        let strips = map((10, 10), (5, 10), "01");
        assert_eq!(strips.rectangles(), [(0, Rect::at(0, 0, 5, 10)), (1, Rect::at(5, 0, 5, 10))]);
        let land = all.left_out(2).unwrap();
        assert_eq!(land.rectangles(), [(0, Rect::at(4, 0, 2, 3))]);
        assert_eq!(strips.left_out(2), None);
    }

    #[test]
    fn maps_that_make_no_sense_are_refused() {
        let refused = |plane, block, ranks: &[Option<usize>]| {
            BlockMap::new(plane, block, ranks.iter().copied()).unwrap_err().to_string()
        };
        assert!(refused((4, 4), (0, 2), &[]).contains("planes of 4x4 pixels have no blocks of 0x2"));
        assert!(refused((4, 4), (2, 2), &[Some(0); 3]).contains("3 ranks for 2x2 blocks"));
        assert!(refused((4, 4), (4, 4), &[None]).contains("no block has a rank"));
        assert!(map((4, 4), (4, 4), "0").exchanging_every(0).unwrap_err().to_string().contains("every 0 steps"));
    }

    /// Every pair of ranks agrees on its message, and every needed pixel arrives once, with periodic columns.
    #[test]
    fn routes_bring_each_needed_pixel_once() {
        let map = map((8, 12), (3, 2), "001122 0.1133 44.333");
        let (rects, of) = (map.rectangles(), Shape::new(8, 12, 1));
        let at = |(buffer, (rank, rect)): (usize, &(usize, Rect))| RankRect {
            rank: Some(*rank),
            image: 0,
            rect: *rect,
            buffer,
            turn: [0; 2],
        };
        let held: Vec<RankRect> = rects.iter().enumerate().map(at).collect();
        // Coordinates with the rectangle in the middle.
        let turns: Vec<isize> = held.iter().map(|at| 6 - (at.rect.columns.start + at.rect.columns.end) / 2).collect();
        let grown = |r: Rect| Rect { rows: r.rows.grown(4, 4).clipped(8), columns: r.columns.grown(3, 3).clipped(12) };
        let wanted: Vec<Rect> = held.iter().map(|at| grown(moved(at.rect, [0, turns[at.buffer]]))).collect();
        let parts = |at: &RankRect| RankRect { rect: wanted[at.buffer], ..*at }.turned([0, turns[at.buffer]], of);
        let needed: Vec<RankRect> = held.iter().flat_map(parts).collect();
        let routes: Vec<BlockRoutes> = (0..5).map(|rank| BlockRoutes::of(rank, &held, &needed)).collect();
        // Expected: pixels at shifted columns, which wrap around at the edge.
        let mut times: Vec<HashMap<[isize; 2], usize>> = vec![HashMap::new(); held.len()];
        let mut arrive = |(n, there): BufferRect, (h, here): BufferRect| {
            assert!(wanted[n].covers(there) && held[h].rect.covers(here) && there.area() == here.area());
            for (dy, dx) in (0..here.rows.len()).flat_map(|y| (0..here.columns.len()).map(move |x| (y, x))) {
                let add = |[y, x]: [isize; 2]| [y.saturating_add_unsigned(dy), x.saturating_add_unsigned(dx)];
                let ([y, x], from) = (add(there.corner()), add(here.corner()));
                assert_eq!(from, [y, (x - turns[n]).rem_euclid(12)]);
                *times[n].entry([y, x]).or_default() += 1;
            }
        };
        for (rank, of) in routes.iter().enumerate() {
            for (from, to) in &of.local {
                assert!(held[from.0].rank == Some(rank) && held[to.0].rank == Some(rank));
                arrive(*to, *from);
            }
            for (from, parts) in &of.received {
                let sent = &routes[*from].sent[&rank];
                assert_eq!(sent.len(), parts.len());
                sent.iter().zip(parts).for_each(|(from, to)| arrive(*to, *from));
            }
            assert!(of.sent.keys().all(|to| routes[*to].received.contains_key(&rank)));
        }
        for (n, wanted) in wanted.iter().enumerate() {
            for (y, x) in (0..8).flat_map(|y| (0..12).map(move |x| (y, x))) {
                let pixel = Rect::at(y, x, 1, 1);
                let real = moved(pixel, [0, -turns[n]]).columns.start.rem_euclid(12).unsigned_abs();
                let sea = rects.iter().any(|(_, rect)| rect.covers(Rect::at(y, real, 1, 1)));
                let want = usize::from(sea && wanted.covers(pixel));
                let [y, x] = pixel.corner();
                assert_eq!(times[n].get(&[y, x]).copied().unwrap_or(0), want, "pixel {y}, {x} of {wanted:?}");
            }
        }
    }
}
