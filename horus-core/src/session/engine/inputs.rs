//! Reads the pixels of on-demand images that a program needs.

use crate::device::Geometry;
use crate::error::Result;
use crate::ir::graph::{Graph, Op, ValueId};
use crate::plan::ResultDelivery;
use crate::plan::state::Placement;
use crate::region::{CropRule, Rect, restrict};
use crate::session::compile::schedule::ResultDestination;
use crate::session::devices::Engine;
use crate::session::engine::failure::EvaluationError;
use crate::session::images::on_demand::{FetchedPixels, PixelReadError, RegionInput, RegionInputs, unread};
use crate::session::{Session, SessionState};

impl Session {
    /// Returns a program whose sources are all in memory. The needed parts of unread images are read now. A program
    /// that `exceeds` memory with all results is first computed by regions as far as its schedule says. Also returns
    /// the values that exist only for this program.
    pub(crate) fn materialize_inputs(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        graph: Graph<Op>,
        wants: &[ResultDelivery],
        (exceeds, gone): (bool, &[ValueId]),
    ) -> Result<(Graph<Op>, Vec<ValueId>), EvaluationError> {
        let mut own = Vec::new();
        match self.try_materialize_inputs(state, engine, (graph, wants), exceeds.then_some(gone), &mut own) {
            Ok(graph) => Ok((graph, own)),
            Err(e) => {
                state.images.forget(own);
                Err(e)
            }
        }
    }

    /// [`Session::materialize_inputs`]; adds the values to `own`, even on failure.
    fn try_materialize_inputs(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        (mut graph, wants): (Graph<Op>, &[ResultDelivery]),
        exceeds: Option<&[ValueId]>,
        own: &mut Vec<ValueId>,
    ) -> Result<Graph<Op>, EvaluationError> {
        if unread(state, &graph).next().is_none() {
            return Ok(graph);
        }
        // The program may have fewer results since then, and fit.
        if let Some(gone) = exceeds
            && let Some(limits) = self.limits_if_exceeded(state, engine, &graph, gone, ResultDestination::Memory)?
        {
            let schedule = self.scheduled(state, engine, (&graph, gone), ResultDestination::Memory, limits)?;
            state.images.release(|_| false);
            self.explain_reason(Some(limits));
            own.extend(schedule.own);
            self.run_stages(state, engine, &schedule.stages, own)?;
            graph = schedule.rest;
        }
        let whole: Vec<Rect> = graph.roots.iter().map(|r| Rect::whole(graph.node(*r).shape)).collect();
        let mut supply = RegionInputs::new(state, false);
        let mut part = restrict(&graph, &whole, CropRule::Always, &mut supply).graph;
        let mut parts = supply.parts;
        let readers = self.choose_readers(engine, state, (&part, &parts), wants);
        self.place_inputs(readers.map_err(EvaluationError::BeforeExecution)?, &part, &mut parts);
        let read = parts.iter().map(|part| part.read(self, None)).collect();
        let read: Vec<FetchedPixels> = self.agreed_read(read).map_err(EvaluationError::BeforeExecution)?;
        for (part, pixels) in parts.iter().zip(read) {
            self.give_part(state, part, pixels);
        }
        // A source that was read as a whole stays in memory, like given pixels.
        for (name, read) in parts.iter().filter_map(|p| Some((p.whole()?, p.value))) {
            if let Some(image) = state.images.in_memory.remove(&read) {
                state.images.in_memory.insert(name, image);
                let same = part.nodes.iter_mut().filter(|node| node.op == Op::Source(read));
                same.for_each(|node| node.op = Op::Source(name));
            }
        }
        own.extend(parts.iter().map(|p| p.value).filter(|v| state.images.in_memory.contains_key(v)));
        Ok(part)
    }

    /// Reads all unread sources of a program, and these values.
    pub(crate) fn read_now(&self, state: &mut SessionState, graph: &Graph<Op>, values: &[ValueId]) -> Result<()> {
        let mut all: Vec<ValueId> = unread(state, graph).map(|(v, _)| v).collect();
        all.extend(values.iter().filter(|v| state.images.on_demand.contains_key(v)));
        all.sort_unstable();
        all.dedup();
        for value in all {
            let there = state.images.in_memory.contains_key(&value);
            let Some(later) = state.images.on_demand.get(&value).filter(|_| !there).cloned() else { continue };
            let part = RegionInput::all(value, later);
            let pixels = self.agreed_read(part.read(self, None))?;
            self.give_part(state, &part, pixels);
        }
        Ok(())
    }

    /// Adds the pixels that this rank has read of a part.
    pub(crate) fn give_part(&self, state: &mut SessionState, part: &RegionInput, fetched: FetchedPixels) {
        state.stats.read.chunks += fetched.read.chunks;
        state.stats.read.bytes += fetched.read.bytes;
        let placement = if self.ranks() == 1 { Placement::Replicated } else { part.placement };
        let geometry = Geometry { shape: part.shape, dtype: part.dtype.stored(), window: part.rows(self) };
        state.images.give_rows(part.value, geometry, fetched.pixels, placement);
    }

    /// This rank's pixels, or the error of the first rank that could not read.
    pub(crate) fn agreed_read<R>(&self, read: Result<R, PixelReadError>) -> Result<R> {
        match self.first_of_ranks("reading pixels", read.as_ref().err().cloned())? {
            None => read.map_err(PixelReadError::error),
            Some(unread) => Err(unread.error()),
        }
    }
}
