//! Rectangles in which ranks compute their blocks: few, if computing land takes less time than more launches.
//!
//! Each rectangle is a program with its own launches, and recomputes pixels around its edges. A rank therefore computes
//! land between its blocks, too, if a larger rectangle takes less work and its outline needs pixels of no further rank.
//! Pixels computed there are used around them, but are no results.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::graph::{Graph, Op};
use crate::machine::{Machine, MachineProfile};
use crate::region::{Rect, required_regions};
use crate::session::blocks::{BlockMap, both};
use crate::shape::{Shape, Window};

/// Work of rectangles of a plane, in pixels of nodes; a pixel counts as its memory traffic.
pub(crate) struct RectangleWork {
    plane: (usize, usize),
    /// `true`, for rows and for columns, if the axis is periodic.
    ring: [bool; 2],
    /// Launch time of a node on each rank, in pixels.
    launch: Vec<f64>,
    nodes: usize,
    /// Number of planes of nodes, by how many more rows and columns they read than the result has.
    planes: BTreeMap<(usize, usize), usize>,
}

impl RectangleWork {
    /// Work of a program whose results are planes or numbers.
    pub(crate) fn new(graph: &Graph<Op>, map: &BlockMap, ring: [bool; 2], machine: &Machine) -> RectangleWork {
        /// Bytes of a number that is read and one that is written.
        const BYTES: f64 = 16.0;
        let plane = map.plane();
        let all = (plane.0 * plane.1) as f64 * BYTES;
        let pixels = |MachineProfile { launch, memory, .. }: &MachineProfile| {
            (launch.host + launch.device) * memory.at(all) / BYTES
        };
        let middle = |of: Shape| Rect::at(of.height / 2, of.width / 2, of.height.min(1), of.width.min(1));
        let roots: Vec<Rect> = graph.roots.iter().map(|root| middle(graph.node(*root).shape)).collect();
        let mut planes = BTreeMap::new();
        for (node, need) in
            graph.nodes.iter().zip(required_regions(graph, &roots)).filter(|(node, _)| map.divides(node.shape))
        {
            let more = need.map_or((0, 0), |need| (need.rows.len().max(1) - 1, need.columns.len().max(1) - 1));
            *planes.entry(more).or_default() += node.shape.planes();
        }
        let launch = (0..=map.last_rank()).map(|rank| pixels(machine.of(rank))).collect();
        RectangleWork { plane, ring, launch, nodes: graph.nodes.len(), planes }
    }

    /// Most rows and columns that are read around a result on each side, assuming both sides are alike.
    fn reach(&self) -> (usize, usize) {
        let most = self.planes.keys().fold((0, 0), |most, more| (more.0.max(most.0), more.1.max(most.1)));
        (most.0.div_ceil(2), most.1.div_ceil(2))
    }

    /// Work of a rectangle of a rank.
    fn of(&self, rank: usize, rect: Rect) -> f64 {
        let line = |n: usize, more: usize, most: usize| (n + more).min(most) as f64;
        let pixels = self.planes.iter().map(|((rows, columns), planes)| {
            let rows = line(rect.rows.len(), *rows, self.plane.0);
            rows * line(rect.columns.len(), *columns, self.plane.1) * *planes as f64
        });
        pixels.sum::<f64>() + self.launch[rank] * self.nodes as f64
    }
}

impl BlockMap {
    /// Ranks of the blocks in a rectangle and in the rows and columns read around it.
    fn ranks_within(&self, Rect { rows, columns }: Rect, work: &RectangleWork) -> BTreeSet<usize> {
        let line = |w: Window, more: usize, n: usize, block: usize, ring: bool| -> BTreeSet<usize> {
            let (more, length) = (more.cast_signed(), n.cast_signed());
            let all = (w.start - more..w.end + more).filter(|at| ring || (0..length).contains(at));
            all.map(|at| at.rem_euclid(length).unsigned_abs() / block).collect()
        };
        let (RectangleWork { plane, ring, .. }, reach, block) = (work, work.reach(), self.block());
        let across = plane.1.div_ceil(block.1);
        let columns = line(columns, reach.1, plane.1, block.1, ring[1]);
        let rows = line(rows, reach.0, plane.0, block.0, ring[0]);
        rows.iter().flat_map(|y| columns.iter().filter_map(move |x| self.ranks()[y * across + x])).collect()
    }

    /// Disjoint rectangles of all ranks, with land if that takes less work.
    pub(crate) fn over_land(&self, work: &RectangleWork) -> Vec<(usize, Rect)> {
        let mut taken = self.ranks().to_vec();
        let mut all = self.rectangles();
        let mut joined = Vec::with_capacity(all.len());
        for rank in 0..=self.last_rank() {
            let own = all.extract_if(.., |(of, _)| *of == rank).map(|(_, rect)| rect).collect();
            let is_free = |hull: Rect, parts: &[Rect]| {
                let others = |rect| self.ranks_within(rect, work);
                let met = || parts.iter().flat_map(|rect| others(*rect)).collect::<BTreeSet<usize>>();
                self.blocks_in(hull).all(|block| taken[block].is_none_or(|of| of == rank))
                    && others(hull).is_subset(&met())
            };
            let own = together(own, is_free, |rect| work.of(rank, rect));
            for block in own.iter().flat_map(|rect| self.blocks_in(*rect)) {
                taken[block] = Some(rank);
            }
            joined.extend(own.into_iter().map(|rect| (rank, rect)));
        }
        joined
    }
}

/// Joins two rectangles, and all that their hull touches, if the hull is free and takes less work, until no near pair
/// is left.
fn together(mut all: Vec<Rect>, is_free: impl Fn(Rect, &[Rect]) -> bool, work: impl Fn(Rect) -> f64) -> Vec<Rect> {
    /// Number of following rectangles, row by row, that are tried with each: a guess that keeps the time for a thousand
    /// rectangles negligible.
    const NEAR: usize = 16;
    let mut before = usize::MAX;
    while all.len() < before {
        before = all.len();
        let mut first = 0;
        while first < all.len() {
            let found = (first + 1..all.len()).take(NEAR).find_map(|second| {
                let (hull, parts) = closed(&all, all[first].hull(all[second]));
                (work(hull) < parts.iter().map(|rect| work(*rect)).sum() && is_free(hull, &parts)).then_some(hull)
            });
            let Some(hull) = found else {
                first += 1;
                continue;
            };
            all.retain(|rect| both(*rect, hull).is_empty());
            first = first.min(all.len());
            all.insert(first, hull);
        }
    }
    all
}

/// Hull of a rectangle and all rectangles that it touches, and those rectangles.
fn closed(all: &[Rect], mut hull: Rect) -> (Rect, Vec<Rect>) {
    loop {
        let parts: Vec<Rect> = all.iter().copied().filter(|rect| !both(*rect, hull).is_empty()).collect();
        let larger = parts.iter().fold(hull, |hull, rect| hull.hull(*rect));
        if larger == hull {
            return (hull, parts);
        }
        hull = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Square blocks of `block` pixels, rows separated by spaces, of a program that reads one pixel around each.
    fn over_land(drawn: &str, block: usize, launch: f64) -> Vec<(usize, Rect)> {
        let ranks = drawn.chars().filter(|c| *c != ' ').map(|c| c.to_digit(10).map(|d| d as usize));
        let plane = (drawn.split(' ').count() * block, drawn.find(' ').unwrap() * block);
        let map = BlockMap::new(plane, (block, block), ranks).unwrap();
        let (launch, planes) = (vec![launch; 2], BTreeMap::from([((2, 2), 1)]));
        map.over_land(&RectangleWork { plane, ring: [true, false], launch, nodes: 1, planes })
    }

    #[test]
    fn land_is_computed_where_launches_take_longer() {
        let drawn = "00.1 0..1 00.1";
        let few = [(0, Rect::at(0, 0, 30, 20)), (1, Rect::at(0, 30, 30, 10))];
        assert_eq!(over_land(drawn, 10, 1e6), few);
        let many = over_land(drawn, 1000, 10.0);
        assert_eq!(many.len(), 4, "{many:?}");
        assert_eq!(many.iter().map(|(_, rect)| rect.area()).sum::<usize>(), 8_000_000);
    }

    #[test]
    fn land_is_computed_once() {
        let cross = [(0, Rect::at(0, 10, 30, 10)), (1, Rect::at(10, 0, 10, 10)), (1, Rect::at(10, 20, 10, 10))];
        assert_eq!(over_land(".0.. 1.1. .0..", 10, 1e6), cross);
    }

    #[test]
    fn blocks_of_others_are_not_computed_and_no_rank_meets_new_ones() {
        assert_eq!(over_land("0.1. 1.0. 0.1.", 10, 1e6).len(), 6);
        // Joined, rank 0's rectangles would read pixels of rank 1. In the second map each of them does anyway.
        assert_eq!(over_land("0...0 ..1.. .....", 10, 1e6).len(), 3);
        assert_eq!(over_land("0..0 .1.. ....", 10, 1e6).len(), 2);
        // Rows are periodic.
        assert_eq!(over_land("0...0 ..... ..1..", 10, 1e6).len(), 3);
        assert_eq!(over_land("0...0 ..... ..1.. .....", 10, 1e6).len(), 2);
    }
}
