//! Which region each node of a restricted program has.
//!
//! A node could have just what is needed of it. But filters and pixel operations have the extent of what they read, and
//! cutting after each of them would cost more than pixels that nobody needs: so nodes that read each other pixel by pixel get one
//! region, as long as that is not much more than is needed of each.

use super::{Rect, reads};
use crate::ir::graph::{Graph, NodeId, Op};

/// A common region may have so many times the pixels of each region in it.
const MOST: usize = 2;

/// Whether input `k` has the pixels of the result, at the same places.
pub(super) fn in_place(op: &Op, k: usize) -> bool {
    match op {
        Op::Whole(operation) => operation.in_place(k),
        Op::Pixel(..)
        | Op::Convert(_)
        | Op::Planes(_)
        | Op::Correlate(..)
        | Op::Separable { .. }
        | Op::Generalized(..)
        | Op::Median(..) => true,
        Op::Source(_) | Op::Fill(_) | Op::Index(_) | Op::Warp(..) | Op::Flip(_) => false,
    }
}

/// For each node the region that it is computed for: at least what is `needed`, and for filters what they read.
pub(super) fn regions(graph: &Graph<Op>, needed: &[Option<Rect>]) -> Vec<Option<Rect>> {
    let least = graph.iter().map(|(id, node)| {
        let need = needed[id.0]?;
        Some(match &node.op {
            Op::Whole(operation) => operation.computed(need, node.shape),
            op => reads::around(op, need, node.shape).unwrap_or(need),
        })
    });
    let mut groups = Groups { parent: (0..graph.nodes.len()).collect(), regions: least.collect() };
    for (id, node) in graph.iter().rev().filter(|(id, _)| needed[id.0].is_some()) {
        for (k, input) in node.inputs.iter().enumerate() {
            if in_place(&node.op, k) {
                groups.join(id, *input);
            }
        }
    }
    (0..graph.nodes.len()).map(|n| needed[n].and_then(|_| groups.regions[groups.first(n)])).collect()
}

/// Nodes of one region: a forest, whose trees have their region at the root.
struct Groups {
    parent: Vec<usize>,
    regions: Vec<Option<Rect>>,
}

impl Groups {
    fn first(&self, mut n: usize) -> usize {
        while self.parent[n] != n {
            n = self.parent[n];
        }
        n
    }

    /// Gives both one region, unless one would have to compute much that it does not need.
    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.first(a.0), self.first(b.0));
        let (Some(one), Some(other)) = (self.regions[a], self.regions[b]) else { return };
        let both = one.hull(other);
        if a != b && both.area() <= MOST.saturating_mul(one.area().min(other.area())) {
            // Towards the end of the program, from where groups grow: paths stay short.
            let (root, leaf) = if a > b { (a, b) } else { (b, a) };
            self.parent[leaf] = root;
            self.regions[root] = Some(both);
        }
    }
}
