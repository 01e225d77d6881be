//! Distribution of log messages over ranks.

use std::sync::atomic::{AtomicBool, Ordering};

use env_logger::Logger;
use log::{Level, LevelFilter, Log, Metadata, Record};

/// `true` if another rank logs the messages common to all ranks.
static QUIET: AtomicBool = AtomicBool::new(false);

struct Speaker(Logger);

/// Messages of one rank only: failures, and those about files, which a single rank handles.
fn is_own(metadata: &Metadata<'_>) -> bool {
    const FILES: [&str; 3] = ["horus_files", "horus_core::io", "horus_core::series"];
    metadata.level() == Level::Error || FILES.iter().any(|module| metadata.target().starts_with(module))
}

impl Log for Speaker {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        (!QUIET.load(Ordering::Relaxed) || is_own(metadata)) && self.0.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.log(record);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// Logs to stderr from this level on, or as `RUST_LOG` specifies.
pub(crate) fn begin(level: LevelFilter) {
    let logger = env_logger::Builder::new().filter_level(level).parse_default_env().build();
    let most = logger.filter();
    // A process that runs a second job already has a logger.
    if log::set_boxed_logger(Box::new(Speaker(logger))).is_ok() {
        log::set_max_level(most);
    }
}

/// From now on this rank logs only messages that rank 0 cannot.
pub(super) fn leave_to_the_first() {
    QUIET.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_speak_of_failures_and_of_their_own_files() {
        let own = |level, target| is_own(&Metadata::builder().level(level).target(target).build());
        assert!(own(Level::Error, "horus_core::session") && own(Level::Warn, "horus_core::series::save"));
        assert!(own(Level::Warn, "horus_files::files::decode") && !own(Level::Warn, "horus_core::session::debug"));
        assert!(!own(Level::Info, "horus::devices"));
    }
}
