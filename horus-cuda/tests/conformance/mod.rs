//! Launches of every kind, data for them, and a device that records launches.
//!
//! The same cases are compiled by NVRTC without a GPU, run by the host emulation of the kernels, and run on a GPU by
//! `horus-cuda-check`; [`horus_testing::reference::kernel`] evaluates them.

pub(crate) mod cases;
pub(crate) mod planes;
