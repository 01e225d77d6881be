//! The general command, for those who need no lines of Rust: `horus INPUT... OUTPUT OPERATION ARGUMENT...`.
//!
//! [`table`] has the operations, `parameter` says how words become their arguments, `chain` records them on a picture, `line`
//! tells files from operations, and `help` prints the table. What surrounds them is [`crate::batch`].

mod chain;
mod help;
mod histogram;
mod line;
mod parameter;
mod table;
mod value;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;

use clap::FromArgMatches;
use horus::core::session::Session;
use horus::prelude::*;

use self::chain::{Answer, Chain, Files, Outcome};
use self::line::Args;
use self::value::Current;
use crate::batch::{self, Job};

pub use help::page;

/// The program `horus`.
pub fn run() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    if let Some(text) = help::asked(&words[1..]) {
        return told(text);
    }
    batch::run(job(words))
}

/// Examples of every operation, for tests: the name of the operation, and a chain in which it stands.
pub fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    table::all().iter().map(|row| (row.name, row.example))
}

/// Prints help, by the first rank alone.
fn told(text: Result<String, String>) -> ExitCode {
    let first = horus::ranks().map_or(true, |comm| comm.rank() == 0);
    match text {
        Ok(text) => {
            if first {
                // Who closes the pipe has read enough.
                let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            if first {
                eprintln!("error: {message}");
            }
            ExitCode::from(2)
        }
    }
}

fn job(words: Vec<std::ffi::OsString>) -> Result<Job, clap::Error> {
    let mut command = line::command();
    let args = Args::from_arg_matches(&command.try_get_matches_from_mut(line::masked(words))?)?;
    let (work, chain) = line::divided(&args).map_err(|e| batch::usage(&mut command, e))?;
    let about = chain.calls.iter().map(|call| call.text.as_str()).collect::<Vec<_>>().join(", ");
    let options = args.options;
    let scaling = args.scaling.into();
    let save = SaveOptions { depth: options.depth, scaling };
    let exact = line::exact(&work, &options, &save);
    let recorder = Rc::new(Recorder { chain, open: options.open_options(), files: RefCell::default() });
    let numbers = Rc::clone(&recorder);
    let operation = move |picture: &AnyImage| match recorder.record(picture)? {
        Outcome::Picture(result) => Ok(result.to_save(exact, &save)),
        Outcome::Numbers(_) => Err(Error::Config("numbers cannot be saved".into())),
    };
    Ok(Job {
        scaling,
        about,
        numbers: Box::new(move |picture| match numbers.record(picture)? {
            Outcome::Numbers(answer) => numbers.lines(&answer),
            Outcome::Picture(_) => Err(Error::Config("a picture cannot be printed".into())),
        }),
        ..Job::new("horus", options, work, operation)
    })
}

/// A chain, and the pictures that its arguments name in the session that it was last recorded in.
struct Recorder {
    chain: Chain,
    open: OpenOptions,
    files: RefCell<Option<(Session, Rc<Files>)>>,
}

impl Recorder {
    fn record(&self, picture: &AnyImage) -> Result<Outcome> {
        let session = Current::read(picture.clone()).session()?;
        let files = self.files(&session)?;
        self.chain.record(picture.clone(), &files)
    }

    /// The pictures that arguments name: read once in a session.
    fn files(&self, session: &Session) -> Result<Rc<Files>> {
        let mut files = self.files.borrow_mut();
        if let Some((_, files)) = files.as_ref().filter(|(of, _)| of.same(session)) {
            return Ok(Rc::clone(files));
        }
        let read = Rc::new(self.chain.open(session, &self.open)?);
        *files = Some((session.clone(), Rc::clone(&read)));
        Ok(read)
    }

    fn lines(&self, answer: &Answer) -> Result<Vec<String>> {
        answer.lines()
    }
}
