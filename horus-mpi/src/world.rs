//! The process as a rank of MPI: initialised once, finalised at the end of the process.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use horus_core::comm::agree::agree_on;
use horus_core::comm::{CommError, CommunicationOrder, OnNode};
use horus_core::machine::here;
use mpi::ffi;

use crate::codes::{check, int};
use crate::comm::MpiComm;

/// Time that other ranks wait for rank 0 to print an error common to all.
const HEAD_START: Duration = Duration::from_millis(300);

/// Time that an abort waits for the lock on MPI. Other threads that also abort wait longer, so that
/// they do not end the process first.
const PATIENCE: Duration = Duration::from_secs(1);

/// Properties of the ranks, and Horus's own communicator.
pub(crate) struct World {
    pub(crate) comm: ffi::MPI_Comm,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) place: OnNode,
    /// The only thread that may call MPI, if MPI requires that.
    thread: Option<ThreadId>,
    mpi_lock: Mutex<()>,
    /// The order in which the sessions of this process communicate.
    pub(crate) session_order: CommunicationOrder,
}

// SAFETY: a communicator handle is a number or a pointer that any thread may pass to MPI. Calls are
// made one at a time (`turn`), and by one thread only if MPI allows no more (`thread`).
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

static WORLD: OnceLock<Result<World, CommError>> = OnceLock::new();
/// `true` once `MPI_Abort` is about to end this process.
static ABORTING: AtomicBool = AtomicBool::new(false);

/// Initialises MPI and joins the other ranks; this rank is alone if no launcher started the
/// process. Collective. Joining again returns the same ranks.
///
/// # Errors
/// If MPI cannot be used.
pub fn join() -> Result<MpiComm, CommError> {
    match WORLD.get_or_init(World::open) {
        Ok(world) => Ok(MpiComm::of(world)),
        Err(e) => Err(e.clone()),
    }
}

impl World {
    fn open() -> Result<World, CommError> {
        #[cfg(target_os = "linux")]
        crate::watch::begin(World::has_joined, World::end)
            .map_err(|e| CommError(format!("cannot start a thread that watches the ranks: {e}")))?;
        // SAFETY: constants of the MPI library.
        let (wanted, all) = unsafe { (ffi::RSMPI_THREAD_SERIALIZED, ffi::RSMPI_COMM_WORLD) };
        let provided = initialize(wanted)?;
        // SAFETY: MPI is initialised; `all` is valid, and the other pointers are to live variables.
        // The same for every block below.
        unsafe {
            check("MPI_Comm_set_errhandler", ffi::MPI_Comm_set_errhandler(all, ffi::RSMPI_ERRORS_RETURN))?;
            let mut comm = ffi::RSMPI_COMM_NULL;
            check("MPI_Comm_dup", ffi::MPI_Comm_dup(all, &raw mut comm))?;
            check("MPI_Comm_set_errhandler", ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN))?;
            let (rank, size) = rank_and_size(comm)?;
            let mut local = ffi::RSMPI_COMM_NULL;
            check(
                "MPI_Comm_split_type",
                ffi::MPI_Comm_split_type(comm, ffi::RSMPI_COMM_TYPE_SHARED, 0, ffi::RSMPI_INFO_NULL, &raw mut local),
            )?;
            check("MPI_Comm_set_errhandler", ffi::MPI_Comm_set_errhandler(local, ffi::RSMPI_ERRORS_RETURN))?;
            let (_, local_size) = rank_and_size(local)?;
            let first_here = gather(local, local_size, rank as u64)?[0];
            let place = OnNode::of(rank, &gather(comm, size, first_here)?, &gather(comm, size, here::cores())?);
            check("MPI_Comm_free", ffi::MPI_Comm_free(&raw mut local))?;
            if libc::atexit(leave) != 0 {
                return Err(CommError("cannot register MPI_Finalize to run at exit".into()));
            }
            let thread = (provided < wanted).then(|| std::thread::current().id());
            log::info!("rank {rank} of {size}, {} of {} on node {}", place.local_rank, place.local_size, place.node);
            Ok(World {
                comm,
                rank,
                size,
                place,
                thread,
                mpi_lock: Mutex::new(()),
                session_order: CommunicationOrder::new(),
            })
        }
    }

    /// Returns `true` if any thread may call MPI, one at a time.
    pub(crate) fn allows_any_thread(&self) -> bool {
        self.thread.is_none()
    }

    /// Takes the lock for calls of MPI.
    pub(crate) fn lock_mpi(&self) -> Result<MutexGuard<'_, ()>, CommError> {
        if self.thread.is_some_and(|t| t != std::thread::current().id()) {
            let why = "this MPI library may only be called from the thread that initialised it: use the session there";
            return Err(CommError(why.into()));
        }
        Ok(self.mpi_lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns `true` if this process is about to end. Calls that wait for other ranks then release
    /// the lock.
    pub(crate) fn is_aborting() -> bool {
        ABORTING.load(Ordering::Relaxed)
    }

    /// Returns `true` once this process has joined the others.
    #[cfg(target_os = "linux")]
    fn has_joined() -> bool {
        matches!(WORLD.get(), Some(Ok(_)))
    }

    /// Prints the reason and ends all processes, including those that have not joined yet.
    #[cfg(target_os = "linux")]
    fn end(message: &str) {
        if let Some(Ok(world)) = WORLD.get() {
            world.abort(message);
        }
        horus_core::warning::print(format_args!("error: {message}"));
        crate::kill();
    }

    /// Takes the lock for calls of MPI, if it becomes free soon.
    fn try_lock_mpi(&self) -> Option<MutexGuard<'_, ()>> {
        if self.thread.is_some_and(|t| t != std::thread::current().id()) {
            return None;
        }
        let start = Instant::now();
        loop {
            match self.mpi_lock.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => return None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Prints the reason and ends all processes. The calling thread must not hold the lock.
    ///
    /// At MPI_THREAD_SERIALIZED, MPI_Abort may not be called while another thread is inside MPI. A
    /// thread that waits for messages notices that the process is ending, and releases the lock. A
    /// thread inside a collective call does not return before the other ranks join the call, which
    /// may never happen. Waiting for this thread could hang, and concurrent calls of MPI may
    /// corrupt or lock shared state, so the process then ends without MPI. The launcher (mpirun of
    /// Open MPI and MPICH, srun) sees a process killed by a signal, without MPI_Finalize, and ends
    /// the others.
    pub(crate) fn abort(&self, message: &str) -> ! {
        if ABORTING.swap(true, Ordering::SeqCst) {
            // Another thread of this process is aborting, or MPI_Abort ran the handlers of
            // `atexit`.
            std::thread::sleep(HEAD_START + 3 * PATIENCE);
            crate::kill();
        }
        if self.rank > 0 {
            std::thread::sleep(HEAD_START);
        }
        let me = format!("rank {}: ", self.rank);
        horus_core::warning::print(format_args!("error: {me}{}", message.strip_prefix(&me).unwrap_or(message)));
        match self.try_lock_mpi() {
            Some(_turn) => {
                // SAFETY: the communicator is valid: it is freed after the last possible abort.
                // This thread has the lock.
                let code = unsafe { ffi::MPI_Abort(self.comm, 1) };
                horus_core::warning::print(format_args!("error: {me}MPI_Abort: {}", crate::codes::text(code)));
            }
            None => log::debug!("{me}another thread is inside MPI; exiting without MPI_Abort"),
        }
        crate::kill();
    }
}

/// Initialises MPI; returns the thread level provided.
fn initialize(wanted: c_int) -> Result<c_int, CommError> {
    let mut provided = 0;
    let mut done = 0;
    // SAFETY: the pointers are to live variables; MPI takes null for the command line.
    unsafe {
        check("MPI_Finalized", ffi::MPI_Finalized(&raw mut done))?;
        if done != 0 {
            return Err(CommError("this process has already finalised MPI".into()));
        }
        check("MPI_Initialized", ffi::MPI_Initialized(&raw mut done))?;
        if done != 0 {
            // The program or another library has initialised MPI.
            check("MPI_Query_thread", ffi::MPI_Query_thread(&raw mut provided))?;
            let mut main = 0;
            check("MPI_Is_thread_main", ffi::MPI_Is_thread_main(&raw mut main))?;
            if provided < wanted && main == 0 {
                return Err(CommError(
                    "this MPI library may only be called from the thread that initialised it".into(),
                ));
            }
        } else {
            let (none, args) = (std::ptr::null_mut(), std::ptr::null_mut());
            check("MPI_Init_thread", ffi::MPI_Init_thread(none, args, wanted, &raw mut provided))?;
        }
    }
    Ok(provided)
}

/// # Safety
/// MPI must be initialised and `comm` valid.
unsafe fn rank_and_size(comm: ffi::MPI_Comm) -> Result<(usize, usize), CommError> {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: by the caller's promise; the pointers are to live variables.
    unsafe {
        check("MPI_Comm_rank", ffi::MPI_Comm_rank(comm, &raw mut rank))?;
        check("MPI_Comm_size", ffi::MPI_Comm_size(comm, &raw mut size))?;
    }
    Ok((rank as usize, size as usize))
}

/// Gathers one word from each of the `size` ranks of `comm`.
///
/// # Safety
/// MPI must be initialised and `comm` valid, with `size` ranks.
pub(crate) unsafe fn gather(comm: ffi::MPI_Comm, size: usize, value: u64) -> Result<Vec<u64>, CommError> {
    let mut values = vec![0u64; size];
    int(size)?;
    // SAFETY: the buffer holds one word for each rank, because the caller promises their number.
    let code = unsafe {
        let word = ffi::RSMPI_UINT64_T;
        ffi::MPI_Allgather((&raw const value).cast(), 1, word, values.as_mut_ptr().cast(), 1, word, comm)
    };
    check("MPI_Allgather", code)?;
    Ok(values)
}

/// Finalises MPI at the end of the process, after a last collective call, so that a rank that ends
/// early does not leave others waiting.
extern "C" fn leave() {
    if ABORTING.load(Ordering::SeqCst) {
        return;
    }
    let Some(Ok(world)) = WORLD.get() else { return };
    let mut done = 0;
    // SAFETY: allowed at any time; the pointer is to a live variable.
    let asked = check("MPI_Finalized", unsafe { ffi::MPI_Finalized(&raw mut done) });
    if asked.is_err() || done != 0 {
        return;
    }
    // Evaluations started by sessions that are never closed come first, because ranks communicate
    // in one order.
    world.session_order.wait();
    if let Err(e) = agree_on(&MpiComm::of(world), "the end of the program") {
        world.abort(&e.to_string());
    }
    let mut comm = world.comm;
    // SAFETY: MPI is initialised and not finalised; no message is in flight, and nothing uses the
    // communicator after this.
    let left = unsafe {
        check("MPI_Comm_free", ffi::MPI_Comm_free(&raw mut comm))
            .and_then(|()| check("MPI_Finalize", ffi::MPI_Finalize()))
    };
    if let Err(e) = left {
        horus_core::warning::print(format_args!("error: rank {}: finalising MPI: {e}", world.rank));
    }
}
