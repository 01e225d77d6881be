//! The machine that a program runs on, in numbers, and what things cost on it.
//!
//! A [`Profile`] is plain data about the machine of one rank: it is measured once and kept, or comes with Horus, or is the
//! default. Its methods predict seconds: of a launch from its [`KernelWork`](crate::ir::kernel::KernelWork), of copies between
//! host and device, of messages between ranks. They are pure, so planner, optimiser and forecasts ask them; a [`Machine`] is the set of the profiles of all ranks, which all of them know
//! alike. Only `machine::here` and `machine::measure` of `horus-core` look at the machine itself.
//!
//! The terms are those of the models in chapter 5 of the thesis: a copy is a latency, the host's overhead, a gap between copies that
//! follow each other, and a time for each byte (LogGP); a kernel is bound by its launch, by memory or by arithmetic (roofline).
//!
//! `machine/` holds what a machine can do as plain data (`Profile`: copies, launches, memory, arithmetic by family
//! of kernels, links) and what things cost there; `ir/kernel/work.rs` how much a launch does. A launch takes its
//! fixed time and the root of the sum of squares of memory and arithmetic, each at the efficiency of its family;
//! copies are L + o + kG + g(n - 1) (thesis, 5.4). A session takes the profile that `HORUS_PROFILE` names, else a
//! measured one (`horus-machine`), a shipped one, or the default. Ranks gather theirs when it opens, and plan by
//! the slowest. `plan/predict.rs` gives each step a beginning and an end from them (printed by `--explain`, as are
//! the waits), and each plan a duration, which is told beside the measured one.

mod cost;
mod link;
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
