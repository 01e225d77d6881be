//! Tendencies of surface pressure, temperature, wind and humidity.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_models::hirlam::run()
}
