//! Replay: programs that are recorded once and run again on other pixels, without recording, extracting or planning
//! anew.

use std::collections::HashMap;

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

/// A program that was evaluated and its plan, ready to run on other pixels in the place of some images.
#[doc(hidden)]
pub struct Replay {
    request: Request,
    plan: Plan,
    inputs: Vec<Input>,
    /// The node of each result.
    results: Vec<NodeId>,
}

/// An image in whose place others are put.
struct Input {
    /// As it is called now.
    value: ValueId,
    /// Its node in the program and in the plan; none if the program does not read it.
    nodes: Option<(NodeId, NodeId)>,
    shape: Shape,
    dtype: DType,
}

/// Why a program was not replayed, and the pixels, if they are still available.
#[doc(hidden)]
pub struct Refused {
    /// The error of the run; `None` if it was not started because other images are not where they were.
    pub error: Option<Error>,
    /// For whoever records the program.
    pub pixels: Option<Vec<HostBuffer>>,
}

impl Replay {
    /// Of the evaluation that ran last, which gave `pending`.
    pub(super) fn of_last(
        session: &Session,
        state: &mut Mutable,
        inputs: &[(ValueId, Shape, DType)],
        pending: &Pending,
    ) -> Option<Replay> {
        if session.0.explain.is_some() || session.0.compare_naive {
            return None; // who looks at plans sees one for each picture
        }
        let (request, plan) = state.plans.take_last()?;
        let input = |&(value, shape, dtype): &(ValueId, Shape, DType)| {
            let recorded = request.graph.nodes.iter().position(|n| n.op == Op::Source(value)).map(NodeId);
            let planned = plan.graph.nodes.iter().position(|n| source_of(&n.op) == Some(value)).map(NodeId);
            // An image that the program looked at before may be on the device; others will not be.
            let given = Some(state.given(Placement::Replicated));
            let found = request.sources.iter().find(|(v, ..)| *v == value).map(|(_, at, _)| *at == given);
            match (recorded, planned, found) {
                (Some(recorded), Some(planned), Some(true)) => {
                    Some(Input { value, nodes: Some((recorded, planned)), shape, dtype })
                }
                (None, None, None) => Some(Input { value, nodes: None, shape, dtype }),
                _ => None,
            }
        };
        let known: Option<Vec<Input>> = inputs.iter().map(input).collect();
        let all_handed = plan.graph.roots.iter().all(|root| pending.nodes.contains(root));
        // What reads none of them follows from something else, which only a call tells.
        let known = known.filter(|inputs| inputs.iter().any(|input| input.nodes.is_some()));
        match known {
            Some(inputs) if all_handed && request.others.is_empty() => {
                Some(Replay { request, plan, inputs, results: pending.nodes.clone() })
            }
            _ => {
                state.plans.put(request, plan);
                None
            }
        }
    }

    /// Whether the images that it reads beside its inputs are where its plan finds them, and no others are in the way.
    fn fits(&self, session: &Session, engine: &Engine, state: &Mutable) -> bool {
        let there = |v: &ValueId| state.images.get(v).map(|image| (image.state, image.lanes()));
        let sources = self.request.sources.iter().zip(&self.request.laid.0);
        let same =
            sources.into_iter().all(|((v, at, _), laid)| self.is_input(*v) || there(v) == at.map(|at| (at, *laid)));
        same && session.others(engine, state, &self.request.sources).is_empty()
    }

    fn is_input(&self, value: ValueId) -> bool {
        self.inputs.iter().any(|input| input.value == value)
    }

    /// Reads other images from now on.
    fn rename(&mut self, values: &[ValueId]) {
        for (input, &now) in self.inputs.iter_mut().zip(values) {
            let before = std::mem::replace(&mut input.value, now);
            let Some((recorded, planned)) = input.nodes else { continue };
            self.request.graph.nodes[recorded.0].op = Op::Source(now);
            self.plan.graph.nodes[planned.0].op = Kernel::Source(now);
            self.request.sources.iter_mut().filter(|(v, ..)| *v == before).for_each(|(v, ..)| *v = now);
        }
    }

    /// Gives the images that a run leaves back to the session, all but its inputs, whose pixels are returned if all are there.
    fn give_back(&self, state: &mut Mutable, images: Vec<Option<Kept>>) -> Option<Vec<HostBuffer>> {
        let mut inputs: HashMap<ValueId, Kept> = HashMap::new();
        for (node, image) in self.plan.graph.nodes.iter().zip(images) {
            match (source_of(&node.op), image) {
                (Some(v), Some(image)) if self.is_input(v) => drop(inputs.insert(v, image)),
                (Some(v), Some(image)) => drop(state.images.insert(v, image)),
                (None, image) => state.freed.extend(image),
                (_, None) => {}
            }
        }
        let pixels = |input: &Input| {
            let mut image = inputs.remove(&input.value).or_else(|| state.images.remove(&input.value))?;
            let pixels = image.host.take().or_else(|| image.device.take()?.into_host());
            state.freed.push(image);
            pixels
        };
        let all: Vec<Option<HostBuffer>> = self.inputs.iter().map(pixels).collect();
        all.into_iter().collect()
    }
}

impl Session {
    /// Runs a program again, on other pixels of the same shapes and types, an image's for each input; see [`Session::begin_all`].
    ///
    /// # Errors
    /// The pixels, where the program had better be recorded again.
    #[doc(hidden)]
    pub fn repeat(&self, replay: &mut Replay, pixels: Vec<HostBuffer>) -> Result<Pending, Box<Refused>> {
        let refused = |error, pixels| Box::new(Refused { error, pixels });
        let mut state = match self.lock("evaluating") {
            Ok(state) => state,
            Err(e) => return Err(refused(Some(e), Some(pixels))),
        };
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(refused(Some(e), Some(pixels)));
        }
        let fit = pixels.len() == replay.inputs.len()
            && replay.inputs.iter().zip(&pixels).all(|(i, p)| p.len() == i.shape.len() * i.dtype.size());
        let engine = self.engine().filter(|e| fit && matches!(e.mended(), Ok(false)) && replay.fits(self, e, state));
        let Some(engine) = engine else { return Err(refused(None, Some(pixels))) };
        let values: Vec<ValueId> = pixels.iter().map(|_| state.names.value()).collect();
        for ((value, input), pixels) in values.iter().zip(&replay.inputs).zip(pixels) {
            state.give(*value, input.shape, input.dtype, Some(pixels), Placement::Replicated);
        }
        replay.rename(&values);
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
