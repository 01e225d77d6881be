//! A quantitative model of the machine that a program runs on, and its costs.
//!
//! A [`MachineProfile`] is plain data about the machine of one rank: measured once and kept, shipped with
//! Horus, or the default. Its methods predict seconds: of a launch from its
//! [`KernelWork`](crate::ir::kernel::KernelWork), of copies between host and device, of messages
//! between ranks. They are pure functions, used by planner, optimiser and forecasts. A [`Machine`]
//! is the set of the profiles of all ranks, the same on each rank. Only `machine::here` and
//! `machine::measure` of `horus-core` inspect the machine itself.
//!
//! The terms are those of the models in chapter 5 of the thesis: a copy has a latency, the host's
//! overhead, a gap between consecutive copies, and a time per byte (LogGP); a kernel is bound by
//! its launch, by memory or by arithmetic (roofline).
//!
//! `machine/` holds the machine's capabilities as plain data (`MachineProfile`: copies, launches, memory,
//! arithmetic by family of kernels, links) and the cost model; `ir/kernel/work.rs` holds the work
//! of a launch. A launch takes its fixed time and the root of the sum of squares of memory and
//! arithmetic, each at the efficiency of its family; copies are L + o + kG + g(n - 1) (thesis,
//! 5.4). A session takes the profile named by `HORUS_PROFILE`, else a measured one
//! (`horus-machine`), a shipped one, or the default. Ranks gather their profiles when the session
//! opens, and plan by the slowest. `plan/predict.rs` derives from them the start and end of each
//! step (printed by `--explain`, as are the waits) and the duration of each plan, which is reported
//! beside the measured one.

mod cost;
mod link;
mod named;
mod profile;
mod set;
mod shipped;
mod table;

pub(crate) use cost::CACHED;
pub use cost::{Cost, LaunchBottleneck, OverBus};
pub use link::{Link, LinkLevel, Load};
pub use profile::{
    ArithmeticRates, CopyTime, CopyTimes, Efficiency, FileRates, Hardware, HostSide, Launching, Links, MachineProfile,
    ProfileOrigin, Rates,
};
pub use set::Machine;
