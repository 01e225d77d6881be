//! What programs become on their way to a device: a graph of operations, then of kernels. Pure data.

pub mod graph;
pub mod kernel;
