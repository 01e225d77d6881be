//! A plan that is made.

use std::collections::HashSet;

use super::activity::Parts;
use super::follow::Follower;
use super::setting::{Mode, Setting, Want};
use super::state::{Placement, State};
use super::step::{Action, Step};
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::Kernel;
use horus_base::shape::Window;

/// How often each kind of transfer happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Copies from host to device.
    pub uploads: usize,
    /// Copies from device to host.
    pub downloads: usize,
    /// Kernels launched; one that is launched in parts counts once.
    pub launches: usize,
    /// Images scattered from rank 0.
    pub scatters: usize,
    /// Images gathered to rank 0.
    pub gathers: usize,
    /// Border exchanges.
    pub exchanges: usize,
    /// Images given to every rank.
    pub replications: usize,
    /// Footprints fetched.
    pub footprints: usize,
}

impl Counts {
    /// Copies between host and device.
    pub fn copies(&self) -> usize {
        self.uploads + self.downloads
    }

    /// Transfers between ranks.
    pub fn exchanges_between_ranks(&self) -> usize {
        self.scatters + self.gathers + self.exchanges + self.replications + self.footprints
    }

    /// Adds `other` to these counts.
    pub fn add(&mut self, other: &Counts) {
        self.uploads += other.uploads;
        self.downloads += other.downloads;
        self.launches += other.launches;
        self.scatters += other.scatters;
        self.gathers += other.gathers;
        self.exchanges += other.exchanges;
        self.replications += other.replications;
        self.footprints += other.footprints;
    }
}

/// The rows of an image of `height` rows, in this state, that rank `rank` hands over.
pub(super) fn handed_over(setting: &Setting, state: Option<State>, height: usize, rank: usize) -> Window {
    match state.map(|s| s.placement) {
        Some(Placement::Strips(_)) => setting.partition.strip(rank, height),
        _ if rank == 0 => Window::whole(height),
        _ => Window::new(0, 0),
    }
}

/// A plan without joins replaces one that tears them apart if it is predicted to take at most so many times as long: a guess. On an H200,
/// two programs over volumes from arrays to arrays took 1.09 and 1.26 times as long with joins torn apart.
const TORN: f64 = 1.02;

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

/// What to do, in order. The same on every rank.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kernels.
    pub graph: Graph<Kernel>,
    /// What is wanted of the graph's roots, one for each.
    pub wants: Vec<Want>,
    /// The steps.
    pub steps: Vec<Step>,
    /// What the plan was made for.
    pub setting: Setting,
    /// The states that the plan starts from: of the sources, in graph order.
    pub initial: Vec<Option<State>>,
    /// The states that the plan ends in.
    pub states: Vec<Option<State>>,
    /// Seconds that it is predicted to take.
    pub predicted: f64,
    /// For how long each part of rank 0's machine is predicted to be busy meanwhile.
    pub parts: Parts,
    /// Whether what each launch reads and writes fits in the device's memory, as far as it is estimated.
    pub fits: bool,
    /// The first node that does not fit beyond doubt, and the bytes that it takes at least, with all that it reads.
    pub lacking: Option<(NodeId, usize)>,
}

impl Plan {
    /// The rows of a result that rank `rank` hands over to somebody on the host of all ranks: of one in strips its own, else the
    /// first rank all.
    pub fn hands_over(&self, n: NodeId, rank: usize) -> Window {
        handed_over(&self.setting, self.states[n.0], self.graph.node(n).shape.height, rank)
    }

    /// The plan without one of its steps: what waited for it waits for nothing in its place. Such a plan is for tests, which
    /// show that no step can be left out.
    #[must_use]
    pub fn without(&self, step: usize) -> Plan {
        let mut plan = self.clone();
        plan.steps.remove(step);
        for waits in plan.steps.iter_mut().map(|s| &mut s.waits) {
            waits.retain(|w| *w != step);
            waits.iter_mut().filter(|w| **w > step).for_each(|w| *w -= 1);
        }
        plan
    }

    /// What step `i` launches, if it is a launch: one kernel, for its node and for those of steps behind it that the same launch
    /// computes. These are the nodes that the graph [joins](Graph::joined), where they are launched for the same rows, nothing comes
    /// between them, and all read what is in place.
    pub fn launched_at(&self, i: usize) -> Option<LaunchedNodes<'_>> {
        let Action::Launch { node: first, rows, room, part } = &self.steps[i].action else { return None };
        let alone = LaunchedNodes::alone(&self.graph, first);
        let Some(joined) = self.graph.joined.iter().find(|j| j.nodes.first() == Some(first)) else {
            return Some(alone);
        };
        let steps = self.steps.get(i..i + joined.nodes.len()).unwrap_or_default();
        let same = |(node, step): (&NodeId, &Step)| {
            step.action == Action::Launch { node: *node, rows: *rows, room: *room, part: *part }
        };
        let follow = !steps.is_empty() && joined.nodes.iter().zip(steps).all(same);
        let fetched = |s: &Step| s.action.fetches_for().is_some_and(|n| joined.nodes.contains(&n));
        if !follow || self.steps.iter().any(fetched) {
            return Some(alone);
        }
        Some(LaunchedNodes { nodes: &joined.nodes, kernel: &joined.op, inputs: &joined.inputs })
    }

    /// This plan, or one `without` joined kernels where this computes apart what was joined, because of what is copied in between or of
    /// bands: what they share is computed twice.
    pub fn or_apart<E>(self, without: impl FnOnce() -> Result<Plan, E>) -> Result<Plan, E> {
        let together = (0..self.steps.len()).filter_map(|i| self.launched_at(i)).filter(|l| l.nodes.len() > 1);
        let whole = together.map(|l| l.nodes[0]).collect::<HashSet<NodeId>>().len();
        if whole == self.graph.joined.len() || !self.fits {
            return Ok(self);
        }
        let apart = without()?;
        Ok(if apart.fits && apart.predicted <= TORN * self.predicted { apart } else { self })
    }

    /// For each step, whether the launch of one before it computes what it does.
    pub fn computed_before(&self) -> Vec<bool> {
        let mut computed = vec![false; self.steps.len()];
        for i in 0..self.steps.len() {
            let launched = self.launched_at(i).map_or(1, |l| l.nodes.len());
            computed[i + 1..i + launched].fill(true);
        }
        computed
    }

    /// Bytes of images that are in the memory of the device of rank 0 at most at once.
    pub fn most_on_device(&self) -> usize {
        let mut follower = Follower::new(self, false);
        for step in &self.steps {
            follower.step(step.action);
        }
        follower.most
    }

    /// How often each kind of transfer happens.
    pub fn counts(&self) -> Counts {
        let mut c = Counts::default();
        for (s, computed) in self.steps.iter().zip(self.computed_before()) {
            match s.action {
                Action::Launch { .. } if computed => {}
                Action::Upload { band, .. } | Action::UploadStrip { band, .. } => {
                    c.uploads += usize::from(band.ends());
                }
                Action::Download(_) => c.downloads += 1,
                Action::Send { band, .. } => c.downloads += usize::from(band.ends()),
                Action::Launch { part, .. } => c.launches += usize::from(part.ends()),
                Action::Scatter { .. } => c.scatters += 1,
                Action::Gather { band, .. } => c.gathers += usize::from(band.ends()),
                Action::Collect(_) => c.gathers += 1,
                Action::Exchange { .. } | Action::Begin { .. } => c.exchanges += 1,
                Action::Replicate { .. } => c.replications += 1,
                // Naive mode scatters an input, and uploads it, for every launch anew.
                Action::Fetch { .. } if self.setting.mode == Mode::Naive => {
                    c.scatters += 1;
                    c.uploads += usize::from(!self.setting.unified);
                }
                Action::Fetch { .. } => c.footprints += 1,
                Action::Map(_)
                | Action::Unmap(_)
                | Action::Finish(_)
                | Action::Evict(_)
                | Action::Sum(_)
                | Action::Deliver(_)
                | Action::Free(_) => {}
            }
        }
        c
    }
}
