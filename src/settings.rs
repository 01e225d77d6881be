//! The environment variables that Horus reads, each declared once: its name, what it takes, how that is checked.
//!
//! Opening a session checks all of them, whatever device it then runs on: a value that nobody can use is an error at once
//! and not on the machine where it first matters. [`VARIABLES`] is what messages and the README's table are made of.

use std::ffi::OsString;

use horus_core::buffer::parse_bytes;
use horus_core::error::{Error, Result};
use horus_core::plan::Mode;

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it sets.
    pub meaning: &'static str,
    /// What it takes. An empty value is none.
    pub values: Values,
}

/// What a variable takes.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// One of these words.
    Words(&'static [&'static str]),
    /// A whole number.
    Number,
    /// Bytes, or a number with K, M or G (powers of 1024).
    Bytes,
    /// A file or a directory: any text.
    Path,
    /// What a function takes; it tells what is wrong.
    Text(fn(&str) -> std::result::Result<(), String>),
}

/// All of them, in the order in which they are told and checked.
pub const VARIABLES: &[Variable] = &[
    Variable { name: "HORUS_DEVICE", meaning: "the device", values: Values::Text(crate::devices::check) },
    Variable { name: "HORUS_THREADS", meaning: "threads of the host", values: Values::Number },
    Variable {
        name: "HORUS_MODE",
        meaning: "how much of the machinery is used",
        values: Values::Text(|text| text.parse::<Mode>().map(drop)),
    },
    Variable {
        name: "HORUS_ISA",
        meaning: "the most that the CPU device uses",
        values: Values::Words(&["portable", "avx2", "avx512"]),
    },
    Variable { name: "HORUS_NVRTC", meaning: "where NVRTC is", values: Values::Path },
    Variable { name: "HORUS_NCCL", meaning: "where NCCL is", values: Values::Path },
    Variable { name: "HORUS_CACHE", meaning: "where compiled kernels are kept", values: Values::Path },
    Variable { name: "HORUS_TUNING", meaning: "the table of launch shapes", values: Values::Path },
    Variable { name: "HORUS_GPU_MEMORY", meaning: "most memory of a GPU for images", values: Values::Bytes },
    Variable { name: "HORUS_HOST_MEMORY", meaning: "most memory of the host for images", values: Values::Bytes },
    Variable {
        name: "HORUS_WEIGHTS",
        meaning: "how rows are divided among ranks",
        values: Values::Text(crate::weights::check),
    },
    Variable {
        name: "HORUS_FABRIC",
        meaning: "how GPUs of several ranks exchange memory",
        values: Values::Words(&["auto", "nccl", "host", "overlap"]),
    },
];

impl Values {
    /// Whether `text` is one of them.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn check(&self, text: &str) -> std::result::Result<(), String> {
        let expected = |is_so: bool, what: &dyn Fn() -> String| match is_so {
            true => Ok(()),
            false => Err(format!("expected {}", what())),
        };
        match self {
            Values::Words(words) => expected(words.contains(&text), &|| one_of(words)),
            Values::Number => expected(text.parse::<usize>().is_ok(), &|| "a number".into()),
            Values::Bytes => expected(parse_bytes(text).is_some(), &|| "bytes, or a number with K, M or G".into()),
            Values::Path => Ok(()),
            Values::Text(check) => check(text),
        }
    }
}

/// `a, b or c`
fn one_of(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => words.concat(),
    }
}

impl Variable {
    /// The value that the environment has, if there is one.
    fn value(&self, found: Option<OsString>) -> Result<Option<String>> {
        let Some(found) = found.filter(|v| !v.is_empty()) else { return Ok(None) };
        let text = found.into_string().map_err(|raw| Error::Config(format!("{}={raw:?}: it is no text", self.name)))?;
        match self.values.check(&text) {
            Ok(()) => Ok(Some(text)),
            Err(why) => Err(Error::Config(format!("{}={text}: {why}", self.name))),
        }
    }
}

/// Checks every variable.
///
/// # Errors
/// [`Error::Config`] for the first whose value is not text or cannot be used.
pub fn check() -> Result<()> {
    VARIABLES.iter().try_for_each(|v| v.value(std::env::var_os(v.name)).map(drop))
}

/// The value of the variable of this name, checked.
pub(crate) fn get(name: &str) -> Result<Option<String>> {
    let variable = VARIABLES.iter().find(|v| v.name == name);
    variable.map_or(Ok(None), |v| v.value(std::env::var_os(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: &str) -> Result<Option<String>> {
        VARIABLES.iter().find(|v| v.name == name).unwrap().value(Some(value.into()))
    }

    #[test]
    fn values_are_taken_or_refused_with_what_is_expected() {
        for (name, good, bad, says) in [
            ("HORUS_DEVICE", "cuda:1", "zz", "is not one of auto, cpu, cuda, cuda:N"),
            ("HORUS_THREADS", "4", "four", "expected a number"),
            ("HORUS_MODE", "lazy", "eager", "is not one of naive, lazy, fused"),
            ("HORUS_ISA", "avx2", "sse9", "expected portable, avx2 or avx512"),
            ("HORUS_GPU_MEMORY", "3G", "zz", "expected bytes, or a number with K, M or G"),
            ("HORUS_HOST_MEMORY", "4096", "-1", "expected bytes, or a number with K, M or G"),
            ("HORUS_WEIGHTS", "node:2(1,3),1", "1,x", "\"x\" is no number"),
            ("HORUS_WEIGHTS", "measure", "0", "all weights are zero"),
            ("HORUS_FABRIC", "overlap", "zz", "expected auto, nccl, host or overlap"),
        ] {
            assert_eq!(of(name, good).unwrap().as_deref(), Some(good));
            let message = of(name, bad).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{name}={bad}: ")) && message.contains(says), "{message}");
        }
        assert_eq!(VARIABLES[0].value(None).unwrap(), None);
        assert!(VARIABLES.iter().all(|v| v.value(Some("".into())).unwrap().is_none()), "an empty value is none");
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_text_is_refused_by_all() {
        use std::os::unix::ffi::OsStringExt as _;
        for v in VARIABLES {
            let message = v.value(Some(OsString::from_vec(vec![b'a', 0xff]))).unwrap_err().to_string();
            assert!(message.starts_with(v.name) && message.contains("no text"), "{message}");
        }
    }
}
