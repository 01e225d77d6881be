//! The line detectors of the thesis and the command line they share.
//!
//! [`detectors`] holds the algorithms, [`cli`] their options, [`command`] the general command and
//! its operations, [`batch`] the frame around an operation on pictures: files, one or a series of
//! them, progress, saving, the summary. [`loops`] holds programs that repeat a step, [`fields`]
//! those over volumes.

pub mod batch;
pub mod cli;
pub mod command;
pub mod detectors;
pub mod drawn;
pub mod everyday;
mod execution;
pub mod fields;
#[cfg(feature = "cuda")]
pub mod kernels;
pub mod loops;
pub mod measured;
mod progress;
pub mod queues;
mod report;
mod run;
pub mod sweep;

pub use run::{exit_code, run};
