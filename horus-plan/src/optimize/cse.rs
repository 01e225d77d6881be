//! Common-subexpression elimination: merges equal operations on equal inputs. Readers of copies and widening
//! conversions read the original pixels.

use std::collections::HashMap;

use crate::ir::graph::{Graph, NodeId, Op};
use crate::ir::kernel::{InstrOp, Kernel, Leaf, LeafOp, MapKernel, Val};
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

/// Lets readers of a copy (such as a mask read as numbers) read the original.
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

/// Lets linear samples read integers directly instead of their conversion to floats.
pub fn without_widening(mut graph: Graph<Kernel>) -> Graph<Kernel> {
    for at in 0..graph.nodes.len() {
        let Kernel::Map(map) = &graph.nodes[at].op else { continue };
        let ([leaf @ Leaf { op: LeafOp::Warp(..), .. }], [input]) =
            (map.leaves.as_slice(), graph.nodes[at].inputs.as_slice())
        else {
            continue;
        };
        let converted = graph.node(*input);
        if is_conversion(&converted.op)
            && let [source] = *converted.inputs.as_slice()
            && leaf.reads_type(graph.node(source).dtype)
        {
            graph.nodes[at].inputs = vec![source];
        }
    }
    graph.without_dead()
}

/// Returns `true` for a conversion by value. Both rules are the same for integers that become floats.
fn is_conversion(kernel: &Kernel) -> bool {
    let Kernel::Map(MapKernel { leaves, code, result, additional_results: more, .. }) = kernel else { return false };
    matches!((leaves.as_slice(), code.as_slice(), result), ([leaf], [one], Some(Val::Instr(0)))
        if leaf.op == LeafOp::Load(0) && matches!(one.op, InstrOp::Convert(_)) && one.args == [Val::Leaf(0)])
        && more.is_empty()
}

fn is_copy(kernel: &Kernel) -> bool {
    let Kernel::Map(map) = kernel else { return false };
    let MapKernel { leaves, result, .. } = map;
    matches!((leaves.as_slice(), result), ([leaf], Some(Val::Leaf(0))) if leaf.op == LeafOp::Load(0))
        && map.results().count() == 1
}
