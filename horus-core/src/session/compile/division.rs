//! Divides a program into regions that fit in memory.

use std::cmp::Reverse;

use crate::error::Result;
use crate::host::buffer::block_bytes;
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ops::reduce::{Divisible, SEGMENT};
use crate::region::{CropRule, Division, InPlace, Rect, restrict};
use crate::session::compile::memory::{MemoryLimits, ProgramMemory, RegionMemory, counted, shares};
use crate::session::compile::region::{RestrictedProgram, reductions_of};
use crate::session::devices::Engine;
use crate::session::images::on_demand::{RegionInput, STRIPS, unread};
use crate::session::{Session, SessionState};

/// Fractions of the available memory for images; the second is tried if no division fits the first. The rest is for
/// decoders, encoders, reuse, and chunks that the next region reads again.
const PARTS: [f64; 2] = [0.5, 0.875];
/// Number of regions of a division whose memory use is determined: the regions of most pixels. A guess.
const LARGEST: usize = 2;
/// Maximum number of divisions that are compared with the memory use of their regions, and the minimum factor by which
/// a low estimate is raised between them. These are guesses, which reach six times the estimate.
const TRIES: usize = 8;
const STEP: f64 = 1.25;

impl Session {
    /// Divides a program's roots into regions that fit; `None` if no division fits or all repeat too much work.
    pub(crate) fn division(
        &self,
        state: &SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        grain: (usize, usize),
        reduced: Option<(Divisible, &[NodeId])>,
        limits: MemoryLimits,
    ) -> Result<Option<Division>> {
        let of = graph.node(graph.roots[0]).shape;
        let all = counted(state, graph, Rect::whole(of));
        let whole = restrict(graph, &shares(graph, Rect::whole(of)), CropRule::Always, &mut InPlace).graph;
        let need = self.need(engine, whole, &[])?;
        let threads = self.workers().threads();
        let decoders = unread(state, graph).map(|(_, later)| later.decoders(threads)).max().unwrap_or(0);
        let (segment, width) = (SEGMENT.min(of.width), of.width);
        for part in PARTS {
            // Fusion stores less than the recorded program. The fraction is assumed to be the same for a region as for
            // the whole.
            let mut stored = need.peak as f64 / (all.read + all.computed).max(1) as f64;
            for _ in 0..TRIES {
                let mut cost = |region: Rect| {
                    let RegionMemory { read, decoded, computed, results } = counted(state, graph, region);
                    let peak = (stored * (read + computed) as f64) as usize;
                    let results = if reduced.is_some() { 0 } else { results };
                    let peak = peak.max(read + results).saturating_add(decoders);
                    // Chunks that the next strip reads again stay decoded.
                    let strips = region.columns.len() == width && decoded <= limits.host / STRIPS;
                    let once = (all.decoded as f64 * (region.area() as f64 / of.area() as f64)) as usize;
                    let decoded = if strips { decoded.min(once) } else { decoded };
                    let fits = limits.hold_regions(ProgramMemory { read, later: read, peak, results, at: None }, part);
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
                    let RegionMemory { read, computed, .. } = counted(state, graph, region);
                    (read + computed, region)
                };
                let mut regions: Vec<(usize, Rect)> = division.kinds().into_iter().map(all).collect();
                regions.sort_by_key(|(all, _)| Reverse(*all));
                let mut more = None;
                for (all, region) in regions.into_iter().take(LARGEST) {
                    let need = self.need_of_region(state, engine, graph, reduced.map(|(_, nodes)| nodes), region)?;
                    let need = ProgramMemory { peak: need.peak.saturating_add(decoders), ..need };
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

    /// Memory use of the optimised program of a region, with reductions by the nodes `reduced`.
    pub(crate) fn need_of_region(
        &self,
        state: &SessionState,
        engine: &Engine,
        graph: &Graph<Op>,
        reduced: Option<&[NodeId]>,
        region: Rect,
    ) -> Result<ProgramMemory> {
        let RestrictedProgram { graph, parts, .. } = match reduced {
            Some(nodes) => reductions_of(state, graph, nodes, region),
            None => RestrictedProgram::of_shares(state, graph, region),
        };
        let own: Vec<ValueId> = parts.iter().map(|part| part.value).collect();
        // Values of earlier stages do not exist yet. They are not part of the available memory.
        let to_come = |node: &&Node<Op>| match node.op {
            Op::Source(v) => !own.contains(&v) && !state.images.has(&v),
            _ => false,
        };
        let made: usize = graph.nodes.iter().filter(to_come).map(|n| block_bytes(n.shape.len() * n.dtype.size())).sum();
        let need = self.need(engine, graph, &own)?;
        let later = parts.iter().map(RegionInput::bytes).sum();
        Ok(ProgramMemory { peak: need.peak.saturating_sub(made), later, ..need })
    }

    /// Rows and columns that are read at once of the largest source.
    pub(crate) fn grain(state: &SessionState, graph: &Graph<Op>) -> (usize, usize) {
        let largest = unread(state, graph).max_by_key(|(v, later)| (later.shape.len(), v.0));
        let of = graph.node(graph.roots[0]).shape;
        largest.map_or((1, 1), |(_, later)| {
            // A picture that is decoded as a whole is not divided along its chunks, nor is a result of another shape.
            let part = |chunk: usize, n: usize, of: usize| if n == of && chunk * 4 <= n { chunk } else { 1 };
            let rows = part(later.chunk.0, later.shape.height, of.height);
            let columns = if later.chunk.1 < later.shape.width { later.chunk.1 } else { 1 };
            (rows, part(columns, later.shape.width, of.width))
        })
    }
}
