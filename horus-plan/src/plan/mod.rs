//! The planner: finds the sequence of steps in which no operation reads stale data.
//!
//! Every transfer is presumed redundant. It enters the plan only if an operation would otherwise read missing data (lazy
//! parallelization, thesis section 2.3). The planner is a pure function of graph, states and setting.
//!
//! [`state`] and [`partition`] describe the placement of images, `step` the elements of a plan, [`movement`] the pixels
//! that a step moves. `passes` lists the passes over a `draft` of the plan; [`verify`] replays the result, `text` prints
//! it, [`forecast`] predicts its messages.
//!
//! Design: `docs/design/plan.md` follows a plan through the passes.

mod activity;
mod bands;
mod check;
mod cost;
mod delivery;
mod demand;
mod draft;
pub mod drawing;
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
mod named;
mod overlap;
mod owners;
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
pub use named::NamedStep;
pub use passes::plan;
pub use queue::Queue;
pub use setting::{Mappable, Mode, ResultDelivery, Setting, Transfer};
pub use step::{Action, Band, ComputedRows, LaunchPart, PlanStep, Temp, scattered_at_once};

#[cfg(test)]
mod tests;
