//! Programs that do not fit in memory: what they take, and how they are divided into regions.

use super::engine::{Engine, agreed_capacity};
use super::evaluate::Unevaluated;
use super::later::{Later, unread};
use super::{Mutable, Session};
use crate::error::Result;
use crate::host::Piece;
use crate::ir::graph::{Graph, NodeId, Op, ValueId};
use crate::machine::here;
use crate::ops::reduce::{Divisible, SEGMENT};
use crate::optimize::optimize_for;
use crate::plan::Mode;
use crate::region::{Cut, Division, InPlace, Rect, Supply, restrict};
use crate::shape::{Shape, Window};

/// Regions that are read ahead.
pub(super) const AHEAD: usize = 2;
/// Results that wait to be taken, or are being.
pub(super) const BEHIND: usize = 2;
/// Of the memory that there is, the part that images may take: the other one is for decoders, encoders and what is kept for reuse.
const PART: usize = 2;
/// A result that is kept along the way may take this part of the memory.
const SMALL: usize = 256;

/// Bytes that a program takes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Need {
    /// Of what it reads.
    read: usize,
    /// Of that, what has not been read yet.
    pub(super) later: usize,
    /// Of what it reads, computes and leaves, at most at a time.
    pub(super) peak: usize,
    /// Of its results.
    pub(super) results: usize,
}

/// Memory that there is, on the smallest of all ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) host: usize,
    pub(super) device: Option<usize>,
    unified: bool,
}

impl Limits {
    /// Whether a program fits that is evaluated at once.
    pub(super) fn hold(&self, need: Need) -> bool {
        let host = if self.unified { need.peak } else { need.read + need.results };
        host <= self.host && self.device.is_none_or(|most| need.peak <= most)
    }

    /// Whether one region after the other fits, while others are read and taken.
    fn hold_regions(&self, need: Need) -> bool {
        let waiting = need.read.saturating_mul(AHEAD).saturating_add(need.results.saturating_mul(BEHIND));
        let host = if self.unified { need.peak } else { need.read + need.results };
        host.saturating_add(waiting) <= self.host / PART && self.device.is_none_or(|most| need.peak <= most)
    }
}

pub(super) fn bytes<O>(graph: &Graph<O>, n: NodeId) -> usize {
    let node = graph.node(n);
    node.shape.len().saturating_mul(node.dtype.size())
}

/// A region of an image of shape `of`, whose elements have so many bytes, to memory of its size: plane by plane, rows without gaps.
pub(super) fn pieces(of: Shape, region: Rect, element: usize) -> Vec<Piece> {
    let [top, left] = region.corner().map(isize::unsigned_abs);
    let (row, rows) = (region.columns.len() * element, region.rows.len());
    let piece = |plane: usize| Piece {
        from: ((plane * of.height + top) * of.width + left) * element,
        to: plane * rows * row,
        bytes: row,
        rows,
        from_stride: of.width * element,
        to_stride: row,
    };
    (0..of.planes()).map(piece).collect()
}

/// Names nothing, and notes what regions read of images that have not been read.
struct Counting<'a> {
    state: &'a Mutable,
    /// Bytes of the regions, and of the chunks that they lie in.
    read: usize,
    decoded: usize,
}

impl Supply for Counting<'_> {
    fn source(&mut self, value: ValueId, region: Rect) -> Option<ValueId> {
        let Later { shape, dtype, chunk, .. } = self.state.later.get(&value)?;
        let planes = shape.planes() * dtype.size();
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

/// What regions of a program take, by recorded operations: unfused.
pub(super) struct Counted {
    pub(super) read: usize,
    decoded: usize,
    computed: usize,
    results: usize,
}

pub(super) fn counted(state: &Mutable, graph: &Graph<Op>, region: Rect) -> Counted {
    let roots = vec![region; graph.roots.len()];
    let mut counting = Counting { state, read: 0, decoded: 0 };
    let part = restrict(graph, &roots, Cut::Always, &mut counting).graph;
    let computed = part.iter().filter(|(_, n)| !matches!(n.op, Op::Source(_))).map(|(id, _)| bytes(&part, id));
    let results = part.roots.iter().map(|r| bytes(&part, *r)).sum();
    Counted { read: counting.read, decoded: counting.decoded, computed: computed.sum(), results }
}

impl Session {
    /// The memory that there is for a program: what a setting allows; else most of what is free on this host, divided by the ranks on
    /// it, and what the program reads and has there already.
    pub(super) fn limits(&self, state: &Mutable, engine: &Engine, graph: &Graph<Op>) -> Result<Limits> {
        let set = Some(self.0.host_memory).filter(|bytes| *bytes != usize::MAX);
        let free = || {
            let sources = graph.nodes.iter().filter_map(|n| if let Op::Source(v) = n.op { Some(v) } else { None });
            let there = sources.filter_map(|v| Some(state.images.get(&v)?.host()?.bytes().len())).sum::<usize>();
            let free = (here::available_memory()? + self.0.pool.kept()) / self.0.comm.local_size().max(1);
            Some(free / 10 * 8 + there)
        };
        let mine = set.or_else(free);
        let host = agreed_capacity(&*self.0.comm, mine)?.unwrap_or(usize::MAX);
        Ok(Limits { host, device: engine.capacity, unified: engine.unified() })
    }

    /// What a program takes once it is optimised.
    fn need(&self, engine: &Engine, graph: Graph<Op>) -> Result<Need> {
        let setting = self.setting(engine, self.0.partition.clone());
        let fuse = self.0.mode == Mode::Fused;
        let kernels = optimize_for(graph, fuse, &self.aim(&setting), &mut |_, _| ())?;
        let mut last: Vec<usize> = (0..kernels.nodes.len()).collect();
        for (id, node) in kernels.iter() {
            node.inputs.iter().for_each(|i| last[i.0] = last[i.0].max(id.0));
        }
        kernels.roots.iter().for_each(|r| last[r.0] = usize::MAX);
        let is_source = |n: NodeId| super::evaluate::source_of(&kernels.node(n).op).is_some();
        let sum =
            |all: &mut dyn Iterator<Item = NodeId>| all.map(|n| bytes(&kernels, n)).fold(0, usize::saturating_add);
        let all = || (0..kernels.nodes.len()).map(NodeId);
        let read = sum(&mut all().filter(|n| is_source(*n)));
        let results = sum(&mut kernels.roots.iter().copied());
        // Sources are there from the beginning.
        let there = |n: NodeId, now: usize| (n.0 <= now || is_source(n)) && last[n.0] >= now;
        let peak = (0..kernels.nodes.len()).map(|now| sum(&mut all().filter(|n| there(*n, now)))).max().unwrap_or(0);
        Ok(Need { read, later: 0, peak, results })
    }

    /// The memory that there is, if a program that reads what has not been read needs more.
    pub(super) fn exceeds(
        &self,
        state: &Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
    ) -> Result<Option<Limits>, Unevaluated> {
        if unread(state, graph).next().is_none() {
            return Ok(None);
        }
        let limits = self.limits(state, engine, graph).map_err(Unevaluated::Foreseen)?;
        // Generous: two images of the widest type for each operation. What fits all the same need not be optimised to know.
        const MOST: usize = 2 * size_of::<f64>();
        let all = (0..graph.nodes.len()).map(|n| bytes(graph, NodeId(n)).saturating_mul(MOST));
        let all = all.fold(0, usize::saturating_add);
        if limits.hold(Need { read: all, peak: all, ..Need::default() }) {
            return Ok(None);
        }
        let need = self.need_of(state, engine, graph).map_err(Unevaluated::Foreseen)?;
        Ok((!limits.hold(need)).then_some(limits))
    }

    /// What a program takes that reads of images which have not been read no more than it needs.
    pub(super) fn need_of(&self, state: &Mutable, engine: &Engine, graph: &Graph<Op>) -> Result<Need> {
        let whole: Vec<Rect> = graph.roots.iter().map(|r| Rect::whole(graph.node(*r).shape)).collect();
        let mut counting = Counting { state, read: 0, decoded: 0 };
        let part = restrict(graph, &whole, Cut::Always, &mut counting).graph;
        let later = counting.read;
        Ok(Need { later, ..self.need(engine, part)? })
    }

    /// How the roots of a program, which have one extent, are divided into regions of whole chunks of `grain`. Roots that are
    /// `reduced` next, and how they may be divided then, leave little to be taken.
    pub(super) fn divided(
        &self,
        state: &Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        grain: (usize, usize),
        reduced: Option<Divisible>,
    ) -> Result<Division, Unevaluated> {
        let limits = self.limits(state, engine, graph).map_err(Unevaluated::Foreseen)?;
        let of = graph.node(graph.roots[0]).shape;
        let all = counted(state, graph, Rect::whole(of));
        let whole = restrict(graph, &vec![Rect::whole(of); graph.roots.len()], Cut::Always, &mut InPlace).graph;
        let need = self.need(engine, whole).map_err(Unevaluated::Foreseen)?;
        // Fusion stores less than what is recorded, of a region as of the whole.
        let stored = need.peak as f64 / (all.read + all.computed).max(1) as f64;
        let mut cost = |region: Rect| {
            let Counted { read, decoded, computed, results } = counted(state, graph, region);
            let peak = (stored * (read + computed) as f64) as usize;
            let results = if reduced.is_some() { 0 } else { results };
            let fits = limits.hold_regions(Need { read, later: read, peak, results });
            fits.then_some(computed as f64 + 2.0 * decoded as f64)
        };
        let (segment, whole) = (SEGMENT.min(of.width), of.width);
        Ok(match reduced {
            None | Some(Divisible::Anywhere) => Division::cheapest(of, grain, &mut cost),
            Some(Divisible::AtSegments) => Division::of_widths(of, grain.0, &[whole, segment], &mut cost),
            Some(Divisible::Nowhere) => Division::of_widths(of, grain.0, &[whole], &mut cost),
        })
    }

    /// Rows and columns that are read at once of what a program reads: of the largest image.
    pub(super) fn grain(state: &Mutable, graph: &Graph<Op>) -> (usize, usize) {
        let largest = unread(state, graph).max_by_key(|(v, later)| (later.shape.len(), v.0));
        let of = graph.node(graph.roots[0]).shape;
        largest.map_or((1, 1), |(_, later)| {
            // A picture that is decoded as a whole is not divided along its chunks, nor is a result of another extent.
            let part = |chunk: usize, n: usize, of: usize| if n == of && chunk * 4 <= n { chunk } else { 1 };
            let rows = part(later.chunk.0, later.shape.height, of.height);
            let columns = if later.chunk.1 < later.shape.width { later.chunk.1 } else { 1 };
            (rows, part(columns, later.shape.width, of.width))
        })
    }

    /// Tells those who want to know how a program is evaluated by regions.
    pub(super) fn explain_regions(&self, text: &str) {
        log::info!("{text}");
        if let Some(sink) = &self.0.explain {
            sink(&format!("regions:\n{text}\n"));
        }
    }

    /// Leaves out of the results what is kept along the way for whoever holds it, unless it is small.
    pub(super) fn without_kept(graph: &mut Graph<Op>, targets: usize, limits: Limits) {
        let most = limits.device.map_or(limits.host, |device| device.min(limits.host)) / SMALL;
        let small = |n: &NodeId| bytes(graph, *n) <= most;
        graph.roots =
            graph.roots.iter().enumerate().filter(|(i, n)| *i < targets || small(n)).map(|(_, n)| *n).collect();
    }
}
