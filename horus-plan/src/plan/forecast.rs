//! Forecasts of a plan on any number of ranks without running it: messages between ranks, launches and
//! copies.

use std::fmt;

use super::finished::Plan;
use super::movement::{Link, LinkLevel, Load, Traffic};
use super::predict::{PredictedRanks, QueueClock, StepBottleneck, StepCost, Timing};
use super::step::Action;
use crate::machine::{LaunchBottleneck, Machine};

/// The ranks of a forecast.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Number of ranks.
    pub ranks: usize,
    /// Ranks on each host, at least 1.
    pub on_each_host: usize,
    /// Speed of messages between hosts; `None` for the profiles of the machines.
    pub network: Option<Link>,
    /// The machines of the ranks, such as [named](Machine::named) ones; `None` for machines like the
    /// session's.
    pub machine: Option<Machine>,
}

/// A number of ranks, each on its own host, and the speed of messages between them.
impl From<(usize, Link)> for Cluster {
    fn from((ranks, link): (usize, Link)) -> Cluster {
        Cluster { ranks, on_each_host: 1, network: Some(link), machine: None }
    }
}

/// Times of launches: seconds of the slowest rank for each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LaunchForecast {
    /// Number of launches.
    pub launches: usize,
    /// Total seconds.
    pub seconds: f64,
    /// The part spent in memory-bound launches.
    pub memory: f64,
    /// The part spent in compute-bound launches.
    pub arithmetic: f64,
}

/// Copies between host and device on rank 0, which copies most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CopyForecast {
    /// Number of copies.
    pub copies: usize,
    /// Total bytes.
    pub bytes: usize,
    /// Total seconds.
    pub seconds: f64,
}

/// The step that limits a plan: the longest of the steps that follow each other without a pause until the
/// end.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitingStep {
    /// The step.
    pub step: String,
    /// Its seconds.
    pub seconds: f64,
    /// Its bottleneck.
    pub bounded: StepBottleneck,
}

/// The predicted execution of a plan on all ranks: each step takes as long as on the slowest rank, and queues
/// run concurrently.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Number of ranks of the cluster.
    pub of: usize,
    /// Number of ranks that compute: the first ranks.
    pub ranks: usize,
    /// Ranks on each host.
    pub on_each_host: usize,
    /// Speed of messages between hosts.
    pub link: Link,
    /// The profiles behind the predictions.
    pub machine: String,
    /// The steps that communicate, and their messages.
    pub steps: Vec<(String, Traffic)>,
    /// All steps that communicate; the time includes the round in which ranks agree on the evaluation.
    pub total: Traffic,
    /// Launches.
    pub computing: LaunchForecast,
    /// Copies between host and device.
    pub copying: CopyForecast,
    /// Seconds of the round in which all ranks agree on the evaluation; the makespan includes them.
    pub meeting: f64,
    /// Seconds from the beginning to the end.
    pub makespan: f64,
    /// The step that limits the makespan.
    pub limit: Option<LimitingStep>,
    /// Seconds of a single rank of the same machine that computes the whole program, if predicted.
    pub single_rank_seconds: Option<f64>,
}

impl Forecast {
    /// Predicted seconds from the beginning to the end.
    pub fn seconds(&self) -> f64 {
        self.makespan
    }

    /// The predicted time of a single rank divided by the total time of all ranks: 1 is perfect.
    pub fn efficiency(&self) -> Option<f64> {
        self.single_rank_seconds.map(|alone| alone / (self.of as f64 * self.makespan))
    }
}

/// Forecasts `plan`, which runs on its ranks, the first ranks of `of`, with `on_each_host` of them per host.
pub fn forecast(plan: &Plan, machine: &Machine, of: usize, on_each_host: usize) -> Forecast {
    /// Number of ranks whose launches are predicted: the first, the last, and some in between.
    const SAMPLES: usize = 33;
    let ranks = plan.setting.partition.ranks();
    let machine = machine.packed(of, on_each_host);
    let every = (ranks - 1).div_ceil(SAMPLES - 1).max(1);
    let sampled: Vec<usize> = (0..ranks).step_by(every).chain([ranks - 1]).collect();
    let (mut computing, mut copying) = (LaunchForecast::default(), CopyForecast::default());
    let mut steps = Vec::new();
    let text = |i: usize| plan.describe(&plan.steps[i].action).split_whitespace().collect::<Vec<_>>().join(" ");
    let on = PredictedRanks { machine: &machine, sampled: &sampled, links: Some(&machine) };
    let (timings, end) = QueueClock::run(plan, on, &mut |i, launched, cost| {
        if launched.is_some() && cost.owner.is_none_or(|rank| rank == 0) {
            computing.add(plan.steps[i].action, cost);
        }
        if !plan.setting.unified {
            copying.add(cost);
        }
        steps.extend(cost.traffic.filter(|t| t.total.messages > 0).map(|t| (text(i), t)));
    });
    let meeting = machine.link_between(0, of - 1, false).round(of);
    let mut total = Traffic { time: meeting, ..Traffic::default() };
    for (_, traffic) in &steps {
        total.add(traffic);
    }
    let limit = limiting(&timings).map(|i| {
        let Timing { start, end, bounded } = timings[i];
        LimitingStep { step: text(i), seconds: end - start, bounded }
    });
    Forecast {
        of,
        ranks,
        on_each_host,
        link: machine.link(false),
        machine: machine.to_string(),
        steps,
        total,
        computing,
        copying,
        meeting,
        makespan: end + meeting,
        limit,
        single_rank_seconds: None,
    }
}

/// The longest of the steps that follow each other without a pause until the end.
fn limiting(timings: &[Timing]) -> Option<usize> {
    let longest = |a: &usize, b: &usize| {
        let seconds = |i: usize| timings[i].end - timings[i].start;
        seconds(*a).total_cmp(&seconds(*b))
    };
    let last = (0..timings.len()).max_by(|a, b| timings[*a].end.total_cmp(&timings[*b].end))?;
    let before = |i: &usize| {
        let ends = |j: &usize| timings[*j].end == timings[*i].start && timings[*j].end > timings[*j].start;
        (0..*i).rev().find(ends)
    };
    std::iter::successors(Some(last), before).max_by(longest)
}

impl LaunchForecast {
    fn add(&mut self, action: Action, cost: StepCost) {
        let Action::Launch { part, .. } = action else { return };
        self.launches += usize::from(part.ends());
        self.seconds += cost.seconds;
        match cost.bounded {
            StepBottleneck::Kernel(LaunchBottleneck::Memory) => self.memory += cost.seconds,
            StepBottleneck::Kernel(LaunchBottleneck::Arithmetic) => self.arithmetic += cost.seconds,
            _ => {}
        }
    }
}

impl CopyForecast {
    /// Adds the copies of a step. A step that communicates may copy rows to the host and back.
    fn add(&mut self, cost: StepCost) {
        let StepCost { seconds, traffic, copied, .. } = cost;
        self.copies += copied.iter().filter(|bytes| **bytes > 0).count();
        self.bytes += copied.iter().sum::<usize>();
        if copied.iter().any(|bytes| *bytes > 0) {
            self.seconds += seconds - traffic.map_or(0.0, |t| t.time);
        }
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Link { latency, bandwidth } = self.link;
        let (latency, bandwidth) = (latency * 1e6, bandwidth / 1e9);
        let (ranks, packed) = (self.ranks, self.on_each_host);
        let of = if self.of > ranks { format!(" of {}", self.of) } else { String::new() };
        let hosts = if packed > 1 { format!(", {packed} on each host") } else { String::new() };
        writeln!(f, "on {ranks}{of} ranks{hosts}, at {latency} us per message and {bandwidth} GB/s between hosts:")?;
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
        let levels = LinkLevel::ALL.iter().zip(self.total.levels).filter(|(_, load)| load.messages > 0);
        for (level, Load { messages, bytes }) in levels {
            writeln!(f, "between {}: {messages} messages, {:.3} MB", level.between(), bytes as f64 / 1e6)?;
        }
        if let Some(LimitingStep { step, seconds, bounded }) = &self.limit {
            let bound = if bounded.name().is_empty() { "" } else { ", bound by " };
            writeln!(f, "limited by {step}: {:.3} ms{bound}{}", seconds * 1e3, bounded.name())?;
        }
        if let (Some(alone), Some(efficiency)) = (self.single_rank_seconds, self.efficiency()) {
            let (ms, percent) = (alone * 1e3, efficiency * 100.0);
            writeln!(f, "efficiency {percent:.1} %: one rank takes {ms:.3} ms")?;
        }
        writeln!(f, "predicted {:.3} ms, by the {}", self.seconds() * 1e3, self.machine)
    }
}
