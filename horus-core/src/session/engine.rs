//! The device of a session: one that it is opened on, or one that is chosen at the first evaluation.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Inner, Mutable, Session};
use crate::comm::agree::agree_on;
use crate::comm::{Alone, Communicator};
use crate::device::{Device, Memory, MemoryKind};
use crate::error::{Error, Result};
use crate::host::buffer::Pool;
use crate::host::workers::Workers;
use crate::ir::graph::{Graph, Op};
use crate::machine::{Machine, here};
use crate::plan::state::Residency;
use crate::plan::work::Work;

/// Chooses a device for a session once it is known what has to be computed.
pub trait Chooser: Send + Sync {
    /// Returns the device for a program that does `work`; it is kept for later programs. Collective among the ranks of
    /// `comm`: all get a device or none does.
    ///
    /// # Errors
    /// If there is no device of the requested kind.
    fn choose(&self, work: &Work, comm: &dyn Communicator) -> Result<Arc<dyn Device>>;

    /// Called when a file of so many bytes is about to be read: a device that takes long to start may start now.
    fn expect(&self, _bytes: u64) {}
}

/// A device that a session computes on.
pub(super) struct Engine {
    pub(super) device: Arc<dyn Device>,
    /// Whether the devices of the ranks exchange memory peer to peer, not through the host.
    pub(super) direct: bool,
    /// Bytes of device memory that plans count on.
    pub(super) capacity: Option<usize>,
    /// The machines of all ranks.
    pub(super) machine: Arc<Machine>,
}

impl Engine {
    /// Connects the devices of all ranks.
    pub(super) fn new(device: Arc<dyn Device>, comm: &dyn Communicator) -> Result<Engine> {
        let direct = meet(&*device, comm)?;
        let capacity = agreed_capacity(comm, device.capacity())?;
        let mine = here::profile(&*device).inspect_err(|e| comm.abort(&e.to_string()))?;
        let machine = Arc::new(here::gather(comm, mine)?);
        log::debug!("costs are predicted by {machine}");
        Ok(Engine { device, direct, capacity, machine })
    }

    pub(super) fn unified(&self) -> bool {
        self.device.memory() == MemoryKind::Unified
    }
}

/// Where a session gets its device from.
#[derive(Clone)]
pub(super) struct Deferred {
    pub(super) chooser: Arc<dyn Chooser>,
    /// For what is to be done before there is a device.
    pub(super) workers: Arc<Workers>,
}

impl Session {
    /// The engine, chosen for `graph` if there is none yet.
    pub(super) fn settled(&self, state: &mut Mutable, graph: &Graph<Op>) -> Result<&Engine> {
        let Inner { engine, deferred, comm, pictures, .. } = &**self.0;
        if let Some(engine) = engine.get() {
            return Ok(engine);
        }
        let Some(deferred) = deferred else {
            return Err(Error::Config("the session has no device".into())); // as long as sessions are built as they are, it has
        };
        let start = Instant::now();
        let work = Work::of(graph).times(pictures.load(Ordering::Relaxed));
        agree_on(&**comm, "choosing a device")?;
        let device = deferred.chooser.choose(&work, &**comm)?;
        let chosen = Engine::new(device, &**comm)?;
        if chosen.unified() {
            state.unified = true;
            // Images that were given have waited in host memory, where they can stay.
            for image in state.images.values_mut() {
                image.device = image.host.take().map(Memory::Host);
                image.state.residency = Residency::Both;
            }
        }
        state.trace.started(start);
        Ok(engine.get_or_init(|| chosen))
    }

    /// The engine, if one was chosen.
    pub(super) fn engine(&self) -> Option<&Engine> {
        self.0.engine.get()
    }

    /// Opens a session of this rank alone, on the same device: other ranks neither see nor wait for what it evaluates.
    /// The two sessions share no images, and neither knows how much device memory the other's images take.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`](super::SessionBuilder::build).
    pub fn alone(&self) -> Result<Session> {
        let Inner { engine, deferred, mode, observer, explain, explain_passes, compare_naive, pool, canceller, .. } =
            &**self.0;
        let builder = match (engine.get(), deferred) {
            (Some(engine), _) => Session::sharing(Arc::clone(&engine.device)),
            (None, Some(d)) => Session::deferred(Arc::clone(&d.chooser), Arc::clone(&d.workers), Arc::clone(pool)),
            (None, None) => return Err(Error::Config("the session has no device".into())),
        };
        let builder = builder.mode(*mode).explain_passes(*explain_passes).compare_naive(*compare_naive);
        let builder = builder.trace(self.lock("opening a session")?.trace.is_on()).measure(self.0.measuring);
        let builder = builder.flush_limits(self.0.max_pending, self.0.max_pinned).communicator(Arc::new(Alone));
        builder.watched(observer.clone(), explain.clone(), canceller.clone()).build()
    }

    /// Adds the statistics, times and trace of a session opened by [`Session::alone`] to this one's.
    ///
    /// # Errors
    /// [`Error::Reentry`] while one of them evaluates on this thread.
    pub(crate) fn absorb(&self, alone: &Session) -> Result<()> {
        let mut theirs = alone.lock("adopting earlier results")?;
        let mut ours = self.lock("adopting earlier results")?;
        alone.collect(&mut theirs)?;
        ours.stats.add(&std::mem::take(&mut theirs.stats));
        ours.trace.absorb(&mut theirs.trace);
        self.publish(&ours);
        alone.publish(&theirs);
        Ok(())
    }

    /// Hints that the next program will run for so many pictures: a device that takes long to start may pay off.
    pub(crate) fn expect_pictures(&self, pictures: usize) {
        self.0.pictures.store(pictures.max(1), Ordering::Relaxed);
    }

    /// Hints that a file of so many bytes is about to be read.
    pub(crate) fn expect_file(&self, bytes: u64) {
        if let (None, Some(deferred)) = (self.engine(), &self.0.deferred) {
            deferred.chooser.expect(bytes);
        }
    }
}

/// The memory of the smallest device: ranks must make the same plan, so all assume that much.
pub(super) fn agreed_capacity(comm: &dyn Communicator, mine: Option<usize>) -> Result<Option<usize>> {
    const UNLIMITED: u64 = u64::MAX;
    let all = comm.gather(mine.map_or(UNLIMITED, |bytes| bytes as u64));
    let all = all.map_err(|e| e.during(comm.rank(), "opening a session"))?;
    let least = all.into_iter().min().filter(|least| *least != UNLIMITED);
    Ok(least.map(|bytes| bytes as usize))
}

/// Connects the devices of all ranks; returns whether that worked.
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

/// Host memory for a session on `device`, of which at most `most` bytes may be taken.
pub(super) fn host_pool(device: &dyn Device, most: usize) -> Arc<Pool> {
    /// Freed host memory kept for reuse.
    const KEPT: usize = 1 << 30;
    match device.host_pool() {
        Some(pool) => {
            pool.bound(most);
            Arc::clone(pool)
        }
        None => Pool::bounded(KEPT, most),
    }
}
