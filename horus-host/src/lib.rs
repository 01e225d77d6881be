//! Interfaces of a machine: memory and threads of the [`host`], a [`device`] that computes, and
//! ranks that communicate ([`comm`]).

pub mod comm;
pub mod device;
#[allow(unsafe_code, reason = "memory that threads fill together, or that others keep")]
pub mod host;
