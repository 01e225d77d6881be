//! Chooses the ranks that read images on demand: rank 0 for all, or each rank the rows that it computes with.
//!
//! An image that every rank can read needs no scatter: it begins in strips, with the halos that the program needs, or
//! whole on every rank. Which of these, or a scatter from rank 0, takes the least time is predicted like any plan.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ir::graph::{Graph, Node, Op};
use crate::plan::ResultDelivery;
use crate::plan::state::{Halo, Placement};
use crate::region::{Rect, required_regions};
use crate::session::devices::Engine;
use crate::session::images::on_demand::RegionInput;
use crate::session::{Session, SessionState};
use crate::shape::Window;

/// The ranks that read the inputs of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Readers {
    /// Rank 0, for all.
    Root,
    /// Each rank its strip and, if `halo`, the rows around it that its results need.
    Strips { halo: bool },
    /// Each rank all pixels.
    Everyone,
}

/// The program without reductions of all rows, whose inputs become results: each rank reduces its strip.
fn reduced(graph: &Graph<Op>) -> Graph<Op> {
    let mut reduced = graph.clone();
    for node in 0..graph.nodes.len() {
        let Node { op, inputs, shape, .. } = &graph.nodes[node];
        if matches!(op, Op::Whole(_)) && inputs.iter().any(|input| graph.node(*input).shape.height > shape.height) {
            reduced.roots.extend(std::mem::take(&mut reduced.nodes[node].inputs));
        }
    }
    reduced
}

impl Session {
    /// The ranks that read these inputs of a program: those for which reading and the program are predicted to take the
    /// least time. Collective.
    pub(crate) fn choose_readers(
        &self,
        engine: &Engine,
        state: &SessionState,
        (graph, inputs): (&Graph<Op>, &[RegionInput]),
        wants: &[ResultDelivery],
    ) -> Result<Readers> {
        let all = self.ranks();
        if all == 1 || !self.compared(all).contains(&all) || !inputs.iter().any(RegionInput::is_shared) {
            return Ok(Readers::Root);
        }
        let readers = self.agreed("choosing the ranks that read", || {
            let compared =
                [Readers::Root, Readers::Strips { halo: false }, Readers::Strips { halo: true }, Readers::Everyone];
            let seconds = |readers| (readers, self.seconds_with(readers, engine, state, (graph, inputs), wants));
            let least = compared.map(seconds).into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
            least.map_or(Readers::Root, |(readers, _)| readers)
        })?;
        if let Some(sink) = self.0.settings.explain.as_ref().filter(|_| readers != Readers::Root) {
            let what = if readers == Readers::Everyone { "all pixels" } else { "its rows" };
            sink(&format!("reading:\n      each rank reads {what}\n"));
        }
        Ok(readers)
    }

    /// Predicted seconds of reading and of the program; infinite for a program that does not fit in memory.
    fn seconds_with(
        &self,
        readers: Readers,
        engine: &Engine,
        state: &SessionState,
        (graph, inputs): (&Graph<Op>, &[RegionInput]),
        wants: &[ResultDelivery],
    ) -> f64 {
        let mut inputs = inputs.to_vec();
        self.place_inputs(readers, graph, &mut inputs);
        let gone: Vec<_> = inputs.iter().map(|input| input.value).collect();
        let mut request = self.request(engine, state, graph.clone(), wants.to_vec(), &gone);
        for ((value, at, _), laid) in request.sources.iter_mut().zip(&mut request.laid) {
            if let Some(input) = inputs.iter().find(|input| input.value == *value) {
                (*at, *laid) = (Some(state.images.state_of(input.placement)), self.ranks());
            }
        }
        let among = (readers != Readers::Root).then_some(self.ranks());
        let Ok((planned, _)) = self.cheapest(engine, state, &request, among) else { return f64::INFINITY };
        let plan = planned.plan;
        if plan.shortfall.is_some() || !plan.fits {
            return f64::INFINITY;
        }
        // From the system's cache, at once on all ranks.
        let read = |rank: usize| {
            let bytes = |input: &RegionInput| input.bytes_of(input.rows_of(self, rank));
            inputs.iter().map(bytes).sum::<usize>() as f64 / engine.machine.of(rank).files.read
        };
        plan.predicted + (0..self.ranks()).map(read).fold(0.0, f64::max)
    }

    /// Sets where the inputs of a program are once they are read.
    pub(crate) fn place_inputs(&self, readers: Readers, graph: &Graph<Op>, inputs: &mut [RegionInput]) {
        if readers == Readers::Root {
            return;
        }
        let needed: Vec<Vec<Option<Rect>>> = match readers {
            Readers::Strips { halo: true } => {
                let reduced = reduced(graph);
                (0..self.ranks()).map(|rank| self.needed_by(&reduced, rank)).collect()
            }
            _ => Vec::new(),
        };
        for input in inputs.iter_mut().filter(|input| input.is_shared()) {
            let is_source = |op: &Op| *op == Op::Source(input.value);
            let of = |needed: &Vec<Option<Rect>>| {
                let nodes = graph.nodes.iter().zip(needed).filter(|(node, _)| is_source(&node.op));
                nodes.filter_map(|(_, rect)| rect.map(|rect| rect.rows)).reduce(Window::union)
            };
            input.placement = match readers {
                Readers::Everyone => Placement::Replicated,
                _ => Placement::Strips(self.halo_of(input.shape.height, needed.iter().map(of))),
            };
        }
    }

    /// Regions of all nodes of a program without its [reductions](reduced) from which a rank's strips of the results are
    /// computed.
    fn needed_by(&self, graph: &Graph<Op>, rank: usize) -> Vec<Option<Rect>> {
        let strip = |root: &_| {
            let whole = Rect::whole(graph.node(*root).shape);
            Rect { rows: self.0.partition.strip(rank, whole.rows.len()), ..whole }
        };
        required_regions(graph, &graph.roots.iter().map(strip).collect::<Vec<_>>())
    }

    /// Rows around the strips of an image that contain the needed rows of each rank; none if they exceed a strip.
    fn halo_of(&self, height: usize, needed: impl Iterator<Item = Option<Window>>) -> Halo {
        let mut halo = Halo::NONE;
        for (rank, rows) in needed.enumerate() {
            let Some(rows) = rows.filter(|rows| !rows.is_empty()) else { continue };
            let (strip, rows) = (self.0.partition.strip(rank, height), rows.clipped(height));
            let above = usize::try_from(strip.start - rows.start).unwrap_or(0);
            let below = usize::try_from(rows.end - strip.end).unwrap_or(0);
            if above.max(below) > strip.len() {
                return Halo::NONE;
            }
            halo = halo.max(Halo { up: above, down: below, wrap: false });
        }
        halo
    }
}
