//! The executor: carries out the steps of a plan on this rank, and decides nothing.

pub(crate) mod agree;
mod ahead;
mod deliver;
mod halos;
mod launch;
pub mod peers;
pub(crate) mod routes;
pub mod trace;
pub mod transfer;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use self::peers::Arriving;
use crate::comm::Communicator;
use crate::device::{Device, Geometry, Memory, MemoryKind};
use crate::error::{DeviceError, Error, Result};
use crate::execute::routes::rows;
use crate::execute::trace::Trace;
use crate::execute::transfer::{Held, redistribute};
use crate::host::buffer::{HostBuffer, Pool};
use crate::ir::graph::NodeId;
use crate::plan::movement::{BLOCK, Load, Movement, movement, rows_of, with_room};
use crate::plan::state::{Halo, Placement, Residency, State};
use crate::plan::{Action, Plan, Rows, Temp};
use crate::shape::Window;

use self::halos::Halos;

pub use ahead::prepare;
pub use deliver::Delivered;

/// An image in this rank's memory.
#[derive(Debug)]
pub struct Stored {
    /// What the buffers hold.
    pub geometry: Geometry,
    /// Where the image is.
    pub state: State,
    /// Host copy. A device with unified memory has none: its memory is the host's.
    pub host: Option<HostBuffer>,
    /// Device copy.
    pub device: Option<Memory>,
}

impl Stored {
    /// The pixels on the host.
    pub fn host(&self) -> Option<&HostBuffer> {
        self.host.as_ref().or_else(|| self.device.as_ref().and_then(Memory::host))
    }
}

/// Called before each step with its index, the number of steps, and its text.
pub type Observer<'a> = &'a dyn Fn(usize, usize, &dyn Fn() -> String);

/// What an execution runs on.
pub struct Context<'a> {
    /// Computes.
    pub device: &'a dyn Device,
    /// Talks to the other ranks.
    pub comm: &'a dyn Communicator,
    /// Host memory.
    pub pool: &'a Arc<Pool>,
    /// Told of each step.
    pub observer: Observer<'a>,
    /// Asked before each step whether to go on.
    pub check: &'a dyn Fn() -> Result<()>,
    /// Records when each step ran.
    pub trace: &'a mut Trace,
    /// Bytes of given images that a plan lets go of and that are kept all the same until it is over, as long as there is
    /// memory: they are given back should the execution fail.
    pub keep: usize,
}

/// An execution that failed.
pub struct Failed {
    /// Why.
    pub error: Error,
    /// The given images that are intact, by node, as they are now, and the roots that were computed.
    pub images: Vec<Option<Stored>>,
}

/// What an execution leaves.
pub struct Outcome {
    /// The images that exist afterwards, by node.
    pub images: Vec<Option<Stored>>,
    /// The results handed over, by node.
    pub delivered: HashMap<NodeId, Delivered>,
    /// What was sent to other ranks.
    pub moved: Load,
}

/// Runs a plan. `images` holds the sources, by node.
///
/// # Errors
/// When the device or communication fails. On one rank the images are given back; on several, others may have gone on with
/// theirs, and they are lost.
pub fn execute(plan: &Plan, images: Vec<Option<Stored>>, context: Context<'_>) -> Result<Outcome, Failed> {
    let unified = context.device.memory() == MemoryKind::Unified;
    let mut run = Run {
        plan,
        cx: context,
        unified,
        images,
        temps: HashMap::new(),
        halos: HashMap::new(),
        delivered: HashMap::new(),
        moved: Load::default(),
        freed: RefCell::default(),
    };
    match run.all() {
        Ok(()) => Ok(Outcome { images: run.images, delivered: run.delivered, moved: run.moved }),
        Err(error) => Err(Failed { images: run.intact(), error }),
    }
}

struct Run<'a> {
    plan: &'a Plan,
    cx: Context<'a>,
    unified: bool,
    images: Vec<Option<Stored>>,
    temps: HashMap<Temp, Fetched>,
    /// Halo exchanges in flight, by image.
    halos: HashMap<NodeId, Halos<'a>>,
    delivered: HashMap<NodeId, Delivered>,
    moved: Load,
    freed: RefCell<Freed>,
}

/// Given images that the plan let go of, and that are there still.
#[derive(Default)]
struct Freed {
    images: Vec<(NodeId, Stored)>,
    bytes: usize,
}

/// A copy of some rows of an image, for one launch.
struct Fetched {
    geometry: Geometry,
    memory: Memory,
    /// What of it is still under way.
    arriving: Option<Arriving>,
}

impl Run<'_> {
    fn all(&mut self) -> Result<()> {
        let plan = self.plan;
        for (i, step) in plan.steps.iter().enumerate() {
            (self.cx.observer)(i, plan.steps.len(), &|| plan.describe(&step.action));
            (self.cx.check)()?;
            if matches!(step.action, Action::Download(_)) && !self.unified {
                // The copy would wait for the kernels before it anyway; so their time is told apart from its own.
                let start = Instant::now();
                self.cx.device.synchronize().map_err(self.failed(|| "waiting for the device".into()))?;
                self.cx.trace.waited(start);
            }
            let start = Instant::now();
            self.step(step.action)?;
            self.cx.trace.add(start, &step.action, plan);
        }
        for (stored, state) in self.images.iter_mut().zip(&plan.states) {
            if let (Some(stored), Some(state)) = (stored, state) {
                stored.state = *state;
            }
        }
        Ok(())
    }

    /// What can be kept after a failure on one rank. No step changes the pixels of an image there, and a copy that was not
    /// completed has been dropped: so an image is wherever a buffer is. What a driver reports late of launches before, it
    /// reports to whoever reads their results, too.
    fn intact(mut self) -> Vec<Option<Stored>> {
        let (unified, roots) = (self.unified, &self.plan.graph.roots);
        if self.cx.comm.size() > 1 {
            return Vec::new();
        }
        for (n, image) in self.freed.take().images {
            self.images[n.0] = Some(image);
        }
        for (i, image) in self.images.iter_mut().enumerate() {
            let before = self.plan.initial[i];
            let Some(stored) = image else { continue };
            if stored.host.is_some() && before.is_some_and(|b| !b.residency.device()) {
                stored.device = None; // an upload may fail after it was begun
            }
            let residency = match (&stored.host, &stored.device) {
                (Some(_), Some(_)) => Some(Residency::Both),
                (None, Some(_)) if unified => Some(Residency::Both),
                (Some(_), None) => Some(Residency::Host),
                (None, Some(_)) => Some(Residency::Device),
                (None, None) => None,
            };
            match residency {
                Some(residency) if before.is_some() || roots.contains(&NodeId(i)) => {
                    stored.state = State { residency, placement: Placement::Replicated };
                }
                _ => *image = None,
            }
        }
        self.images
    }

    /// Lets go of an image, or keeps it aside.
    fn free(&mut self, n: NodeId) {
        let Some(mut image) = self.images[n.0].take() else { return };
        let mut freed = self.freed.borrow_mut();
        let bytes = freed.bytes + image.geometry.bytes();
        if self.plan.initial[n.0].is_some() && bytes <= self.cx.keep {
            if image.host.is_some() {
                image.device = None; // which is scarcer
            }
            freed.images.push((n, image));
            freed.bytes = bytes;
        }
    }

    /// Does what takes memory; once more without the images that are kept aside if there is not enough.
    fn with_memory<T>(&self, mut work: impl FnMut() -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        match work() {
            Err(DeviceError::OutOfMemory { .. }) if !self.freed.borrow().images.is_empty() => {
                self.freed.take();
                work()
            }
            result => result,
        }
    }

    fn step(&mut self, action: Action) -> Result<()> {
        match action {
            Action::Upload(n) => self.upload(n),
            Action::UploadStrip { node, halo } => self.upload_strip(node, halo),
            Action::Download(n) => self.download(n),
            Action::Evict(n) => {
                if let Some(image) = &mut self.images[n.0] {
                    image.device = None;
                }
                Ok(())
            }
            Action::Scatter { node, room, direct } => self.scatter(action, node, room, direct),
            Action::Replicate { node, direct } => self.replicate(action, node, direct),
            Action::Exchange { node, halo, direct } => {
                self.begin_exchange(action, node, halo, direct)?;
                self.finish_exchange(node)
            }
            Action::Begin { node, halo, direct } => self.begin_exchange(action, node, halo, direct),
            Action::Finish(n) => self.finish_exchange(n),
            Action::Fetch { node, temp, rows, direct } => self.fetch(action, node, temp, rows, direct),
            Action::Launch { node, rows, room, part } => self.launch(node, rows, room, part),
            Action::Sum(n) => self.sum(n),
            Action::Gather(n) => {
                let whole = self.collected(action, n)?;
                self.delivered.extend(whole.map(|w| (n, Delivered::Here(w))));
                Ok(())
            }
            Action::Collect(n) => {
                let whole = self.collected(action, n)?;
                self.set_placement(n, Placement::Root);
                self.place(n, Window::whole(self.geometry(n)?.shape.height), whole)
            }
            Action::Deliver(n) => {
                self.deliver(n);
                Ok(())
            }
            Action::Send(n) => self.send(n),
            Action::Free(n) => {
                self.free(n);
                Ok(())
            }
        }
    }

    fn rank(&self) -> usize {
        self.cx.comm.rank()
    }

    fn strip(&self, rank: usize, height: usize) -> Window {
        self.plan.setting.partition.strip(rank, height)
    }

    fn image(&self, n: NodeId) -> Result<&Stored> {
        self.images[n.0].as_ref().ok_or_else(|| missing(n))
    }

    fn geometry(&self, n: NodeId) -> Result<Geometry> {
        Ok(self.image(n)?.geometry)
    }

    fn allocate(&self, op: impl FnOnce() -> String, bytes: usize) -> Result<Memory> {
        self.with_memory(|| self.cx.device.allocate(bytes)).map_err(self.failed(op))
    }

    fn upload(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("upload", n);
        let image = self.images[n.0].as_mut().ok_or_else(|| missing(n))?;
        let before = image.device.take();
        let Some(bytes) = image.host.as_ref().map(HostBuffer::len) else {
            image.device = before;
            return Ok(());
        };
        let mut memory = match before {
            Some(m) if m.len() == bytes => m,
            _ => self.allocate(label, bytes)?,
        };
        if let Some(host) = self.images[n.0].as_ref().and_then(|i| i.host.as_ref()) {
            self.cx.device.upload(host, &mut memory, 0).map_err(self.failed(label))?;
        }
        if let Some(image) = &mut self.images[n.0] {
            image.device = Some(memory);
        }
        Ok(())
    }

    fn upload_strip(&mut self, n: NodeId, halo: Halo) -> Result<()> {
        let label = self.label("upload", n);
        let (source, given) = self.source(n)?;
        let Held::Host(pixels) = source else { return Err(missing(n)) };
        let height = given.shape.height;
        let geometry = Geometry { window: with_room(self.strip(self.rank(), height), halo, height), ..given };
        let (from, to) = rows(given, geometry);
        let mut memory = self.allocate(label, geometry.bytes())?;
        for (from, to) in from.iter().zip(&to) {
            let rows = &pixels[from.at..from.at + from.total()];
            self.cx.device.write(rows, &mut memory, to.at).map_err(self.failed(label))?;
        }
        let state = State { residency: Residency::Device, placement: Placement::Strips(halo) };
        self.images[n.0] = Some(Stored { geometry, state, host: None, device: Some(memory) });
        Ok(())
    }

    /// Puts host pixels where the image is read from next: into the device's memory if it is the host's.
    fn place(&mut self, n: NodeId, window: Window, host: Option<HostBuffer>) -> Result<()> {
        let unified = self.unified;
        let node = self.plan.graph.node(n);
        let state = self.images[n.0].as_ref().map(|s| s.state);
        let initial = State { residency: Residency::Host, placement: Placement::Replicated };
        let geometry = Geometry { shape: node.shape, dtype: node.dtype, window };
        let (host, device) = if unified { (None, host.map(Memory::Host)) } else { (host, None) };
        self.images[n.0] = Some(Stored { geometry, state: state.unwrap_or(initial), host, device });
        Ok(())
    }

    /// The pixels of an image on whichever side the plan keeps valid, and their geometry.
    fn source(&self, n: NodeId) -> Result<(Held<'_>, Geometry)> {
        let image = self.image(n)?;
        let source = match (image.host(), &image.device) {
            (Some(host), _) => Held::Host(host.bytes()),
            (None, Some(memory)) => Held::Device(self.cx.device, memory),
            (None, None) => Held::Nowhere,
        };
        Ok((source, image.geometry))
    }

    /// What a step on image `n` moves.
    fn movement(&self, action: Action, n: NodeId) -> Result<Movement> {
        let on_root = self.image(n)?.state.placement == Placement::Root;
        movement(&self.plan.graph, &self.plan.setting.partition, action, on_root, BLOCK).ok_or_else(|| missing(n))
    }

    /// Brings every rank the pixels it needs, into new host memory that holds `window`.
    fn bring(&mut self, action: Action, n: NodeId, what: &'static str, window: Window) -> Result<HostBuffer> {
        let node = self.plan.graph.node(n);
        let geometry = Geometry { shape: node.shape, dtype: node.dtype, window };
        let label = self.label(what, n);
        let mut target = self.host_memory(label, geometry.bytes())?;
        if cfg!(debug_assertions) {
            target.bytes_mut().fill(0xff); // not a number, where nobody may look
        }
        let movement = self.movement(action, n)?;
        let (comm, host) = (self.cx.comm, (self.cx.device.workers(), self.cx.pool));
        let sent = redistribute(comm, host, &movement, self.source(n)?, (target.bytes_mut(), geometry));
        self.count(sent.map_err(self.failed(label))?);
        Ok(target)
    }

    fn count(&mut self, moved: Load) {
        self.moved.messages += moved.messages;
        self.moved.bytes += moved.bytes;
    }

    /// Begins to bring every rank the pixels it needs from device to device, into new memory that holds `window`.
    fn order(
        &mut self,
        action: Action,
        n: NodeId,
        what: &'static str,
        window: Window,
    ) -> Result<(Geometry, Memory, Arriving)> {
        let label = self.label(what, n);
        let movement = self.movement(action, n)?;
        let image = self.image(n)?;
        let geometry = Geometry { window, ..image.geometry };
        let mut memory = self.allocate(label, geometry.bytes())?;
        let source = image.device.as_ref().ok_or_else(|| missing(n))?;
        let (device, comm) = (self.cx.device, self.cx.comm);
        let (from, to) = (Some((source, image.geometry)), (&mut memory, geometry));
        let arriving = peers::order(device, comm, &movement, from, to).map_err(self.failed(label))?;
        self.count(arriving.sent);
        Ok((geometry, memory, arriving))
    }

    fn scatter(&mut self, action: Action, n: NodeId, room: Halo, direct: bool) -> Result<()> {
        let height = self.plan.graph.node(n).shape.height;
        let window = with_room(self.strip(self.rank(), height), room, height);
        self.spread(action, n, "scatter", window, Placement::Strips(Halo::NONE), direct)
    }

    fn replicate(&mut self, action: Action, n: NodeId, direct: bool) -> Result<()> {
        let whole = Window::whole(self.plan.graph.node(n).shape.height);
        self.spread(action, n, "replication", whole, Placement::Replicated, direct)
    }

    /// Brings every rank its part of an image, in place of what it had of it.
    fn spread(
        &mut self,
        action: Action,
        n: NodeId,
        what: &'static str,
        window: Window,
        placement: Placement,
        direct: bool,
    ) -> Result<()> {
        if direct {
            let (geometry, mut memory, arriving) = self.order(action, n, what, window)?;
            arriving.finish(self.cx.device, &mut memory).map_err(self.failed(self.label(what, n)))?;
            let state = State { residency: Residency::Device, placement };
            self.images[n.0] = Some(Stored { geometry, state, host: None, device: Some(memory) });
            return Ok(());
        }
        let host = self.bring(action, n, what, window)?;
        self.set_placement(n, placement);
        self.place(n, window, Some(host))
    }

    /// The whole image on rank 0.
    fn collected(&mut self, action: Action, n: NodeId) -> Result<Option<HostBuffer>> {
        let root = self.rank() == 0;
        let window = if root { Window::whole(self.plan.graph.node(n).shape.height) } else { Window::new(0, 0) };
        let host = self.bring(action, n, "gather", window)?;
        Ok(root.then_some(host))
    }

    fn set_placement(&mut self, n: NodeId, placement: Placement) {
        if let Some(image) = &mut self.images[n.0] {
            image.state.placement = placement;
        }
    }

    fn fetch(&mut self, action: Action, n: NodeId, temp: Temp, rows: Rows, direct: bool) -> Result<()> {
        let graph = &self.plan.graph;
        let (consumer, shape) = (graph.node(temp.consumer), graph.node(n).shape);
        let rows = self.rows_of(temp.consumer, rows);
        let window = consumer.op.footprint(temp.input, rows, consumer.shape, shape);
        if direct {
            let (geometry, memory, arriving) = self.order(action, n, "footprint", window)?;
            self.temps.insert(temp, Fetched { geometry, memory, arriving: Some(arriving) });
            return Ok(());
        }
        let geometry = Geometry { shape, dtype: graph.node(n).dtype, window };
        let host = if self.image(n)?.state.placement == Placement::Replicated {
            self.local_rows(n, geometry)?
        } else {
            self.bring(action, n, "footprint", window)?
        };
        let memory = if self.unified {
            Memory::Host(host)
        } else {
            let label = self.label("footprint", n);
            let mut memory = self.allocate(label, host.len())?;
            self.cx.device.write(host.bytes(), &mut memory, 0).map_err(self.failed(label))?;
            memory
        };
        self.temps.insert(temp, Fetched { geometry, memory, arriving: None });
        Ok(())
    }

    fn host_memory(&self, label: impl FnOnce() -> String, bytes: usize) -> Result<HostBuffer> {
        self.with_memory(|| self.cx.pool.try_allocate(bytes)).map_err(self.failed(label))
    }

    /// A copy of some rows of an image that this rank has whole.
    fn local_rows(&self, n: NodeId, geometry: Geometry) -> Result<HostBuffer> {
        let label = self.label("copying rows", n);
        let mut host = self.host_memory(label, geometry.bytes())?;
        let (source, given) = self.source(n)?;
        let (from, to) = rows(given, geometry);
        source.copy(self.cx.device.workers(), &from, &to, host.bytes_mut()).map_err(self.failed(label))?;
        Ok(host)
    }

    /// The rows of node `n` that this rank computes (for a histogram, the rows it counts).
    fn rows_of(&self, n: NodeId, rows: Rows) -> Window {
        rows_of(&self.plan.graph, &self.plan.setting.partition, n, self.rank(), rows)
    }

    fn sum(&mut self, n: NodeId) -> Result<()> {
        let label = self.label("sum over ranks", n);
        let rank = self.rank();
        let comm = self.cx.comm;
        let image = self.images[n.0].as_mut().ok_or_else(|| missing(n))?;
        let host = match (&mut image.host, &mut image.device) {
            (Some(h), _) | (None, Some(Memory::Host(h))) => h,
            _ => return Err(missing(n)),
        };
        comm.sum(host.as_mut_slice::<f64>()).map_err(|e| e.during(rank, label()))?;
        if !self.unified {
            image.device = None;
        }
        Ok(())
    }
}

impl<'a> Run<'a> {
    /// What a device reported of what `op` names, in words that are made only then.
    fn failed<L: FnOnce() -> String>(&self, op: L) -> impl FnOnce(DeviceError) -> Error + use<'a, L> {
        let (device, rank) = (self.cx.device, self.rank());
        move |source| match source {
            DeviceError::Communication(e) => e.during(rank, op()),
            source => Error::Device { op: op(), device: device.name(), source },
        }
    }

    /// What errors of transfers of node `n` are about.
    fn label(&self, what: &'static str, n: NodeId) -> impl Fn() -> String + Copy + use<'a> {
        let node = self.plan.graph.node(n);
        move || format!("{what} of {} (recorded at {})", node.op.name(), node.site)
    }
}

fn missing(n: NodeId) -> Error {
    Error::Plan { step: n.0, text: n.to_string(), cause: "the image is not in memory".into() }
}
