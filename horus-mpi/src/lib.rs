//! The communicator on MPI: ranks are processes started by `mpirun`.
//!
//! The crate is empty without its feature `mpi`, so that a workspace builds where there is no MPI. It uses the raw
//! bindings of rsmpi (`mpi::ffi`), because the safe ones drop return codes: here every code is checked. Nothing but
//! standard MPI-3 is used.
//!
//! A process initialises MPI once (`join`) and finalises it at its end. It never leaves others waiting: when it ends
//! while they still evaluate, all ranks end with an error (`agree` in the core); when it panics with a session open, it
//! aborts the job.
//!
//! `Session::new()` asks `horus::ranks()`: if a launcher's variables are set, the process joins MPI
//! (`horus_mpi::join`), else it is alone and MPI is not touched. Rank 0 alone reads, writes and prints; a trace is
//! gathered from all ranks, one row of events each.
//!
//! **The communicator.** `horus-mpi` calls MPI through rsmpi's raw bindings and checks every return code
//! (`MPI_ERRORS_RETURN`, text by `MPI_Error_string`), on a duplicate of the world. An exchange is one `MPI_Irecv`
//! or `MPI_Isend` per neighbour, and then `MPI_Testsome` until all have arrived, which `Communicator::begin` leaves
//! for later (`MPI_Waitall` of Open MPI 4.1 can spin for ever on too long a message); messages beyond 1 GiB are
//! split, because counts are 32-bit. Sums are gathered and added in the order of ranks, not by `MPI_SUM`, whose
//! order is unspecified. Threads: `MPI_THREAD_SERIALIZED`, or the joining thread alone if MPI gives less.
//!
//! **Ranks that disagree.** A plan is the same on every rank only if the program is. Before each session, each
//! evaluation, each file and the end of the process, all ranks exchange one word (`Communicator::gather`): a hash
//! of the recorded operations, of the steps that communicate and of how rows are divided, the same in every
//! process. If the words differ, the first rank that differs from rank 0 sends what it is about to do, line by
//! line, and rank 0 names the first difference and stops everybody. That is all that ranks ever wait for outside a
//! plan, so a rank that returns early, or fails before its first message, is found there too.
//!
//! **Failure.** An evaluation that fails, or panics, aborts the communicator: the rank prints one line and
//! `MPI_Abort` ends the job. Ranks other than 0 wait 0.3 s first, so that an error which all meet is printed once,
//! by rank 0. A session dropped by a panic aborts as well. An abort takes its turn with MPI; a thread that waits
//! for messages gives up its own, and after a second the process ends without MPI, which its launcher sees. MPI is
//! finalised by `atexit`, after the last collective call, whatever became of the sessions.
//!
//! **Cores and rows.** Threads are divided among the ranks that share the same cores (the launcher may have bound
//! them to cores of their own: the affinities of a node's ranks are compared). Strips have equal heights, or follow
//! `HORUS_WEIGHTS` (`src/weights.rs`): a number per rank; a number per node, divided among its ranks equally or by
//! numbers of their own (`node:2(1,3),1`); or each rank's measured speed in a fixed filter.
#![cfg(feature = "mpi")]
#![allow(unsafe_code, reason = "MPI is a C library")]

mod codes;
mod comm;
mod world;

pub use comm::MpiComm;
pub use world::join;
