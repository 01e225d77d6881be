//! Smooths pictures by the anisotropic diffusion of Perona and Malik.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_apps::loops::perona_malik::run()
}
