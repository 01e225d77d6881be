//! Ends of a run that come from outside: Ctrl-C, and the time that it may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use horus::prelude::*;

use super::Options;

/// The exit status of a run that was interrupted, as shells have it.
pub(super) const INTERRUPTED: u8 = 130;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the user has asked for the end.
pub(super) fn interrupted() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// From now on SIGINT and SIGTERM end the session's evaluations between two steps, and a second one ends the process at
/// once; so does the deadline of the options, counted from `started`.
///
/// # Errors
/// [`Error::Config`] if the system refuses.
pub(super) fn watch(session: &Session, options: &Options, started: Instant) -> Result<()> {
    if let Some(limit) = options.deadline {
        // A deadline beyond all time is none.
        session.set_deadline(started.checked_add(limit));
    }
    listen(session).map_err(|e| Error::Config(format!("cannot listen to signals: {e}")))
}

#[cfg(unix)]
fn listen(session: &Session) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let canceller = session.canceller();
    let answer = move || {
        let mut signals = signals.forever();
        if signals.next().is_some() {
            ASKED.store(true, Ordering::Relaxed);
            canceller.cancel();
        }
        if signals.next().is_some() {
            signal_hook::low_level::exit(i32::from(INTERRUPTED));
        }
    };
    std::thread::Builder::new().name("horus-signals".into()).spawn(answer).map(drop)
}

#[cfg(not(unix))]
fn listen(_session: &Session) -> std::io::Result<()> {
    Ok(()) // the process ends at once
}
