//! Interrupts and deadlines of a run.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use horus::prelude::*;
use horus_core::error::Cause;
use horus_core::session::Canceller;

use super::BatchOptions;

/// Exit status of an interrupted run, as in shells.
pub(super) const INTERRUPTED: u8 = 130;

/// The phase of a run, which determines the effect of an interrupt.
enum Phase {
    /// Nothing to clean up; the run may be waiting for input that never comes.
    Early,
    /// An interrupt ends evaluations of these sessions between two steps.
    Under(Vec<Canceller>),
    /// An interrupt was received.
    Asked,
}

static PHASE: Mutex<Phase> = Mutex::new(Phase::Early);

fn with_phase<R>(look: impl FnOnce(&mut Phase) -> R) -> R {
    look(&mut PHASE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns `true` if an interrupt was received.
pub(super) fn interrupted() -> bool {
    with_phase(|phase| matches!(phase, Phase::Asked))
}

/// Installs handlers. SIGINT and SIGTERM end the process with a message, printed if `told`, immediately until [`watch`]
/// is called. Unless the process is `alone`, SIGTERM comes from a launcher that ends all ranks because one of them
/// failed and reported it: the process then ends immediately, without a message. A second signal always ends it in this
/// way.
///
/// # Errors
/// [`Error::Config`] if the system does not install them.
pub(super) fn listen(told: bool, alone: bool) -> Result<()> {
    wait_for_signals(told, alone).map_err(|e| Error::Config(format!("cannot install signal handlers: {e}")))
}

/// Makes a signal, or the deadline of the options (counted from `started`), cancel the session's evaluations between
/// two steps.
pub(super) fn watch(session: &Session, options: &BatchOptions, started: Instant) {
    if let Some(limit) = options.deadline {
        // A deadline too far away to be represented is ignored.
        session.set_deadline(started.checked_add(limit));
    }
    with_phase(|phase| match phase {
        Phase::Early => *phase = Phase::Under(vec![session.canceller()]),
        Phase::Under(cancellers) => cancellers.push(session.canceller()),
        Phase::Asked => session.canceller().cancel(),
    });
}

/// Cancels the current evaluations, or ends the process if there are none.
#[cfg_attr(not(unix), expect(dead_code, reason = "there are no signals"))]
fn end(told: bool) {
    with_phase(|phase| match std::mem::replace(phase, Phase::Asked) {
        // The phase stays locked, so that nothing starts meanwhile.
        Phase::Early => {
            if told {
                horus_core::warning::print(format_args!("error: {}", Error::Cancelled(Cause::Asked)));
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
fn wait_for_signals(told: bool, alone: bool) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGXFSZ])?;
    let answer = move || {
        signals.forever().for_each(|signal| match signal {
            // The write that exceeded a limit on file sizes then fails, as on a full disk.
            SIGXFSZ => {}
            SIGTERM if !alone => leave(),
            _ => end(told),
        });
    };
    std::thread::Builder::new().name("horus-signals".into()).spawn(answer).map(drop)
}

#[cfg(not(unix))]
fn wait_for_signals(_: bool, _: bool) -> std::io::Result<()> {
    Ok(()) // the process ends at once
}
