//! Evaluations concurrent with the program.
//!
//! A started evaluation is deferred like a change during an evaluation, in the order of the calls (see
//! [`lock`](crate::session::state::lock)). The session's thread evaluates it, or the next thread that reads a value.
//! Either way the session does the same as if each evaluation had run inside its call: plans, and agreements of ranks,
//! do not depend on timing. The design is in `docs/design/concurrency.md`.

use std::ops::Deref;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::device::DownloadStart;
use crate::plan::ResultDelivery;
use crate::record::RecordId;
use crate::session::state::SessionState;
use crate::session::state::wait::waiting;
use crate::session::{Handle, Session, SessionInner};

/// A deferred evaluation.
pub(crate) enum DeferredEvaluation {
    /// All observable values.
    Everything,
    /// One value.
    Value(RecordId),
}

/// Owner of a session, for the program or for the session's thread. When the program drops it, started evaluations are
/// completed and the thread ends.
pub(crate) struct SessionOwner {
    inner: Arc<SessionInner>,
    by_program: bool,
}

impl Deref for SessionOwner {
    type Target = SessionInner;
    fn deref(&self) -> &SessionInner {
        &self.inner
    }
}

impl Drop for SessionOwner {
    fn drop(&mut self) {
        if !self.inner.is_here() {
            std::mem::forget(Arc::clone(&self.inner));
        } else if self.by_program {
            waiting(|| self.inner.starter.end());
        }
    }
}

/// Thread that evaluates started evaluations.
struct StarterThread {
    wake: Sender<()>,
    thread: JoinHandle<()>,
}

/// Thread that evaluates started evaluations, created when needed.
#[derive(Default)]
pub(crate) struct Starter(Mutex<Option<StarterThread>>);

impl Starter {
    /// Lets the thread complete started evaluations, and ends it.
    fn end(&self) {
        let worker = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(StarterThread { wake, thread }) = worker else { return };
        drop(wake);
        // An observer on that thread may have had the last handle. Then the thread ends with its evaluation.
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            log::error!("the thread that evaluates what was started panicked");
        }
    }
}

impl Session {
    pub(crate) fn opened(inner: SessionInner) -> Session {
        Session(Arc::new(SessionOwner { inner: Arc::new(inner), by_program: true }))
    }

    /// Returns `true` if both are the same session.
    pub fn same(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.0.inner, &other.0.inner)
    }

    /// Starts to evaluate all recorded values that can be observed, like [`Session::evaluate`], and returns at once.
    /// The program computes, reads and records concurrently. Reading a value waits for started evaluations.
    ///
    /// Results have the same bits as without. An evaluation that is started during another one follows it, and
    /// everything recorded before. The next read of a value of the session returns an error of the evaluation, or a
    /// panic of an observer as an error; nothing more is started until then. [`Session::canceller`] ends started
    /// evaluations like any other. Dropping the last handle on the session or on one of its images waits for them.
    ///
    /// Observers and explain sinks are called on the session's thread. A program that records too far ahead blocks
    /// until the evaluation has ended. The limit is 65536 operations, or as many bytes of pixels as pending operations
    /// may keep alive.
    ///
    /// All ranks start the same evaluations in the same order. Calls in which ranks communicate wait for started
    /// evaluations, in other sessions of the process, too. A program that itself calls MPI must first read a value or
    /// call [`Session::evaluate`]. The evaluation runs inside this call if only one thread may communicate (an MPI
    /// library that grants less than `MPI_THREAD_SERIALIZED`), or if no thread can be created.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let smooth = samples::worms(&session, 64, 64).gauss(2.0);
    /// let mean = smooth.mean();
    /// session.start();
    /// let own: f64 = (1..=1000).map(f64::from).sum(); // beside it, the program's own work
    /// let brighter = smooth + 1.0; // and what comes next is recorded
    /// assert!(mean.get()? < own); // waits
    /// assert!(brighter.mean().get()? > mean.get()?);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn start(&self) {
        self.begin(DeferredEvaluation::Everything);
    }

    /// Starts to evaluate one value; see [`Session::start`]. A failed value returns its error when it is read.
    pub(crate) fn start_one(&self, value: &Handle) {
        if let Ok(id) = value.record {
            self.begin(DeferredEvaluation::Value(id));
        }
    }

    fn begin(&self, start: DeferredEvaluation) {
        if !self.0.is_here() {
            return; // the next read returns the error
        }
        let turns = self.0.comm.communication_order();
        if (self.ranks() == 1 || turns.is_some()) && self.wake(false) {
            if let Some(turns) = turns.filter(|_| self.ranks() > 1) {
                let inner = Arc::downgrade(&self.0.inner);
                let settle = move || {
                    if let Some(inner) = inner.upgrade() {
                        Session(Arc::new(SessionOwner { inner, by_program: false })).settle();
                    }
                };
                turns.claim(self.id(), settle);
            }
            self.defer_evaluation(start);
            self.wake(true);
        } else {
            self.defer_evaluation(start);
            self.settle();
        }
    }

    /// Wakes the session's thread if `something` was started, and creates it if necessary. Returns `true` if there is
    /// such a thread.
    fn wake(&self, something: bool) -> bool {
        let mut worker = self.0.starter.0.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.is_none() {
            let (wake, woken) = channel();
            let inner = Arc::downgrade(&self.0.inner);
            let work = move || {
                for () in woken {
                    if let Some(inner) = inner.upgrade() {
                        Session(Arc::new(SessionOwner { inner, by_program: false })).settle();
                    }
                }
            };
            match std::thread::Builder::new().name("horus-start".into()).spawn(work) {
                Ok(thread) => *worker = Some(StarterThread { wake, thread }),
                Err(e) => {
                    crate::warn!("cannot start a thread ({e}): the calling thread evaluates");
                    return false;
                }
            }
        }
        // The thread receives until it is ended.
        worker.as_ref().is_some_and(|worker| !something || worker.wake.send(()).is_ok())
    }

    /// Evaluates a started evaluation. The next read returns its error.
    pub(crate) fn run_deferred(&self, state: &mut SessionState, start: DeferredEvaluation) {
        // An error is returned before the next evaluation. The loss of the session is returned anyway.
        if state.error.is_some() || state.lost.is_some() {
            return;
        }
        let targets = match start {
            DeferredEvaluation::Everything => state.program.observable(),
            DeferredEvaluation::Value(id) if state.program.value(id).is_some() => Vec::new(), // already evaluated
            DeferredEvaluation::Value(id) if state.program.in_step(id) => Vec::new(),         // its loop evaluates it
            DeferredEvaluation::Value(id) => vec![id],
        };
        if targets.is_empty() {
            return;
        }
        let wants = vec![ResultDelivery::Keep; targets.len()];
        if let Err(e) = self.run(state, &targets, &wants, DownloadStart::AtOnce) {
            state.error = Some(e);
        }
    }

    /// Waits for started evaluations. Inside an observer, which is part of one, it does nothing.
    #[doc(hidden)]
    pub fn settle(&self) {
        if self.0.is_here() && !self.is_mine() {
            drop(self.acquire());
        }
    }

    /// Waits for evaluations started by other sessions on the same ranks, because ranks communicate in one order.
    pub(crate) fn wait_for_other_sessions(&self) {
        if let Some(turns) = self.0.comm.communication_order().filter(|_| self.ranks() > 1) {
            turns.wait_for_others(self.id());
        }
    }

    /// Identifies an open session of the process.
    fn id(&self) -> usize {
        Arc::as_ptr(&self.0.inner).addr()
    }
}
