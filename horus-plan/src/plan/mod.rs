//! The planner: the sequence of steps in which no operation reads stale data.
//!
//! Every transfer is presumed redundant. It enters the plan only if an operation would otherwise
//! read data that is missing (lazy parallelization, thesis section 2.3). The planner is a pure
//! function of graph, states and setting.
//!
//! In the order of use: [`state`] and [`partition`] describe the placement of images, `step` the
//! elements of a plan, [`movement`] the pixels that a step moves. `passes` is the list of passes
//! over a `draft` of the plan, [`verify`] replays the result, `text` prints it, [`forecast`]
//! predicts its messages.
//!
//! The state of an image is the product of three machines (`plan/state.rs`): *residency* of each
//! local buffer (q0..q3 of the thesis, Table 2.1), *placement* (rank 0, replicated, strips of
//! rows), and *halo validity* (up-to-date rows around the strip). The planner walks the graph in
//! order and checks each input: is it on the device, is the strip there, is the halo deep enough?
//! Each "no" adds a step, with the reason that `--explain` prints.
//!
//! - A backward pass finds the halo depth that later filters will need. One exchange at the widest
//!   radius serves a filter bank; rows around strips are computed instead of exchanged where that
//!   is predicted to be faster, also for a filter over a filter. Rank 0 sends halos with the strips.
//! - A geometric operation reads a *footprint*. Each rank fetches the pixels that it samples, or
//!   every rank gets the whole image. The planner predicts both times from messages and copies, for
//!   all launches that still read the image; `--explain` prints both. From rank 0, an image is
//!   scattered first where that lets all ranks send.
//! - `naive` mode transfers around every operation, `lazy` uses the state machines, `fused` adds
//!   the graph passes.

mod activity;
mod bands;
mod check;
mod cost;
mod delivery;
mod demand;
mod draft;
mod finished;
mod follow;
mod footprints;
pub mod forecast;
mod halos;
mod launches;
mod lifetimes;
mod mapped;
mod memory;
pub mod movement;
mod overlap;
mod part;
pub mod partition;
mod passes;
pub mod predict;
mod queue;
mod setting;
mod spread;
pub mod state;
mod step;
mod text;
mod transfers;
pub mod verify;
mod waits;
pub mod work;

pub use activity::{Activity, BusyTimes};
pub use finished::{Plan, PlanCounts};
pub use launches::{LaunchedNodes, PlannedLaunches};
pub use passes::plan;
pub use queue::Queue;
pub use setting::{Mappable, Mode, ResultDelivery, Setting, Transfer};
pub use step::{Action, Band, ComputedRows, LaunchPart, PlanStep, Temp};

#[cfg(test)]
mod tests;
