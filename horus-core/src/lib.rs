//! The device-independent heart of Horus. Its modules are rooms that a program passes through, in this order:
//!
//! - [`image`], [`io`], [`filters`] and [`series`] are what users write: methods check and record.
//! - [`record`] keeps what was recorded and can still be observed; [`ops`] says what each operation is, in tables.
//! - [`region`] makes of a program one that computes parts of its results, from parts of its sources.
//! - [`optimize`] turns the graph of operations into a graph of kernels, both of which are in [`ir`].
//! - [`plan`] decides, with state machines, where images are and what must move; its plans are checked. It is pure.
//! - [`execute`] carries plans out, on a [`device`] and a communicator ([`comm`]); [`cpu`] computes on the [`host`].
//! - [`session`] wires the rooms; [`reference`](mod@reference) is what all of it is checked against.
//!
//! `ARCHITECTURE.md` in the repository tells the story.

// Methods stand in the documentation in the order of modules: those for files come first.
pub mod io;

pub mod image;

pub mod filters;
pub mod series;

pub mod session;

pub mod execute;
pub mod ir;
pub mod machine;
pub mod ops;
pub mod optimize;
pub mod plan;
pub mod record;
pub mod region;

pub mod comm;
#[allow(unsafe_code, reason = "vector instructions, and rows that threads share")]
pub mod cpu;
pub mod device;
#[allow(unsafe_code, reason = "memory that threads fill together, or that others keep")]
pub mod host;

pub mod reference;

pub mod dtype;
pub mod error;
#[doc(hidden)]
pub mod prelude;
pub mod settings;
pub mod shape;
#[doc(hidden)]
pub mod warning;

/// The crate whose types are in signatures.
pub use ndarray;
