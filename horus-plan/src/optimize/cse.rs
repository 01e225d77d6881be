//! Common-subexpression elimination: merges equal operations on equal inputs.

use std::collections::HashMap;

use crate::ir::graph::{Graph, NodeId, Op};
use horus_base::dtype::DType;
use horus_base::shape::Shape;

/// Merges equal nodes. Parameters are compared by bits, so that no result changes.
pub fn merge(graph: Graph<Op>) -> Graph<Op> {
    let mut seen: HashMap<(Op, Vec<NodeId>, Shape, DType), NodeId> = HashMap::new();
    graph.rebuilt(|out, _, n| {
        let key = (n.op.clone(), n.inputs.clone(), n.shape, n.dtype);
        *seen.entry(key).or_insert_with(|| out.push(n))
    })
}
