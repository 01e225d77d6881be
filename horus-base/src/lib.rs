//! The foundation of all crates of Horus: pixel types and their arithmetic ([`dtype`]), shapes and border
//! modes ([`shape`]), errors ([`error`]), hashes ([`digest`]), warnings, and settings of the environment
//! ([`settings`]).
//!
//! Internal: other crates of Horus use this one, and its interface is not covered by semantic versioning. Programs
//! depend on `horus-image`.

pub mod digest;
pub mod dtype;
pub mod error;
pub mod lengths;
pub mod position_map;
pub mod settings;
pub mod shape;
#[doc(hidden)]
pub mod warning;
