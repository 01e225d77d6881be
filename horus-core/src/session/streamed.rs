//! Values delivered part by part: slabs of levels where these do not depend on each other, and
//! regions of what does not fit in memory.

use std::collections::HashMap;
use std::env::temp_dir;
use std::ops::Range;
use std::sync::Arc;

use super::engine::Engine;
use super::evaluate::{Unevaluated, all_there};
use super::later::{Later, unread};
use super::plans::Plans;
use super::regions::{bytes, pieces, shares};
use super::stream::Job;
use super::{Handle, Mutable, Session};
use crate::dtype::DType;
use crate::error::{Call, DeviceError, Error, Result};
use crate::host::Piece;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ops::Whole;
use crate::plan::Want;
use crate::plan::state::Placement;
use crate::record::{Extract, RecordId};
use crate::region::{Rect, slab};
use crate::shape::Shape;
use horus_files::files::Aside;

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

/// Minimum bytes of a slab of the first result; smaller ones cost more to plan and launch than to
/// compute: an estimate.
const SLAB: usize = 4 << 20;
/// Minimum bytes of a result that is delivered in slabs although it fits in memory: files of this
/// size are read on demand.
const LARGE: usize = 64 << 20;

/// The sizes of parts that a taker of pixels can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grain {
    /// Rows and columns.
    pub(crate) chunk: (usize, usize),
    pub(crate) levels: usize,
}

impl Grain {
    /// Levels that are multiples of those that all takers take at once.
    pub(crate) fn levels(all: &[Grain]) -> usize {
        all.iter().fold(1, |n, grain| common_multiple(n, grain.levels))
    }
}

/// A part of results: which result, levels, and region.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) of: usize,
    pub(crate) levels: Range<usize>,
    pub(crate) region: Rect,
}

/// Takes the pixels of a part; errors are text.
type Put<'a> = dyn FnMut(Delivery, &[u8]) -> Result<(), String> + Send + 'a;

/// The place of a result of regions.
enum Held {
    Memory(HostBuffer),
    File(Aside),
}

/// Levels of the results of a program, and the program that computes them.
struct Slab {
    levels: Range<usize>,
    graph: Graph<Op>,
}

/// The levels of slabs of a program's results, of which `levels` are taken at once; `None` if they
/// are computed together.
fn thickness(state: &Mutable, graph: &Graph<Op>, levels: usize) -> Option<usize> {
    let Shape { depth, .. } = graph.node(graph.roots[0]).shape;
    if unread(state, graph).any(|(_, later)| later.shape.depth != depth) {
        return None;
    }
    let at_once = unread(state, graph).fold(levels, |n, (_, later)| common_multiple(n, later.levels));
    let least = SLAB.div_ceil(bytes(graph, graph.roots[0]).div_ceil(depth.max(1)).max(1));
    let thick = least.checked_next_multiple_of(at_once).filter(|thick| *thick < depth)?;
    slab(graph, 0..thick, &mut Some).map(|_| thick)
}

/// The program in slabs, or as a whole; `own` receives the values that exist only for them.
fn slabs(state: &mut Mutable, graph: &Graph<Op>, levels: usize, own: &mut Vec<ValueId>) -> Vec<Slab> {
    let depth = graph.node(graph.roots[0]).shape.depth;
    let whole = || vec![Slab { levels: 0..depth, graph: graph.clone() }];
    let Some(thick) = thickness(state, graph, levels) else { return whole() };
    let one = |start: usize| {
        let levels = start..(start + thick).min(depth);
        let mut named = HashMap::new();
        let mut name = |value: ValueId| {
            let later = state.images.later.get(&value).filter(|_| !state.images.here.contains_key(&value))?;
            let from = later.part.start;
            let part = from + levels.start..from + levels.end;
            let later = Later { shape: Shape { depth: part.len(), ..later.shape }, part, ..later.clone() };
            Some(*named.entry(value).or_insert_with(|| {
                let name = state.names.value();
                state.images.later.insert(name, later);
                own.push(name);
                name
            }))
        };
        let graph = slab(graph, levels.clone(), &mut name)?;
        Some(Slab { levels, graph })
    };
    (0..depth).step_by(thick).map(one).collect::<Option<_>>().unwrap_or_else(whole)
}

/// The program of some values only.
pub(super) fn program_of(state: &mut Mutable, ids: &[RecordId]) -> (Graph<Op>, Vec<ValueId>) {
    let Extract { mut graph, records } = state.program.extract(ids, 0);
    let gone = state.program.disposable(&graph, &records);
    graph.roots.truncate(ids.len());
    (graph.without_dead(), gone)
}

impl Session {
    /// Returns the constraints for values, of which `levels` are taken at once, that do not fit in
    /// memory and can be computed by regions, else `None`. Collective.
    pub(crate) fn does_not_fit(&self, values: &[&Handle], levels: usize) -> Result<Option<TooLarge>> {
        let ids = values.iter().map(|value| value.look()).collect::<Result<Vec<_>>>()?;
        self.comm(); // after started evaluations: ranks communicate in one order
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        let (graph, gone) = program_of(state, &ids);
        let engine = match self.engine() {
            Some(engine) => engine,
            None => self.settled(state, &graph)?,
        };
        let exceeds = self.lend(state, engine, &graph, &gone, true).map_err(Unevaluated::error)?;
        if let Some(limits) = exceeds {
            let mut own = Vec::new();
            let first = slabs(state, &graph, levels, &mut own).swap_remove(0).graph;
            let foreseen = self.foresee_regions(state, engine, &first, limits, true);
            state.images.forget(own);
            state.images.take_back();
            foreseen.map_err(Unevaluated::error)?;
        }
        let largest = unread(state, &graph).map(|(_, later)| later).max_by_key(|l| l.shape.len());
        let tile = largest.filter(|later| later.chunk.1 < later.shape.width).map(|later| later.chunk);
        Ok(exceeds.map(|_| TooLarge { tile }))
    }

    /// Returns `true` if values, of which `levels` are taken at once, are computed from unread images in
    /// slabs, and are so large that reading and taking these while others are computed pays.
    pub(crate) fn comes_in_slabs(&self, values: &[&Handle], levels: usize) -> Result<bool> {
        let ids = values.iter().map(|value| value.look()).collect::<Result<Vec<_>>>()?;
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        let (graph, _) = program_of(state, &ids);
        let reads = unread(state, &graph).any(|(v, _)| !state.images.here.contains_key(&v));
        Ok(reads && bytes(&graph, graph.roots[0]) >= LARGE && thickness(state, &graph, levels).is_some())
    }

    /// Computes values part by part, and passes their pixels to `put` on rank 0: level by level and row
    /// by row, the channels of each beside each other. Parts of the first consist of whole chunks of its `grain`, and those of the others,
    /// which have as many levels, are the same parts of their extents. Reductions of unread images
    /// come first, in passes of their own.
    ///
    /// # Errors
    /// Those of an evaluation; those of `put` are inside, the same on every rank.
    pub(crate) fn stream(
        &self,
        values: &[&Handle],
        grains: &[Grain],
        call: Call,
        put: &mut Put<'_>,
    ) -> Result<Result<(), String>> {
        let ids = values.iter().map(|value| value.look()).collect::<Result<Vec<_>>>()?;
        let mut state = self.lock("evaluating")?;
        self.guard(&mut state, |state| {
            let (graph, gone) = program_of(state, &ids);
            all_there(state, &graph).map_err(Unevaluated::Foreseen)?;
            let engine = match self.engine() {
                Some(engine) => engine,
                None => self.settled(state, &graph).map_err(Unevaluated::Foreseen)?,
            };
            if engine.mended().map_err(Unevaluated::Foreseen)? {
                state.plans = Plans::default();
            }
            state.images.release(|_| false);
            self.lend(state, engine, &graph, &gone, true)?;
            let mut own = Vec::new();
            let done = self
                .reduced(state, engine, graph, &mut own)
                .and_then(|graph| self.deliver(state, engine, &graph, grains, call, put, &mut own));
            state.images.forget(own);
            done
        })
    }

    /// Computes a value region by region into memory of its size: see [`Session::stream`].
    pub(crate) fn stream_into(&self, value: &Handle, call: Call, to: &mut [u8]) -> Result<()> {
        let shape = value.shape.stored();
        let kind = (shape, shape.pixel_bytes(value.dtype));
        let mut put = |Delivery { levels, region, .. }: Delivery, pixels: &[u8]| {
            self.put_levels(to, kind, levels, region, pixels);
            Ok(())
        };
        self.stream(&[value], &[Grain { chunk: (1, 1), levels: 1 }], call, &mut put)?
            .map_err(|cause| self.at_host(call, DeviceError::Internal(cause)))
    }

    /// Computes the first `images` roots of a program region by region into files without a name, or into
    /// memory that they take a small part of, and returns their images; and the others, of one `f64` each.
    pub(super) fn set_aside(
        &self,
        state: &mut Mutable,
        graph: Graph<Op>,
        images: usize,
        call: Call,
    ) -> Result<(Vec<ValueId>, Vec<f64>), Unevaluated> {
        /// Fraction of the memory that results may take: a guess, about what regions and the state before need.
        const IN_MEMORY: usize = 4;
        all_there(state, &graph).map_err(Unevaluated::Foreseen)?;
        let engine = self.settled(state, &graph).map_err(Unevaluated::Foreseen)?;
        state.images.release(|_| false);
        let limits = self.limits(state, engine, &graph).map_err(Unevaluated::Foreseen)?;
        let limits = self.lend_sources(state, engine, &graph, limits).map_err(Unevaluated::Foreseen)?;
        let kinds: Vec<(Shape, DType)> =
            graph.roots[..images].iter().map(|n| graph.node(*n)).map(|n| (n.shape, n.dtype.stored())).collect();
        let size = |(shape, dtype): &(Shape, DType)| shape.len() * dtype.size();
        let all: usize = kinds.iter().map(size).sum();
        let in_memory =
            all <= limits.host / IN_MEMORY && self.divides(state, engine, &graph, limits.beside(all), true)?;
        let failed = |cause| Unevaluated::Foreseen(Error::write(&temp_dir(), cause));
        let lacking = |source| Unevaluated::Foreseen(self.at_host(call, source));
        let place = |kind: &(Shape, DType)| match in_memory {
            true => self.0.pool.try_allocate(size(kind)).map(Held::Memory).map_err(lacking),
            false => Aside::new(kind.0, kind.1).map(Held::File).map_err(failed),
        };
        let mut places = kinds.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let mut numbers = vec![0.0; graph.roots.len() - images];
        let mut put = |Delivery { of, levels, region }: Delivery, pixels: &[u8]| match places.get_mut(of) {
            Some(Held::File(file)) => file.put(levels, region.inside(), pixels),
            Some(Held::Memory(to)) => {
                let (shape, dtype) = kinds[of];
                self.put_levels(to.bytes_mut(), (shape, shape.pixel_bytes(dtype)), levels, region, pixels);
                Ok(())
            }
            None => {
                numbers[of - images] = bytemuck::pod_read_unaligned(pixels);
                Ok(())
            }
        };
        let grains = vec![Grain { chunk: (1, 1), levels: 1 }; graph.roots.len()];
        let mut own = Vec::new();
        let done = self
            .reduced(state, engine, graph, &mut own)
            .and_then(|graph| self.deliver(state, engine, &graph, &grains, call, &mut put, &mut own));
        state.images.forget(own);
        done?.map_err(failed)?;
        let mut named = |(place, (shape, dtype)): (Held, &(Shape, DType))| {
            let name = state.names.value();
            match place {
                Held::File(file) => {
                    drop(state.images.later.insert(name, Later::of(Arc::new(file), "a temporary file")))
                }
                Held::Memory(pixels) => state.images.give(name, *shape, *dtype, Some(pixels), Placement::Replicated),
            }
            name
        };
        Ok((places.into_iter().zip(&kinds).map(&mut named).collect(), numbers))
    }

    /// Copies a region of some levels to its place in an image, of pixels of so many bytes, by all workers.
    pub(super) fn put_levels(
        &self,
        to: &mut [u8],
        (shape, element): (Shape, usize),
        levels: Range<usize>,
        region: Rect,
        pixels: &[u8],
    ) {
        let level = shape.area() * shape.channels * element;
        let of = Shape { depth: levels.len(), ..shape };
        let pieces: Vec<Piece> = pieces(of, region, element).into_iter().map(Piece::back).collect();
        self.workers().copy_pieces(pixels, &mut to[level * levels.start..level * levels.end], &pieces);
    }

    /// Computes a program without reductions part by part: see [`Session::stream`].
    #[expect(clippy::too_many_arguments, reason = "the second half of a function")]
    fn deliver(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        graph: &Graph<Op>,
        grains: &[Grain],
        call: Call,
        put: &mut Put<'_>,
        own: &mut Vec<ValueId>,
    ) -> Result<Result<(), String>, Unevaluated> {
        let slabs = slabs(state, graph, Grain::levels(grains), own);
        let first = &slabs[0].graph;
        let (grain, read) = (grains[0].chunk, Session::grain(state, first));
        // Regions of whole rows are divided in rows only.
        let of = first.node(first.roots[0]).shape;
        let columns = if grain.1 >= of.width { of.width } else { together(grain.1, read.1) };
        let divided = |state: &Mutable| {
            // Slabs are as many parts as reading and taking beside the computation needs.
            if slabs.len() > 1 {
                let limits = self.limits(state, engine, first).map_err(Unevaluated::Foreseen)?;
                let whole = self.division(state, engine, first, (of.height, of.width), None, limits)?;
                if let Some(whole) = whole {
                    return Ok(whole);
                }
            }
            self.divided(state, engine, first, (together(grain.0, read.0), columns), None)
        };
        let mut division = divided(state)?;
        // On rank 0, chunks of small results wait until they are complete.
        let waits = |(root, grain): (&NodeId, &Grain)| {
            let Node { shape, dtype, .. } = first.node(*root);
            grain.chunk.0.saturating_mul(shape.line() * shape.planes() * dtype.size())
        };
        let waiting = first.roots.iter().zip(grains).skip(1).map(waits).sum();
        let waits = division.count() > 1 && self.rank() == 0;
        let room = self.reserve(if waits { waiting } else { 0 });
        let _room = room.map_err(|source| Unevaluated::Met(self.at_host(call, source)))?;
        if division.count() > 1 && waiting > 0 {
            division = divided(state)?;
        }
        let stored = graph.node(graph.roots[0]);
        let result =
            if let Op::Whole(Whole::Interleave(_)) = stored.op { graph.node(stored.inputs[0]) } else { stored };
        let name = result.op.name();
        self.explain_regions(&match slabs.len() {
            1 => format!("{name} in {division}"),
            n => format!("{name} in {n} slabs of {} levels, each in {division}", slabs[0].levels.len()),
        });
        let want = if self.ranks() > 1 { Want::Root } else { Want::Handed };
        let regions = division.count();
        // Results that have no pixels in a region are not computed for it.
        let some = |graph: &Graph<Op>, i: usize| -> Vec<(usize, Rect)> {
            shares(graph, division.region(i % regions)).into_iter().enumerate().filter(|(_, r)| !r.is_empty()).collect()
        };
        let mut make = |state: &Mutable, i: usize| {
            let graph = &slabs[i / regions].graph;
            let (roots, regions): (Vec<usize>, Vec<Rect>) = some(graph, i).into_iter().unzip();
            let roots = roots.into_iter().map(|root| graph.roots[root]).collect();
            Job::of(state, &Graph { roots, ..graph.clone() }, &regions)
        };
        let mine = self.rank() == 0;
        let mut take = |i: usize, taken: &[&HostBuffer]| {
            let Slab { levels, graph } = &slabs[i / regions];
            some(graph, i).into_iter().zip(taken).filter(|_| mine).try_for_each(|((of, region), pixels)| {
                put(Delivery { of, levels: levels.clone(), region }, pixels.bytes())
            })
        };
        self.run_jobs(state, engine, slabs.len() * regions, want, &mut make, &mut take)
    }
}
