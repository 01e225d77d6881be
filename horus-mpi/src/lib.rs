//! The communicator on MPI: ranks are processes started by `mpirun`.
//!
//! Without its feature `mpi` the crate has nothing but `watch`, so that the workspace builds without
//! MPI. It uses the raw bindings of rsmpi (`mpi::ffi`), because the safe ones drop return codes: here every code
//! is checked. It uses standard MPI-3 only.
//!
//! A process initialises MPI once (`join`) and finalises it at its end. It never leaves others
//! waiting: if it ends while they still evaluate, all ranks end with an error (`agree` in the
//! core); if it panics with a session open, it aborts the job.
//!
//! `Session::new()` calls `horus::ranks()`: if a launcher's variables are set, the process joins
//! MPI (`horus_mpi::join`); otherwise it is alone and does not use MPI. Only rank 0 reads, writes
//! and prints; a trace is gathered from all ranks, one row of events each.
//!
//! **The communicator.** `horus-mpi` calls MPI through rsmpi's raw bindings and checks every return
//! code (`MPI_ERRORS_RETURN`, text by `MPI_Error_string`), on a duplicate of the world. An exchange
//! is one `MPI_Irecv` or `MPI_Isend` per neighbour, followed by `MPI_Testsome` until all have
//! arrived, which `Communicator::begin` defers (`MPI_Waitall` of Open MPI 4.1 can spin for ever on
//! too long a message); messages beyond 1 GiB are split, because counts are 32-bit. Sums are
//! gathered and added in the order of ranks, not by `MPI_SUM`, whose order is unspecified. Threads:
//! `MPI_THREAD_SERIALIZED`, or the joining thread alone if MPI gives less.
//!
//! **Diverging ranks.** Plans are equal on all ranks only if the programs are. Before each session,
//! each evaluation, each file and the end of the process, all ranks exchange one word
//! (`Communicator::gather`): a hash of the recorded operations, of the communicating steps and of
//! the distribution of rows, with equal values in all processes. If the words differ, the first
//! rank that differs from rank 0 sends a description of its next actions, and rank 0 reports the
//! first difference and stops all ranks. Ranks wait for nothing else outside a plan, so
//! this also detects a rank that returns early, or fails before its first message.
//!
//! **Failure.** An evaluation that fails, or panics, aborts the communicator: the rank prints one
//! line and `MPI_Abort` ends the job. Ranks other than 0 wait 0.3 s first, so that an error common
//! to all is printed once, by rank 0. A session dropped by a panic aborts as well. An abort needs
//! the lock on MPI, which a thread that waits for messages releases; after a second without it the
//! process ends without MPI, which its launcher notices. MPI is finalised by `atexit`, after the
//! last collective call, regardless of the state of the sessions. A rank that was stopped
//! (`SIGSTOP`) for a second while others of its node run ends all, on Linux (`watch.rs`).
//!
//! **Cores and rows.** Threads are divided among the ranks that share the same cores (the launcher
//! may have bound them to separate cores: the affinities of a node's ranks are compared). Strips
//! have equal heights, or heights by `HORUS_WEIGHTS` (`src/weights.rs`): a number per rank; a
//! number per node, divided among its ranks equally or by further numbers (`node:2(1,3),1`); or
//! each rank's measured speed in a fixed filter.
#![allow(unsafe_code, reason = "MPI is a C library")]

#[cfg(feature = "mpi")]
mod codes;
#[cfg(feature = "mpi")]
mod comm;
mod kill;
#[cfg(target_os = "linux")]
pub mod watch;
#[cfg(feature = "mpi")]
mod world;

#[cfg(feature = "mpi")]
pub use comm::MpiComm;
pub use kill::kill;
#[cfg(feature = "mpi")]
pub use world::join;
