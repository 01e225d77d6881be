//! Reductions along rows absorb an expression that has no other reader, so that it is never stored.

use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;
use crate::ops::Whole;

/// Lets a row reduction evaluate its operand, if that is an expression of pixels without other readers. The
/// expression stays in the graph, dead.
pub fn feed(mut graph: Graph<Kernel>) -> Graph<Kernel> {
    let mut readers = graph.consumers();
    readers.iter_mut().for_each(|r| r.dedup());
    for id in (0..graph.nodes.len()).map(NodeId) {
        let node = graph.node(id);
        let Kernel::Whole(Whole::RowReduce(how)) = node.op else { continue };
        let p = node.inputs[0];
        let Kernel::Map(map) = &graph.node(p).op else { continue };
        if graph.roots.contains(&p) || readers[p.0] != [id] || !map.is_pointwise() || map.inputs == 0 {
            continue;
        }
        let op = Kernel::MapReduce(map.clone(), how);
        let inputs = graph.node(p).inputs.iter().chain(&node.inputs[1..]).copied().collect();
        let node = &mut graph.nodes[id.0];
        (node.op, node.inputs) = (op, inputs);
    }
    graph
}
