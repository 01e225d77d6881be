//! The general command, for use without writing Rust: `horus INPUT... OUTPUT OPERATION ARGUMENT...`.
//!
//! `line` separates files from operations, `chain` records operations on a picture, `parameter` and `arguments` parse
//! and convert arguments, `value` carries type and scale. `table` has a row per operation: the library's description,
//! and a function that records it. `help`, `manual` and `pages` print the table. [`crate::batch`] runs the command.

mod arguments;
mod chain;
mod compare;
mod completions;
mod help;
mod histogram;
mod info;
mod line;
mod manual;
mod montage;
mod pages;
mod parameter;
mod profile;
mod table;
mod value;
mod version;

use std::cell::RefCell;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::rc::Rc;

use clap::FromArgMatches;
use horus::prelude::*;
use horus_core::error::Audience;
use horus_core::session::Session;

use self::chain::{ArgumentFiles, Chain, ChainResult};
use self::line::HorusArgs;
use self::value::Current;
use crate::batch::{self, BatchJob, RunFiles};
use crate::report::stdout_is_open;

pub use pages::pages;

/// The program `horus`.
pub fn run() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    Audience::Command.set();
    let words_of = &words[1..];
    let help = help::asked(words_of).or_else(|| completions::asked(words_of)).or_else(|| manual::asked(words_of));
    if let Some(text) = help {
        return print_on_first(text, 2);
    }
    let answer = version::asked(words_of).or_else(|| info::asked(words_of)).or_else(|| montage::asked(words_of));
    let answer = answer.or_else(|| profile::asked(words_of));
    if let Some(text) = answer {
        return print_on_first(text, 1);
    }
    if let Some((text, status)) = compare::asked(words_of) {
        return print_and_end(text, status, 2);
    }
    let made = job(line::command(), words);
    if let Ok((job, recorder)) = &made {
        if job.json && !matches!(job.work, RunFiles::Numbers { .. }) {
            return print_on_first(Err("--json prints numbers, and these operations yield a picture".into()), 2);
        }
        match recorder.chain.present(|| line::absent(&job.work, &job.options)) {
            Ok(None) => {}
            Ok(Some(usage)) => return print_on_first(Err(usage), 2),
            Err(e) => return print_on_first(Err(e), 1),
        }
    }
    batch::run(made.map(|(job, _)| job))
}

/// An example of every operation: its name, and a chain that contains it.
pub fn examples() -> impl Iterator<Item = (&'static str, String)> {
    table::all().iter().map(|row| (row.name, row.example.to_owned()))
}

/// Prints help, or an error that ends all ranks with this status, on the first rank only.
fn print_on_first(text: Result<String, String>, status: u8) -> ExitCode {
    let status = if text.is_ok() { 0 } else { status };
    print_and_end(text, status, 1)
}

/// Prints a text or an error, on the first rank only. Ends all ranks with this status, or with `unprinted` if the text
/// cannot be printed.
fn print_and_end(text: Result<String, String>, status: u8, unprinted: u8) -> ExitCode {
    let first = horus::ranks().map_or(true, |comm| comm.rank() == 0);
    match text {
        Ok(text) => {
            if first {
                if let Err(e) = stdout_is_open() {
                    horus_core::warning::print(format_args!("error: {e}"));
                    return ExitCode::from(unprinted);
                }
                let mut out = std::io::stdout();
                let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                // A closed pipe means that the reader has read enough.
                if let Err(e) = printed.or_else(|e| if e.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(e) }) {
                    horus_core::warning::print(format_args!("error: cannot print to stdout: {e}"));
                    return ExitCode::from(unprinted);
                }
            }
        }
        Err(message) => {
            if first {
                horus_core::warning::print(format_args!("error: {message}"));
            }
        }
    }
    ExitCode::from(status)
}

/// The job of a command line.
///
/// # Errors
/// If the words are invalid.
pub fn job_of(words: Vec<std::ffi::OsString>) -> Result<BatchJob, clap::Error> {
    job(line::command(), words).map(|(job, _)| job)
}

fn job(
    mut command: clap::Command,
    words: Vec<std::ffi::OsString>,
) -> Result<(BatchJob, Rc<ChainRecorder>), clap::Error> {
    let args = HorusArgs::from_arg_matches(&command.try_get_matches_from_mut(line::masked(words))?)?;
    let (work, chain) = line::divided(&args).map_err(|e| batch::usage(&mut command, e))?;
    let about = chain.calls.iter().map(|call| call.text.as_str()).collect::<Vec<_>>().join(", ");
    let mut options = args.options;
    options.later = args.roi.map(|_| true);
    let scaling = args.scaling.into();
    let save = options.save_options(scaling);
    let file = line::results(&work, &options, &save);
    // `--page` applies to the pictures of the chain only.
    let open = OpenOptions { page: None, ..options.open_options() };
    let recorder = Rc::new(ChainRecorder { chain, open, files: RefCell::default() });
    let (pictures, numbers) = (Rc::clone(&recorder), Rc::clone(&recorder));
    let operation = move |picture: &AnyImage| match pictures.record(picture)? {
        ChainResult::Picture(result) => result.to_save(&file, &save),
        ChainResult::Numbers(_) => Err(Error::Config("numbers cannot be saved".into())),
    };
    let job = BatchJob {
        scaling,
        json: args.json,
        about: Box::new(move || about.clone()),
        numbers: Box::new(move |picture| match numbers.record(picture)? {
            ChainResult::Numbers(answer) => Ok(answer),
            ChainResult::Picture(_) => Err(Error::Config("a picture cannot be printed".into())),
        }),
        operation: Box::new(operation),
        ..BatchJob::new("horus", options, work, |_| Err(Error::Config("there is no operation".into())))
    };
    Ok((job, recorder))
}

/// A chain, and the pictures that its arguments name.
struct ChainRecorder {
    chain: Chain,
    open: OpenOptions,
    /// The pictures for each session that the chain was recorded in: a run has one session for all ranks and may have
    /// others. All ranks of a session read the files at the same picture.
    files: RefCell<Vec<(Session, Result<Rc<ArgumentFiles>>)>>,
}

impl ChainRecorder {
    fn record(&self, picture: &AnyImage) -> Result<ChainResult> {
        let session = Current::read(picture.clone()).session()?;
        let files = self.files(&session)?;
        self.chain.record(picture.clone(), &files)
    }

    /// The pictures that arguments name, read once per session.
    fn files(&self, session: &Session) -> Result<Rc<ArgumentFiles>> {
        if let Some((_, files)) = self.files.borrow().iter().find(|(of, _)| of.same(session)) {
            return files.clone();
        }
        let read = self.chain.open(session, &self.open).map(Rc::new);
        self.files.borrow_mut().push((session.clone(), read.clone()));
        read
    }
}
