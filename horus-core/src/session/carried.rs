//! Execution of plans, on the device of this rank or on several.

use std::time::{Duration, Instant};

use super::engine::Engine;
use super::evaluate::source_of;
use super::kept::Kept;
use super::plans::Request;
use super::{Mutable, Progress, Session};
use crate::device::Sending;
use crate::execute::agree::agree_on_plan;
use crate::execute::{Batches, Context, Failed, Outcome, Stored, execute, prepare};
use crate::plan::Plan;

impl Session {
    /// Runs a plan, whose kernels are built already unless it is new; `sending` sets the start of
    /// copies of sent results. Takes its source images out of the session; the remaining images are
    /// returned in any case.
    pub(super) fn carry_out(
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
