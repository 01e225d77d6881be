//! The *engine* of a session: its devices, and their connection to the devices of other ranks.
//!
//! A session is opened on a device, or chooses one at the first evaluation. [`Session::deferred`] takes a [`Chooser`].
//! All ranks call it together, with the [`ProgramWork`] of the program. Until then given images stay in host memory,
//! where a CPU adopts them and a GPU finds them. The design is in `docs/design/devices.md`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use crate::comm::agree::agree_on;
use crate::comm::threads::ThreadComm;
use crate::comm::{Communicator, guarded};
use crate::device::separate_memory::SeparateMemoryDevice;
use crate::device::{Device, Memory, MemoryKind, distinct};
use crate::error::{DeviceError, Error, Result};
use crate::host::buffer::Pool;
use crate::host::workers::Workers;
use crate::ir::graph::{Graph, Op};
use crate::machine::measure::links::measure_assumed;
use crate::machine::{Machine, MachineProfile, here};
use crate::plan::Plan;
use crate::plan::partition::Partition;
use crate::plan::state::{Hosts, Residency};
use crate::plan::work::ProgramWork;
use crate::session::{Session, SessionInner, SessionState, Settings};

/// Chooses a device for a session once its first program is known.
pub trait Chooser: Send + Sync {
    /// Returns the device for a program that does `work`; the session uses it for later programs, too. Collective among
    /// the ranks of `comm`: either all get a device or none does.
    ///
    /// # Errors
    /// If there is no device of the requested kind.
    fn choose(&self, work: &ProgramWork, comm: &dyn Communicator) -> Result<Arc<dyn Device>>;

    /// Called before a file of this size is read, so that a device with a long start can begin to start.
    fn expect(&self, _bytes: u64) {}
}

/// How the devices of all ranks reach each other's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Connection {
    /// Through the host.
    Host,
    /// Peer to peer, once a plan needs it. Connecting takes these seconds, less those that plans without a connection
    /// have taken longer so far.
    Possible(f64),
    /// Peer to peer.
    Connected,
}

/// Connection of the devices, and what it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ConnectedDevices {
    connection: Connection,
    /// Bytes of device memory available to plans.
    capacity: Option<usize>,
}

/// The devices that a session computes on.
pub(crate) struct Engine {
    /// The device, or the first of several devices of this process.
    pub(crate) device: Arc<dyn Device>,
    /// The other devices of this process.
    others: Vec<Arc<dyn Device>>,
    /// Names of all devices of this process, joined.
    pub(crate) joined_names: Arc<str>,
    /// Partition of rows over the first `i + 1` devices, set at the first evaluation on that many.
    divisions: Vec<OnceLock<Partition>>,
    connected: Mutex<ConnectedDevices>,
    /// Machine of all ranks.
    pub(crate) machine: Arc<Machine>,
    /// Machine of the first `i + 1` ranks or devices.
    machines: Vec<OnceLock<Arc<Machine>>>,
    /// Profiles of the devices of this process.
    profiles: Vec<MachineProfile>,
}

fn joined_names(devices: &[Arc<dyn Device>]) -> Arc<str> {
    devices.iter().map(|device| device.names().name).collect::<Vec<_>>().join(" + ").into()
}

impl Engine {
    /// The engine of this rank's device. Collective.
    pub(crate) fn new(device: Arc<dyn Device>, comm: &dyn Communicator) -> Result<Engine> {
        let connection = possible_connection(&*device, comm)?;
        let capacity = agreed_capacity(comm, device.memory().capacity())?;
        let mut mine = here::profile(&*device).inspect_err(|e| comm.abort(&e.to_string()))?;
        measure_assumed(comm, &mut mine).map_err(|e| e.during(comm.rank(), "opening a session"))?;
        let machine = Arc::new(here::gather(comm, mine)?);
        log::debug!("costs are predicted by {machine}");
        let connected = Mutex::new(ConnectedDevices { connection, capacity });
        let (others, profiles, divisions) = (Vec::new(), Vec::new(), unset(1));
        let machines = unset(comm.size());
        let joined_names = joined_names(std::slice::from_ref(&device));
        Ok(Engine { device, others, joined_names, divisions, connected, machine, machines, profiles })
    }

    /// The engine of the devices of this process, at least one.
    pub(crate) fn over(mut devices: Vec<Arc<dyn Device>>) -> Result<Engine> {
        if devices.is_empty() {
            return Err(Error::Config("a session needs a device".into()));
        }
        let mut profiles = devices.iter().map(|device| here::profile(&**device)).collect::<Result<Vec<_>>>()?;
        if devices.iter().any(|device| !device.memory().is_unified()) {
            // One plan serves all devices: a device on the host's memory gets its own part of that memory.
            let unified = devices.iter().map(|device| device.memory().is_unified());
            let apart =
                |(profile, unified): (MachineProfile, bool)| if unified { profile.with_host_copies() } else { profile };
            profiles = profiles.into_iter().zip(unified).map(apart).collect();
            devices = devices.into_iter().map(SeparateMemoryDevice::from_unified).collect();
        }
        let connection = on_each(&devices, &|device, comm| possible_connection(device, comm))?;
        let capacity = devices.iter().filter_map(|device| device.memory().capacity()).min();
        let connected = Mutex::new(ConnectedDevices { connection, capacity });
        let machine = Arc::new(machine_of(&profiles));
        log::debug!("costs are predicted by {machine}");
        let (divisions, machines) = (unset(devices.len()), unset(devices.len()));
        let joined_names = joined_names(&devices);
        let others = devices.split_off(1);
        let device = devices.remove(0);
        Ok(Engine { device, others, joined_names, divisions, connected, machine, machines, profiles })
    }

    /// Machine of the first `among` ranks or devices, without the others.
    pub(crate) fn machine_among(&self, among: usize) -> Arc<Machine> {
        if among == self.machines.len() {
            return Arc::clone(&self.machine);
        }
        let of =
            || if self.others.is_empty() { self.machine.first(among) } else { machine_of(&self.profiles[..among]) };
        Arc::clone(self.machines[among - 1].get_or_init(|| Arc::new(of())))
    }

    /// Bytes of device memory available to plans on the first `among` ranks or devices.
    pub(crate) fn capacity_among(&self, among: usize) -> Option<usize> {
        if self.others.is_empty() {
            return self.capacity();
        }
        self.devices().take(among).filter_map(|device| device.memory().capacity()).min()
    }

    /// All devices of this process.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &Arc<dyn Device>> {
        std::iter::once(&self.device).chain(&self.others)
    }

    /// Name of the device with the least memory.
    pub(crate) fn smallest(&self) -> String {
        let rooms = self.devices().map(|device| device.memory().capacity().unwrap_or(usize::MAX)).enumerate();
        let lane = rooms.min_by_key(|(_, room)| *room).map_or(0, |(lane, _)| lane);
        let name = self.devices().nth(lane).map(|device| device.names().name).unwrap_or_default();
        if self.device_count() > 1 { named(&name, lane, self.device_count()) } else { name }
    }

    /// Whether the parts of images are on hosts of their own or on one shared host.
    pub(crate) fn hosts(&self) -> Hosts {
        if self.others.is_empty() { Hosts::Separate } else { Hosts::Shared }
    }

    /// Number of devices of this process.
    pub(crate) fn device_count(&self) -> usize {
        1 + self.others.len()
    }

    /// Bytes of device memory available to plans, on all devices.
    pub(crate) fn room(&self) -> usize {
        self.capacity().map_or(usize::MAX, |bytes| bytes.saturating_mul(self.device_count()))
    }

    /// Partition of rows over the first `among` devices, if it is set.
    pub(crate) fn divided(&self, among: usize) -> Option<&Partition> {
        self.divisions[among - 1].get()
    }

    /// Best partition of rows over the first `among` devices: proportional to their predicted speed for this work.
    pub(crate) fn shares(&self, among: usize, work: &ProgramWork) -> Partition {
        let machine = self.machine_among(among);
        let speeds: Vec<f64> = (0..among).map(|lane| 1.0 / work.seconds(machine.of(lane), 1)).collect();
        Partition::weighted(&speeds).unwrap_or_else(|_| Partition::equal(among))
    }

    fn connected(&self) -> ConnectedDevices {
        *self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_connected(&self, now: ConnectedDevices) {
        *self.connected.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Bytes of device memory available to plans.
    pub(crate) fn capacity(&self) -> Option<usize> {
        self.connected().capacity
    }

    /// Returns `true` if plans let the devices of the ranks exchange memory peer to peer: they are connected, or can be.
    pub(crate) fn direct(&self) -> bool {
        self.connected().connection != Connection::Host
    }

    /// Returns `true` if the devices are connected.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected().connection == Connection::Connected
    }

    /// Returns `true` if the plan can run with the present connections of the devices.
    pub(crate) fn is_ready_for(&self, plan: &Plan) -> bool {
        self.is_connected() || !plan.steps.iter().any(|step| step.action.is_direct())
    }

    /// Predicted seconds that a plan must save before the devices are connected for it: those of connecting, less those
    /// that plans without a connection have already taken longer.
    pub(crate) fn seconds_to_connect(&self) -> f64 {
        if let Connection::Possible(seconds) = self.connected().connection { seconds } else { 0.0 }
    }

    /// Counts the seconds by which a plan without a connection takes longer than one with.
    pub(crate) fn forgo(&self, seconds: f64) {
        let now = self.connected();
        if let (true, Connection::Possible(left)) = (seconds > 0.0, now.connection) {
            self.set_connected(ConnectedDevices { connection: Connection::Possible((left - seconds).max(0.0)), ..now });
        }
    }

    /// Connects the devices if the plan needs it. Returns `true` if plans must be remade, because devices exchange
    /// memory through the host or have less of it. Collective.
    pub(crate) fn connect_for(&self, plan: &Plan, comm: &dyn Communicator) -> Result<bool> {
        if self.is_ready_for(plan) {
            return Ok(false);
        }
        let before = self.connected();
        let (direct, capacity) = if self.others.is_empty() {
            let direct = connect_ranks(&*self.device, comm)?;
            (direct, agreed_capacity(comm, self.device.memory().capacity())?)
        } else {
            let devices: Vec<_> = self.devices().cloned().collect();
            let direct = on_each(&devices, &|device, comm| connect_ranks(device, comm))?;
            (direct, devices.iter().filter_map(|device| device.memory().capacity()).min())
        };
        let connection = if direct { Connection::Connected } else { Connection::Host };
        self.set_connected(ConnectedDevices { connection, capacity });
        Ok(!direct || capacity != before.capacity)
    }

    /// Gives up the connections of devices after a failure, so that no device waits for the failed one forever. The
    /// next plan that needs them connects the devices again.
    pub(crate) fn disconnect(&self) {
        let now = self.connected();
        if now.connection == Connection::Connected {
            self.set_connected(ConnectedDevices { connection: Connection::Possible(0.0), ..now });
            self.devices().filter_map(|device| device.fabric()).for_each(|fabric| fabric.disconnect());
        }
    }

    /// Returns `true` if each rank's single device can hold images of `taken` bytes and the images of a plan, which
    /// take `bytes` bytes on rank 0.
    pub(crate) fn has_room_beside(&self, taken: usize, bytes: usize) -> bool {
        // Twice, because strips of other ranks may be larger.
        self.device_count() == 1
            && self.capacity().is_none_or(|capacity| bytes.saturating_mul(2).saturating_add(taken) <= capacity)
    }

    /// Partition of rows over the first `among` devices.
    pub(crate) fn partition(&self, among: usize) -> &Partition {
        self.divisions[among - 1].get_or_init(|| Partition::equal(among))
    }

    /// Sets the partition of rows over as many devices as it has parts, unless it is set already.
    pub(crate) fn divide(&self, partition: &Partition) {
        self.divisions[partition.ranks() - 1].get_or_init(|| partition.clone());
    }

    pub(crate) fn unified(&self) -> bool {
        self.device.memory().is_unified()
    }
}

/// A device that is chosen at the first evaluation.
#[derive(Clone)]
pub(crate) struct DeferredDevice {
    pub(crate) chooser: Arc<dyn Chooser>,
    /// Threads for work before there is a device.
    pub(crate) workers: Arc<Workers>,
}

impl Session {
    /// The engine; chosen for `graph` if there is none yet.
    pub(crate) fn choose_engine(&self, state: &mut SessionState, graph: &Graph<Op>) -> Result<&Engine> {
        let SessionInner { engine, deferred, comm, pictures, .. } = &**self.0;
        if let Some(engine) = engine.get() {
            return Ok(engine);
        }
        let Some(deferred) = deferred else {
            return Err(Error::Config("the session has no device".into())); // unreachable: every session has one
        };
        let start = Instant::now();
        let work = ProgramWork::of(graph).times(pictures.load(Ordering::Relaxed));
        agree_on(&**comm, "choosing a device")?;
        let device = deferred.chooser.choose(&work, &**comm)?;
        let chosen = Engine::new(device, &**comm)?;
        if chosen.unified() {
            state.images.unified = true;
            // Given images are in host memory, which is the device's.
            for image in state.images.in_memory.values_mut() {
                image.device = image.host.take().map(Memory::Host);
                image.state.residency = Residency::Both;
            }
        }
        state.trace.started(start);
        Ok(engine.get_or_init(|| chosen))
    }

    /// The engine, if one was chosen.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.0.engine.get()
    }

    /// Opens a session of this rank only, on the same device: other ranks neither see its evaluations nor wait for
    /// them. The two sessions share no images, and neither counts the device memory of the other's images.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`](crate::session::SessionBuilder::build).
    pub fn alone(&self) -> Result<Session> {
        let SessionInner { engine, deferred, settings, pool, .. } = &**self.0;
        let builder = match (engine.get(), deferred) {
            (Some(engine), _) => Session::sharing(Arc::clone(&engine.device)),
            (None, Some(d)) => Session::deferred(Arc::clone(&d.chooser), Arc::clone(&d.workers), Arc::clone(pool)),
            (None, None) => return Err(Error::Config("the session has no device".into())),
        };
        // There is nothing to partition, and the pool already has its limit.
        let settings = Settings { weights: None, host_memory: usize::MAX, ..settings.clone() };
        builder.settings(settings).build()
    }

    /// Adds the statistics, times and trace of a session that [`Session::alone`] opened.
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

    /// Hints that the next program will run for this many pictures, so that a device with a long start may pay off.
    pub(crate) fn expect_pictures(&self, pictures: usize) {
        self.0.pictures.store(pictures.max(1), Ordering::Relaxed);
    }

    /// Hints that a file of this size is about to be read.
    pub(crate) fn expect_file(&self, bytes: u64) {
        if let (None, Some(deferred)) = (self.engine(), &self.0.deferred) {
            deferred.chooser.expect(bytes);
        }
    }
}

/// Memory of the smallest device; all ranks assume it, because they must make the same plan.
pub(crate) fn agreed_capacity(comm: &dyn Communicator, mine: Option<usize>) -> Result<Option<usize>> {
    const UNLIMITED: u64 = u64::MAX;
    let all = comm.gather(mine.map_or(UNLIMITED, |bytes| bytes as u64));
    let all = all.map_err(|e| e.during(comm.rank(), "opening a session"))?;
    let least = all.into_iter().min().filter(|least| *least != UNLIMITED);
    Ok(least.map(|bytes| bytes as usize))
}

/// Name of a device with its number.
pub(crate) fn named(device: &str, lane: usize, lanes: usize) -> String {
    format!("{device} (lane {} of {lanes})", lane + 1)
}

/// Unset values, one for each index.
fn unset<T>(count: usize) -> Vec<OnceLock<T>> {
    std::iter::repeat_with(OnceLock::new).take(count).collect()
}

/// Machine of devices that share their host.
fn machine_of(profiles: &[MachineProfile]) -> Machine {
    let sharers = profiles.iter().filter(|profile| !profile.is_unified()).count();
    let beside = |profile: &MachineProfile| {
        (if profiles.len() > 1 { profile.clone().sharing_host_copies(sharers) } else { profile.clone() }, 0)
    };
    Machine::of_ranks(profiles.iter().map(beside).collect())
}

/// Calls `work` for each of several devices of this process, together as if they were devices of ranks. Returns the
/// answer, which is the same for all, or the first error, which causes the others.
fn on_each<T: Send>(
    devices: &[Arc<dyn Device>],
    work: &(dyn Fn(&dyn Device, &dyn Communicator) -> Result<T> + Sync),
) -> Result<T> {
    let comms = ThreadComm::group(devices.len());
    let first: Mutex<Option<Error>> = Mutex::default();
    let run = |device: &Arc<dyn Device>, comm: &ThreadComm| match work(&**device, comm) {
        Ok(answer) => Some(answer),
        Err(error) => {
            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            None
        }
    };
    let run = &run;
    let answers: Vec<Option<T>> = std::thread::scope(|scope| {
        let lanes = devices.iter().zip(&comms);
        let lanes: Vec<_> = lanes
            .map(|(device, comm)| scope.spawn(move || guarded(comm, "connecting the devices", || run(device, comm))))
            .collect();
        lanes.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
    });
    let none = || Error::Config("a session needs a device".into());
    let error = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or_else(|| answers.into_iter().flatten().next().ok_or_else(none), Err)
}

/// Addresses of the devices of all ranks, 0 for a device that cannot be connected.
fn addresses(device: &dyn Device, comm: &dyn Communicator) -> Result<Vec<u64>> {
    let addresses = comm.gather(device.fabric().map_or(0, |fabric| fabric.address()));
    addresses.map_err(|e| e.during(comm.rank(), "connecting the devices"))
}

/// How the devices of all ranks can reach each other's memory.
fn possible_connection(device: &dyn Device, comm: &dyn Communicator) -> Result<Connection> {
    if comm.size() == 1 {
        return Ok(Connection::Host);
    }
    agree_on(comm, "opening a session")?;
    let addresses = addresses(device, comm)?;
    if !distinct(&addresses) {
        // Without communication: the reason is logged, or an error (`HORUS_FABRIC=nccl`).
        connect(device, comm, &addresses)?;
        return Ok(Connection::Host);
    }
    let mine = device.fabric().map_or(0.0, |fabric| fabric.seconds_to_connect());
    let all = comm.gather(mine.to_bits()).map_err(|e| e.during(comm.rank(), "opening a session"))?;
    Ok(Connection::Possible(all.into_iter().map(f64::from_bits).fold(0.0, f64::max)))
}

/// Connects the devices of all ranks, once all want to; returns `true` on success. Collective.
fn connect_ranks(device: &dyn Device, comm: &dyn Communicator) -> Result<bool> {
    // The other devices would wait for launches of this one.
    device.synchronize().map_err(|source| connecting_failed(device, comm, source))?;
    agree_on(comm, "connecting the devices")?;
    connect(device, comm, &addresses(device, comm)?)
}

fn connect(device: &dyn Device, comm: &dyn Communicator, addresses: &[u64]) -> Result<bool> {
    let connected = device.fabric().map_or(Ok(false), |fabric| fabric.connect(comm, addresses));
    connected.map_err(|source| connecting_failed(device, comm, source))
}

fn connecting_failed(device: &dyn Device, comm: &dyn Communicator, source: DeviceError) -> Error {
    let e = Error::Device { op: "connecting the devices".into(), device: device.names().name, source };
    comm.abort(&e.to_string());
    e
}

/// Host memory for a session on `device`, of at most `most` bytes.
pub(crate) fn host_pool(device: &dyn Device, most: usize) -> Arc<Pool> {
    /// Bytes of freed host memory that the pool caches for reuse.
    const KEPT: usize = 1 << 30;
    match device.memory() {
        MemoryKind::Unified(pool) => {
            pool.bound(most);
            Arc::clone(pool)
        }
        MemoryKind::Separate(_) => Pool::bounded(KEPT, most),
    }
}
