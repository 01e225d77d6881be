//! Kernels on the CPU, and the device that launches them: host kernels over slices, planes and tiles; they do not know images, graphs or states.
//!
//! [`device`] is the entry point, guarded by `check`: the code behind it trusts the geometry of a
//! launch. A map kernel is compiled to a linear `schedule` of steps and executed tile by tile
//! (`map`): filters in banks (`correlate`) over rows that are held, padded or filtered once
//! (`feed`), pixel operations over contiguous runs (`pixels`). Everything is written once and
//! instantiated for each instruction set of `simd`; all of them give the same bits. `scanlines`
//! implements the filters of PNG. `docs/design/cpu-scratch.md` illustrates the scratch memory of a thread.
//! [`workers`](horus_host::workers) are the threads shared by all devices, which also copy
//! host memory.
//!
//! `map.rs` executes a `MapKernel` in tiles that stay in the caches: blocks of rows over
//! threads, chunks of columns, a few rows at a time. A schedule (made once per launch) orders
//! filter groups and instructions so that few scratch rows are alive. Filters over one source are
//! evaluated as banks with accumulators for several filters, rows and vectors in registers; row
//! passes go through a ring of rows so that each is computed once. Filters of bytes by whole taps are
//! sums of integers, four products at a time (`bytes`); filters along the depth are columns of levels (`levels`). Chains are evaluated row by row
//! as rows come into reach, into the same rings (`expression.rs`). Chains with filters have
//! feeds of their own, which move down with the requested rows and start again where the requests
//! go back at an edge (`chains.rs`). Kernels exist for AVX-512 and AVX2 (elsewhere than on x86-64: portable code), chosen
//! at run time (`HORUS_ISA` lowers the choice). Affine maps separate runs of pixels whose whole
//! neighbourhood lies inside the image, in its mirror image (read backwards), or outside; only
//! pixels between these runs apply the border mode one by one.

#![allow(unsafe_code, reason = "vector instructions, and rows that threads share")]

/// The level at which the kernels of this build are optimised, as Cargo names it: `0` to `3`, `s`
/// or `z`.
pub const OPT_LEVEL: &str = env!("BUILT_WITH_OPT_LEVEL");

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
mod narrow;
mod order;
mod patch;
mod pixels;
mod plane;
#[allow(clippy::needless_range_loop, reason = "as in correlate")]
mod rows;
pub mod scanlines;
pub mod simd;
mod tile_code;
mod uniform;
mod versions;
mod warp;
mod whole;
mod windowed;
