//! Memory use of a program, and available memory.

use std::collections::HashSet;

use crate::error::{DeviceError, Error, MemoryBound, RecordedCall, Result};
use crate::host::buffer::{HostBuffer, block_bytes};
use crate::ir::graph::{Graph, NodeId, Op, ValueId};
use crate::machine::here;
use crate::region::{CropRule, Rect, RegionSupply, restrict};
use crate::session::devices::{Engine, agreed_capacity};
use crate::session::images::on_demand::{OnDemandImage, unread};
use crate::session::{Session, SessionState};
use crate::shape::{Shape, Window};

/// Maximum number of regions read ahead.
pub(crate) const AHEAD: usize = 2;
/// Maximum number of results that wait for delivery or are being delivered.
pub(crate) const BEHIND: usize = 2;
/// Maximum ratio of work by regions to work as a whole. Regions that overlap more would take hours.
pub(crate) const AGAIN: f64 = 32.0;
/// The same ratio if a plan could evict images from a device instead. It is a guess of when recomputing takes as long
/// as copying.
pub(crate) const AGAIN_OR_EVICT: f64 = 2.0;
/// Maximum fraction of the memory for an intermediate result that stays in memory, and for an image in memory that is
/// not read by regions.
const SMALL: usize = 256;

/// Memory use of a program in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProgramMemory {
    /// Sources.
    pub(crate) read: usize,
    /// Sources that have not been read yet.
    pub(crate) later: usize,
    /// Peak of sources, intermediates and results.
    pub(crate) peak: usize,
    /// Results.
    pub(crate) results: usize,
    /// Call of the operation that needs most memory.
    pub(crate) at: Option<RecordedCall>,
}

/// Available memory, on the smallest of all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryLimits {
    pub(crate) host: usize,
    pub(crate) device: Option<usize>,
    pub(crate) unified: bool,
    /// Bytes of the host in use for other purposes.
    pub(crate) beside: usize,
    /// The host's memory limit.
    pub(crate) bound: MemoryBound,
    /// Maximum ratio of work by regions to work as a whole.
    pub(crate) again: f64,
    /// `true` to use the smallest regions if none fit: a plan may evict images from the device.
    pub(crate) is_forced: bool,
}

impl std::fmt::Display for MemoryLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} MB of the host", self.host as f64 / 1e6)?;
        self.device.map_or(Ok(()), |device| write!(f, " and {:.1} MB of the device", device as f64 / 1e6))
    }
}

impl MemoryLimits {
    /// Returns `true` if a program fits when evaluated at once.
    pub(crate) fn fit(&self, need: ProgramMemory) -> bool {
        let host = if self.unified { need.peak } else { need.read + need.results };
        host <= self.host && self.device.is_none_or(|most| need.peak <= most)
    }

    /// Available memory without this many bytes of the host.
    pub(crate) fn reduced_by(self, bytes: usize) -> MemoryLimits {
        MemoryLimits { host: self.host.saturating_sub(bytes), ..self }
    }

    /// Maximum bytes of an image that may be in memory as a whole, whatever the program uses.
    pub(crate) fn small(&self) -> usize {
        self.device.map_or(self.host, |device| device.min(self.host)) / SMALL
    }

    /// Returns `true` if regions fit into a fraction of the memory one after the other, while others are read and
    /// delivered.
    pub(crate) fn hold_regions(&self, need: ProgramMemory, part: f64) -> bool {
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

/// Counts the regions that a program reads of unread images.
struct RegionReadCounter<'a> {
    state: &'a SessionState,
    /// Bytes of the regions, and (`decoded`) of the chunks that contain them.
    read: usize,
    decoded: usize,
}

impl RegionSupply for RegionReadCounter<'_> {
    fn source(&mut self, value: ValueId, region: Rect) -> Option<ValueId> {
        let OnDemandImage { shape, dtype, chunk, .. } = self.state.images.on_demand.get(&value)?;
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

/// Regions of all roots of a program that correspond to a region of the first root: the same fraction of each root's
/// rows and columns. Regions that make up the first root also make up the others. Regions of small roots may be empty;
/// no root is larger than the first.
pub(crate) fn shares(graph: &Graph<Op>, region: Rect) -> Vec<Rect> {
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

/// Results that have pixels in a region of the first result, with their regions.
pub(crate) fn present(graph: &Graph<Op>, region: Rect) -> Vec<(usize, Rect)> {
    shares(graph, region).into_iter().enumerate().filter(|(_, share)| !share.is_empty()).collect()
}

/// Memory use of regions of a program without fusion.
pub(crate) struct RegionMemory {
    pub(crate) read: usize,
    pub(crate) decoded: usize,
    pub(crate) computed: usize,
    pub(crate) results: usize,
}

pub(crate) fn counted(state: &SessionState, graph: &Graph<Op>, region: Rect) -> RegionMemory {
    let mut counting = RegionReadCounter { state, read: 0, decoded: 0 };
    let part = restrict(graph, &shares(graph, region), CropRule::Always, &mut counting).graph;
    let computed = part.iter().filter(|(_, n)| !matches!(n.op, Op::Source(_))).map(|(id, _)| bytes(&part, id));
    let results = part.roots.iter().map(|r| bytes(&part, *r)).sum();
    RegionMemory { read: counting.read, decoded: counting.decoded, computed: computed.sum(), results }
}

/// Upper bound of the bytes of a program: two images of the widest type for each operation. A program within the bound
/// need not be optimised to decide whether it fits.
pub(crate) fn generous(graph: &Graph<Op>) -> usize {
    const MOST: usize = 2 * size_of::<f64>();
    let all = (0..graph.nodes.len()).map(|n| bytes(graph, NodeId(n)).saturating_mul(MOST));
    all.fold(0, usize::saturating_add)
}

/// Bytes for decoding the sources of a program that could not be decoded for lack of memory when they were opened.
pub(crate) fn undecodable_bytes(state: &SessionState, graph: &Graph<Op>) -> usize {
    unread(state, graph).map(|(_, later)| later.missing_bytes).max().unwrap_or(0)
}

/// Releases images that can be read again and that a program does not read.
pub(crate) fn release_rereadable(state: &mut SessionState, graph: &Graph<Op>) {
    state.images.release(|v| graph.nodes.iter().any(|n| n.op == Op::Source(*v)));
}

impl Session {
    /// Memory available to a program: the limit, which is by default most of the memory that is free on this host now,
    /// divided by the ranks on the host. Sources of the program in memory, and images that can be read again, count as
    /// free.
    pub(crate) fn limits(&self, state: &SessionState, engine: &Engine, graph: &Graph<Op>) -> Result<MemoryLimits> {
        let pool = &self.0.pool;
        let (bound, used) = pool.bounds();
        let sources = graph.nodes.iter().filter_map(|n| if let Op::Source(v) = n.op { Some(v) } else { None });
        let sources: HashSet<ValueId> = sources.collect();
        let room = |v: &ValueId| sources.contains(v) || state.images.on_demand.contains_key(v);
        let there = state.images.in_memory.iter().filter(|(v, _)| room(v)).filter_map(|(_, image)| image.host());
        let there = there.map(HostBuffer::counted).sum::<usize>();
        let beside = used.saturating_sub(there);
        let allowed = pool.most().saturating_sub(beside);
        let free = || {
            Some((here::available_memory()? + pool.cached_bytes()) / self.0.comm.local_size().max(1) / 10 * 8 + there)
        };
        let by_default = matches!(bound, MemoryBound::Host { by_default: true, .. });
        let mine = if by_default { free().map_or(allowed, |free| free.min(allowed)) } else { allowed };
        let mine = Some(mine).filter(|_| pool.most() != usize::MAX);
        let host = agreed_capacity(&*self.0.comm, mine)?.unwrap_or(usize::MAX);
        Ok(MemoryLimits {
            host,
            device: engine.capacity(),
            unified: engine.unified(),
            beside,
            bound,
            again: AGAIN,
            is_forced: false,
        })
    }

    /// Memory use of a program after optimisation. The sources in `gone` are released after their last reader.
    pub(crate) fn need(&self, engine: &Engine, graph: Graph<Op>, gone: &[ValueId]) -> Result<ProgramMemory> {
        let setting = self.setting(engine, self.0.partition.clone());
        let kernels = self.kernels(graph, &setting, (true, true), &mut |_, _| ())?;
        let is_source = |n: NodeId| kernels.node(n).op.source_value().is_some();
        // One launch computes all joined nodes.
        let mut first: Vec<usize> = (0..kernels.nodes.len()).collect();
        for joined in &kernels.joined {
            let begin = joined.nodes.iter().map(|n| n.0).min().unwrap_or_default();
            joined.nodes.iter().for_each(|n| first[n.0] = begin);
        }
        let mut last: Vec<usize> = (0..kernels.nodes.len()).collect();
        // In the host's memory sources exist from the beginning to the end. On a device with its own memory they exist
        // from their first reader to their last.
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
        Ok(ProgramMemory { read, later: 0, peak: most.map_or(0, |(peak, _)| peak), results, at: site })
    }

    /// Error of a program that needs `bytes` bytes.
    pub(crate) fn out_of_memory_error(
        &self,
        graph: &Graph<Op>,
        bytes: usize,
        limits: MemoryLimits,
        at: Option<RecordedCall>,
    ) -> Error {
        let root = graph.node(graph.roots[0]);
        let at = at.map(|at| at.to_string());
        let node = graph.nodes.iter().find(|n| Some(n.site.to_string()) == at && !matches!(n.op, Op::Source(_)));
        let found = node.unwrap_or(root);
        // For a program in another language the error names its line. The request itself has none.
        let told = || graph.nodes.iter().rfind(|n| n.site.line.is_some() && !matches!(n.op, Op::Source(_)));
        let node = if found.site.line.is_none() { told().unwrap_or(found) } else { found };
        let op = format!("{} (recorded at {})", node.op.name(), node.site);
        let source = DeviceError::OutOfMemory { bytes, used: limits.beside, bound: limits.bound };
        Error::Device { op, device: "the host".into(), source }
    }

    /// Memory use of a program that reads only the parts of unread images that it needs.
    pub(crate) fn need_of(
        &self,
        state: &SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        gone: &[ValueId],
    ) -> Result<ProgramMemory> {
        let whole: Vec<Rect> = graph.roots.iter().map(|r| Rect::whole(graph.node(*r).shape)).collect();
        let mut counting = RegionReadCounter { state, read: 0, decoded: 0 };
        let part = restrict(graph, &whole, CropRule::Always, &mut counting).graph;
        let later = counting.read;
        Ok(ProgramMemory { later, ..self.need(engine, part, gone)? })
    }

    /// Memory up to the limit, even if less is free.
    pub(crate) fn allowed(&self, limits: MemoryLimits) -> MemoryLimits {
        MemoryLimits { host: self.0.pool.most().saturating_sub(limits.beside), ..limits }
    }
}
