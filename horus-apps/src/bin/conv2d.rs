//! Finds lines in a picture by filtering with rotated two-dimensional kernels.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_apps::run(
        "conv2d",
        "Finds lines in a picture by filtering with rotated two-dimensional kernels",
        horus_apps::detectors::conv2d,
    )
}
