//! Smooths pictures by the anisotropic diffusion of Perona and Malik.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_models::perona_malik::run()
}
