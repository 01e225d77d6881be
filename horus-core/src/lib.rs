//! The device-independent heart of Horus. Its modules are rooms that a program passes through, in this order; those that
//! need no session come from crates below (`horus-base`, `horus-plan`, `horus-host`, `horus-cpu`):
//!
//! - [`image`], [`io`], [`filters`] and [`series`] are what users write: methods check and record.
//! - [`record`] keeps what was recorded and can still be observed; [`ops`] says what each operation is, in tables.
//! - [`region`] makes of a program one that computes parts of its results, from parts of its sources.
//! - [`optimize`] turns the graph of operations into a graph of kernels, both of which are in [`ir`].
//! - [`plan`] decides, with state machines, where images are and what must move; its plans are checked. It is pure.
//! - [`execute`] carries plans out, on a [`device`] and a communicator ([`comm`]); [`cpu`] computes on the [`host`].
//! - [`session`] wires the rooms; the oracle of `horus-testing` is what all of it is checked against.
//!
//! `ARCHITECTURE.md` in the repository tells the story.

// Methods stand in the documentation in the order of modules: those for files come first.
pub mod io;

pub mod image;

pub mod series;

pub mod session;

pub mod execute;
pub mod machine;

#[doc(hidden)]
pub mod prelude;

// The rooms of the crates below.
pub use horus_base::{dispatch, dispatch_float, dtype, error, settings, shape, warn, warning};
pub use horus_cpu::cpu;
pub use horus_host::{comm, device, host};
pub use horus_plan::{filters, ir, ops, optimize, plan, record, region};

/// The crate whose types are in signatures.
pub use ndarray;
