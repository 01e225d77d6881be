//! The device-independent heart of Horus.
//!
//! Data flows one way: [`image`] calls record nodes in a [`graph`]; when a value is looked at, the graph is optimised
//! ([`optimize`]), lowered to [`kernel`]s, and planned ([`plan`]) against the [`state`] of every image; the plan is
//! checked ([`verify`]) and executed ([`execute`]) on a [`device`] and a communicator ([`comm`]).
//! `ARCHITECTURE.md` in the repository tells the story.

pub mod agree;
pub mod buffer;
pub mod comm;
pub mod cpu;
pub mod device;
pub mod direct;
pub mod dtype;
pub mod error;
pub mod execute;
pub mod faults;
pub mod filters;
pub mod forecast;
pub mod graph;
pub mod image;
pub mod io;
pub mod kernel;
pub mod movement;
pub mod ops;
pub mod optimize;
pub mod partition;
pub mod plan;
pub mod program;
pub mod reference;
mod runs;
pub mod series;
pub mod session;
pub mod settings;
pub mod shape;
pub mod simulate;
pub mod state;
pub mod trace;
pub mod transfer;
pub mod verify;
pub mod work;

/// The crate whose types are in signatures.
pub use ndarray;
