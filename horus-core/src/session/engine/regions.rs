//! Regions of a program that does not fit in memory, computed one after the other.
//!
//! While a region is computed, one thread reads the next ones and another delivers the results of the last ones. Each
//! region's program is planned like any other. Regions of one shape share a plan, because their sources are images of
//! their own and coordinates begin at a number that the program reads. On several ranks, each region is divided in
//! strips, and all ranks learn of a failure before the next region. The design is in `docs/design/regions.md`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, mpsc};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::comm::{share, share_first};
use crate::device::DownloadStart;
use crate::error::{DeviceError, Error, Result};
use crate::execute::Delivered;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::ResultDelivery;
use crate::region::Rect;
use crate::session::compile::memory::{AHEAD, BEHIND};
use crate::session::compile::region::RestrictedProgram;
use crate::session::devices::Engine;
use crate::session::engine::distribute::{RankRows, RankStrips};
use crate::session::engine::failure::EvaluationError;
use crate::session::engine::run::ProgramRun;
use crate::session::images::on_demand::pieces;
use crate::session::images::on_demand::{DecodedStrips, FetchedPixels, PixelReadError, RegionInput};
use crate::session::{Session, SessionState};
use crate::shape::{Shape, Window};

/// Results of a region on the way to the host.
struct RegionResults {
    number: usize,
    nodes: Vec<NodeId>,
    delivered: HashMap<NodeId, Delivered>,
    /// Shape of each result, and bytes of a pixel.
    extents: Vec<(Shape, usize)>,
    cuts: Vec<(Rect, Rect)>,
    /// Rows of each result that this rank takes, instead of `delivered`, if each rank takes its own.
    rows: Option<Vec<RankRows>>,
}

/// A result of a region.
pub(crate) struct RegionResult {
    /// Rows of the image, if this rank takes only these.
    pub(crate) rows: Option<Window>,
    pub(crate) pixels: Arc<HostBuffer>,
}

/// Delivery of the results of a region.
#[derive(Clone, Copy)]
pub(crate) struct RegionDelivery {
    pub(crate) want: ResultDelivery,
    /// Rows of the chunks that each rank takes, if the results are distributed; `None` if rank 0 takes all.
    pub(crate) chunk: Option<usize>,
}

/// Reason why no further results are delivered.
enum TakerFailure {
    /// Results do not arrive.
    Device(DeviceError),
    /// The consumer failed.
    Taking(String),
}

/// Receives the results of a region, and its number.
pub(crate) type ResultTaker<'a> = &'a mut (dyn FnMut(usize, &[RegionResult]) -> Result<(), String> + Send);
/// Converts a consumer's error.
pub(crate) type ErrorFromCause<'a> = &'a dyn Fn(String) -> Error;
/// Creates the program of a region.
pub(crate) type RestrictedProgramMaker<'a> = &'a mut dyn FnMut(&SessionState, usize) -> RestrictedProgram;

impl Session {
    /// Runs the programs of `count` regions. `take` receives the results of each, in order, on another thread, on the
    /// ranks that want them. Its first error ends all regions, and all ranks return it.
    pub(crate) fn run_jobs(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        count: usize,
        delivery: &dyn Fn(usize) -> RegionDelivery,
        make: RestrictedProgramMaker<'_>,
        (take, failing): (ResultTaker<'_>, ErrorFromCause<'_>),
    ) -> Result<(), EvaluationError> {
        std::thread::scope(|scope| {
            let (ask, asked) = mpsc::channel::<Vec<RegionInput>>();
            let (answer, answers) = mpsc::channel::<Result<Vec<FetchedPixels>, PixelReadError>>();
            let (hand, handed) = mpsc::sync_channel::<RegionResults>(BEHIND - 1);
            scope.spawn(move || {
                let mut strips = DecodedStrips::default();
                for parts in asked {
                    strips.only(&parts);
                    let read = parts.iter().map(|part| part.read(self, Some(&mut strips))).collect();
                    if answer.send(read).is_err() {
                        return;
                    }
                }
            });
            let taking = scope.spawn(move || {
                handed.into_iter().try_for_each(|taken| {
                    let (number, landed) = taken.land(self).map_err(TakerFailure::Device)?;
                    take(number, &landed).map_err(TakerFailure::Taking)
                })
            });
            let mut waiting = VecDeque::new();
            let mut next = 0;
            let mut readers = None;
            let mut run = || -> Result<(), EvaluationError> {
                for number in 0..count {
                    while next < count && next <= number + AHEAD {
                        let mut job = make(state, next);
                        let program = (&job.graph, &*job.parts);
                        let readers = match readers {
                            Some(readers) => readers,
                            None => *readers.insert(self.choose_readers(
                                engine,
                                state,
                                program,
                                &vec![delivery(next).want; job.graph.roots.len()],
                            )?),
                        };
                        self.place_inputs(readers, &job.graph, &mut job.parts);
                        // The only receiver may have ended; the loop ends after this.
                        let _ = ask.send(job.parts.clone());
                        waiting.push_back(job);
                        next += 1;
                    }
                    let Some(job) = waiting.pop_front() else { break };
                    let died = || Ok(Vec::new());
                    let read = answers.recv().unwrap_or_else(|_| died());
                    let read = self.agreed_read(read)?;
                    // The consumer may have failed.
                    let failed = taking.is_finished().then_some(());
                    if self.first_of_ranks("computing regions", failed)?.is_some() {
                        break;
                    }
                    job.parts.iter().zip(read).for_each(|(part, pixels)| self.give_part(state, part, pixels));
                    let taken = self.run_job(state, engine, number, job, delivery(number))?;
                    if hand.send(taken).is_err() {
                        continue; // reported with the next region
                    }
                }
                Ok(())
            };
            let ran = run();
            drop((ask, hand));
            let panicked = |_| Err(TakerFailure::Taking("a thread that takes results has panicked".into()));
            let taken = taking.join().unwrap_or_else(panicked);
            ran?;
            let taken = match taken {
                Ok(()) => Ok(()),
                Err(TakerFailure::Taking(cause)) => Err(cause),
                Err(TakerFailure::Device(source)) => {
                    let (op, device) = ("download of a region".into(), self.device_name());
                    return Err(EvaluationError::DuringExecution(Error::Device { op, device, source }));
                }
            };
            // This is the same on all ranks, and the images are as before.
            self.first_of_ranks("computing regions", taken.err())?
                .map_or(Ok(()), |cause| Err(EvaluationError::BeforeExecution(failing(cause))))
        })
    }

    /// Result of `make` on rank 0, on every rank.
    pub(crate) fn agreed<T>(&self, op: &str, make: impl FnOnce() -> T) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        share(&*self.0.comm, 0, make).map_err(|e| e.during(self.rank(), op))
    }

    /// What the first rank has that has something, on every rank.
    pub(crate) fn first_of_ranks<T>(&self, op: &str, mine: Option<T>) -> Result<Option<T>>
    where
        T: Serialize + DeserializeOwned,
    {
        share_first(&*self.0.comm, mine).map_err(|e| e.during(self.rank(), op))
    }

    /// Runs the program of a region, whose inputs are in memory.
    fn run_job(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        number: usize,
        job: RestrictedProgram,
        RegionDelivery { want, chunk }: RegionDelivery,
    ) -> Result<RegionResults, EvaluationError> {
        let RestrictedProgram { graph, parts, cuts } = job;
        let own: Vec<_> = parts.iter().map(|p| p.value).collect();
        let extents =
            graph.roots.iter().map(|n| graph.node(*n)).map(|n| (n.shape, n.shape.pixel_bytes(n.dtype))).collect();
        // Devices of a process share their host.
        let want = if engine.device_count() > 1 { ResultDelivery::Requester } else { want };
        let wants = vec![want; graph.roots.len()];
        let mut request = self.request(engine, state, graph, wants, &own);
        request.mappable = self.mappable(engine, state, &request.sources, DownloadStart::AtOnce);
        let made = self.perform(state, engine, request, (true, DownloadStart::AtOnce));
        let strips =
            |made: &ProgramRun| made.roots.iter().map(|root| self.distribution_of(state, made, *root)).collect();
        let strips: Option<Vec<RankStrips>> =
            made.as_ref().ok().filter(|_| want == ResultDelivery::Distributed).and_then(strips);
        // Inputs of this region, and intermediates, are dropped now.
        own.iter().for_each(|v| drop(state.images.in_memory.remove(v)));
        let ProgramRun { roots: nodes, delivered, .. } = made?;
        let mut delivered = delivered.map_err(EvaluationError::DuringExecution)?;
        let mut own_rows = |((strips, node), cut): ((&RankStrips, &NodeId), &(Rect, Rect))| {
            self.own_rows(strips, delivered.remove(node), *cut, chunk)
        };
        let rows = strips.map(|strips| strips.iter().zip(&nodes).zip(&cuts).map(&mut own_rows).collect());
        let rows = rows.transpose().map_err(EvaluationError::DuringExecution)?;
        Ok(RegionResults { number, nodes, delivered, extents, cuts, rows })
    }
}

impl RegionResults {
    /// Waits for the requested results, cropped to the requested regions.
    fn land(self, session: &Session) -> Result<(usize, Vec<RegionResult>), DeviceError> {
        let RegionResults { number, nodes, delivered, extents, cuts, rows } = self;
        if let Some(rows) = rows {
            return Ok((
                number,
                rows.into_iter().map(|RankRows { rows, pixels }| RegionResult { rows: Some(rows), pixels }).collect(),
            ));
        }
        let land = |(n, delivered)| match delivered {
            Delivered::OnHost(host) => Ok((n, Arc::new(host))),
            Delivered::InFlight(landing) => Ok((n, Arc::new(landing.wait()?))),
        };
        let landed: HashMap<_, _> = delivered.into_iter().map(land).collect::<Result<_, DeviceError>>()?;
        let mut results: Vec<_> = nodes.iter().filter_map(|n| landed.get(n).cloned()).collect();
        for ((result, (asked, has)), (shape, element)) in results.iter_mut().zip(cuts).zip(extents) {
            if asked != has {
                let mut part = session.0.pool.try_allocate_unbounded(asked.area() * shape.planes() * element)?;
                let pieces = pieces(shape, asked.seen_from(has), element);
                session.workers().copy_pieces(result.bytes(), part.bytes_mut(), &pieces);
                *result = Arc::new(part);
            }
        }
        Ok((number, results.into_iter().map(|pixels| RegionResult { rows: None, pixels }).collect()))
    }
}
