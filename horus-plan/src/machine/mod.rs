//! A quantitative model of the machine on which a program runs, and its costs.
//!
//! A [`MachineProfile`] is plain data about the machine of one rank: measured once and stored, shipped with
//! Horus, or the default. Its methods predict seconds: of a launch from its
//! [`KernelWork`](crate::ir::kernel::KernelWork), of copies between host and device, of messages between
//! ranks. They are pure functions, used by planner, optimizer and forecasts. A [`Machine`] is the set of the
//! profiles of all ranks, the same on each rank. Only `machine::here` and `machine::measure` of `horus-core`
//! inspect the machine itself.
//!
//! Design: `docs/design/cost-model.md`.

mod cost;
mod link;
mod named;
mod profile;
mod set;
mod shipped;
mod table;

pub use cost::{Cost, LaunchBottleneck, OverBus};
pub use link::{Link, LinkLevel, Load};
pub use profile::{
    ArithmeticRates, CopyTime, CopyTimes, Efficiency, FileRates, Hardware, HostSide, Launching, Links, MachineProfile,
    ProfileOrigin, Rates,
};
pub use set::Machine;
