//! Ranks on a communicator of mpi4py.
//!
//! The wheel is not linked with MPI, because each machine has its own: calls of mpi4py send messages between Horus's
//! memory. A call takes some microseconds more than MPI's own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use bytemuck::{bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};
use horus_core::comm::agree::agree_on;
use horus_core::comm::{CommError, CommunicationOrder, Communicator, OnNode, Parcel, PendingExchange};
use horus_core::machine::here;
use pyo3::prelude::*;

use crate::ending::{attached, detached};
use crate::errors;
use crate::foreign::messages::{Mpi4pyExchange, PIECE, exchange, with_readable, with_writable};

/// Time for which other ranks wait for rank 0 to print an error that all have.
const HEAD_START: Duration = Duration::from_millis(300);
/// Numbers that rank 0 gathers at a time for a sum, over all ranks.
const GATHERED: usize = 1 << 23;

/// The order of communication of the sessions of this process, on any communicator.
static TURNS: CommunicationOrder = CommunicationOrder::new();
/// The communicators of the program on which sessions were opened, and Horus's duplicates of them.
static OPEN_RANKS: Mutex<Vec<(Py<PyAny>, Arc<Mpi4pyRanks>)>> = Mutex::new(Vec::new());
/// `true` once the ranks of this node are watched.
#[cfg(target_os = "linux")]
static WATCHING: AtomicBool = AtomicBool::new(false);
/// `true` once this process is about to end.
static ABORTING: AtomicBool = AtomicBool::new(false);

/// The ranks of a communicator of mpi4py.
pub(crate) struct Mpi4pyRanks {
    pub(crate) comm: Py<PyAny>,
    pub(crate) rank: usize,
    size: usize,
    place: OnNode,
    /// The only thread that may call MPI; `None` if MPI allows all threads at once.
    thread: Option<ThreadId>,
}

impl std::fmt::Debug for Mpi4pyRanks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {} under mpi4py", self.rank, self.size)
    }
}

/// The result of a call of Python.
pub(crate) fn convert_call_result<R>(during: &str, called: Option<PyResult<R>>) -> Result<R, CommError> {
    match called {
        Some(Ok(done)) => Ok(done),
        Some(Err(error)) => Err(CommError(format!("{during}: {error}"))),
        None => Err(CommError(format!("{during}: the interpreter is ending"))),
    }
}

impl Mpi4pyRanks {
    /// The ranks of a communicator. Horus uses a duplicate of it, so that its messages are not confused with the
    /// program's. Collective.
    pub(crate) fn of(py: Python<'_>, comm: &Bound<'_, PyAny>) -> PyResult<Arc<Mpi4pyRanks>> {
        // Comparisons run Python, which may switch to another thread that comes here.
        let all: Vec<_> = open_ranks().iter().map(|(known, ranks)| (known.clone_ref(py), Arc::clone(ranks))).collect();
        for (known, ranks) in all {
            if known.bind(py).eq(comm)? {
                return Ok(ranks);
            }
        }
        let mpi = py.import("mpi4py.MPI")?;
        let level: i32 = mpi.call_method0("Query_thread")?.extract()?;
        let all: i32 = mpi.getattr("THREAD_MULTIPLE")?.extract()?;
        let own = comm.call_method0("Dup")?;
        own.call_method1("Set_errhandler", (mpi.getattr("ERRORS_RETURN")?,))?;
        let local = own.call_method1("Split_type", (mpi.getattr("COMM_TYPE_SHARED")?,))?;
        let rank: usize = own.call_method0("Get_rank")?.extract()?;
        let size: usize = own.call_method0("Get_size")?.extract()?;
        let sharers: usize = local.call_method0("Get_size")?.extract()?;
        let first = gathered(py, &local, sharers, rank as u64)?[0];
        let place = OnNode::of(rank, &gathered(py, &own, size, first)?, &gathered(py, &own, size, here::cores())?);
        local.call_method0("Free")?;
        #[cfg(target_os = "linux")]
        if sharers > 1 && !WATCHING.swap(true, Ordering::SeqCst) {
            horus_mpi::watch::begin(|| true, end_all)?;
        }
        log::info!("rank {rank} of {size}, {} of {} on node {}", place.local_rank, place.local_size, place.node);
        let thread = (level < all).then(|| std::thread::current().id());
        let ranks = Arc::new(Mpi4pyRanks { comm: own.unbind(), rank, size, place, thread });
        open_ranks().push((comm.clone().unbind(), Arc::clone(&ranks)));
        Ok(ranks)
    }

    /// mpi4py's module.
    pub(crate) fn mpi<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyModule>> {
        py.import("mpi4py.MPI")
    }

    /// Calls mpi4py with the interpreter's lock, which mpi4py releases while it waits.
    fn call<R>(
        &self,
        name: &str,
        work: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<R>,
    ) -> Result<R, CommError> {
        if self.thread.is_some_and(|thread| thread != std::thread::current().id()) {
            let why = "MPI was initialised for one thread: use the session in the thread that opened it";
            return Err(CommError(why.into()));
        }
        convert_call_result(name, attached(|py| work(py, self.comm.bind(py))))
    }

    fn broadcast_bytes(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError> {
        bytes.chunks_mut(PIECE).try_for_each(|piece| {
            self.call("Bcast", |py, comm| {
                with_writable(py, piece, |view| comm.call_method1("Bcast", (view, root)).map(drop))
            })
        })
    }

    /// Prints the reason and ends all processes.
    pub(crate) fn end(&self, message: &str) -> ! {
        if ABORTING.swap(true, Ordering::SeqCst) {
            std::thread::sleep(10 * HEAD_START); // another thread ends the processes
            horus_mpi::kill();
        }
        if self.rank > 0 {
            std::thread::sleep(HEAD_START);
        }
        let (me, message) = (format!("rank {}: ", self.rank), errors::without_place(message));
        horus_core::warning::print(format_args!("error: {me}{}", message.strip_prefix(&me).unwrap_or(&message)));
        attached(|py| {
            // Lines printed before are not lost; a closed pipe is not another error.
            let flushed = py.import("sys").and_then(|sys| sys.getattr("stdout")?.call_method0("flush"));
            drop(flushed);
            let may = self.thread.is_none_or(|thread| thread == std::thread::current().id());
            if may && let Err(error) = self.comm.bind(py).call_method1("Abort", (1,)) {
                horus_core::warning::print(format_args!("error: {me}Abort: {error}"));
            }
        });
        // The launcher notices a process that a signal ended, and ends the others.
        horus_mpi::kill();
    }
}

/// Prints the reason and ends all processes, from any thread.
#[cfg(target_os = "linux")]
fn end_all(message: &str) {
    let first = open_ranks().first().map(|(_, ranks)| Arc::clone(ranks));
    if let Some(ranks) = first {
        ranks.end(message);
    }
}

/// One word of each rank, in order.
fn gathered(py: Python<'_>, comm: &Bound<'_, PyAny>, size: usize, value: u64) -> PyResult<Vec<u64>> {
    let mut all = vec![0; size];
    with_readable(py, bytes_of(&value), |mine| {
        with_writable(py, cast_slice_mut(&mut all), |all| comm.call_method1("Allgather", (mine, all)).map(drop))
    })?;
    Ok(all)
}

impl Communicator for Mpi4pyRanks {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn local_rank(&self) -> usize {
        self.place.local_rank
    }

    fn local_size(&self) -> usize {
        self.place.local_size
    }

    fn node(&self) -> usize {
        self.place.node
    }

    fn sharers(&self) -> usize {
        self.place.sharers
    }

    fn communication_order(&self) -> Option<&CommunicationOrder> {
        self.thread.is_none().then_some(&TURNS)
    }

    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError> {
        exchange(self, sends, receives)
    }

    fn begin(&self, sends: Vec<Parcel>, receives: Vec<Parcel>) -> Result<Box<dyn PendingExchange + '_>, CommError> {
        Ok(Box::new(Mpi4pyExchange::begin(self, sends, receives)?))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let mut length = bytes.len() as u64;
        self.broadcast_bytes(root, bytes_of_mut(&mut length))?;
        bytes.resize(usize::try_from(length).map_err(|e| CommError(e.to_string()))?, 0);
        self.broadcast_bytes(root, bytes)
    }

    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        for part in values.chunks_mut((GATHERED / self.size).max(1)) {
            let mut all = vec![0.0; if self.rank == 0 { part.len() * self.size } else { 0 }];
            self.call("Gather", |py, comm| {
                with_readable(py, cast_slice(part), |mine| {
                    if self.rank > 0 {
                        return comm.call_method1("Gather", (mine, py.None(), 0)).map(drop);
                    }
                    with_writable(py, cast_slice_mut(&mut all), |all| {
                        comm.call_method1("Gather", (mine, all, 0)).map(drop)
                    })
                })
            })?;
            for theirs in all.chunks_exact(part.len()).skip(1) {
                part.iter_mut().zip(theirs).for_each(|(sum, value)| *sum += value);
            }
            self.broadcast_bytes(0, cast_slice_mut(part))?;
        }
        Ok(())
    }

    fn gather(&self, value: u64) -> Result<Vec<u64>, CommError> {
        self.call("Allgather", |py, comm| gathered(py, comm, self.size, value))
    }

    fn abort(&self, message: &str) {
        self.end(message);
    }
}

fn open_ranks() -> std::sync::MutexGuard<'static, Vec<(Py<PyAny>, Arc<Mpi4pyRanks>)>> {
    OPEN_RANKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the use of MPI at the end of the program, after a last collective call, so that a rank that ends does not leave
/// others waiting in an evaluation.
#[pyfunction]
pub(crate) fn leave_ranks(py: Python<'_>) -> PyResult<()> {
    let all: Vec<Arc<Mpi4pyRanks>> = open_ranks().drain(..).map(|(_, ranks)| ranks).collect();
    detached(py, || {
        TURNS.wait();
        errors::caught(|| all.iter().try_for_each(|ranks| agree_on(&**ranks, "the end of the program")))
    })
}
