//! Loops: a step is recorded once, and a plan of several consecutive iterations runs repeatedly, each time on the
//! results of the previous run.
//!
//! `Session::iterate` calls its step once, on stand-ins, and takes the recorded operations as the *body*
//! ([`LoopBody`]). The host neither records nor plans while the loop runs, and waits only for the numbers that end it.
//! A step that reads values, or contains a loop, is called in each iteration. The design is in `docs/design/loops.md`.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::device::DownloadStart;
use crate::dtype::DType;
use crate::error::{Call, DeviceError, Error, Result, Site};
use crate::execute::Delivered;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{Graph, NodeId, Op, ValueId};
use crate::plan::ResultDelivery;
use crate::record::{LoopBody, RecordId};
use crate::session::blocks::BlockMap;
use crate::session::compile::schedule::{Grain, ResultDestination, reduces};
use crate::session::devices::Engine;
use crate::session::engine::blocks::contraction::contracts;
use crate::session::engine::deliver::program_of;
use crate::session::engine::failure::EvaluationError;
use crate::session::images::on_demand::OnDemandImage;
use crate::session::images::swept::is_swept;
use crate::session::{Handle, Pending, Session, SessionState, StandIns};
use crate::shape::Shape;

/// Maximum number of operations in one plan.
const PLANNED: usize = 256;
/// Maximum number of iterations in one plan.
const UNROLLED: usize = 16;
/// Destination of an iteration's results in a loop by regions.
const TAKEN: ResultDestination<'_> = ResultDestination::Regions(&[Grain::ANY]);

/// Number of iterations in one plan.
fn together(body: &LoopBody) -> usize {
    (PLANNED / body.operations().max(1)).clamp(1, UNROLLED)
}

/// End of a loop, and the iterations that are measured or watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopLimits {
    /// Number of iterations that were made before the loop.
    pub(crate) done: usize,
    /// Maximum number of iterations.
    pub(crate) steps: usize,
    /// Iterations between measurements; `None` if nothing is measured.
    pub(crate) measured: Option<usize>,
    /// Numbers of iterations between calls of `watch`, for two purposes.
    pub(crate) watched: [Option<usize>; 2],
}

impl LoopLimits {
    /// Next iteration after `done` that is measured, watched or the last.
    fn next(&self, done: usize) -> usize {
        let after = |every: Option<usize>| every.map_or(usize::MAX, |n| (done / n + 1).saturating_mul(n));
        self.watched.iter().fold(self.steps.min(after(self.measured)), |next, every| next.min(after(*every)))
    }

    /// Returns `true` if so many iterations lie between measurements or calls of `watch`.
    fn is_interval(&self, steps: usize) -> bool {
        self.measured == Some(steps) || self.watched.contains(&Some(steps))
    }

    /// Returns `true` if an iteration is measured; the last one always is, unless nothing is measured.
    fn measures(&self, step: usize) -> bool {
        self.measured.is_some_and(|n| step == self.steps || step.is_multiple_of(n))
    }

    fn watches(&self, step: usize) -> bool {
        self.watched.iter().flatten().any(|n| step.is_multiple_of(*n))
    }
}

/// A recorded loop.
pub(crate) struct RecordedLoop<'a> {
    /// Initial state, which is released after the first iterations.
    pub(crate) initial: Vec<Handle>,
    /// Stand-ins for the state in the recorded step.
    pub(crate) stand_ins: &'a StandIns,
    /// Results of the step.
    pub(crate) next: &'a [&'a Handle],
    /// Measured values of an iteration.
    pub(crate) measured: &'a [&'a Handle],
    /// Call of the program.
    pub(crate) site: Site,
}

/// Outcome of a loop.
pub(crate) enum LoopResult {
    /// State after this many iterations.
    After(usize, Vec<Handle>),
    /// Initial state: a value of the step was observed, so the recording no longer is the step.
    LookedInto(Vec<Handle>),
}

/// A measured iteration, whose numbers are not read yet.
struct MeasuredStep {
    step: usize,
    state: Vec<ValueId>,
    pending: Pending,
}

/// A running loop.
struct RunningLoop<'a> {
    session: &'a Session,
    body: LoopBody,
    /// The state. `own` contains the images that the loop made.
    now: Vec<ValueId>,
    /// Shapes and types of the state, as it is stored.
    kinds: Vec<(Shape, DType)>,
    own: HashSet<ValueId>,
    /// Values that may be the result.
    pinned: Vec<ValueId>,
    /// Handles of the state that the program shares; they are released only after the next iterations.
    shared: Vec<Handle>,
    /// Number of iterations in one plan.
    most: usize,
    /// `true` if the state and an iteration do not fit in memory.
    by_regions: bool,
    /// Blocks in which iterations are computed, and a session of this rank only.
    blocks: Option<(Arc<BlockMap>, Session)>,
    /// Call of the program.
    site: Site,
}

/// A loop that is ready to run, or its initial state as for [`LoopResult::LookedInto`].
enum PreparedLoop<'a> {
    Running(Box<RunningLoop<'a>>),
    LookedInto(Vec<Handle>),
}

impl Session {
    /// Evaluates values in place, for later operations.
    pub(crate) fn evaluate_these(&self, values: &[&Handle]) -> Result<()> {
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        let ids = self.records_of(values)?;
        self.evaluate_records(state, ids)
    }

    pub(crate) fn evaluate_records(&self, state: &mut SessionState, mut ids: Vec<RecordId>) -> Result<()> {
        ids.retain(|id| state.program.value(*id).is_none());
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        self.run(state, &ids, &vec![ResultDelivery::Keep; ids.len()], DownloadStart::AtOnce).map(drop)
    }

    /// Refuses a loop whose step is called in each iteration if its state does not fit in memory twice, before anything
    /// is read.
    pub(crate) fn check_loop_fits(&self, given: &[&Handle], site: Site) -> Result<()> {
        let (bound, used) = self.0.pool.bounds();
        let state = self.lock("evaluating")?;
        let there = state.images.in_memory.values().filter_map(|image| image.host()).map(HostBuffer::counted).sum();
        drop(state);
        let used = used.saturating_sub(there);
        let bytes = given.iter().map(|h| h.shape.len().saturating_mul(2 * h.dtype.size()));
        let bytes = bytes.fold(0, usize::saturating_add);
        let unified = self.engine().is_none_or(Engine::unified);
        if self.ranks() > 1 || !unified || bytes <= self.0.pool.most().saturating_sub(used) {
            return Ok(());
        }
        let source = DeviceError::OutOfMemory { bytes, used, bound };
        Err(self.at_host(Call { op: "iterate", site }, source))
    }

    fn records_of(&self, values: &[&Handle]) -> Result<Vec<RecordId>> {
        let ids: std::result::Result<Vec<RecordId>, _> = values.iter().map(|h| h.record.clone()).collect();
        ids.or_else(|failure| self.fail(&failure))
    }

    /// Runs a loop. `decide` receives each measured iteration with its numbers, `watch` each watched iteration with the
    /// state. The initial state is evaluated.
    pub(crate) fn run_loop(
        &self,
        looped: RecordedLoop<'_>,
        ends: LoopLimits,
        decide: &mut dyn FnMut(usize, &[f64]) -> ControlFlow<()>,
        watch: &mut dyn FnMut(usize, Vec<Handle>) -> Result<ControlFlow<()>>,
    ) -> Result<LoopResult> {
        let mut running = match self.loop_of(looped, ends.steps - ends.done)? {
            PreparedLoop::Running(running) => running,
            PreparedLoop::LookedInto(initial) => return Ok(LoopResult::LookedInto(initial)),
        };
        let ended = running.all(ends, decide, watch).and_then(|steps| Ok(LoopResult::After(steps, running.handles()?)));
        if ended.is_err() {
            running.now.clear();
        }
        running.pinned.clear();
        running.let_go(&mut self.acquire());
        ended
    }

    /// Prepares the loop; returns its initial state if the step was observed.
    fn loop_of(&self, looped: RecordedLoop<'_>, steps: usize) -> Result<PreparedLoop<'_>> {
        let RecordedLoop { initial: shared, stand_ins, next, measured, site } = looped;
        let initial = self.records_of(&shared.iter().collect::<Vec<_>>())?;
        let placeholders = self.records_of(&stand_ins.handles().iter().collect::<Vec<_>>())?;
        let targets = self.records_of(&[next, measured].concat())?;
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        if state.program.looked_into(stand_ins.step) {
            return Ok(PreparedLoop::LookedInto(shared));
        }
        let body = LoopBody::of(state.program.extract(&targets, 0), targets.len(), &placeholders);
        let kinds: Vec<(Shape, DType)> = shared.iter().map(|h| (h.shape.stored(), h.dtype)).collect();
        let (many, by_regions) = self.check_steps_fit(state, &body, (&initial, &kinds), steps, !measured.is_empty())?;
        let map = state.blocks.as_ref().map(|(map, _)| Arc::clone(map));
        let map = map.filter(|map| kinds.iter().any(|(shape, _)| map.divides(*shape)));
        let running = |body: LoopBody, now, blocks| {
            let (own, pinned, most) = (HashSet::new(), Vec::new(), if many { together(&body) } else { 1 });
            RunningLoop { session: self, body, now, kinds, own, pinned, shared, most, by_regions, blocks, site }
        };
        if by_regions {
            let mut running = running(body, Vec::new(), None);
            for id in initial {
                let value = self.initial(state, id, site).inspect_err(|_| {
                    running.now.clear();
                    running.let_go(state);
                })?;
                running.now.push(value);
                running.own.insert(value);
            }
            return Ok(PreparedLoop::Running(Box::new(running)));
        }
        self.evaluate_records(state, initial.clone())?;
        let before = placeholders.iter().min().copied();
        let extract = state.program.extract(&targets, 0);
        let fixed = before.map_or_else(Vec::new, |before| LoopBody::invariants(&extract, &placeholders, before));
        self.evaluate_records(state, fixed)?;
        let extract = state.program.extract(&targets, 0);
        let given: Vec<ValueId> = initial.iter().filter_map(|id| state.program.value(*id)).collect();
        self.read_now(state, &extract.graph, &given)?;
        let body = LoopBody::of(extract, targets.len(), &placeholders);
        let now: Vec<ValueId> = initial.iter().filter_map(|id| state.program.value(*id)).collect();
        let Some(map) = map else { return Ok(PreparedLoop::Running(Box::new(running(body, now, None)))) };
        let step = body.unrolled(&now, 1, false);
        let engine = match self.engine() {
            Some(engine) => engine,
            None => self.choose_engine(state, &step)?,
        };
        let in_strips = Session::not_in_blocks(engine, &step, &now);
        if map.age().is_some() && in_strips.is_none() {
            // Images of the state may be other inputs of the step, too.
            let state: Vec<ValueId> = now.iter().map(|_| state.names.value()).collect();
            if let Err(why) = contracts(&body.unrolled(&state, 1, false), &state) {
                let message = format!("nothing shows that the loop converges if it is relaxed: {why}");
                return self.refused(Error::parameter(Call { op: "iterate", site }, message));
            }
        }
        let blocks = match (in_strips, &mut state.blocks) {
            (None, Some((_, alone))) => {
                let alone = match alone {
                    Some(alone) => alone.clone(),
                    None => alone.insert(self.alone()?).clone(),
                };
                Some((map, alone))
            }
            (Some(why), _) => {
                crate::warn!("a loop (at {site}) is computed in strips, not in blocks: {why}");
                None
            }
            (None, None) => None,
        };
        Ok(PreparedLoop::Running(Box::new(running(body, now, blocks))))
    }

    /// Returns two flags: `true` if several of the loop's `steps` iterations fit in memory together, and `true` if they
    /// are computed by regions. A loop that does not fit at all is refused before anything is read.
    fn check_steps_fit(
        &self,
        state: &mut SessionState,
        body: &LoopBody,
        (initial, kinds): (&[RecordId], &[(Shape, DType)]),
        steps: usize,
        measured: bool,
    ) -> Result<(bool, bool)> {
        if self.ranks() > 1 || self.engine().is_some_and(|engine| engine.device_count() > 1 && engine.unified()) {
            return Ok((true, false));
        }
        let mut expected = Vec::new();
        let mut name = |(id, (shape, dtype)): (&RecordId, &(Shape, DType))| {
            state.program.value(*id).unwrap_or_else(|| {
                expected.push((state.names.value(), OnDemandImage::expected(*shape, *dtype)));
                expected[expected.len() - 1].0
            })
        };
        let now: Vec<ValueId> = initial.iter().zip(kinds).map(&mut name).collect();
        let engine = match self.engine() {
            Some(engine) => engine,
            None => self.choose_engine(state, &body.unrolled(&now, 1, measured))?,
        };
        let many = body.unrolled(&now, together(body).min(steps), measured);
        if self.holds(state, engine, &many)? {
            return Ok((true, false));
        }
        let one = body.unrolled(&now, 1, measured);
        if !engine.unified() && self.holds(state, engine, &one)? {
            return Ok((false, false)); // the state stays on the device
        }
        let own = expected.iter().map(|(name, _)| *name).collect();
        state.images.on_demand.extend(expected);
        let divides = if engine.unified() {
            self.loop_divides(state, engine, (&many, &one)).map(|many| (many, true))
        } else {
            self.pays_by_regions(state, engine, &one, TAKEN)
                .and_then(|regions| Ok((!regions || self.pays_by_regions(state, engine, &many, TAKEN)?, regions)))
        };
        // Each iteration would recompute all iterations before it.
        let stages = |n| {
            let graph = body.unrolled(&now, n, false);
            graph.iter().filter(|(id, node)| reduces(&node.op) || is_swept(&graph, *id)).count()
        };
        let passes = stages(2) > stages(1);
        state.images.restore_sources();
        state.images.forget(own);
        divides.map(|(many, regions)| (many && !(regions && passes), regions))
    }

    /// Returns `true` if many iterations of a loop that does not fit can be computed by regions, `false` if only one
    /// can.
    fn loop_divides(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        (many, one): (&Graph<Op>, &Graph<Op>),
    ) -> Result<bool> {
        let limits = self.limits(state, engine, one)?;
        let limits = self.replace_sources(state, engine, one, limits)?;
        self.check_schedule(state, engine, one, TAKEN, limits)?;
        self.divides(state, engine, many, TAKEN, limits)
    }

    /// Initial state of a loop by regions, in a file unless it is one already.
    fn initial(&self, state: &mut SessionState, id: RecordId, site: Site) -> Result<ValueId> {
        if let Some(value) = state.program.value(id) {
            return Ok(value);
        }
        let (graph, _) = program_of(state, &[id]);
        let aside = |state: &mut SessionState| self.evaluate_to_storage(state, graph, 1, Call { op: "iterate", site });
        let (made, _) = self.guard(state, aside)?;
        Ok(made[0])
    }
}

impl RunningLoop<'_> {
    /// Runs until the loop ends; returns the number of iterations.
    fn all(
        &mut self,
        ends: LoopLimits,
        decide: &mut dyn FnMut(usize, &[f64]) -> ControlFlow<()>,
        watch: &mut dyn FnMut(usize, Vec<Handle>) -> Result<ControlFlow<()>>,
    ) -> Result<usize> {
        let most = self.most;
        let mut done = ends.done;
        let mut measuring: Option<MeasuredStep> = None;
        while done < ends.steps {
            let stop = ends.next(done);
            let rest = stop - done;
            // The measured change of a state is a number for whole planes.
            let in_blocks = rest - usize::from(ends.measures(stop));
            let (steps, pending) = if self.blocks.is_some() && in_blocks > 0 {
                self.run_in_blocks(in_blocks, done == ends.done)?;
                (in_blocks, None)
            } else {
                // Few different numbers need few plans: as many as possible, an interval, or powers of two.
                let steps = if rest >= most || ends.is_interval(rest) { rest.min(most) } else { 1 << rest.ilog2() };
                (steps, Some(self.run(steps, steps == rest && ends.measures(stop))?))
            };
            done += steps;
            let due = pending.filter(|_| done == stop && ends.measures(done));
            // The numbers of an earlier iteration have arrived meanwhile.
            if let Some(earlier) = measuring.take()
                && let Some(steps) = self.decided(earlier, decide)?
            {
                return Ok(steps);
            }
            if let Some(pending) = due {
                let this = MeasuredStep { step: done, state: self.now.clone(), pending };
                let waits =
                    !self.by_regions && done < ends.steps && self.session.engine().is_some_and(|e| !e.unified());
                if waits {
                    self.pinned.clone_from(&this.state);
                    measuring = Some(this);
                } else if let Some(steps) = self.decided(this, decide)? {
                    return Ok(steps);
                }
            }
            if ends.watches(done) {
                if let Some(earlier) = measuring.take()
                    && let Some(steps) = self.decided(earlier, decide)?
                {
                    return Ok(steps);
                }
                self.shared = self.handles()?;
                if watch(done, self.shared.clone())?.is_break() {
                    break;
                }
            }
        }
        Ok(done)
    }

    /// Reads the numbers of an iteration. If they end the loop, its result is the state after this iteration.
    fn decided(
        &mut self,
        MeasuredStep { step, state, pending }: MeasuredStep,
        decide: &mut dyn FnMut(usize, &[f64]) -> ControlFlow<()>,
    ) -> Result<Option<usize>> {
        let numbers: Vec<f64> =
            pending.wait()?.iter().flatten().filter_map(|b| b.as_slice::<f64>().first().copied()).collect();
        let end = decide(step, &numbers).is_break();
        if end {
            self.now = state;
        }
        self.pinned.clear();
        self.let_go(&mut self.session.acquire());
        Ok(end.then_some(step))
    }

    /// Runs consecutive iterations in blocks; `first` checks that they leave the other blocks unchanged.
    fn run_in_blocks(&mut self, steps: usize, first: bool) -> Result<()> {
        let (session, op) = (self.session, "iterate");
        let Some((map, alone)) = &self.blocks else { return Ok(()) };
        let mut state = session.lock("evaluating")?;
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        session.read_now(state, &self.body.unrolled(&self.now, 1, false), &[])?;
        let Some(engine) = alone.engine() else { return Err(Error::Config("the session has no device".into())) };
        let (alone, what) = ((alone, engine), (&self.body, &self.kinds[..]));
        let next = session.guard(state, |state| {
            let next = session.run_in_blocks(state, alone, what, (map, &self.now, steps), false)?;
            if first && let Some(others) = map.left_out(session.ranks()) {
                let after = session.run_in_blocks(state, alone, what, (&others, &next, 1), true)?;
                let differ = session.first_difference(state, (engine, map), [&next, &after])?;
                state.images.forget(after);
                if let Some(pixel) = differ {
                    state.images.forget(next);
                    let message = self.changed(pixel);
                    return Err(EvaluationError::BeforeExecution(Error::parameter(
                        Call { op, site: self.site },
                        message,
                    )));
                }
            }
            Ok(next)
        })?;
        self.own.extend(&next);
        self.now = next;
        self.let_go(state);
        self.shared.clear();
        Ok(())
    }

    /// Message for a pixel of the state that changed in a block without a rank.
    fn changed(&self, mut pixel: usize) -> String {
        let mut image = 0;
        while let Some((shape, _)) = self.kinds.get(image).filter(|(shape, _)| shape.len() <= pixel) {
            pixel -= shape.len();
            image += 1;
        }
        let (y, x) = self
            .kinds
            .get(image)
            .map_or((0, 0), |(shape, _)| (pixel / shape.line() % shape.height, pixel % shape.line() / shape.samples));
        format!(
            "a step changes row {y}, column {x} of image {image} of the state, in a block that is left out; a step must \
             leave such blocks as they are (as one that masks them), or they must be computed"
        )
    }

    /// Runs consecutive iterations; `measured` requests the measured values of the last one.
    fn run(&mut self, steps: usize, measured: bool) -> Result<Pending> {
        if self.by_regions {
            return self.run_by_regions(steps, measured);
        }
        let session = self.session;
        let mut state = session.lock("evaluating")?;
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        let graph = self.body.unrolled(&self.now, steps, measured);
        // Evaluations in between may have released images that can be read again.
        session.read_now(state, &graph, &[])?;
        let images = self.now.len();
        // Several ranks synchronise for their results.
        let number = if session.ranks() == 1 { ResultDelivery::Requester } else { ResultDelivery::Everyone };
        let mut wants = vec![ResultDelivery::Keep; images];
        wants.resize(graph.roots.len(), number);
        let engine = match session.engine() {
            Some(engine) => engine,
            None => session.choose_engine(state, &graph)?,
        };
        let goes = |v: &ValueId, state: &SessionState| {
            self.own.contains(v) && !self.pinned.contains(v) && !state.program.refers_to(*v)
        };
        let read: Vec<ValueId> =
            graph.nodes.iter().filter_map(|n| if let Op::Source(v) = n.op { Some(v) } else { None }).collect();
        let disposable: Vec<ValueId> = read.into_iter().filter(|v| goes(v, state)).collect();
        let request = session.request(engine, state, graph, wants, &disposable);
        let mut next = Vec::new();
        let ran = session.guard(state, |state| {
            let mut made = session.perform(state, engine, request, (true, DownloadStart::AtOnce))?;
            let (next_state, numbers) = made.roots.split_at(images);
            let (next_state, nodes) = (next_state.to_vec(), numbers.to_vec());
            let is_kept = made.delivered.is_ok();
            // The device's copies of delivered numbers are not needed.
            made.keep(state, |node| is_kept && next_state.contains(&node));
            let delivered = made.delivered.map_err(EvaluationError::DuringExecution)?;
            next = next_state.iter().filter_map(|root| made.names[root.0]).collect();
            Ok(Pending { nodes, delivered, device: session.shared_device_name() })
        });
        let pending = ran?;
        self.follow(state, next);
        Ok(pending)
    }

    /// [`RunningLoop::run`] for a loop by regions.
    fn run_by_regions(&mut self, steps: usize, measured: bool) -> Result<Pending> {
        let session = self.session;
        let mut state = session.lock("evaluating")?;
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        let graph = self.body.unrolled(&self.now, steps, measured);
        let (images, numbers) = graph.roots.split_at(self.now.len());
        let extent = |(shape, _): &(Shape, DType)| Shape { channels: 1, samples: 1, ..*shape };
        let together = self.kinds.iter().all(|kind| extent(kind) == extent(&self.kinds[0]));
        let (mut next, mut told) = (Vec::new(), Vec::new());
        let ran = session.guard(state, |state| {
            for images in images.chunks(if together { images.len() } else { 1 }) {
                let measured = if next.is_empty() { numbers } else { &[] };
                let program = Graph { roots: [images, measured].concat(), ..graph.clone() }.without_dead();
                let call = Call { op: "iterate", site: self.site };
                let (made, values) = session.evaluate_to_storage(state, program, images.len(), call)?;
                next.extend(made);
                told.extend(values);
            }
            Ok(())
        });
        if let Err(e) = ran {
            state.images.forget(next);
            return Err(e);
        }
        self.follow(state, next);
        let nodes: Vec<NodeId> = (0..told.len()).map(NodeId).collect();
        let told = told.into_iter().map(|n| Delivered::OnHost(HostBuffer::from_slice(&[n])));
        Ok(Pending {
            delivered: nodes.iter().copied().zip(told).collect(),
            nodes,
            device: session.shared_device_name(),
        })
    }

    /// Replaces the state by the next one, and releases the previous one.
    fn follow(&mut self, state: &mut SessionState, next: Vec<ValueId>) {
        let before = std::mem::replace(&mut self.now, next);
        self.own.extend(self.now.iter().filter(|v| !before.contains(v)));
        self.let_go(state);
        self.shared.clear();
    }

    /// Releases images made by the loop that are no longer needed.
    fn let_go(&mut self, state: &mut SessionState) {
        let (now, pinned) = (&self.now, &self.pinned);
        let gone: Vec<ValueId> = self.own.extract_if(|v| !now.contains(v) && !pinned.contains(v)).collect();
        let unread = gone.into_iter().filter(|v| !state.program.refers_to(*v)).collect();
        state.images.forget(unread);
    }

    /// Handles of the state, for the program.
    fn handles(&self) -> Result<Vec<Handle>> {
        let session = self.session;
        let mut state = session.lock("evaluating")?;
        let handle = |(value, (shape, dtype)): (&ValueId, &(Shape, DType))| {
            let id = session.0.numbers.record();
            let (shape, dtype) = (shape.planar(), *dtype);
            state.program.record(id, Op::Source(*value), &[], (shape, dtype), self.site);
            Handle::new(session, Ok(id), (shape, dtype))
        };
        Ok(self.now.iter().zip(&self.kinds).map(handle).collect())
    }
}
