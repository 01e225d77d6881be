//! Settings of a session, and its opening.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};

use super::engine::{Deferred, Engine, host_pool};
use super::lock::Owned;
use super::plans::Plans;
use super::start::Starter;
use super::{Canceller, Inner, Mutable, Observer, Progress, Session, Sink, Stats};
use crate::comm::agree::agree_on;
use crate::comm::{Alone, Communicator, guarded};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::execute::trace::Trace;
use crate::host::buffer::Pool;
use crate::host::fork;
use crate::machine::here;
use crate::plan::partition::Partition;
use crate::plan::{Mode, Transfer};
use crate::record::{Numbering, Recording};
use crate::settings::{Stencil, Steps};

/// Pending operations at which the program is evaluated automatically.
const MAX_PENDING: usize = 4096;
/// Bytes of images kept alive only by pending operations at which the program is evaluated
/// automatically.
const MAX_PINNED: usize = 512 << 20;

/// Origin of a session's device.
pub(super) enum Origin {
    /// Given devices: one, or several lanes.
    Devices(Vec<Arc<dyn Device>>),
    /// Chosen at the first evaluation; images stay in host memory until then.
    Later(Deferred, Arc<Pool>),
}

/// Settings of a [`Session`].
#[must_use]
pub struct SessionBuilder {
    from: Origin,
    comm: Arc<dyn Communicator>,
    mode: Mode,
    weights: Option<Vec<f64>>,
    all_lanes: bool,
    observer: Option<Observer>,
    explain: Option<Sink>,
    explain_passes: bool,
    compare_naive: bool,
    trace: bool,
    measure: bool,
    max_pending: usize,
    max_pinned: usize,
    host_memory: usize,
    overlap: bool,
    transfer: Transfer,
    steps: Steps,
    stencil: Stencil,
    canceller: Canceller,
}

impl SessionBuilder {
    pub(super) fn new(from: Origin) -> SessionBuilder {
        SessionBuilder {
            from,
            comm: Arc::new(Alone),
            mode: Mode::default(),
            weights: None,
            all_lanes: false,
            observer: None,
            explain: None,
            explain_passes: false,
            compare_naive: false,
            trace: false,
            measure: false,
            max_pending: MAX_PENDING,
            max_pinned: MAX_PINNED,
            host_memory: usize::MAX,
            overlap: false,
            transfer: Transfer::Auto,
            steps: Steps::Auto,
            stencil: Stencil::Auto,
            canceller: Canceller::default(),
        }
    }

    /// With the observers of another session.
    pub(super) fn watched(
        mut self,
        observer: Option<Observer>,
        explain: Option<Sink>,
        canceller: Canceller,
    ) -> SessionBuilder {
        (self.observer, self.explain, self.canceller) = (observer, explain, canceller);
        self
    }

    /// Runs on the ranks of `comm` (default: alone).
    pub fn communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.comm = comm;
        self
    }

    /// Sets the degree of optimisation (default: fused).
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Divides rows among ranks in proportion to `weights`, one per rank (default: equally), or
    /// among the devices of this process, one per lane (default: by the predicted speed of each).
    pub fn weights(mut self, weights: Vec<f64>) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Calls `observer` before each step of each evaluation. It may drop, copy and record images of
    /// the session, which takes effect when the evaluation ends, and read the session's statistics;
    /// reading values is [`Error::Reentry`].
    pub fn observer(mut self, observer: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Passes the text of each plan to `sink`, which may use the session like an observer.
    pub fn explain(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.explain = Some(Arc::new(sink));
        self
    }

    /// Also passes the text of the recorded graph, of the graph after each optimisation pass, and
    /// of the draft of the plan after each planning pass, to the sink of
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

    /// Records the time of each step; see [`Session::trace_json`].
    pub fn trace(mut self, on: bool) -> Self {
        self.trace = on;
        self
    }

    /// Records the times of the device's copies and kernels, by its own clock; see
    /// [`Session::measured`]. On a GPU this takes some microseconds for each launch and copy. A
    /// [`trace`](SessionBuilder::trace) includes it.
    pub fn measure(mut self, on: bool) -> Self {
        self.measure = on;
        self
    }

    /// Limits the bytes of host memory for images: all images on a device that computes on host
    /// memory, otherwise the host's copies, and the memory of decoders and encoders besides
    /// (default: 80 % of the memory that is free when the first session of a device is opened). A
    /// program that needs more is computed region by region, or fails before anything is read or
    /// computed, with an error that names the required limit.
    pub fn host_memory(mut self, bytes: usize) -> Self {
        self.host_memory = bytes;
        self
    }

    /// Overlaps halo exchanges with the rows of a strip that do not need the halo, wherever the strip is tall enough
    /// (default: only peer to peer, and where the exchange is predicted to take long; used only if all ranks request
    /// it). Results and messages do not depend on it.
    pub fn overlap(mut self, on: bool) -> Self {
        self.overlap = on;
        self
    }

    /// Sets the transfer of images to and from a device with its own memory (default: the strategy
    /// predicted to be fastest; also if ranks request different ones). Results do not depend on it.
    pub fn transfer(mut self, transfer: Transfer) -> Self {
        self.transfer = transfer;
        self
    }

    /// Sets the storage of computed images that only filters of one kernel read (default: the
    /// choice predicted to be fastest). Results do not depend on it. If ranks request different
    /// choices, the default applies.
    pub fn stencil(mut self, stencil: Stencil) -> Self {
        self.stencil = stencil;
        self
    }

    /// Sets the number of steps of a loop per launch, where a step is one kernel over its own
    /// result (default: the number predicted to be fastest; also if ranks request different ones).
    /// Results do not depend on it.
    pub fn steps_per_launch(mut self, steps: Steps) -> Self {
        self.steps = steps;
        self
    }

    /// Evaluates automatically once this many operations are pending, or this many bytes of images
    /// are alive only because pending operations read them.
    pub fn flush_limits(mut self, operations: usize, bytes: usize) -> Self {
        (self.max_pending, self.max_pinned) = (operations.max(1), bytes);
        self
    }

    /// Runs every program on all devices of this process (default: only programs predicted to take
    /// less time than on the first alone). Results do not depend on it.
    pub fn all_lanes(mut self, on: bool) -> Self {
        self.all_lanes = on;
        self
    }

    /// Opens the session. Collective: all ranks open one together, and their devices are connected.
    ///
    /// # Errors
    /// [`Error::Config`] if there is not one weight per rank, or [`Partition::weighted`] refuses
    /// them; [`Error::Communication`] if another rank failed, left or makes another call;
    /// [`Error::Device`] if devices must be connected (`HORUS_FABRIC=nccl`) and cannot be.
    pub fn build(self) -> Result<Session> {
        let ranks = self.comm.size();
        let lanes = if let Origin::Devices(devices) = &self.from { devices.len() } else { 1 };
        if lanes > 1 && ranks > 1 {
            let why = format!("{lanes} devices of one process on {ranks} ranks: each rank computes on one device");
            return Err(Error::Config(why));
        }
        let (parts, what) = if lanes > 1 { (lanes, "devices") } else { (ranks, "ranks") };
        let weighted = self.weights.is_some();
        let partition = match self.weights {
            None => Partition::equal(parts),
            Some(w) if w.len() == parts => Partition::weighted(&w).map_err(Error::Config)?,
            Some(w) => return Err(Error::Config(format!("got {} weights for {parts} {what}", w.len()))),
        };
        if ranks > 1 {
            if let Some(turns) = self.comm.turns() {
                turns.wait();
            }
            // Before any other exchange: another rank may be making another call, or exiting.
            guarded(&*self.comm, "opening a session", || agree_on(&*self.comm, "opening a session"))?;
        }
        let overlap = agreed_overlap(&*self.comm, self.overlap)?;
        let transfer = agreed_transfer(&*self.comm, self.transfer)?;
        let steps = agreed_steps(&*self.comm, self.steps)?;
        let stencil = agreed_stencil(&*self.comm, self.stencil)?;
        let engine = OnceLock::new();
        let (deferred, pool) = match self.from {
            Origin::Devices(mut devices) if lanes == 1 => {
                let device = devices.remove(0);
                let pool = host_pool(&*device, self.host_memory);
                let chosen = guarded(&*self.comm, "opening a session", || Engine::new(device, &*self.comm))?;
                engine.get_or_init(|| chosen);
                (None, pool)
            }
            Origin::Devices(devices) => {
                let chosen = Engine::over(devices)?;
                let pool = host_pool(&*chosen.device, self.host_memory);
                if weighted {
                    chosen.divide(|| partition.clone());
                }
                engine.get_or_init(|| chosen);
                (None, pool)
            }
            Origin::Later(deferred, pool) => {
                pool.bound(self.host_memory);
                (Some(deferred), pool)
            }
        };
        if pool.most() == usize::MAX
            && let Some(free) = here::available_memory()
        {
            let free = (free + pool.bounds().1 + pool.kept()) / self.comm.local_size().max(1);
            pool.bound_by_default(free / 10 * 8);
        }
        let state = Mutable {
            unified: engine.get().is_some_and(Engine::unified),
            program: Recording::default(),
            names: Numbering::default(),
            images: HashMap::new(),
            later: HashMap::new(),
            given: HashMap::new(),
            gone: HashMap::new(),
            room: None,
            mapped: HashSet::new(),
            read_again: false,
            freed: Vec::new(),
            patience: (0, 0),
            stats: Stats::default(),
            plans: Plans::default(),
            trace: Trace::new(self.comm.rank(), self.trace).measuring(self.measure),
            lane_traces: (1..lanes).map(|lane| Trace::new(lane, self.trace).measuring(self.measure)).collect(),
            error: None,
            lost: None,
        };
        Ok(Session::opened(Inner {
            engine,
            deferred,
            pictures: AtomicUsize::new(1),
            overlap,
            transfer,
            steps,
            stencil,
            comm: self.comm,
            mode: self.mode,
            partition,
            all_lanes: self.all_lanes,
            pool,
            observer: self.observer,
            explain: self.explain,
            explain_passes: self.explain_passes,
            compare_naive: self.compare_naive,
            measuring: self.trace || self.measure,
            max_pending: self.max_pending,
            max_pinned: self.max_pinned,
            state: Owned::new(state),
            starter: Starter::default(),
            canceller: self.canceller,
            numbers: Numbering::default(),
            done: Mutex::default(),
            process: fork::generation(),
            failures: Mutex::default(),
        }))
    }
}

/// Returns `true` if all ranks request overlap: ranks must make the same plan.
fn agreed_overlap(comm: &dyn Communicator, mine: bool) -> Result<bool> {
    let all = comm.gather(u64::from(mine)).map_err(|e| e.during(comm.rank(), "opening a session"))?;
    Ok(all.into_iter().all(|wanted| wanted == 1))
}

/// The common request of all ranks, else the default.
fn agreed_transfer(comm: &dyn Communicator, mine: Transfer) -> Result<Transfer> {
    let word = match mine {
        Transfer::Auto => 0,
        Transfer::Explicit => 1,
        Transfer::Implicit => 2,
        Transfer::Streams(n) => 0x100 + n.map_or(0, |n| u64::from(n.get())),
        Transfer::Hybrid(n) => 0x200 + n.map_or(0, |n| u64::from(n.get())),
    };
    let all = comm.gather(word).map_err(|e| e.during(comm.rank(), "opening a session"))?;
    Ok(if all.iter().all(|other| *other == word) { mine } else { Transfer::Auto })
}

/// The common request of all ranks, else the default.
fn agreed_stencil(comm: &dyn Communicator, mine: Stencil) -> Result<Stencil> {
    let all = comm.gather(mine as u64).map_err(|e| e.during(comm.rank(), "opening a session"))?;
    Ok(if all.iter().all(|other| *other == mine as u64) { mine } else { Stencil::Auto })
}

/// The common request of all ranks, else the default.
fn agreed_steps(comm: &dyn Communicator, mine: Steps) -> Result<Steps> {
    let word = match mine {
        Steps::Auto => 0,
        Steps::Most(n) => u64::from(n),
    };
    let all = comm.gather(word).map_err(|e| e.during(comm.rank(), "opening a session"))?;
    Ok(if all.iter().all(|other| *other == word) { mine } else { Steps::Auto })
}
