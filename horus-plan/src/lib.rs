//! Image programs as data, from recorded operations to the steps of a plan. The crate is pure: it uses no device, file,
//! clock or thread.
//!
//! - [`record`] has the recorded operations whose results can still be observed. [`ops`] defines each
//!   operation, in tables; [`filters`] defines the taps of named filters.
//! - [`region`] restricts a program to parts of its results, computed from parts of its sources.
//! - [`optimize`] turns a graph of operations into a graph of kernels; both are in [`ir`].
//! - [`plan`] decides, by state machines, on placement and transfers of images, at the costs of a
//!   [`machine`], and checks the plans.

pub mod filters;
pub mod ir;
pub mod machine;
pub mod ops;
pub mod optimize;
pub mod plan;
pub mod record;
pub mod region;
