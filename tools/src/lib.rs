//! Benchmarks, meters and tuners of Horus, and what they share. Not published.

pub mod drawn;
pub mod everyday;
#[cfg(feature = "cuda")]
pub mod kernels;
pub mod measured;
pub mod queues;
pub mod sweep;
