//! The communicator on MPI: ranks are processes started by `mpirun`.
//!
//! The crate is empty without its feature `mpi`, so that a workspace builds where there is no MPI. It uses the raw
//! bindings of rsmpi (`mpi::ffi`), because the safe ones drop return codes: here every code is checked. Nothing but
//! standard MPI-3 is used.
//!
//! A process initialises MPI once (`join`) and finalises it at its end. It never leaves others waiting: when it ends
//! while they still evaluate, all ranks end with an error (`agree` in the core); when it panics with a session open, it
//! aborts the job.
#![cfg(feature = "mpi")]

mod codes;
mod comm;
mod world;

pub use comm::MpiComm;
pub use world::join;
