//! The forecast of a plan on any number of ranks, without running it: messages between ranks,
//! launches, copies.

use std::fmt;

use super::finished::Plan;
use super::follow::Follower;
use super::launches::LaunchedNodes;
use super::movement::{BLOCK, Link, Load, Traffic, movement, windows_of, work_of};
use super::state::Placement;
use super::step::Action;
use crate::machine::{Bound, HostSide, Machine};

/// The ranks of a forecast, on machines like those of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// Number of ranks.
    pub ranks: usize,
    /// Ranks on each host, at least 1.
    pub on_each_host: usize,
    /// Speed of messages between hosts; `None` for the profiles of the machines.
    pub network: Option<Link>,
}

/// A number of ranks, each on its own host, and the speed of messages between them.
impl From<(usize, Link)> for Cluster {
    fn from((ranks, link): (usize, Link)) -> Cluster {
        Cluster { ranks, on_each_host: 1, network: Some(link) }
    }
}

/// Times of launches: seconds of the slowest rank for each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Computing {
    /// Number of launches.
    pub launches: usize,
    /// Total seconds.
    pub seconds: f64,
    /// Of these, seconds in memory-bound launches.
    pub memory: f64,
    /// Seconds in compute-bound launches.
    pub arithmetic: f64,
}

/// Copies between host and device on rank 0, which copies most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Copying {
    /// Number of copies.
    pub copies: usize,
    /// Total bytes.
    pub bytes: usize,
    /// Total seconds.
    pub seconds: f64,
}

/// The times of a plan whose steps run one after the other.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Number of ranks.
    pub ranks: usize,
    /// Ranks on each host.
    pub on_each_host: usize,
    /// Speed of messages between hosts.
    pub link: Link,
    /// The profiles behind the predictions.
    pub machine: String,
    /// The steps that communicate, and their messages.
    pub steps: Vec<(String, Traffic)>,
    /// All steps that communicate; times include the round in which ranks agree on the evaluation.
    pub total: Traffic,
    /// Launches.
    pub computing: Computing,
    /// Copies between host and device.
    pub copying: Copying,
}

impl Forecast {
    /// Predicted seconds of everything in sequence.
    pub fn seconds(&self) -> f64 {
        self.total.time + self.computing.seconds + self.copying.seconds
    }
}

/// Forecasts `plan` on its ranks, `on_each_host` of them per host.
pub fn forecast(plan: &Plan, machine: &Machine, on_each_host: usize) -> Forecast {
    let ranks = plan.setting.partition.ranks();
    let machine = machine.packed(ranks, on_each_host);
    let network = machine.link(false);
    let furthest = machine.link_between(0, ranks - 1, false);
    let mut on_root: Vec<bool> =
        plan.initial.iter().map(|s| s.is_some_and(|s| s.placement == Placement::Root)).collect();
    let (mut computing, mut copying) = (Computing::default(), Copying::default());
    let mut follower = Follower::new(plan, false);
    let mut steps = Vec::new();
    let launches = plan.launches();
    for (i, step) in plan.steps.iter().enumerate() {
        let traffic = match step.action {
            Action::Sum(n) => {
                let node = plan.graph.node(n);
                Some(sum(ranks, node.shape.len() * node.dtype.size(), furthest))
            }
            action => {
                let at_root = on_root[action.node().0];
                let direct = action.is_direct();
                let moved = movement(&plan.graph, &plan.setting.partition, action, at_root, BLOCK);
                moved.map(|m| m.traffic_by(|from, to| machine.link_between(from, to, direct)))
            }
        };
        match step.action {
            Action::Scatter { node, .. } | Action::Replicate { node, .. } => on_root[node.0] = false,
            Action::Collect(node) => on_root[node.0] = true,
            _ => {}
        }
        if let Some(launched) = launches.at(i) {
            computing.add(plan, &machine, step.action, &launched);
        }
        let bytes = follower.step(step.action);
        if !plan.setting.unified {
            copying.add(&machine, step.action, bytes, traffic);
        }
        let text = || plan.describe(&step.action).split_whitespace().collect::<Vec<_>>().join(" ");
        steps.extend(traffic.filter(|t| t.total.messages > 0).map(|t| (text(), t)));
    }
    let all = || steps.iter().map(|(_, t)| t);
    let meeting = furthest.round(ranks);
    let total = Traffic {
        total: Load { messages: all().map(|t| t.total.messages).sum(), bytes: all().map(|t| t.total.bytes).sum() },
        sent: all().map(|t| t.sent).sum(),
        received: all().map(|t| t.received).sum(),
        time: all().map(|t| t.time).sum::<f64>() + meeting,
    };
    let told = plan.setting.machine.to_string();
    Forecast { ranks, on_each_host, link: network, machine: told, steps, total, computing, copying }
}

impl Computing {
    fn add(&mut self, plan: &Plan, machine: &Machine, action: Action, launched: &LaunchedNodes<'_>) {
        /// Number of ranks to sample: the first, the last, and some in between.
        const SAMPLES: usize = 33;
        let Action::Launch { node: id, rows, part, .. } = action else { return };
        let ranks = plan.setting.partition.ranks();
        let every = (ranks - 1).div_ceil(SAMPLES - 1).max(1);
        let sampled = (0..ranks).step_by(every).chain([ranks - 1]);
        let costs = sampled.map(|rank| {
            let windows = windows_of(&plan.graph, &plan.setting.partition, id, rank, rows, part);
            windows.map(|rows| machine.of(rank).launch(&work_of(&plan.graph, launched, rows)))
        });
        let longest = costs.max_by(|a, b| (a[0].seconds + a[1].seconds).total_cmp(&(b[0].seconds + b[1].seconds)));
        let Some(costs) = longest else { return };
        self.launches += usize::from(part.ends());
        for cost in costs {
            self.seconds += cost.seconds;
            match cost.bound {
                Bound::Memory => self.memory += cost.seconds,
                Bound::Arithmetic => self.arithmetic += cost.seconds,
                // Only in forecasts of launches that access host memory.
                Bound::Launch | Bound::Bus => {}
            }
        }
    }
}

impl Copying {
    /// Adds a step: `bytes` of rank 0; `traffic` of a step that communicates goes through the host
    /// unless it is direct.
    fn add(&mut self, machine: &Machine, action: Action, bytes: Option<usize>, traffic: Option<Traffic>) {
        let (up, down) = match action {
            Action::Upload { .. } | Action::UploadStrip { .. } => (bytes.unwrap_or_default(), 0),
            Action::Download(_) | Action::Send { .. } => (0, bytes.unwrap_or_default()),
            Action::Exchange { direct: false, .. }
            | Action::Begin { direct: false, .. }
            | Action::Fetch { direct: false, .. } => traffic.map_or((0, 0), |t| (t.received, t.sent)),
            _ => return,
        };
        self.copies += [up, down].iter().filter(|b| **b > 0).count();
        self.bytes += up + down;
        let seconds = |m: &crate::machine::Profile| m.upload(up, HostSide::Pinned) + m.download(down, HostSide::Pinned);
        self.seconds += machine.slowest(seconds);
    }
}

/// Gathered on rank 0, summed there, and sent back.
fn sum(ranks: usize, bytes: usize, link: Link) -> Traffic {
    let others = ranks - 1;
    let one_way = Load { messages: others, bytes: others * bytes };
    Traffic {
        total: Load { messages: 2 * one_way.messages, bytes: 2 * one_way.bytes },
        sent: one_way.bytes,
        received: one_way.bytes,
        time: 2.0 * link.time(one_way),
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Link { latency, bandwidth } = self.link;
        let (latency, bandwidth) = (latency * 1e6, bandwidth / 1e9);
        let (ranks, packed) = (self.ranks, self.on_each_host);
        let hosts = if packed > 1 { format!(", {packed} on each host") } else { String::new() };
        writeln!(f, "on {ranks} ranks{hosts}, at {latency} us per message and {bandwidth} GB/s between hosts:")?;
        writeln!(
            f,
            "{:>9}  {:>11}  {:>11}  {:>11}  {:>9}  step",
            "messages", "MB in all", "MB sent", "MB received", "ms"
        )?;
        let line = |f: &mut fmt::Formatter<'_>, t: &Traffic, text: &str| {
            let mb = |bytes: usize| bytes as f64 / 1e6;
            let (messages, all, sent, received) = (t.total.messages, mb(t.total.bytes), mb(t.sent), mb(t.received));
            writeln!(f, "{messages:9}  {all:11.3}  {sent:11.3}  {received:11.3}  {:9.3}  {text}", t.time * 1e3)
        };
        for (text, traffic) in &self.steps {
            line(f, traffic, text)?;
        }
        line(f, &self.total, "in total; sent and received by the rank that does most in each step")?;
        let (computing, copying) = (&self.computing, &self.copying);
        writeln!(
            f,
            "computing: {} launches, {:.3} ms ({:.3} bound by memory, {:.3} by arithmetic)",
            computing.launches,
            computing.seconds * 1e3,
            computing.memory * 1e3,
            computing.arithmetic * 1e3
        )?;
        let (copies, megabytes, ms) = (copying.copies, copying.bytes as f64 / 1e6, copying.seconds * 1e3);
        writeln!(f, "copies between host and device: {copies}, {megabytes:.3} MB, {ms:.3} ms")?;
        writeln!(f, "one after the other {:.3} ms, by the {}", self.seconds() * 1e3, self.machine)
    }
}
