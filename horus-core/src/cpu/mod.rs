//! Host kernels: they know slices, planes and tiles, and nothing of images, graphs or states.
//!
//! [`device`] is the entrance, and `check` guards it: what lies behind trusts the geometry of a launch. A map kernel is compiled to a linear `schedule` of steps and executed tile by tile
//! (`map`): filters in banks (`correlate`) over rows that are held, padded or filtered once (`feed`), pixel
//! operations over contiguous runs (`pixels`). Everything is written once and instantiated for each instruction set
//! of `simd`; all of them give the same bits. `scanlines` are the filters of PNG. `docs/cpu-scratch.md` has pictures of the
//! memory that a thread keeps for this. [`workers`](crate::host::workers) are the threads of any device, and copy what is on the host.

mod chains;
mod convert;
#[allow(clippy::needless_range_loop, reason = "constant indices into accumulators that shall become registers")]
mod correlate;
pub mod device;
mod expression;
mod feed;
mod map;
mod order;
mod patch;
mod pixels;
mod plane;
#[allow(clippy::needless_range_loop, reason = "as in correlate")]
mod rows;
pub(crate) mod scanlines;
mod schedule;
pub(crate) mod simd;
mod steps;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod uniform;
mod versions;
mod warp;
mod whole;
mod windowed;
