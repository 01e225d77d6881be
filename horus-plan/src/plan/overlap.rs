//! Overlap of halo exchanges with computation that does not depend on the awaited rows: the interior of the
//! strip, and other images.
//!
//! Between devices, a long exchange right before a launch becomes *begin*, *interior*, *finish* and *edges*
//! (`plan/part.rs`), where that is predicted to hide more time than two more launches cost. If all ranks
//! compute on their hosts, every exchange begins as soon as its strip is complete ([`begin_early`]).
//! `HORUS_OVERLAP=always` (`Setting::overlap`) forces overlap, also through the host, except for an image
//! that is only on the host.
//!
//! Design: "Overlap" in `docs/design/plan.md`.

use std::collections::{HashMap, HashSet};

use super::demand::{around, halo_of_access};
use super::draft::{HaloExchange, PlanDraft};
use super::queue::Queue;
use super::state::Halo;
use super::step::{Action, ComputedRows, LaunchPart, PlanStep};
use crate::ir::graph::NodeId;

/// The pass: where some rank can compute rows during an exchange, begins the exchange, computes the interior,
/// finishes the exchange, and computes the edges. No other step moves.
pub(super) fn divide(draft: &mut PlanDraft<'_>) {
    if draft.exchanges.is_empty() {
        return;
    }
    let divided: Vec<DividedLaunch> = launches(draft).into_iter().filter_map(|launch| launch.divided(draft)).collect();
    let begun: HashSet<usize> = divided.iter().flat_map(|d| d.begun.iter().copied()).collect();
    let around: HashMap<usize, &DividedLaunch> = divided.iter().map(|d| (d.launch, d)).collect();
    let (steps, used) = (std::mem::take(&mut draft.steps), std::mem::take(&mut draft.used));
    for (i, (step, used)) in steps.into_iter().zip(used).enumerate() {
        let mut push = |action, why| {
            draft.steps.push(PlanStep { action, why, waits: Vec::new() });
            draft.used.push(used);
        };
        let begins = begun.contains(&i);
        match (step.action, around.get(&i)) {
            (Action::Exchange { node, halo, direct }, _) if begins => {
                push(Action::Begin { node, halo, direct }, step.why);
            }
            (Action::Launch { node, rows, room, .. }, Some(DividedLaunch { reach, sources, .. })) => {
                push(Action::Launch { node, rows, room, part: LaunchPart::Interior(*reach) }, String::new());
                sources.iter().for_each(|source| push(Action::Finish(*source), String::new()));
                push(Action::Launch { node, rows, room, part: LaunchPart::Edges(*reach) }, step.why);
            }
            (action, _) => push(action, step.why),
        }
    }
    // The exchanges refer to steps that have moved.
    draft.exchanges.clear();
}

/// The pass: begins each exchange after the last step that writes the image or reads rows around its strip,
/// and finishes it at its original place.
pub(super) fn begin_early(draft: &mut PlanDraft<'_>) {
    if !draft.setting.machine.is_unified() || draft.naive() {
        return;
    }
    let (steps, used) = (std::mem::take(&mut draft.steps), std::mem::take(&mut draft.used));
    for (step, used) in steps.into_iter().zip(used) {
        let (begin, finish) = match step.action {
            Action::Exchange { node, halo, direct } => {
                (Action::Begin { node, halo, direct }, Some(Action::Finish(node)))
            }
            action => (action, None),
        };
        let at = if let Action::Begin { node, .. } = begin { earliest(draft, node) } else { draft.steps.len() };
        draft.steps.insert(at, PlanStep { action: begin, ..step });
        draft.used.insert(at, used);
        if let Some(action) = finish {
            draft.steps.push(PlanStep { action, why: String::new(), waits: Vec::new() });
            draft.used.push(used);
        }
    }
    // No step comes between begin and finish: they are one step.
    for at in (1..draft.steps.len()).rev() {
        if let (Action::Begin { node, halo, direct }, Action::Finish(n)) =
            (draft.steps[at - 1].action, draft.steps[at].action)
            && n == node
        {
            draft.steps[at - 1].action = Action::Exchange { node, halo, direct };
            draft.steps.remove(at);
            draft.used.remove(at);
        }
    }
}

/// The earliest index among the steps so far at which an exchange of `node` can begin: not within a launch of
/// several results, and after exchanges that begin there already. It is the end if no step that takes time
/// comes in between.
fn earliest(draft: &PlanDraft<'_>, node: NodeId) -> usize {
    let last = draft.steps.iter().rposition(|step| holds_up(draft, step.action, node));
    let mut first = last.map_or(0, |step| step + 1);
    while within_launch(draft, first) {
        first += 1;
    }
    let begins = |step: &&PlanStep| matches!(step.action, Action::Begin { .. });
    let first = first + draft.steps[first..].iter().take_while(begins).count();
    let takes_time = |step: &PlanStep| match step.action {
        Action::Launch { .. } => true,
        action => action.queue() == Queue::Network,
    };
    if draft.steps[first..].iter().any(takes_time) { first } else { draft.steps.len() }
}

/// Returns `true` if the steps before and at `at` may be one launch.
fn within_launch(draft: &PlanDraft<'_>, at: usize) -> bool {
    let launched = |step: usize| match draft.steps.get(step)?.action {
        Action::Launch { node, .. } => Some(node),
        _ => None,
    };
    let (Some(a), Some(b)) = (at.checked_sub(1).and_then(launched), launched(at)) else { return false };
    draft.graph.joined.iter().any(|joined| [a, b].iter().all(|n| joined.nodes.contains(n)))
}

/// Returns `true` if an exchange of `node` cannot begin before a step: the step writes or transfers the
/// image, or reads rows around its strip.
fn holds_up(draft: &PlanDraft<'_>, step: Action, node: NodeId) -> bool {
    let Action::Launch { node: reader, .. } = step else { return step.node() == node };
    let kernel = draft.graph.node(reader);
    let beyond = |i: usize| {
        halo_of_access(kernel.op.access(i)).is_none_or(|own| !around(own, draft.demand.computed[reader.0]).is_none())
    };
    reader == node || kernel.inputs.iter().enumerate().any(|(i, input)| *input == node && beyond(i))
}

/// A launch with halo exchanges right before it.
struct ExchangingLaunch {
    id: NodeId,
    /// The step that launches it.
    launch: usize,
    rows: ComputedRows,
    exchanges: Vec<HaloExchange>,
}

/// A launch divided into interior and edges.
struct DividedLaunch {
    /// The step that launches it.
    launch: usize,
    /// The steps that exchange the halos.
    begun: Vec<usize>,
    /// The images of these exchanges.
    sources: Vec<NodeId>,
    /// Distance of the interior from the edges.
    reach: Halo,
}

/// The launches with halo exchanges, in order, except those that also read footprints.
fn launches(draft: &PlanDraft<'_>) -> Vec<ExchangingLaunch> {
    let mut out: Vec<ExchangingLaunch> = Vec::new();
    for exchange in &draft.exchanges {
        match out.last_mut().filter(|last| last.id == exchange.reader) {
            Some(known) => known.exchanges.push(*exchange),
            None => {
                let later = draft.steps.iter().enumerate().skip(exchange.step);
                let mut launches = later.filter_map(|(at, step)| match step.action {
                    Action::Launch { node, rows, .. } if node == exchange.reader => Some((at, rows)),
                    _ => None,
                });
                if let Some((launch, rows)) = launches.next() {
                    out.push(ExchangingLaunch { id: exchange.reader, launch, rows, exchanges: vec![*exchange] });
                }
            }
        }
    }
    let fetching: HashSet<NodeId> = draft.steps.iter().filter_map(|s| s.action.fetches_for()).collect();
    out.retain(|l| !fetching.contains(&l.id));
    out
}

impl ExchangingLaunch {
    /// The division of the launch, if it is worthwhile and messages fit in memory.
    fn divided(&self, draft: &PlanDraft<'_>) -> Option<DividedLaunch> {
        let exchanged = |e: &HaloExchange| match draft.steps[e.step].action {
            Action::Exchange { node, halo, direct } => Some((node, halo, direct)),
            _ => None,
        };
        let all: Vec<_> = self.exchanges.iter().filter_map(|e| Some((e, exchanged(e)?))).collect();
        let time = |node, halo| draft.traffic(Action::Exchange { node, halo, direct: true }, None).time;
        let travel: f64 = all.iter().map(|(_, (node, halo, _))| time(*node, *halo)).sum();
        let long = draft.setting.overlap || (draft.setting.direct && draft.hidden(travel, self.id) > 0.0);
        let awaited: Vec<NodeId> = all.iter().map(|(_, (node, ..))| *node).collect();
        let kernel = draft.graph.node(self.id);
        let mut inputs = kernel.inputs.iter().enumerate().filter(|(_, source)| awaited.contains(source));
        if !inputs.all(|(i, _)| halo_of_access(kernel.op.access(i)).is_some()) {
            return None; // it also reads other rows of them
        }
        if !long || !has_interior(draft, self.id, self.rows, reach(draft, self.id, &awaited)) {
            return None;
        }
        let mut packed = 0;
        let begun = all.iter().filter(|(exchange, (node, halo, direct))| {
            // Rows arrive in place. Between devices, packed messages stay until the exchange ends.
            let sent = Action::Exchange { node: *node, halo: *halo, direct: true };
            let bytes = if *direct { draft.scratch(*node, sent) } else { 0 };
            // Joined launches follow each other: an earlier one may also read the rows.
            let read = draft.steps[exchange.step..self.launch].iter().any(|s| match s.action {
                Action::Launch { node: before, .. } => draft.graph.node(before).inputs.contains(node),
                _ => false,
            });
            let begins = exchange.on_device && !read && draft.stay_free(packed + bytes, exchange.step, self.launch);
            packed += if begins { bytes } else { 0 };
            begins
        });
        let (begun, sources): (Vec<usize>, Vec<NodeId>) = begun.map(|(e, (node, ..))| (e.step, *node)).unzip();
        let reach = reach(draft, self.id, &sources);
        (!begun.is_empty()).then_some(DividedLaunch { launch: self.launch, begun, sources, reach })
    }
}

impl PlanDraft<'_> {
    /// Returns `true` if `bytes` bytes are free on the device from step `from` to step `to`.
    fn stay_free(&self, bytes: usize, from: usize, to: usize) -> bool {
        let most = self.used[from..=to].iter().copied().max().unwrap_or_default();
        self.memory.as_ref().is_none_or(|memory| memory.holds(most + bytes))
    }
}

/// Returns `true` if some rank computes rows of `id` that are further than `reach` from the edges of its
/// strip.
fn has_interior(draft: &PlanDraft<'_>, id: NodeId, rows: ComputedRows, reach: Halo) -> bool {
    let (part, partition) = (LaunchPart::Interior(reach), &draft.setting.partition);
    let height = draft.graph.node(id).shape.height;
    (0..partition.ranks()).any(|rank| !part.windows(rows, partition, rank, height)[0].is_empty())
}

/// Reach of `id` beyond its rows in any of `sources`.
fn reach(draft: &PlanDraft<'_>, id: NodeId, sources: &[NodeId]) -> Halo {
    let node = draft.graph.node(id);
    let inputs = node.inputs.iter().enumerate().filter(|(_, source)| sources.contains(source));
    inputs.filter_map(|(i, _)| halo_of_access(node.op.access(i))).fold(Halo::NONE, Halo::max)
}
