//! The planner itself: walks the graph in order and asks of each input whether it is where it is read.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::finished::Plan;
use super::footprints::is_filter;
use super::halos::needed;
use super::memory::Ledger;
use super::setting::{Mode, Setting, Want};
use super::state::{Event, Halo, Machine, Placement, Residency, State};
use super::step::{Action, Part, Rows, Step, Temp};
use crate::ir::graph::{Graph, NodeId};
use crate::ir::kernel::{AllReduce, Kernel};

/// Makes a plan that computes the graph's roots. `wants` has one entry per root. `state` gives the state of each source
/// node, `disposable` tells which sources nobody needs once this plan has read them.
pub fn plan(
    graph: Graph<Kernel>,
    wants: &[Want],
    setting: &Setting,
    state: impl Fn(NodeId) -> State,
    disposable: impl Fn(NodeId) -> bool,
) -> Plan {
    let initial: Vec<Option<State>> =
        graph.iter().map(|(id, n)| matches!(n.op, Kernel::Source(_)).then(|| state(id))).collect();
    let mut p = Planner::new(&graph, setting, initial.clone());
    let last_filter = graph.iter().rev().find(|(_, n)| is_filter(&n.op)).map(|(id, _)| id);
    for (id, node) in graph.iter() {
        if last_filter.is_none_or(|last| id >= last) {
            p.fetch_ahead(); // no filter is left to wait for
        }
        if p.pending.is_some() && !p.needs_nobody(id) {
            p.launch_pending(id, &disposable);
        }
        if is_filter(&node.op) {
            p.fetch_ahead();
        }
        if !matches!(node.op, Kernel::Source(_)) {
            p.compute(id);
            p.computed.push(id);
        }
        p.free_read_for_the_last_time(id, id, &disposable);
    }
    p.launch_pending(NodeId(graph.nodes.len()), &disposable);
    for (&root, &want) in graph.roots.iter().zip(wants) {
        p.deliver(root, want);
    }
    let fits = p.ledger.as_ref().is_none_or(|l| !l.overflown);
    let lacking = p.ledger.as_ref().and_then(|l| l.lacking);
    let (steps, states) = (p.steps, p.states);
    Plan { graph, wants: wants.to_vec(), steps, setting: setting.clone(), initial, states, fits, lacking }
}

pub(super) struct Planner<'a> {
    pub(super) graph: &'a Graph<Kernel>,
    pub(super) setting: &'a Setting,
    machine: Machine,
    pub(super) ranks: usize,
    pub(super) states: Vec<Option<State>>,
    pub(super) steps: Vec<Step>,
    pub(super) consumers: Vec<Vec<NodeId>>,
    /// For each node, whether it outlives the plan.
    roots: Vec<bool>,
    /// What is in the device's memory, if that must be watched.
    pub(super) ledger: Option<Ledger>,
    /// For each node, the halo that its readers will ask for.
    pub(super) asked: Vec<Halo>,
    /// For each node, the halo that filters over it need themselves: it will be exchanged in any case.
    pub(super) filtered: Vec<Halo>,
    /// For each node, why its footprints are fetched.
    pub(super) fetched_because: Vec<String>,
    /// What was computed since footprints were last fetched ahead.
    pub(super) computed: Vec<NodeId>,
    /// Footprints that were fetched for launches to come, and whether they travel between devices.
    pub(super) fetched: Vec<(Temp, bool)>,
    /// A launch that waits for its footprints while others go on.
    pub(super) pending: Option<Pending>,
    /// Predicted seconds of footprints, from rank 0 alone or from all.
    pub(super) costs: HashMap<(Temp, bool), f64>,
}

/// A launch whose footprints travel from device to device.
pub(super) struct Pending {
    pub(super) node: NodeId,
    rows: Rows,
    /// The number of steps when it could have been launched.
    since: usize,
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph<Kernel>, setting: &'a Setting, states: Vec<Option<State>>) -> Planner<'a> {
        let ranks = setting.partition.ranks();
        let mut roots = vec![false; graph.nodes.len()];
        graph.roots.iter().for_each(|r| roots[r.0] = true);
        let mut p = Planner {
            graph,
            setting,
            machine: Machine { unified: setting.unified },
            ranks,
            states,
            steps: Vec::new(),
            consumers: graph.consumers(),
            roots,
            ledger: setting.capacity.filter(|_| !setting.unified).map(Ledger::new),
            asked: vec![Halo::NONE; graph.nodes.len()],
            filtered: vec![Halo::NONE; graph.nodes.len()],
            fetched_because: vec![String::new(); graph.nodes.len()],
            computed: Vec::new(),
            fetched: Vec::new(),
            pending: None,
            costs: HashMap::new(),
        };
        if ranks > 1 && setting.mode != Mode::Naive {
            p.look_ahead();
        }
        p.note_residents();
        p
    }

    /// Walks the graph backwards, so that an exchange can be made once, at the widest radius anybody will ask for, and a
    /// pixel operation can be computed on the rows that a later filter needs.
    fn look_ahead(&mut self) {
        for (id, node) in self.graph.iter().rev() {
            for (i, input) in node.inputs.iter().enumerate() {
                if let Some(own) = needed(node.op.access(i)) {
                    self.filtered[input.0] = self.filtered[input.0].max(own);
                    let passed_on = if own.is_none() { Halo { wrap: false, ..self.asked[id.0] } } else { own };
                    self.asked[input.0] = self.asked[input.0].max(passed_on);
                }
            }
        }
    }

    pub(super) fn state(&self, id: NodeId) -> State {
        self.states[id.0].unwrap_or(State { residency: Residency::Nothing, placement: Placement::Replicated })
    }

    pub(super) fn step(&mut self, action: Action, why: impl Into<String>) {
        self.steps.push(Step { action, why: why.into() });
    }

    pub(super) fn event(&mut self, id: NodeId, event: Event) {
        self.states[id.0] = Some(self.machine.next(self.state(id), event));
        match event {
            Event::Placed(_) => self.left_device(id),
            Event::PlacedOnDevice(_) => self.resized(id),
            _ => {}
        }
    }

    pub(super) fn label(&self, id: NodeId) -> String {
        format!("{id} {}", self.graph.node(id).op.name())
    }

    pub(super) fn naive(&self) -> bool {
        self.setting.mode == Mode::Naive
    }

    fn compute(&mut self, id: NodeId) {
        let graph = self.graph;
        let node = graph.node(id);
        if self.ranks == 1 {
            node.inputs.iter().for_each(|i| self.on_device(*i, id));
            self.launch(id, Rows::All, Halo::NONE);
        } else if self.naive() {
            self.compute_naively_distributed(id);
        } else {
            self.compute_distributed(id);
        }
        if self.naive() {
            self.return_to_host(id);
        }
    }

    /// Ends an operation of naive mode: the result is on rank 0's host, and nothing is on the device any more.
    fn return_to_host(&mut self, id: NodeId) {
        self.bring_to_host(id, "naive mode downloads every result");
        let placement = self.state(id).placement;
        if matches!(placement, Placement::Strips(_)) {
            self.step(Action::Collect(id), "naive mode gathers every result");
            self.event(id, Event::Placed(Placement::Root));
        }
        let graph = self.graph;
        for &node in graph.node(id).inputs.iter().chain([&id]) {
            let state = self.state(node);
            if state.residency.device() && !self.setting.unified {
                self.step(Action::Evict(node), "naive mode keeps nothing on the device");
                self.event(node, Event::Placed(state.placement));
            }
        }
    }

    fn launch(&mut self, id: NodeId, rows: Rows, room: Halo) {
        self.make_room(id, Some(rows), id);
        self.step(Action::Launch { node: id, rows, room, part: Part::Whole }, "");
        self.event(id, Event::Computed(rows.placement()));
        self.fetched.retain(|(t, _)| t.consumer != id);
        self.drop_temps(id);
    }

    fn compute_naively_distributed(&mut self, id: NodeId) {
        let graph = self.graph;
        let node = graph.node(id);
        let rows = if self.is_global(id) { Rows::All } else { Rows::Strip(Halo::NONE) };
        for (input, &source) in node.inputs.iter().enumerate() {
            let temp = Temp { consumer: id, input };
            let why = format!("naive mode scatters every input of {}", self.label(id));
            self.hold_temp(self.bytes_fetched(source, temp, rows), source, id);
            self.step(Action::Fetch { node: source, temp, rows, direct: false }, why);
        }
        self.launch(id, rows, Halo::NONE);
        self.all_reduce(id);
    }

    /// Whether every rank computes the whole (small) result.
    pub(super) fn is_global(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let whole = |i: &NodeId| self.state(*i).placement == Placement::Replicated;
        node.op.is_on_every_rank(node.shape, || node.inputs.iter().all(whole))
    }

    /// Makes one result of those of all ranks, where a launch yields a part of it.
    fn all_reduce(&mut self, id: NodeId) {
        match self.graph.node(id).op.all_reduce() {
            Some(AllReduce::Sum) => {
                self.bring_to_host(id, "ranks add up their counts on the host");
                self.step(Action::Sum(id), "each rank counted its own rows");
                self.event(id, Event::Placed(Placement::Replicated));
            }
            None => {}
        }
    }

    fn compute_distributed(&mut self, id: NodeId) {
        let graph = self.graph;
        let node = graph.node(id);
        for (input, &source) in node.inputs.iter().enumerate() {
            if !self.is_sent(Temp { consumer: id, input }) {
                self.spread(source, id);
            }
        }
        if node.op.goes_over_input() {
            node.inputs.iter().for_each(|i| self.on_device(*i, id));
            self.launch(id, Rows::All, Halo::NONE);
            self.all_reduce(id);
            return;
        }
        let global = self.is_global(id);
        let extend = if global { Halo::NONE } else { Halo { wrap: false, ..self.asked[id.0] } };
        let (due, extend) = self.borders(id, extend);
        let rows = if global { Rows::All } else { Rows::Strip(extend) };
        let begun = self.exchange(due, id, rows);
        let mut later = false;
        for (input, &source) in node.inputs.iter().enumerate() {
            if !self.is_fetched(id, input) {
                self.on_device(source, id);
            } else if self.computed.contains(&source) && self.leaves_early(source).is_some() {
                later = true; // before the next filter, or when this launch cannot wait any longer
            } else {
                self.fetch_for(id, input, rows);
            }
        }
        if later || self.fetched.iter().any(|(t, direct)| *direct && t.consumer == id) {
            self.pending = Some(Pending { node: id, rows, since: self.steps.len() });
        } else if begun.is_empty() {
            self.launch(id, rows, self.asked[id.0]);
        } else {
            self.launch_around(id, rows, &begun);
        }
    }

    /// Whether the rows that `id` reads of an input are fetched for it alone.
    pub(super) fn is_fetched(&self, id: NodeId, input: usize) -> bool {
        let node = self.graph.node(id);
        needed(node.op.access(input)).is_none() && self.state(node.inputs[input]).placement != Placement::Replicated
    }

    /// Makes the launch that waits for footprints, before node `next` is computed.
    fn launch_pending(&mut self, next: NodeId, disposable: &impl Fn(NodeId) -> bool) {
        let Some(Pending { node: id, rows, since }) = self.pending.take() else { return };
        let graph = self.graph;
        for (input, &source) in graph.node(id).inputs.iter().enumerate() {
            if self.is_fetched(id, input) {
                self.fetch_for(id, input, rows);
            } else {
                self.on_device(source, id); // it may have had to leave meanwhile
            }
        }
        let others = self.steps[since..].iter().filter(|s| matches!(s.action, Action::Launch { .. })).count();
        self.launch(id, rows, self.asked[id.0]);
        if let (Some(step), true) = (self.steps.last_mut(), others > 0) {
            let between = if step.why.is_empty() { "" } else { "; " };
            let _ = write!(step.why, "{between}what it reads of other ranks travelled during {others} launches");
        }
        let last = NodeId(next.0.saturating_sub(1).max(id.0));
        self.free_read_for_the_last_time(id, last, disposable);
    }

    /// Whether node `id` can be computed while footprints travel: it neither reads what waits for them nor anything that
    /// is not here.
    fn needs_nobody(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let waiting = |n: &NodeId| self.pending.as_ref().is_some_and(|p| p.node == *n);
        let here = |(i, source): (usize, &NodeId)| {
            let State { residency, placement } = self.state(*source);
            let enough = match (placement, needed(node.op.access(i))) {
                (Placement::Replicated, _) => true,
                (Placement::Strips(have), Some(need)) => {
                    let now = self.wanted(*source, need, self.asked[id.0]);
                    have.covers(now) && self.readers(*source, id).0.is_empty()
                }
                _ => false,
            };
            !waiting(source) && residency.device() && enough
        };
        let source = matches!(node.op, Kernel::Source(_));
        source || (node.op.all_reduce().is_none() && node.inputs.iter().enumerate().all(here))
    }

    pub(super) fn on_device(&mut self, source: NodeId, reader: NodeId) {
        if !self.state(source).residency.device() {
            self.make_room(source, None, reader);
            self.step(Action::Upload(source), format!("{} reads it on the device", self.label(reader)));
            self.event(source, Event::Uploaded);
        }
    }

    pub(super) fn bring_to_host(&mut self, id: NodeId, why: &str) {
        if !self.state(id).residency.host() {
            self.step(Action::Download(id), why);
            self.event(id, Event::Downloaded);
        }
    }

    fn deliver(&mut self, root: NodeId, want: Want) {
        if want == Want::Keep {
            return;
        }
        let State { residency, placement } = self.state(root);
        if want == Want::Handed && !residency.host() {
            let sent = Action::Send(root);
            // Two results may have become one.
            if !self.steps.iter().any(|s| s.action == sent) {
                self.step(sent, "the result is wanted by somebody who waits for it");
            }
            return;
        }
        let in_strips = matches!(placement, Placement::Strips(_));
        if want == Want::Everyone && in_strips && !residency.host() {
            // Each device's own copy to its host is faster than messages between hosts.
            let sent = Action::Replicate { node: root, direct: true };
            if self.between_devices(root, root, self.bytes_as(root, Rows::All), sent) {
                self.step(sent, "every rank wants the result");
                self.placed(root, Placement::Replicated, true);
            }
        }
        self.bring_to_host(root, "the result is wanted on the host");
        let placement = self.state(root).placement;
        match (want, placement) {
            (Want::Everyone, Placement::Root | Placement::Strips(_)) => {
                self.step(Action::Replicate { node: root, direct: false }, "every rank wants the result");
                self.event(root, Event::Placed(Placement::Replicated));
                self.step(Action::Deliver(root), "");
            }
            (Want::Root, Placement::Strips(_)) => self.step(Action::Gather(root), "rank 0 wants the result"),
            _ => self.step(Action::Deliver(root), ""),
        }
    }

    /// Drops the inputs of `id` (and `id` itself, if nobody reads it) that no node after `last` reads and nobody wants.
    fn free_read_for_the_last_time(&mut self, id: NodeId, last: NodeId, disposable: &impl Fn(NodeId) -> bool) {
        let mut done: Vec<NodeId> = self.graph.node(id).inputs.clone();
        done.push(id);
        done.sort_unstable();
        done.dedup();
        for p in done {
            let waits =
                self.pending.as_ref().is_some_and(|w| w.node == p || self.graph.node(w.node).inputs.contains(&p));
            let read_later = waits || self.consumers[p.0].last().is_some_and(|reader| *reader > last);
            let is_source = matches!(self.graph.node(p).op, Kernel::Source(_));
            if !read_later && !self.roots[p.0] && (!is_source || disposable(p)) && self.states[p.0].is_some() {
                self.step(Action::Free(p), "");
                self.states[p.0] = None;
                self.left_device(p);
            }
        }
    }
}
