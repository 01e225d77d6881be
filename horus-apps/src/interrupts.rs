//! Interrupts and deadlines of a run.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use horus::prelude::*;
use horus_core::error::Cause;
use horus_core::session::Canceller;

/// Exit status of an interrupted run, as in shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// The phase of a run, which determines the effect of an interrupt.
#[derive(Default)]
enum Phase {
    /// Nothing to clean up; the run may be waiting for input that never comes.
    #[default]
    Early,
    /// An interrupt ends evaluations of these sessions between two steps.
    Under(Vec<Canceller>),
    /// An interrupt was received.
    Asked,
}

/// An interrupt of a run, by a signal or because its caller is gone.
#[derive(Default)]
pub(crate) struct Interruption(Mutex<Phase>);

impl Interruption {
    /// The interrupt of the run of this process.
    pub(crate) fn of_process() -> Arc<Interruption> {
        static PROCESS: LazyLock<Arc<Interruption>> = LazyLock::new(Arc::default);
        Arc::clone(&PROCESS)
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the run was interrupted.
    pub(crate) fn is_asked(&self) -> bool {
        matches!(*self.lock(), Phase::Asked)
    }

    /// Makes an interrupt cancel the session's evaluations between two steps.
    pub(crate) fn watch(&self, session: &Session) {
        let mut phase = self.lock();
        match &mut *phase {
            Phase::Early => *phase = Phase::Under(vec![session.canceller()]),
            Phase::Under(cancellers) => cancellers.push(session.canceller()),
            Phase::Asked => session.canceller().cancel(),
        }
    }

    /// Cancels the evaluations of the run. If there are none yet, or they were cancelled before, calls `otherwise`
    /// with `true` if this is the first interrupt; nothing starts meanwhile.
    pub(crate) fn ask(&self, otherwise: impl FnOnce(bool)) {
        let mut phase = self.lock();
        match std::mem::replace(&mut *phase, Phase::Asked) {
            Phase::Early => otherwise(true),
            Phase::Under(cancellers) => cancellers.iter().for_each(Canceller::cancel),
            Phase::Asked => otherwise(false),
        }
    }

    /// Ends the run: an interrupt cancels nothing any more.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no servers"))]
    pub(crate) fn close(&self) {
        *self.lock() = Phase::Under(Vec::new());
    }
}

/// Installs handlers for the run of this process. SIGINT and SIGTERM end the process with a message, printed if `told`,
/// immediately until a session is watched. Unless the process is `alone`, SIGTERM comes from a launcher that ends all
/// ranks because one of them failed and reported it: the process then ends immediately, without a message. A second
/// signal always ends it in this way.
///
/// # Errors
/// [`Error::Config`] if the system does not install them.
pub(crate) fn listen(told: bool, alone: bool) -> Result<()> {
    let interruption = Interruption::of_process();
    on_signals(move |terminated| {
        if terminated && !alone {
            leave();
        }
        interruption.ask(|first| {
            if told && first {
                horus_core::warning::print(format_args!("error: {}", Error::Cancelled(Cause::Asked)));
            }
            leave();
        });
    })
}

/// Calls `answer` on a thread for each SIGINT, and with `true` for each SIGTERM.
///
/// # Errors
/// [`Error::Config`] if the system does not install handlers.
pub(crate) fn on_signals(answer: impl Fn(bool) + Send + 'static) -> Result<()> {
    wait_for_signals(answer).map_err(|e| Error::Config(format!("cannot install signal handlers: {e}")))
}

/// Ends the process at once.
#[cfg(unix)]
pub(crate) fn leave() {
    signal_hook::low_level::exit(i32::from(INTERRUPTED));
}

#[cfg(not(unix))]
fn leave() {}

#[cfg(unix)]
fn wait_for_signals(answer: impl Fn(bool) + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGXFSZ])?;
    // The write that exceeded a limit on file sizes fails after SIGXFSZ, as on a full disk.
    let wait = move || signals.forever().filter(|s| *s != SIGXFSZ).for_each(|s| answer(s == SIGTERM));
    std::thread::Builder::new().name("horus-signals".into()).spawn(wait).map(drop)
}

#[cfg(not(unix))]
fn wait_for_signals(_: impl Fn(bool) + Send + 'static) -> std::io::Result<()> {
    Ok(()) // the process ends at once
}
