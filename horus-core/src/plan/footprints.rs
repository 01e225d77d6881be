//! Footprints: when the rows that a launch reads elsewhere leave for it.

use super::planner::Planner;
use super::state::{Halo, Placement};
use super::step::{Action, Rows, Temp};
use crate::ir::graph::NodeId;
use crate::ir::kernel::{Kernel, LeafOp};

/// Whether a kernel has linear filters.
pub(super) fn is_filter(kernel: &Kernel) -> bool {
    matches!(kernel, Kernel::Map(m) if m.leaves.iter().any(|l| matches!(l.op, LeafOp::Correlate(..))))
}

impl Planner<'_> {
    /// Before a filter, sends footprints of what was computed, if that is what its only reader will want of it: between
    /// devices they travel beside the filter, whose arithmetic leaves the memory to the copies.
    pub(super) fn fetch_ahead(&mut self) {
        for id in std::mem::take(&mut self.computed) {
            if let Some((temp, why)) = self.leaves_early(id) {
                let why = format!("{} will read other rows than its own; {why}", self.label(temp.consumer));
                self.fetch(id, temp, Rows::Strip(Halo::NONE), why);
            }
        }
    }

    /// The only read of `id`, if it wants footprints that can leave before, and why footprints. Not where memory is short:
    /// they stay while other launches compute.
    pub(super) fn leaves_early(&mut self, id: NodeId) -> Option<(Temp, String)> {
        let in_strips = self.states[id.0].is_some_and(|s| matches!(s.placement, Placement::Strips(_)));
        if !self.setting.direct || !in_strips || self.naive() || self.pending.as_ref().is_some_and(|p| p.node == id) {
            return None;
        }
        let (elsewhere, also_in_strips) = self.readers(id, id);
        let [temp] = elsewhere[..] else { return None };
        // A launch that others read beyond its strip may compute more rows than its own; which, is decided then.
        let known = self.asked[temp.consumer.0] == Halo::NONE && !self.is_global(temp.consumer);
        if !known || self.is_sent(temp) {
            return None;
        }
        let rows = Rows::Strip(Halo::NONE);
        let sent = Action::Fetch { node: id, temp, rows, direct: true };
        let bytes = self.bytes_fetched(id, temp, rows) + self.scratch(id, sent);
        // A guess of what other footprints and launches on the way will take.
        let room = 2 * bytes + 4 * self.bytes_as(id, rows);
        let choice = self.choose(id, &elsewhere, false, also_in_strips);
        (!choice.replicate && self.fits_now(room)).then_some((temp, choice.why))
    }

    /// Brings the rows that one launch reads of one input.
    pub(super) fn fetch(&mut self, source: NodeId, temp: Temp, rows: Rows, why: String) {
        let held = self.bytes_fetched(source, temp, rows);
        let sent = Action::Fetch { node: source, temp, rows, direct: true };
        let direct = self.between_devices(source, temp.consumer, held, sent);
        // The packed messages stay until the launch, too.
        let packed = if direct { self.scratch(source, sent) } else { 0 };
        self.hold_temp(held + packed, source, temp.consumer);
        self.step(Action::Fetch { node: source, temp, rows, direct }, why);
        self.fetched.push((temp, direct));
        self.computed.retain(|c| *c != source); // it has left
    }

    /// Whether a footprint was fetched already.
    pub(super) fn is_sent(&self, temp: Temp) -> bool {
        self.fetched.iter().any(|(t, _)| *t == temp)
    }

    /// Brings the rows that `id` reads of an input, unless they have been sent.
    pub(super) fn fetch_for(&mut self, id: NodeId, input: usize, rows: Rows) {
        let temp = Temp { consumer: id, input };
        if self.is_sent(temp) {
            return;
        }
        let source = self.graph.node(id).inputs[input];
        let why = format!("{} reads other rows than its own", self.label(id));
        let why = match self.fetched_because[source.0].as_str() {
            "" => why,
            because => format!("{why}; {because}"),
        };
        self.fetch(source, temp, rows, why);
    }
}
