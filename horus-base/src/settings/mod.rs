//! The environment variables that Horus reads, each declared once: name, values, meaning, parser.
//!
//! [`VARIABLES`] lists all. The book's table ([`table`]), checks and error messages derive from it. Only
//! [`Variable::get`] reads and parses variables. Opening a session checks all of them ([`check`]), whatever
//! device it uses: an invalid value is an error at once, not only on the machine where it matters.
//!
//! This module depends on errors only.

mod declarations;
mod device;
mod weights;

use std::ffi::OsString;
use std::path::PathBuf;

pub use declarations::*;
pub use device::{DeviceChoice, ListedDevice};
pub use weights::{NodeWeights, Weights};

use crate::error::{Error, Result};

/// An environment variable whose value is a `T`. An empty value counts as unset.
#[derive(Debug)]
pub struct Variable<T: 'static> {
    /// Its name.
    pub name: &'static str,
    /// Its meaning: one line of Markdown.
    pub help: &'static str,
    /// Accepted values.
    pub values: Accepted<T>,
}

/// Accepted values of a variable.
#[derive(Debug)]
pub enum Accepted<T: 'static> {
    /// One of these words.
    Words(&'static [Word<T>]),
    /// Text in a given format.
    Form {
        /// The format, for error messages: "a number".
        expected: &'static str,
        /// The same in Markdown, for the book; empty if the help says it.
        shown: &'static str,
        /// Parses a value. The error says what is wrong; it is empty if `expected` says all.
        parse: fn(&str) -> Result<T, String>,
    },
}

/// A word accepted by a variable.
#[derive(Debug)]
pub struct Word<T: 'static> {
    /// Its spelling.
    pub text: &'static str,
    /// Its value.
    pub value: T,
    /// Its meaning: a few words of Markdown, or empty.
    pub help: &'static str,
}

impl<T: Clone> Accepted<T> {
    /// Parses `text`.
    ///
    /// # Errors
    /// The expected values.
    pub fn parse(&self, text: &str) -> Result<T, String> {
        match self {
            Accepted::Words(words) => {
                let found = words.iter().find(|w| w.text == text);
                found.map(|w| w.value.clone()).ok_or_else(|| format!("expected {}", one_of(words)))
            }
            Accepted::Form { expected, parse, .. } => {
                let said = |why: String| if why.is_empty() { format!("expected {expected}") } else { why };
                parse(text).map_err(said)
            }
        }
    }
}

/// `a, b or c`
fn one_of<T>(words: &[Word<T>]) -> String {
    let texts: Vec<&str> = words.iter().map(|w| w.text).collect();
    match &*texts {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => texts.concat(),
    }
}

impl<T: Clone> Variable<T> {
    /// Reads the value set in the environment, if any.
    ///
    /// # Errors
    /// [`Error::Config`] for a value that is not Unicode or is invalid.
    pub fn get(&self) -> Result<Option<T>> {
        self.parse(std::env::var_os(self.name))
    }

    /// Parses a value of the environment.
    fn parse(&self, found: Option<OsString>) -> Result<Option<T>> {
        let Some(found) = found.filter(|v| !v.is_empty()) else { return Ok(None) };
        let text = found.into_string().map_err(|raw| {
            Error::Config(format!("{}={}: the value is not valid Unicode", self.name, raw.to_string_lossy()))
        })?;
        self.values.parse(&text).map(Some).map_err(|why| self.invalid_value_error(&text, &why))
    }

    /// The error for an invalid `text`.
    pub fn invalid_value_error(&self, text: &str, why: &str) -> Error {
        Error::Config(format!("{}={text}: {why}", self.name))
    }
}

impl Variable<PathBuf> {
    /// The path set in the environment. Any text is a path, so this cannot fail.
    pub fn path(&self) -> Option<PathBuf> {
        std::env::var_os(self.name).filter(|v| !v.is_empty()).map(PathBuf::from)
    }
}

/// A [`Variable`] of any type.
pub trait Declared: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Checks a value of the environment.
    ///
    /// # Errors
    /// [`Error::Config`] for a value that is not Unicode or is invalid.
    fn check(&self, value: Option<OsString>) -> Result<()>;

    /// Its row of the book's table.
    fn row(&self) -> String;
}

impl<T: Clone + Sync> Declared for Variable<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn check(&self, value: Option<OsString>) -> Result<()> {
        self.parse(value).map(drop)
    }

    fn row(&self) -> String {
        let values = match &self.values {
            Accepted::Form { shown, .. } => (*shown).to_owned(),
            Accepted::Words(words) => {
                let word = |w: &Word<T>| match w.help {
                    "" => format!("`{}`", w.text),
                    help => format!("`{}` ({help})", w.text),
                };
                words.iter().map(word).collect::<Vec<_>>().join(", ")
            }
        };
        let colon = if values.is_empty() { "" } else { ": " };
        format!("| `{}` | {}{colon}{values} |", self.name, self.help)
    }
}

/// Checks every variable.
///
/// # Errors
/// [`Error::Config`] for the first value that is not Unicode or is invalid.
pub fn check() -> Result<()> {
    VARIABLES.iter().try_for_each(|v| v.check(std::env::var_os(v.name())))
}

/// The table of all variables, in Markdown, without its header.
pub fn table() -> String {
    VARIABLES.iter().map(|v| v.row() + "\n").collect()
}

/// Parses a number of bytes: a number, optionally with K, M or G (powers of 1024).
pub fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim().to_ascii_uppercase();
    let (digits, unit) = match text.chars().last()? {
        'K' => (&text[..text.len() - 1], 1 << 10),
        'M' => (&text[..text.len() - 1], 1 << 20),
        'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (&*text, 1),
    };
    digits.trim().parse::<usize>().ok()?.checked_mul(unit)
}

const fn word<T>(text: &'static str, value: T, help: &'static str) -> Word<T> {
    Word { text, value, help }
}

const BYTES: Accepted<usize> = Accepted::Form {
    expected: "bytes, or a number with K, M or G",
    shown: "bytes, or a number with K, M or G",
    parse: |text| parse_bytes(text).ok_or_else(String::new),
};

/// A file or a directory: any text.
const PATH: Accepted<PathBuf> = Accepted::Form { expected: "a path", shown: "", parse: |text| Ok(PathBuf::from(text)) };

#[cfg(test)]
mod tests;
