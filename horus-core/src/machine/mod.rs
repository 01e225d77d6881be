//! The machine that a program runs on: its profile, and the profile's origin. Profiles and costs
//! are pure (`horus_plan::machine`); [`DeviceForecast`] compares a CPU with a GPU,
//! [`here`] finds the profile of this machine, [`measure`]
//! measures it.

mod forecast;
pub mod here;
pub mod measure;

pub use forecast::DeviceForecast;
pub use horus_plan::machine::*;
