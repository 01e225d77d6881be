//! Common-subexpression elimination: merges equal operations on equal inputs, and reads a copy's
//! pixels at their origin.

use std::collections::HashMap;

use crate::ir::graph::{Graph, NodeId, Op};
use crate::ir::kernel::{Kernel, LeafOp, MapKernel, Val};
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

/// Lets readers of a copy, such as the numbers of a mask, read what it copies.
pub fn without_copies(graph: Graph<Kernel>) -> Graph<Kernel> {
    let read = graph.rebuilt(|out, _, mut node| {
        for input in &mut node.inputs {
            let from = out.node(*input);
            if let (true, [source]) = (is_copy(&from.op), from.inputs.as_slice()) {
                let of = out.node(*source);
                if (of.shape, of.dtype) == (from.shape, from.dtype) {
                    *input = *source;
                }
            }
        }
        out.push(node)
    });
    read.without_dead()
}

fn is_copy(kernel: &Kernel) -> bool {
    let Kernel::Map(map) = kernel else { return false };
    let MapKernel { leaves, result, .. } = map;
    matches!((leaves.as_slice(), result), ([leaf], Some(Val::Leaf(0))) if leaf.op == LeafOp::Load(0))
        && map.results().count() == 1
}
