//! Transfers and launches: walks the graph in order and brings each input into place.
//!
//! This is one pass, rather than one each for placement, halos, footprints and memory, because an eviction
//! from a full device changes the place of an image and so the direction of its next transfer. The parts have
//! files by subject: `spread` and `cost` choose the transfer of an image to its readers, `halos` and
//! `footprints` the rows read of other ranks' strips, `memory` the evictions.

use std::collections::HashMap;

use super::cost::Costs;
use super::demand::halo_of_access;
use super::draft::PlanDraft;
use super::footprints::{EarlyFootprints, PendingLaunch, is_filter};
use super::state::{Halo, Placement, StateEvent};
use super::step::{Action, ComputedRows, LaunchPart, Temp};
use crate::ir::graph::{Graph, Joined, NodeId};
use crate::ir::kernel::{AllReduce, Kernel};

/// The pass: adds the launches of all nodes, in order, and the transfers without which a launch would read
/// missing data.
pub(super) fn walk(draft: &mut PlanDraft<'_>) {
    let graph = draft.graph;
    let fetched_because = vec![String::new(); graph.nodes.len()];
    let (costs, early, brought) = (Costs::default(), EarlyFootprints::default(), HashMap::new());
    let mut walk = TransferPlanner { draft, costs, early, fetched_because, brought };
    let last_filter = graph.iter().rev().find(|(_, n)| is_filter(&n.op)).map(|(id, _)| id);
    let groups = JoinedByNode::of(graph);
    for (id, node) in graph.iter() {
        let (group, alone) = (groups.of_node(id), [id]);
        let nodes = match group {
            Some(g) if g.nodes[0] == id => &g.nodes[..],
            Some(g) if walk.is_brought(g) => &[], // no step comes between them
            _ => &alone[..],
        };
        if !nodes.is_empty() {
            if last_filter.is_none_or(|last| id >= last) {
                walk.fetch_ahead(); // no filter follows
            }
            if walk.early.pending.is_some() && !nodes.iter().all(|n| walk.is_independent_of_pending(*n)) {
                walk.launch_pending(id);
            }
            if nodes.iter().any(|n| is_filter(&graph.node(*n).op)) {
                walk.fetch_ahead();
            }
        }
        let together = group.filter(|g| walk.brings(g, id));
        if !matches!(node.op, Kernel::Source(_)) {
            walk.compute(id);
            walk.early.computed.push(id);
        }
        match together.map(|g| &g.nodes) {
            None => walk.free_read_for_the_last_time(id, id),
            Some(nodes) if nodes.last() == Some(&id) => {
                nodes.iter().for_each(|n| walk.free_read_for_the_last_time(*n, id));
            }
            Some(_) => {} // no step comes between them
        }
    }
    walk.launch_pending(NodeId(graph.nodes.len()));
}

/// The state of the walk over the graph.
pub(super) struct TransferPlanner<'d, 'a> {
    pub(super) draft: &'d mut PlanDraft<'a>,
    pub(super) costs: Costs,
    pub(super) early: EarlyFootprints,
    /// For each node, the reason for fetching its footprints.
    pub(super) fetched_because: Vec<String>,
    /// By first node of a group that is computed together: `true` if the inputs of all its nodes are in
    /// place.
    brought: HashMap<NodeId, bool>,
}

/// The groups of nodes that are computed together, by node.
struct JoinedByNode<'a>(HashMap<NodeId, &'a Joined<Kernel>>);

impl<'a> JoinedByNode<'a> {
    fn of(graph: &'a Graph<Kernel>) -> JoinedByNode<'a> {
        JoinedByNode(graph.joined.iter().flat_map(|j| j.nodes.iter().map(move |n| (*n, j))).collect())
    }

    fn of_node(&self, id: NodeId) -> Option<&'a Joined<Kernel>> {
        self.0.get(&id).copied()
    }
}

impl TransferPlanner<'_, '_> {
    /// Returns `true` if the inputs of all nodes of a group are in place before the first is computed, so
    /// that their launches follow each other. The first node brings them into place, if all inputs and
    /// results fit in memory and no node reads rows fetched for it alone.
    fn brings(&mut self, group: &Joined<Kernel>, id: NodeId) -> bool {
        let first = group.nodes[0];
        if id != first {
            return self.is_brought(group);
        }
        let graph = self.draft.graph;
        let in_place = |n: &NodeId| {
            let node = graph.node(*n);
            (0..node.inputs.len()).all(|i| halo_of_access(node.op.access(i)).is_some())
        };
        let several = self.draft.ranks() > 1;
        let rows = |n: &NodeId| match self.draft.owners[n.0] {
            Some(rank) => ComputedRows::On(rank),
            None if several => ComputedRows::Strip(self.draft.demand.asked[n.0]),
            None => ComputedRows::All,
        };
        let missing = group.inputs.iter().filter(|i| !self.draft.state(**i).residency.device());
        let bytes = missing.chain(&group.nodes).map(|n| self.draft.bytes_as(*n, rows(n))).sum();
        let brings =
            !self.draft.naive() && (!several || group.nodes.iter().all(in_place)) && self.draft.fits_now(bytes);
        self.brought.insert(first, brings);
        if brings && several {
            for &n in &group.nodes {
                graph.node(n).inputs.iter().for_each(|source| self.spread(*source, n));
            }
            for &n in &group.nodes {
                let due = self.borders(n);
                self.exchange(due, n);
            }
        }
        if brings {
            for &n in &group.nodes {
                graph.node(n).inputs.iter().for_each(|source| self.draft.on_device(*source, n));
            }
        }
        brings
    }

    /// Returns `true` if [`TransferPlanner::brings`] brought the inputs of all nodes of a group.
    fn is_brought(&self, group: &Joined<Kernel>) -> bool {
        self.brought.get(&group.nodes[0]) == Some(&true)
    }

    fn compute(&mut self, id: NodeId) {
        let graph = self.draft.graph;
        let node = graph.node(id);
        if self.draft.ranks() == 1 {
            node.inputs.iter().for_each(|i| self.draft.on_device(*i, id));
            self.launch(id, ComputedRows::All, Halo::NONE);
        } else if self.draft.naive() {
            self.compute_naively_distributed(id);
        } else {
            self.compute_distributed(id);
        }
        if self.draft.naive() {
            self.return_to_host(id);
        }
    }

    /// Ends an operation in naive mode: the result is on rank 0's host, and the device is empty.
    fn return_to_host(&mut self, id: NodeId) {
        self.draft.bring_to_host(id, "naive mode downloads every result");
        let placement = self.draft.state(id).placement;
        if matches!(placement, Placement::Strips(_)) {
            self.draft.step(Action::Collect(id), "naive mode gathers every result");
            self.draft.event(id, StateEvent::Placed(Placement::ROOT));
        }
        let graph = self.draft.graph;
        for &node in graph.node(id).inputs.iter().chain([&id]) {
            let state = self.draft.state(node);
            if state.residency.device() && !self.draft.setting.unified {
                self.draft.step(Action::Evict(node), "naive mode keeps nothing on the device");
                self.draft.event(node, StateEvent::Placed(state.placement));
            }
        }
    }

    pub(super) fn launch(&mut self, id: NodeId, rows: ComputedRows, room: Halo) {
        let node = self.draft.graph.node(id);
        let scratch = node.op.scratch(node.shape);
        if scratch > 0 {
            self.draft.hold_temp(scratch, id, id);
        }
        self.draft.evict_for_image(id, Some(rows), id);
        self.draft.step(Action::Launch { node: id, rows, room, part: LaunchPart::Whole }, "");
        self.draft.event(id, StateEvent::Computed(rows.placement()));
        self.early.fetched.retain(|(t, _)| t.consumer != id);
        for (input, source) in node.inputs.iter().enumerate() {
            if halo_of_access(node.op.access(input)).is_none() {
                self.early.computed.retain(|c| c != source); // no launch waits for its footprints now
            }
        }
        self.draft.drop_temps(id);
    }

    fn compute_naively_distributed(&mut self, id: NodeId) {
        let graph = self.draft.graph;
        let node = graph.node(id);
        let rows = self.draft.rows(id);
        for (input, &source) in node.inputs.iter().enumerate() {
            let temp = Temp { consumer: id, input };
            let why = format!("naive mode scatters every input of {}", self.draft.label(id));
            self.draft.hold_temp(self.draft.bytes_fetched(source, temp, rows), source, id);
            self.draft.step(Action::Fetch { node: source, temp, rows, direct: false }, why);
        }
        self.launch(id, rows, Halo::NONE);
        self.all_reduce(id);
    }

    /// Combines the partial results of all ranks, if a launch computes partial results.
    fn all_reduce(&mut self, id: NodeId) {
        match self.draft.graph.node(id).op.all_reduce() {
            Some(AllReduce::Sum) => {
                self.draft.bring_to_host(id, "ranks add up their counts on the host");
                self.draft.step(Action::Sum(id), "each rank counted its own rows");
                self.draft.event(id, StateEvent::Placed(Placement::Replicated));
            }
            None => {}
        }
    }

    fn compute_distributed(&mut self, id: NodeId) {
        let graph = self.draft.graph;
        let node = graph.node(id);
        self.draft.repeated[id.0] = self.draft.owners[id.0].is_none() && self.is_repeated(id);
        for (input, &source) in node.inputs.iter().enumerate() {
            if !self.is_sent(Temp { consumer: id, input }) {
                self.spread(source, id);
            }
        }
        if node.op.goes_over_input() {
            node.inputs.iter().for_each(|i| self.draft.on_device(*i, id));
            self.launch(id, ComputedRows::All, Halo::NONE);
            self.all_reduce(id);
            return;
        }
        let rows = self.draft.rows(id);
        let due = self.borders(id);
        self.exchange(due, id);
        let mut later = false;
        for (input, &source) in node.inputs.iter().enumerate() {
            if !self.is_fetched(id, input) {
                self.draft.on_device(source, id);
            } else if self.early.computed.contains(&source) && self.early_footprint(source).is_some() {
                later = true; // before the next filter, or at the latest for this launch
            } else {
                self.fetch_for(id, input, rows);
            }
        }
        if later || self.early.fetched.iter().any(|(t, direct)| *direct && t.consumer == id) {
            self.early.pending = Some(PendingLaunch { node: id, rows, since: self.draft.steps.len() });
        } else {
            self.launch(id, rows, self.draft.demand.asked[id.0]);
        }
    }

    /// Returns `true` if the rows that `id` reads of an input are fetched for it alone.
    pub(super) fn is_fetched(&self, id: NodeId, input: usize) -> bool {
        let (node, temp) = (self.draft.graph.node(id), Temp { consumer: id, input });
        let held = || match self.draft.state(node.inputs[input]).placement {
            Placement::Replicated => true,
            Placement::On(rank) => self.draft.owners[id.0] == Some(rank),
            Placement::Strips(valid) => !self.is_sent(temp) && self.draft.holds(valid, temp),
        };
        halo_of_access(node.op.access(input)).is_none() && !held()
    }

    /// Frees the inputs of `id` (and `id` itself, if it has no readers) that no node after `last` reads and
    /// that do not outlive the plan.
    pub(super) fn free_read_for_the_last_time(&mut self, id: NodeId, last: NodeId) {
        let mut done: Vec<NodeId> = self.draft.graph.node(id).inputs.clone();
        done.push(id);
        done.sort_unstable();
        done.dedup();
        for p in done {
            if !self.waits_for(p) && !self.draft.lifetimes.needed_after(p, last) && self.draft.states[p.0].is_some() {
                self.draft.free(p);
            }
        }
    }

    /// Returns `true` if a launch that waits for footprints writes or reads an image.
    fn waits_for(&self, id: NodeId) -> bool {
        let reads = |waiting: NodeId| waiting == id || self.draft.graph.node(waiting).inputs.contains(&id);
        self.early.pending.as_ref().is_some_and(|p| reads(p.node))
    }
}
