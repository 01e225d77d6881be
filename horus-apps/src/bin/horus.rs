//! Applies image operations to pictures: `horus in.png out.png luminance gauss 2 sobel`.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_apps::command::run()
}
