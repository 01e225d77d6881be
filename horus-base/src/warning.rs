//! Warnings, sent to the program's logger, or to standard error if it has none.
//!
//! A library installs no logger because the program could then not install its own. Without a logger the
//! crate `log` drops all messages, including errors that were never checked.

use std::fmt;
use std::io::Write;

/// Warns, with the arguments of [`format!`]: by `log::warn!` if the program has a logger, else by a line on
/// standard error.
#[doc(hidden)]
#[macro_export]
macro_rules! warn {
    ($($message:tt)+) => {
        $crate::warning::emit_warning(module_path!(), format_args!($($message)+))
    };
}

/// Implements [`warn!`](crate::warn) for a module.
#[doc(hidden)]
pub fn emit_warning(module: &'static str, message: fmt::Arguments<'_>) {
    match has_logger(log::logger(), log::max_level()) {
        true => log::warn!(target: module, "{message}"),
        false => print(format_args!("horus: warning: {message}")),
    }
}

/// Prints a line to standard error in one write: ranks share standard error, and `eprintln` writes in pieces.
#[doc(hidden)]
pub fn print(line: fmt::Arguments<'_>) {
    // A closed pipe is not an error.
    drop(std::io::stderr().write_all(plain(&format!("{line}\n")).as_bytes()));
}

/// The text with control characters, except line ends and tabs, escaped as in Rust: text from a file could
/// otherwise control a terminal.
#[doc(hidden)]
pub fn plain(text: &str) -> String {
    let is_order = |c: char| c.is_control() && !['\n', '\t'].contains(&c);
    let escaped = |c: char| if is_order(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// Returns `true` if the program installed a logger. Until then the level is `Off` and the logger is a unit
/// type of the crate `log`. A logger that was installed and then switched off is not a unit type.
fn has_logger(logger: &dyn log::Log, level: log::LevelFilter) -> bool {
    level != log::LevelFilter::Off || size_of_val(logger) > 0
}

#[cfg(test)]
mod tests {
    use log::{LevelFilter, Log, Metadata, Record};

    use super::*;

    struct FileLog(#[expect(dead_code, reason = "as large as it is")] u32);
    impl Log for FileLog {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            false
        }
        fn log(&self, _: &Record<'_>) {}
        fn flush(&self) {}
    }

    #[test]
    fn what_a_file_says_gives_a_terminal_no_orders() {
        assert_eq!(plain("a b/ü.png:\tno such\nfile"), "a b/ü.png:\tno such\nfile");
        assert_eq!(plain("\x1b]0;title\x07\r\u{9b}2J"), "\\u{1b}]0;title\\u{7}\\r\\u{9b}2J");
    }

    #[test]
    fn a_logger_that_is_switched_off_is_a_logger() {
        assert!(!has_logger(log::logger(), LevelFilter::Off), "these tests install none");
        assert!(has_logger(log::logger(), LevelFilter::Error));
        assert!(has_logger(&FileLog(2), LevelFilter::Off));
    }
}
