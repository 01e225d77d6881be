//! Finds lines in a picture by rotating it and filtering along its axes.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_apps::run(
        "convrot",
        "Finds lines in a picture by rotating it and filtering along its axes",
        horus_apps::detectors::convrot,
    )
}
