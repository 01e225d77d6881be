//! Host kernels.
