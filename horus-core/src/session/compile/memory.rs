//! Programs that do not fit in memory: their memory use, and their division into regions.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::error::{DeviceError, Error, MemoryBound, Recorded, Result};
use crate::host::buffer::{HostBuffer, block_bytes};
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::machine::here;
use crate::ops::reduce::{Divisible, SEGMENT};
use crate::optimize::optimize_for;
use crate::plan::Mode;
use crate::region::{Cut, Division, InPlace, Rect, Supply, restrict};
use crate::session::cache;
use crate::session::compile::region::{Job, reductions_of};
use crate::session::compile::schedule::{Schedule, Sink};
use crate::session::devices::{Engine, agreed_capacity};
use crate::session::images::on_demand::{Later, Part, STRIPS, unread};
use crate::session::{Mutable, Session};
use crate::shape::{Shape, Window};

/// Maximum number of regions read ahead.
pub(crate) const AHEAD: usize = 2;
/// Maximum number of results waiting to be taken, or being taken.
pub(crate) const BEHIND: usize = 2;
/// Fractions of the available memory for images, the second if the first does not suffice: the rest
/// is for decoders, encoders and reuse, and for chunks that the next region reads again.
const PARTS: [f64; 2] = [0.5, 0.875];
/// Maximum ratio of decoded pixels to those of the image: sources that are decoded more often are decoded once, to a temporary
/// file, which takes about as long as decoding them again. A guess.
const DECODED_AGAIN: f64 = 2.0;
/// Maximum ratio of work by regions to work as a whole: heavily overlapping regions would take
/// hours.
pub(crate) const AGAIN: f64 = 32.0;
/// The same where a plan could evict images from a device instead: a guess, about the ratio for which
/// computing again takes as long as copying.
pub(crate) const AGAIN_OR_EVICT: f64 = 2.0;
/// Maximum number of regions of a division of which it is determined what they need, those of most pixels: a guess.
const LARGEST: usize = 2;
/// Maximum number of divisions that are compared with what their regions need, and the minimum factor by which an
/// estimate that was too low is raised between them: guesses, which reach six times the estimate.
const TRIES: usize = 8;
const STEP: f64 = 1.25;
/// Maximum fraction of the memory for a result that is kept on the way, and for an image in memory that
/// is not read by regions.
const SMALL: usize = 256;

/// Memory use of a program in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    /// Sources.
    read: usize,
    /// Sources that have not been read yet.
    pub(crate) later: usize,
    /// Peak of sources, intermediates and results.
    pub(crate) peak: usize,
    /// Results.
    pub(crate) results: usize,
    /// The call of the operation that needs most.
    pub(crate) at: Option<Recorded>,
}

/// Available memory, on the smallest of all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) host: usize,
    pub(crate) device: Option<usize>,
    pub(crate) unified: bool,
    /// Bytes of the host in use for other purposes.
    pub(crate) beside: usize,
    /// Limit of the host's memory.
    pub(crate) bound: MemoryBound,
    /// Maximum ratio of work by regions to work as a whole.
    pub(crate) again: f64,
    /// Where no regions fit, they are as small as they can be: a plan may evict images from the device.
    pub(crate) is_forced: bool,
}

impl Limits {
    /// Returns `true` if a program fits when evaluated at once.
    pub(crate) fn hold(&self, need: Need) -> bool {
        let host = if self.unified { need.peak } else { need.read + need.results };
        host <= self.host && self.device.is_none_or(|most| need.peak <= most)
    }

    /// The memory available beside so many bytes of the host.
    pub(crate) fn beside(self, bytes: usize) -> Limits {
        Limits { host: self.host.saturating_sub(bytes), ..self }
    }

    /// Bytes of an image that may be in memory as a whole, whatever the program needs.
    fn small(&self) -> usize {
        self.device.map_or(self.host, |device| device.min(self.host)) / SMALL
    }

    /// Returns `true` if one region after the other fits into a fraction of the memory, while
    /// others are read and taken.
    fn hold_regions(&self, need: Need, part: f64) -> bool {
        let waiting = need.later.saturating_mul(AHEAD).saturating_add(need.results.saturating_mul(BEHIND));
        let host = if self.unified { need.peak } else { need.read + need.results };
        // The device may begin with a region while it computes the one before.
        host.saturating_add(waiting) as f64 <= self.host as f64 * part
            && self.device.is_none_or(|most| need.peak as f64 <= most as f64 * part)
    }
}

pub(crate) fn bytes<O>(graph: &Graph<O>, n: NodeId) -> usize {
    let node = graph.node(n);
    node.shape.len().saturating_mul(node.dtype.size())
}

/// Names nothing, and counts the regions read of images that have not been read.
struct Counting<'a> {
    state: &'a Mutable,
    /// Bytes of the regions, and of the chunks that contain them.
    read: usize,
    decoded: usize,
}

impl Supply for Counting<'_> {
    fn source(&mut self, value: ValueId, region: Rect) -> Option<ValueId> {
        let Later { shape, dtype, chunk, .. } = self.state.images.later.get(&value)?;
        let planes = shape.planes() * shape.pixel_bytes(*dtype);
        let whole = |w: Window, chunk: usize, n: usize| {
            let (start, end) = (w.start.unsigned_abs(), w.end.unsigned_abs());
            end.next_multiple_of(chunk.max(1)).min(n) - start / chunk.max(1) * chunk.max(1)
        };
        let decoded = whole(region.rows, chunk.0, shape.height) * whole(region.columns, chunk.1, shape.width);
        self.read += region.area() * planes;
        self.decoded += decoded * planes;
        Some(value)
    }

    fn number(&mut self, _: i32) -> Option<ValueId> {
        None
    }
}

/// The regions of all roots of a program that belong to a region of the first: for each root the same
/// part of its extent, so that the shares of regions that make up the first make up the others.
/// Those of small roots may be empty; no root is larger than the first.
fn shares(graph: &Graph<Op>, region: Rect) -> Vec<Rect> {
    let of = graph.node(graph.roots[0]).shape;
    let line = |w: Window, n: usize, to: usize| {
        let step = (n as f64 / to as f64).round().max(1.0) as usize;
        let share = |at: isize| match at.unsigned_abs() {
            at if at >= n => to,
            at => at.div_ceil(step).min(to),
        };
        Window::new(share(w.start).cast_signed(), share(w.end).cast_signed())
    };
    let share = |root: &NodeId| {
        let Shape { height, width, .. } = graph.node(*root).shape;
        Rect { rows: line(region.rows, of.height, height), columns: line(region.columns, of.width, width) }
    };
    graph.roots.iter().map(share).collect()
}

/// The results that have pixels in a region of the first, with their regions.
pub(crate) fn present(graph: &Graph<Op>, region: Rect) -> Vec<(usize, Rect)> {
    shares(graph, region).into_iter().enumerate().filter(|(_, share)| !share.is_empty()).collect()
}

/// Memory use of regions of a program, by recorded operations: unfused.
pub(crate) struct Counted {
    pub(crate) read: usize,
    decoded: usize,
    computed: usize,
    results: usize,
}

pub(crate) fn counted(state: &Mutable, graph: &Graph<Op>, region: Rect) -> Counted {
    let mut counting = Counting { state, read: 0, decoded: 0 };
    let part = restrict(graph, &shares(graph, region), Cut::Always, &mut counting).graph;
    let computed = part.iter().filter(|(_, n)| !matches!(n.op, Op::Source(_))).map(|(id, _)| bytes(&part, id));
    let results = part.roots.iter().map(|r| bytes(&part, *r)).sum();
    Counted { read: counting.read, decoded: counting.decoded, computed: computed.sum(), results }
}

/// Bytes that a program does not exceed: two images of the widest type for each operation. One that
/// fits even so need not be optimised to decide.
fn generous(graph: &Graph<Op>) -> usize {
    const MOST: usize = 2 * size_of::<f64>();
    let all = (0..graph.nodes.len()).map(|n| bytes(graph, NodeId(n)).saturating_mul(MOST));
    all.fold(0, usize::saturating_add)
}

/// Bytes that decoding the sources of a program takes that could not be decoded when they were opened.
pub(crate) fn lacking(state: &Mutable, graph: &Graph<Op>) -> usize {
    unread(state, graph).map(|(_, later)| later.lacks).max().unwrap_or(0)
}

/// Releases images that can be read again and that a program does not read.
fn make_room(state: &mut Mutable, graph: &Graph<Op>) {
    state.images.release(|v| graph.nodes.iter().any(|n| n.op == Op::Source(*v)));
}

impl Session {
    /// The memory available to a program: the limit; by default, at most most of the memory that is
    /// free on this host now, divided by the ranks on it. Sources of the program that are in memory
    /// already, and images that can be read again, count as free.
    pub(crate) fn limits(&self, state: &Mutable, engine: &Engine, graph: &Graph<Op>) -> Result<Limits> {
        let pool = &self.0.pool;
        let (bound, used) = pool.bounds();
        let sources = graph.nodes.iter().filter_map(|n| if let Op::Source(v) = n.op { Some(v) } else { None });
        let sources: HashSet<ValueId> = sources.collect();
        let room = |v: &ValueId| sources.contains(v) || state.images.later.contains_key(v);
        let there = state.images.here.iter().filter(|(v, _)| room(v)).filter_map(|(_, image)| image.host());
        let there = there.map(HostBuffer::counted).sum::<usize>();
        let beside = used.saturating_sub(there);
        let allowed = pool.most().saturating_sub(beside);
        let free =
            || Some((here::available_memory()? + pool.kept()) / self.0.comm.local_size().max(1) / 10 * 8 + there);
        let by_default = matches!(bound, MemoryBound::Host { by_default: true, .. });
        let mine = if by_default { free().map_or(allowed, |free| free.min(allowed)) } else { allowed };
        let mine = Some(mine).filter(|_| pool.most() != usize::MAX);
        let host = agreed_capacity(&*self.0.comm, mine)?.unwrap_or(usize::MAX);
        Ok(Limits {
            host,
            device: engine.capacity,
            unified: engine.unified(),
            beside,
            bound,
            again: AGAIN,
            is_forced: false,
        })
    }

    /// Memory use of a program after optimisation; these sources are released when they have been
    /// read.
    fn need(&self, engine: &Engine, graph: Graph<Op>, gone: &[ValueId]) -> Result<Need> {
        let setting = self.setting(engine, self.0.partition.clone());
        let fuse = self.0.settings.mode == Mode::Fused;
        let kernels = optimize_for(graph, fuse, &self.aim(&setting), &mut |_, _| ())?;
        let is_source = |n: NodeId| kernels.node(n).op.source_value().is_some();
        // One launch computes all joined nodes.
        let mut first: Vec<usize> = (0..kernels.nodes.len()).collect();
        for joined in &kernels.joined {
            let begin = joined.nodes.iter().map(|n| n.0).min().unwrap_or_default();
            joined.nodes.iter().for_each(|n| first[n.0] = begin);
        }
        let mut last: Vec<usize> = (0..kernels.nodes.len()).collect();
        // On the host's memory sources exist from the beginning, and stay; a device has those of the host from
        // their first reader to their last.
        let begin = if engine.unified() { 0 } else { usize::MAX };
        (0..kernels.nodes.len()).filter(|n| is_source(NodeId(*n))).for_each(|n| first[n] = begin);
        for (id, node) in kernels.iter() {
            for i in &node.inputs {
                last[i.0] = last[i.0].max(id.0);
                if is_source(*i) {
                    first[i.0] = first[i.0].min(first[id.0]);
                }
            }
            let stays = |v: ValueId| engine.unified() && !gone.contains(&v);
            if node.op.source_value().is_some_and(stays) {
                last[id.0] = usize::MAX;
            }
        }
        kernels.roots.iter().for_each(|r| last[r.0] = usize::MAX);
        let sum = |all: &mut dyn Iterator<Item = NodeId>| {
            all.map(|n| block_bytes(bytes(&kernels, n))).fold(0, usize::saturating_add)
        };
        let all = || (0..kernels.nodes.len()).map(NodeId);
        let read = sum(&mut all().filter(|n| is_source(*n)));
        let results = sum(&mut kernels.roots.iter().copied());
        let there = |n: NodeId, now: usize| first[n.0] <= now && last[n.0] >= now;
        let at = |now: usize| {
            let node = &kernels.nodes[now];
            sum(&mut all().filter(|n| there(*n, now))).saturating_add(node.op.scratch(node.shape))
        };
        let most = (0..kernels.nodes.len()).map(|now| (at(now), now)).max();
        let site = most.map(|(_, now)| kernels.nodes[now].site);
        Ok(Need { read, later: 0, peak: most.map_or(0, |(peak, _)| peak), results, at: site })
    }

    /// The available memory, if a program needs more that may be computed by regions: one over
    /// unread sources, or large ones in the memory of a single rank. For any other that is an error on the
    /// host's memory, and left to the plan on a device, which may evict images.
    pub(crate) fn exceeds(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        gone: &[ValueId],
        sink: Sink<'_>,
    ) -> Result<Option<Limits>> {
        let (all, room) = (generous(graph), self.0.pool.most().saturating_sub(self.0.pool.bounds().1));
        if unread(state, graph).next().is_none() {
            // Only a plan determines the needs of several ranks.
            if self.ranks() > 1 || engine.unified() && engine.lanes() > 1 {
                return Ok(None);
            }
            if !engine.unified() {
                return self.exceeds_device(state, engine, graph, sink);
            }
            let excess = self.excess(state, engine, graph, gone)?;
            let Some((need, limits)) = excess else {
                if all > room {
                    make_room(state, graph);
                }
                return Ok(None);
            };
            let divides = state.images.lendable(graph, limits.small()).next().is_some();
            let lack = || self.lack(graph, need.peak, limits, need.at);
            return divides.then_some(Some(limits)).ok_or_else(lack);
        }
        let limits = self.limits(state, engine, graph)?;
        if all > room {
            make_room(state, graph);
        }
        // It is refused, with a limit for all.
        if lacking(state, graph) > 0 {
            return Ok(Some(limits));
        }
        if limits.hold(Need { read: all, peak: all, ..Need::default() }) {
            return Ok(None);
        }
        let need = self.need_of(state, engine, graph, gone)?;
        Ok((!limits.hold(need)).then_some(limits))
    }

    /// The memory up to the limit, whatever is free.
    fn allowed(&self, limits: Limits) -> Limits {
        Limits { host: self.0.pool.most().saturating_sub(limits.beside), ..limits }
    }

    /// The need of a program over images in memory and the available memory, if it does not fit as a whole:
    /// into the host's memory, beside all its sources, or into that of a device of its own.
    fn excess(
        &self,
        state: &Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        gone: &[ValueId],
    ) -> Result<Option<(Need, Limits)>> {
        let unified = engine.unified();
        let room = if unified { self.0.pool.most().saturating_sub(self.0.pool.bounds().1) } else { engine.room() };
        if generous(graph) <= room {
            return Ok(None);
        }
        let limits = self.limits(state, engine, graph)?;
        let need = self.need(engine, graph.clone(), gone)?;
        let fits = if unified { self.allowed(limits).hold(need) } else { need.peak <= room };
        Ok((!fits).then_some((need, limits)))
    }

    /// [`Session::exceeds`] of a program over images in memory, on a device with its own; remembered, as it is
    /// asked at each evaluation.
    fn exceeds_device(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        sink: Sink<'_>,
    ) -> Result<Option<Limits>> {
        if generous(graph) <= engine.room() {
            return Ok(None);
        }
        let limits = self.limits(state, engine, graph)?;
        let program = (cache::digest(graph), matches!(sink, Sink::Regions(_)));
        let by_regions = match state.plans.by_regions(program, limits.host) {
            Some(known) => known,
            None => {
                let excess = self.excess(state, engine, graph, &[])?;
                let by_regions = excess.is_some() && self.pays_by_regions(state, engine, graph, sink)?;
                state.plans.note_by_regions(program, limits.host, by_regions);
                by_regions
            }
        };
        Ok(by_regions.then_some(limits))
    }

    /// Returns `true` if regions compute a program that does not fit on a device, and repeat little work where
    /// a plan for the whole could evict images instead.
    pub(crate) fn pays_by_regions(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        sink: Sink<'_>,
    ) -> Result<bool> {
        let mut limits = self.limits(state, engine, graph)?;
        let with_inputs = |(id, node): (NodeId, &Node<Op>)| {
            let inputs: HashSet<NodeId> = node.inputs.iter().copied().collect();
            inputs.into_iter().fold(bytes(graph, id), |all, input| all.saturating_add(bytes(graph, input)))
        };
        // One lane's memory: an image that a launch reads as a whole is on each.
        let fits = graph.iter().map(with_inputs).all(|bytes| limits.device.is_none_or(|room| bytes <= room));
        limits.again = if fits { AGAIN_OR_EVICT } else { AGAIN };
        let lent: HashSet<ValueId> = state.images.lendable(graph, limits.small()).collect();
        let expected = graph.nodes.iter().filter_map(|node| match node.op {
            Op::Source(value) if lent.contains(&value) => {
                Some((value, Later { chunk: (1, 1), ..Later::expected(node.shape, node.dtype) }))
            }
            _ => None,
        });
        let expected: HashMap<ValueId, Later> = expected.collect();
        // Lent images stay on the host; those of other libraries do not count.
        let on_host = |(value, later): (&ValueId, &Later)| {
            let bytes = later.shape.len().saturating_mul(later.dtype.size());
            state.images.here.get(value).and_then(|image| image.host()).map_or(bytes, HostBuffer::counted)
        };
        let limits = limits.beside(expected.iter().map(on_host).sum());
        state.images.later.extend(expected);
        let divides = unread(state, graph).next().is_some();
        let divides = if divides { self.divides(state, engine, graph, sink, limits) } else { Ok(false) };
        state.images.later.retain(|value, _| !lent.contains(value));
        divides
    }

    /// Returns `true` if a program over images in memory fits as a whole.
    pub(crate) fn holds(&self, state: &Mutable, engine: &Engine, graph: &Graph<Op>) -> Result<bool> {
        self.excess(state, engine, graph, &[]).map(|excess| excess.is_none())
    }

    /// [`Session::exceeds`], with large sources in memory lent as sources of regions if so.
    pub(crate) fn lend(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        gone: &[ValueId],
        sink: Sink<'_>,
    ) -> Result<Option<Limits>> {
        let Some(limits) = self.exceeds(state, engine, graph, gone, sink)? else { return Ok(None) };
        match self.lend_sources(state, engine, graph, limits) {
            // A plan may need fewer images on the host.
            Err(e) if e.is_out_of_memory() && !engine.unified() => Ok(None),
            lent => lent.map(Some),
        }
    }

    /// Lends the large images in memory that a program reads as sources of regions: until
    /// [`Images::take_back`](crate::session::images::Images::take_back) they are read again like files, from the
    /// host, to which those on a device are brought. Returns the memory available now.
    pub(crate) fn lend_sources(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        limits: Limits,
    ) -> Result<Limits> {
        if self.ranks() == 1 && (engine.lanes() == 1 || !engine.unified()) {
            let all: Vec<ValueId> = state.images.lendable(graph, limits.small()).collect();
            for value in all {
                let Some(image) = state.images.here.get(&value) else { continue };
                match self.whole_at_host(engine, image) {
                    Ok((image, later)) => state.images.lend(value, image, later),
                    Err(error) => {
                        state.images.take_back();
                        return Err(error);
                    }
                }
            }
        }
        self.limits(state, engine, graph).inspect_err(|_| state.images.take_back())
    }

    /// The error of a program that needs `bytes` bytes.
    pub(crate) fn lack(&self, graph: &Graph<Op>, bytes: usize, limits: Limits, at: Option<Recorded>) -> Error {
        let root = graph.node(graph.roots[0]);
        let at = at.map(|at| at.to_string());
        let node = graph.nodes.iter().find(|n| Some(n.site.to_string()) == at && !matches!(n.op, Op::Source(_)));
        let found = node.unwrap_or(root);
        // For a program in another language the error names its lines; the request itself has none.
        let told = || graph.nodes.iter().rfind(|n| n.site.line.is_some() && !matches!(n.op, Op::Source(_)));
        let node = if found.site.line.is_none() { told().unwrap_or(found) } else { found };
        let op = format!("{} (recorded at {})", node.op.name(), node.site);
        let source = DeviceError::OutOfMemory { bytes, used: limits.beside, bound: limits.bound };
        Error::Device { op, device: "the host".into(), source }
    }

    /// Memory use of a program that reads only the needed parts of unread images.
    pub(crate) fn need_of(
        &self,
        state: &Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        gone: &[ValueId],
    ) -> Result<Need> {
        let whole: Vec<Rect> = graph.roots.iter().map(|r| Rect::whole(graph.node(*r).shape)).collect();
        let mut counting = Counting { state, read: 0, decoded: 0 };
        let part = restrict(graph, &whole, Cut::Always, &mut counting).graph;
        let later = counting.read;
        Ok(Need { later, ..self.need(engine, part, gone)? })
    }

    /// The division of a program's roots into regions that fit, if there is one with little
    /// repeated work.
    pub(crate) fn division(
        &self,
        state: &Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        grain: (usize, usize),
        reduced: Option<(Divisible, &[NodeId])>,
        limits: Limits,
    ) -> Result<Option<Division>> {
        let of = graph.node(graph.roots[0]).shape;
        let all = counted(state, graph, Rect::whole(of));
        let whole = restrict(graph, &shares(graph, Rect::whole(of)), Cut::Always, &mut InPlace).graph;
        let need = self.need(engine, whole, &[])?;
        let threads = self.workers().threads();
        let decoders = unread(state, graph).map(|(_, later)| later.decoders(threads)).max().unwrap_or(0);
        let (segment, width) = (SEGMENT.min(of.width), of.width);
        for part in PARTS {
            // Fusion stores less than the recorded program, of a region about as of the whole.
            let mut stored = need.peak as f64 / (all.read + all.computed).max(1) as f64;
            for _ in 0..TRIES {
                let mut cost = |region: Rect| {
                    let Counted { read, decoded, computed, results } = counted(state, graph, region);
                    let peak = (stored * (read + computed) as f64) as usize;
                    let results = if reduced.is_some() { 0 } else { results };
                    let peak = peak.max(read + results).saturating_add(decoders);
                    // Chunks that the next strip reads again are kept.
                    let strips = region.columns.len() == width && decoded <= limits.host / STRIPS;
                    let once = (all.decoded as f64 * (region.area() as f64 / of.area() as f64)) as usize;
                    let decoded = if strips { decoded.min(once) } else { decoded };
                    let fits = limits.hold_regions(Need { read, later: read, peak, results, at: None }, part);
                    fits.then_some(computed as f64 + 2.0 * decoded as f64)
                };
                let found = match reduced {
                    None | Some((Divisible::Anywhere, _)) => Division::cheapest(of, grain, &mut cost),
                    Some((Divisible::AtSegments, _)) => Division::of_widths(of, grain.0, &[width, segment], &mut cost),
                    Some((Divisible::Nowhere, _)) => Division::of_widths(of, grain.0, &[width], &mut cost),
                };
                let once = all.computed as f64 + 2.0 * all.decoded as f64;
                let found = found.filter(|(cost, _)| *cost <= limits.again * once);
                let Some((_, division)) = found else { break };
                if !engine.unified() {
                    return Ok(Some(division)); // a plan may evict images from the device
                }
                let all = |region: Rect| {
                    let Counted { read, computed, .. } = counted(state, graph, region);
                    (read + computed, region)
                };
                let mut regions: Vec<(usize, Rect)> = division.kinds().into_iter().map(all).collect();
                regions.sort_by_key(|(all, _)| Reverse(*all));
                let mut more = None;
                for (all, region) in regions.into_iter().take(LARGEST) {
                    let need = self.need_of_region(state, engine, graph, reduced.map(|(_, nodes)| nodes), region)?;
                    let need = Need { peak: need.peak.saturating_add(decoders), ..need };
                    if !limits.hold_regions(need, 1.0) {
                        let ratio = need.peak as f64 / (stored * all.max(1) as f64);
                        more = Some(ratio.max(more.unwrap_or(STEP)));
                    }
                }
                match more {
                    None => return Ok(Some(division)),
                    Some(more) => stored *= more,
                }
            }
        }
        let columns = if reduced.is_some() || grain.1 == 1 { usize::MAX } else { grain.1 };
        Ok(limits.is_forced.then(|| Division::smallest(of, (grain.0, columns))))
    }

    /// The ratio of decoded pixels to those of the sources, of a division.
    fn decodes(&self, state: &Mutable, graph: &Graph<Op>, division: &Division, limits: Limits) -> f64 {
        let of = graph.node(graph.roots[0]).shape;
        let (down, across) = (of.height.div_ceil(division.height), of.width.div_ceil(division.width));
        let region = division.region((down - 1) / 2 * across + (across - 1) / 2);
        let all = counted(state, graph, Rect::whole(of)).decoded as f64;
        let decoded = counted(state, graph, region).decoded;
        if division.width == of.width && decoded <= limits.host / STRIPS {
            return 1.0;
        }
        decoded as f64 * (of.area() as f64 / region.area().max(1) as f64) / all.max(1.0)
    }

    /// [`Session::decodes`] of the pass, or of what is taken, that decodes most often.
    fn decodes_most(&self, state: &Mutable, schedule: &Schedule, limits: Limits) -> f64 {
        let stages = schedule.stages.iter().map(|stage| (&stage.graph, &stage.division));
        let taken = schedule.taken.iter().map(|taken| (&taken.slabs[0].graph, &taken.division));
        stages.chain(taken).map(|(graph, division)| self.decodes(state, graph, division, limits)).fold(0.0, f64::max)
    }

    /// [`Session::schedule_of`], with sources that regions would decode again and again decoded once, to temporary files.
    pub(crate) fn schedule(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        (graph, gone): (&Graph<Op>, &[ValueId]),
        sink: Sink<'_>,
        limits: Limits,
    ) -> Result<Option<Schedule>> {
        if lacking(state, graph) > 0 {
            return Ok(None);
        }
        let found = self.schedule_of(state, engine, (graph, gone), sink, limits)?;
        if found.as_ref().is_some_and(|found| self.decodes_most(state, found, limits) <= DECODED_AGAIN) {
            return Ok(found);
        }
        let threads = self.workers().threads();
        let once: HashMap<ValueId, Later> =
            unread(state, graph).filter_map(|(v, later)| Some((v, later.once(threads)?))).collect();
        if once.is_empty() {
            return Ok(found);
        }
        let before = self.replace(state, once);
        let again = self.schedule_of(state, engine, (graph, gone), sink, limits);
        if let Ok(Some(again)) = again {
            found.into_iter().for_each(|found| state.images.forget(found.own));
            return Ok(Some(again));
        }
        self.replace(state, before);
        again.map(|_| found)
    }

    /// Replaces sources of regions; returns those before.
    pub(crate) fn replace(&self, state: &mut Mutable, by: HashMap<ValueId, Later>) -> HashMap<ValueId, Later> {
        by.into_iter().filter_map(|(v, later)| Some((v, state.images.later.insert(v, later)?))).collect()
    }

    /// Memory use of the program of a region, which nodes may reduce, after optimisation.
    fn need_of_region(
        &self,
        state: &Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        reduced: Option<&[NodeId]>,
        region: Rect,
    ) -> Result<Need> {
        let Job { graph, parts, .. } = match reduced {
            Some(nodes) => reductions_of(state, graph, nodes, region),
            None => Job::of_shares(state, graph, region),
        };
        let own: Vec<ValueId> = parts.iter().map(|part| part.value).collect();
        // Values of earlier stages, which are not there yet, are not part of the available memory.
        let to_come = |node: &&Node<Op>| match node.op {
            Op::Source(v) => !own.contains(&v) && !state.images.has(&v),
            _ => false,
        };
        let made: usize = graph.nodes.iter().filter(to_come).map(|n| block_bytes(n.shape.len() * n.dtype.size())).sum();
        let need = self.need(engine, graph, &own)?;
        let later = parts.iter().map(Part::bytes).sum();
        Ok(Need { peak: need.peak.saturating_sub(made), later, ..need })
    }

    /// Rows and columns read at once of a program's sources: of the largest image.
    pub(crate) fn grain(state: &Mutable, graph: &Graph<Op>) -> (usize, usize) {
        let largest = unread(state, graph).max_by_key(|(v, later)| (later.shape.len(), v.0));
        let of = graph.node(graph.roots[0]).shape;
        largest.map_or((1, 1), |(_, later)| {
            // A picture that is decoded as a whole is not divided along its chunks, nor is a result
            // of another extent.
            let part = |chunk: usize, n: usize, of: usize| if n == of && chunk * 4 <= n { chunk } else { 1 };
            let rows = part(later.chunk.0, later.shape.height, of.height);
            let columns = if later.chunk.1 < later.shape.width { later.chunk.1 } else { 1 };
            (rows, part(columns, later.shape.width, of.width))
        })
    }

    /// Passes the explanation of an evaluation by regions to the explain sink.
    pub(crate) fn explain_regions(&self, text: &str) {
        log::info!("{text}");
        if let Some(sink) = &self.0.settings.explain {
            sink(&format!("regions:\n{text}\n"));
        }
    }

    /// Removes results that are kept only for their handles from the roots, unless they are small.
    pub(crate) fn without_kept(graph: &mut Graph<Op>, targets: usize, limits: Limits) {
        let small = |n: &NodeId| bytes(graph, *n) <= limits.small();
        graph.roots =
            graph.roots.iter().enumerate().filter(|(i, n)| *i < targets || small(n)).map(|(_, n)| *n).collect();
    }
}
