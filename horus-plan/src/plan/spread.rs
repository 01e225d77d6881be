//! Distribution of images to launches: scattered, uploaded in strips, fetched launch by launch or replicated,
//! by predicted time.

use super::demand::halo_of_access;
use super::launches::LaunchedNodes;
use super::movement::work_of;
use super::state::{Halo, Placement, Residency, StateEvent};
use super::step::{Action, Band, ComputedRows, Temp};
use super::transfers::TransferPlanner;
use crate::ir::graph::NodeId;
use crate::machine::HostSide;
use horus_base::shape::Window;

impl TransferPlanner<'_, '_> {
    /// Distributes an image that only one rank has, or uploads strips of an image that every host has.
    /// Replicates the image if that is cheaper than the footprints of the remaining launches that read it
    /// outside their strips.
    pub(super) fn spread(&mut self, source: NodeId, reader: NodeId) {
        if self.draft.state(source).placement == Placement::Replicated && !self.upload_strips(source, reader) {
            return;
        }
        let placement = self.draft.state(source).placement;
        let owner = placement.owner();
        let stays = owner.is_some() && self.draft.owners[source.0] == owner && self.draft.owners[reader.0] == owner;
        if stays || self.reads_within(placement, source, reader) {
            // Other launches get the rows that they read at their turn; this launch need not wait for them.
            return;
        }
        let (elsewhere, in_strips) = self.draft.readers(source, reader);
        if elsewhere.is_empty() {
            if owner.is_some() && in_strips {
                // All parts meet: they travel at once.
                let parts = if self.draft.owners[source.0].is_some() { self.parts_for(reader) } else { vec![source] };
                if self.draft.setting.unified || !self.draft.setting.direct {
                    parts.iter().for_each(|part| self.draft.bring_to_host(*part, "it is scattered from the host"));
                }
                parts.into_iter().for_each(|part| self.scatter(part, reader, true));
            }
            return;
        }
        let choice = self.costs.choose(self.draft, source, &elsewhere, owner, in_strips);
        if choice.scatter {
            self.scatter(source, reader, !choice.replicate);
        }
        if choice.replicate {
            let sent = Action::Replicate { node: source, direct: true };
            let direct =
                self.draft.between_devices(source, reader, self.draft.bytes_as(source, ComputedRows::All), sent);
            if !direct {
                self.draft.bring_to_host(source, "it is sent to every rank from the host");
            }
            self.draft.step(Action::Replicate { node: source, direct }, choice.why);
            self.draft.placed(source, Placement::Replicated, direct);
        } else {
            self.fetched_because[source.0] = choice.why;
        }
    }

    /// The images of single ranks of which `reader` and later launches of all ranks read strips.
    fn parts_for(&self, reader: NodeId) -> Vec<NodeId> {
        let is_part = |n: &NodeId| {
            let owner = self.draft.owners[n.0];
            let state = self.draft.states[n.0].filter(|_| owner.is_some());
            let meets = |c: &NodeId| *c >= reader && self.draft.owners[c.0] != owner;
            let (elsewhere, in_strips) = self.draft.readers(*n, reader);
            state.is_some_and(|state| state.placement.owner() == owner)
                && self.draft.lifetimes.readers[n.0].iter().any(meets)
                && elsewhere.is_empty()
                && in_strips
        };
        (0..self.draft.graph.nodes.len()).map(NodeId).filter(is_part).collect()
    }

    /// Returns `true` if these strips contain all rows that a launch reads of an image.
    fn reads_within(&self, placement: Placement, source: NodeId, reader: NodeId) -> bool {
        let Placement::Strips(valid) = placement else { return false };
        let mut own = self.draft.graph.node(reader).inputs.iter().enumerate().filter(|(_, s)| **s == source);
        own.all(|(input, _)| self.draft.holds(valid, Temp { consumer: reader, input }))
    }

    /// Returns `true` if it takes less time to let every rank compute `id` whole, of replicated inputs, than to send
    /// the result to its readers, all of which need other rows than their strips: a picture converted to floats.
    pub(super) fn is_repeated(&mut self, id: NodeId) -> bool {
        let (draft, graph) = (&*self.draft, self.draft.graph);
        let node = graph.node(id);
        let (elsewhere, in_strips) = draft.readers(id, id);
        let pointwise = (0..node.inputs.len()).all(|i| halo_of_access(node.op.access(i)).is_some_and(Halo::is_none));
        let whole = |i: &NodeId| !matches!(draft.state(*i).placement, Placement::Strips(_));
        let outlives = draft.lifetimes.outlives_plan[id.0];
        let joined = graph.joined.iter().any(|joined| joined.nodes.contains(&id));
        let inputs = node.inputs.iter().map(|i| draft.bytes_as(*i, ComputedRows::All)).sum();
        let stays = in_strips || elsewhere.is_empty() || !pointwise || outlives || joined;
        if stays || !node.inputs.iter().all(whole) || !draft.fits_beside(id, inputs, id) {
            return false;
        }
        let direct = draft.setting.direct;
        let machine = &draft.setting.machine;
        let (mut replicating, mut scattering) = (0.0, 0.0);
        for &input in &node.inputs {
            let (owner, halo) = (draft.state(input).placement.owner(), Halo::NONE);
            let bytes = draft.bytes_as(input, ComputedRows::All);
            if owner.is_some() {
                let copied = if direct { 0.0 } else { machine.slowest(|m| m.host_copy(bytes)) };
                replicating += draft.traffic(Action::Replicate { node: input, direct }, owner).time + copied;
                scattering += draft.traffic(Action::Scatter { node: input, halo, room: halo, direct }, owner).time;
            } else if draft.state(input).residency == Residency::Host {
                let upload = |rows| machine.slowest(|m| m.upload(draft.bytes_as(input, rows), HostSide::Staged));
                replicating += upload(ComputedRows::All);
                scattering += upload(ComputedRows::Strip(halo));
            }
        }
        let launch = |rows: usize| {
            let work = work_of(graph, &LaunchedNodes::single(graph, &id), Window::whole(rows));
            machine.slowest(|m| m.launch(&work).seconds)
        };
        let (height, ranks) = (node.shape.height, draft.ranks());
        let (all, strip) = (launch(height), launch(height.div_ceil(ranks)));
        let sent = self.costs.choose(self.draft, id, &elsewhere, None, false).seconds;
        replicating + all < scattering + strip + sent
    }

    /// Uploads only strips and surrounding rows of an image that every host has, if that takes less time than
    /// uploading the whole image, and less than later messages between devices. Returns `true` if it did. The
    /// host copy is then released; a later use on the host gathers the image.
    fn upload_strips(&mut self, source: NodeId, reader: NodeId) -> bool {
        let residency = self.draft.state(source).residency;
        let divisible = self.draft.graph.node(source).shape.height >= self.draft.ranks();
        // Every rank computes a single pixel, for which it needs all of its inputs.
        let needs_all = |c: &NodeId| self.draft.graph.node(*c).shape.area() == 1 || self.draft.reads_whole(*c);
        let for_all = self.draft.lifetimes.readers[source.0].iter().any(needs_all);
        let strips = self.draft.setting.direct || self.draft.setting.has_shared_host();
        if !strips || residency.device() || !residency.host() || !divisible || for_all {
            return false;
        }
        let halo = self.read_around(source, reader);
        let (whole, strip) =
            (self.draft.bytes_as(source, ComputedRows::All), self.draft.bytes_as(source, ComputedRows::Strip(halo)));
        let saved = self
            .draft
            .setting
            .machine
            .slowest(|m| m.upload(whole, HostSide::Staged) - m.upload(strip, HostSide::Staged));
        let (elsewhere, in_strips) = self.draft.readers(source, reader);
        let sent = match elsewhere.len() {
            0 => 0.0,
            // Footprints or replicas, and their messages, are each no larger than the image.
            _ if !self.draft.fits_beside(source, strip + whole, reader) => return false,
            _ => self.costs.choose(self.draft, source, &elsewhere, None, in_strips).seconds,
        };
        if saved <= sent {
            return false;
        }
        self.draft.evict_for_image(source, Some(ComputedRows::Strip(halo)), reader);
        let why = format!("{} needs its strip, and every host has the whole", self.draft.label(reader));
        self.draft.step(Action::UploadStrip { node: source, halo, band: Band::WHOLE }, why);
        self.draft.event(source, StateEvent::PlacedOnDevice(Placement::Strips(halo)));
        true
    }

    /// Rows around the strips that launches read of `source` from `reader` on; includes launches that read
    /// other rows than their own, if these are few.
    fn read_around(&self, source: NodeId, reader: NodeId) -> Halo {
        /// Fraction of the thinnest strip that counts as few rows: a guess.
        const FEW: usize = 8;
        let (partition, height) = (&self.draft.setting.partition, self.draft.graph.node(source).shape.height);
        let thinnest = (0..partition.ranks()).map(|rank| partition.strip(rank, height).len()).min().unwrap_or(0);
        let later = self.draft.lifetimes.readers[source.0].iter().filter(|c| **c >= reader);
        let halos = later.flat_map(|&consumer| {
            let node = self.draft.graph.node(consumer);
            let own = node.inputs.iter().enumerate().filter(move |(_, s)| **s == source);
            own.filter_map(move |(input, _)| {
                let halo = self.draft.beyond_strips(Temp { consumer, input });
                let few = halo_of_access(node.op.access(input)).is_some() || halo.up.max(halo.down) <= thinnest / FEW;
                few.then_some(halo)
            })
        });
        halos.fold(self.draft.demand.asked[source.0], Halo::max)
    }

    /// Sends each rank its strip. If the image stays in strips, the rows around them that launches read are
    /// also sent, unless a later exchange takes less time.
    fn scatter(&mut self, source: NodeId, reader: NodeId, stays: bool) {
        let room = self.draft.demand.asked[source.0];
        let sends = stays && self.draft.scattering(source, room) < self.draft.exchanging(source, room);
        let halo = if sends { room } else { Halo::NONE };
        let sent = Action::Scatter { node: source, halo, room, direct: true };
        let strip = self.draft.bytes_as(source, ComputedRows::Strip(halo));
        let direct = self.draft.between_devices(source, reader, strip, sent);
        if !direct {
            self.draft.bring_to_host(source, "it is scattered from the host");
        }
        self.draft.step(
            Action::Scatter { node: source, halo, room, direct },
            format!("{} needs its strip", self.draft.label(reader)),
        );
        self.draft.placed(source, Placement::Strips(halo), direct);
    }
}
