//! The CUDA device of Horus.
//!
//! A device is memory, a compiler and launches; it decides nothing. Kernels are generated from their structure
//! ([`codegen`]), compiled for the GPU at hand ([`nvrtc`]) and kept on disk ([`cache`]), so that a program's second run
//! compiles nothing; a package of compiled kernels ([`shipped`]) spares the first one, too. No CUDA toolkit is needed to build
//! this crate, and no GPU to generate and compile kernels.
#![allow(unsafe_code, reason = "the driver, NVRTC and NCCL are C libraries")]

pub mod cache;
mod clock;
pub mod codegen;
mod compiler;
mod device;
mod driver;
mod ending;
mod fabric;
pub mod measure;
mod memo;
mod memory;
mod nccl;
mod nvml;
pub mod nvrtc;
mod origin;
pub mod pieces;
mod pinned;
pub mod recorder;
pub mod shipped;
mod staging;
mod transfers;
pub mod tuning;
pub mod workloads;

pub use device::{CudaDevice, Gpu, Statistics};
pub use ending::end_process;
