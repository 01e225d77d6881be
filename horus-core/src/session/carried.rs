//! Programs are planned, unless they were before, and their plans executed, on the device of this rank or on several.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::evaluate::{Unevaluated, source_of};
use super::kept::Kept;
use super::plans::{Planned, Request};
use super::{Mutable, Progress, Session};
use crate::device::Sending;
use crate::error::Error;
use crate::execute::agree::agree_on_plan;
use crate::execute::{Batches, Context, Delivered, Failed, Outcome, Stored, execute, prepare};
use crate::ir::graph::{NodeId, ValueId};
use crate::plan::Plan;

/// What a program has made. Its sources are images of the session as before.
pub(super) struct Made {
    /// The nodes of its roots in the plan.
    pub(super) roots: Vec<NodeId>,
    /// The names of images by node: of sources, and of those that were [kept](Made::keep).
    pub(super) names: Vec<Option<ValueId>>,
    /// The other images by node.
    pub(super) images: Vec<Option<Kept>>,
    /// What launches have used in the host's memory.
    pub(super) mapped: Vec<NodeId>,
    /// What arrives on this rank's host; or the error of a run that ended early.
    pub(super) delivered: Result<HashMap<NodeId, Delivered>, Error>,
}

impl Made {
    /// Gives names to the images of some nodes, which are the session's from now on, and frees the others.
    pub(super) fn keep(&mut self, state: &mut Mutable, is_kept: impl Fn(NodeId) -> bool) {
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
    /// Plans a program, unless a plan is known and may be used, and runs it; `sending` sets the start of copies of sent
    /// results.
    pub(super) fn perform(
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
            names: plan.graph.nodes.iter().map(|node| source_of(&node.op)).collect(),
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
    pub(super) fn carry_out(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        request: &Request,
        (plan, batches): (&Plan, &mut Batches),
        how: (bool, Sending),
    ) -> Result<Outcome<Kept>, Failed<Kept>> {
        let ran = self.carry_out_apart(state, engine, request, (plan, batches), how);
        let mut back = |images: &mut [Option<Kept>]| {
            for (node, image) in plan.graph.nodes.iter().zip(images) {
                if let Some(value) = source_of(&node.op) {
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
        let images = plan.graph.iter().map(|(_, n)| source_of(&n.op).and_then(|v| state.images.here.remove(&v)));
        let images: Vec<_> = images.collect();
        let outcome = if plan.setting.in_lanes() {
            self.carry_out_on_lanes(state, engine, plan, images, (new, sending))?
        } else {
            self.carry_out_alone(state, engine, (plan, batches), images, (new, sending))?
        };
        state.stats.evaluations += 1;
        state.stats.made.add(&plan.counts());
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
        let images = self.laid_out(engine, images, 1)?;
        let images: Vec<_> = images.into_iter().map(|image| image.map(Kept::into_first)).collect();
        let kept = |images: Vec<Option<Stored>>| images.into_iter().map(|i| i.map(Kept::from)).collect();
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
            comm: &*self.0.comm,
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
}

/// Records the images read by a failed plan that were lost with it and that the program still
/// refers to, unless they can be read again.
fn note_lost(state: &mut Mutable, plan: &Plan, error: &Error) {
    let read = plan.graph.nodes.iter().filter_map(|n| source_of(&n.op));
    let there = |v: &ValueId| state.images.has(v);
    let lost: Vec<ValueId> = read.filter(|v| !there(v) && state.program.refers_to(*v)).collect();
    for v in lost {
        state.images.gone.insert(v, error.to_string());
    }
}
