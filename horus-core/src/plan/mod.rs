//! The planner: what must happen, and in which order, so that no operation reads stale data.
//!
//! Every transfer is presumed redundant. It enters the plan only if an operation would otherwise read something that is
//! not there (lazy parallelization, thesis section 2.3). The planner is a pure function of graph, states and setting.
//!
//! In the order in which they are used: [`state`] and [`partition`] are what an image's place is told in, `step` is what a plan
//! is made of, [`movement`] which pixels a step moves. `passes` is the list of passes over a `draft` of the plan, [`verify`]
//! replays what they made, `text` prints it, [`forecast`] tells what it sends.

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

pub use activity::{Activity, Parts};
pub use finished::{Counts, LaunchedNodes, Plan};
pub use passes::plan;
pub use queue::Queue;
pub use setting::{Mappable, Mode, Setting, Transfer, Want};
pub use step::{Action, Band, Part, Rows, Step, Temp};

#[cfg(test)]
mod tests;
