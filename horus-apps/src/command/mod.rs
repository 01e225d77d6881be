//! The general command, for use without writing Rust: `horus INPUT... OUTPUT OPERATION ARGUMENT...`.
//!
//! `line` separates files from operations, `chain` records operations on a picture, `parameter` and `arguments` parse
//! and convert arguments, `value` carries type and scale. `table` has a row per operation: the library's description,
//! and a function that records it. `help`, `manual` and `pages` print the table. [`crate::batch`] runs the command, for this
//! process or a client of a server.

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
mod serve;
mod table;
mod value;
mod version;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use clap::FromArgMatches;
use horus::prelude::*;
use horus_core::error::Audience;
use horus_core::session::Session;

use self::chain::{ArgumentFiles, Chain, ChainResult};
use self::line::HorusArgs;
use self::value::Current;
use crate::batch::{self, BatchJob, RunFiles, STANDARD};
use crate::caller::Caller;
use crate::outbox::Stream;
use crate::server;

pub use pages::pages;

/// The program `horus`.
pub fn run() -> ExitCode {
    Audience::Command.set();
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(match server::addressed(&words) {
        Some((socket, words)) => server::send(socket.as_deref(), &words),
        None => execute(&Caller::process()),
    })
}

/// Runs the command of a caller and returns its exit status.
fn execute(caller: &Arc<Caller>) -> u8 {
    batch::log_for(caller, log::LevelFilter::Warn);
    let words = caller.words();
    let help = help::asked(words).or_else(|| completions::asked(words)).or_else(|| manual::asked(words));
    if let Some(text) = help {
        return print_on_first(caller, text.map_err(CommandError::Message), 2);
    }
    if let Some(text) = version::asked(words) {
        return print_on_first(caller, text.map_err(CommandError::Message), 1);
    }
    let answer = info::asked(caller).or_else(|| montage::asked(caller));
    let answer = answer.or_else(|| profile::asked(caller)).or_else(|| serve::asked(caller));
    if let Some(text) = answer {
        return print_on_first(caller, text, 1);
    }
    if let Some(compared) = compare::asked(caller) {
        let status = compared.as_ref().map_or(2, |(_, alike)| u8::from(!alike));
        return print_and_end(caller, compared.map(|(text, _)| text), status, 2);
    }
    let made = job(line::command(), caller.command_line().to_vec());
    if let Ok((job, recorder)) = &made {
        let wrong = |usage: String| print_on_first(caller, Err(CommandError::Message(usage)), 2);
        if job.json && !matches!(job.work, RunFiles::Numbers { .. }) {
            return wrong("--json prints numbers, and these operations yield a picture".into());
        }
        if job.options.draws() && matches!(job.work, RunFiles::Numbers { .. }) {
            return wrong("--explain=svg prints a drawing, and these operations print numbers; use --report".into());
        }
        match recorder.chain.present(|| line::absent(&job.work, &job.options)) {
            Ok(None) => {}
            Ok(Some(usage)) => return wrong(usage),
            Err(e) => return print_on_first(caller, Err(CommandError::Message(e)), 1),
        }
    }
    batch::run_for(caller, made.map(|(job, _)| job))
}

/// Returns `true` if a command of these words reads standard input.
fn reads_input(words: &[OsString]) -> bool {
    let is_input = |path: &std::path::Path| path.as_os_str() == STANDARD;
    words.iter().any(|word| word.as_encoded_bytes().ends_with(STANDARD.as_bytes()))
        && job(line::command(), words.to_vec()).is_ok_and(|(job, _)| match &job.work {
            _ if job.options.files_from.as_deref().is_some_and(is_input) => true,
            RunFiles::Single { input, .. } => is_input(input),
            RunFiles::Numbers { inputs } => inputs.len() == 1 && is_input(&inputs[0]),
            RunFiles::Series { .. } => false,
        })
}

/// Why a command other than a chain failed.
enum CommandError {
    /// Its words are invalid, or ask for help.
    Usage(clap::Error),
    Message(String),
}

impl From<clap::Error> for CommandError {
    fn from(usage: clap::Error) -> CommandError {
        CommandError::Usage(usage)
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> CommandError {
        CommandError::Message(error.to_string())
    }
}

/// An example of every operation: its name, and a chain that contains it.
pub fn examples() -> impl Iterator<Item = (&'static str, String)> {
    table::all().iter().map(|row| (row.name, row.example.to_owned()))
}

/// Prints help, or an error that ends all ranks with this status, on the first rank only.
fn print_on_first(caller: &Caller, text: Result<String, CommandError>, status: u8) -> u8 {
    let status = if text.is_ok() { 0 } else { status };
    print_and_end(caller, text, status, 1)
}

/// Prints a text or an error, on the first rank only. Ends all ranks with this status, or with `unprinted` if the text
/// cannot be printed.
fn print_and_end(caller: &Caller, text: Result<String, CommandError>, status: u8, unprinted: u8) -> u8 {
    let usage = match text {
        Err(CommandError::Usage(usage)) => return caller.print_usage(&usage),
        Err(CommandError::Message(message)) => Err(message),
        Ok(text) => Ok(text),
    };
    if caller.ranks(None).is_ok_and(|comm| comm.rank() > 0) {
        return status;
    }
    // A closed pipe means that the reader has read enough.
    let written = |text: String| match caller.write(Stream::Output, text.as_bytes()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("cannot print to stdout: {e}")),
        _ => Ok(()),
    };
    match usage.map(|text| caller.stdout_is_open().and_then(|()| written(text))) {
        Ok(Ok(())) => status,
        Ok(Err(message)) => {
            caller.print_error(message);
            unprinted
        }
        Err(message) => {
            caller.print_error(message);
            status
        }
    }
}

/// The job of a command line.
///
/// # Errors
/// If the words are invalid.
pub fn job_of(words: Vec<OsString>) -> Result<BatchJob, clap::Error> {
    job(line::command(), words).map(|(job, _)| job)
}

fn job(mut command: clap::Command, words: Vec<OsString>) -> Result<(BatchJob, Rc<ChainRecorder>), clap::Error> {
    let args = HorusArgs::from_arg_matches(&command.try_get_matches_from_mut(line::masked(words))?)?;
    if args.server.is_some() {
        return Err(batch::usage(&mut command, "--server is given twice".into()));
    }
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
