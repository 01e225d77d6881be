//! The line detectors of the thesis, the general command, and the frame around programs.
//!
//! [`detectors`] holds the algorithms, [`cli`] their options, [`command`] the general command and
//! its operations, [`batch`] the frame around an operation on pictures: files, one or a series of
//! them, progress, saving, the summary ([`report`]); [`execution`] the options of all programs.
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
