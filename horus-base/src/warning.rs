//! Warnings: to the program's logger, or to standard error where it has none.
//!
//! A library installs no logger, as the program could then not install its own. Without one the
//! crate `log` drops all messages, including errors that were never checked.

use std::fmt;
use std::io::Write;

/// Warns, with the arguments of [`format!`]: `log::warn!` if the program has a logger, else a line
/// on standard error.
#[doc(hidden)]
#[macro_export]
macro_rules! warn {
    ($($message:tt)+) => {
        $crate::warning::tell(module_path!(), format_args!($($message)+))
    };
}

/// Implements [`warn!`](crate::warn) for a module.
#[doc(hidden)]
pub fn tell(module: &'static str, message: fmt::Arguments<'_>) {
    match has_logger(log::logger(), log::max_level()) {
        true => log::warn!(target: module, "{message}"),
        false => print(format_args!("horus: warning: {message}")),
    }
}

/// Prints a line to standard error in one write: ranks share it, and `eprintln` writes in pieces.
#[doc(hidden)]
pub fn print(line: fmt::Arguments<'_>) {
    // A closed pipe is not an error.
    drop(std::io::stderr().write_all(format!("{line}\n").as_bytes()));
}

/// Returns `true` if the program installed a logger. Until then, the level is `Off` and the logger
/// is a unit type of the crate `log`; a logger that was installed and then switched off is not a
/// unit type.
fn has_logger(logger: &dyn log::Log, level: log::LevelFilter) -> bool {
    level != log::LevelFilter::Off || size_of_val(logger) > 0
}

#[cfg(test)]
mod tests {
    use log::{LevelFilter, Log, Metadata, Record};

    use super::*;

    struct File(#[expect(dead_code, reason = "as large as it is")] u32);
    impl Log for File {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            false
        }
        fn log(&self, _: &Record<'_>) {}
        fn flush(&self) {}
    }

    #[test]
    fn a_logger_that_is_switched_off_is_a_logger() {
        assert!(!has_logger(log::logger(), LevelFilter::Off), "these tests install none");
        assert!(has_logger(log::logger(), LevelFilter::Error));
        assert!(has_logger(&File(2), LevelFilter::Off));
    }
}
