//! The line detectors of the thesis, the general command `horus`, and the code that runs programs over pictures.
//!
//! [`detectors`] has the algorithms, [`cli`] their options, [`command`] the general command and its operations.
//! [`batch`] runs an operation on one picture or a series: files, progress, saving, the summary ([`report`]).
//! [`execution`] has the options of all programs.
//!
//! The interface is for the programs of this repository, and not covered by semantic versioning.

pub mod batch;
pub mod cli;
pub mod command;
pub mod detectors;
pub mod execution;
mod progress;
pub mod report;
mod run;

pub use run::{exit_code, job, run};
