//! The body of a loop: the effect of one iteration on the state, recorded once and unrolled to any number of
//! iterations.

use std::collections::HashMap;

use super::{Extract, RecordId};
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ops::Whole;
use crate::ops::geometric::Interpolation;

/// One iteration of a loop. The state is a list of images; other inputs of the iteration are constant.
#[derive(Debug)]
pub struct LoopBody {
    graph: Graph<Op>,
    /// Nodes that differ between iterations.
    depends: Vec<bool>,
    /// The placeholder node of each image of the state; `None` if the iteration does not read it.
    before: Vec<Option<NodeId>>,
    /// The node that computes the next value of each image of the state.
    after: Vec<NodeId>,
    /// Measured values of an iteration.
    measured: Vec<NodeId>,
}

/// Returns `true` for an operation so cheap that each iteration recomputes its result instead of reading a
/// stored one.
fn is_cheap(op: &Op) -> bool {
    match op {
        Op::Source(_) | Op::Fill(_) | Op::Index(_) | Op::Pixel(..) | Op::Convert(_) | Op::Planes(_) => true,
        Op::Whole(Whole::Deinterleave(_)) => true,
        Op::Warp(map, Interpolation::Nearest, _) => map.repeats(),
        _ => false,
    }
}

impl LoopBody {
    /// The records that an iteration reads and that do not depend on the state, to be computed once before
    /// the loop: those recorded `before` it, and those of more than a few pixel operations on such records.
    pub fn invariants(extract: &Extract, placeholders: &[RecordId], before: RecordId) -> Vec<RecordId> {
        let Extract { graph, records } = extract;
        let depends = depending(graph, records, placeholders);
        let mut open: Vec<NodeId> = graph.roots.iter().copied().filter(|r| !depends[r.0]).collect();
        for (_, node) in graph.iter().filter(|(id, _)| depends[id.0] && !placeholders.contains(&records[id.0])) {
            open.extend(node.inputs.iter().filter(|i| !depends[i.0]));
        }
        let mut seen = vec![false; graph.nodes.len()];
        let mut out = Vec::new();
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id.0], true) {
                continue;
            }
            let node = graph.node(id);
            match node.op {
                Op::Source(_) | Op::Fill(_) | Op::Index(_) => {}
                _ if records[id.0] >= before && is_cheap(&node.op) => open.extend(&node.inputs),
                _ => out.push(records[id.0]),
            }
        }
        out.sort_unstable();
        out
    }

    /// The iteration extracted for `targets` targets: the next image for each of the `placeholders`, and the
    /// measured values.
    pub fn of(extract: Extract, targets: usize, placeholders: &[RecordId]) -> LoopBody {
        let Extract { mut graph, records } = extract;
        // Intermediate values that the extract stores are not results of an iteration.
        graph.roots.truncate(targets);
        let depends = depending(&graph, &records, placeholders);
        let before = placeholders.iter().map(|p| records.iter().position(|r| r == p).map(NodeId)).collect();
        let (after, measured) = graph.roots.split_at(placeholders.len());
        LoopBody { before, after: after.to_vec(), measured: measured.to_vec(), depends, graph }
    }

    /// Number of operations of an iteration.
    pub fn operations(&self) -> usize {
        let orders = |op: &Op| matches!(op, Op::Whole(Whole::Deinterleave(_) | Whole::Interleave(_)));
        self.graph.nodes.iter().filter(|node| !orders(&node.op)).count()
    }

    /// The graph of `steps` iterations from a state of these values. The roots are the state after the last
    /// iteration, followed by its measured values if `measured`.
    pub fn unrolled(&self, state: &[ValueId], steps: usize, measured: bool) -> Graph<Op> {
        let mut graph = Graph::default();
        // Images with the same value are one node.
        let mut sources: HashMap<ValueId, NodeId> = HashMap::new();
        let mut source = |graph: &mut Graph<Op>, v: ValueId, like: &Node<Op>| {
            let node = || Node { op: Op::Source(v), inputs: Vec::new(), ..like.clone() };
            *sources.entry(v).or_insert_with(|| graph.push(node()))
        };
        let given: Vec<NodeId> =
            (state.iter().zip(&self.after)).map(|(v, after)| source(&mut graph, *v, self.graph.node(*after))).collect();
        let mut fixed: Vec<Option<NodeId>> = vec![None; self.graph.nodes.len()];
        let mut now = given;
        let mut last = Vec::new();
        for step in 0..steps {
            let mut made = fixed.clone();
            for (before, now) in self.before.iter().zip(&now) {
                if let Some(before) = before {
                    let stored = self.graph.node(*before).shape.samples > 1;
                    made[before.0] = Some(if stored { *now } else { graph.planar(*now) });
                }
            }
            for (id, node) in self.graph.iter() {
                if made[id.0].is_some() {
                    continue;
                }
                // The values of placeholders come first, so inputs exist.
                let new = match (&node.op, node.inputs.first().and_then(|i| made[i.0])) {
                    (Op::Source(v), _) => source(&mut graph, *v, node),
                    (Op::Whole(Whole::Deinterleave(_)), Some(stored)) => graph.planar(stored),
                    _ => {
                        let inputs = node.inputs.iter().filter_map(|i| made[i.0]).collect();
                        graph.push(Node { inputs, ..node.clone() })
                    }
                };
                made[id.0] = Some(new);
            }
            if step == 0 {
                let kept = |(made, depends): (&Option<NodeId>, &bool)| made.filter(|_| !depends);
                fixed = made.iter().zip(&self.depends).map(kept).collect();
            }
            let made = |n: &NodeId| made[n.0].unwrap_or(*n);
            now = self.after.iter().map(made).collect();
            last = self.measured.iter().map(made).collect();
        }
        graph.roots = now;
        if measured {
            graph.roots.extend(last);
        }
        graph.without_dead()
    }
}

/// Marks nodes that depend on a placeholder.
fn depending(graph: &Graph<Op>, records: &[RecordId], placeholders: &[RecordId]) -> Vec<bool> {
    let mut depends = vec![false; graph.nodes.len()];
    for (id, node) in graph.iter() {
        depends[id.0] = placeholders.contains(&records[id.0]) || node.inputs.iter().any(|i| depends[i.0]);
    }
    depends
}
