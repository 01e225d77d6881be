//! The planner itself: walks the graph in order and asks of each input whether it is where it is read.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::borders::needed;
use super::footprints::is_filter;
use super::memory::Ledger;
use super::{Action, Mode, Part, Plan, Rows, Setting, Step, Temp, Want};
use crate::graph::{Graph, NodeId};
use crate::kernel::{Access, Kernel};
use crate::movement::{BLOCK, Link, Traffic, movement, rows_of};
use crate::state::{Event, Halo, Machine, Placement, Residency, State};

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
    let (steps, states) = (p.steps, p.states);
    Plan { graph, steps, setting: setting.clone(), initial, states, fits }
}

pub(super) struct Planner<'a> {
    pub(super) graph: &'a Graph<Kernel>,
    pub(super) setting: &'a Setting,
    machine: Machine,
    ranks: usize,
    pub(super) states: Vec<Option<State>>,
    pub(super) steps: Vec<Step>,
    pub(super) consumers: Vec<Vec<NodeId>>,
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
    costs: HashMap<(Temp, bool), f64>,
}

/// A launch whose footprints travel from device to device.
pub(super) struct Pending {
    pub(super) node: NodeId,
    rows: Rows,
    /// The number of steps when it could have been launched.
    since: usize,
}

/// How an image gets to launches that read it across strips.
pub(super) struct Choice {
    pub(super) replicate: bool,
    /// Whether rank 0 first gives each rank its strip, so that all send.
    scatter: bool,
    /// Predicted seconds.
    seconds: f64,
    pub(super) why: String,
}

/// Bytes per second that a rank uploads while others of its host do: 64 MiB took two H200s 3.3 ms each.
const BUS: f64 = 20e9;

fn microseconds(seconds: f64) -> String {
    format!("{:.0} us", seconds * 1e6)
}

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph<Kernel>, setting: &'a Setting, states: Vec<Option<State>>) -> Planner<'a> {
        let ranks = setting.partition.ranks();
        let mut p = Planner {
            graph,
            setting,
            machine: Machine { unified: setting.unified },
            ranks,
            states,
            steps: Vec::new(),
            consumers: graph.consumers(),
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
        if matches!(node.op, Kernel::Histogram { .. }) {
            self.bring_to_host(id, "ranks add up their counts on the host");
            self.sum(id);
        }
    }

    /// Whether every rank computes the whole (small) result.
    pub(super) fn is_global(&self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let whole = |i: &NodeId| self.state(*i).placement == Placement::Replicated;
        match node.op {
            Kernel::Fold(_) | Kernel::Histogram { .. } => true,
            _ => node.shape.area() == 1 && node.inputs.iter().all(whole),
        }
    }

    fn sum(&mut self, id: NodeId) {
        self.step(Action::Sum(id), "each rank counted its own rows");
        self.event(id, Event::Placed(Placement::Replicated));
    }

    fn compute_distributed(&mut self, id: NodeId) {
        let graph = self.graph;
        let node = graph.node(id);
        for (input, &source) in node.inputs.iter().enumerate() {
            if !self.is_sent(Temp { consumer: id, input }) {
                self.spread(source, id);
            }
        }
        if matches!(node.op, Kernel::Histogram { .. }) {
            node.inputs.iter().for_each(|i| self.on_device(*i, id));
            self.launch(id, Rows::All, Halo::NONE);
            self.bring_to_host(id, "ranks add up their counts on the host");
            self.sum(id);
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
        source || (!matches!(node.op, Kernel::Histogram { .. }) && node.inputs.iter().enumerate().all(here))
    }

    /// Takes an image away from rank 0 alone, or of one that every host has brings the strips to the devices; and gives it
    /// to all if that is cheaper than what the remaining launches that read it out of their strip would fetch.
    fn spread(&mut self, source: NodeId, reader: NodeId) {
        if self.state(source).placement == Placement::Replicated && !self.upload_strips(source, reader) {
            return;
        }
        let placement = self.state(source).placement;
        let on_root = placement == Placement::Root;
        let (elsewhere, in_strips) = self.readers(source, reader);
        if elsewhere.is_empty() {
            if on_root && in_strips {
                self.scatter(source, reader);
            }
            return;
        }
        let choice = self.choose(source, &elsewhere, on_root, in_strips);
        if choice.scatter {
            self.scatter(source, reader);
        }
        if choice.replicate {
            let sent = Action::Replicate { node: source, direct: true };
            let direct = self.between_devices(source, reader, self.bytes_as(source, Rows::All), sent);
            if !direct {
                self.bring_to_host(source, "it is sent to every rank from the host");
            }
            self.step(Action::Replicate { node: source, direct }, choice.why);
            self.placed(source, Placement::Replicated, direct);
        } else {
            self.fetched_because[source.0] = choice.why;
        }
    }

    /// Uploads of an image that every host has only the strips, and rows around them, where that takes less time than the
    /// whole image, and than what devices then send each other. Whether it did. The host's copy goes then: what wants it
    /// back gathers it.
    fn upload_strips(&mut self, source: NodeId, reader: NodeId) -> bool {
        let residency = self.state(source).residency;
        let divisible = self.graph.node(source).shape.height >= self.ranks;
        // Every rank computes a single pixel, for which it needs all that it reads.
        let for_all = self.consumers[source.0].iter().any(|c| self.graph.node(*c).shape.area() == 1);
        if !self.setting.direct || residency.device() || !residency.host() || !divisible || for_all {
            return false;
        }
        let halo = self.read_around(source, reader);
        let (whole, strip) = (self.bytes_as(source, Rows::All), self.bytes_as(source, Rows::Strip(halo)));
        let saved = whole.saturating_sub(strip) as f64 / BUS;
        let (elsewhere, in_strips) = self.readers(source, reader);
        let sent = match elsewhere.len() {
            0 => 0.0,
            // What is fetched or given to all then, and its messages, are no larger than the image, either of them.
            _ if !self.fits_beside(source, strip + whole, reader) => return false,
            _ => self.choose(source, &elsewhere, false, in_strips).seconds,
        };
        if saved <= sent {
            return false;
        }
        self.make_room(source, Some(Rows::Strip(halo)), reader);
        let why = format!("{} needs its strip, and every host has the whole", self.label(reader));
        self.step(Action::UploadStrip { node: source, halo }, why);
        self.event(source, Event::PlacedOnDevice(Placement::Strips(halo)));
        true
    }

    /// How far around the strips `source` is read from `reader` on, if results are computed on all rows that filters ask
    /// for around theirs instead of exchanging them.
    fn read_around(&self, source: NodeId, reader: NodeId) -> Halo {
        let later = self.consumers[source.0].iter().filter(|c| **c >= reader);
        let halos = later.flat_map(|&consumer| {
            let (node, asked) = (self.graph.node(consumer), self.asked[consumer.0]);
            let own = node.inputs.iter().enumerate().filter(move |(_, s)| **s == source);
            let own = own.filter_map(|(i, _)| needed(node.op.access(i)));
            own.map(move |own| Halo { up: own.up + asked.up, down: own.down + asked.down, ..own })
        });
        halos.fold(self.asked[source.0], Halo::max)
    }

    fn scatter(&mut self, source: NodeId, reader: NodeId) {
        let room = self.asked[source.0];
        let sent = Action::Scatter { node: source, room, direct: true };
        let strip = self.bytes_as(source, Rows::Strip(Halo::NONE));
        let direct = self.between_devices(source, reader, strip, sent);
        if !direct {
            self.bring_to_host(source, "it is scattered from the host");
        }
        self.step(Action::Scatter { node: source, room, direct }, format!("{} needs its strip", self.label(reader)));
        self.placed(source, Placement::Strips(Halo::NONE), direct);
    }

    /// Whether a transfer of `source` goes from device to device: the devices are connected, and there is room for the
    /// image, for what the transfer leaves beside it (`bytes`) and for its packed messages. If so, the image is on the
    /// device and the room is there.
    pub(super) fn between_devices(&mut self, source: NodeId, reader: NodeId, bytes: usize, sent: Action) -> bool {
        if !self.setting.direct || self.setting.unified || self.naive() {
            return false;
        }
        let bytes = if self.ledger.is_some() { bytes + self.scratch(source, sent) } else { 0 };
        if !self.fits_beside(source, bytes, reader) {
            return false;
        }
        self.on_device(source, reader);
        self.make_room_for(bytes, source, reader);
        true
    }

    /// An upper bound of the bytes of packed messages on a rank.
    pub(super) fn scratch(&self, source: NodeId, sent: Action) -> usize {
        if self.ledger.is_none() {
            return 0;
        }
        if let Action::Exchange { node, halo, .. } = sent {
            let n = self.graph.node(node);
            return 2 * (halo.up + halo.down) * n.shape.width * n.shape.channels * n.dtype.size();
        }
        let traffic = self.traffic(sent, self.state(source).placement == Placement::Root);
        let packs = matches!(sent, Action::Fetch { .. }) || self.graph.node(source).shape.channels > 1;
        if packs { traffic.sent + traffic.received } else { 0 }
    }

    fn placed(&mut self, id: NodeId, placement: Placement, direct: bool) {
        self.event(id, if direct { Event::PlacedOnDevice(placement) } else { Event::Placed(placement) });
    }

    /// The reads of `source` from `reader` on that leave the strip, and whether some do not.
    pub(super) fn readers(&self, source: NodeId, reader: NodeId) -> (Vec<Temp>, bool) {
        let mut elsewhere = Vec::new();
        let mut in_strips = false;
        let mut consumers: Vec<NodeId> = self.consumers[source.0].iter().copied().filter(|c| *c >= reader).collect();
        consumers.dedup();
        for consumer in consumers {
            let node = self.graph.node(consumer);
            for (input, _) in node.inputs.iter().enumerate().filter(|(_, s)| **s == source) {
                match node.op.access(input) {
                    Access::Rows { .. } => in_strips = true,
                    _ => elsewhere.push(Temp { consumer, input }),
                }
            }
        }
        (elsewhere, in_strips)
    }

    /// Chooses between fetching footprints launch by launch and giving every rank the whole image, by predicted time:
    /// what is sent, and the copies that each rank then makes of what it got.
    pub(super) fn choose(&mut self, source: NodeId, elsewhere: &[Temp], on_root: bool, in_strips: bool) -> Choice {
        let link = self.link();
        let room = Halo::NONE;
        let direct = self.setting.direct;
        let time = |p: &Self, action, on_root| p.traffic(action, on_root).time;
        // Between devices, what arrives is where the launch reads it.
        let copy = |bytes: usize| if direct { 0.0 } else { bytes as f64 / link.bandwidth };
        let whole = copy(self.graph.node(source).shape.len() * self.graph.node(source).dtype.size());
        let scatter = if on_root { time(self, Action::Scatter { node: source, room, direct }, true) } else { 0.0 };
        let replicate = |p: &Self, on_root| time(p, Action::Replicate { node: source, direct }, on_root) + whole;
        let mut fetch = |on_root| elsewhere.iter().map(|t| self.cost_of_fetching(source, *t, on_root)).sum::<f64>();
        let fetches = (fetch(false) + scatter, (on_root && !in_strips).then(|| fetch(true)));
        let whole = (replicate(self, false) + scatter, on_root.then(|| replicate(self, true)));
        let best = |(spread, direct): (f64, Option<f64>)| match direct {
            Some(direct) if direct <= spread => (direct, false),
            _ => (spread, on_root),
        };
        let ((fetching, scatter_to_fetch), (replicating, scatter_to_replicate)) = (best(fetches), best(whole));
        let replicate = replicating < fetching;
        let count = elsewhere.len();
        let launches = if count == 1 { "1 launch reads".to_owned() } else { format!("{count} launches read") };
        let seconds = replicating.min(fetching);
        let (fetching, replicating) = (microseconds(fetching), microseconds(replicating));
        Choice {
            replicate,
            scatter: if replicate { scatter_to_replicate } else { scatter_to_fetch },
            seconds,
            why: format!("{launches} it across strips: {fetching} as footprints, {replicating} as a whole"),
        }
    }

    /// How long messages take where most of them go.
    fn link(&self) -> Link {
        // 1.4 MB to one neighbour take 17 microseconds between two H200s by NVLink (horus-fabric-bench).
        if self.setting.direct { Link { latency: 10e-6, bandwidth: 150e9 } } else { Link::default() }
    }

    pub(super) fn traffic(&self, action: Action, on_root: bool) -> Traffic {
        let (Action::Scatter { node, .. }
        | Action::Replicate { node, .. }
        | Action::Exchange { node, .. }
        | Action::Fetch { node, .. }) = action
        else {
            return Traffic::default();
        };
        let coarse = BLOCK.max(self.graph.node(node).shape.height / 64);
        movement(self.graph, &self.setting.partition, action, on_root, coarse)
            .map_or(Traffic::default(), |m| m.traffic(self.link()))
    }

    /// Predicted seconds to fetch what one launch reads of one input, and to copy it where the launch reads it.
    fn cost_of_fetching(&mut self, node: NodeId, temp: Temp, on_root: bool) -> f64 {
        if let Some(cost) = self.costs.get(&(temp, on_root)) {
            return *cost;
        }
        let consumer = self.graph.node(temp.consumer);
        let everywhere =
            matches!(consumer.op, Kernel::Fold(_) | Kernel::Histogram { .. }) || consumer.shape.area() == 1;
        let halo = Halo { wrap: false, ..self.asked[temp.consumer.0] };
        let rows = if everywhere { Rows::All } else { Rows::Strip(halo) };
        let direct = self.setting.direct;
        let sent = self.traffic(Action::Fetch { node, temp, rows, direct }, on_root).time;
        let copied = if direct { 0 } else { self.bytes_fetched(node, temp, rows) };
        let cost = sent + copied as f64 / self.link().bandwidth;
        self.costs.insert((temp, on_root), cost);
        cost
    }

    /// Bytes of the copy that a launch reads of a source, on the rank that needs most.
    pub(super) fn bytes_fetched(&self, node: NodeId, temp: Temp, rows: Rows) -> usize {
        let (consumer, shape) = (self.graph.node(temp.consumer), self.graph.node(node).shape);
        let partition = &self.setting.partition;
        let held = (0..self.ranks).map(|rank| {
            let computed = rows_of(self.graph, partition, temp.consumer, rank, rows);
            consumer.op.footprint(temp.input, computed, consumer.shape, shape).len()
        });
        held.max().unwrap_or_default() * shape.width * shape.channels * self.graph.node(node).dtype.size()
    }

    fn on_device(&mut self, source: NodeId, reader: NodeId) {
        if !self.state(source).residency.device() {
            self.make_room(source, None, reader);
            self.step(Action::Upload(source), format!("{} reads it on the device", self.label(reader)));
            self.event(source, Event::Uploaded);
        }
    }

    fn bring_to_host(&mut self, id: NodeId, why: &str) {
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
            if !read_later
                && !self.graph.roots.contains(&p)
                && (!is_source || disposable(p))
                && self.states[p.0].is_some()
            {
                self.step(Action::Free(p), "");
                self.states[p.0] = None;
                self.left_device(p);
            }
        }
    }
}
