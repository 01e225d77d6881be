//! The device-independent core of Horus. Its modules are stages that a program passes through, in
//! this order; those independent of sessions come from other crates (`horus-base`, `horus-plan`,
//! `horus-host`, `horus-cpu`, `horus-files`):
//!
//! - [`image`], [`io`], [`filters`] and [`series`] are the user's interface: methods validate and
//!   record.
//! - [`record`] keeps recorded operations whose results can still be observed; [`ops`] defines each
//!   operation, in tables.
//! - [`region`] restricts a program to parts of its results, computed from parts of its sources.
//! - [`optimize`] turns the graph of operations into a graph of kernels, both of which are in
//!   [`ir`].
//! - [`plan`] decides, with state machines, on the placement and transfers of images; its plans are
//!   checked. It is pure.
//! - [`execute`] carries plans out, on a [`device`] and a communicator ([`comm`]); [`cpu`] computes
//!   on the [`host`].
//! - [`session`] connects the stages; the oracle of `horus-testing` checks all of it.
//!
//! `ARCHITECTURE.md` in the repository describes the whole.

// The documentation lists methods in the order of modules: those for files come first.
pub mod io;

pub mod image;

pub mod series;

pub mod session;

pub mod execute;
pub mod machine;
mod report;

#[doc(hidden)]
pub mod prelude;

#[doc(hidden)]
pub use horus_base::position_map;
// The modules of the crates below.
pub use horus_base::{
    digest, dispatch, dispatch_float, dispatch_narrow, dtype, error, lengths, numeric_types, settings, shape, warn,
    warning,
};
pub use horus_cpu as cpu;
pub use horus_host as host;
pub use horus_host::{comm, device};
pub use horus_plan::{filters, implementation, ir, ops, optimize, plan, record, region, whole_operations};

/// The crate whose types appear in signatures.
pub use ndarray;
