//! The launches of a plan: of one node, or of several that one kernel computes.

use std::collections::HashMap;

use super::finished::Plan;
use super::step::{Action, Step};
use crate::ir::graph::{Graph, Joined, NodeId};
use crate::ir::kernel::Kernel;

/// What one launch computes.
#[derive(Clone, Copy, Debug)]
pub struct LaunchedNodes<'a> {
    /// The nodes, of one extent; more than one if the kernel has several results.
    pub nodes: &'a [NodeId],
    /// The kernel.
    pub kernel: &'a Kernel,
    /// What it reads.
    pub inputs: &'a [NodeId],
}

impl<'a> LaunchedNodes<'a> {
    /// One node by itself.
    pub(super) fn alone(graph: &'a Graph<Kernel>, id: &'a NodeId) -> LaunchedNodes<'a> {
        let node = graph.node(*id);
        LaunchedNodes { nodes: std::slice::from_ref(id), kernel: &node.op, inputs: &node.inputs }
    }
}

/// What each step of a plan launches, found in one pass over the steps: one kernel, for the node of the step and for those of steps behind
/// it that the same launch computes. These are the nodes that the graph [joins](Graph::joined), where they are launched for the same rows,
/// nothing comes between them, and all read what is in place.
#[derive(Clone, Debug)]
pub struct PlannedLaunches<'a> {
    /// By step; `None` where nothing is launched.
    at: Vec<Option<LaunchedNodes<'a>>>,
    /// By step: whether the launch of one before it computes what it does.
    before: Vec<bool>,
}

impl<'a> PlannedLaunches<'a> {
    pub(super) fn of(plan: &'a Plan) -> PlannedLaunches<'a> {
        let (graph, steps) = (&plan.graph, &plan.steps);
        let of_joined = |j: &'a Joined<Kernel>| j.nodes.iter().map(move |n| (*n, j));
        let mut joined: HashMap<NodeId, &Joined<Kernel>> = graph.joined.iter().flat_map(of_joined).collect();
        // What reads copies that were made for one of them is computed apart.
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
                None => LaunchedNodes::alone(graph, node),
            });
            launches.before[i + 1..i + together.map_or(1, |j| j.nodes.len())].fill(true);
        }
        launches
    }

    /// What step `i` launches: `None` if it is no launch, or if the launch of one before it computes what it does.
    pub fn at(&self, i: usize) -> Option<LaunchedNodes<'a>> {
        self.at[i]
    }

    /// Whether the launch of a step before it computes what step `i` does.
    pub fn computes_before(&self, i: usize) -> bool {
        self.before.get(i) == Some(&true)
    }
}

/// Whether these steps begin with launches of all of `nodes`, in order, for the same rows.
fn follow(nodes: &[NodeId], steps: &[Step]) -> bool {
    let Some(Action::Launch { rows, room, part, .. }) = steps.first().map(|s| &s.action) else { return false };
    let same = |(node, step): (&NodeId, &Step)| {
        step.action == Action::Launch { node: *node, rows: *rows, room: *room, part: *part }
    };
    steps.len() >= nodes.len() && nodes.iter().zip(steps).all(same)
}
