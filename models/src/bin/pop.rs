//! Density of sea water and the fields that vertical mixing depends on.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_models::pop::run()
}
