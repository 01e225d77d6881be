//! Decides whether a program fits in memory, on the host and on a device.

use std::collections::{HashMap, HashSet};

use crate::error::{Call, Error, Result};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ops::Whole;
use crate::session::cache;
use crate::session::compile::memory::{
    AGAIN, AGAIN_OR_EVICT, MemoryLimits, ProgramMemory, bytes, generous, release_rereadable, undecodable_bytes,
};
use crate::session::compile::schedule::ResultDestination;
use crate::session::devices::Engine;
use crate::session::images::on_demand::{OnDemandImage, unread};
use crate::session::{Session, SessionState};

/// A node whose result in memory is too large for its operation.
fn oversized(node: &Node<Op>) -> Option<(&Node<Op>, &Whole)> {
    let Op::Whole(operation) = &node.op else { return None };
    (node.shape.len() > operation.most_pixels()).then_some((node, operation))
}

impl Session {
    /// Returns the available memory if a program does not fit and may be computed by regions: it has unread sources, or
    /// large sources in the memory of a single rank. Any other program that exceeds the host's memory is an error. One
    /// that exceeds a device is left to the plan, which may evict images.
    pub(crate) fn limits_if_exceeded(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        gone: &[ValueId],
        sink: ResultDestination<'_>,
    ) -> Result<Option<MemoryLimits>> {
        let (all, room) = (generous(graph), self.0.pool.most().saturating_sub(self.0.pool.bounds().1));
        if let Some((node, operation)) = graph.nodes.iter().find_map(oversized) {
            let limits = self.limits(state, engine, graph)?;
            let divides = unread(state, graph).next().is_some()
                || (self.ranks() == 1 && state.images.replaceable_sources(graph, limits.small()).next().is_some());
            let call = Call { op: operation.kind(), site: node.site.site };
            let (shape, most) = (node.shape, operation.most_pixels());
            let message = format!("an image of {shape}; one that is not read from a file has at most {most} pixels");
            return divides.then_some(Some(limits)).ok_or_else(|| Error::parameter(call, message));
        }
        if unread(state, graph).next().is_none() {
            // Only a plan determines the memory use of several ranks.
            if self.ranks() > 1 || engine.unified() && engine.device_count() > 1 {
                return Ok(None);
            }
            if !engine.unified() {
                return self.exceeds_device(state, engine, graph, sink);
            }
            let excess = self.memory_if_exceeded(state, engine, graph, gone)?;
            let Some((need, limits)) = excess else {
                if all > room {
                    release_rereadable(state, graph);
                }
                return Ok(None);
            };
            let divides = state.images.replaceable_sources(graph, limits.small()).next().is_some();
            let lack = || self.out_of_memory_error(graph, need.peak, limits, need.at);
            return divides.then_some(Some(limits)).ok_or_else(lack);
        }
        let limits = self.limits(state, engine, graph)?;
        if all > room {
            release_rereadable(state, graph);
        }
        // It will be refused, with a limit that suffices for everything.
        if undecodable_bytes(state, graph) > 0 {
            return Ok(Some(limits));
        }
        if limits.fit(ProgramMemory { read: all, peak: all, ..ProgramMemory::default() }) {
            return Ok(None);
        }
        let need = self.need_of(state, engine, graph, gone)?;
        Ok((!limits.fit(need)).then_some(limits))
    }

    /// Memory use of a program over images in memory, and the available memory, if the program does not fit as a whole:
    /// on the host with all its sources, or on a device with its own memory.
    pub(crate) fn memory_if_exceeded(
        &self,
        state: &SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        gone: &[ValueId],
    ) -> Result<Option<(ProgramMemory, MemoryLimits)>> {
        let unified = engine.unified();
        let room = if unified { self.0.pool.most().saturating_sub(self.0.pool.bounds().1) } else { engine.room() };
        if generous(graph) <= room {
            return Ok(None);
        }
        let limits = self.limits(state, engine, graph)?;
        let need = self.need(engine, graph.clone(), gone)?;
        let fits = if unified { self.allowed(limits).fit(need) } else { need.peak <= room };
        Ok((!fits).then_some((need, limits)))
    }

    /// [`Session::limits_if_exceeded`] for a program over images in memory, on a device with its own memory. The answer
    /// is cached, because each evaluation asks.
    pub(crate) fn exceeds_device(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        sink: ResultDestination<'_>,
    ) -> Result<Option<MemoryLimits>> {
        if generous(graph) <= engine.room() {
            return Ok(None);
        }
        let limits = self.limits(state, engine, graph)?;
        let program = (cache::digest(graph), matches!(sink, ResultDestination::Regions(_)));
        let by_regions = match state.plans.by_regions(program, limits.host) {
            Some(known) => known,
            None => {
                let excess = self.memory_if_exceeded(state, engine, graph, &[])?;
                let by_regions = excess.is_some() && self.pays_by_regions(state, engine, graph, sink)?;
                state.plans.note_by_regions(program, limits.host, by_regions);
                by_regions
            }
        };
        Ok(by_regions.then_some(limits))
    }

    /// Returns `true` if regions can compute a program that does not fit on a device. They must repeat little work if a
    /// plan for the whole could evict images instead.
    pub(crate) fn pays_by_regions(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        sink: ResultDestination<'_>,
    ) -> Result<bool> {
        let mut limits = self.limits(state, engine, graph)?;
        let with_inputs = |(id, node): (NodeId, &Node<Op>)| {
            let inputs: HashSet<NodeId> = node.inputs.iter().copied().collect();
            inputs.into_iter().fold(bytes(graph, id), |all, input| all.saturating_add(bytes(graph, input)))
        };
        // The limit is one device's memory: an image that a launch reads as a whole is on each device.
        let fits = graph.iter().map(with_inputs).all(|bytes| limits.device.is_none_or(|room| bytes <= room));
        limits.again = if fits { AGAIN_OR_EVICT } else { AGAIN };
        let lent: HashSet<ValueId> = state.images.replaceable_sources(graph, limits.small()).collect();
        let expected = graph.nodes.iter().filter_map(|node| match node.op {
            Op::Source(value) if lent.contains(&value) => {
                Some((value, OnDemandImage { chunk: (1, 1), ..OnDemandImage::expected(node.shape, node.dtype) }))
            }
            _ => None,
        });
        let expected: HashMap<ValueId, OnDemandImage> = expected.collect();
        // Replaced sources stay on the host. Images of other libraries do not count.
        let on_host = |(value, later): (&ValueId, &OnDemandImage)| {
            let bytes = later.shape.len().saturating_mul(later.dtype.size());
            state.images.in_memory.get(value).and_then(|image| image.host()).map_or(bytes, HostBuffer::counted)
        };
        let limits = limits.reduced_by(expected.iter().map(on_host).sum());
        state.images.on_demand.extend(expected);
        let divides = unread(state, graph).next().is_some();
        let divides = if divides { self.divides(state, engine, graph, sink, limits) } else { Ok(false) };
        state.images.on_demand.retain(|value, _| !lent.contains(value));
        divides
    }

    /// Returns `true` if a program over images in memory fits as a whole.
    pub(crate) fn holds(&self, state: &SessionState, engine: &Engine, graph: &Graph<Op>) -> Result<bool> {
        self.memory_if_exceeded(state, engine, graph, &[]).map(|excess| excess.is_none())
    }

    /// [`Session::limits_if_exceeded`]; if exceeded, large sources in memory become sources of regions.
    pub(crate) fn replace_sources_if_exceeded(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        gone: &[ValueId],
        sink: ResultDestination<'_>,
    ) -> Result<Option<MemoryLimits>> {
        let Some(limits) = self.limits_if_exceeded(state, engine, graph, gone, sink)? else { return Ok(None) };
        match self.replace_sources(state, engine, graph, limits) {
            // A plan may store fewer images on the host.
            Err(e) if e.is_out_of_memory() && !engine.unified() => Ok(None),
            lent => lent.map(Some),
        }
    }

    /// Makes sources of regions of the large images in memory that a program reads. Regions of them are copied from the
    /// host, like regions of files, until
    /// [`SessionImages::restore_sources`](crate::session::images::SessionImages::restore_sources). Images on a device
    /// are downloaded first. Returns the memory that is available now.
    pub(crate) fn replace_sources(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        limits: MemoryLimits,
    ) -> Result<MemoryLimits> {
        if self.ranks() == 1 && (engine.device_count() == 1 || !engine.unified()) {
            let all: Vec<ValueId> = state.images.replaceable_sources(graph, limits.small()).collect();
            for value in all {
                let Some(image) = state.images.in_memory.get(&value) else { continue };
                match self.whole_at_host(engine, image) {
                    Ok((image, later)) => state.images.replace_source(value, image, later),
                    Err(error) => {
                        state.images.restore_sources();
                        return Err(error);
                    }
                }
            }
        }
        self.limits(state, engine, graph).inspect_err(|_| state.images.restore_sources())
    }

    /// Removes from the roots results that only their handles request, unless they are small.
    pub(crate) fn without_kept(graph: &mut Graph<Op>, targets: usize, limits: MemoryLimits) {
        let small = |n: &NodeId| bytes(graph, *n) <= limits.small();
        graph.roots =
            graph.roots.iter().enumerate().filter(|(i, n)| *i < targets || small(n)).map(|(_, n)| *n).collect();
    }
}
