//! Schedules: how a program that does not fit in memory is computed, decided before anything is read.
//!
//! A schedule is a list of stages. Each stage computes reductions, or images that the program keeps, region by region
//! into memory, or sweeps over images region by region. The rest of the program is computed as a whole or region by
//! region. Forecasts, errors and the evaluation (`session/engine/stages.rs`) use the same schedule. The design is in
//! `docs/design/regions.md`.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{MemoryBound, Result};
use crate::host::buffer::block_bytes;
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ops::Whole;
use crate::ops::reduce::Divisible;
use crate::region::{Division, Rect, slab};
use crate::session::compile::memory::{AGAIN, AGAIN_OR_EVICT, MemoryLimits, bytes, counted, undecodable_bytes};
use crate::session::devices::Engine;
use crate::session::images::on_demand::{OnDemandImage, STRIPS, unread};
use crate::session::images::swept::{SweptImage, is_swept};
use crate::session::{Session, SessionState};
use crate::shape::Shape;

/// Minimum bytes of a slab of the first result. Smaller slabs cost more to plan and launch than to compute: an
/// estimate.
const SLAB: usize = 4 << 20;
/// The minimum is at most one part in this many of the memory: a guess.
const SLAB_PART: usize = 32;

/// Maximum ratio of decoded pixels to those of the image. A source that would be decoded more often is decoded once, to
/// a temporary file, which takes about as long as decoding it twice. A guess.
const DECODED_AGAIN: f64 = 2.0;

/// Sizes of the parts in which a consumer can take pixels.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Grain {
    /// Rows and columns.
    pub(crate) chunk: (usize, usize),
    pub(crate) levels: usize,
}

impl Grain {
    /// Any rows and columns, one level at a time.
    pub(crate) const ANY: Grain = Grain { chunk: (1, 1), levels: 1 };
    /// Any rows and columns, of all levels at once.
    pub(crate) const DEEP: Grain = Grain { chunk: (1, 1), levels: usize::MAX };

    /// Number of levels that suits all consumers: a common multiple.
    pub(crate) fn levels(all: &[Grain]) -> usize {
        all.iter().fold(1, |n, grain| common_multiple(n, grain.levels))
    }
}

/// Destination of a program's results.
#[derive(Clone, Copy)]
pub(crate) enum ResultDestination<'a> {
    /// Memory.
    Memory,
    /// Consumers that take parts, region by region: one grain for all results, or one for each.
    Regions(&'a [Grain]),
}

impl ResultDestination<'_> {
    fn grain(&self, root: usize) -> Grain {
        match self {
            ResultDestination::Regions(grains) => grains.get(root).or(grains.first()).copied().unwrap_or(Grain::ANY),
            ResultDestination::Memory => Grain::ANY,
        }
    }
}

/// The stages of a program.
pub(crate) struct ProgramSchedule {
    /// Stages that must be complete before the rest, in order.
    pub(crate) stages: Vec<ScheduleStage>,
    /// The rest of the program, which reads the values of the stages.
    pub(crate) rest: Graph<Op>,
    /// How the results of the rest are delivered.
    pub(crate) taken: Option<SlabSchedule>,
    /// Images that exist only for the schedule.
    pub(crate) own: Vec<ValueId>,
}

/// Values that are computed region by region.
pub(crate) struct ScheduleStage {
    /// Program whose roots are divided: the results, or the images that the nodes read.
    pub(crate) graph: Graph<Op>,
    /// Nodes that are computed.
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) kind: StageKind,
    /// Parts of the roots.
    pub(crate) parts: SlabSchedule,
    /// Names of the values.
    pub(crate) values: Vec<ValueId>,
}

/// What a stage does with the roots of its program.
pub(crate) enum StageKind {
    /// The roots are kept in memory.
    Images,
    /// The nodes reduce the roots.
    Reductions,
    /// The node sweeps over the roots, or is the root and kept in a file; the result is an image on demand.
    Sweep(Arc<SweptImage>),
}

/// Images that are delivered slab by slab, and region by region in each slab.
pub(crate) struct SlabSchedule {
    pub(crate) slabs: Vec<Slab>,
    /// Division of each slab.
    pub(crate) division: Division,
    /// Bytes of small results that wait on rank 0 until their chunks are complete.
    pub(crate) waiting: usize,
}

/// Some levels of a program's results, and the program that computes them.
pub(crate) struct Slab {
    pub(crate) levels: Range<usize>,
    pub(crate) graph: Graph<Op>,
}

impl Session {
    /// Ratio of pixels that a division decodes to pixels of the sources.
    pub(crate) fn decodes(
        &self,
        state: &SessionState,
        graph: &Graph<Op>,
        division: &Division,
        limits: MemoryLimits,
    ) -> f64 {
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

    /// Largest [`Session::decodes`] of all stages and of the delivery of results.
    pub(crate) fn decodes_most(&self, state: &SessionState, schedule: &ProgramSchedule, limits: MemoryLimits) -> f64 {
        let stages = schedule.stages.iter().map(|stage| &stage.parts);
        let decodes = |parts: &SlabSchedule| self.decodes(state, &parts.slabs[0].graph, &parts.division, limits);
        stages.chain(&schedule.taken).map(decodes).fold(0.0, f64::max)
    }

    /// [`Session::schedule_of`]; sources that regions would decode too often are decoded once, to temporary files.
    pub(crate) fn schedule(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        (graph, gone): (&Graph<Op>, &[ValueId]),
        sink: ResultDestination<'_>,
        limits: MemoryLimits,
    ) -> Result<Option<ProgramSchedule>> {
        if undecodable_bytes(state, graph) > 0 {
            return Ok(None);
        }
        let found = self.schedule_of(state, engine, (graph, gone), sink, limits)?;
        if found.as_ref().is_some_and(|found| self.decodes_most(state, found, limits) <= DECODED_AGAIN) {
            return Ok(found);
        }
        let threads = self.workers().threads();
        let once: HashMap<ValueId, OnDemandImage> =
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
        if again.is_err() {
            found.into_iter().for_each(|found| state.images.forget(found.own));
            return again;
        }
        Ok(found)
    }

    /// Replaces images on demand, and returns the previous ones.
    pub(crate) fn replace(
        &self,
        state: &mut SessionState,
        by: HashMap<ValueId, OnDemandImage>,
    ) -> HashMap<ValueId, OnDemandImage> {
        by.into_iter().filter_map(|(v, later)| Some((v, state.images.on_demand.insert(v, later)?))).collect()
    }

    /// Schedule of a program over images on demand; `None` if this memory does not suffice. Sources in `gone` are
    /// released after they have been read.
    pub(crate) fn schedule_of(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        (graph, gone): (&Graph<Op>, &[ValueId]),
        sink: ResultDestination<'_>,
        limits: MemoryLimits,
    ) -> Result<Option<ProgramSchedule>> {
        let mut own = Vec::new();
        let found = self.staged(state, engine, (graph, gone), sink, limits, &mut own);
        if !matches!(found, Ok(Some(_))) {
            state.images.forget(own);
            return found.map(|_| None);
        }
        found.map(|found| found.map(|schedule| ProgramSchedule { own, ..schedule }))
    }

    /// [`Session::schedule_of`]; adds to `own` the images that exist only for the schedule, even on failure.
    fn staged(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        (graph, gone): (&Graph<Op>, &[ValueId]),
        sink: ResultDestination<'_>,
        limits: MemoryLimits,
        own: &mut Vec<ValueId>,
    ) -> Result<Option<ProgramSchedule>> {
        let mut rest = graph.clone();
        let mut stages: Vec<ScheduleStage> = Vec::new();
        // The values of earlier stages stay in memory.
        let mut made: HashMap<ValueId, usize> = HashMap::new();
        loop {
            let nodes = next_pass(state, &rest);
            if nodes.is_empty() {
                break;
            }
            if let [node] = nodes[..]
                && is_swept(&rest, node)
            {
                let room = limits.reduced_by(made.values().sum());
                let Some(stage) = self.sweep_of(state, engine, &rest, node, room, own)? else { return Ok(None) };
                rest = without(rest, &nodes, &stage.values, &mut HashMap::new());
                stages.push(stage);
                continue;
            }
            let (bands, grain, divisible) = pass_of(state, &rest, &nodes);
            let room = limits.reduced_by(made.values().sum()).reduced_by(nodes.iter().map(|n| bytes(&rest, *n)).sum());
            let Some(division) = self.division(state, engine, &bands, grain, Some((divisible, &nodes)), room)? else {
                return Ok(None);
            };
            let values = named(state, &nodes);
            rest = without(rest, &nodes, &values, &mut made);
            let parts = SlabSchedule::whole(&bands, division);
            stages.push(ScheduleStage { graph: bands, kind: StageKind::Reductions, parts, values, nodes });
        }
        let ResultDestination::Regions(_) = sink else {
            while unread(state, &rest).next().is_some() {
                let read = |v: &ValueId| rest.nodes.iter().any(|node| node.op == Op::Source(*v));
                let others = made.iter().filter(|(v, _)| !read(v)).map(|(_, bytes)| bytes).sum();
                let need = self.need_of(state, engine, &rest, gone)?;
                if limits.reduced_by(others).fit(need) {
                    break;
                }
                let Some(roots) = by_extent(state, &rest).into_iter().next() else { break };
                let program = Graph { roots: roots.clone(), ..rest.clone() }.without_dead();
                let kept: usize = roots.iter().map(|n| bytes(&rest, *n)).sum();
                let room = limits.reduced_by(made.values().sum()).reduced_by(kept);
                let grain = Session::grain(state, &program);
                let Some(division) = self.division(state, engine, &program, grain, None, room)? else {
                    return Ok(None);
                };
                let values = named(state, &roots);
                rest = without(rest, &roots, &values, &mut made);
                let nodes = program.roots.clone();
                let parts = SlabSchedule::whole(&program, division);
                stages.push(ScheduleStage { graph: program, kind: StageKind::Images, parts, values, nodes });
            }
            return Ok(Some(ProgramSchedule { stages, rest, taken: None, own: Vec::new() }));
        };
        let room = limits.reduced_by(made.values().sum());
        let mut taken = self.taken_by(state, engine, &rest, sink, room, own)?;
        if taken.is_none() {
            // A sink that takes all levels of rows at once gets them from files that were written level by level.
            let is_grey =
                |n: &NodeId| rest.node(*n).shape.area() * rest.node(*n).shape.depth == rest.node(*n).shape.len();
            let is_volume = rest.node(rest.roots[0]).shape.depth > 1 && rest.roots.iter().all(is_grey);
            for i in 0..if is_volume { rest.roots.len() } else { 0 } {
                let root = rest.roots[i];
                let Some(stage) = self.sweep_of(state, engine, &rest, root, room, own)? else { return Ok(None) };
                rest = without(rest, &[root], &stage.values, &mut HashMap::new());
                stages.push(stage);
            }
            taken = if is_volume { self.taken_by(state, engine, &rest, sink, room, own)? } else { None };
        }
        Ok(taken.map(|taken| ProgramSchedule { stages, rest, taken: Some(taken), own: Vec::new() }))
    }

    /// Stage that sweeps over the inputs of a node, or keeps its pixels, in whole rows. Its result is added to the
    /// images on demand, and to `own`.
    fn sweep_of(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        node: NodeId,
        limits: MemoryLimits,
        own: &mut Vec<ValueId>,
    ) -> Result<Option<ScheduleStage>> {
        let Some((image, roots)) = SweptImage::of(graph, node, limits.host) else { return Ok(None) };
        let program = Graph { roots, ..graph.clone() };
        let scratch = image.scratch_bytes();
        if scratch >= limits.host {
            return Ok(None);
        }
        let limits = limits.reduced_by(scratch);
        let grain = [Grain { chunk: (1, graph.node(node).shape.width), levels: 1 }];
        let rows = ResultDestination::Regions(&grain);
        let Some(parts) = self.taken_by(state, engine, &program.clone().without_dead(), rows, limits, own)? else {
            return Ok(None);
        };
        let value = state.names.value();
        let image = Arc::new(image);
        state.images.on_demand.insert(value, image.on_demand());
        own.push(value);
        let kind = StageKind::Sweep(image);
        Ok(Some(ScheduleStage { graph: program, nodes: vec![node], kind, parts, values: vec![value] }))
    }

    /// Delivery of the results of a program without reductions; adds to `own` the images that exist only for it.
    fn taken_by(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        sink: ResultDestination<'_>,
        limits: MemoryLimits,
        own: &mut Vec<ValueId>,
    ) -> Result<Option<SlabSchedule>> {
        let grains: Vec<Grain> = (0..graph.roots.len()).map(|root| sink.grain(root)).collect();
        let slabs = slabs(state, graph, Grain::levels(&grains), limits.host, own);
        let first = &slabs[0].graph;
        let (grain, read) = (grains[0].chunk, Session::grain(state, first));
        // Regions of whole rows are divided in rows only.
        let of = first.node(first.roots[0]).shape;
        let columns = if grain.1 >= of.width { of.width } else { together(grain.1, read.1) };
        let divided = |limits: MemoryLimits| {
            // A slab is one region if possible: slabs are enough parts to overlap reading and delivery with computing.
            if slabs.len() > 1 {
                let whole = self.division(state, engine, first, (of.height, of.width), None, limits)?;
                if whole.is_some() {
                    return Ok(whole);
                }
            }
            self.division(state, engine, first, (together(grain.0, read.0), columns), None, limits)
        };
        // On rank 0, parts of small results wait until their chunks are complete.
        let waits = |(root, grain): (&NodeId, &Grain)| {
            let Node { shape, dtype, .. } = first.node(*root);
            grain.chunk.0.saturating_mul(shape.line() * shape.planes() * dtype.size())
        };
        let waiting: usize = first.roots.iter().zip(&grains).skip(1).map(waits).sum();
        let Some(division) = divided(limits)? else { return Ok(None) };
        if division.count() == 1 || waiting == 0 {
            return Ok(Some(SlabSchedule { slabs, division, waiting: 0 }));
        }
        let division = divided(limits.reduced_by(waiting))?;
        Ok(division.map(|division| SlabSchedule { slabs, division, waiting }))
    }

    /// Schedule within this memory of a program that does not fit. Otherwise an error, before anything is read, that
    /// names a sufficient limit.
    pub(crate) fn scheduled(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        (graph, gone): (&Graph<Op>, &[ValueId]),
        sink: ResultDestination<'_>,
        limits: MemoryLimits,
    ) -> Result<ProgramSchedule> {
        let tried: &[f64] = if engine.unified() { &[AGAIN] } else { &[AGAIN_OR_EVICT, AGAIN] };
        for again in tried {
            let found = self.schedule(state, engine, (graph, gone), sink, MemoryLimits { again: *again, ..limits })?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
        let all = |limits| MemoryLimits { is_forced: true, ..limits };
        if !engine.unified()
            && let Some(found) = self.schedule(state, engine, (graph, gone), sink, all(limits))?
        {
            return Ok(found);
        }
        let whole = self.need_of(state, engine, graph, gone)?.peak;
        let least = undecodable_bytes(state, graph);
        let whole = whole.max(least);
        let most = if whole > limits.host || least > 0 { whole } else { usize::MAX / 2 };
        let mut host = limits.host.max(1 << 20);
        while host < most {
            host = (host + host / 4).min(most);
            // The limit that the error names is the limit that is tried.
            let named = MemoryLimits { host: MemoryBound::sufficient_limit(host, limits.beside), ..limits }
                .reduced_by(limits.beside);
            if self.divides(state, engine, graph, sink, named)? {
                break;
            }
        }
        Err(self.out_of_memory_error(graph, host, limits, None))
    }

    /// Returns `true` if a program has a schedule within this memory.
    pub(crate) fn divides(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        sink: ResultDestination<'_>,
        limits: MemoryLimits,
    ) -> Result<bool> {
        let least = undecodable_bytes(state, graph);
        if least > limits.host {
            return Ok(false);
        }
        // Sources that were not decoded for lack of memory will be in memory.
        let read: HashMap<ValueId, OnDemandImage> = unread(state, graph)
            .map(|(v, later)| (v, if later.missing_bytes > 0 { later.read_before() } else { later.clone() }))
            .collect();
        let lent = |(v, later): (ValueId, &OnDemandImage)| {
            let bytes = later.shape.len().saturating_mul(later.dtype.size());
            if later.missing_bytes > 0 && !state.images.in_memory.contains_key(&v) { block_bytes(bytes) } else { 0 }
        };
        let limits = limits.reduced_by(unread(state, graph).map(lent).sum());
        let before = self.replace(state, read);
        let found = self.schedule(state, engine, (graph, &[]), sink, limits);
        self.replace(state, before);
        let found = found?;
        let is_found = found.is_some();
        found.into_iter().for_each(|schedule| state.images.forget(schedule.own));
        Ok(is_found)
    }

    /// Returns an error for a program that neither fits nor has a schedule within this memory.
    pub(crate) fn check_schedule(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        sink: ResultDestination<'_>,
        limits: MemoryLimits,
    ) -> Result<()> {
        let ProgramSchedule { own, .. } = self.scheduled(state, engine, (graph, &[]), sink, limits)?;
        state.images.forget(own);
        Ok(())
    }
}

/// New names for the values of nodes.
fn named(state: &SessionState, nodes: &[NodeId]) -> Vec<ValueId> {
    nodes.iter().map(|_| state.names.value()).collect()
}

/// Program that reads values instead of computing nodes; adds the bytes of each to `made`.
fn without(
    mut graph: Graph<Op>,
    nodes: &[NodeId],
    values: &[ValueId],
    made: &mut HashMap<ValueId, usize>,
) -> Graph<Op> {
    for (n, value) in nodes.iter().zip(values) {
        made.insert(*value, bytes(&graph, *n));
        let node = &mut graph.nodes[n.0];
        (node.op, node.inputs) = (Op::Source(*value), Vec::new());
    }
    graph.without_dead()
}

/// Rows or columns of regions that are whole chunks of both source and sink, unless these are too many.
fn together(put: usize, read: usize) -> usize {
    const MOST: usize = 4096;
    let both = common_multiple(put, read);
    if both <= MOST { both } else { put.max(1) }
}

/// The least common multiple; saturates.
fn common_multiple(a: usize, b: usize) -> usize {
    let (n, other) = (a.max(1), b.max(1));
    let (mut a, mut b) = (n, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (n / a).saturating_mul(other)
}

/// Number of levels of a slab in this much memory, if results are delivered `levels` at a time; `None` if all levels
/// are computed together.
pub(crate) fn thickness(state: &SessionState, graph: &Graph<Op>, levels: usize, memory: usize) -> Option<usize> {
    let Shape { depth, .. } = graph.node(graph.roots[0]).shape;
    if unread(state, graph).any(|(_, later)| later.shape.depth != depth) {
        return None;
    }
    let at_once = unread(state, graph).fold(levels, |n, (_, later)| common_multiple(n, later.levels));
    let least =
        SLAB.min(memory / SLAB_PART).div_ceil(bytes(graph, graph.roots[0]).div_ceil(depth.max(1)).max(1)).max(1);
    let thick = least.checked_next_multiple_of(at_once).filter(|thick| *thick < depth)?;
    slab(graph, 0..thick, &mut Some).map(|_| thick)
}

/// The program in slabs, or as a whole; adds to `own` the images that exist only for the slabs.
fn slabs(
    state: &mut SessionState,
    graph: &Graph<Op>,
    levels: usize,
    memory: usize,
    own: &mut Vec<ValueId>,
) -> Vec<Slab> {
    let depth = graph.node(graph.roots[0]).shape.depth;
    let whole = || vec![Slab { levels: 0..depth, graph: graph.clone() }];
    let Some(thick) = thickness(state, graph, levels, memory) else { return whole() };
    let one = |start: usize| {
        let levels = start..(start + thick).min(depth);
        let mut named = HashMap::new();
        let mut name = |value: ValueId| {
            let later = state.images.on_demand.get(&value).filter(|_| !state.images.in_memory.contains_key(&value))?;
            let from = later.part.start;
            let part = from + levels.start..from + levels.end;
            let later = OnDemandImage { shape: Shape { depth: part.len(), ..later.shape }, part, ..later.clone() };
            Some(*named.entry(value).or_insert_with(|| {
                let name = state.names.value();
                state.images.on_demand.insert(name, later);
                own.push(name);
                name
            }))
        };
        let graph = slab(graph, levels.clone(), &mut name)?;
        Some(Slab { levels, graph })
    };
    (0..depth).step_by(thick).map(one).collect::<Option<_>>().unwrap_or_else(whole)
}

fn same_rows(a: Shape, b: Shape) -> bool {
    (a.height, a.width) == (b.height, b.width)
}

/// Reductions of the next stage, over images with equal rows and columns, or one operation that sweeps; empty if none
/// is left.
fn next_pass(state: &SessionState, graph: &Graph<Op>) -> Vec<NodeId> {
    let mut group = first_staged(state, graph);
    if let Some(first) = group.iter().find(|n| is_swept(graph, **n)) {
        return vec![*first];
    }
    let of = |n: &NodeId| graph.node(graph.node(*n).inputs[0]).shape;
    let extent = group.first().map(of);
    group.retain(|n| extent.is_some_and(|extent| same_rows(of(n), extent)));
    group
}

/// Program of a stage of reductions, the rows and columns by which it is divided, and where its columns may be divided.
fn pass_of(state: &SessionState, graph: &Graph<Op>, group: &[NodeId]) -> (Graph<Op>, (usize, usize), Divisible) {
    let bands = Graph { roots: banded(graph, group), nodes: graph.nodes.clone(), ..Graph::default() };
    let (rows, columns) = Session::grain(state, &bands);
    let divisible = group.iter().map(|n| divisible(&graph.node(*n).op)).max().unwrap_or(Divisible::Nowhere);
    // Powers of two.
    let block =
        group.iter().map(|n| if let Op::Whole(Whole::Labels(how)) = graph.node(*n).op { how.block() } else { None });
    (bands, (rows.next_multiple_of(block.flatten().max().unwrap_or(1)), columns), divisible)
}

/// Roots of a program that are computed from unread images, grouped by their rows and columns.
fn by_extent(state: &SessionState, graph: &Graph<Op>) -> Vec<Vec<NodeId>> {
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    for root in &graph.roots {
        let program = Graph { roots: vec![*root], ..graph.clone() }.without_dead();
        if unread(state, &program).next().is_none() || groups.iter().flatten().any(|known| known == root) {
            continue;
        }
        let shape = graph.node(*root).shape;
        match groups.iter_mut().find(|group| same_rows(graph.node(group[0]).shape, shape)) {
            Some(group) => group.push(*root),
            None => groups.push(vec![*root]),
        }
    }
    groups
}

/// Inputs of a stage of reductions that are divided in rows, including the second image of labels.
fn banded(graph: &Graph<Op>, group: &[NodeId]) -> Vec<NodeId> {
    let mut banded: Vec<NodeId> = Vec::new();
    for n in group {
        let node = graph.node(*n);
        let both = if matches!(node.op, Op::Whole(Whole::Labels(_))) { 2 } else { 1 };
        for input in node.inputs.iter().take(both) {
            if !banded.contains(input) {
                banded.push(*input);
            }
        }
    }
    banded
}

/// Operations on unread images that need a stage of their own, and do not depend on others of the kind.
fn first_staged(state: &SessionState, graph: &Graph<Op>) -> Vec<NodeId> {
    let mut reads = vec![false; graph.nodes.len()];
    let mut after = vec![false; graph.nodes.len()];
    let mut found = Vec::new();
    for (id, node) in graph.iter() {
        reads[id.0] = match node.op {
            Op::Source(v) => state.images.on_demand.contains_key(&v),
            _ => node.inputs.iter().any(|i| reads[i.0]),
        };
        after[id.0] = node.inputs.iter().any(|i| after[i.0]);
        if (reduces(&node.op) || is_swept(graph, id)) && reads[id.0] && !after[id.0] {
            found.push(id);
            after[id.0] = true;
        }
    }
    found
}

/// Returns `true` for a reduction that needs a stage of its own if its image does not fit in memory.
pub(crate) fn reduces(op: &Op) -> bool {
    matches!(op, Op::Whole(Whole::RowReduce(_) | Whole::Histogram(_) | Whole::Labels(_)))
}

/// Where columns may be divided for a reduction.
fn divisible(op: &Op) -> Divisible {
    match op {
        Op::Whole(Whole::RowReduce(how)) => how.divisible(),
        Op::Whole(Whole::Histogram(_)) => Divisible::Anywhere,
        Op::Whole(Whole::Labels(how)) if how.adds_up() => Divisible::Anywhere,
        _ => Divisible::Nowhere,
    }
}

impl std::fmt::Display for SlabSchedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.slabs.len() {
            1 => self.division.fmt(f),
            n => write!(f, "{n} slabs of {} levels, each in {}", self.slabs[0].levels.len(), self.division),
        }
    }
}

impl SlabSchedule {
    /// All levels of a program at once, in this division.
    fn whole(graph: &Graph<Op>, division: Division) -> SlabSchedule {
        let levels = 0..graph.node(graph.roots[0]).shape.depth;
        SlabSchedule { slabs: vec![Slab { levels, graph: graph.clone() }], division, waiting: 0 }
    }

    /// Returns `true` if the parts, which have whole rows, follow each other in raster order.
    pub(crate) fn is_in_order(&self) -> bool {
        self.division.count() == 1 || self.slabs.iter().all(|slab| slab.levels.len() == 1)
    }

    /// Number of parts.
    pub(crate) fn count(&self) -> usize {
        self.slabs.len() * self.division.count()
    }

    /// A part: its slab, and its region of the first result.
    pub(crate) fn part(&self, i: usize) -> (&Slab, Rect) {
        let regions = self.division.count();
        (&self.slabs[i / regions], self.division.region(i % regions))
    }
}
