//! The CUDA device of Horus: memory, a compiler, copies and launches. The plan decides what they do.
//!
//! Kernels are generated from their structure ([`codegen`]), compiled for the GPU at hand ([`nvrtc`]) and cached on
//! disk ([`cache`]): a program's second run compiles nothing. With a package of compiled kernels ([`shipped`]), the
//! first run compiles nothing either. Results have the bits of the CPU, whatever the launch shapes ([`tuning`]).
//!
//! Building this crate needs no CUDA toolkit; generating and compiling kernels needs no GPU.
//! Design: `docs/design/cuda.md`, and `docs/design/kernel.md` for one kernel from calls to CUDA.
#![allow(unsafe_code, reason = "the driver, NVRTC and NCCL are C libraries")]

pub mod cache;
mod clock;
pub mod codegen;
mod compiler;
mod device;
mod driver;
mod ending;
mod fabric;
mod launch_cache;
pub mod measure;
mod memory;
mod nccl;
mod nvml;
pub mod nvrtc;
mod origin;
pub mod pieces;
mod pinned;
pub mod profile;
pub mod recorder;
pub mod shipped;
mod staging;
mod transfers;
pub mod tuning;
pub mod workloads;

pub use device::{CudaDevice, Gpu, Limiter, Resources, Statistics};
pub use driver::CallersContext;
pub use ending::end_process;
