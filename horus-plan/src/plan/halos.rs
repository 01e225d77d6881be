//! Halos of the inputs of a launch: those not deep enough are exchanged before it.

use super::demand::{around, needed};
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
    /// The halos to exchange before `id` is computed for its strip and the rows around it that are
    /// computed rather than exchanged, each to the largest depth that will be requested.
    pub(super) fn borders(&self, id: NodeId) -> Vec<Due> {
        let graph = self.draft.graph;
        let node = graph.node(id);
        let mut due: Vec<Due> = Vec::new();
        for (i, &source) in node.inputs.iter().enumerate() {
            let (Some(need), Placement::Strips(valid)) =
                (needed(node.op.access(i)), self.draft.state(source).placement)
            else {
                continue;
            };
            let now = around(need, self.draft.demand.computed[id.0]);
            let known = due.iter().position(|d| d.source == source);
            let have = known.map_or(valid, |k| due[k].halo);
            if !have.covers(now) {
                let why = format!("{} reads {now} rows beyond the strip, {have} are valid", self.draft.label(id));
                let halo = self.draft.demand.asked[source.0].max(now);
                match known {
                    Some(k) => due[k].halo = due[k].halo.max(halo),
                    None => due.push(Due { source, halo, why }),
                }
            }
        }
        due
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
