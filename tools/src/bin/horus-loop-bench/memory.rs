//! Memory that a loop of many small iterations retains.

use std::ops::ControlFlow;

use horus::prelude::*;
use horus_models::poisson::{Poisson, Rhs};

/// Rows and columns: small, so that any memory retained by an iteration would show.
const SIZE: usize = 64;

/// Prints the resident memory of this process after a few iterations of Jacobi's relaxation and after many.
///
/// # Errors
/// Errors of the loop, or if the system does not report the memory.
pub(super) fn print(session: &Session, few: usize, many: usize) -> Result<()> {
    let problem = Poisson::<f32>::new(session, SIZE, Rhs::Broadcast)?;
    let mut told = Vec::new();
    let watch = |step: usize, _: &Image<f32>| {
        if step == few || step == many {
            told.push(resident()?);
        }
        Ok(ControlFlow::Continue(()))
    };
    session.iterate_watched(problem.begin(), many, |u| problem.step(u), few, watch)?;
    let [after_few, after_many] = told[..] else {
        return Err(Error::Config(format!("--steps: {many} is no multiple of {few}")));
    };
    if session.rank() == 0 {
        let grown = after_many as f64 - after_few as f64;
        println!("{}, {SIZE} x {SIZE} f32, {} ranks", session.device_name(), session.ranks());
        println!("resident after {few} steps {after_few} kB, after {many} steps {after_many} kB: {grown:+} kB");
    }
    Ok(())
}

/// Resident memory of this process in kilobytes.
fn resident() -> Result<u64> {
    let path = std::path::Path::new("/proc/self/status");
    let text = std::fs::read_to_string(path).map_err(|e| Error::Config(format!("{}: {e}", path.display())))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
    number.ok_or_else(|| Error::Config(format!("{} does not tell VmRSS", path.display())))
}
