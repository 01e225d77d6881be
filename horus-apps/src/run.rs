//! The programs of the detectors, and exit codes of programs.

use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use horus::prelude::*;

use crate::batch::{self, BatchJob, RunFiles};
use crate::cli::DetectorArgs;
use crate::detectors::Detector;

/// Runs the program `name` with this `detector`; see [`batch::run`].
pub fn run(name: &'static str, about: &'static str, detector: Detector) -> ExitCode {
    batch::run(job(name, about, detector, std::env::args_os()))
}

/// The exit code for an outcome; an error is printed.
pub fn exit_code(ended: std::result::Result<(), impl Display>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            horus_core::warning::print(format_args!("error: {e}"));
            ExitCode::FAILURE
        }
    }
}

/// The job of a detector: `name` with the words of its command line, the first of which is the program.
///
/// # Errors
/// If the words are invalid.
pub fn job(
    name: &'static str,
    about: &'static str,
    detector: Detector,
    words: impl IntoIterator<Item = OsString>,
) -> Result<BatchJob, clap::Error> {
    let mut command = DetectorArgs::command().name(name).about(about);
    let args = DetectorArgs::from_arg_matches(&command.try_get_matches_from_mut(words)?)?;
    let (params, what) = (args.params(), args.about());
    let steps_per_pixel = params.steps_per_pixel();
    let work = RunFiles::of(args.paths, &args.options).map_err(|e| batch::usage(&mut command, e))?;
    let within = args.within;
    let operation = move |picture: &AnyImage| {
        let image = picture.luminance();
        let image = within.map_or_else(|| image.clone(), |t| image.within(t));
        Ok(detector(&image, &params).into())
    };
    let about = Box::new(move || what.clone());
    Ok(BatchJob {
        scaling: Scaling::Range,
        about,
        steps_per_pixel,
        ..BatchJob::new(name, args.options, work, operation)
    })
}
