//! Finds lines in a picture by filtering along and across each orientation.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_apps::run(
        "convuv",
        "Finds lines in a picture by filtering along and across each orientation",
        horus_apps::detectors::convuv,
    )
}
