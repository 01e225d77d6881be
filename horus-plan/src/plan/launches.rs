//! The launches of a plan: of one node, or of several nodes that one kernel computes.

use std::collections::HashMap;

use super::step::{Action, PlanStep};
use crate::ir::graph::{Graph, Joined, NodeId};
use crate::ir::kernel::Kernel;

/// The nodes and inputs of one launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchedNodes<'a> {
    /// The nodes, of one shape; several for a kernel with several results.
    pub nodes: &'a [NodeId],
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Input images.
    pub inputs: &'a [NodeId],
}

impl<'a> LaunchedNodes<'a> {
    /// A launch of a single node, or of joined nodes.
    pub(super) fn of(graph: &'a Graph<Kernel>, nodes: &'a [NodeId]) -> LaunchedNodes<'a> {
        match graph.joined.iter().find(|joined| joined.nodes == nodes) {
            Some(joined) => LaunchedNodes { nodes, kernel: &joined.op, inputs: &joined.inputs },
            None => LaunchedNodes::single(graph, &nodes[0]),
        }
    }

    /// A launch of a single node.
    pub(super) fn single(graph: &'a Graph<Kernel>, id: &'a NodeId) -> LaunchedNodes<'a> {
        let node = graph.node(*id);
        LaunchedNodes { nodes: std::slice::from_ref(id), kernel: &node.op, inputs: &node.inputs }
    }
}

/// The launches of a plan, found in one scan: each covers the node of its step and the nodes of later steps
/// that the same kernel launch computes. Such nodes are [joined](Graph::joined) in the graph and are launched
/// for the same rows. No step comes between them, and they read only data that is in place.
#[derive(Clone, Debug)]
pub struct PlannedLaunches<'a> {
    /// By step; `None` for a step that launches nothing.
    at: Vec<Option<LaunchedNodes<'a>>>,
    /// By step: set if an earlier launch computes its result.
    before: Vec<bool>,
}

impl<'a> PlannedLaunches<'a> {
    pub(super) fn of(graph: &'a Graph<Kernel>, steps: &'a [PlanStep]) -> PlannedLaunches<'a> {
        let of_joined = |j: &'a Joined<Kernel>| j.nodes.iter().map(move |n| (*n, j));
        let mut joined: HashMap<NodeId, &Joined<Kernel>> = graph.joined.iter().flat_map(of_joined).collect();
        // A node that reads copies fetched for it alone is launched separately.
        for n in steps.iter().filter_map(|s| s.action.fetches_for()) {
            if let Some(apart) = joined.get(&n).copied() {
                for n in &apart.nodes {
                    joined.remove(n);
                }
            }
        }
        let mut launches = PlannedLaunches { at: vec![None; steps.len()], before: vec![false; steps.len()] };
        for (i, step) in steps.iter().enumerate() {
            let Action::Launch { node, .. } = &step.action else { continue };
            if launches.before[i] {
                continue;
            }
            let together = joined.get(node).filter(|j| follow(&j.nodes, &steps[i..]));
            launches.at[i] = Some(match together {
                Some(j) => LaunchedNodes { nodes: &j.nodes, kernel: &j.op, inputs: &j.inputs },
                None => LaunchedNodes::single(graph, node),
            });
            launches.before[i + 1..i + together.map_or(1, |j| j.nodes.len())].fill(true);
        }
        launches
    }

    /// The launch of step `i`; `None` if the step is no launch or an earlier launch computes its result.
    pub fn at(&self, i: usize) -> Option<LaunchedNodes<'a>> {
        self.at[i]
    }

    /// Returns `true` if an earlier launch computes the result of step `i`.
    pub fn computes_before(&self, i: usize) -> bool {
        self.before.get(i) == Some(&true)
    }
}

/// Returns `true` if these steps begin with launches of all of `nodes`, in order, for the same rows.
fn follow(nodes: &[NodeId], steps: &[PlanStep]) -> bool {
    let Some(Action::Launch { rows, room, part, .. }) = steps.first().map(|s| &s.action) else { return false };
    let same = |(node, step): (&NodeId, &PlanStep)| {
        step.action == Action::Launch { node: *node, rows: *rows, room: *room, part: *part }
    };
    steps.len() >= nodes.len() && nodes.iter().zip(steps).all(same)
}
