//! The line detectors of the thesis, the general command `horus`, and the code that runs programs over pictures.
//!
//! [`detectors`] has the algorithms, [`cli`] their options, [`command`] the general command and its operations.
//! [`batch`] runs an operation on one picture or a series: files, progress, saving, the summary ([`report`]).
//! [`execution`] has the options of all programs, and [`caller`] what they print to. The module
//! `server` runs `horus` for clients.
//!
//! The interface is for the programs of this repository, and not covered by semantic versioning.

pub mod batch;
pub mod caller;
pub mod cli;
pub mod command;
pub mod detectors;
pub mod execution;
mod interrupts;
mod outbox;
mod progress;
pub mod report;
mod run;
mod server;

pub use run::{exit_code, job, run};
