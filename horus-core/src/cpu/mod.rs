//! Host kernels: they know slices, planes and tiles, and nothing of images, graphs or states.
//!
//! [`device`] is the entrance. A map kernel is compiled to a linear `schedule` of steps and executed tile by tile
//! (`map`): filters in banks (`correlate`) over rows that are held, padded or filtered once (`feed`), pixel
//! operations over contiguous runs ([`pixels`]). Everything is written once and instantiated for each instruction set
//! of [`simd`]; all of them give the same bits.

mod convert;
#[allow(clippy::needless_range_loop, reason = "constant indices into accumulators that shall become registers")]
pub mod correlate;
pub mod device;
mod feed;
pub mod map;
pub mod order;
mod patch;
pub mod pixels;
pub mod plane;
#[allow(clippy::needless_range_loop, reason = "as in correlate")]
mod rows;
mod schedule;
pub mod simd;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod versions;
pub mod warp;
pub mod whole;
