//! Runs the stages of a schedule: values of images that do not fit in memory, region by region.

use std::env::temp_dir;

use crate::dtype::DType;
use crate::error::{Call, Cause, DeviceError, Error};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::ops::Whole;
use crate::ops::reduce::RowReduce;
use crate::plan::ResultDelivery;
use crate::plan::state::Placement;
use crate::region::Rect;
use crate::session::compile::memory::{MemoryLimits, bytes, present};
use crate::session::compile::region::{RestrictedProgram, reductions_of, rows_of};
use crate::session::compile::schedule::{ProgramSchedule, ScheduleStage, SlabSchedule, StageKind};
use crate::session::devices::Engine;
use crate::session::engine::failure::EvaluationError;
use crate::session::engine::regions::{ErrorFromCause, RegionDelivery, RegionResult};
use crate::session::images::swept::{SweepFailure, SweptImage};
use crate::session::{Session, SessionState};
use crate::shape::{Shape, Window};

/// A part of the results: result, levels and region.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) of: usize,
    pub(crate) levels: std::ops::Range<usize>,
    pub(crate) region: Rect,
}

/// Receives the pixels of a part, or none if another rank does; errors are text.
pub(crate) type DeliveryWriter<'a> = dyn FnMut(Delivery, Option<&[u8]>) -> Result<(), String> + Send + 'a;

/// Receiver of results that are delivered part by part.
pub(crate) struct DeliveryTarget<'a> {
    pub(crate) put: &'a mut DeliveryWriter<'a>,
    /// Converts its errors.
    pub(crate) failing: ErrorFromCause<'a>,
    /// Rows and columns of the chunks of which each rank receives some, if they do not all go to rank 0.
    pub(crate) chunk: Option<(usize, usize)>,
}

impl Session {
    /// Passes the explanation of an evaluation by regions to the explain sink.
    pub(crate) fn explain_regions(&self, text: &str) {
        log::info!("{text}");
        if let Some(sink) = &self.0.settings.explain {
            sink(&format!("regions:\n{text}\n"));
        }
    }

    /// Passes the reason for an evaluation by regions to the explain sink: the limits that the program as a whole
    /// exceeds, or none if results are delivered while others are computed.
    pub(crate) fn explain_reason(&self, limits: Option<MemoryLimits>) {
        self.explain_regions(&match limits {
            Some(limits) => format!("the program does not fit as a whole: images may take {limits}"),
            None => "the results are delivered while others are computed".into(),
        });
    }

    /// Computes the values of all stages in order, as images of the session; adds their names to `own`.
    pub(crate) fn run_stages(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        stages: &[ScheduleStage],
        own: &mut Vec<ValueId>,
    ) -> Result<(), EvaluationError> {
        for stage in stages {
            let ScheduleStage { graph, nodes, kind, parts, values } = stage;
            let names = nodes.iter().map(|n| graph.node(*n).op.name()).collect::<Vec<_>>().join(", ");
            let is_reduction = matches!(kind, StageKind::Reductions);
            let prefix = match kind {
                StageKind::Images => "",
                StageKind::Reductions => "reduction ",
                StageKind::Sweep(_) => "sweep ",
            };
            self.explain_regions(&format!("{prefix}{names} in {parts}"));
            if let StageKind::Sweep(image) = kind {
                self.sweep(state, engine, parts, image)?;
                continue;
            }
            let room = |n: &NodeId| {
                let call = Call { op: "evaluating by regions", site: graph.node(*n).site.site };
                let room = self.0.pool.try_allocate(bytes(graph, *n));
                // Other ranks may have enough memory, and continue.
                let mut room = room.map_err(|e| EvaluationError::DuringExecution(self.at_host(call, e)))?;
                if is_reduction {
                    room.bytes_mut().fill(0); // counts are added
                }
                Ok(room)
            };
            let mut results = nodes.iter().map(room).collect::<Result<Vec<_>, EvaluationError>>()?;
            let want = if self.ranks() == 1 { ResultDelivery::Requester } else { ResultDelivery::Everyone };
            let delivery = |_| RegionDelivery { want, chunk: None };
            let mut job = |state: &SessionState, i: usize| stage.job(state, parts.part(i).1);
            let mut take = |i: usize, taken: &[RegionResult]| {
                let taken: Vec<_> = taken.iter().map(|result| &*result.pixels).collect();
                stage.take(self, parts.part(i).1, &mut results, &taken);
                Ok(())
            };
            // Results are copied to memory: only a panic of a thread can fail there.
            let failing = |cause| Error::Device {
                op: "bringing regions".into(),
                device: "the host".into(),
                source: DeviceError::Internal(cause),
            };
            self.run_jobs(state, engine, parts.count(), &delivery, &mut job, (&mut take, &failing))?;
            for ((n, value), pixels) in nodes.iter().zip(values).zip(results) {
                let Node { shape, dtype, .. } = *graph.node(*n);
                own.push(*value);
                state.images.give(*value, shape, dtype, Some(pixels), Placement::Replicated);
            }
        }
        Ok(())
    }

    /// Sweeps over the roots of a stage, on every rank; `image` then has pixels.
    fn sweep(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        parts: &SlabSchedule,
        image: &SweptImage,
    ) -> Result<(), EvaluationError> {
        let failing = |cause| Error::write(&temp_dir(), cause);
        let room = self.reserve(image.scratch_bytes());
        let _room = room.map_err(|source| EvaluationError::DuringExecution(self.at_host(image.call(), source)))?;
        let begun = image.begin(parts.is_in_order());
        let cause = self.first_of_ranks("computing regions", begun.as_ref().err().cloned())?;
        let mut sweep = match (begun, cause) {
            (Ok(sweep), None) => sweep,
            (begun, cause) => {
                let cause = cause.or(begun.err()).unwrap_or_default();
                return Err(EvaluationError::BeforeExecution(failing(cause)));
            }
        };
        let want = if self.ranks() == 1 { ResultDelivery::Requester } else { ResultDelivery::Everyone };
        let delivery = |_| RegionDelivery { want, chunk: None };
        let mut make = |state: &SessionState, i: usize| {
            let (slab, region) = parts.part(i);
            RestrictedProgram::of(state, &slab.graph, &vec![region; slab.graph.roots.len()])
        };
        let mut take = |i: usize, taken: &[RegionResult]| {
            let (slab, region) = parts.part(i);
            let taken: Vec<&[u8]> = taken.iter().map(|result| result.pixels.bytes()).collect();
            sweep.take(slab.levels.clone(), region.inside(), &taken, self.workers())
        };
        self.run_jobs(state, engine, parts.count(), &delivery, &mut make, (&mut take, &failing))?;
        let done = image.finish(sweep, self.workers(), &|| self.0.settings.canceller.check().is_err());
        let failed = self.first_of_ranks("computing regions", done.err())?;
        failed.map_or(Ok(()), |failure| {
            Err(EvaluationError::BeforeExecution(match failure {
                SweepFailure::File(cause) => failing(cause),
                SweepFailure::Result(message) => Error::parameter(image.call(), message),
                SweepFailure::Stopped => {
                    self.0.settings.canceller.check().err().unwrap_or(Error::Cancelled(Cause::Asked))
                }
            }))
        })
    }

    /// Runs a schedule whose results a target receives. Its errors are the same on every rank.
    pub(crate) fn run_schedule(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        ProgramSchedule { stages, rest, taken, own }: ProgramSchedule,
        call: Call,
        to: DeliveryTarget<'_>,
    ) -> Result<(), EvaluationError> {
        let mut own = own;
        let done = self.run_stages(state, engine, &stages, &mut own).and_then(|()| match &taken {
            Some(taken) => self.deliver(state, engine, (&rest, taken), call, to),
            None => Ok(()),
        });
        state.images.forget(own);
        done
    }

    /// Computes the results of a program without reductions, part by part.
    fn deliver(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        (graph, taken): (&Graph<Op>, &SlabSchedule),
        call: Call,
        DeliveryTarget { put, failing, chunk }: DeliveryTarget<'_>,
    ) -> Result<(), EvaluationError> {
        let room = self.reserve(if self.rank() == 0 || chunk.is_some() { taken.waiting } else { 0 });
        let _room = room.map_err(|source| EvaluationError::DuringExecution(self.at_host(call, source)))?;
        let stored = graph.node(graph.roots[0]);
        let result =
            if let Op::Whole(Whole::Interleave(_)) = stored.op { graph.node(stored.inputs[0]) } else { stored };
        self.explain_regions(&format!("{} in {taken}", result.op.name()));
        let want = match chunk {
            _ if self.ranks() == 1 => ResultDelivery::Requester,
            None => ResultDelivery::Root,
            Some(_) => ResultDelivery::Distributed,
        };
        let whole =
            |region: Rect| chunk.filter(|chunk| is_of_chunks(region, *chunk, stored.shape)).map(|chunk| chunk.0);
        // Rank 0 joins chunks that several regions have parts of.
        let delivery = |i: usize| RegionDelivery { want, chunk: whole(taken.part(i).1) };
        let mut make = |state: &SessionState, i: usize| {
            let (slab, region) = taken.part(i);
            RestrictedProgram::of_shares(state, &slab.graph, region)
        };
        let is_root = self.rank() == 0;
        let mut take = |i: usize, results: &[RegionResult]| {
            let (slab, region) = taken.part(i);
            for ((of, region), RegionResult { rows, pixels }) in present(&slab.graph, region).into_iter().zip(results) {
                let mut put = |region, pixels| put(Delivery { of, levels: slab.levels.clone(), region }, pixels);
                match rows {
                    None if is_root => put(region, Some(pixels.bytes()))?,
                    None => {}
                    Some(rows) => parts_of(region, *rows)
                        .into_iter()
                        .try_for_each(|(region, is_own)| put(region, is_own.then_some(pixels.bytes())))?,
                }
            }
            Ok(())
        };
        self.run_jobs(state, engine, taken.count(), &delivery, &mut make, (&mut take, failing))
    }
}

/// Returns `true` if a region of an image consists of whole chunks.
fn is_of_chunks(Rect { rows, columns }: Rect, (height, width): (usize, usize), of: Shape) -> bool {
    let whole = |range: Window, chunk: usize, all: usize| {
        let is_edge = |at: usize| at == all || at.is_multiple_of(chunk.max(1));
        is_edge(range.start.unsigned_abs()) && is_edge(range.end.unsigned_abs())
    };
    whole(rows, height, of.height) && whole(columns, width, of.width)
}

/// Parts of a region that have pixels: this rank's rows, with `true`, and those before and after them.
pub(crate) fn parts_of(region: Rect, rows: Window) -> Vec<(Rect, bool)> {
    let part = |start, end, is_own| (Rect { rows: Window::new(start, end), ..region }, is_own);
    let parts = [
        part(region.rows.start, rows.start, false),
        part(rows.start, rows.end, true),
        part(rows.end, region.rows.end, false),
    ];
    parts.into_iter().filter(|(part, _)| !part.is_empty()).collect()
}

impl ScheduleStage {
    /// Program of a region of the results, or of the images that are reduced.
    fn job(&self, state: &SessionState, region: Rect) -> RestrictedProgram {
        let ScheduleStage { graph, nodes, kind, .. } = self;
        if !matches!(kind, StageKind::Reductions) {
            return RestrictedProgram::of(state, graph, &vec![region; graph.roots.len()]);
        }
        reductions_of(state, graph, nodes, region)
    }

    /// Copies or adds the results of a region to the results of the stage.
    fn take(&self, session: &Session, region: Rect, results: &mut [HostBuffer], taken: &[&HostBuffer]) {
        let nodes = self.nodes.iter().map(|n| self.graph.node(*n));
        for ((node, result), part) in nodes.zip(results).zip(taken) {
            let Node { op, shape, dtype, .. } = node;
            let of = (*shape, shape.pixel_bytes(*dtype));
            if !matches!(self.kind, StageKind::Reductions) {
                session.put_levels(result.bytes_mut(), of, 0..shape.depth, region, part.bytes());
                continue;
            }
            match (op, rows_of(op, *shape, region)) {
                // The columns to the left were processed before.
                (Op::Whole(Whole::RowReduce(how)), (Some(first), rows)) if region.columns.start > 0 => {
                    join_rows(*how, (result, *shape), (part, rows), (first, *dtype));
                }
                (_, (Some(first), rows)) => {
                    session.put_levels(result.bytes_mut(), of, 0..shape.depth, rows_from(first, rows), part.bytes());
                }
                (_, (None, _)) => add(result, part),
            }
        }
    }
}

/// Joins results of rows from `first` on with results of the following columns.
fn join_rows(
    how: RowReduce,
    (to, whole): (&mut HostBuffer, Shape),
    (from, part): (&HostBuffer, Shape),
    (first, dtype): (usize, DType),
) {
    let (plane, rows) = (whole.area(), part.area());
    crate::dispatch!(dtype.stored(), T => {
        let planes = to.as_mut_slice::<T>().chunks_mut(plane).zip(from.as_slice::<T>().chunks(rows));
        planes.for_each(|(to, from)| how.join(&mut to[first * whole.width..][..rows], from));
    });
}

/// Rows from `first` on, as many as `part` has.
fn rows_from(first: usize, part: Shape) -> Rect {
    let rows = Window::new(first.cast_signed(), (first + part.height).cast_signed());
    Rect { rows, ..Rect::whole(part) }
}

/// Adds integer counts, in any order.
fn add(to: &mut HostBuffer, from: &HostBuffer) {
    let from: &[f64] = from.as_slice();
    let to: &mut [f64] = bytemuck::cast_slice_mut(to.bytes_mut());
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}
