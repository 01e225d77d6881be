//! What a plan would exchange on any number of ranks, told without running it.

use std::fmt;

use super::finished::Plan;
use super::movement::{BLOCK, Link, Load, Traffic, movement};
use super::state::Placement;
use super::step::Action;

/// The communication of one plan. Computing, and copies between host and device, are not in it.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Number of ranks.
    pub ranks: usize,
    /// How long messages take.
    pub link: Link,
    /// The steps that communicate, and what they send.
    pub steps: Vec<(String, Traffic)>,
    /// All steps; the times include the round in which ranks agree on what to do.
    pub total: Traffic,
}

/// Tells what `plan` exchanges between its ranks.
pub fn forecast(plan: &Plan, link: Link) -> Forecast {
    let ranks = plan.setting.partition.ranks();
    let mut on_root: Vec<bool> =
        plan.initial.iter().map(|s| s.is_some_and(|s| s.placement == Placement::Root)).collect();
    let mut steps = Vec::new();
    for step in &plan.steps {
        let traffic = match step.action {
            Action::Sum(n) => {
                let node = plan.graph.node(n);
                Some(sum(ranks, node.shape.len() * node.dtype.size(), link))
            }
            action => {
                let at_root = moves(action).is_some_and(|n| on_root[n.0]);
                movement(&plan.graph, &plan.setting.partition, action, at_root, BLOCK).map(|m| m.traffic(link))
            }
        };
        match step.action {
            Action::Scatter { node, .. } | Action::Replicate { node, .. } => on_root[node.0] = false,
            Action::Collect(node) => on_root[node.0] = true,
            _ => {}
        }
        let text = || plan.describe(&step.action).split_whitespace().collect::<Vec<_>>().join(" ");
        steps.extend(traffic.filter(|t| t.total.messages > 0).map(|t| (text(), t)));
    }
    let all = || steps.iter().map(|(_, t)| t);
    let meeting = link.round(ranks);
    let total = Traffic {
        total: Load { messages: all().map(|t| t.total.messages).sum(), bytes: all().map(|t| t.total.bytes).sum() },
        sent: all().map(|t| t.sent).sum(),
        received: all().map(|t| t.received).sum(),
        time: all().map(|t| t.time).sum::<f64>() + meeting,
    };
    Forecast { ranks, link, steps, total }
}

fn moves(action: Action) -> Option<crate::ir::graph::NodeId> {
    match action {
        Action::Scatter { node, .. }
        | Action::Replicate { node, .. }
        | Action::Exchange { node, .. }
        | Action::Begin { node, .. }
        | Action::Fetch { node, .. } => Some(node),
        Action::Gather(n) | Action::Collect(n) => Some(n),
        _ => None,
    }
}

/// Gathered on rank 0, added up there, and sent back.
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
        writeln!(
            f,
            "on {} ranks, at {} us per message and {} GB/s ({:.1} us to agree on the plan):",
            self.ranks,
            self.link.latency * 1e6,
            self.link.bandwidth / 1e9,
            self.link.round(self.ranks) * 1e6
        )?;
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
        line(f, &self.total, "in total; sent and received by the rank that does most in each step")
    }
}
