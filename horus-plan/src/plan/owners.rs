//! The nodes that one rank computes alone: those that only its part of the program needs.

use crate::ir::graph::{Graph, Need, NodeId};
use crate::ir::kernel::Kernel;

/// The only rank that computes each node, if there is one. Rank `i` computes `parts[i]`, and the nodes that nothing else
/// needs, whole.
pub(super) fn owners(graph: &Graph<Kernel>, parts: &[NodeId]) -> Vec<Option<usize>> {
    let own = |id: NodeId, need: Need| match &graph.node(id).op {
        // Each rank counts its rows.
        op if op.goes_over_input() => Need::More,
        Kernel::Source(_) => Need::More,
        _ if graph.roots.contains(&id) => Need::More,
        _ => parts.iter().position(|part| *part == id).map_or(need, Need::Part),
    };
    let needs = graph.needs(|id, _, need| own(id, need));
    let owner = |(id, need)| match own(NodeId(id), need) {
        Need::Part(rank) => Some(rank),
        Need::Nothing | Need::More => None,
    };
    needs.into_iter().enumerate().map(owner).collect()
}
