//! The line detectors of the thesis and the command line they share.
//!
//! [`detectors`] holds the algorithms, [`cli`] the options, [`run`] what surrounds an algorithm: reading the picture,
//! progress, saving, the summary.

pub mod cli;
pub mod detectors;
mod progress;
mod report;
mod run;

pub use run::run;
