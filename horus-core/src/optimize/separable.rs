//! Splits separable filters into their row and column passes, so that the passes can be shared and fused.

use crate::ir::graph::{Graph, Node, NodeId, Op};

/// Replaces each [`Op::Separable`] by two [`Op::Correlate`].
pub fn split(graph: Graph<Op>) -> Graph<Op> {
    let mut out = Graph::default();
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.nodes.len());
    for mut n in graph.nodes {
        n.inputs.iter_mut().for_each(|i| *i = map[i.0]);
        let id = match n.op {
            Op::Separable { row, column, border } => {
                let first = out.push(Node { op: Op::Correlate(row, border), ..n });
                let (shape, dtype, site) = (out.node(first).shape, out.node(first).dtype, out.node(first).site);
                out.push(Node { op: Op::Correlate(column, border), inputs: vec![first], shape, dtype, site })
            }
            _ => out.push(n),
        };
        map.push(id);
    }
    out.roots = graph.roots.iter().map(|r| map[r.0]).collect();
    out
}
