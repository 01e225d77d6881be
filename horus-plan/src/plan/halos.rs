//! Borders of what a launch reads: which are not deep enough, and are exchanged before it.

use super::demand::needed;
use super::draft::Exchanged;
use super::state::{Event, Halo, Placement};
use super::step::Action;
use super::transfers::Transfers;
use crate::ir::graph::NodeId;

/// An input whose borders are not valid as deep as a launch reads them.
pub(super) struct Due {
    source: NodeId,
    /// Depth to exchange.
    halo: Halo,
    why: String,
}

impl Transfers<'_, '_> {
    /// The borders that must be exchanged before `id` is computed, each to the widest depth anybody will ask for; and how
    /// far around the strip, at most `extend`, the result can be computed then.
    pub(super) fn borders(&self, id: NodeId, mut extend: Halo) -> (Vec<Due>, Halo) {
        let graph = self.draft.graph;
        let node = graph.node(id);
        let mut due: Vec<Due> = Vec::new();
        for (i, &source) in node.inputs.iter().enumerate() {
            let (Some(need), Placement::Strips(valid)) =
                (needed(node.op.access(i)), self.draft.state(source).placement)
            else {
                continue;
            };
            let now = self.wanted(source, need, extend);
            let known = due.iter().position(|d| d.source == source);
            let mut have = known.map_or(valid, |k| due[k].halo);
            if !have.covers(now) {
                let why = format!("{} reads {now} rows beyond the strip, {have} are valid", self.draft.label(id));
                have = self.draft.demand.asked[source.0].max(now);
                match known {
                    Some(k) => due[k].halo = due[k].halo.max(have),
                    None => due.push(Due { source, halo: have, why }),
                }
            }
            // What is left of the input's halo bounds how far beyond the strip the result can be computed.
            extend.up = extend.up.min(have.up - need.up);
            extend.down = extend.down.min(have.down - need.down);
        }
        (due, extend)
    }

    /// How deep the borders of `source` must be to compute a strip and, if it is worth it, `extend` around it: what will
    /// be exchanged in any case is exchanged now, if the result's halo can then be computed.
    pub(super) fn wanted(&self, source: NodeId, need: Halo, extend: Halo) -> Halo {
        let deeper = Halo { up: need.up + extend.up, down: need.down + extend.down, ..need };
        if self.draft.demand.filtered[source.0].covers(deeper) { deeper } else { need }
    }

    /// Exchanges the borders that are due for the launch of `id`.
    pub(super) fn exchange(&mut self, due: Vec<Due>, id: NodeId) {
        for Due { source: node, halo, why } in due {
            let sent = Action::Exchange { node, halo, direct: true };
            let direct = self.draft.between_devices(node, id, 0, sent);
            let on_device = direct || self.draft.state(node).residency.device();
            self.draft.exchanges.push(Exchanged { step: self.draft.steps.len(), reader: id, on_device });
            self.draft.step(Action::Exchange { node, halo, direct }, why);
            self.draft.event(node, Event::Exchanged(halo));
        }
    }
}
