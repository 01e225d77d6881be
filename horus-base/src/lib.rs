//! The foundation of all crates of Horus: pixel types and their arithmetic ([`dtype`]), shapes and border
//! modes ([`shape`]), errors ([`error`]), hashes ([`digest`]), warnings, and settings of the environment
//! ([`settings`]).

pub mod digest;
pub mod dtype;
pub mod error;
pub mod lengths;
pub mod position_map;
pub mod settings;
pub mod shape;
#[doc(hidden)]
pub mod warning;
