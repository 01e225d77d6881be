//! Values that are delivered part by part, because they do not fit in memory or are read level by level.

use std::env::temp_dir;
use std::ops::Range;
use std::sync::Arc;

use crate::device::DownloadStart;
use crate::dtype::DType;
use crate::error::{Call, DeviceError, Error, Result};
use crate::host::StridedCopy;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Graph, Op, ValueId};
use crate::plan::ResultDelivery;
use crate::plan::state::Placement;
use crate::record::{Extract, RecordId};
use crate::region::Rect;
use crate::session::compile::memory::bytes;
use crate::session::compile::schedule::{Grain, ResultDestination, thickness};
use crate::session::engine::distribute::RankRows;
use crate::session::engine::evaluate::{EvaluationResults, all_there};
use crate::session::engine::failure::EvaluationError;
use crate::session::engine::stages::{Delivery, DeliveryTarget};
use crate::session::images::on_demand::pieces;
use crate::session::images::on_demand::{OnDemandImage, unread};
use crate::session::{Handle, Session, SessionState};
use crate::shape::Shape;
use horus_files::TemporaryImage;

/// Minimum bytes of a result that is delivered in slabs, or by each rank, although it fits in memory. Files of this
/// size are read on demand.
const LARGE: usize = 64 << 20;

/// Storage of a result that is computed by regions.
enum ResultStorage {
    Memory(HostBuffer),
    File(TemporaryImage),
}

/// Program of some values only.
pub(crate) fn program_of(state: &mut SessionState, ids: &[RecordId]) -> (Graph<Op>, Vec<ValueId>) {
    let Extract { mut graph, records } = state.program.extract(ids, 0);
    let gone = state.program.disposable(&graph, &records);
    graph.roots.truncate(ids.len());
    (graph.without_dead(), gone)
}

impl Session {
    /// Returns `true` if values, delivered `levels` at a time, do not fit in memory and can be computed by regions.
    /// Collective.
    pub(crate) fn does_not_fit(&self, values: &[&Handle], levels: usize) -> Result<bool> {
        let ids = values.iter().map(|value| value.look()).collect::<Result<Vec<_>>>()?;
        self.comm(); // after started evaluations: ranks communicate in one order
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        let (graph, gone) = program_of(state, &ids);
        let engine = match self.engine() {
            Some(engine) => engine,
            None => self.choose_engine(state, &graph)?,
        };
        let grain = [Grain { levels, ..Grain::ANY }];
        let sink = ResultDestination::Regions(&grain);
        let exceeds = self.replace_sources_if_exceeded(state, engine, &graph, &gone, sink)?;
        if let Some(limits) = exceeds {
            let foreseen = self.check_schedule(state, engine, &graph, sink, limits);
            state.images.restore_sources();
            foreseen?;
        }
        Ok(exceeds.is_some())
    }

    /// Returns `true` if values, delivered `levels` at a time, are computed from unread images in slabs, and are large
    /// enough to overlap reading and delivery with computing.
    pub(crate) fn comes_in_slabs(&self, values: &[&Handle], levels: usize) -> Result<bool> {
        let ids = values.iter().map(|value| value.look()).collect::<Result<Vec<_>>>()?;
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        let (graph, _) = program_of(state, &ids);
        let reads = unread(state, &graph).any(|(v, _)| !state.images.in_memory.contains_key(&v));
        Ok(reads && bytes(&graph, graph.roots[0]) >= LARGE && thickness(state, &graph, levels, usize::MAX).is_some())
    }

    /// Returns `true` if each rank is to write its rows of a value that fits in memory: of a large one, or one that is
    /// computed from images on demand, which are large or requested as such.
    pub(crate) fn is_worth_distributing(&self, value: &Handle) -> Result<bool> {
        if self.ranks() == 1 {
            return Ok(false);
        }
        let id = value.look()?;
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        let (graph, _) = program_of(state, &[id]);
        Ok(bytes(&graph, graph.roots[0]) >= LARGE || unread(state, &graph).next().is_some())
    }

    /// Computes values part by part, and passes their pixels to the target: level by level and row by row, the
    /// channels of each pixel next to each other. Parts of the first value consist of whole chunks of its `grain`. The
    /// other values have as many levels, and their parts are the same fractions of their rows and columns. Reductions
    /// of unread images are computed first.
    ///
    /// # Errors
    /// Errors of an evaluation. If the target fails, every rank returns its error.
    pub(crate) fn stream(
        &self,
        values: &[&Handle],
        grains: &[Grain],
        call: Call,
        to: DeliveryTarget<'_>,
    ) -> Result<()> {
        let ids = values.iter().map(|value| value.look()).collect::<Result<Vec<_>>>()?;
        let mut state = self.lock("evaluating")?;
        self.guard(&mut state, |state| {
            let (graph, gone) = program_of(state, &ids);
            all_there(state, &graph)?;
            let engine = match self.engine() {
                Some(engine) => engine,
                None => self.choose_engine(state, &graph)?,
            };
            state.images.release(|_| false);
            let sink = ResultDestination::Regions(grains);
            let exceeded = self.replace_sources_if_exceeded(state, engine, &graph, &gone, sink)?;
            self.explain_reason(exceeded);
            let limits = match exceeded {
                Some(limits) => limits,
                None => self.limits(state, engine, &graph)?,
            };
            let schedule = self.scheduled(state, engine, (&graph, &gone), sink, limits)?;
            self.run_schedule(state, engine, schedule, call, to)
        })
    }

    /// Evaluates a value, and returns the rows that this rank takes, in whole chunks of `chunk` rows. Collective.
    pub(crate) fn bring_rows(&self, value: &Handle, chunk: usize) -> Result<RankRows> {
        let target = value.look()?;
        let mut state = self.lock("evaluating")?;
        self.guard(&mut state, |state| {
            let wants = [ResultDelivery::Distributed];
            let EvaluationResults { of_targets, mut delivered, strips } =
                self.try_run(state, &[target], &wants, DownloadStart::AtOnce)?;
            let internal = || self.not_on_host(DeviceError::Internal("a result is nowhere".into()));
            let node = of_targets.first().ok_or_else(internal);
            let own = node.and_then(|node| {
                let strips = strips.get(node).ok_or_else(internal)?;
                let whole = Rect::whole(strips.geometry.shape);
                self.own_rows(strips, delivered.remove(node), (whole, whole), Some(chunk))
            });
            own.map_err(EvaluationError::DuringExecution)
        })
    }

    /// Computes a value region by region into memory of its size; see [`Session::stream`].
    pub(crate) fn stream_into(&self, value: &Handle, call: Call, to: &mut [u8]) -> Result<()> {
        let shape = value.shape.stored();
        let kind = (shape, shape.pixel_bytes(value.dtype));
        let mut put = |Delivery { levels, region, .. }: Delivery, pixels: Option<&[u8]>| {
            pixels.into_iter().for_each(|pixels| self.put_levels(to, kind, levels.clone(), region, pixels));
            Ok(())
        };
        let failing = |cause| self.at_host(call, DeviceError::Internal(cause));
        self.stream(&[value], &[Grain::ANY], call, DeliveryTarget { put: &mut put, failing: &failing, chunk: None })
    }

    /// Computes the first `images` roots of a program region by region, into memory if they take a small part of it,
    /// otherwise into temporary files. Returns their names, and the values of the other roots, one `f64` each.
    pub(crate) fn evaluate_to_storage(
        &self,
        state: &mut SessionState,
        graph: Graph<Op>,
        images: usize,
        call: Call,
    ) -> Result<(Vec<ValueId>, Vec<f64>), EvaluationError> {
        /// Largest part of the memory for results is one in this many: a guess of what regions and the previous state
        /// use.
        const IN_MEMORY: usize = 4;
        all_there(state, &graph)?;
        let engine = self.choose_engine(state, &graph)?;
        state.images.release(|_| false);
        let limits = self.limits(state, engine, &graph)?;
        let limits = self.replace_sources(state, engine, &graph, limits)?;
        let kinds: Vec<(Shape, DType)> =
            graph.roots[..images].iter().map(|n| graph.node(*n)).map(|n| (n.shape, n.dtype.stored())).collect();
        let size = |(shape, dtype): &(Shape, DType)| shape.len() * dtype.size();
        let all: usize = kinds.iter().map(size).sum();
        let sink = ResultDestination::Regions(&[Grain::ANY]);
        let in_memory = if all <= limits.host / IN_MEMORY {
            self.schedule(state, engine, (&graph, &[]), sink, limits.reduced_by(all))?
        } else {
            None
        };
        let (in_memory, schedule) = match in_memory {
            Some(schedule) => (true, schedule),
            None => (false, self.scheduled(state, engine, (&graph, &[]), sink, limits)?),
        };
        let failing = |cause| Error::write(&temp_dir(), cause);
        let place = |kind: &(Shape, DType)| match in_memory {
            true => self
                .0
                .pool
                .try_allocate(size(kind))
                .map(ResultStorage::Memory)
                .map_err(|source| self.at_host(call, source)),
            false => TemporaryImage::new(kind.0, kind.1).map(ResultStorage::File).map_err(failing),
        };
        let mut places = kinds.iter().map(place).collect::<Result<Vec<_>>>()?;
        let mut numbers = vec![0.0; graph.roots.len() - images];
        let mut put = |Delivery { of, levels, region }: Delivery, pixels: Option<&[u8]>| {
            let Some(pixels) = pixels else { return Ok(()) };
            match places.get_mut(of) {
                Some(ResultStorage::File(file)) => return file.put(levels, region.inside(), pixels),
                Some(ResultStorage::Memory(to)) => {
                    let (shape, dtype) = kinds[of];
                    self.put_levels(to.bytes_mut(), (shape, shape.pixel_bytes(dtype)), levels, region, pixels);
                }
                None => numbers[of - images] = bytemuck::pod_read_unaligned(pixels),
            }
            Ok(())
        };
        let to = DeliveryTarget { put: &mut put, failing: &failing, chunk: None };
        self.run_schedule(state, engine, schedule, call, to)?;
        let mut named = |(place, (shape, dtype)): (ResultStorage, &(Shape, DType))| {
            let name = state.names.value();
            match place {
                ResultStorage::File(file) => {
                    drop(state.images.on_demand.insert(name, OnDemandImage::of(Arc::new(file), "a temporary file")))
                }
                ResultStorage::Memory(pixels) => {
                    state.images.give(name, *shape, *dtype, Some(pixels), Placement::Replicated)
                }
            }
            name
        };
        Ok((places.into_iter().zip(&kinds).map(&mut named).collect(), numbers))
    }

    /// Copies a region of some levels to its position in an image with pixels of this many bytes, on all workers.
    pub(crate) fn put_levels(
        &self,
        to: &mut [u8],
        (shape, element): (Shape, usize),
        levels: Range<usize>,
        region: Rect,
        pixels: &[u8],
    ) {
        let level = shape.area() * shape.channels * element;
        let of = Shape { depth: levels.len(), ..shape };
        let pieces: Vec<StridedCopy> = pieces(of, region, element).into_iter().map(StridedCopy::back).collect();
        self.workers().copy_pieces(pixels, &mut to[level * levels.start..level * levels.end], &pieces);
    }
}
