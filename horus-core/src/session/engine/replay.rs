//! Replay: programs that are recorded once and run again on other pixels or images, without recording, extracting or
//! planning. See `docs/design/replay.md`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::DownloadStart;
use crate::dtype::DType;
use crate::error::{Call, Error, Result};
use crate::execute::{Delivered, ExecutionOutcome, FailedExecution};
use crate::host::buffer::HostBuffer;
use crate::host::external::DeviceArray;
use crate::ir::graph::{NodeId, Op, ValueId};
use crate::ir::kernel::Kernel;
use crate::plan::ResultDelivery;
use crate::plan::state::{ImageState, Placement};
use crate::session::cache::{CachedPlan, PlanRequest, ResidentImage};
use crate::session::devices::Engine;
use crate::session::engine::failure::EvaluationError;
use crate::session::engine::read::Pending;
use crate::session::images::image::StoredImage;
use crate::session::{Handle, Session, SessionState, StandIns};
use crate::shape::{Shape, Window};

/// An evaluated program and its plan, ready to run on other pixels in place of some images.
#[doc(hidden)]
pub struct Replay {
    request: PlanRequest,
    made: CachedPlan,
    inputs: Vec<ReplayInput>,
    /// Node of each result, with its shape and type.
    results: Vec<(NodeId, Shape, DType)>,
    /// Peak bytes of the plan's images on the device.
    most_on_device: usize,
}

/// An image that is replaced in each run.
struct ReplayInput {
    /// Current name of the image.
    value: ValueId,
    /// Use of the image in the program; `None` if it is not read.
    read: Option<ReplayInputNodes>,
    shape: Shape,
    dtype: DType,
}

/// Use of an image in a program.
struct ReplayInputNodes {
    /// Its node in the program.
    recorded: NodeId,
    /// Its node in the plan.
    planned: NodeId,
    /// Its index among the sources of the program.
    source: usize,
}

/// A refused or failed replay, with its pixels if they are still available.
#[doc(hidden)]
pub struct FailedReplay {
    /// Error of the run; `None` if it was not started because other images have moved.
    pub error: Option<Error>,
    /// For recording the program again.
    pub pixels: Option<Vec<HostBuffer>>,
}

impl Replay {
    /// Makes a replay of the last evaluation, which computed `results` and read `inputs`. Other images will replace the
    /// inputs: in any state, or in the state `at` of newly given images.
    pub(crate) fn of_last(
        session: &Session,
        state: &mut SessionState,
        inputs: &[(ValueId, Shape, DType)],
        results: Vec<(NodeId, Shape, DType)>,
        at: Option<ImageState>,
    ) -> Option<Replay> {
        if session.shows_plans() {
            return None; // explained plans are made for each picture
        }
        let (request, made) = state.plans.take_last()?;
        let plan = &made.plan;
        let input = |&(value, shape, dtype): &(ValueId, Shape, DType)| {
            let recorded = request.graph.nodes.iter().position(|n| n.op == Op::Source(value)).map(NodeId);
            let planned = plan.graph.nodes.iter().position(|n| n.op.source_value() == Some(value)).map(NodeId);
            let source = request.sources.iter().position(|(v, ..)| *v == value);
            match (recorded, planned, source) {
                // An image that was read before may be on the device; its replacements will not be.
                (_, _, Some(source)) if at.is_some() && request.sources[source].1 != at => None,
                (Some(recorded), Some(planned), Some(source)) => Some(ReplayInput {
                    value,
                    read: Some(ReplayInputNodes { recorded, planned, source }),
                    shape,
                    dtype,
                }),
                (None, None, None) => Some(ReplayInput { value, read: None, shape, dtype }),
                _ => None,
            }
        };
        let known: Option<Vec<ReplayInput>> = inputs.iter().map(input).collect();
        let all_handed = plan.graph.roots.iter().all(|root| results.iter().any(|(n, ..)| n == root));
        // Results that read none of the inputs depend on something else, which only a call determines.
        let known = known.filter(|inputs| inputs.iter().any(|input| input.read.is_some()));
        match known {
            Some(inputs) if all_handed && request.others.is_empty() => {
                let most_on_device = plan.most_on_device();
                Some(Replay { request, made, inputs, results, most_on_device })
            }
            _ => {
                state.plans.put(request, made);
                None
            }
        }
    }

    /// Returns `true` if the source images, and inputs of kind `whose`, are where the plan expects them, and the other
    /// images leave enough memory.
    fn fits(&self, session: &Session, engine: &Engine, state: &SessionState, whose: ReplayInputKind) -> bool {
        let there = |v: &ValueId| state.images.in_memory.get(v).map(|image| (image.state, image.among()));
        let sources = self.request.sources.iter().zip(&self.request.laid);
        let looked_at = |v: &ValueId| matches!(whose, ReplayInputKind::Images) || !self.is_input(*v);
        let runs = engine.is_ready_for(&self.made.plan) && self.made.is_best(engine);
        let same = sources.into_iter().all(|((v, at, _), laid)| !looked_at(v) || there(v) == at.map(|at| (at, *laid)));
        let others = session.others(engine, state, &self.request.sources);
        runs && same
            && (others.is_empty() || engine.has_room_beside(ResidentImage::bytes_of(&others), self.most_on_device))
    }

    fn is_input(&self, value: ValueId) -> bool {
        self.inputs.iter().any(|input| input.value == value)
    }

    /// Runs the plan.
    fn run_plan(
        &mut self,
        session: &Session,
        state: &mut SessionState,
        engine: &Engine,
    ) -> Result<ExecutionOutcome<StoredImage>, FailedExecution<StoredImage>> {
        let CachedPlan { plan, batches, forgone, .. } = &mut self.made;
        engine.forgo(*forgone);
        session.run_plan(state, engine, &self.request, (plan, batches), (false, DownloadStart::AtOnce))
    }

    /// Replaces the inputs' names by those of other images.
    fn rename(&mut self, values: &[ValueId]) {
        for (input, &now) in self.inputs.iter_mut().zip(values) {
            input.value = now;
            let Some(ReplayInputNodes { recorded, planned, source }) = input.read else { continue };
            self.request.graph.nodes[recorded.0].op = Op::Source(now);
            self.made.plan.graph.nodes[planned.0].op = Kernel::Source(now);
            self.request.sources[source].0 = now;
        }
    }

    /// Takes the inputs of a run out of the session, and returns their pixels if all exist.
    fn give_back(&self, state: &mut SessionState, made: Vec<Option<StoredImage>>) -> Option<Vec<HostBuffer>> {
        state.images.freed.extend(made.into_iter().flatten());
        let pixels = |input: &ReplayInput| {
            let mut image = state.images.in_memory.remove(&input.value)?;
            let pixels = image.host.take().or_else(|| image.device.take()?.into_host());
            state.images.freed.push(image);
            pixels
        };
        let all: Vec<Option<HostBuffer>> = self.inputs.iter().map(pixels).collect();
        all.into_iter().collect()
    }

    /// Results of a run, as far as they exist; other images are freed.
    fn keep(&self, state: &mut SessionState, made: Vec<Option<StoredImage>>) -> HashMap<NodeId, StoredImage> {
        let is_result = |n: &NodeId| self.results.iter().any(|(result, ..)| result == n);
        let made = made.into_iter().enumerate().filter_map(|(i, image)| Some((NodeId(i), image?)));
        let (results, others): (HashMap<_, _>, HashMap<_, _>) = made.partition(|(n, _)| is_result(n));
        state.images.freed.extend(others.into_values());
        results
    }
}

/// An input of a run on a device.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum DeviceInput<'a> {
    /// An evaluated image of the session.
    Image(&'a Handle),
    /// Pixels of another library, read in place by this run alone.
    Array(Shape, DType, &'a DeviceArray),
}

/// Kind of the inputs of a run.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum ReplayInputKind {
    /// Pixels given to the session for one run.
    Pixels,
    /// Images of the session.
    Images,
}

impl Session {
    /// Runs a program again on other pixels of the same shapes and types, one buffer per input; see
    /// [`Session::begin_all`].
    ///
    /// # Errors
    /// Returns the pixels if the program must be recorded again.
    #[doc(hidden)]
    pub fn repeat(&self, replay: &mut Replay, pixels: Vec<HostBuffer>) -> Result<Pending, Box<FailedReplay>> {
        let refused = |error, pixels| Box::new(FailedReplay { error, pixels });
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
        let engine = self.engine().filter(|e| fit && replay.fits(self, e, state, ReplayInputKind::Pixels));
        let Some(engine) = engine else { return Err(refused(None, Some(pixels))) };
        let values: Vec<ValueId> = pixels.iter().map(|_| state.names.value()).collect();
        for ((value, input), pixels) in values.iter().zip(&replay.inputs).zip(pixels) {
            state.images.note_given(*value, &pixels);
            state.images.give(*value, input.shape.stored(), input.dtype, Some(pixels), Placement::Replicated);
        }
        replay.rename(&values);
        let mut left = None;
        let ran = self.guard(state, |state| match replay.run_plan(self, state, engine) {
            Ok(ExecutionOutcome { images, delivered, .. }) => {
                replay.give_back(state, images);
                Ok(delivered)
            }
            Err(FailedExecution { error, images }) => {
                left = replay.give_back(state, images);
                Err(EvaluationError::DuringExecution(error))
            }
        });
        match ran {
            Ok(delivered) => Ok(Pending {
                nodes: replay.results.iter().map(|(n, ..)| *n).collect(),
                delivered,
                device: Arc::clone(&engine.joined_names),
            }),
            Err(error) => Err(refused(Some(error), left)),
        }
    }

    /// [`Session::begin_all`] of values recorded on stand-ins for images. Also returns a program that can run again on
    /// other pixels ([`Session::repeat`]) or images ([`Session::repeat_and_read`]). That is `None` if the program
    /// involves other values, other images or other ranks, or values observed since.
    #[doc(hidden)]
    pub fn begin_repeatable(
        &self,
        values: &[&Handle],
        stand_ins: &StandIns,
        want: ResultDelivery,
        whose: ReplayInputKind,
    ) -> Result<(Pending, Option<Replay>)> {
        let alone = self.ranks() == 1;
        let mut state = self.lock("evaluating")?;
        let inputs = stood_for(&mut state, stand_ins).filter(|_| alone);
        let want = if alone { ResultDelivery::Requester } else { want };
        let pending = self.look_at(&mut state, values, want, DownloadStart::AtOnce)?;
        let given = matches!(whose, ReplayInputKind::Pixels).then(|| state.images.state_of(Placement::Replicated));
        let replay =
            inputs.and_then(|inputs| Replay::of_last(self, &mut state, &inputs, kinds(&pending.nodes, values), given));
        Ok((pending, replay))
    }

    /// Evaluates in place values that were recorded on stand-ins for images, and returns a program that can run again
    /// on other images; `None` if it involves more than those values and images. See [`Session::repeat_on`].
    ///
    /// # Errors
    /// Errors of the evaluation.
    #[doc(hidden)]
    pub fn keep_repeatable(&self, values: &[&Handle], stand_ins: &StandIns) -> Result<Option<Replay>> {
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        let inputs = stood_for(state, stand_ins);
        let nodes = self.look_at(state, values, ResultDelivery::Keep, DownloadStart::AtOnce)?.nodes;
        // Each result must be an image of its own.
        let distinct = (1..nodes.len()).all(|i| !nodes[..i].contains(&nodes[i]));
        let inputs = inputs.filter(|_| distinct && self.ranks() == 1);
        let replay = inputs.and_then(|inputs| Replay::of_last(self, state, &inputs, kinds(&nodes, values), None));
        let computes = |replay: &Replay| {
            replay.results.iter().all(|(n, ..)| replay.made.plan.graph.node(*n).op.source_value().is_none())
        };
        Ok(replay.filter(computes))
    }

    /// Runs a program again on other images and arrays of the same shapes and types, one per input and in its place.
    /// Returns the results, in place; `None` if the program must be recorded again.
    ///
    /// # Errors
    /// Errors of the evaluation. The images stay.
    #[doc(hidden)]
    pub fn repeat_on(&self, replay: &mut Replay, inputs: &[DeviceInput<'_>]) -> Result<Option<Vec<Handle>>> {
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        let Some((mut results, _)) = self.run_on(state, replay, inputs)? else { return Ok(None) };
        let handle = |&(node, shape, dtype): &(NodeId, Shape, DType)| {
            let image = results.remove(&node)?;
            let (id, value) = (self.0.numbers.record(), state.names.value());
            state.images.in_memory.insert(value, image);
            let site = replay.made.plan.graph.node(node).site;
            state.program.record(id, Op::Source(value), &[], (shape, dtype), site);
            Some(Handle::new(self, Ok(id), (shape, dtype)))
        };
        let handles: Option<Vec<Handle>> = replay.results.iter().map(handle).collect();
        Ok(handles)
    }

    /// [`Session::repeat_on`] for a program whose results are read on the host; see [`Session::begin_all`].
    ///
    /// # Errors
    /// Errors of the evaluation. The images stay.
    #[doc(hidden)]
    pub fn repeat_and_read(&self, replay: &mut Replay, inputs: &[DeviceInput<'_>]) -> Result<Option<Pending>> {
        let mut state = self.lock("evaluating")?;
        let Some((images, delivered)) = self.run_on(&mut state, replay, inputs)? else { return Ok(None) };
        state.images.freed.extend(images.into_values());
        let nodes = replay.results.iter().map(|(n, ..)| *n).collect();
        Ok(Some(Pending { nodes, delivered, device: self.shared_device_name() }))
    }

    /// Runs a program on other images and arrays. Returns the results that stay, and those on their way to the host.
    fn run_on(
        &self,
        state: &mut SessionState,
        replay: &mut Replay,
        inputs: &[DeviceInput<'_>],
    ) -> Result<Option<ReplayResults>> {
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        let known = |input: &DeviceInput<'_>| match input {
            DeviceInput::Image(image) => (image.shape, image.dtype),
            DeviceInput::Array(shape, dtype, _) => (*shape, *dtype),
        };
        if !inputs.iter().map(known).eq(replay.inputs.iter().map(|i| (i.shape, i.dtype))) {
            return Ok(None);
        }
        let mut values = Vec::with_capacity(inputs.len());
        let entered = self.enter(state, inputs, &mut values);
        let ran = entered.and_then(|entered| if entered { self.run_with(state, replay, &values) } else { Ok(None) });
        for (value, _) in values.iter().zip(inputs).filter(|(_, input)| matches!(input, DeviceInput::Array(..))) {
            state.images.freed.extend(state.images.in_memory.remove(value));
        }
        ran
    }

    /// Names the inputs of a run, arrays as new images; returns `false` if an image is not evaluated, or comes twice.
    fn enter(&self, state: &mut SessionState, inputs: &[DeviceInput<'_>], values: &mut Vec<ValueId>) -> Result<bool> {
        let call = Call::of("reading memory of a device");
        for input in inputs {
            let value = match input {
                DeviceInput::Image(image) => {
                    let known = image.look().ok().and_then(|id| state.program.value(id));
                    let Some(value) = known.filter(|value| !values.contains(value)) else { return Ok(false) };
                    value
                }
                DeviceInput::Array(shape, dtype, array) => {
                    let adopted = self.known_device(call)?.adopt(array, false);
                    let pixels = adopted.map_err(|source| self.at_host(call, source))?;
                    let value = state.names.value();
                    let whole = vec![(pixels, Window::whole(shape.height))];
                    state.images.give_device(value, shape.stored(), *dtype, whole);
                    value
                }
            };
            values.push(value);
        }
        Ok(true)
    }

    /// Runs a program on the images of these names.
    fn run_with(
        &self,
        state: &mut SessionState,
        replay: &mut Replay,
        values: &[ValueId],
    ) -> Result<Option<ReplayResults>> {
        replay.rename(values);
        let engine = self.engine().filter(|e| replay.fits(self, e, state, ReplayInputKind::Images));
        let Some(engine) = engine else { return Ok(None) };
        self.guard(state, |state| match replay.run_plan(self, state, engine) {
            Ok(ExecutionOutcome { images, delivered, .. }) => Ok(Some((replay.keep(state, images), delivered))),
            Err(FailedExecution { error, images }) => {
                replay.keep(state, images);
                Err(EvaluationError::DuringExecution(error))
            }
        })
    }
}

/// Results that stay where they are, and results on their way to the host.
type ReplayResults = (HashMap<NodeId, StoredImage>, HashMap<NodeId, Delivered>);

/// Names, shapes and types of the images that the stand-ins have represented so far; `None` if an image is not
/// evaluated, or a value recorded on stand-ins was evaluated.
fn stood_for(state: &mut SessionState, stand_ins: &StandIns) -> Option<Vec<(ValueId, Shape, DType)>> {
    let whole = !state.program.looked_into(stand_ins.step);
    stand_ins.end(state);
    named(state, &stand_ins.handles().iter().collect::<Vec<_>>()).filter(|_| whole)
}

/// Names, shapes and types of images of the session; `None` if one is not evaluated.
fn named(state: &SessionState, images: &[&Handle]) -> Option<Vec<(ValueId, Shape, DType)>> {
    images.iter().map(|image| Some((state.program.value(image.look().ok()?)?, image.shape, image.dtype))).collect()
}

/// Nodes of results, with their shapes and types.
fn kinds(nodes: &[NodeId], results: &[&Handle]) -> Vec<(NodeId, Shape, DType)> {
    nodes.iter().zip(results).map(|(n, result)| (*n, result.shape, result.dtype)).collect()
}
