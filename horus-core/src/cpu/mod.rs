//! Host kernels: they know slices, planes and tiles, and nothing of images, graphs or states.

pub mod order;
mod patch;
pub mod plane;
pub mod simd;
#[cfg(test)]
mod testing;
mod versions;
pub mod warp;
pub mod whole;
