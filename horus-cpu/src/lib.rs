//! Kernels on the CPU, and the device that launches them.

#[allow(unsafe_code, reason = "vector instructions, and rows that threads share")]
pub mod cpu;
