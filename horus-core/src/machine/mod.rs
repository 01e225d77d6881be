//! The machine that a program runs on: its profile, and the profile's origin. Profiles and costs
//! are pure (`horus_plan::machine`); [`here`] finds the profile of this machine, [`measure`]
//! measures it.

pub mod here;
pub mod measure;

pub use horus_plan::machine::*;
