//! Sessions: where images live, programs are recorded, and the stages are wired together.

mod builder;
mod cancel;
mod debug;
mod engine;
mod evaluate;
mod failure;
mod lock;
mod pending;
mod plans;
mod replay;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use crate::comm::agree::agree_on;
use crate::comm::{Communicator, gather_bytes};
use crate::device::{Device, Geometry, Memory};
use crate::dtype::DType;
use crate::error::{DeviceError, Error, Result, Site};
use crate::execute::Stored;
use crate::execute::trace::{Times, Trace};
use crate::host::buffer::{HostBuffer, Pool};
use crate::host::workers::Workers;
use crate::ir::graph::{Op, ValueId};
use crate::plan::movement::Load;
use crate::plan::partition::Partition;
use crate::plan::state::{Placement, Residency, State};
use crate::plan::{Counts, Mode, Want};
use crate::record::{Numbers, RecordId, Recording};
use crate::shape::{Shape, Window};

use self::builder::Origin;
use self::engine::{Deferred, Engine};
use self::failure::Failure;
use self::lock::Owned;
use self::plans::Plans;

pub use builder::SessionBuilder;
pub use cancel::Canceller;
pub use engine::Chooser;
pub use pending::Pending;
pub(crate) use replay::{Refused, Replay};

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

/// Statistics of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Evaluations.
    pub evaluations: usize,
    /// Evaluations that needed a new plan; the others ran the plan of an earlier one.
    pub planned: usize,
    /// Transfers and launches made.
    pub made: Counts,
    /// Transfers and launches that naive mode would have made (counted on request, see
    /// [`SessionBuilder::compare_naive`]).
    pub naive: Counts,
    /// What this rank sent to others.
    pub sent: Load,
}

impl Stats {
    fn add(&mut self, other: &Stats) {
        let Stats { evaluations, planned, made, naive, sent } = other;
        self.evaluations += evaluations;
        self.planned += planned;
        self.made.add(made);
        self.naive.add(naive);
        self.sent.messages += sent.messages;
        self.sent.bytes += sent.bytes;
    }
}

/// A session: a device, a communicator, and the images and programs recorded on them. Cheap to clone.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    /// Set once the device is chosen.
    engine: OnceLock<Engine>,
    /// What chooses it, if that was deferred.
    deferred: Option<Deferred>,
    /// How often the first program is expected to run.
    pictures: AtomicUsize,
    comm: Arc<dyn Communicator>,
    /// Whether launches overlap with halo exchanges.
    overlap: bool,
    mode: Mode,
    partition: Partition,
    pool: Arc<Pool>,
    observer: Option<Observer>,
    explain: Option<Sink>,
    explain_passes: bool,
    compare_naive: bool,
    max_pending: usize,
    max_pinned: usize,
    state: Owned,
    canceller: Canceller,
    /// Counts records and values.
    numbers: Numbers,
    /// What it has done, as of the last evaluation: for those who look while another is under way.
    done: Mutex<(Stats, Times)>,
    /// Failed values that may still be alive.
    failures: Mutex<Vec<Weak<Failure>>>,
}

struct Mutable {
    /// Whether the device is known and computes on the host's memory.
    unified: bool,
    program: Recording,
    images: HashMap<ValueId, Stored>,
    /// Images that are no longer needed: their memory is freed without the lock.
    freed: Vec<Stored>,
    /// Where images that were given to the session were then.
    given: HashMap<ValueId, Placement>,
    stats: Stats,
    /// Plans of programs that may run again.
    plans: Plans,
    trace: Trace,
    /// Images that operations still read and that went with an evaluation that failed, and what that met.
    gone: HashMap<ValueId, String>,
    /// An error that has not been reported yet.
    error: Option<Error>,
    /// Operations and pinned bytes below which the program is not evaluated automatically, after that failed.
    patience: (usize, usize),
    /// Why the session is unusable.
    lost: Option<String>,
}

impl Mutable {
    /// Takes the pixels of an image, which other ranks may have, where the device finds them.
    fn give(&mut self, value: ValueId, shape: Shape, dtype: DType, pixels: Option<HostBuffer>, placement: Placement) {
        let window = if pixels.is_some() { Window::whole(shape.height) } else { Window::new(0, 0) };
        let pixels = pixels.unwrap_or_else(|| HostBuffer::zeroed(0));
        let geometry = Geometry { shape, dtype: dtype.stored(), window };
        let state = self.given(placement);
        let (host, device) = if self.unified { (None, Some(Memory::Host(pixels))) } else { (Some(pixels), None) };
        self.images.insert(value, Stored { geometry, state, host, device });
    }

    /// Where an image is that was just given.
    fn given(&self, placement: Placement) -> State {
        State { residency: if self.unified { Residency::Both } else { Residency::Host }, placement }
    }

    /// Lets go of values that nothing refers to any more.
    fn forget(&mut self, values: Vec<ValueId>) {
        for v in values {
            self.freed.extend(self.images.remove(&v));
        }
    }
}

/// A recorded value that somebody can still observe. Dropping the last clone makes it unobservable.
#[doc(hidden)]
pub struct Handle {
    pub(crate) session: Session,
    /// Shape and type as far as they are known of a failed value.
    pub(crate) shape: Shape,
    pub(crate) dtype: DType,
    /// The record, or the failure.
    record: std::result::Result<RecordId, Arc<Failure>>,
}

impl Handle {
    /// The record, for somebody who looks at the value.
    fn look(&self) -> Result<RecordId> {
        self.record.as_ref().copied().map_err(|failure| failure.look())
    }

    /// Whether this is a failure.
    pub(crate) fn failed(&self) -> bool {
        self.record.is_err()
    }

    /// Whether both carry the same error.
    pub(crate) fn same_failure(&self, other: &Handle) -> bool {
        matches!((&self.record, &other.record), (Err(a), Err(b)) if Arc::ptr_eq(a, b))
    }

    /// Whether the value was recorded. Asks no other rank.
    pub(crate) fn check(&self) -> Result<()> {
        self.look().map(drop)
    }

    /// Notes that whoever reads this value carries on an earlier error than this one's.
    pub(crate) fn supersede(&self) {
        if let Err(failure) = &self.record {
            failure.supersede();
        }
    }

    /// Of a value that could not be recorded: what carries its error on, with another shape and type.
    pub(crate) fn carried(&self, shape: Shape, dtype: DType) -> Option<Handle> {
        let failure = self.record.as_ref().err()?;
        Some(Handle { session: self.session.clone(), shape, dtype, record: Err(Arc::clone(failure)) })
    }
}

impl Clone for Handle {
    fn clone(&self) -> Handle {
        if let Ok(id) = self.record {
            self.session.change(move |state| state.program.retain(id));
        }
        Handle { session: self.session.clone(), shape: self.shape, dtype: self.dtype, record: self.record.clone() }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Ok(id) = self.record else { return };
        self.session.change(move |state| {
            let values = state.program.release(id);
            state.forget(values);
        });
    }
}

impl Session {
    /// Settings for a session on `device`.
    pub fn on(device: Box<dyn Device>) -> SessionBuilder {
        Session::sharing(device.into())
    }

    /// Settings for a session on a shared device.
    pub fn sharing(device: Arc<dyn Device>) -> SessionBuilder {
        SessionBuilder::new(Origin::Device(device))
    }

    /// Settings for a session that chooses its device at the first evaluation. Until then, `workers` copy pixels to
    /// memory from `pool`.
    pub fn deferred(chooser: Arc<dyn Chooser>, workers: Arc<Workers>, pool: Arc<Pool>) -> SessionBuilder {
        SessionBuilder::new(Origin::Later(Deferred { chooser, workers }, pool))
    }

    /// The device's name, or a text that says that none has been chosen yet.
    pub fn device_name(&self) -> String {
        self.device().map_or_else(|| "a device not yet chosen".into(), Device::name)
    }

    /// The device; `None` before the first evaluation if it is chosen then.
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

    /// Whether the devices of the ranks exchange memory peer to peer, not through the host.
    pub fn peer_to_peer(&self) -> bool {
        self.engine().is_some_and(|e| e.direct)
    }

    /// The host's threads that copy pixels.
    pub(crate) fn workers(&self) -> &Workers {
        static CALLER: Workers = Workers::alone();
        match (self.engine(), &self.0.deferred) {
            (Some(engine), _) => engine.device.workers(),
            (None, Some(deferred)) => &deferred.workers,
            (None, None) => &CALLER,
        }
    }

    /// Allocates host memory for pixels of the program, with unspecified contents.
    pub(crate) fn room(&self, bytes: usize) -> std::result::Result<HostBuffer, DeviceError> {
        let Some(engine) = self.engine() else { return self.0.pool.try_uncounted(bytes) };
        if engine.unified()
            && let Memory::Host(room) = engine.device.allocate(bytes)?
        {
            return Ok(room); // where results can take it over
        }
        engine.device.room(bytes, &self.0.pool)
    }

    /// Host memory for pixels that are read ahead, with unspecified contents, which count against no bound. On any thread.
    pub(crate) fn room_ahead(&self, bytes: usize) -> std::result::Result<HostBuffer, DeviceError> {
        match self.engine() {
            Some(engine) => engine.device.room(bytes, &self.0.pool),
            None => self.0.pool.try_uncounted(bytes),
        }
    }

    /// How much is optimised.
    pub fn mode(&self) -> Mode {
        self.0.mode
    }

    /// Statistics of the session so far, without an evaluation in progress.
    pub fn stats(&self) -> Stats {
        self.0.done.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// How long evaluations took so far, without one in progress.
    pub fn times(&self) -> Times {
        self.0.done.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// When each step ran on each rank, as JSON for Chrome's trace viewer or Perfetto, on rank 0; `None` on other
    /// ranks. Collective.
    ///
    /// # Errors
    /// When another rank failed or went away.
    pub fn trace_json(&self) -> Result<Option<String>> {
        let comm = self.comm();
        let mine = self.lock("gathering traces")?.trace.json_events();
        agree_on(comm, "gathering traces")?;
        let all = gather_bytes(comm, mine.as_bytes()).map_err(|e| e.during(comm.rank(), "gathering traces"))?;
        Ok(all.map(|parts| crate::execute::trace::json(&parts)))
    }

    /// Evaluates everything that is recorded and can be observed, and waits until the device is done. Looking at a
    /// value evaluates what it needs; this is for loops that carry images from one iteration to the next and look at
    /// nothing, and for measuring.
    ///
    /// ```
    /// # use horus_core::{cpu::device::CpuDevice, image::Image, session::Session};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let mut state = Image::worms(&session, 32, 32);
    /// for _ in 0..3 {
    ///     state = &state * 0.5 + state.gauss(1.0) * 0.5;
    ///     session.evaluate()?; // a step at a time: the images of the last one are let go
    /// }
    /// assert_eq!(session.stats().evaluations, 3);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of a failed image or value that is still alive; else the error of the evaluation.
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
        let wants = vec![Want::Keep; targets.len()];
        self.run(state, &targets, &wants)?;
        let start = Instant::now();
        let done = self.device().map_or(Ok(()), Device::synchronize);
        state.trace.waited(start);
        self.publish(state);
        done.map_err(|source| Error::Device { op: "waiting for the device".into(), device: self.device_name(), source })
    }

    /// Lets others see what has been done.
    fn publish(&self, state: &Mutable) {
        *self.0.done.lock().unwrap_or_else(PoisonError::into_inner) = (state.stats, state.trace.times());
    }

    /// Whether both are the same session.
    pub fn same(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The ranks that run the program together.
    pub fn comm(&self) -> &dyn Communicator {
        &*self.0.comm
    }

    /// A value that could not be recorded.
    pub(crate) fn failed(&self, shape: Shape, dtype: DType, error: Error) -> Handle {
        let failure = Arc::new(Failure::new(error));
        let mut failures = self.failures();
        failures.retain(|f| f.strong_count() > 0);
        failures.push(Arc::downgrade(&failure));
        drop(failures);
        Handle { session: self.clone(), shape, dtype, record: Err(failure) }
    }

    /// Failed values that may still be alive.
    fn failures(&self) -> MutexGuard<'_, Vec<Weak<Failure>>> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of a value that is looked at, after all ranks have synchronized: they look at the same value, and if
    /// it failed on some ranks only, all end with an error.
    fn fail<T>(&self, failure: &Failure) -> Result<T> {
        let error = failure.look();
        if self.ranks() > 1 {
            agree_on(self.comm(), &format!("a value that failed: {error}"))?;
        }
        Err(error)
    }

    /// Appends an operation to the program. Inputs must belong to this session; if one could not be recorded, neither
    /// can this operation, and its value carries the first such error. Evaluates only when the flush limits are
    /// exceeded; an error of that evaluation is reported by the next call that can.
    pub(crate) fn record(&self, op: Op, inputs: &[&Handle], shape: Shape, dtype: DType, site: Site) -> Handle {
        let ids: std::result::Result<Vec<RecordId>, _> = inputs.iter().map(|h| h.record.clone()).collect();
        let inputs = match ids {
            Ok(ids) => ids,
            Err(failure) => {
                let others = inputs.iter().filter_map(|h| h.record.as_ref().err());
                others.filter(|other| !Arc::ptr_eq(other, &failure)).for_each(|other| other.supersede());
                return Handle { session: self.clone(), shape, dtype, record: Err(failure) };
            }
        };
        let id = self.0.numbers.record();
        match self.lock("recording") {
            Ok(mut state) => {
                state.program.record(id, op, inputs, shape, dtype, site);
                self.flush(&mut state);
            }
            // An evaluation is under way.
            Err(_) => self.put_off(move |state| state.program.record(id, op, inputs, shape, dtype, site)),
        }
        Handle { session: self.clone(), shape, dtype, record: Ok(id) }
    }

    /// Evaluates if the flush limits are exceeded.
    fn flush(&self, state: &mut Mutable) {
        let (pending, pinned) = (state.program.pending(), state.program.pinned_bytes());
        let full =
            pending > self.0.max_pending.max(state.patience.0) || pinned > self.0.max_pinned.max(state.patience.1);
        if full && state.error.is_none() && state.lost.is_none() {
            let targets = state.program.observable();
            let wants = vec![Want::Keep; targets.len()];
            state.patience = (0, 0);
            if let Err(e) = self.run(state, &targets, &wants) {
                state.error = Some(e);
                // What cannot be evaluated now is not tried again at each operation.
                state.patience = (2 * pending, 2 * pinned);
            }
        }
    }

    /// Creates an image whose pixels every rank has (planes one after the other, row-major).
    pub(crate) fn source(&self, shape: Shape, dtype: DType, pixels: HostBuffer, site: Site) -> Handle {
        self.keep(shape, dtype, Some(pixels), Placement::Replicated, site)
    }

    /// Creates an image whose pixels rank 0 has; other ranks pass `None` and must agree on shape and type.
    pub(crate) fn source_on_root(&self, shape: Shape, dtype: DType, pixels: Option<HostBuffer>, site: Site) -> Handle {
        self.keep(shape, dtype, pixels, Placement::Root, site)
    }

    fn keep(&self, shape: Shape, dtype: DType, pixels: Option<HostBuffer>, placement: Placement, site: Site) -> Handle {
        let given = placement;
        // What the only rank has, every rank has.
        let placement = if self.ranks() == 1 { Placement::Replicated } else { placement };
        let (id, value) = (self.0.numbers.record(), self.0.numbers.value());
        self.change(move |state| {
            state.give(value, shape, dtype, pixels, placement);
            state.given.insert(value, given);
            state.program.record(id, Op::Source(value), Vec::new(), shape, dtype, site);
        });
        Handle { session: self.clone(), shape, dtype, record: Ok(id) }
    }

    /// Evaluates a value and brings its pixels to the host: on rank 0, or everywhere (then always `Some`). Planes one
    /// after the other, row-major.
    pub(crate) fn fetch(&self, value: &Handle, want: Want) -> Result<Option<Arc<HostBuffer>>> {
        Ok(self.fetch_all(&[value], want)?.pop().flatten())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session on {}, rank {} of {}", self.device_name(), self.rank(), self.ranks())
    }
}
