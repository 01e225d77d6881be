//! The communicator on MPI: ranks are processes started by `mpirun`. The design is in
//! `docs/design/mpi.md`.
//!
//! Without the feature `mpi` the crate contains only `watch`, so that the workspace builds without
//! MPI. It uses standard MPI-3 only, and checks every return code.
//!
//! A process initialises MPI once (`join`) and finalises it at its end. Other ranks never wait for
//! it in vain: if it ends while they still evaluate, all ranks end with an error (`agree` in the
//! core); if it panics with a session open, it aborts the job.
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
