//! Log messages: their receiver, and their distribution over ranks.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use env_logger::{Logger, Target};
use horus_core::warning::plain;
use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::caller::Caller;
use crate::outbox::Stream;

/// `true` if another rank logs the messages common to all ranks.
static QUIET: AtomicBool = AtomicBool::new(false);

/// The logger of the current run, which changes with the requests of a server.
struct Speaker(RwLock<Option<Logger>>);

static SPEAKER: Speaker = Speaker(RwLock::new(None));

impl Speaker {
    fn with<R>(&self, log: impl FnOnce(&Logger) -> R) -> Option<R> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(log)
    }
}

/// The standard error of a caller.
struct ErrorStream(Arc<Caller>);

impl Write for ErrorStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(Stream::Error, bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns `true` for messages of one rank only: failures, and messages about files, which a single rank handles.
fn is_own(metadata: &Metadata<'_>) -> bool {
    const FILES: [&str; 3] = ["horus_files", "horus_core::io", "horus_core::series"];
    metadata.level() == Level::Error || FILES.iter().any(|module| metadata.target().starts_with(module))
}

/// Writes a message: for developers with its module, for users without.
fn written(to: &mut impl Write, record: &Record<'_>) -> io::Result<()> {
    let text = plain(&record.args().to_string());
    match record.level() {
        Level::Error => writeln!(to, "error: {text}"),
        Level::Warn => writeln!(to, "warning: {text}"),
        Level::Info => writeln!(to, "info: {text}"),
        level => writeln!(to, "[{level} {}] {text}", record.target()),
    }
}

impl Log for Speaker {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        (!QUIET.load(Ordering::Relaxed) || is_own(metadata))
            && self.with(|logger| logger.enabled(metadata)).unwrap_or_default()
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.with(|logger| logger.log(record));
        }
    }

    fn flush(&self) {
        self.with(Logger::flush);
    }
}

/// Logs to the standard error of this process from this level on, or as `RUST_LOG` specifies.
pub fn begin(level: LevelFilter) {
    begin_for(&Caller::process(), level);
}

/// Logs to the standard error of a caller from this level on, or as `RUST_LOG` specifies.
pub(crate) fn begin_for(caller: &Arc<Caller>, level: LevelFilter) {
    let to = Target::Pipe(Box::new(ErrorStream(Arc::clone(caller))));
    let mut logger = env_logger::Builder::new();
    let logger = logger.filter_level(level).format(written).parse_default_env().target(to).build();
    log::set_max_level(logger.filter());
    *SPEAKER.0.write().unwrap_or_else(PoisonError::into_inner) = Some(logger);
    // A process that runs a second job has it already.
    let _ = log::set_logger(&SPEAKER);
}

/// Restricts this rank to messages that rank 0 cannot log.
pub(super) fn silence() {
    QUIET.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_read_messages_without_the_names_of_modules() {
        let line = |level| {
            let mut to = Vec::new();
            let mut record = Record::builder();
            record.level(level).target("horus_files");
            written(&mut to, &record.args(format_args!("a.png: {}", "\x1b[2J")).build()).unwrap();
            String::from_utf8(to).unwrap()
        };
        assert_eq!(line(Level::Warn), "warning: a.png: \\u{1b}[2J\n");
        assert_eq!(line(Level::Error), "error: a.png: \\u{1b}[2J\n");
        assert_eq!(line(Level::Info), "info: a.png: \\u{1b}[2J\n");
        assert_eq!(line(Level::Debug), "[DEBUG horus_files] a.png: \\u{1b}[2J\n");
    }

    #[test]
    fn ranks_speak_of_failures_and_of_their_own_files() {
        let own = |level, target| is_own(&Metadata::builder().level(level).target(target).build());
        assert!(own(Level::Error, "horus_core::session") && own(Level::Warn, "horus_core::series::save"));
        assert!(own(Level::Warn, "horus_files::decode") && !own(Level::Warn, "horus_core::session::debug"));
        assert!(!own(Level::Info, "horus::devices"));
    }
}
