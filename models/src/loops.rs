//! Programs with a loop: its end, its checkpoints, and options of their command lines.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use horus::prelude::*;
use horus_core::image::{Checkpoints, LoopState};
use horus_core::session::Session as CoreSession;
use horus_zarr::ZarrCheckpoints;

/// The checkpoints of a program's loop.
#[derive(Args, Clone, Debug)]
pub struct CheckpointOptions {
    /// Write the state to this Zarr store now and then, while the steps go on
    #[arg(long, value_name = "STORE")]
    checkpoint: Option<PathBuf>,

    /// Steps between checkpoints
    #[arg(long, value_name = "N", default_value = "1000", requires = "checkpoint")]
    checkpoint_every: NonZeroUsize,

    /// Continue from the last checkpoint, if there is one: the result has the same bits, on any ranks and devices
    #[arg(long, requires = "checkpoint")]
    pub(crate) resume: bool,
}

impl CheckpointOptions {
    /// The requested checkpoints of a program; its description names everything that its bits depend on,
    /// except the shapes and types of the state.
    pub fn of(&self, program: impl Into<String>) -> Option<Checkpoints> {
        let store = ZarrCheckpoints::at(self.checkpoint.as_ref()?).of(program);
        Some(Checkpoints::new(store, self.checkpoint_every.get()).resume(self.resume))
    }
}

/// Iterates, with checkpoints if there are any.
///
/// # Errors
/// See `Session::iterate_checkpointed`.
#[track_caller]
pub fn iterate<S: LoopState>(
    session: &CoreSession,
    state: S,
    until: impl Into<Until>,
    step: impl Fn(&S) -> S,
    checkpoints: Option<&Checkpoints>,
) -> Result<Iterated<S>> {
    match checkpoints {
        None => session.iterate(state, until, step),
        Some(checkpoints) => session.iterate_checkpointed(state, until, step, checkpoints, None),
    }
}

/// The end of a loop. With a tolerance, every tenth iteration is measured, and the loop ends when one changes less.
pub(crate) fn until(steps: usize, tolerance: Option<f64>) -> Until {
    match tolerance {
        Some(eps) => Until::below(eps, steps),
        // Any finite change ends the loop, after all iterations.
        None => Until::below(f64::INFINITY, steps).every(steps.max(1)),
    }
}

/// Square planes in blocks of whole rows: at most `parts` for each rank.
///
/// # Errors
/// If there is nothing to divide.
pub fn in_parts(size: usize, ranks: usize, parts: usize) -> Result<BlockMap> {
    let rows = size.div_ceil(ranks.saturating_mul(parts).max(1)).max(1);
    let blocks = size.div_ceil(rows);
    BlockMap::new((size, size), (rows, size), (0..blocks).map(|block| Some(block * ranks / blocks)))
}

/// A short description of the end of a loop with [`until`].
pub(crate) fn describe_ending<S>(done: &Iterated<S>, tolerance: Option<f64>) -> String {
    let steps = horus_apps::report::count(done.steps, "step");
    let Some(change) = done.change else { return steps };
    let end = match (done.ending, tolerance) {
        (Ending::Converged, Some(eps)) => format!(", less than {eps:e}"),
        (Ending::Diverged, _) => ", diverged".into(),
        (_, Some(eps)) => format!(", not less than {eps:e}"),
        _ => String::new(),
    };
    format!("{steps}, largest change in the last one {change:.3e}{end}")
}

pub(crate) fn parse_tolerance(text: &str) -> Result<f64, String> {
    positive(text, "a tolerance")
}

/// A number of a command line that must be positive and finite.
pub(crate) fn positive(text: &str, what: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(format!("{what} must be positive and finite")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reached_is_told() {
        let done = |steps, change, ending| Iterated { state: (), steps, change, ending };
        let told = |done, tolerance| describe_ending(&done, tolerance);
        assert_eq!(told(done(0, None, Ending::Steps), None), "0 steps");
        let one = "1 step, largest change in the last one 2.500e-1";
        assert_eq!(told(done(1, Some(0.25), Ending::Converged), None), one);
        assert_eq!(told(done(1, Some(0.25), Ending::Converged), Some(0.5)), format!("{one}, less than 5e-1"));
        assert_eq!(told(done(1, Some(0.25), Ending::Steps), Some(0.125)), format!("{one}, not less than 1.25e-1"));
        assert!(told(done(9, Some(f64::INFINITY), Ending::Diverged), None).ends_with("inf, diverged"));
    }
}
