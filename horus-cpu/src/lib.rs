//! Kernels on the CPU, and the device that launches them.

#[allow(unsafe_code, reason = "vector instructions, and rows that threads share")]
pub mod cpu;

/// The level at which the kernels of this build are optimised, as Cargo names it: `0` to `3`, `s` or `z`.
pub const OPT_LEVEL: &str = env!("BUILT_WITH_OPT_LEVEL");
