//! Lanes: the devices of one process. To the planner each is a rank whose host the others share; a plan for several runs on a thread
//! for each.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use super::engine::Engine;
use super::evaluate::source_of;
use super::plans::Request;
use super::{Mutable, Progress, Session};
use crate::comm::threads::ThreadComm;
use crate::comm::{Communicator, guarded};
use crate::device::{Device, Geometry, Memory, Sending};
use crate::error::{DeviceError, Error, Result};
use crate::execute::portions::{Portion, assembled};
use crate::execute::{Context, Failed, Outcome, Stored, execute, prepare};
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::machine::HostSide;
use crate::plan::partition::Partition;
use crate::plan::state::{Halo, Hosts, Placement, Residency, State};
use crate::plan::work::Work;
use crate::plan::{Plan, Setting};
use crate::shape::Window;

/// Seconds that it takes to have a lane begin and to wait for its end, beside what is predicted of its plan: what making and joining a
/// thread takes, and meeting the others at each exchange.
const STARTED: f64 = 50e-6;

/// An image of a session: what each lane has of it, or what one has, whose host is that of all.
#[derive(Debug)]
pub(super) struct Kept {
    first: Stored,
    others: Vec<Stored>,
}

impl From<Stored> for Kept {
    fn from(first: Stored) -> Kept {
        Kept { first, others: Vec::new() }
    }
}

impl Deref for Kept {
    type Target = Stored;
    fn deref(&self) -> &Stored {
        &self.first
    }
}

impl DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Stored {
        &mut self.first
    }
}

impl Kept {
    /// What each lane has, of which there is one at least.
    pub(super) fn of(mut lanes: Vec<Stored>) -> Option<Kept> {
        (!lanes.is_empty()).then(|| Kept { first: lanes.remove(0), others: lanes })
    }

    /// What the only lane has, or the first.
    pub(super) fn into_first(self) -> Stored {
        self.first
    }

    /// How many lanes have parts of it.
    pub(super) fn lanes(&self) -> usize {
        1 + self.others.len()
    }

    /// What each lane has.
    fn each(&self) -> impl Iterator<Item = &Stored> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn into_each(self) -> Vec<Stored> {
        std::iter::once(self.first).chain(self.others).collect()
    }
}

/// The state of an image that is whole on the host of all lanes.
pub(super) const fn on_host(unified: bool) -> State {
    let residency = if unified { Residency::Both } else { Residency::Host };
    State { residency, placement: Placement::Replicated }
}

/// An image that every lane has on its host, which is one.
fn shared(geometry: Geometry, host: &HostBuffer, lanes: usize, unified: bool) -> Option<Kept> {
    let share = |_| {
        let buffer = host.clone();
        let (host, device) = if unified { (None, Some(Memory::Host(buffer))) } else { (Some(buffer), None) };
        Stored { geometry, state: on_host(unified), host, device }
    };
    Kept::of((0..lanes).map(share).collect())
}

/// Whether the buffers of an image hold all of it.
fn is_whole(image: &Stored) -> bool {
    image.geometry.window.covers(Window::whole(image.geometry.shape.height))
        && !matches!(image.state.placement, Placement::Strips(_))
}

/// The whole image on the host, if a lane has it there: none if only strips are, or on devices.
fn whole_on_host(lanes: &[Option<Stored>]) -> Option<(Geometry, HostBuffer)> {
    let found = lanes.iter().flatten().find(|image| {
        image.geometry.window == Window::whole(image.geometry.shape.height) && is_whole(image) && image.host().is_some()
    })?;
    Some((found.geometry, found.host()?.clone()))
}

/// An error of lane `lane` of `lanes`, which says so.
fn of_lane(error: Error, lane: usize, lanes: usize) -> Error {
    match error {
        Error::Device { op, device, source } => Error::Device { op, device: named(&device, lane, lanes), source },
        other => other,
    }
}

/// A device and which of the lanes it is.
pub(super) fn named(device: &str, lane: usize, lanes: usize) -> String {
    format!("{device} (lane {} of {lanes})", lane + 1)
}

/// Reads bytes of one lane's image on its host, or on its device.
fn read(image: &Stored, device: &dyn Device, from: usize, target: &mut [u8]) -> Result<(), DeviceError> {
    match (image.host(), &image.device) {
        (Some(host), _) => {
            device.workers().copy(&host.bytes()[from..from + target.len()], target);
            Ok(())
        }
        (None, Some(memory)) => device.read(memory, from, target),
        (None, None) => Err(DeviceError::Internal("pixels that are read are not in memory".into())),
    }
}

impl Session {
    /// Number of lanes: devices of this process that run the program together.
    pub fn lanes(&self) -> usize {
        self.engine().map_or(1, Engine::lanes)
    }

    /// The memory of lanes, or of the only one, with the rows of an image of `height` that each has.
    pub(super) fn strips_of(&self, pixels: Vec<Memory>, height: usize) -> Vec<(Memory, Window)> {
        let partition = self.engine().filter(|_| pixels.len() > 1).map(Engine::partition);
        let rows = |lane| partition.map_or(Window::whole(height), |partition| partition.strip(lane, height));
        pixels.into_iter().enumerate().map(|(lane, memory)| (memory, rows(lane))).collect()
    }

    /// The plan of several lanes for a request, and what to say of the choice.
    pub(super) fn plan_lanes(&self, engine: &Engine, state: &mut Mutable, request: &Request) -> Result<(Plan, String)> {
        let (lanes, work) = (engine.lanes(), Work::of(&request.graph));
        let partition = engine.divided().cloned().unwrap_or_else(|| engine.shares(&work));
        let of_all = Setting { hosts: Hosts::Shared, ..self.setting(engine, partition) };
        let all = self.plan_for(engine, state, request, of_all)?;
        let shares: Vec<String> = engine
            .devices()
            .enumerate()
            .map(|(lane, device)| format!("      lane {}  {}\n", lane + 1, device.name()))
            .collect();
        let shares = format!("{}      rows divided as {}\n", shares.concat(), all.setting.partition);
        if self.0.all_lanes {
            return Ok((all, shares));
        }
        let of_one = Setting {
            machine: Arc::clone(&engine.alone),
            capacity: engine.device.capacity(),
            ..self.setting(engine, Partition::equal(1))
        };
        let one = self.plan_for(engine, state, request, Setting { direct: false, ..of_one })?;
        // What is spread otherwise is brought to the host first.
        let moved = |to: usize| -> f64 {
            let sources = request.sources.iter().zip(&request.laid.0);
            let elsewhere =
                sources.filter(|((_, at, _), laid)| **laid != to && at.is_some_and(|s| !s.residency.host()));
            let bytes = elsewhere.filter_map(|((v, ..), laid)| Some((state.images.get(v)?.geometry, *laid)));
            bytes
                .map(|(g, laid)| engine.machine.of(0).download(g.shape.len() * g.dtype.size() / laid, HostSide::Staged))
                .sum()
        };
        let together = all.predicted + moved(lanes) + STARTED * lanes as f64;
        let alone = one.predicted + moved(1);
        let ms = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
        let said = format!("predicted to take {} on all {lanes} lanes, {} on the first", ms(together), ms(alone));
        let first = match (one.lacking.is_some() || !one.fits, all.lacking.is_some() || !all.fits) {
            (true, false) => false,
            (false, true) => true,
            _ => alone <= together,
        };
        Ok(if first { (one, format!("      {said}\n")) } else { (all, format!("{shares}      {said}\n")) })
    }

    /// An image as a plan for so many lanes finds it: if it is spread over another number of them, it is brought to the host first.
    fn laid(&self, engine: &Engine, image: Kept, lanes: usize) -> Result<Kept, Box<(Error, Kept)>> {
        if image.lanes() == lanes {
            return Ok(image);
        }
        let unified = engine.unified();
        match self.on_host(engine, &image) {
            Ok((geometry, host)) => Ok(shared(geometry, &host, lanes, unified).unwrap_or(image)),
            Err(source) => {
                let op = "bringing an image to the host of all devices".into();
                Err(Box::new((Error::Device { op, device: self.device_name(), source }, image)))
            }
        }
    }

    /// The whole of an image on the host.
    fn on_host(&self, engine: &Engine, image: &Kept) -> Result<(Geometry, HostBuffer), DeviceError> {
        let height = image.geometry.shape.height;
        let whole = Geometry { window: Window::whole(height), ..image.geometry };
        if let Some(host) = image.each().find(|i| is_whole(i) && i.geometry == whole).and_then(Stored::host) {
            return Ok((whole, host.clone()));
        }
        let mut host = self.0.pool.try_allocate(whole.bytes())?;
        let target = host.bytes_mut();
        for (lane, (stored, device)) in image.each().zip(engine.devices()).enumerate() {
            let rows = match stored.state.placement {
                Placement::Strips(_) => engine.partition().strip(lane, height),
                _ if lane == 0 => whole.window,
                _ => Window::new(0, 0),
            };
            for c in 0..whole.shape.planes() {
                let (from, to) = (stored.geometry.row_bytes(c, rows), whole.row_bytes(c, rows));
                if !from.is_empty() {
                    read(stored, &**device, from.start, &mut target[to])?;
                }
            }
        }
        Ok((whole, host))
    }

    /// Runs a plan on all of its lanes at once: on this thread the first.
    pub(super) fn carry_out_on_lanes(
        &self,
        state: &mut Mutable,
        engine: &Engine,
        plan: &Plan,
        images: Vec<Option<Kept>>,
        (new, sending): (bool, Sending),
    ) -> Result<Outcome<Kept>, Failed<Kept>> {
        let lanes = plan.setting.partition.ranks();
        engine.divide(|| plan.setting.partition.clone());
        let images = self.laid_out(engine, images, lanes)?;
        let mut per_lane: Vec<Vec<Option<Stored>>> = (0..lanes).map(|_| Vec::with_capacity(images.len())).collect();
        for image in images {
            let mut parts = image.map_or_else(Vec::new, Kept::into_each).into_iter();
            per_lane.iter_mut().for_each(|lane| lane.push(parts.next()));
        }
        let Mutable { trace, lane_traces, room, .. } = state;
        let keep = self.0.max_pinned;
        let failed: Mutex<Option<Error>> = Mutex::default();
        let observe = |step, steps, text: &dyn Fn() -> String| {
            if let Some(observer) = &self.0.observer {
                observer(Progress { step, steps, text });
            }
        };
        let run = |comm: &ThreadComm, images: Vec<Option<Stored>>, new: bool, context: Context<'_>| {
            let lane = comm.rank();
            let made = if new { prepare(plan, &images, context.device, lane) } else { Ok(()) };
            let ran = guarded(comm, "an evaluation", || match made {
                Ok(()) => execute(plan, images, context),
                Err(error) => Err(Failed { error, images }),
            });
            ran.map_err(|Failed { error, images }| {
                // The first error is why all end.
                let error = of_lane(error, lane, lanes);
                comm.abort(&error.to_string());
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                engine.disconnect();
                images
            })
        };
        let comms = ThreadComm::group(lanes);
        let mut others = per_lane.split_off(1).into_iter();
        let first = per_lane.pop().unwrap_or_default();
        if new {
            // Other lanes find what it compiled.
            let start = std::time::Instant::now();
            let prepared = prepare(plan, &first, &*engine.device, 0);
            trace.prepared(start);
            if let Err(error) = prepared {
                let lanes_left = std::iter::once(first).chain(others).collect();
                return Err(Failed {
                    error: of_lane(error, 0, lanes),
                    images: self.reconciled(engine, plan, lanes_left),
                });
            }
        }
        let run = &run;
        let ran: Vec<Result<Outcome, Vec<Option<Stored>>>> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for ((comm, device), trace) in comms.iter().zip(engine.devices()).skip(1).zip(lane_traces.iter_mut()) {
                let images = others.next().unwrap_or_default();
                threads.push(scope.spawn(move || {
                    let context = Context {
                        device: &**device,
                        comm,
                        pool: &self.0.pool,
                        observer: &|_, _, _| (),
                        check: &|| self.0.canceller.check(),
                        trace,
                        keep,
                        sending,
                        room: &mut None,
                    };
                    run(comm, images, new, context)
                }));
            }
            let context = Context {
                device: &*engine.device,
                comm: &comms[0],
                pool: &self.0.pool,
                observer: &observe,
                check: &|| self.0.canceller.check(),
                trace,
                keep,
                sending,
                room,
            };
            let first = run(&comms[0], first, false, context);
            let joined = threads.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            std::iter::once(first).chain(joined).collect()
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => self.together(plan, ran.into_iter().flatten().collect()),
            Some(error) => {
                let left = ran.into_iter().map(|ran| ran.map_or_else(|images| images, |outcome| outcome.images));
                Err(Failed { error, images: self.reconciled(engine, plan, left.collect()) })
            }
        }
    }

    /// All images as a plan for so many lanes finds them.
    pub(super) fn laid_out(
        &self,
        engine: &Engine,
        images: Vec<Option<Kept>>,
        lanes: usize,
    ) -> Result<Vec<Option<Kept>>, Failed<Kept>> {
        let (mut laid, mut failed) = (Vec::with_capacity(images.len()), None);
        for image in images {
            laid.push(match image {
                Some(image) if failed.is_none() => match self.laid(engine, image, lanes) {
                    Ok(image) => Some(image),
                    Err(refused) => {
                        let (error, image) = *refused;
                        failed = Some(error);
                        Some(image)
                    }
                },
                image => image,
            });
        }
        match failed {
            None => Ok(laid),
            Some(error) => Err(Failed { error, images: laid }),
        }
    }

    /// What the lanes leave, as one.
    fn together(&self, plan: &Plan, outcomes: Vec<Outcome>) -> Result<Outcome<Kept>, Failed<Kept>> {
        let lanes = outcomes.len();
        let mut images: Vec<Vec<Stored>> = (0..plan.graph.nodes.len()).map(|_| Vec::with_capacity(lanes)).collect();
        let mut portions: HashMap<NodeId, Vec<Vec<Portion>>> = HashMap::new();
        let mut moved = crate::plan::movement::Load::default();
        for outcome in outcomes {
            moved.messages += outcome.moved.messages;
            moved.bytes += outcome.moved.bytes;
            images.iter_mut().zip(outcome.images).for_each(|(lanes, image)| lanes.extend(image));
            outcome.portions.into_iter().for_each(|(n, p)| portions.entry(n).or_default().push(p));
        }
        let images: Vec<Option<Kept>> = images.into_iter().map(Kept::of).collect();
        let mut delivered = HashMap::new();
        for (n, portions) in portions {
            let node = plan.graph.node(n);
            match assembled(portions, node.shape.len() * node.dtype.size(), &self.0.pool) {
                Ok(whole) => drop(delivered.insert(n, whole)),
                Err(source) => {
                    let op = format!("{} (recorded at {})", node.op.name(), node.site);
                    return Err(Failed { error: Error::Device { op, device: self.device_name(), source }, images });
                }
            }
        }
        Ok(Outcome { images, delivered, portions: HashMap::new(), moved })
    }

    /// Of what each lane has after a failure, the images of which all is there. Lanes may have come to different steps: one that is
    /// whole on some host is there for all; else it is in strips.
    fn reconciled(&self, engine: &Engine, plan: &Plan, lanes: Vec<Vec<Option<Stored>>>) -> Vec<Option<Kept>> {
        let count = lanes.len();
        let mut lanes: Vec<_> = lanes.into_iter().map(Vec::into_iter).collect();
        let mut all = Vec::with_capacity(plan.graph.nodes.len());
        for (i, node) in plan.graph.nodes.iter().enumerate() {
            let parts: Vec<Option<Stored>> = lanes.iter_mut().map(|lane| lane.next().flatten()).collect();
            let wanted = source_of(&node.op).is_some() || plan.graph.roots.contains(&NodeId(i));
            all.push(if wanted { self.one_of(engine, parts, count) } else { None });
        }
        all
    }

    /// What lanes have of an image, as one state of all.
    fn one_of(&self, engine: &Engine, parts: Vec<Option<Stored>>, lanes: usize) -> Option<Kept> {
        let unified = engine.unified();
        if let Some((geometry, host)) = whole_on_host(&parts) {
            return shared(geometry, &host, lanes, unified);
        }
        let mut parts = parts.into_iter().collect::<Option<Vec<Stored>>>()?;
        let height = parts.first()?.geometry.shape.height;
        let whole = parts.iter().all(is_whole);
        let strip = |lane| if whole { Window::whole(height) } else { engine.partition().strip(lane, height) };
        if parts.iter().enumerate().any(|(lane, part)| !part.geometry.window.covers(strip(lane))) {
            return None;
        }
        let on_device = parts.iter().all(|part| part.device.is_some());
        for (part, device) in parts.iter_mut().zip(engine.devices()) {
            if on_device {
                part.host = None;
            } else if part.host.is_none() {
                let mut host = self.0.pool.try_allocate(part.geometry.bytes()).ok()?;
                device.read(part.device.as_ref()?, 0, host.bytes_mut()).ok()?;
                part.host = Some(host);
            }
            let residency = match (unified, on_device) {
                (true, _) => Residency::Both,
                (false, true) => Residency::Device,
                (false, false) => {
                    part.device = None;
                    Residency::Host
                }
            };
            let placement = if whole { Placement::Replicated } else { Placement::Strips(Halo::NONE) };
            part.state = State { residency, placement };
        }
        Kept::of(parts)
    }
}

/// The names of devices, as one.
pub(super) fn names<'a>(devices: impl Iterator<Item = &'a Arc<dyn Device>>) -> String {
    devices.map(|device| device.name()).collect::<Vec<_>>().join(" + ")
}
