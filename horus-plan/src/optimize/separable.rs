//! Splits separable filters into their row and column filters, so that these can be shared and fused.

use crate::ir::graph::{Graph, Node, Op};

/// Replaces each [`Op::Separable`] by two [`Op::Correlate`].
pub fn split(graph: Graph<Op>) -> Graph<Op> {
    graph.rebuilt(|out, _, n| match n.op {
        Op::Separable { row, column, border } => {
            let (shape, dtype, site) = (n.shape, n.dtype, n.site);
            let first = out.push(Node { op: Op::Correlate(row, border), ..n });
            out.push(Node { op: Op::Correlate(column, border), inputs: vec![first], shape, dtype, site })
        }
        _ => out.push(n),
    })
}
