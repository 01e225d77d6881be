//! Image programs as data, from recorded operations to the steps of a plan. All of it is pure: no
//! device, file, clock or thread.
//!
//! - [`record`] keeps recorded operations whose results can still be observed; [`ops`] defines each
//!   operation, in tables; [`filters`] the taps of named filters.
//! - [`region`] restricts a program to parts of its results, computed from parts of its sources.
//! - [`optimize`] turns the graph of operations into a graph of kernels, both of which are in
//!   [`ir`].
//! - [`plan`] decides, with state machines, on the placement and transfers of images, at the costs
//!   of a [`machine`]; its plans are checked.

pub mod filters;
pub mod ir;
pub mod machine;
pub mod ops;
pub mod optimize;
pub mod plan;
pub mod record;
pub mod region;
