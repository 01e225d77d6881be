//! The communicator of Horus on MPI: ranks are processes started by `mpirun`.
//!
//! The crate is empty without its feature `mpi`, so that a workspace builds where there is no MPI. It uses the raw
//! bindings of rsmpi (`mpi::ffi`), because the safe ones drop return codes: here every code is looked at. Nothing but
//! standard MPI-3 is used.
//!
//! A process joins once (`join`) and leaves at its end. It never leaves others waiting: when it ends while they still
//! evaluate, all are told and end (`agree` in the core); when it panics with a session open, it aborts the job.
#![cfg(feature = "mpi")]

mod codes;
mod comm;
mod world;

pub use comm::MpiComm;
pub use world::join;
