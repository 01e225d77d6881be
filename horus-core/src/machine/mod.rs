//! The machine that a program runs on. `horus_plan::machine` has profiles and costs, which are
//! pure. [`here`] finds the profile of this machine, [`measure`] measures it, and
//! [`DeviceForecast`] compares a CPU with a GPU.

mod forecast;
pub mod here;
pub mod measure;

pub use forecast::DeviceForecast;
pub use horus_plan::machine::*;
