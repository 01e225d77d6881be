//! Evaluates: compiles the recorded program, or takes it from the cache, and executes the plan.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::comm::guarded;
use crate::device::DownloadStart;
use crate::error::{DeviceError, Error, Result};
use crate::execute::Delivered;
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::plan::state::ImageState;
use crate::plan::{Mappable, ResultDelivery};
use crate::record::{Extract, RecordId};
use crate::region::deferrable_roots;
use crate::session::cache::{CachedPlan, PlanRequest, ResidentImage};
use crate::session::compile::schedule::ResultDestination;
use crate::session::devices::Engine;
use crate::session::engine::distribute::RankStrips;
use crate::session::engine::failure::EvaluationError;
use crate::session::engine::run::unreferred;
use crate::session::images::image::StoredImage;
use crate::session::images::on_demand::unread;
use crate::session::{Session, SessionState, debug};

impl Session {
    /// Evaluates `targets`; returns the results that this rank's host gets.
    pub(crate) fn run(
        &self,
        state: &mut SessionState,
        targets: &[RecordId],
        wants: &[ResultDelivery],
        sending: DownloadStart,
    ) -> Result<EvaluationResults> {
        self.guard(state, |state| self.try_run(state, targets, wants, sending))
    }

    /// Evaluates, unless the session is lost. A failure loses the session if other ranks may have continued.
    pub(crate) fn guard<R>(
        &self,
        state: &mut SessionState,
        evaluate: impl FnOnce(&mut SessionState) -> Result<R, EvaluationError>,
    ) -> Result<R> {
        if let Some(cause) = &state.lost {
            return Err(Error::Lost(cause.clone()));
        }
        self.wait_for_other_sessions();
        let comm = &*self.0.comm;
        // This remains if the evaluation panics while some images are taken out.
        state.lost = Some("an evaluation panicked".into());
        let result = guarded(comm, "an evaluation", || evaluate(state));
        state.lost = None;
        state.images.restore_sources();
        self.publish(state);
        result.map_err(|failure| match failure {
            // Nothing has changed, on all ranks alike, because they made the same plan.
            EvaluationError::BeforeExecution(error) => error,
            EvaluationError::DuringExecution(error) if comm.size() == 1 => error,
            EvaluationError::DuringExecution(error) => self.abandon(state, error),
        })
    }

    /// Ends the session and all other ranks, which may have continued; returns the error.
    pub(crate) fn abandon(&self, state: &mut SessionState, error: Error) -> Error {
        state.lost = Some(error.to_string());
        state.images.in_memory.clear();
        self.0.comm.abort(&error.to_string());
        error
    }

    pub(crate) fn try_run(
        &self,
        state: &mut SessionState,
        targets: &[RecordId],
        wants: &[ResultDelivery],
        sending: DownloadStart,
    ) -> Result<EvaluationResults, EvaluationError> {
        debug::warn_of_slow_build();
        let former = std::mem::take(&mut state.plans.former);
        let Extract { mut graph, records } = state.program.extract_over(former, targets, self.room_to_keep(state));
        let mut deferrable = deferrable_roots(&graph, targets.len()).into_iter();
        let partial = unread(state, &graph).any(|(_, later)| later.is_partial());
        let mut place = 0..;
        graph.roots.retain(|_| place.next() < Some(targets.len()) || (deferrable.next() != Some(true) && !partial));
        all_there(state, &graph)?;
        let engine = match self.engine() {
            Some(engine) => engine,
            None => self.choose_engine(state, &graph)?,
        };
        let mut disposable = state.program.disposable(&graph, &records);
        let exceeds = self.limits_if_exceeded(state, engine, &graph, &disposable, ResultDestination::Memory)?;
        if let Some(limits) = exceeds {
            Session::without_kept(&mut graph, targets.len(), limits);
            disposable = state.program.disposable(&graph, &records);
            self.replace_sources_if_exceeded(state, engine, &graph, &disposable, ResultDestination::Memory)?;
        }
        let mut wants = wants.to_vec();
        wants.resize(graph.roots.len(), ResultDelivery::Keep);
        let kept: Vec<RecordId> = graph.roots.iter().map(|r| records[r.0]).collect();
        let (graph, own) = self.materialize_inputs(state, engine, graph, &wants, (exceeds.is_some(), &disposable))?;
        let gone = [disposable, own.clone()].concat();
        if engine.device_count() > 1 {
            // Devices of a process share their host.
            wants
                .iter_mut()
                .filter(|want| **want != ResultDelivery::Keep)
                .for_each(|want| *want = ResultDelivery::Requester);
        }
        let request = self.request(engine, state, graph, wants.clone(), &gone);
        let mappable = self.mappable(engine, state, &request.sources, sending);
        let request = PlanRequest { mappable, ..request };
        let recording = request.graph.nodes.len() as f64 * engine.machine.of(self.rank()).recording;
        state.stats.recording += Duration::from_secs_f64(recording);
        let made = self.perform(state, engine, request, (!self.shows_plans(), sending));
        let mut made = made.inspect_err(|_| state.images.forget(own))?;
        let strips = |node: &NodeId| Some((*node, self.distribution_of(state, &made, *node)?));
        let strips = match wants.first() {
            Some(ResultDelivery::Distributed) => made.roots[..targets.len()].iter().filter_map(strips).collect(),
            _ => HashMap::new(),
        };
        self.adopt(state, &mut made, &kept);
        state.images.forget(unreferred(state, gone));
        let delivered = made.delivered.map_err(EvaluationError::DuringExecution)?;
        let program = &state.program;
        state.images.gone.retain(|v, _| program.refers_to(*v));
        state.images.tidy();
        made.roots.truncate(targets.len());
        // On several ranks, late failures must surface within the evaluation.
        let lands = self.ranks() > 1 && sending == DownloadStart::AtOnce;
        let delivered = if lands { self.landed(state, delivered)? } else { delivered };
        Ok(EvaluationResults { of_targets: made.roots, delivered, strips })
    }

    /// Plan for a request, the request that it was made for, and `true` for a new plan. Cached plans are used if
    /// allowed. Collective if ranks may choose differently: their images may be in other states, so that one finds a plan
    /// that another has to make.
    pub(crate) fn find_or_make_plan(
        &self,
        engine: &Engine,
        state: &mut SessionState,
        request: PlanRequest,
        known: bool,
    ) -> Result<(PlanRequest, CachedPlan, bool), EvaluationError> {
        let own = self.find_or_make_own_plan(engine, state, request, known);
        let mine = own.as_ref().map_or(0, |(_, plan, _)| plan.plan.setting.partition.ranks());
        let among = self.agreed_choice(engine, mine);
        let (request, plan, new) = own?;
        let among = among.map_err(EvaluationError::BeforeExecution)?;
        if among == mine {
            return Ok((request, plan, new));
        }
        state.stats.planned += 1;
        // Other ranks may have their plan already.
        let plan = self.plan(engine, state, &request, Some(among)).map_err(EvaluationError::DuringExecution)?;
        Ok((request, plan, true))
    }

    /// [`Session::find_or_make_plan`] before ranks that may choose differently have agreed.
    fn find_or_make_own_plan(
        &self,
        engine: &Engine,
        state: &mut SessionState,
        mut request: PlanRequest,
        known: bool,
    ) -> Result<(PlanRequest, CachedPlan, bool), EvaluationError> {
        let made = |state: &mut SessionState, request: &PlanRequest| {
            state.stats.planned += 1;
            self.plan(engine, state, request, None).map_err(EvaluationError::BeforeExecution)
        };
        let usable = |plan: &CachedPlan| known && plan.is_best(engine);
        let look = |state: &mut SessionState, request: &PlanRequest| match state.plans.take(request).filter(usable) {
            Some(plan) => Ok((plan, false)),
            None => made(state, request).map(|plan| (plan, true)),
        };
        // If everything fits, a plan does not depend on the other images on the device, and can be used with any.
        let others = std::mem::take(&mut request.others);
        if !others.is_empty()
            && engine.has_room_beside(ResidentImage::bytes_of(&others), request.bytes())
            && !self.shows_plans()
        {
            let (plan, new) = look(state, &request)?;
            if engine.has_room_beside(ResidentImage::bytes_of(&others), plan.plan.most_on_device()) {
                return Ok((request, plan, new));
            }
        }
        request.others = others;
        let (plan, new) = look(state, &request)?;
        Ok((request, plan, new))
    }

    /// Returns `true` if plans are shown, with their construction.
    pub(crate) fn shows_plans(&self) -> bool {
        self.0.settings.explain.is_some() || self.0.settings.compare_naive
    }

    /// Waits for results in flight.
    fn landed(
        &self,
        state: &mut SessionState,
        delivered: HashMap<NodeId, Delivered>,
    ) -> Result<HashMap<NodeId, Delivered>, EvaluationError> {
        let start = Instant::now();
        let land = |(n, delivered)| match delivered {
            Delivered::InFlight(landing) => Ok((n, Delivered::OnHost(landing.wait()?))),
            here @ Delivered::OnHost(_) => Ok((n, here)),
        };
        let landed: Result<_, DeviceError> = delivered.into_iter().map(land).collect();
        state.trace.brought(start);
        let failed = |source| Error::Device { op: "download of a result".into(), device: self.device_name(), source };
        landed.map_err(|source| EvaluationError::DuringExecution(failed(source)))
    }

    /// Bytes that an evaluation may store of values without handles that recorded operations read. Together with pinned
    /// bytes they stay below the limit that triggers an evaluation.
    pub(crate) fn room_to_keep(&self, state: &SessionState) -> usize {
        self.0.settings.max_pinned.saturating_sub(state.program.pinned_bytes())
    }

    /// Everything that determines a plan for `graph`.
    pub(crate) fn request(
        &self,
        engine: &Engine,
        state: &SessionState,
        graph: Graph<Op>,
        wants: Vec<ResultDelivery>,
        disposable: &[ValueId],
    ) -> PlanRequest {
        let read = graph.nodes.iter().filter_map(|n| if let Op::Source(v) = n.op { Some(v) } else { None });
        let mut disposable = disposable.to_vec();
        disposable.sort_unstable();
        let gone = |v: &ValueId| disposable.binary_search(v).is_ok();
        let sources: Vec<_> = read.map(|v| (v, state.images.in_memory.get(&v).map(|s| s.state), gone(&v))).collect();
        let others = self.others(engine, state, &sources);
        let laid = sources.iter().map(|(v, ..)| state.images.in_memory.get(v).map_or(1, StoredImage::among)).collect();
        PlanRequest { graph, wants, sources, mappable: Mappable::default(), others, laid }
    }

    /// Images on the device that a program with these sources does not read, if the device's memory is limited.
    pub(crate) fn others(
        &self,
        engine: &Engine,
        state: &SessionState,
        sources: &[(ValueId, Option<ImageState>, bool)],
    ) -> Vec<ResidentImage> {
        if engine.capacity().is_none() {
            return Vec::new();
        }
        let read: HashSet<ValueId> = sources.iter().map(|(v, ..)| *v).collect();
        let there = state.images.in_memory.iter().filter(|(v, s)| s.state.residency.device() && !read.contains(v));
        let other = |(value, s): (&ValueId, &StoredImage)| {
            let (shape, dtype) = (s.geometry.shape, s.geometry.dtype);
            ResidentImage { value: *value, shape, dtype, state: s.state, laid: s.among() }
        };
        let mut others: Vec<_> = there.map(other).collect();
        others.sort_by_key(|other| other.value);
        others
    }
}

/// Results of an evaluation on this rank's host.
pub(crate) struct EvaluationResults {
    /// Node of each target; two targets may have one node.
    pub(crate) of_targets: Vec<NodeId>,
    pub(crate) delivered: HashMap<NodeId, Delivered>,
    /// Rows of distributed results.
    pub(crate) strips: HashMap<NodeId, RankStrips>,
}

/// Fails unless all source images of a program are in memory or can be read.
pub(crate) fn all_there(state: &SessionState, graph: &Graph<Op>) -> Result<()> {
    let lost = |node: &Node<Op>| match node.op {
        Op::Source(v) => Some(Error::ImageLost { site: node.site.into(), cause: state.images.gone.get(&v)?.clone() }),
        _ => None,
    };
    graph.nodes.iter().find_map(lost).map_or(Ok(()), Err)
}
