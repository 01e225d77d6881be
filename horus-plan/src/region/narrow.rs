//! Narrowing: programs that read parts of their values compute only those parts.

use super::{CropRule, InPlace, Rect, required_regions, restrict};
use crate::ir::graph::{Graph, NodeId, Op};

/// Narrowing applies if the program then computes at most three quarters of the bytes.
const WORTH: [usize; 2] = [3, 4];
/// A value with a handle is not computed whole if the required parts of all values have this many times fewer
/// bytes.
const LITTLE: usize = 4;

/// The bytes that a program computes.
fn computed(graph: &Graph<Op>) -> usize {
    let work = graph.nodes.iter().filter(|n| !matches!(n.op, Op::Source(_)));
    work.map(|n| n.shape.len().saturating_mul(n.dtype.size())).fold(0, usize::saturating_add)
}

fn whole(graph: &Graph<Op>, roots: &[NodeId]) -> Vec<Rect> {
    roots.iter().map(|r| Rect::whole(graph.node(*r).shape)).collect()
}

/// The program restricted to what the roots require, if that is much less: a crop of an image is then
/// computed from its surroundings only.
pub fn narrow(graph: Graph<Op>) -> Graph<Op> {
    let roots = whole(&graph, &graph.roots);
    // Most programs require everything.
    let needed = required_regions(&graph, &roots);
    let all = |(id, n): (NodeId, &crate::ir::graph::Node<Op>)| {
        matches!(n.op, Op::Source(_)) || needed[id.0].is_none_or(|r| r == Rect::whole(n.shape))
    };
    if graph.iter().all(all) {
        return graph;
    }
    let narrowed = restrict(&graph, &roots, CropRule::Always, &mut InPlace).graph;
    let [part, of] = WORTH;
    if computed(&narrowed).saturating_mul(of) <= computed(&graph).saturating_mul(part) { narrowed } else { graph }
}

/// For each root after the first `targets`, `true` if it is better computed on request: the targets require
/// only a part of it, and computing such parts is cheap relative to computing the whole image.
pub fn deferrable_roots(graph: &Graph<Op>, targets: usize) -> Vec<bool> {
    let (targets, others) = graph.roots.split_at(targets.min(graph.roots.len()));
    if others.is_empty() {
        return Vec::new();
    }
    let program = Graph { roots: targets.to_vec(), nodes: graph.nodes.clone(), ..Graph::default() };
    let asked = whole(graph, targets);
    let needed = required_regions(&program, &asked);
    let in_part = |n: &NodeId| needed[n.0].is_some_and(|r| r != Rect::whole(graph.node(*n).shape));
    if !others.iter().any(in_part) {
        return vec![false; others.len()];
    }
    let parts = computed(&restrict(&program, &asked, CropRule::Always, &mut InPlace).graph);
    let bytes = |n: &NodeId| graph.node(*n).shape.len().saturating_mul(graph.node(*n).dtype.size());
    others.iter().map(|n| in_part(n) && parts.saturating_mul(LITTLE) <= bytes(n)).collect()
}
