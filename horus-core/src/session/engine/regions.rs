//! Regions one after the other: while one is computed, one thread reads the next ones and another
//! takes the results of the last ones.
//!
//! A large picture file is a source without pixels (`session/images/on_demand.rs`): an evaluation determines
//! the part that it needs as for any region, and reads the chunks of the file that contain it. A
//! program that needs more than the available memory (predicted from the optimised program;
//! `HORUS_HOST_MEMORY`, the device's capacity, else most of the free memory) is computed in
//! regions, one after the other (`session/engine/regions.rs`): one thread reads the next two, one takes the
//! results of the last two (lands, cuts, encodes), and the program of each is planned like any
//! other. Sources are given as images of their own and coordinates begin at a number that is read,
//! so that regions of one extent share a plan, unless affine maps begin elsewhere. Their shape
//! (`region::Division`) minimises computed and decoded pixels: strips of whole rows unless tiles
//! are cheaper by a tenth or strips do not fit. Reductions come first, in passes of their own over bands of rows
//! (`session/compile/schedule.rs`): the canonical order is defined on results of rows, and histograms and
//! exact sums add up as integers, so the bits are those of the whole. Intermediate values with
//! handles are not kept, but recomputed when read. On several ranks, rank 0 reads and writes, each
//! region is divided in strips as any image is, and all ranks learn of a failure before the next
//! region. Large images in the memory of a single process are lent to such a program (`Session::replace_sources`):
//! their regions are copied like those of files are read. Sources that regions would decode again and again, for the size of
//! their chunks, are decoded once, to temporary files (`Later::once`). `--explain` prints divisions and passes, `Session::forecast_memory` predicts them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, mpsc};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::comm::share;
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
use crate::session::engine::failure::EvaluationError;
use crate::session::engine::run::ProgramRun;
use crate::session::images::on_demand::pieces;
use crate::session::images::on_demand::{DecodedStrips, FetchedPixels, PixelReadError, RegionInput};
use crate::session::{Session, SessionState};
use crate::shape::Shape;

/// The results of a region, on the way to the host.
struct RegionResults {
    number: usize,
    nodes: Vec<NodeId>,
    delivered: HashMap<NodeId, Delivered>,
    /// Shape and bytes of a pixel of each.
    extents: Vec<(Shape, usize)>,
    cuts: Vec<(Rect, Rect)>,
}

/// The reason why no further results are taken.
enum TakerFailure {
    /// They do not arrive.
    Device(DeviceError),
    /// The taker failed.
    Taking(String),
}

/// Takes the results of a region, given its number.
pub(crate) type ResultTaker<'a> = &'a mut (dyn FnMut(usize, &[&HostBuffer]) -> Result<(), String> + Send);
/// The error of a taker's cause.
pub(crate) type ErrorFromCause<'a> = &'a dyn Fn(String) -> Error;
/// Creates the program of a region.
pub(crate) type RestrictedProgramMaker<'a> = &'a mut dyn FnMut(&SessionState, usize) -> RestrictedProgram;

impl Session {
    /// Runs the programs of `count` regions. `take` gets the results of each, in order, on another
    /// thread, on the ranks that want them; its error on rank 0 ends all, and all ranks return it.
    pub(crate) fn run_jobs(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        count: usize,
        want: ResultDelivery,
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
                    take(number, &landed.iter().map(|b| &**b).collect::<Vec<_>>()).map_err(TakerFailure::Taking)
                })
            });
            let mut waiting = VecDeque::new();
            let mut next = 0;
            let mut run = || -> Result<(), EvaluationError> {
                for number in 0..count {
                    while next < count && next <= number + AHEAD {
                        let job = make(state, next);
                        // The only listener may have ended; the loop ends after this.
                        let _ = ask.send(job.parts.clone());
                        waiting.push_back(job);
                        next += 1;
                    }
                    let Some(job) = waiting.pop_front() else { break };
                    let died = || Ok(Vec::new());
                    let read = answers.recv().unwrap_or_else(|_| died());
                    let read = self.agreed_read(read)?;
                    // The taker may have failed: on rank 0, or on all ranks alike.
                    let failed = self.agreed("computing regions", || taking.is_finished())?;
                    if failed {
                        break;
                    }
                    job.parts.iter().zip(read).for_each(|(part, pixels)| self.give_part(state, part, pixels));
                    let taken = self.run_job(state, engine, number, job, want)?;
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
            // The same on all ranks, and the images are as before.
            self.agreed("computing regions", || taken.err())?
                .map_or(Ok(()), |cause| Err(EvaluationError::BeforeExecution(failing(cause))))
        })
    }

    /// What rank 0 makes of this, on every rank.
    pub(crate) fn agreed<T>(&self, op: &str, make: impl FnOnce() -> T) -> Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        share(&*self.0.comm, 0, make).map_err(|e| e.during(self.rank(), op))
    }

    /// Runs the program of a region, whose parts are in memory.
    fn run_job(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        number: usize,
        job: RestrictedProgram,
        want: ResultDelivery,
    ) -> Result<RegionResults, EvaluationError> {
        let RestrictedProgram { graph, parts, cuts } = job;
        let own: Vec<_> = parts.iter().map(|p| p.value).collect();
        let extents =
            graph.roots.iter().map(|n| graph.node(*n)).map(|n| (n.shape, n.shape.pixel_bytes(n.dtype))).collect();
        // The host of one lane is that of all.
        let want = if engine.device_count() > 1 { ResultDelivery::Requester } else { want };
        let wants = vec![want; graph.roots.len()];
        let mut request = self.request(engine, state, graph, wants, &own);
        request.mappable = self.mappable(engine, state, &request.sources, DownloadStart::AtOnce);
        let made = self.perform(state, engine, request, (true, DownloadStart::AtOnce));
        // The parts read for this region, and its intermediates, are dropped now.
        own.iter().for_each(|v| drop(state.images.in_memory.remove(v)));
        let ProgramRun { roots: nodes, delivered, .. } = made?;
        Ok(RegionResults {
            number,
            nodes,
            delivered: delivered.map_err(EvaluationError::DuringExecution)?,
            extents,
            cuts,
        })
    }
}

impl RegionResults {
    /// Waits for the results: all requested ones, cropped to the requested regions.
    fn land(self, session: &Session) -> Result<(usize, Vec<Arc<HostBuffer>>), DeviceError> {
        let RegionResults { number, nodes, delivered, extents, cuts } = self;
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
        Ok((number, results))
    }
}
