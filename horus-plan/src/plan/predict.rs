//! Predicted start and end of each step of a plan on rank 0: queues run concurrently, subject to
//! the waits of the plan.

use std::fmt;

use super::finished::Plan;
use super::follow::Follower;
use super::launches::LaunchedNodes;
use super::movement::{BLOCK, Traffic, movement, over_bus, rows_of, windows_of, work_of};
use super::queue::Queue;
use super::step::Action;
use crate::ir::graph::NodeId;
use crate::machine::{Bound, HostSide, Profile};

/// The bottleneck of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// A negligible step.
    Nothing,
    /// A copy between host and device.
    Bus,
    /// Messages between ranks.
    Network,
    /// The kernel, with its bottleneck.
    Kernel(Bound),
}

impl Bounded {
    /// A word for the bottleneck.
    pub const fn name(self) -> &'static str {
        match self {
            Bounded::Nothing => "",
            Bounded::Bus => "bus",
            Bounded::Network => "network",
            Bounded::Kernel(Bound::Launch) => "launch",
            Bounded::Kernel(Bound::Memory) => "memory",
            Bounded::Kernel(Bound::Arithmetic) => "arithmetic",
            Bounded::Kernel(Bound::Bus) => "bus",
        }
    }
}

/// The time of a step, in seconds from the beginning of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Start.
    pub start: f64,
    /// End.
    pub end: f64,
    /// The bottleneck.
    pub bounded: Bounded,
}

/// The predicted run of a plan, step by step.
#[derive(Clone, Debug)]
pub struct Prediction<'a> {
    plan: &'a Plan,
    /// Time of each step.
    pub steps: Vec<Timing>,
    /// Seconds until the last step has ended.
    pub seconds: f64,
}

impl Prediction<'_> {
    /// The predicted plan.
    pub const fn plan(&self) -> &Plan {
        self.plan
    }
}

impl fmt::Display for Prediction<'_> {
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

/// Predicts the times of the steps of `plan`, and its end.
pub fn predict(plan: &Plan) -> Prediction<'_> {
    let mut clock = Clock { plan, profile: plan.setting.machine.of(0), host: 0.0, free: [0.0; 5], timings: Vec::new() };
    let mut follower = Follower::new(plan, false);
    let launches = plan.launches();
    for (i, step) in plan.steps.iter().enumerate() {
        let (on_root, on_device) = (follower.on_root(step.action), follower.on_device(step.action));
        let bytes = follower.step(step.action).unwrap_or(0);
        let (seconds, bounded) =
            clock.takes(step.action, launches.at(i), bytes, (on_root, on_device), &|n| follower.is_mapped(n));
        clock.step(i, seconds, bounded);
    }
    let end = clock.timings.iter().map(|t| t.end).fold(clock.host, f64::max);
    Prediction { plan, steps: clock.timings, seconds: end }
}

struct Clock<'a> {
    plan: &'a Plan,
    profile: &'a Profile,
    /// Time when the host can begin the next step.
    host: f64,
    /// Time when each queue is free.
    free: [f64; 5],
    timings: Vec<Timing>,
}

impl Clock<'_> {
    /// Seconds of a step by itself.
    fn takes(
        &self,
        action: Action,
        launched: Option<LaunchedNodes<'_>>,
        bytes: usize,
        (on_root, on_device): (bool, bool),
        mapped: &dyn Fn(NodeId) -> bool,
    ) -> (f64, Bounded) {
        let bus = |seconds: f64| (seconds, Bounded::Bus);
        match action {
            Action::Upload { .. } | Action::UploadStrip { .. } => bus(self.profile.upload(bytes, HostSide::Pinned)),
            Action::Send { .. } => bus(self.profile.download(bytes, HostSide::Pinned)),
            Action::Download(_) => bus(self.profile.download(bytes, HostSide::Staged)),
            Action::Launch { node: id, rows, part, .. } => {
                // A result of the previous launch takes no time.
                let Some(launched) = launched else { return (0.0, Bounded::Nothing) };
                let (graph, partition) = (&self.plan.graph, &self.plan.setting.partition);
                let windows = windows_of(graph, partition, id, 0, rows, part);
                let cost = |rows| {
                    let bus = over_bus(graph, &launched, rows, mapped);
                    self.profile.launch_over(&work_of(graph, &launched, rows), bus)
                };
                let [first, second] = windows.map(cost);
                let longer = if second.seconds > first.seconds { second } else { first };
                (first.seconds + second.seconds, Bounded::Kernel(longer.bound))
            }
            Action::Map(_)
            | Action::Unmap(_)
            | Action::Evict(_)
            | Action::Deliver(_)
            | Action::Free(_)
            | Action::Finish(_) => (0.0, Bounded::Nothing),
            Action::Sum(n) => {
                let node = self.plan.graph.node(n);
                let bytes = 2 * node.shape.len() * node.dtype.size();
                let link = self.profile.link(false);
                (link.round(self.plan.setting.partition.ranks()) + bytes as f64 / link.bandwidth, Bounded::Network)
            }
            Action::Scatter { direct, .. }
            | Action::Replicate { direct, .. }
            | Action::Exchange { direct, .. }
            | Action::Begin { direct, .. }
            | Action::Fetch { direct, .. }
            | Action::Gather { direct, .. } => self.messages(action, (on_root, on_device), direct),
            Action::Collect(_) => self.messages(action, (on_root, on_device), false),
        }
    }

    fn messages(&self, action: Action, (on_root, on_device): (bool, bool), direct: bool) -> (f64, Bounded) {
        let coarse = BLOCK.max(self.plan.graph.node(action.node()).shape.height / 64);
        let moved = movement(&self.plan.graph, &self.plan.setting.partition, action, on_root, coarse);
        let traffic = moved.map_or(Traffic::default(), |m| m.traffic(self.profile.link(direct)));
        // Rows of images on devices travel through the host's memory.
        let (down, up) = match action {
            Action::Fetch { .. } => (on_device, true),
            Action::Exchange { .. } | Action::Begin { .. } => (on_device, on_device),
            _ => (false, false),
        };
        let copied = |copies: bool, bytes: usize| if copies && !direct { bytes } else { 0 };
        let down = self.profile.download(copied(down, traffic.sent), HostSide::Pinned);
        let up = self.profile.upload(copied(up, traffic.received), HostSide::Pinned);
        let placed = self.profile.host_copy(if direct { 0 } else { self.copied_into_place(action) });
        (down + traffic.time + placed + up, Bounded::Network)
    }

    /// Bytes that hosts copy from messages into place, on the rank that needs most.
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
        rows * node.shape.width * node.shape.planes() * node.dtype.size()
    }

    /// Puts a step into its queue.
    fn step(&mut self, i: usize, seconds: f64, bounded: Bounded) {
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
        let end = start + seconds;
        self.free[queue as usize] = end;
        // Transfers through the host block its thread, which then issues no other work to the
        // device.
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
            self.host += if seconds > 0.0 { self.profile.launch.host } else { 0.0 };
        }
        if queue == Queue::Network && !begun {
            self.free[Queue::Compute as usize] = end;
        }
        self.timings.push(Timing { start, end, bounded });
    }
}
