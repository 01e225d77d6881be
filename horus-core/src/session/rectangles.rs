//! The rectangles in which ranks compute their blocks: few, where a launch takes longer than land.
//!
//! Each rectangle is a program with launches of its own, and computes again what its neighbours do around their
//! edges. A rank therefore computes land between its blocks, too, where a larger rectangle takes less work: a few
//! thousand pixels are as long as a launch on a processor, a million on a large GPU.

use std::collections::BTreeMap;

use super::blocks::{BlockMap, both};
use crate::ir::graph::{Graph, Op};
use crate::machine::{Machine, Profile};
use crate::region::{Rect, needs};
use crate::shape::Shape;

/// What rectangles of a plane take, in pixels of its nodes.
pub(super) struct Work<'a> {
    plane: (usize, usize),
    machine: &'a Machine,
    nodes: usize,
    /// The number of planes of the nodes that read so many rows and columns more than those of a result.
    planes: BTreeMap<(usize, usize), usize>,
}

impl<'a> Work<'a> {
    /// That of a program whose results are of the plane's extent, or numbers.
    pub(super) fn new(graph: &Graph<Op>, plane: (usize, usize), machine: &'a Machine) -> Work<'a> {
        let middle = |of: Shape| Rect::at(of.height / 2, of.width / 2, of.height.min(1), of.width.min(1));
        let roots: Vec<Rect> = graph.roots.iter().map(|root| middle(graph.node(*root).shape)).collect();
        let mut planes = BTreeMap::new();
        for (node, need) in graph.nodes.iter().zip(needs(graph, &roots)) {
            let more = need.map_or((0, 0), |need| (need.rows.len().max(1) - 1, need.columns.len().max(1) - 1));
            *planes.entry(more).or_default() += node.shape.planes();
        }
        Work { plane, machine, nodes: graph.nodes.len(), planes }
    }

    /// The pixels of a node in whose time a device launches one.
    fn launch(&self, Profile { launch, memory, .. }: &Profile) -> f64 {
        /// A number that is read and one that is written.
        const BYTES: f64 = 16.0;
        let all = (self.plane.0 * self.plane.1) as f64 * BYTES;
        (launch.host + launch.device) * memory.at(all) / BYTES
    }

    /// That of a rectangle of a rank.
    fn of(&self, rank: usize, rect: Rect) -> f64 {
        let line = |n: usize, more: usize, most: usize| (n + more).min(most) as f64;
        let pixels = self.planes.iter().map(|((rows, columns), planes)| {
            let rows = line(rect.rows.len(), *rows, self.plane.0);
            rows * line(rect.columns.len(), *columns, self.plane.1) * *planes as f64
        });
        pixels.sum::<f64>() + self.launch(self.machine.of(rank)) * self.nodes as f64
    }
}

impl BlockMap {
    /// The disjoint rectangles of all ranks, with land where that takes less work.
    pub(super) fn over_land(&self, work: &Work<'_>) -> Vec<(usize, Rect)> {
        let mut taken = self.ranks().to_vec();
        let mut all = self.rectangles();
        let mut joined = Vec::with_capacity(all.len());
        for rank in 0..=self.last_rank() {
            let own = all.extract_if(.., |(of, _)| *of == rank).map(|(_, rect)| rect).collect();
            let is_free = |rect: Rect| self.blocks_in(rect).all(|block| taken[block].is_none_or(|of| of == rank));
            let own = together(own, is_free, |rect| work.of(rank, rect));
            for block in own.iter().flat_map(|rect| self.blocks_in(*rect)) {
                taken[block] = Some(rank);
            }
            joined.extend(own.into_iter().map(|rect| (rank, rect)));
        }
        joined
    }
}

/// Joins rectangles within free ones that take less work than what they contain, until there is none among near ones.
fn together(mut all: Vec<Rect>, is_free: impl Fn(Rect) -> bool, work: impl Fn(Rect) -> f64) -> Vec<Rect> {
    /// Further rectangles, row by row, that are tried with one.
    const NEAR: usize = 64;
    let mut before = usize::MAX;
    while all.len() < before {
        before = all.len();
        let mut first = 0;
        while first < all.len() {
            let found = (first + 1..all.len()).take(NEAR).find_map(|second| {
                let hull = closed(&all, all[first].hull(all[second]));
                let apart = all.iter().filter(|rect| !both(**rect, hull).is_empty()).map(|rect| work(*rect));
                (work(hull) < apart.sum() && is_free(hull)).then_some(hull)
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

/// The hull of a rectangle and all that it touches.
fn closed(all: &[Rect], mut hull: Rect) -> Rect {
    loop {
        let larger = all.iter().filter(|rect| !both(**rect, hull).is_empty()).fold(hull, |hull, rect| hull.hull(*rect));
        if larger == hull {
            return hull;
        }
        hull = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Square blocks of `block` pixels, three rows of four.
    fn over_land(drawn: &str, block: usize, launch: f64) -> Vec<(usize, Rect)> {
        let ranks = drawn.chars().filter(|c| *c != ' ').map(|c| c.to_digit(10).map(|d| d as usize));
        let plane = (3 * block, 4 * block);
        let map = BlockMap::new(plane, (block, block), ranks).unwrap();
        let mut profile = Profile::of_default(true);
        profile.launch.host = launch;
        let machine = Machine::alike(profile);
        map.over_land(&Work { plane, machine: &machine, nodes: 1, planes: BTreeMap::from([((2, 2), 1)]) })
    }

    #[test]
    fn land_is_computed_where_launches_take_longer() {
        let drawn = "00.1 0..1 00.1";
        let few = [(0, Rect::at(0, 0, 30, 20)), (1, Rect::at(0, 30, 30, 10))];
        assert_eq!(over_land(drawn, 10, 1.0), few);
        let many = over_land(drawn, 1000, 1e-9);
        assert_eq!(many.len(), 4, "{many:?}");
        assert_eq!(many.iter().map(|(_, rect)| rect.area()).sum::<usize>(), 8_000_000);
    }

    #[test]
    fn blocks_of_others_are_never_computed_and_land_once() {
        let all = over_land("0.1. 1.0. 0.1.", 10, 1.0);
        for (i, (rank, rect)) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|(_, other)| both(*rect, *other).is_empty()), "{all:?}");
            assert!(*rank < 2);
        }
        assert_eq!(all.len(), 6, "{all:?}");
    }
}
