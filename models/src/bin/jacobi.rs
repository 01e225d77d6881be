//! Solves Poisson's equation on a square by Jacobi's relaxation.

use std::process::ExitCode;

fn main() -> ExitCode {
    horus_models::jacobi::run()
}
