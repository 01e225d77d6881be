//! Borders of what a launch reads: which are not deep enough, and what the launch computes while they travel.

use super::planner::Planner;
use super::state::{Event, Halo, Placement};
use super::step::{Action, Part, Rows};
use crate::ir::graph::NodeId;
use crate::ir::kernel::Access;

/// Seconds that borders must be predicted to travel for a launch to be divided. Measured between two H200s: two more
/// launches, which read the rows around the edges once more, took about 30 microseconds.
const WORTHWHILE: f64 = 50e-6;

/// An input whose borders are not valid as deep as a launch reads them.
pub(super) struct Due {
    source: NodeId,
    /// Depth to exchange.
    halo: Halo,
    why: String,
}

/// How far beyond the rows that it computes a kernel reads, for one input; `None` if it reads elsewhere.
pub(super) fn needed(access: Access) -> Option<Halo> {
    let Access::Rows { reach, wrap } = access else { return None };
    Some(Halo { up: reach.up, down: reach.down, wrap: wrap && reach.up + reach.down > 0 })
}

impl Planner<'_> {
    /// The borders that must be exchanged before `id` is computed, each to the widest depth anybody will ask for; and how
    /// far around the strip, at most `extend`, the result can be computed then.
    pub(super) fn borders(&self, id: NodeId, mut extend: Halo) -> (Vec<Due>, Halo) {
        let graph = self.graph;
        let node = graph.node(id);
        let mut due: Vec<Due> = Vec::new();
        for (i, &source) in node.inputs.iter().enumerate() {
            let (Some(need), Placement::Strips(valid)) = (needed(node.op.access(i)), self.state(source).placement)
            else {
                continue;
            };
            let now = self.wanted(source, need, extend);
            let known = due.iter().position(|d| d.source == source);
            let mut have = known.map_or(valid, |k| due[k].halo);
            if !have.covers(now) {
                let why = format!("{} reads {now} rows beyond the strip, {have} are valid", self.label(id));
                have = self.asked[source.0].max(now);
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
        if self.filtered[source.0].covers(deeper) { deeper } else { need }
    }

    /// Exchanges the borders that are due for the launch of `id`, or begins to where some rank can compute rows meanwhile.
    /// Returns the inputs whose exchange was only begun.
    pub(super) fn exchange(&mut self, due: Vec<Due>, id: NodeId, rows: Rows) -> Vec<NodeId> {
        let awaited: Vec<NodeId> = due.iter().map(|d| d.source).collect();
        let fetches = (0..self.graph.node(id).inputs.len()).any(|input| self.is_fetched(id, input));
        let long = self.setting.overlap || (self.setting.direct && self.travel(&due) > WORTHWHILE);
        let meanwhile = long && !fetches && self.has_interior(id, rows, &awaited);
        let mut begun = Vec::new();
        for Due { source: node, halo, why } in due {
            let sent = Action::Exchange { node, halo, direct: true };
            let direct = self.between_devices(node, id, 0, sent);
            if meanwhile && self.can_begin(node, id, rows, sent, direct) {
                self.step(Action::Begin { node, halo, direct }, why);
                begun.push(node);
            } else {
                self.step(Action::Exchange { node, halo, direct }, why);
            }
            self.event(node, Event::Exchanged(halo));
        }
        begun
    }

    /// Predicted seconds until all that is due has arrived.
    fn travel(&self, due: &[Due]) -> f64 {
        let one = |d: &Due| self.traffic(Action::Exchange { node: d.source, halo: d.halo, direct: true }, false).time;
        due.iter().map(one).sum()
    }

    /// Whether an exchange for launch `id` can be under way while that is computed: rows arrive where the launch reads
    /// them, and between devices the packed messages have room beside all that it reads and its result. They have it then.
    fn can_begin(&mut self, source: NodeId, id: NodeId, rows: Rows, sent: Action, direct: bool) -> bool {
        if !direct {
            return self.state(source).residency.device();
        }
        let packed = self.scratch(source, sent);
        let others = self.bytes_to_come(id) + self.bytes_as(id, rows);
        let fits = self.fits_beside(source, packed + others, id);
        if fits {
            self.hold_temp(packed, source, id);
        }
        fits
    }

    /// Whether some rank computes rows of `id` without the borders of `awaited`.
    fn has_interior(&self, id: NodeId, rows: Rows, awaited: &[NodeId]) -> bool {
        let (part, partition) = (Part::Interior(self.reach(id, awaited)), &self.setting.partition);
        let height = self.graph.node(id).shape.height;
        (0..partition.ranks()).any(|rank| !part.windows(rows, partition, rank, height)[0].is_empty())
    }

    /// How far `id` reads beyond its rows in any of `sources`.
    fn reach(&self, id: NodeId, sources: &[NodeId]) -> Halo {
        let node = self.graph.node(id);
        let inputs = node.inputs.iter().enumerate().filter(|(_, source)| sources.contains(source));
        inputs.filter_map(|(i, _)| needed(node.op.access(i))).fold(Halo::NONE, Halo::max)
    }

    /// Computes `id` in two parts; during the first, the borders of `begun` are under way.
    pub(super) fn launch_around(&mut self, id: NodeId, rows: Rows, begun: &[NodeId]) {
        let (reach, room) = (self.reach(id, begun), self.asked[id.0]);
        self.make_room(id, Some(rows), id);
        self.step(Action::Launch { node: id, rows, room, part: Part::Interior(reach) }, "");
        for &node in begun {
            self.step(Action::Finish(node), "");
        }
        self.step(Action::Launch { node: id, rows, room, part: Part::Edges(reach) }, "");
        self.event(id, Event::Computed(rows.placement()));
        self.drop_temps(id);
    }
}
