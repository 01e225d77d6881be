//! The device-independent core of Horus. A program goes through its modules in this order; modules
//! that do not use a session come from `horus-base`, `horus-plan`, `horus-host`, `horus-cpu` and
//! `horus-files`. `ARCHITECTURE.md` in the repository describes the whole.
//!
//! - [`image`], [`io`], [`filters`], [`series`]: the user's interface, which validates and records.
//! - [`record`]: recorded operations whose results can still be read; [`ops`]: the tables of
//!   operations.
//! - [`region`]: programs restricted to regions of their results.
//! - [`optimize`]: from the graph of operations to the graph of kernels (both in [`ir`]).
//! - [`plan`]: placement and transfers of images; pure, and its plans are checked.
//! - [`execute`]: runs plans on a [`device`] and a communicator ([`comm`]); [`cpu`]: computes on
//!   the [`host`].
//! - [`session`]: connects the stages.
//!
//! [`device`] and [`comm`] are the interfaces of back ends. The rest is internal: `horus-image` re-exports what programs
//! use, and other items change without notice.

// The documentation lists methods in the order of modules: those for files come first.
pub mod io;

pub mod image;

pub mod series;

pub mod session;

pub mod execute;
pub mod machine;
pub mod report;

#[doc(hidden)]
pub mod prelude;

#[doc(hidden)]
pub use horus_base::position_map;
// Modules of the lower crates.
pub use horus_base::{
    digest, dispatch, dispatch_float, dispatch_narrow, dtype, error, lengths, numeric_types, settings, shape, warn,
    warning,
};
pub use horus_cpu as cpu;
pub use horus_host as host;
pub use horus_host::{comm, device};
pub use horus_plan::{filters, implementation, ir, ops, optimize, plan, record, region, whole_operations};

/// The crate ndarray, whose types appear in signatures.
pub use ndarray;
