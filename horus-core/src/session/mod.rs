//! Sessions: they own images, record programs, and evaluate them.

mod arrays;
mod attributes;
mod blocks;
mod builder;
mod cache;
mod cancel;
mod compile;
mod debug;
mod devices;
mod engine;
mod external;
mod forecast;
mod images;
mod memory;
mod on_root;
mod progress;
mod settings;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use crate::comm::agree::agree_on;
use crate::comm::{Communicator, gather_bytes};
use crate::device::DownloadStart;
use crate::device::{Device, Memory};
use crate::error::{DeviceError, Error, Result};
use crate::execute::trace::{Times, Trace};
use crate::host::buffer::{HostBuffer, Pool, Reserved};
use crate::host::fork;
use crate::host::sequential_output::SequentialOutput;
use crate::host::workers::Workers;
use crate::plan::partition::Partition;
use crate::plan::{BusyTimes, Mode, ResultDelivery};
use crate::record::Numbering;

use self::builder::DeviceOrigin;
use self::devices::{DeferredDevice, Engine};
use self::state::SessionState;
use self::state::failure::ValueFailure;
use self::state::lock::StateLock;
use self::state::start::{SessionOwner, Starter};

pub(crate) use arrays::{DeferredSession, RequestedValue, ResultTarget};
pub(crate) use attributes::{Attributes, SizeReduction};
pub use blocks::BlockMap;
pub use builder::SessionBuilder;
pub use cancel::Canceller;
pub(crate) use compile::schedule::Grain;
pub use devices::Chooser;
pub(crate) use engine::distribute::RankRows;
pub(crate) use engine::loops::{LoopLimits, LoopResult, RecordedLoop};
pub use engine::read::Pending;
#[doc(hidden)]
pub use engine::replay::{DeviceInput, FailedReplay, Replay, ReplayInputKind};
pub(crate) use engine::stages::{Delivery, DeliveryTarget, parts_of};
pub use forecast::device::DeviceForecast;
pub use forecast::memory::MemoryForecast;
pub(crate) use images::on_demand::OnDemandImage;
pub use memory::{MemoryInUse, MemoryUse};
#[doc(hidden)]
pub(crate) use on_root::{everywhere, first_of_ranks};
pub use on_root::{on_first, on_root};
pub use progress::{Progress, Stats};
#[doc(hidden)]
pub use settings::Settings;
pub use state::handle::Handle;
#[doc(hidden)]
pub use state::stand_ins::StandIns;
#[doc(hidden)]
pub use state::wait::wait_by;

/// A device, a communicator, and the images and programs recorded on them. Cheap to clone.
#[derive(Clone)]
pub struct Session(Arc<SessionOwner>);

pub(crate) struct SessionInner {
    /// Set once the device is chosen.
    engine: OnceLock<Engine>,
    /// Chooses the device, if the choice is deferred.
    deferred: Option<DeferredDevice>,
    /// Expected number of runs of the first program.
    pictures: AtomicUsize,
    comm: Arc<dyn Communicator>,
    partition: Partition,
    /// Settings, as all ranks agreed on them.
    settings: Settings,
    pool: Arc<Pool>,
    state: StateLock,
    starter: Starter,
    /// Source of record numbers.
    numbers: Numbering,
    /// Statistics as of the last evaluation, readable during another one.
    done: Mutex<(Stats, Times)>,
    /// Process that opened the session; see [`fork::generation`].
    process: u32,
    /// Failed values that may still be alive.
    failures: Mutex<Vec<Weak<ValueFailure>>>,
}

impl SessionInner {
    /// Returns `true` in the process that opened the session, and `false` in its forked children. In a child, locks may
    /// be locked forever by threads that do not exist there, so nothing is recorded and the session is never dropped.
    fn is_here(&self) -> bool {
        self.process == fork::generation()
    }
}

impl Session {
    /// Settings for a session on `device`.
    pub fn on(device: Box<dyn Device>) -> SessionBuilder {
        Session::sharing(device.into())
    }

    /// Settings for a session on a shared device.
    pub fn sharing(device: Arc<dyn Device>) -> SessionBuilder {
        SessionBuilder::new(DeviceOrigin::Devices(vec![device]))
    }

    /// Settings for a session on several devices of this process. Each device computes a strip of every image, and all
    /// share the host's memory. Rows are divided by the predicted speed of each device, or by
    /// [`SessionBuilder::weights`], one per device.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use horus_core::{cpu::device::CpuDevice, device::Device, prelude::*};
    /// # use horus_testing::simulated::SimulatedDevice;
    /// let device = || -> Arc<dyn Device> { Arc::new(SimulatedDevice::new(CpuDevice::new(Some(1)).unwrap(), 1 << 20)) };
    /// let session = Session::over(vec![device(), device()]).build()?;
    /// let image = Image::from_slice(&session, (3, 2), &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    /// assert_eq!((image * 2.0).to_vec()?, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn over(devices: Vec<Arc<dyn Device>>) -> SessionBuilder {
        SessionBuilder::new(DeviceOrigin::Devices(devices))
    }

    /// Settings for a session that chooses its device at the first evaluation. Until then, `workers` copy pixels to
    /// memory from `pool`.
    pub fn deferred(chooser: Arc<dyn Chooser>, workers: Arc<Workers>, pool: Arc<Pool>) -> SessionBuilder {
        SessionBuilder::new(DeviceOrigin::Later(DeferredDevice { chooser, workers }, pool))
    }

    /// The device's name, or a text if none has been chosen yet.
    pub fn device_name(&self) -> String {
        self.shared_device_name().to_string()
    }

    pub(crate) fn shared_device_name(&self) -> Arc<str> {
        self.engine().map_or_else(|| "a device not yet chosen".into(), |engine| Arc::clone(&engine.joined_names))
    }

    /// The device, or the first of several; `None` until it is chosen.
    pub fn device(&self) -> Option<&dyn Device> {
        self.engine().map(|e| &*e.device)
    }

    /// This rank, `0..ranks()`.
    pub fn rank(&self) -> usize {
        self.0.comm.rank()
    }

    /// Number of ranks that run the program together.
    pub fn ranks(&self) -> usize {
        self.0.comm.size()
    }

    /// Returns `true` if the devices of the ranks exchange memory peer to peer, not through the host.
    pub fn peer_to_peer(&self) -> bool {
        self.engine().is_some_and(Engine::direct)
    }

    /// The host's threads, which copy pixels.
    pub(crate) fn workers(&self) -> &Workers {
        static CALLER: Workers = Workers::alone();
        if !self.0.is_here() {
            return &CALLER;
        }
        match (self.engine(), &self.0.deferred) {
            (Some(engine), _) => engine.device.workers(),
            (None, Some(deferred)) => &deferred.workers,
            (None, None) => &CALLER,
        }
    }

    /// Allocates host memory for pixels of the program, with unspecified contents. It is page-locked if the device
    /// provides such memory. Without a device it is pageable: a program of one picture would lock pages for one copy,
    /// which takes ten times as long as a copy through page-locked chunks.
    pub(crate) fn room(&self, bytes: usize) -> std::result::Result<HostBuffer, DeviceError> {
        let Some(engine) = self.engine() else { return self.0.pool.try_allocate(bytes) };
        if engine.unified()
            && let Memory::Host(room) = engine.device.allocate(bytes)?
        {
            return Ok(room); // results can take it over
        }
        match engine.device.staging().page_locked_for_transfer(bytes) {
            Some(memory) => self.0.pool.try_adopt(memory, bytes),
            None => self.0.pool.try_allocate(bytes),
        }
    }

    /// Allocates host memory for a result that is read once, with unspecified contents. Its pages are faulted in, so
    /// that writing it while kernels run causes no page faults.
    pub(crate) fn room_for_result(&self, bytes: usize) -> std::result::Result<HostBuffer, DeviceError> {
        if let Some(memory) = self.engine().and_then(|engine| engine.device.staging().page_locked_for_transfer(bytes)) {
            return self.0.pool.try_adopt(memory, bytes);
        }
        let mut room = self.0.pool.try_allocate(bytes)?;
        SequentialOutput::over(room.bytes_mut()).fault(self.workers());
        Ok(room)
    }

    /// Reserves memory of a decoder or an encoder, apart from pixels, while the returned value exists.
    pub(crate) fn reserve(&self, bytes: usize) -> std::result::Result<Reserved, DeviceError> {
        self.0.pool.reserve(bytes)
    }

    /// Limit of the host's memory for images. For crates of stores.
    #[doc(hidden)]
    pub fn host_limit(&self) -> usize {
        self.0.pool.most()
    }

    /// Allocates host memory for pixels that are read ahead, with unspecified contents. Works on any thread.
    pub(crate) fn room_ahead(&self, bytes: usize) -> std::result::Result<HostBuffer, DeviceError> {
        match self.engine() {
            Some(engine) => engine.device.staging().allocate_read_ahead(bytes, &self.0.pool),
            None => self.0.pool.try_allocate(bytes),
        }
    }

    /// The optimisation mode.
    pub fn mode(&self) -> Mode {
        self.0.settings.mode
    }

    /// Statistics of all evaluations so far, without one in progress.
    pub fn stats(&self) -> Stats {
        self.0.done.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// Times of all evaluations so far, without one in progress.
    pub fn times(&self) -> Times {
        self.0.done.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Busy time of each part of this rank's machine in all evaluations so far, for comparison with [`Stats::parts`].
    /// Times are of the device's clock, or of the host's clock for messages through the host. They are zero unless the
    /// session measures ([`SessionBuilder::measure`]) or records a trace. Waits for the device.
    ///
    /// # Errors
    /// [`Error::Reentry`] during an evaluation on this thread; errors of the device in earlier work.
    pub fn measured(&self) -> Result<BusyTimes> {
        let mut state = self.lock("measuring")?;
        self.collect(&mut state)?;
        Ok(state.trace.measured())
    }

    /// Collects the device's times.
    fn collect(&self, state: &mut SessionState) -> Result<()> {
        let SessionState { trace, lane_traces, .. } = state;
        let traces = std::iter::once(trace).chain(lane_traces);
        let devices = self.engine().into_iter().flat_map(Engine::devices);
        let collected = traces.zip(devices).try_for_each(|(trace, device)| trace.collect(&**device));
        let failed = |source| Error::Device { op: "measuring".into(), device: self.device_name(), source };
        collected.map_err(failed)
    }

    /// Time of each step on each rank, and the prediction for rank 0, as JSON for Chrome's trace viewer or Perfetto. A
    /// trace has a process for each rank and one for the prediction, with a row for every [queue](crate::plan::Queue).
    /// Device times are of the device's own clock. Messages have their bytes. Returns `None` on ranks other than 0.
    /// Collective.
    /// # Errors
    /// If another rank failed or left.
    pub fn trace_json(&self) -> Result<Option<String>> {
        let comm = self.comm();
        let mine = {
            let mut state = self.lock("gathering traces")?;
            match self.collect(&mut state) {
                Ok(()) => {
                    let all = std::iter::once(&state.trace).chain(&state.lane_traces).map(Trace::json_events);
                    all.filter(|events| !events.is_empty()).collect::<Vec<_>>().join(",")
                }
                Err(e) => return self.refused(e),
            }
        };
        agree_on(comm, "gathering traces")?;
        let all = gather_bytes(comm, mine.as_bytes()).map_err(|e| e.during(comm.rank(), "gathering traces"))?;
        Ok(all.map(|parts| crate::execute::trace::json(&parts)))
    }

    /// Evaluates all recorded values that can be observed, and waits until the device is done. Reading a value
    /// evaluates everything that it needs. This method is for loops that carry images from one iteration to the next
    /// without reading them, and for measurements.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mut state = samples::worms(&session, 32, 32);
    /// for _ in 0..3 {
    ///     state = &state * 0.5 + state.gauss(1.0) * 0.5;
    ///     session.evaluate()?; // one step at a time: images of the previous one are dropped
    /// }
    /// assert_eq!(session.stats().evaluations, 3);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of a failed image or value that is still alive; otherwise the error of the evaluation.
    pub fn evaluate(&self) -> Result<()> {
        let mut state = self.lock("evaluating")?;
        let state = &mut *state;
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        let failure = self.failures().iter().find_map(Weak::upgrade);
        if let Some(failure) = failure {
            return self.fail(&failure);
        }
        let targets = state.program.observable();
        let wants = vec![ResultDelivery::Keep; targets.len()];
        self.run(state, &targets, &wants, DownloadStart::AtOnce)?;
        let start = Instant::now();
        let mut devices = self.engine().into_iter().flat_map(Engine::devices);
        let done = devices.try_for_each(|device| device.synchronize());
        state.trace.waited(start);
        self.publish(state);
        done.map_err(|source| Error::Device { op: "waiting for the device".into(), device: self.device_name(), source })
    }

    /// Publishes the statistics for other threads.
    fn publish(&self, state: &SessionState) {
        *self.0.done.lock().unwrap_or_else(PoisonError::into_inner) = (state.stats, state.trace.times());
    }

    /// The ranks that run the program together. Waits for started evaluations, because ranks communicate in one order.
    pub fn comm(&self) -> &dyn Communicator {
        if self.ranks() > 1 {
            self.wait_for_other_sessions();
            self.settle();
        }
        &*self.0.comm
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session on {}, rank {} of {}", self.device_name(), self.rank(), self.ranks())
    }
}
