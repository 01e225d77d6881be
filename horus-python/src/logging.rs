//! Horus's log messages, forwarded to Python's `logging`.
//!
//! Messages are delivered when a call returns, on the calling thread. Threads that log may have locks for which the
//! owner of the interpreter's lock waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;

/// Most undelivered messages; the oldest are dropped first.
const MOST: usize = 256;

struct Logger {
    waiting: Mutex<VecDeque<(Level, String)>>,
    any: AtomicBool,
    to: Mutex<Option<Py<PyAny>>>,
}

static LOGGER: Logger =
    Logger { waiting: Mutex::new(VecDeque::new()), any: AtomicBool::new(false), to: Mutex::new(None) };

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level() && metadata.target().starts_with("horus")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MOST {
            waiting.pop_front();
        }
        waiting.push_back((record.level(), record.args().to_string()));
        self.any.store(true, Ordering::Release);
    }

    fn flush(&self) {}
}

/// `logging`'s numbers of levels.
fn number(level: Level) -> u32 {
    match level {
        Level::Error => 40,
        Level::Warn => 30,
        Level::Info => 20,
        Level::Debug => 10,
        Level::Trace => 5,
    }
}

/// Passes messages from `level` on to a function of a level and a text.
#[pyfunction]
pub(crate) fn log_to(function: Py<PyAny>, level: u32) {
    let filter = match level {
        0..=5 => LevelFilter::Trace,
        6..=10 => LevelFilter::Debug,
        11..=20 => LevelFilter::Info,
        21..=30 => LevelFilter::Warn,
        31..=40 => LevelFilter::Error,
        _ => LevelFilter::Off,
    };
    *LOGGER.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(function);
    // An existing logger of this process stays.
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(filter);
}

/// Delivers the messages.
pub(crate) fn deliver_messages(py: Python<'_>) {
    if !LOGGER.any.swap(false, Ordering::Acquire) {
        return;
    }
    let waiting = std::mem::take(&mut *LOGGER.waiting.lock().unwrap_or_else(PoisonError::into_inner));
    let to = LOGGER.to.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|to| to.clone_ref(py));
    let Some(to) = to else { return };
    for (level, text) in waiting {
        // A failing handler must not make a computation fail.
        if let Err(error) = to.call1(py, (number(level), text)) {
            error.write_unraisable(py, None);
        }
    }
}
