//! The benchmarks, meters and tuners.

mod everyday;
#[cfg(feature = "cuda")]
mod kernels;
mod machine;
mod measured;
mod plot;
#[cfg(feature = "cuda")]
mod shipped;
