//! Values that do not fit in memory, delivered region by region.

use super::evaluate::{Unevaluated, all_there};
use super::later::unread;
use super::plans::Plans;
use super::stream::Job;
use super::{Handle, Mutable, Session};
use crate::error::Result;
use crate::host::buffer::HostBuffer;
use crate::plan::Want;
use crate::record::Extract;
use crate::region::Rect;

/// A value that is computed by regions, because the whole does not fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooLarge {
    /// Rows and columns of the tiles of its largest source image, if that is tiled.
    pub(crate) tile: Option<(usize, usize)>,
}

/// Rows, or columns, of regions that are whole chunks of both the source and the sink, unless these
/// would be many.
fn together(put: usize, read: usize) -> usize {
    const MOST: usize = 4096;
    let (mut a, mut b) = (put.max(1), read.max(1));
    let product = a.saturating_mul(b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    let both = product / a;
    if both <= MOST { both } else { put.max(1) }
}

/// Takes the pixels of a region; errors are text.
type Put<'a> = dyn FnMut(Rect, &[u8]) -> Result<(), String> + Send + 'a;

impl Session {
    /// Returns the constraints for a value that is computed from unread images and does not fit in
    /// memory, else `None`. Collective.
    pub(crate) fn does_not_fit(&self, value: &Handle) -> Result<Option<TooLarge>> {
        let id = value.look()?;
        self.comm(); // after started evaluations: ranks communicate in one order
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        let Extract { mut graph, records } = state.program.extract(&[id], 0);
        let gone = state.program.disposable(&graph, &records);
        graph.roots.truncate(1);
        let graph = graph.without_dead();
        if unread(state, &graph).next().is_none() {
            return Ok(None);
        }
        let engine = match self.engine() {
            Some(engine) => engine,
            None => self.settled(state, &graph)?,
        };
        let exceeds = self.exceeds(state, engine, &graph, &gone).map_err(Unevaluated::error)?;
        if let Some(limits) = exceeds {
            self.foresee_regions(state, engine, &graph, limits, true).map_err(Unevaluated::error)?;
        }
        let largest = unread(state, &graph).map(|(_, later)| later).max_by_key(|l| l.shape.len());
        let tile = largest.filter(|later| later.chunk.1 < later.shape.width).map(|later| later.chunk);
        Ok(exceeds.map(|_| TooLarge { tile }))
    }

    /// Computes a value region by region, each of whole chunks of `grain`, and passes their pixels
    /// to `put` on rank 0: plane by plane, rows without gaps. Reductions of unread images come
    /// first, in passes of their own.
    ///
    /// # Errors
    /// Those of an evaluation; those of `put` are inside, the same on every rank.
    pub(crate) fn stream(
        &self,
        value: &Handle,
        grain: (usize, usize),
        put: &mut Put<'_>,
    ) -> Result<Result<(), String>> {
        let id = value.look()?;
        let mut state = self.lock("evaluating")?;
        self.guard(&mut state, |state| {
            let Extract { mut graph, .. } = state.program.extract(&[id], 0);
            graph.roots.truncate(1);
            let graph = graph.without_dead();
            all_there(state, &graph).map_err(Unevaluated::Foreseen)?;
            let engine = match self.engine() {
                Some(engine) => engine,
                None => self.settled(state, &graph).map_err(Unevaluated::Foreseen)?,
            };
            if engine.mended().map_err(Unevaluated::Foreseen)? {
                state.plans = Plans::default();
            }
            state.images.release(|_| false);
            let mut own = Vec::new();
            let done = self.reduced(state, engine, graph, &mut own).and_then(|graph| {
                let read = Session::grain(state, &graph);
                // Regions of whole rows are divided in rows only.
                let width = graph.node(graph.roots[0]).shape.width;
                let columns = if grain.1 >= width { width } else { together(grain.1, read.1) };
                let division = self.divided(state, engine, &graph, (together(grain.0, read.0), columns), None)?;
                self.explain_regions(&format!("{} in {division}", graph.node(graph.roots[0]).op.name()));
                let want = if self.ranks() > 1 { Want::Root } else { Want::Handed };
                let mut make = |state: &Mutable, i: usize| Job::of(state, &graph, division.region(i));
                let mine = self.rank() == 0;
                let mut take = |i: usize, taken: &[&HostBuffer]| match taken.first().filter(|_| mine) {
                    Some(pixels) => put(division.region(i), pixels.bytes()),
                    None => Ok(()),
                };
                self.run_jobs(state, engine, division.count(), want, &mut make, &mut take)
            });
            state.images.forget(own);
            done
        })
    }
}
