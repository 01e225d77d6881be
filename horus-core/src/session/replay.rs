//! Replay: programs that are recorded once and run again on other pixels, without recording, extracting or planning
//! anew.

use super::engine::Engine;
use super::evaluate::{Unevaluated, source_of};
use super::kept::Kept;
use super::pending::Pending;
use super::plans::Request;
use super::{Mutable, Session};
use crate::device::Sending;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::execute::{Failed, Outcome};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::{NodeId, Op, ValueId};
use crate::ir::kernel::Kernel;
use crate::plan::Plan;
use crate::plan::state::Placement;
use crate::shape::Shape;

/// A program that was evaluated and its plan, ready to run on other pixels in the place of one image.
pub(crate) struct Replay {
    request: Request,
    plan: Plan,
    /// The image in whose place others are put, as it is called now, and its node in the program and in the plan.
    input: ValueId,
    recorded: NodeId,
    planned: NodeId,
    shape: Shape,
    dtype: DType,
    /// The node of each result.
    results: Vec<NodeId>,
}

/// Why a program was not replayed, and the pixels, if they are still available.
pub(crate) struct Refused {
    /// The error of the run; `None` if it was not started because other images are not where they were.
    pub(crate) error: Option<Error>,
    /// For whoever records the program.
    pub(crate) pixels: Option<HostBuffer>,
}

impl Replay {
    /// Of the evaluation that ran last, which gave `pending`.
    pub(super) fn of_last(session: &Session, state: &mut Mutable, input: ValueId, pending: &Pending) -> Option<Replay> {
        if session.0.explain.is_some() || session.0.compare_naive {
            return None; // who looks at plans sees one for each picture
        }
        let (request, plan) = state.plans.take_last()?;
        let recorded = request.graph.nodes.iter().position(|n| n.op == Op::Source(input)).map(NodeId);
        let planned = plan.graph.nodes.iter().position(|n| source_of(&n.op) == Some(input)).map(NodeId);
        // An image that the program looked at before may be on the device; others will not be.
        let given =
            request.sources.iter().any(|(v, at, _)| *v == input && *at == Some(state.given(Placement::Replicated)));
        let all_handed = plan.graph.roots.iter().all(|root| pending.nodes.contains(root));
        match (recorded, planned) {
            (Some(recorded), Some(planned)) if given && all_handed && request.others.is_empty() => {
                let node = request.graph.node(recorded);
                let (shape, dtype, results) = (node.shape, node.dtype, pending.nodes.clone());
                Some(Replay { request, plan, input, recorded, planned, shape, dtype, results })
            }
            _ => {
                state.plans.put(request, plan);
                None
            }
        }
    }

    /// Whether the images that it reads beside its input are where its plan finds them, and no others are in the way.
    fn fits(&self, session: &Session, engine: &Engine, state: &Mutable) -> bool {
        let there = |v: &ValueId| state.images.get(v).map(|image| (image.state, image.lanes()));
        let sources = self.request.sources.iter().zip(&self.request.laid.0);
        let same =
            sources.into_iter().all(|((v, at, _), laid)| *v == self.input || there(v) == at.map(|at| (at, *laid)));
        same && session.others(engine, state, &self.request.sources).is_empty()
    }

    /// Reads another image from now on.
    fn rename(&mut self, input: ValueId) {
        self.request.graph.nodes[self.recorded.0].op = Op::Source(input);
        self.plan.graph.nodes[self.planned.0].op = Kernel::Source(input);
        self.request.sources.iter_mut().filter(|(v, ..)| *v == self.input).for_each(|(v, ..)| *v = input);
        self.input = input;
    }

    /// Gives the images that a run leaves back to the session, all but its input.
    fn give_back(&self, state: &mut Mutable, images: Vec<Option<Kept>>) -> Option<HostBuffer> {
        let mut input = None;
        for (node, image) in self.plan.graph.nodes.iter().zip(images) {
            match (source_of(&node.op), image) {
                (Some(v), Some(image)) if v == self.input => input = Some(image),
                (Some(v), Some(image)) => drop(state.images.insert(v, image)),
                (None, image) => state.freed.extend(image),
                (_, None) => {}
            }
        }
        let mut input: Kept = input?;
        let pixels = input.host.take().or_else(|| input.device.take()?.into_host());
        state.freed.push(input);
        pixels
    }
}

impl Session {
    /// Runs a program again, on the pixels of another picture of the same shape and type; see [`Session::begin_all`].
    pub(crate) fn repeat(&self, replay: &mut Replay, pixels: HostBuffer) -> Result<Pending, Refused> {
        let refused = |error, pixels| Refused { error, pixels };
        let mut state = match self.lock("evaluating") {
            Ok(state) => state,
            Err(e) => return Err(refused(Some(e), Some(pixels))),
        };
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(refused(Some(e), Some(pixels)));
        }
        let Some(engine) = self.engine().filter(|e| matches!(e.mended(), Ok(false)) && replay.fits(self, e, state))
        else {
            return Err(refused(None, Some(pixels)));
        };
        let input = state.names.value();
        state.give(input, replay.shape, replay.dtype, Some(pixels), Placement::Replicated);
        replay.rename(input);
        let mut left = None;
        let ran = self.guard(state, |state| {
            match self.carry_out(state, engine, &replay.request, &replay.plan, (false, Sending::AtOnce)) {
                Ok(Outcome { images, delivered, .. }) => {
                    replay.give_back(state, images);
                    Ok(delivered)
                }
                Err(Failed { error, images }) => {
                    left = replay.give_back(state, images);
                    Err(Unevaluated::Met(error))
                }
            }
        });
        match ran {
            Ok(delivered) => Ok(Pending { nodes: replay.results.clone(), delivered, device: engine.device.name() }),
            Err(error) => Err(refused(Some(error), left)),
        }
    }
}
