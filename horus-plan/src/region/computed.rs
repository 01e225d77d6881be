//! The region of each node of a restricted program.
//!
//! Computing exactly the required region of each node would need a crop after each, because filters and pixel
//! operations have the shape of their inputs, and a crop costs more than unneeded pixels. Nodes that read
//! each other pixel by pixel therefore share one region, unless it is much larger than the required regions.

use super::{Rect, reads};
use crate::ir::graph::{Graph, NodeId, Op};

/// Maximum ratio of a common region to each region in it, in pixels.
const MOST: usize = 2;

/// Returns `true` if input `k` has the pixels of the result at the same positions.
pub(super) fn in_place(op: &Op, k: usize) -> bool {
    match op {
        Op::Whole(operation) => operation.in_place(k),
        Op::Pixel(..)
        | Op::Convert(_)
        | Op::Planes(_)
        | Op::Correlate(..)
        | Op::Separable { .. }
        | Op::OrderFilter(..) => true,
        Op::Source(_) | Op::Fill(_) | Op::Index(_) | Op::Warp(..) | Op::Flip(_) => false,
    }
}

/// The region in which each node is computed: at least its `needed` region and, for filters, the pixels that
/// they read.
pub(super) fn regions(graph: &Graph<Op>, needed: &[Option<Rect>]) -> Vec<Option<Rect>> {
    let least = graph.iter().map(|(id, node)| {
        let need = needed[id.0]?;
        Some(match &node.op {
            Op::Whole(operation) => operation.computed(need, node.shape),
            op => reads::around(op, need, node.shape).unwrap_or(need),
        })
    });
    let mut groups = RegionForest { parent: (0..graph.nodes.len()).collect(), regions: least.collect() };
    for (id, node) in graph.iter().rev().filter(|(id, _)| needed[id.0].is_some()) {
        for (k, input) in node.inputs.iter().enumerate() {
            if in_place(&node.op, k) {
                groups.join(id, *input);
            }
        }
    }
    (0..graph.nodes.len()).map(|n| needed[n].and_then(|_| groups.regions[groups.first(n)])).collect()
}

/// Nodes of one region: a disjoint-set forest with the region at each root.
struct RegionForest {
    parent: Vec<usize>,
    regions: Vec<Option<Rect>>,
}

impl RegionForest {
    fn first(&self, mut n: usize) -> usize {
        while self.parent[n] != n {
            n = self.parent[n];
        }
        n
    }

    /// Gives both nodes one region, unless one of them would compute too many unneeded pixels.
    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.first(a.0), self.first(b.0));
        let (Some(one), Some(other)) = (self.regions[a], self.regions[b]) else { return };
        let both = one.hull(other);
        if a != b && both.area() <= MOST.saturating_mul(one.area().min(other.area())) {
            // The root is towards the end of the program, where groups start to grow, so that paths stay
            // short.
            let (root, leaf) = if a > b { (a, b) } else { (b, a) };
            self.parent[leaf] = root;
            self.regions[root] = Some(both);
        }
    }
}
