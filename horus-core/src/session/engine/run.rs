//! Programs are planned, unless they were before, and their plans executed, on the device of this rank or on several.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::comm::First;
use crate::device::Sending;
use crate::error::{DeviceError, Error};
use crate::execute::agree::agree_on_plan;
use crate::execute::{Batches, Context, Delivered, Failed, Outcome, Stored, execute, prepare};
use crate::ir::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::plan::movement::Load;
use crate::plan::state::{Placement, State};
use crate::plan::work::Work;
use crate::plan::{Action, Plan, Want};
use crate::record::RecordId;
use crate::session::cache::{Planned, Request};
use crate::session::devices::Engine;
use crate::session::engine::failure::Unevaluated;
use crate::session::images::image::Kept;
use crate::session::{Mutable, Progress, Session};

/// What a program has made. Its sources are images of the session as before.
pub(crate) struct Made {
    /// The nodes of its roots in the plan.
    pub(crate) roots: Vec<NodeId>,
    /// The names of images by node: of sources, and of those that were [kept](Made::keep).
    pub(crate) names: Vec<Option<ValueId>>,
    /// The other images by node.
    pub(crate) images: Vec<Option<Kept>>,
    /// What launches have used in the host's memory.
    pub(crate) mapped: Vec<NodeId>,
    /// What arrives on this rank's host; or the error of a run that ended early.
    pub(crate) delivered: Result<HashMap<NodeId, Delivered>, Error>,
}

impl Made {
    /// Gives names to the images of some nodes, which are the session's from now on, and frees the others.
    pub(crate) fn keep(&mut self, state: &mut Mutable, is_kept: impl Fn(NodeId) -> bool) {
        for (node, (name, image)) in self.names.iter_mut().zip(self.images.drain(..)).enumerate() {
            let Some(image) = image else { continue };
            if is_kept(NodeId(node)) {
                let value = *name.insert(state.names.value());
                state.images.here.insert(value, image);
            } else {
                state.images.freed.push(image);
            }
        }
    }
}

impl Session {
    /// Takes over the images of an evaluation, under new names, as the values of these records.
    pub(crate) fn adopt(&self, state: &mut Mutable, made: &mut Made, roots: &[RecordId]) {
        made.keep(state, |_| true);
        let name = |node: &NodeId| made.names[node.0].filter(|value| state.images.here.contains_key(value));
        let left: Vec<ValueId> = made.mapped.iter().filter_map(name).collect();
        let named: Vec<Option<ValueId>> = made.roots.iter().map(name).collect();
        state.images.mapped.extend(left);
        let mut freed = Vec::new();
        for (recorded, name) in roots.iter().zip(named) {
            if let Some(name) = name {
                freed.extend(state.program.evaluated(*recorded, name));
            }
        }
        // Two records may have become one value (common subexpressions): it stays while either is
        // alive.
        freed.retain(|v| !state.program.refers_to(*v));
        state.images.forget(freed);
    }

    /// Plans a program, unless a plan is known and may be used, and runs it; `sending` sets the start of copies of sent
    /// results.
    pub(crate) fn perform(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        request: Request,
        (known, sending): (bool, Sending),
    ) -> Result<Made, Unevaluated> {
        let start = Instant::now(); // the time of extraction is negligible
        let (request, Planned { plan, mut batches, digest }, new) = self.known_or_new(engine, state, request, known)?;
        state.trace.planned(start);
        let ran = self.carry_out(state, engine, &request, (&plan, &mut batches), (new, sending));
        let (images, delivered) = match ran {
            Ok(Outcome { images, delivered, .. }) => (images, Ok(delivered)),
            Err(Failed { error, images }) => (images, Err(error)),
        };
        let made = Made {
            roots: plan.graph.roots.clone(),
            names: plan.graph.nodes.iter().map(|node| node.op.source_value()).collect(),
            mapped: plan.steps.iter().filter_map(|step| step.action.unmaps()).collect(),
            images,
            delivered,
        };
        if made.delivered.is_ok() {
            state.plans.put(request, Planned { plan, batches, digest });
        }
        Ok(made)
    }

    /// Runs a plan, whose kernels are built already unless it is new. Its sources are images of the session again, as far
    /// as a failed run has left them; the other images are returned in any case.
    pub(crate) fn carry_out(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        request: &Request,
        (plan, batches): (&Plan, &mut Batches),
        how: (bool, Sending),
    ) -> Result<Outcome<Kept>, Failed<Kept>> {
        if let Err(error) = self.arrange(state, engine, request, plan) {
            return Err(Failed { error: error.error(), images: Vec::new() });
        }
        let ran = self.carry_out_apart(state, engine, request, (plan, batches), how);
        let mut back = |images: &mut [Option<Kept>]| {
            for (node, image) in plan.graph.nodes.iter().zip(images) {
                if let Some(value) = node.op.source_value() {
                    state.images.here.extend(image.take().map(|image| (value, image)));
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

    /// [`Session::carry_out`] with the sources taken out of the session, and returned with the other images.
    fn carry_out_apart(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        request: &Request,
        (plan, batches): (&Plan, &mut Batches),
        (new, sending): (bool, Sending),
    ) -> Result<Outcome<Kept>, Failed<Kept>> {
        let pixels = |value| state.images.digests.as_ref()?.get(&value).copied();
        agree_on_plan(&*self.0.comm, &request.graph, &request.wants, plan, &pixels)
            .map_err(|error| Failed { error, images: Vec::new() })?;
        let images = plan.graph.iter().map(|(_, n)| n.op.source_value().and_then(|v| state.images.here.remove(&v)));
        let images: Vec<_> = images.collect();
        let outcome = if plan.setting.in_lanes() {
            self.carry_out_on_lanes(state, engine, plan, images, (new, sending))?
        } else if self.rank() < self.ranks() && self.rank() >= plan.setting.partition.ranks() {
            self.left_to_others(engine, plan, images)
        } else {
            self.carry_out_alone(state, engine, (plan, batches), images, (new, sending))?
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

    /// Runs a plan on the device of this rank, or on the first lane.
    fn carry_out_alone(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        (plan, batches): (&Plan, &mut Batches),
        images: Vec<Option<Kept>>,
        (new, sending): (bool, Sending),
    ) -> Result<Outcome<Kept>, Failed<Kept>> {
        let images = if self.ranks() > 1 { images } else { self.laid_out(engine, images, 1)? };
        let before: Vec<_> = images.iter().map(|image| image.as_ref().map(|i| (i.state, i.among()))).collect();
        let images: Vec<_> = images.into_iter().map(|image| image.map(Kept::into_first)).collect();
        let among = plan.setting.partition.ranks();
        let kept = |images: Vec<Option<Stored>>| {
            let kept = |(image, before): (Option<Stored>, &Option<(State, usize)>)| {
                let same = |image: &Stored| before.filter(|(state, _)| *state == image.state).map(|(_, ranks)| ranks);
                image.map(|image| {
                    let ranks = same(&image).unwrap_or(among);
                    Kept::of_ranks(image, ranks)
                })
            };
            images.into_iter().zip(&before).map(kept).collect()
        };
        if new {
            let start = Instant::now();
            let prepared = prepare(plan, &images, &*engine.device, self.rank());
            state.trace.prepared(start);
            if let Err(error) = prepared {
                return Err(Failed { error, images: kept(images) });
            }
        }
        let observe = |step, steps, text: &dyn Fn() -> String| {
            if let Some(observer) = &self.0.settings.observer {
                observer(Progress { step, steps, text });
            }
        };
        let context = Context {
            device: &*engine.device,
            comm: &First::new(&*self.0.comm, among),
            pool: &self.0.pool,
            observer: &observe,
            check: &|| self.0.settings.canceller.check(),
            trace: &mut state.trace,
            keep: if self.ranks() == 1 { self.0.settings.max_pinned } else { 0 },
            sending,
            room: &mut state.room,
            batches,
        };
        match execute(plan, images, context) {
            Ok(Outcome { images, delivered, portions, moved }) => {
                Ok(Outcome { images: kept(images), delivered, portions, moved })
            }
            Err(Failed { error, images }) => Err(Failed { error, images: kept(images) }),
        }
    }

    /// Brings the sources of a plan to rank 0, as far as it does not find them where they are. Collective.
    pub(crate) fn arrange(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        request: &Request,
        plan: &Plan,
    ) -> Result<(), Unevaluated> {
        let among = plan.setting.partition.ranks();
        if self.ranks() == 1 {
            return Ok(()); // devices share the host: see `Session::laid_out`
        }
        let apart = request.sources.iter().zip(&request.laid).filter_map(|((value, at, _), laid)| {
            let at = (*at)?;
            at.found_by(among, engine.hosts(), *laid).is_none().then_some(*value)
        });
        apart.collect::<Vec<_>>().into_iter().try_for_each(|value| self.bring_to_root(state, engine, value))
    }

    /// Brings an image to rank 0. Collective.
    pub(crate) fn bring_to_root(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        value: ValueId,
    ) -> Result<(), Unevaluated> {
        let Some(image) = state.images.here.get(&value) else { return Ok(()) };
        let (shape, dtype, laid, at) = (image.geometry.shape, image.geometry.dtype, image.among(), image.state);
        if at.placement == Placement::Root {
            return Ok(());
        }
        let site = std::panic::Location::caller().into();
        let nodes = vec![Node { op: Op::Source(value), inputs: Vec::new(), shape, dtype, site }];
        let graph = Graph { nodes, roots: vec![NodeId(0)], joined: Vec::new() };
        let request = Request {
            graph,
            wants: vec![Want::Root],
            sources: vec![(value, Some(at), false)],
            laid: vec![laid],
            ..Request::default()
        };
        let setting = self.setting_among(engine, laid, Work::default);
        let plan = self.plan_for(engine, &request, setting)?;
        let ran = self.carry_out(state, engine, &request, (&plan, &mut Batches::default()), (true, Sending::AtOnce));
        let Outcome { mut delivered, .. } = ran.map_err(|failed| Unevaluated::Met(failed.error))?;
        let brought = plan.graph.roots.first().and_then(|root| delivered.remove(root));
        let pixels = match brought {
            Some(Delivered::Coming(landing)) => {
                Some(landing.land().map_err(|e| Unevaluated::Met(self.not_on_host(e)))?)
            }
            Some(Delivered::Here(pixels)) => Some(pixels),
            None => None,
        };
        state.images.freed.extend(state.images.here.remove(&value));
        state.images.give(value, shape, dtype, pixels, Placement::Root);
        Ok(())
    }

    /// The outcome on a rank that takes no part in a plan.
    fn left_to_others(&self, engine: &Engine, plan: &Plan, images: Vec<Option<Kept>>) -> Outcome<Kept> {
        let freed: HashSet<NodeId> = plan
            .steps
            .iter()
            .filter_map(|step| if let Action::Free(n) = step.action { Some(n) } else { None })
            .collect();
        let left = |((i, image), state): ((usize, Option<Kept>), &Option<State>)| {
            let state = (*state).filter(|_| !freed.contains(&NodeId(i)))?;
            let Node { shape, dtype, .. } = plan.graph.nodes[i];
            let elsewhere = || Kept::elsewhere((shape, dtype), state, engine.unified(), plan.setting.partition.ranks());
            Some(image.filter(|image| image.state == state).unwrap_or_else(elsewhere))
        };
        let images = images.into_iter().enumerate().zip(&plan.states).map(left).collect();
        Outcome { images, delivered: HashMap::new(), portions: HashMap::new(), moved: Load::default() }
    }

    /// Gives the results that every rank wants to those that took no part in a plan. Collective.
    fn shared(&self, plan: &Plan, mut outcome: Outcome<Kept>) -> Result<Outcome<Kept>, Failed<Kept>> {
        let among = plan.setting.partition.ranks();
        if among >= self.ranks() {
            return Ok(outcome);
        }
        let mut wanted: Vec<NodeId> = Vec::new();
        for (root, _) in plan.graph.roots.iter().zip(&plan.wants).filter(|(_, want)| **want == Want::Everyone) {
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
                Err(error) => return Err(Failed { error, images: outcome.images }),
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
            return Ok(Some(Delivered::Here(pixels)));
        }
        if self.rank() > 0 {
            return Ok(mine);
        }
        let pixels = match mine {
            Some(Delivered::Coming(landing)) => landing.land().map_err(failed)?,
            Some(Delivered::Here(pixels)) => pixels,
            None => return Err(failed(DeviceError::Internal("a result is not on rank 0".into()))),
        };
        let sends: Vec<(usize, &[u8])> = (among..self.ranks()).map(|rank| (rank, pixels.bytes())).collect();
        if bytes > 0 {
            comm.exchange(&sends, &mut []).map_err(|e| e.during(self.rank(), WHAT))?;
        }
        Ok(Some(Delivered::Here(pixels)))
    }
}

/// Records the images read by a failed plan that were lost with it and that the program still
/// refers to, unless they can be read again.
fn note_lost(state: &mut Mutable, plan: &Plan, error: &Error) {
    let read = plan.graph.nodes.iter().filter_map(|n| n.op.source_value());
    let there = |v: &ValueId| state.images.has(v);
    let lost: Vec<ValueId> = read.filter(|v| !there(v) && state.program.refers_to(*v)).collect();
    for v in lost {
        state.images.gone.insert(v, error.to_string());
    }
}

/// The values without a record.
pub(crate) fn unreferred(state: &Mutable, mut values: Vec<ValueId>) -> Vec<ValueId> {
    values.retain(|v| !state.program.refers_to(*v));
    values
}
