//! Warnings: to the program's logger, or to standard error where it has none.
//!
//! A library installs no logger, as the program's own could not be installed after it. Without one the crate `log` drops all
//! messages, an error that was never looked at among them.

use std::fmt;
use std::io::Write;

/// Warns, with the arguments of [`format!`]: `log::warn!` if the program has a logger, else a line on standard error.
#[doc(hidden)]
#[macro_export]
macro_rules! warn {
    ($($message:tt)+) => {
        $crate::warning::tell(module_path!(), format_args!($($message)+))
    };
}

/// What [`warn!`](crate::warn) does on behalf of a module.
#[doc(hidden)]
pub fn tell(module: &'static str, message: fmt::Arguments<'_>) {
    match has_logger(log::logger(), log::max_level()) {
        true => log::warn!(target: module, "{message}"),
        false => print(format_args!("horus: warning: {message}")),
    }
}

/// Prints a line to standard error in one write: ranks share it, and `eprintln` writes piece by piece.
#[doc(hidden)]
pub fn print(line: fmt::Arguments<'_>) {
    // A closed pipe is no reason to fail.
    drop(std::io::stderr().write_all(format!("{line}\n").as_bytes()));
}

/// Whether the program installed a logger. Until it does, the level is `Off` and the logger is a unit of the crate `log`; one that
/// was installed and switched off has something to write to.
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
