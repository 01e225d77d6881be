//! Benchmarks, meters and tuners of Horus, and their common code. Not published.

pub mod bench_lines;
pub mod everyday;
#[cfg(feature = "cuda")]
pub mod kernels;
pub mod queues;
pub mod random_programs;
pub mod sweep;
