//! Intermediate representations of a program: a graph of operations, then of kernels. Pure data.

pub mod graph;
pub mod kernel;
