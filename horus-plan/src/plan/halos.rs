//! Halos of the inputs of a launch: those not deep enough are exchanged before it.

use super::demand::needed;
use super::draft::Exchanged;
use super::state::{Event, Halo, Placement};
use super::step::Action;
use super::transfers::Transfers;
use crate::ir::graph::NodeId;

/// An input whose halo is shallower than a launch reads.
pub(super) struct Due {
    source: NodeId,
    /// Depth to exchange.
    halo: Halo,
    why: String,
}

impl Transfers<'_, '_> {
    /// The halos to exchange before `id` is computed, each to the largest depth that will be
    /// requested; and the rows around the strip, at most `extend`, for which the result can be
    /// computed then.
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
            // The rest of the input's halo bounds the rows beyond the strip for which the result
            // can be computed.
            extend.up = extend.up.min(have.up - need.up);
            extend.down = extend.down.min(have.down - need.down);
        }
        (due, extend)
    }

    /// Depth of the halo of `source` for computing a strip and, if worthwhile, `extend` around it:
    /// rows that will be exchanged in any case are exchanged now, if that makes the result's halo
    /// computable.
    pub(super) fn wanted(&self, source: NodeId, need: Halo, extend: Halo) -> Halo {
        let deeper = Halo { up: need.up + extend.up, down: need.down + extend.down, ..need };
        if self.draft.demand.filtered[source.0].covers(deeper) { deeper } else { need }
    }

    /// Exchanges the halos due for the launch of `id`.
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
