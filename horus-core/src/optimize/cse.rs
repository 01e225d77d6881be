//! Common-subexpression elimination: nodes that compute the same thing from the same inputs become one.

use std::collections::HashMap;

use crate::dtype::DType;
use crate::ir::graph::{Graph, NodeId, Op};
use crate::shape::Shape;

/// Merges equal nodes. Parameters are compared by bits, so that no result changes.
pub fn merge(graph: Graph<Op>) -> Graph<Op> {
    let mut out = Graph::default();
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.nodes.len());
    let mut seen: HashMap<(Op, Vec<NodeId>, Shape, DType), NodeId> = HashMap::new();
    for mut n in graph.nodes {
        n.inputs.iter_mut().for_each(|i| *i = map[i.0]);
        let key = (n.op.clone(), n.inputs.clone(), n.shape, n.dtype);
        let id = *seen.entry(key).or_insert_with(|| out.push(n));
        map.push(id);
    }
    out.roots = graph.roots.iter().map(|r| map[r.0]).collect();
    out
}
