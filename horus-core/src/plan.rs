//! The planner: what must happen, and in which order, so that no operation reads stale data.
//!
//! Every transfer is presumed redundant. It enters the plan only if an operation would otherwise read something that is
//! not there (lazy parallelization, thesis section 2.3). The planner is a pure function of graph, states and setting.

use std::fmt;

use crate::graph::{Graph, NodeId};
use crate::kernel::{Access, Kernel};
use crate::partition::Partition;
use crate::shape::Window;
use crate::state::{Event, Halo, Machine, Placement, Residency, State};

/// How much of the machinery is used; see the crate documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every operation uploads its inputs, runs and downloads its result; on several ranks it scatters and gathers too
    /// (thesis, Figure 2.4).
    Naive,
    /// The state machines decide (thesis, Figure 2.5).
    Lazy,
    /// The state machines decide, over the optimised graph.
    #[default]
    Fused,
}

impl std::str::FromStr for Mode {
    type Err = String;
    fn from_str(s: &str) -> Result<Mode, String> {
        match s {
            "naive" => Ok(Mode::Naive),
            "lazy" => Ok(Mode::Lazy),
            "fused" => Ok(Mode::Fused),
            _ => Err(format!("mode {s:?} is not one of naive, lazy, fused")),
        }
    }
}

/// What is wanted of a root once it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing more: it stays where it is.
    Keep,
    /// The pixels on rank 0's host.
    Root,
    /// The pixels on every rank's host.
    Everyone,
}

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How rows are divided, and among how many ranks.
    pub partition: Partition,
    /// Whether the device has memory of its own.
    pub unified: bool,
    /// How much of the machinery is used.
    pub mode: Mode,
}

/// A copy of some rows of an image, made for one input of one launch and dropped after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Temp {
    /// The launch.
    pub consumer: NodeId,
    /// Its input.
    pub input: usize,
}

/// Which rows of a result a rank computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All of them; every rank does the same.
    All,
    /// The rank's strip and so many rows around it.
    Strip(Halo),
}

impl Rows {
    /// Where the result is afterwards.
    pub const fn placement(self) -> Placement {
        match self {
            Rows::All => Placement::Replicated,
            Rows::Strip(extend) => Placement::Strips(extend),
        }
    }

    /// The rows of rank `rank` of a result of `height` rows.
    pub fn window(self, partition: &Partition, rank: usize, height: usize) -> Window {
        match self {
            Rows::All => Window::whole(height),
            Rows::Strip(extend) => partition.strip(rank, height).grown(extend.up, extend.down).clipped(height),
        }
    }
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Copy the host's buffer to the device.
    Upload(NodeId),
    /// Copy the device's buffer to the host.
    Download(NodeId),
    /// Send each rank its strip of an image that rank 0 has; `room` rows of halo are reserved around it.
    Scatter {
        /// The image.
        node: NodeId,
        /// Rows reserved around the strip.
        room: Halo,
    },
    /// Give every rank the whole image.
    Replicate(NodeId),
    /// Bring the border rows up to date, to the depth given.
    Exchange {
        /// The image.
        node: NodeId,
        /// Depth after the exchange.
        halo: Halo,
    },
    /// Bring the rows that one launch reads of one input into a temporary buffer.
    Fetch {
        /// The image.
        node: NodeId,
        /// For whom.
        temp: Temp,
        /// The rows that the launch computes.
        rows: Rows,
    },
    /// Run a kernel.
    Launch {
        /// The node to compute.
        node: NodeId,
        /// The rows to compute.
        rows: Rows,
        /// Rows reserved around the strip.
        room: Halo,
    },
    /// Add up the partial results of all ranks.
    Sum(NodeId),
    /// Collect the whole image on rank 0's host, as the result; the strips stay.
    Gather(NodeId),
    /// Collect the whole image on rank 0, and drop the strips (naive mode).
    Collect(NodeId),
    /// Hand the host's buffer over, as the result.
    Deliver(NodeId),
    /// Drop an image that nobody needs any more.
    Free(NodeId),
}

/// One step of a plan: what to do, and why leaving it out would be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// Why.
    pub why: String,
}

/// How often each kind of transfer happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Copies from host to device.
    pub uploads: usize,
    /// Copies from device to host.
    pub downloads: usize,
    /// Kernels launched.
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

/// What to do, in order. The same on every rank.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The kernels.
    pub graph: Graph<Kernel>,
    /// The steps.
    pub steps: Vec<Step>,
    /// What the plan was made for.
    pub setting: Setting,
    /// The states that the plan starts from: of the sources, in graph order.
    pub initial: Vec<Option<State>>,
    /// The states that the plan ends in.
    pub states: Vec<Option<State>>,
}

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
    for (id, node) in graph.iter() {
        if !matches!(node.op, Kernel::Source(_)) {
            p.compute(id);
        }
        p.free_read_for_the_last_time(id, &disposable);
    }
    for (&root, &want) in graph.roots.iter().zip(wants) {
        p.deliver(root, want);
    }
    let (steps, states) = (p.steps, p.states);
    Plan { graph, steps, setting: setting.clone(), initial, states }
}

struct Planner<'a> {
    graph: &'a Graph<Kernel>,
    setting: &'a Setting,
    machine: Machine,
    ranks: usize,
    states: Vec<Option<State>>,
    steps: Vec<Step>,
    consumers: Vec<Vec<NodeId>>,
    /// For each node, the halo that its readers will ask for.
    asked: Vec<Halo>,
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
            asked: vec![Halo::NONE; graph.nodes.len()],
        };
        if ranks > 1 && setting.mode != Mode::Naive {
            p.look_ahead();
        }
        p
    }

    /// Walks the graph backwards, so that an exchange can be made once, at the widest radius anybody will ask for, and a
    /// pixel operation can be computed on the rows that a later filter needs.
    fn look_ahead(&mut self) {
        for (id, node) in self.graph.iter().rev() {
            for (i, input) in node.inputs.iter().enumerate() {
                if let Access::Rows { reach, wrap } = node.op.access(i) {
                    let own = Halo { up: reach.up, down: reach.down, wrap: wrap && reach.up + reach.down > 0 };
                    let passed_on = if own.is_none() { Halo { wrap: false, ..self.asked[id.0] } } else { own };
                    self.asked[input.0] = self.asked[input.0].max(passed_on);
                }
            }
        }
    }

    fn state(&self, id: NodeId) -> State {
        self.states[id.0].unwrap_or(State { residency: Residency::Nothing, placement: Placement::Replicated })
    }

    fn step(&mut self, action: Action, why: impl Into<String>) {
        self.steps.push(Step { action, why: why.into() });
    }

    fn event(&mut self, id: NodeId, event: Event) {
        self.states[id.0] = Some(self.machine.next(self.state(id), event));
    }

    fn label(&self, id: NodeId) -> String {
        format!("{id} {}", self.graph.node(id).op.name())
    }

    fn naive(&self) -> bool {
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
        self.to_host(id, "naive mode downloads every result");
        let placement = self.state(id).placement;
        if matches!(placement, Placement::Strips(_)) {
            self.step(Action::Collect(id), "naive mode gathers every result");
            self.event(id, Event::Placed(Placement::Root));
        }
        let graph = self.graph;
        for node in graph.node(id).inputs.iter().chain([&id]) {
            let placement = self.state(*node).placement;
            self.event(*node, Event::Placed(placement));
        }
    }

    fn launch(&mut self, id: NodeId, rows: Rows, room: Halo) {
        self.step(Action::Launch { node: id, rows, room }, "");
        self.event(id, Event::Computed(rows.placement()));
    }

    fn compute_naively_distributed(&mut self, id: NodeId) {
        let graph = self.graph;
        let node = graph.node(id);
        let rows = if self.is_global(id) { Rows::All } else { Rows::Strip(Halo::NONE) };
        for (input, &source) in node.inputs.iter().enumerate() {
            let temp = Temp { consumer: id, input };
            let why = format!("naive mode scatters every input of {}", self.label(id));
            self.step(Action::Fetch { node: source, temp, rows }, why);
        }
        self.launch(id, rows, Halo::NONE);
        if matches!(node.op, Kernel::Histogram { .. }) {
            self.to_host(id, "ranks add up their counts on the host");
            self.sum(id);
        }
    }

    /// Whether every rank computes the whole (small) result.
    fn is_global(&self, id: NodeId) -> bool {
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
        for &source in &node.inputs {
            self.spread(source, id);
        }
        if matches!(node.op, Kernel::Histogram { .. }) {
            node.inputs.iter().for_each(|i| self.on_device(*i, id));
            self.launch(id, Rows::All, Halo::NONE);
            self.to_host(id, "ranks add up their counts on the host");
            self.sum(id);
            return;
        }
        let global = self.is_global(id);
        let mut extend = if global { Halo::NONE } else { Halo { wrap: false, ..self.asked[id.0] } };
        for (i, &source) in node.inputs.iter().enumerate() {
            if let Access::Rows { reach, wrap } = node.op.access(i) {
                let need = Halo { up: reach.up, down: reach.down, wrap: wrap && reach.up + reach.down > 0 };
                self.borders(source, need, id);
                if let Placement::Strips(have) = self.state(source).placement {
                    // What is left of the input's halo bounds how far beyond the strip the result can be computed.
                    extend.up = extend.up.min(have.up - need.up);
                    extend.down = extend.down.min(have.down - need.down);
                }
            }
        }
        let rows = if global { Rows::All } else { Rows::Strip(extend) };
        for (input, &source) in node.inputs.iter().enumerate() {
            let partly = !matches!(node.op.access(input), Access::Rows { .. });
            if partly && self.state(source).placement != Placement::Replicated {
                let temp = Temp { consumer: id, input };
                let why = format!("{} reads other rows than its own", self.label(id));
                self.step(Action::Fetch { node: source, temp, rows }, why);
            } else {
                self.on_device(source, id);
            }
        }
        self.launch(id, rows, self.asked[id.0]);
    }

    /// Takes an image away from rank 0 alone, and gives it to all if several launches will read it out of their strip.
    fn spread(&mut self, source: NodeId, reader: NodeId) {
        let placement = self.state(source).placement;
        if placement == Placement::Replicated {
            return;
        }
        let reads = self.consumers[source.0].iter().filter(|c| **c >= reader).flat_map(|c| {
            let node = self.graph.node(*c);
            node.inputs
                .iter()
                .enumerate()
                .filter(|(_, s)| **s == source)
                .map(|(i, _)| node.op.access(i))
                .collect::<Vec<_>>()
        });
        let (rows, elsewhere): (Vec<Access>, Vec<Access>) = reads.partition(|a| matches!(a, Access::Rows { .. }));
        if elsewhere.len() > 1 {
            self.to_host(source, "it is sent to every rank from the host");
            self.step(Action::Replicate(source), format!("{} launches read it across strips", elsewhere.len()));
            self.event(source, Event::Placed(Placement::Replicated));
        } else if placement == Placement::Root && !rows.is_empty() {
            self.to_host(source, "it is scattered from the host");
            let room = self.asked[source.0];
            self.step(Action::Scatter { node: source, room }, format!("{} needs its strip", self.label(reader)));
            self.event(source, Event::Placed(Placement::Strips(Halo::NONE)));
        }
    }

    /// Makes the borders of a distributed image valid to at least `need`; then to the widest depth anybody will ask for.
    fn borders(&mut self, source: NodeId, need: Halo, reader: NodeId) {
        if let Placement::Strips(have) = self.state(source).placement {
            if !have.covers(need) {
                let halo = self.asked[source.0].max(need);
                let why = format!("{} reads {need} rows beyond the strip, {have} are valid", self.label(reader));
                self.step(Action::Exchange { node: source, halo }, why);
                self.event(source, Event::Exchanged(halo));
            }
        }
    }

    fn on_device(&mut self, source: NodeId, reader: NodeId) {
        if !self.state(source).residency.device() {
            self.step(Action::Upload(source), format!("{} reads it on the device", self.label(reader)));
            self.event(source, Event::Uploaded);
        }
    }

    fn to_host(&mut self, id: NodeId, why: &str) {
        if !self.state(id).residency.host() {
            self.step(Action::Download(id), why);
            self.event(id, Event::Downloaded);
        }
    }

    fn deliver(&mut self, root: NodeId, want: Want) {
        if want == Want::Keep {
            return;
        }
        self.to_host(root, "the result is wanted on the host");
        let placement = self.state(root).placement;
        match (want, placement) {
            (Want::Everyone, Placement::Root | Placement::Strips(_)) => {
                self.step(Action::Replicate(root), "every rank wants the result");
                self.event(root, Event::Placed(Placement::Replicated));
                self.step(Action::Deliver(root), "");
            }
            (Want::Root, Placement::Strips(_)) => self.step(Action::Gather(root), "rank 0 wants the result"),
            _ => self.step(Action::Deliver(root), ""),
        }
    }

    /// Drops the inputs of `id` (and `id` itself, if nobody reads it) that no later node reads and nobody wants.
    fn free_read_for_the_last_time(&mut self, id: NodeId, disposable: &impl Fn(NodeId) -> bool) {
        let mut done: Vec<NodeId> = self.graph.node(id).inputs.clone();
        done.push(id);
        done.sort_unstable();
        done.dedup();
        for p in done {
            let read_later = self.consumers[p.0].last().is_some_and(|last| *last > id);
            let is_source = matches!(self.graph.node(p).op, Kernel::Source(_));
            if !read_later
                && !self.graph.roots.contains(&p)
                && (!is_source || disposable(p))
                && self.states[p.0].is_some()
            {
                self.step(Action::Free(p), "");
                self.states[p.0] = None;
            }
        }
    }
}

impl Plan {
    /// How often each kind of transfer happens.
    pub fn counts(&self) -> Counts {
        let mut c = Counts::default();
        for s in &self.steps {
            match s.action {
                Action::Upload(_) => c.uploads += 1,
                Action::Download(_) => c.downloads += 1,
                Action::Launch { .. } => c.launches += 1,
                Action::Scatter { .. } => c.scatters += 1,
                Action::Gather(_) | Action::Collect(_) => c.gathers += 1,
                Action::Exchange { .. } => c.exchanges += 1,
                Action::Replicate(_) => c.replications += 1,
                // Naive mode scatters an input, and uploads it, for every launch anew.
                Action::Fetch { .. } if self.setting.mode == Mode::Naive => {
                    c.scatters += 1;
                    c.uploads += usize::from(!self.setting.unified);
                }
                Action::Fetch { .. } => c.footprints += 1,
                Action::Sum(_) | Action::Deliver(_) | Action::Free(_) => {}
            }
        }
        c
    }

    /// The text of one action, as in the plan's display.
    pub fn describe(&self, action: &Action) -> String {
        let what = |id: NodeId| {
            let n = self.graph.node(id);
            format!("{id} {} {}", n.shape, n.dtype)
        };
        match *action {
            Action::Upload(n) => format!("upload     {}", what(n)),
            Action::Download(n) => format!("download   {}", what(n)),
            Action::Scatter { node, .. } => format!("scatter    {}", what(node)),
            Action::Replicate(n) => format!("replicate  {}", what(n)),
            Action::Exchange { node, halo } => format!("exchange   {} to depth {halo}", what(node)),
            Action::Fetch { node, temp, .. } => format!("fetch      rows of {} for {}", what(node), temp.consumer),
            Action::Launch { node, rows, .. } => {
                let n = self.graph.node(node);
                let inputs: Vec<String> = n.inputs.iter().map(NodeId::to_string).collect();
                let rows = match rows {
                    Rows::Strip(extend) if !extend.is_none() => format!(", and {extend} rows around the strip"),
                    _ => String::new(),
                };
                format!("launch     {} = {} ({}){rows}", what(node), n.op.name(), inputs.join(", "))
            }
            Action::Sum(n) => format!("sum        {} over ranks", what(n)),
            Action::Gather(n) | Action::Collect(n) => format!("gather     {}", what(n)),
            Action::Deliver(n) => format!("deliver    {}", what(n)),
            Action::Free(n) => format!("free       {}", what(n)),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, s) in self.steps.iter().enumerate() {
            write!(f, "{i:4}  {}", self.describe(&s.action))?;
            if s.why.is_empty() { writeln!(f)? } else { writeln!(f, "    [{}]", s.why)? }
        }
        let c = self.counts();
        writeln!(
            f,
            "      {} launches, {} uploads, {} downloads, {} scatters, {} gathers, {} exchanges, {} replications, {} fetches",
            c.launches, c.uploads, c.downloads, c.scatters, c.gathers, c.exchanges, c.replications, c.footprints
        )
    }
}
