//! Halo exchanges of the inputs of a launch whose halos are too shallow.

use super::demand::{around, halo_of_access};
use super::draft::HaloExchange;
use super::state::{Halo, Placement, StateEvent};
use super::step::Action;
use super::transfers::TransferPlanner;
use crate::ir::graph::NodeId;

/// An input whose halo is shallower than a launch reads.
pub(super) struct DueHalo {
    source: NodeId,
    /// Depth to exchange.
    halo: Halo,
    why: String,
}

impl TransferPlanner<'_, '_> {
    /// The halos to exchange before `id` is computed for its strip and for the rows around it that are
    /// computed rather than exchanged. Each is exchanged to the largest depth that will be requested.
    pub(super) fn borders(&self, id: NodeId) -> Vec<DueHalo> {
        let graph = self.draft.graph;
        let node = graph.node(id);
        let mut due: Vec<DueHalo> = Vec::new();
        for (i, &source) in node.inputs.iter().enumerate() {
            let (Some(need), Placement::Strips(valid)) =
                (halo_of_access(node.op.access(i)), self.draft.state(source).placement)
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
                    None => due.push(DueHalo { source, halo, why }),
                }
            }
        }
        due
    }

    /// Exchanges the halos due for the launch of `id`.
    pub(super) fn exchange(&mut self, due: Vec<DueHalo>, id: NodeId) {
        for DueHalo { source: node, halo, why } in due {
            let sent = Action::Exchange { node, halo, direct: true };
            let direct = self.draft.between_devices(node, id, 0, sent);
            let on_device = direct || self.draft.state(node).residency.device();
            self.draft.exchanges.push(HaloExchange { step: self.draft.steps.len(), reader: id, on_device });
            self.draft.step(Action::Exchange { node, halo, direct }, why);
            self.draft.event(node, StateEvent::Exchanged(halo));
        }
    }
}
