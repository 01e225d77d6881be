//! Host kernels: they know slices, planes and tiles, and nothing of images, graphs or states.

pub mod plane;
