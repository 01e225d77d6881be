//! The nodes that one rank computes alone: those that only its part of the program needs.

use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;

/// The only rank that computes each node, if there is one. Rank `i` computes `parts[i]`, and the nodes that nothing else
/// needs, whole.
pub(super) fn owners(graph: &Graph<Kernel>, parts: &[NodeId]) -> Vec<Option<usize>> {
    /// What needs a node: nothing, one part, or more.
    #[derive(Clone, Copy, PartialEq)]
    enum Need {
        Nothing,
        Part(usize),
        More,
    }
    let mut needs = vec![Need::Nothing; graph.nodes.len()];
    graph.roots.iter().for_each(|root| needs[root.0] = Need::More);
    let mut owners = vec![None; graph.nodes.len()];
    for (id, node) in graph.iter().rev() {
        let part = parts.iter().position(|part| *part == id).filter(|_| !graph.roots.contains(&id));
        let need = match (&node.op, part) {
            // Each rank counts its rows.
            (op, _) if op.goes_over_input() => Need::More,
            (Kernel::Source(_), _) => Need::More,
            (_, Some(rank)) => Need::Part(rank),
            (_, None) => needs[id.0],
        };
        if let Need::Part(rank) = need {
            owners[id.0] = Some(rank);
        }
        for input in &node.inputs {
            let before = &mut needs[input.0];
            *before = match (*before, need) {
                (Need::Nothing, other) | (other, Need::Nothing) => other,
                (a, b) if a == b => a,
                _ => Need::More,
            };
        }
    }
    owners
}
