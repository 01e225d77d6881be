//! How images get to where launches read them: scattered, uploaded in strips, fetched launch by launch or given to every
//! rank, by predicted time.

use super::halos::needed;
use super::movement::{BLOCK, Link, Traffic, movement, rows_of};
use super::planner::Planner;
use super::state::{Event, Halo, Placement};
use super::step::{Action, Rows, Temp};
use crate::ir::graph::NodeId;
use crate::ir::kernel::Access;

/// How an image gets to launches that read it across strips.
pub(super) struct Choice {
    pub(super) replicate: bool,
    /// Whether rank 0 first gives each rank its strip, so that all send.
    scatter: bool,
    /// Predicted seconds.
    seconds: f64,
    pub(super) why: String,
}

/// Bytes per second that a rank uploads while others of its host do: 64 MiB took two H200s 3.3 ms each.
const BUS: f64 = 20e9;

fn microseconds(seconds: f64) -> String {
    format!("{:.0} us", seconds * 1e6)
}

impl Planner<'_> {
    /// Takes an image away from rank 0 alone, or of one that every host has brings the strips to the devices; and gives it
    /// to all if that is cheaper than what the remaining launches that read it out of their strip would fetch.
    pub(super) fn spread(&mut self, source: NodeId, reader: NodeId) {
        if self.state(source).placement == Placement::Replicated && !self.upload_strips(source, reader) {
            return;
        }
        let placement = self.state(source).placement;
        let on_root = placement == Placement::Root;
        let (elsewhere, in_strips) = self.readers(source, reader);
        if elsewhere.is_empty() {
            if on_root && in_strips {
                self.scatter(source, reader);
            }
            return;
        }
        let choice = self.choose(source, &elsewhere, on_root, in_strips);
        if choice.scatter {
            self.scatter(source, reader);
        }
        if choice.replicate {
            let sent = Action::Replicate { node: source, direct: true };
            let direct = self.between_devices(source, reader, self.bytes_as(source, Rows::All), sent);
            if !direct {
                self.bring_to_host(source, "it is sent to every rank from the host");
            }
            self.step(Action::Replicate { node: source, direct }, choice.why);
            self.placed(source, Placement::Replicated, direct);
        } else {
            self.fetched_because[source.0] = choice.why;
        }
    }

    /// Uploads of an image that every host has only the strips, and rows around them, where that takes less time than the
    /// whole image, and than what devices then send each other. Whether it did. The host's copy goes then: what wants it
    /// back gathers it.
    fn upload_strips(&mut self, source: NodeId, reader: NodeId) -> bool {
        let residency = self.state(source).residency;
        let divisible = self.graph.node(source).shape.height >= self.ranks;
        // Every rank computes a single pixel, for which it needs all that it reads.
        let for_all = self.consumers[source.0].iter().any(|c| self.graph.node(*c).shape.area() == 1);
        if !self.setting.direct || residency.device() || !residency.host() || !divisible || for_all {
            return false;
        }
        let halo = self.read_around(source, reader);
        let (whole, strip) = (self.bytes_as(source, Rows::All), self.bytes_as(source, Rows::Strip(halo)));
        let saved = whole.saturating_sub(strip) as f64 / BUS;
        let (elsewhere, in_strips) = self.readers(source, reader);
        let sent = match elsewhere.len() {
            0 => 0.0,
            // What is fetched or given to all then, and its messages, are no larger than the image, either of them.
            _ if !self.fits_beside(source, strip + whole, reader) => return false,
            _ => self.choose(source, &elsewhere, false, in_strips).seconds,
        };
        if saved <= sent {
            return false;
        }
        self.make_room(source, Some(Rows::Strip(halo)), reader);
        let why = format!("{} needs its strip, and every host has the whole", self.label(reader));
        self.step(Action::UploadStrip { node: source, halo }, why);
        self.event(source, Event::PlacedOnDevice(Placement::Strips(halo)));
        true
    }

    /// How far around the strips `source` is read from `reader` on, if results are computed on all rows that filters ask
    /// for around theirs instead of exchanging them.
    fn read_around(&self, source: NodeId, reader: NodeId) -> Halo {
        let later = self.consumers[source.0].iter().filter(|c| **c >= reader);
        let halos = later.flat_map(|&consumer| {
            let (node, asked) = (self.graph.node(consumer), self.asked[consumer.0]);
            let own = node.inputs.iter().enumerate().filter(move |(_, s)| **s == source);
            let own = own.filter_map(|(i, _)| needed(node.op.access(i)));
            own.map(move |own| Halo { up: own.up + asked.up, down: own.down + asked.down, ..own })
        });
        halos.fold(self.asked[source.0], Halo::max)
    }

    fn scatter(&mut self, source: NodeId, reader: NodeId) {
        let room = self.asked[source.0];
        let sent = Action::Scatter { node: source, room, direct: true };
        let strip = self.bytes_as(source, Rows::Strip(Halo::NONE));
        let direct = self.between_devices(source, reader, strip, sent);
        if !direct {
            self.bring_to_host(source, "it is scattered from the host");
        }
        self.step(Action::Scatter { node: source, room, direct }, format!("{} needs its strip", self.label(reader)));
        self.placed(source, Placement::Strips(Halo::NONE), direct);
    }

    /// Whether a transfer of `source` goes from device to device: the devices are connected, and there is room for the
    /// image, for what the transfer leaves beside it (`bytes`) and for its packed messages. If so, the image is on the
    /// device and the room is there.
    pub(super) fn between_devices(&mut self, source: NodeId, reader: NodeId, bytes: usize, sent: Action) -> bool {
        if !self.setting.direct || self.setting.unified || self.naive() {
            return false;
        }
        let bytes = if self.ledger.is_some() { bytes + self.scratch(source, sent) } else { 0 };
        if !self.fits_beside(source, bytes, reader) {
            return false;
        }
        self.on_device(source, reader);
        self.make_room_for(bytes, source, reader);
        true
    }

    /// An upper bound of the bytes of packed messages on a rank.
    pub(super) fn scratch(&self, source: NodeId, sent: Action) -> usize {
        if self.ledger.is_none() {
            return 0;
        }
        if let Action::Exchange { node, halo, .. } = sent {
            let n = self.graph.node(node);
            return 2 * (halo.up + halo.down) * n.shape.width * n.shape.channels * n.dtype.size();
        }
        let traffic = self.traffic(sent, self.state(source).placement == Placement::Root);
        let packs = matches!(sent, Action::Fetch { .. }) || self.graph.node(source).shape.channels > 1;
        if packs { traffic.sent + traffic.received } else { 0 }
    }

    pub(super) fn placed(&mut self, id: NodeId, placement: Placement, direct: bool) {
        self.event(id, if direct { Event::PlacedOnDevice(placement) } else { Event::Placed(placement) });
    }

    /// The reads of `source` from `reader` on that leave the strip, and whether some do not.
    pub(super) fn readers(&self, source: NodeId, reader: NodeId) -> (Vec<Temp>, bool) {
        let mut elsewhere = Vec::new();
        let mut in_strips = false;
        let mut consumers: Vec<NodeId> = self.consumers[source.0].iter().copied().filter(|c| *c >= reader).collect();
        consumers.dedup();
        for consumer in consumers {
            let node = self.graph.node(consumer);
            for (input, _) in node.inputs.iter().enumerate().filter(|(_, s)| **s == source) {
                match node.op.access(input) {
                    Access::Rows { .. } => in_strips = true,
                    _ => elsewhere.push(Temp { consumer, input }),
                }
            }
        }
        (elsewhere, in_strips)
    }

    /// Chooses between fetching footprints launch by launch and giving every rank the whole image, by predicted time:
    /// what is sent, and the copies that each rank then makes of what it got.
    pub(super) fn choose(&mut self, source: NodeId, elsewhere: &[Temp], on_root: bool, in_strips: bool) -> Choice {
        let link = self.link();
        let room = Halo::NONE;
        let direct = self.setting.direct;
        let time = |p: &Self, action, on_root| p.traffic(action, on_root).time;
        // Between devices, what arrives is where the launch reads it.
        let copy = |bytes: usize| if direct { 0.0 } else { bytes as f64 / link.bandwidth };
        let whole = copy(self.graph.node(source).shape.len() * self.graph.node(source).dtype.size());
        let scatter = if on_root { time(self, Action::Scatter { node: source, room, direct }, true) } else { 0.0 };
        let replicate = |p: &Self, on_root| time(p, Action::Replicate { node: source, direct }, on_root) + whole;
        let mut fetch = |on_root| elsewhere.iter().map(|t| self.cost_of_fetching(source, *t, on_root)).sum::<f64>();
        let fetches = (fetch(false) + scatter, (on_root && !in_strips).then(|| fetch(true)));
        let whole = (replicate(self, false) + scatter, on_root.then(|| replicate(self, true)));
        let best = |(spread, direct): (f64, Option<f64>)| match direct {
            Some(direct) if direct <= spread => (direct, false),
            _ => (spread, on_root),
        };
        let ((fetching, scatter_to_fetch), (replicating, scatter_to_replicate)) = (best(fetches), best(whole));
        let replicate = replicating < fetching;
        let count = elsewhere.len();
        let launches = if count == 1 { "1 launch reads".to_owned() } else { format!("{count} launches read") };
        let seconds = replicating.min(fetching);
        let (fetching, replicating) = (microseconds(fetching), microseconds(replicating));
        Choice {
            replicate,
            scatter: if replicate { scatter_to_replicate } else { scatter_to_fetch },
            seconds,
            why: format!("{launches} it across strips: {fetching} as footprints, {replicating} as a whole"),
        }
    }

    /// How long messages take where most of them go.
    fn link(&self) -> Link {
        // 1.4 MB to one neighbour take 17 microseconds between two H200s by NVLink (horus-fabric-bench).
        if self.setting.direct { Link { latency: 10e-6, bandwidth: 150e9 } } else { Link::default() }
    }

    pub(super) fn traffic(&self, action: Action, on_root: bool) -> Traffic {
        let (Action::Scatter { node, .. }
        | Action::Replicate { node, .. }
        | Action::Exchange { node, .. }
        | Action::Fetch { node, .. }) = action
        else {
            return Traffic::default();
        };
        let coarse = BLOCK.max(self.graph.node(node).shape.height / 64);
        movement(self.graph, &self.setting.partition, action, on_root, coarse)
            .map_or(Traffic::default(), |m| m.traffic(self.link()))
    }

    /// Predicted seconds to fetch what one launch reads of one input, and to copy it where the launch reads it.
    fn cost_of_fetching(&mut self, node: NodeId, temp: Temp, on_root: bool) -> f64 {
        if let Some(cost) = self.costs.get(&(temp, on_root)) {
            return *cost;
        }
        let consumer = self.graph.node(temp.consumer);
        let everywhere = consumer.op.is_on_every_rank(consumer.shape, || true);
        let halo = Halo { wrap: false, ..self.asked[temp.consumer.0] };
        let rows = if everywhere { Rows::All } else { Rows::Strip(halo) };
        let direct = self.setting.direct;
        let sent = self.traffic(Action::Fetch { node, temp, rows, direct }, on_root).time;
        let copied = if direct { 0 } else { self.bytes_fetched(node, temp, rows) };
        let cost = sent + copied as f64 / self.link().bandwidth;
        self.costs.insert((temp, on_root), cost);
        cost
    }

    /// Bytes of the copy that a launch reads of a source, on the rank that needs most.
    pub(super) fn bytes_fetched(&self, node: NodeId, temp: Temp, rows: Rows) -> usize {
        let (consumer, shape) = (self.graph.node(temp.consumer), self.graph.node(node).shape);
        let partition = &self.setting.partition;
        let held = (0..self.ranks).map(|rank| {
            let computed = rows_of(self.graph, partition, temp.consumer, rank, rows);
            consumer.op.footprint(temp.input, computed, consumer.shape, shape).len()
        });
        held.max().unwrap_or_default() * shape.width * shape.channels * self.graph.node(node).dtype.size()
    }
}
