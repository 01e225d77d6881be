//! Costs of transfers: predicted seconds and bytes of temporary memory.

use std::collections::HashMap;

use super::draft::PlanDraft;
use super::launches::LaunchedNodes;
use super::movement::{BLOCK, Link, Traffic, movement, work_of};
use super::state::{Halo, Placement};
use super::step::{Action, Temp};
use crate::ir::graph::NodeId;
use crate::ir::kernel::Access;
use crate::machine::{HostSide, MachineProfile};
use horus_base::shape::Window;

/// A transfer of an image to launches that read it across strips.
pub(super) struct TransferChoice {
    pub(super) replicate: bool,
    /// The only rank that has the image first scatters it, so that all ranks can send.
    pub(super) scatter: bool,
    /// Predicted seconds.
    pub(super) seconds: f64,
    pub(super) why: String,
}

fn microseconds(seconds: f64) -> String {
    format!("{:.0} us", seconds * 1e6)
}

/// Cached predictions of the seconds of footprints.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// By footprint, and the only rank that has the image, if there is one.
    fetches: HashMap<(Temp, Option<usize>), f64>,
}

impl Costs {
    /// Chooses between fetching footprints launch by launch and replicating the image, by predicted time of
    /// messages and of the copies that each rank then makes of received rows.
    pub(super) fn choose(
        &mut self,
        draft: &PlanDraft<'_>,
        source: NodeId,
        elsewhere: &[Temp],
        owner: Option<usize>,
        in_strips: bool,
    ) -> TransferChoice {
        let machine = &draft.setting.machine;
        let room = Halo::NONE;
        let direct = draft.setting.direct;
        let time = |p: &PlanDraft<'_>, action, owner| p.traffic(action, owner).time;
        // Between devices, rows arrive in their final place.
        let copy = |bytes: usize| if direct { 0.0 } else { machine.slowest(|m| m.host_copy(bytes)) };
        let whole = copy(draft.graph.node(source).shape.len() * draft.graph.node(source).dtype.size());
        let scatter =
            owner.map_or(0.0, |_| time(draft, Action::Scatter { node: source, halo: room, room, direct }, owner));
        let replicate = |p: &PlanDraft<'_>, owner| time(p, Action::Replicate { node: source, direct }, owner) + whole;
        let mut fetch = |owner| elsewhere.iter().map(|t| self.of_fetching(draft, source, *t, owner)).sum::<f64>();
        // An image that is whole everywhere needs no halos.
        let asked = draft.demand.asked[source.0];
        let halos = match draft.state(source).placement {
            _ if !in_strips => 0.0,
            Placement::Strips(valid) if valid.covers(asked) => 0.0,
            Placement::Strips(_) => draft.exchanging(source, asked),
            _ => draft.exchanging(source, asked).min(draft.scattering(source, asked)),
        };
        let fetches = (fetch(None) + scatter + halos, owner.filter(|_| !in_strips).map(|_| fetch(owner)));
        let whole = (replicate(draft, None) + scatter, owner.map(|_| replicate(draft, owner)));
        let best = |(spread, direct): (f64, Option<f64>)| match direct {
            Some(direct) if direct <= spread => (direct, false),
            _ => (spread, owner.is_some()),
        };
        let ((fetching, scatter_to_fetch), (replicating, scatter_to_replicate)) = (best(fetches), best(whole));
        // A footprint for one rank alone would let the next wait for its launches.
        let replicate = replicating < fetching || elsewhere.iter().any(|t| draft.reads_whole(t.consumer));
        let count = elsewhere.len();
        let launches = if count == 1 { "1 launch reads".to_owned() } else { format!("{count} launches read") };
        let seconds = if replicate { replicating } else { fetching };
        let (fetching, replicating) = (microseconds(fetching), microseconds(replicating));
        TransferChoice {
            replicate,
            scatter: if replicate { scatter_to_replicate } else { scatter_to_fetch },
            seconds,
            why: format!("{launches} it across strips: {fetching} as footprints, {replicating} as a whole"),
        }
    }

    /// Predicted seconds to fetch the rows that one launch reads of one input, and to copy them into place.
    fn of_fetching(&mut self, draft: &PlanDraft<'_>, node: NodeId, temp: Temp, owner: Option<usize>) -> f64 {
        if let Some(cost) = self.fetches.get(&(temp, owner)) {
            return *cost;
        }
        let rows = draft.rows_if(temp.consumer, true);
        let direct = draft.setting.direct;
        let sent = draft.traffic(Action::Fetch { node, temp, rows, direct }, owner).time;
        let copied = if direct { 0 } else { draft.bytes_fetched(node, temp, rows) };
        let cost = sent + draft.setting.machine.slowest(|m| m.host_copy(copied));
        self.fetches.insert((temp, owner), cost);
        cost
    }
}

impl PlanDraft<'_> {
    /// An upper bound of the bytes of packed messages on a rank.
    pub(super) fn scratch(&self, source: NodeId, sent: Action) -> usize {
        if self.memory.is_none() {
            return 0;
        }
        if let Action::Exchange { node, halo, .. } = sent {
            let n = self.graph.node(node);
            return 2 * (halo.up + halo.down) * n.shape.line() * n.shape.planes() * n.dtype.size();
        }
        let traffic = self.traffic(sent, self.state(source).placement.owner());
        let packs = matches!(sent, Action::Fetch { .. }) || self.graph.node(source).shape.planes() > 1;
        if packs { traffic.sent + traffic.received } else { 0 }
    }

    /// The launches from `reader` on that read `source` beyond their strips, and `true` if there are other
    /// readers.
    pub(super) fn readers(&self, source: NodeId, reader: NodeId) -> (Vec<Temp>, bool) {
        let mut elsewhere = Vec::new();
        let mut in_strips = false;
        let mut consumers: Vec<NodeId> =
            self.lifetimes.readers[source.0].iter().copied().filter(|c| *c >= reader).collect();
        consumers.dedup();
        for consumer in consumers {
            let node = self.graph.node(consumer);
            for (input, _) in node.inputs.iter().enumerate().filter(|(_, s)| **s == source) {
                match node.op.access(input) {
                    Access::Rows { .. } if !self.reads_whole(consumer) => in_strips = true,
                    _ => elsewhere.push(Temp { consumer, input }),
                }
            }
        }
        (elsewhere, in_strips)
    }

    /// The slowest link for messages.
    pub(super) fn link(&self) -> Link {
        self.setting.machine.link(self.setting.direct)
    }

    /// Predicted seconds that the halo exchange of an image adds to a plan.
    pub(super) fn exchanging(&self, node: NodeId, halo: Halo) -> f64 {
        let direct = self.setting.direct;
        let traffic = self.traffic(Action::Exchange { node, halo, direct }, None);
        let computed = self.initial[node.0].is_none();
        let through_host = |m: &MachineProfile| {
            m.download(traffic.sent, HostSide::Pinned) + m.upload(traffic.received, HostSide::Pinned)
        };
        let copied = if computed && !direct { self.setting.machine.slowest(through_host) } else { 0.0 };
        let travel = traffic.time + copied;
        let reader = self.lifetimes.readers[node.0].first().filter(|_| direct);
        reader.map_or(travel, |reader| travel - self.hidden(travel, *reader).max(0.0))
    }

    /// Predicted seconds saved if the launch of `id` computes its interior while messages travel; negative if
    /// the additional launches take longer. They also read the rows around the edges once more.
    pub(super) fn hidden(&self, travel: f64, id: NodeId) -> f64 {
        let (partition, height) = (&self.setting.partition, self.graph.node(id).shape.height);
        let strips = (0..self.ranks()).map(|rank| partition.strip(rank, height));
        let work = work_of(
            self.graph,
            &LaunchedNodes::single(self.graph, &id),
            strips.max_by_key(|s| s.len()).unwrap_or(Window::new(0, 0)),
        );
        let machine = &self.setting.machine;
        travel.min(machine.slowest(|m| m.launch(&work).seconds)) - machine.slowest(MachineProfile::division)
    }

    /// Predicted additional seconds of a scatter that also sends the halo.
    pub(super) fn scattering(&self, node: NodeId, halo: Halo) -> f64 {
        let direct = self.setting.direct;
        let scatter = |sent| {
            self.traffic(Action::Scatter { node, halo: sent, room: halo, direct }, self.state(node).placement.owner())
                .time
        };
        scatter(halo) - scatter(Halo::NONE)
    }

    pub(super) fn traffic(&self, action: Action, owner: Option<usize>) -> Traffic {
        self.traffic_over(self.link(), action, owner)
    }

    /// The traffic of a step over links of this speed.
    pub(super) fn traffic_over(&self, link: Link, action: Action, owner: Option<usize>) -> Traffic {
        let (Action::Scatter { node, .. }
        | Action::Replicate { node, .. }
        | Action::Exchange { node, .. }
        | Action::Gather { node, .. }
        | Action::Fetch { node, .. }) = action
        else {
            return Traffic::default();
        };
        let coarse = BLOCK.max(self.graph.node(node).shape.height / 64);
        movement(self.graph, &self.setting.partition, action, owner, coarse)
            .map_or(Traffic::default(), |m| m.traffic(link))
    }
}
