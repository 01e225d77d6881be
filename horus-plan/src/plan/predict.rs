//! Predicted start and end of each step of a plan on rank 0. Queues run concurrently, subject to the waits of
//! the plan.

use std::fmt;

use super::finished::Plan;
use super::follow::Follower;
use super::launches::LaunchedNodes;
use super::movement::{BLOCK, LinkLevel, Load, Traffic, movement, over_bus, rows_of, windows_of, work_of};
use super::queue::Queue;
use super::step::{Action, scattered_at_once};
use crate::ir::graph::NodeId;
use crate::machine::{HostSide, LaunchBottleneck, Machine, MachineProfile};

/// The bottleneck of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepBottleneck {
    /// A negligible step.
    Nothing,
    /// A copy between host and device.
    Bus,
    /// Messages between ranks.
    Network,
    /// The kernel, with its bottleneck.
    Kernel(LaunchBottleneck),
}

impl StepBottleneck {
    /// A word for the bottleneck.
    pub const fn name(self) -> &'static str {
        match self {
            StepBottleneck::Nothing => "",
            StepBottleneck::Bus => "bus",
            StepBottleneck::Network => "network",
            StepBottleneck::Kernel(LaunchBottleneck::Launch) => "launch",
            StepBottleneck::Kernel(LaunchBottleneck::Memory) => "memory",
            StepBottleneck::Kernel(LaunchBottleneck::Arithmetic) => "arithmetic",
            StepBottleneck::Kernel(LaunchBottleneck::Bus) => "bus",
        }
    }
}

/// The start and end of a step, in seconds from the beginning of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Start.
    pub start: f64,
    /// End.
    pub end: f64,
    /// The bottleneck.
    pub bounded: StepBottleneck,
}

/// The predicted execution of a plan, step by step.
#[derive(Clone, Debug)]
pub struct PlanPrediction<'a> {
    plan: &'a Plan,
    /// Time of each step.
    pub steps: Vec<Timing>,
    /// Seconds until the last step ends.
    pub seconds: f64,
}

impl PlanPrediction<'_> {
    /// The predicted plan.
    pub const fn plan(&self) -> &Plan {
        self.plan
    }
}

impl fmt::Display for PlanPrediction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "step  queue         from ms     to ms  bound by    waits for")?;
        for (i, (step, timing)) in self.plan.steps.iter().zip(&self.steps).enumerate() {
            let (queue, bound) = (step.action.queue().to_string(), timing.bounded.name());
            let (start, end) = (timing.start * 1e3, timing.end * 1e3);
            let waits: Vec<String> = step.waits.iter().map(usize::to_string).collect();
            let line = format!("{i:4}  {queue:10} {start:10.3} {end:9.3}  {bound:10}  {}", waits.join(", "));
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f, "      {:.3} ms in all, by the {}", self.seconds * 1e3, self.plan.setting.machine)
    }
}

/// Predicts the times of the steps of `plan` on rank 0, and its end.
pub fn predict(plan: &Plan) -> PlanPrediction<'_> {
    let machine = &plan.setting.machine;
    let (steps, seconds) =
        QueueClock::run(plan, PredictedRanks { machine, sampled: &[0], links: None }, &mut |_, _, _| ());
    PlanPrediction { plan, steps, seconds }
}

/// Seconds during which two copies overlap.
pub(super) fn overlap(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[1].min(b[1]) - a[0].max(b[0])).max(0.0)
}

/// The ranks whose slowest determines the time of a step.
#[derive(Clone, Copy)]
pub(super) struct PredictedRanks<'a> {
    /// Their machines.
    pub(super) machine: &'a Machine,
    /// The ranks whose launches and copies are predicted.
    pub(super) sampled: &'a [usize],
    /// The machines whose hierarchy of links messages use; `None` for the slowest link.
    pub(super) links: Option<&'a Machine>,
}

impl PredictedRanks<'_> {
    /// The highest cost on any of the sampled ranks.
    fn slowest(&self, cost: impl Fn(&MachineProfile) -> f64) -> f64 {
        self.sampled.iter().map(|rank| cost(self.machine.of(*rank))).fold(0.0, f64::max)
    }
}

/// The predicted cost of a step by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepCost {
    pub(super) seconds: f64,
    pub(super) bounded: StepBottleneck,
    /// Its messages.
    pub(super) traffic: Option<Traffic>,
    /// Bytes copied to the device and to the host.
    pub(super) copied: [usize; 2],
    /// The only rank that launches, or that has the image.
    pub(super) owner: Option<usize>,
    /// Set for a launch that stores to the host's memory.
    stores: bool,
}

impl StepCost {
    fn without_time(self) -> StepCost {
        let traffic = self.traffic.map(|traffic| Traffic { time: 0.0, ..traffic });
        StepCost { seconds: 0.0, traffic, ..self }
    }

    fn new(seconds: f64, bounded: StepBottleneck) -> StepCost {
        StepCost { seconds, bounded, traffic: None, copied: [0; 2], owner: None, stores: false }
    }
}

pub(super) struct QueueClock<'a> {
    plan: &'a Plan,
    ranks: PredictedRanks<'a>,
    /// The machine of rank 0.
    profile: &'a MachineProfile,
    /// Time when the host can begin the next step.
    host: f64,
    /// Time when each queue is free.
    free: [f64; 5],
    /// For copies to the device and copies to the host: start and end of the last sequence of copies without
    /// a gap.
    copies: [[f64; 2]; 2],
    /// Time when each rank other than the first ends what it computes alone.
    others: Vec<f64>,
    /// Time when the last launch of all ranks ends.
    common: f64,
    timings: Vec<Timing>,
}

impl<'a> QueueClock<'a> {
    /// The times of all steps, and the end of the last. `each` receives every step as it is predicted.
    pub(super) fn run(
        plan: &'a Plan,
        ranks: PredictedRanks<'a>,
        each: &mut dyn FnMut(usize, Option<LaunchedNodes<'_>>, StepCost),
    ) -> (Vec<Timing>, f64) {
        let profile = ranks.machine.of(0);
        let others = vec![0.0; plan.setting.partition.ranks()];
        let (free, copies, timings) = ([0.0; 5], [[0.0; 2]; 2], Vec::new());
        let mut clock = QueueClock { plan, ranks, profile, host: 0.0, free, copies, others, common: 0.0, timings };
        let mut follower = Follower::new(plan, 0, false);
        let launches = plan.launches();
        let mut at_once = 0;
        for (i, step) in plan.steps.iter().enumerate() {
            if i >= at_once {
                at_once = i + scattered_at_once(&plan.steps[i..], |n| follower.owner(n));
            }
            let place = (follower.owner(step.action.node()), follower.on_device(step.action));
            let bytes = follower.step(step.action).unwrap_or(0);
            let cost = clock.takes(step.action, launches.at(i), bytes, place, &|n| follower.is_mapped(n));
            // Messages that travel at once take the time of the last.
            let cost = if i + 1 < at_once { cost.without_time() } else { cost };
            clock.step(i, &cost);
            each(i, launches.at(i), cost);
        }
        clock.send_last();
        let end = clock.timings.iter().map(|t| t.end).fold(clock.host, f64::max);
        (clock.timings, end)
    }

    /// Times the deferred copies of results: they begin when the host has issued all other steps and the
    /// result is computed.
    fn send_last(&mut self) {
        for i in 0..self.timings.len() {
            if self.is_later(i) {
                let Timing { start: ready, end, .. } = self.timings[i];
                let start = self.host.max(ready).max(self.free[Queue::Download as usize]);
                let end = self.copy(Queue::Download, [start, start + (end - ready)]);
                self.free[Queue::Download as usize] = end;
                self.timings[i] = Timing { start, end, ..self.timings[i] };
            }
        }
    }

    /// Returns `true` for a copy of a result that begins when the host has issued all other steps.
    fn is_later(&self, step: usize) -> bool {
        self.plan.setting.mappable.downloads_last && matches!(self.plan.steps[step].action, Action::Send { .. })
    }

    /// The end of a copy in its queue. Copies in both directions slow each other down.
    fn copy(&mut self, queue: Queue, [start, end]: [f64; 2]) -> f64 {
        let back = usize::from(queue == Queue::Download);
        let end = end + (self.profile.both_ways - 1.0) * overlap([start, end], self.copies[1 - back]);
        let [first, last] = self.copies[back];
        self.copies[back] = [if start > last { start } else { first }, end];
        end
    }

    /// The cost of a step by itself. `place` gives the only rank that has its image, if there is one, and whether
    /// the device has it.
    fn takes(
        &self,
        action: Action,
        launched: Option<LaunchedNodes<'_>>,
        bytes: usize,
        place: (Option<usize>, bool),
        mapped: &dyn Fn(NodeId) -> bool,
    ) -> StepCost {
        let bus = |copied: [usize; 2], side| {
            let [up, down] = copied;
            let seconds = self.ranks.slowest(|m| m.upload(up, side) + m.download(down, side));
            StepCost { copied, ..StepCost::new(seconds, StepBottleneck::Bus) }
        };
        match action {
            Action::Upload { .. } | Action::UploadStrip { .. } => bus([bytes, 0], HostSide::Pinned),
            Action::Send { .. } => bus([0, bytes], HostSide::Pinned),
            Action::Download(_) => bus([0, bytes], HostSide::Staged),
            Action::Launch { node: id, rows, part, .. } => {
                // A result of an earlier step's launch takes no time.
                let Some(launched) = launched else { return StepCost::new(0.0, StepBottleneck::Nothing) };
                let (graph, partition) = (&self.plan.graph, &self.plan.setting.partition);
                let owner = rows.placement().owner();
                let ranks = owner.as_ref().map_or(self.ranks.sampled, std::slice::from_ref);
                let costs = ranks.iter().map(|rank| {
                    let windows = windows_of(graph, partition, id, *rank, rows, part);
                    let mut stores = false;
                    let [first, second] = windows.map(|rows| {
                        let bus = over_bus(graph, &launched, rows, mapped);
                        stores |= bus.written > 0.0;
                        self.ranks.machine.of(*rank).launch_over(&work_of(graph, &launched, rows), bus)
                    });
                    let longer = if second.seconds > first.seconds { second } else { first };
                    StepCost {
                        stores,
                        owner,
                        ..StepCost::new(first.seconds + second.seconds, StepBottleneck::Kernel(longer.bound))
                    }
                });
                let slowest = costs.max_by(|a, b| a.seconds.total_cmp(&b.seconds));
                slowest.unwrap_or(StepCost::new(0.0, StepBottleneck::Nothing))
            }
            Action::Map(_)
            | Action::Unmap(_)
            | Action::Evict(_)
            | Action::Deliver(_)
            | Action::Free(_)
            | Action::Finish(_) => StepCost::new(0.0, StepBottleneck::Nothing),
            Action::Sum(n) => self.sum(n),
            Action::Scatter { direct, .. }
            | Action::Replicate { direct, .. }
            | Action::Exchange { direct, .. }
            | Action::Begin { direct, .. }
            | Action::Fetch { direct, .. }
            | Action::Gather { direct, .. } => self.messages(action, place, direct),
            Action::Collect(_) => self.messages(action, place, false),
        }
    }

    /// The cost of a sum on rank 0 that is sent back to all ranks.
    fn sum(&self, n: NodeId) -> StepCost {
        let (node, ranks) = (self.plan.graph.node(n), self.plan.setting.partition.ranks());
        let (bytes, others) = (node.shape.len() * node.dtype.size(), ranks - 1);
        let link = |rank| match self.ranks.links {
            Some(links) => (links.level(0, rank, false), links.link_between(0, rank, false)),
            None => (LinkLevel::Rack, self.plan.setting.machine.link(false)),
        };
        let mut traffic = Traffic { sent: others * bytes, received: others * bytes, ..Traffic::default() };
        for (level, link) in (1..ranks).map(link) {
            traffic.time += 2.0 * link.time(Load { messages: 1, bytes });
            for load in [&mut traffic.total, &mut traffic.levels[level as usize]] {
                load.messages += 2;
                load.bytes += 2 * bytes;
            }
        }
        StepCost { traffic: Some(traffic), ..StepCost::new(traffic.time, StepBottleneck::Network) }
    }

    fn messages(&self, action: Action, (owner, on_device): (Option<usize>, bool), direct: bool) -> StepCost {
        let coarse = match self.ranks.links {
            Some(_) => BLOCK,
            None => BLOCK.max(self.plan.graph.node(action.node()).shape.height / 64),
        };
        let Some(moved) = movement(&self.plan.graph, &self.plan.setting.partition, action, owner, coarse) else {
            return StepCost::new(0.0, StepBottleneck::Network);
        };
        let traffic = match self.ranks.links {
            Some(links) => moved.traffic_by(|a, b| (links.level(a, b, direct), links.link_between(a, b, direct))),
            None => moved.traffic(self.plan.setting.machine.link(direct)),
        };
        // Rows of images on devices travel through the host's memory.
        let (up, down) = match action {
            Action::Fetch { .. } => (true, on_device),
            Action::Exchange { .. } | Action::Begin { .. } => (on_device, on_device),
            _ => (false, false),
        };
        let copied = |copies: bool, bytes: usize| {
            if copies && !direct && !self.plan.setting.unified { bytes } else { 0 }
        };
        let copied = [copied(up, traffic.received), copied(down, traffic.sent)];
        let side = HostSide::Pinned;
        let bus = self.ranks.slowest(|m| m.upload(copied[0], side) + m.download(copied[1], side));
        let placed = if direct { 0 } else { self.copied_into_place(action) };
        let placed = self.ranks.slowest(|m| m.host_copy(placed));
        let seconds = traffic.time + bus + placed;
        StepCost { traffic: Some(traffic), copied, owner, ..StepCost::new(seconds, StepBottleneck::Network) }
    }

    /// Bytes that hosts copy from messages into place, on the rank that copies most.
    fn copied_into_place(&self, action: Action) -> usize {
        let (graph, partition) = (&self.plan.graph, &self.plan.setting.partition);
        let rows = match action {
            Action::Fetch { node, temp, rows, .. } => {
                let (reader, shape) = (graph.node(temp.consumer), graph.node(node).shape);
                let read = (0..partition.ranks()).map(|rank| {
                    let computed = rows_of(graph, partition, temp.consumer, rank, rows);
                    reader.op.footprint(temp.input, computed, reader.shape, shape).len()
                });
                read.max().unwrap_or_default()
            }
            Action::Replicate { node, .. } => graph.node(node).shape.height,
            _ => 0,
        };
        let node = graph.node(action.node());
        rows * node.shape.line() * node.shape.planes() * node.dtype.size()
    }

    /// Adds a step to its queue. Uploads and a launch that stores to the host's memory take turns.
    fn step(&mut self, i: usize, cost: &StepCost) {
        let StepCost { seconds, bounded, stores, owner, .. } = *cost;
        let step = &self.plan.steps[i];
        let queue = step.action.queue();
        let waited = step.waits.iter().filter_map(|w| self.timings.get(*w)).map(|t| t.end).fold(0.0, f64::max);
        let begun = matches!(step.action, Action::Begin { .. });
        let free = match queue {
            Queue::Upload | Queue::Download => self.free[queue as usize],
            Queue::Network if begun => self.free[Queue::Network as usize].max(self.free[Queue::Compute as usize]),
            // Host and network steps run after the preceding kernels and before the following ones.
            Queue::Host | Queue::Compute | Queue::Network => {
                let network = if queue == Queue::Compute { 0.0 } else { self.free[Queue::Network as usize] };
                self.free[Queue::Compute as usize].max(network)
            }
        };
        let start = self.host.max(free).max(waited);
        let start = if stores { start.max(self.free[Queue::Upload as usize]) } else { start };
        let start = match owner.filter(|rank| *rank > 0) {
            Some(rank) if queue == Queue::Compute => {
                // Rank 0 goes on at once.
                let from = self.others[rank].max(self.free[Queue::Network as usize]).max(self.common).max(waited);
                self.others[rank] = from + seconds;
                self.timings.push(Timing { start: from, end: self.others[rank], bounded });
                return;
            }
            Some(rank) => start.max(self.others[rank]),
            None => start,
        };
        if self.is_later(i) {
            self.timings.push(Timing { start: waited, end: waited + seconds, bounded });
            return;
        }
        let mut end = start + seconds;
        if let Queue::Upload | Queue::Download = queue {
            end = self.copy(queue, [start, end]);
        }
        self.free[queue as usize] = end;
        if matches!(step.action, Action::Launch { .. }) && owner.is_none() {
            self.common = end;
        }
        if stores {
            self.free[Queue::Upload as usize] = end;
        }
        // Transfers through the host block the host's thread, which then issues no other work to the device.
        let by_host = match step.action {
            Action::Unmap(_) | Action::Download(_) | Action::Sum(_) | Action::Collect(_) => true,
            Action::Scatter { direct, .. }
            | Action::Replicate { direct, .. }
            | Action::Exchange { direct, .. }
            | Action::Fetch { direct, .. }
            | Action::Gather { direct, .. } => !direct,
            Action::Launch { .. } => self.plan.setting.unified,
            _ => false,
        };
        if by_host {
            self.host = end;
        } else if queue != Queue::Host {
            let issued = match queue {
                Queue::Upload => self.profile.upload.pinned.overhead,
                Queue::Download => self.profile.download.pinned.overhead,
                _ => self.profile.launch.host,
            };
            self.host += if seconds > 0.0 { issued } else { 0.0 };
        }
        if queue == Queue::Network && !begun {
            self.free[Queue::Compute as usize] = end;
        }
        self.timings.push(Timing { start, end, bounded });
    }
}
