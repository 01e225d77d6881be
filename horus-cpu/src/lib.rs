//! Kernels of the CPU, and the device that launches them. Kernels work on slices, planes and tiles; they know no
//! images, graphs or states.
//!
//! [`device`] is the entry point. `check` validates each launch; the code behind it trusts its geometry. Every kernel
//! is written once and compiled for each instruction set of [`simd`], or for the smallest if wider vectors are no faster;
//! all have the same bits. `HORUS_ISA` lowers the choice.
//!
//! `docs/design/cpu.md` describes the modules, `docs/design/cpu-scratch.md` the scratch memory of a thread. The threads
//! ([`workers`](horus_host::workers)) are shared by all devices.
//!
//! Internal: other crates of Horus use this one, and its interface is not covered by semantic versioning. Programs
//! depend on `horus-image`.

#![allow(unsafe_code, reason = "vector instructions, and rows that threads share")]

/// The optimisation level of this build's kernels, in Cargo's terms: `0` to `3`, `s` or `z`.
pub const OPT_LEVEL: &str = env!("BUILT_WITH_OPT_LEVEL");

mod bits;
mod bytes;
mod chains;
mod convert;
#[allow(clippy::needless_range_loop, reason = "constant indices into accumulators that shall become registers")]
mod correlate;
pub mod device;
mod expression;
mod feed;
mod iterations;
mod levels;
mod map;
mod masks;
mod narrow;
mod order;
mod parallel;
mod patch;
mod pixels;
mod plane;
#[allow(clippy::needless_range_loop, reason = "as in correlate")]
mod rows;
pub mod scanlines;
pub mod simd;
pub mod sweeps;
mod tile_code;
mod uniform;
mod versions;
mod warp;
mod whole;
mod windowed;
