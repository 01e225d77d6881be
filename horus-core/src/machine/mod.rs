//! The machine that a program runs on. `horus_plan::machine` has profiles and costs, which are
//! pure. [`here`] finds the profile of this machine, and [`measure`] measures it.

pub mod here;
pub mod measure;

pub use horus_plan::machine::*;
