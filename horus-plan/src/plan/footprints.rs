//! Footprints: when the rows that a launch reads from other ranks are fetched.

use std::fmt::Write as _;

use super::demand::{around, halo_of_access};
use super::state::{Halo, ImageState, Placement};
use super::step::{Action, ComputedRows, Temp};
use super::transfers::TransferPlanner;
use crate::ir::graph::NodeId;
use crate::ir::kernel::{Kernel, LeafOp, Repeat};

/// Returns `true` if a kernel has linear filters.
pub(super) fn is_filter(kernel: &Kernel) -> bool {
    let (Kernel::Map(m) | Kernel::Repeat(Repeat { body: m, .. })) = kernel else { return false };
    m.leaves.iter().any(|l| matches!(l.op, LeafOp::Correlate(..)))
}

/// Footprints sent before they are read, and the launch that waits for them.
#[derive(Debug, Default)]
pub(super) struct EarlyFootprints {
    /// Nodes computed since footprints were last fetched ahead.
    pub(super) computed: Vec<NodeId>,
    /// Footprints fetched for later launches; `true` if they travel between devices.
    pub(super) fetched: Vec<(Temp, bool)>,
    /// A launch that waits for its footprints while other launches run.
    pub(super) pending: Option<PendingLaunch>,
}

/// A launch whose footprints travel from device to device.
#[derive(Debug)]
pub(super) struct PendingLaunch {
    pub(super) node: NodeId,
    pub(super) rows: ComputedRows,
    /// The number of steps when it could have been launched.
    pub(super) since: usize,
}

impl TransferPlanner<'_, '_> {
    /// Sends the footprints of computed images to their only reader ahead of a filter: between devices they
    /// travel while the filter runs, because its arithmetic leaves memory bandwidth for the copies.
    pub(super) fn fetch_ahead(&mut self) {
        for id in std::mem::take(&mut self.early.computed) {
            if let Some((temp, why)) = self.early_footprint(id) {
                let why = format!("{} will read other rows than its own; {why}", self.draft.label(temp.consumer));
                self.fetch(id, temp, ComputedRows::Strip(Halo::NONE), why);
            }
        }
    }

    /// The only read of `id`, if it needs footprints that can be sent ahead, and the reason for footprints.
    /// `None` if memory is short, because footprints occupy memory while other launches compute.
    pub(super) fn early_footprint(&mut self, id: NodeId) -> Option<(Temp, String)> {
        let in_strips = self.draft.states[id.0].is_some_and(|s| matches!(s.placement, Placement::Strips(_)));
        if !self.draft.setting.direct
            || !in_strips
            || self.draft.naive()
            || self.early.pending.as_ref().is_some_and(|p| p.node == id)
        {
            return None;
        }
        let (elsewhere, also_in_strips) = self.draft.readers(id, id);
        let [temp] = elsewhere[..] else { return None };
        // A launch whose result is read beyond its strip may compute more rows than its own; these rows are
        // not yet known.
        let known = self.draft.rows(temp.consumer) == ComputedRows::Strip(Halo::NONE);
        if !known || self.is_sent(temp) || !self.is_fetched(temp.consumer, temp.input) {
            return None;
        }
        let rows = ComputedRows::Strip(Halo::NONE);
        let sent = Action::Fetch { node: id, temp, rows, direct: true };
        let bytes = self.draft.bytes_fetched(id, temp, rows) + self.draft.scratch(id, sent);
        // A guess of the memory of other footprints and launches in between.
        let room = 2 * bytes + 4 * self.draft.bytes_as(id, rows);
        let choice = self.costs.choose(self.draft, id, &elsewhere, None, also_in_strips);
        (!choice.replicate && self.draft.fits_now(room)).then_some((temp, choice.why))
    }

    /// Fetches the rows that one launch reads of one input.
    pub(super) fn fetch(&mut self, source: NodeId, temp: Temp, rows: ComputedRows, why: String) {
        let held = self.draft.bytes_fetched(source, temp, rows);
        let sent = Action::Fetch { node: source, temp, rows, direct: true };
        let direct = self.draft.between_devices(source, temp.consumer, held, sent);
        // The packed messages also stay until the launch.
        let packed = if direct { self.draft.scratch(source, sent) } else { 0 };
        self.draft.hold_temp(held + packed, source, temp.consumer);
        self.draft.step(Action::Fetch { node: source, temp, rows, direct }, why);
        self.early.fetched.push((temp, direct));
        self.early.computed.retain(|c| *c != source); // already sent
    }

    /// Returns `true` if a footprint has been fetched.
    pub(super) fn is_sent(&self, temp: Temp) -> bool {
        self.early.fetched.iter().any(|(t, _)| *t == temp)
    }

    /// Fetches the rows that `id` reads of an input, unless they have been sent.
    pub(super) fn fetch_for(&mut self, id: NodeId, input: usize, rows: ComputedRows) {
        let temp = Temp { consumer: id, input };
        if self.is_sent(temp) {
            return;
        }
        let source = self.draft.graph.node(id).inputs[input];
        let why = format!("{} reads other rows than its own", self.draft.label(id));
        let why = match self.fetched_because[source.0].as_str() {
            "" => why,
            because => format!("{why}; {because}"),
        };
        self.fetch(source, temp, rows, why);
    }

    /// Emits the launch that waits for footprints, before node `next` is computed.
    pub(super) fn launch_pending(&mut self, next: NodeId) {
        let Some(PendingLaunch { node: id, rows, since }) = self.early.pending.take() else { return };
        let graph = self.draft.graph;
        for (input, &source) in graph.node(id).inputs.iter().enumerate() {
            if self.is_fetched(id, input) {
                self.fetch_for(id, input, rows);
            } else {
                self.draft.on_device(source, id); // it may have been evicted meanwhile
            }
        }
        let others = self.draft.steps[since..].iter().filter(|s| matches!(s.action, Action::Launch { .. })).count();
        self.launch(id, rows, self.draft.demand.asked[id.0]);
        if let (Some(step), true) = (self.draft.steps.last_mut(), others > 0) {
            let between = if step.why.is_empty() { "" } else { "; " };
            let _ = write!(step.why, "{between}what it reads of other ranks travelled during {others} launches");
        }
        let last = NodeId(next.0.saturating_sub(1).max(id.0));
        self.free_read_for_the_last_time(id, last);
    }

    /// Returns `true` if node `id` can be computed while footprints travel: it reads neither the result of
    /// the waiting launch nor rows of other ranks.
    pub(super) fn is_independent_of_pending(&self, id: NodeId) -> bool {
        let node = self.draft.graph.node(id);
        let waiting = |n: &NodeId| self.early.pending.as_ref().is_some_and(|p| p.node == *n);
        let here = |(i, source): (usize, &NodeId)| {
            let ImageState { residency, placement } = self.draft.state(*source);
            let enough = match (placement, halo_of_access(node.op.access(i))) {
                (Placement::Replicated, _) => true,
                (Placement::Strips(have), Some(need)) => {
                    let now = around(need, self.draft.demand.computed[id.0]);
                    have.covers(now) && self.draft.readers(*source, id).0.is_empty()
                }
                _ => false,
            };
            let sent = self.is_sent(Temp { consumer: id, input: i });
            !waiting(source) && !sent && residency.device() && enough
        };
        let source = matches!(node.op, Kernel::Source(_));
        source || (node.op.all_reduce().is_none() && node.inputs.iter().enumerate().all(here))
    }
}
