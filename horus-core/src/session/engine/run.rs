//! Plans programs, unless a plan is cached, and runs the plans on this rank's devices.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::comm::FirstRanks;
use crate::device::DownloadStart;
use crate::error::{DeviceError, Error};
use crate::execute::agree::agree_on_plan;
use crate::execute::{
    Batches, Delivered, ExecutionContext, ExecutionOutcome, FailedExecution, RankImage, execute, prepare,
};
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::plan::movement::Load;
use crate::plan::partition::Partition;
use crate::plan::state::{ImageState, Placement};
use crate::plan::work::ProgramWork;
use crate::plan::{Action, Plan, ResultDelivery, Setting};
use crate::record::RecordId;
use crate::session::cache::{CachedPlan, PlanCache, PlanRequest};
use crate::session::devices::Engine;
use crate::session::engine::failure::EvaluationError;
use crate::session::images::image::StoredImage;
use crate::session::{Progress, Session, SessionState};

/// Outcome of a program. Its sources are images of the session, as before.
pub(crate) struct ProgramRun {
    /// Nodes of the program's roots in the plan.
    pub(crate) roots: Vec<NodeId>,
    /// Strips of images in strips.
    pub(crate) partition: Partition,
    /// Names of images by node: of sources, and of images that were [kept](ProgramRun::keep).
    pub(crate) names: Vec<Option<ValueId>>,
    /// Other images by node.
    pub(crate) images: Vec<Option<StoredImage>>,
    /// Nodes whose images launches have used in the host's memory.
    pub(crate) mapped: Vec<NodeId>,
    /// Results that arrive on this rank's host, or the error of a run that ended early.
    pub(crate) delivered: Result<HashMap<NodeId, Delivered>, Error>,
}

impl ProgramRun {
    /// Names the images of some nodes, which the session owns from now on, and frees the others.
    pub(crate) fn keep(&mut self, state: &mut SessionState, is_kept: impl Fn(NodeId) -> bool) {
        for (node, (name, image)) in self.names.iter_mut().zip(self.images.drain(..)).enumerate() {
            let Some(image) = image else { continue };
            if is_kept(NodeId(node)) {
                let value = *name.insert(state.names.value());
                state.images.in_memory.insert(value, image);
            } else {
                state.images.freed.push(image);
            }
        }
    }
}

impl Session {
    /// Takes over the images of an evaluation, under new names, as the values of these records.
    pub(crate) fn adopt(&self, state: &mut SessionState, made: &mut ProgramRun, roots: &[RecordId]) {
        made.keep(state, |_| true);
        let name = |node: &NodeId| made.names[node.0].filter(|value| state.images.in_memory.contains_key(value));
        let left: Vec<ValueId> = made.mapped.iter().filter_map(name).collect();
        let named: Vec<Option<ValueId>> = made.roots.iter().map(name).collect();
        state.images.mapped.extend(left);
        let mut freed = Vec::new();
        for (recorded, name) in roots.iter().zip(named) {
            if let Some(name) = name {
                freed.extend(state.program.evaluated(*recorded, name));
            }
        }
        // Two records may have become one value (common subexpressions): it stays while either is alive.
        freed.retain(|v| !state.program.refers_to(*v));
        state.images.forget(freed);
    }

    /// Plans a program, unless a cached plan may be used, and runs it. `sending` sets when copies of sent results
    /// start.
    pub(crate) fn perform(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        request: PlanRequest,
        (known, sending): (bool, DownloadStart),
    ) -> Result<ProgramRun, EvaluationError> {
        let start = Instant::now(); // the time of extraction is negligible
        let (mut request, mut planned, mut new) = self.find_or_make_plan(engine, state, request, known)?;
        state.trace.planned(start);
        let (start, connects) = (Instant::now(), !engine.is_ready_for(&planned.plan));
        let remake = engine.connect_for(&planned.plan, &*self.0.comm).map_err(EvaluationError::BeforeExecution)?;
        if connects {
            state.trace.started(start);
        }
        if remake {
            state.plans = PlanCache::default();
            request.others = self.others(engine, state, &request.sources);
            (request, planned, new) = self.find_or_make_plan(engine, state, request, known)?;
        }
        engine.forgo(planned.forgone);
        let CachedPlan { plan, mut batches, digest, forgone } = planned;
        let ran = self.run_plan(state, engine, &request, (&plan, &mut batches), (new, sending));
        let (images, delivered) = match ran {
            Ok(ExecutionOutcome { images, delivered, .. }) => (images, Ok(delivered)),
            Err(FailedExecution { error, images }) => (images, Err(error)),
        };
        let made = ProgramRun {
            roots: plan.graph.roots.clone(),
            partition: plan.setting.partition.clone(),
            names: plan.graph.nodes.iter().map(|node| node.op.source_value()).collect(),
            mapped: plan.steps.iter().filter_map(|step| step.action.unmaps()).collect(),
            images,
            delivered,
        };
        if made.delivered.is_ok() {
            state.plans.put(request, CachedPlan { plan, batches, digest, forgone });
        }
        Ok(made)
    }

    /// Runs a plan. Kernels of a plan that is not new are built already. Sources become images of the session again, as
    /// far as a failed run has left them. The other images are returned in any case.
    pub(crate) fn run_plan(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        request: &PlanRequest,
        (plan, batches): (&Plan, &mut Batches),
        how: (bool, DownloadStart),
    ) -> Result<ExecutionOutcome<StoredImage>, FailedExecution<StoredImage>> {
        if let Err(error) = self.arrange(state, engine, request, plan) {
            return Err(FailedExecution { error: error.error(), images: Vec::new() });
        }
        let ran = self.run_plan_taking_sources(state, engine, request, (plan, batches), how);
        let mut back = |images: &mut [Option<StoredImage>]| {
            for (node, image) in plan.graph.nodes.iter().zip(images) {
                if let Some(value) = node.op.source_value() {
                    state.images.in_memory.extend(image.take().map(|image| (value, image)));
                }
            }
        };
        match ran {
            Ok(mut outcome) => {
                back(&mut outcome.images);
                Ok(outcome)
            }
            Err(mut failed) => {
                back(&mut failed.images);
                note_lost(state, plan, &failed.error);
                Err(failed)
            }
        }
    }

    /// [`Session::run_plan`] with sources that were taken out of the session; returns them with the other images.
    fn run_plan_taking_sources(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        request: &PlanRequest,
        (plan, batches): (&Plan, &mut Batches),
        (new, sending): (bool, DownloadStart),
    ) -> Result<ExecutionOutcome<StoredImage>, FailedExecution<StoredImage>> {
        let pixels = |value| state.images.digests.as_ref()?.get(&value).copied();
        agree_on_plan(&*self.0.comm, &request.graph, &request.wants, plan, &pixels)
            .map_err(|error| FailedExecution { error, images: Vec::new() })?;
        let images =
            plan.graph.iter().map(|(_, n)| n.op.source_value().and_then(|v| state.images.in_memory.remove(&v)));
        let images: Vec<_> = images.collect();
        let outcome = if plan.setting.has_shared_host() {
            self.run_plan_on_devices(state, engine, plan, images, (new, sending))?
        } else if self.rank() < self.ranks() && self.rank() >= plan.setting.partition.ranks() {
            self.left_to_others(engine, plan, images)
        } else {
            self.run_plan_on_one_device(state, engine, (plan, batches), images, (new, sending))?
        };
        let outcome = self.shared(plan, outcome)?;
        state.stats.evaluations += 1;
        if self.rank() < plan.setting.partition.ranks() {
            state.stats.made.add(&plan.counts());
        }
        state.stats.sent.messages += outcome.moved.messages;
        state.stats.sent.bytes += outcome.moved.bytes;
        state.stats.predicted += Duration::from_secs_f64(plan.predicted);
        state.stats.parts.add(&plan.parts);
        Ok(outcome)
    }

    /// Runs a plan on the device of this rank, or on the first device.
    fn run_plan_on_one_device(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        (plan, batches): (&Plan, &mut Batches),
        images: Vec<Option<StoredImage>>,
        (new, sending): (bool, DownloadStart),
    ) -> Result<ExecutionOutcome<StoredImage>, FailedExecution<StoredImage>> {
        let images = if self.ranks() > 1 { images } else { self.laid_out(engine, images, 1)? };
        let before: Vec<_> = images.iter().map(|image| image.as_ref().map(|i| (i.state, i.among()))).collect();
        let images: Vec<_> = images.into_iter().map(|image| image.map(StoredImage::into_first)).collect();
        let among = plan.setting.partition.ranks();
        let kept = |images: Vec<Option<RankImage>>| {
            let kept = |(image, before): (Option<RankImage>, &Option<(ImageState, usize)>)| {
                let same =
                    |image: &RankImage| before.filter(|(state, _)| *state == image.state).map(|(_, ranks)| ranks);
                image.map(|image| {
                    let ranks = same(&image).unwrap_or(among);
                    StoredImage::of_ranks(image, ranks)
                })
            };
            images.into_iter().zip(&before).map(kept).collect()
        };
        if new {
            let start = Instant::now();
            let prepared = prepare(plan, &images, &*engine.device, self.rank());
            state.trace.prepared(start);
            if let Err(error) = prepared {
                return Err(FailedExecution { error, images: kept(images) });
            }
        }
        let observe = |step, steps, text: &dyn Fn() -> String| {
            if let Some(observer) = &self.0.settings.observer {
                observer(Progress { step, steps, text });
            }
        };
        let context = ExecutionContext {
            device: &*engine.device,
            comm: &FirstRanks::new(&*self.0.comm, among),
            pool: &self.0.pool,
            observer: &observe,
            check: &|| self.0.settings.canceller.check(),
            trace: &mut state.trace,
            keep: if self.ranks() == 1 { self.0.settings.max_pinned } else { 0 },
            sending,
            rooms: &mut state.rooms,
            batches,
        };
        match execute(plan, images, context) {
            Ok(ExecutionOutcome { images, delivered, portions, moved }) => {
                Ok(ExecutionOutcome { images: kept(images), delivered, portions, moved })
            }
            Err(FailedExecution { error, images }) => Err(FailedExecution { error, images: kept(images) }),
        }
    }

    /// Brings the sources of a plan to rank 0, unless they are where it expects them. Collective.
    pub(crate) fn arrange(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        request: &PlanRequest,
        plan: &Plan,
    ) -> Result<(), EvaluationError> {
        let among = plan.setting.partition.ranks();
        if self.ranks() == 1 {
            return Ok(()); // devices share the host: see `Session::laid_out`
        }
        let apart = request.sources.iter().zip(&request.laid).filter_map(|((value, at, _), laid)| {
            let at = (*at)?;
            at.usable_by(among, engine.hosts(), *laid).is_none().then_some(*value)
        });
        apart.collect::<Vec<_>>().into_iter().try_for_each(|value| self.bring_to_root(state, engine, value))
    }

    /// Brings an image to rank 0. Collective.
    pub(crate) fn bring_to_root(
        &self,
        state: &mut SessionState,
        engine: &Engine,
        value: ValueId,
    ) -> Result<(), EvaluationError> {
        let Some(image) = state.images.in_memory.get(&value) else { return Ok(()) };
        let (shape, dtype, laid, at) = (image.geometry.shape, image.geometry.dtype, image.among(), image.state);
        if at.placement == Placement::ROOT {
            return Ok(());
        }
        let site = std::panic::Location::caller().into();
        let nodes = vec![Node { op: Op::Source(value), inputs: Vec::new(), shape, dtype, site }];
        let graph = Graph { nodes, roots: vec![NodeId(0)], ..Graph::default() };
        let request = PlanRequest {
            graph,
            wants: vec![ResultDelivery::Root],
            sources: vec![(value, Some(at), false)],
            laid: vec![laid],
            ..PlanRequest::default()
        };
        let setting = self.setting_among(engine, laid, ProgramWork::default);
        let setting = Setting { direct: setting.direct && engine.is_connected(), ..setting };
        let plan = self.plan_for(engine, &request, setting)?;
        let ran =
            self.run_plan(state, engine, &request, (&plan, &mut Batches::default()), (true, DownloadStart::AtOnce));
        let ExecutionOutcome { mut delivered, .. } =
            ran.map_err(|failed| EvaluationError::DuringExecution(failed.error))?;
        let brought = plan.graph.roots.first().and_then(|root| delivered.remove(root));
        let pixels = match brought {
            Some(Delivered::InFlight(landing)) => {
                Some(landing.wait().map_err(|e| EvaluationError::DuringExecution(self.not_on_host(e)))?)
            }
            Some(Delivered::OnHost(pixels)) => Some(pixels),
            None => None,
        };
        state.images.freed.extend(state.images.in_memory.remove(&value));
        state.images.give(value, shape, dtype, pixels, Placement::ROOT);
        Ok(())
    }

    /// Outcome on a rank that takes no part in a plan.
    fn left_to_others(
        &self,
        engine: &Engine,
        plan: &Plan,
        images: Vec<Option<StoredImage>>,
    ) -> ExecutionOutcome<StoredImage> {
        let freed: HashSet<NodeId> = plan
            .steps
            .iter()
            .filter_map(|step| if let Action::Free(n) = step.action { Some(n) } else { None })
            .collect();
        let left = |((i, image), state): ((usize, Option<StoredImage>), &Option<ImageState>)| {
            let state = (*state).filter(|_| !freed.contains(&NodeId(i)))?;
            let Node { shape, dtype, .. } = plan.graph.nodes[i];
            let elsewhere =
                || StoredImage::elsewhere((shape, dtype), state, engine.unified(), plan.setting.partition.ranks());
            Some(image.filter(|image| image.state == state).unwrap_or_else(elsewhere))
        };
        let images = images.into_iter().enumerate().zip(&plan.states).map(left).collect();
        ExecutionOutcome { images, delivered: HashMap::new(), portions: HashMap::new(), moved: Load::default() }
    }

    /// Sends results that every rank wants to the ranks that took no part in the plan. Collective.
    fn shared(
        &self,
        plan: &Plan,
        mut outcome: ExecutionOutcome<StoredImage>,
    ) -> Result<ExecutionOutcome<StoredImage>, FailedExecution<StoredImage>> {
        let among = plan.setting.partition.ranks();
        if among >= self.ranks() {
            return Ok(outcome);
        }
        let mut wanted: Vec<NodeId> = Vec::new();
        for (root, _) in plan.graph.roots.iter().zip(&plan.wants).filter(|(_, want)| **want == ResultDelivery::Everyone)
        {
            if !wanted.contains(root) {
                wanted.push(*root);
            }
        }
        for root in wanted {
            let node = plan.graph.node(root);
            let given =
                self.given_to_others(among, node.shape.len() * node.dtype.size(), outcome.delivered.remove(&root));
            match given {
                Ok(pixels) => outcome.delivered.extend(pixels.map(|pixels| (root, pixels))),
                Err(error) => return Err(FailedExecution { error, images: outcome.images }),
            }
        }
        Ok(outcome)
    }

    /// Sends pixels of rank 0 to the ranks from `among` on.
    fn given_to_others(&self, among: usize, bytes: usize, mine: Option<Delivered>) -> Result<Option<Delivered>, Error> {
        const WHAT: &str = "giving a result to all ranks";
        let comm = &*self.0.comm;
        let failed = |source| Error::Device { op: WHAT.into(), device: self.device_name(), source };
        if self.rank() >= among {
            let mut pixels = self.0.pool.try_allocate(bytes).map_err(failed)?;
            if bytes > 0 {
                comm.exchange(&[], &mut [(0, pixels.bytes_mut())]).map_err(|e| e.during(self.rank(), WHAT))?;
            }
            return Ok(Some(Delivered::OnHost(pixels)));
        }
        if self.rank() > 0 {
            return Ok(mine);
        }
        let pixels = match mine {
            Some(Delivered::InFlight(landing)) => landing.wait().map_err(failed)?,
            Some(Delivered::OnHost(pixels)) => pixels,
            None => return Err(failed(DeviceError::Internal("a result is not on rank 0".into()))),
        };
        let sends: Vec<(usize, &[u8])> = (among..self.ranks()).map(|rank| (rank, pixels.bytes())).collect();
        if bytes > 0 {
            comm.exchange(&sends, &mut []).map_err(|e| e.during(self.rank(), WHAT))?;
        }
        Ok(Some(Delivered::OnHost(pixels)))
    }
}

/// Records the images read by a failed plan that were lost with it, if the program still refers to them and they cannot
/// be read again.
fn note_lost(state: &mut SessionState, plan: &Plan, error: &Error) {
    let read = plan.graph.nodes.iter().filter_map(|n| n.op.source_value());
    let there = |v: &ValueId| state.images.has(v);
    let lost: Vec<ValueId> = read.filter(|v| !there(v) && state.program.refers_to(*v)).collect();
    for v in lost {
        state.images.gone.insert(v, error.to_string());
    }
}

/// Values without a record.
pub(crate) fn unreferred(state: &SessionState, mut values: Vec<ValueId>) -> Vec<ValueId> {
    values.retain(|v| !state.program.refers_to(*v));
    values
}
