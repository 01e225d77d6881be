//! The machine that a program runs on, in numbers, and what things cost on it.
//!
//! A [`Profile`] is plain data about the machine of one rank: it is measured once and kept, or comes with Horus, or is the
//! default. Its methods predict seconds: of a launch from its [`KernelWork`](crate::ir::kernel::KernelWork), of copies between
//! host and device, of messages between ranks. They are pure, so planner, optimiser and forecasts ask them; a [`Machine`] is the set of the profiles of all ranks, which all of them know
//! alike. Only [`here`] and [`measure`] look at the machine itself.
//!
//! The terms are those of the models in chapter 5 of the thesis: a copy is a latency, the host's overhead, a gap between copies that
//! follow each other, and a time for each byte (LogGP); a kernel is bound by its launch, by memory or by arithmetic (roofline).

mod cost;
pub mod here;
mod link;
pub mod measure;
mod profile;
mod set;
mod shipped;
mod table;

pub(crate) use cost::CACHED;
pub use cost::{Bound, Cost, OverBus};
pub use link::{Link, Load};
pub use profile::{
    ArithmeticRates, Copies, Efficiency, Files, Hardware, HostSide, Launching, Line, Links, Origin, Profile, Rates,
};
pub use set::Machine;

#[cfg(test)]
mod tests;
