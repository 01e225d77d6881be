//! Density of sea water and what vertical mixing depends on.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_apps::fields::pop::run()
}
