//! Image programs as data, from what was recorded to the steps of a plan. All of it is pure: no device, file, clock or thread.
//!
//! - [`record`] keeps what was recorded and can still be observed; [`ops`] defines each operation, in tables;
//!   [`filters`] the taps of named filters.
//! - [`region`] makes of a program one that computes parts of its results, from parts of its sources.
//! - [`optimize`] turns the graph of operations into a graph of kernels, both of which are in [`ir`].
//! - [`plan`] decides, with state machines, where images are and what must move, at the costs of a [`machine`]; its plans
//!   are checked.

pub mod filters;
pub mod ir;
pub mod machine;
pub mod ops;
pub mod optimize;
pub mod plan;
pub mod record;
pub mod region;
