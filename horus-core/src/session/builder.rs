//! Opens sessions.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};

use crate::comm::agree::agree_on;
use crate::comm::{Communicator, SingleRankComm, guarded};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::execute::trace::Trace;
use crate::host::buffer::Pool;
use crate::host::fork;
use crate::machine::here;
use crate::plan::Transfer;
use crate::plan::partition::Partition;
use crate::record::{Numbering, RecordedProgram};
use crate::session::cache::PlanCache;
use crate::session::devices::{DeferredDevice, Engine, host_pool};
use crate::session::images::SessionImages;
use crate::session::state::lock::StateLock;
use crate::session::state::start::Starter;
use crate::session::{Session, SessionInner, SessionState, Settings, Stats};
use crate::session_settings;
use crate::settings::{Ranks, Stencil, StepsPerLaunch};

/// Origin of a session's device.
pub(crate) enum DeviceOrigin {
    /// Given devices: one, or several of this process.
    Devices(Vec<Arc<dyn Device>>),
    /// A device that is chosen at the first evaluation; images stay in host memory until then.
    Later(DeferredDevice, Arc<Pool>),
}

/// Settings of a [`Session`] to be opened.
#[must_use]
pub struct SessionBuilder {
    from: DeviceOrigin,
    comm: Arc<dyn Communicator>,
    settings: Settings,
}

impl Session {
    /// Opens another session on the devices and ranks of this one, with these settings and the partition of this session.
    /// Images and plans are its own; compiled kernels and memory are those of the devices.
    ///
    /// # Errors
    /// [`Error::Config`] if no device is chosen yet; as [`SessionBuilder::build`].
    #[doc(hidden)]
    pub fn open_beside(&self, settings: Settings) -> Result<Session> {
        let engine = self.engine().ok_or_else(|| Error::Config("the session has not chosen a device yet".into()))?;
        let settings = Settings { weights: self.0.settings.weights.clone(), ..settings };
        let builder = Session::over(engine.devices().cloned().collect());
        builder.communicator(Arc::clone(&self.0.comm)).settings(settings).build()
    }
}

impl SessionBuilder {
    pub(crate) fn new(from: DeviceOrigin) -> SessionBuilder {
        SessionBuilder { from, comm: Arc::new(SingleRankComm), settings: Settings::default() }
    }

    /// Runs on the ranks of `comm` (default: one rank).
    pub fn communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.comm = comm;
        self
    }

    session_settings!();

    /// Sets all settings.
    #[doc(hidden)]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Opens the session. Collective: all ranks open one together.
    ///
    /// # Errors
    /// [`Error::Config`] if there is not one weight per rank, or [`Partition::weighted`] refuses
    /// them; [`Error::Communication`] if another rank failed, left or makes another call.
    pub fn build(self) -> Result<Session> {
        let SessionBuilder { from, comm, mut settings } = self;
        let ranks = comm.size();
        let lanes = if let DeviceOrigin::Devices(devices) = &from { devices.len() } else { 1 };
        if lanes > 1 && ranks > 1 {
            let why = format!("{lanes} devices of one process on {ranks} ranks: each rank computes on one device");
            return Err(Error::Config(why));
        }
        let (parts, what) = if lanes > 1 { (lanes, "devices") } else { (ranks, "ranks") };
        let weighted = settings.weights.is_some();
        let partition = match &settings.weights {
            None => Partition::equal(parts),
            Some(w) if w.len() == parts => Partition::weighted(w).map_err(Error::Config)?,
            Some(w) => return Err(Error::Config(format!("got {} weights for {parts} {what}", w.len()))),
        };
        if ranks > 1 {
            if let Some(turns) = comm.communication_order() {
                turns.wait();
            }
            // This is the first exchange, because another rank may be making another call, or exiting.
            guarded(&*comm, "opening a session", || agree_on(&*comm, "opening a session"))?;
        }
        agree(&*comm, &mut settings)?;
        let engine = OnceLock::new();
        let (deferred, pool) = match from {
            DeviceOrigin::Devices(mut devices) if lanes == 1 => {
                let device = devices.remove(0);
                let pool = host_pool(&*device, settings.host_memory);
                let chosen = guarded(&*comm, "opening a session", || Engine::new(device, &*comm))?;
                engine.get_or_init(|| chosen);
                (None, pool)
            }
            DeviceOrigin::Devices(devices) => {
                let chosen = Engine::over(devices)?;
                let pool = host_pool(&*chosen.device, settings.host_memory);
                if weighted {
                    chosen.divide(&partition);
                }
                engine.get_or_init(|| chosen);
                (None, pool)
            }
            DeviceOrigin::Later(deferred, pool) => {
                pool.bound(settings.host_memory);
                (Some(deferred), pool)
            }
        };
        if pool.most() == usize::MAX
            && let Some(free) = here::available_memory()
        {
            let free = (free + pool.bounds().1 + pool.cached_bytes()) / comm.local_size().max(1);
            pool.bound_by_default(free / 10 * 8);
        }
        let traced = |rank| {
            let trace = Trace::new(rank, settings.trace).measuring(settings.measure);
            if lanes > 1 { trace.of_device(rank) } else { trace }
        };
        let images = SessionImages {
            unified: engine.get().is_some_and(Engine::unified),
            ranks,
            digests: (settings.compare_given && ranks > 1).then(HashMap::new),
            ..SessionImages::default()
        };
        let (trace, lane_traces) = (traced(comm.rank()), (1..lanes).map(traced).collect());
        let state = SessionState {
            program: RecordedProgram::default(),
            names: Numbering::default(),
            images,
            rooms: Vec::new(),
            plans: PlanCache::default(),
            stats: Stats::default(),
            trace,
            lane_traces,
            blocks: None,
            explained: HashSet::new(),
            error: None,
            patience: (0, 0),
            lost: None,
        };
        Ok(Session::opened(SessionInner {
            engine,
            deferred,
            pictures: AtomicUsize::new(1),
            comm,
            partition,
            settings,
            pool,
            state: StateLock::new(state),
            starter: Starter::default(),
            numbers: Numbering::default(),
            done: Mutex::default(),
            process: fork::generation(),
            failures: Mutex::default(),
        }))
    }
}

/// Replaces settings that differ between ranks by the default, because ranks must make the same plan.
fn agree(comm: &dyn Communicator, settings: &mut Settings) -> Result<()> {
    let alike = |mine: u64| -> Result<bool> {
        let all = comm.gather(mine).map_err(|e| e.during(comm.rank(), "opening a session"))?;
        Ok(all.into_iter().all(|other| other == mine))
    };
    let transfer = match settings.transfer {
        Transfer::Auto => 0,
        Transfer::Explicit => 1,
        Transfer::Implicit => 2,
        Transfer::Streams(n) => 0x100 + n.map_or(0, |n| u64::from(n.get())),
        Transfer::Hybrid(n) => 0x200 + n.map_or(0, |n| u64::from(n.get())),
    };
    let steps = match settings.steps {
        StepsPerLaunch::Auto => 0,
        StepsPerLaunch::Most(n) => u64::from(n),
    };
    settings.overlap &= alike(u64::from(settings.overlap))?;
    let ranks = match settings.ranks {
        Ranks::Auto => 0,
        Ranks::All => u64::MAX,
        Ranks::First(first) => first.get() as u64,
    };
    if !alike(ranks)? {
        settings.ranks = Ranks::All;
    }
    if !alike(transfer)? {
        settings.transfer = Transfer::Auto;
    }
    if !alike(steps)? {
        settings.steps = StepsPerLaunch::Auto;
    }
    if !alike(settings.stencil as u64)? {
        settings.stencil = Stencil::Auto;
    }
    Ok(())
}
