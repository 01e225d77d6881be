//! Ends of a run that come from outside: Ctrl-C, and the time that it may take.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use horus::core::error::Cause;
use horus::core::session::Canceller;
use horus::prelude::*;

use super::Options;

/// The exit status of a run that was interrupted, as shells have it.
pub(super) const INTERRUPTED: u8 = 130;

/// How far a run has come, as far as an interrupt is concerned.
enum Phase {
    /// Nothing is to be cleared up; whatever the run waits for may never come.
    Early,
    /// Evaluations of these sessions end between two steps.
    Under(Vec<Canceller>),
    /// The user has asked for the end.
    Asked,
}

static PHASE: Mutex<Phase> = Mutex::new(Phase::Early);

fn with_phase<R>(look: impl FnOnce(&mut Phase) -> R) -> R {
    look(&mut PHASE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether the user has asked for the end.
pub(super) fn interrupted() -> bool {
    with_phase(|phase| matches!(phase, Phase::Asked))
}

/// From now on SIGINT and SIGTERM end the process with a message, which it prints if `told`: at once until [`watch`] is
/// called. A second one ends it at once in any case.
///
/// # Errors
/// [`Error::Config`] if the system refuses.
pub(super) fn listen(told: bool) -> Result<()> {
    wait_for_signals(told).map_err(|e| Error::Config(format!("cannot install signal handlers: {e}")))
}

/// From now on a signal ends the session's evaluations between two steps; so does the deadline of the options, counted from
/// `started`.
pub(super) fn watch(session: &Session, options: &Options, started: Instant) {
    if let Some(limit) = options.deadline {
        // A deadline beyond all time is none.
        session.set_deadline(started.checked_add(limit));
    }
    with_phase(|phase| match phase {
        Phase::Early => *phase = Phase::Under(vec![session.canceller()]),
        Phase::Under(cancellers) => cancellers.push(session.canceller()),
        Phase::Asked => session.canceller().cancel(),
    });
}

/// Ends what is under way, or the process where nothing is.
#[cfg_attr(not(unix), expect(dead_code, reason = "there are no signals"))]
fn end(told: bool) {
    with_phase(|phase| match std::mem::replace(phase, Phase::Asked) {
        // The phase stays locked, so that nothing begins meanwhile.
        Phase::Early => {
            if told {
                eprintln!("error: {}", Error::Cancelled(Cause::Asked));
            }
            leave();
        }
        Phase::Under(cancellers) => cancellers.iter().for_each(Canceller::cancel),
        Phase::Asked => leave(),
    });
}

#[cfg(unix)]
fn leave() {
    signal_hook::low_level::exit(i32::from(INTERRUPTED));
}

#[cfg(not(unix))]
fn leave() {}

#[cfg(unix)]
fn wait_for_signals(told: bool) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let answer = move || signals.forever().for_each(|_| end(told));
    std::thread::Builder::new().name("horus-signals".into()).spawn(answer).map(drop)
}

#[cfg(not(unix))]
fn wait_for_signals(_: bool) -> std::io::Result<()> {
    Ok(()) // the process ends at once
}
