//! The planner: what must happen, and in which order, so that no operation reads stale data.
//!
//! Every transfer is presumed redundant. It enters the plan only if an operation would otherwise read something that is
//! not there (lazy parallelization, thesis section 2.3). The planner is a pure function of graph, states and setting.

mod finished;
mod footprints;
pub mod forecast;
mod halos;
mod memory;
pub mod movement;
mod part;
pub mod partition;
mod planner;
mod setting;
mod spread;
pub mod state;
mod step;
mod text;
pub mod verify;
pub mod work;

pub use finished::{Counts, Plan};
pub use planner::plan;
pub use setting::{Mode, Setting, Want};
pub use step::{Action, Part, Rows, Step, Temp};
