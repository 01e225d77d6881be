//! Sessions: where images live, programs are recorded, and the stages are wired together.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::agree::{agree_on, agree_on_plan};
use crate::buffer::{HostBuffer, Pool};
use crate::comm::{Alone, Communicator, gather_bytes, guarded};
use crate::device::{Device, Geometry, Memory, MemoryKind};
use crate::dtype::DType;
use crate::error::{Error, Result, Site};
use crate::execute::{Context, Stored, execute};
use crate::forecast::{Forecast, forecast};
use crate::graph::{Graph, Node, NodeId, Op, ValueId};
use crate::kernel::Kernel;
use crate::movement::{Link, Load};
use crate::optimize::{lower::lower, optimize};
use crate::partition::Partition;
use crate::plan::{Counts, Mode, Plan, Setting, Want, plan};
use crate::program::{Extract, Program, RecordId};
use crate::shape::{Shape, Window};
use crate::state::{Halo, Placement, Residency, State};
use crate::trace::{Times, Trace};
use crate::verify::verify;

/// Operations recorded before the program is evaluated without being asked.
const MAX_PENDING: usize = 4096;
/// Bytes of images kept alive by recorded operations alone before the program is evaluated without being asked.
const MAX_PINNED: usize = 512 << 20;
/// Freed host memory kept for reuse.
const POOL: usize = 1 << 30;

/// How far an evaluation has come.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// Index of the step that begins.
    pub step: usize,
    /// Number of steps.
    pub steps: usize,
    /// Describes the step.
    pub text: &'a dyn Fn() -> String,
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} of {}: {}", self.step, self.steps, (self.text)())
    }
}

type Observer = Arc<dyn Fn(Progress<'_>) + Send + Sync>;
type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// What a session has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Evaluations.
    pub evaluations: usize,
    /// Transfers and launches made.
    pub made: Counts,
    /// Transfers and launches that naive mode would have made (counted if asked for, see
    /// [`SessionBuilder::compare_naive`]).
    pub naive: Counts,
    /// What this rank sent to others.
    pub sent: Load,
}

/// A session: a device, a communicator, and the images and programs recorded on them. Cheap to clone.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    device: Box<dyn Device>,
    comm: Arc<dyn Communicator>,
    /// Whether the devices of the ranks exchange memory without the host.
    direct: bool,
    mode: Mode,
    partition: Partition,
    /// Bytes of device memory that plans count on.
    capacity: Option<usize>,
    pool: Arc<Pool>,
    observer: Option<Observer>,
    explain: Option<Sink>,
    explain_passes: bool,
    compare_naive: bool,
    max_pending: usize,
    max_pinned: usize,
    state: Mutex<Mutable>,
}

struct Mutable {
    program: Program,
    images: HashMap<ValueId, Stored>,
    /// Where images that were given to the session were then.
    given: HashMap<ValueId, Placement>,
    stats: Stats,
    trace: Trace,
    /// An error that nobody has been told of yet.
    error: Option<Error>,
    /// Why nothing can be evaluated any more.
    lost: Option<String>,
}

/// Settings of a [`Session`].
#[must_use]
pub struct SessionBuilder {
    device: Box<dyn Device>,
    comm: Arc<dyn Communicator>,
    mode: Mode,
    weights: Option<Vec<f64>>,
    observer: Option<Observer>,
    explain: Option<Sink>,
    explain_passes: bool,
    compare_naive: bool,
    trace: bool,
    max_pending: usize,
    max_pinned: usize,
    host_memory: usize,
}

impl SessionBuilder {
    /// Runs on the ranks of `comm` (default: alone).
    pub fn communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.comm = comm;
        self
    }

    /// How much of the machinery is used (default: fused).
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Divides rows among ranks in proportion to `weights`, one per rank (default: equally).
    pub fn weights(mut self, weights: Vec<f64>) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Calls `observer`, which must not use the session, before each step of each evaluation.
    pub fn observer(mut self, observer: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Gives the text of each plan to `sink`, which must not use the session.
    pub fn explain(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.explain = Some(Arc::new(sink));
        self
    }

    /// Also gives the text of the recorded graph, and of the graph after each pass, to the sink of
    /// [`SessionBuilder::explain`].
    pub fn explain_passes(mut self, on: bool) -> Self {
        self.explain_passes = on;
        self
    }

    /// Also counts the transfers that naive mode would have made.
    pub fn compare_naive(mut self, on: bool) -> Self {
        self.compare_naive = on;
        self
    }

    /// Records when each step ran; see [`Session::trace_json`].
    pub fn trace(mut self, on: bool) -> Self {
        self.trace = on;
        self
    }

    /// Bytes of host memory that copies of a device's images may take (default: no bound but the host's).
    pub fn host_memory(mut self, bytes: usize) -> Self {
        self.host_memory = bytes;
        self
    }

    /// Evaluates without being asked once so many operations are recorded, or so many bytes of images are alive only
    /// because recorded operations read them.
    pub fn flush_limits(mut self, operations: usize, bytes: usize) -> Self {
        (self.max_pending, self.max_pinned) = (operations.max(1), bytes);
        self
    }

    /// The session. All ranks open one together: their devices look for a way to each other.
    ///
    /// # Errors
    /// [`Error::Config`] if there is not one weight per rank, or [`Partition::weighted`] refuses them;
    /// [`Error::Communication`] when another rank failed, went away or is about to do something else;
    /// [`Error::Device`] when devices were to be connected and could not be.
    pub fn build(self) -> Result<Session> {
        let ranks = self.comm.size();
        let partition = match self.weights {
            None => Partition::equal(ranks),
            Some(w) if w.len() == ranks => Partition::weighted(&w).map_err(Error::Config)?,
            Some(w) => return Err(Error::Config(format!("{} weights given for {ranks} ranks", w.len()))),
        };
        let direct = guarded(&*self.comm, "opening a session", || meet(&*self.device, &*self.comm))?;
        let capacity = agreed_capacity(&*self.comm, self.device.capacity())?;
        let state = Mutable {
            program: Program::default(),
            images: HashMap::new(),
            given: HashMap::new(),
            stats: Stats::default(),
            trace: Trace::new(self.comm.rank(), self.trace),
            error: None,
            lost: None,
        };
        Ok(Session(Arc::new(Inner {
            direct,
            device: self.device,
            comm: self.comm,
            mode: self.mode,
            partition,
            capacity,
            pool: Pool::bounded(POOL, self.host_memory),
            observer: self.observer,
            explain: self.explain,
            explain_passes: self.explain_passes,
            compare_naive: self.compare_naive,
            max_pending: self.max_pending,
            max_pinned: self.max_pinned,
            state: Mutex::new(state),
        })))
    }
}

/// The memory of the smallest device: ranks must make the same plan, so all count on that much.
fn agreed_capacity(comm: &dyn Communicator, mine: Option<usize>) -> Result<Option<usize>> {
    const UNLIMITED: u64 = u64::MAX;
    let all = comm.gather(mine.map_or(UNLIMITED, |bytes| bytes as u64));
    let all = all.map_err(|e| e.during(comm.rank(), "opening a session"))?;
    let least = all.into_iter().min().filter(|least| *least != UNLIMITED);
    Ok(least.map(|bytes| bytes as usize))
}

/// A recorded value that somebody can still observe. Dropping the last clone makes it unobservable.
pub(crate) struct Handle {
    pub(crate) session: Session,
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    id: RecordId,
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        self.session.lock().program.retain(self.id);
        Handle { session: self.session.clone(), ..*self }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let freed: Vec<_> = {
            let mut state = self.session.lock();
            let values = state.program.release(self.id);
            values.into_iter().map(|v| state.images.remove(&v)).collect()
        };
        drop(freed); // memory is given back without the lock
    }
}

impl Session {
    /// Settings for a session on `device`.
    pub fn on(device: Box<dyn Device>) -> SessionBuilder {
        SessionBuilder {
            device,
            comm: Arc::new(Alone),
            mode: Mode::default(),
            weights: None,
            observer: None,
            explain: None,
            explain_passes: false,
            compare_naive: false,
            trace: false,
            max_pending: MAX_PENDING,
            max_pinned: MAX_PINNED,
            host_memory: usize::MAX,
        }
    }

    /// The device's name.
    pub fn device_name(&self) -> String {
        self.0.device.name()
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.0.device
    }

    /// This rank, `0..ranks()`.
    pub fn rank(&self) -> usize {
        self.0.comm.rank()
    }

    /// Number of ranks that run the program together.
    pub fn ranks(&self) -> usize {
        self.0.comm.size()
    }

    /// Whether the devices of the ranks exchange memory without the host.
    pub fn direct(&self) -> bool {
        self.0.direct
    }

    /// How much of the machinery is used.
    pub fn mode(&self) -> Mode {
        self.0.mode
    }

    /// What the session has done so far.
    pub fn stats(&self) -> Stats {
        self.lock().stats
    }

    /// How long evaluations took so far.
    pub fn times(&self) -> Times {
        self.lock().trace.times()
    }

    /// When each step ran on each rank, as JSON for Chrome's trace viewer or Perfetto; on rank 0, nothing elsewhere. All
    /// ranks must ask.
    ///
    /// # Errors
    /// When another rank failed or went away.
    pub fn trace_json(&self) -> Result<Option<String>> {
        let comm = self.comm();
        agree_on(comm, "gathering traces")?;
        let mine = self.lock().trace.json_events();
        let all = gather_bytes(comm, mine.as_bytes()).map_err(|e| e.during(comm.rank(), "gathering traces"))?;
        Ok(all.map(|parts| crate::trace::json(&parts)))
    }

    /// Evaluates everything that is recorded and can be observed, and waits until the device is done.
    ///
    /// # Errors
    /// Whatever the evaluation meets.
    pub fn evaluate(&self) -> Result<()> {
        let mut state = self.lock();
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        let targets = state.program.observable();
        let wants = vec![Want::Keep; targets.len()];
        self.run(state, &targets, &wants)?;
        let start = Instant::now();
        let done = self.0.device.synchronize();
        state.trace.waited(start);
        done.map_err(|source| Error::Device { op: "waiting for the device".into(), device: self.device_name(), source })
    }

    fn lock(&self) -> MutexGuard<'_, Mutable> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether both are the same session.
    pub(crate) fn same(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The ranks that run the program together.
    pub fn comm(&self) -> &dyn Communicator {
        &*self.0.comm
    }

    /// Appends an operation to the program. Inputs must belong to this session. Evaluates only when the flush limits
    /// ask for it; an error met then is reported by the next call that can.
    pub(crate) fn record(&self, op: Op, inputs: &[&Handle], shape: Shape, dtype: DType, site: Site) -> Handle {
        let mut state = self.lock();
        let state = &mut *state;
        let inputs = inputs.iter().map(|h| h.id).collect();
        let id = state.program.record(op, inputs, shape, dtype, site);
        let full = state.program.pending() > self.0.max_pending || state.program.pinned_bytes() > self.0.max_pinned;
        if full && state.error.is_none() && state.lost.is_none() {
            let targets = state.program.observable();
            let wants = vec![Want::Keep; targets.len()];
            if let Err(e) = self.run(state, &targets, &wants) {
                state.error = Some(e);
            }
        }
        Handle { session: self.clone(), shape, dtype, id }
    }

    /// An image whose pixels every rank has (planes one after the other, row-major).
    pub(crate) fn source(&self, shape: Shape, dtype: DType, pixels: HostBuffer, site: Site) -> Handle {
        self.keep(shape, dtype, Some(pixels), Placement::Replicated, site)
    }

    /// An image whose pixels rank 0 has; other ranks pass `None` and must agree on shape and type.
    pub(crate) fn source_on_root(&self, shape: Shape, dtype: DType, pixels: Option<HostBuffer>, site: Site) -> Handle {
        self.keep(shape, dtype, pixels, Placement::Root, site)
    }

    fn keep(&self, shape: Shape, dtype: DType, pixels: Option<HostBuffer>, placement: Placement, site: Site) -> Handle {
        let unified = self.0.device.memory() == MemoryKind::Unified;
        let window = if pixels.is_some() { Window::whole(shape.height) } else { Window::new(0, 0) };
        let pixels = pixels.unwrap_or_else(|| HostBuffer::zeroed(0));
        let residency = if unified { Residency::Both } else { Residency::Host };
        let (host, device) = if unified { (None, Some(Memory::Host(pixels))) } else { (Some(pixels), None) };
        let geometry = Geometry { shape, dtype, window };
        let given = placement;
        // What the only rank has, every rank has.
        let placement = if self.ranks() == 1 { Placement::Replicated } else { placement };
        let stored = Stored { geometry, state: State { residency, placement }, host, device };
        let mut state = self.lock();
        let value = state.program.new_value();
        state.images.insert(value, stored);
        state.given.insert(value, given);
        let id = state.program.record(Op::Source(value), Vec::new(), shape, dtype, site);
        drop(state);
        Handle { session: self.clone(), shape, dtype, id }
    }

    /// Evaluates a value and brings its pixels to the host: on rank 0, or everywhere (then always `Some`). Planes one
    /// after the other, row-major.
    pub(crate) fn fetch(&self, value: &Handle, want: Want) -> Result<Option<Arc<HostBuffer>>> {
        let mut state = self.lock();
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        let host = self.run(state, &[value.id], &[want])?;
        Ok(host.into_iter().next().flatten().map(Arc::new))
    }

    /// Plans for `ranks` ranks of equal speed what brings a value to rank 0's host, and tells what they would exchange.
    /// Images stand where the program left them: what it read from files on rank 0, what it gave everywhere, what was
    /// computed in strips.
    pub(crate) fn forecast(&self, value: &Handle, ranks: usize, link: Link) -> Result<Forecast> {
        let state = self.lock();
        let Extract { graph, records } = state.program.extract(&[value.id]);
        let mut wants = vec![Want::Root];
        wants.resize(graph.roots.len(), Want::Keep);
        let disposable = state.program.disposable(&graph, &records);
        let unified = self.0.device.memory() == MemoryKind::Unified;
        let partition = Partition::equal(ranks);
        let setting =
            Setting { partition, unified, direct: self.0.direct, mode: self.0.mode, capacity: self.0.capacity };
        let residency = if unified { Residency::Both } else { Residency::Host };
        let with = |fuse: bool| {
            let kernels = optimize(graph.clone(), fuse, &mut |_, _| ());
            let sources: Vec<Option<ValueId>> = kernels.nodes.iter().map(|n| source_of(&n.op)).collect();
            let placement = |n: NodeId| match sources[n.0].and_then(|v| state.given.get(&v)) {
                _ if ranks == 1 => Placement::Replicated,
                Some(given) => *given,
                None => Placement::Strips(Halo::NONE),
            };
            let gone = |n: NodeId| sources[n.0].is_some_and(|v| disposable.contains(&v));
            plan(kernels, &wants, &setting, |n| State { residency, placement: placement(n) }, gone)
        };
        let fuse = self.0.mode == Mode::Fused;
        let mut plan = with(fuse);
        if fuse && !plan.fits {
            plan = with(false);
        }
        verify(&plan)?;
        Ok(forecast(&plan, link))
    }

    /// Evaluates `targets`; the pixels of those that are wanted on this rank's host.
    fn run(&self, state: &mut Mutable, targets: &[RecordId], wants: &[Want]) -> Result<Vec<Option<HostBuffer>>> {
        if let Some(cause) = &state.lost {
            return Err(Error::Lost(cause.clone()));
        }
        let comm = &*self.0.comm;
        // Stays if the evaluation panics, half of the images in its hands.
        state.lost = Some("an evaluation panicked".into());
        let result = guarded(comm, "an evaluation", || self.try_run(state, targets, wants));
        state.lost = result.as_ref().err().map(ToString::to_string);
        if let Err(e) = &result {
            state.images.clear();
            comm.abort(&e.to_string());
        }
        result
    }

    fn try_run(&self, state: &mut Mutable, targets: &[RecordId], wants: &[Want]) -> Result<Vec<Option<HostBuffer>>> {
        let start = Instant::now();
        let Extract { graph, records } = state.program.extract(targets);
        let mut wants = wants.to_vec();
        wants.resize(graph.roots.len(), Want::Keep);
        let disposable = state.program.disposable(&graph, &records);
        let plan = self.plan(state, graph.clone(), &wants, &disposable)?;
        state.trace.planned(start);
        agree_on_plan(&*self.0.comm, &graph, &wants, &plan)?;
        let images = plan.graph.iter().map(|(_, n)| source_of(&n.op).and_then(|v| state.images.remove(&v)));
        let images: Vec<_> = images.collect();
        let observe = |step, steps, text: &dyn Fn() -> String| {
            if let Some(observer) = &self.0.observer {
                observer(Progress { step, steps, text });
            }
        };
        let context = Context {
            device: &*self.0.device,
            comm: &*self.0.comm,
            pool: &self.0.pool,
            observer: &observe,
            trace: &mut state.trace,
        };
        let outcome = execute(&plan, images, context)?;
        state.stats.evaluations += 1;
        state.stats.made.add(&plan.counts());
        state.stats.sent.messages += outcome.moved.messages;
        state.stats.sent.bytes += outcome.moved.bytes;

        // Sources go back under their names; results get names of their own.
        let mut names: HashMap<NodeId, ValueId> = HashMap::new();
        for (i, image) in outcome.images.into_iter().enumerate() {
            let id = NodeId(i);
            let Some(image) = image else { continue };
            let name = match source_of(&plan.graph.node(id).op) {
                Some(v) => v,
                None => state.program.new_value(),
            };
            names.insert(id, name);
            state.images.insert(name, image);
        }
        let mut freed = Vec::new();
        for (recorded, planned) in graph.roots.iter().zip(&plan.graph.roots) {
            if let Some(&name) = names.get(planned) {
                freed.extend(state.program.evaluated(records[recorded.0], name));
            }
        }
        // Two records may have become one value (common subexpressions): it stays while either is alive.
        freed.retain(|v| !state.program.refers_to(*v));
        for v in freed.into_iter().chain(disposable) {
            state.images.remove(&v);
        }
        state.given.retain(|v, _| state.images.contains_key(v));
        let delivered = plan.graph.roots.iter().take(targets.len()).map(|r| outcome.delivered.get(r).cloned());
        Ok(delivered.collect())
    }

    fn plan(&self, state: &mut Mutable, graph: Graph<Op>, wants: &[Want], disposable: &[ValueId]) -> Result<Plan> {
        let unified = self.0.device.memory() == MemoryKind::Unified;
        let Inner { direct, capacity, mode, .. } = *self.0;
        let setting = Setting { partition: self.0.partition.clone(), unified, direct, mode, capacity };
        let images = &state.images;
        let make = |graph: Graph<Kernel>, setting: &Setting| {
            let sources: Vec<Option<ValueId>> = graph.nodes.iter().map(|n| source_of(&n.op)).collect();
            let of = |n: NodeId| sources[n.0].and_then(|v| images.get(&v)).map(|s| s.state);
            let nowhere = State { residency: Residency::Host, placement: Placement::Root };
            plan(
                graph,
                wants,
                setting,
                |n| of(n).unwrap_or(nowhere),
                |n| sources[n.0].is_some_and(|v| disposable.contains(&v)),
            )
        };
        if self.0.compare_naive {
            let naive = Setting { mode: Mode::Naive, ..setting.clone() };
            state.stats.naive.add(&make(lower(graph.clone()), &naive).counts());
        }
        let explain = |title: &str, text: &dyn fmt::Display| {
            if let Some(sink) = &self.0.explain {
                sink(&format!("{title}:\n{text}"));
            }
        };
        let with = |fuse: bool| {
            let mut kernels = optimize(graph.clone(), fuse, &mut |pass, graph| {
                if self.0.explain_passes {
                    explain(pass, graph);
                }
            });
            if capacity.is_some() {
                add_bystanders(&mut kernels, images);
            }
            make(kernels, &setting)
        };
        let fuse = self.0.mode == Mode::Fused;
        let mut plan = with(fuse);
        if fuse && !plan.fits {
            // A fused kernel may read more images at once than the device holds; one operation reads three at most.
            log::info!("fused kernels need more memory than the device has: going on without fusion");
            plan = with(false);
        }
        explain("plan", &plan);
        verify(&plan)?;
        Ok(plan)
    }
}

/// Connects the devices of all ranks; whether that worked.
fn meet(device: &dyn Device, comm: &dyn Communicator) -> Result<bool> {
    if comm.size() == 1 {
        return Ok(false);
    }
    agree_on(comm, "opening a session")?;
    let addresses = comm.gather(device.address()).map_err(|e| e.during(comm.rank(), "opening a session"))?;
    device.connect(comm, &addresses).map_err(|source| {
        let e = Error::Device { op: "connecting the devices".into(), device: device.name(), source };
        comm.abort(&e.to_string());
        e
    })
}

/// Adds the images that this program does not read but that are on the device: the planner may have to evict them.
fn add_bystanders(graph: &mut Graph<Kernel>, images: &HashMap<ValueId, Stored>) {
    let read: Vec<ValueId> = graph.nodes.iter().filter_map(|n| source_of(&n.op)).collect();
    let mut others: Vec<_> = images.iter().filter(|(v, s)| s.state.residency.device() && !read.contains(v)).collect();
    others.sort_by_key(|(v, _)| **v);
    for (value, stored) in others {
        let Geometry { shape, dtype, .. } = stored.geometry;
        let site = std::panic::Location::caller();
        graph.push(Node { op: Kernel::Source(*value), inputs: Vec::new(), shape, dtype, site });
    }
}

fn source_of(kernel: &Kernel) -> Option<ValueId> {
    match kernel {
        Kernel::Source(v) => Some(*v),
        _ => None,
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session on {}, rank {} of {}", self.device_name(), self.rank(), self.ranks())
    }
}
